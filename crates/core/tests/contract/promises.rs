//! The answers of a server, and the later answers that contradict them.

use areo_core::config::{Configuration, Dap};
use areo_core::element::{Element, ReplyElement};
use areo_core::message::{
    Answer, Ballot, CellReply, CellRequest, HeldVersions, ListPage, Refusal, Reply,
};
use areo_core::pointer::{Pointer, Rank};
use areo_core::tag::Tag;
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A configuration and an object, or a cell, of it.
type Place = (usize, usize);

#[derive(Default)]
struct Object {
    acknowledged: BTreeSet<Tag>,
    last: HeldVersions,
}

#[derive(Default)]
struct Cell {
    promised: Ballot,
    accepted: Option<(Ballot, Bytes)>,
}

pub(super) struct Promises {
    replicates: Vec<bool>,
    objects: BTreeMap<Place, Object>,
    cells: BTreeMap<Place, Cell>,
    /// For each configuration the largest pointer shown, and whether it was withheld.
    pointers: Vec<(Option<Rank>, bool)>,
    latest: Option<u32>,
    registered: BTreeMap<usize, (u64, u64)>,
}

impl Promises {
    pub(super) fn new(c: &[Arc<Configuration>]) -> Promises {
        Promises {
            replicates: c.iter().map(|c| c.dap() == Dap::Abd).collect(),
            objects: BTreeMap::new(),
            cells: BTreeMap::new(),
            pointers: vec![(None, false); c.len()],
            latest: None,
            registered: BTreeMap::new(),
        }
    }

    /// Pointers only rise; what is withheld stays so, and comes with a final pointer.
    pub(super) fn pointer(&mut self, at: usize, shown: Option<&Pointer>, withheld: bool) {
        let (known, was_withheld) = &mut self.pointers[at];
        let rank = shown.map(Pointer::rank);
        assert!(rank >= *known, "{at}: {rank:?} after {known:?}");
        assert!(withheld || !*was_withheld, "{at} is back");
        assert!(!withheld || shown.is_some_and(Pointer::is_final));
        (*known, *was_withheld) = (rank, withheld);
    }

    pub(super) fn latest(&mut self, told: Option<usize>, reply: Result<Reply, Refusal>) {
        let Ok(Reply::Latest(latest)) = reply else {
            panic!("{reply:?}")
        };
        let latest = latest.map(|c| c.id().index);
        let told = told.map(|told| told as u32);
        assert!(latest >= self.latest.max(told), "{latest:?}");
        self.latest = latest;
    }

    pub(super) fn stored(&mut self, place: Place, tag: Tag, answer: Option<&Answer>) {
        let object = self.objects.entry(place).or_default();
        match answer {
            Some(Answer::Stored) => drop(object.acknowledged.insert(tag)),
            // Withheld; nothing to make it of; too many unconfirmed ones.
            None | Some(Answer::Needed | Answer::Refused(Refusal::Busy)) => {}
            Some(other) => panic!("{other:?} answers no put"),
        }
    }

    /// Never a wrong byte.
    pub(super) fn fetched(answer: Option<Answer>, expected: &Element) {
        match answer {
            Some(Answer::Fetched(carried)) => Promises::carried(&carried, expected),
            None | Some(Answer::Evicted) => {}
            Some(other) => panic!("{other:?} answers no fetch"),
        }
    }

    fn carried(carried: &ReplyElement, expected: &Element) {
        let ReplyElement::Whole(element) = carried else {
            panic!("a handle left the server")
        };
        assert_eq!(element.payload, expected.payload);
        assert_eq!(element.form, expected.form);
        assert_eq!(element.deleted, expected.deleted);
    }

    /// The version whose element comes with the answer.
    pub(super) fn newest(answer: &Answer) -> Option<Tag> {
        match answer {
            Answer::Held(held) => held.element.as_ref().map(|(tag, _)| *tag),
            _ => None,
        }
    }

    /// Tags, floors and confirmed tags only rise; what was acknowledged is there, or covered.
    pub(super) fn held(&mut self, place: Place, answer: Answer, newest: Option<&Element>) {
        let Answer::Held(held) = answer else {
            panic!("{answer:?} answers no query")
        };
        if let (Some((tag, carried)), Some(expected)) = (&held.element, newest) {
            assert_eq!(held.stored.last().map(|(tag, _)| *tag), Some(*tag));
            Promises::carried(carried, expected);
        }
        assert!(held.stored.is_sorted_by(|a, b| a.0 < b.0), "{held:?}");
        let Object { acknowledged, last } = self.objects.entry(place).or_default();
        assert!(held.max_tag() >= last.max_tag(), "{held:?} after {last:?}");
        assert!(held.floor >= last.floor, "{held:?} after {last:?}");
        assert!(held.stable >= last.stable, "{held:?} after {last:?}");
        // Nothing comes back from below the floor but by a put.
        for (tag, _) in &held.stored {
            let is_known = acknowledged.contains(tag);
            assert!(is_known, "{tag} was never acknowledged: {held:?}");
        }
        let replicates = self.replicates[place.0];
        for tag in acknowledged.iter() {
            // A replica keeps the largest, which is all that is ever asked of it.
            let covered = replicates && *tag <= held.max_tag();
            assert!(covered || held.supports(*tag), "{tag} is gone: {held:?}");
        }
        if !replicates {
            for (tag, _) in &last.stored {
                let is_needed = *tag >= held.stable && !is_superseded(*tag, &held);
                assert!(
                    !is_needed || held.stores(*tag),
                    "{tag} was evicted: {held:?}"
                );
            }
        }
        *last = held;
    }

    /// A listing and a query agree on each object.
    pub(super) fn listed(&self, at: usize, keys: &[&str], listed: &ListPage) {
        for (number, key) in keys.iter().enumerate() {
            let object = self.objects.get(&(at, number));
            let newest = object.and_then(|object| object.last.stored.last());
            let entry = listed.entries.iter().find(|entry| entry.key == *key);
            let tags = (newest.map(|(tag, _)| *tag), entry.map(|entry| entry.tag));
            assert_eq!(tags.0, tags.1, "{key}");
        }
    }

    /// Promises are kept, what was accepted is shown, and nothing is accepted below a promise.
    pub(super) fn cell(&mut self, place: Place, step: &CellRequest, reply: CellReply) {
        let known = self.cells.entry(place).or_default();
        match (step, reply) {
            (CellRequest::Prepare { ballot }, CellReply::Promised { accepted }) => {
                assert!(*ballot >= known.promised, "promised {:?}", known.promised);
                assert_eq!(accepted, known.accepted);
                known.promised = *ballot;
            }
            (CellRequest::Accept { ballot, value }, CellReply::Accepted) => {
                assert!(*ballot >= known.promised, "promised {:?}", known.promised);
                known.promised = *ballot;
                known.accepted = Some((*ballot, value.clone()));
            }
            (
                CellRequest::Prepare { ballot } | CellRequest::Accept { ballot, .. },
                CellReply::Rejected { promised },
            ) => assert!(promised > *ballot && promised == known.promised),
            (_, CellReply::Promised { accepted } | CellReply::Closed { accepted }) => {
                assert_eq!(accepted, known.accepted);
            }
            (step, reply) => panic!("{reply:?} answers {step:?}"),
        }
    }

    /// A server keeps the record of the latest incarnation of another server.
    pub(super) fn registered(
        &mut self,
        server: usize,
        start: (u64, u64),
        reply: Result<Reply, Refusal>,
    ) {
        let known = self.registered.get(&server).copied();
        let is_newer = known.is_none_or(|known| start.0 >= known.0);
        match reply {
            Ok(Reply::Registered) => {
                assert!(is_newer, "{start:?} after {known:?}");
                self.registered.insert(server, start);
            }
            Ok(Reply::Outdated { registered }) => {
                assert!(!is_newer, "{start:?} after {known:?}");
                assert_eq!(Some(registered), known.map(|known| known.0));
            }
            other => panic!("{other:?}"),
        }
    }

    /// Forgets the content of notes, which need not be durable: its loss costs time only.
    pub(super) fn restarted(&mut self) {
        for object in self.objects.values_mut() {
            object.last.stable = Tag::INITIAL;
        }
    }
}

/// A larger tombstone is there, for whose sake smaller versions go.
fn is_superseded(tag: Tag, held: &HeldVersions) -> bool {
    let listed = held.stored.iter().map(|(listed, _)| *listed);
    listed
        .filter(|listed| *listed > tag)
        .any(super::is_tombstone)
}
