//! How an operation ends when it does not succeed.

use crate::{Object, ServerId, Shape, Version};
use areo_core::error::{Response, Unavailable, Undecided};
use areo_core::message::Refusal;
use std::fmt;
use std::time::Duration;

mod damage;
mod invalid;
mod obstacle;
#[cfg(test)]
mod tests;

pub use damage::Damage;
pub use invalid::Invalid;
pub use obstacle::{Decided, Obstacle};

/// An operation that did not succeed. The variants are the endings that a program has to tell apart; what exactly
/// happened stands in their fields, and in one sentence in their `Display`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// There is no such domain, or no such object in it (never written, or deleted).
    NotFound {
        /// The domain.
        domain: String,
        /// The object's key; `None`: it is the domain that does not exist.
        key: Option<String>,
    },
    /// The domain is being removed, or was removed after this client found it. A removal that has begun cannot be taken back:
    /// [`Client::remove_domain`](crate::Client::remove_domain) finishes one that was interrupted.
    Removed {
        /// The domain.
        domain: String,
    },
    /// A coverable write found another version than the one that it was to replace, and wrote nothing. Or a value was
    /// written over while it was read in blocks, and what is left of it to read is gone.
    VersionConflict {
        /// The domain.
        domain: String,
        /// The object's key.
        key: String,
        /// The version that was to be replaced, or was read; `None`: there was to be no object.
        expected: Option<Version>,
        /// The newest version, of a large object without its content; `None`: there is no such object.
        latest: Option<Box<Object>>,
    },
    /// No quorum in time, and nothing was written.
    Unavailable {
        /// What was tried, and what each server did.
        call: Box<NoQuorum>,
    },
    /// No quorum acknowledged the write in time, but some server was sent it: it may have been applied, or be applied
    /// later. Reading the object tells; putting the same value again is safe.
    Unknown {
        /// What was tried, and what each server did.
        call: Box<NoQuorum>,
    },
    /// The write of a large value went on for so long, or stood still for so long, that a sweep took its blocks for left
    /// over. Nothing was written.
    Swept {
        /// The domain.
        domain: String,
        /// The object's key.
        key: String,
    },
    /// What is stored is damaged, so that nothing can be returned. Wrong bytes never are.
    Corrupted {
        /// The domain.
        domain: String,
        /// The object's key.
        key: String,
        /// What is damaged.
        damage: Box<Damage>,
    },
    /// The service outside, which is to decide which configuration of the domain comes next, did not. No server has heard of
    /// the change, and reads and writes go on.
    Undecided {
        /// The domain.
        domain: String,
        /// Which service, why, and whether it was asked: then it may decide all the same, and whoever changes the domain next
        /// makes this change first.
        undecided: Box<Undecided>,
    },
    /// Nothing was written, and the operation cannot succeed as things are: [`NoQuorum::obstacle`] says why.
    Obstructed {
        /// What was tried.
        call: Box<NoQuorum>,
    },
    /// Servers refused this client.
    Unauthorised {
        /// What was tried, and what each server did.
        call: Box<NoQuorum>,
    },
    /// The operation makes no sense as it was asked for; no server was asked.
    Invalid {
        /// Why.
        reason: Invalid,
    },
}

/// What an operation does, for sentences.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operation {
    /// Writing an object.
    Put,
    /// Reading an object.
    Get,
    /// Reading what is known of an object.
    Stat,
    /// Deleting an object.
    Delete,
    /// Listing objects.
    List,
    /// Looking a domain up by its name.
    FindDomain,
    /// Creating a domain.
    CreateDomain,
    /// Removing a domain.
    RemoveDomain,
    /// Listing the domains.
    ListDomains,
    /// Asking which servers there are.
    ListServers,
    /// Asking which configurations a domain has.
    ReadSequence,
    /// Changing the configuration of a domain.
    Reconfigure,
    /// Looking for blocks that no object needs.
    Sweep,
}

impl Operation {
    /// Whether it changes what is stored.
    pub fn writes(self) -> bool {
        matches!(
            self,
            Operation::Put
                | Operation::Delete
                | Operation::CreateDomain
                | Operation::RemoveDomain
                | Operation::Reconfigure
        )
    }

    /// What may have happened if the outcome is unknown.
    fn noun(self) -> &'static str {
        match self {
            Operation::Delete => "delete",
            Operation::CreateDomain => "creation",
            Operation::RemoveDomain => "removal",
            Operation::Reconfigure => "change",
            _ => "write",
        }
    }
}

/// A quorum call that was not decided in time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoQuorum {
    /// What the operation was.
    pub operation: Operation,
    /// The domain that the servers were asked about; `None` is the root domain.
    pub domain: Option<String>,
    /// The object's key, if it was about one.
    pub key: Option<String>,
    /// Index of the configuration in the domain's sequence.
    pub configuration: u32,
    /// Its shape.
    pub shape: Shape,
    /// Answers that would have been enough.
    pub needed: usize,
    /// What each server did, in the order of the member list.
    pub servers: Vec<ServerOutcome>,
    /// How long the operation waited.
    pub waited: Duration,
    /// What ended it, if it was not for want of answers.
    pub obstacle: Option<Obstacle>,
}

/// What one server did with one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerOutcome {
    /// Its id.
    pub id: ServerId,
    /// Its name; the beginning of its id if the directory does not know it.
    pub name: String,
    /// What it did.
    pub response: Response,
    /// Of an unreachable one: what the last attempt to connect ended with, if that is known.
    pub reason: Option<String>,
}

/// Who was asked what, for an error that comes up later. Made once per operation, on the caller's side.
pub(crate) struct Asked<'a> {
    pub(crate) operation: Operation,
    pub(crate) domain: Option<&'a str>,
    pub(crate) key: Option<&'a str>,
    pub(crate) configuration: u32,
    pub(crate) shape: Shape,
}

impl Asked<'_> {
    /// The error of a call that had no effect. `describe` gives a server its name and the reason why it cannot be
    /// reached.
    pub(crate) fn not_applied(
        &self,
        failed: &Unavailable,
        describe: impl Fn(ServerId) -> (String, Option<String>),
    ) -> Error {
        let call = Box::new(self.no_quorum(failed, describe));
        if call.obstacle.is_some() {
            return Error::Obstructed { call };
        }
        let refused = |with: Refusal| {
            let refused = Response::Refused(with);
            call.servers
                .iter()
                .filter(move |server| server.response == refused)
                .count()
        };
        if refused(Refusal::Unauthorised) > 0 {
            return Error::Unauthorised { call };
        }
        if let Some(removed) = self.removed(&call) {
            return removed;
        }
        // With the damaged ones there would have been a quorum: damage is why there is none. A write leaves it at
        // "nothing was written", which is what its caller has to know.
        let damaged = refused(Refusal::Damaged);
        match (self.domain, self.key) {
            (Some(domain), Some(key))
                if !self.operation.writes()
                    && damaged > 0
                    && call.answered() + damaged >= call.needed =>
            {
                let (domain, key) = (domain.into(), key.into());
                let damage = Box::new(Damage::Servers { call });
                Error::Corrupted {
                    domain,
                    key,
                    damage,
                }
            }
            _ => Error::Unavailable { call },
        }
    }

    /// The error of a write that some server was sent.
    pub(crate) fn unknown(
        &self,
        failed: &Unavailable,
        describe: impl Fn(ServerId) -> (String, Option<String>),
    ) -> Error {
        assert!(
            self.operation.writes(),
            "reads have no effect to wonder about"
        );
        let call = Box::new(self.no_quorum(failed, describe));
        // What it wrote goes with the domain, whether it was written or not.
        self.removed(&call).unwrap_or(Error::Unknown { call })
    }

    /// The error, if a server refused because nothing of the domain is left.
    fn removed(&self, call: &NoQuorum) -> Option<Error> {
        let removed = Response::Refused(Refusal::Removed);
        let refused = call.servers.iter().any(|server| server.response == removed);
        let domain = self.domain.filter(|_| refused)?.into();
        Some(Error::Removed { domain })
    }

    fn no_quorum(
        &self,
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
        let (configuration, shape) = match &failed.configuration {
            Some(c) => (c.id().index, Shape::of(c)),
            None => (self.configuration, self.shape),
        };
        NoQuorum {
            operation: self.operation,
            domain: self.domain.map(Into::into),
            key: self.key.map(Into::into),
            configuration,
            shape,
            needed: failed.needed,
            servers: servers.collect(),
            waited: failed.waited,
            obstacle: failed
                .obstacle
                .as_deref()
                .map(|obstacle| Obstacle::of(obstacle, &describe)),
        }
    }
}

impl NoQuorum {
    /// Servers that answered.
    pub fn answered(&self) -> usize {
        let answered = |server: &&ServerOutcome| server.response == Response::Answered;
        self.servers.iter().filter(answered).count()
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

/// What a server did, in one or two words: `ok`, `refused`, `timed out`, `disk full`, ...
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
        let (answered, needed) = (self.answered(), self.needed);
        let (index, shape) = (self.configuration, self.shape);
        match &self.domain {
            Some(domain) => write!(f, "no quorum for '{domain}'")?,
            None => write!(f, "no quorum for the root domain")?,
        }
        write!(f, " (configuration {index}, {shape}): ")?;
        match answered < self.needed {
            true => write!(f, "{answered} of {needed} needed servers answered in ")?,
            // Concurrent writers kept every answer from being one version's.
            false => write!(
                f,
                "{answered} servers answered, but no version was complete among their answers in "
            )?,
        }
        write_seconds(f, self.waited)?;
        for (position, server) in self.servers.iter().enumerate() {
            let before = if position == 0 { " (" } else { ", " };
            write!(f, "{before}{} {server}", server.name)?;
        }
        f.write_str(if self.servers.is_empty() { "" } else { ")" })?;
        let full = Response::Refused(Refusal::Full);
        match self.servers.iter().any(|server| server.response == full) {
            true => f.write_str(": to make room, delete objects and sweep"),
            false => Ok(()),
        }
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
                let after = match undecided.handed_over {
                    true => {
                        "it may be decided there all the same, and then whoever changes the domain next makes this change first"
                    }
                    false => "the domain is as it was",
                };
                write!(
                    f,
                    "the configuration of '{domain}' was not changed: {undecided}; reads and writes go on, {after}"
                )
            }
            Error::Unauthorised { call } => write!(f, "not authorised: {call}"),
            Error::Invalid { reason } => reason.fmt(f),
        }
    }
}

impl std::error::Error for Error {}
