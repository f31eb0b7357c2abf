//! The recovery of a server's part of a configuration from its records. They are taken in in any order, and old ones that
//! were let go may be among them: whatever one says is joined to what is known, and nothing is let go before a record that
//! stays says the same.

use super::super::record::{ElementHeader, Ledger};
use super::ConfigurationState;
use super::keeping::{forget, handles, object, stored, trim};
use crate::config::ConfigurationId;
use crate::consensus::fate;
use crate::consensus::paxos::Acceptor;
use crate::dap::versions::{Marks, StoredVersion, Versions};
use crate::element::{Form, Handle};
use crate::object::{Name, UPLOAD_PREFIX};
use crate::tag::Tag;
use bytes::Bytes;
use std::collections::BTreeMap;
use std::collections::btree_map::{Entry, OccupiedEntry};

/// Findings of the recovery that can be judged only when all records have been seen.
#[derive(Default)]
pub(super) struct RecoveryFindings {
    /// Elements with damaged records.
    damaged: Vec<(Name, StoredVersion)>,
    /// Records with impossible tags: the largest version that may be lost, and the element in the record.
    impossible: Vec<(Name, StoredVersion, Option<StoredVersion>)>,
    /// Further records that say a floor: they go once one says everything.
    marks: BTreeMap<Name, Vec<Handle>>,
}

impl RecoveryFindings {
    /// Nothing is left to judge.
    pub(super) fn is_empty(&self) -> bool {
        self.damaged.is_empty() && self.impossible.is_empty() && self.marks.is_empty()
    }
}

impl ConfigurationState {
    pub(in crate::server) fn recover_element(
        &mut self,
        element: ElementHeader,
        handle: Handle,
        damaged: bool,
    ) {
        let stored = stored(&element, handle);
        let ElementHeader {
            name, tag, floor, ..
        } = element;
        if !(tag.is_possible() && floor.is_possible()) {
            return self.recover_impossible(name, handle, (!damaged).then_some(stored));
        }
        let mut object = entered(&mut self.objects, name);
        object.get_mut().raise_floor(floor);
        if damaged {
            self.found.damaged.push((name_of(&object), stored));
        } else if object.get().find(tag).is_some() {
            // Put again after it had been let go, and an old record of it is here as well: which of the two says the larger
            // floor is not known.
            let records = self.found.marks.entry(name_of(&object)).or_default();
            records.push(handle);
        } else {
            let repaired = object.get_mut().insert(stored);
            assert_eq!(repaired, None, "damage is judged at the end");
        }
    }

    pub(in crate::server) fn recover_marks(&mut self, name: Name, marks: &Marks, handle: Handle) {
        if !marks.is_possible() {
            return self.recover_impossible(name, handle, None);
        }
        let mut object = entered(&mut self.objects, name);
        if let Some(another) = object.get_mut().recover_marks(marks, handle) {
            let records = self.found.marks.entry(name_of(&object)).or_default();
            records.push(another);
        }
    }

    /// A record of the object that says a tag which no execution produces is damaged (`[N-1 bounded-numbers]`). What it was
    /// is not known, so that it may be any version: the object abstains in this configuration until the largest of all is
    /// put; or, where members gossip, until they have restarted it.
    fn recover_impossible(&mut self, name: Name, handle: Handle, element: Option<StoredVersion>) {
        let lost = StoredVersion {
            tag: Tag::LARGEST,
            form: Form::Copy,
            deleted: false,
            length: 0,
            bytes: 0,
            handle,
            etag: None,
            written_at_ms: 0,
        };
        self.found.impossible.push((name, lost, element));
    }

    pub(in crate::server) fn recover_cell(
        &mut self,
        cell: &Bytes,
        found: Acceptor,
        handle: Handle,
        ledger: &mut Ledger,
    ) {
        self.has_fates |= fate::is_fate(cell);
        let Some((known, record)) = self.cells.get(cell) else {
            let first = (found, handle);
            self.cells.insert(Bytes::copy_from_slice(cell), first);
            return;
        };
        // An acceptor only goes forward: of two records one says what the other says, and that one stays.
        let joined = join(known.clone(), found.clone());
        // One that abstains goes on doing so, whatever another record says.
        if joined == *known || !known.is_possible() {
            ledger.supersede([handle]);
            return;
        }
        let joined = if found.is_possible() {
            joined
        } else {
            found.clone()
        };
        // Of a cell that was forgotten and begun anew records of two lives may come back, of which neither is the later one. No
        // decision about it matters, so that either record will do.
        let is_forgotten = cell.starts_with(UPLOAD_PREFIX.as_bytes()) || fate::is_fate(cell);
        assert!(
            joined == found || is_forgotten,
            "one record is the later one"
        );
        ledger.supersede([*record]);
        self.cells
            .insert(Bytes::copy_from_slice(cell), (found, handle));
    }

    /// Keeps the record until all members have agreed on the version of the object that stays.
    fn abstain_until_restarted(
        &mut self,
        key: ConfigurationId,
        name: &Name,
        (lost, element): (StoredVersion, Option<StoredVersion>),
        ledger: &mut Ledger,
    ) {
        assert_eq!(lost.tag, Tag::LARGEST, "it may be any version");
        self.restarts.found(name, lost.handle, element);
        let versions = object(&mut self.objects, name);
        let gone = versions.damage(lost.tag);
        assert_eq!(versions.damaged(), Some(lost.tag), "it abstains");
        forget(key, name, versions, gone, ledger);
    }

    /// Marks a record as damaged, see [`super::super::Server::damage`].
    pub(in crate::server) fn damage(
        &mut self,
        key: ConfigurationId,
        (name, tag): (&Name, Tag),
        is_damaged: impl Fn(Handle) -> bool,
        ledger: &mut Ledger,
    ) -> bool {
        // A scrub may come upon a record that is about to be freed, when the version has been repaired and has another record.
        let is_lost = |stored: &StoredVersion| stored.tag == tag && is_damaged(stored.handle);
        if self.is_ranked(name) {
            return self.lose_element((name, tag), is_lost, ledger);
        }
        let versions = self.objects.get_mut(name.as_bytes());
        let Some(versions) = versions.filter(|versions| versions.find(tag).is_some_and(is_lost))
        else {
            // The object abstains for it already, or need not.
            return self.restarts.lose_element(name, is_lost);
        };
        let record = versions.damage(tag);
        forget(key, name, versions, record, ledger);
        self.found_damage(name);
        true
    }

    pub(in crate::server) fn recovered(&mut self, key: ConfigurationId, ledger: &mut Ledger) {
        let RecoveryFindings {
            mut damaged,
            impossible,
            marks,
        } = std::mem::take(&mut self.found);
        self.recovered_registers(ledger);
        let restarts = self.restarts_objects();
        for (name, lost, element) in impossible {
            if restarts && !self.is_ranked(&name) {
                self.abstain_until_restarted(key, &name, (lost, element), ledger);
            } else {
                damaged.push((name, lost));
            }
        }
        for (name, stored) in damaged {
            if self.is_ranked(&name) {
                // What was accepted is in the register's record.
                ledger.supersede([stored.handle]);
                continue;
            }
            let (tag, record) = (stored.tag, stored.handle);
            let versions = object(&mut self.objects, &name);
            if versions.find(tag).is_some() || versions.is_dropped(tag) {
                // It was repaired under another record, which may say a smaller floor; or it was dropped.
                forget(key, &name, versions, [record], ledger);
                continue;
            }
            let gone = [versions.insert(stored), versions.damage(tag)];
            let remembered = versions.damaged().max(Some(versions.floor()));
            assert!(remembered >= Some(tag), "what was lost is remembered");
            forget(key, &name, versions, gone.into_iter().flatten(), ledger);
            self.found_damage(&name);
        }
        for (bytes, versions) in &mut self.objects {
            let dropped = versions.drop_again();
            if !dropped.is_empty() {
                let name = Name::from_bytes(bytes.clone()).expect("it was a name before");
                forget(key, &name, versions, dropped, ledger);
            }
        }
        for (name, records) in marks {
            if self.is_ranked(&name) {
                // One of several records of an element is enough.
                ledger.supersede(records);
                continue;
            }
            let versions = object(&mut self.objects, &name);
            forget(key, &name, versions, records, ledger);
        }
        self.drop_marks_alone(ledger);
        let Some((configuration, _)) = &self.configuration else {
            return;
        };
        let several = |versions: &Versions| versions.stored().len() > 1;
        for (bytes, versions) in self.objects.iter_mut().filter(|(_, held)| several(held)) {
            // An old record may have come back; what it holds goes again, and is remembered as it was. The largest stays.
            let name = Name::from_bytes(bytes.clone()).expect("it was a name before");
            if configuration.is_ranked(&name) {
                continue;
            }
            let evicted = trim((configuration, key, &name), versions, true, ledger);
            if !evicted.is_empty() {
                forget(key, &name, versions, handles(&evicted), ledger);
            }
        }
    }
}

/// The object, with nothing in it if it was not there.
fn entered(
    objects: &mut BTreeMap<Bytes, Versions>,
    name: Name,
) -> OccupiedEntry<'_, Bytes, Versions> {
    match objects.entry(name.into_bytes()) {
        Entry::Occupied(object) => object,
        Entry::Vacant(place) => place.insert_entry(Versions::default()),
    }
}

fn name_of(object: &OccupiedEntry<'_, Bytes, Versions>) -> Name {
    Name::from_bytes(object.key().clone()).expect("it was a name before")
}

/// Joins two states of one acceptor: the later one in each part.
fn join(a: Acceptor, b: Acceptor) -> Acceptor {
    let (decided, other) = if a.decided { (a, b) } else { (b, a) };
    let promised = decided.promised.max(other.promised);
    let accepted = match decided.decided {
        true => decided.accepted,
        false => decided.accepted.max(other.accepted),
    };
    Acceptor {
        promised,
        accepted,
        decided: decided.decided,
    }
}
