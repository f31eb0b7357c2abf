//! A domain of the kind `abd` becomes conditional beside writes and reads (`[W-12 becoming-conditional]`). What consensus decides is
//! given; one object is moved, without a listing.

use super::conditional::rank;
use super::{configuration, object};
use crate::explore::{Case, Digest, Kind, Operation, Outcome, linearizable};
use areo_core::config::{Configuration, Dap, Descriptor, ServerId};
use areo_core::dsm::Client;
use areo_core::env::Env;
use areo_core::error::Unavailable;
use areo_core::limits::UNCONFIRMED_ELEMENTS;
use areo_core::message::Request;
use areo_core::pointer::Pointer;
use areo_core::reconfig::sequence;
use areo_core::reconfig::transfer::{self, TransferOutcome};
use std::rc::Rc;
use std::sync::Arc;

/// Pauses that an operation makes before it gives up.
const PAUSES: usize = 1;

/// What a client does, operation after operation.
pub type Program<'a> = &'a [&'a str];

/// A domain of `n` servers moves to `targets` others while clients run their programs: `R` reads, `M` moves the domain, anything else
/// writes itself.
pub fn case(n: usize, targets: usize, programs: &[Program<'_>]) -> Case {
    let (c, name) = (configuration(n, Dap::Abd), object());
    let servers = 1..=(n + targets) as u128;
    let next = Configuration::new(Descriptor {
        index: 1,
        members: servers.clone().skip(n).map(ServerId).collect(),
        dap: Dap::Conditional { k: 1 },
        ..c.descriptor().clone()
    })
    .expect("a valid descriptor");
    let operation = |text: &&str| match *text {
        "R" => Operation::read(&c, &name).with_pauses(PAUSES),
        "M" => become_conditional(&c, &next).with_pauses(PAUSES),
        text => Operation::write(&c, &name, text).with_pauses(PAUSES),
    };
    let clients = programs
        .iter()
        .map(|program| program.iter().map(operation).collect::<Rc<[Operation]>>());
    let parts: Vec<String> = programs
        .iter()
        .map(|program| program.join(" then "))
        .collect();
    let id = c.id();
    let mut judge = linearizable();
    // What is held, and where, is the business of the read.
    judge.held = |_, _, _| None;
    Case {
        name: "",
        description: format!("abd n={n} to conditional n={targets}: {}", parts.join(" || ")),
        bound: "patience runs out only when no answer is to come; notes are lost; an operation gives up at its second pause".to_owned(),
        servers: servers.map(ServerId).collect(),
        configurations: vec![c.clone(), next.clone()],
        before: Vec::new(),
        subjects: vec![(c.clone(), name.clone()), (next.clone(), name.clone())],
        probes: vec![
            rank(&next),
            Request::Latest {
                domain: id.domain,
                partition: id.partition,
                known: None,
            },
        ],
        clients: clients.collect(),
        crashes: 0,
        ticks: 0,
        notes: false,
        speaks: false,
        max_unconfirmed: UNCONFIRMED_ELEMENTS,
        full: Vec::new(),
        fills: Vec::new(),
        digest: Digest::Answers,
        quiet: false,
        judge,
    }
}

/// A write, and a client that moves the domain and reads.
pub(super) fn one() -> Case {
    case(2, 1, &[&["a"], &["M", "R"]])
}

fn become_conditional(c: &Arc<Configuration>, next: &Arc<Configuration>) -> Operation {
    let (c, next) = (c.clone(), next.clone());
    Operation::new("become conditional", Kind::Other, move |client| {
        let (c, next) = (c.clone(), next.clone());
        async move {
            match install(&client, &c, &next).await {
                Ok(TransferOutcome::Complete) => Outcome::Other("has moved the domain".to_owned()),
                Ok(_) => Outcome::Other("finds the domain moved".to_owned()),
                Err(failed) => Outcome::Failed(format!("{failed:?}")),
            }
        }
    })
}

/// What [`areo_core::reconfig::ares`] does, step by step, with one object.
async fn install<E: Env>(
    client: &Client<E>,
    c: &Arc<Configuration>,
    next: &Arc<Configuration>,
) -> Result<TransferOutcome, Unavailable> {
    let env = &client.env;
    sequence::put_config(env, c, &Pointer::pending(next)).await?;
    let moved = transfer::transfer_register(env, c, next, &object()).await?;
    if moved == TransferOutcome::Complete {
        sequence::put_config(env, c, &Pointer::finalized(next)).await?;
        client.sequences().learn(next);
    }
    Ok(moved)
}
