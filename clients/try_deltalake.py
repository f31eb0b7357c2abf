"""delta-rs: writers that commit to one table at once."""

import threading

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, write_deltalake

from report import Client, equal, make_bucket

THREADS = 6
COMMITS = 5

client = Client("deltalake")
table = f"s3://{client.bucket}/table"
options = {"allow_http": "true", "conditional_put": "etag"}
# A writer may lose to the others more than 15 times in a row, where delta-rs gives up by itself.
patient = CommitProperties(max_commit_retries=200)


@client.step(f"{THREADS} threads commit {COMMITS} times each at once: no commit is lost")
def commits():
    make_bucket(client.bucket)
    write_deltalake(table, pa.table({"writer": [-1], "commit": [-1]}), storage_options=options)
    barrier = threading.Barrier(THREADS)
    errors = []

    def write(writer):
        barrier.wait()
        try:
            for commit in range(COMMITS):
                rows = pa.table({"writer": [writer], "commit": [commit]})
                write_deltalake(table, rows, mode="append", storage_options=options, commit_properties=patient)
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=write, args=[writer]) for writer in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    equal(errors, [])
    rows = DeltaTable(table, storage_options=options)
    equal(rows.version(), THREADS * COMMITS)
    rows = sorted(map(tuple, map(dict.values, pa.table(rows.to_pyarrow_table()).to_pylist())))
    equal(rows, [(-1, -1)] + [(w, c) for w in range(THREADS) for c in range(COMMITS)])


@client.step("compact, checkpoint and vacuum")
def maintenance():
    delta = DeltaTable(table, storage_options=options)
    equal(delta.optimize.compact()["numFilesAdded"], 1)
    delta.create_checkpoint()
    delta.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
    delta = DeltaTable(table, storage_options=options)
    equal(delta.to_pyarrow_table().num_rows, THREADS * COMMITS + 1)
    equal(len(delta.file_uris()), 1)


client.run()
