"""PyIceberg: a table of Iceberg whose catalog is a local file."""

import os

import pyarrow as pa
from pyiceberg.catalog.sql import SqlCatalog

from report import ENDPOINT, KEY_ID, REGION, SCRATCH, SECRET, Client, equal, make_bucket

client = Client("pyiceberg")


def catalog():
    return SqlCatalog(
        "local",
        uri=f"sqlite:///{os.path.join(SCRATCH, 'iceberg.db')}",
        warehouse=f"s3://{client.bucket}/warehouse",
        **{
            "s3.endpoint": ENDPOINT,
            "s3.access-key-id": KEY_ID,
            "s3.secret-access-key": SECRET,
            "s3.region": REGION,
        },
    )


def rows(first):
    return pa.table({"id": pa.array(range(first, first + 1000), pa.int64()), "text": ["x" * 50] * 1000})


@client.step("two appends and a scan")
def appends():
    make_bucket(client.bucket)
    local = catalog()
    local.create_namespace("space")
    table = local.create_table("space.table", schema=rows(0).schema)
    table.append(rows(0))
    table.append(rows(1000))
    scanned = catalog().load_table("space.table").scan(row_filter="id >= 500").to_arrow()
    equal(sorted(scanned["id"].to_pylist()), list(range(500, 2000)))


@client.step("deletion of rows, and the snapshot before it")
def delete():
    table = catalog().load_table("space.table")
    before = table.current_snapshot().snapshot_id
    table.delete("id < 1500")
    equal(table.scan().to_arrow().num_rows, 500)
    equal(table.scan(snapshot_id=before).to_arrow().num_rows, 2000)


client.run()
