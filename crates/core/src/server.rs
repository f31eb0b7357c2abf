//! One server: a synchronous, total state machine without IO. It takes a request, changes its state, says what must be
//! durable before anybody sees the answer ([`record::Step`]), and answers. [`crate::shard`] makes that order hold.
//!
//! | file | what of a server |
//! |---|---|
//! | [`record`] | what it keeps on disk |
//! | `state` | its part of one configuration: objects and cells |
//! | `access` | what is asked of one object |
//! | `envelope` | what it knows of the sequence: put around every answer |
//! | `finals` | how far each domain has come |
//! | `gossip` | what it tells other members about objects, and what it hears |
//! | `restart` | how all members agree on what is kept of objects |
//! | `restarting` | what it tells the others while they do |
//! | `adoption` | what of an earlier configuration serves a later one |
//! | `ranked` | what it answers of ranked registers |
//! | `later` | what it answers for later configurations |
//! | `leading` | what was posted where it leads |
//! | `recovery` | how it comes back from its records |
//! | `registry` | the servers it knows |
//! | `standing` | how it is, and what it says of itself |
//! | `unsynced` | the parts of it that are not durable yet |

mod access;
pub(crate) mod adoption;
mod envelope;
mod finals;
mod gossip;
mod later;
mod leading;
mod ranked;
pub mod record;
mod recovery;
mod registry;
mod restart;
mod restarting;
mod standing;
mod state;
mod unsynced;

use crate::config::{Configuration, ConfigurationId, ServerId};
use crate::consensus::mailbox::MAILBOX_CELL;
use crate::element::Handle;
use crate::instant::Instant;
use crate::limits;
use crate::message::{
    Body, CellRequest, Directory, Enrolment, Note, Refusal, Reply, Request, ServerRecord,
};
use crate::object::Name;
use crate::tag::Tag;
use crate::timing;
use finals::Finals;
use gossip::Gossiping;
use record::{Ledger, Step};
use registry::Registry;
use standing::Standing;
use state::ConfigurationState;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// The identity that a server is started with.
#[derive(Clone, Debug)]
pub struct Identity {
    /// The id of the server.
    pub id: ServerId,
    /// Counts its starts ([`crate::starts`]).
    pub incarnation: u64,
    pub root: Arc<Configuration>,
    /// True if its records survive a restart.
    pub durable: bool,
    /// The largest value that it takes, in bytes.
    pub max_value_bytes: u64,
    /// Unconfirmed versions of one object that it takes, `[X-3 unconfirmed-cap]`: [`limits::UNCONFIRMED_ELEMENTS`], but for
    /// tests.
    pub max_unconfirmed: usize,
    /// Versions of a ranked register that it holds before a new one takes the place of others, `[W-4 cap]`:
    /// [`limits::RANKED_VERSIONS`], but for tests.
    pub max_ranked: usize,
}

/// An element that a reply needs: the place in the answer, and the version.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Read {
    pub(crate) answer: usize,
    pub(crate) key: ConfigurationId,
    pub(crate) name: Name,
    pub(crate) tag: Tag,
    /// The answer is one to a FIN: it acknowledges that, with the element or without.
    pub(crate) acknowledges: bool,
}

impl Read {
    /// An element that is all of an answer.
    fn of_element(answer: usize, (key, name): (ConfigurationId, &Name), tag: Tag) -> Read {
        assert!(!tag.is_initial(), "no member has an element of it");
        Read {
            answer,
            key,
            name: name.clone(),
            tag,
            acknowledges: false,
        }
    }
}

/// The state of a server.
pub struct Server {
    identity: Identity,
    /// Set once a quorum of the root domain has confirmed the incarnation.
    serving: bool,
    /// Records were lost of which not even the key is known: nothing is answered for any object (`[X-11 damage-abstains]`).
    unreadable: bool,
    states: BTreeMap<ConfigurationId, ConfigurationState>,
    finals: Finals,
    registry: Registry,
    ledger: Ledger,
    /// The first second of this start that it knows of.
    started_s: Option<u32>,
    standing: Standing,
    gossip: Gossiping,
    /// Changes came to a mailbox of a configuration that it leads.
    was_posted: bool,
    /// Numbers its notes about restarts, those of later starts above those of earlier ones.
    turn: u64,
    /// Objects with several versions, by when they may be quiet.
    quiet: VecDeque<(Instant, ConfigurationId, Name, Tag)>,
}

impl Server {
    /// A server with nothing in it. It does not serve before [`Server::serve`].
    pub fn new(identity: Identity) -> Server {
        let turn = identity.incarnation << 32;
        Server {
            identity,
            serving: false,
            unreadable: false,
            states: BTreeMap::new(),
            finals: Finals::default(),
            registry: Registry::default(),
            ledger: Ledger::default(),
            started_s: None,
            standing: Standing::default(),
            gossip: Gossiping::default(),
            was_posted: false,
            turn,
            quiet: VecDeque::new(),
        }
    }

    /// Makes the server answer for objects from now on.
    pub fn serve(&mut self) {
        self.serving = true;
    }

    /// Until [`Server::serve`] it answers for no object: another process may have taken its place (`[X-32 stood-still]`).
    pub(crate) fn suspend(&mut self) {
        self.serving = false;
    }

    /// True if it answers for objects.
    pub fn is_serving(&self) -> bool {
        self.serving
    }

    /// Records were lost of which not even the key is known, so that it answers for no object (`[X-11 damage-abstains]`).
    pub fn is_unreadable(&self) -> bool {
        self.unreadable
    }

    /// A start of this server was heard of. If it is a later one, another process has its place.
    fn abstain_if_superseded(&mut self, of: ServerId) {
        let Identity {
            id, incarnation, ..
        } = self.identity;
        if of == id && self.registry.has_later(id, incarnation) {
            self.suspend();
        }
    }

    /// True if a record that the server must not lose was kept since the last call.
    pub(crate) fn take_growth(&mut self) -> bool {
        self.ledger.take_growth()
    }

    /// The identity of the server.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// The root configuration, as far as this server knows.
    pub fn root(&self) -> &Arc<Configuration> {
        let first = &self.identity.root;
        let id = first.id();
        self.finals.of(id.domain, id.partition).unwrap_or(first)
    }

    /// The servers of the cluster that it knows.
    pub fn registered(&self) -> impl Iterator<Item = &ServerRecord> {
        self.registry.records()
    }

    /// The record of a server of the cluster, if it knows one.
    pub fn record_of(&self, server: ServerId) -> Option<&ServerRecord> {
        self.registry.record(server)
    }

    /// Handles one request. What it changes is in the steps; what its reply needs from the store is in `reads`.
    pub(crate) fn receive(
        &mut self,
        now: Instant,
        request: Request,
        reads: &mut Vec<Read>,
    ) -> Result<Reply, Refusal> {
        self.started_s.get_or_insert(now.next_second());
        match request {
            Request::Directory => Ok(Reply::Directory(Directory {
                root: self.root().clone(),
                servers: self.registry.records().cloned().collect(),
            })),
            // What was lost may be a later incarnation of the server that registers.
            Request::Know(_) if self.unreadable => Err(Refusal::Damaged),
            Request::Know(record) => {
                let of = record.id;
                let known = self.registry.know(record, &mut self.ledger);
                self.abstain_if_superseded(of);
                known
            }
            Request::Status => Ok(Reply::Status(Box::new(self.status(now)))),
            // Its process answers it, where there is one.
            Request::View => Err(Refusal::UnknownRequest),
            Request::Latest {
                domain,
                partition,
                known,
            } => self.latest(domain, partition, known),
            Request::Configured {
                configuration,
                descriptor,
                successors,
                body,
            } => {
                // A cluster starts by its servers confirming each other, wherever its root domain is moving to meanwhile.
                // Nothing else may count on a server that may turn out to run on a copy.
                let is_start = match &body {
                    Body::Register { step, .. } => *step != Enrolment::HandOn,
                    _ => false,
                };
                if !self.serving && !is_start {
                    return Err(Refusal::Starting);
                }
                if self.unreadable {
                    return Err(Refusal::Damaged);
                }
                let asked = (configuration, descriptor, successors);
                self.enveloped(now, asked, body, reads)
            }
        }
    }

    fn configured(
        &mut self,
        now: Instant,
        key: ConfigurationId,
        body: Body,
        reads: &mut Vec<Read>,
    ) -> Result<Reply, Refusal> {
        let state = self.states.get_mut(&key).expect("admitted");
        let is_removed = state.configuration().is_some_and(|c| c.dap().is_removal());
        if is_removed && body != Body::ReadConfig {
            return Err(Refusal::Removed);
        }
        match body {
            Body::Access(accesses) => {
                if accesses.len() > limits::ACCESSES {
                    return Err(Refusal::TooLarge);
                }
                let asked = accesses.len();
                let mut answers = Vec::with_capacity(asked);
                for (name, access) in accesses {
                    let answer = self.access(now, key, &name, access, (answers.len(), &mut *reads));
                    answers.push(answer);
                }
                assert_eq!(answers.len(), asked, "each access is answered");
                Ok(Reply::Access(answers))
            }
            Body::List(request) => {
                let started_s = self.started_s.expect("set by the first request");
                let age_s = |taken_in_s: u32| now.seconds_since(taken_in_s.max(started_s));
                Ok(Reply::Listed(state.list(&request, age_s)))
            }
            Body::ReadConfig => Ok(Reply::Config),
            Body::Register { step, record } if key.domain == self.identity.root.id().domain => {
                let of = record.id;
                let enrolled = self.registry.enrol(step, *record, &mut self.ledger);
                self.abstain_if_superseded(of);
                enrolled
            }
            Body::Register { .. } => Err(Refusal::Malformed),
            // Other domains have none.
            Body::Servers if key.domain != self.identity.root.id().domain => {
                Ok(Reply::Servers(Vec::new()))
            }
            Body::Servers => Ok(Reply::Servers(self.registry.records().cloned().collect())),
            Body::Cell { cell, step } => {
                let leader = state.configuration().and_then(|c| c.leader());
                let posts = cell == MAILBOX_CELL && matches!(step, CellRequest::Join(_));
                self.was_posted |= posts && leader == Some(self.identity.id);
                state.cell(&cell, step, &mut self.ledger).map(Reply::Cell)
            }
            Body::Cells { prefix, after } => {
                let (cells, truncated) = state.cells(&prefix, &after);
                Ok(Reply::Cells { cells, truncated })
            }
        }
    }

    /// Handles a one-way note. Its loss, or that of its effect, costs time only, so that nothing of it needs to be
    /// durable at once.
    pub(crate) fn note(&mut self, now: Instant, note: Note) {
        if !self.serving || self.unreadable {
            return;
        }
        let configuration = match &note {
            Note::Confirm { configuration, .. }
            | Note::Chosen { configuration, .. }
            | Note::Decided { configuration, .. }
            | Note::Forget { configuration, .. }
            | Note::Next { configuration, .. } => configuration,
            Note::Gossip(gossip) => return self.hear_gossip(now, gossip),
            Note::Restart(note) => return self.hear_of_restart(now, note),
            Note::Serving(record) => {
                // One that is known better, or makes no sense, changes nothing.
                let _ = self.registry.know(record.clone(), &mut self.ledger);
                return self.abstain_if_superseded(record.id);
            }
        };
        let key = *configuration;
        if let Note::Next { pointer, .. } = &note
            && pointer.is_final()
            && pointer.leads_on_from(configuration)
            && self.of_its_place(&key).is_none()
            && self.finals.after(&key).is_some()
        {
            // It was let go: what is remembered of its domain rises.
            let _ = self.hear(now, key, pointer);
            return;
        }
        // Of another configuration of the same index nothing is believed ([X-13 highest-final]).
        let is_described = |state: &&mut ConfigurationState| state.configuration().is_some();
        let Some(state) = self.states.get_mut(&key).filter(is_described) else {
            return;
        };
        match note {
            // Late: what it speaks of is gone, and nothing is begun anew.
            Note::Confirm { .. } | Note::Chosen { .. } | Note::Decided { .. }
                if state.withholds() => {}
            Note::Confirm { tag, .. } if !tag.is_possible() => {}
            Note::Confirm { name, tag, .. } => {
                let newest = state.confirm(key, &name, tag, &mut self.ledger);
                self.await_quiet(now, key, &name, newest);
            }
            Note::Chosen { name, chosen, .. } => {
                state.choose((key, &name), chosen, &mut self.ledger);
            }
            Note::Decided { cell, value, .. } => state.decided(&cell, value, &mut self.ledger),
            Note::Forget { cell, .. } => state.forget(&cell, &mut self.ledger),
            Note::Serving(_) | Note::Gossip(_) | Note::Restart(_) => {
                unreachable!("they were handled before")
            }
            Note::Next {
                configuration,
                pointer,
            } => {
                if pointer.is_final() && pointer.leads_on_from(&configuration) {
                    let _ = self.hear(now, key, &pointer);
                }
            }
        }
    }

    /// Puts an object with superseded versions, and `newest` as its newest, into the queue for [`Server::tick`].
    pub(super) fn await_quiet(
        &mut self,
        now: Instant,
        key: ConfigurationId,
        name: &Name,
        newest: Option<Tag>,
    ) {
        if let Some(newest) = newest {
            let due = now.plus(timing::QUIET);
            let last = self.quiet.back().map(|(last, ..)| *last);
            assert!(last <= Some(due), "the queue is in order of time");
            self.quiet.push_back((due, key, name.clone(), newest));
        }
    }

    /// Lets superseded versions of quiet objects go (`[X-3 unconfirmed-cap]`), and speaks to other members. To be called about
    /// once a second.
    pub(crate) fn tick(&mut self, now: Instant) {
        self.speak(now);
        self.speak_of_restarts(now);
        if self.standing.folds {
            for (key, state) in &mut self.states {
                state.fold_promises(*key, &mut self.ledger);
            }
            let mut states = self.states.values();
            self.standing.folds = states.any(ConfigurationState::has_old_promises);
        }
        while self.quiet.front().is_some_and(|(due, ..)| *due <= now) {
            let (_, key, name, newest) = self.quiet.pop_front().expect("there is one");
            // It may have been collected meanwhile.
            let Some(state) = self.states.get_mut(&key) else {
                continue;
            };
            let newest = state.quiet(key, &name, newest, &mut self.ledger);
            self.await_quiet(now, key, &name, newest);
        }
    }

    /// The record of an element turned out to be damaged. False: that was known, or the version has another record by now, or none.
    pub(crate) fn damage(
        &mut self,
        key: ConfigurationId,
        name: &Name,
        tag: Tag,
        is_damaged: impl Fn(Handle) -> bool,
    ) -> bool {
        let state = self.states.get_mut(&key);
        state.is_some_and(|state| state.damage(key, (name, tag), is_damaged, &mut self.ledger))
    }

    /// The version of the object that was lost, if its kind names it (`[X-40 named-loss]`).
    pub(crate) fn lost(&self, key: ConfigurationId, name: &Name) -> Option<Tag> {
        self.states.get(&key)?.named_loss(name)
    }

    /// No member lists these blocks of uploads any more: their tombstones go (`[X-30 dropped-tombstones]`), of those whose records no
    /// start can find again. Returns those that went.
    pub(crate) fn drop_tombstones(
        &mut self,
        key: ConfigurationId,
        names: &[Name],
        may_return: impl Fn(u64) -> bool,
    ) -> Vec<Name> {
        // Before it serves it is no member.
        let Some(state) = self.states.get_mut(&key).filter(|_| self.serving) else {
            return Vec::new();
        };
        let open = self.ledger.open_graves();
        let is_gone = |name: &&Name| name.is_upload_block() && !may_return(name.grave());
        let gone = names.iter().filter(is_gone);
        let dropped = gone.filter(|name| state.drop_tombstone(name, &open, &mut self.ledger));
        dropped.cloned().collect()
    }

    /// True if [`Server::tick`] has something to do.
    pub(crate) fn is_due(&self, now: Instant) -> bool {
        self.gossip_is_due(now)
            || self.restart_is_due(now)
            || self.quiet.front().is_some_and(|(due, ..)| *due <= now)
            || self.standing.folds
    }

    /// The steps that [`Server::take_steps`] would return.
    pub(crate) fn steps(&self) -> &[Step] {
        self.ledger.steps()
    }

    /// The steps that must become durable, in order, before the replies given since the last call.
    pub(crate) fn take_steps(&mut self) -> Vec<Step> {
        self.ledger.take_steps()
    }

    /// No reply needs the records that were superseded up to now any more: they go with the next steps.
    pub(crate) fn unpin(&mut self) {
        self.ledger.unpin();
    }
}
