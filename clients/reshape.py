"""A bucket under load changes its servers and its code: three replicas, then [5,3], then [9,5].

reshape.py --areo PROGRAM [--svg FILE]

Starts a cluster of nine servers with a gateway, creates a bucket on three of them, and lets threads put and get through boto3, which sends no
request again by itself. Meanwhile `areo reconfig start` changes the bucket twice. Each value that is read is compared with those that were put.
Prints the requests and the failures of each phase, and with --svg draws the requests of each tenth of a second.
Ends with 1 if a request failed, or if a value was wrong.
"""

import argparse
import hashlib
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time

import boto3
from botocore.config import Config

THREADS = 6
KEYS = 48
SIZE = 64 * 1024
# Seconds of load before, between and after the changes.
PHASE = 6.0
TICK = 0.1
BUCKET = "reshaped"
CHANGES = [
    ("[5,3]", ["--add", "s4,s5", "--k", "3"]),
    ("[9,5]", ["--add", "s6,s7,s8,s9", "--k", "5"]),
]


class Load:
    """Threads that put and get until they are told to stop, and everything that they did."""

    def __init__(self, client):
        self.client = client
        self.begun = time.monotonic()
        self.stopped = threading.Event()
        self.done = []  # (seconds, error or None)
        self.threads = [threading.Thread(target=self.run, args=(i,)) for i in range(THREADS)]

    def run(self, number):
        client = self.client()
        turn = 0
        while not self.stopped.is_set():
            # Each thread has keys of its own, so that it knows what a read must return.
            key = f"{number}/{turn % (KEYS // THREADS)}"
            seed = hashlib.sha256(f"{key} {turn}".encode()).digest()
            value = seed * (SIZE // len(seed))
            self.request(lambda: client.put_object(Bucket=BUCKET, Key=key, Body=value))
            read = self.request(lambda: client.get_object(Bucket=BUCKET, Key=key)["Body"].read())
            if read is not None and read != value:
                self.note(f"a read of {key} returned another value")
            turn += 1

    def request(self, ask):
        try:
            answer = ask()
        except Exception as error:  # Whatever a client raises is a request that failed.
            self.note(str(error))
            return None
        self.note(None)
        return answer

    def note(self, error):
        self.done.append((time.monotonic() - self.begun, error))

    def now(self):
        return time.monotonic() - self.begun


def start(program, folder):
    """A cluster with a gateway; its process, its cluster file, its endpoint."""
    data = os.path.join(folder, "data")
    log = open(os.path.join(folder, "up.log"), "w+")
    arguments = [program, "up", "--servers", "9", "--data", data, "--port", "21400", "--s3=127.0.0.1:21480"]
    up = subprocess.Popen(arguments, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=log)
    while "S3 at " not in open(log.name).read():
        if up.poll() is not None:
            sys.exit(f"`areo up` ended: {open(log.name).read()}")
        time.sleep(0.1)
    return up, os.path.join(data, "cluster.toml"), "http://127.0.0.1:21480"


def measure(program):
    with tempfile.TemporaryDirectory(prefix="areo-reshape-") as folder:
        up, cluster, endpoint = start(program, folder)
        try:
            return reshape([program, "--cluster", cluster], endpoint)
        finally:
            up.send_signal(signal.SIGINT)
            up.wait()


def reshape(areo, endpoint):
    exported = subprocess.run([*areo, "key", "env"], check=True, capture_output=True, text=True).stdout
    key, secret = (re.search(f"{name}=(.*)", exported)[1] for name in ("ACCESS_KEY_ID", "SECRET_ACCESS_KEY"))
    config = Config(retries={"total_max_attempts": 1}, s3={"addressing_style": "path"})

    def client():
        return boto3.session.Session().client(
            "s3", endpoint_url=endpoint, region_name="us-east-1", config=config,
            aws_access_key_id=key, aws_secret_access_key=secret,
        )  # fmt: skip

    first = client()
    first.meta.events.register(
        "before-sign.s3.CreateBucket", lambda request, **_: request.headers.add_header("x-areo-n", "3")
    )
    first.create_bucket(Bucket=BUCKET)
    load = Load(client)
    for thread in load.threads:
        thread.start()
    changes = []
    try:
        for name, change in CHANGES:
            time.sleep(PHASE)
            begun = load.now()
            subprocess.run([*areo, "reconfig", "start", BUCKET, *change], check=True, stdout=subprocess.DEVNULL)
            changes.append((name, begun, load.now()))
        time.sleep(PHASE)
    finally:
        # Threads that go on would keep this process from its end.
        load.stopped.set()
        for thread in load.threads:
            thread.join()
    shape = subprocess.run([*areo, "stat", "--domain", BUCKET, "0/0"], check=True, capture_output=True, text=True)
    print("at the end:", re.search(r"configuration\s+(.*)", shape.stdout)[1])
    return load.done, changes


def phases(done, changes):
    """Name, begin and end of each phase, and of each change."""
    end = max(at for at, _ in done)
    begins = [("3 replicas", 0.0)] + [(name, after) for name, _, after in changes]
    ends = [before for _, before, _ in changes] + [end]
    rows = []
    for position, ((name, begun), ended) in enumerate(zip(begins, ends)):
        rows.append((name, begun, ended))
        if position < len(changes):
            rows.append((f"while it becomes {changes[position][0]}", changes[position][1], changes[position][2]))
    return rows


def draw(done, changes, file):
    """Requests of each tenth of a second, as one line over time."""
    width, height, left, top = 860, 260, 56, 40
    end = max(at for at, _ in done)
    counts = [0] * (int(end / TICK) + 1)
    for at, error in done:
        counts[int(at / TICK)] += error is None
    # The last tenth is not a whole one.
    counts.pop()
    most = max(counts) * 1.1
    x = lambda seconds: left + seconds / end * width
    y = lambda count: top + height - count / most * height
    failures = sum(error is not None for _, error in done)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {left + width + 16} {top + height + 44}" font-family="sans-serif" font-size="13">',
        "<title>Requests of a bucket while its servers and its code are changed</title>",
        f'<rect width="{left + width + 16}" height="{top + height + 44}" fill="white"/>',
    ]
    for name, begun, ended in phases(done, changes):
        if name.startswith("while"):
            parts.append(f'<rect x="{x(begun):.1f}" y="{top}" width="{max(x(ended) - x(begun), 1):.1f}" height="{height}" fill="#f3c98b"/>')
        else:
            parts.append(f'<text x="{(x(begun) + x(ended)) / 2:.1f}" y="{top - 12}" text-anchor="middle" font-weight="bold">{name}</text>')
    for step in range(5):
        count = most / 1.1 * step / 4
        parts.append(f'<line x1="{left}" x2="{left + width}" y1="{y(count):.1f}" y2="{y(count):.1f}" stroke="#ddd"/>')
        parts.append(f'<text x="{left - 8}" y="{y(count) + 4:.1f}" text-anchor="end">{count:.0f}</text>')
    points = " ".join(f"{x((i + 0.5) * TICK):.1f},{y(count):.1f}" for i, count in enumerate(counts))
    parts.append(f'<polyline points="{points}" fill="none" stroke="#1f5fa8" stroke-width="1.5"/>')
    for second in range(0, int(end) + 1, 2):
        parts.append(f'<text x="{x(second):.1f}" y="{top + height + 18}" text-anchor="middle">{second} s</text>')
    legend = f"requests each 100 ms; shaded: the change is under way; {failures} of {len(done)} requests failed"
    parts.append(f'<text x="{left}" y="{top + height + 38}">{legend}</text></svg>')
    with open(file, "w") as svg:
        svg.write("\n".join(parts) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--areo", required=True, help="the program")
    parser.add_argument("--svg", help="file for the picture")
    arguments = parser.parse_args()
    done, changes = measure(os.path.abspath(arguments.areo))
    for name, begun, ended in phases(done, changes):
        within = [error for at, error in done if begun <= at <= ended]
        failed = sum(error is not None for error in within)
        rate = len(within) / (ended - begun)
        print(f"{name}: {ended - begun:.2f} s, {len(within)} requests ({rate:.0f} a second), {failed} failed")
    if arguments.svg:
        draw(done, changes, arguments.svg)
    errors = sorted({error for _, error in done if error is not None})
    for error in errors[:10]:
        print(f"failed: {error}", file=sys.stderr)
    sys.exit(1 if errors else 0)


if __name__ == "__main__":
    main()
