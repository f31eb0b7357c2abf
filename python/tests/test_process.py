"""Threads, signals, forks, and the end of the interpreter."""

import os
import signal
import socket
import subprocess
import sys
import textwrap
import threading

import pytest

import areo


def run(program: str, *arguments: str) -> None:
    """Runs a program in an interpreter of its own; it says what went wrong by its exit code and on standard error."""
    command = [sys.executable, "-W", "ignore", "-c", textwrap.dedent(program), *arguments]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_ctrl_c_ends_a_wait(silent: str) -> None:
    # A shell that starts a process in the background has it ignore the signal.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    interrupt = threading.Timer(0.2, signal.raise_signal, [signal.SIGINT])
    interrupt.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            areo.connect(silent, timeout=100)
    finally:
        interrupt.join()
        signal.signal(signal.SIGINT, before)


def test_other_threads_run_while_one_waits(domain: areo.Domain) -> None:
    ended: list[Exception] = []

    def wait(address: str) -> None:
        try:
            areo.connect(address, timeout=100)
        except areo.Unavailable as error:
            ended.append(error)

    with socket.create_server(("127.0.0.1", 0)) as server:
        host, port = server.getsockname()
        waits = threading.Thread(target=wait, args=(f"{host}:{port}",))
        waits.start()
        # It is under way.
        connection, _ = server.accept()
        for number in range(20):
            domain.put("threads/a", str(number).encode())
        assert domain.get("threads/a").value == b"19"
        assert waits.is_alive() and ended == []
    # It ends with its server.
    connection.close()
    waits.join()
    assert len(ended) == 1


def test_a_fork_is_found_out(cluster) -> None:
    run(
        """
        import os, sys, areo
        client = areo.connect(sys.argv[1])
        domain = client.domain()
        domain.put("fork/a", b"1")
        stream, file = domain.stream("fork/a"), domain.open("fork/b", "wb")
        child = os.fork()
        if child == 0:
            for use in (lambda: domain.get("fork/a"), client.domain, client.close, lambda: next(stream), file.close):
                try:
                    use()
                except areo.Invalid as error:
                    assert error.kind == "forked" and "fork" in str(error), error
                else:
                    os._exit(3)
            del domain, client, stream, file, use
            with areo.connect(sys.argv[1]) as own:
                own.domain().put("fork/a", b"2")
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        assert domain.get("fork/a").value == b"2" and b"".join(stream) == b"1"
        """,
        cluster.file,
    )


def test_a_pool_of_forked_processes_connects_by_itself(cluster) -> None:
    run(
        """
        import multiprocessing, sys, areo
        def read(key):
            with areo.connect(sys.argv[1]) as client:
                return client.domain().get(key).value
        client = areo.connect(sys.argv[1])
        client.domain().put("pool/a", b"x")
        with multiprocessing.get_context("fork").Pool(2) as pool:
            assert pool.map(read, ["pool/a"] * 4) == [b"x"] * 4
        """,
        cluster.file,
    )


def test_an_interpreter_ends_while_threads_wait(silent: str) -> None:
    run(
        """
        import sys, threading, time, areo
        class Ends:
            # The interpreter takes its time, and other threads have theirs.
            def __del__(self, sleep=time.sleep):
                sleep(0.3)
        ends = Ends()
        for _ in range(4):
            threading.Thread(target=areo.connect, args=(sys.argv[1],), kwargs={"timeout": 100}, daemon=True).start()
        """,
        silent,
    )


def test_an_interpreter_ends_while_threads_update(cluster) -> None:
    run(
        """
        import sys, threading, time, areo
        class Ends:
            def __del__(self, sleep=time.sleep):
                sleep(0.3)
        # Not a global of this module, which the frames of the threads keep.
        sys.ends = Ends()
        counters = areo.connect(sys.argv[1]).domain("counters")
        def update(key):
            while True:
                counters.update(key, lambda found: b"x")
        for number in range(4):
            threading.Thread(target=update, args=(f"ends/{number}",), daemon=True).start()
        time.sleep(0.3)
        """,
        cluster.file,
    )


def test_a_stream_is_of_one_caller_at_a_time(cluster, domain: areo.Domain) -> None:
    value = os.urandom(10_000_000)
    domain.put("shared/a", value)
    stream, pieces, refused = domain.stream("shared/a"), [], []

    def read() -> None:
        try:
            for piece in stream:
                pieces.append(piece)
        except areo.Invalid as error:
            refused.append(error.kind)

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # Each piece came once; the threads may have noted them in another order.
    assert b"".join(sorted(pieces, key=value.index)) == value and set(refused) <= {"given_up"}
