//! One server process.

use super::{ClusterError, Place, Program};
use rustix::process::{Pid, Signal, kill_process};
use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// How long a server may take to say whether it is ready.
const ANSWER: Duration = Duration::from_secs(1);

pub(super) struct Process {
    pub(super) name: String,
    pub(super) place: Place,
    pub(super) log: PathBuf,
    program: Program,
    arguments: Vec<String>,
    child: Option<Child>,
}

/// Everything that a server is told. It stops when its standard input ends, which its starter holds, however that ends.
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
    // In a namespace of its own it is reached from outside of it, and from nowhere else.
    arguments.extend(place.namespace.iter().map(|_| "--insecure".to_owned()));
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
            child: None,
        }
    }

    pub(super) fn start(&mut self) -> Result<(), ClusterError> {
        if self.child.is_some() {
            return Ok(());
        }
        let child = self.spawn().map_err(|source| ClusterError::System {
            what: format!("start {}", self.name),
            source,
        })?;
        self.child = Some(child);
        Ok(())
    }

    fn spawn(&self) -> io::Result<Child> {
        let log = File::options().create(true).append(true).open(&self.log)?;
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
            // As the program's own command has it.
            command.process_group(0);
        }
        command
            .args(&self.arguments)
            .stdin(Stdio::piped())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
    }

    pub(super) fn runs(&self) -> bool {
        self.child.is_some()
    }

    pub(super) fn id(&self) -> Option<u32> {
        self.child.as_ref().map(Child::id)
    }

    /// `false`: it does not run.
    pub(super) fn signal(&self, signal: Signal) -> bool {
        let id = self
            .id()
            .and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        // Nobody else can have its id: it has not been waited for yet.
        id.is_some_and(|id| kill_process(id, signal).is_ok())
    }

    /// How it ended, if it has since this was asked last.
    pub(super) fn ended(&mut self) -> Option<ExitStatus> {
        let status = self.child.as_mut()?.try_wait().expect("it is our child")?;
        self.child = None;
        Some(status)
    }

    pub(super) async fn is_ready(&self) -> bool {
        let ask = async {
            let mut stream = TcpStream::connect(&self.place.admin).await?;
            stream
                .write_all(b"GET /health/ready HTTP/1.0\r\n\r\n")
                .await?;
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await?;
            io::Result::Ok(answer)
        };
        let answer = timeout(ANSWER, ask).await;
        answer.is_ok_and(|answer| answer.is_ok_and(|answer| answer.contains(" 200 ")))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            // One that is gone already is as good.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
