//! Distributed shared memory: operations on one object, over the configurations of its domain.
//!
//! Operations are methods of a [`Domain`], which names any final configuration of it, the first one for instance; the client
//! remembers the latest that it has seen, and starts there.

pub mod atomic;
pub mod completion;
pub mod conditional;
pub mod coverable;
pub mod cross_check;
pub mod decided_once;
pub mod headers;
pub mod holdings;
mod interruption;
pub mod large;
mod largest;
pub mod listing;
pub(crate) mod losses;
pub(crate) mod newest;
mod propagated;
pub mod redundancy;
pub mod removal;
mod room;
pub mod sweep;

use crate::config::Configuration;
use crate::dap::CachedVersion;
use crate::element::Value;
use crate::env::Env;
use crate::limits;
use crate::message::Ballot;
use crate::object::Name;
use crate::reconfig::sequence::Sequences;
use crate::reconfig::walk::Walk;
use crate::tag::{ClientId, Tag, Writer};
use crate::timing;
use propagated::PropagatedVersions;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// A process that runs operations: its identity, and its memory. Cloned for each operation, with the operation's own
/// [`Env`].
#[derive(Clone)]
pub struct Client<E> {
    /// The world, as the operation sees it.
    pub env: E,
    memory: Rc<Memory>,
    /// Blocks of replaced versions are left to a sweep ([`removal`]).
    keeps_replaced: bool,
    /// The time that its reconfigurations wait for a leader to get on.
    leader_patience: Duration,
}

/// A domain, as a client knows it: operations are its methods. Each is in the file of its algorithm.
///
/// How a domain's configurations follow each other is one for all domains today, a sequence. A second family has its place
/// here, beside `known`, which names it.
#[derive(Clone)]
pub struct Domain<E> {
    /// The client that runs the operations.
    pub client: Client<E>,
    /// Any final configuration of it, the first one for instance.
    pub known: Arc<Configuration>,
}

struct Memory {
    id: Cell<ClientId>,
    counter: Cell<u64>,
    /// The largest number of a ballot that it used, or heard of, up to [`limits::REMEMBERED_BALLOT`].
    ballots: Cell<u64>,
    propagated: RefCell<PropagatedVersions>,
    sequences: Sequences,
}

impl<E: Env> Client<E> {
    /// A client with a new identity.
    pub fn new(env: E) -> Client<E> {
        let id = ClientId(env.random());
        let memory = Memory {
            id: Cell::new(id),
            counter: Cell::new(0),
            ballots: Cell::new(0),
            propagated: RefCell::default(),
            sequences: Sequences::default(),
        };
        Client {
            env,
            memory: Rc::new(memory),
            keeps_replaced: false,
            leader_patience: Duration::ZERO,
        }
    }

    /// This client, with the environment of another operation.
    #[must_use]
    pub fn with(&self, env: E) -> Client<E> {
        Client {
            env,
            memory: self.memory.clone(),
            keeps_replaced: self.keeps_replaced,
            leader_patience: self.leader_patience,
        }
    }

    /// This client, with reconfigurations that wait for a leader as long as it makes progress within this time.
    #[must_use]
    pub fn waiting_for_leaders(&self, patience: Duration) -> Client<E> {
        Client {
            leader_patience: patience,
            ..self.clone()
        }
    }

    /// The time that its reconfigurations wait for a leader to get on.
    pub fn leader_patience(&self) -> Duration {
        self.leader_patience
    }

    /// The id of the client.
    pub fn id(&self) -> ClientId {
        self.memory.id.get()
    }

    /// Makes the client write under this identity from now on. Its count of writes begins at a random number, so that its writers are unique also if
    /// another client has the same identity.
    pub fn take_identity(&self, id: ClientId) {
        assert_ne!(id, ClientId::default(), "that is the identity of none");
        self.memory.id.set(id);
        self.memory.counter.set(self.env.random() >> 32);
    }

    /// The configurations of domains, as far as it knows.
    pub fn sequences(&self) -> &Sequences {
        &self.memory.sequences
    }

    /// A handle on a domain. `known`: any final configuration of it.
    pub fn domain(&self, known: &Arc<Configuration>) -> Domain<E>
    where
        E: Clone,
    {
        Domain {
            client: self.clone(),
            known: known.clone(),
        }
    }

    /// A writer that was never returned before (`[X-7 writer-per-write]`).
    pub fn next_writer(&self) -> Writer {
        let counter = self.memory.counter.get() + 1;
        self.memory.counter.set(counter);
        let writer = Writer {
            client: self.id(),
            counter,
        };
        assert!(
            !writer.is_upload(),
            "no client counts up to the mark of an upload"
        );
        writer
    }

    /// A ballot of `proposer` above `above`, which it heard of for this object, and above the numbers that this client remembers. It
    /// begins at the clock, so that it is nearly always above those of other clients.
    fn next_ballot(&self, proposer: Writer, above: u64) -> Ballot {
        let known = self.memory.ballots.get().max(above);
        let number = (known + 1).max(self.env.clock_us());
        assert!(number > above, "one ballot serves once");
        self.remember_ballot(number);
        Ballot { number, proposer }
    }

    /// Ballots of this number are in use: a guess for the next operation, on any object. A number that clocks do not show in this
    /// age of the world is not remembered: one object that has it would leave no numbers for the others.
    fn remember_ballot(&self, number: u64) {
        if number <= limits::REMEMBERED_BALLOT {
            let known = self.memory.ballots.get();
            self.memory.ballots.set(known.max(number));
        }
    }

    /// The writer of a value in blocks ([`large`]).
    pub fn next_upload(&self) -> Writer {
        self.next_writer().as_upload()
    }

    /// This client, for an operation that leaves the blocks of replaced versions to a later sweep.
    #[must_use]
    pub fn keeping_replaced(&self) -> Client<E> {
        Client {
            keeps_replaced: true,
            ..self.clone()
        }
    }

    /// True if this client has completed a put of `tag`, or of a larger one, in this configuration (`[F-2 own-puts]`,
    /// `[F-6 puts-not-reads]`).
    fn has_propagated(&self, c: &Configuration, name: &Name, tag: Tag) -> bool {
        self.memory.propagated.borrow().has(c, name, tag)
    }

    /// The last pair that it put there (`prop`, 2.4); nothing but where that is EC-DAPopt.
    fn last_propagated(&self, c: &Configuration, name: &Name) -> Option<CachedVersion> {
        self.memory.propagated.borrow().last(c, name)
    }

    /// Remembers a put that completed; never one that was only read (`[F-6 puts-not-reads]`).
    fn remember_propagated(&self, c: &Configuration, name: &Name, (tag, value): (Tag, &Value)) {
        assert!(!tag.is_initial(), "the initial version is put by no client");
        let mut propagated = self.memory.propagated.borrow_mut();
        propagated.remember(c, name, (tag, value));
    }
}

impl<E: Env> Domain<E> {
    /// The freshest final configuration that the client knows (`[A-7 freshest-start]`).
    pub fn start(&self) -> Arc<Configuration> {
        self.client.sequences().start(&self.known)
    }

    /// True if the object is a ranked register there. It may become one on the way.
    pub fn is_ranked(&self, name: &Name) -> bool {
        self.start().is_ranked(name)
    }

    /// A walk from there on.
    pub(crate) fn walk(&self) -> Walk<'_, E> {
        self.walk_from(&self.start())
    }

    /// A walk from this configuration on.
    pub(crate) fn walk_from(&self, start: &Arc<Configuration>) -> Walk<'_, E> {
        let sequence = |c: &Configuration| (c.id().domain, c.id().partition);
        assert_eq!(
            sequence(start),
            sequence(&self.known),
            "a walk stays in its domain"
        );
        Walk {
            env: &self.client.env,
            sequences: self.client.sequences(),
            start: start.clone(),
        }
    }
}

/// Before members are asked again that had no room: a random while, so that clients that met there do not meet again.
async fn pause<E: Env>(client: &Client<E>) {
    let most = u64::try_from(timing::ROOM_PAUSE.as_micros()).expect("it is short");
    let pause = most / 2 + client.env.random() % most;
    client.env.sleep(Duration::from_micros(pause)).await;
}
