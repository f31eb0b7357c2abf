// A cluster of processes on this machine, its console, and the command line to both.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { mkdtemp, open, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as pause } from "node:timers/promises";

const SERVERS = 5;
// Distances from the first port: of admin ports, of spares, of their admin ports, and of the console.
const [ADMIN, SPARE, SPARE_ADMIN, CONSOLE] = [90, 15, 55, 150];

async function isFree(port) {
  const server = createServer();
  const outcome = new Promise((resolve) => {
    server.once("error", () => resolve(false));
    server.listen(port, "127.0.0.1", () => server.close(() => resolve(true)));
  });
  return outcome;
}

// The first port of a block that no process listens on.
async function freeBlock() {
  const begin = 20_000 + (process.pid % 45) * 200;
  for (let first = begin; first < 30_000; first += 200) {
    const servers = Array.from({ length: SERVERS }, (_, i) => [first + i, first + ADMIN + i]);
    const free = await Promise.all([...servers.flat(), first + CONSOLE].map(isFree));
    if (free.every(Boolean)) return first;
  }
  throw new Error("no ports are free below 30000");
}

// Waits until a condition holds; the condition may be asynchronous.
export async function until(what, condition) {
  for (let tries = 0; tries < 600; tries += 1) {
    if (await condition()) return;
    await pause(200);
  }
  throw new Error(`it never came about that ${what}`);
}

export class Cluster {
  #program;
  #folder;
  #port;
  #pids = new Map();
  #children = [];
  #urls = [];
  #console;

  constructor(program) {
    this.#program = program;
  }

  get folder() {
    return this.#folder;
  }

  // Starts five servers and a console.
  async start() {
    this.#folder = await mkdtemp(join(tmpdir(), "areo-console-"));
    this.#port = await freeBlock();
    let isReady = false;
    const up = await this.#spawn("up", ["up", "--json", "--port", `${this.#port}`, "--data", join(this.#folder, "data")]);
    createInterface({ input: up.stdout }).on("line", (line) => {
      const event = JSON.parse(line);
      if (event.event === "started") this.#pids.set(event.server, event.pid);
      isReady ||= event.event === "ready";
    });
    await until("`areo up` serves", () => this.#alive(up, "up") && isReady);
    await this.openConsole();
  }

  // Starts a console, in place of the one before it.
  async openConsole() {
    const listen = `127.0.0.1:${this.#port + CONSOLE}`;
    this.#console = await this.#spawn("console", [...this.#here(), "--json", "console", "--listen", listen]);
    createInterface({ input: this.#console.stdout }).on("line", (line) => this.#urls.push(JSON.parse(line).url));
    await until("the console prints a URL", () => this.#alive(this.#console, "console") && this.#urls.length > 0);
  }

  // A URL that opens the console once, which no browser has used.
  async url() {
    await until("the console prints a URL", () => this.#urls.length > 0);
    return this.#urls.shift();
  }

  // Starts a server that joins the cluster, and waits until it serves.
  async join(number) {
    const [name, port] = [`s${number}`, this.#port + SPARE + number];
    const place = ["--data", join(this.#folder, "data", name), "--name", name, "--listen", `127.0.0.1:${port}`];
    const admin = ["--admin", `127.0.0.1:${this.#port + SPARE_ADMIN + number}`];
    const child = await this.#spawn(name, [...this.#here(), "server", ...place, ...admin, "--join", `127.0.0.1:${this.#port}`]);
    this.#pids.set(name, child.pid);
    await until(`${name} serves`, async () => this.#alive(child, name) && (await this.state(name)) === "serving");
  }

  // The state of a server, as `areo status` has it.
  async state(server) {
    const status = await this.objects("status");
    return status.find((it) => it.server === server)?.state;
  }

  // Sends a signal to a server.
  signal(server, signal) {
    process.kill(this.#pids.get(server), signal);
  }

  // Kills a server as kill -9 does, and waits until the others miss it.
  async kill(server) {
    this.signal(server, "SIGKILL");
    await until(`${server} is dead`, async () => (await this.state(server)) !== "serving");
  }

  // Runs `areo` on this cluster, or with this cluster file: its exit code and its output.
  async run(args, input = "", file = this.#file()) {
    const child = spawn(this.#program, ["--cluster", file, ...args], { env: this.#environment(), stdio: ["pipe", "pipe", "pipe"] });
    const [out, err] = [[], []];
    child.stdout.on("data", (part) => out.push(part));
    child.stderr.on("data", (part) => err.push(part));
    child.stdin.on("error", () => {});
    child.stdin.end(input);
    const [code] = await once(child, "close");
    return { code, out: Buffer.concat(out).toString(), err: Buffer.concat(err).toString() };
  }

  // Runs `areo` on this cluster, which must succeed; the text that it prints.
  async text(args, input) {
    const { code, out, err } = await this.run(args, input);
    if (code !== 0) throw new Error(`areo ${args.join(" ")} ended with ${code}: ${err}`);
    return out;
  }

  // Runs `areo --json` on this cluster, which must succeed; the objects that it prints.
  async objects(...args) {
    const lines = (await this.text(["--json", ...args])).split("\n");
    return lines.filter(Boolean).map((line) => JSON.parse(line));
  }

  // Stops all processes, and removes their files.
  async stop() {
    for (const pid of this.#pids.values()) {
      try {
        process.kill(pid, "SIGCONT");
      } catch {
        // It was killed by a test.
      }
    }
    for (const child of this.#children.reverse()) {
      if (child.exitCode !== null || child.signalCode !== null) continue;
      child.kill("SIGINT");
      await once(child, "exit");
    }
    await rm(this.#folder, { recursive: true, force: true });
  }

  #file() {
    return join(this.#folder, "data", "cluster.toml");
  }

  #here() {
    return ["--cluster", this.#file()];
  }

  // Without settings of the person who runs the tests; what clients of this cluster remember, no other program finds.
  #environment() {
    const others = Object.entries(process.env).filter(([name]) => !name.startsWith("AREO_"));
    return { ...Object.fromEntries(others), XDG_STATE_HOME: this.#folder, XDG_CACHE_HOME: this.#folder };
  }

  async #spawn(name, args) {
    const log = await open(join(this.#folder, `${name}.log`), "a");
    const child = spawn(this.#program, args, { env: this.#environment(), stdio: ["ignore", "pipe", log.fd] });
    await log.close();
    child.stdout.resume();
    this.#children.push(child);
    return child;
  }

  #alive(child, name) {
    if (child.exitCode === null && child.signalCode === null) return true;
    const log = readFileSync(join(this.#folder, `${name}.log`), "utf8");
    throw new Error(`${name} ended before it served: ${log}`);
  }
}
