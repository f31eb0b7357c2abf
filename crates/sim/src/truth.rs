//! The real content of the servers' disks, as the harness knows it: kept beside the servers, from the steps that became
//! durable, and never asked of them.

mod dropped;
mod fates;
mod joined;
mod kept;

pub(crate) use fates::is_dropped;
pub(crate) use kept::{Identity, KeptRecord};

use crate::random::Table;
use crate::world::generation_of;
use areo_core::config::{ConfigurationId, ServerId};
use areo_core::dap::versions::Fence;
use areo_core::element::Form;
use areo_core::message::{GossipMarks, ServerRecord};
use areo_core::object::DomainId;
use areo_core::server::record::Step;
use areo_core::tag::Tag;
use bytes::Bytes;
use dropped::DroppedTombstones;
use fates::Fates;
use joined::JoinedRecords;
use std::collections::{BTreeMap, BTreeSet};

/// Number of an object in the order in which the run came across them.
pub(crate) type ObjectId = usize;

/// A domain, or a part of one, with a sequence of configurations of its own.
pub(crate) type Domain = (DomainId, u32);

/// The domain of a configuration.
pub(crate) fn domain_of(key: &ConfigurationId) -> Domain {
    (key.domain, key.partition)
}

/// Gives objects their numbers: one for each configuration of their domain.
#[derive(Default)]
pub(crate) struct Objects {
    numbers: BTreeMap<ConfigurationId, Table<Bytes, ObjectId>>,
    names: Vec<(ConfigurationId, Bytes)>,
}

impl Objects {
    pub(crate) fn number(&mut self, key: ConfigurationId, name: &Bytes) -> ObjectId {
        let numbers = self.numbers.entry(key).or_default();
        if let Some(number) = numbers.get(name) {
            return *number;
        }
        let name = Bytes::copy_from_slice(name);
        numbers.insert(name.clone(), self.names.len());
        self.names.push((key, name));
        self.names.len() - 1
    }

    pub(crate) fn len(&self) -> usize {
        self.names.len()
    }

    pub(crate) fn describe(&self, object: ObjectId) -> String {
        let (key, name) = &self.names[object];
        let text = String::from_utf8_lossy(&name[1..]);
        let domain = key.domain.0 & 0xffff;
        format!("{text} of domain {domain:04x}, configuration {}", key.index)
    }

    /// The number of the object, if it has one.
    pub(crate) fn find(&self, key: &ConfigurationId, name: &[u8]) -> Option<ObjectId> {
        self.numbers.get(key)?.get(name).copied()
    }

    /// The numbers of the object, in each configuration of its domain.
    pub(crate) fn in_domain(&self, domain: Domain, name: &[u8]) -> impl Iterator<Item = ObjectId> {
        let of_domain = self
            .numbers
            .iter()
            .filter(move |(key, _)| domain_of(key) == domain);
        of_domain.filter_map(move |(_, numbers)| numbers.get(name).copied())
    }

    pub(crate) fn name(&self, object: ObjectId) -> &[u8] {
        &self.names[object].1
    }

    pub(crate) fn key(&self, object: ObjectId) -> ConfigurationId {
        self.names[object].0
    }
}

/// Lasting damage of a disk.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(crate) enum Harm {
    #[default]
    None,
    /// Hints were lost, so that an unfinished batch cannot always be told from rot.
    LacksHints,
    /// Bits flipped, or files are missing: what of it can be read is known only when it is read.
    Rotten,
}

/// A durable element of one version.
#[derive(Clone, Copy, PartialEq, Eq)]
struct DurableElement {
    tag: Tag,
    form: Form,
    deleted: bool,
    damaged: bool,
}

/// The elements of one object, by rising tag; one version may have several records after a crash. They are few, and come and
/// go with every commit and every start, so that a list is faster than a map.
type Versions = Vec<DurableElement>;

/// The records of one server: on its disk, or in its memory.
#[derive(Default)]
pub(crate) struct Truth {
    /// The generation of the server: 0 for the first server of its machine, random for later ones.
    generation: u128,
    /// Records by the handle that the server gave them.
    records: Vec<Option<KeptRecord>>,
    /// Durable elements by object.
    elements: Vec<Versions>,
    /// All that the records say beside elements, those that went since the start included.
    joined: JoinedRecords,
    /// For each domain the highest configuration that was ever known here to be final.
    finals: BTreeMap<Domain, u32>,
    /// Final configurations of the servers that were on the machine before.
    finals_before: BTreeMap<Domain, u32>,
    /// For each object the last fence that was ever durable here.
    fences: BTreeMap<ObjectId, Fence>,
    /// Acceptances and decisions about dropped versions that were ever durable here.
    fates: Fates,
    /// Blocks of which the tombstone was dropped.
    dropped: DroppedTombstones,
    /// Steps of the batch that is being written.
    pending: Vec<(u32, Option<KeptRecord>)>,
    /// A copy is in the place of the server's own disk, which is this.
    aside: Option<Box<Truth>>,
    /// Lasting damage of the disk.
    harm: Harm,
    /// It knows that records are missing of which not even the key is known.
    pub(crate) unreadable: bool,
}

impl Truth {
    /// Notes the records of a closed batch, which are about to become durable.
    pub(crate) fn close(&mut self, steps: &[Step], objects: &mut Objects) {
        let before = self.pending.len();
        self.pending.extend(steps.iter().map(|step| match step {
            Step::Append { handle, header, .. } => {
                (handle.0, Some(KeptRecord::of(header, false, objects)))
            }
            Step::Free(handle) | Step::Bury { handle, .. } => (handle.0, None),
        }));
        let kept = self.pending[before..].iter().filter_map(|it| it.1.as_ref());
        kept.for_each(|kept| self.dropped.note_written(kept));
    }

    /// The batch is durable.
    pub(crate) fn committed(&mut self) {
        for (handle, kept) in std::mem::take(&mut self.pending) {
            match kept {
                Some(kept) => self.insert(handle, kept),
                None => self.remove(handle),
            }
        }
    }

    /// The batch will never be written; the records that it let go may be gone or not.
    pub(crate) fn lost(&mut self) {
        for (handle, kept) in std::mem::take(&mut self.pending) {
            if kept.is_none() {
                self.remove(handle);
            }
        }
    }

    /// Replaces the known records by those that recovery found. Returns durable records that are missing.
    pub(crate) fn recovered(
        &mut self,
        found: Vec<(u32, KeptRecord)>,
        unreadable: bool,
    ) -> Vec<KeptRecord> {
        let before = std::mem::take(&mut self.records);
        self.elements.iter_mut().for_each(Vec::clear);
        self.joined = JoinedRecords::default();
        self.unreadable = unreadable;
        self.dropped.note_found(found.iter().map(|(_, kept)| kept));
        for (handle, kept) in found {
            self.insert(handle, kept);
        }
        if unreadable {
            return Vec::new();
        }
        let missing = |kept: &KeptRecord| match kept {
            KeptRecord::Element { object, tag, .. } if !self.holds(*object, *tag) => true,
            // A higher one may stand for it.
            KeptRecord::Final { key } => self.final_index(domain_of(key)) < key.index,
            kept => !self.joined.covers(kept),
        };
        before.into_iter().flatten().filter(missing).collect()
    }

    fn insert(&mut self, handle: u32, kept: KeptRecord) {
        if let KeptRecord::Final { key } = &kept {
            let highest = self.finals.entry(domain_of(key)).or_default();
            *highest = key.index.max(*highest);
        }
        if let KeptRecord::Cell {
            key,
            cell,
            acceptor,
        } = &kept
        {
            self.fates.learn(*key, cell, acceptor);
        }
        self.joined.join(&kept);
        if let KeptRecord::Marks { object, marks } = &kept
            && let Some(fence) = &marks.fence
        {
            let last = self.fences.entry(*object).or_default();
            if (last.upto, last.turn) < (fence.upto, fence.turn) {
                *last = fence.clone();
            }
        }
        if let KeptRecord::Element {
            object,
            tag,
            form,
            deleted,
            damaged,
            ..
        } = kept
        {
            if self.elements.len() <= object {
                self.elements.resize_with(object + 1, Vec::new);
            }
            let copies = &mut self.elements[object];
            let place = copies.partition_point(|copy| copy.tag <= tag);
            let stored = DurableElement {
                tag,
                form,
                deleted,
                damaged,
            };
            copies.insert(place, stored);
        }
        let at = handle as usize;
        if self.records.len() <= at {
            self.records.resize(at + 1, None);
        }
        let before = self.records[at].replace(kept);
        assert!(before.is_none(), "a handle names one record");
    }

    fn remove(&mut self, handle: u32) {
        let Some(KeptRecord::Element {
            object,
            tag,
            form,
            deleted,
            damaged,
            ..
        }) = self.records.get_mut(handle as usize).and_then(Option::take)
        else {
            return;
        };
        let wanted = DurableElement {
            tag,
            form,
            deleted,
            damaged,
        };
        let copies = &mut self.elements[object];
        let place = copies.iter().position(|copy| *copy == wanted);
        copies.remove(place.expect("it was inserted"));
    }

    /// Objects of which several versions are stored.
    pub(crate) fn crowded(&self) -> impl Iterator<Item = ObjectId> {
        let objects = self.elements.iter().enumerate();
        objects
            .filter(|(_, copies)| {
                copies.first().map(|copy| copy.tag) != copies.last().map(|copy| copy.tag)
            })
            .map(|(object, _)| object)
    }

    fn versions(&self, object: ObjectId) -> &[DurableElement] {
        self.elements.get(object).map_or(&[], Vec::as_slice)
    }

    /// The highest configuration of the domain that was ever known here to be final.
    pub(crate) fn final_index(&self, domain: Domain) -> u32 {
        self.finals.get(&domain).copied().unwrap_or(0)
    }

    /// The highest configuration of the domain that this server or an earlier one of its machine has known to be final.
    pub(crate) fn ever_final(&self, domain: Domain) -> u32 {
        let before = self.finals_before.get(&domain).copied().unwrap_or(0);
        self.final_index(domain).max(before)
    }

    /// True if these are the records of this server, and not of a later one of its machine.
    pub(crate) fn is_of(&self, id: ServerId) -> bool {
        self.generation == generation_of(id)
    }

    /// Everything that is durable.
    pub(crate) fn records(&self) -> impl Iterator<Item = &KeptRecord> {
        self.records.iter().flatten()
    }

    /// True if this start of the server, or a later record that replaces it, is durable.
    pub(crate) fn knows(&self, record: &ServerRecord) -> bool {
        let (of, least) = (record.key(), record.rank());
        let is_of = |kept: &KeptRecord| matches!(kept, KeptRecord::Server { key, rank } if *key == of && *rank >= least);
        self.records.iter().flatten().any(is_of)
    }

    /// An element of this version is durable, readable or not.
    pub(crate) fn holds(&self, object: ObjectId, tag: Tag) -> bool {
        self.versions(object).iter().any(|copy| copy.tag == tag)
    }

    /// The durable versions, ascending.
    pub(crate) fn tags(&self, object: ObjectId) -> impl Iterator<Item = Tag> {
        self.versions(object).iter().map(|copy| copy.tag)
    }

    /// The largest tag that is durably known here to be at a quorum.
    pub(crate) fn mark(&self, object: ObjectId) -> Tag {
        let marks = self.joined.marks.get(&object);
        marks.map_or(Tag::INITIAL, |marks| marks.stable)
    }

    /// True if the server shows the version as finalized. A server that may lack records abstains.
    pub(crate) fn finalizes(&self, object: ObjectId, tag: Tag) -> bool {
        !self.is_harmed() && self.mark(object) >= tag
    }

    /// True if everything that the server's gossip says about the object is durable.
    pub(crate) fn says(&self, object: ObjectId, said: &GossipMarks) -> bool {
        let marks = self.joined.marks.get(&object);
        let complete = marks.map_or(Tag::INITIAL, |marks| marks.complete);
        let mark = self.mark(object);
        let fence = self
            .fences
            .get(&object)
            .map_or(Tag::INITIAL, |fence| fence.upto);
        let largest = self.newest(object).max(mark).max(fence);
        said.largest <= largest && said.finalized <= mark && said.complete <= complete
    }

    /// Durable versions up to this one.
    pub(crate) fn versions_upto(&self, object: ObjectId, tag: Tag) -> usize {
        let versions = self.versions(object);
        let upto = versions.iter().take_while(|copy| copy.tag <= tag);
        upto.map(|copy| copy.tag).collect::<BTreeSet<_>>().len()
    }

    /// The largest durable version.
    pub(crate) fn newest(&self, object: ObjectId) -> Tag {
        let newest = self.versions(object).last();
        newest.map_or(Tag::INITIAL, |copy| copy.tag)
    }

    /// Each object of which a version is durable, with the largest.
    pub(crate) fn all_newest(&self) -> impl Iterator<Item = (ObjectId, Tag)> {
        let objects = self.elements.iter().enumerate();
        objects.filter_map(|(object, copies)| Some((object, copies.last()?.tag)))
    }

    /// True if the largest durable version is a tombstone.
    pub(crate) fn is_deleted(&self, object: ObjectId) -> bool {
        self.versions(object)
            .last()
            .is_some_and(|newest| newest.deleted)
    }

    /// True if a tombstone up to this version is durable.
    pub(crate) fn has_tombstone(&self, object: ObjectId, upto: Tag) -> bool {
        let mut versions = self.versions(object).iter();
        versions.any(|copy| copy.deleted && copy.tag <= upto)
    }

    /// True if the server's own pointer shows that the configuration's successor is final.
    pub(crate) fn is_left(&self, left: &ConfigurationId) -> bool {
        self.records().any(
            |kept| matches!(kept, KeptRecord::Pointer { key, pointer } if key == left && pointer.is_final()),
        )
    }

    /// True if the version is below the object's fence and the fence does not list it, as for a dropped version
    /// (`[X-3 unconfirmed-cap]`).
    fn is_fenced_off(&self, object: ObjectId, tag: Tag) -> bool {
        let fence = self.fences.get(&object);
        fence.is_some_and(|fence| tag <= fence.upto && !fence.held.contains(&tag))
    }

    /// The largest durable version whose element is not damaged, and the largest that is.
    pub(crate) fn sound_and_damaged(&self, object: ObjectId) -> (Tag, Tag) {
        let (mut sound, mut damaged) = (Tag::INITIAL, Tag::INITIAL);
        for copies in self
            .versions(object)
            .chunk_by(|one, other| one.tag == other.tag)
        {
            match copies.iter().any(|copy| !copy.damaged) {
                true => sound = copies[0].tag,
                false => damaged = copies[0].tag,
            }
        }
        (sound, damaged)
    }

    /// A lasting fault struck.
    pub(crate) fn suffer(&mut self, harm: Harm) {
        self.harm = harm.max(self.harm);
    }

    /// Some of it cannot be read, or may not be.
    pub(crate) fn is_rotten(&self) -> bool {
        self.harm >= Harm::Rotten
    }

    /// All of it is there, and is known to be.
    pub(crate) fn is_sound(&self) -> bool {
        self.harm == Harm::None
    }

    /// Everything is gone. What is there from now on is this server's.
    pub(crate) fn wipe(&mut self, id: ServerId) {
        let mut finals_before = std::mem::take(&mut self.finals_before);
        for (domain, index) in &self.finals {
            let highest = finals_before.entry(*domain).or_default();
            *highest = index.max(highest).to_owned();
        }
        *self = Truth {
            generation: generation_of(id),
            finals_before,
            // What was decided with its vote stays decided.
            fates: std::mem::take(&mut self.fates),
            ..Truth::default()
        };
    }

    /// A copy takes the place of the disk. What happened to the disk may be in the copy.
    pub(crate) fn put_aside(&mut self) {
        let copy = Truth {
            generation: self.generation,
            harm: self.harm,
            ..Truth::default()
        };
        let own = std::mem::replace(self, copy);
        self.aside = Some(Box::new(own));
    }

    /// The disk is in its place again.
    pub(crate) fn put_back(&mut self) {
        if let Some(own) = self.aside.take() {
            *self = *own;
        }
    }

    /// The server's own disk, wherever it is.
    pub(crate) fn own(&self) -> &Truth {
        self.aside.as_deref().unwrap_or(self)
    }

    /// True if records that the server once had may be gone.
    pub(crate) fn is_harmed(&self) -> bool {
        self.harm >= Harm::Rotten || self.unreadable
    }

    /// Undamaged elements of versions from `from` on.
    pub(crate) fn sound_from(&self, object: ObjectId, from: Tag) -> BTreeSet<(Tag, Form)> {
        let copies = self.versions(object).iter();
        copies
            .filter(|copy| copy.tag >= from && !copy.damaged)
            .map(|copy| (copy.tag, copy.form))
            .collect()
    }
}

#[cfg(test)]
mod tests;
