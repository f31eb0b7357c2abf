//! A server program of others.

use super::{TargetError, TargetName};
use crate::process::Running;
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

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
    running: Running,
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
        let mut command = Command::new(self.program);
        command.args(arguments);
        let log = folder.join(format!("{name}.log"));
        let started = Running::start(command, &log, Stdio::null());
        let running = started.map_err(|error| match error.kind() {
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
            running,
            foreign: self,
        })
    }
}

impl Started {
    pub(super) fn id(&self) -> u32 {
        self.running.id()
    }

    /// That it still runs.
    ///
    /// # Errors
    /// How it ended, and what it said last.
    pub(super) fn check(&mut self) -> Result<(), TargetError> {
        let Some(status) = self.running.ended() else {
            return Ok(());
        };
        let said = std::fs::read_to_string(&self.running.log).unwrap_or_default();
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
        let sentence = loop {
            if let Err(error) = started.check() {
                break error.to_string();
            }
        };
        assert!(
            sentence.contains("exit status: 3 and said: the port is taken"),
            "{sentence}"
        );
    }
}
