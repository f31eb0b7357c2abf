"""Values in pieces, by threads."""

import io
import shutil

import pytest

import areo

LARGE = bytes(range(256)) * 40_000


def test_a_stream_is_what_was_put(domain: areo.Domain) -> None:
    version = domain.put("stream/a", LARGE, content_type="film")
    stream = domain.stream("stream/a")
    assert (stream.version, stream.length, stream.metadata.content_type) == (version, len(LARGE), "film")
    assert b"".join(stream) == LARGE
    assert next(stream, None) is None
    assert b"".join(domain.stream("stream/a", 5_000_000, 5_000_010)) == LARGE[5_000_000:5_000_010]
    assert b"".join(domain.stream("stream/a", len(LARGE) - 3)) == LARGE[-3:]


def test_a_range_is_within_the_value(domain: areo.Domain) -> None:
    domain.put("range/a", b"0123")
    for start, end in [(3, 5), (3, 2), (5, None)]:
        with pytest.raises(areo.Invalid):
            domain.stream("range/a", start, end)


@pytest.mark.parametrize("value", [b"", b"abc", LARGE])
def test_files_and_pieces_are_sources(domain: areo.Domain, value: bytes) -> None:
    version = domain.put_stream("source/a", io.BytesIO(value), metadata={"a": "b"})
    read = domain.get("source/a")
    assert read.value == value and read.version == version and read.metadata.user == {"a": "b"}
    pieces = [value[i : i + 1_000_000] for i in range(0, len(value), 1_000_000)]
    domain.put_stream("source/a", iter([b"", *pieces, bytearray()]))
    assert domain.get("source/a").value == value


def test_a_source_that_raises_writes_nothing(domain: areo.Domain) -> None:
    def source():
        yield LARGE
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        domain.put_stream("source/raises", source())
    with pytest.raises(TypeError):
        domain.put_stream("source/raises", io.StringIO("text"))  # type: ignore[arg-type]
    for wrong in ("text", b"", bytearray(b"x"), memoryview(b"x")):
        with pytest.raises(TypeError, match="a source is"):
            domain.put_stream("source/raises", wrong)  # type: ignore[arg-type]
    with pytest.raises(areo.NotFound):
        domain.get("source/raises")


def test_a_stream_is_put_on_a_condition(counters: areo.Domain, domain: areo.Domain) -> None:
    version = counters.put_stream("stream/if", [LARGE], if_absent=True)
    with pytest.raises(areo.VersionConflict) as raised:
        counters.put_stream("stream/if", [b"x"], if_absent=True)
    assert raised.value.latest_version == version
    counters.put_stream("stream/if", [b"x"], if_version=version)
    assert counters.get("stream/if").value == b"x"
    with pytest.raises(areo.Invalid):
        domain.put_stream("stream/if", [b"x"], if_absent=True)


def test_an_object_is_a_file(domain: areo.Domain) -> None:
    with domain.open("file/a", "wb") as file:
        shutil.copyfileobj(io.BytesIO(LARGE), file)
        with pytest.raises(ValueError, match="closed"):
            print(file.version)
    with domain.open("file/a") as read:
        assert read.stream.version == file.version and read.stream.length == len(LARGE)
        assert read.read(3) == LARGE[:3]
        assert read.read() == LARGE[3:]
        assert read.read() == b""
    domain.put("file/lines", b"a\nbc\n")
    assert list(domain.open("file/lines")) == [b"a\n", b"bc\n"]
    with pytest.raises(ValueError, match="'ab'"):
        domain.open("file/a", "ab")  # type: ignore[call-overload]
    with pytest.raises(ValueError, match="closed"):
        file.write(b"late")


def test_a_reader_is_closed(domain: areo.Domain) -> None:
    domain.put("close/a", LARGE)
    stream = domain.stream("close/a")
    next(stream)
    stream.close()
    stream.close()
    file = domain.open("close/a")
    file.read(1)
    file.close()
    for closed in (stream, file.stream):
        assert closed.length == len(LARGE)
        with pytest.raises(areo.Invalid) as raised:
            next(closed)
        assert raised.value.kind == "given_up"


def test_a_file_that_is_left_writes_nothing(domain: areo.Domain) -> None:
    with pytest.raises(ZeroDivisionError):
        with domain.open("file/left", "wb") as file:
            file.write(b"half")
            raise ZeroDivisionError
    file = domain.open("file/left", "wb")
    file.write(b"half")
    del file
    aborted = domain.open("file/left", "wb")
    aborted.write(b"half")
    aborted.abort()
    aborted.close()
    with pytest.raises(areo.NotFound):
        domain.get("file/left")


def test_a_value_that_is_written_over_is_no_mix(domain: areo.Domain) -> None:
    domain.put("over/a", LARGE * 4)
    stream = domain.stream("over/a")
    first = next(stream)
    domain.put("over/a", b"new")
    try:
        # All of it, if that was under way already.
        assert b"".join([first, *stream]) == LARGE * 4
    except areo.VersionConflict as conflict:
        assert conflict.key == "over/a" and conflict.expected == stream.version
