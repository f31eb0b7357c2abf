//! Lattice agreement among the members of a configuration ([`areo_core::consensus::agreement`]), and their speculating snapshot
//! ([`areo_core::consensus::speculating`]): of two decisions one contains the other, and each contains what its proposer brought. A leader
//! ([`areo_core::consensus::leader`]): there is one decision. Their weak snapshot ([`areo_core::consensus::snapshot`]): of what two operations
//! collect one contains the other.

use super::super::{Case, ExploreEnv, Judge, Kind, ObservedOperation, Operation, Outcome};
use super::{configuration, plain};
use areo_core::config::{Configuration, Dap, Decider, Descriptor, Membership, ServerId};
use areo_core::consensus::agreement::AGREEMENT_CELL;
use areo_core::consensus::{SUCCESSOR_CELL, leader, merging, paxos, speculating};
use areo_core::dsm::Client;
use areo_core::error::CallError;
use areo_core::gather::Visit;
use areo_core::message::{Ballot, Body, CellRequest, Request};
use areo_core::pointer::{Pointer, Successors};
use areo_core::reconfig::sequence;
use areo_core::tag::{ClientId, Writer};
use bytes::Bytes;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The first server that is added.
const FIRST: u128 = 4;
/// The server that the handed-on proposal adds, and below the server that is proposed afterwards.
const HANDED: u128 = 6;
const LATE: u128 = 7;
/// Stands for no server: a helper and a hand-on add none of their own.
const NOTHING: u128 = 0;

/// Each of two proposers adds a server of its own.
pub(super) fn two() -> Case {
    let c = configuration(3, Dap::Abd);
    let program = |added| [operation(&c, added, propose)].into_iter().collect();
    Case {
        description: "lattice agreement n=3: two proposers, each of a server of its own".to_owned(),
        probes: vec![kept(&c, Bytes::from_static(AGREEMENT_CELL))],
        clients: (FIRST..FIRST + 2).map(program).collect(),
        ..merged(&c)
    }
}

/// Reconfigurers of a coded domain, which announce their decision unless a member shows a successor: lattice
/// agreement and announcements meet at the quorums of the code.
pub(super) fn announced() -> Case {
    let plain = configuration(4, Dap::Ec { k: 2 });
    let first = Membership::first(plain.members().iter().copied()).with_slots();
    let c = Configuration::new(Descriptor {
        lattice: Some(first),
        decided_by: Decider::Agreement,
        ..plain.descriptor().clone()
    })
    .expect("a valid descriptor");
    let establish = |client: Client<ExploreEnv>, c: Arc<Configuration>, own: Membership| async move {
        let (env, at) = (&client.env, &Visit::new(&c));
        let decided = merging::propose(env, at, &own).await?;
        if at.is_last() {
            sequence::put_config(env, &c, &to(&c, &decided)).await?;
        }
        Ok(decided)
    };
    let program = |added| [operation(&c, added, establish)].into_iter().collect();
    Case {
        description: "SM of ec n=4 k=2: two reconfigurers, each with a server of its own"
            .to_owned(),
        probes: vec![
            kept(&c, Bytes::from_static(AGREEMENT_CELL)),
            request(&c, Body::ReadConfig),
        ],
        clients: (FIRST + 1..FIRST + 3).map(program).collect(),
        ..merged(&c)
    }
}

/// A proposal by the production client.
async fn propose(
    client: Client<ExploreEnv>,
    c: Arc<Configuration>,
    own: Membership,
) -> Result<Membership, CallError> {
    merging::propose(&client.env, &Visit::new(&c), &own).await
}

/// The reaction of a helper, which has no proposal of its own, to the proposals that it sees in the first round.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Helper {
    /// The published reaction: it carries them into the next round; no proposer of the first round learns of that.
    Published,
    /// It proposes them in this round (`[R-23 propose-first]`).
    Proposing,
}

/// Rounds in which something is proposed.
const ROUNDS: u32 = 4;

/// Two proposers each add a server of their own. A third one died when one member had its proposal; a helper sees the
/// proposals.
pub fn speculating(helper: Helper) -> Case {
    let c = speculating_three();
    let help = move |client: Client<ExploreEnv>, c: Arc<Configuration>, first: Membership| async move {
        let (env, at) = (&client.env, &Visit::new(&c));
        match (speculating::read_round(env, at, 0).await?, helper) {
            (None, _) => Ok(first),
            (Some(seen), Helper::Proposing) => merging::propose(env, at, &seen).await,
            (Some(seen), Helper::Published) => speculating::propose_from(env, at, 1, &seen).await,
        }
    };
    let clients = [
        operation(&c, FIRST + 1, propose),
        operation(&c, NOTHING, help),
    ];
    Case {
        description: format!(
            "speculating snapshot n=3: two proposers, of which one is dead, and a helper; {helper:?}"
        ),
        before: vec![dead(&c)],
        probes: rounds(&c),
        clients: clients.map(|of| [of].into_iter().collect()).into(),
        ..merged(&c)
    }
}

/// A reconfigurer died when one member had its write; two others write, and collect (`[R-22 collect-again]`). Their
/// results stand for the successors that they go on to: each of them adds one server.
pub(super) fn snapshot() -> Case {
    let c = three(Decider::Snapshot);
    let update = |client: Client<ExploreEnv>, c: Arc<Configuration>, own: Membership| async move {
        let mut known = Successors::from(&to(&c, &own));
        sequence::spread(&client.env, &Visit::new(&c), &mut known).await?;
        let memberships = known.iter().map(|it| membership(&it.configuration));
        Ok(memberships.fold(own, |all, it| all.join(&it)))
    };
    let written = Request::Configured {
        configuration: c.id(),
        descriptor: None,
        successors: Successors::from(&to(&c, &added(&c, FIRST))),
        body: Body::ReadConfig,
    };
    let program = |server| [operation(&c, server, update)].into_iter().collect();
    Case {
        description: "weak snapshot n=3: two reconfigurers, and a third one that is dead"
            .to_owned(),
        before: vec![(c.members()[0], written)],
        probes: vec![request(&c, Body::ReadConfig)],
        clients: (FIRST + 1..FIRST + 3).map(program).collect(),
        ..merged(&c)
    }
}

/// A pending pointer to the successor of this membership.
fn to(c: &Configuration, membership: &Membership) -> Pointer {
    let next = c.with_membership(membership.clone());
    Pointer::pending(&next.expect("a valid change"))
}

fn membership(c: &Configuration) -> Membership {
    let membership = c.descriptor().lattice.clone();
    membership.expect("of a lattice")
}

/// A client hands on a decision of an earlier configuration and then proposes another server, beside a second
/// proposer. A third proposer died when one member had its proposal.
pub(super) fn handed_on() -> Case {
    let c = speculating_three();
    let hand_on = |client: Client<ExploreEnv>, c: Arc<Configuration>, nothing| async move {
        let (at, handed) = (Visit::new(&c), added(&c, HANDED));
        let handed = merging::hand_on(&client.env, &at, &handed).await;
        handed.map(|()| nothing)
    };
    let clients = [
        vec![
            operation(&c, NOTHING, hand_on),
            operation(&c, LATE, propose),
        ],
        vec![operation(&c, FIRST + 1, propose)],
    ];
    Case {
        description:
            "speculating snapshot n=3: something is handed on, then a proposal || a proposal"
                .to_owned(),
        before: vec![dead(&c)],
        probes: rounds(&c),
        clients: clients.map(|of| of.into_iter().collect()).into(),
        ..merged(&c)
    }
}

/// The owner of ballot 0 beside a proposer that asks for promises: they decide the same (`[R-11 owned-ballot]`).
pub(super) fn led() -> Case {
    let owner = Writer {
        client: ClientId(1),
        counter: 1,
    };
    let c = three(Decider::Leader { owner });
    let lead = move |client: Client<ExploreEnv>, c: Arc<Configuration>, own: Membership| async move {
        let (at, value) = (Visit::new(&c), own.encode());
        let cell = Bytes::from_static(SUCCESSOR_CELL);
        let decided = paxos::propose_as_owner(&client.env, &at, &cell, &value, owner).await?;
        Ok(decided.map_or_else(|| added(&c, NOTHING), |it| decoded(&it)))
    };
    let follow = |client: Client<ExploreEnv>, c: Arc<Configuration>, own: Membership| async move {
        let (at, value) = (Visit::new(&c), own.encode());
        let writer = || client.next_writer();
        let decided = leader::propose(&client.env, &at, &value, None, writer).await?;
        Ok(decoded(&decided.expect("no successor is known")))
    };
    let clients = [operation(&c, FIRST, lead), operation(&c, FIRST + 1, follow)];
    Case {
        description: "a leader n=3: the owner of ballot 0 || a proposer".to_owned(),
        probes: acceptor(&c),
        clients: clients.map(|of| [of].into_iter().collect()).into(),
        judge: Judge {
            seen: equal,
            held: |_, _, _| None,
        },
        ..plain(&c)
    }
}

/// Requests whose answers show what an acceptor has accepted and promised.
fn acceptor(c: &Arc<Configuration>) -> Vec<Request> {
    let cell = Bytes::from_static(SUCCESSOR_CELL);
    let ballot = Ballot::default();
    let promised = Body::Cell {
        cell: cell.clone(),
        step: CellRequest::Prepare { ballot },
    };
    vec![kept(c, cell), request(c, promised)]
}

fn decoded(membership: &[u8]) -> Membership {
    Membership::decode(membership).expect("only memberships are proposed")
}

/// Three servers of a lattice whose changes a speculating snapshot merges.
fn speculating_three() -> Arc<Configuration> {
    three(Decider::Speculation)
}

fn three(decided_by: Decider) -> Arc<Configuration> {
    let plain = configuration(3, Dap::Abd);
    Configuration::new(Descriptor {
        lattice: Some(Membership::first(plain.members().iter().copied())),
        decided_by,
        ..plain.descriptor().clone()
    })
    .expect("a valid descriptor")
}

/// A proposal that one member has, of a proposer that died.
fn dead(c: &Arc<Configuration>) -> (ServerId, Request) {
    let body = Body::Cell {
        cell: speculating::round_cell(0),
        step: CellRequest::Join(added(c, FIRST).encode()),
    };
    (c.members()[0], request(c, body))
}

fn rounds(c: &Arc<Configuration>) -> Vec<Request> {
    let cell = |round| kept(c, speculating::round_cell(round));
    (0..ROUNDS).map(cell).collect()
}

/// A query of a cell.
fn kept(c: &Arc<Configuration>, cell: Bytes) -> Request {
    let step = CellRequest::Query;
    request(c, Body::Cell { cell, step })
}

fn request(c: &Arc<Configuration>, body: Body) -> Request {
    Request::Configured {
        configuration: c.id(),
        descriptor: None,
        successors: Successors::default(),
        body,
    }
}

/// The common part of these cases: members merge changes.
fn merged(c: &Arc<Configuration>) -> Case {
    Case {
        judge: Judge {
            seen: comparable,
            held: |_, _, _| None,
        },
        ..plain(c)
    }
}

/// An operation that proposes to add `server` to the configuration's servers. It ends with the added servers that are
/// decided.
fn operation<F>(
    c: &Arc<Configuration>,
    server: u128,
    propose: impl Fn(Client<ExploreEnv>, Arc<Configuration>, Membership) -> F + Clone + 'static,
) -> Operation
where
    F: Future<Output = Result<Membership, CallError>> + 'static,
{
    let c = c.clone();
    Operation::new(&format!("propose {server}"), Kind::Other, move |client| {
        let proposed = propose(client, c.clone(), added(&c, server));
        async move {
            match proposed.await {
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

fn added(c: &Configuration, server: u128) -> Membership {
    let of_lattice = c.descriptor().lattice.clone();
    let first = of_lattice.unwrap_or_else(|| Membership::first(c.members().iter().copied()));
    let first = first.settled();
    match server {
        NOTHING => first,
        server => first.with(ServerId(server)),
    }
}

/// The label of each operation, and the servers that its decision adds.
fn decisions(observed: &[ObservedOperation]) -> Vec<(String, BTreeSet<String>)> {
    let decided = |of: &ObservedOperation| match &of.ended {
        Some(Outcome::Other(added)) => {
            let added = added.split(' ').filter(|it| !it.is_empty());
            let added: BTreeSet<String> = added.map(ToOwned::to_owned).collect();
            Some((of.label.clone(), added))
        }
        _ => None,
    };
    observed.iter().filter_map(decided).collect()
}

/// An owner that is refused decides nothing.
fn equal(observed: &[ObservedOperation]) -> Option<String> {
    let decisions = decisions(observed);
    let decided = decisions.iter().map(|(_, one)| one);
    let mut decided = decided.filter(|one| !one.is_empty());
    let first = decided.next()?;
    let other = decided.find(|other| *other != first)?;
    Some(format!("one_is_decided: {first:?} and {other:?} are"))
}

fn comparable(observed: &[ObservedOperation]) -> Option<String> {
    let decisions = decisions(observed);
    for (label, one) in &decisions {
        let own = label.rsplit(' ').next().expect("a label has a word");
        if own != NOTHING.to_string() && !one.contains(own) {
            return Some(format!("decisions_are_comparable: {label} decides {one:?}"));
        }
        if one.contains(&LATE.to_string()) && !one.contains(&HANDED.to_string()) {
            return Some(format!("agreement_moves: {label} decides {one:?}"));
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
