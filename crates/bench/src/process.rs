//! A process of a program that is measured or troubled.

use rustix::process::{Pid, Signal, kill_process};
use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

/// A running process, whose output goes to a log; killed when this is dropped.
pub(crate) struct ProcessGuard {
    child: Child,
    pub(crate) log: PathBuf,
}

impl ProcessGuard {
    /// Starts it. Ctrl-C is for this process, which ends it.
    pub(crate) fn start(
        mut command: Command,
        log: &Path,
        input: Stdio,
    ) -> io::Result<ProcessGuard> {
        let output = File::options().create(true).append(true).open(log)?;
        command.process_group(0).stdin(input);
        command.stdout(output.try_clone()?).stderr(output);
        Ok(ProcessGuard {
            child: command.spawn()?,
            log: log.into(),
        })
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// `false`: it could not be sent.
    pub(crate) fn signal(&self, signal: Signal) -> bool {
        let id = i32::try_from(self.id()).ok().and_then(Pid::from_raw);
        // No other process can have its id: it has not been waited for yet.
        id.is_some_and(|id| kill_process(id, signal).is_ok())
    }

    /// Exit status of the process; `None` if it still runs.
    pub(crate) fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().expect("it is our child")
    }
}

impl Drop for ProcessGuard {
    fn drop(&mut self) {
        // One that is gone already is as good.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_ends_with_its_owner() {
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new("sleep");
        command.arg("100");
        let started = ProcessGuard::start(command, &folder.path().join("log"), Stdio::null());
        let started = started.unwrap();
        let process = format!("/proc/{}", started.id());
        assert!(Path::new(&process).exists());
        drop(started);
        assert!(!Path::new(&process).exists());
    }
}
