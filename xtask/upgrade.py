"""upgrade.py OLD NEW: two programs in one cluster under load, for `cargo xtask upgrade`.

Five servers go from OLD to NEW and back, one after the other, while clients of both programs put, get, list and write conditionally.
Then they go to NEW again, the cluster is finalized, and OLD starts no server any more. Prints a line for each step, with the operations
that ended in it; ends with 1 if an operation failed or a step was not as it should be.
"""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import tomllib

OLD, NEW = sys.argv[1:3]
SERVERS = 5
ADMIN = 90
# The longest time for which something is waited for, in seconds.
PATIENCE = 120
REFUSED = "this program is areo"
KEYS = 20

scratch = tempfile.mkdtemp(prefix="areo-upgrade-")
administrator = os.path.join(scratch, "s1", "cluster.toml")
environment = {name: value for name, value in os.environ.items() if not name.startswith("AREO_")}
environment["XDG_STATE_HOME"] = scratch
# Of commands, once there is a key.
with_key = dict(environment)
servers = {}
# Everything that was started.
processes = []


def run(program, *arguments, stdin=b""):
    """A command on the cluster, which knows the addresses of all servers: its exit code, its output, its errors."""
    addresses = ",".join(address(number) for number in range(1, SERVERS + 1))
    command = [program, "--cluster", addresses, *arguments]
    ended = subprocess.run(command, input=stdin, capture_output=True, env=with_key, check=False)
    return ended.returncode, ended.stdout.decode(), ended.stderr.decode()


def done(program, *arguments, stdin=b""):
    code, out, err = run(program, *arguments, stdin=stdin)
    check(code == 0, f"`areo {' '.join(arguments)}` ended with {code}: {err}")
    return out


def check(holds, sentence):
    if not holds:
        raise SystemExit(f"FAILED: {sentence}; logs are in {scratch}")


def wait_until(what, happened):
    until = time.monotonic() + PATIENCE
    while not happened():
        check(time.monotonic() < until, f"waited {PATIENCE} s until {what}")
        time.sleep(0.2)


def free_ports():
    """The first of as many free ports as there are servers, and one more, with their admin ports."""
    for port in range(20000, 30000, 10):
        try:
            for number in [*range(port, port + SERVERS + 1), *range(port + ADMIN, port + ADMIN + SERVERS + 1)]:
                with socket.socket() as one:
                    one.bind(("127.0.0.1", number))
            return port
        except OSError:
            pass
    raise SystemExit("FAILED: no ports are free")


PORT = free_ports()


def address(number):
    return f"127.0.0.1:{PORT + number - 1}"


def spawn(program, number, *more):
    log = open(os.path.join(scratch, f"s{number}.log"), "ab")
    command = [program, "server", "--data", os.path.join(scratch, f"s{number}"), "--listen", address(number), *more]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment)
    log.close()
    processes.append(process)
    return process


def code_of(process):
    """The exit code of a process, once it has ended; `None` if it does not end."""
    try:
        return process.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        return None


def status():
    code, out, _ = run(NEW, "status", "--json")
    return [json.loads(line) for line in out.splitlines()] if code == 0 else []


def serving():
    return {it["server"]: it for it in status() if it.get("state") == "serving" and "server" in it}


def are_whole():
    """Each server serves, has gone over all objects since its start, and lacked none."""
    found = serving().values()
    return len(found) == SERVERS and all(it["proven_seconds"] is not None and it["lacking"] == 0 for it in found)


def stop(number):
    servers[number].send_signal(signal.SIGTERM)
    check(code_of(servers.pop(number)) == 0, f"s{number} did not stop in order")


def roll(program):
    for number in range(1, SERVERS + 1):
        stop(number)
        servers[number] = spawn(program, number)
        wait_until(f"s{number} serves", are_whole)


def is_refused(program, number, *more):
    """A start of this program ends at once, with one sentence."""
    ended = code_of(spawn(program, number, *more))
    with open(os.path.join(scratch, f"s{number}.log"), encoding="utf-8") as log:
        last = log.read().splitlines()[-1]
    check(ended == 1 and REFUSED in last, f"s{number} ended with {ended}: {last}")


class Load:
    """Clients of both programs, until they are stopped."""

    def __init__(self):
        self.lock, self.ended, self.failed, self.increments = threading.Lock(), 0, [], 0
        self.stopping = threading.Event()
        work = [self.objects, self.objects, self.counter, self.counter]
        self.threads = [threading.Thread(target=self.worked, args=(it, number)) for number, it in enumerate(work)]
        for thread in self.threads:
            thread.start()

    def worked(self, work, number):
        """Works until the end; a client that ends before is a failure."""
        try:
            work(number)
        except Exception as error:
            self.differs(f"client {number} ended: {error!r}")

    def operate(self, program, *arguments, stdin=b"", expected=(0,)):
        code, out, err = run(program, *arguments, stdin=stdin)
        with self.lock:
            self.ended += 1
            if code not in expected:
                self.failed.append(f"`areo {' '.join(arguments)}` of {program} ended with {code}: {err}")
        return code, out

    def differs(self, sentence):
        with self.lock:
            self.failed.append(sentence)

    def objects(self, number):
        """Puts, gets and lists keys of its own."""
        turn, written = 0, {}
        while not self.stopping.is_set():
            writer, reader = (OLD, NEW)[turn % 2], (OLD, NEW)[turn // 2 % 2]
            key, value = f"{number}/{turn % KEYS:02}", f"value {turn} of {number}"
            self.operate(writer, "put", key, stdin=value.encode())
            written[key] = value
            code, found = self.operate(reader, "get", key)
            if code == 0 and found != value:
                self.differs(f"{key} is '{found}' and not '{value}'")
            code, listed = self.operate(reader, "ls", f"{number}/")
            if code == 0 and listed.split() != sorted(written):
                self.differs(f"{number}/ lists {listed.split()}")
            turn += 1

    def counter(self, number):
        """Increments a number that another client increments, too, by conditional writes."""
        turn = 0
        while not self.stopping.is_set():
            program = (OLD, NEW)[(turn + number) % 2]
            turn += 1
            code, version = self.operate(program, "--domain", "decided", "get", "counter", "--version-only")
            code_of_value, value = self.operate(program, "--domain", "decided", "get", "counter")
            if code or code_of_value:
                continue
            put = ["--domain", "decided", "put", "counter", "--if-version", version.strip()]
            code, _ = self.operate(program, *put, stdin=str(int(value) + 1).encode(), expected=(0, 4))
            # Where another write came between the two reads, the version is not the newest any more.
            if code == 0:
                with self.lock:
                    self.increments += 1

    def step(self, name, least=1):
        with self.lock:
            ended, self.ended = self.ended, 0
            failed = self.failed
        print(f"{name}: {ended} operations, {len(failed)} failed", flush=True)
        check(not failed, "; ".join(failed[:3]))
        check(ended >= least, f"{name}: {ended} operations, so that nothing was loaded")

    def stop(self):
        self.stopping.set()
        for thread in self.threads:
            thread.join()


def form():
    servers[1] = spawn(OLD, 1, "--init", "--tls", "--name", "s1")
    wait_until("s1 has begun a cluster", lambda: os.path.exists(administrator))
    with open(administrator, "rb") as file:
        with_key["AREO_KEY"] = tomllib.load(file)["key"]
    wait_until("s1 serves", lambda: len(serving()) == 1)
    for number in range(2, SERVERS + 1):
        servers[number] = join(OLD, number)
        wait_until(f"s{number} serves", lambda count=number: len(serving()) == count)
    root = lambda: [it for it in status() if it.get("domain") == "@root"]
    wait_until("the root domain has grown", lambda: len(root()) == 1 and len(root()[0]["servers"]) == SERVERS)
    done(OLD, "domain", "create", "default", "--k", "3")
    done(OLD, "domain", "create", "decided", "--dap", "conditional")
    done(OLD, "--domain", "decided", "put", "counter", stdin=b"0")


def token():
    path = os.path.join(scratch, "token")
    made = json.loads(done(OLD, "token", "create", "--json"))["token"]
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
        file.write(made)
    return path


def join(program, number):
    return spawn(program, number, "--join", address(1), "--token", token(), "--name", f"s{number}")


def runs(program):
    """Every server says that it runs this program; the level up to which the cluster is finalized."""
    version = json.loads(subprocess.check_output([program, "version", "--json"], env=environment))["version"]
    shown = status()
    versions = {it["version"] for it in shown if "server" in it}
    check(versions == {version}, f"{versions} run, and not {version} alone")
    return shown[0]["level"]


def uses_level():
    """The level with which the new program says that it wrote an object."""
    done(NEW, "put", "described", stdin=b"x")
    return json.loads(done(NEW, "stat", "described", "--json").splitlines()[0]).get("metadata", {}).get("level")


def main():
    form()
    load = Load()
    try:
        time.sleep(3)
        load.step("five servers of the old program")
        stop(1)
        servers[1] = spawn(NEW, 1)
        wait_until("s1 serves", are_whole)
        code, _, err = run(NEW, "cluster", "finalize")
        check(code == 4 and "s2" in err and "s1 " not in err, f"finalize ended with {code}: {err}")
        roll(NEW)
        check((runs(NEW), uses_level()) == (0, None), "the new level is used before it is final")
        load.step("upgraded, one after the other")
        roll(OLD)
        check(runs(OLD) == 0, "going back is no level")
        load.step("back to the old program")
        roll(NEW)
        check((runs(NEW), uses_level()) == (0, None), "the new level is used before it is final")
        load.step("upgraded again")
        stop(SERVERS)
        said = done(NEW, "cluster", "finalize")
        check("level 1 is final" in said, said)
        is_refused(OLD, SERVERS)
        is_refused(OLD, SERVERS + 1, "--join", address(1), "--token", token(), "--name", "late")
        servers[SERVERS] = spawn(NEW, SERVERS)
        wait_until(f"s{SERVERS} serves", are_whole)
        check(runs(NEW) == 1, "the level is not shown")
        wait_until("the new level is used", lambda: uses_level() == "1")
        load.step("finalized while a server was away, whose old program was refused")
    finally:
        load.stop()
    load.step("the last of them", least=0)
    for number in list(servers):
        stop(number)
    old = {number: spawn(OLD, number) for number in range(1, SERVERS + 1)}
    codes = [code_of(it) for it in old.values()]
    check(codes == [1] * SERVERS, f"the old program of all servers at once ended with {codes}")
    for number in range(1, SERVERS + 1):
        servers[number] = spawn(NEW, number)
    wait_until("all serve", are_whole)
    counted = int(done(NEW, "--domain", "decided", "get", "counter"))
    check(counted == load.increments > 0, f"{load.increments} increments were acknowledged, and the counter is {counted}")
    print(f"the old program of all servers at once was refused; the counter is {counted}, as was acknowledged")


def ended_by_signal(*_):
    raise SystemExit("FAILED: interrupted")


signal.signal(signal.SIGTERM, ended_by_signal)
try:
    main()
finally:
    for process in processes:
        process.kill()
        process.wait()
shutil.rmtree(scratch)
