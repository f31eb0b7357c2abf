//! The errors of a history as a text.

use crate::Kind;
use std::io;

/// A history that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("line {line}: {problem}")]
pub struct HistoryError {
    /// The line, from 1.
    pub line: u64,
    /// The problem of the line.
    #[source]
    pub problem: Problem,
}

/// The problem of a line.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    /// The line is no event: its JSON is broken, a field is missing, or it has the wrong type.
    #[error("not an event: {}, column {}", unplaced(.0), .0.column())]
    Json(#[from] serde_json::Error),
    /// It could not be read.
    #[error("cannot be read: {0}")]
    Io(#[from] io::Error),
    /// The client has already invoked an operation of this number.
    #[error("this client has already invoked an operation of this number")]
    InvokedTwice,
    /// The operation ends without having been invoked on an earlier line.
    #[error("the operation ends but no earlier line invokes it")]
    NeverInvoked,
    /// The operation has already ended.
    #[error("the operation has already ended")]
    EndedTwice,
    /// The end names another kind, domain or key than the invocation.
    #[error("the kind, domain or key is not that of the invocation")]
    OtherOperation,
    /// The time of the end is before the time of the invocation.
    #[error("the operation ends before the time of its invocation")]
    EndsBeforeInvoked,
    /// Invocations carry a value if and only if the operation writes one.
    #[error("the invocation of a {kind} {} a value", needs_or_carries(*.kind))]
    ValueOfInvocation {
        /// The kind of the operation.
        kind: Kind,
    },
    /// A coverable or conditional write, or a reconfiguration, succeeded without saying at which version.
    #[error("a {kind} that succeeds needs a version")]
    NoVersion {
        /// The kind of the operation.
        kind: Kind,
    },
    /// A write succeeded with a value that is not the one it was to write: had it lost, it would end with `fail`.
    #[error(
        "a write succeeds with a value that is not the one it was to write; a write that lost ends with \"fail\""
    )]
    OtherValue,
}

/// Its own position would say line 1: every line is parsed on its own.
fn unplaced(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let what = text
        .rsplit_once(" at line ")
        .map(|(what, _)| what.to_owned());
    what.unwrap_or(text)
}

fn needs_or_carries(kind: Kind) -> &'static str {
    match kind {
        Kind::Read | Kind::RegularRead | Kind::Delete => "carries",
        _ => "needs",
    }
}
