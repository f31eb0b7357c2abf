"""obstore (object_store of Rust): conditions, lists, ranges, multipart uploads."""

import os

import obstore
from obstore.exceptions import AlreadyExistsError, NotFoundError, PreconditionError
from obstore.store import S3Store

from report import ENDPOINT, Client, equal, make_bucket

client = Client("obstore")
store = S3Store(client.bucket, endpoint=ENDPOINT, client_options={"allow_http": True})


def refused_with(kind, call):
    """Raises if a call is not refused with this kind of error."""
    try:
        call()
    except kind:
        return
    raise AssertionError(f"{kind.__name__} is missing")


@client.step("create, and a second creation is refused")
def create():
    make_bucket(client.bucket)
    store.put("one", b"1", mode="create")
    refused_with(AlreadyExistsError, lambda: store.put("one", b"2", mode="create"))
    equal(bytes(store.get("one").bytes()), b"1")


@client.step("update, and a stale update is refused")
def update():
    first = store.head("one")
    store.put("one", b"3", mode={"e_tag": first["e_tag"]})
    refused_with(PreconditionError, lambda: store.put("one", b"4", mode={"e_tag": first["e_tag"]}))
    equal(bytes(store.get("one").bytes()), b"3")


@client.step("list with a prefix, a delimiter and an offset")
def lists():
    for number in range(30):
        store.put(f"list/{number % 3}/{number:02}", b"x")
    keys = [item["path"] for page in store.list("list/", chunk_size=7) for item in page]
    equal(sorted(keys), sorted(f"list/{number % 3}/{number:02}" for number in range(30)))
    folders = store.list_with_delimiter("list/")
    equal(folders["common_prefixes"], ["list/0", "list/1", "list/2"])
    after = [item["path"] for page in store.list("list/", offset="list/2/10") for item in page]
    equal(len(after), 7)


@client.step("12 MB by a multipart upload, and ranges of it")
def multipart():
    value = os.urandom(12_000_000)
    store.put("large", value, use_multipart=True, chunk_size=5 << 20)
    assert bytes(store.get("large").bytes()) == value, "other bytes came back"
    ranges = store.get_ranges("large", starts=[0, 5_242_870, 11_999_990], ends=[10, 5_242_890, 12_000_000])
    equal([bytes(part) for part in ranges], [value[:10], value[5_242_870:5_242_890], value[-10:]])


@client.step("copy, rename, delete of many")
def copy():
    store.copy("one", "two")
    store.rename("two", "three")
    equal(bytes(store.get("three").bytes()), b"3")
    refused_with((NotFoundError, FileNotFoundError), lambda: store.head("two"))
    paths = [item["path"] for page in store.list() for item in page]
    store.delete(paths)
    equal([item for page in store.list() for item in page], [])


client.run()
