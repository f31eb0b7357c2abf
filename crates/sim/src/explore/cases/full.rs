//! Servers whose disks are full, and readers that have the answers of more members than a quorum (`[EC-11 acceptance-test]`,
//! `[X-1 support-threshold]`).

use super::super::judge::history_of;
use super::super::{Case, Digest, Judge, Kind, ObservedOperation, Operation, Outcome};
use super::{configuration, object, patient, register, version};
use areo_core::config::{Configuration, Dap, ServerId};
use areo_core::message::Refusal;
use std::rc::Rc;
use std::sync::Arc;

/// A write and a read; the disks of two of four servers become full, at any moment.
pub(super) fn put_and_read() -> Case {
    let (c, filling) = four();
    let clients = [Operation::write(&c, &object(), "a"), read(&c)];
    Case {
        fills: filling.to_vec(),
        ..case(&c, clients)
    }
}

/// A version on its way to its servers, and two reads.
pub(super) fn reads() -> Case {
    let (c, filling) = four();
    let clients = [put(&c), read(&c), read(&c)];
    patient(Case {
        fills: filling.to_vec(),
        ..case(&c, clients)
    })
}

/// A put that fails on full disks, and a read. What the put leaves keeps no reader from the version before it.
pub(super) fn left() -> Case {
    let (c, full) = four();
    let clients = [put(&c), read(&c)];
    let case = case(&c, clients);
    Case {
        description: format!("{}; their disks are full from the start", case.description),
        full: full.to_vec(),
        judge: Judge {
            seen: |observed| blocked(observed).or_else(|| history_of(observed).1),
            ..case.judge
        },
        ..case
    }
}

fn four() -> (Arc<Configuration>, [ServerId; 2]) {
    let c = configuration(4, Dap::Ec { k: 2 });
    let full = [c.members()[2], c.members()[3]];
    (c, full)
}

fn put(c: &Arc<Configuration>) -> Operation {
    Operation::put(c, &object(), "a", version(1))
}

fn read(c: &Arc<Configuration>) -> Operation {
    Operation::read(c, &object())
}

/// Each client does one thing.
fn case(c: &Arc<Configuration>, operations: impl IntoIterator<Item = Operation>) -> Case {
    let program = |operation| -> Rc<[Operation]> { [operation].into() };
    let clients: Vec<Rc<[Operation]>> = operations.into_iter().map(program).collect();
    let labels = clients.iter().map(|program| program[0].label.as_str());
    let labels = labels.collect::<Vec<_>>().join(" || ");
    let case = register(c, &[]);
    Case {
        description: format!(
            "{} n={}: {labels}; servers 3 and 4 get full",
            c.dap(),
            c.n()
        ),
        clients,
        digest: Digest::Records,
        judge: Judge {
            seen: |observed| failed(observed).or_else(|| history_of(observed).1),
            ..case.judge
        },
        ..case
    }
}

/// An operation may end without success, but only because disks are full.
fn failed(observed: &[ObservedOperation]) -> Option<String> {
    observed.iter().find_map(|of| match &of.ended {
        Some(Outcome::Failed(why) | Outcome::Unknown(why)) if !is_for_room(why) => Some(format!(
            "liveness: {} of client {} ends: {why}",
            of.label, of.client
        )),
        _ => None,
    })
}

fn is_for_room(why: &str) -> bool {
    why.contains(&Refusal::Full.to_string())
}

/// A read must succeed.
fn blocked(observed: &[ObservedOperation]) -> Option<String> {
    let fails = |of: &&ObservedOperation| {
        of.kind == Kind::Read && matches!(of.ended, Some(Outcome::Failed(_)))
    };
    observed.iter().find(fails).map(|of| {
        let ended = of.ended.as_ref().map(ToString::to_string);
        format!(
            "liveness: {} of client {} {}",
            of.label,
            of.client,
            ended.unwrap_or_default()
        )
    })
}
