// The AWS SDK for JavaScript: conditions, a multipart upload, pages.

import { randomBytes } from "node:crypto";
import {
  CompleteMultipartUploadCommand,
  CreateBucketCommand,
  CreateMultipartUploadCommand,
  DeleteBucketCommand,
  DeleteObjectsCommand,
  GetObjectCommand,
  HeadBucketCommand,
  ListObjectsV2Command,
  PutObjectCommand,
  S3Client,
  UploadPartCommand,
  paginateListObjectsV2,
} from "@aws-sdk/client-s3";

const NAME = "awsjs";
const WRITERS = 16;
const KEYS = 20;
const PART_BYTES = 5 << 20;

const Bucket = `${NAME}-${process.env.CLIENTS_RUN}`;
// The environment has the endpoint, the region and the key.
const client = new S3Client({ forcePathStyle: true });
const send = (Command, fields) => client.send(new Command({ Bucket, ...fields }));

function equal(got, wanted) {
  const [left, right] = [JSON.stringify(got), JSON.stringify(wanted)];
  if (left !== right) {
    throw new Error(`got ${left.slice(0, 200)}, wanted ${right.slice(0, 200)}`);
  }
}

async function content(Key) {
  const object = await send(GetObjectCommand, { Key });
  const body = Buffer.from(await object.Body.transformToByteArray());
  return { body, etag: object.ETag };
}

// The body of the one conditional put, of one of each writer, that was acknowledged.
async function winner(Key, condition) {
  const bodies = Array.from({ length: WRITERS }, (_, number) => `${randomBytes(16).toString("hex")} ${number}`);
  const puts = bodies.map((Body) => send(PutObjectCommand, { Key, Body, ...condition }));
  const ended = await Promise.allSettled(puts);
  for (const { reason } of ended) {
    if (reason && !["PreconditionFailed", "ConditionalRequestConflict"].includes(reason.name)) {
      throw reason;
    }
  }
  const won = bodies.filter((_, number) => ended[number].status === "fulfilled");
  equal(won.length, 1);
  return won[0];
}

async function createBucket() {
  await send(CreateBucketCommand);
  await send(HeadBucketCommand);
}

async function oneWinner() {
  for (let number = 0; number < KEYS; number += 1) {
    const key = `contended/${number}`;
    const created = await winner(key, { IfNoneMatch: "*" });
    const { body, etag } = await content(key);
    equal(body.toString(), created);
    const replaced = await winner(key, { IfMatch: etag });
    equal((await content(key)).body.toString(), replaced);
  }
}

async function multipart() {
  const body = randomBytes(3 * PART_BYTES + 1234);
  const Key = "large";
  const { UploadId } = await send(CreateMultipartUploadCommand, { Key });
  const Parts = [];
  for (let from = 0; from < body.length; from += PART_BYTES) {
    const part = { Key, UploadId, PartNumber: Parts.length + 1, Body: body.subarray(from, from + PART_BYTES) };
    const { ETag, ChecksumCRC32 } = await send(UploadPartCommand, part);
    Parts.push({ PartNumber: part.PartNumber, ETag, ChecksumCRC32 });
  }
  const done = { Key, UploadId, MultipartUpload: { Parts }, IfNoneMatch: "*" };
  await send(CompleteMultipartUploadCommand, done);
  const found = await content(Key);
  equal(found.body.equals(body), true);
}

async function pages() {
  const wanted = ["list/%/+", "list/a b", "list/ä", "list/\u{10ffff}"];
  for (const Key of wanted) {
    await send(PutObjectCommand, { Key, Body: Key });
  }
  const found = [];
  const wish = { Bucket, Prefix: "list/", MaxKeys: 1 };
  for await (const page of paginateListObjectsV2({ client }, wish)) {
    found.push(...(page.Contents ?? []).map((object) => object.Key));
  }
  equal(found, wanted);
  const folders = await send(ListObjectsV2Command, { Delimiter: "/" });
  equal(folders.CommonPrefixes.map((it) => it.Prefix), ["contended/", "list/"]);
  equal(folders.Contents.map((object) => object.Key), ["large"]);
}

async function removeAll() {
  for await (const page of paginateListObjectsV2({ client }, { Bucket })) {
    const Objects = (page.Contents ?? []).map(({ Key }) => ({ Key }));
    const removed = await send(DeleteObjectsCommand, { Delete: { Objects } });
    equal(removed.Errors ?? [], []);
  }
  await send(DeleteBucketCommand);
}

const steps = [
  ["create a bucket", createBucket],
  [`${WRITERS} writers create ${KEYS} keys if absent, then compare and set: one winner each`, oneWinner],
  ["15 MB by a multipart upload that creates the object, and back", multipart],
  ["pages of a list, with and without a delimiter", pages],
  ["delete everything in one request a page, and the bucket", removeAll],
];
for (const [what, run] of steps) {
  try {
    await run();
    console.log(`ok ${NAME} ${what}`);
  } catch (error) {
    process.exitCode = 1;
    console.error(error);
    const reason = `${error.name} ${error.message}`.split(/\s+/).join(" ");
    console.log(`FAILED ${NAME} ${what}: ${reason.slice(0, 400)}`);
  }
}
