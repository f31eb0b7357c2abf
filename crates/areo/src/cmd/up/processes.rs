//! The server processes of `areo up`: started, watched, stopped.

mod ending;

use super::data::{Absent, Cluster, no_restart};
use super::plan::Plan;
use crate::args::LogWord;
use crate::cmd::server::{REPAIR_RATE, SCRUB_RATE};
use crate::exit::{Failure, Outcome, plain};
use crate::output::{Output, say};
use crate::program::{self, Program};
use areo_client::cluster_file::Server;
use areo_client::units::exact_size;
use areo_server::StopSignals;
use ending::{indented, last_lines, told};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::process::{ExitStatus, Stdio};
use std::task::Poll;
use std::time::Duration;
use tokio::process::{Child, ChildStdin, Command};
use tokio::time::{Instant, sleep_until, timeout};

const LOG: &str = "server.log";
/// The name of the gateway for S3, and of its directory.
const GATEWAY: &str = "gateway";
/// A log that is larger when its server starts makes room for a new one, and replaces the one before it.
const LOG_BYTES: u64 = 16 << 20;
/// The longest time for servers to stop: they drain for 5 s at most.
const STOP: Duration = Duration::from_secs(10);
/// Pauses before a server is started again: the first, and the longest.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(30));
/// Running time after which the first pause before a restart applies again.
const STEADY: Duration = Duration::from_mins(1);

/// All servers of the cluster.
pub(super) struct Processes {
    servers: Vec<Process>,
    restart: bool,
    program: Program,
    out: Output,
}

struct Process {
    name: String,
    directory: PathBuf,
    arguments: Vec<String>,
    state: State,
    pause: Duration,
    /// It is the gateway for S3, and no server.
    is_gateway: bool,
}

enum State {
    Running {
        child: Box<Child>,
        /// Closed when `areo up` ends, however it does; then the server drains.
        _lifeline: Option<ChildStdin>,
        since: Instant,
    },
    /// It is started again at this time.
    Waiting(Instant),
    Dead,
}

impl Processes {
    /// Starts every server whose directory can be used. Names the others with the reason.
    pub(super) fn start(plan: &Plan, cluster: &Cluster, out: Output) -> Outcome<Processes> {
        if plan.restart && cluster.file.memory() {
            return Err(no_restart());
        }
        let program = Program::of_this_process();
        let program = program
            .map_err(|error| Failure::other(format!("cannot start servers: {}", plain(&error))))?;
        let (mut servers, mut failures) = (Vec::new(), Vec::new());
        for server in &cluster.file.servers {
            if let Some(Absent { name, why }) = cluster.absent(&server.name) {
                say_event(out, &json!({ "event": "down", "server": name, "why": why }));
                say(&format!("{name} stays down: {why}"));
                continue;
            }
            let directory = cluster.directory(server);
            let mut process = Process {
                name: server.name.clone(),
                arguments: arguments(plan, cluster, server, &directory, out),
                directory,
                state: State::Dead,
                pause: BACKOFF.0,
                is_gateway: false,
            };
            if let Err(failure) = process.spawn(&program, out) {
                say(&failure.message);
                if plan.restart {
                    process.state = State::Waiting(Instant::now() + process.pause);
                }
                failures.push(failure);
            }
            servers.push(process);
        }
        match failures.pop() {
            Some(failure) if !servers.iter().any(Process::is_running) => Err(failure),
            _ => Ok(Processes {
                servers,
                restart: plan.restart,
                program,
                out,
            }),
        }
    }

    /// Starts the gateway for S3 beside the servers.
    ///
    /// # Errors
    /// It cannot be started.
    pub(super) fn start_gateway(
        &mut self,
        plan: &Plan,
        cluster: &Cluster,
        listen: &str,
    ) -> Outcome {
        let directory = plan.data.join(GATEWAY);
        std::fs::create_dir_all(&directory)
            .map_err(|error| Failure::file("make", &directory, &error))?;
        let file = cluster.path.display().to_string();
        let arguments = gateway_arguments(&file, listen, self.out);
        let mut process = Process {
            name: GATEWAY.into(),
            directory,
            arguments,
            state: State::Dead,
            pause: BACKOFF.0,
            is_gateway: true,
        };
        process.spawn(&self.program, self.out)?;
        self.servers.push(process);
        Ok(())
    }

    /// The process id of a server that runs.
    pub(super) fn pid(&self, name: &str) -> Option<u32> {
        let process = self.servers.iter().find(|process| process.name == name)?;
        match &process.state {
            State::Running { child, .. } => child.id(),
            _ => None,
        }
    }

    /// Reports servers that die, starts them again if that was asked for; returns when none is left.
    pub(super) async fn supervise(&mut self) -> Outcome {
        loop {
            let waiting = self
                .servers
                .iter()
                .filter_map(|process| match process.state {
                    State::Waiting(until) => Some(until),
                    _ => None,
                });
            let next_start = waiting.min();
            let mut servers = self.servers.iter().filter(|process| !process.is_gateway);
            if next_start.is_none() && !servers.any(Process::is_running) {
                return Err(Failure::other("no server is left"));
            }
            tokio::select! {
                (position, status) = exited(&mut self.servers) => self.died(position, status),
                () = until(next_start) => self.start_due(),
            }
        }
    }

    fn died(&mut self, position: usize, status: io::Result<ExitStatus>) {
        let process = &mut self.servers[position];
        let ran = match process.state {
            State::Running { since, .. } => since.elapsed(),
            _ => Duration::ZERO,
        };
        let name = process.name.clone();
        // A server says so of a directory or of options with which no other start does better: of one that was forgotten, or of a copy.
        let is_final = matches!(&status, Ok(status) if matches!(status.code(), Some(2 | 7)));
        let (told, log) = (told(status), process.directory.join(LOG));
        process.state = State::Dead;
        if self.restart {
            process.pause = if ran >= STEADY {
                BACKOFF.0
            } else {
                process.pause
            };
            process.state = State::Waiting(Instant::now() + process.pause);
        }
        let pause = process.pause;
        process.pause = (process.pause * 2).min(BACKOFF.1);
        let servers = || self.servers.iter().filter(|process| !process.is_gateway);
        let left = servers().filter(|p| p.is_running()).count();
        let all = servers().count();
        let then = match self.restart {
            true => format!("it is started again in {:.1} s", pause.as_secs_f64()),
            false => format!(
                "{left} of {all} servers run on{}",
                match is_final {
                    true => "",
                    false => ", and `areo up --restart` would start it again",
                }
            ),
        };
        let lines = last_lines(&log);
        let event = json!({ "event": "died", "server": name, "how": told });
        say_event(self.out, &event);
        let head = format!("{name} {told}; {then}; the end of {}:", log.display());
        say(&format!("{head}\n{}", indented(&lines)));
    }

    fn start_due(&mut self) {
        for process in &mut self.servers {
            let due = matches!(process.state, State::Waiting(until) if until <= Instant::now());
            if !due {
                continue;
            }
            match process.spawn(&self.program, self.out) {
                Ok(()) => self.out.note(&format!("{} is started again", process.name)),
                Err(failure) => {
                    say(&failure.message);
                    process.state = State::Waiting(Instant::now() + process.pause);
                    process.pause = (process.pause * 2).min(BACKOFF.1);
                }
            }
        }
    }

    /// Tells all servers to stop and waits until they have. A second Ctrl-C waits no longer.
    pub(super) async fn stop(mut self, again: &mut StopSignals) -> Outcome {
        for process in &self.servers {
            process.signal(Signal::TERM);
        }
        let all_exited = async {
            while self.servers.iter().any(Process::is_running) {
                let (position, _) = exited(&mut self.servers).await;
                self.servers[position].state = State::Dead;
            }
        };
        tokio::select! {
            stopped = timeout(STOP, all_exited) => if stopped.is_ok() { return Ok(()) },
            () = again.next() => {}
        }
        let left: Vec<&Process> = self.servers.iter().filter(|p| p.is_running()).collect();
        for process in &left {
            process.signal(Signal::KILL);
        }
        let names: Vec<&str> = left.iter().map(|process| process.name.as_str()).collect();
        Err(Failure::other(format!(
            "{} did not stop in time and was killed: what it acknowledged is safe",
            names.join(", ")
        )))
    }
}

impl Process {
    fn is_running(&self) -> bool {
        matches!(self.state, State::Running { .. })
    }

    fn spawn(&mut self, program: &Program, out: Output) -> Outcome {
        let log = self.directory.join(LOG);
        let failed = |error: &io::Error| {
            let name = &self.name;
            Failure::other(format!("cannot start {name}: {}", plain(error)))
        };
        if log.metadata().is_ok_and(|log| log.len() > LOG_BYTES) {
            let before = self.directory.join("server.log.before");
            std::fs::rename(&log, before).map_err(|e| failed(&e))?;
        }
        let mut options = File::options();
        let log = options
            .create(true)
            .append(true)
            .open(&log)
            .map_err(|e| failed(&e))?;
        let errors = log.try_clone().map_err(|e| failed(&e))?;
        let mut command = Command::from(program::server(program.path()));
        command
            .args(&self.arguments)
            .stdin(Stdio::piped())
            .stdout(log)
            .stderr(errors)
            .kill_on_drop(true);
        let mut child = command.spawn().map_err(|e| failed(&e))?;
        let name = &self.name;
        say_event(
            out,
            &json!({ "event": "started", "server": name, "pid": child.id() }),
        );
        // Waiting for a child closes its standard input, so it is kept apart.
        let lifeline = child.stdin.take();
        let since = Instant::now();
        self.state = State::Running {
            child: Box::new(child),
            _lifeline: lifeline,
            since,
        };
        Ok(())
    }

    fn signal(&self, signal: Signal) {
        let State::Running { child, .. } = &self.state else {
            return;
        };
        // Has no id once it was waited for, so that another process cannot be meant.
        let id = child
            .id()
            .and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        if let Some(id) = id {
            // Fails only if it has ended by itself.
            let _ = kill_process(id, signal);
        }
    }
}

/// Waits for the first server to exit; safe to drop.
async fn exited(servers: &mut [Process]) -> (usize, io::Result<ExitStatus>) {
    std::future::poll_fn(|context| {
        for (position, process) in servers.iter_mut().enumerate() {
            let State::Running { child, .. } = &mut process.state else {
                continue;
            };
            if let Poll::Ready(status) = pin!(child.wait()).poll(context) {
                return Poll::Ready((position, status));
            }
        }
        Poll::Pending
    })
    .await
}

/// An event for programs. The reader of the output may be gone, or read no further; the servers go on.
fn say_event(out: Output, event: &serde_json::Value) {
    if out.json {
        let _: Outcome = out.object(event);
    }
}

async fn until(instant: Option<Instant>) {
    match instant {
        Some(instant) => sleep_until(instant).await,
        None => std::future::pending().await,
    }
}

fn arguments(
    plan: &Plan,
    cluster: &Cluster,
    server: &Server,
    directory: &Path,
    out: Output,
) -> Vec<String> {
    let text = |path: &Path| path.to_str().map(str::to_owned);
    let durability = &cluster.file.durability;
    let log = match plan.log {
        LogWord::Text => "text",
        LogWord::Json => "json",
    };
    let max_object = exact_size(cluster.file.max_object);
    let repair_rate = exact_size(plan.repair_rate.unwrap_or(REPAIR_RATE));
    let scrub_rate = exact_size(plan.scrub_rate.unwrap_or(SCRUB_RATE));
    let (data, file) = (text(directory), text(&cluster.path));
    let named = [
        (
            "--data",
            data.as_deref().expect("checked when the plan was made"),
        ),
        (
            "--cluster",
            file.as_deref().expect("checked when the plan was made"),
        ),
        ("--listen", &server.address),
        ("--admin", &server.admin),
        ("--durability", durability),
        ("--max-object", &max_object),
        ("--repair-rate", &repair_rate),
        ("--scrub-rate", &scrub_rate),
        ("--log", log),
        ("--config", ""),
    ];
    let mut arguments = vec!["server".to_owned(), "--supervised".to_owned()];
    arguments.extend(
        named
            .iter()
            .flat_map(|(name, value)| [(*name).to_owned(), (*value).to_owned()]),
    );
    arguments.extend(verbosity(out));
    arguments
}

fn verbosity(out: Output) -> impl Iterator<Item = String> {
    (0..out.verbose).map(|_| "-v".to_owned())
}

/// The arguments of the gateway for this cluster file. It logs as much as servers do.
fn gateway_arguments(file: &str, listen: &str, out: Output) -> Vec<String> {
    let words = ["--cluster", file, "s3", "--listen", listen, "--supervised"];
    words
        .into_iter()
        .map(str::to_owned)
        .chain(verbosity(out))
        .collect()
}

/// The end of a process, in words.
#[cfg(test)]
mod tests {
    use super::*;
    use crate::cmd::up::plan::tests::plan;
    use areo_client::cluster_file::ClusterFile;
    use std::os::unix::process::ExitStatusExt;

    const OUT: Output = Output {
        verbose: 2,
        ..Output::QUIET
    };

    #[test]
    fn the_arguments_of_a_server_are_understood() {
        use clap::Parser;
        let server = Server {
            name: "s1".into(),
            id: 1,
            address: "127.0.0.1:7400".into(),
            admin: "127.0.0.1:7490".into(),
        };
        let cluster = Cluster {
            path: "data/cluster.toml".into(),
            file: ClusterFile::new(1, true, 5 << 20, vec![server.clone()]),
            absent: Vec::new(),
            new: true,
        };
        let directory = cluster.directory(&server);
        let arguments = arguments(&plan("data"), &cluster, &server, &directory, OUT);
        let cli = crate::args::Cli::try_parse_from(["areo".to_owned()].iter().chain(&arguments));
        let cli = cli.expect("understood");
        let crate::args::Command::Server(parsed) = cli.command else {
            panic!("a server is started");
        };
        assert!(parsed.supervised && !parsed.init && parsed.join.is_empty());
        assert_eq!(parsed.data.as_deref(), Some(Path::new("data/s1")));
        assert_eq!(parsed.max_object, Some(5 << 20));
        assert_eq!(parsed.repair_rate, Some(32 << 20));
        assert_eq!(parsed.scrub_rate, Some(1280 << 10));
        assert_eq!(parsed.durability, Some(crate::args::DurabilityWord::Memory));
        assert_eq!(cli.global.cluster.as_deref(), Some("data/cluster.toml"));
        assert_eq!(
            cli.global.common.config.as_deref(),
            Some(Path::new("")),
            "no file of the user"
        );
        assert_eq!(cli.global.common.verbose, 2);
    }

    /// The gateway logged nothing of its requests, however often `-v` was given.
    #[test]
    fn the_gateway_logs_as_much_as_servers() {
        use clap::Parser;
        let arguments = gateway_arguments("data/cluster.toml", "127.0.0.1:7480", OUT);
        let cli = crate::args::Cli::try_parse_from(["areo".to_owned()].iter().chain(&arguments));
        let cli = cli.expect("understood");
        let crate::args::Command::S3(parsed) = cli.command else {
            panic!("a gateway is started");
        };
        assert!(parsed.supervised);
        assert_eq!(parsed.listen.as_deref(), Some("127.0.0.1:7480"));
        assert_eq!(cli.global.common.verbose, 2);
    }

    #[test]
    fn endings_are_told() {
        assert_eq!(
            told(Ok(ExitStatus::from_raw(7 << 8))),
            "ended with exit code 7"
        );
        assert_eq!(told(Ok(ExitStatus::from_raw(9))), "was ended by signal 9");
        let failed = told(Err(io::Error::other("No")));
        assert_eq!(failed, "cannot be watched: no");
    }

    #[test]
    fn the_end_of_a_log_is_short() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        assert_eq!(indented(&last_lines(&log)), "    (empty)");
        let lines: Vec<String> = (0..2000).map(|i| format!("line {i}")).collect();
        std::fs::write(&log, lines.join("\n")).unwrap();
        assert_eq!(last_lines(&log), lines[1995..]);
        std::fs::write(&log, "one\ntwo\n").unwrap();
        assert_eq!(indented(&last_lines(&log)), "    one\n    two");
    }
}
