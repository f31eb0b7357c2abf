//! The errors of operations.

use crate::object::Object;
use crate::operation::Operation;
use crate::shape::Shape;
use areo_core::config::{Configuration, ServerId};
use areo_core::error::{AnswerCount, DeciderError, Response, Unavailable};
use areo_core::message::Refusal;
use areo_core::span::ErrorType;
use areo_core::tag::Tag as Version;
use std::fmt;
use std::time::Duration;

mod damage;
mod invalid;
mod obstacle;
#[cfg(test)]
mod tests;

pub use damage::Damage;
pub use invalid::Invalid;
pub use obstacle::{ForkBranch, LostObject, Obstacle};

/// An operation that did not succeed. A program tells the variants apart; their fields and their `Display` say what happened.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// There is no such domain, or no such object in it (never written, or deleted).
    NotFound {
        /// Name of the missing domain, or of the object's domain.
        domain: String,
        /// The object's key; `None`: it is the domain that does not exist.
        key: Option<String>,
    },
    /// The domain is being removed, or was removed after this client found it. A removal that has begun cannot be taken back:
    /// [`Client::remove_domain`](crate::Client::remove_domain) finishes one that was interrupted.
    Removed {
        /// Name of the removed domain.
        domain: String,
    },
    /// A coverable write found another version than the one that it was to replace, and wrote nothing. Or a value in
    /// blocks was overwritten while it was read, and the rest of its blocks is gone.
    VersionConflict {
        /// Name of the object's domain.
        domain: String,
        /// Key of the object.
        key: String,
        /// The version that was to be replaced, or was read; `None`: there was to be no object.
        expected: Option<Version>,
        /// The newest version, of a large object without its content; `None`: there is no such object.
        latest: Option<Box<Object>>,
    },
    /// No quorum in time, and nothing was written.
    Unavailable {
        /// The call, and the response of each server.
        call: Box<NoQuorum>,
    },
    /// No quorum acknowledged the write in time, but some server was sent it: it may have been applied, or be applied
    /// later. Reading the object tells; putting the same value again is safe.
    Unknown {
        /// The call, and the response of each server.
        call: Box<NoQuorum>,
    },
    /// A sweep removed the blocks of a large value while it was written, because the write took too long or made no
    /// progress. Nothing was written.
    Swept {
        /// Name of the object's domain.
        domain: String,
        /// Key of the object that was to be written.
        key: String,
    },
    /// The stored object is damaged, so that nothing can be returned. Wrong bytes never are.
    Corrupted {
        /// Name of the object's domain.
        domain: String,
        /// Key of the damaged object.
        key: String,
        /// The part that is damaged.
        damage: Box<Damage>,
    },
    /// The service outside, which is to decide which configuration of the domain comes next, did not. No server has heard of
    /// the change, and reads and writes go on.
    Undecided {
        /// Name of the domain that was to be changed.
        domain: String,
        /// The service and its error, and whether the service was asked. If it was, it may decide all the same, and
        /// the next client that changes the domain makes this change first.
        undecided: Box<DeciderError>,
    },
    /// Nothing was written, and the operation cannot succeed as things are: [`NoQuorum::obstacle`] says why.
    Obstructed {
        /// The call, and the response of each server.
        call: Box<NoQuorum>,
    },
    /// Servers refused this client.
    Unauthorised {
        /// The call, and the response of each server.
        call: Box<NoQuorum>,
    },
    /// The operation makes no sense as it was asked for; no server was asked.
    Invalid {
        /// The reason why the operation is refused.
        reason: Invalid,
    },
}

/// A quorum call that was not decided in time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoQuorum {
    /// The operation that made the call.
    pub operation: Operation,
    /// The domain that the servers were asked about; `None` is the root domain.
    pub domain: Option<String>,
    /// The object's key, if it was about one.
    pub key: Option<String>,
    /// Index of the configuration in the domain's sequence.
    pub configuration: u32,
    /// Shape of the configuration.
    pub shape: Shape,
    /// Answers that would have been enough.
    pub needed: usize,
    /// The response of each server, in the order of the member list.
    pub servers: Vec<ServerOutcome>,
    /// The time that the operation waited.
    pub waited: Duration,
    /// The obstacle that ended it, if it was not for want of answers.
    pub obstacle: Option<Obstacle>,
    /// The sentence with which a server refused this client, if one did: the grant that its key lacks.
    pub unauthorised: Option<String>,
}

/// The response of one server to one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerOutcome {
    /// Id of the server.
    pub id: ServerId,
    /// Its name; the beginning of its id if the directory does not know it.
    pub name: String,
    /// The server's response, or its absence.
    pub response: Response,
    /// The error of the last attempt to connect to an unreachable server, if it is known.
    pub reason: Option<String>,
}

/// Errors of operations that end for want of a quorum.
impl NoQuorum {
    /// A call of an operation on the root domain that failed. `latest`: the configuration that was asked, if the failure
    /// names no other. `describe` gives a server its name and the reason why it cannot be reached.
    pub(crate) fn of(
        operation: Operation,
        latest: &Configuration,
        failed: &Unavailable,
        describe: impl Fn(ServerId) -> (String, Option<String>),
    ) -> NoQuorum {
        let servers = failed.servers.iter().map(|(id, response)| {
            let (name, reason) = describe(*id);
            let reason = reason.filter(|_| *response == Response::Unreachable);
            ServerOutcome {
                id: *id,
                name,
                response: *response,
                reason,
            }
        });
        // It may be another one than the last that the client knows: a pending one, for instance.
        let asked = failed.configuration.as_deref().unwrap_or(latest);
        let obstacle = failed.obstacle.as_deref();
        NoQuorum {
            operation,
            domain: None,
            key: None,
            configuration: asked.id().index,
            shape: Shape::of(asked),
            needed: failed.needed,
            servers: servers.collect(),
            waited: failed.waited,
            obstacle: obstacle.map(|obstacle| Obstacle::of(obstacle, &describe)),
            unauthorised: None,
        }
    }

    /// The error, if the call had no effect.
    pub(crate) fn not_applied(self: Box<NoQuorum>) -> Error {
        if let (Some(domain), Some(key), Some(Obstacle::Lost { objects })) =
            (&self.domain, &self.key, &self.obstacle)
            && !self.operation.writes()
        {
            let (domain, key) = (domain.clone(), key.clone());
            let object = objects.first().expect("something is lost").clone();
            let damage = Box::new(Damage::Lost { object, call: self });
            return Error::Corrupted {
                domain,
                key,
                damage,
            };
        }
        if self.obstacle.is_some() {
            return Error::Obstructed { call: self };
        }
        if self.refused(Refusal::Unauthorised) > 0 {
            return Error::Unauthorised { call: self };
        }
        if let Some(removed) = self.removed() {
            return removed;
        }
        // With the damaged ones there would have been a quorum: damage is why there is none. A write leaves it at
        // "nothing was written", which is what its caller has to know.
        let damaged = self.refused(Refusal::Damaged);
        // Others need not have answered if no quorum could come.
        let others = self.servers.len() - damaged;
        let is_damaged =
            damaged > 0 && (self.answered() + damaged >= self.needed || others < self.needed);
        match (&self.domain, &self.key) {
            (Some(domain), Some(key)) if !self.operation.writes() && is_damaged => {
                Error::Corrupted {
                    domain: domain.clone(),
                    key: key.clone(),
                    damage: Box::new(Damage::Servers { call: self }),
                }
            }
            _ => Error::Unavailable { call: self },
        }
    }

    /// The error of a write that some server was sent.
    pub(crate) fn unknown(self: Box<NoQuorum>) -> Error {
        assert!(
            self.operation.writes(),
            "reads have no effect to wonder about"
        );
        // All servers judge a key by the same grants.
        if self.refused(Refusal::Unauthorised) > 0 && self.answered() == 0 {
            return Error::Unauthorised { call: self };
        }
        // What it wrote goes with the domain, whether it was written or not.
        self.removed().unwrap_or(Error::Unknown { call: self })
    }

    /// The error, if a server refused because nothing of the domain is left.
    fn removed(&self) -> Option<Error> {
        let domain = self.domain.clone();
        let removed = self.refused(Refusal::Removed) > 0;
        domain
            .filter(|_| removed)
            .map(|domain| Error::Removed { domain })
    }

    /// Servers that refused for this reason.
    fn refused(&self, refusal: Refusal) -> usize {
        let refused = Response::Refused(refusal);
        let servers = self.servers.iter();
        servers.filter(|server| server.response == refused).count()
    }

    /// Objects that cannot be read any more, if that ended the operation.
    pub fn lost_objects(&self) -> &[LostObject] {
        match &self.obstacle {
            Some(Obstacle::Lost { objects }) => objects,
            _ => &[],
        }
    }

    /// The response of each server, in parentheses.
    fn servers(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, server) in self.servers.iter().enumerate() {
            let before = if position == 0 { " (" } else { ", " };
            write!(f, "{before}{} {server}", server.name)?;
        }
        f.write_str(if self.servers.is_empty() { "" } else { ")" })
    }

    /// Number of servers that answered.
    pub fn answered(&self) -> usize {
        self.count().answered
    }

    fn count(&self) -> AnswerCount {
        let responses = self.servers.iter().map(|server| server.response);
        AnswerCount::of(responses, self.needed)
    }

    fn obstructed(&self, f: &mut fmt::Formatter<'_>, obstacle: &Obstacle) -> fmt::Result {
        if let Some(key) = &self.key {
            write!(f, "'{key}' in ")?;
        }
        match &self.domain {
            Some(domain) => write!(f, "'{domain}': {obstacle}"),
            None => write!(f, "the root domain: {obstacle}"),
        }
    }
}

/// The outcome in a few words, such as `ok`, `refused`, `timed out`, `not waited for` and `disk full`.
impl fmt::Display for ServerOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.response, self.reason.as_deref()) {
            (Response::Unreachable, Some("connection refused")) => f.write_str("refused"),
            (Response::Unreachable, Some(reason)) => f.write_str(reason),
            (response, _) => response.fmt(f),
        }
    }
}

/// `no quorum for 'photos' (configuration 3, ec [5,3]): 2 of 4 needed servers answered in 10 s (s1 ok, ...)`.
impl fmt::Display for NoQuorum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(obstacle) = &self.obstacle {
            return self.obstructed(f, obstacle);
        }
        let count = self.count();
        let (index, shape) = (self.configuration, self.shape);
        match &self.domain {
            Some(domain) => write!(f, "no quorum for '{domain}'")?,
            None => write!(f, "no quorum for the root domain")?,
        }
        write!(f, " (configuration {index}, {shape}): ")?;
        if count.answered < count.needed {
            write!(f, "{count} in ")?;
        } else {
            // Concurrent writers kept every answer from being one version's.
            write!(
                f,
                "{} servers answered, but no version was complete among their answers in ",
                count.answered
            )?;
        }
        write_seconds(f, self.waited)?;
        self.servers(f)?;
        if self.refused(Refusal::Full) > 0 {
            f.write_str(": to make room, delete objects and sweep")?;
        }
        Ok(())
    }
}

/// `10 s`, `1.2 s`, `31 ms`.
fn write_seconds(f: &mut fmt::Formatter<'_>, time: Duration) -> fmt::Result {
    // A deadline of 10 s ends a little after 10 s: a difference below a tenth of a second says nothing.
    let tenths = time.as_millis() / 100;
    match (tenths / 10, tenths % 10) {
        (0, 0..=4) => write!(f, "{} ms", time.as_millis()),
        (seconds, 0) => write!(f, "{seconds} s"),
        (seconds, tenth) => write!(f, "{seconds}.{tenth} s"),
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::NotFound { domain, key: None } => write!(f, "there is no domain '{domain}'"),
            Error::Removed { domain } => write!(
                f,
                "the domain '{domain}' was removed, or its removal has begun and was interrupted"
            ),
            Error::NotFound {
                domain,
                key: Some(key),
            } => write!(f, "there is no object '{key}' in '{domain}'"),
            Error::VersionConflict {
                domain,
                key,
                expected,
                latest,
            } => {
                match expected {
                    Some(version) => write!(
                        f,
                        "'{key}' in '{domain}' was expected at version {version}, "
                    ),
                    None => write!(f, "'{key}' in '{domain}' was to be made, "),
                }?;
                match latest {
                    Some(object) => write!(
                        f,
                        "but it is at version {}: read it and try again",
                        object.version
                    ),
                    None => f.write_str("but there is no such object"),
                }
            }
            Error::Swept { domain, key } => write!(
                f,
                "the write of '{key}' in '{domain}' took so long that a sweep removed its blocks; nothing was written"
            ),
            Error::Unavailable { call } | Error::Obstructed { call } if call.operation.writes() => {
                write!(f, "{call}; nothing was written")
            }
            Error::Unavailable { call } | Error::Obstructed { call } => call.fmt(f),
            Error::Unknown { call } => {
                write!(
                    f,
                    "{call}; the {} may have been applied",
                    call.operation.noun()
                )
            }
            Error::Corrupted {
                domain,
                key,
                damage,
            } => write!(f, "'{key}' in '{domain}' is damaged: {damage}"),
            Error::Undecided { domain, undecided } => {
                let after = if undecided.handed_over {
                    "this change may be made all the same, with or before the next one of the domain"
                } else {
                    "the domain is as it was"
                };
                write!(
                    f,
                    "the configuration of '{domain}' was not changed: {undecided}; reads and writes go on, {after}"
                )
            }
            Error::Unauthorised { call } => match &call.unauthorised {
                Some(reason) => write!(f, "not authorised: {reason}"),
                None => write!(f, "not authorised: {call}"),
            },
            Error::Invalid { reason } => reason.fmt(f),
        }
    }
}

impl std::error::Error for Error {}

impl ErrorType for Error {
    fn error_type(&self) -> &'static str {
        match self {
            Error::NotFound { .. } => "not_found",
            Error::Removed { .. } => "removed",
            Error::VersionConflict { .. } => "version_conflict",
            Error::Unavailable { .. } => "unavailable",
            Error::Unknown { .. } => "unknown",
            Error::Swept { .. } => "swept",
            Error::Undecided { .. } => "undecided",
            Error::Obstructed { .. } => "obstructed",
            Error::Corrupted { .. } => "corrupted",
            Error::Unauthorised { .. } => "unauthorised",
            Error::Invalid { .. } => "invalid",
        }
    }
}
