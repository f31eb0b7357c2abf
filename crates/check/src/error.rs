//! What can be wrong with a history as a text.

use crate::Kind;
use std::fmt;
use std::io;

/// A history that cannot be read.
#[derive(Debug)]
pub struct HistoryError {
    /// The line, from 1.
    pub line: u64,
    /// What is wrong with it.
    pub problem: Problem,
}

/// What is wrong with a line.
#[derive(Debug)]
pub enum Problem {
    /// The line is no event: its JSON is broken, a field is missing, or it has the wrong type.
    Json(serde_json::Error),
    /// It could not be read.
    Io(io::Error),
    /// The client has already invoked an operation of this number.
    InvokedTwice,
    /// The operation ends without having been invoked on an earlier line.
    NeverInvoked,
    /// The operation has already ended.
    EndedTwice,
    /// The end names another kind, domain or key than the invocation.
    OtherOperation,
    /// The time of the end is before the time of the invocation.
    EndsBeforeInvoked,
    /// Invocations carry a value if and only if the operation writes one.
    ValueOfInvocation {
        /// The kind of the operation.
        kind: Kind,
    },
    /// A coverable or conditional write, or a reconfiguration, succeeded without saying at which version.
    NoVersion {
        /// The kind of the operation.
        kind: Kind,
    },
    /// A write succeeded with a value that is not the one it was to write: had it lost, it would end with `fail`.
    OtherValue,
}

impl From<serde_json::Error> for Problem {
    fn from(error: serde_json::Error) -> Problem {
        Problem::Json(error)
    }
}

impl From<io::Error> for Problem {
    fn from(error: io::Error) -> Problem {
        Problem::Io(error)
    }
}

impl fmt::Display for HistoryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: ", self.line)?;
        match &self.problem {
            Problem::Json(error) => {
                // Its own position would say line 1: every line is parsed on its own.
                let text = error.to_string();
                let what = text.rsplit_once(" at line ").map_or(text.as_str(), |(what, _)| what);
                write!(f, "not an event: {what}, column {}", error.column())
            }
            Problem::Io(error) => write!(f, "cannot be read: {error}"),
            Problem::InvokedTwice => f.write_str("this client has already invoked an operation of this number"),
            Problem::NeverInvoked => f.write_str("the operation ends but no earlier line invokes it"),
            Problem::EndedTwice => f.write_str("the operation has already ended"),
            Problem::OtherOperation => f.write_str("the kind, domain or key is not that of the invocation"),
            Problem::EndsBeforeInvoked => f.write_str("the operation ends before the time of its invocation"),
            Problem::ValueOfInvocation {
                kind: kind @ (Kind::Read | Kind::RegularRead | Kind::Delete),
            } => write!(f, "the invocation of a {kind} carries a value"),
            Problem::ValueOfInvocation { kind } => write!(f, "the invocation of a {kind} needs a value"),
            Problem::NoVersion { kind } => write!(f, "a {kind} that succeeds needs a version"),
            Problem::OtherValue => f.write_str(
                "a write succeeds with a value that is not the one it was to write; a write that lost ends with \"fail\"",
            ),
        }
    }
}

impl std::error::Error for HistoryError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.problem {
            Problem::Json(error) => Some(error),
            Problem::Io(error) => Some(error),
            _ => None,
        }
    }
}
