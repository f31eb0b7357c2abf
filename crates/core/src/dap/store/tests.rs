//! Every order of acknowledgements and refusals of a put.

use super::*;
use crate::config::testing::configuration;
use crate::config::{Dap, Descriptor, Options, Thrift};
use crate::element::Value;
use crate::gather::tests::{CallEvent, assignments, explore};
use crate::message::Reply;
use crate::tag::Writer;
use crate::timing;
use bytes::Bytes;

fn tag() -> Tag {
    Tag::first(Writer {
        counter: 1,
        ..Writer::default()
    })
}

fn store(c: &Configuration, holders: &[bool]) -> Store {
    let value = Value::new(Bytes::new(), Bytes::from_static(b"v"));
    let elements = vec![crate::dap::abd::copy_element(&value); c.n()];
    Store::new(c, &Name::user("k").unwrap(), tag(), elements, holders)
}

fn answer(answer: Answer) -> Event {
    Event::Reply(Reply::Access(vec![answer]))
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Does {
    Store,
    Refuse,
    Busy,
    Fenced,
    Vanish,
    StoreLate,
}

fn events(does: Does) -> Vec<Event> {
    match does {
        Does::Store => vec![answer(Answer::Stored)],
        Does::Refuse => vec![answer(Answer::Refused(Refusal::Full))],
        Does::Busy => vec![answer(Answer::Refused(Refusal::Busy))],
        Does::Fenced => vec![answer(Answer::Refused(Refusal::Fenced))],
        Does::Vanish => vec![Event::Unreachable],
        Does::StoreLate => vec![Event::Unreachable, answer(Answer::Stored)],
    }
}

/// Members of which the last thing that happened is this answer.
fn said(happened: &[CallEvent], what: &Answer) -> usize {
    let said =
        |h: &&CallEvent| matches!(h, CallEvent::Event(_, event) if *event == answer(what.clone()));
    happened.iter().filter(said).count()
}

/// True if the time for silent members was over when a member had refused what can be helped.
fn is_late(happened: &[CallEvent]) -> bool {
    let mut ticks = (0..happened.len()).filter(|at| matches!(happened[*at], CallEvent::Tick));
    let refusals = [Refusal::Busy, Refusal::Fenced].map(Answer::Refused);
    ticks.any(|tick| refusals.iter().any(|it| said(&happened[..tick], it) > 0))
}

/// A quorum of acknowledgements and nothing less is a put; members that refuse count as lost, and where some of them only
/// have too many unconfirmed versions the caller is told (`[X-3 unconfirmed-cap]`), as soon as the others are late.
#[test]
fn a_put_is_decided_exactly_when_a_quorum_has_stored() {
    for (n, dap) in [
        (1, Dap::Abd),
        (2, Dap::Abd),
        (3, Dap::Abd),
        (3, Dap::Ec { k: 2 }),
        (4, Dap::Ec { k: 2 }),
    ] {
        let c = configuration(n, dap);
        let quorum = c.quorums().quorum();
        let choices = [
            Does::Store,
            Does::Refuse,
            Does::Busy,
            Does::Fenced,
            Does::Vanish,
            Does::StoreLate,
        ];
        for does in assignments(n, &choices[..if n < 4 { 6 } else { 5 }]) {
            let answers = |position: usize, _: &Body| events(does[position]);
            explore(
                n,
                usize::from(n < 4),
                &|| store(&c, &[]),
                &answers,
                &mut |happened, decision, _| {
                    let stored = said(happened, &Answer::Stored);
                    let refused = said(happened, &Answer::Refused(Refusal::Full));
                    let busy = said(happened, &Answer::Refused(Refusal::Busy));
                    let fenced = said(happened, &Answer::Refused(Refusal::Fenced));
                    let can_be_stored = n - refused - busy - fenced >= quorum;
                    let expected = if stored >= quorum {
                        Decision::Done(Outcome::Stored)
                    } else if can_be_stored && !is_late(happened) {
                        Decision::Pending
                    } else if fenced > n - quorum || (fenced > 0 && stored > 0) {
                        // It is a copy: one member that holds it is enough to read it.
                        let Decision::Done(Outcome::Fenced {
                            readable,
                            responses,
                        }) = decision
                        else {
                            panic!("{does:?}: {happened:?}")
                        };
                        assert_eq!(readable, stored > 0);
                        let acknowledged = |it: &&Response| **it == Response::Answered;
                        assert_eq!(responses.iter().filter(acknowledged).count(), stored);
                        return;
                    } else if busy > 0 {
                        Decision::Done(Outcome::Unconfirmed)
                    } else if can_be_stored {
                        Decision::Pending
                    } else {
                        Decision::Impossible
                    };
                    assert_eq!(decision, expected, "{does:?}: {happened:?}");
                },
            );
        }
    }
}

/// Members that hold the version already count, and are not asked.
#[test]
fn a_write_back_asks_only_who_does_not_hold_the_version() {
    let c = configuration(4, Dap::Ec { k: 2 });
    for holders in assignments(4, &[false, true]) {
        let held = holders.iter().filter(|held| **held).count();
        let mut tally = store(&c, &holders);
        for (position, holds) in holders.iter().enumerate() {
            let body = tally.ask(position);
            assert_eq!(body.is_none(), *holds);
            if let Some(Body::Access(accesses)) = body {
                let (_, access) = &accesses[0];
                assert!(matches!(
                    access,
                    Access::Put {
                        write_back: true,
                        ..
                    }
                ));
            }
        }
        if held >= 3 {
            // A quorum holds it: this only repairs, and does not wait for whoever is silent.
            assert_eq!(tally.patience(), Some(timing::REPAIR_GRACE));
            assert_eq!(tally.tick(), Decision::Done(Outcome::Stored));
            continue;
        }
        assert_eq!(tally.patience(), None);
        let asked: Vec<usize> = (0..4).filter(|position| !holders[*position]).collect();
        for (done, position) in asked.iter().enumerate() {
            let expected = match held + done + 1 >= 3 {
                true => Decision::Done(Outcome::Stored),
                false => Decision::Pending,
            };
            assert_eq!(tally.add(*position, answer(Answer::Stored)), expected);
            if expected != Decision::Pending {
                break;
            }
        }
    }
}

/// `[C-9 no-empty-call]`: a put is no call exactly if there is no member to ask, or a thrifty call may leave all of these out.
#[test]
fn a_put_is_a_call_if_it_asks_a_member() {
    let abd = configuration(3, Dap::Abd);
    let thrifty = Configuration::new(Descriptor {
        options: Options {
            thrift: Thrift::Calls,
            ..Options::default()
        },
        ..abd.descriptor().clone()
    });
    for (c, spares) in [
        (abd, false),
        (configuration(4, Dap::Ec { k: 2 }), false),
        (thrifty.expect("a valid descriptor"), true),
    ] {
        for holders in assignments(c.n(), &[false, true]) {
            let mut tally = store(&c, &holders);
            let is_decided = spares && tally.stored() >= tally.quorum;
            let has_member = (0..c.n()).any(|position| tally.ask(position).is_some());
            let expected = has_member && !is_decided;
            assert_eq!(asks_a_member(&c, &holders), expected, "{holders:?}");
        }
    }
}

/// An acknowledgement stands, whatever a repeated request is answered.
#[test]
fn a_refusal_after_an_acknowledgement_takes_nothing_back() {
    let c = configuration(3, Dap::Abd);
    let mut tally = store(&c, &[]);
    assert_eq!(tally.add(0, answer(Answer::Stored)), Decision::Pending);
    assert_eq!(
        tally.add(0, Event::Refused(Refusal::Full)),
        Decision::Pending
    );
    assert_eq!(
        tally.add(1, Event::Refused(Refusal::Full)),
        Decision::Pending
    );
    assert_eq!(
        tally.add(2, answer(Answer::Stored)),
        Decision::Done(Outcome::Stored)
    );
}

/// A repair waits for the members that lack the version, although there is a quorum without them; and not for ever.
#[test]
fn a_completion_waits_for_those_that_lack_the_version() {
    let c = configuration(3, Dap::Abd);
    let holders = [true, true, false];
    let mut tally = store(&c, &holders).completing();
    assert_eq!(tally.patience(), Some(timing::COMPLETION_PATIENCE));
    assert!(tally.ask(0).is_none() && tally.ask(2).is_some());
    assert_eq!(tally.add(2, Event::Unreachable), Decision::Pending);
    let stored = tally.add(2, answer(Answer::Stored));
    assert_eq!(stored, Decision::Done(Outcome::Stored));
    let mut tally = store(&c, &holders).completing();
    let refused = tally.add(2, answer(Answer::Refused(Refusal::Full)));
    assert_eq!(refused, Decision::Done(Outcome::Stored));
    let mut tally = store(&c, &holders).completing();
    assert_eq!(tally.tick(), Decision::Done(Outcome::Stored));
}
