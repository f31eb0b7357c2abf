"""The interface of `areo` for asyncio: its methods are coroutines. There is no `Domain.open`, because files are for threads; `areo.trace` serves both.

```
from areo import aio

async def program() -> None:
    async with await aio.connect() as client:
        domain = await client.domain("default")
        await domain.put("greeting", b"hello")
        async for entry in domain.list():
            print(entry.key)
```

The event loop has a descriptor by which the client's thread wakes it; no other thread runs code of Python. A task that is cancelled gives its operation up:
a write may then have been applied or not.
"""

import asyncio
import itertools
import os
from collections.abc import AsyncIterable, AsyncIterator, Callable, Mapping
from typing import Self, TypeVar
from weakref import WeakKeyDictionary, ref

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
    Version,
    as_bytes,
    options,
    pieces,
)
from areo._sync import PAGE_ENTRIES, _next

__all__ = ["Client", "Domain", "Stream", "connect"]

T = TypeVar("T")


class _LoopOperations:
    """The operations that tasks of one event loop wait for."""

    def __init__(self) -> None:
        self.wakes = _areo.Wakes()
        self.tokens = itertools.count()
        self.futures: dict[int, asyncio.Future[None]] = {}

    def wake(self) -> None:
        for token in self.wakes.take():
            future = self.futures.get(token)
            # Not one that was woken before, or whose task was cancelled.
            if future is not None and not future.done():
                future.set_result(None)


# The reader of a loop holds the operations. They hold futures, and these the loop: a strong reference here would keep a closed loop for ever.
_loops: WeakKeyDictionary[asyncio.AbstractEventLoop, ref[_LoopOperations]] = WeakKeyDictionary()


def _operations_of(loop: asyncio.AbstractEventLoop) -> _LoopOperations:
    known = _loops.get(loop)
    operations = known() if known is not None else None
    if operations is None:
        operations = _LoopOperations()
        loop.add_reader(operations.wakes.fileno(), operations.wake)
        _loops[loop] = ref(operations)
    return operations


async def _run(operation: "_areo.Operation[T]") -> T:
    """Waits for the end of the operation, which is given up if the task is cancelled."""
    loop = asyncio.get_running_loop()
    operations = _operations_of(loop)
    token = next(operations.tokens)
    try:
        # Wakes come between two turns of the loop: none is missed before there is a future for it.
        while (ended := operation.poll(operations.wakes, token)) is None:
            future = operations.futures[token] = loop.create_future()
            await future
        return ended[0]
    finally:
        operations.futures.pop(token, None)
        operation.cancel()


async def connect(
    cluster: str | os.PathLike[str] | None = None, *, key: str | None = None, timeout: float = TIMEOUT
) -> "Client":
    """Connects to a cluster, see `areo.connect`."""
    return Client(await _run(connecting(cluster, key, timeout)))


class Client:
    """A connection to a cluster. Any event loop may use it."""

    def __init__(self, native: _areo.Client) -> None:
        self._native = native

    def __repr__(self) -> str:
        return f"<areo.aio.Client of cluster {self.cluster}>"

    @property
    def cluster(self) -> str:
        """The id of the cluster."""
        return self._native.cluster()

    async def domain(self, name: str = "default") -> "Domain":
        """The domain of this name. Look a domain up once, not per operation."""
        return Domain(await _run(self._native.domain(name)))

    async def domains(self) -> list[str]:
        """The names of all domains."""
        return await _run(self._native.domains())

    def metrics(self) -> str:
        """The metrics of its operations, as text for Prometheus (docs/metrics.md)."""
        return self._native.metrics()

    async def close(self) -> None:
        """Sends off what waits, see `areo.Client.close`."""
        await _run(self._native.close())

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


class Domain:
    """A named set of objects. Methods are those of `areo.Domain`, where they are explained."""

    def __init__(self, native: _areo.Domain) -> None:
        self._native = native

    def __repr__(self) -> str:
        return f"<areo.aio.Domain {self.name!r}>"

    @property
    def name(self) -> str:
        """Its name."""
        return self._native.name()

    @property
    def has_one_winner(self) -> bool:
        """True in a conditional domain."""
        return self._native.has_one_winner()

    def stats(self) -> Stats:
        """The cost of the operations through this handle that have ended."""
        return self._native.stats()

    async def put(
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
        """Writes the object, and returns its new version."""
        kept = options(content_type, metadata, etag)
        return await _run(self._native.put(key, as_bytes(value), kept, (if_version, if_absent)))

    async def compare_and_put(
        self,
        key: str,
        value: BytesLike,
        version: str | None,
        *,
        content_type: str | None = None,
        metadata: Mapping[str, str] | None = None,
        etag: str | None = None,
    ) -> Version:
        """Writes the object if `version` is its newest; one winner."""
        kept = options(content_type, metadata, etag)
        return await _run(self._native.compare_and_put(key, as_bytes(value), version, kept))

    async def update(self, key: str, change: Callable[[Object | None], BytesLike | None]) -> Version | None:
        """Changes the object by what is there, see `areo.Domain.update`. `change` is a plain function, which does not wait."""
        return await _run(self._native.update(key, lambda found: _next(change, found)))

    async def get(self, key: str) -> Object:
        """Reads the object, whole."""
        return await _run(self._native.get(key))

    async def stat(self, key: str) -> Info:
        """Reads everything of the object but its value."""
        return await _run(self._native.stat(key))

    async def delete(self, key: str, *, if_version: str | None = None) -> Version:
        """Deletes the object, and returns the version of its tombstone."""
        return await _run(self._native.delete(key, if_version))

    async def list(self, prefix: str = "", *, after: str = "") -> AsyncIterator[Entry]:
        """The objects whose keys begin with `prefix`, page after page."""
        next_after: str | None = after
        while next_after is not None:
            page = await self.list_page(prefix, after=next_after)
            for entry in page.entries:
                yield entry
            next_after = page.next

    async def list_page(
        self, prefix: str = "", *, after: str = "", delimiter: str = "", limit: int = PAGE_ENTRIES
    ) -> Page:
        """One page of a listing."""
        return await _run(self._native.list(prefix, after, delimiter, limit))

    async def stream(self, key: str, start: int = 0, end: int | None = None) -> "Stream":
        """Reads the bytes from `start` to before `end`, in pieces: `async for piece in await domain.stream(key)`."""
        return Stream(await _run(self._native.read(key, start, end)))

    async def put_stream(
        self,
        key: str,
        source: Source | AsyncIterable[BytesLike],
        *,
        if_version: str | None = None,
        if_absent: bool = False,
        content_type: str | None = None,
        metadata: Mapping[str, str] | None = None,
        etag: str | None = None,
    ) -> Version:
        """Writes the object from a binary file or from pieces, which may be awaited. A file is read on the event loop's thread."""
        kept = options(content_type, metadata, etag)
        writer = self._native.write(key, kept, (if_version, if_absent))
        try:
            if isinstance(source, AsyncIterable):
                async for piece in source:
                    await _run(writer.push(as_bytes(piece)))
            else:
                for piece in pieces(source):
                    await _run(writer.push(as_bytes(piece)))
            return await _run(writer.finish())
        except (Exception, asyncio.CancelledError):
            # Has nothing to remove if an operation of the writer failed or was given up.
            await _run(writer.abort())
            raise


class Stream(AsyncIterator[bytes]):
    """A value that comes in pieces, each verified."""

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

    async def __anext__(self) -> bytes:
        piece = await _run(self._native.next())
        if piece is None:
            raise StopAsyncIteration
        return piece
