//! A cluster of real processes in a directory of its own.

use crate::command::{command, ended, secrets};
use crate::leaks;
use areo_client::ConnectOptions;
use rustix::process::{Pid, Signal, test_kill_process};
use serde_json::Value;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use tempfile::TempDir;

pub(crate) use crate::command::{CommandOutput, run as areo, signal, spawn, wait_until};

/// Servers of every cluster here, at [5,3] unless a test says otherwise.
pub(crate) const SERVERS: usize = 5;

/// The events that `areo up` has reported so far.
#[derive(Default)]
struct Events {
    pids: BTreeMap<String, i32>,
    /// The number of times that each server was started.
    starts: BTreeMap<String, usize>,
    ready: bool,
    ended: bool,
    /// Everything that was on its standard output.
    printed: String,
}

/// A running `areo up` and its servers. At its end it is searched for secrets.
pub(crate) struct Cluster {
    folder: Arc<TempDir>,
    port: u16,
    up: Child,
    events: Arc<Mutex<Events>>,
    errors: Option<thread::JoinHandle<String>>,
    /// The logs of servers that a test started itself.
    logs: TempDir,
    /// Servers that a test started itself.
    own: BTreeMap<String, Child>,
    /// Environment of `areo up` and of the commands.
    variables: Variables,
}

/// Environment variables, by name.
pub(crate) type Variables = Vec<(&'static str, String)>;

impl Cluster {
    /// A new cluster that serves.
    pub(crate) fn start(flags: &[&str]) -> Cluster {
        let folder = Arc::new(tempfile::tempdir().expect("there is room for a directory"));
        Cluster::start_in(folder, free_ports(), flags, Variables::new())
    }

    /// A new cluster that serves; its servers and commands have these variables.
    pub(crate) fn start_with(variables: Variables) -> Cluster {
        let folder = Arc::new(tempfile::tempdir().expect("there is room for a directory"));
        Cluster::start_in(folder, free_ports(), &[], variables)
    }

    /// A new cluster that serves, and whose processes ignore this signal.
    pub(crate) fn start_ignoring(signal: &str, flags: &[&str]) -> Cluster {
        let folder = Arc::new(tempfile::tempdir().expect("there is room for a directory"));
        let mut up = crate::command::of("env");
        up.arg(format!("--ignore-signal={signal}"))
            .arg(crate::program());
        Cluster::start_by(up, (folder, free_ports()), flags, Variables::new())
    }

    /// A new cluster that serves, with its data below this directory.
    pub(crate) fn start_below(parent: &Path, flags: &[&str]) -> Cluster {
        let folder = tempfile::tempdir_in(parent).expect("there is room for a directory");
        Cluster::start_in(Arc::new(folder), free_ports(), flags, Variables::new())
    }

    fn start_in(folder: Arc<TempDir>, port: u16, flags: &[&str], variables: Variables) -> Cluster {
        Cluster::start_by(command(), (folder, port), flags, variables)
    }

    fn start_by(
        mut up: Command,
        (folder, port): (Arc<TempDir>, u16),
        flags: &[&str],
        variables: Variables,
    ) -> Cluster {
        let data = folder.path().join("data");
        let mut up = up
            .args(["up", "--json", "--port", &port.to_string(), "--data"])
            .arg(&data)
            .args(flags)
            .envs(variables.iter().cloned())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("areo starts");
        let events = Arc::new(Mutex::new(Events::default()));
        let out = up.stdout.take().expect("it is a pipe");
        let err = up.stderr.take().expect("it is a pipe");
        let told = Arc::clone(&events);
        thread::spawn(move || listen(out, &told));
        let errors = Some(thread::spawn(move || collect(err)));
        let own = BTreeMap::new();
        let logs = tempfile::tempdir().expect("there is room for a directory");
        let mut cluster = Cluster {
            folder,
            port,
            up,
            events,
            errors,
            logs,
            own,
            variables,
        };
        wait_until(|| cluster.events().ready || cluster.events().ended);
        if !cluster.events().ready {
            let ended = cluster.wait();
            panic!("`areo up` ended with {}: {}", ended.code, ended.stderr);
        }
        leaks::learn_below(cluster.folder());
        cluster
    }

    /// Starts `areo up` again in this directory, after it has ended.
    pub(crate) fn start_again(self, flags: &[&str]) -> Cluster {
        let port = self.port;
        self.start_at(port, flags)
    }

    /// Starts `areo up` again in this directory, from another port on.
    pub(crate) fn start_at(mut self, port: u16, flags: &[&str]) -> Cluster {
        assert!(
            self.up.try_wait().expect("it can be asked").is_some(),
            "it has ended"
        );
        self.own.values_mut().for_each(end);
        let variables = std::mem::take(&mut self.variables);
        Cluster::start_in(Arc::clone(&self.folder), port, flags, variables)
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// A place for files of the test.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn file(&self) -> String {
        let file = self.data().join("cluster.toml");
        file.to_str()
            .expect("temporary directories are UTF-8")
            .to_owned()
    }

    fn events(&self) -> std::sync::MutexGuard<'_, Events> {
        self.events.lock().expect("nobody panics with it")
    }

    /// Runs `areo` on this cluster.
    pub(crate) fn run<A: AsRef<OsStr>>(&self, arguments: &[A]) -> CommandOutput {
        self.run_with(arguments, b"")
    }

    /// Runs `areo` on this cluster with standard input.
    pub(crate) fn run_with<A: AsRef<OsStr>>(&self, arguments: &[A], input: &[u8]) -> CommandOutput {
        self.run_in(&self.variables, arguments, input)
    }

    /// Runs `areo` on this cluster with variables and standard input.
    pub(crate) fn run_in<A: AsRef<OsStr>>(
        &self,
        variables: &[(&'static str, String)],
        arguments: &[A],
        input: &[u8],
    ) -> CommandOutput {
        let mut command = self.command(arguments);
        ended(command.envs(variables.iter().cloned()), input)
    }

    /// A command that runs `areo` on this cluster.
    pub(crate) fn command<A: AsRef<OsStr>>(&self, arguments: &[A]) -> Command {
        let file = self.file();
        let cluster = [OsStr::new("--cluster"), OsStr::new(&file)];
        let arguments: Vec<&OsStr> = cluster
            .into_iter()
            .chain(arguments.iter().map(AsRef::as_ref))
            .collect();
        // What this cluster's clients remember, no other test's find.
        let mut command = command();
        command.env("XDG_STATE_HOME", self.folder());
        command.env("XDG_CACHE_HOME", self.folder());
        command.args(arguments);
        command
    }

    /// Starts `areo` on this cluster and does not wait for it.
    pub(crate) fn spawn(&self, arguments: &[&str]) -> Child {
        let file = self.file();
        let cluster = ["--cluster", &file];
        spawn(&[&cluster, arguments].concat())
    }

    pub(crate) fn pid(&self, server: &str) -> i32 {
        match self.own.get(server) {
            Some(child) => i32::try_from(child.id()).expect("process ids are small"),
            None => self.events().pids[server],
        }
    }

    /// The number of times that `areo up` started a server.
    pub(crate) fn starts(&self, server: &str) -> usize {
        self.events().starts[server]
    }

    /// Sends a signal to a server.
    pub(crate) fn signal(&mut self, server: &str, with: Signal) {
        signal(self.pid(server), with);
        if with == Signal::KILL
            && let Some(mut child) = self.own.remove(server)
        {
            child.wait().expect("it was ours");
        }
    }

    /// kill -9, and waits until it is gone.
    pub(crate) fn kill(&mut self, server: &str) {
        let pid = self.pid(server);
        self.signal(server, Signal::KILL);
        wait_until(|| !lives(pid));
    }

    /// Waits until a server that was to end has ended.
    pub(crate) fn wait_for_end(&self, server: &str) {
        let pid = self.pid(server);
        wait_until(|| !lives(pid));
    }

    /// Starts a server that was killed, and waits until it serves.
    pub(crate) fn restart(&mut self, server: &str) {
        self.start_server(server);
        wait_until(|| self.state(server) == "serving");
    }

    /// Starts a server that was killed, as a person would by hand.
    pub(crate) fn start_server(&mut self, server: &str) {
        self.start_server_with(server, &[]);
    }

    /// Starts a server that was killed, with these options more.
    pub(crate) fn start_server_with(&mut self, server: &str, options: &[&str]) {
        let file = std::fs::read_to_string(self.file()).expect("the cluster has a file");
        let file: toml::Table = file.parse().expect("it is TOML");
        let entries = file["servers"].as_array().expect("servers are listed");
        let entry = entries
            .iter()
            .find(|entry| entry["name"].as_str() == Some(server));
        let entry = entry.expect("the cluster has this server");
        let text = |key: &str| entry[key].as_str().expect("is text").to_owned();
        let child = command()
            .args(["--cluster", &self.file(), "server", "--data"])
            .arg(self.data().join(server))
            .args(["--listen", &text("address"), "--admin", &text("admin")])
            .args(options)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(self.log(server))
            .spawn()
            .expect("areo starts");
        self.own.insert(server.to_owned(), child);
    }

    /// Starts a server that joins the cluster, or one that joined and was killed, and waits until it serves.
    pub(crate) fn join(&mut self, server: &str) {
        let number: u16 = server[1..].parse().expect("servers are called s1, s2, ...");
        self.begin_to_join(server, number, &["--name", server]);
        wait_until(|| self.state(server) == "serving");
    }

    /// Starts a server in memory that joins the cluster where the server of that number would be, and gets its name. `directory`
    /// is new.
    pub(crate) fn join_in_memory(&mut self, directory: &str, number: u16) {
        self.begin_to_join(directory, number, &["--durability", "memory"]);
        wait_until(|| self.state(&format!("s{number}")) == "serving");
    }

    /// Starts a server that joins the cluster, whether that can register it or not. Returns its admin port.
    /// It listens 40 below that.
    pub(crate) fn begin_to_join(&mut self, server: &str, number: u16, options: &[&str]) -> u16 {
        let port = self.port + 9 + number;
        let child = command()
            .args(["--cluster", &self.file(), "server", "--data"])
            .arg(self.data().join(server))
            .args(options)
            .args(["--listen", &format!("127.0.0.1:{port}")])
            .args(["--admin", &format!("127.0.0.1:{}", port + 40)])
            .args(["--join", &format!("127.0.0.1:{}", self.port)])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(self.log(server))
            .spawn()
            .expect("areo starts");
        self.own.insert(server.to_owned(), child);
        port + 40
    }

    /// The log of a server that this test starts, which goes on at its end.
    fn log(&self, server: &str) -> File {
        let mut options = File::options();
        let file = options
            .create(true)
            .append(true)
            .open(self.logs.path().join(server));
        file.expect("there is room for a log")
    }

    /// The log of a server that this test started itself.
    pub(crate) fn own_log(&self, server: &str) -> String {
        std::fs::read_to_string(self.logs.path().join(server)).expect("it was started")
    }

    /// The options with which the library reaches it.
    pub(crate) fn options(&self) -> ConnectOptions {
        ConnectOptions::of(&self.file()).expect("`areo up` wrote it")
    }

    /// A number that `areo status` tells of a server.
    pub(crate) fn number(&self, server: &str, key: &str) -> Option<u64> {
        let lines = self.run(&["status", "--json"]).objects();
        let line = lines.iter().find(|line| line["server"] == server)?;
        line[key].as_u64()
    }

    /// Objects of a server that wait for repair.
    pub(crate) fn damaged(&self, server: &str) -> u64 {
        self.number(server, "damaged").expect("it answers")
    }

    /// The state of a server in `areo status`.
    pub(crate) fn state(&self, server: &str) -> String {
        let lines = self.run(&["status", "--json", "--timeout", "2s"]).objects();
        let line = lines.iter().find(|line| line["server"] == server);
        let state = line.map(|line| line["state"].as_str().expect("is text").to_owned());
        state.unwrap_or_default()
    }

    /// Interrupts `areo up` as Ctrl-C does, and waits for its end.
    pub(crate) fn stop(&mut self) -> CommandOutput {
        signal(self.up_pid(), Signal::INT);
        self.wait()
    }

    pub(crate) fn up_pid(&self) -> i32 {
        i32::try_from(self.up.id()).expect("process ids are small")
    }

    /// Waits until `areo up` ends.
    pub(crate) fn wait(&mut self) -> CommandOutput {
        let status = self.up.wait().expect("it is ours");
        CommandOutput {
            code: status.code().unwrap_or(-1),
            stdout: Vec::new(),
            stderr: self.errors().expect("waited for once"),
        }
    }

    /// All that `areo up` and its servers wrote on standard error, once they have ended; none if it was taken before.
    fn errors(&mut self) -> Option<String> {
        let errors = self.errors.take()?;
        let errors = errors.join().expect("the reader does not panic");
        secrets::check_printed(errors.as_bytes());
        Some(errors)
    }

    /// Fails if a secret is in something that was printed, or in a file that is not its own.
    fn check_secrets(&mut self) {
        leaks::learn_below(self.folder());
        self.errors();
        let printed = self.events().printed.clone();
        secrets::check_printed(printed.as_bytes());
        leaks::check_below(self.logs.path());
        leaks::check_below(self.folder());
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // A stopped process cannot end; servers end when `areo up` does.
        for pid in self.events().pids.values().filter(|pid| lives(**pid)) {
            signal(*pid, Signal::CONT);
        }
        self.own.values_mut().for_each(end);
        if self.up.try_wait().is_ok_and(|status| status.is_none()) {
            signal(self.up_pid(), Signal::INT);
            // Its exit code was asserted where it matters.
            let _ = self.up.wait();
        }
        if !thread::panicking() {
            self.check_secrets();
        }
    }
}

fn end(child: &mut Child) {
    // It may have ended by itself.
    let _ = child.kill();
    let _ = child.wait();
}

pub(crate) fn lives(pid: i32) -> bool {
    test_kill_process(Pid::from_raw(pid).expect("not 0")).is_ok()
}

fn listen(out: ChildStdout, events: &Mutex<Events>) {
    for line in BufReader::new(out).lines().map_while(Result::ok) {
        let event: Value = serde_json::from_str(&line).expect("every line is an object");
        let mut events = events.lock().expect("nobody panics with it");
        events.printed.push_str(&line);
        events.printed.push('\n');
        let server = || event["server"].as_str().expect("is text").to_owned();
        match event["event"].as_str() {
            Some("started") => {
                let pid = event["pid"].as_i64().expect("is a number");
                events
                    .pids
                    .insert(server(), i32::try_from(pid).expect("process ids are small"));
                *events.starts.entry(server()).or_default() += 1;
            }
            Some("ready") => events.ready = true,
            _ => {}
        }
    }
    events.lock().expect("nobody panics with it").ended = true;
}

fn collect(mut err: ChildStderr) -> String {
    let mut text = String::new();
    err.read_to_string(&mut text).expect("errors are text");
    text
}

/// The first of a block of ports for servers and their administration. Below the ports that systems give to outgoing
/// connections, and never the same twice in this process.
pub(crate) fn free_ports() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    const BLOCKS: u16 = 150;
    let begin = u16::try_from(std::process::id() % u32::from(BLOCKS)).expect("below the divisor");
    for _ in 0..BLOCKS {
        let block = (begin + NEXT.fetch_add(1, Ordering::Relaxed)) % BLOCKS;
        let first = 10_000 + block * 100 + (block / 75) * 400;
        let free = |port: u16| TcpListener::bind(("127.0.0.1", port)).is_ok();
        let servers = u16::try_from(SERVERS).expect("few");
        if (first..first + servers)
            .chain(first + 90..first + 90 + servers)
            .all(free)
        {
            return first;
        }
    }
    panic!("no free ports");
}
