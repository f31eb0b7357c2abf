//! One-way notes.

use super::error::DecodeError;
use super::parts;
use super::ranked;
use super::reader::Reader;
use super::writer::{Encode, Sink};
use areo_core::message::Note;

const CONFIRM: u8 = 1;
const DECIDED: u8 = 2;
const NEXT: u8 = 3;
const FORGET: u8 = 4;
const SERVING: u8 = 5;
const CHOSEN: u8 = 7;

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

pub(super) fn note(reader: &mut Reader<'_>) -> Result<Note, DecodeError> {
    let kind = reader.u8()?;
    if !matches!(kind, CONFIRM | DECIDED | NEXT | FORGET | SERVING | CHOSEN) {
        let (what, value) = ("kind of note", kind.into());
        return Err(DecodeError::UnknownValue { what, value });
    }
    reader.flags("note", 0)?;
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
        NEXT => Note::Next {
            configuration,
            pointer: parts::pointer(reader)?,
        },
        _ => unreachable!("the kind was checked before"),
    })
}
