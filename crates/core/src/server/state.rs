//! A server's part of one configuration: its objects and cells. Which versions of an object are taken in and which go is
//! said by the server halves of the data access primitives; here it is carried out and recorded.

mod asked;
mod fence;
mod floors;
mod gossip;
mod keeping;
mod listing;
pub(super) mod ranked;
mod recovery;
mod restarting;
pub(super) mod standing;
mod tombstones;

use super::record::{ElementHeader, Header, Ledger};
use crate::config::{Collect, Configuration, ConfigurationId};
use crate::consensus::mailbox::MAILBOX_CELL;
use crate::consensus::paxos::Acceptor;
use crate::consensus::{self, fate, keeps_joins};
use crate::dap;
use crate::dap::versions::{Admission, Arrival, Versions};
use crate::element::{Element, Handle};
use crate::instant::Instant;
use crate::limits;
use crate::message::{CellReply, CellRequest, CellSummary, Refusal};
use crate::object::{Name, UPLOAD_PREFIX};
use crate::pointer::{Pointer, Rank, Successors};
use crate::tag::Tag;
use bytes::Bytes;
use floors::BallotFloors;
use keeping::{
    admission, enqueue, forget, forget_fates, handles, is_removed_block, mark, object, tag_alone,
    take_in, trim,
};
use ranked::KeptRegister;
use recovery::RecoveryFindings;
use restarting::Restarts;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

/// Why there is a configuration where something is asked of it.
const ADMITTED: &str = "requests are admitted by configuration";

#[derive(Default)]
pub(super) struct ConfigurationState {
    /// `None` only while, or after, its own record was not found in recovery.
    configuration: Option<(Arc<Configuration>, Handle)>,
    /// The versions of objects, by [`Name::as_bytes`]: grouped by kind, ordered by key.
    objects: BTreeMap<Bytes, Versions>,
    /// The memory of those of them that are ranked registers.
    registers: BTreeMap<Bytes, KeptRegister>,
    /// The promises for registers of which nothing is here.
    floors: BallotFloors,
    cells: BTreeMap<Bytes, (Acceptor, Handle)>,
    /// Some of them may be fates of versions.
    has_fates: bool,
    /// The successors (`nextC` in the papers).
    next: Successors,
    /// The record of each of these pointers, by its rank.
    next_records: BTreeMap<Rank, Handle>,
    /// Since when something comes next; the start, of a server that knew it before.
    next_since: Instant,
    restarts: Restarts,
    /// Empty but in recovery.
    found: RecoveryFindings,
}

impl ConfigurationState {
    pub(super) fn configuration(&self) -> Option<&Arc<Configuration>> {
        self.configuration
            .as_ref()
            .map(|(configuration, _)| configuration)
    }

    pub(super) fn describe(
        &mut self,
        configuration: Arc<Configuration>,
        handle: Handle,
        ledger: &mut Ledger,
    ) {
        match &self.configuration {
            Some(_) => ledger.supersede([handle]),
            None => self.configuration = Some((configuration, handle)),
        }
    }

    // ---- what comes next ----

    pub(super) fn next(&self) -> &Successors {
        &self.next
    }

    /// Takes a pointer that is recorded under `handle`, if it says something new (`[A-2 pointers-rise]`). What it takes the
    /// place of goes.
    pub(super) fn point(
        &mut self,
        now: Instant,
        (pointer, handle): (Pointer, Handle),
        ledger: &mut Ledger,
    ) {
        let (rank, was_empty) = (pointer.rank(), self.next.is_empty());
        // Of two that contradict each other the known one is kept.
        if self.next.insert(pointer) != Ok(true) {
            return ledger.supersede([handle]);
        }
        if was_empty {
            self.next_since = now;
        }
        self.next_records.insert(rank, handle);
        let is_known = |rank: &Rank| self.next.iter().any(|known| known.rank() == *rank);
        let gone = self.next_records.extract_if(.., |rank, _| !is_known(rank));
        ledger.supersede(gone.map(|(_, handle)| handle));
        assert_eq!(self.next_records.len(), self.next.len(), "a record each");
    }

    /// True if it answers with its pointer and nothing else: its state is, or may be, gone (`[A-11 drop-when-final]`).
    pub(super) fn withholds(&self) -> bool {
        let keeps = self
            .configuration()
            .is_some_and(|c| c.options().collect == Collect::Off);
        !keeps && self.next.last_final().is_some()
    }

    /// Lets everything go but the pointer and what describes the configuration.
    pub(super) fn empty(&mut self, ledger: &mut Ledger) {
        let objects = std::mem::take(&mut self.objects).into_values();
        ledger.supersede(objects.flat_map(Versions::into_handles));
        let registers = std::mem::take(&mut self.registers).into_values();
        ledger.supersede(registers.filter_map(|kept| kept.record));
        ledger.supersede(std::mem::take(&mut self.floors).into_handles());
        let cells = std::mem::take(&mut self.cells).into_values();
        ledger.supersede(cells.map(|(_, handle)| handle));
        ledger.supersede(std::mem::take(&mut self.restarts).into_handles());
    }

    /// Drops the whole state, and supersedes its records.
    pub(super) fn drop_all(mut self, ledger: &mut Ledger) {
        self.empty(ledger);
        ledger.supersede(self.configuration.map(|(_, handle)| handle));
        ledger.supersede(self.next_records.into_values());
    }

    // ---- objects ----

    /// Takes a version in. Returns the object's newest version if it is to wait for its quiet time.
    pub(super) fn put(
        &mut self,
        now: Instant,
        (key, name): (ConfigurationId, &Name),
        (tag, element, arrival): (Tag, Element, (Arrival, usize)),
        ledger: &mut Ledger,
    ) -> Result<Option<Tag>, Refusal> {
        assert!(self.found.is_empty(), "recovery has judged what it found");
        if self.is_ranked(name) {
            return Err(Refusal::Malformed);
        }
        assert!(!self.becomes_ranked(name), "it was refused before");
        let unfrozen = self.unfrozen(name);
        let (c, _) = self.configuration.as_ref().expect(ADMITTED);
        let versions = match self.objects.get_mut(name.as_bytes()) {
            Some(versions) => versions,
            None => object(&mut self.objects, name),
        };
        let admission = admission(c, versions, tag, arrival);
        if admission != Admission::Acknowledge || versions.damaged().is_some() {
            unfrozen?;
        }
        let element = match admission {
            Admission::Acknowledge if versions.damaged().is_some() && versions.lost().is_none() => {
                return Err(Refusal::Damaged);
            }
            Admission::Acknowledge => return Ok(None),
            Admission::Busy => return Err(Refusal::Busy),
            Admission::Fenced => return Err(Refusal::Fenced),
            Admission::Full => return Err(Refusal::TooLarge),
            Admission::RaiseFloor => {
                versions.raise_floor(tag);
                mark(key, name, versions, ledger);
                return Ok(None);
            }
            Admission::StoreTag => tag_alone(&element),
            Admission::Store => element,
        };
        let (handle, header) = take_in(key, name, versions, (tag, &element), ledger);
        versions.taken_in_s = now.next_second();
        let evicted = trim((c, key, name), versions, false, ledger);
        ledger.trimmed += evicted.len() as u64;
        ledger.supersede_of(name, handles(&evicted));
        if versions.keep_behind_fence(tag) {
            mark(key, name, versions, ledger);
        }
        // The element's record says the floor, so that an older record of it is no longer needed.
        ledger.supersede(versions.unmark());
        let (floor, largest) = (versions.floor(), versions.largest());
        assert!(largest.is_some_and(|it| it.tag >= tag), "the largest stays");
        assert!(tag.is_possible(), "recovery takes in what is recorded");
        let header = Header::Element(ElementHeader { floor, ..header });
        ledger.append_element(handle, header, element.payload, element.checksum);
        Ok(enqueue(versions))
    }

    /// The version is at a quorum. Returns the object's newest version if it is to wait for its quiet time.
    pub(super) fn confirm(
        &mut self,
        key: ConfigurationId,
        name: &Name,
        tag: Tag,
        ledger: &mut Ledger,
    ) -> Option<Tag> {
        let (c, _) = self.configuration.as_ref()?;
        if !dap::has_confirm(c) || c.is_ranked(name) {
            // Only a round raises the mark, durably ([CAS-1 durable-marks]); registers have ballots.
            return None;
        }
        // For an object that is not here the note came before the put; what it says is then said by the put's quorum.
        let versions = self.objects.get_mut(name.as_bytes())?;
        if versions.confirm(tag) {
            if self.has_fates {
                forget_fates(&mut self.cells, (c, name), tag, ledger);
            }
            let quiet = is_removed_block(name, versions);
            let evicted = trim((c, key, name), versions, quiet, ledger);
            ledger.trimmed += evicted.len() as u64;
            forget(key, name, versions, handles(&evicted), ledger);
        }
        enqueue(versions)
    }

    /// FIN: the version is finalized, whether its element is here or not (`[CAS-1 durable-marks]`, `[CAS-4 no-zombies]`). FIN2, if it
    /// is `complete`. Returns the object's newest version if it is to wait for its quiet time.
    pub(super) fn finalize(
        &mut self,
        (key, name): (ConfigurationId, &Name),
        (tag, complete): (Tag, bool),
        ledger: &mut Ledger,
    ) -> Result<Option<Tag>, Refusal> {
        self.speaking(name)?;
        let (c, _) = self.configuration.as_ref().expect(ADMITTED);
        if !dap::takes_fin(c, complete) {
            return Err(Refusal::Malformed);
        }
        let unfrozen = self.unfrozen(name);
        let versions = object(&mut self.objects, name);
        if tag > versions.stable() || complete && tag > versions.complete() {
            unfrozen?;
        }
        let rises = versions.confirm(tag) | (complete && versions.complete_upto(tag));
        if rises {
            self.marks_rose(key, name, ledger);
        }
        let versions = object(&mut self.objects, name);
        assert!(versions.stable() >= tag, "reads find it from now on");
        Ok(enqueue(versions))
    }

    /// The quiet time of the object has come. Returns its newest version if it was not quiet and has to wait again.
    pub(super) fn quiet(
        &mut self,
        key: ConfigurationId,
        name: &Name,
        newest: Tag,
        ledger: &mut Ledger,
    ) -> Option<Tag> {
        let is_frozen = self.is_frozen(name);
        let (c, _) = self.configuration.as_ref()?;
        let versions = self.objects.get_mut(name.as_bytes())?;
        versions.queued = false;
        if is_frozen || versions.largest().is_some_and(|now| now.tag > newest) {
            return enqueue(versions);
        }
        let evicted = trim((c, key, name), versions, true, ledger);
        ledger.trimmed += evicted.len() as u64;
        forget(key, name, versions, handles(&evicted), ledger);
        None
    }

    // ---- cells ----

    pub(super) fn cell(
        &mut self,
        cell: &Bytes,
        step: CellRequest,
        ledger: &mut Ledger,
    ) -> Result<CellReply, Refusal> {
        let value_bytes = match &step {
            CellRequest::Accept { value, .. } | CellRequest::Join(value) => value.len(),
            CellRequest::Query | CellRequest::Prepare { .. } => 0,
        };
        let fits = cell.len() <= limits::CELL_NAME_BYTES && value_bytes <= limits::CELL_BYTES;
        if !fits || !step.is_possible() {
            return Err(Refusal::TooLarge);
        }
        let mut acceptor = self
            .cells
            .get(cell)
            .map(|(acceptor, _)| acceptor.clone())
            .unwrap_or_default();
        if !acceptor.is_possible() {
            return Err(Refusal::Damaged);
        }
        let (reply, changed) = match step {
            // Also where a successor is known: the reply shows that one, and it goes before what is decided.
            CellRequest::Join(value) => {
                consensus::join(&mut acceptor, cell, &value).ok_or(Refusal::Malformed)?
            }
            CellRequest::Prepare { .. } | CellRequest::Accept { .. } if keeps_joins(cell) => {
                return Err(Refusal::Malformed);
            }
            step => acceptor.receive(step, !self.next.is_empty()),
        };
        if changed {
            self.keep_cell(cell, acceptor, ledger);
        }
        Ok(reply)
    }

    /// The content of the mailbox.
    pub(super) fn posted(&self) -> BTreeSet<Bytes> {
        let mailbox = self.cells.get(MAILBOX_CELL);
        mailbox.map_or_else(BTreeSet::new, |(mailbox, _)| mailbox.posted())
    }

    pub(super) fn decided(&mut self, cell: &Bytes, value: Bytes, ledger: &mut Ledger) {
        let fits = cell.len() <= limits::CELL_NAME_BYTES && value.len() <= limits::CELL_BYTES;
        if !fits || keeps_joins(cell) {
            return;
        }
        let mut acceptor = self
            .cells
            .get(cell)
            .map(|(acceptor, _)| acceptor.clone())
            .unwrap_or_default();
        if acceptor.decide(value) {
            self.keep_cell(cell, acceptor, ledger);
        }
    }

    /// No decision about the upload of this cell matters any more: the cell goes. Others never do.
    pub(super) fn forget(&mut self, cell: &Bytes, ledger: &mut Ledger) {
        if cell.starts_with(UPLOAD_PREFIX.as_bytes()) {
            let gone = self.cells.remove(cell);
            ledger.supersede(gone.map(|(_, handle)| handle));
        }
    }

    fn keep_cell(&mut self, cell: &Bytes, acceptor: Acceptor, ledger: &mut Ledger) {
        let key = self.configuration().expect(ADMITTED).id();
        assert!(
            cell.len() <= limits::CELL_NAME_BYTES,
            "longer ones are refused"
        );
        let cell = Bytes::copy_from_slice(cell);
        self.has_fates |= fate::is_fate(&cell);
        let header = Header::Cell {
            key,
            cell: cell.clone(),
            acceptor: acceptor.clone(),
        };
        let handle = ledger.append(header);
        let replaced = self.cells.insert(cell, (acceptor, handle));
        let decided = replaced.as_ref().filter(|(old, _)| old.is_decided());
        assert!(decided.is_none(), "what is decided stays");
        ledger.supersede(replaced.map(|(_, old)| old));
    }

    pub(super) fn cells(&self, prefix: &Bytes, after: &Bytes) -> (Vec<CellSummary>, bool) {
        let start = match after >= prefix {
            true => Bound::Excluded(after.clone()),
            false => Bound::Included(prefix.clone()),
        };
        let mut cells = Vec::new();
        let range = self.cells.range((start, Bound::Unbounded));
        for (cell, (acceptor, _)) in range.take_while(|(cell, _)| cell.starts_with(prefix)) {
            let value = match &acceptor.accepted {
                Some((_, value)) => value.clone(),
                // A promise alone, which came after the cell was forgotten: a sweep must find the cell.
                None if cell.starts_with(UPLOAD_PREFIX.as_bytes()) => Bytes::new(),
                None => continue,
            };
            if cells.len() == limits::PAGE_ENTRIES / 10 {
                return (cells, true);
            }
            cells.push(CellSummary {
                cell: cell.clone(),
                value,
                decided: acceptor.decided,
            });
        }
        (cells, false)
    }
}
