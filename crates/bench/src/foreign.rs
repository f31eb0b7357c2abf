//! Server programs of other stores, started as processes.

use crate::process::ProcessGuard;
use crate::target::{TargetError, TargetName};
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

/// Lines of a log that are shown of a process that ended.
const LAST_LINES: usize = 3;

/// A program of another store.
#[derive(Clone, Copy, Debug)]
pub struct Foreign {
    pub target: TargetName,
    /// The program on the PATH.
    pub program: &'static str,
    /// The source of the program, as a part of a sentence.
    pub source: &'static str,
}

/// A running process; killed when this is dropped.
pub struct StartedProcess {
    running: ProcessGuard,
    foreign: Foreign,
}

impl Foreign {
    /// Starts the program; its output goes to a file of this name in the folder.
    ///
    /// # Errors
    /// [`TargetError::Missing`], [`TargetError::Start`].
    pub fn start(
        self,
        folder: &Path,
        name: &str,
        arguments: &[String],
    ) -> Result<StartedProcess, TargetError> {
        let mut command = Command::new(self.program);
        command.args(arguments);
        let log = folder.join(format!("{name}.log"));
        let started = ProcessGuard::start(command, &log, Stdio::null());
        let running = started.map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => TargetError::Missing {
                target: self.target,
                program: self.program,
                source: self.source,
            },
            _ => TargetError::Start {
                target: self.target,
                why: error.to_string(),
            },
        })?;
        Ok(StartedProcess {
            running,
            foreign: self,
        })
    }
}

impl StartedProcess {
    /// The id of the process.
    pub fn id(&self) -> u32 {
        self.running.id()
    }

    /// Checks that the process still runs.
    ///
    /// # Errors
    /// [`TargetError::Start`]: its exit status and its last lines of output.
    pub fn check(&mut self) -> Result<(), TargetError> {
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
            source: "a package",
        }
    }

    #[test]
    fn a_missing_program_is_named_with_its_source() {
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
        assert!(sentence.contains("a package"), "{sentence}");
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
