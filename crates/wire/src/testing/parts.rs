//! Strategies that draw the parts of messages and records.

use super::examples::of_lattice;
use crate::checksum::crc32c;
use areo_core::config::{
    Collect, Configuration, ConfigurationId, Dap, Decider, Descriptor, Membership, Options,
    ServerId, Thrift,
};
use areo_core::element::{Element, Form};
use areo_core::limits;
use areo_core::message::{Ballot, Enrolment, Label, Labels, Levels, Program, ServerRecord};
use areo_core::object::{DomainId, Kind, Name};
use areo_core::pointer::{Pointer, Successors};
use areo_core::tag::{ClientId, Tag, Writer};
use bytes::Bytes;
use proptest::collection::{btree_set, vec};
use proptest::prelude::*;
use proptest::sample::select;
use std::sync::Arc;

/// Generates any valid configuration.
pub(super) fn configuration() -> impl Strategy<Value = Arc<Configuration>> {
    let members = btree_set(any::<u128>(), 1..9);
    let numbers = any::<(u128, u32, u32, u16, u32)>();
    let dap = (any::<proptest::sample::Index>(), 0..7);
    let shape = (dap, options(), decider());
    (members, shape, numbers).prop_map(|(members, ((dap, kind), options, decided_by), numbers)| {
        let (domain, partition, index, delta, copy_bytes) = numbers;
        let descriptor = Descriptor {
            domain: DomainId(domain),
            partition,
            index: index % limits::INDEX,
            dap: match (dap.index(members.len() + 1) as u8, kind) {
                (0, 0) => Dap::AbdPublished,
                (0, _) => Dap::Abd,
                (k, 0) => Dap::EcPublished { k },
                (k, 1) => Dap::EcOptimized { k },
                (k, 2) => Dap::Cas { k },
                (k, 3) => Dap::CasGc { k },
                (k, 4) => Dap::CasSs { k },
                (k, _) => Dap::Ec { k },
            },
            members: members.into_iter().map(ServerId).collect(),
            delta,
            copy_bytes,
            options,
            decided_by,
            lattice: None,
            era: u32::from(delta) % limits::ERAS,
            fixed: copy_bytes.is_multiple_of(2),
        };
        Configuration::new(descriptor).expect("distinct members, k of n")
    })
}

/// Successors: of a sequence one; of a lattice up to four, of which the first may be final.
pub(super) fn successors() -> impl Strategy<Value = Successors> {
    let one = pointer().prop_map(|pointer| Successors::from(&pointer));
    let several = (1..=4_u128, any::<bool>()).prop_map(|(count, is_final)| {
        let mut membership = Membership::first([ServerId(1)]);
        let mut successors = Successors::default();
        for server in 2..count + 2 {
            membership = membership.with(ServerId(server));
            let c = of_lattice(&membership);
            let pointer = match is_final && server == 2 {
                true => Pointer::finalized(&c),
                false => Pointer::pending(&c),
            };
            let rises = successors.insert(pointer);
            assert_eq!(rises, Ok(true), "each leads further than the one before");
        }
        successors
    });
    prop_oneof![3 => one, 1 => several]
}

pub(super) fn pointer() -> impl Strategy<Value = Pointer> {
    (configuration(), any::<bool>()).prop_map(|(configuration, is_final)| match is_final {
        true => Pointer::finalized(&configuration),
        false => Pointer::pending(&configuration),
    })
}

fn options() -> impl Strategy<Value = Options> {
    let collect = select(vec![Collect::On, Collect::Off, Collect::Paper]);
    let thrift = select(vec![Thrift::Off, Thrift::Queries, Thrift::Calls]);
    let made = |(piggyback, collect, thrift, single_contact)| Options {
        piggyback,
        collect,
        thrift,
        single_contact,
    };
    (any::<bool>(), collect, thrift, any::<bool>()).prop_map(made)
}

fn decider() -> impl Strategy<Value = Decider> {
    let endpoint = "[a-z]{1,9}:[1-9][0-9]{0,3}";
    let etcd = vec(endpoint, 1..4);
    let etcd = etcd.prop_map(|endpoints| Decider::Etcd { endpoints });
    prop_oneof![3 => Just(Decider::Members), 1 => etcd]
}

pub(super) fn configuration_id() -> impl Strategy<Value = ConfigurationId> {
    any::<(u128, u32, u32, u64)>().prop_map(|(domain, partition, index, digest)| ConfigurationId {
        domain: DomainId(domain),
        partition,
        index,
        digest,
    })
}

/// Any element with its payload: of a full copy the value, of a manifest nothing, of a fragment anything.
pub(super) fn element() -> impl Strategy<Value = Element> {
    let metadata = bytes(0..100);
    let parts = (form(), any::<bool>(), any::<u64>(), metadata, bytes(0..200));
    parts.prop_map(|(form, deleted, length, metadata, payload)| {
        let (length, payload) = match form {
            Form::Copy => (payload.len() as u64, payload),
            Form::Manifest => (length, Bytes::new()),
            Form::Trimmed => unreachable!("nothing of it is sent"),
            Form::Fragment { .. } => (length, payload),
        };
        Element {
            form,
            deleted,
            length,
            metadata,
            checksum: (!payload.is_empty()).then(|| crc32c(&payload)),
            payload,
        }
    })
}

fn form() -> impl Strategy<Value = Form> {
    let fragment = (1..=u8::MAX)
        .prop_flat_map(|n| (Just(n), 1..=n, 0..n))
        .prop_map(|(n, k, index)| Form::Fragment { n, k, index });
    prop_oneof![Just(Form::Copy), Just(Form::Manifest), fragment]
}

/// The form of a listed, or recorded, element.
pub(super) fn listed_form() -> impl Strategy<Value = Form> {
    prop_oneof![4 => form(), 1 => Just(Form::Trimmed)]
}

/// Any tag; often one of a few, so that versions meet.
pub(super) fn tag() -> impl Strategy<Value = Tag> {
    let number = prop_oneof![0..4_u64, any::<u64>()];
    (number, writer()).prop_map(|(number, writer)| Tag { number, writer })
}

pub(super) fn ballot() -> impl Strategy<Value = Ballot> {
    (any::<u64>(), writer()).prop_map(|(number, proposer)| Ballot { number, proposer })
}

fn writer() -> impl Strategy<Value = Writer> {
    any::<(u64, u64)>().prop_map(|(client, counter)| Writer {
        client: ClientId(client),
        counter,
    })
}

/// Any name; sometimes the longest.
pub(super) fn name() -> impl Strategy<Value = Name> {
    let longest = Just("k".repeat(limits::KEY_BYTES));
    let key = prop_oneof![9 => text(1..40), 1 => longest];
    (kind(), key).prop_map(|(kind, key)| match kind {
        Kind::Upload => Name::record(&key, "suffix").expect("1 to 1024 bytes"),
        kind => Name::new(kind, &key).expect("1 to 1024 bytes"),
    })
}

pub(super) fn kind() -> impl Strategy<Value = Kind> {
    select(Kind::ALL.to_vec())
}

pub(super) fn enrolment() -> impl Strategy<Value = Enrolment> {
    select(vec![Enrolment::Ask, Enrolment::Register, Enrolment::HandOn])
}

pub(super) fn server() -> impl Strategy<Value = ServerRecord> {
    let texts = (text(0..40), text(0..40), text(0..40));
    let numbers = any::<(u128, u64, u64, bool, Option<u64>, u64, Option<u64>)>();
    let program = (text(0..20), any::<u32>());
    let program = program.prop_map(|(version, level)| Program { version, level });
    let levels = any::<(u32, u32)>().prop_map(|(required, finalized)| Levels {
        required,
        finalized,
    });
    let row = (text(1..9), 1..u64::MAX, text(0..20));
    let labels = vec(row, 0..4).prop_map(|rows| {
        let mut labels = Labels::default();
        for (key, changes, text) in rows {
            labels.join(&key, Label { changes, text });
        }
        labels
    });
    (numbers, texts, program, levels, labels).prop_map(
        |(
            (id, incarnation, start, resumed, generation, leaving, position),
            texts,
            program,
            levels,
            labels,
        )| {
            let (name, address, admin) = texts;
            ServerRecord {
                id: ServerId(id),
                incarnation,
                start,
                resumed,
                name,
                address,
                admin,
                generation,
                leaving,
                position,
                program,
                levels,
                labels,
            }
        },
    )
}

pub(super) fn cell() -> impl Strategy<Value = Bytes> {
    let longest = Just(Bytes::from(vec![b'c'; limits::CELL_NAME_BYTES]));
    prop_oneof![9 => bytes(0..30), 1 => longest]
}

pub(super) fn cell_value() -> impl Strategy<Value = Bytes> {
    let longest = Just(Bytes::from(vec![b'v'; limits::CELL_BYTES]));
    prop_oneof![19 => bytes(0..60), 1 => longest]
}

pub(super) fn text(characters: std::ops::Range<usize>) -> impl Strategy<Value = String> {
    let character = prop_oneof![4 => proptest::char::range('a', 'z'), 1 => any::<char>()];
    vec(character, characters).prop_map(|characters| characters.into_iter().collect())
}

pub(super) fn bytes(length: std::ops::Range<usize>) -> impl Strategy<Value = Bytes> {
    vec(any::<u8>(), length).prop_map(Bytes::from)
}
