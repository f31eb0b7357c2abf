//! One-way notes.

use super::error::DecodeError;
use super::parts;
use super::ranked;
use super::reader::Reader;
use super::restart;
use super::writer::{Encode, Sink};
use areo_core::config::{ConfigurationId, ServerId};
use areo_core::limits;
use areo_core::message::{Gossip, GossipMarks, Note};

const CONFIRM: u8 = 1;
const DECIDED: u8 = 2;
const NEXT: u8 = 3;
const FORGET: u8 = 4;
const SERVING: u8 = 5;
const CHOSEN: u8 = 7;
const GOSSIP: u8 = 8;
const RESTART: u8 = 9;

impl Encode for Note {
    fn write<S: Sink>(&self, out: &mut S) {
        match self {
            Note::Confirm {
                configuration,
                name,
                tag,
            } => {
                out.put(&[CONFIRM, 0]);
                parts::put_configuration_id(out, configuration);
                parts::put_tag(out, *tag);
                out.short(name.as_bytes().len());
                out.put(name.as_bytes());
            }
            Note::Chosen {
                configuration,
                name,
                chosen,
            } => {
                out.put(&[CHOSEN, 0]);
                parts::put_configuration_id(out, configuration);
                ranked::put_chosen(out, *chosen);
                out.short(name.as_bytes().len());
                out.put(name.as_bytes());
            }
            Note::Decided {
                configuration,
                cell,
                value,
            } => {
                parts::check_cell(cell);
                out.put(&[DECIDED, 0]);
                parts::put_configuration_id(out, configuration);
                out.short(cell.len());
                out.long(value.len());
                out.put(cell);
                out.put(value);
            }
            Note::Forget {
                configuration,
                cell,
            } => {
                parts::check_cell(cell);
                out.put(&[FORGET, 0]);
                parts::put_configuration_id(out, configuration);
                out.short(cell.len());
                out.put(cell);
            }
            Note::Serving(server) => {
                out.put(&[SERVING, 0]);
                out.put(&parts::server_fields(server));
            }
            Note::Gossip(gossip) => put_gossip(out, gossip),
            Note::Restart(note) => {
                out.put(&[RESTART, restart::flags(note)]);
                restart::put_restart(out, note);
            }
            Note::Next {
                configuration,
                pointer,
            } => {
                out.put(&[NEXT, 0]);
                parts::put_configuration_id(out, configuration);
                parts::put_pointer(out, pointer);
            }
        }
    }
}

fn put_gossip<S: Sink>(out: &mut S, gossip: &Gossip) {
    out.put(&[GOSSIP, 0]);
    parts::put_configuration_id(out, &gossip.configuration);
    out.put(&gossip.from.0.to_le_bytes());
    out.long(gossip.objects.len());
    for (name, marks) in &*gossip.objects {
        parts::put_tag(out, marks.largest);
        parts::put_tag(out, marks.finalized);
        parts::put_tag(out, marks.complete);
        out.short(name.as_bytes().len());
        out.put(name.as_bytes());
    }
}

pub(super) fn note(reader: &mut Reader<'_>) -> Result<Note, DecodeError> {
    let kind = reader.u8()?;
    if !matches!(
        kind,
        CONFIRM | DECIDED | NEXT | FORGET | SERVING | CHOSEN | GOSSIP | RESTART
    ) {
        let (what, value) = ("kind of note", kind.into());
        return Err(DecodeError::UnknownValue { what, value });
    }
    let known_flags = if kind == RESTART { restart::FLAGS } else { 0 };
    let flags = reader.flags("note", known_flags)?;
    if kind == SERVING {
        return Ok(Note::Serving(parts::server(&reader.rest())?));
    }
    let configuration = parts::configuration_id(reader)?;
    Ok(match kind {
        CONFIRM => {
            let tag = parts::tag(reader)?;
            let name_bytes = reader.short()?;
            Note::Confirm {
                configuration,
                name: parts::name(reader, name_bytes)?,
                tag,
            }
        }
        CHOSEN => {
            let chosen = ranked::chosen(reader)?;
            let name_bytes = reader.short()?;
            Note::Chosen {
                configuration,
                name: parts::name(reader, name_bytes)?,
                chosen,
            }
        }
        DECIDED => {
            let (cell_bytes, value_bytes) = (reader.short()?, reader.long()?);
            Note::Decided {
                configuration,
                cell: parts::cell(reader, cell_bytes)?,
                value: parts::cell_value(reader, value_bytes)?,
            }
        }
        FORGET => {
            let cell_bytes = reader.short()?;
            Note::Forget {
                configuration,
                cell: parts::cell(reader, cell_bytes)?,
            }
        }
        GOSSIP => gossip(reader, configuration)?,
        RESTART => Note::Restart(Box::new(restart::restart(reader, configuration, flags)?)),
        NEXT => Note::Next {
            configuration,
            pointer: parts::pointer(reader)?,
        },
        _ => unreachable!("the kind was checked before"),
    })
}

fn gossip(reader: &mut Reader<'_>, configuration: ConfigurationId) -> Result<Note, DecodeError> {
    let from = ServerId(u128::from_le_bytes(reader.array()?));
    let count = reader.long()?;
    let object = |reader: &mut Reader<'_>| {
        let marks = GossipMarks {
            largest: parts::tag(reader)?,
            finalized: parts::tag(reader)?,
            complete: parts::tag(reader)?,
        };
        let name_bytes = reader.short()?;
        Ok((parts::name(reader, name_bytes)?, marks))
    };
    let least_bytes = GossipMarks::bytes(1);
    let limit = limits::GOSSIP_BYTES / least_bytes;
    let objects = reader.list("objects", count, limit, least_bytes, object)?;
    Ok(Note::Gossip(Gossip {
        configuration,
        from,
        objects: objects.into(),
    }))
}
