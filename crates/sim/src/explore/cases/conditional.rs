//! Ranked registers: conditional writes on one version, with plain ones and reads beside them ([`areo_core::dap::conditional`]).

use super::super::{Case, Identity, Operation};
use super::{configuration, object, register, version};
use areo_core::config::{Configuration, Dap};
use areo_core::element::{Element, Form};
use areo_core::message::{Access, Ballot, Body, Lineage, Proposal, Request, Want};
use areo_core::pointer::Successors;
use areo_core::tag::Tag;
use bytes::Bytes;
use std::sync::Arc;

/// The operation of a client.
#[derive(Clone, Copy, Debug)]
pub enum Does {
    /// Writes this if the object was never written.
    Creates(&'static str),
    Writes(&'static str),
    Reads,
}

/// For each client its one operation, and the ballots that it may use before it gives up.
pub type Programs<'a> = &'a [(Does, usize)];

/// A case of one register. `notes`: whether CONFIRM arrives, at any moment or never; otherwise it is lost.
pub fn race(n: usize, k: u8, programs: Programs<'_>, notes: bool) -> Case {
    let c = configuration(n, Dap::Conditional { k });
    let name = object();
    let operation = |(does, ballots): &(Does, usize)| {
        let operation = match does {
            Does::Creates(text) => Operation::write_on(&c, &name, text, Tag::INITIAL),
            Does::Writes(text) => Operation::write(&c, &name, text),
            Does::Reads => Operation::read(&c, &name),
        };
        operation.with_pauses(ballots - 1)
    };
    let parts = |(does, ballots): &(Does, usize)| format!("{does:?} in {ballots}");
    let parts: Vec<String> = programs.iter().map(parts).collect();
    Case {
        description: format!("{} n={n} k={k}: {}", c.dap(), parts.join(" || ")),
        bound: "an operation gives up after as many ballots".to_owned(),
        probes: vec![rank(&c)],
        clients: programs.iter().map(|it| [operation(it)].into()).collect(),
        ticks: 0,
        notes,
        // What a proposer is promised it does not say before it proposes.
        identity: Identity::Recent,
        ..register(&c, &[])
    }
}

/// Two writers of a new object, of whom none tries again.
pub(super) fn once() -> Case {
    let programs = [(Does::Creates("a"), 1), (Does::Creates("b"), 1)];
    race(3, 1, &programs, false)
}

/// A conditional writer and a reader.
pub(super) fn read() -> Case {
    let programs = [(Does::Creates("a"), 1), (Does::Reads, 1)];
    race(3, 1, &programs, false)
}

/// Two conditional writers, a plain one, and a reader; two servers, which are all in each quorum.
pub(super) fn all() -> Case {
    let programs = [
        (Does::Creates("a"), 1),
        (Does::Creates("b"), 1),
        (Does::Writes("c"), 1),
        (Does::Reads, 1),
    ];
    race(2, 1, &programs, false)
}

/// Two writers of a new object, of which one tries again after they met.
pub(super) fn two() -> Case {
    let programs = [(Does::Creates("a"), 2), (Does::Creates("b"), 1)];
    race(3, 1, &programs, false)
}

/// Two writers of a new object, and a reader.
pub(super) fn reader() -> Case {
    let programs = [
        (Does::Creates("a"), 1),
        (Does::Creates("b"), 1),
        (Does::Reads, 1),
    ];
    race(3, 1, &programs, false)
}

/// A conditional writer, a plain one, and a reader.
pub(super) fn mixed() -> Case {
    let programs = [
        (Does::Creates("a"), 1),
        (Does::Writes("b"), 1),
        (Does::Reads, 1),
    ];
    race(3, 1, &programs, false)
}

/// A plain writer and a reader, where two servers hold a tombstone of a client that died, each another one, and take one version.
pub(super) fn cap() -> Case {
    let programs = [(Does::Writes("a"), 3), (Does::Reads, 1)];
    let case = race(3, 1, &programs, false);
    let c = case.configurations[0].clone();
    let left = |server: usize| {
        let proposer = version(7 + server as u64).writer;
        let element = Element {
            form: Form::Copy,
            deleted: true,
            length: 0,
            metadata: Bytes::new(),
            payload: Bytes::new(),
            checksum: None,
        };
        let proposal = Proposal {
            ballot: Ballot {
                number: 1,
                proposer,
            },
            tag: version(7 + server as u64),
            element: Some(element),
            lineage: Lineage::default().followed_by(Tag::INITIAL, 0),
            settles: false,
            base_chosen: true,
        };
        let access = Access::Accept(Box::new(proposal));
        (c.members()[server], request(&c, access))
    };
    Case {
        description: format!("{}; servers 1 and 2 are at the cap of 1", case.description),
        before: vec![left(0), left(1)],
        max_ranked: 1,
        ..case
    }
}

/// Erasure coding: a conditional writer and a plain one.
pub(super) fn coded() -> Case {
    race(
        4,
        2,
        &[(Does::Creates("a"), 1), (Does::Writes("b"), 1)],
        false,
    )
}

/// All that a server remembers of the register but for its elements.
pub(super) fn rank(c: &Arc<Configuration>) -> Request {
    let access = Access::Rank {
        ballot: None,
        want: Want::Tags,
        have: Tag::INITIAL,
    };
    request(c, access)
}

fn request(c: &Arc<Configuration>, access: Access) -> Request {
    Request::Configured {
        configuration: c.id(),
        descriptor: None,
        successors: Successors::default(),
        body: Body::Access(vec![(object(), access)]),
    }
}
