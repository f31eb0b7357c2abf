//! The records that recovery has found, joined as a server joins it: each record that was durable before must be covered by that.

use super::{KeptRecord, ObjectId};
use areo_core::config::ConfigurationId;
use areo_core::consensus::paxos::Acceptor;
use areo_core::dap::conditional::register::BallotFloor;
use areo_core::message::{RecordRank, RegisterKey};
use areo_core::pointer::Successors;
use areo_core::tag::Tag;
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};

/// The records of one disk, joined.
#[derive(Default)]
pub(super) struct JoinedRecords<'a> {
    cells: BTreeMap<(ConfigurationId, &'a Bytes), Acceptor>,
    /// Marks of each object.
    marks: BTreeMap<ObjectId, JoinedMarks>,
    /// For each object the number of changes of its register.
    registers: BTreeMap<ObjectId, u64>,
    floors: BTreeMap<(ConfigurationId, u8), BallotFloor>,
    servers: BTreeMap<&'a RegisterKey, RecordRank>,
    configurations: BTreeSet<ConfigurationId>,
    pointers: BTreeMap<ConfigurationId, Successors>,
}

/// Durable marks of an object beside its versions.
#[derive(Default)]
struct JoinedMarks {
    floor: Tag,
    stable: Tag,
    complete: Tag,
    /// The tag up to which the fence reaches, and the number of its changes.
    fence: Option<(Tag, u64)>,
}

impl<'a> JoinedRecords<'a> {
    pub(super) fn of(records: impl Iterator<Item = &'a KeptRecord>) -> JoinedRecords<'a> {
        let mut joined = JoinedRecords::default();
        records.for_each(|kept| joined.join(kept));
        joined
    }

    fn join(&mut self, kept: &'a KeptRecord) {
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
                let known = self.cells.entry((*key, cell)).or_default();
                known.promised = known.promised.max(acceptor.promised);
                known.accepted = known.accepted.clone().max(acceptor.accepted.clone());
                known.decided |= acceptor.decided;
            }
            KeptRecord::Register { object, register } => {
                let known = self.registers.entry(*object).or_default();
                *known = register.turn.max(*known);
            }
            KeptRecord::BallotFloor { key, bucket, floor } => {
                let known = self.floors.entry((*key, *bucket)).or_default();
                *known = known.max(*floor);
            }
            KeptRecord::Server { key, rank } => {
                let known = self.servers.entry(key).or_insert(*rank);
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
            } => self.cells.get(&(*key, cell)).is_some_and(|found| {
                found.promised >= acceptor.promised
                    && found.decided >= acceptor.decided
                    && (found.decided || found.accepted >= acceptor.accepted)
            }),
            KeptRecord::Register { object, register } => {
                let found = self.registers.get(object);
                found.is_some_and(|turn| *turn >= register.turn)
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
}
