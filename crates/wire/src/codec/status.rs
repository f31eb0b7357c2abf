//! The status of a server, as fields: a later version can say more.

use super::error::DecodeError;
use super::parts::{number, truth};
use areo_core::config::ServerId;
use areo_core::limits;
use areo_core::message::{DomainStanding, LeaderStanding, ServerStatus, Transferred};
use areo_core::object::DomainId;
use areo_core::tlv::{self, TlvError};
use bytes::{Bytes, BytesMut};

const INCARNATION: u16 = 1;
const SERVING: u16 = 2;
const DURABLE: u16 = 3;
const OBJECTS: u16 = 4;
const VERSIONS: u16 = 5;
const ELEMENT_BYTES: u16 = 6;
const STORED_BYTES: u16 = 7;
const DAMAGED: u16 = 8;
const CONFIGURATIONS: u16 = 9;
const PENDING: u16 = 10;
const PENDING_MS: u16 = 11;
const TRIMMED: u16 = 12;
const REPAIRED: u16 = 13;
const LACKING: u16 = 14;
const PROVEN_MS: u16 = 15;
const UNSCRUBBED_MS: u16 = 16;
const DOMAIN: u16 = 17;
const WAITS: u16 = 18;
const LEADS: u16 = 19;
const TOMBSTONES: u16 = 20;
const FULL: u16 = 21;
const INCOMPLETE: u16 = 22;

/// Bytes of the field of a domain: its id, three numbers.
const DOMAIN_BYTES: usize = 16 + 3 * 8;
/// Bytes of the field of a member that is waited for: a domain and a server.
const WAITS_BYTES: usize = 16 + 16;
/// Bytes of the field of a domain that is led: its id, two numbers.
const LEADS_BYTES: usize = 16 + 2 * 8;
/// In place of the time of proof: there is none.
const UNPROVEN: u64 = u64::MAX;

/// A status, as fields.
pub(super) fn fields(status: &ServerStatus) -> BytesMut {
    // Named one by one, so that a new field cannot be forgotten here.
    let ServerStatus {
        incarnation,
        serving,
        incomplete,
        durable,
        objects,
        versions,
        element_bytes,
        stored_bytes,
        damaged,
        configurations,
        pending,
        pending_ms,
        trimmed,
        repaired,
        tombstones,
        full,
        lacking,
        proven_ms,
        unscrubbed_ms,
        ref domains,
        ref waits,
        ref leads,
    } = *status;
    let domain_bytes = domains.len() * (6 + DOMAIN_BYTES);
    let mut out = BytesMut::with_capacity(2 * (6 + 1) + 14 * (6 + 8) + domain_bytes);
    let mut count = |kind, value: u64| tlv::put_field(&mut out, kind, &value.to_le_bytes());
    count(INCARNATION, incarnation);
    count(OBJECTS, objects);
    count(VERSIONS, versions);
    count(ELEMENT_BYTES, element_bytes);
    count(STORED_BYTES, stored_bytes);
    count(DAMAGED, damaged);
    count(CONFIGURATIONS, configurations);
    count(PENDING, pending);
    count(PENDING_MS, pending_ms);
    count(TRIMMED, trimmed);
    count(REPAIRED, repaired);
    // Left out where there is nothing to say: so the bytes are those of the versions before.
    if lacking > 0 {
        count(LACKING, lacking);
    }
    if tombstones > 0 {
        count(TOMBSTONES, tombstones);
    }
    if let Some(ms) = proven_ms {
        count(PROVEN_MS, ms);
    }
    if let Some(ms) = unscrubbed_ms {
        count(UNSCRUBBED_MS, ms);
    }
    put_lists(&mut out, domains, waits, leads);
    if full {
        tlv::put_field(&mut out, FULL, &[1]);
    }
    if incomplete {
        tlv::put_field(&mut out, INCOMPLETE, &[1]);
    }
    tlv::put_field(&mut out, SERVING, &[serving.into()]);
    tlv::put_field(&mut out, DURABLE, &[durable.into()]);
    out
}

/// The fields that may come several times.
fn put_lists(
    out: &mut BytesMut,
    domains: &[DomainStanding],
    waits: &[(DomainId, ServerId)],
    leads: &[LeaderStanding],
) {
    assert!(domains.len() <= limits::STANDINGS, "a status is bounded");
    for standing in domains {
        tlv::put_field(out, DOMAIN, &domain(standing));
    }
    assert!(waits.len() <= limits::STANDINGS, "a status is bounded");
    for (domain, server) in waits {
        let ids = [domain.0, server.0].map(u128::to_le_bytes);
        tlv::put_field(out, WAITS, ids.as_flattened());
    }
    assert!(leads.len() <= limits::LEADER_WINDOW, "a status is bounded");
    for LeaderStanding {
        domain,
        transferred: Transferred { objects, bytes },
    } in leads
    {
        let id = domain.0.to_le_bytes();
        let numbers = [*objects, *bytes].map(u64::to_le_bytes);
        tlv::put_field(out, LEADS, &[&id, numbers.as_flattened()].concat());
    }
}

/// The reverse of [`fields`]. A field that is missing is 0, and the time of proof `None`; one of a later version is skipped unless it must be
/// understood.
pub(super) fn status(bytes: &Bytes) -> Result<ServerStatus, DecodeError> {
    let mut status = ServerStatus::default();
    for field in tlv::fields(bytes) {
        let (kind, value) = field.map_err(DecodeError::Fields)?;
        let count = || number(kind, value).map(u64::from_le_bytes);
        match kind {
            INCARNATION => status.incarnation = count()?,
            SERVING => status.serving = truth(kind, value)?,
            DURABLE => status.durable = truth(kind, value)?,
            OBJECTS => status.objects = count()?,
            VERSIONS => status.versions = count()?,
            ELEMENT_BYTES => status.element_bytes = count()?,
            STORED_BYTES => status.stored_bytes = count()?,
            DAMAGED => status.damaged = count()?,
            CONFIGURATIONS => status.configurations = count()?,
            PENDING => status.pending = count()?,
            PENDING_MS => status.pending_ms = count()?,
            TRIMMED => status.trimmed = count()?,
            REPAIRED => status.repaired = count()?,
            LACKING => status.lacking = count()?,
            TOMBSTONES => status.tombstones = count()?,
            FULL => status.full = truth(kind, value)?,
            INCOMPLETE => status.incomplete = truth(kind, value)?,
            PROVEN_MS => status.proven_ms = Some(count()?),
            UNSCRUBBED_MS => status.unscrubbed_ms = Some(count()?),
            DOMAIN if status.domains.len() == limits::STANDINGS => {
                return Err(DecodeError::Fields(TlvError::Invalid { kind }));
            }
            WAITS if status.waits.len() == limits::STANDINGS => {
                return Err(DecodeError::Fields(TlvError::Invalid { kind }));
            }
            LEADS if status.leads.len() == limits::LEADER_WINDOW => {
                return Err(DecodeError::Fields(TlvError::Invalid { kind }));
            }
            LEADS => status.leads.push(leads(number(kind, value)?)),
            WAITS => status.waits.push(waits_for(number(kind, value)?)),
            DOMAIN => status.domains.push(standing(number(kind, value)?)),
            _ => tlv::unknown(kind).map_err(DecodeError::Fields)?,
        }
    }
    Ok(status)
}

fn domain(standing: &DomainStanding) -> Vec<u8> {
    let DomainStanding {
        domain,
        objects,
        lacking,
        proven_ms,
    } = *standing;
    let proven_ms = proven_ms.map_or(UNPROVEN, |ms| ms.min(UNPROVEN - 1));
    let numbers = [objects, lacking, proven_ms].map(u64::to_le_bytes);
    let id = domain.0.to_le_bytes();
    id.into_iter()
        .chain(numbers.into_iter().flatten())
        .collect()
}

fn standing(bytes: [u8; DOMAIN_BYTES]) -> DomainStanding {
    let (id, numbers) = bytes.split_first_chunk::<16>().expect("it is longer");
    let (numbers, rest) = numbers.as_chunks::<8>();
    assert!(rest.is_empty() && numbers.len() == 3, "its length is known");
    let number = |at: usize| u64::from_le_bytes(numbers[at]);
    DomainStanding {
        domain: DomainId(u128::from_le_bytes(*id)),
        objects: number(0),
        lacking: number(1),
        proven_ms: Some(number(2)).filter(|ms| *ms != UNPROVEN),
    }
}

fn waits_for(bytes: [u8; WAITS_BYTES]) -> (DomainId, ServerId) {
    let (ids, rest) = bytes.as_chunks::<16>();
    assert!(rest.is_empty() && ids.len() == 2, "its length is known");
    let [domain, server] = [0, 1].map(|at| u128::from_le_bytes(ids[at]));
    (DomainId(domain), ServerId(server))
}

fn leads(bytes: [u8; LEADS_BYTES]) -> LeaderStanding {
    let (id, numbers) = bytes.split_first_chunk::<16>().expect("it is longer");
    let (numbers, rest) = numbers.as_chunks::<8>();
    assert!(rest.is_empty() && numbers.len() == 2, "its length is known");
    let [objects, bytes] = [0, 1].map(|at| u64::from_le_bytes(numbers[at]));
    LeaderStanding {
        domain: DomainId(u128::from_le_bytes(*id)),
        transferred: Transferred { objects, bytes },
    }
}
