//! One example of every variant, with every field set to something that is seen if it goes missing. The golden files
//! pin their bytes, so an example may never change: add another one instead.

use crate::checksum::crc32c;
use areo_core::config::{ConfigurationId, ServerId};
use areo_core::element::{Element, Form, ReplyElement};
use areo_core::message::{
    Access, Announcement, Answer, Ballot, Body, CellReply, CellRequest, CellSummary, Directory,
    DomainStanding, Enrolment, Gossip, GossipMarks, HeldVersions, LeaderStanding, ListEntry,
    ListPage, ListRequest, Note, Refusal, Reply, Request, ServerRecord, ServerStatus, Transferred,
    Want,
};
use areo_core::object::{Blocks, DomainId, Etag, Kind, Metadata, Name, Part};
use areo_core::pointer::{Pointer, Successors};
use areo_core::tag::{ClientId, Tag, Writer};
use bytes::Bytes;

mod configurations;
mod records;

pub(super) use configurations::of_lattice;
use configurations::{
    baselines, beside, ceased, configuration, fixed, led, next, outside, several, slotted,
    speculating,
};
pub use records::headers;

pub(super) fn id() -> ConfigurationId {
    configuration().id()
}

fn writer(counter: u64) -> Writer {
    let client = ClientId(0xc0ff_ee00_c0ff_ee01);
    Writer { client, counter }
}

pub(super) fn tag(number: u64) -> Tag {
    let writer = writer(0x0102_0304_0506);
    Tag { number, writer }
}

pub(super) fn ballot(number: u64) -> Ballot {
    let proposer = writer(7);
    Ballot { number, proposer }
}

pub(super) fn name(key: &str) -> Name {
    Name::user(key).expect("a short key")
}

fn metadata() -> Bytes {
    let metadata = Metadata {
        content_type: Some("text/plain".into()),
        user: vec![("colour".into(), "blue".into())],
        checksum: Some(0x1234_5678),
        etag: Some(Etag::new("0123456789abcdef").expect("visible ASCII")),
        written_at_ms: Some(1_700_000_000_000),
        blocks: None,
        lost: None,
    };
    metadata.encode().expect("small metadata")
}

/// Of a value that is in blocks.
fn manifest() -> Element {
    let part = |first, length| Part {
        first,
        length,
        block_bytes: 4 << 20,
    };
    let parts = vec![part(0, 0x1122_3344_5566), part(0x5152_5354, 9)];
    let blocks = Blocks::of_parts(writer(9), parts).expect("they have numbers");
    let metadata = Metadata {
        checksum: Some(0x1234_5678),
        blocks: Some(blocks.clone()),
        ..Metadata::default()
    };
    Element {
        form: Form::Manifest,
        deleted: false,
        length: blocks.length(),
        metadata: metadata.encode().expect("small metadata"),
        payload: Bytes::new(),
        checksum: None,
    }
}

fn with_payload(form: Form, length: u64, payload: &'static [u8]) -> Element {
    Element {
        form,
        deleted: false,
        length,
        metadata: metadata(),
        payload: Bytes::from_static(payload),
        checksum: Some(crc32c(payload)),
    }
}

pub(super) fn copy() -> Element {
    with_payload(Form::Copy, 11, b"hello areo!")
}

fn fragment(index: u8) -> Element {
    let form = Form::Fragment { n: 5, k: 3, index };
    with_payload(form, 11, b"frag")
}

fn tombstone() -> Element {
    Element {
        form: Form::Copy,
        deleted: true,
        length: 0,
        metadata: Bytes::new(),
        payload: Bytes::new(),
        checksum: None,
    }
}

/// An element of which only the metadata was asked for.
fn metadata_only() -> Element {
    Element {
        payload: Bytes::new(),
        checksum: None,
        ..fragment(1)
    }
}

fn cell() -> Bytes {
    Bytes::from_static(b"domain/photos/00000000")
}

fn value() -> Bytes {
    Bytes::from_static(b"decided")
}

fn server(id: u128) -> ServerRecord {
    ServerRecord {
        id: ServerId(0x5e00_0000 + id),
        incarnation: 3,
        start: 0xabcd_ef01_2345_6789,
        resumed: false,
        name: format!("server-{id}"),
        address: format!("192.0.2.{id}:7401"),
        admin: format!("192.0.2.{id}:7402"),
        generation: None,
        leaving: 0,
        position: None,
    }
}

/// A server that is to go, for the second time.
fn leaving() -> ServerRecord {
    ServerRecord {
        leaving: 3,
        ..server(2)
    }
}

/// A server in memory.
fn in_memory() -> ServerRecord {
    ServerRecord {
        generation: Some(0x0102),
        ..server(1)
    }
}

/// A server that says how far its log is.
fn positioned() -> ServerRecord {
    ServerRecord {
        position: Some(0x0506),
        ..server(1)
    }
}

fn register(step: Enrolment, resumed: bool) -> Body {
    let record = ServerRecord {
        resumed,
        ..server(1)
    };
    let record = Box::new(record);
    Body::Register { step, record }
}

fn registration(record: ServerRecord) -> Body {
    let (step, record) = (Enrolment::Register, Box::new(record));
    Body::Register { step, record }
}

fn write_back() -> Access {
    Access::Put {
        tag: tag(0x16),
        element: fragment(3),
        write_back: true,
    }
}

/// What is asked about room for versions.
fn room() -> [Access; 7] {
    let announcing = Access::Query {
        want: Want::Tags,
        have: Tag::INITIAL,
        announced: Some(Announcement {
            length: 0x0102,
            element_bytes: 0x81,
        }),
    };
    let fence = Access::Fence {
        upto: tag(0x1a),
        spared: tag(0x1b),
    };
    let keep = Access::Keep {
        tag: tag(0x19),
        element: fragment(2),
    };
    let finalize = |want, complete| Access::Finalize {
        tag: tag(0x1c),
        want,
        complete,
    };
    let completing = finalize(Want::Tags, true);
    let (finalize, giving) = (finalize(Want::Tags, false), finalize(Want::Fragment, false));
    let drop = Access::Drop(tag(0x1a));
    [announcing, keep, fence, drop, finalize, giving, completing]
}

fn page_of_blocks() -> ListRequest {
    ListRequest {
        kind: Kind::Block,
        prefix: "photos/".into(),
        after: "photos/ä.jpg".into(),
        delimiter: "/".into(),
        limit: 1000,
    }
}

/// One request of every variant.
pub fn requests() -> Vec<Request> {
    let mut requests = requests_of_sequences();
    requests.push(several_announced());
    requests
}

fn requests_of_sequences() -> Vec<Request> {
    let query = |want| {
        let have = tag(0x11);
        (name("photos/ä.jpg"), Access::query(want, have))
    };
    let fetch = |payload| {
        let tag = tag(0x12);
        (name("k"), Access::Fetch { tag, payload })
    };
    let put = |key, number, element| {
        let put = Access::Put {
            tag: tag(number),
            element,
            write_back: false,
        };
        (name(key), put)
    };
    let cell_step = |step| Body::Cell { cell: cell(), step };
    let mut bodies = vec![
        Body::Access(Vec::new()),
        Body::Access(vec![query(Want::Tags)]),
        Body::Access(vec![query(Want::Metadata)]),
        Body::Access(vec![query(Want::Fragment), query(Want::Element)]),
        Body::Access(vec![query(Want::Element)]),
        Body::Access(vec![fetch(true)]),
        Body::Access(vec![fetch(false)]),
        Body::Access(vec![
            put("a", 0x13, fragment(4)),
            put("b", 0x14, copy()),
            put("c", 0x15, tombstone()),
        ]),
        Body::Access(vec![(name("d"), write_back())]),
        Body::Access(vec![put("e", 0x17, manifest())]),
        Body::Access(vec![(name("f"), Access::Adopt(tag(0x18)))]),
    ];
    let others = room().into_iter().chain(super::ranked::accesses());
    bodies.extend(others.map(|access| Body::Access(vec![(name("h"), access)])));
    bodies.extend([
        Body::List(page_of_blocks()),
        cell_step(CellRequest::Query),
        cell_step(CellRequest::Prepare { ballot: ballot(8) }),
        cell_step(CellRequest::Accept {
            ballot: ballot(9),
            value: value(),
        }),
        cell_step(CellRequest::Join(value())),
        Body::Cells {
            prefix: Bytes::from_static(b"domain/"),
            after: cell(),
        },
        Body::ReadConfig,
        register(Enrolment::Register, false),
        register(Enrolment::Ask, false),
        register(Enrolment::Register, true),
        register(Enrolment::HandOn, true),
        registration(in_memory()),
        Body::Servers,
        registration(positioned()),
    ]);
    let configured = bodies.into_iter().map(|body| Request::Configured {
        configuration: id(),
        descriptor: matches!(body, Body::List(_)).then(configuration),
        successors: announced(&body),
        body,
    });
    let know = Request::Know(server(1));
    let leaving = Request::Know(leaving());
    let others = [Request::Directory, know, Request::Status, latest(), leaving];
    configured.chain(others).collect()
}

/// What goes with a request of this kind.
fn announced(body: &Body) -> Successors {
    match body {
        Body::ReadConfig => (&Pointer::pending(&next())).into(),
        _ => Successors::default(),
    }
}

fn several_announced() -> Request {
    Request::Configured {
        configuration: id(),
        descriptor: None,
        successors: several(),
        body: Body::ReadConfig,
    }
}

fn latest() -> Request {
    Request::Latest {
        domain: id().domain,
        partition: 0,
        known: Some(next()),
    }
}

/// One reply of every variant.
pub fn replies() -> Vec<Reply> {
    let mut replies = replies_of_sequences();
    replies.push(Reply::Next {
        successors: several(),
        reply: Some(Box::new(Reply::Config)),
    });
    replies.push(Reply::Next {
        successors: beside(),
        reply: Some(Box::new(Reply::Config)),
    });
    for successors in [Successors::default(), several()] {
        replies.push(Reply::Access(vec![Answer::Later {
            configuration: id(),
            successors,
        }]));
    }
    replies
}

fn replies_of_sequences() -> Vec<Reply> {
    let mut replies = answers();
    replies.extend([
        Reply::Listed(ListPage {
            entries: vec![
                entry("photos/a", false, false),
                entry("photos/b", true, false),
                entry("photos/c", false, true),
            ],
            truncated: true,
        }),
        Reply::Listed(ListPage {
            entries: vec![ListEntry {
                absent: true,
                ..entry("photos/d", false, false)
            }],
            truncated: false,
        }),
        Reply::Cells {
            cells: vec![
                CellSummary {
                    cell: cell(),
                    value: value(),
                    decided: true,
                },
                CellSummary {
                    cell: Bytes::from_static(b"domain/t/00000000"),
                    value: Bytes::new(),
                    decided: false,
                },
            ],
            truncated: false,
        },
        Reply::Directory(Directory {
            root: configuration(),
            servers: vec![server(1), server(2)],
        }),
        Reply::Servers(vec![server(1), server(2)]),
        Reply::Registered,
        Reply::Outdated { registered: 0x21 },
        Reply::Admissible(Box::new(positioned())),
        counting(),
    ]);
    replies.extend(cell_replies().map(Reply::Cell));
    replies.extend(envelopes());
    replies.extend(baselines().map(|c| Reply::Latest(Some(c))));
    // As published: a list with a tag that has no element any more.
    replies.push(Reply::Access(vec![Answer::Held(HeldVersions {
        stored: vec![(tag(0x33), Form::Trimmed), (tag(0x34), fragment(2).form)],
        ..HeldVersions::default()
    })]));
    replies.extend([Reply::Latest(Some(outside())), repairing()]);
    replies.extend(super::ranked::answers().map(Reply::Access));
    replies.extend([standing(), Reply::Latest(Some(ceased()))]);
    replies.extend([speculating(), led()].map(|c| Reply::Latest(Some(c))));
    replies.extend([super::restart::waits(), Reply::Latest(Some(slotted()))]);
    replies.extend([leading(), Reply::Latest(Some(fixed())), full()]);
    replies
}

fn counting() -> Reply {
    Reply::Status(Box::new(ServerStatus {
        incarnation: 1,
        serving: true,
        durable: true,
        objects: 2,
        versions: 3,
        element_bytes: 4,
        stored_bytes: 5,
        damaged: 6,
        configurations: 7,
        pending: 8,
        pending_ms: 9,
        trimmed: 10,
        repaired: 11,
        ..ServerStatus::default()
    }))
}

fn repairing() -> Reply {
    Reply::Status(Box::new(ServerStatus {
        lacking: 12,
        proven_ms: Some(13),
        ..ServerStatus::default()
    }))
}

fn leading() -> Reply {
    let standing = |number, objects| LeaderStanding {
        domain: DomainId(number),
        transferred: Transferred { objects, bytes: 19 },
    };
    Reply::Status(Box::new(ServerStatus {
        leads: vec![standing(0xd0, 0), standing(0xd1, 18)],
        ..ServerStatus::default()
    }))
}

fn full() -> Reply {
    Reply::Status(Box::new(ServerStatus {
        tombstones: 20,
        full: true,
        ..ServerStatus::default()
    }))
}

fn standing() -> Reply {
    let standing = |number, proven_ms| DomainStanding {
        domain: DomainId(number),
        objects: 14,
        lacking: 15,
        proven_ms,
    };
    Reply::Status(Box::new(ServerStatus {
        unscrubbed_ms: Some(16),
        domains: vec![standing(0xd0, Some(17)), standing(0xd1, None)],
        ..ServerStatus::default()
    }))
}

fn cell_replies() -> [CellReply; 6] {
    [
        CellReply::Promised { accepted: None },
        CellReply::Promised {
            accepted: Some((ballot(4), value())),
        },
        CellReply::Accepted,
        CellReply::Rejected {
            promised: ballot(5),
        },
        CellReply::Decided(value()),
        CellReply::Closed {
            accepted: Some((ballot(6), value())),
        },
    ]
}

fn envelopes() -> [Reply; 4] {
    [
        Reply::Config,
        Reply::Latest(Some(next())),
        Reply::Next {
            successors: (&Pointer::pending(&next())).into(),
            reply: Some(Box::new(Reply::Access(vec![Answer::Stored]))),
        },
        Reply::Next {
            successors: (&Pointer::finalized(&next())).into(),
            reply: None,
        },
    ]
}

fn answers() -> Vec<Reply> {
    let held = HeldVersions {
        stored: vec![(tag(0x31), fragment(2).form), (tag(0x32), Form::Copy)],
        floor: tag(0x30),
        stable: tag(0x31),
        ..HeldVersions::default()
    };
    let complete = HeldVersions {
        complete: tag(0x31),
        seen: tag(0x34),
        ..held.clone()
    };
    let fenced = HeldVersions {
        fence: tag(0x33),
        ..held.clone()
    };
    let with = |element| HeldVersions {
        element: Some((tag(0x32), ReplyElement::Whole(element))),
        ..held.clone()
    };
    let whole = |element| Answer::Fetched(ReplyElement::Whole(element));
    [
        vec![],
        vec![Answer::Held(held.clone())],
        vec![
            Answer::Held(with(copy())),
            Answer::Held(with(metadata_only())),
            Answer::Held(HeldVersions::default()),
        ],
        vec![whole(fragment(0)), whole(tombstone())],
        vec![whole(manifest())],
        vec![Answer::Evicted],
        vec![Answer::Stored],
        vec![Answer::Needed],
        vec![Answer::Held(fenced)],
        vec![Answer::Held(complete)],
        vec![Answer::Dropped],
        vec![Answer::Refused(Refusal::Damaged)],
    ]
    .map(Reply::Access)
    .into()
}

fn entry(key: &str, deleted: bool, damaged: bool) -> ListEntry {
    ListEntry {
        key: key.into(),
        tag: tag(0x41),
        length: 0x1122_3344_5566,
        etag: deleted.then(|| Etag::new("0123456789abcdef-2").expect("visible ASCII")),
        written_at_ms: damaged.then_some(0x0198_7654_3210),
        age_s: 0x0051_5253,
        deleted,
        damaged,
        absent: false,
    }
}

/// One note of every variant.
pub fn notes() -> Vec<Note> {
    let confirm = Note::Confirm {
        configuration: id(),
        name: name("photos/ä.jpg"),
        tag: tag(0x51),
    };
    let decided = Note::Decided {
        configuration: id(),
        cell: cell(),
        value: value(),
    };
    let next = Note::Next {
        configuration: id(),
        pointer: Pointer::finalized(&next()),
    };
    let forget = Note::Forget {
        configuration: id(),
        cell: cell(),
    };
    let serving = Note::Serving(server(4));
    let marks = GossipMarks {
        largest: tag(0x54),
        finalized: tag(0x53),
        complete: tag(0x52),
    };
    let gossip = Note::Gossip(Gossip {
        configuration: id(),
        from: ServerId(0x0102),
        objects: [(name("k"), marks), (name("photos/ä.jpg"), marks)].into(),
    });
    vec![
        confirm,
        decided,
        next,
        forget,
        serving,
        super::ranked::note(),
        gossip,
        super::restart::note(),
    ]
}
