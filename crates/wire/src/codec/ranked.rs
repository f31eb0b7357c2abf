//! Messages and records of ranked registers.

use super::error::DecodeError;
use super::parts::{self, FORM_BYTES, Part, TAG_BYTES};
use super::reader::Reader;
use super::reply::{carried, whole};
use super::writer::Sink;
use areo_core::dap::conditional::register::{AcceptedVersion, Register};
use areo_core::limits;
use areo_core::message::{
    Ancestor, ChosenVersion, Lineage, Proposal, RankedVersion, RankedVersions,
};
use areo_core::tag::Tag;

const ELEMENT: u8 = 1;
const GRANTED: u8 = 2;
const CLOSED: u8 = 4;
/// All flags of an answer.
pub(super) const ANSWER_FLAGS: u8 = ELEMENT | GRANTED | CLOSED;

const SETTLES: u8 = 2;
const BASE_CHOSEN: u8 = 4;
/// All flags of a proposal.
pub(super) const PROPOSAL_FLAGS: u8 = ELEMENT | SETTLES | BASE_CHOSEN;

/// Flag of a version: it is a tombstone.
const DELETED: u8 = 1;

const ANCESTOR_BYTES: usize = TAG_BYTES + 16;
const VERSION_BYTES: usize = 2 * TAG_BYTES + 1 + 16 + 2;

// ---- writing ----------------------------------------------------------------------------------------------------------

fn put_lineage<S: Sink>(out: &mut S, lineage: &Lineage) {
    assert!(
        lineage.ancestors.len() <= limits::ANCESTORS,
        "ancestors are bounded where they are named"
    );
    out.u128(lineage.request);
    out.short(lineage.ancestors.len());
    for ancestor in &lineage.ancestors {
        parts::put_tag(out, ancestor.tag);
        out.u128(ancestor.request);
    }
}

pub(crate) fn put_chosen<S: Sink>(out: &mut S, chosen: ChosenVersion) {
    parts::put_ballot(out, chosen.ballot);
    parts::put_tag(out, chosen.tag);
}

pub(super) fn proposal_flags(proposal: &Proposal) -> u8 {
    let flag = |flag: u8, is_set: bool| if is_set { flag } else { 0 };
    flag(ELEMENT, proposal.element.is_some())
        | flag(SETTLES, proposal.settles)
        | flag(BASE_CHOSEN, proposal.base_chosen)
}

/// All but its tag.
pub(super) fn put_proposal<S: Sink>(out: &mut S, proposal: &Proposal) {
    parts::put_ballot(out, proposal.ballot);
    put_lineage(out, &proposal.lineage);
    if let Some(element) = &proposal.element {
        parts::put_element(out, element, Part::All);
    }
}

pub(super) fn answer_flags(ranked: &RankedVersions) -> u8 {
    let flag = |flag: u8, is_set: bool| if is_set { flag } else { 0 };
    flag(ELEMENT, ranked.element.is_some())
        | flag(GRANTED, ranked.granted)
        | flag(CLOSED, ranked.closed)
}

pub(super) fn put_ranked<S: Sink>(out: &mut S, ranked: &RankedVersions) {
    parts::put_ballot(out, ranked.promised);
    put_chosen(out, ranked.chosen);
    out.short(ranked.versions.len());
    for version in &ranked.versions {
        parts::put_tag(out, version.tag);
        parts::put_ballot(out, version.ballot);
        out.u8(if version.deleted { DELETED } else { 0 });
        parts::put_form(out, version.form);
        put_lineage(out, &version.lineage);
    }
    if let Some((tag, carried)) = &ranked.element {
        parts::put_tag(out, *tag);
        parts::put_element(out, whole(carried), Part::Any);
    }
}

pub(crate) fn put_register<S: Sink>(out: &mut S, register: &Register) {
    out.u64(register.turn);
    parts::put_ballot(out, register.promised);
    put_chosen(out, register.chosen);
    out.short(register.accepted.len());
    for version in &register.accepted {
        parts::put_tag(out, version.tag);
        parts::put_ballot(out, version.ballot);
        out.u8(if version.deleted { DELETED } else { 0 });
        put_lineage(out, &version.lineage);
    }
}

// ---- reading ----------------------------------------------------------------------------------------------------------

fn lineage(reader: &mut Reader<'_>) -> Result<Lineage, DecodeError> {
    let request = reader.u128()?;
    let count = reader.short()?;
    let ancestor = |reader: &mut Reader<'_>| {
        Ok(Ancestor {
            tag: parts::tag(reader)?,
            request: reader.u128()?,
        })
    };
    let (limit, least_bytes) = (limits::ANCESTORS, ANCESTOR_BYTES);
    let ancestors = reader.list("ancestors", count, limit, least_bytes, ancestor)?;
    Ok(Lineage { request, ancestors })
}

pub(crate) fn chosen(reader: &mut Reader<'_>) -> Result<ChosenVersion, DecodeError> {
    Ok(ChosenVersion {
        ballot: parts::ballot(reader)?,
        tag: parts::tag(reader)?,
    })
}

pub(super) fn proposal(
    reader: &mut Reader<'_>,
    flags: u8,
    tag: Tag,
) -> Result<Proposal, DecodeError> {
    let ballot = parts::ballot(reader)?;
    let lineage = lineage(reader)?;
    let element = match flags & ELEMENT {
        0 => None,
        _ => Some(parts::element(reader, Part::All)?),
    };
    Ok(Proposal {
        ballot,
        tag,
        element,
        lineage,
        settles: flags & SETTLES != 0,
        base_chosen: flags & BASE_CHOSEN != 0,
    })
}

pub(super) fn ranked(reader: &mut Reader<'_>, flags: u8) -> Result<RankedVersions, DecodeError> {
    let promised = parts::ballot(reader)?;
    let chosen = chosen(reader)?;
    let count = reader.short()?;
    let version = |reader: &mut Reader<'_>| {
        let (tag, ballot) = (parts::tag(reader)?, parts::ballot(reader)?);
        let flags = reader.flags("version", DELETED)?;
        Ok(RankedVersion {
            tag,
            ballot,
            form: parts::form(reader)?,
            deleted: flags & DELETED != 0,
            lineage: lineage(reader)?,
        })
    };
    let (limit, least_bytes) = (limits::RANKED_VERSIONS + 1, VERSION_BYTES + FORM_BYTES);
    let versions = reader.list("versions", count, limit, least_bytes, version)?;
    if !versions.is_sorted_by(|a, b| (a.ballot, a.tag) < (b.ballot, b.tag)) {
        return Err(DecodeError::VersionsOutOfOrder);
    }
    let element = match flags & ELEMENT {
        0 => None,
        _ => Some((parts::tag(reader)?, carried(reader)?)),
    };
    Ok(RankedVersions {
        granted: flags & GRANTED != 0,
        closed: flags & CLOSED != 0,
        promised,
        chosen,
        versions,
        element,
    })
}

pub(crate) fn register(reader: &mut Reader<'_>) -> Result<Register, DecodeError> {
    let turn = reader.u64()?;
    let promised = parts::ballot(reader)?;
    let chosen = chosen(reader)?;
    let count = reader.short()?;
    let version = |reader: &mut Reader<'_>| {
        let (tag, ballot) = (parts::tag(reader)?, parts::ballot(reader)?);
        let flags = reader.flags("version", DELETED)?;
        Ok(AcceptedVersion {
            tag,
            ballot,
            deleted: flags & DELETED != 0,
            lineage: lineage(reader)?,
        })
    };
    let (limit, least_bytes) = (limits::RANKED_VERSIONS + 1, VERSION_BYTES);
    let accepted = reader.list("versions", count, limit, least_bytes, version)?;
    if !accepted.is_sorted_by(|a, b| (a.ballot, a.tag) < (b.ballot, b.tag)) {
        return Err(DecodeError::VersionsOutOfOrder);
    }
    Ok(Register {
        turn,
        promised,
        chosen,
        accepted,
    })
}
