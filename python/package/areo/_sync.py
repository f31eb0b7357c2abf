"""The interface for threads: each operation waits for its end. Other threads run meanwhile, and Ctrl-C ends the wait."""

import io
import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal, Self, overload

from areo import _areo
from areo._connect import TIMEOUT, connecting
from areo._model import (
    BytesLike,
    Entry,
    Info,
    Metadata,
    Object,
    Page,
    Source,
    Stats,
    Trace,
    Version,
    as_bytes,
    options,
    pieces,
)

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer, WriteableBuffer

PAGE_ENTRIES = 1000


def connect(
    cluster: str | os.PathLike[str] | None = None, *, key: str | None = None, timeout: float = TIMEOUT
) -> "Client":
    """Connects to a cluster: a cluster file, or addresses of servers, `host:port,host:port`. By default it is the cluster that `areo` would use.

    `timeout` is the longest time that connecting and each operation may take, in seconds; at most a year. A stream may take any time: it ends when it makes
    no progress.
    """
    return Client(connecting(cluster, key, timeout).wait())


class Client:
    """A connection to a cluster. Threads share one; it owns a thread that does the work."""

    def __init__(self, native: _areo.Client) -> None:
        self._native = native

    def __repr__(self) -> str:
        return f"<areo.Client of cluster {self.cluster}>"

    @property
    def cluster(self) -> str:
        """The id of the cluster."""
        return self._native.cluster()

    def domain(self, name: str = "default") -> "Domain":
        """The domain of this name. Look a domain up once, not per operation."""
        return Domain(self._native.domain(name).wait())

    def domains(self) -> list[str]:
        """The names of all domains."""
        return self._native.domains().wait()

    def metrics(self) -> str:
        """The metrics of its operations, as text for Prometheus (docs/metrics.md)."""
        return self._native.metrics()

    def close(self) -> None:
        """Sends off what waits, which saves the next reader a round; a quarter of a second at most. The connections end with the last domain of it."""
        self._native.close().wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Domain:
    """A named set of objects. Threads share one."""

    def __init__(self, native: _areo.Domain) -> None:
        self._native = native

    def __repr__(self) -> str:
        return f"<areo.Domain {self.name!r}>"

    @property
    def name(self) -> str:
        """Its name."""
        return self._native.name()

    @property
    def has_one_winner(self) -> bool:
        """True in a conditional domain: of concurrent writes on one version one succeeds at most."""
        return self._native.has_one_winner()

    def stats(self) -> Stats:
        """The cost of the operations through this handle that have ended."""
        return self._native.stats()

    def put(
        self,
        key: str,
        value: BytesLike,
        *,
        if_version: str | None = None,
        if_absent: bool = False,
        content_type: str | None = None,
        metadata: Mapping[str, str] | None = None,
        etag: str | None = None,
    ) -> Version:
        """Writes the object, and returns its new version, which a quorum then has.

        With `if_version` or `if_absent` it writes only on that version, or only a new object, else raises `VersionConflict`. Outside of conditional
        domains this is weak: of two concurrent writers on one version both may succeed, and one prevails. `compare_and_put` refuses there. With a
        condition a value has at most 64 MiB; in conditional domains `put_stream` takes longer ones.
        """
        kept = options(content_type, metadata, etag)
        return self._native.put(key, as_bytes(value), kept, (if_version, if_absent)).wait()

    def compare_and_put(
        self,
        key: str,
        value: BytesLike,
        version: str | None,
        *,
        content_type: str | None = None,
        metadata: Mapping[str, str] | None = None,
        etag: str | None = None,
    ) -> Version:
        """Writes the object if `version` is its newest; with `None`, if there is none. One winner: for conditional domains alone."""
        kept = options(content_type, metadata, etag)
        return self._native.compare_and_put(key, as_bytes(value), version, kept).wait()

    def update(self, key: str, change: Callable[[Object | None], BytesLike | None]) -> Version | None:
        """Changes the object by what is there, in a conditional domain: `change` makes the next value of the object (`None`: there is none); if it returns
        `None`, the object is left as it is. It is called again if another writer was faster, up to 64 times, then `VersionConflict` is raised. Returns the
        resulting version; one that was written so has no content type and no metadata."""
        return self._native.update(key, lambda found: _next(change, found)).wait()

    def get(self, key: str) -> Object:
        """Reads the object, whole. `stream` and `open` read what does not fit into memory."""
        return self._native.get(key).wait()

    def stat(self, key: str) -> Info:
        """Reads everything of the object but its value."""
        return self._native.stat(key).wait()

    def delete(self, key: str, *, if_version: str | None = None) -> Version:
        """Deletes the object, and returns the version of its tombstone. `if_version` is as strong as with `put`."""
        return self._native.delete(key, if_version).wait()

    def list(self, prefix: str = "", *, after: str = "") -> Iterator[Entry]:
        """The objects whose keys begin with `prefix` and come after `after`, in order of the bytes of their keys. Asks for page after page as they are
        taken; each page has all writes that were complete before it was asked for."""
        next_after: str | None = after
        while next_after is not None:
            page = self.list_page(prefix, after=next_after)
            yield from page.entries
            next_after = page.next

    def list_page(
        self, prefix: str = "", *, after: str = "", delimiter: str = "", limit: int = PAGE_ENTRIES
    ) -> Page:
        """One page. With a delimiter, keys that have it behind the prefix are listed as one common prefix. A page may be short, or empty, although there
        is a next one."""
        return self._native.list(prefix, after, delimiter, limit).wait()

    def stream(self, key: str, start: int = 0, end: int | None = None) -> "Stream":
        """Reads the bytes from `start` to before `end`, in pieces."""
        return Stream(self._native.read(key, start, end).wait())

    def put_stream(
        self,
        key: str,
        source: Source,
        *,
        if_version: str | None = None,
        if_absent: bool = False,
        content_type: str | None = None,
        metadata: Mapping[str, str] | None = None,
        etag: str | None = None,
    ) -> Version:
        """Writes the object from a binary file or from pieces, of any length. No reader sees a part of it; nothing is written if the source raises.
        Conditions are for conditional domains alone."""
        kept = options(content_type, metadata, etag)
        writer = ObjectWriter(self._native.write(key, kept, (if_version, if_absent)))
        with writer:
            for piece in pieces(source):
                writer.write(piece)
        return writer.version

    @overload
    def open(self, key: str, mode: Literal["rb"] = "rb") -> "ObjectReader": ...
    @overload
    def open(self, key: str, mode: Literal["wb"]) -> "ObjectWriter": ...
    def open(self, key: str, mode: Literal["rb", "wb"] = "rb") -> "ObjectReader | ObjectWriter":
        """The object as a binary file, to be read once from its beginning, or to be written anew. What is written takes effect when the file is closed;
        if the `with` block of it raises, nothing is written."""
        if mode == "rb":
            return ObjectReader(self.stream(key))
        if mode == "wb":
            return ObjectWriter(self._native.write(key, options(None, None, None), (None, False)))
        raise ValueError(f"an object is opened as 'rb' or 'wb', not as {mode!r}")


def _next(change: Callable[[Object | None], BytesLike | None], found: Object | None) -> bytes | None:
    value = change(found)
    return None if value is None else as_bytes(value)


class Stream(Iterator[bytes]):
    """A value that comes in pieces, each verified. Raises `VersionConflict` if it is written over, and what is left of it is gone."""

    def __init__(self, native: _areo.Reader) -> None:
        self._native = native

    @property
    def version(self) -> Version:
        """The version that is read."""
        return self._native.version()

    @property
    def length(self) -> int:
        """Bytes of the whole value, of which perhaps not all come."""
        return self._native.length()

    @property
    def metadata(self) -> Metadata:
        """The metadata of the version."""
        return self._native.metadata()

    def close(self) -> None:
        """Gives up the rest of the value."""
        self._native.close()

    def __next__(self) -> bytes:
        piece = self._native.next().wait()
        if piece is None:
            raise StopIteration
        return piece


class _Pieces(io.RawIOBase):
    """A stream as a file, without a buffer."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._piece = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "WriteableBuffer") -> int:
        room = memoryview(buffer).cast("B")
        if not self._piece:
            self._piece = memoryview(next(self._stream, b""))
        count = min(len(room), len(self._piece))
        room[:count] = self._piece[:count]
        self._piece = self._piece[count:]
        return count

    def close(self) -> None:
        self._stream.close()
        super().close()


class ObjectReader(io.BufferedReader):
    """An object as a file that is read once, from its beginning to its end. `fsspec` has files with `seek`."""

    def __init__(self, stream: Stream) -> None:
        super().__init__(_Pieces(stream), 1 << 16)
        self.stream = stream


class ObjectWriter(io.RawIOBase):
    """An object as a file that is written."""

    def __init__(self, native: _areo.Writer) -> None:
        self._native = native
        self._version: Version | None = None

    @property
    def version(self) -> Version:
        """The version that was written."""
        if self._version is None:
            raise ValueError("an object has its version once its file is closed")
        return self._version

    def writable(self) -> bool:
        return True

    def write(self, piece: "ReadableBuffer") -> int:
        if self.closed:
            raise ValueError("write to a closed file")
        taken = piece if isinstance(piece, bytes) else bytes(memoryview(piece))
        self._native.push(taken).wait()
        return len(taken)

    def close(self) -> None:
        """Ends the value: from now on readers see it."""
        if not self.closed:
            super().close()
            self._version = self._native.finish().wait()

    def abort(self) -> None:
        """Closes the file without a write of the object."""
        if not self.closed:
            super().close()
            self._native.abort().wait()

    def __exit__(self, raised: type[BaseException] | None, *_: object) -> None:
        if raised is None:
            self.close()
        else:
            self.abort()

    def __del__(self) -> None:
        # Not `close`, as other files do: a file that was left is not whole.
        pass


@contextmanager
def trace() -> Iterator[list[Trace]]:
    """Records the operations of this process while the block runs. The list has their traces when the block has ended.

    ```
    with areo.trace() as traces:
        domain.get("greeting")
    print(traces[0])
    ```
    """
    traces: list[Trace] = []
    before = set(_areo.watch())
    try:
        yield traces
    finally:
        for id, name, duration_ns, spans, text in _areo.unwatch():
            if id not in before:
                traces.append(Trace(id, name, duration_ns, json.loads(spans), text))
