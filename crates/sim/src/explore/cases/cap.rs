//! A server that takes no further version of an object before one is confirmed or dropped (`[X-3 unconfirmed-cap]`).

use super::super::Case;
use super::{configuration, object, register};
use areo_core::config::{Configuration, Dap};
use areo_core::consensus::fate;
use areo_core::dap;
use areo_core::element::Value;
use areo_core::message::{Access, Ballot, Body, CellRequest, Request};
use areo_core::pointer::Successors;
use areo_core::tag::{ClientId, Tag, Writer};
use bytes::Bytes;
use std::sync::Arc;

/// Writers that died after they had reached the first server.
const DEAD: [u64; 2] = [7, 8];

/// The fourth server is at its cap, and one server stops: a writer has to give up waiting for that one, and to make room at
/// the other, while another client reads.
pub(super) fn one_stops() -> Case {
    let c = configuration(4, Dap::Ec { k: 2 });
    let case = register(&c, &[&["a"], &["R"]]);
    let value = Value::new(Bytes::new(), Bytes::from_static(b"dead"));
    let dead = request(&c, put(&c, 3, version(DEAD[0]), &value));
    Case {
        description: format!(
            "{}; server 4 is at its cap of 1, one server stops",
            case.description
        ),
        bound: "patience runs out only when no answer is to come; notes are lost".to_owned(),
        before: vec![(c.members()[3], dead)],
        probes: vec![request(&c, promise(&c, version(DEAD[0])))],
        crashes: 1,
        ticks: 0,
        notes: false,
        speaks: false,
        max_unconfirmed: 1,
        ..case
    }
}

/// The first server holds two unreadable versions, and takes two: the writer has to have them dropped,
/// while another client reads.
pub(super) fn two() -> Case {
    let c = configuration(2, Dap::Ec { k: 2 });
    let case = register(&c, &[&["a", "R"], &["R"]]);
    let first = c.members()[0];
    let value = Value::new(Bytes::new(), Bytes::from_static(b"dead"));
    let dead = DEAD.map(|client| (first, request(&c, put(&c, 0, version(client), &value))));
    Case {
        description: format!("{}; server 1 is at its cap of 2", case.description),
        bound: "patience runs out only when no answer is to come; notes are lost".to_owned(),
        before: dead.to_vec(),
        probes: DEAD
            .map(|client| request(&c, promise(&c, version(client))))
            .to_vec(),
        ticks: 0,
        notes: false,
        speaks: false,
        max_unconfirmed: DEAD.len(),
        ..case
    }
}

fn version(client: u64) -> Tag {
    let writer = Writer {
        client: ClientId(client),
        counter: 1,
    };
    Tag { number: 1, writer }
}

fn request(c: &Configuration, body: Body) -> Request {
    Request::Configured {
        configuration: c.id(),
        descriptor: None,
        successors: Successors::default(),
        body,
    }
}

/// The element of the version for the member at this position.
fn put(c: &Arc<Configuration>, position: usize, tag: Tag, value: &Value) -> Body {
    let element = dap::elements(c, &object(), value).swap_remove(position);
    let put = Access::Put {
        tag,
        element,
        write_back: false,
    };
    Body::Access(vec![(object(), put)])
}

/// The smallest ballot promises nothing, and shows what was promised.
fn promise(c: &Configuration, tag: Tag) -> Body {
    Body::Cell {
        cell: fate::cell(c, &object(), tag),
        step: CellRequest::Prepare {
            ballot: Ballot::default(),
        },
    }
}
