//! Strategies that draw every message and every record header.

use super::examples::of_lattice;
use crate::checksum::crc32c;
use areo_core::config::{
    Collect, Configuration, ConfigurationId, Dap, Decider, Descriptor, Membership, Options,
    ServerId, Thrift,
};
use areo_core::consensus::paxos::Acceptor;
use areo_core::dap::versions::{Fence, Marks};
use areo_core::element::{Element, Form, ReplyElement};
use areo_core::limits;
use areo_core::message::{
    Access, Announcement, Answer, Ballot, Body, CellReply, CellRequest, CellSummary, Directory,
    DomainStanding, Enrolment, Gossip, GossipMarks, HeldVersions, ListEntry, ListPage, ListRequest,
    Note, Refusal, Reply, Request, ServerRecord, ServerStatus, Want,
};
use areo_core::object::{DomainId, Etag, Kind, Name};
use areo_core::pointer::{Pointer, Successors};
use areo_core::server::record::{ElementHeader, Header};
use areo_core::tag::{ClientId, Tag, Writer};
use bytes::Bytes;
use proptest::collection::{btree_map, btree_set, vec};
use proptest::option;
use proptest::prelude::*;
use std::sync::Arc;

/// Any request.
pub fn request() -> impl Strategy<Value = Request> {
    let envelope = (option::of(configuration()), option::of(successors()));
    let configured = (configuration_id(), envelope, body());
    let latest = (any::<(u128, u32)>(), option::of(configuration()));
    prop_oneof![
        8 => configured.prop_map(|(configuration, (descriptor, successors), body)| {
            Request::Configured {
                configuration,
                descriptor,
                successors: successors.unwrap_or_default(),
                body,
            }
        }),
        1 => latest.prop_map(|((domain, partition), known)| Request::Latest {
            domain: DomainId(domain),
            partition,
            known,
        }),
        1 => Just(Request::Directory),
        1 => server().prop_map(Request::Know),
        1 => Just(Request::Status),
    ]
}

fn body() -> impl Strategy<Value = Body> {
    let bounds = (text(0..40), text(0..40), text(0..4));
    let list = (kind(), bounds, any::<u16>());
    prop_oneof![
        4 => vec((name(), access()), 0..6).prop_map(Body::Access),
        1 => list.prop_map(|(kind, (prefix, after, delimiter), limit)| Body::List(ListRequest {
            kind,
            prefix,
            after,
            delimiter,
            limit,
        })),
        3 => (cell(), cell_request()).prop_map(|(cell, step)| Body::Cell { cell, step }),
        1 => (cell(), cell()).prop_map(|(prefix, after)| Body::Cells { prefix, after }),
        1 => Just(Body::ReadConfig),
        1 => (enrolment(), server()).prop_map(|(step, record)| {
            let record = Box::new(record);
            Body::Register { step, record }
        }),
        1 => Just(Body::Servers),
    ]
}

fn any_want() -> impl Strategy<Value = Want> {
    let wants = [Want::Tags, Want::Metadata, Want::Fragment, Want::Element];
    proptest::sample::select(wants.to_vec())
}

fn access() -> impl Strategy<Value = Access> {
    let want = any_want;
    let announced = option::of(
        (any::<u64>(), any::<u64>()).prop_map(|(length, element_bytes)| Announcement {
            length,
            element_bytes,
        }),
    );
    prop_oneof![
        (want(), tag(), any::<bool>()).prop_map(|(want, tag, complete)| Access::Finalize {
            tag,
            want,
            complete,
        }),
        (want(), tag(), announced).prop_map(|(want, have, announced)| Access::Query {
            want,
            have,
            announced,
        }),
        (tag(), any::<bool>()).prop_map(|(tag, payload)| Access::Fetch { tag, payload }),
        (tag(), element(), any::<bool>()).prop_map(|(tag, element, write_back)| Access::Put {
            tag,
            element,
            write_back,
        }),
        tag().prop_map(Access::Adopt),
        (tag(), element()).prop_map(|(tag, element)| Access::Keep { tag, element }),
        (tag(), tag()).prop_map(|(upto, spared)| Access::Fence { upto, spared }),
        tag().prop_map(Access::Drop),
        super::ranked::any_access(want()),
    ]
}

fn cell_request() -> impl Strategy<Value = CellRequest> {
    prop_oneof![
        Just(CellRequest::Query),
        ballot().prop_map(|ballot| CellRequest::Prepare { ballot }),
        (ballot(), cell_value()).prop_map(|(ballot, value)| CellRequest::Accept { ballot, value }),
        cell_value().prop_map(CellRequest::Join),
    ]
}

/// Any reply whose elements are there, in an envelope or without one.
pub fn reply() -> impl Strategy<Value = Reply> {
    let latest = option::of(configuration()).prop_map(Reply::Latest);
    let others = prop_oneof![3 => reply_for_servers(), 1 => latest];
    let next = (successors(), option::of(reply_for_configurations()));
    prop_oneof![
        4 => reply_for_configurations(),
        2 => others,
        2 => next.prop_map(|(successors, reply)| Reply::Next {
            successors,
            reply: reply.map(Box::new),
        }),
    ]
}

fn reply_for_configurations() -> impl Strategy<Value = Reply> {
    let listed = (vec(entry(), 0..8), any::<bool>());
    let cells = (vec(cell_summary(), 0..5), any::<bool>());
    prop_oneof![
        4 => vec(answer(), 0..6).prop_map(Reply::Access),
        1 => listed.prop_map(|(entries, truncated)| Reply::Listed(ListPage { entries, truncated })),
        2 => cell_reply().prop_map(Reply::Cell),
        1 => cells.prop_map(|(cells, truncated)| Reply::Cells { cells, truncated }),
        1 => Just(Reply::Config),
        1 => vec(server(), 0..5).prop_map(Reply::Servers),
        1 => Just(Reply::Registered),
        1 => any::<u64>().prop_map(|registered| Reply::Outdated { registered }),
    ]
}

fn reply_for_servers() -> impl Strategy<Value = Reply> {
    let directory = (configuration(), vec(server(), 0..5));
    prop_oneof![
        1 => directory.prop_map(|(root, servers)| Reply::Directory(Directory { root, servers })),
        1 => status().prop_map(|it| Reply::Status(Box::new(it))),
    ]
}

fn answer() -> impl Strategy<Value = Answer> {
    prop_oneof![
        held().prop_map(Answer::Held),
        answered_element().prop_map(Answer::Fetched),
        Just(Answer::Evicted),
        Just(Answer::Stored),
        Just(Answer::Needed),
        Just(Answer::Dropped),
        super::ranked::any_answer(),
        refusal().prop_map(Answer::Refused),
        (configuration_id(), option::of(successors())).prop_map(|(configuration, successors)| {
            Answer::Later {
                configuration,
                successors: successors.unwrap_or_default(),
            }
        }),
    ]
}

pub(super) fn held() -> impl Strategy<Value = HeldVersions> {
    let stored = btree_map(tag(), listed_form(), 0..8);
    let element = option::of((tag(), answered_element()));
    let fence = prop_oneof![Just(Tag::INITIAL), tag()];
    let gossip = prop_oneof![Just((Tag::INITIAL, Tag::INITIAL)), (tag(), tag())];
    let fields = (stored, (tag(), tag()), fence, gossip, element);
    fields.prop_map(
        |(stored, (floor, stable), fence, (complete, seen), element)| HeldVersions {
            stored: stored.into_iter().collect(),
            floor,
            stable,
            fence,
            complete,
            seen,
            element,
        },
    )
}

/// An element, perhaps without the payload that was not asked for.
pub(super) fn answered_element() -> impl Strategy<Value = ReplyElement> {
    (element(), any::<bool>()).prop_map(|(element, whole)| {
        ReplyElement::Whole(match whole {
            true => element,
            false => Element {
                payload: Bytes::new(),
                checksum: None,
                ..element
            },
        })
    })
}

fn entry() -> impl Strategy<Value = ListEntry> {
    let flags = (any::<bool>(), any::<bool>(), any::<bool>());
    let numbers = (any::<u64>(), any::<u32>(), option::of(1..u64::MAX));
    let etag = option::of("[!#-~]{1,64}");
    let parts = (text(1..40), etag, tag(), numbers, flags);
    parts.prop_map(
        |(key, etag, tag, (length, age_s, written_at_ms), (deleted, damaged, absent))| ListEntry {
            key,
            tag,
            length,
            etag: etag.map(|text| Etag::new(&text).expect("visible ASCII")),
            written_at_ms,
            age_s,
            deleted,
            damaged,
            absent,
        },
    )
}

fn cell_reply() -> impl Strategy<Value = CellReply> {
    prop_oneof![
        option::of((ballot(), cell_value())).prop_map(|accepted| CellReply::Promised { accepted }),
        Just(CellReply::Accepted),
        ballot().prop_map(|promised| CellReply::Rejected { promised }),
        cell_value().prop_map(CellReply::Decided),
        option::of((ballot(), cell_value())).prop_map(|accepted| CellReply::Closed { accepted }),
    ]
}

fn cell_summary() -> impl Strategy<Value = CellSummary> {
    (cell(), cell_value(), any::<bool>()).prop_map(|(cell, value, decided)| CellSummary {
        cell,
        value,
        decided,
    })
}

fn status() -> impl Strategy<Value = ServerStatus> {
    let domains = vec(standing(), 0..4);
    let ages = any::<[Option<u64>; 2]>();
    let waits = vec(any::<(u128, u128)>(), 0..3);
    (any::<([u64; 12], bool, bool)>(), ages, domains, waits).prop_map(
        |((counts, serving, durable), [proven_ms, unscrubbed_ms], domains, waits)| {
            let [
                incarnation,
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
                lacking,
            ] = counts;
            ServerStatus {
                incarnation,
                serving,
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
                lacking,
                proven_ms,
                unscrubbed_ms,
                domains,
                waits: waits
                    .into_iter()
                    .map(|(domain, server)| (DomainId(domain), ServerId(server)))
                    .collect(),
            }
        },
    )
}

fn standing() -> impl Strategy<Value = DomainStanding> {
    let proven_ms = option::of(0..u64::MAX);
    (any::<(u128, u64, u64)>(), proven_ms).prop_map(|((domain, objects, lacking), proven_ms)| {
        DomainStanding {
            domain: DomainId(domain),
            objects,
            lacking,
            proven_ms,
        }
    })
}

fn refusal() -> impl Strategy<Value = Refusal> {
    proptest::sample::select(Refusal::ALL.to_vec())
}

/// Any note.
pub fn note() -> impl Strategy<Value = Note> {
    let confirm = (configuration_id(), name(), tag());
    let decided = (configuration_id(), cell(), cell_value());
    prop_oneof![
        confirm.prop_map(|(configuration, name, tag)| Note::Confirm {
            configuration,
            name,
            tag,
        }),
        decided.prop_map(|(configuration, cell, value)| Note::Decided {
            configuration,
            cell,
            value,
        }),
        (configuration_id(), cell()).prop_map(|(configuration, cell)| Note::Forget {
            configuration,
            cell,
        }),
        server().prop_map(Note::Serving),
        gossip().prop_map(Note::Gossip),
        super::restart::any_note(),
        super::ranked::any_note(),
        (configuration_id(), pointer()).prop_map(|(configuration, pointer)| Note::Next {
            configuration,
            pointer,
        }),
    ]
}

fn gossip() -> impl Strategy<Value = Gossip> {
    let marks = (tag(), tag(), tag()).prop_map(|(largest, finalized, complete)| GossipMarks {
        largest,
        finalized,
        complete,
    });
    let objects = vec((name(), marks), 0..4);
    (configuration_id(), any::<u128>(), objects).prop_map(|(configuration, from, objects)| Gossip {
        configuration,
        from: ServerId(from),
        objects: objects.into(),
    })
}

/// Any header of a record.
pub fn header() -> impl Strategy<Value = Header> {
    let element = (key(), name(), tag(), tag(), element());
    let held = btree_set(tag(), 0..4).prop_map(|held| held.into_iter().collect());
    let fence = (tag(), 1_u64.., tag(), held).prop_map(|(upto, turn, spared, held)| Fence {
        upto,
        turn,
        spared,
        held,
    });
    let complete = prop_oneof![Just(Tag::INITIAL), tag()];
    let marks = (tag(), tag(), complete, option::of(fence));
    let marks = marks.prop_map(|(floor, stable, complete, fence)| Marks {
        floor,
        stable,
        complete,
        fence,
    });
    let marks = (key(), name(), marks);
    prop_oneof![
        1 => configuration().prop_map(Header::Configuration),
        4 => element.prop_map(|(key, name, tag, floor, element)| Header::Element(ElementHeader {
            key,
            name,
            tag,
            floor,
            form: element.form,
            deleted: element.deleted,
            length: element.length,
            bytes: element.payload.len() as u64,
            metadata: element.metadata,
        })),
        2 => marks.prop_map(|(key, name, marks)| Header::Marks { key, name, marks }),
        2 => (key(), cell(), acceptor()).prop_map(|(key, cell, acceptor)| Header::Cell {
            key,
            cell,
            acceptor,
        }),
        1 => server().prop_map(Header::Registry),
        1 => (key(), pointer()).prop_map(|(key, pointer)| Header::Pointer { key, pointer }),
        1 => configuration().prop_map(Header::Final),
        2 => super::ranked::any_header(),
    ]
}

fn acceptor() -> impl Strategy<Value = Acceptor> {
    let accepted = option::of((ballot(), cell_value()));
    (ballot(), accepted, any::<bool>()).prop_map(|(promised, accepted, decided)| Acceptor {
        promised,
        decided: decided && accepted.is_some(),
        accepted,
    })
}

pub(super) fn key() -> impl Strategy<Value = ConfigurationId> {
    configuration_id()
}

// ---- parts ------------------------------------------------------------------------------------------------------------

/// Any valid configuration.
pub fn configuration() -> impl Strategy<Value = Arc<Configuration>> {
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
        };
        Configuration::new(descriptor).expect("distinct members, k of n")
    })
}

/// Of a sequence one; of a lattice up to four, of which the first may be final.
fn successors() -> impl Strategy<Value = Successors> {
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

fn pointer() -> impl Strategy<Value = Pointer> {
    (configuration(), any::<bool>()).prop_map(|(configuration, is_final)| match is_final {
        true => Pointer::finalized(&configuration),
        false => Pointer::pending(&configuration),
    })
}

fn options() -> impl Strategy<Value = Options> {
    let collect = prop_oneof![Just(Collect::On), Just(Collect::Off), Just(Collect::Paper)];
    let thrift = prop_oneof![
        Just(Thrift::Off),
        Just(Thrift::Queries),
        Just(Thrift::Calls)
    ];
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
    let etcd = proptest::collection::vec(endpoint, 1..4);
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
pub fn element() -> impl Strategy<Value = Element> {
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

/// The form of what is listed, or recorded.
pub(super) fn listed_form() -> impl Strategy<Value = Form> {
    prop_oneof![4 => form(), 1 => Just(Form::Trimmed)]
}

/// Any tag; often one of a few, so that versions meet.
pub fn tag() -> impl Strategy<Value = Tag> {
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
pub fn name() -> impl Strategy<Value = Name> {
    let longest = Just("k".repeat(limits::KEY_BYTES));
    let key = prop_oneof![9 => text(1..40), 1 => longest];
    (kind(), key).prop_map(|(kind, key)| Name::new(kind, &key).expect("1 to 1024 bytes"))
}

fn kind() -> impl Strategy<Value = Kind> {
    prop_oneof![
        Just(Kind::User),
        Just(Kind::Block),
        Just(Kind::Genesis),
        Just(Kind::System)
    ]
}

fn enrolment() -> impl Strategy<Value = Enrolment> {
    prop_oneof![
        Just(Enrolment::Ask),
        Just(Enrolment::Register),
        Just(Enrolment::HandOn)
    ]
}

fn server() -> impl Strategy<Value = ServerRecord> {
    let texts = (text(0..40), text(0..40), text(0..40));
    let numbers = any::<(u128, u64, u64, bool, Option<u64>)>();
    (numbers, texts).prop_map(|((id, incarnation, start, resumed, generation), texts)| {
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
        }
    })
}

fn cell() -> impl Strategy<Value = Bytes> {
    let longest = Just(Bytes::from(vec![b'c'; limits::CELL_NAME_BYTES]));
    prop_oneof![9 => bytes(0..30), 1 => longest]
}

fn cell_value() -> impl Strategy<Value = Bytes> {
    let longest = Just(Bytes::from(vec![b'v'; limits::CELL_BYTES]));
    prop_oneof![19 => bytes(0..60), 1 => longest]
}

fn text(characters: std::ops::Range<usize>) -> impl Strategy<Value = String> {
    let character = prop_oneof![4 => proptest::char::range('a', 'z'), 1 => any::<char>()];
    vec(character, characters).prop_map(|characters| characters.into_iter().collect())
}

fn bytes(length: std::ops::Range<usize>) -> impl Strategy<Value = Bytes> {
    vec(any::<u8>(), length).prop_map(Bytes::from)
}
