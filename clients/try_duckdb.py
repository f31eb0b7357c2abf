"""DuckDB with its extension httpfs: Parquet files."""

import os

import duckdb
import duckdb_extension_httpfs

from report import ENDPOINT, KEY_ID, REGION, SECRET, Client, equal, make_bucket

client = Client("duckdb")
table = f"s3://{client.bucket}/table"


def connect():
    db = duckdb.connect(config={"allow_unsigned_extensions": "true"})
    folder = os.path.join(os.path.dirname(duckdb_extension_httpfs.__file__), "extensions", f"v{duckdb.__version__}")
    db.load_extension(os.path.join(folder, "httpfs.duckdb_extension"))
    scheme, address = ENDPOINT.split("://")
    db.execute(
        f"""CREATE SECRET (TYPE s3, KEY_ID '{KEY_ID}', SECRET '{SECRET}', REGION '{REGION}',
            ENDPOINT '{address}', URL_STYLE 'path', USE_SSL {scheme == "https"})"""
    )
    return db


@client.step("COPY to a Parquet file of 1 000 000 rows")
def copy_to():
    make_bucket(client.bucket)
    rows = "SELECT i AS id, i % 7 AS day, md5(i::VARCHAR) AS text FROM range(1000000) r(i)"
    connect().execute(f"COPY ({rows}) TO '{table}/all.parquet' (ROW_GROUP_SIZE 100000)")


@client.step("SELECT of some row groups and columns, by ranges")
def select():
    db = connect()
    found = db.execute(f"SELECT count(*), sum(id) FROM '{table}/all.parquet' WHERE id >= 950000").fetchone()
    equal(found, (50000, sum(range(950000, 1000000))))
    text = db.execute(f"SELECT md5(string_agg(text, '' ORDER BY id)) FROM '{table}/all.parquet'").fetchone()
    rows = "SELECT i AS id, md5(i::VARCHAR) AS text FROM range(1000000) r(i)"
    equal(text, db.execute(f"SELECT md5(string_agg(text, '' ORDER BY id)) FROM ({rows})").fetchone())


@client.step("COPY to partitions, and SELECT over a glob")
def partitions():
    db = connect()
    db.execute(f"COPY (FROM '{table}/all.parquet') TO '{table}/days' (FORMAT parquet, PARTITION_BY (day))")
    days = db.execute(f"SELECT day, count(*) FROM '{table}/days/*/*.parquet' GROUP BY day ORDER BY day").fetchall()
    equal(days, [(day, 142858 if day == 0 else 142857) for day in range(7)])


client.run()
