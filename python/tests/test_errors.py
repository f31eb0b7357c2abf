"""Bad input, and clusters that do not answer."""

import os

import pytest

import areo


def test_a_wrong_cluster_or_key_is_one_sentence(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("AREO_CLUSTER", raising=False)
    with pytest.raises(areo.Invalid, match="areo up"):
        areo.connect()
    with pytest.raises(areo.Invalid, match="'nowhere' names no cluster"):
        areo.connect("nowhere")
    (tmp_path / "foreign").write_text("hello")
    with pytest.raises(areo.Invalid, match="foreign"):
        areo.connect(tmp_path / "foreign")
    with pytest.raises(areo.Invalid, match="key"):
        areo.connect("127.0.0.1:1", key="secret")
    for timeout in (0, -1, float("nan"), float("inf"), 1e18, 365 * 86400 + 1):
        with pytest.raises(areo.Invalid, match="at most a year"):
            areo.connect("127.0.0.1:1", timeout=timeout)


def test_no_server_is_named_with_the_reason(silent: str) -> None:
    with pytest.raises(areo.Unavailable, match="refused"):
        areo.connect("127.0.0.1:1")
    with pytest.raises(areo.Unavailable, match="timed out"):
        areo.connect(silent, timeout=0.2)
    with pytest.raises(areo.Unavailable, match="refused"):
        areo.connect("127.0.0.1:1", timeout=365 * 86400)


def test_a_cluster_is_found_as_the_command_line_does(cluster, monkeypatch, tmp_path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AREO_CLUSTER", cluster.file)
    id = areo.connect().cluster
    monkeypatch.setenv("AREO_CLUSTER", "")
    os.symlink(os.path.dirname(cluster.file), tmp_path / "areo-data")
    assert areo.connect().cluster == id


def test_a_key_is_needed_and_may_come_from_the_environment(cluster, monkeypatch) -> None:
    text = open(cluster.file).read()
    address = next(line for line in text.splitlines() if line.startswith("address")).split('"')[1]
    key = next(line for line in text.splitlines() if line.startswith("key")).split('"')[1]
    monkeypatch.delenv("AREO_KEY", raising=False)
    with pytest.raises(areo.Unauthorised, match="AREO_KEY"):
        areo.connect(address)
    assert "default" in areo.connect(address, key=key).domains()
    monkeypatch.setenv("AREO_KEY", key)
    assert "default" in areo.connect(address).domains()


def test_bad_input_is_refused(domain: areo.Domain, client: areo.Client) -> None:
    with pytest.raises(areo.Invalid, match="not a version"):
        domain.put("bad/a", b"x", if_version="garbage")
    with pytest.raises(areo.Invalid, match="both"):
        domain.put("bad/a", b"x", if_version="2-00c0ffee00c0ffee1", if_absent=True)
    for key in ("", "k" * 1025):
        with pytest.raises(areo.Invalid):
            domain.put(key, b"x")
        with pytest.raises(areo.Invalid):
            domain.stream(key)
    with pytest.raises(areo.Invalid):
        domain.put("bad/a", b"x", metadata={"a": "b" * 3000})
    with pytest.raises(areo.Invalid):
        domain.put("bad/a", b"x", etag='"')
    for value in ("text", None, 5):
        with pytest.raises(TypeError):
            domain.put("bad/a", value)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        domain.get(5)  # type: ignore[arg-type]
    with pytest.raises(areo.NotFound, match="'nowhere'") as raised:
        client.domain("nowhere")
    assert (raised.value.domain, raised.value.key) == ("nowhere", None)
    with pytest.raises(areo.NotFound):
        domain.delete("bad/none")


def test_every_error_has_one_base() -> None:
    names = ["NotFound", "VersionConflict", "Unavailable", "Unknown", "Corrupted", "Unauthorised", "Invalid"]
    assert all(issubclass(getattr(areo, name), areo.Error) for name in names)


def test_without_a_quorum_an_operation_ends_and_says_so(cluster) -> None:
    domain = areo.connect(cluster.file, timeout=1).domain()
    domain.put("frozen/a", b"1")
    cluster.freeze(4)
    try:
        with pytest.raises(areo.Unavailable, match="no quorum for 'default'") as raised:
            domain.get("frozen/a")
        assert raised.value.domain == "default"
        with pytest.raises((areo.Unavailable, areo.Unknown)):
            domain.put("frozen/a", b"2")
    finally:
        cluster.thaw()
    assert domain.get("frozen/a").value in (b"1", b"2")
