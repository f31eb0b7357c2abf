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
    /// Its name.
    pub name: &'static str,
    /// What happens in it, in one line.
    pub description: String,
    /// What was left out to keep it small; empty if every schedule is followed.
    pub bound: String,
    /// The servers; every member of a configuration is one.
    pub servers: Vec<ServerId>,
    /// What the servers know from the start.
    pub configurations: Vec<Arc<Configuration>>,
    /// What single servers were asked before.
    pub before: Vec<(ServerId, Request)>,
    /// The objects, and where they are kept. By these a server's state is told.
    pub subjects: Vec<(Arc<Configuration>, Name)>,
    /// What else to ask a server to tell its state. It is not gone on with afterwards, so that this may change it.
    pub probes: Vec<Request>,
    /// By client: what it does, one operation after the other.
    pub clients: Vec<Rc<[Operation]>>,
    /// Servers that may stop for ever, at any moment.
    pub crashes: usize,
    /// How often the patience of one operation may run out while answers are still to come. When none are, it always may.
    pub ticks: usize,
    /// Whether notes such as CONFIRM arrive, each at any moment or never; otherwise all are lost.
    pub notes: bool,
    /// Whether servers speak of their own accord. What they say arrives at any moment or never.
    pub speaks: bool,
    /// Servers that gossip, each once, at any moment or never; the others never do.
    pub gossips: Vec<ServerId>,
    /// Unconfirmed versions of one object that a server takes (`[X-3 unconfirmed-cap]`).
    pub max_unconfirmed: usize,
    /// Versions of a ranked register that a server takes (`[W-4 cap]`).
    pub max_ranked: usize,
    /// Whether servers may let superseded versions go at any moment, as they do after a quiet time
    /// (`[X-3 unconfirmed-cap]`).
    pub quiet: bool,
    /// Servers whose disks are full, for good: they take no put, not even one that completes a version.
    pub full: Vec<ServerId>,
    /// Servers whose disks may become so at any moment.
    pub fills: Vec<ServerId>,
    /// What distinguishes two states of a server.
    pub digest: Digest,
    /// What distinguishes two states of a client at least.
    pub identity: Identity,
    /// What must hold.
    pub judge: Judge,
}

/// What a server answers.
pub type Answers = Result<Reply, Refusal>;

/// What distinguishes two states of a server.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Digest {
    /// Its answers about every subject, and to the probes.
    #[default]
    Answers,
    /// What it has recorded, too: probes are not needed.
    Records,
}

/// What must hold in every schedule. A sentence says what does not.
pub struct Judge {
    /// Of what the clients saw, whenever an operation has ended. More operations that precede each other must never make
    /// more acceptable: linearizability is so, and so is everything that speaks of single operations.
    pub seen: fn(&[ObservedOperation]) -> Option<String>,
    /// Of the operation that has just ended and what each server answers at that moment to a query of every subject, to
    /// a fetch of everything that it lists there, and to the probes.
    pub held: fn(&Case, &ObservedOperation, &[&[Answers]]) -> Option<String>,
}

/// What a future of a client's operation is.
pub type OperationFuture = Pin<Box<dyn Future<Output = Outcome>>>;

/// An operation of a client.
pub struct Operation {
    /// What people read: `write x`.
    pub label: String,
    /// What the judge makes of it.
    pub kind: Kind,
    /// Runs it.
    pub run: Box<dyn Fn(Client<ExploreEnv>) -> OperationFuture>,
}

/// What an operation does to a register.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Kind {
    /// It reads.
    Read,
    /// It writes this value.
    Write(String),
    /// It writes this value on that version, or reads another one.
    Conditional(Tag, String),
    /// Something else, which the judge of registers leaves alone.
    Other,
}

/// How an operation ended. Everything that others can learn by it.
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

    /// This operation, which gives up when it wants to pause more often than that.
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

    /// The production read.
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

/// What tells two states of a client apart.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum Identity {
    /// What it said, and what the quorum calls that are open were fed: whatever else it was fed, it has answered by what
    /// it said. Checked while exploring, by following several pasts of each state; an exploration in which two of them
    /// differ begins again with the next one.
    #[default]
    Said,
    /// And what its last quorum calls were fed, until its operation ends.
    Recent,
    /// Everything that it was fed, in order.
    Fed,
}
