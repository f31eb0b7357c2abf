//! Notes between members during a restart of counters.

use super::error::DecodeError;
use super::held;
use super::parts::{self, FORM_BYTES, TAG_BYTES};
use super::reader::Reader;
use super::writer::Sink;
use areo_core::config::{ConfigurationId, ServerId};
use areo_core::limits;
use areo_core::message::{HeldVersions, ObjectReport, Phase, RestartNote, Stance};

/// The sender waits for an answer.
const ASKS: u8 = 1;
/// All flags of the note.
pub(super) const FLAGS: u8 = ASKS;
/// The sender does not answer for the object.
const ABSTAINS: u8 = 1;
/// Least bytes of an object: name and flags, floor and mark, and the number of versions.
const LEAST_BYTES: usize = 2 + 1 + 2 + 2 * TAG_BYTES + 4;

const IDLE: u8 = 0;
const AGREEING: u8 = 1;
const APPLYING: u8 = 2;
const RECOVERING: u8 = 3;

const _: () = assert!(
    limits::RESTART_VERSIONS * (TAG_BYTES + FORM_BYTES + 1) * limits::RESTART_OBJECTS
        < limits::GOSSIP_BYTES,
    "versions in a note take no more than gossip of one period"
);

pub(super) fn flags(note: &RestartNote) -> u8 {
    if note.asks { ASKS } else { 0 }
}

pub(super) fn put_restart<S: Sink>(out: &mut S, note: &RestartNote) {
    let objects = note.objects.len();
    assert!(objects <= limits::RESTART_OBJECTS, "a restart is of a few");
    parts::put_configuration_id(out, &note.configuration);
    out.put(&note.from.0.to_le_bytes());
    out.put(&note.turn.to_le_bytes());
    out.put(&note.heard.to_le_bytes());
    put_stance(out, note.stance);
    put_stance(out, note.echo);
    out.long(objects);
    for ObjectReport {
        name,
        abstains,
        held,
    } in &*note.objects
    {
        assert_eq!(held.element, None, "tags are told, and no element");
        out.short(name.as_bytes().len());
        out.put(name.as_bytes());
        out.put(&[if *abstains { ABSTAINS } else { 0 }, held::flags(held)]);
        held::put_held(out, held);
    }
}

fn put_stance<S: Sink>(out: &mut S, stance: Stance<u64>) {
    let (phase, value) = match stance.phase {
        Phase::Idle => (IDLE, 0),
        Phase::Agreeing(value) => (AGREEING, value),
        Phase::Applying(value) => (APPLYING, value),
        Phase::Recovering => (RECOVERING, 0),
    };
    out.put(&[phase, stance.all.into()]);
    out.put(&value.to_le_bytes());
}

pub(super) fn restart(
    reader: &mut Reader<'_>,
    configuration: ConfigurationId,
    flags: u8,
) -> Result<RestartNote, DecodeError> {
    let from = ServerId(u128::from_le_bytes(reader.array()?));
    let [turn, heard] = [reader.array()?, reader.array()?].map(u64::from_le_bytes);
    let (stance, echo) = (stance(reader)?, stance(reader)?);
    let count = reader.long()?;
    let limit = limits::RESTART_OBJECTS;
    let objects = reader.list("objects", count, limit, LEAST_BYTES, object)?;
    Ok(RestartNote {
        configuration,
        from,
        asks: flags & ASKS != 0,
        turn,
        heard,
        stance,
        echo,
        objects: objects.into(),
    })
}

fn object(reader: &mut Reader<'_>) -> Result<ObjectReport, DecodeError> {
    let name_bytes = reader.short()?;
    let name = parts::name(reader, name_bytes)?;
    let abstains = reader.flags("object", ABSTAINS)? != 0;
    let flags = reader.flags("held", held::FLAGS & !held::ELEMENT)?;
    let held: HeldVersions = held::held(reader, flags)?;
    let (count, limit) = (held.stored.len(), limits::RESTART_VERSIONS);
    if count > limit {
        let what = "versions";
        return Err(DecodeError::TooMany { what, count, limit });
    }
    Ok(ObjectReport {
        name,
        abstains,
        held,
    })
}

fn stance(reader: &mut Reader<'_>) -> Result<Stance<u64>, DecodeError> {
    let [phase, all] = reader.array()?;
    let value = u64::from_le_bytes(reader.array()?);
    let phase = match (phase, value) {
        (IDLE, 0) => Phase::Idle,
        (AGREEING, value) => Phase::Agreeing(value),
        (APPLYING, value) => Phase::Applying(value),
        (RECOVERING, 0) => Phase::Recovering,
        _ => return Err(unknown("phase", phase)),
    };
    let all = match all {
        0 | 1 => all == 1,
        _ => return Err(unknown("knowledge of a phase", all)),
    };
    Ok(Stance { phase, all })
}

fn unknown(what: &'static str, value: u8) -> DecodeError {
    let value = value.into();
    DecodeError::UnknownValue { what, value }
}
