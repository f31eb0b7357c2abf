//! Gossip: a server says to the other members of its configurations which tags it knows, and joins what they say (`docs/spec`
//! 2.10). What it says leaves with the batch in which it is said, so that it is durable (`[X-10 durable-replies]`).
//!
//! Once in a period it says at most [`limits::GOSSIP_BYTES`] to each member: first of objects that have changed since they were
//! last spoken of, then of the others in turn, from where the last period ended. Nothing is said again for being lost: the turn
//! comes round.

use super::Server;
use super::state::ConfigurationState;
use crate::config::{ConfigurationId, ServerId};
use crate::dap::versions::Completion;
use crate::instant::Instant;
use crate::limits;
use crate::message::{Gossip, GossipMarks, Note};
use crate::object::Name;
use crate::timing;
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The state of a server's gossip: the objects of its turn, and the notes that it is to send next.
#[derive(Default)]
pub(super) struct Gossiping {
    /// The time at which it speaks next.
    due: Instant,
    /// Objects that changed since they were last spoken of. Those that find no room here have their turn.
    changed: BTreeSet<(ConfigurationId, Name)>,
    /// The object up to which the turn has come.
    turn: Option<(ConfigurationId, Name)>,
    /// Notes of the next batch.
    notes: Vec<(ServerId, Note)>,
}

/// Content of one period: marks of objects, by configuration.
type ChosenMarks = BTreeMap<ConfigurationId, BTreeMap<Name, GossipMarks>>;

impl Server {
    /// The object has changed, in a configuration whose members gossip: it is spoken of before others.
    pub(super) fn has_changed(&mut self, key: ConfigurationId, name: &Name) {
        let changed = &mut self.gossip.changed;
        if changed.len() < limits::GOSSIP_CHANGED {
            // The name came as a part of the request's frame; what stays is a copy of its own.
            let name = Bytes::copy_from_slice(name.as_bytes());
            let name = Name::from_bytes(name).expect("it was a name before");
            changed.insert((key, name));
        }
    }

    /// True if it is time to speak.
    pub fn gossip_is_due(&self, now: Instant) -> bool {
        now >= self.gossip.due && self.states.values().any(ConfigurationState::gossips)
    }

    /// Composes the gossip of the next batch. Gossip that was not sent yet is out of date.
    pub(super) fn speak(&mut self, now: Instant) {
        if !self.serving || self.unreadable || !self.gossip_is_due(now) {
            return;
        }
        self.gossip.due = now.plus(timing::GOSSIP);
        assert!(self.gossip.due >= now, "it speaks once in a period");
        let told = self.choose_gossip();
        self.gossip.notes.clear();
        let own = self.identity.id;
        for (configuration, objects) in told {
            let state = self.states.get(&configuration);
            let c = state
                .and_then(ConfigurationState::configuration)
                .expect("it gossips");
            let objects: Arc<[_]> = objects.into_iter().collect();
            let gossip = || Gossip {
                configuration,
                from: own,
                objects: objects.clone(),
            };
            let others = c.members().iter().filter(|member| **member != own);
            let notes = others.map(|member| (*member, Note::Gossip(gossip())));
            self.gossip.notes.extend(notes);
        }
    }

    /// Objects that changed, then others in turn, as many as may be spoken of.
    fn choose_gossip(&mut self) -> ChosenMarks {
        let (mut told, mut left) = (ChosenMarks::new(), limits::GOSSIP_BYTES);
        while let Some((key, name)) = self.gossip.changed.pop_first() {
            if !self.tell_of((key, &name), &mut told, &mut left) {
                self.gossip.changed.insert((key, name));
                return told;
            }
        }
        let from = self.gossip.turn.take();
        let after = self.turn_after(from.as_ref());
        let before = self.turn_after(None);
        let before = before.take_while(|it| from.as_ref().is_some_and(|from| it <= from));
        let turn: Vec<_> = after
            .chain(before)
            .take(limits::GOSSIP_BYTES / GossipMarks::bytes(1))
            .collect();
        for (key, name) in turn {
            if !self.tell_of((key, &name), &mut told, &mut left) {
                break;
            }
            self.gossip.turn = Some((key, name));
        }
        told
    }

    /// Objects of configurations whose members gossip, after this one.
    fn turn_after(
        &self,
        from: Option<&(ConfigurationId, Name)>,
    ) -> impl Iterator<Item = (ConfigurationId, Name)> {
        let first = from.map(|(key, _)| *key);
        let states = self.states.iter();
        let states = states.filter(move |(key, state)| Some(**key) >= first && state.gossips());
        states.flat_map(move |(key, state)| {
            let name = from.filter(|(first, _)| first == key);
            let names = state.names_after(name.map(|(_, name)| name.as_bytes()));
            names.map(|name| (*key, name))
        })
    }

    /// False: there is no room for this object. One that is gone takes none.
    fn tell_of(
        &self,
        (key, name): (ConfigurationId, &Name),
        told: &mut ChosenMarks,
        left: &mut usize,
    ) -> bool {
        let state = self.states.get(&key).filter(|state| state.gossips());
        let Some(marks) = state.and_then(|state| state.gossip_marks(name)) else {
            return true;
        };
        let objects = told.get(&key);
        if objects.is_some_and(|objects| objects.contains_key(name)) {
            return true;
        }
        let head = if objects.is_none() {
            Gossip::HEAD_BYTES
        } else {
            0
        };
        let bytes = head + GossipMarks::bytes(name.as_bytes().len());
        assert!(bytes < limits::GOSSIP_BYTES, "the longest name has room");
        let Some(rest) = left.checked_sub(bytes) else {
            return false;
        };
        *left = rest;
        told.entry(key).or_default().insert(name.clone(), marks);
        true
    }

    /// Queues these notes for the next batch.
    pub(super) fn say(&mut self, notes: Vec<(ServerId, Note)>) {
        self.gossip.notes.extend(notes);
    }

    /// Notes to other members with this batch.
    pub(super) fn take_gossip(&mut self) -> Vec<(ServerId, Note)> {
        std::mem::take(&mut self.gossip.notes)
    }

    /// The gossip about the object that is not recorded, which no answer shows.
    pub fn heard_of(&self, key: ConfigurationId, name: &Name) -> Option<&Completion> {
        self.states.get(&key)?.completion(name)
    }

    /// Joins what another member says.
    pub(super) fn hear_gossip(&mut self, now: Instant, gossip: &Gossip) {
        let key = gossip.configuration;
        let Some(state) = self.states.get(&key).filter(|state| state.gossips()) else {
            return;
        };
        let c = state.configuration().expect("it gossips").clone();
        let own = self.identity.id;
        let Some(from) = c.position(gossip.from).filter(|_| gossip.from != own) else {
            return;
        };
        let from = u8::try_from(from).expect("a position is a byte");
        let possible = gossip.objects.iter().filter(|(_, said)| said.is_possible());
        for (name, said) in possible {
            let state = self.states.get_mut(&key).expect("it is there");
            let (rises, newest) = state.hear_of((key, name), (from, said), &mut self.ledger);
            if rises {
                self.has_changed(key, name);
            }
            self.await_quiet(now, key, name, newest);
        }
    }
}
