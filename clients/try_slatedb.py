"""SlateDB: a database whose writers fence each other."""

import asyncio
import os

from slatedb.uniffi import DbBuilder, Error, ObjectStore, WriteBatch

from report import Client, equal, make_bucket

client = Client("slatedb")
# It reads the other variables of AWS as well.
os.environ["AWS_ALLOW_HTTP"] = "true"


def opened():
    return DbBuilder("database", ObjectStore.resolve(f"s3://{client.bucket}")).build()


async def write_and_read():
    db = await opened()
    for start in range(0, 300, 20):
        batch = WriteBatch()
        for number in range(start, start + 20):
            batch.put(f"key {number:03}".encode(), str(number).encode() * 100)
        await db.write(batch)
    await db.shutdown()
    db = await opened()
    for number in range(300):
        equal(await db.get(f"key {number:03}".encode()), str(number).encode() * 100)
    await db.shutdown()


async def durable_put(db, value):
    handle = await db.put(b"writer", value)
    await handle.await_durable()


async def fence():
    first = await opened()
    await durable_put(first, b"first")
    second = await opened()
    await durable_put(second, b"second")
    try:
        await durable_put(first, b"late")
    except Error as error:
        assert "fence" in repr(error).lower(), repr(error)
    else:
        raise AssertionError("the first writer was not fenced")
    equal(await second.get(b"writer"), b"second")
    await second.shutdown()


@client.step("write, close, open, read")
def written():
    make_bucket(client.bucket)
    asyncio.run(write_and_read())


@client.step("a second writer fences the first")
def fenced():
    asyncio.run(fence())


client.run()
