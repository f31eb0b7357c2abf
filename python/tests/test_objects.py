"""Objects and domains, by threads."""

import json
import pickle
import threading
from datetime import UTC, datetime

import pytest

import areo

LARGE = bytes(range(256)) * 40_000  # 10 MB: three blocks


def test_what_was_put_is_read(domain: areo.Domain) -> None:
    version = domain.put("put/a", b"hello", content_type="text/plain", metadata={"by": "test"}, etag="e1")
    read = domain.get("put/a")
    assert read == areo.Object(b"hello", version, read.metadata)
    assert read.metadata.content_type == "text/plain"
    assert read.metadata.user == {"by": "test"}
    assert read.metadata.etag == "e1"
    written = read.metadata.written_at
    assert written is not None and abs(datetime.now(UTC) - written).days == 0
    assert domain.stat("put/a") == areo.Info(version, 5, read.metadata)
    assert domain.delete("put/a") != version
    with pytest.raises(areo.NotFound) as raised:
        domain.get("put/a")
    assert (raised.value.domain, raised.value.key, raised.value.kind) == ("default", "put/a", "not_found")


@pytest.mark.parametrize("value", [b"", b"x", LARGE, bytearray(b"array"), memoryview(b"0123")[1:3]])
def test_values_of_every_kind(domain: areo.Domain, value: areo.BytesLike) -> None:
    domain.put("kinds/a", value)
    assert domain.get("kinds/a").value == bytes(value)


def test_a_version_is_text(domain: areo.Domain) -> None:
    version = domain.put("text/a", b"1")
    assert domain.get("text/a").version == pickle.loads(pickle.dumps(version)) == json.loads(json.dumps(version))


def test_the_command_line_reads_it(domain: areo.Domain, cluster) -> None:
    version = domain.put("line/a", b"from python")
    assert cluster.areo("get", "line/a") == "from python"
    assert json.loads(cluster.areo("--json", "stat", "line/a"))["version"] == version


def test_a_listing_goes_on_over_pages(domain: areo.Domain) -> None:
    keys = [f"pages/{i:04}" for i in range(1100)]

    def put(some: list[str]) -> None:
        for key in some:
            domain.put(key, b"x")

    threads = [threading.Thread(target=put, args=(keys[i::8],)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    listed = list(domain.list("pages/"))
    assert [entry.key for entry in listed] == keys
    assert {entry.length for entry in listed} == {1}
    assert [entry.key for entry in domain.list("pages/", after="pages/1097")] == keys[1098:]
    page = domain.list_page("pages/1", delimiter="0")
    assert page.prefixes == ["pages/10"] and page.entries == [] and page.next is None


def test_a_conditional_put_tells_the_latest_object(domain: areo.Domain) -> None:
    first = domain.put("if/a", b"1", if_absent=True)
    second = domain.put("if/a", b"2", if_version=first)
    for condition in ({"if_version": first}, {"if_absent": True}):
        with pytest.raises(areo.VersionConflict) as raised:
            domain.put("if/a", b"3", **condition)
        assert raised.value.latest_version == second
        assert raised.value.latest is not None and raised.value.latest.value == b"2"
    assert raised.value.expected is None and raised.value.key == "if/a"
    with pytest.raises(areo.VersionConflict):
        domain.delete("if/a", if_version=first)
    domain.delete("if/a", if_version=second)
    with pytest.raises(areo.VersionConflict) as gone:
        domain.put("if/a", b"4", if_version=second)
    assert gone.value.latest is None and gone.value.expected == second


def test_a_large_object_does_not_come_with_a_conflict(domain: areo.Domain) -> None:
    version = domain.put("if/large", LARGE)
    with pytest.raises(areo.VersionConflict) as raised:
        domain.put("if/large", b"small", if_absent=True)
    assert raised.value.latest_version == version and raised.value.latest is None


def test_compare_and_put_has_one_winner(counters: areo.Domain) -> None:
    assert counters.has_one_winner
    first = counters.compare_and_put("cas/a", b"0", None)
    won: list[int] = []

    def race(number: int) -> None:
        try:
            counters.compare_and_put("cas/a", str(number).encode(), first)
            won.append(number)
        except areo.VersionConflict:
            pass

    threads = [threading.Thread(target=race, args=(number,)) for number in range(1, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == 1
    assert counters.get("cas/a").value == str(won[0]).encode()


def test_compare_and_put_is_refused_in_other_domains(domain: areo.Domain) -> None:
    assert not domain.has_one_winner
    with pytest.raises(areo.Invalid, match="'default'"):
        domain.compare_and_put("cas/a", b"0", None)


def count(found: areo.Object | None) -> bytes:
    return str(int(found.value if found else b"0") + 1).encode()


def test_no_update_is_lost(counters: areo.Domain) -> None:
    def rise() -> None:
        for _ in range(10):
            assert counters.update("visits", count) is not None

    threads = [threading.Thread(target=rise) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counters.get("visits").value == b"40"


def test_an_update_may_leave_the_object_or_raise(counters: areo.Domain) -> None:
    assert counters.update("update/none", lambda found: None) is None
    version = counters.put("update/a", b"1")
    assert counters.update("update/a", lambda found: None) == version

    def fails(found: areo.Object | None) -> bytes:
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        counters.update("update/a", fails)
    with pytest.raises(TypeError):
        counters.update("update/a", lambda found: "text")  # type: ignore[arg-type, return-value]
    assert counters.get("update/a").version == version


def test_stats_count_what_a_handle_did(client: areo.Client) -> None:
    domain = client.domain()
    assert domain.stats() == areo.Stats(0, 0, 0, 0, 0)
    domain.put("stats/a", b"x" * 1000)
    stats = domain.stats()
    assert stats.rounds == 2 and stats.sent_bytes > 1000 and stats.requests > 0
    assert 'areo_' in client.metrics()


def test_a_trace_is_of_what_the_block_did(domain: areo.Domain) -> None:
    domain.put("trace/a", b"x")
    with areo.trace() as traces:
        domain.get("trace/a")
    domain.put("trace/a", b"y")
    assert [trace.name for trace in traces] == ["areo.read"]
    assert {"name", "trace", "start_ns", "duration_ns"} <= traces[0].spans[0].keys()
    assert any(span["name"] == "net.quorum" for span in traces[0].spans)
    assert str(traces[0]).startswith(f"trace {traces[0].id} · areo.read")
    with areo.trace() as second:
        domain.get("trace/a")
    assert len(second) == 1 and second[0].id != traces[0].id


def test_domains_have_names(client: areo.Client, domain: areo.Domain) -> None:
    assert {"default", "counters"} <= set(client.domains())
    assert domain.name == "default" and repr(domain) == "<areo.Domain 'default'>"
    assert client.cluster in repr(client)
