//! Record headers to bytes and back: what a server keeps on disk beside the payload of an element, as
//! `docs/data-file.md` draws it under "Record headers".
//!
//! A header begins with the version of its format, its kind and its flags; what this code does not know is an error,
//! never skipped, because a record that is not understood may be the only one of its object. Where a record lies,
//! how long it is and whether it is intact is the business of the store.

#[cfg(test)]
mod tests;

use crate::codec::DecodeError;
use crate::codec::parts::{self, Part};
use crate::codec::ranked;
use crate::codec::reader::Reader;
use crate::codec::writer::{Encode, Sink};
use areo_core::config::{Configuration, ConfigurationId};
use areo_core::consensus::paxos::Acceptor;
use areo_core::dap::conditional::register::BallotFloor;
use areo_core::dap::versions::{Fence, Marks};
use areo_core::limits;
use areo_core::server::record::{ElementHeader, Header};
use areo_core::tag::Tag;
use bytes::Bytes;
use std::sync::Arc;

/// The version of the format that this code writes, and reads.
pub const VERSION: u8 = 2;
/// The longest header, in bytes: a cell with the longest name and value.
pub const MAX_HEADER_BYTES: usize = CELL_FIXED_BYTES + limits::CELL_NAME_BYTES + limits::CELL_BYTES;

const CONFIGURATION: u8 = 1;
const ELEMENT: u8 = 2;
const MARKS: u8 = 3;
const CELL: u8 = 4;
const REGISTRY: u8 = 5;
const POINTER: u8 = 6;
const FINAL: u8 = 7;
const REGISTER: u8 = 9;
const BALLOT_FLOOR: u8 = 10;

const ELEMENT_DELETED: u8 = 1;
/// Flag of a record in which the version that a quorum is known to have finalized follows the marks.
const MARKS_COMPLETE: u8 = 1;
const CELL_ACCEPTED: u8 = 1;
const CELL_DECIDED: u8 = 2;

const CELL_FIXED_BYTES: usize = 3 + parts::CONFIGURATION_ID_BYTES + 2 * parts::TAG_BYTES + 2 + 4;
const ELEMENT_FIXED_BYTES: usize =
    3 + 3 + parts::CONFIGURATION_ID_BYTES + 2 * parts::TAG_BYTES + 2 * 8 + 2 * 2;
const _: () = assert!(
    ELEMENT_FIXED_BYTES + 1 + limits::OBJECT_NAME_BYTES + limits::METADATA_BYTES
        <= MAX_HEADER_BYTES
        && 3 + parts::CONFIGURATION_ID_BYTES + 3 + parts::DESCRIPTOR_BYTES <= MAX_HEADER_BYTES
        && 3 + 14 * 6
            + 80
            + 4 * parts::RECORD_TEXT_BYTES
            + limits::JOINED_LABELS * parts::LABEL_BYTES
            <= MAX_HEADER_BYTES,
    "a cell's header is the longest"
);

/// The bytes of a header, at most [`MAX_HEADER_BYTES`].
pub fn encode_header(header: &Header) -> Vec<u8> {
    let bytes = header.to_vec();
    assert!(bytes.len() <= MAX_HEADER_BYTES, "its parts are bounded");
    bytes
}

/// Reads a whole header. Its names and metadata are copies.
///
/// # Errors
/// The first rule that the bytes break.
pub fn decode_header(bytes: &[u8]) -> Result<Header, DecodeError> {
    if bytes.len() > MAX_HEADER_BYTES {
        return Err(DecodeError::TooLong {
            what: "record header",
            bytes: bytes.len(),
            limit_bytes: MAX_HEADER_BYTES,
        });
    }
    let mut reader = Reader::copying(bytes);
    let header = header(&mut reader)?;
    reader.finish()?;
    Ok(header)
}

impl Encode for Header {
    fn write<S: Sink>(&self, out: &mut S) {
        match self {
            Header::Configuration(configuration) => {
                out.put(&[VERSION, CONFIGURATION, 0]);
                out.put(configuration.encoded());
            }
            Header::Element(element) => put_element(out, element),
            Header::Marks { key, name, marks } => {
                let is_complete = !marks.complete.is_initial();
                let flags = if is_complete { MARKS_COMPLETE } else { 0 };
                out.put(&[VERSION, MARKS, flags]);
                parts::put_configuration_id(out, key);
                parts::put_tag(out, marks.floor);
                parts::put_tag(out, marks.stable);
                if is_complete {
                    parts::put_tag(out, marks.complete);
                }
                put_fence(out, marks.fence.as_ref());
                out.short(name.as_bytes().len());
                out.put(name.as_bytes());
            }
            Header::Register {
                key,
                name,
                register,
            } => {
                out.put(&[VERSION, REGISTER, 0]);
                parts::put_configuration_id(out, key);
                ranked::put_register(out, register);
                out.short(name.as_bytes().len());
                out.put(name.as_bytes());
            }
            Header::BallotFloor { key, bucket, floor } => {
                out.put(&[VERSION, BALLOT_FLOOR, 0]);
                parts::put_configuration_id(out, key);
                out.u8(*bucket);
                out.u64(floor.turn);
                parts::put_ballot(out, floor.promised);
            }
            Header::Cell {
                key,
                cell,
                acceptor,
            } => put_cell(out, key, cell, acceptor),
            Header::Registry(server) => {
                out.put(&[VERSION, REGISTRY, 0]);
                out.put(&parts::server_fields(server));
            }
            Header::Pointer { key, pointer } => {
                out.put(&[VERSION, POINTER, 0]);
                parts::put_configuration_id(out, key);
                parts::put_pointer(out, pointer);
            }
            Header::Final(configuration) => {
                out.put(&[VERSION, FINAL, 0]);
                out.put(configuration.encoded());
            }
        }
    }
}

fn put_element<S: Sink>(out: &mut S, element: &ElementHeader) {
    let ElementHeader {
        key,
        name,
        tag,
        floor,
        form,
        deleted,
        length,
        bytes,
        metadata,
    } = element;
    assert!(
        metadata.len() <= limits::METADATA_BYTES,
        "metadata is bounded where it is made"
    );
    out.put(&[VERSION, ELEMENT, if *deleted { ELEMENT_DELETED } else { 0 }]);
    parts::put_form(out, *form);
    parts::put_configuration_id(out, key);
    parts::put_tag(out, *tag);
    parts::put_tag(out, *floor);
    out.u64(*length);
    out.u64(*bytes);
    out.short(name.as_bytes().len());
    out.short(metadata.len());
    out.put(name.as_bytes());
    out.put(metadata);
}

fn put_cell<S: Sink>(out: &mut S, key: &ConfigurationId, cell: &Bytes, acceptor: &Acceptor) {
    parts::check_cell(cell);
    assert!(
        acceptor.accepted.is_some() || !acceptor.decided,
        "what is decided is the accepted value"
    );
    let accepted = acceptor.accepted.as_ref().map_or(0, |_| CELL_ACCEPTED);
    let decided = if acceptor.decided { CELL_DECIDED } else { 0 };
    out.put(&[VERSION, CELL, accepted | decided]);
    parts::put_configuration_id(out, key);
    parts::put_ballot(out, acceptor.promised);
    out.short(cell.len());
    out.put(cell);
    if let Some((ballot, value)) = &acceptor.accepted {
        parts::put_ballot(out, *ballot);
        out.long(value.len());
        out.put(value);
    }
}

// ---- reading ----------------------------------------------------------------------------------------------------------

fn header(reader: &mut Reader<'_>) -> Result<Header, DecodeError> {
    let version = reader.u8()?;
    if version != VERSION {
        return Err(DecodeError::UnknownVersion { version });
    }
    let kind = reader.u8()?;
    let known_flags = match kind {
        ELEMENT => ELEMENT_DELETED,
        CELL => CELL_ACCEPTED | CELL_DECIDED,
        MARKS => MARKS_COMPLETE,
        CONFIGURATION | REGISTRY | POINTER | FINAL | REGISTER | BALLOT_FLOOR => 0,
        kind => {
            let (what, value) = ("kind of record", kind.into());
            return Err(DecodeError::UnknownValue { what, value });
        }
    };
    let flags = reader.flags("record", known_flags)?;
    Ok(match kind {
        CONFIGURATION => Header::Configuration(configuration(reader)?),
        FINAL => Header::Final(configuration(reader)?),
        POINTER => Header::Pointer {
            key: parts::configuration_id(reader)?,
            pointer: parts::pointer(reader)?,
        },
        ELEMENT => Header::Element(element(reader, flags)?),
        MARKS => {
            let key = parts::configuration_id(reader)?;
            let marks = Marks {
                floor: parts::tag(reader)?,
                stable: parts::tag(reader)?,
                complete: match flags & MARKS_COMPLETE {
                    0 => Tag::INITIAL,
                    _ => parts::tag(reader)?,
                },
                fence: fence(reader)?,
            };
            let name_bytes = reader.short()?;
            Header::Marks {
                key,
                name: parts::name(reader, name_bytes)?,
                marks,
            }
        }
        REGISTER => {
            let key = parts::configuration_id(reader)?;
            let register = Box::new(ranked::register(reader)?);
            let name_bytes = reader.short()?;
            Header::Register {
                key,
                name: parts::name(reader, name_bytes)?,
                register,
            }
        }
        BALLOT_FLOOR => Header::BallotFloor {
            key: parts::configuration_id(reader)?,
            bucket: reader.u8()?,
            floor: BallotFloor {
                turn: reader.u64()?,
                promised: parts::ballot(reader)?,
            },
        },
        CELL => cell(reader, flags)?,
        REGISTRY => Header::Registry(parts::server(&reader.rest())?),
        _ => unreachable!("the kind was checked with its flags"),
    })
}

/// The versions behind it are few: as many as a server takes unconfirmed, and those that were kept.
fn put_fence<S: Sink>(out: &mut S, fence: Option<&Fence>) {
    let Some(fence) = fence else {
        return out.u64(0);
    };
    assert!(fence.turn > 0, "a fence was raised once");
    out.u64(fence.turn);
    parts::put_tag(out, fence.upto);
    parts::put_tag(out, fence.spared);
    out.long(fence.held.len());
    for tag in &fence.held {
        parts::put_tag(out, *tag);
    }
}

fn fence(reader: &mut Reader<'_>) -> Result<Option<Fence>, DecodeError> {
    let turn = reader.u64()?;
    if turn == 0 {
        return Ok(None);
    }
    let (upto, spared) = (parts::tag(reader)?, parts::tag(reader)?);
    let count = reader.long()?;
    let held = reader.list("versions", count, usize::MAX, parts::TAG_BYTES, parts::tag)?;
    if !held.is_sorted_by(|a, b| a < b) {
        return Err(DecodeError::VersionsOutOfOrder);
    }
    Ok(Some(Fence {
        upto,
        turn,
        spared,
        held,
    }))
}

fn configuration(reader: &mut Reader<'_>) -> Result<Arc<Configuration>, DecodeError> {
    Configuration::decode(reader.rest()).map_err(DecodeError::Descriptor)
}

fn element(reader: &mut Reader<'_>, flags: u8) -> Result<ElementHeader, DecodeError> {
    let form = parts::form(reader)?;
    let key = parts::configuration_id(reader)?;
    let (tag, floor) = (parts::tag(reader)?, parts::tag(reader)?);
    let (length, bytes) = (reader.u64()?, reader.u64()?);
    let (name_bytes, metadata_bytes) = (reader.short()?, reader.short()?);
    parts::check_copy(form, length, bytes, Part::All)?;
    Ok(ElementHeader {
        key,
        name: parts::name(reader, name_bytes)?,
        tag,
        floor,
        form,
        deleted: flags & ELEMENT_DELETED != 0,
        length,
        bytes,
        metadata: reader.limited("metadata", metadata_bytes, limits::METADATA_BYTES)?,
    })
}

fn cell(reader: &mut Reader<'_>, flags: u8) -> Result<Header, DecodeError> {
    let key = parts::configuration_id(reader)?;
    let promised = parts::ballot(reader)?;
    let cell_bytes = reader.short()?;
    let cell = parts::cell(reader, cell_bytes)?;
    let accepted = match flags & CELL_ACCEPTED {
        0 => None,
        _ => Some((parts::ballot(reader)?, accepted_value(reader)?)),
    };
    let decided = flags & CELL_DECIDED != 0;
    if decided && accepted.is_none() {
        return Err(DecodeError::DecidedWithoutValue);
    }
    let acceptor = Acceptor {
        promised,
        accepted,
        decided,
    };
    Ok(Header::Cell {
        key,
        cell,
        acceptor,
    })
}

fn accepted_value(reader: &mut Reader<'_>) -> Result<Bytes, DecodeError> {
    let value_bytes = reader.long()?;
    parts::cell_value(reader, value_bytes)
}
