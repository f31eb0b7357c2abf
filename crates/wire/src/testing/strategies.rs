//! Strategies that draw every message and every record header.

use super::parts::{
    ballot, cell, cell_value, configuration, configuration_id, element, enrolment, kind,
    listed_form, name, pointer, server, successors, tag, text,
};
use areo_core::config::ServerId;
use areo_core::consensus::paxos::Acceptor;
use areo_core::dap::versions::{Fence, Marks};
use areo_core::element::{Element, ReplyElement};
use areo_core::message::{
    Access, Announcement, Answer, Body, CellReply, CellRequest, CellSummary, Directory,
    DomainStanding, Gossip, GossipMarks, HeldVersions, LeaderStanding, ListEntry, ListPage,
    ListRequest, Note, PeerView, Refusal, Reply, Request, ServerStatus, ServerView, Transferred,
    Want,
};
use areo_core::object::{DomainId, Etag};
use areo_core::server::record::{ElementHeader, Header};
use areo_core::tag::Tag;
use bytes::Bytes;
use proptest::collection::{btree_map, btree_set, vec};
use proptest::option;
use proptest::prelude::*;

/// Generates any request of a client or server.
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
        1 => Just(Request::View),
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
        1 => server().prop_map(|known| Reply::Admissible(Box::new(known))),
        1 => any::<u64>().prop_map(|registered| Reply::Outdated { registered }),
    ]
}

fn reply_for_servers() -> impl Strategy<Value = Reply> {
    let directory = (configuration(), vec(server(), 0..5));
    prop_oneof![
        1 => directory.prop_map(|(root, servers)| Reply::Directory(Directory { root, servers })),
        1 => status().prop_map(|it| Reply::Status(Box::new(it))),
        1 => view().prop_map(|it| Reply::View(Box::new(it))),
    ]
}

fn view() -> impl Strategy<Value = ServerView> {
    let peer = (any::<u128>(), any::<bool>()).prop_map(|(server, is_connected)| PeerView {
        server: ServerId(server),
        is_connected,
    });
    let numbers = (any::<[u64; 5]>(), option::of(any::<u64>()));
    (vec(peer, 0..5), numbers).prop_map(|(peers, (numbers, sync_running_ms))| {
        let [syncs, sync_us, disk_bytes, disk_free_bytes, corrupted] = numbers;
        ServerView {
            peers,
            syncs,
            sync_us,
            sync_running_ms,
            disk_bytes,
            disk_free_bytes,
            corrupted,
        }
    })
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
    let wait = |(domain, server)| (DomainId(domain), ServerId(server));
    let waits = vec(any::<(u128, u128)>().prop_map(wait), 0..3);
    let lead = |(domain, objects, bytes)| LeaderStanding {
        domain: DomainId(domain),
        transferred: Transferred { objects, bytes },
    };
    let leads = vec(any::<(u128, u64, u64)>().prop_map(lead), 0..3);
    (
        any::<([u64; 13], [bool; 4])>(),
        ages,
        domains,
        (waits, leads),
    )
        .prop_map(
            |(
                (counts, [serving, durable, full, incomplete]),
                [proven_ms, unscrubbed_ms],
                domains,
                (waits, leads),
            )| {
                ServerStatus {
                    incarnation: counts[0],
                    serving,
                    incomplete,
                    durable,
                    objects: counts[1],
                    versions: counts[2],
                    element_bytes: counts[3],
                    stored_bytes: counts[4],
                    damaged: counts[5],
                    configurations: counts[6],
                    pending: counts[7],
                    pending_ms: counts[8],
                    trimmed: counts[9],
                    repaired: counts[10],
                    lacking: counts[11],
                    tombstones: counts[12],
                    full,
                    proven_ms,
                    unscrubbed_ms,
                    domains,
                    waits,
                    leads,
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

/// Generates any note of a client or server.
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
    let element = (configuration_id(), name(), tag(), tag(), element());
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
    let marks = (configuration_id(), name(), marks);
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
        2 => (configuration_id(), cell(), acceptor()).prop_map(|(key, cell, acceptor)| Header::Cell {
            key,
            cell,
            acceptor,
        }),
        1 => server().prop_map(Header::Registry),
        1 => (configuration_id(), pointer()).prop_map(|(key, pointer)| Header::Pointer { key, pointer }),
        1 => configuration().prop_map(Header::Final),
        2 => super::ranked::any_header(),
        1 => super::ranked::any_floor_header(),
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
