use super::*;
use crate::config::Dap;
use crate::config::testing::configuration;
use crate::message::{ChosenVersion, Lineage, RankedVersions, Reply};
use crate::tag::{ClientId, Tag, Writer};

fn ballot(number: u64) -> Ballot {
    let proposer = Writer::default();
    Ballot { number, proposer }
}

fn proposal(settles: bool) -> Proposal {
    let writer = Writer {
        client: ClientId(1),
        counter: 1,
    };
    Proposal {
        ballot: ballot(5),
        tag: Tag { number: 2, writer },
        element: None,
        lineage: Lineage::default(),
        settles,
        base_chosen: false,
    }
}

/// What a member says in the end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Says {
    Accepted,
    /// It has promised a larger ballot, and accepted nothing at this one.
    NeverAccepts,
    /// It has promised a larger ballot, and may have accepted this before.
    Refuses,
    Nothing,
}

fn event(says: Says) -> Option<Event> {
    let refused = |chosen: u64| {
        let ballot = ballot(chosen);
        Answer::Ranked(Box::new(RankedVersions {
            promised: self::ballot(9),
            chosen: ChosenVersion {
                ballot,
                ..ChosenVersion::default()
            },
            ..RankedVersions::default()
        }))
    };
    let answer = match says {
        Says::Accepted => Answer::Stored,
        Says::NeverAccepts => refused(4),
        Says::Refuses => refused(6),
        Says::Nothing => return None,
    };
    Some(Event::Reply(Reply::Access(vec![answer])))
}

/// All ways in which members answer, in all orders that rotate them. A version is void only if too few members are left that
/// may list it ever, for a proposer to find it; and where all say enough no time is to pass before it is.
#[test]
fn a_version_is_void_only_if_no_proposer_finds_it() {
    let shapes = [(1, 1), (2, 1), (3, 1), (4, 1), (4, 2), (5, 1), (5, 3)];
    let kinds = [
        Says::Accepted,
        Says::NeverAccepts,
        Says::Refuses,
        Says::Nothing,
    ];
    for (n, k) in shapes {
        let c = configuration(n, Dap::Conditional { k });
        let name = Name::user("k").expect("a valid key");
        let (quorum, intersection) = (c.quorums().quorum(), c.quorums().intersection());
        for code in 0..kinds.len().pow(n as u32 + 1) {
            let said = |at: usize| kinds[code / kinds.len().pow(at as u32) % kinds.len()];
            let (first, settles) = (code % n, said(n) == Says::Accepted);
            let mut tally = Accept::new(&c, &name, proposal(settles), vec![None; n]);
            let order = (0..n).map(|at| (first + at) % n);
            let mut decided = order
                .filter_map(|at| event(said(at)).map(|event| (at, event)))
                .map(|(at, event)| tally.add(at, event))
                .find(|decision| *decision != Decision::Pending);
            let is_early = decided.is_some();
            decided = decided.or_else(|| tally.patience().map(|_| tally.tick()));
            let count = |says: Says| (0..n).filter(|at| said(*at) == says).count();
            let run = format!("n={n} k={k} code={code}: {decided:?}");
            match decided {
                Some(Decision::Done(AcceptOutcome::Chosen)) => {
                    assert!(count(Says::Accepted) >= quorum, "{run}");
                }
                Some(Decision::Done(AcceptOutcome::Void(_))) => {
                    assert!(n - count(Says::NeverAccepts) < intersection, "{run}");
                    assert!(!settles && is_early, "{run}");
                }
                Some(Decision::Done(AcceptOutcome::Overtaken(_))) => {
                    assert!(count(Says::Accepted) < quorum, "{run}");
                    let may_list = n - count(Says::NeverAccepts);
                    assert!(settles || may_list >= intersection, "{run}");
                }
                Some(other) => panic!("{run}: {other:?}"),
                None => {
                    let refuses = count(Says::NeverAccepts) + count(Says::Refuses);
                    assert!(refuses == 0, "{run}: it waits for ever");
                }
            }
        }
    }
}

#[test]
fn who_has_accepted_something_since_may_have_accepted_it_before() {
    let shows = |promised: u64, chosen: u64, listed: Option<u64>| {
        let version = |number: u64| crate::message::RankedVersion {
            tag: proposal(false).tag,
            ballot: ballot(number),
            form: crate::element::Form::Copy,
            deleted: false,
            lineage: Lineage::default(),
        };
        let chosen = ChosenVersion {
            ballot: ballot(chosen),
            ..ChosenVersion::default()
        };
        let shown = RankedVersions {
            promised: ballot(promised),
            versions: listed.into_iter().map(version).collect(),
            chosen,
            ..RankedVersions::default()
        };
        shown.never_accepts(ballot(5))
    };
    assert!(shows(6, 4, Some(4)) && shows(6, 0, None));
    assert!(!shows(5, 4, None), "it may accept it yet");
    for since in [5, 6] {
        assert!(!shows(6, since, None) && !shows(6, 4, Some(since)));
    }
}
