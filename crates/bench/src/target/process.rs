//! A server program of others.

use super::{TargetError, TargetName};
use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Lines of a log that are shown of a process that ended.
const LAST_LINES: usize = 3;

/// A program that is started, and the package of Debian that has it.
#[derive(Clone, Copy)]
pub(super) struct Foreign {
    pub(super) target: TargetName,
    pub(super) program: &'static str,
    pub(super) package: &'static str,
}

/// A running process; killed when this is dropped.
pub(super) struct Started {
    child: Child,
    log: PathBuf,
    foreign: Foreign,
}

impl Foreign {
    /// Starts it with what it says in a file of the folder.
    pub(super) fn start(
        self,
        folder: &Path,
        name: &str,
        arguments: &[String],
    ) -> Result<Started, TargetError> {
        let log = folder.join(format!("{name}.log"));
        let started = self.spawn(&log, arguments);
        let child = started.map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => TargetError::Missing {
                target: self.target,
                program: self.program,
                package: self.package,
            },
            _ => TargetError::Start {
                target: self.target,
                why: error.to_string(),
            },
        })?;
        Ok(Started {
            child,
            log,
            foreign: self,
        })
    }

    fn spawn(self, log: &Path, arguments: &[String]) -> io::Result<Child> {
        let log = File::create(log)?;
        // Ctrl-C is for the measurement, which ends them.
        Command::new(self.program)
            .args(arguments)
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
    }
}

impl Started {
    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }

    /// That it still runs.
    ///
    /// # Errors
    /// How it ended, and what it said last.
    pub(super) fn check(&mut self) -> Result<(), TargetError> {
        let ended = self.child.try_wait().expect("it is our child");
        let Some(status) = ended else { return Ok(()) };
        let said = std::fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = said.lines().filter(|line| !line.is_empty()).collect();
        let last = &lines[lines.len().saturating_sub(LAST_LINES)..];
        Err(TargetError::Start {
            target: self.foreign.target,
            why: format!(
                "'{}' ended with {status} and said: {}",
                self.foreign.program,
                last.join(" / ")
            ),
        })
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        // One that is gone already is as good.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn foreign(program: &'static str) -> Foreign {
        Foreign {
            target: TargetName::Etcd,
            program,
            package: "etcd-server",
        }
    }

    #[test]
    fn a_program_that_is_missing_is_named_with_its_package() {
        let folder = tempfile::tempdir().unwrap();
        let missing = foreign("no-such-program-of-anybody");
        let error = missing
            .start(folder.path(), "a", &[])
            .map(drop)
            .unwrap_err();
        let sentence = error.to_string();
        assert!(
            sentence.contains("'no-such-program-of-anybody' on the PATH"),
            "{sentence}"
        );
        assert!(sentence.contains("etcd-server"), "{sentence}");
    }

    #[test]
    fn what_a_program_said_before_it_ended_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let arguments = ["-c".to_owned(), "echo the port is taken; exit 3".to_owned()];
        let mut started = foreign("sh").start(folder.path(), "a", &arguments).unwrap();
        started.child.wait().unwrap();
        let sentence = started.check().unwrap_err().to_string();
        assert!(
            sentence.contains("exit status: 3 and said: the port is taken"),
            "{sentence}"
        );
    }

    #[test]
    fn a_process_ends_with_its_owner() {
        let folder = tempfile::tempdir().unwrap();
        let started = foreign("sleep").start(folder.path(), "a", &["100".into()]);
        let started = started.unwrap();
        let process = format!("/proc/{}", started.id());
        assert!(Path::new(&process).exists());
        drop(started);
        assert!(!Path::new(&process).exists());
    }
}
