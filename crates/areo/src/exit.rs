//! The end of a command: an exit code and, unless it is done, one sentence.

use areo_client::cluster_file::ClusterFileError;
use std::fmt;

pub use areo_telemetry::admin::plain;

/// Exit codes, the same for every command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Code {
    /// Anything without a code of its own: a local file, a failing disk.
    Other = 1,
    /// The command can never succeed as it is: a wrong flag, key, value or configuration.
    Usage = 2,
    /// The object, domain or server does not exist.
    NotFound = 3,
    /// A coverable or conditional write lost.
    Precondition = 4,
    /// No quorum in time; nothing was applied.
    Unavailable = 5,
    /// The caller is refused: it has no key, token or certificate that counts, or no grant for the request.
    Unauthorised = 6,
    /// Bytes that should be there are damaged.
    Corrupted = 7,
    /// No quorum acknowledged in time; the write may have been applied.
    Unknown = 8,
    /// The command was interrupted by a signal.
    Interrupted = 130,
    /// The reader of the output was gone before all of it was written. As a shell reports a program that SIGPIPE has ended.
    Closed = 141,
}

impl Code {
    /// The word for it in JSON.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Code::Other => "other",
            Code::Usage => "usage",
            Code::NotFound => "not-found",
            Code::Precondition => "precondition",
            Code::Unavailable => "unavailable",
            Code::Unauthorised => "unauthorised",
            Code::Corrupted => "corrupted",
            Code::Unknown => "unknown",
            Code::Interrupted => "interrupted",
            Code::Closed => "closed",
        }
    }
}

/// The reason why a command failed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failure {
    /// The exit code of the process.
    pub code: Code,
    /// One sentence: the action, its object, the missing part, the remedy. Empty: there is nothing to say.
    pub message: String,
}

/// The result of every command.
pub type Outcome<T = ()> = Result<T, Failure>;

impl Failure {
    /// A failure with this code and sentence.
    pub fn new(code: Code, message: impl Into<String>) -> Failure {
        let message = message.into();
        assert!(!message.is_empty(), "a failure says what happened");
        Failure { code, message }
    }

    /// Without a code of its own.
    pub fn other(message: impl Into<String>) -> Failure {
        Failure::new(Code::Other, message)
    }

    /// A failure of a request that can never succeed.
    pub fn usage(message: impl Into<String>) -> Failure {
        Failure::new(Code::Usage, message)
    }

    /// A failure of a local file: `what` and `path` make the sentence.
    pub fn file(what: &str, path: &std::path::Path, error: &std::io::Error) -> Failure {
        let path = path.display();
        Failure::other(format!("cannot {what} {path}: {}", plain(error)))
    }

    /// Several failures as one: all their sentences, under the code of the first. `None` if there is none.
    pub(crate) fn together(failures: Vec<Failure>) -> Option<Failure> {
        let code = failures.first()?.code;
        let sentences: Vec<String> = failures.into_iter().map(|one| one.message).collect();
        Some(Failure::new(code, sentences.join("; ")))
    }

    /// Ctrl-C: the shell knows why, so nothing is printed.
    pub(crate) fn interrupted() -> Failure {
        Failure {
            code: Code::Interrupted,
            message: String::new(),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl From<ClusterFileError> for Failure {
    fn from(error: ClusterFileError) -> Failure {
        Failure::usage(error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_those_of_the_manual() {
        let codes = [
            (Code::Other, 1),
            (Code::Usage, 2),
            (Code::NotFound, 3),
            (Code::Precondition, 4),
            (Code::Unavailable, 5),
            (Code::Unauthorised, 6),
            (Code::Corrupted, 7),
            (Code::Unknown, 8),
            (Code::Interrupted, 130),
            (Code::Closed, 141),
        ];
        for (code, number) in codes {
            assert_eq!(code as u8, number, "{}", code.word());
        }
    }

    #[test]
    fn several_failures_end_with_the_code_of_the_first() {
        assert_eq!(Failure::together(Vec::new()), None);
        let missing = Failure::new(Code::NotFound, "there is no 'a'");
        let away = Failure::new(Code::Unavailable, "no quorum");
        let both = Failure::together(vec![missing, away]).unwrap();
        assert_eq!(both.code, Code::NotFound);
        assert_eq!(both.message, "there is no 'a'; no quorum");
    }
}
