//! The parts that several messages and records are made of. The layouts are drawn in `docs/wire.md`.

use super::error::DecodeError;
use super::reader::Reader;
use super::writer::Sink;
use crate::checksum::crc32c;
use areo_core::config::{Configuration, ConfigurationId, ServerId};
use areo_core::element::{Element, Form};
use areo_core::limits;
use areo_core::message::{Ballot, Label, Labels, Levels, Program, ServerRecord};
use areo_core::object::{DomainId, InvalidKey, Name};
use areo_core::pointer::{Pointer, Status, Successors};
use areo_core::tag::{ClientId, Tag, Writer};
use areo_core::tlv::{self, MUST_UNDERSTAND, TlvError};
use bytes::{Bytes, BytesMut};
use std::sync::Arc;

/// The longest encoded descriptor, in bytes: every descriptor that a cell can decide can be sent.
pub(crate) const DESCRIPTOR_BYTES: usize = limits::CELL_BYTES;
/// The longest name or address in a server's record, in bytes.
pub(crate) const RECORD_TEXT_BYTES: usize = 255;
/// The longest row of a label.
pub(crate) const LABEL_BYTES: usize = 10 + limits::LABEL_KEY_BYTES + limits::LABEL_TEXT_BYTES;

pub(crate) const TAG_BYTES: usize = 24;
pub(crate) const FORM_BYTES: usize = 3;
pub(crate) const CONFIGURATION_ID_BYTES: usize = 32;

// ---- tags, ballots, ids -----------------------------------------------------------------------------------------------

pub(crate) fn put_tag<S: Sink>(out: &mut S, tag: Tag) {
    out.u64(tag.number);
    put_writer(out, tag.writer);
}

pub(crate) fn tag(reader: &mut Reader<'_>) -> Result<Tag, DecodeError> {
    Ok(Tag {
        number: reader.u64()?,
        writer: writer(reader)?,
    })
}

pub(crate) fn put_ballot<S: Sink>(out: &mut S, ballot: Ballot) {
    out.u64(ballot.number);
    put_writer(out, ballot.proposer);
}

pub(crate) fn ballot(reader: &mut Reader<'_>) -> Result<Ballot, DecodeError> {
    Ok(Ballot {
        number: reader.u64()?,
        proposer: writer(reader)?,
    })
}

fn put_writer<S: Sink>(out: &mut S, writer: Writer) {
    out.u64(writer.client.0);
    out.u64(writer.counter);
}

fn writer(reader: &mut Reader<'_>) -> Result<Writer, DecodeError> {
    Ok(Writer {
        client: ClientId(reader.u64()?),
        counter: reader.u64()?,
    })
}

pub(crate) fn put_configuration_id<S: Sink>(out: &mut S, id: &ConfigurationId) {
    out.u128(id.domain.0);
    out.u32(id.partition);
    out.u32(id.index);
    out.u64(id.digest);
}

pub(crate) fn configuration_id(reader: &mut Reader<'_>) -> Result<ConfigurationId, DecodeError> {
    Ok(ConfigurationId {
        domain: DomainId(reader.u128()?),
        partition: reader.u32()?,
        index: reader.u32()?,
        digest: reader.u64()?,
    })
}

// ---- names and descriptors --------------------------------------------------------------------------------------------

/// The name of an object, whose length was read before.
pub(crate) fn name(reader: &mut Reader<'_>, length: usize) -> Result<Name, DecodeError> {
    Name::from_bytes(reader.bytes(length)?).map_err(DecodeError::Key)
}

/// The key of a listed object, whose length was read before. Of which kind it is only the caller knows.
pub(crate) fn key(reader: &mut Reader<'_>, length: usize) -> Result<String, DecodeError> {
    if length == 0 {
        return Err(DecodeError::Key(InvalidKey::Empty));
    }
    reader.text("key", length, limits::OBJECT_NAME_BYTES)
}

/// Checks the name of a cell that is about to be written.
pub(crate) fn check_cell(cell: &Bytes) {
    assert!(
        cell.len() <= limits::CELL_NAME_BYTES,
        "names of cells are made by this program, and short"
    );
}

/// The name of a cell, whose length was read before.
pub(crate) fn cell(reader: &mut Reader<'_>, length: usize) -> Result<Bytes, DecodeError> {
    reader.limited("name of a cell", length, limits::CELL_NAME_BYTES)
}

/// The value of a cell, whose length was read before.
pub(crate) fn cell_value(reader: &mut Reader<'_>, length: usize) -> Result<Bytes, DecodeError> {
    reader.limited("value of a cell", length, limits::CELL_BYTES)
}

pub(crate) fn put_descriptor<S: Sink>(out: &mut S, configuration: &Configuration) {
    let encoded = configuration.encoded();
    assert!(
        encoded.len() <= DESCRIPTOR_BYTES,
        "descriptors come from cells, or are made of few fields"
    );
    out.short(encoded.len());
    out.put(encoded);
}

pub(crate) fn descriptor(reader: &mut Reader<'_>) -> Result<Arc<Configuration>, DecodeError> {
    let length = reader.short()?;
    let encoded = reader.limited("descriptor", length, DESCRIPTOR_BYTES)?;
    // A copy: configurations are kept, and would keep the whole body with them.
    let encoded = Bytes::copy_from_slice(&encoded);
    Configuration::decode(encoded).map_err(DecodeError::Descriptor)
}

const PENDING: u8 = 0;
const FINAL: u8 = 1;

/// All that comes after a configuration, as a list: whole, ascending (`[R-25 whole-sets]`).
pub(crate) fn put_successors<S: Sink>(out: &mut S, successors: &Successors) {
    let is_shown = (1..=limits::SUCCESSORS).contains(&successors.len());
    assert!(is_shown, "no more is taken in than can be shown");
    out.u8(successors.len() as u8);
    for pointer in successors.iter() {
        put_pointer(out, pointer);
    }
}

pub(crate) fn successors(reader: &mut Reader<'_>) -> Result<Successors, DecodeError> {
    let count = reader.u8()?;
    let (what, value) = ("number of successors", count.into());
    if !(1..=limits::SUCCESSORS).contains(&usize::from(count)) {
        return Err(DecodeError::UnknownValue { what, value });
    }
    let pointers = (0..count).map(|_| pointer(reader));
    let pointers = pointers.collect::<Result<Vec<_>, _>>()?;
    let what = "order of successors";
    Successors::new(pointers).ok_or(DecodeError::UnknownValue { what, value })
}

pub(crate) fn put_pointer<S: Sink>(out: &mut S, pointer: &Pointer) {
    out.u8(match pointer.status {
        Status::Pending => PENDING,
        Status::Final => FINAL,
    });
    put_descriptor(out, &pointer.configuration);
}

pub(crate) fn pointer(reader: &mut Reader<'_>) -> Result<Pointer, DecodeError> {
    let status = match reader.u8()? {
        PENDING => Status::Pending,
        FINAL => Status::Final,
        value => {
            let (what, value) = ("status of a configuration", value.into());
            return Err(DecodeError::UnknownValue { what, value });
        }
    };
    let configuration = descriptor(reader)?;
    Ok(Pointer {
        configuration,
        status,
    })
}

// ---- elements ---------------------------------------------------------------------------------------------------------

/// Three bytes: n, k, index. A full copy is a code of no fragments: all zero; a manifest and a trimmed element are one of
/// none with an index.
pub(crate) fn put_form<S: Sink>(out: &mut S, form: Form) {
    let fields = match form {
        Form::Copy => [0; FORM_BYTES],
        Form::Manifest => [0, 0, 1],
        Form::Trimmed => [0, 0, 2],
        Form::Fragment { n, k, index } => {
            assert!(fragment_exists(n, k, index), "elements are made by a code");
            [n, k, index]
        }
    };
    out.put(&fields);
}

pub(crate) fn form(reader: &mut Reader<'_>) -> Result<Form, DecodeError> {
    match reader.array::<FORM_BYTES>()? {
        [0, 0, 0] => Ok(Form::Copy),
        [0, 0, 1] => Ok(Form::Manifest),
        [0, 0, 2] => Ok(Form::Trimmed),
        [n, k, index] if fragment_exists(n, k, index) => Ok(Form::Fragment { n, k, index }),
        [n, k, index] => Err(DecodeError::ImpossibleForm { n, k, index }),
    }
}

fn fragment_exists(n: u8, k: u8, index: u8) -> bool {
    0 < k && k <= n && index < n
}

/// The part of an element that a message carries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Part {
    /// The element with its payload.
    All,
    /// Perhaps without its payload, if that was not asked for.
    Any,
}

/// True if the payload fits the rest of the element: a full copy is as long as the value, a manifest is empty, and so
/// is a trimmed element.
fn payload_fits(form: Form, length: u64, payload_bytes: u64, part: Part) -> bool {
    let left_out = part == Part::Any && payload_bytes == 0;
    match form {
        Form::Copy => left_out || payload_bytes == length,
        Form::Manifest | Form::Trimmed => payload_bytes == 0,
        Form::Fragment { .. } => true,
    }
}

const ELEMENT_DELETED: u8 = 1;
const ELEMENT_PAYLOAD: u8 = 2;

/// Everything of an element but its payload, which is a segment of the frame.
pub(crate) fn put_element<S: Sink>(out: &mut S, element: &Element, part: Part) {
    let payload_bytes = element.payload.len() as u64;
    assert!(
        payload_fits(element.form, element.length, payload_bytes, part),
        "a full copy is as long as the value"
    );
    assert!(
        element.metadata.len() <= limits::METADATA_BYTES,
        "metadata is bounded where it is made"
    );
    let deleted = if element.deleted { ELEMENT_DELETED } else { 0 };
    let payload = if payload_bytes > 0 {
        ELEMENT_PAYLOAD
    } else {
        0
    };
    out.u8(deleted | payload);
    put_form(out, element.form);
    out.short(element.metadata.len());
    out.u64(element.length);
    out.put(&element.metadata);
}

pub(crate) fn element(reader: &mut Reader<'_>, part: Part) -> Result<Element, DecodeError> {
    let flags = reader.flags("element", ELEMENT_DELETED | ELEMENT_PAYLOAD)?;
    let form = match form(reader)? {
        // Of what was trimmed nothing is sent: it is listed.
        Form::Trimmed => {
            return Err(DecodeError::ImpossibleForm {
                n: 0,
                k: 0,
                index: 2,
            });
        }
        form => form,
    };
    let metadata_bytes = reader.short()?;
    let length = reader.u64()?;
    let metadata = reader.limited("metadata", metadata_bytes, limits::METADATA_BYTES)?;
    let (payload, checksum) = match flags & ELEMENT_PAYLOAD {
        0 => (Bytes::new(), None),
        _ => reader
            .segment()
            .map(|(payload, checksum)| (payload, Some(checksum)))?,
    };
    check_copy(form, length, payload.len() as u64, part)?;
    Ok(Element {
        form,
        deleted: flags & ELEMENT_DELETED != 0,
        length,
        metadata,
        payload,
        checksum,
    })
}

/// Refuses a full copy that is not as long as its value.
pub(crate) fn check_copy(
    form: Form,
    length: u64,
    payload_bytes: u64,
    part: Part,
) -> Result<(), DecodeError> {
    match payload_fits(form, length, payload_bytes, part) {
        true => Ok(()),
        false => Err(DecodeError::WrongLength {
            length,
            payload_bytes,
        }),
    }
}

/// The payload of an element as a segment of a frame; none if it has no bytes.
pub(crate) fn segment(element: &Element) -> Option<(Bytes, u32)> {
    let checksum = || element.checksum.unwrap_or_else(|| crc32c(&element.payload));
    (!element.payload.is_empty()).then(|| (element.payload.clone(), checksum()))
}

// ---- servers ----------------------------------------------------------------------------------------------------------

const SERVER_ID: u16 = MUST_UNDERSTAND | 1;
const SERVER_INCARNATION: u16 = MUST_UNDERSTAND | 2;
const SERVER_START: u16 = MUST_UNDERSTAND | 3;
const SERVER_NAME: u16 = 4;
const SERVER_ADDRESS: u16 = MUST_UNDERSTAND | 5;
const SERVER_ADMIN: u16 = 6;
const SERVER_RESUMED: u16 = MUST_UNDERSTAND | 7;
const SERVER_GENERATION: u16 = MUST_UNDERSTAND | 8;
/// Left out where it is 0.
const SERVER_LEAVING: u16 = 10;
const SERVER_POSITION: u16 = 9;
/// Left out where it is empty.
const SERVER_VERSION: u16 = 11;
/// Left out where it is 0.
const SERVER_LEVEL: u16 = 12;
/// Left out where both are 0. A register that did not know it would register what must not start.
const SERVER_LEVELS: u16 = MUST_UNDERSTAND | 13;
/// Left out where there is none.
const SERVER_LABELS: u16 = 14;

/// A server's record, as fields.
pub(crate) fn server_fields(server: &ServerRecord) -> BytesMut {
    let texts = server.name.len() + server.address.len() + server.admin.len();
    let texts = texts + server.program.version.len();
    let mut out = BytesMut::with_capacity(11 * 6 + 16 + 5 * 8 + 4 + 8 + texts);
    let mut field = |kind, value: &[u8]| tlv::put_field(&mut out, kind, value);
    field(SERVER_ID, &server.id.0.to_le_bytes());
    field(SERVER_INCARNATION, &server.incarnation.to_le_bytes());
    field(SERVER_START, &server.start.to_le_bytes());
    field(SERVER_NAME, server.name.as_bytes());
    field(SERVER_ADDRESS, server.address.as_bytes());
    field(SERVER_ADMIN, server.admin.as_bytes());
    if server.resumed {
        field(SERVER_RESUMED, &[]);
    }
    if let Some(generation) = server.generation {
        field(SERVER_GENERATION, &generation.to_le_bytes());
    }
    if server.leaving != 0 {
        field(SERVER_LEAVING, &server.leaving.to_le_bytes());
    }
    if let Some(position) = server.position {
        field(SERVER_POSITION, &position.to_le_bytes());
    }
    let Program { version, level } = &server.program;
    if !version.is_empty() {
        field(SERVER_VERSION, version.as_bytes());
    }
    if *level != 0 {
        field(SERVER_LEVEL, &level.to_le_bytes());
    }
    if server.levels != Levels::default() {
        let levels = [server.levels.required, server.levels.finalized];
        field(SERVER_LEVELS, levels.map(u32::to_le_bytes).as_flattened());
    }
    if !server.labels.is_empty() {
        field(SERVER_LABELS, &label_rows(&server.labels));
    }
    out
}

/// A row for each label, in the order of their keys.
fn label_rows(labels: &Labels) -> Vec<u8> {
    let mut rows = Vec::new();
    for (key, Label { changes, text }) in labels.all() {
        assert!(
            key.len() <= limits::LABEL_KEY_BYTES && text.len() <= limits::LABEL_TEXT_BYTES,
            "labels are bounded where they are made"
        );
        rows.u64(*changes);
        rows.u8(key.len() as u8);
        rows.u8(text.len() as u8);
        rows.put(key.as_bytes());
        rows.put(text.as_bytes());
    }
    rows
}

/// The reverse of [`label_rows`].
fn labels(rows: &[u8]) -> Result<Labels, DecodeError> {
    let mut reader = Reader::copying(rows);
    let mut labels = Labels::default();
    while !reader.is_at_end() {
        let changes = reader.u64()?;
        let (key, text) = (usize::from(reader.u8()?), usize::from(reader.u8()?));
        let key = reader.text("key of a label", key, limits::LABEL_KEY_BYTES)?;
        let text = reader.text("label", text, limits::LABEL_TEXT_BYTES)?;
        labels.join(&key, Label { changes, text });
    }
    Ok(labels)
}

/// The reverse of [`server_fields`]; skips fields of later versions unless they must be understood.
pub(crate) fn server(fields: &Bytes) -> Result<ServerRecord, DecodeError> {
    let (mut id, mut incarnation, mut start, mut address) = (None, None, None, None);
    let (mut name, mut admin, mut resumed) = (String::new(), String::new(), false);
    let (mut generation, mut leaving, mut position) = (None, 0, None);
    let (mut program, mut levels) = (Program::default(), Levels::default());
    let mut given = Labels::default();
    for field in tlv::fields(fields) {
        let (kind, value) = field.map_err(DecodeError::Fields)?;
        match kind {
            SERVER_ID => id = Some(ServerId(u128::from_le_bytes(number(kind, value)?))),
            SERVER_INCARNATION => incarnation = Some(u64::from_le_bytes(number(kind, value)?)),
            SERVER_START => start = Some(u64::from_le_bytes(number(kind, value)?)),
            SERVER_NAME => name = server_text("name of a server", kind, value)?,
            SERVER_ADDRESS => address = Some(server_text("address of a server", kind, value)?),
            SERVER_ADMIN => admin = server_text("admin address of a server", kind, value)?,
            SERVER_RESUMED => resumed = true,
            SERVER_GENERATION => generation = Some(u64::from_le_bytes(number(kind, value)?)),
            SERVER_LEAVING => leaving = u64::from_le_bytes(number(kind, value)?),
            SERVER_POSITION => position = Some(u64::from_le_bytes(number(kind, value)?)),
            SERVER_VERSION => program.version = server_text("version of a server", kind, value)?,
            SERVER_LEVEL => program.level = u32::from_le_bytes(number(kind, value)?),
            SERVER_LEVELS => {
                let both = u64::from_le_bytes(number(kind, value)?);
                (levels.required, levels.finalized) = (both as u32, (both >> 32) as u32);
            }
            SERVER_LABELS => given = labels(value)?,
            _ => tlv::unknown(kind).map_err(DecodeError::Fields)?,
        }
    }
    let missing = |kind| DecodeError::Fields(TlvError::Missing { kind });
    Ok(ServerRecord {
        id: id.ok_or(missing(SERVER_ID))?,
        incarnation: incarnation.ok_or(missing(SERVER_INCARNATION))?,
        start: start.ok_or(missing(SERVER_START))?,
        resumed,
        name,
        address: address.ok_or(missing(SERVER_ADDRESS))?,
        admin,
        generation,
        leaving,
        position,
        program,
        levels,
        labels: given,
    })
}

/// The content of a field that is one number.
pub(crate) fn number<const N: usize>(kind: u16, value: &[u8]) -> Result<[u8; N], DecodeError> {
    tlv::number(kind, value).map_err(DecodeError::Fields)
}

/// The content of a field that is true or false.
pub(crate) fn truth(kind: u16, value: &[u8]) -> Result<bool, DecodeError> {
    match number(kind, value)? {
        [0] => Ok(false),
        [1] => Ok(true),
        [_] => Err(DecodeError::Fields(TlvError::Invalid { kind })),
    }
}

fn server_text(what: &'static str, kind: u16, value: &[u8]) -> Result<String, DecodeError> {
    match value.len() {
        bytes if bytes > RECORD_TEXT_BYTES => Err(DecodeError::TooLong {
            what,
            bytes,
            limit_bytes: RECORD_TEXT_BYTES,
        }),
        _ => tlv::text(kind, value).map_err(DecodeError::Fields),
    }
}
