//! A domain of the kind `abd` becomes conditional beside writes and reads, moves as such, or ceases to be so (`[W-12 becoming-conditional]`,
//! `[W-13 ceasing-to-be-conditional]`). What consensus decides is given; one object is moved, without a listing.

use super::conditional::rank;
use super::{configuration, object, plain};
use crate::explore::judge::history_of;
use crate::explore::{
    Case, Identity, Judge, Kind, ObservedOperation, Operation, Outcome, linearizable,
};
use areo_core::config::{Configuration, Dap, Descriptor, ServerId};
use areo_core::dsm::Client;
use areo_core::env::Env;
use areo_core::error::Unavailable;
use areo_core::message::Request;
use areo_core::pointer::Pointer;
use areo_core::reconfig::sequence;
use areo_core::reconfig::transfer::{self, TransferOutcome};
use areo_core::tag::Tag;
use std::rc::Rc;
use std::sync::Arc;

/// Pauses that an operation makes before it gives up.
const PAUSES: usize = 1;

/// The operations of a client, in order, as [`case`] names them.
pub type Program<'a> = &'a [&'a str];

/// A domain of `n` servers of the first kind moves to `targets` others of the second while clients run their programs: `R` reads, `M`
/// moves the domain, `?x` writes x if the object was never written, anything else writes itself.
pub fn case(
    (n, from): (usize, Dap),
    (targets, to): (usize, Dap),
    programs: &[Program<'_>],
) -> Case {
    let (c, name) = (configuration(n, from), object());
    let servers = 1..=(n + targets) as u128;
    let next = Configuration::new(Descriptor {
        index: 1,
        members: servers.clone().skip(n).map(ServerId).collect(),
        dap: to,
        era: c.era_of_next(to),
        ..c.descriptor().clone()
    })
    .expect("a valid descriptor");
    let operation = |text: &&str| match *text {
        "R" => Operation::read(&c, &name).with_pauses(PAUSES),
        "M" => move_domain(&c, &next).with_pauses(PAUSES),
        text if text.starts_with('?') => {
            Operation::write_on(&c, &name, &text[1..], Tag::INITIAL).with_pauses(PAUSES)
        }
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
    let latest = Request::Latest {
        domain: id.domain,
        partition: id.partition,
        known: None,
    };
    let both = [&c, &next].into_iter();
    let ranks = both.filter(|c| c.dap().is_conditional()).map(rank);
    let mut judge = linearizable();
    // What is held, and where, is the business of the read.
    judge.held = |_, _, _| None;
    Case {
        description: format!("{from} n={n} to {to} n={targets}: {}", parts.join(" || ")),
        bound: "patience runs out only when no answer is to come; notes are lost; an operation gives up at its second pause".to_owned(),
        servers: servers.map(ServerId).collect(),
        configurations: vec![c.clone(), next.clone()],
        subjects: vec![(c.clone(), name.clone()), (next.clone(), name.clone())],
        probes: ranks.chain([latest]).collect(),
        clients: clients.collect(),
        // What was found where the domain was is said in the next configuration only.
        identity: Identity::Recent,
        judge,
        ..plain(&c)
    }
}

/// A write, and a client that moves the domain and reads.
pub(super) fn one() -> Case {
    let conditional = Dap::Conditional { k: 1 };
    case((2, Dap::Abd), (1, conditional), &[&["a"], &["M", "R"]])
}

/// A conditional write, and a client that moves the domain to two other servers and reads.
pub(super) fn stays() -> Case {
    let conditional = Dap::Conditional { k: 1 };
    case((2, conditional), (2, conditional), &[&["?a"], &["M", "R"]])
}

/// Two conditional writers, and a client that moves the domain from one server to two others.
pub(super) fn two() -> Case {
    let conditional = Dap::Conditional { k: 1 };
    case(
        (1, conditional),
        (2, conditional),
        &[&["?a"], &["?b"], &["M"]],
    )
}

/// A conditional write, and a client that ends the domain's time as a conditional one and reads.
pub(super) fn back() -> Case {
    let conditional = Dap::Conditional { k: 1 };
    ceasing(case(
        (2, conditional),
        (1, Dap::Abd),
        &[&["?a"], &["M", "R"]],
    ))
}

/// [`back`] with a write after the move, which a late creation must not cover.
pub(super) fn back_over() -> Case {
    let conditional = Dap::Conditional { k: 1 };
    ceasing(case(
        (2, conditional),
        (1, Dap::Abd),
        &[&["?a"], &["M", "b", "R"]],
    ))
}

/// The outcome of a writer is unknown if it comes to the old configuration when the new one is final, and finds
/// nothing there: it does not hear the fate of its proposal. All other operations end.
fn ceasing(case: Case) -> Case {
    let judge = Judge {
        seen: |observed| failed(observed).or_else(|| history_of(&without_tombstones(observed)).1),
        ..case.judge
    };
    Case { judge, ..case }
}

/// A writer that gives up its proposal may have had a tombstone decided, on an object that was never written. No
/// operation here deletes, so that a read of a tombstone counts as a read of an object that was never written.
fn without_tombstones(observed: &[ObservedOperation]) -> Vec<ObservedOperation> {
    let mut observed = observed.to_vec();
    for of in &mut observed {
        if let Some(Outcome::Read(tag, value)) = &mut of.ended
            && value.as_ref().is_none_or(String::is_empty)
        {
            (*tag, *value) = (Tag::INITIAL, None);
        }
    }
    observed
}

fn failed(observed: &[ObservedOperation]) -> Option<String> {
    observed.iter().find_map(|of| match &of.ended {
        Some(Outcome::Unknown(why)) if is_outrun(of, why) => None,
        Some(ended @ (Outcome::Failed(_) | Outcome::Unknown(_))) => Some(format!(
            "liveness: {} of client {} {ended}",
            of.label, of.client
        )),
        _ => None,
    })
}

fn is_outrun(of: &ObservedOperation, why: &str) -> bool {
    matches!(of.kind, Kind::Conditional(..)) && why.contains("do not say whether")
}

fn move_domain(c: &Arc<Configuration>, next: &Arc<Configuration>) -> Operation {
    let (c, next) = (c.clone(), next.clone());
    Operation::new("move the domain", Kind::Other, move |client| {
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

/// One step after the other of [`areo_core::reconfig`], with one object.
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
