//! Requests of the examples.

use super::configurations::{configuration, next, several};
use super::{
    ballot, cell, copy, fragment, id, in_memory, leaving, manifest, name, positioned, server, tag,
    tombstone, value,
};
use areo_core::message::{
    Access, Announcement, Body, CellRequest, Enrolment, ListRequest, Request, ServerRecord, Want,
};
use areo_core::object::Kind;
use areo_core::pointer::{Pointer, Successors};
use areo_core::tag::Tag;
use bytes::Bytes;

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

/// Requests about room for versions.
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
    requests.extend([several_announced(), Request::View]);
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
    let others = room().into_iter().chain(super::super::ranked::accesses());
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

/// The successors that a request with this body carries.
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
