//! Why a run could not be carried out.

use std::fmt;
use std::io;

/// The run could not be carried out, so that nothing is known.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The operating system refused something.
    #[error("cannot {what}: {source}")]
    System {
        /// The action that was tried.
        what: String,
        source: io::Error,
    },
    /// An action that has to succeed did not, as a sentence.
    #[error("{0}")]
    Failed(String),
}

pub(crate) fn failed<E: fmt::Display>(what: impl Into<String>) -> impl FnOnce(E) -> RunError {
    let what = what.into();
    move |error| RunError::Failed(format!("cannot {what}: {error}"))
}

pub(crate) fn system(what: impl Into<String>) -> impl FnOnce(io::Error) -> RunError {
    let what = what.into();
    move |source| RunError::System { what, source }
}
