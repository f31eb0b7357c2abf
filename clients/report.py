"""Steps of a client, and the line that each of them prints.

A step is a function. It passes if it returns, and fails if it raises.
"""

import os
import sys
import traceback

# Names of buckets and files of this run.
RUN = os.environ["CLIENTS_RUN"]
SCRATCH = os.environ["CLIENTS_SCRATCH"]
ENDPOINT = os.environ["AWS_ENDPOINT_URL"]
KEY_ID = os.environ["AWS_ACCESS_KEY_ID"]
SECRET = os.environ["AWS_SECRET_ACCESS_KEY"]
REGION = os.environ["AWS_REGION"]


class Client:
    def __init__(self, name):
        self.name = name
        self.bucket = f"{name}-{RUN}"
        self.steps = []

    def step(self, what):
        """Adds a step that does `what`."""

        def add(function):
            self.steps.append((what, function))
            return function

        return add

    def run(self):
        """Runs the steps in their order, prints a line for each, and ends the process."""
        failed = False
        for what, function in self.steps:
            try:
                function()
                print(f"ok {self.name} {what}", flush=True)
            except Exception as error:
                failed = True
                traceback.print_exc()
                reason = " ".join(f"{type(error).__name__} {error}".split())
                print(f"FAILED {self.name} {what}: {reason[:400]}", flush=True)
        sys.exit(1 if failed else 0)


def equal(got, wanted):
    """Raises if two values differ."""
    if got != wanted:
        raise AssertionError(f"got {got!r:.200}, wanted {wanted!r:.200}")


def make_bucket(name):
    """Makes a bucket with the AWS CLI, for clients that make none."""
    import subprocess

    here = os.path.dirname(os.path.abspath(__file__))
    aws = os.path.join(here, ".venv-c", "bin", "aws")
    subprocess.run([aws, "s3api", "create-bucket", "--bucket", name], check=True, stdout=sys.stderr)
