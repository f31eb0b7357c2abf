//! Lattice agreement among the members of a configuration ([`areo_core::consensus::agreement`]): of two decisions one contains the
//! other, and each contains what its proposer brought.

use super::super::{Case, Judge, Kind, ObservedOperation, Operation, Outcome};
use super::{configuration, plain};
use areo_core::config::{Configuration, Dap, Membership, ServerId};
use areo_core::consensus::agreement::{self, AGREEMENT_CELL};
use areo_core::gather::Visit;
use areo_core::message::{Body, CellRequest, Request};
use areo_core::pointer::Successors;
use bytes::Bytes;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The first server that is added.
const FIRST: u128 = 4;

/// Each of two proposers adds a server of its own.
pub(super) fn two() -> Case {
    let c = configuration(3, Dap::Abd);
    let kept = Request::Configured {
        configuration: c.id(),
        descriptor: None,
        successors: Successors::default(),
        body: Body::Cell {
            cell: Bytes::from_static(AGREEMENT_CELL),
            step: CellRequest::Query,
        },
    };
    let program = |added| [propose(&c, added)].into_iter().collect();
    Case {
        description: "lattice agreement n=3: two proposers, each of a server of its own".to_owned(),
        probes: vec![kept],
        clients: (FIRST..FIRST + 2).map(program).collect(),
        judge: Judge {
            seen: comparable,
            held: |_, _, _| None,
        },
        ..plain(&c)
    }
}

/// The production proposal. It ends with the added servers that it decides on.
fn propose(c: &Arc<Configuration>, added: u128) -> Operation {
    let c = c.clone();
    Operation::new(&format!("propose {added}"), Kind::Other, move |client| {
        let c = c.clone();
        async move {
            let first = Membership::first(c.members().iter().copied());
            let own = first.with(ServerId(added));
            match agreement::propose(&client.env, &Visit::new(&c), &own).await {
                Ok(decided) => {
                    let members = decided.members();
                    let added = members.iter().filter(|it| it.0 >= FIRST);
                    let added: Vec<String> = added.map(|it| it.0.to_string()).collect();
                    Outcome::Other(added.join(" "))
                }
                Err(failed) => Outcome::Failed(format!("{failed:?}")),
            }
        }
    })
}

fn comparable(observed: &[ObservedOperation]) -> Option<String> {
    let decided = |of: &ObservedOperation| match &of.ended {
        Some(Outcome::Other(added)) => {
            let added: BTreeSet<String> = added.split(' ').map(ToOwned::to_owned).collect();
            Some((of.label.clone(), added))
        }
        _ => None,
    };
    let decisions: Vec<_> = observed.iter().filter_map(decided).collect();
    for (label, one) in &decisions {
        let own = label.rsplit(' ').next().expect("a label has a word");
        if !one.contains(own) {
            return Some(format!("decisions_are_comparable: {label} decides {one:?}"));
        }
        let beside =
            |(_, other): &&(_, BTreeSet<String>)| !one.is_subset(other) && !other.is_subset(one);
        if let Some((_, other)) = decisions.iter().find(beside) {
            let sentence = format!("decisions_are_comparable: {one:?} and {other:?} are decided");
            return Some(sentence);
        }
    }
    None
}
