//! Bounded exhaustive exploration: every order in which messages can arrive, of small cases.
//!
//! The clients' futures and the servers' state machines are those of production. A [`Case`] says which servers there are
//! and what each client does, operation after operation; [`explore`] follows every schedule and has each judged.
//! [`script::Script`] drives the same clients and servers by hand, message by message.
//!
//! What is explored: which server takes which message when; which answers a client has read when it goes on, and in which
//! order; notes that come late or never; servers that stop for ever; patience that runs out; and when each operation
//! begins, relative to the ends of others. `docs/simulator.md` argues why the steps of `steps` are enough for that.
//!
//! Reading order: `cases`, `node` and `env` (a live client, a live server), `servers` and `clients` (the same as automata),
//! `state`, `steps`, `belated` and `spent` (a state and its steps), `search`, `judge`; `naive` is the search that has nothing to be wrong in.

mod belated;
pub mod cases;
mod clients;
mod disk;
mod engine;
mod env;
mod judge;
pub mod naive;
mod node;
mod schedule;
pub mod script;
mod search;
mod servers;
mod spent;
mod state;
mod steps;
mod table;

pub use env::{ExploreEnv, Message};
pub use judge::{ObservedOperation, linearizable};
pub use search::{Exploration, Options, Violation, explore};

use areo_core::config::{Configuration, ServerId};
use areo_core::dsm::Client;
use areo_core::dsm::coverable::CoverableOutcome;
use areo_core::element::Value;
use areo_core::error::{Unavailable, WriteError};
use areo_core::message::{Refusal, Reply, Request};
use areo_core::object::Name;
use areo_core::tag::Tag;
use bytes::Bytes;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;

/// A small case to be explored.
pub struct Case {
    pub name: &'static str,
    /// One line on the events of the case.
    pub description: String,
    /// Schedules that are left out to keep the case small; empty if every schedule is followed.
    pub bound: String,
    /// The servers; every member of a configuration is one.
    pub servers: Vec<ServerId>,
    /// Configurations that every server knows from the start.
    pub configurations: Vec<Arc<Configuration>>,
    /// Requests that single servers have handled before the exploration begins.
    pub before: Vec<(ServerId, Request)>,
    /// The objects, and where they are kept. By these a server's state is told.
    pub subjects: Vec<(Arc<Configuration>, Name)>,
    /// Further requests whose answers describe a server's state. A probe may change the server: the probed copy is
    /// discarded.
    pub probes: Vec<Request>,
    /// The operations of each client, in order.
    pub clients: Vec<Rc<[Operation]>>,
    /// Servers that may stop for ever, at any moment.
    pub crashes: usize,
    /// Times that a client may stop waiting during one operation although answers are still to come. It always may
    /// when none are.
    pub ticks: usize,
    /// True if notes such as CONFIRM arrive, each at any moment or never; otherwise all are lost.
    pub notes: bool,
    /// True if servers send notes without a request. Each arrives at any moment or never.
    pub speaks: bool,
    /// Servers that gossip, each once, at any moment or never; the others never do.
    pub gossips: Vec<ServerId>,
    /// Unconfirmed versions of one object that a server takes (`[X-3 unconfirmed-cap]`).
    pub max_unconfirmed: usize,
    /// Versions of a ranked register that a server takes (`[W-4 cap]`).
    pub max_ranked: usize,
    /// True if servers may drop superseded versions at any moment, as they do after a quiet time
    /// (`[X-3 unconfirmed-cap]`).
    pub quiet: bool,
    /// Servers whose disks are full, for good: they take no put, not even one that completes a version.
    pub full: Vec<ServerId>,
    /// Servers whose disks may become so at any moment.
    pub fills: Vec<ServerId>,
    /// The part of a server that distinguishes two of its states.
    pub digest: Digest,
    /// The least that distinguishes two states of a client.
    pub identity: Identity,
    pub judge: Judge,
}

/// The answer of a server.
pub type Answers = Result<Reply, Refusal>;

/// The part of a server that distinguishes two of its states.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Digest {
    /// Its answers about every subject, and to the probes.
    #[default]
    Answers,
    /// Its durable records as well: probes are not needed.
    Records,
}

/// The rules that must hold in every schedule. Each function returns a sentence if its rule is broken.
pub struct Judge {
    /// Judges the results that the clients saw, whenever an operation has ended. If one history is acceptable, a
    /// history in which fewer operations precede each other must be acceptable, too: this is true of linearizability,
    /// and of every rule about single operations.
    pub seen: fn(&[ObservedOperation]) -> Option<String>,
    /// Judges the operation that has just ended, by each server's answers at that moment: to a query of every
    /// subject, to a fetch of every version listed there, and to the probes.
    pub held: fn(&Case, &ObservedOperation, &[&[Answers]]) -> Option<String>,
}

/// The future that runs a client's operation.
pub type OperationFuture = Pin<Box<dyn Future<Output = Outcome>>>;

/// An operation of a client.
pub struct Operation {
    /// The operation in a schedule that people read: `write x`.
    pub label: String,
    /// The operation as the judge sees it.
    pub kind: Kind,
    /// Runs the operation with this client.
    pub run: Box<dyn Fn(Client<ExploreEnv>) -> OperationFuture>,
}

/// The effect of an operation on a register.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A read.
    Read,
    /// It writes this value.
    Write(String),
    /// It writes this value on that version, or reads another one.
    Conditional(Tag, String),
    /// Something else, which the judge of registers leaves alone.
    Other,
}

/// The result of an operation: everything that others can learn from it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// It read this version, with this value.
    Read(Tag, Option<String>),
    /// It wrote this version.
    Written(Tag),
    /// It failed and had no effect.
    Failed(String),
    /// It had no effect, as it may although servers answer.
    NotApplied(String),
    /// It may have its effect, at any time.
    Unknown(String),
    /// An operation of another kind says this.
    Other(String),
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Outcome::Read(tag, None) if tag.is_initial() => {
                f.write_str("reads nothing, version t0")
            }
            Outcome::Read(tag, None) => write!(f, "reads nothing, version {tag}"),
            Outcome::Read(tag, Some(value)) => write!(f, "reads {value}, version {tag}"),
            Outcome::Written(tag) => write!(f, "has written version {tag}"),
            Outcome::Failed(why) => write!(f, "fails: {why}"),
            Outcome::NotApplied(why) => write!(f, "is not applied: {why}"),
            Outcome::Unknown(why) => write!(f, "ends with unknown outcome: {why}"),
            Outcome::Other(what) => f.write_str(what),
        }
    }
}

impl Operation {
    /// An operation: any future over the client.
    pub fn new<F: Future<Output = Outcome> + 'static>(
        label: &str,
        kind: Kind,
        run: impl Fn(Client<ExploreEnv>) -> F + 'static,
    ) -> Operation {
        Operation {
            label: label.to_owned(),
            kind,
            run: Box::new(move |client| Box::pin(run(client))),
        }
    }

    /// The production write of a value.
    pub fn write(c: &Arc<Configuration>, name: &Name, text: &str) -> Operation {
        let (c, name, value) = (c.clone(), name.clone(), text.to_owned());
        let kind = Kind::Write(text.to_owned());
        Operation::new(&format!("write {text}"), kind, move |client| {
            let (c, name, content) = (c.clone(), name.clone(), Bytes::from(value.clone()));
            async move {
                let value = Value::new(Bytes::new(), content);
                match client.domain(&c).write(&name, &value).await {
                    Ok(tag) => Outcome::Written(tag),
                    Err(WriteError::NotApplied(why)) => Outcome::Failed(reason(&why)),
                    Err(WriteError::Unknown(why)) => Outcome::Unknown(reason(&why)),
                }
            }
        })
    }

    /// The production put of a value as this version, which a writer begins once it has the tag.
    pub fn put(c: &Arc<Configuration>, name: &Name, text: &str, tag: Tag) -> Operation {
        let (c, name, value) = (c.clone(), name.clone(), text.to_owned());
        let kind = Kind::Write(text.to_owned());
        Operation::new(&format!("put {text} as {tag}"), kind, move |client| {
            let (c, name, content) = (c.clone(), name.clone(), Bytes::from(value.clone()));
            async move {
                let value = Value::new(Bytes::new(), content);
                match client.domain(&c).put_version(&name, (tag, &value)).await {
                    Ok(()) => Outcome::Written(tag),
                    Err(WriteError::NotApplied(why)) => Outcome::Failed(reason(&why)),
                    Err(WriteError::Unknown(why)) => Outcome::Unknown(reason(&why)),
                }
            }
        })
    }

    /// The production write of a value on a version.
    pub fn write_on(c: &Arc<Configuration>, name: &Name, text: &str, base: Tag) -> Operation {
        let (c, name, value) = (c.clone(), name.clone(), text.to_owned());
        let kind = Kind::Conditional(base, text.to_owned());
        Operation::new(&format!("write {text} on {base}"), kind, move |client| {
            let (c, name, content) = (c.clone(), name.clone(), Bytes::from(value.clone()));
            async move {
                let value = Value::new(Bytes::new(), content);
                match client.domain(&c).put_if(&name, &value, Some(base)).await {
                    Ok(CoverableOutcome::Changed(tag)) => Outcome::Written(tag),
                    Ok(CoverableOutcome::Unchanged(found)) => {
                        Outcome::Read(found.tag, found.value.as_ref().map(text_of))
                    }
                    Err(WriteError::NotApplied(why)) if why.is_not_conditional() => {
                        Outcome::NotApplied(reason(&why))
                    }
                    Err(WriteError::NotApplied(why)) => Outcome::Failed(reason(&why)),
                    Err(WriteError::Unknown(why)) => Outcome::Unknown(reason(&why)),
                }
            }
        })
    }

    /// Limits the pauses of the operation: it gives up when it wants another one.
    #[must_use]
    pub fn with_pauses(self, pauses: usize) -> Operation {
        let Operation { label, kind, run } = self;
        let run = move |client: Client<ExploreEnv>| {
            let env = client.env.clone();
            env.allow_pauses(pauses);
            let mut running = run(client);
            Box::pin(std::future::poll_fn(move |context| {
                match running.as_mut().poll(context) {
                    Poll::Pending if env.gave_up() => {
                        Poll::Ready(Outcome::Other("gives up".to_owned()))
                    }
                    ended => ended,
                }
            })) as OperationFuture
        };
        Operation {
            label,
            kind,
            run: Box::new(run),
        }
    }

    /// A read by the production client.
    pub fn read(c: &Arc<Configuration>, name: &Name) -> Operation {
        let (c, name) = (c.clone(), name.clone());
        Operation::new("read", Kind::Read, move |client| {
            let (c, name) = (c.clone(), name.clone());
            async move {
                match client.domain(&c).read(&name, None).await {
                    Ok(found) => Outcome::Read(found.tag, found.value.as_ref().map(text_of)),
                    Err(why) => Outcome::Failed(reason(&why)),
                }
            }
        })
    }
}

/// Why an operation had no quorum, and whether full disks are among the reasons.
fn reason(why: &Unavailable) -> String {
    match why.lacks_room() {
        true => format!("{why}, {}", Refusal::Full),
        false => why.to_string(),
    }
}

fn text_of(value: &Value) -> String {
    String::from_utf8_lossy(&value.contiguous()).into_owned()
}

/// The part of a client that distinguishes two of its states.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum Identity {
    /// The messages that it sent, and the inputs of its open quorum calls. All other inputs are assumed to show in
    /// its messages. The exploration checks this by following several pasts of each state; if two of them differ it
    /// begins again with the next identity.
    #[default]
    Said,
    /// In addition the inputs of its last quorum calls, until its operation ends.
    Recent,
    /// Everything that it was fed, in order.
    Fed,
}
