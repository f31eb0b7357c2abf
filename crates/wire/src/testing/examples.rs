//! One example of every variant, with every field set to something that is seen if it goes missing. The golden files
//! pin their bytes, so an example may never change: add another one instead.

use crate::checksum::crc32c;
use areo_core::config::{ConfigurationId, ServerId};
use areo_core::element::{Element, Form};
use areo_core::message::{
    Ballot, Gossip, GossipMarks, Label, Labels, Levels, Note, Program, ServerRecord,
};
use areo_core::object::{Blocks, Etag, Metadata, Name, Part};
use areo_core::pointer::Pointer;
use areo_core::tag::{ClientId, Tag, Writer};
use bytes::Bytes;

mod configurations;
mod records;
mod replies;
mod requests;

pub(super) use configurations::of_lattice;
use configurations::{configuration, next};
pub use records::headers;
pub use replies::replies;
pub use requests::requests;

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

/// The element of a value that is in blocks.
fn manifest() -> Element {
    let part = |first, length| Part {
        lane: None,
        first,
        length,
        block_bytes: 4 << 20,
    };
    let parts = vec![part(0, 0x1122_3344_5566), part(0x5152_5354, 9)];
    let blocks = Blocks::of_parts(writer(9), parts).expect("they have numbers");
    let metadata = Metadata {
        checksum: Some(0x1234_5678),
        blocks: Some(blocks.clone().into()),
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
        program: Program::default(),
        levels: Levels::default(),
        labels: Labels::default(),
    }
}

/// A server that is to go, for the second time.
fn leaving() -> ServerRecord {
    ServerRecord {
        leaving: 3,
        ..server(2)
    }
}

/// A server of a cluster that is being finalized.
fn levelled() -> ServerRecord {
    ServerRecord {
        program: Program {
            version: "1.2.3".into(),
            level: 0x0708,
        },
        levels: Levels {
            required: 0x0708,
            finalized: 0x0605,
        },
        ..server(2)
    }
}

/// A server with a label, and another one that was removed.
fn labelled() -> ServerRecord {
    let zone = Labels::default().changed([("zone", "küche")]);
    let mut labels = zone.changed([("zone", "")]);
    labels.join(
        "class",
        Label {
            changes: 0x0102,
            text: "hdd".into(),
        },
    );
    ServerRecord {
        labels,
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
