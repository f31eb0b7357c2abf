//! The durable records of a server since its start, joined as a server joins them. After a start each record that was durable before must be
//! covered by that, and at any time what the server shows.

use super::{KeptRecord, ObjectId, Objects, Truth, domain_of};
use areo_core::config::ConfigurationId;
use areo_core::consensus::paxos::Acceptor;
use areo_core::dap::conditional::register::BallotFloor;
use areo_core::hash::stable_hash;
use areo_core::limits;
use areo_core::message::{Ballot, HeldVersions, RankedVersions, RecordRank, RegisterKey};
use areo_core::pointer::{Pointer, Successors};
use areo_core::tag::Tag;
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};

/// The records of one disk, joined.
#[derive(Default)]
pub(super) struct JoinedRecords {
    cells: BTreeMap<ConfigurationId, BTreeMap<Bytes, Acceptor>>,
    /// Marks of each object.
    pub(super) marks: BTreeMap<ObjectId, JoinedMarks>,
    /// For each object the number of changes of its register, and the largest ballot promised.
    registers: BTreeMap<ObjectId, (u64, Ballot)>,
    floors: BTreeMap<(ConfigurationId, u8), BallotFloor>,
    servers: BTreeMap<RegisterKey, RecordRank>,
    configurations: BTreeSet<ConfigurationId>,
    pointers: BTreeMap<ConfigurationId, Successors>,
}

/// Durable marks of an object beside its versions.
#[derive(Default)]
pub(super) struct JoinedMarks {
    floor: Tag,
    /// The largest tag recorded as being at a quorum.
    pub(super) stable: Tag,
    /// The largest tag recorded as known to be there.
    pub(super) complete: Tag,
    /// The tag up to which the fence reaches, and the number of its changes.
    fence: Option<(Tag, u64)>,
}

impl JoinedRecords {
    pub(super) fn join(&mut self, kept: &KeptRecord) {
        match kept {
            KeptRecord::Element { object, floor, .. } => {
                let known = self.marks.entry(*object).or_default();
                known.floor = known.floor.max(*floor);
            }
            KeptRecord::Marks { object, marks } => {
                let known = self.marks.entry(*object).or_default();
                known.floor = known.floor.max(marks.floor);
                known.stable = known.stable.max(marks.stable);
                known.complete = known.complete.max(marks.complete);
                let fence = marks.fence.as_ref().map(|fence| (fence.upto, fence.turn));
                known.fence = known.fence.max(fence);
            }
            KeptRecord::Cell {
                key,
                cell,
                acceptor,
            } => {
                let known = self.cells.entry(*key).or_default();
                let known = known.entry(cell.clone()).or_default();
                known.promised = known.promised.max(acceptor.promised);
                known.accepted = known.accepted.clone().max(acceptor.accepted.clone());
                known.decided |= acceptor.decided;
            }
            KeptRecord::Register { object, register } => {
                let known = self.registers.entry(*object).or_default();
                *known = (register.turn.max(known.0), register.promised.max(known.1));
            }
            KeptRecord::BallotFloor { key, bucket, floor } => {
                let known = self.floors.entry((*key, *bucket)).or_default();
                *known = known.max(*floor);
            }
            KeptRecord::Server { key, rank } => {
                let known = self.servers.entry(key.clone()).or_insert(*rank);
                *known = *rank.max(known);
            }
            KeptRecord::Configuration { key } => {
                self.configurations.insert(*key);
            }
            KeptRecord::Pointer { key, pointer } => {
                let known = self.pointers.entry(*key).or_default();
                // Of two that contradict each other the server keeps one: the rule `decided_once` says so.
                let _ = known.insert((**pointer).clone());
            }
            KeptRecord::Final { .. } => {}
        }
    }

    /// True if the records that were found state everything that this record states.
    pub(super) fn covers(&self, kept: &KeptRecord) -> bool {
        match kept {
            KeptRecord::Element { object, floor, .. } => {
                let found = self.marks.get(object);
                floor.is_initial() || found.is_some_and(|found| found.floor >= *floor)
            }
            KeptRecord::Marks { object, marks } => self.marks.get(object).is_some_and(|found| {
                let fence = marks.fence.as_ref().map(|fence| (fence.upto, fence.turn));
                // A confirmed version ends the fence below it.
                let is_over = fence.is_some_and(|(upto, _)| upto <= found.stable);
                let fenced = found.fence >= fence || is_over;
                let marked = found.stable >= marks.stable && found.complete >= marks.complete;
                found.floor >= marks.floor && marked && fenced
            }),
            KeptRecord::Cell {
                key,
                cell,
                acceptor,
            } => self.cell(key, cell).is_some_and(|found| {
                found.promised >= acceptor.promised
                    && found.decided >= acceptor.decided
                    && (found.decided || found.accepted >= acceptor.accepted)
            }),
            KeptRecord::Register { object, register } => {
                let found = self.registers.get(object);
                found.is_some_and(|(turn, _)| *turn >= register.turn)
            }
            KeptRecord::BallotFloor { key, bucket, floor } => {
                let found = self.floors.get(&(*key, *bucket));
                found.is_some_and(|found| found.says(*floor))
            }
            KeptRecord::Server { key, rank } => self.servers.get(key).is_some_and(|it| it >= rank),
            KeptRecord::Configuration { key } => self.configurations.contains(key),
            KeptRecord::Pointer { key, pointer } => self
                .pointers
                .get(key)
                .is_some_and(|found| found.says(pointer)),
            KeptRecord::Final { .. } => true,
        }
    }

    fn cell(&self, key: &ConfigurationId, cell: &Bytes) -> Option<&Acceptor> {
        self.cells.get(key)?.get(cell)
    }
}

/// Compares what a server shows with what is durable there (`[X-10 durable-replies]`).
impl Truth {
    /// True if the marks of the object that these versions come with are durable. Of `stable`, which is exempt where writers say it, nothing is
    /// asked.
    pub(crate) fn backs_marks(&self, object: ObjectId, held: &HeldVersions) -> bool {
        let none = JoinedMarks::default();
        let marks = self.joined.marks.get(&object).unwrap_or(&none);
        let fence = marks.fence.map_or(Tag::INITIAL, |(upto, _)| upto);
        held.floor <= marks.floor && held.fence <= fence && held.complete <= marks.complete
    }

    /// True if the promise of the register, and each version that is listed with its element, is durable.
    pub(crate) fn backs_register(
        &self,
        (object, objects): (ObjectId, &Objects),
        ranked: &RankedVersions,
    ) -> bool {
        let bucket = stable_hash(objects.name(object)) % limits::NAME_BUCKETS;
        let bucket = u8::try_from(bucket).expect("there are 256");
        let floor = self.joined.floors.get(&(objects.key(object), bucket));
        let floor = floor.map_or_else(Ballot::default, |floor| floor.promised);
        let register = self.joined.registers.get(&object);
        let promised = register.map_or(floor, |(_, promised)| floor.max(*promised));
        let mut listed = ranked.versions.iter().map(|it| it.tag);
        ranked.promised <= promised
            && listed.all(|tag| !ranked.stores(tag) || self.holds(object, tag))
    }

    /// True if it is durable that a value was accepted in the cell at this ballot, or that a value is decided.
    pub(crate) fn backs_cell(
        &self,
        (key, cell): (&ConfigurationId, &Bytes),
        accepted: Option<Ballot>,
    ) -> bool {
        let durable = self.joined.cell(key, cell);
        durable.is_some_and(|durable| match accepted {
            Some(ballot) => durable.accepted.as_ref().is_some_and(|it| it.0 >= ballot),
            None => durable.is_decided(),
        })
    }

    /// True if it is durable that these come after the configuration.
    pub(crate) fn backs_successors(&self, at: &ConfigurationId, shown: &Successors) -> bool {
        let last = self.final_index(domain_of(at));
        let known = self.joined.pointers.get(at);
        let is_known = |pointer: &Pointer| {
            let is_final = pointer.is_final() && pointer.index() <= last;
            is_final || known.is_some_and(|known| known.says(pointer))
        };
        shown.iter().all(is_known)
    }
}
