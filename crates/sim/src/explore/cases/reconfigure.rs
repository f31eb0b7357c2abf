//! One write, one reconfiguration and one read after it, in every order (`docs/spec` 3.5 item 1, `[A-8 closed-get]`): the
//! domain moves from its servers to one more. What consensus decides is given; what it decides is the same for
//! everybody, so that nothing is left out by that. One object is moved, without a listing.

use super::{configuration, object, plain};
use crate::explore::{Case, Operation, Outcome, linearizable};
use areo_core::config::{Configuration, Dap, Descriptor, ServerId};
use areo_core::dap::{self, PutError, Scope};
use areo_core::dsm::Client;
use areo_core::env::Env;
use areo_core::error::CallError;
use areo_core::gather::Visit;
use areo_core::message::Request;
use areo_core::object::Name;
use areo_core::pointer::Pointer;
use areo_core::reconfig::sequence;
use std::rc::Rc;
use std::sync::Arc;

/// The way to read the old configuration.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Transfer {
    /// Any quorum answers, as published.
    Open,
    /// Only servers that know the new configuration answer.
    Closing,
}

/// A write beside a reconfiguration after which the same client reads.
pub fn case(dap: Dap, n: usize, transfer: Transfer) -> Case {
    let (c, name) = (configuration(n, dap), object());
    let last = n as u128 + 1;
    let next = Configuration::new(Descriptor {
        index: 1,
        members: vec![ServerId(last)],
        dap: Dap::Abd,
        ..c.descriptor().clone()
    })
    .expect("a valid descriptor");
    let move_and_read: Rc<[Operation]> = Rc::new([
        reconfigure(&c, &next, &name, transfer),
        Operation::read(&c, &name),
    ]);
    let id = c.id();
    let mut judge = linearizable();
    // What is held, and where, is the business of the read.
    judge.held = |_, _, _| None;
    Case {
        description: format!(
            "{dap} n={n} to abd n=1: a || reconfigure then R; {transfer:?} transfer"
        ),
        bound: "patience runs out only when no answer is to come; notes are lost".to_owned(),
        servers: (1..=last).map(ServerId).collect(),
        configurations: vec![c.clone(), next.clone()],
        subjects: vec![(c.clone(), name.clone()), (next, name.clone())],
        probes: vec![Request::Latest {
            domain: id.domain,
            partition: id.partition,
            known: None,
        }],
        clients: vec![Rc::new([Operation::write(&c, &name, "a")]), move_and_read],
        judge,
        ..plain(&c)
    }
}

/// A move by two reconfigurers, of which the second wants the same and may find the domain moved half way.
pub fn two(n: usize, transfer: Transfer) -> Case {
    let case = case(Dap::Abd, n, transfer);
    let [c, next] = &case.configurations[..] else {
        unreachable!("there are two");
    };
    let other = reconfigure(c, next, &object(), transfer);
    let mut clients = case.clients.clone();
    clients.push(Rc::new([other]));
    Case {
        description: format!("{}; another reconfigures, too", case.description),
        clients,
        ..case
    }
}

fn reconfigure(
    c: &Arc<Configuration>,
    next: &Arc<Configuration>,
    name: &Name,
    transfer: Transfer,
) -> Operation {
    let (c, next, name) = (c.clone(), next.clone(), name.clone());
    Operation::new("reconfigure", super::super::Kind::Other, move |client| {
        let (c, next, name) = (c.clone(), next.clone(), name.clone());
        async move {
            match install(&client, &c, &next, &name, transfer).await {
                Ok(()) => Outcome::Other("has moved the domain".to_owned()),
                Err(CallError::Moved) => Outcome::Other("finds the domain moved".to_owned()),
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
    name: &Name,
    transfer: Transfer,
) -> Result<(), CallError> {
    let env = &client.env;
    let pointer = Pointer::pending(next);
    sequence::put_config(env, c, &pointer).await?;
    let at = match transfer {
        Transfer::Open => Visit::new(c),
        Transfer::Closing => Visit::closing(c, &pointer),
    };
    let found = dap::get_data(env, &at, name, None, Scope::Whole).await?;
    if let Some(value) = &found.value {
        let holders = vec![false; next.n()];
        let to = Visit::new(next);
        match dap::put_data(env, &to, name, found.tag, value, &holders).await {
            Ok(()) => {}
            Err(PutError::Failed(failed)) => return Err(failed),
            Err(PutError::Unconfirmed | PutError::Fenced { .. } | PutError::Closed) => {
                unreachable!("there is one version")
            }
        }
    }
    sequence::put_config(env, c, &Pointer::finalized(next)).await?;
    client.sequences().learn(next);
    Ok(())
}
