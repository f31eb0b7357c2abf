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

/// The last answer of a member.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Says {
    Accepted,
    /// It has promised a larger ballot, and accepted nothing at this one.
    NeverAccepts,
    /// It has promised a larger ballot, and may have accepted this before.
    Refuses,
    /// It lists as many versions as it may.
    Full,
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
        Says::Full => Answer::Refused(Refusal::Busy),
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
        Says::Full,
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
                Some(Decision::Done(AcceptOutcome::Again)) => {
                    assert!(count(Says::Accepted) < quorum, "{run}");
                    assert!(count(Says::Full) > 0, "{run}");
                }
                Some(other) => panic!("{run}: {other:?}"),
                None => {
                    let refused = [Says::NeverAccepts, Says::Refuses, Says::Full];
                    let refuses: usize = refused.into_iter().map(count).sum();
                    assert!(refuses == 0, "{run}: it waits for ever");
                }
            }
        }
    }
}

/// One member has accepted, one is full, and the third is away: an attempt that waits for the third one waits as long as that is away.
#[test]
fn a_full_member_is_not_waited_for_beside_one_that_is_away() {
    let c = configuration(3, Dap::Conditional { k: 1 });
    let name = Name::user("k").expect("a valid key");
    for away in [
        Event::Unreachable,
        event(Says::Accepted).expect("an answer"),
    ] {
        let is_away = away == Event::Unreachable;
        let mut tally = Accept::new(&c, &name, proposal(false), vec![None; 3]);
        for says in [(0, Says::Accepted), (1, Says::Full)] {
            let event = event(says.1).expect("an answer");
            assert_eq!(tally.add(says.0, event), Decision::Pending, "{says:?}");
        }
        assert_eq!(tally.patience(), Some(timing::REFUSAL_GRACE));
        let ended = match tally.add(2, away) {
            Decision::Pending => tally.tick(),
            decision => decision,
        };
        let outcome = match is_away {
            true => AcceptOutcome::Again,
            false => AcceptOutcome::Chosen,
        };
        assert_eq!(ended, Decision::Done(outcome));
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
