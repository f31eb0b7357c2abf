//! A server's versions of one object, as an answer.

use super::error::DecodeError;
use super::parts::{self, FORM_BYTES, Part, TAG_BYTES};
use super::reader::Reader;
use super::reply::{carried, is_ascending, whole};
use super::writer::Sink;
use areo_core::message::HeldVersions;
use areo_core::tag::Tag;

pub(super) const ELEMENT: u8 = 1;
/// The fence follows the confirmed tag.
const FENCE: u8 = 2;
/// Flag: the largest finalized tag that a quorum is known to have, and the gossip of other servers, follow.
const GOSSIP: u8 = 4;
/// All flags of a reply.
pub(super) const FLAGS: u8 = ELEMENT | FENCE | GOSSIP;
/// Flags of a version: none. Kinds of configurations that keep more about a version give them a meaning.
const VERSION_FLAGS: u8 = 0;
const VERSION_BYTES: usize = TAG_BYTES + FORM_BYTES + 1;

pub(super) fn flags(held: &HeldVersions) -> u8 {
    let element = held.element.as_ref().map_or(0, |_| ELEMENT);
    let fence = if held.fence.is_initial() { 0 } else { FENCE };
    element | fence | if knows_by_gossip(held) { GOSSIP } else { 0 }
}

fn knows_by_gossip(held: &HeldVersions) -> bool {
    !held.complete.is_initial() || !held.seen.is_initial()
}

pub(super) fn put_held<S: Sink>(out: &mut S, held: &HeldVersions) {
    assert!(
        is_ascending(held.stored.iter().map(|(tag, _)| tag)),
        "a server keeps versions in order"
    );
    parts::put_tag(out, held.floor);
    parts::put_tag(out, held.stable);
    if !held.fence.is_initial() {
        parts::put_tag(out, held.fence);
    }
    if knows_by_gossip(held) {
        parts::put_tag(out, held.complete);
        parts::put_tag(out, held.seen);
    }
    out.long(held.stored.len());
    for (tag, form) in &held.stored {
        parts::put_tag(out, *tag);
        parts::put_form(out, *form);
        out.u8(VERSION_FLAGS);
    }
    if let Some((tag, carried)) = &held.element {
        parts::put_tag(out, *tag);
        parts::put_element(out, whole(carried), Part::Any);
    }
}

pub(super) fn held(reader: &mut Reader<'_>, flags: u8) -> Result<HeldVersions, DecodeError> {
    let (floor, stable) = (parts::tag(reader)?, parts::tag(reader)?);
    let fence = match flags & FENCE {
        0 => Tag::INITIAL,
        _ => parts::tag(reader)?,
    };
    let (complete, seen) = match flags & GOSSIP {
        0 => (Tag::INITIAL, Tag::INITIAL),
        _ => (parts::tag(reader)?, parts::tag(reader)?),
    };
    let count = reader.long()?;
    let version = |reader: &mut Reader<'_>| {
        let version = (parts::tag(reader)?, parts::form(reader)?);
        reader.flags("version", VERSION_FLAGS)?;
        Ok(version)
    };
    // How many versions a server keeps is the configuration's business: the body itself is the limit.
    let stored = reader.list("versions", count, usize::MAX, VERSION_BYTES, version)?;
    if !is_ascending(stored.iter().map(|(tag, _)| tag)) {
        return Err(DecodeError::VersionsOutOfOrder);
    }
    let element = match flags & ELEMENT {
        0 => None,
        _ => Some((parts::tag(reader)?, carried(reader)?)),
    };
    Ok(HeldVersions {
        stored,
        floor,
        stable,
        fence,
        complete,
        seen,
        element,
    })
}
