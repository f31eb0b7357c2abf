//! A server that takes no further version of an object before one is confirmed or dropped (`[X-3 unconfirmed-cap]`).

use super::super::judge::history_of;
use super::super::{
    Case, Digest, Judge, Kind, ObservedOperation, Operation, Outcome, linearizable,
};
use super::{configuration, object, register, version};
use areo_core::config::{Configuration, Dap};
use areo_core::consensus::fate;
use areo_core::dap;
use areo_core::element::Value;
use areo_core::message::{Access, Ballot, Body, CellRequest, Request};
use areo_core::pointer::Successors;
use areo_core::tag::Tag;
use bytes::Bytes;
use std::rc::Rc;
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

/// Two writers of two servers that take one version each, and a read. Each writer may reach one of them, and then has to
/// have the other one's version dropped. What a fence spares for one writer it must not spare for the other.
pub(super) fn writers() -> Case {
    race(1, &[])
}

/// The first server holds an unreadable version, and takes two: the writers race for the last place.
pub(super) fn last_place() -> Case {
    let case = race(2, &DEAD[..1]);
    Case {
        description: format!("{}; a dead version at server 1", case.description),
        ..case
    }
}

/// Two writers, of which one reads then. `dead`: the writers of versions that are at the first server only.
fn race(cap: usize, dead: &[u64]) -> Case {
    let c = configuration(2, Dap::Ec { k: 2 });
    let (first, name) = (c.members()[0], object());
    let value = Value::new(Bytes::new(), Bytes::from_static(b"dead"));
    let dead_at = dead
        .iter()
        .map(|client| (first, request(&c, put(&c, 0, version(*client), &value))));
    let write = |text| Operation::write(&c, &name, text).with_pauses(1);
    let both = [write("a"), Operation::read(&c, &name)];
    Case {
        description: format!("{} n=2: a then R || b; each server takes {cap}", c.dap()),
        bound: "patience runs out only when no answer is to come; notes are lost; a writer gives up when it pauses again"
            .to_owned(),
        before: dead_at.collect(),
        clients: vec![Rc::new(both), Rc::new([write("b")])],
        ticks: 0,
        notes: false,
        max_unconfirmed: cap,
        digest: Digest::Records,
        judge: Judge {
            seen: |observed| failed(observed).or_else(|| history_of(observed).1),
            ..linearizable()
        },
        ..register(&c, &[])
    }
}

/// A writer may end with an unknown outcome: its version was dropped.
fn failed(observed: &[ObservedOperation]) -> Option<String> {
    let fails = |of: &&ObservedOperation| match of.ended {
        Some(Outcome::Failed(_)) => true,
        Some(Outcome::Unknown(_)) => of.kind == Kind::Read,
        _ => false,
    };
    let of = observed.iter().find(fails)?;
    Some(format!(
        "liveness: {} of client {} fails",
        of.label, of.client
    ))
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

/// A promise at the smallest ballot, which promises nothing and shows earlier promises.
fn promise(c: &Configuration, tag: Tag) -> Body {
    Body::Cell {
        cell: fate::cell(c, &object(), tag),
        step: CellRequest::Prepare {
            ballot: Ballot::default(),
        },
    }
}
