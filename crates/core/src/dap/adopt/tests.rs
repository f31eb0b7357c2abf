//! Every order of what members say to an adoption.

use super::*;
use crate::config::Dap;
use crate::config::testing::configuration;
use crate::gather::tests::{CallEvent, assignments, explore};
use crate::message::{Refusal, Reply};

#[derive(Clone, Copy, PartialEq, Debug)]
enum Does {
    Hold,
    Need,
    Refuse,
    Vanish,
    HoldLate,
}

fn answer(answer: Answer) -> Event {
    Event::Reply(Reply::Access(vec![answer]))
}

fn events(does: Does) -> Vec<Event> {
    match does {
        Does::Hold => vec![answer(Answer::Stored)],
        Does::Need => vec![answer(Answer::Needed)],
        Does::Refuse => vec![Event::Refused(Refusal::Full)],
        Does::Vanish => vec![Event::Unreachable],
        Does::HoldLate => vec![Event::Unreachable, answer(Answer::Stored)],
    }
}

fn adopt(n: usize, late: &[bool]) -> Adopt {
    let c = configuration(n, Dap::Abd);
    Adopt {
        name: Name::user("k").unwrap(),
        tag: Tag::INITIAL,
        quorum: c.quorums().quorum(),
        said: vec![None; n],
        late: late.to_vec(),
    }
}

/// Holders are exactly those that said so, and nothing is decided before a quorum has spoken; then only members that may
/// still answer are waited for, and only until time passes.
#[test]
fn who_acknowledges_holds_it_and_nobody_else() {
    use Does::{Hold, HoldLate, Need, Refuse, Vanish};
    for n in [1, 3, 4] {
        for does in assignments(n, &[Hold, Need, Refuse, Vanish, HoldLate]) {
            let answers = |position: usize, _: &Body| events(does[position]);
            explore(
                n,
                1,
                &|| adopt(n, &vec![false; n]),
                &answers,
                &mut |happened, decision, _| {
                    let last = |position| {
                        let of = |h: &&CallEvent| matches!(h, CallEvent::Event(from, _) if *from == position);
                        match happened.iter().rfind(of) {
                            Some(CallEvent::Event(_, event)) => Some(event.clone()),
                            _ => None,
                        }
                    };
                    let events: Vec<Option<Event>> = (0..n).map(last).collect();
                    let spoke = |event: &Option<Event>| {
                        matches!(event, Some(Event::Reply(_) | Event::Refused(_)))
                    };
                    let spoken = events.iter().filter(|event| spoke(event)).count();
                    let all = events.iter().all(Option::is_some);
                    let ticked = happened.last() == Some(&CallEvent::Tick);
                    let due = spoken > n / 2 && (all || ticked);
                    match decision {
                        Decision::Done(holders) => {
                            assert!(due, "{does:?} {happened:?}");
                            let held = |event| event == Some(answer(Answer::Stored));
                            let expected: Vec<bool> = events.into_iter().map(held).collect();
                            assert_eq!(holders, expected, "{does:?} {happened:?}");
                        }
                        Decision::Pending => assert!(!due, "{does:?} {happened:?}"),
                        other => panic!("{other:?}"),
                    }
                },
            );
        }
    }
}

#[test]
fn a_slow_member_is_not_waited_for() {
    let mut adopt = adopt(3, &[false, false, true]);
    assert_eq!(adopt.add(0, answer(Answer::Stored)), Decision::Pending);
    let decided = adopt.add(1, answer(Answer::Needed));
    assert_eq!(decided, Decision::Done(vec![true, false, false]));
}
