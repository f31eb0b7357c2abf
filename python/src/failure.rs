//! How an operation ends when it does not succeed, as an exception of `areo.errors`.

use crate::value::ToPython;
use areo_client::cluster_file::ClusterFileError;
use areo_client::{ConnectError, Error, InvalidMetadata, InvalidVersion, NoQuorum, StreamError};
use pyo3::prelude::*;

/// Why an operation did not succeed.
pub(crate) enum Failure {
    /// The store said so.
    Store(Error),
    /// No cluster was found.
    Connect(ConnectError),
    /// It makes no sense as it was asked for.
    Invalid {
        kind: &'static str,
        sentence: String,
    },
    /// Code of the caller raised.
    Python(PyErr),
}

impl Failure {
    pub(crate) fn invalid(sentence: impl Into<String>) -> Failure {
        Failure::Invalid {
            kind: "invalid",
            sentence: sentence.into(),
        }
    }

    pub(crate) fn forked() -> Failure {
        Failure::Invalid {
            kind: "forked",
            sentence: "this client was made before the process was forked, and works in the other process alone: connect in this one".into(),
        }
    }

    pub(crate) fn given_up() -> Failure {
        Failure::Invalid {
            kind: "given_up",
            sentence: "this operation or stream has ended, was given up, or is used by two callers at once".into(),
        }
    }

    /// The exception of `areo.errors` for this failure.
    pub(crate) fn raised(self, py: Python<'_>) -> PyErr {
        match self {
            Failure::Python(error) => error,
            Failure::Store(error) => {
                let raised = of_store(py, error);
                raised.unwrap_or_else(|failed| failed)
            }
            Failure::Connect(error) => {
                let (class, kind) = match error {
                    ConnectError::NoAddress | ConnectError::SeveralClusters { .. } => {
                        ("Invalid", "invalid")
                    }
                    ConnectError::NoServer { .. } => ("Unavailable", "unavailable"),
                    ConnectError::Unauthorised { .. } => ("Unauthorised", "unauthorised"),
                    // `Thread`, and what the library may come to tell apart.
                    _ => ("Error", "error"),
                };
                plain(py, class, kind, &error.to_string())
            }
            Failure::Invalid { kind, sentence } => plain(py, "Invalid", kind, &sentence),
        }
    }
}

/// An exception that is about no object.
fn plain(py: Python<'_>, class: &str, kind: &str, sentence: &str) -> PyErr {
    let about = About {
        class,
        kind,
        domain: None,
        key: None,
    };
    match about.exception(py, sentence) {
        Ok(exception) => PyErr::from_value(exception),
        Err(failed) => failed,
    }
}

/// The class of an exception, and what it is about.
struct About<'a> {
    class: &'a str,
    kind: &'a str,
    domain: Option<&'a str>,
    key: Option<&'a str>,
}

impl About<'_> {
    fn exception<'py>(&self, py: Python<'py>, sentence: &str) -> PyResult<Bound<'py, PyAny>> {
        let class = py.import("areo.errors")?.getattr(self.class)?;
        let exception = class.call1((sentence,))?;
        exception.setattr("kind", self.kind)?;
        exception.setattr("domain", self.domain)?;
        exception.setattr("key", self.key)?;
        Ok(exception)
    }
}

/// The class of an error of the store, and the object that it is about. The class is that of its kind in the interface of all libraries.
fn about(error: &Error) -> About<'_> {
    let (class, kind) = match error {
        Error::NotFound { .. } => ("NotFound", "not_found"),
        Error::Removed { .. } => ("NotFound", "removed"),
        Error::VersionConflict { .. } => ("VersionConflict", "version_conflict"),
        Error::Unavailable { .. } => ("Unavailable", "unavailable"),
        Error::Swept { .. } => ("Unavailable", "swept"),
        Error::Undecided { .. } => ("Unavailable", "undecided"),
        Error::Obstructed { call } if call.operation.writes() => ("Unavailable", "obstructed"),
        Error::Obstructed { .. } => ("Corrupted", "obstructed"),
        Error::Unknown { .. } => ("Unknown", "unknown"),
        Error::Corrupted { .. } => ("Corrupted", "corrupted"),
        Error::Unauthorised { .. } => ("Unauthorised", "unauthorised"),
        Error::Invalid { .. } => ("Invalid", "invalid"),
        // What the library may come to tell apart.
        _ => ("Error", "error"),
    };
    let (domain, key) = match error {
        Error::NotFound { domain, key } => (Some(domain.as_str()), key.as_deref()),
        Error::Removed { domain } | Error::Undecided { domain, .. } => {
            (Some(domain.as_str()), None)
        }
        Error::VersionConflict { domain, key, .. }
        | Error::Swept { domain, key }
        | Error::Corrupted { domain, key, .. } => (Some(domain.as_str()), Some(key.as_str())),
        Error::Unavailable { call }
        | Error::Unknown { call }
        | Error::Obstructed { call }
        | Error::Unauthorised { call } => of_call(call),
        _ => (None, None),
    };
    About {
        class,
        kind,
        domain,
        key,
    }
}

fn of_call(call: &NoQuorum) -> (Option<&str>, Option<&str>) {
    (call.domain.as_deref(), call.key.as_deref())
}

fn of_store(py: Python<'_>, error: Error) -> PyResult<PyErr> {
    let exception = about(&error).exception(py, &error.to_string())?;
    if let Error::VersionConflict {
        expected, latest, ..
    } = error
    {
        exception.setattr("expected", expected.map(|version| version.to_string()))?;
        let version = latest.as_ref().map(|object| object.version.to_string());
        exception.setattr("latest_version", version)?;
        // A large one comes without its content.
        let is_whole = |object: &areo_client::Object| {
            let bytes: usize = object.content.iter().map(bytes::Bytes::len).sum();
            bytes as u64 == object.length
        };
        if let Some(latest) = latest.filter(|object| is_whole(object)) {
            exception.setattr("latest", latest.to_python(py)?)?;
        }
    }
    Ok(PyErr::from_value(exception))
}

impl From<Failure> for PyErr {
    fn from(failure: Failure) -> PyErr {
        Python::attach(|py| failure.raised(py))
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::Store(error)
    }
}

impl From<ConnectError> for Failure {
    fn from(error: ConnectError) -> Failure {
        Failure::Connect(error)
    }
}

impl From<ClusterFileError> for Failure {
    fn from(error: ClusterFileError) -> Failure {
        Failure::invalid(error.to_string())
    }
}

impl From<InvalidVersion> for Failure {
    fn from(error: InvalidVersion) -> Failure {
        Failure::invalid(error.to_string())
    }
}

impl From<InvalidMetadata> for Failure {
    fn from(error: InvalidMetadata) -> Failure {
        Failure::invalid(error.to_string())
    }
}

impl From<StreamError> for Failure {
    fn from(error: StreamError) -> Failure {
        match error {
            StreamError::Store(error) => Failure::Store(error),
            StreamError::Local(error) => Failure::invalid(error.to_string()),
        }
    }
}
