//! One server process.

use super::{Place, Program};
use crate::error::{RunError, system};
use crate::process::ProcessGuard;
use areo_trust::key::AccessKey;
use rustix::process::Signal;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// The longest time that a server may take to say whether it is ready.
const ANSWER: Duration = Duration::from_secs(1);

pub(super) struct Process {
    pub(super) name: String,
    pub(super) place: Place,
    pub(super) log: PathBuf,
    pub(super) program: Program,
    arguments: Vec<String>,
    running: Option<ProcessGuard>,
}

/// All arguments of a server. It stops when its standard input ends; its starter holds the other end, and so stops it even by
/// dying.
pub(super) fn arguments(data: &Path, place: &Place, seeds: &str, memory: bool) -> Vec<String> {
    let data = data.to_str().expect("folders of ours are UTF-8");
    let named = [
        ("--data", data),
        ("--listen", &place.listen),
        ("--advertise", &place.advertise),
        ("--admin", &place.admin),
        ("--cluster", seeds),
        ("--durability", if memory { "memory" } else { "fsync" }),
        ("--config", ""),
    ];
    let mut arguments = vec!["server".to_owned(), "--supervised".to_owned()];
    for (name, value) in named
        .into_iter()
        .filter(|(name, value)| *name != "--cluster" || !value.is_empty())
    {
        arguments.extend([name.to_owned(), value.to_owned()]);
    }
    arguments
}

impl Process {
    pub(super) fn new(
        name: String,
        place: Place,
        program: Program,
        arguments: Vec<String>,
        log: PathBuf,
    ) -> Process {
        Process {
            name,
            place,
            log,
            program,
            arguments,
            running: None,
        }
    }

    /// Starts the process with these arguments beside its own, unless it runs.
    pub(super) fn start(&mut self, more: &[&str]) -> Result<(), RunError> {
        if self.running.is_none() {
            let mut command = self.command();
            command.args(more);
            let started = ProcessGuard::start(command, &self.log, Stdio::piped());
            self.running = Some(started.map_err(system(format!("start {}", self.name)))?);
        }
        Ok(())
    }

    fn command(&self) -> Command {
        let mut command = (self.program.server)();
        if let Some(namespace) = &self.place.namespace {
            let program = command;
            command = Command::new("ip");
            command
                .args(["netns", "exec", namespace])
                .arg(program.get_program());
            for (name, _) in program.get_envs() {
                command.env_remove(name);
            }
        }
        command.args(&self.arguments);
        command
    }

    pub(super) fn runs(&self) -> bool {
        self.running.is_some()
    }

    pub(super) fn id(&self) -> Option<u32> {
        self.running.as_ref().map(ProcessGuard::id)
    }

    /// `false`: it does not run.
    pub(super) fn signal(&self, signal: Signal) -> bool {
        let running = self.running.as_ref();
        running.is_some_and(|running| running.signal(signal))
    }

    /// Exit status of the process, if it has ended since the last call.
    pub(super) fn ended(&mut self) -> Option<ExitStatus> {
        let status = self.running.as_mut()?.ended()?;
        self.running = None;
        Some(status)
    }

    pub(super) async fn is_ready(&self) -> bool {
        let answer = self.admin("/health/ready").await;
        answer.is_some_and(|answer| answer.contains(" 200 "))
    }

    /// Answer of its admin port; `None` if none came in time.
    pub(super) async fn admin(&self, path: &str) -> Option<String> {
        ask(&self.place.admin, None, path).await
    }
}

/// The answer of an admin port to a caller with this key, or without one; `None`: none came in time.
pub(super) async fn ask(admin: &str, key: Option<&AccessKey>, path: &str) -> Option<String> {
    let ask = async {
        let mut stream = TcpStream::connect(admin).await?;
        let mut request = format!("GET {path} HTTP/1.0\r\n");
        if let Some(key) = key {
            let text = key.expose_text();
            request.push_str("Authorization: Bearer ");
            request.push_str(&text);
            request.push_str("\r\n");
        }
        request.push_str("\r\n");
        stream.write_all(request.as_bytes()).await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        io::Result::Ok(answer)
    };
    timeout(ANSWER, ask).await.ok()?.ok()
}
