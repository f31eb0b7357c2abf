"""A cluster of five processes of the program in PYTHON_TEST_PROGRAM, for all tests."""

import json
import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import areo

SERVERS = 5
ADMIN = 90


def free_port() -> int:
    """The first port of the servers. Those after it, and those of their admin ports, were free a moment ago."""
    for first in range(20000 + os.getpid() % 40 * 200, 30000, 200):
        wanted = [*range(first, first + SERVERS), *range(first + ADMIN, first + ADMIN + SERVERS)]
        listeners = [socket.socket() for _ in wanted]
        try:
            for listener, port in zip(listeners, wanted, strict=True):
                listener.bind(("127.0.0.1", port))
            return first
        except OSError:
            continue
        finally:
            for listener in listeners:
                listener.close()
    raise RuntimeError("no ports are free below 30000")


class Cluster:
    """A cluster that runs."""

    def __init__(self, folder: Path) -> None:
        self.program = os.environ["PYTHON_TEST_PROGRAM"]
        self.file = str(folder / "data" / "cluster.toml")
        command = [self.program, "--json", "up", "--servers", str(SERVERS), "--port", str(free_port())]
        command += ["--data", str(folder / "data"), "--durability", "memory"]
        self._log = open(folder / "up.log", "w")
        self._up = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=self._log, text=True)
        assert self._up.stdout is not None
        self.pids: list[int] = []
        for line in self._up.stdout:
            event = json.loads(line)
            self.pids += [event["pid"]] if "pid" in event else []
            if event.get("event") == "ready":
                return
        raise RuntimeError(f"`areo up` ended before it served: {(folder / 'up.log').read_text()}")

    def areo(self, *arguments: str) -> str:
        """What the command line prints."""
        command = [self.program, "--cluster", self.file, *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    def freeze(self, servers: int) -> None:
        for pid in self.pids[:servers]:
            os.kill(pid, signal.SIGSTOP)

    def thaw(self) -> None:
        for pid in self.pids:
            os.kill(pid, signal.SIGCONT)

    def stop(self) -> None:
        self.thaw()
        self._up.send_signal(signal.SIGTERM)
        self._up.communicate()
        self._log.close()


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    running = Cluster(tmp_path_factory.mktemp("cluster"))
    try:
        # In the order that README.md and the tests need them.
        running.areo("domain", "create", "counters", "--dap", "conditional")
        yield running
    finally:
        running.stop()


@pytest.fixture(scope="session")
def client(cluster: Cluster) -> Iterator[areo.Client]:
    with areo.connect(cluster.file) as client:
        yield client


@pytest.fixture(scope="session")
def domain(client: areo.Client) -> areo.Domain:
    return client.domain()


@pytest.fixture(scope="session")
def counters(client: areo.Client) -> areo.Domain:
    return client.domain("counters")


@pytest.fixture
def silent() -> Iterator[str]:
    """The address of a server that never answers."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        host, port = listener.getsockname()
        yield f"{host}:{port}"
