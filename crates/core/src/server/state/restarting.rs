//! A member's reports on objects whose counters are restarted, and the execution of the agreement (`docs/spec` 2.11).

use super::ConfigurationState;
use super::keeping::{enqueue, forget, object, take_in};
use crate::config::ConfigurationId;
use crate::dap::casss::kept::{KeptVersion, kept};
use crate::dap::versions::StoredVersion;
use crate::element::{Element, Handle};
use crate::instant::Instant;
use crate::limits;
use crate::message::{ObjectReport, Refusal, Want};
use crate::object::Name;
use crate::server::record::{ElementHeader, Header, Ledger};
use crate::server::restarting::Restarting;
use crate::tag::Tag;
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

/// A record that says a tag which no execution produces (`[N-1 bounded-numbers]`).
pub(in crate::server) struct ImpossibleRecord {
    handle: Handle,
    /// The version that it holds, if it can be read.
    element: Option<StoredVersion>,
}

/// Restarts of a configuration whose members can agree on them.
#[derive(Default)]
pub(super) struct Restarts {
    /// Objects that abstain because of such records, with all that were found.
    impossible: BTreeMap<Bytes, Vec<ImpossibleRecord>>,
    /// Other objects that abstain, for damaged records, or did so.
    damaged: BTreeSet<Bytes>,
    /// Up to which of these it has said so.
    turn: Bytes,
    under_way: Option<Box<Restarting>>,
}

impl Restarts {
    pub(super) fn found(&mut self, name: &Name, handle: Handle, element: Option<StoredVersion>) {
        let records = self.impossible.entry(name.as_bytes().clone()).or_default();
        records.push(ImpossibleRecord { handle, element });
    }

    /// The element in the record of an impossible version cannot be read. False: there is no such element, or it was lost before.
    pub(super) fn lose_element(
        &mut self,
        name: &Name,
        is_lost: impl Fn(&StoredVersion) -> bool,
    ) -> bool {
        let records = self.impossible.get_mut(name.as_bytes());
        let records = records.into_iter().flatten();
        let lost = records.filter_map(|record| record.element.take_if(|it| is_lost(it)));
        lost.count() > 0
    }

    /// The damaged object after the last one that was named, in turn.
    fn next_damaged(&mut self) -> Option<Bytes> {
        let after = (Bound::Excluded(&self.turn), Bound::Unbounded);
        let next = self.damaged.range::<Bytes, _>(after).next();
        let next = next.or_else(|| self.damaged.first())?.clone();
        self.turn = next.clone();
        Some(next)
    }

    pub(super) fn into_handles(self) -> impl Iterator<Item = Handle> {
        let records = self.impossible.into_values().flatten();
        records.map(|record| record.handle)
    }
}

fn name_of(bytes: &Bytes) -> Name {
    Name::from_bytes(bytes.clone()).expect("it was a name before")
}

impl ConfigurationState {
    /// True if there is something to restart.
    pub(in crate::server) fn is_to_restart(&self) -> bool {
        let Restarts {
            impossible,
            damaged,
            ..
        } = &self.restarts;
        !(impossible.is_empty() && damaged.is_empty()) && self.gossips()
    }

    /// Objects that are to be restarted in any case.
    pub(in crate::server) fn to_restart(&self) -> impl Iterator<Item = Name> {
        self.restarts.impossible.keys().map(name_of)
    }

    /// If the object abstains now, others are to know (`[CASSS-9 agreed-end-of-abstention]`).
    pub(super) fn found_damage(&mut self, name: &Name) {
        let versions = self.objects.get(name.as_bytes());
        let abstains = versions.is_some_and(|versions| versions.damaged().is_some());
        if abstains
            && self.restarts_objects()
            && !self.restarts.impossible.contains_key(name.as_bytes())
        {
            let name = Bytes::copy_from_slice(name.as_bytes());
            self.restarts.damaged.insert(name);
        }
    }

    /// Some of the damaged objects, others each time. One that was mended is forgotten.
    pub(in crate::server) fn abstaining(&mut self) -> Vec<Name> {
        let mut names = BTreeSet::new();
        for _ in 0..limits::RESTART_OBJECTS {
            let Some(next) = self.restarts.next_damaged() else {
                break;
            };
            let versions = self.objects.get(&next);
            if versions.is_some_and(|versions| versions.damaged().is_some()) {
                names.insert(name_of(&next));
            } else {
                self.restarts.damaged.remove(&next);
            }
        }
        names.into_iter().collect()
    }

    /// The restart that is under way, or may begin. With a final successor there is none.
    pub(in crate::server) fn restarting(&self) -> Option<&Restarting> {
        let under_way = self.restarts.under_way.as_deref();
        under_way.filter(|_| self.gossips())
    }

    pub(in crate::server) fn take_restarting(
        &mut self,
        begin: impl FnOnce() -> Restarting,
    ) -> Box<Restarting> {
        let under_way = self.restarts.under_way.take();
        under_way.unwrap_or_else(|| Box::new(begin()))
    }

    pub(in crate::server) fn go_on_restarting(&mut self, restarting: Box<Restarting>) {
        assert!(self.restarts.under_way.is_none(), "it was taken");
        self.restarts.under_way = Some(restarting);
    }

    /// True if the object is frozen until all members have carried out their agreement
    /// (`[CASSS-7 frozen-while-agreeing]`).
    pub(super) fn is_frozen(&self, name: &Name) -> bool {
        self.restarting().is_some_and(|it| it.holds(name))
    }

    /// Refuses access to the object while it is being restarted.
    pub(super) fn unfrozen(&self, name: &Name) -> Result<(), Refusal> {
        match self.is_frozen(name) {
            true => Err(Refusal::Restarting),
            false => Ok(()),
        }
    }

    /// A report of the object, records of impossible tags included.
    pub(in crate::server) fn tell_of(&self, name: &Name) -> ObjectReport {
        let versions = self.objects.get(name.as_bytes());
        let held = versions.map(|versions| versions.held(Want::Tags, Tag::INITIAL));
        let mut held = held.unwrap_or_default();
        let records = self.restarts.impossible.get(name.as_bytes());
        let elements = records.into_iter().flatten();
        let elements = elements.filter_map(|record| record.element.as_ref());
        let stored = elements.map(|stored| (stored.tag, stored.form));
        let all: BTreeMap<Tag, _> = stored.chain(held.stored).collect();
        let surplus = all.len().saturating_sub(limits::RESTART_VERSIONS);
        held.stored = all.into_iter().skip(surplus).collect();
        assert!(
            held.stored.len() <= limits::RESTART_VERSIONS,
            "a note is short"
        );
        assert!(held.stored.is_sorted(), "versions ascend");
        ObjectReport {
            name: name.clone(),
            abstains: versions.is_some_and(|versions| versions.damaged().is_some()),
            held,
        }
    }

    /// Bytes of the elements that may be renamed by the next [`Self::carry_out`], each with the length of its name.
    pub(in crate::server) fn renamed(&self) -> impl Iterator<Item = (usize, u64)> {
        let decided = self.restarting().into_iter().flat_map(Restarting::decided);
        decided.flat_map(|name| {
            let records = self.restarts.impossible.get(name.as_bytes());
            let elements = records.into_iter().flatten();
            let elements = elements.filter_map(|record| record.element.as_ref());
            elements.map(|stored| (name.as_bytes().len(), stored.bytes))
        })
    }

    /// Carries out what all members have agreed on. Returns the objects, and the newest version of those that are to wait for their
    /// quiet time.
    pub(in crate::server) fn carry_out(
        &mut self,
        now: Instant,
        key: ConfigurationId,
        ledger: &mut Ledger,
        read: &impl Fn(Handle) -> Option<Element>,
    ) -> Vec<(Name, Option<Tag>)> {
        let gossips = self.gossips();
        let under_way = self.restarts.under_way.as_mut().filter(|_| gossips);
        let Some(decided) = under_way.and_then(|it| it.take_decided()) else {
            return Vec::new();
        };
        let c = self.configuration().expect("it gossips").clone();
        let own = self.restarting().expect("it was decided").own();
        let mut changed = Vec::new();
        for told in decided {
            let name = told[own].name.clone();
            let kept = kept(&c, &told.iter().collect::<Vec<_>>());
            if told[own].abstains {
                self.end_abstention(now, (key, &name), kept, (ledger, read));
            }
            if let Some(kept) = kept
                && object(&mut self.objects, &name).confirm(kept.to)
            {
                self.marks_rose(key, &name, ledger);
            }
            if let Some(versions) = self.objects.get_mut(name.as_bytes()) {
                let newest = enqueue(versions);
                changed.push((name, newest));
            }
        }
        changed
    }

    /// Ends the abstention of the object, with its sound versions, and with the element of the version that all keep.
    fn end_abstention(
        &mut self,
        now: Instant,
        (key, name): (ConfigurationId, &Name),
        kept: Option<KeptVersion>,
        (ledger, read): (&mut Ledger, &impl Fn(Handle) -> Option<Element>),
    ) {
        let versions = object(&mut self.objects, name);
        let records = self.restarts.impossible.remove(name.as_bytes());
        let mut gone: Vec<Handle> = Vec::new();
        let (lost, record) = versions.lift_damage().unwrap_or_default();
        gone.extend(record);
        let floor = Some(lost).filter(|lost| *lost != Tag::LARGEST);
        versions.raise_floor(floor.unwrap_or_default());
        for ImpossibleRecord { handle, element } in records.into_iter().flatten() {
            gone.push(handle);
            let Some(stored) = element else { continue };
            let renamed = kept.filter(|kept| kept.from == stored.tag);
            match renamed.and_then(|kept| Some((kept.to, read(handle)?))) {
                Some((to, element)) if versions.find(to).is_none() => {
                    let taken = take_in(key, name, versions, (to, &element), ledger);
                    versions.taken_in_s = now.next_second();
                    let floor = versions.floor();
                    let header = Header::Element(ElementHeader { floor, ..taken.1 });
                    ledger.append_element(taken.0, header, element.payload, element.checksum);
                }
                // What was lost is remembered as evicted: it was held here.
                _ if stored.tag.is_possible() => versions.raise_floor(stored.tag),
                _ => {}
            }
        }
        ledger.repaired += 1;
        assert_eq!(versions.damaged(), None, "it speaks again");
        forget(key, name, versions, gone, ledger);
    }
}
