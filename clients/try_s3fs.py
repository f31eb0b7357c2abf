"""s3fs: files of fsspec."""

import os

import s3fs

from report import ENDPOINT, Client, equal

client = Client("s3fs")
fs = s3fs.S3FileSystem(endpoint_url=ENDPOINT, use_listings_cache=False)
bucket = client.bucket


@client.step("write, list, read")
def files():
    fs.mkdir(bucket)
    for number in range(5):
        with fs.open(f"{bucket}/folder/{number} ä", "wb") as file:
            file.write(b"%d" % number)
    equal(sorted(fs.ls(f"{bucket}/folder")), [f"{bucket}/folder/{number} ä" for number in range(5)])
    equal(fs.cat(f"{bucket}/folder/3 ä"), b"3")
    equal(fs.info(f"{bucket}/folder/3 ä")["size"], 1)
    assert fs.exists(f"{bucket}/folder") and not fs.exists(f"{bucket}/other")


@client.step("12 MB by a multipart upload, and parts of it")
def large():
    value = os.urandom(12_000_000)
    with fs.open(f"{bucket}/large", "wb", block_size=5 << 20) as file:
        file.write(value)
    with fs.open(f"{bucket}/large", "rb", block_size=1 << 20) as file:
        file.seek(5_242_870)
        equal(file.read(20), value[5_242_870:5_242_890])
    assert fs.cat(f"{bucket}/large") == value, "other bytes came back"


@client.step("a file is created once")
def exclusive():
    fs.pipe_file(f"{bucket}/once", b"1", mode="create")
    try:
        fs.pipe_file(f"{bucket}/once", b"2", mode="create")
    except OSError as error:
        equal(error.__cause__.response["Error"]["Code"], "PreconditionFailed")
    else:
        raise AssertionError("a second creation was not refused")
    equal(fs.cat(f"{bucket}/once"), b"1")


@client.step("copy, move, remove all")
def remove():
    fs.copy(f"{bucket}/large", f"{bucket}/copy")
    fs.mv(f"{bucket}/copy", f"{bucket}/moved")
    equal(fs.info(f"{bucket}/moved")["size"], 12_000_000)
    fs.rm(bucket, recursive=True)
    assert not fs.exists(bucket)


client.run()
