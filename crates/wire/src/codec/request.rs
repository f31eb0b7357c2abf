//! Requests.

use super::error::DecodeError;
use super::list;
use super::parts::{self, Part, TAG_BYTES};
use super::ranked;
use super::reader::Reader;
use super::writer::{Encode, Sink};
use areo_core::config::{Configuration, ConfigurationId};
use areo_core::limits;
use areo_core::message::{Access, Announcement, Body, CellRequest, Enrolment, Request, Want};
use areo_core::object::{DomainId, Name};
use areo_core::pointer::Successors;
use areo_core::tag::Tag;
use bytes::Bytes;
use std::sync::Arc;

const ACCESS: u8 = 1;
const LIST: u8 = 2;
const CELL_QUERY: u8 = 3;
const CELL_PREPARE: u8 = 4;
const CELL_ACCEPT: u8 = 5;
const CELLS: u8 = 6;
const DIRECTORY: u8 = 7;
const KNOW: u8 = 8;
const STATUS: u8 = 9;
const READ_CONFIG: u8 = 10;
const LATEST: u8 = 11;
const REGISTER: u8 = 12;
const SERVERS: u8 = 13;
const ASK_TO_REGISTER: u8 = 14;
const HAND_ON: u8 = 15;
const CELL_JOIN: u8 = 16;
// 17 and 18 are those of messages about trust.
const VIEW: u8 = 19;

/// The descriptor of the configuration follows its id.
const FLAG_DESCRIPTOR: u8 = 1;
/// Successors follow, which the server is to know before it answers.
const FLAG_SUCCESSORS: u8 = 2;
/// Flag of a lookup of a domain: the configuration that the asker knows follows.
const FLAG_KNOWN: u8 = 1;

const QUERY: u8 = 1;
const FETCH: u8 = 2;
const PUT: u8 = 3;
const ADOPT: u8 = 4;
const KEEP: u8 = 5;
const FENCE: u8 = 6;
const DROP: u8 = 7;
const FINALIZE: u8 = 8;
const RANK: u8 = 9;
const ACCEPT_RANKED: u8 = 11;

const WANT_TAGS: u8 = 0;
const WANT_METADATA: u8 = 1;
const WANT_FRAGMENT: u8 = 2;
const WANT_ELEMENT: u8 = 3;
const WANT_MASK: u8 = 3;
/// Flag of a FIN: it is FIN2.
const FINALIZE_COMPLETE: u8 = 4;
/// Flag of a query: an announced put follows the name, as the lengths of the value and of an element.
const QUERY_ANNOUNCED: u8 = 4;
/// Flag of a query of a ranked register: the ballot to be promised follows the name.
const RANK_BALLOT: u8 = 4;
const FETCH_PAYLOAD: u8 = 1;
const PUT_WRITE_BACK: u8 = 1;

/// An access with the shortest name.
const ACCESS_LEAST_BYTES: usize = 4 + TAG_BYTES + 2;

impl Encode for Request {
    fn write<S: Sink>(&self, out: &mut S) {
        match self {
            Request::Configured {
                configuration,
                descriptor,
                successors,
                body,
            } => {
                let described = descriptor.as_ref().map_or(0, |_| FLAG_DESCRIPTOR);
                let pointing = match successors.is_empty() {
                    true => 0,
                    false => FLAG_SUCCESSORS,
                };
                out.u8(kind_of(body));
                out.u8(described | pointing);
                parts::put_configuration_id(out, configuration);
                if let Some(descriptor) = descriptor {
                    parts::put_descriptor(out, descriptor);
                }
                if !successors.is_empty() {
                    parts::put_successors(out, successors);
                }
                put_body(out, body);
            }
            Request::Directory => out.put(&[DIRECTORY, 0]),
            Request::Know(server) => {
                out.put(&[KNOW, 0]);
                out.put(&parts::server_fields(server));
            }
            Request::Status => out.put(&[STATUS, 0]),
            Request::View => out.put(&[VIEW, 0]),
            Request::Latest {
                domain,
                partition,
                known,
            } => {
                out.put(&[LATEST, known.as_ref().map_or(0, |_| FLAG_KNOWN)]);
                out.u128(domain.0);
                out.u32(*partition);
                if let Some(known) = known {
                    parts::put_descriptor(out, known);
                }
            }
        }
    }
}

fn kind_of(body: &Body) -> u8 {
    match body {
        Body::Access(_) => ACCESS,
        Body::List(_) => LIST,
        Body::Cell { step, .. } => match step {
            CellRequest::Query => CELL_QUERY,
            CellRequest::Prepare { .. } => CELL_PREPARE,
            CellRequest::Accept { .. } => CELL_ACCEPT,
            CellRequest::Join(_) => CELL_JOIN,
        },
        Body::Cells { .. } => CELLS,
        Body::ReadConfig => READ_CONFIG,
        Body::Register { step, .. } => match step {
            Enrolment::Ask => ASK_TO_REGISTER,
            Enrolment::Register => REGISTER,
            Enrolment::HandOn => HAND_ON,
        },
        Body::Servers => SERVERS,
    }
}

fn put_body<S: Sink>(out: &mut S, body: &Body) {
    match body {
        Body::Access(accesses) => {
            assert!(
                accesses.len() <= limits::ACCESSES,
                "batches are made of few objects"
            );
            out.short(accesses.len());
            for (name, access) in accesses {
                put_access(out, name, access);
            }
        }
        Body::List(request) => list::put_list(out, request),
        Body::Cell { cell, step } => put_cell(out, cell, step),
        Body::Register { record, .. } => out.put(&parts::server_fields(record)),
        Body::ReadConfig | Body::Servers => {}
        Body::Cells { prefix, after } => {
            parts::check_cell(prefix);
            parts::check_cell(after);
            out.short(prefix.len());
            out.short(after.len());
            out.put(prefix);
            out.put(after);
        }
    }
}

fn put_access<S: Sink>(out: &mut S, name: &Name, access: &Access) {
    let (kind, flags, tag) = match access {
        Access::Query {
            want,
            have,
            announced,
        } => {
            let announced = announced.map_or(0, |_| QUERY_ANNOUNCED);
            (QUERY, want_byte(*want) | announced, *have)
        }
        Access::Fetch { tag, payload } => (FETCH, if *payload { FETCH_PAYLOAD } else { 0 }, *tag),
        Access::Put {
            tag, write_back, ..
        } => (PUT, if *write_back { PUT_WRITE_BACK } else { 0 }, *tag),
        Access::Keep { tag, .. } => (KEEP, 0, *tag),
        Access::Adopt(tag) => (ADOPT, 0, *tag),
        Access::Fence { upto, .. } => (FENCE, 0, *upto),
        Access::Drop(tag) => (DROP, 0, *tag),
        Access::Finalize {
            tag,
            want,
            complete,
        } => {
            let round = if *complete { FINALIZE_COMPLETE } else { 0 };
            (FINALIZE, want_byte(*want) | round, *tag)
        }
        Access::Rank { ballot, want, have } => {
            let promised = ballot.map_or(0, |_| RANK_BALLOT);
            (RANK, want_byte(*want) | promised, *have)
        }
        Access::Accept(it) => (ACCEPT_RANKED, ranked::proposal_flags(it), it.tag),
    };
    out.u8(kind);
    out.u8(flags);
    out.short(name.as_bytes().len());
    parts::put_tag(out, tag);
    out.put(name.as_bytes());
    match access {
        Access::Put { element, .. } | Access::Keep { element, .. } => {
            parts::put_element(out, element, Part::All);
        }
        Access::Query {
            announced: Some(announced),
            ..
        } => {
            out.u64(announced.length);
            out.u64(announced.element_bytes);
        }
        Access::Fence { spared, .. } => parts::put_tag(out, *spared),
        Access::Rank {
            ballot: Some(ballot),
            ..
        } => parts::put_ballot(out, *ballot),
        Access::Accept(proposal) => ranked::put_proposal(out, proposal),
        Access::Query { .. }
        | Access::Rank { .. }
        | Access::Fetch { .. }
        | Access::Adopt(_)
        | Access::Finalize { .. }
        | Access::Drop(_) => {}
    }
}

fn want_byte(want: Want) -> u8 {
    match want {
        Want::Tags => WANT_TAGS,
        Want::Metadata => WANT_METADATA,
        Want::Fragment => WANT_FRAGMENT,
        Want::Element => WANT_ELEMENT,
    }
}

fn put_cell<S: Sink>(out: &mut S, cell: &Bytes, step: &CellRequest) {
    parts::check_cell(cell);
    out.short(cell.len());
    match step {
        CellRequest::Query => out.put(cell),
        CellRequest::Prepare { ballot } => {
            parts::put_ballot(out, *ballot);
            out.put(cell);
        }
        CellRequest::Accept { value, .. } | CellRequest::Join(value) => {
            if let CellRequest::Accept { ballot, .. } = step {
                parts::put_ballot(out, *ballot);
            }
            out.long(value.len());
            out.put(cell);
            out.put(value);
        }
    }
}

/// The payloads of the elements, in their order.
pub(super) fn segments(request: &Request) -> Vec<(Bytes, u32)> {
    let Request::Configured {
        body: Body::Access(accesses),
        ..
    } = request
    else {
        return Vec::new();
    };
    let elements = accesses.iter().filter_map(|(_, access)| match access {
        Access::Put { element, .. } | Access::Keep { element, .. } => parts::segment(element),
        Access::Accept(proposal) => proposal.element.as_ref().and_then(parts::segment),
        Access::Query { .. }
        | Access::Rank { .. }
        | Access::Fetch { .. }
        | Access::Adopt(_)
        | Access::Fence { .. }
        | Access::Finalize { .. }
        | Access::Drop(_) => None,
    });
    elements.collect()
}

// ---- reading ----------------------------------------------------------------------------------------------------------

pub(super) fn request(reader: &mut Reader<'_>) -> Result<Request, DecodeError> {
    let kind = reader.u8()?;
    let known_flags = match kind {
        ACCESS | LIST | READ_CONFIG | REGISTER | ASK_TO_REGISTER | HAND_ON | SERVERS
        | CELL_QUERY | CELL_PREPARE | CELL_ACCEPT | CELL_JOIN | CELLS => {
            FLAG_DESCRIPTOR | FLAG_SUCCESSORS
        }
        LATEST => FLAG_KNOWN,
        DIRECTORY | KNOW | STATUS | VIEW => 0,
        kind => return Err(unknown("kind of request", kind)),
    };
    let flags = reader.flags("request", known_flags)?;
    Ok(match kind {
        DIRECTORY => Request::Directory,
        KNOW => Request::Know(parts::server(&reader.rest())?),
        STATUS => Request::Status,
        VIEW => Request::View,
        LATEST => latest(reader, flags)?,
        configured => {
            let (configuration, descriptor) = configuration(reader, flags)?;
            let successors = match flags & FLAG_SUCCESSORS {
                0 => Successors::default(),
                _ => parts::successors(reader)?,
            };
            Request::Configured {
                configuration,
                descriptor,
                successors,
                body: body(reader, configured)?,
            }
        }
    })
}

fn unknown(what: &'static str, value: u8) -> DecodeError {
    let value = value.into();
    DecodeError::UnknownValue { what, value }
}

fn latest(reader: &mut Reader<'_>, flags: u8) -> Result<Request, DecodeError> {
    let (domain, partition) = (DomainId(reader.u128()?), reader.u32()?);
    let known = match flags & FLAG_KNOWN {
        0 => None,
        _ => Some(parts::descriptor(reader)?),
    };
    Ok(Request::Latest {
        domain,
        partition,
        known,
    })
}

fn configuration(
    reader: &mut Reader<'_>,
    flags: u8,
) -> Result<(ConfigurationId, Option<Arc<Configuration>>), DecodeError> {
    let id = parts::configuration_id(reader)?;
    let descriptor = match flags & FLAG_DESCRIPTOR {
        0 => None,
        _ => Some(parts::descriptor(reader)?),
    };
    Ok((id, descriptor))
}

fn body(reader: &mut Reader<'_>, kind: u8) -> Result<Body, DecodeError> {
    Ok(match kind {
        ACCESS => {
            let count = reader.short()?;
            let (limit, least_bytes) = (limits::ACCESSES, ACCESS_LEAST_BYTES);
            Body::Access(reader.list("accesses", count, limit, least_bytes, access)?)
        }
        LIST => Body::List(list::list(reader)?),
        READ_CONFIG => Body::ReadConfig,
        REGISTER => register(reader, Enrolment::Register)?,
        ASK_TO_REGISTER => register(reader, Enrolment::Ask)?,
        HAND_ON => register(reader, Enrolment::HandOn)?,
        SERVERS => Body::Servers,
        CELLS => {
            let (prefix_bytes, after_bytes) = (reader.short()?, reader.short()?);
            Body::Cells {
                prefix: parts::cell(reader, prefix_bytes)?,
                after: parts::cell(reader, after_bytes)?,
            }
        }
        kind => cell(reader, kind)?,
    })
}

fn register(reader: &mut Reader<'_>, step: Enrolment) -> Result<Body, DecodeError> {
    let record = Box::new(parts::server(&reader.rest())?);
    Ok(Body::Register { step, record })
}

fn access(reader: &mut Reader<'_>) -> Result<(Name, Access), DecodeError> {
    let kind = reader.u8()?;
    let known_flags = match kind {
        QUERY => WANT_MASK | QUERY_ANNOUNCED,
        FETCH => FETCH_PAYLOAD,
        PUT => PUT_WRITE_BACK,
        FINALIZE => WANT_MASK | FINALIZE_COMPLETE,
        ADOPT | KEEP | FENCE | DROP => 0,
        RANK => WANT_MASK | RANK_BALLOT,
        ACCEPT_RANKED => ranked::PROPOSAL_FLAGS,
        kind => return Err(unknown("kind of access", kind)),
    };
    let flags = reader.flags("access", known_flags)?;
    let name_bytes = reader.short()?;
    let tag = parts::tag(reader)?;
    let name = parts::name(reader, name_bytes)?;
    let access = match kind {
        QUERY => query(reader, flags, tag)?,
        FETCH => Access::Fetch {
            tag,
            payload: flags & FETCH_PAYLOAD != 0,
        },
        PUT => Access::Put {
            tag,
            element: parts::element(reader, Part::All)?,
            write_back: flags & PUT_WRITE_BACK != 0,
        },
        KEEP => Access::Keep {
            tag,
            element: parts::element(reader, Part::All)?,
        },
        ADOPT => Access::Adopt(tag),
        FENCE => Access::Fence {
            upto: tag,
            spared: parts::tag(reader)?,
        },
        DROP => Access::Drop(tag),
        FINALIZE => Access::Finalize {
            tag,
            want: want(flags),
            complete: flags & FINALIZE_COMPLETE != 0,
        },
        RANK => Access::Rank {
            ballot: match flags & RANK_BALLOT {
                0 => None,
                _ => Some(parts::ballot(reader)?),
            },
            want: want(flags),
            have: tag,
        },
        ACCEPT_RANKED => Access::Accept(Box::new(ranked::proposal(reader, flags, tag)?)),
        _ => unreachable!("the kind was checked with its flags"),
    };
    Ok((name, access))
}

fn want(flags: u8) -> Want {
    match flags & WANT_MASK {
        WANT_TAGS => Want::Tags,
        WANT_METADATA => Want::Metadata,
        WANT_FRAGMENT => Want::Fragment,
        WANT_ELEMENT => Want::Element,
        _ => unreachable!("two bits have four values"),
    }
}

fn query(reader: &mut Reader<'_>, flags: u8, have: Tag) -> Result<Access, DecodeError> {
    let announced = match flags & QUERY_ANNOUNCED {
        0 => None,
        _ => Some(Announcement {
            length: reader.u64()?,
            element_bytes: reader.u64()?,
        }),
    };
    Ok(Access::Query {
        want: want(flags),
        have,
        announced,
    })
}

fn cell(reader: &mut Reader<'_>, kind: u8) -> Result<Body, DecodeError> {
    let cell_bytes = reader.short()?;
    let (cell, step) = match kind {
        CELL_QUERY => (parts::cell(reader, cell_bytes)?, CellRequest::Query),
        CELL_PREPARE => {
            let ballot = parts::ballot(reader)?;
            let step = CellRequest::Prepare { ballot };
            (parts::cell(reader, cell_bytes)?, step)
        }
        CELL_ACCEPT => {
            let ballot = parts::ballot(reader)?;
            let value_bytes = reader.long()?;
            let cell = parts::cell(reader, cell_bytes)?;
            let value = parts::cell_value(reader, value_bytes)?;
            (cell, CellRequest::Accept { ballot, value })
        }
        CELL_JOIN => {
            let value_bytes = reader.long()?;
            let cell = parts::cell(reader, cell_bytes)?;
            let value = parts::cell_value(reader, value_bytes)?;
            (cell, CellRequest::Join(value))
        }
        _ => unreachable!("the kind was checked with its flags"),
    };
    Ok(Body::Cell { cell, step })
}
