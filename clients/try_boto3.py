"""boto3: conditions, checksums, presigned URLs, multipart uploads, pages."""

import io
import os
import threading
import urllib.request

import boto3
from boto3.s3.transfer import TransferConfig
from botocore.config import Config
from botocore.exceptions import ClientError

from report import Client, equal

WRITERS = 16
KEYS = 20

client = Client("boto3")
bucket = client.bucket
# Without the version of signatures, boto3 signs URLs by version 2, and by version 4 everything else.
s3 = boto3.client("s3", config=Config(max_pool_connections=WRITERS, signature_version="s3v4"))


def refused_with(call):
    """The status and the code by which a call is refused."""
    try:
        call()
    except ClientError as error:
        return error.response["ResponseMetadata"]["HTTPStatusCode"], error.response["Error"]["Code"]
    return "not refused"


def winners(key, **condition):
    """Bodies that were acknowledged, of one conditional put by each writer."""
    won, others = [], []
    barrier = threading.Barrier(WRITERS)

    def write(number):
        body = os.urandom(16) + str(number).encode()
        barrier.wait()
        try:
            s3.put_object(Bucket=bucket, Key=key, Body=body, **condition)
            won.append(body)
        except ClientError as error:
            others.append(error.response["Error"]["Code"])

    threads = [threading.Thread(target=write, args=[number]) for number in range(WRITERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    unexpected = set(others) - {"PreconditionFailed", "ConditionalRequestConflict"}
    equal(unexpected, set())
    equal(len(won) + len(others), WRITERS)
    return won


@client.step("create a bucket")
def create_bucket():
    s3.create_bucket(Bucket=bucket)
    s3.head_bucket(Bucket=bucket)
    assert bucket in [b["Name"] for b in s3.list_buckets()["Buckets"]]


@client.step(f"{WRITERS} writers create {KEYS} keys if absent, then compare and set: one winner each")
def one_winner():
    for number in range(KEYS):
        key = f"contended/{number}"
        created = winners(key, IfNoneMatch="*")
        equal(len(created), 1)
        current = s3.get_object(Bucket=bucket, Key=key)
        equal(current["Body"].read(), created[0])
        replaced = winners(key, IfMatch=current["ETag"])
        equal(len(replaced), 1)
        equal(s3.get_object(Bucket=bucket, Key=key)["Body"].read(), replaced[0])


@client.step("a deletion of a stale ETag is refused with 412, one of the current ETag is done")
def conditional_delete():
    stale = s3.put_object(Bucket=bucket, Key="stale", Body=b"1")["ETag"]
    current = s3.put_object(Bucket=bucket, Key="stale", Body=b"2")["ETag"]
    refusal = refused_with(lambda: s3.delete_object(Bucket=bucket, Key="stale", IfMatch=stale))
    equal(refusal, (412, "PreconditionFailed"))
    s3.delete_object(Bucket=bucket, Key="stale", IfMatch=current)
    refusal = refused_with(lambda: s3.get_object(Bucket=bucket, Key="stale"))
    equal(refusal, (404, "NoSuchKey"))


@client.step("the default checksum is stored and given back, a wrong one is refused")
def default_checksum():
    put = s3.put_object(Bucket=bucket, Key="summed", Body=b"123456789")
    equal(put["ChecksumCRC32"], "y/Q5Jg==")
    head = s3.head_object(Bucket=bucket, Key="summed", ChecksumMode="ENABLED")
    equal(head["ChecksumCRC32"], "y/Q5Jg==")
    wrong = {"Bucket": bucket, "Key": "summed", "Body": b"12345678", "ChecksumCRC32": "y/Q5Jg=="}
    equal(refused_with(lambda: s3.put_object(**wrong))[0], 400)
    equal(s3.get_object(Bucket=bucket, Key="summed")["Body"].read(), b"123456789")


@client.step("metadata, headers and tags of an object")
def metadata():
    s3.put_object(
        Bucket=bucket,
        Key="described",
        Body=b"x",
        ContentType="text/plain",
        CacheControl="no-cache",
        Metadata={"colour": "blue"},
        Tagging="team=red",
    )
    head = s3.head_object(Bucket=bucket, Key="described")
    equal((head["ContentType"], head["CacheControl"]), ("text/plain", "no-cache"))
    equal(head["Metadata"], {"colour": "blue"})
    tags = s3.get_object_tagging(Bucket=bucket, Key="described")["TagSet"]
    equal(tags, [{"Key": "team", "Value": "red"}])


@client.step("presigned URLs for a put and a get")
def presigned():
    place = {"Bucket": bucket, "Key": "pre signed/ä+1"}
    url = s3.generate_presigned_url("put_object", Params=place)
    put = urllib.request.Request(url, data=b"by url", method="PUT")
    put.add_header("Content-Type", "text/plain")
    equal(urllib.request.urlopen(put).status, 200)
    url = s3.generate_presigned_url("get_object", Params=place)
    equal(urllib.request.urlopen(url).read(), b"by url")
    equal(s3.get_object(**place)["Body"].read(), b"by url")


@client.step("a copy with other metadata")
def copy():
    s3.copy_object(
        Bucket=bucket,
        Key="copied",
        CopySource={"Bucket": bucket, "Key": "summed"},
        MetadataDirective="REPLACE",
        Metadata={"copy": "yes"},
    )
    copied = s3.get_object(Bucket=bucket, Key="copied")
    equal((copied["Body"].read(), copied["Metadata"]), (b"123456789", {"copy": "yes"}))


@client.step("20 MB by a multipart upload, and back by ranges")
def multipart():
    value = os.urandom(20_000_000)
    config = TransferConfig(multipart_chunksize=8 << 20)
    s3.upload_fileobj(io.BytesIO(value), bucket, "large", Config=config)
    head = s3.head_object(Bucket=bucket, Key="large")
    equal(head["ContentLength"], len(value))
    assert head["ETag"].endswith('-3"'), head["ETag"]
    back = io.BytesIO()
    s3.download_fileobj(bucket, "large", back, Config=config)
    assert back.getvalue() == value, "other bytes came back"
    part = s3.get_object(Bucket=bucket, Key="large", Range="bytes=8388600-8388619")
    equal((part["Body"].read(), part["ContentRange"]), (value[8388600:8388620], "bytes 8388600-8388619/20000000"))


def upload_of(key, body):
    """A multipart upload of one part that is not completed."""
    upload = s3.create_multipart_upload(Bucket=bucket, Key=key)["UploadId"]
    place = {"Bucket": bucket, "Key": key, "UploadId": upload}
    part = s3.upload_part(**place, PartNumber=1, Body=body)
    return place, {"Parts": [{"PartNumber": 1, "ETag": part["ETag"], "ChecksumCRC32": part["ChecksumCRC32"]}]}


@client.step("of two uploads that create an object if absent one is completed")
def conditional_completion():
    first, first_parts = upload_of("completed", b"first")
    second, second_parts = upload_of("completed", b"second")
    uploads = s3.list_multipart_uploads(Bucket=bucket, Prefix="completed")["Uploads"]
    equal(sorted(u["UploadId"] for u in uploads), sorted([first["UploadId"], second["UploadId"]]))
    equal(s3.list_parts(**second)["Parts"][0]["Size"], 6)
    s3.complete_multipart_upload(**second, MultipartUpload=second_parts, IfNoneMatch="*")
    late = lambda: s3.complete_multipart_upload(**first, MultipartUpload=first_parts, IfNoneMatch="*")
    equal(refused_with(late), (412, "PreconditionFailed"))
    equal(s3.get_object(Bucket=bucket, Key="completed")["Body"].read(), b"second")
    s3.abort_multipart_upload(**first)
    equal(s3.list_multipart_uploads(Bucket=bucket, Prefix="completed").get("Uploads", []), [])


@client.step("pages of a list, with and without a delimiter")
def pages():
    keys = sorted(f"list/{folder}/{number}" for folder in "a b+%".split() + ["ä"] for number in range(9))
    for key in keys:
        s3.put_object(Bucket=bucket, Key=key, Body=b"")
    for operation in ["list_objects", "list_objects_v2"]:
        paginator = s3.get_paginator(operation)
        listed = paginator.paginate(Bucket=bucket, Prefix="list/", PaginationConfig={"PageSize": 7})
        listed = [item["Key"] for page in listed for item in page["Contents"]]
        equal(listed, sorted(keys, key=str.encode))
        folders = paginator.paginate(
            Bucket=bucket, Prefix="list/", Delimiter="/", PaginationConfig={"PageSize": 2}
        )
        folders = [item["Prefix"] for page in folders for item in page["CommonPrefixes"]]
        equal(folders, ["list/a/", "list/b+%/", "list/ä/"])


@client.step("delete everything in one request a page, and the bucket")
def delete():
    for page in s3.get_paginator("list_objects_v2").paginate(Bucket=bucket):
        objects = [{"Key": item["Key"]} for item in page["Contents"]]
        answer = s3.delete_objects(Bucket=bucket, Delete={"Objects": objects})
        equal(answer.get("Errors", []), [])
    s3.delete_bucket(Bucket=bucket)
    equal(refused_with(lambda: s3.head_bucket(Bucket=bucket))[0], 404)


client.run()
