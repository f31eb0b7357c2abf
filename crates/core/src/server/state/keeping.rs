//! Taking versions of an object in and letting them go, each with its records: what the server halves of the data access
//! primitives decide is carried out here.

use super::super::record::{ElementHeader, Header, Ledger};
use crate::config::{Configuration, ConfigurationId};
use crate::consensus::fate;
use crate::consensus::paxos::Acceptor;
use crate::dap::kind::of_kind;
use crate::dap::versions::{Admission, Arrival, Bounds, StoredVersion, Versions};
use crate::element::{Element, Form, Handle};
use crate::object::{Kind, Metadata, Name};
use crate::tag::Tag;
use bytes::Bytes;
use std::collections::BTreeMap;

/// The object, with nothing in it if it was not there.
pub(super) fn object<'a>(
    objects: &'a mut BTreeMap<Bytes, Versions>,
    name: &Name,
) -> &'a mut Versions {
    // The name came as a part of the request's frame; what stays is a copy of its own.
    let name = Bytes::copy_from_slice(name.as_bytes());
    objects.entry(name).or_default()
}

/// Has the object wait for its quiet time from now on, and returns its newest version; `None` if it need not wait, or waits already.
pub(super) fn enqueue(versions: &mut Versions) -> Option<Tag> {
    let oldest = versions.stored().first()?;
    let superseded = versions.stored().len() > 1 && oldest.tag < versions.superseding();
    if versions.queued || !superseded {
        return None;
    }
    versions.queued = true;
    versions.largest().map(|largest| largest.tag)
}

/// True if the object is a block whose tombstone is at a quorum. What is below the tombstone need not wait for a quiet time
/// (`[X-3 unconfirmed-cap]`): a block is not written again, so that no writer can starve a reader, and every later read finds the tombstone.
pub(super) fn is_removed_block(name: &Name, versions: &Versions) -> bool {
    let is_complete = |largest: &StoredVersion| largest.deleted && largest.tag <= versions.stable();
    name.kind() == Kind::Block && versions.largest().is_some_and(is_complete)
}

/// The answer of the server half of the configuration's kind to a put.
pub(super) fn admission(
    c: &Configuration,
    versions: &Versions,
    tag: Tag,
    (arrival, max_unconfirmed): (Arrival, usize),
) -> Admission {
    of_kind!(c, K => K::admit(versions, tag, arrival, bounds(c, max_unconfirmed)))
}

/// The numbers of versions of one object that are kept.
pub(super) fn bounds(c: &Configuration, unconfirmed: usize) -> Bounds {
    let delta = c.descriptor().delta;
    Bounds { delta, unconfirmed }
}

/// True if versions of an object can be fenced off and dropped: only where a cap refuses new ones.
pub(super) fn has_fence(c: &Configuration) -> bool {
    of_kind!(c, K => K::FENCES)
}

/// Lets versions go, or their elements, as the server half of the configuration's kind says. Returns what went.
pub(super) fn trim(
    (c, key, name): (&Configuration, ConfigurationId, &Name),
    versions: &mut Versions,
    quiet: bool,
    ledger: &mut Ledger,
) -> Vec<StoredVersion> {
    let delta = c.descriptor().delta;
    let newest = |versions: &Versions| versions.largest().map(|largest| largest.tag);
    let (largest, floor) = (newest(versions), versions.floor());
    let trimmed = of_kind!(c, K => K::trim(versions, delta, quiet, || ledger.draw()));
    // Of some only the element went.
    for stored in trimmed.iter().filter_map(|gone| versions.find(gone.tag)) {
        let header = ElementHeader {
            key,
            name: name.clone(),
            tag: stored.tag,
            floor: versions.floor(),
            form: stored.form,
            deleted: stored.deleted,
            length: stored.length,
            bytes: stored.bytes,
            metadata: Bytes::new(),
        };
        let header = Header::Element(header);
        ledger.append_element(stored.handle, header, Bytes::new(), None);
    }
    assert_eq!(newest(versions), largest, "the largest never goes");
    assert!(versions.floor() >= floor, "the floor only rises");
    trimmed
}

/// The stored form of an element of which only the tag is to stay.
pub(super) fn tag_alone(element: &Element) -> Element {
    Element {
        form: Form::Trimmed,
        deleted: element.deleted,
        length: element.length,
        metadata: Bytes::new(),
        payload: Bytes::new(),
        checksum: None,
    }
}

/// Takes a version in, under a new handle.
pub(super) fn take_in(
    key: ConfigurationId,
    name: &Name,
    versions: &mut Versions,
    (tag, element): (Tag, &Element),
    ledger: &mut Ledger,
) -> (Handle, ElementHeader) {
    assert!(!tag.is_initial(), "it is of no write");
    let header = ElementHeader {
        key,
        name: name.clone(),
        tag,
        floor: Tag::INITIAL,
        form: element.form,
        deleted: element.deleted,
        length: element.length,
        bytes: element.payload.len() as u64,
        metadata: element.metadata.clone(),
    };
    let handle = ledger.draw();
    let was_damaged = versions.damaged().is_some();
    let repaired = versions.insert(stored(&header, handle));
    let lost = versions.damaged();
    assert!(
        lost.is_none_or(|lost| lost > tag),
        "as large a version repairs"
    );
    ledger.supersede_of(name, repaired);
    ledger.repaired += u64::from(was_damaged && versions.damaged().is_none());
    (handle, header)
}

/// The version that is in this record.
pub(super) fn stored(header: &ElementHeader, handle: Handle) -> StoredVersion {
    let (etag, written_at_ms) = Metadata::listed(&header.metadata);
    StoredVersion {
        tag: header.tag,
        form: header.form,
        deleted: header.deleted,
        length: header.length,
        bytes: header.bytes,
        handle,
        etag,
        written_at_ms: written_at_ms.unwrap_or(0),
    }
}

/// The records of these.
pub(super) fn handles(versions: &[StoredVersion]) -> impl Iterator<Item = Handle> {
    versions.iter().map(|stored| stored.handle)
}

/// Lets records of the object go, once the floor that remembers them is recorded, if it is not already.
pub(super) fn forget(
    key: ConfigurationId,
    name: &Name,
    versions: &mut Versions,
    records: impl IntoIterator<Item = Handle>,
    ledger: &mut Ledger,
) {
    let mut records = records.into_iter().peekable();
    if records.peek().is_some() {
        ledger.supersede_of(name, records);
        mark(key, name, versions, ledger);
    }
}

/// Records floor, confirmed tag and fence, unless they are.
pub(super) fn mark(
    key: ConfigurationId,
    name: &Name,
    versions: &mut Versions,
    ledger: &mut Ledger,
) {
    if versions.is_marked() {
        return;
    }
    let handle = ledger.append(Header::Marks {
        key,
        name: name.clone(),
        marks: versions.marks(),
    });
    ledger.supersede(versions.mark(handle));
}

/// Frees the cells of versions that a confirmed one supersedes. What is decided of such a version from now on, by a late
/// proposer, changes nothing: readers return a larger one (`[X-3 unconfirmed-cap]`). Of the confirmed version itself the
/// fate stays.
pub(super) fn forget_fates(
    cells: &mut BTreeMap<Bytes, (Acceptor, Handle)>,
    (c, name): (&Configuration, &Name),
    stable: Tag,
    ledger: &mut Ledger,
) {
    let (first, end) = (
        fate::cell(c, name, Tag::INITIAL),
        fate::cell(c, name, stable),
    );
    assert!(first <= end, "cells are in the order of versions");
    let superseded = cells.extract_if(first..end, |_, _| true);
    ledger.supersede(superseded.map(|(_, (_, handle))| handle));
}
