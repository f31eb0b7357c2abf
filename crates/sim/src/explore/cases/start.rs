//! Starts of a member of the root domain from a directory that is not the only one, or not the latest (decision records 0002
//! and 0017).

use super::super::{Case, Judge, Kind, ObservedOperation, Operation, Outcome};
use super::{configuration, plain};
use areo_core::config::{Configuration, Dap, ServerId};
use areo_core::manager::StartOutcome;
use areo_core::message::{Body, Labels, Levels, Program, Request, ServerRecord};
use areo_core::pointer::Successors;
use areo_core::starts::{StartPhase, Starts};
use std::convert::Infallible;
use std::sync::Arc;

/// The member that starts.
const STARTING: ServerId = ServerId(1);
/// Result of an operation whose start is confirmed.
const CONFIRMED: &str = "its start is confirmed";
/// The starts recorded in the directory: the server has been started once.
const STARTED_ONCE: Starts = Starts {
    incarnation: 1,
    unconfirmed: None,
};

/// Server 1 registered its second start at itself and server 3. Its disk is put back: server 3 alone knows better, and
/// two of the three, the starting one among them, do not.
pub(super) fn rolled_back() -> Case {
    let second = Request::Know(record(2, 77));
    Case {
        description: "abd n=3: server 1 starts with its directory from before its last start, which server 3 alone knows of"
            .to_owned(),
        before: vec![(ServerId(3), second)],
        judge: Judge {
            seen: |observed| (confirmed(observed) > 0).then(|| "copies_never_serve: it is confirmed, although a member that knows better is in reach".to_owned()),
            held: |_, _, _| None,
        },
        ..case(1)
    }
}

/// Two processes start with the same directory: one of them with a copy.
pub(super) fn copied() -> Case {
    Case {
        description: "abd n=3: two processes start with copies of one directory".to_owned(),
        judge: Judge {
            seen: |observed| {
                (confirmed(observed) > 1)
                    .then(|| "copies_never_serve: both are confirmed".to_owned())
            },
            held: |_, _, _| None,
        },
        ..case(2)
    }
}

/// The directory is older than the last start, as in [`rolled_back`], and servers exchange their records of starts
/// meanwhile: two of the three have not heard of server 1's latest start yet.
pub(super) fn told() -> Case {
    let before = [(1, 1), (1, 2), (2, 2), (3, 3)];
    let know = |(at, of): (u128, u128)| {
        let record = ServerRecord {
            id: ServerId(of),
            ..record(1, 50)
        };
        (ServerId(at), Request::Know(record))
    };
    Case {
        description: "abd n=3: two processes start with copies of one directory, while servers say that they serve"
            .to_owned(),
        before: before.map(know).into(),
        speaks: true,
        ..copied()
    }
}

fn case(processes: usize) -> Case {
    let c = configuration(3, Dap::Abd);
    let program = |_| [start(&c)].into_iter().collect();
    let registered = Request::Configured {
        configuration: c.id(),
        descriptor: None,
        successors: Successors::default(),
        body: Body::Servers,
    };
    Case {
        probes: vec![registered],
        clients: (0..processes).map(program).collect(),
        ..plain(&c)
    }
}

fn record(incarnation: u64, start: u64) -> ServerRecord {
    ServerRecord {
        id: STARTING,
        incarnation,
        start,
        resumed: false,
        name: String::new(),
        address: String::new(),
        admin: String::new(),
        generation: None,
        leaving: 0,
        position: None,
        program: Program::default(),
        levels: Levels::default(),
        labels: Labels::default(),
    }
}

/// A start by the production code.
fn start(c: &Arc<Configuration>) -> Operation {
    let c = c.clone();
    Operation::new("start", Kind::Other, move |client| {
        let c = c.clone();
        async move {
            let mut starting = StartPhase::new(STARTED_ONCE);
            let write = |_| Ok::<(), Infallible>(());
            let started = client
                .root(&c)
                .start(&mut starting, &record(0, 0), write, async |_| false)
                .await;
            Outcome::Other(match started {
                Ok(StartOutcome::Confirmed(_)) => CONFIRMED.to_owned(),
                Ok(refused) => format!("its start is refused: {refused:?}"),
                Err(error) => format!("its start fails: {error:?}"),
            })
        }
    })
}

fn confirmed(observed: &[ObservedOperation]) -> usize {
    let is_confirmed = |of: &&ObservedOperation| matches!(&of.ended, Some(Outcome::Other(how)) if how == CONFIRMED);
    observed.iter().filter(is_confirmed).count()
}
