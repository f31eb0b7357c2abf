"""The interface for asyncio."""

import asyncio
import gc
import io
import os
from collections.abc import AsyncIterator

import pytest

import areo
from areo import aio

LARGE = bytes(range(256)) * 40_000


def count(found: areo.Object | None) -> bytes:
    return str(int(found.value if found else b"0") + 1).encode()


def test_objects(cluster) -> None:
    async def program() -> None:
        async with await aio.connect(cluster.file) as client:
            assert "default" in await client.domains() and client.cluster in repr(client) and "areo_" in client.metrics()
            domain = await client.domain()
            assert domain.name == "default" and not domain.has_one_winner
            version = await domain.put("aio/a", b"hello", metadata={"a": "b"})
            assert await domain.get("aio/a") == areo.Object(b"hello", version, (await domain.stat("aio/a")).metadata)
            with pytest.raises(areo.VersionConflict) as raised:
                await domain.put("aio/a", b"2", if_absent=True)
            assert raised.value.latest is not None and raised.value.latest.value == b"hello"
            assert [entry.key async for entry in domain.list("aio/")] == ["aio/a"]
            assert (await domain.list_page("aio", delimiter="/")).prefixes == ["aio/"]
            await domain.delete("aio/a", if_version=version)
            with pytest.raises(areo.NotFound):
                await domain.get("aio/a")
            assert domain.stats().rounds > 0

    asyncio.run(program())


def test_many_tasks_at_once(cluster) -> None:
    async def program() -> None:
        client = await aio.connect(cluster.file)
        domain, counters = await client.domain(), await client.domain("counters")

        async def one(number: int) -> None:
            await domain.put(f"many/{number}", str(number).encode())
            assert (await domain.get(f"many/{number}")).value == str(number).encode()

        async with asyncio.TaskGroup() as tasks:
            for number in range(200):
                tasks.create_task(one(number))
        async with asyncio.TaskGroup() as tasks:
            for _ in range(8):
                tasks.create_task(counters.update("aio/visits", count))
        assert (await counters.get("aio/visits")).value == b"8"
        version = await counters.compare_and_put("aio/cas", b"1", None)
        with pytest.raises(areo.VersionConflict):
            await counters.compare_and_put("aio/cas", b"1", None)
        await counters.compare_and_put("aio/cas", b"2", version)

    asyncio.run(program())


def test_streams(cluster) -> None:
    async def program() -> None:
        domain = await (await aio.connect(cluster.file)).domain()

        async def source() -> AsyncIterator[bytes]:
            for i in range(0, len(LARGE), 1_000_000):
                await asyncio.sleep(0)
                yield LARGE[i : i + 1_000_000]

        for each in (source(), io.BytesIO(LARGE), [LARGE]):
            version = await domain.put_stream("aio/stream", each)
            stream = await domain.stream("aio/stream")
            assert (stream.version, stream.length, stream.metadata.user) == (version, len(LARGE), {})
            assert b"".join([piece async for piece in stream]) == LARGE
        part = await domain.stream("aio/stream", 7, 9)
        assert [piece async for piece in part] == [LARGE[7:9]]

        async def fails() -> AsyncIterator[bytes]:
            yield LARGE
            raise ZeroDivisionError("mine")

        with pytest.raises(ZeroDivisionError):
            await domain.put_stream("aio/fails", fails())
        with pytest.raises(areo.NotFound):
            await domain.stat("aio/fails")

    asyncio.run(program())


def test_a_cancelled_task_gives_up_and_the_rest_goes_on(cluster, silent: str) -> None:
    async def program() -> None:
        domain = await (await aio.connect(cluster.file)).domain()
        waits = asyncio.create_task(aio.connect(silent, timeout=100))
        await domain.put("cancel/a", b"1")
        waits.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waits
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await aio.connect(silent, timeout=100)
        # At every moment of a put: before it began, while it is under way, when it has ended.
        for turns in range(40):
            put = asyncio.create_task(domain.put("cancel/a", LARGE if turns % 2 else str(turns).encode()))
            for _ in range(turns):
                await asyncio.sleep(0)
            put.cancel()
            await asyncio.gather(put, return_exceptions=True)
        await domain.put("cancel/a", b"last")
        assert (await domain.get("cancel/a")).value == b"last"

    asyncio.run(program())


def test_a_stream_whose_reader_was_cancelled_is_over(cluster) -> None:
    async def program() -> None:
        domain = await (await aio.connect(cluster.file)).domain()
        await domain.put("cancel/stream", LARGE * 3)
        for _ in range(1000):
            stream = await domain.stream("cancel/stream")
            read = asyncio.ensure_future(anext(stream))
            await asyncio.sleep(0)
            read.cancel()
            await asyncio.gather(read, return_exceptions=True)
            if read.cancelled():
                break
        # Not taken for the end of the value.
        with pytest.raises(areo.Invalid) as raised:
            await anext(stream)
        assert raised.value.kind == "given_up"

    asyncio.run(program())


def test_a_stream_is_closed(cluster) -> None:
    async def program() -> None:
        domain = await (await aio.connect(cluster.file)).domain()
        await domain.put("close/stream", LARGE)
        stream = await domain.stream("close/stream")
        await anext(stream)
        stream.close()
        stream.close()
        with pytest.raises(areo.Invalid) as raised:
            await anext(stream)
        assert raised.value.kind == "given_up" and stream.length == len(LARGE)

    asyncio.run(program())


class Aborts:
    """A native domain and its writer, which counts what is aborted."""

    def __init__(self, native) -> None:
        self.native, self.count = native, 0

    def write(self, *arguments):
        self.writer = self.native.write(*arguments)
        return self

    def push(self, piece: bytes):
        return self.writer.push(piece)

    def abort(self):
        self.count += 1
        return self.writer.abort()


def test_a_source_that_is_cancelled_leaves_no_blocks(cluster) -> None:
    async def program() -> None:
        domain = await (await aio.connect(cluster.file)).domain()
        aborts = Aborts(domain._native)
        waits = asyncio.Event()

        async def source() -> AsyncIterator[bytes]:
            yield LARGE
            waits.set()
            await asyncio.Event().wait()

        put = asyncio.create_task(aio.Domain(aborts).put_stream("cancel/source", source()))  # type: ignore[arg-type]
        await waits.wait()
        put.cancel()
        with pytest.raises(asyncio.CancelledError):
            await put
        assert aborts.count == 1
        with pytest.raises(areo.NotFound):
            await domain.stat("cancel/source")
        for wrong in ("text", b"", bytearray(b"x"), memoryview(b"x")):
            with pytest.raises(TypeError, match="a source is"):
                await domain.put_stream("cancel/source", wrong)  # type: ignore[arg-type]

    asyncio.run(program())


def test_one_client_in_several_loops(cluster, silent: str) -> None:
    client = asyncio.run(aio.connect(cluster.file))
    domain = asyncio.run(client.domain())
    loop = asyncio.new_event_loop()
    left = loop.create_task(aio.connect(silent, timeout=100))
    loop.run_until_complete(domain.put("loops/a", b"1"))
    # The loop ends while an operation of it is under way.
    left.cancel()
    loop.close()
    assert asyncio.run(domain.get("loops/a")).value == b"1"
    with pytest.raises(RuntimeError):
        domain.get("loops/a").send(None)


def test_a_loop_that_is_closed_takes_no_wake(cluster, domain: areo.Domain) -> None:
    client = asyncio.run(aio.connect(cluster.file))
    handle = asyncio.run(client.domain())
    loop = asyncio.new_event_loop()

    async def begin() -> None:
        coroutine = handle.put("loops/b", LARGE)
        coroutine.send(None)
        kept.append(coroutine)

    kept: list = []
    loop.run_until_complete(begin())
    loop.close()
    # Its wakes come to nothing.
    for number in range(20):
        domain.put("loops/c", str(number).encode())
    kept.clear()
    assert domain.get("loops/c").value == b"19"


def test_a_loop_that_is_closed_is_not_kept(cluster) -> None:
    client = asyncio.run(aio.connect(cluster.file))
    handle = asyncio.run(client.domain())

    def leave() -> None:
        loop = asyncio.new_event_loop()
        loop.set_exception_handler(lambda *_: None)
        put = loop.create_task(handle.put("loops/left", LARGE))
        loop.run_until_complete(asyncio.sleep(0))
        assert not put.done()
        loop.close()

    def descriptors() -> int:
        gc.collect()
        return len(os.listdir("/proc/self/fd"))

    before = descriptors()
    for _ in range(50):
        leave()
    # Two descriptors per loop would be 100. The client may have made some connections.
    assert descriptors() < before + 50


def test_the_two_interfaces_have_the_same_names() -> None:
    def names(of: type) -> set[str]:
        return {name for name in dir(of) if not name.startswith("_")}

    assert names(aio.Client) == names(areo.Client)
    # A file is for threads.
    assert names(aio.Domain) == names(areo.Domain) - {"open"}
    assert names(aio.Stream) == names(areo.Stream)
