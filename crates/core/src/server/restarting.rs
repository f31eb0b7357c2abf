//! A restart of counters at one member (`docs/spec` 2.11): which notes of others count, what it tells of the objects, and when all
//! have reported. The agreement itself is [`super::restart`]; what is carried out is `state/restarting.rs`.
//!
//! A note counts if its sender had heard of this member what it says now. So what a member reports of an object is of after
//! this one began to agree, and nothing that comes late is taken for new, also with forged numbers.

use super::Server;
use super::restart::Restart;
use super::state::ConfigurationState;
use crate::config::{ConfigurationId, ServerId};
use crate::element::{Element, Handle};
use crate::instant::Instant;
use crate::limits;
use crate::message::{Note, ObjectReport, Phase, RestartNote, Stance, digest};
use crate::object::Name;
use crate::timing;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Notes with which a member answers one that asks.
const ANSWERS: u8 = 10;

/// A restart that is under way at a member, or may begin.
pub(super) struct Restarting {
    own: usize,
    agreement: Restart<u64>,
    /// The other members, by position.
    peers: Vec<Peer>,
    /// Notes count whose senders have heard this one, or a later one.
    began: u64,
    /// Its reports on the objects, while it agrees or applies. The reports do not change meanwhile.
    told: Arc<[ObjectReport]>,
    /// Some of the objects for which it abstains.
    abstaining: Arc<[ObjectReport]>,
    /// The reports of all members on these objects, once the restart is to be carried out.
    decided: Option<Vec<Vec<ObjectReport>>>,
    /// The time at which it speaks next.
    due: Instant,
    /// It asked with its last note.
    asks: bool,
    /// It is in a restart, or would begin one.
    waits: bool,
    /// Notes that it owes to those who ask.
    answers: u8,
}

/// The state of another member, as it was heard.
#[derive(Clone, Default)]
struct Peer {
    /// Number of its last note.
    turn: u64,
    /// The time at which its last note came that counts.
    heard_at: Option<Instant>,
    /// Its reports, each of an object.
    objects: Arc<[ObjectReport]>,
    value: Option<u64>,
    /// Objects for which it abstains, as far as it has said.
    abstains: BTreeSet<Name>,
}

impl Peer {
    /// Takes in the objects of a note that counts.
    fn hear(&mut self, note: &RestartNote) {
        self.objects = note.objects.clone();
        self.value = value_of(note.stance);
        if !note.asks || self.abstains.len() >= limits::GOSSIP_CHANGED {
            // It abstains for none; or it names them again, in turn.
            self.abstains.clear();
        }
        for report in note.objects.iter() {
            // What is agreed on is named again where that was not enough.
            match report.abstains && self.value.is_none() {
                true => self.abstains.insert(report.name.clone()),
                false => self.abstains.remove(&report.name),
            };
        }
    }
}

fn value_of(stance: Stance<u64>) -> Option<u64> {
    match stance.phase {
        Phase::Agreeing(value) | Phase::Applying(value) => Some(value),
        Phase::Idle | Phase::Recovering => None,
    }
}

impl Restarting {
    /// The restart at the member `own` of `n`, after this note of the server.
    pub(super) fn new((own, n): (usize, usize), turn: u64) -> Restarting {
        assert!(own < n, "it is a member");
        Restarting {
            own,
            agreement: Restart::new(own, n),
            peers: vec![Peer::default(); n],
            began: turn + 1,
            told: Arc::default(),
            abstaining: Arc::default(),
            decided: None,
            due: Instant::default(),
            asks: false,
            waits: false,
            answers: 0,
        }
    }

    /// True if the object stays as it is reported.
    pub(super) fn holds(&self, name: &Name) -> bool {
        self.told.iter().any(|told| told.name == *name)
    }

    fn is_silent(&self, now: Instant, member: usize) -> bool {
        let heard_at = self.peers[member].heard_at;
        member != self.own && heard_at.is_none_or(|at| now.since(at) > timing::RESTART_SILENCE)
    }

    /// The server's place among the members.
    pub(super) fn own(&self) -> usize {
        self.own
    }

    /// Members for which it waits: those that were not heard for a while, if there is something to do.
    pub(super) fn waits_for(&self, now: Instant) -> impl Iterator<Item = usize> {
        self.silent(now).filter(|_| self.waits)
    }

    /// The number of others that abstain for the object, as far as they have said.
    fn abstain(&self, name: &Name) -> usize {
        let others = self.peers.iter();
        others.filter(|peer| peer.abstains.contains(name)).count()
    }

    /// Members that were not heard for a while.
    fn silent(&self, now: Instant) -> impl Iterator<Item = usize> {
        (0..self.peers.len()).filter(move |member| self.is_silent(now, *member))
    }

    /// Takes in the note of another member. `turn`: the server's last note; `tell`: the server's holdings of an
    /// object.
    pub(super) fn hear(
        &mut self,
        (now, turn): (Instant, u64),
        (from, note): (usize, &RestartNote),
        tell: impl Fn(&Name) -> ObjectReport,
    ) {
        assert_ne!(from, self.own, "no member speaks to itself");
        let peer = &mut self.peers[from];
        peer.turn = note.turn;
        if note.asks {
            self.answers = ANSWERS;
        }
        if !(self.began..=turn).contains(&note.heard) || !note.is_possible() {
            return;
        }
        peer.heard_at = Some(now);
        peer.hear(note);
        let before = self.agreement.stance();
        self.agreement.hear(from, note.stance, note.echo);
        self.turned(before, turn, tell);
    }

    /// Proposes to restart these objects, if nothing is under way and all others are heard; and goes on as far as it can.
    fn go_on(
        &mut self,
        (now, turn): (Instant, u64),
        (waiting, abstaining): (&[Name], &[Name]),
        tell: impl Fn(&Name) -> ObjectReport,
    ) {
        let before = self.agreement.stance();
        let is_proposed = !waiting.is_empty() && self.agreement.is_idle();
        match is_proposed && self.silent(now).next().is_none() {
            true => {
                assert!(waiting.len() <= limits::RESTART_OBJECTS, "a note is short");
                self.told = waiting.iter().map(&tell).collect();
                self.agreement.propose(digest(&self.told));
            }
            false => self.agreement.step(),
        }
        self.turned(before, turn, tell);
        self.waits = !waiting.is_empty() || !self.agreement.is_idle();
        self.asks = self.waits || !abstaining.is_empty();
        self.abstaining = abstaining.iter().map(ObjectReport::abstaining).collect();
    }

    /// Reacts to a change of the agreement's phase: prepares the reports of a new agreement, or the decision to carry
    /// it out.
    fn turned(&mut self, before: Stance<u64>, turn: u64, tell: impl Fn(&Name) -> ObjectReport) {
        let stance = self.agreement.stance();
        if stance.phase == before.phase {
            return;
        }
        self.began = turn + 1;
        self.decided = None;
        let Some(value) = value_of(stance) else {
            self.told = Arc::default();
            return;
        };
        let is_told = !self.told.is_empty() && digest(&self.told) == value;
        if !is_told {
            let told = self.peers.iter().find(|peer| peer.value == Some(value));
            let told = told.expect("a member said it");
            let names = told.objects.iter().map(|told| &told.name);
            self.told = names.map(tell).collect();
        }
        assert_eq!(digest(&self.told), value, "it agrees on these objects");
        if is_told && stance.phase == Phase::Applying(value) {
            self.decided = self.reports();
        }
    }

    /// The reports of all members on each object, by position, if all have reported. Later notes do not change them.
    fn reports(&self) -> Option<Vec<Vec<ObjectReport>>> {
        let of_member = |(at, peer): (usize, &Peer)| match at == self.own {
            true => self.told.clone(),
            false => peer.objects.clone(),
        };
        let members: Vec<_> = self.peers.iter().enumerate().map(of_member).collect();
        let names =
            |objects: &[ObjectReport]| objects.iter().map(|it| it.name.clone()).collect::<Vec<_>>();
        let of_these = names(&self.told);
        let value = value_of(self.agreement.stance());
        let mut others = self.peers.iter().enumerate();
        // A list of what a member abstains for is no report.
        let are_agreed = others.all(|(at, peer)| at == self.own || peer.value == value);
        let is_complete = are_agreed && members.iter().all(|objects| names(objects) == of_these);
        let of_object = |at: usize| members.iter().map(|objects| objects[at].clone()).collect();
        is_complete.then(|| (0..self.told.len()).map(of_object).collect())
    }

    /// The decided restart, if it is to be carried out now.
    pub(super) fn take_decided(&mut self) -> Option<Vec<Vec<ObjectReport>>> {
        self.decided.take()
    }

    /// Objects with versions that may be renamed when the next tick comes.
    pub(super) fn decided(&self) -> impl Iterator<Item = &Name> {
        let decided = self.decided.iter().flatten();
        decided.map(|reports| &reports[self.own].name)
    }

    fn note(
        &self,
        (configuration, from): (ConfigurationId, ServerId),
        turn: u64,
        to: usize,
    ) -> RestartNote {
        assert!(turn >= self.began, "what it says now begins with this note");
        RestartNote {
            configuration,
            from,
            asks: self.asks,
            turn,
            heard: self.peers[to].turn,
            stance: self.agreement.stance(),
            echo: self.agreement.echo(to),
            objects: match value_of(self.agreement.stance()) {
                Some(_) => self.told.clone(),
                None => self.abstaining.clone(),
            },
        }
    }
}

impl Server {
    /// True if a restart is to go on.
    pub(super) fn restart_is_due(&self, now: Instant) -> bool {
        let is_due = |state: &ConfigurationState| {
            let under_way = state.restarting().is_some_and(|it| it.due <= now);
            under_way || state.restarting().is_none() && state.is_to_restart()
        };
        self.states.values().any(is_due)
    }

    /// Bytes of the elements that the next tick renames, each with the length of its name.
    pub(crate) fn renamed(&self) -> impl Iterator<Item = (usize, u64)> {
        let states = self.states.values();
        states.flat_map(ConfigurationState::renamed)
    }

    /// Carries out what all members have agreed on. `read`: the element of a record.
    pub(crate) fn carry_out(&mut self, now: Instant, read: impl Fn(Handle) -> Option<Element>) {
        let keys: Vec<ConfigurationId> = self.states.keys().copied().collect();
        for key in keys {
            let state = self.states.get_mut(&key).expect("it is there");
            for (name, newest) in state.carry_out(now, key, &mut self.ledger, &read) {
                self.has_changed(key, &name);
                self.await_quiet(now, key, &name, newest);
            }
        }
    }

    /// Sends notes about the restarts that this server takes part in.
    pub(super) fn speak_of_restarts(&mut self, now: Instant) {
        if !self.serving || self.unreadable || !self.restart_is_due(now) {
            return;
        }
        let (own, said) = (self.identity.id, self.turn);
        let turn = said + 1;
        let mut notes = Vec::new();
        for (key, state) in &mut self.states {
            let Some(c) = state.configuration().filter(|_| state.gossips()).cloned() else {
                continue;
            };
            let Some(place) = c.position(own) else {
                continue;
            };
            let n = c.members().len();
            let is_begun = state.restarting().is_some() || state.is_to_restart();
            if !is_begun || state.restarting().is_some_and(|it| it.due > now) {
                continue;
            }
            let mut restarting = state.take_restarting(|| Restarting::new((place, n), said));
            let abstaining = match restarting.agreement.is_idle() {
                true => state.abstaining(),
                false => Vec::new(),
            };
            // With itself, more than a quorum can do without.
            let few = n - c.quorums().quorum();
            let lost = abstaining.iter().filter(|it| restarting.abstain(it) >= few);
            let waiting = state.to_restart().chain(lost.cloned());
            let waiting: Vec<Name> = waiting.take(limits::RESTART_OBJECTS).collect();
            restarting.go_on((now, said), (&waiting, &abstaining), |name| {
                state.tell_of(name)
            });
            if !restarting.asks && restarting.answers == 0 {
                continue;
            }
            restarting.answers = restarting.answers.saturating_sub(1);
            let is_hurried = restarting.waits && restarting.silent(now).next().is_none();
            let period = match is_hurried {
                true => timing::RESTART,
                false => timing::GOSSIP,
            };
            restarting.due = now.plus(period);
            let others = (0..n).filter(|member| *member != place);
            notes.extend(others.map(|to| {
                let note = restarting.note((*key, own), turn, to);
                (c.members()[to], Note::Restart(Box::new(note)))
            }));
            state.go_on_restarting(restarting);
        }
        if !notes.is_empty() {
            assert!(turn > said, "notes are numbered");
            self.turn = turn;
        }
        self.say(notes);
    }

    /// Takes in where another member is.
    pub(super) fn hear_of_restart(&mut self, now: Instant, note: &RestartNote) {
        let own = self.identity.id;
        let state = self.states.get_mut(&note.configuration);
        let Some(state) = state.filter(|state| state.gossips()) else {
            return;
        };
        let c = state.configuration().expect("it gossips").clone();
        let of_members = (c.position(own), c.position(note.from));
        let (Some(place), Some(from)) = of_members else {
            return;
        };
        if place == from || note.objects.len() > limits::RESTART_OBJECTS {
            return;
        }
        let (n, turn) = (c.members().len(), self.turn);
        let mut restarting = state.take_restarting(|| Restarting::new((place, n), turn));
        restarting.hear((now, turn), (from, note), |name| state.tell_of(name));
        state.go_on_restarting(restarting);
    }
}
