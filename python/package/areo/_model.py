"""Values that operations take and return."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import IO, Any, NamedTuple, NewType, TypeAlias

Version = NewType("Version", str)
"""A version of an object, as `areo stat` prints it. Versions are compared for equality only: they do not sort as texts do."""

BytesLike: TypeAlias = bytes | bytearray | memoryview
"""What is taken as a value. `bytes` are not copied."""

Source: TypeAlias = IO[bytes] | Iterable[BytesLike]
"""What a stream is written from: a binary file, or pieces."""

SOURCE_BYTES = 1 << 20
"""Bytes that are read from a file at once."""


def _time(written_at_ms: int | None) -> datetime | None:
    return None if written_at_ms is None else datetime.fromtimestamp(written_at_ms / 1000, UTC)


class Metadata(NamedTuple):
    """What is kept with a version beside its bytes."""

    content_type: str | None
    user: dict[str, str]
    etag: str | None
    written_at_ms: int | None

    @property
    def written_at(self) -> datetime | None:
        """The time of the write by the writer's clock; informational."""
        return _time(self.written_at_ms)


class Object(NamedTuple):
    """One version of an object, whole and verified against its checksum."""

    value: bytes
    version: Version
    metadata: Metadata


class Info(NamedTuple):
    """Everything of an object but its value. `length` is that of the value, in bytes."""

    version: Version
    length: int
    metadata: Metadata


class Entry(NamedTuple):
    """An object of a listing. One that is `damaged` cannot be read as things are, and its length is not known."""

    key: str
    version: Version
    length: int
    etag: str | None
    written_at_ms: int | None
    damaged: bool

    @property
    def written_at(self) -> datetime | None:
        """The time of the write by the writer's clock; informational."""
        return _time(self.written_at_ms)


class Page(NamedTuple):
    """One page of a listing. `prefixes` are the common beginnings of keys up to the delimiter. The next page is after `next`; `None`: this was the last."""

    entries: list[Entry]
    prefixes: list[str]
    next: str | None


class Stats(NamedTuple):
    """The cost of operations together: rounds of messages, configurations visited, requests, and bytes."""

    rounds: int
    configurations: int
    requests: int
    sent_bytes: int
    received_bytes: int


class Trace(NamedTuple):
    """An operation, step by step. As text it is a drawing. `spans` have the keys of `areo trace --json`."""

    id: str
    name: str
    duration_ns: int
    spans: list[dict[str, Any]]
    text: str

    def __str__(self) -> str:
        return self.text


Options: TypeAlias = tuple[str | None, list[tuple[str, str]], str | None]
Condition: TypeAlias = tuple[str | None, bool]


def options(content_type: str | None, metadata: Mapping[str, str] | None, etag: str | None) -> Options:
    return (content_type, list((metadata or {}).items()), etag)


def as_bytes(value: BytesLike) -> bytes:
    return value if isinstance(value, bytes) else bytes(memoryview(value))


def pieces(source: Source) -> Iterator[BytesLike]:
    """The pieces of a source, read as they are taken."""
    if isinstance(source, str | bytes | bytearray | memoryview):
        sentence = f"a source is a binary file or an iterable of pieces, and not {type(source).__name__}: `put` writes a value that is in memory"
        raise TypeError(sentence)
    read = getattr(source, "read", None)
    if read is None:
        return iter(source)
    return iter(lambda: read(SOURCE_BYTES), b"")
