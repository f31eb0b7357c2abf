//! Descriptors as [`tlv`] fields.

use super::{Collect, Dap, Decider, Descriptor, Membership, Options, ServerId, Thrift};
use crate::limits;
use crate::object::DomainId;
use crate::tlv::{self, MUST_UNDERSTAND, TlvError};
use bytes::{Bytes, BytesMut};
use std::collections::BTreeMap;

const DOMAIN: u16 = MUST_UNDERSTAND | 1;
const PARTITION: u16 = MUST_UNDERSTAND | 2;
const INDEX: u16 = MUST_UNDERSTAND | 3;
const MEMBERS: u16 = MUST_UNDERSTAND | 4;
const DELTA: u16 = MUST_UNDERSTAND | 7;
const COPY_BYTES: u16 = 8;
/// The [`Decider`]; left out where the members decide.
pub(super) const DECIDER: u16 = MUST_UNDERSTAND | 11;
pub(super) const OPTIONS: u16 = MUST_UNDERSTAND | 9;
/// The version of each server of the membership, by id; left out in a sequence.
const LATTICE: u16 = MUST_UNDERSTAND | 13;
/// A membership whose versions say slots: a client that does not know that would take slots for comings.
const SLOTS: u16 = MUST_UNDERSTAND | 23;
/// Left out where it is 0. A client that does not know it would number first versions too low.
const ERA: u16 = MUST_UNDERSTAND | 19;
/// Without content; left out where servers may change the members of the root domain.
const FIXED: u16 = 24;
/// A server and its version.
const LATTICE_ENTRY_BYTES: usize = 16 + 4;

/// Bits of the field [`OPTIONS`], which is left out where none is set.
const NO_PIGGYBACK: u32 = 1;
const NO_COLLECT: u32 = 2;
const PAPER_COLLECT: u32 = 4;
const THRIFTY_QUERIES: u32 = 32;
const THRIFTY_CALLS: u32 = 64;
const SINGLE_CONTACT: u32 = 128;

pub(super) fn encode(descriptor: &Descriptor) -> Bytes {
    let mut out = BytesMut::new();
    let mut field = |kind, value: &[u8]| tlv::put_field(&mut out, kind, value);
    field(DOMAIN, &descriptor.domain.0.to_le_bytes());
    field(PARTITION, &descriptor.partition.to_le_bytes());
    field(INDEX, &descriptor.index.to_le_bytes());
    let members: Vec<u8> = descriptor
        .members
        .iter()
        .flat_map(|m| m.0.to_le_bytes())
        .collect();
    field(MEMBERS, &members);
    let (dap, k) = descriptor.dap.field();
    field(dap, k.as_slice());
    field(DELTA, &descriptor.delta.to_le_bytes());
    field(COPY_BYTES, &descriptor.copy_bytes.to_le_bytes());
    match option_bits(descriptor.options) {
        0 => {}
        bits => field(OPTIONS, &bits.to_le_bytes()),
    }
    if descriptor.decided_by != Decider::Members {
        field(DECIDER, descriptor.decided_by.to_string().as_bytes());
    }
    if let Some(membership) = &descriptor.lattice {
        field(field_of(membership), &entries(membership));
    }
    if descriptor.era != 0 {
        field(ERA, &descriptor.era.to_le_bytes());
    }
    if descriptor.fixed {
        field(FIXED, &[]);
    }
    out.freeze()
}

fn field_of(membership: &Membership) -> u16 {
    match membership.has_slots() {
        true => SLOTS,
        false => LATTICE,
    }
}

/// The membership that the field says. Whether the domain is removed is in another one.
fn membership(kind: u16, value: &[u8]) -> Result<Membership, TlvError> {
    let membership = Membership::of_versions(versions(kind, value)?, false);
    Ok(match kind {
        SLOTS => membership.with_slots(),
        _ => membership,
    })
}

/// The servers of a membership with their versions, by id.
fn entries(membership: &Membership) -> Vec<u8> {
    let entry = |(server, version): (&ServerId, &u32)| {
        [server.0.to_le_bytes().as_slice(), &version.to_le_bytes()].concat()
    };
    membership.versions().iter().flat_map(entry).collect()
}

impl Membership {
    /// Encodes the membership for records and messages in which it stands alone: the field of a descriptor, and the
    /// kind of a removal.
    pub fn encode(&self) -> Bytes {
        let mut out = BytesMut::new();
        tlv::put_field(&mut out, field_of(self), &entries(self));
        if self.is_removal() {
            tlv::put_field(&mut out, Dap::Removed.field().0, &[]);
        }
        out.freeze()
    }

    /// Decodes the output of [`Membership::encode`].
    ///
    /// # Errors
    /// [`TlvError`].
    pub fn decode(encoded: &[u8]) -> Result<Membership, TlvError> {
        let (mut known, mut removed) = (None, false);
        for field in tlv::fields(encoded) {
            match field? {
                (kind @ (LATTICE | SLOTS), value) => known = Some(membership(kind, value)?),
                (kind, []) if kind == Dap::Removed.field().0 => removed = true,
                (kind, _) => tlv::unknown(kind)?,
            }
        }
        let known = known.ok_or(TlvError::Missing { kind: LATTICE })?;
        Ok(if removed { known.removal() } else { known })
    }
}

fn option_bits(options: Options) -> u32 {
    let piggyback = if options.piggyback { 0 } else { NO_PIGGYBACK };
    let collect = match options.collect {
        Collect::On => 0,
        Collect::Off => NO_COLLECT,
        Collect::Paper => PAPER_COLLECT,
    };
    let thrift = match options.thrift {
        Thrift::Off => 0,
        Thrift::Queries => THRIFTY_QUERIES,
        Thrift::Calls => THRIFTY_CALLS,
    };
    let contact = if options.single_contact {
        SINGLE_CONTACT
    } else {
        0
    };
    piggyback | collect | thrift | contact
}

fn options(bits: u32) -> Option<Options> {
    let thrift = match bits & (THRIFTY_QUERIES | THRIFTY_CALLS) {
        0 => Thrift::Off,
        THRIFTY_QUERIES => Thrift::Queries,
        THRIFTY_CALLS => Thrift::Calls,
        _ => return None,
    };
    let others = NO_PIGGYBACK | THRIFTY_QUERIES | THRIFTY_CALLS | SINGLE_CONTACT;
    let collect = match bits & !others {
        0 => Collect::On,
        NO_COLLECT => Collect::Off,
        PAPER_COLLECT => Collect::Paper,
        _ => return None,
    };
    let piggyback = bits & NO_PIGGYBACK == 0;
    Some(Options {
        piggyback,
        collect,
        thrift,
        single_contact: bits & SINGLE_CONTACT != 0,
    })
}

/// The versions, if the entries are by id and distinct: of one membership there is one encoding.
fn versions(kind: u16, value: &[u8]) -> Result<BTreeMap<ServerId, u32>, TlvError> {
    let (entries, rest) = value.as_chunks::<LATTICE_ENTRY_BYTES>();
    let entry = |entry: &[u8; LATTICE_ENTRY_BYTES]| {
        let (server, version) = entry.split_first_chunk()?;
        let version = version.try_into().ok()?;
        Some((
            ServerId(u128::from_le_bytes(*server)),
            u32::from_le_bytes(version),
        ))
    };
    let entries: Option<Vec<_>> = entries.iter().map(entry).collect();
    let is_canonical =
        |entries: &Vec<(ServerId, u32)>| entries.is_sorted_by(|(a, _), (b, _)| a < b);
    let entries = entries.filter(|entries| rest.is_empty() && is_canonical(entries));
    let invalid = TlvError::Invalid { kind };
    Ok(entries.ok_or(invalid)?.into_iter().collect())
}

pub(super) fn decode(encoded: &Bytes) -> Result<Descriptor, TlvError> {
    let (mut domain, mut partition, mut index) = (None, None, None);
    let (mut members, mut dap, mut delta) = (None, None, None);
    let mut copy_bytes = limits::DEFAULT_COPY_BYTES;
    let (mut chosen, mut decided_by) = (Options::default(), Decider::Members);
    let (mut lattice, mut era, mut fixed) = (None, 0, false);
    for field in tlv::fields(encoded) {
        let (kind, value) = field?;
        match kind {
            DOMAIN => domain = Some(DomainId(u128::from_le_bytes(tlv::number(kind, value)?))),
            PARTITION => partition = Some(u32::from_le_bytes(tlv::number(kind, value)?)),
            INDEX => index = Some(u32::from_le_bytes(tlv::number(kind, value)?)),
            MEMBERS => {
                let (ids, rest) = value.as_chunks::<16>();
                if !rest.is_empty() {
                    return Err(TlvError::Invalid { kind });
                }
                members = Some(
                    ids.iter()
                        .map(|id| ServerId(u128::from_le_bytes(*id)))
                        .collect(),
                );
            }
            DELTA => delta = Some(u16::from_le_bytes(tlv::number(kind, value)?)),
            COPY_BYTES => copy_bytes = u32::from_le_bytes(tlv::number(kind, value)?),
            OPTIONS => {
                let bits = u32::from_le_bytes(tlv::number(kind, value)?);
                chosen = options(bits).ok_or(TlvError::Invalid { kind })?;
            }
            DECIDER => {
                let text = std::str::from_utf8(value).ok();
                let decider = text.and_then(|text| text.parse().ok());
                decided_by = decider.ok_or(TlvError::Invalid { kind })?;
            }
            LATTICE | SLOTS => lattice = Some(membership(kind, value)?),
            ERA => era = u32::from_le_bytes(tlv::number(kind, value)?),
            FIXED => fixed = true,
            _ => match Dap::of_field(kind, value)? {
                Some(said) => dap = Some(said),
                None => tlv::unknown(kind)?,
            },
        }
    }
    let missing = |kind| TlvError::Missing { kind };
    let dap = dap.ok_or(missing(Dap::Abd.field().0))?;
    Ok(Descriptor {
        domain: domain.ok_or(missing(DOMAIN))?,
        partition: partition.ok_or(missing(PARTITION))?,
        index: index.ok_or(missing(INDEX))?,
        members: members.ok_or(missing(MEMBERS))?,
        dap,
        delta: delta.ok_or(missing(DELTA))?,
        copy_bytes,
        options: chosen,
        decided_by,
        lattice: lattice.map(|lattice| match dap.is_removal() {
            true => lattice.removal(),
            false => lattice,
        }),
        era,
        fixed,
    })
}
