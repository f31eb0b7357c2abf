//! Replies.

use super::answer;
use super::error::DecodeError;
use super::parts::{self, Part, TAG_BYTES};
use super::reader::Reader;
use super::status;
use super::view;
use super::writer::{Encode, Sink};
use crate::frame;
use areo_core::element::{Element, ReplyElement};
use areo_core::limits;
use areo_core::message::{
    Answer, Ballot, CellReply, CellSummary, Directory, ListEntry, ListPage, Reply, ServerRecord,
};
use areo_core::object::Etag;
use areo_core::pointer::Successors;
use bytes::Bytes;

const ACCESS: u8 = 1;
const LISTED: u8 = 2;
const CELL_PROMISED: u8 = 3;
const CELL_ACCEPTED: u8 = 4;
const CELL_REJECTED: u8 = 5;
const CELL_DECIDED: u8 = 6;
const CELLS: u8 = 7;
const DIRECTORY: u8 = 8;
const REGISTERED: u8 = 9;
const OUTDATED: u8 = 10;
const STATUS: u8 = 11;
const WITHHELD: u8 = 12;
const CONFIG: u8 = 13;
const CELL_CLOSED: u8 = 14;
const LATEST: u8 = 15;
const SERVERS: u8 = 16;
const ADMISSIBLE: u8 = 17;
// 18 is that of answers about trust.
const VIEW: u8 = 19;

/// Flag of any answer for a configuration: its successors follow the flags.
pub(super) const FLAG_SUCCESSORS: u8 = 0x80;
/// Flag of an answer to a lookup of a domain: a configuration follows.
const FLAG_KNOWN: u8 = 1;

/// Flag of a page: there are more entries.
const FLAG_TRUNCATED: u8 = 1;
/// Flag of a promise: a value was accepted before.
const FLAG_ACCEPTED: u8 = 1;

const ENTRY_DELETED: u8 = 1;
const ENTRY_DAMAGED: u8 = 2;
const ENTRY_ABSENT: u8 = 4;
const SUMMARY_DECIDED: u8 = 1;

const ANSWER_LEAST_BYTES: usize = 2;
const ENTRY_FIXED_BYTES: usize = 1 + 2 + TAG_BYTES + 8 + 4 + 8 + 1;
const SUMMARY_FIXED_BYTES: usize = 1 + 2 + 4;
const SERVER_LEAST_BYTES: usize = 4;
/// The most bytes of a page beside its kind, flags and count.
const PAGE_BYTES: usize = frame::MAX_BODY_BYTES as usize - 4;

impl Encode for Reply {
    fn write<S: Sink>(&self, out: &mut S) {
        match self {
            Reply::Next { successors, reply } => match reply {
                Some(reply) => put_reply(out, reply, Some(successors)),
                None => put_kind(out, WITHHELD, 0, Some(successors)),
            },
            reply => put_reply(out, reply, None),
        }
    }
}

/// Kind, flags and, if there are some, the successors.
pub(super) fn put_kind<S: Sink>(out: &mut S, kind: u8, flags: u8, next: Option<&Successors>) {
    let pointing = next.map_or(0, |_| FLAG_SUCCESSORS);
    out.put(&[kind, flags | pointing]);
    if let Some(successors) = next {
        parts::put_successors(out, successors);
    }
}

fn put_reply<S: Sink>(out: &mut S, reply: &Reply, next: Option<&Successors>) {
    match reply {
        Reply::Next { .. } => unreachable!("one envelope is enough"),
        Reply::Access(answers) => {
            assert!(
                answers.len() <= limits::ACCESSES,
                "one answer per access, of which there are few"
            );
            put_kind(out, ACCESS, 0, next);
            out.short(answers.len());
            for answer in answers {
                answer::put_answer(out, answer);
            }
        }
        Reply::Listed(listed) => put_listed(out, listed, next),
        Reply::Config => put_kind(out, CONFIG, 0, next),
        Reply::Cell(reply) => put_cell(out, reply, next),
        Reply::Cells { cells, truncated } => put_cells(out, cells, *truncated, next),
        Reply::Directory(directory) => put_directory(out, directory),
        Reply::Servers(servers) => {
            put_kind(out, SERVERS, 0, next);
            put_servers(out, servers);
        }
        Reply::Registered => put_kind(out, REGISTERED, 0, next),
        Reply::Admissible(known) => {
            put_kind(out, ADMISSIBLE, 0, next);
            out.put(&parts::server_fields(known));
        }
        Reply::Outdated { registered } => {
            put_kind(out, OUTDATED, 0, next);
            out.u64(*registered);
        }
        Reply::Status(status) => {
            out.put(&[STATUS, 0]);
            out.put(&status::fields(status));
        }
        Reply::View(view) => {
            out.put(&[VIEW, 0]);
            out.put(&view::fields(view));
        }
        Reply::Latest(known) => {
            out.put(&[LATEST, known.as_ref().map_or(0, |_| FLAG_KNOWN)]);
            if let Some(known) = known {
                parts::put_descriptor(out, known);
            }
        }
    }
}

pub(super) fn is_ascending<T: PartialOrd>(items: impl IntoIterator<Item = T>) -> bool {
    items.into_iter().is_sorted_by(|a, b| a < b)
}

pub(super) fn whole(carried: &ReplyElement) -> &Element {
    match carried {
        ReplyElement::Whole(element) => element,
        ReplyElement::Stored { .. } => {
            unreachable!("elements are read from the store before a reply is released")
        }
    }
}

/// The number of these items that fit one page. The caller continues behind the last one, as with any page.
fn fitting(sizes: impl Iterator<Item = usize>) -> usize {
    let mut bytes = 0;
    let fits = |size: &usize| {
        bytes += size;
        bytes <= PAGE_BYTES
    };
    sizes.take(limits::PAGE_ENTRIES).take_while(fits).count()
}

fn put_listed<S: Sink>(out: &mut S, listed: &ListPage, next: Option<&Successors>) {
    let sizes = listed.entries.iter().map(entry_bytes);
    let count = fitting(sizes);
    let truncated = listed.truncated || count < listed.entries.len();
    let flags = if truncated { FLAG_TRUNCATED } else { 0 };
    put_kind(out, LISTED, flags, next);
    out.short(count);
    for entry in &listed.entries[..count] {
        let deleted = if entry.deleted { ENTRY_DELETED } else { 0 };
        let damaged = if entry.damaged { ENTRY_DAMAGED } else { 0 };
        let absent = if entry.absent { ENTRY_ABSENT } else { 0 };
        assert!(
            (1..=limits::OBJECT_NAME_BYTES).contains(&entry.key.len()),
            "keys were checked when they were put"
        );
        out.u8(deleted | damaged | absent);
        out.short(entry.key.len());
        parts::put_tag(out, entry.tag);
        out.u64(entry.length);
        out.u32(entry.age_s);
        out.u64(entry.written_at_ms.unwrap_or(0));
        let etag = entry.etag.as_ref().map_or("", Etag::as_str);
        out.u8(u8::try_from(etag.len()).expect("an ETag is short"));
        out.put(entry.key.as_bytes());
        out.put(etag.as_bytes());
    }
}

fn entry_bytes(entry: &ListEntry) -> usize {
    let etag = entry.etag.as_ref().map_or(0, |etag| etag.as_str().len());
    ENTRY_FIXED_BYTES + entry.key.len() + etag
}

fn put_cells<S: Sink>(
    out: &mut S,
    cells: &[CellSummary],
    truncated: bool,
    next: Option<&Successors>,
) {
    let sizes = cells.iter().map(summary_bytes);
    let count = fitting(sizes);
    let truncated = truncated || count < cells.len();
    let flags = if truncated { FLAG_TRUNCATED } else { 0 };
    put_kind(out, CELLS, flags, next);
    out.short(count);
    for summary in &cells[..count] {
        parts::check_cell(&summary.cell);
        out.u8(if summary.decided { SUMMARY_DECIDED } else { 0 });
        out.short(summary.cell.len());
        out.long(summary.value.len());
        out.put(&summary.cell);
        out.put(&summary.value);
    }
}

fn summary_bytes(summary: &CellSummary) -> usize {
    SUMMARY_FIXED_BYTES + summary.cell.len() + summary.value.len()
}

fn put_cell<S: Sink>(out: &mut S, reply: &CellReply, next: Option<&Successors>) {
    match reply {
        CellReply::Promised { accepted } => {
            put_accepted(out, CELL_PROMISED, accepted.as_ref(), next);
        }
        CellReply::Closed { accepted } => {
            put_accepted(out, CELL_CLOSED, accepted.as_ref(), next);
        }
        CellReply::Accepted => put_kind(out, CELL_ACCEPTED, 0, next),
        CellReply::Rejected { promised } => {
            put_kind(out, CELL_REJECTED, 0, next);
            parts::put_ballot(out, *promised);
        }
        CellReply::Decided(value) => {
            put_kind(out, CELL_DECIDED, 0, next);
            out.long(value.len());
            out.put(value);
        }
    }
}

fn put_accepted<S: Sink>(
    out: &mut S,
    kind: u8,
    accepted: Option<&(Ballot, Bytes)>,
    next: Option<&Successors>,
) {
    let flags = accepted.map_or(0, |_| FLAG_ACCEPTED);
    put_kind(out, kind, flags, next);
    if let Some((ballot, value)) = accepted {
        parts::put_ballot(out, *ballot);
        out.long(value.len());
        out.put(value);
    }
}

fn put_directory<S: Sink>(out: &mut S, directory: &Directory) {
    out.put(&[DIRECTORY, 0]);
    parts::put_descriptor(out, &directory.root);
    put_servers(out, &directory.servers);
}

fn put_servers<S: Sink>(out: &mut S, servers: &[ServerRecord]) {
    assert!(
        servers.len() <= limits::REGISTERED_SERVERS,
        "a registry holds no more"
    );
    out.short(servers.len());
    for server in servers {
        let fields = parts::server_fields(server);
        out.long(fields.len());
        out.put(&fields);
    }
}

/// The payloads of the elements, in their order.
pub(super) fn segments(reply: &Reply) -> Vec<(Bytes, u32)> {
    let Some(answers) = reply.answers() else {
        return Vec::new();
    };
    let elements = answers.iter().filter_map(|answer| match answer {
        Answer::Held(held) => held.element.as_ref().map(|(_, carried)| carried),
        Answer::Fetched(carried) => Some(carried),
        Answer::Ranked(ranked) => ranked.element.as_ref().map(|(_, carried)| carried),
        Answer::Evicted
        | Answer::Stored
        | Answer::Needed
        | Answer::Refused(_)
        | Answer::Later { .. }
        | Answer::Dropped => None,
    });
    let segments = elements.filter_map(|carried| parts::segment(whole(carried)));
    segments.collect()
}

// ---- reading ----------------------------------------------------------------------------------------------------------

pub(super) fn reply(reader: &mut Reader<'_>) -> Result<Reply, DecodeError> {
    let kind = reader.u8()?;
    let known_flags = match kind {
        LISTED | CELLS => FLAG_SUCCESSORS | FLAG_TRUNCATED,
        CELL_PROMISED | CELL_CLOSED => FLAG_SUCCESSORS | FLAG_ACCEPTED,
        ACCESS | CONFIG | WITHHELD | CELL_ACCEPTED | CELL_REJECTED | CELL_DECIDED | SERVERS
        | REGISTERED | OUTDATED | ADMISSIBLE => FLAG_SUCCESSORS,
        LATEST => FLAG_KNOWN,
        DIRECTORY | STATUS | VIEW => 0,
        kind => return Err(unknown("kind of reply", kind.into())),
    };
    let flags = reader.flags("reply", known_flags)?;
    let successors = match flags & FLAG_SUCCESSORS {
        0 => None,
        _ => Some(parts::successors(reader)?),
    };
    let reply = match kind {
        WITHHELD => None,
        kind => Some(answered(reader, kind, flags)?),
    };
    match (successors, reply) {
        (Some(successors), reply) => Ok(Reply::Next {
            successors,
            reply: reply.map(Box::new),
        }),
        (None, Some(reply)) => Ok(reply),
        (None, None) => Err(DecodeError::WithheldWithoutPointer),
    }
}

/// The content of the envelope.
fn answered(reader: &mut Reader<'_>, kind: u8, flags: u8) -> Result<Reply, DecodeError> {
    let truncated = flags & FLAG_TRUNCATED != 0;
    Ok(match kind {
        ACCESS => {
            let count = reader.short()?;
            let (limit, least_bytes) = (limits::ACCESSES, ANSWER_LEAST_BYTES);
            Reply::Access(reader.list("answers", count, limit, least_bytes, answer::answer)?)
        }
        LISTED => {
            let count = reader.short()?;
            let (limit, least_bytes) = (limits::PAGE_ENTRIES, ENTRY_FIXED_BYTES + 1);
            let entries = reader.list("entries", count, limit, least_bytes, entry)?;
            Reply::Listed(ListPage { entries, truncated })
        }
        CELLS => {
            let count = reader.short()?;
            let (limit, least_bytes) = (limits::PAGE_ENTRIES, SUMMARY_FIXED_BYTES);
            let cells = reader.list("cells", count, limit, least_bytes, summary)?;
            Reply::Cells { cells, truncated }
        }
        DIRECTORY => Reply::Directory(directory(reader)?),
        SERVERS => Reply::Servers(servers(reader)?),
        REGISTERED => Reply::Registered,
        ADMISSIBLE => Reply::Admissible(Box::new(parts::server(&reader.rest())?)),
        OUTDATED => Reply::Outdated {
            registered: reader.u64()?,
        },
        STATUS => Reply::Status(Box::new(status::status(&reader.rest())?)),
        VIEW => Reply::View(Box::new(view::view(&reader.rest())?)),
        CONFIG => Reply::Config,
        LATEST => Reply::Latest(match flags & FLAG_KNOWN {
            0 => None,
            _ => Some(parts::descriptor(reader)?),
        }),
        kind => Reply::Cell(cell(reader, kind, flags)?),
    })
}

pub(super) fn unknown(what: &'static str, value: u16) -> DecodeError {
    DecodeError::UnknownValue { what, value }
}

pub(super) fn carried(reader: &mut Reader<'_>) -> Result<ReplyElement, DecodeError> {
    parts::element(reader, Part::Any).map(ReplyElement::Whole)
}

fn entry(reader: &mut Reader<'_>) -> Result<ListEntry, DecodeError> {
    let flags = reader.flags(
        "entry of a listing",
        ENTRY_DELETED | ENTRY_DAMAGED | ENTRY_ABSENT,
    )?;
    let key_bytes = reader.short()?;
    let tag = parts::tag(reader)?;
    let (length, age_s) = (reader.u64()?, reader.u32()?);
    let (written_at_ms, etag_bytes) = (reader.u64()?, reader.u8()?.into());
    Ok(ListEntry {
        key: parts::key(reader, key_bytes)?,
        tag,
        length,
        etag: etag(reader, etag_bytes)?,
        written_at_ms: (written_at_ms > 0).then_some(written_at_ms),
        age_s,
        deleted: flags & ENTRY_DELETED != 0,
        damaged: flags & ENTRY_DAMAGED != 0,
        absent: flags & ENTRY_ABSENT != 0,
    })
}

fn etag(reader: &mut Reader<'_>, bytes: usize) -> Result<Option<Etag>, DecodeError> {
    if bytes == 0 {
        return Ok(None);
    }
    let text = reader.text("ETag", bytes, limits::ETAG_BYTES)?;
    Etag::new(&text).map(Some).map_err(DecodeError::Etag)
}

fn summary(reader: &mut Reader<'_>) -> Result<CellSummary, DecodeError> {
    let flags = reader.flags("cell", SUMMARY_DECIDED)?;
    let (cell_bytes, value_bytes) = (reader.short()?, reader.long()?);
    Ok(CellSummary {
        cell: parts::cell(reader, cell_bytes)?,
        value: parts::cell_value(reader, value_bytes)?,
        decided: flags & SUMMARY_DECIDED != 0,
    })
}

fn cell(reader: &mut Reader<'_>, kind: u8, flags: u8) -> Result<CellReply, DecodeError> {
    let value = |reader: &mut Reader<'_>| {
        let value_bytes = reader.long()?;
        parts::cell_value(reader, value_bytes)
    };
    Ok(match kind {
        CELL_PROMISED | CELL_CLOSED => {
            let accepted = match flags & FLAG_ACCEPTED {
                0 => None,
                _ => Some((parts::ballot(reader)?, value(reader)?)),
            };
            match kind {
                CELL_PROMISED => CellReply::Promised { accepted },
                _ => CellReply::Closed { accepted },
            }
        }
        CELL_ACCEPTED => CellReply::Accepted,
        CELL_REJECTED => CellReply::Rejected {
            promised: parts::ballot(reader)?,
        },
        CELL_DECIDED => CellReply::Decided(value(reader)?),
        _ => unreachable!("the kind was checked with its flags"),
    })
}

fn directory(reader: &mut Reader<'_>) -> Result<Directory, DecodeError> {
    let root = parts::descriptor(reader)?;
    let servers = servers(reader)?;
    Ok(Directory { root, servers })
}

fn servers(reader: &mut Reader<'_>) -> Result<Vec<ServerRecord>, DecodeError> {
    let count = reader.short()?;
    let server = |reader: &mut Reader<'_>| {
        let length = reader.long()?;
        parts::server(&reader.bytes(length)?)
    };
    let (limit, least_bytes) = (limits::REGISTERED_SERVERS, SERVER_LEAST_BYTES);
    reader.list("servers", count, limit, least_bytes, server)
}
