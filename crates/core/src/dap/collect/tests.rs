//! Every order in which members can answer a get-data, for small configurations: never a decision before a quorum of
//! answers, never given up while a quorum can come, and always the newest complete version.

use super::*;
use crate::config::Dap;
use crate::config::testing::configuration;
use crate::element::Value;
use crate::gather::tests::{CallEvent, assignments, count, explore};
use crate::message::Reply;
use crate::tag::Writer;
use bytes::Bytes;

fn tag(number: u64) -> Tag {
    Tag {
        number,
        writer: Writer {
            counter: number,
            ..Writer::default()
        },
    }
}

fn name() -> Name {
    Name::user("k").unwrap()
}

/// The elements of version `number`, one for each member: even versions are small enough for copies, odd ones are
/// coded.
fn elements(c: &Arc<Configuration>, number: u64) -> Vec<Element> {
    let length = if number.is_multiple_of(2) { 8 } else { 100 };
    let content = Bytes::from(vec![number as u8; length]);
    let value = Value::new(Bytes::new(), content);
    crate::dap::elements(c, &name(), &value)
}

/// The end of one sequence of events; `None` if there was no decision.
type End = Option<Decision<Outcome>>;

/// Members that hold versions, and their reactions to requests.
struct Members {
    c: Arc<Configuration>,
    /// For each member the numbers of the versions that it holds, ascending.
    hold: Vec<Vec<u64>>,
    does: Vec<Does>,
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Does {
    Answer,
    Refuse,
    Vanish,
    AnswerLate,
    /// Answers the query, and then nothing.
    Stall,
    /// Answers the query, and then finds that the element is damaged.
    Damaged,
    /// Answers the query, and has evicted the element when it is fetched.
    Evict,
}

impl Members {
    fn answer(&self, position: usize, body: &Body) -> Vec<Event> {
        let Body::Access(accesses) = body else {
            panic!("a get-data accesses an object")
        };
        let does = self.does[position];
        let reply = |answer| Event::Reply(Reply::Access(vec![answer]));
        let element = |number: u64| elements(&self.c, number)[position].clone();
        match (&accesses[0].1, does) {
            (_, Does::Refuse) => vec![Event::Refused(Refusal::Full)],
            (_, Does::Vanish) => vec![Event::Unreachable],
            (Access::Query { want, have, .. }, _) => {
                let form = |number: &u64| (tag(*number), element(*number).form);
                let newest = self.hold[position].last().copied();
                let newest = newest.filter(|number| tag(*number) > *have);
                let sent = newest.filter(|number| match want {
                    Want::Element => true,
                    Want::Fragment => element(*number).form != Form::Copy,
                    Want::Tags | Want::Metadata => false,
                });
                let held = reply(Answer::Held(HeldVersions {
                    stored: self.hold[position].iter().map(form).collect(),
                    element: sent.map(|number| (tag(number), ReplyElement::Whole(element(number)))),
                    ..HeldVersions::default()
                }));
                let late = (does == Does::AnswerLate).then_some(Event::Unreachable);
                late.into_iter().chain([held]).collect()
            }
            (Access::Fetch { tag: wanted, .. }, _) => match does {
                Does::Stall => vec![],
                Does::Damaged => vec![reply(Answer::Refused(Refusal::Damaged))],
                Does::Evict => vec![reply(Answer::Evicted)],
                _ => {
                    assert!(
                        self.hold[position].contains(&wanted.number),
                        "only holders are asked"
                    );
                    let element = ReplyElement::Whole(element(wanted.number));
                    vec![reply(Answer::Fetched(element))]
                }
            },
            _ => panic!("a get-data puts nothing"),
        }
    }

    /// The first answer of each member.
    fn answers(&self, tally: &mut Collect) -> Vec<Event> {
        let answer = |position| {
            let body = tally.ask(position).expect("asked");
            self.answer(position, &body).remove(0)
        };
        (0..self.c.n()).map(answer).collect()
    }

    /// A get-data that asks the first `asked` members for elements, the very first for copies.
    fn collect(&self, have: Tag) -> Collect {
        let k = usize::from(self.c.dap().k());
        let want = |position| match position {
            0 => Want::Element,
            position if position < k => Want::Fragment,
            _ => Want::Tags,
        };
        let wants: Vec<Want> = (0..self.c.n()).map(want).collect();
        Collect::new(&self.c, &name(), Scope::Whole, have, &wants)
    }

    /// Explores; `found` judges how a way ends. Returns the number of ways.
    fn explore(&self, ticks: usize, found: &mut dyn FnMut(&[CallEvent], End)) -> usize {
        let (n, quorum) = (self.c.n(), self.c.quorums().quorum());
        let answers = |position: usize, body: &Body| self.answer(position, body);
        let make = || self.collect(Tag::INITIAL);
        explore(
            n,
            ticks,
            &make,
            &answers,
            &mut |happened, decision, more| {
                let (replied, refused) = count(n, happened);
                match &decision {
                    Decision::Done(_) | Decision::Ask(_) => {
                        assert!(replied >= quorum, "no quorum is in: {happened:?}");
                    }
                    Decision::Impossible => {
                        assert!(n - refused < quorum, "one may come: {happened:?}");
                    }
                    Decision::Pending => {}
                }
                match decision {
                    Decision::Pending if !more => found(happened, None),
                    Decision::Pending | Decision::Ask(_) => {}
                    decision => found(happened, Some(decision)),
                }
            },
        )
    }
}

/// The elements make the value of that version, and it is the one expected.
fn check(c: &Configuration, collected: &CollectedVersion, number: u64) {
    assert_eq!(collected.tag, tag(number));
    let forms: Vec<Form> = collected
        .elements
        .iter()
        .map(|element| element.form)
        .collect();
    let needed = if forms.contains(&Form::Copy) {
        1
    } else {
        usize::from(c.dap().k())
    };
    assert!(forms.len() >= needed, "{forms:?}");
    let bytes = |e: &Element| e.payload.len() as u64 <= e.length || e.form != Form::Copy;
    assert!(collected.elements.iter().all(bytes));
}

fn shapes() -> Vec<Arc<Configuration>> {
    let abd = [1, 2, 3].map(|n| configuration(n, Dap::Abd));
    let ec = [(2, 1), (3, 2), (4, 2)].map(|(n, k)| configuration(n, Dap::Ec { k }));
    abd.into_iter().chain(ec).collect()
}

/// All hold the same version: whoever refuses, vanishes or is late, a quorum of answers gives it.
#[test]
fn a_version_at_all_members_is_found_from_every_quorum() {
    let choices = [Does::Answer, Does::Refuse, Does::Vanish, Does::AnswerLate];
    for (c, number) in shapes().iter().flat_map(|c| [(c, 1), (c, 2)]) {
        let (n, quorum) = (c.n(), c.quorums().quorum());
        let (choices, ticks) = if n < 4 {
            (&choices[..], 1)
        } else {
            (&choices[..3], 0)
        };
        for does in assignments(n, choices) {
            let answering = |does: &&Does| matches!(does, Does::Answer | Does::AnswerLate);
            let answers = does.iter().filter(answering).count();
            let refusals = does.iter().filter(|does| **does == Does::Refuse).count();
            let members = Members {
                c: c.clone(),
                hold: vec![vec![number]; n],
                does: does.clone(),
            };
            let ways = members.explore(ticks, &mut |happened, outcome| match outcome {
                Some(Decision::Done(Outcome::Found(collected))) => {
                    check(c, &collected, number);
                    assert!(collected.complete, "a quorum lists it");
                }
                // Where the elements do not suffice (all of a code's data, say), only asking again helps.
                Some(Decision::Done(Outcome::Restart)) => assert!(answers >= quorum),
                Some(_) => assert!(n - refusals < quorum, "{does:?}: {happened:?}"),
                None => assert!(answers < quorum, "{does:?}: {happened:?}"),
            });
            assert!(ways > 0);
        }
    }
}

/// Version 3 (fragments) or 4 (copies) is complete, 5 is under way anywhere: a read finds no older version.
#[test]
fn a_complete_version_is_found_whatever_is_under_way() {
    for (c, complete) in shapes().iter().flat_map(|c| [(c, 3), (c, 4)]) {
        let (n, quorum) = (c.n(), c.quorums().quorum());
        for newer in assignments(n, &[false, true]) {
            let hold = |position: usize| {
                let mut hold = Vec::new();
                if position < quorum {
                    hold.push(complete);
                }
                if newer[position] && matches!(c.dap(), Dap::Abd) {
                    hold.clear();
                }
                if newer[position] {
                    hold.push(5);
                }
                hold
            };
            let members = Members {
                c: c.clone(),
                hold: (0..n).map(hold).collect(),
                does: vec![Does::Answer; n],
            };
            members.explore(0, &mut |happened, outcome| match outcome {
                Some(Decision::Done(Outcome::Found(collected))) => {
                    assert!(
                        [complete, 5].contains(&collected.tag.number),
                        "{happened:?}"
                    );
                    check(c, &collected, collected.tag.number);
                    let at_quorum = members
                        .hold
                        .iter()
                        .filter(|h| h.contains(&collected.tag.number));
                    assert!(!collected.complete || at_quorum.count() >= quorum);
                }
                other => panic!("all members answer: {other:?} after {happened:?}"),
            });
        }
    }
}

/// Members answer the query and then fail: the element comes from another member, or the collection begins again. A
/// member with a damaged element is no holder, so that a write-back repairs it (`[X-5 single-reply]`,
/// `[X-11 damage-abstains]`).
#[test]
fn an_element_that_does_not_come_is_fetched_elsewhere() {
    let choices = [Does::Answer, Does::Stall, Does::Damaged, Does::Evict];
    for c in [
        configuration(3, Dap::Abd),
        configuration(4, Dap::Ec { k: 2 }),
    ] {
        let n = c.n();
        // The members that are asked for elements hold an older version as their newest, so that all is fetched.
        for does in assignments(n, &choices) {
            let members = Members {
                c: c.clone(),
                hold: (0..n)
                    .map(|p| if p == 0 { vec![1] } else { vec![1, 3] })
                    .collect(),
                does: does.clone(),
            };
            members.explore(0, &mut |happened, outcome| match outcome {
                Some(Decision::Done(Outcome::Found(collected))) => {
                    check(&c, &collected, collected.tag.number);
                    let damaged = |position: &usize| {
                        let refusal = Answer::Refused(Refusal::Damaged);
                        let event = Event::Reply(Reply::Access(vec![refusal]));
                        happened.contains(&CallEvent::Event(*position, event))
                    };
                    for position in (0..n).filter(damaged) {
                        assert!(!collected.holders[position], "{happened:?}");
                        assert!(collected.damaged);
                    }
                }
                Some(Decision::Done(Outcome::Restart | Outcome::Damaged(None))) => {
                    assert!(
                        does.iter().any(|does| *does != Does::Answer),
                        "{happened:?}"
                    );
                }
                Some(other) => panic!("nobody refused the query: {other:?}"),
                None => assert!(does.contains(&Does::Stall), "{does:?}: {happened:?}"),
            });
        }
    }
}

/// A member that is late is hoped for, however long the way to it is; one that is gone is not.
#[test]
fn late_members_are_waited_for_and_lost_ones_are_not() {
    let c = configuration(3, Dap::Abd);
    let members = Members {
        c: c.clone(),
        hold: vec![vec![1], vec![1, 3], vec![1]],
        does: vec![Does::Answer; 3],
    };
    let ask = |tally: &mut Collect, position| tally.ask(position).expect("it is asked");
    for attempt in 0..4 {
        let mut tally = members.collect(Tag::INITIAL);
        tally.hope <<= attempt;
        let mut answers: Vec<Event> = Vec::new();
        for position in 0..3 {
            let body = ask(&mut tally, position);
            answers.extend(members.answer(position, &body));
        }
        // A round trip of many hedges: nobody is given up before a quorum has answered.
        for _ in 0..100 {
            assert_eq!(tally.tick(), Decision::Pending);
        }
        assert_eq!(tally.add(1, answers[1].clone()), Decision::Pending);
        assert_eq!(tally.add(2, answers[2].clone()), Decision::Ask(vec![1]));
        let fetched = members.answer(1, &ask(&mut tally, 1));
        // The element is as far away; nobody else has it.
        for _ in 1..FETCH_HOPE << attempt {
            assert_eq!(tally.tick(), Decision::Pending, "attempt {attempt}");
        }
        let mut gone = members.collect(Tag::INITIAL);
        for (position, answer) in answers.iter().enumerate().skip(1) {
            ask(&mut gone, position);
            let _ = gone.add(position, answer.clone());
        }
        assert_eq!(
            gone.add(1, Event::Unreachable),
            Decision::Pending,
            "the chosen one may answer"
        );
        // Only the one that went away has it: it is asked all the same, and found to be gone.
        assert_eq!(gone.add(0, Event::Unreachable), Decision::Ask(vec![1]));
        let lost = gone.add(1, Event::Unreachable);
        assert_eq!(lost, Decision::Done(Outcome::Restart));
        match attempt % 2 {
            0 => {
                let Decision::Done(Outcome::Found(collected)) = tally.add(1, fetched[0].clone())
                else {
                    panic!("it was all that was missing")
                };
                check(&c, &collected, 3);
            }
            _ => assert_eq!(tally.tick(), Decision::Done(Outcome::Restart)),
        }
    }
}

/// An element that was fetched is of the version it was fetched for, whatever else happens: there is only one such version
/// in a collection. And what cannot be the member's element is not taken for it (`[EC-2 self-describing-elements]`).
#[test]
fn elements_of_two_versions_are_never_mixed() {
    let c = configuration(4, Dap::Ec { k: 2 });
    let members = Members {
        c: c.clone(),
        hold: vec![vec![1], vec![1, 3], vec![1, 3], vec![1, 3, 5]],
        does: vec![Does::Answer; 4],
    };
    let mut tally = members.collect(Tag::INITIAL);
    let answers = members.answers(&mut tally);
    for position in [1, 2] {
        assert_eq!(
            tally.add(position, answers[position].clone()),
            Decision::Pending
        );
    }
    // Member 1 gave its fragment; member 0 does not have one.
    assert_eq!(tally.add(0, answers[0].clone()), Decision::Ask(vec![2]));
    let fetched = members.answer(2, &tally.ask(2).expect("asked")).remove(0);
    // A refusal of a fetch leaves the version as it is.
    let refusal = Event::Reply(Reply::Access(vec![Answer::Refused(Refusal::Damaged)]));
    assert_eq!(tally.add(2, refusal), Decision::Pending);
    assert_eq!(tally.add(3, answers[3].clone()), Decision::Ask(vec![3]));
    assert_eq!(
        tally.add(2, fetched),
        Decision::Pending,
        "it said that it was damaged"
    );
    // The fragment of another member, or one of another length, is none.
    let element = |position: usize, number| elements(&c, number)[position].clone();
    let reply = |element| {
        Event::Reply(Reply::Access(vec![Answer::Fetched(ReplyElement::Whole(
            element,
        ))]))
    };
    assert_eq!(tally.add(3, reply(element(2, 3))), Decision::Pending);
    let mut short = element(3, 3);
    short.payload = short.payload.slice(..7);
    assert_eq!(tally.add(3, reply(short)), Decision::Pending);
    let Decision::Done(Outcome::Found(collected)) = tally.add(3, reply(element(3, 3))) else {
        panic!("two fragments of two")
    };
    check(&c, &collected, 3);
    assert_eq!(collected.holders, [false, true, false, true]);
}

#[test]
fn an_element_that_was_not_asked_for_is_not_read() {
    let c = configuration(5, Dap::Ec { k: 3 });
    let wants = vec![Want::Tags; c.n()];
    let mut tally = Collect::new(&c, &name(), Scope::Version, Tag::INITIAL, &wants);
    let mut ended = Decision::Pending;
    for (position, element) in elements(&c, 1).into_iter().enumerate().take(4) {
        let held = HeldVersions {
            stored: vec![(tag(1), element.form)],
            element: (position == 0).then_some((tag(1), ReplyElement::Whole(element))),
            ..HeldVersions::default()
        };
        let reply = Reply::Access(vec![Answer::Held(held)]);
        ended = tally.add(position, Event::Reply(reply));
    }
    let Decision::Done(Outcome::Found(collected)) = ended else {
        panic!("{ended:?}: a quorum has answered");
    };
    // One of three that make the value: nothing can be decoded.
    assert_eq!((collected.tag, collected.elements), (tag(1), Vec::new()));
}

/// A member that states another length than the others of a version does not prevent a read, and nothing of it is read.
#[test]
fn fragments_that_state_different_lengths_are_not_joined() {
    let c = configuration(4, Dap::Ec { k: 2 });
    let members = Members {
        c: c.clone(),
        hold: vec![vec![3]; 4],
        does: vec![Does::Answer; 4],
    };
    let mut tally = members.collect(Tag::INITIAL);
    let answers = members.answers(&mut tally);
    // Of a shorter value, and right for that.
    let shorter = Value::new(Bytes::new(), Bytes::from(vec![3; 40]));
    let element = crate::dap::elements(&c, &name(), &shorter)[0].clone();
    let held = HeldVersions {
        stored: vec![(tag(3), element.form)],
        element: Some((tag(3), ReplyElement::Whole(element))),
        ..HeldVersions::default()
    };
    let out_of_order = Event::Reply(Reply::Access(vec![Answer::Held(held)]));
    assert_eq!(tally.add(0, out_of_order), Decision::Pending);
    assert_eq!(tally.add(1, answers[1].clone()), Decision::Pending);
    assert_eq!(tally.add(2, answers[2].clone()), Decision::Ask(vec![2]));
    let fetched = members.answer(2, &tally.ask(2).expect("asked")).remove(0);
    let Decision::Done(Outcome::Found(collected)) = tally.add(2, fetched) else {
        panic!("two fragments of two")
    };
    check(&c, &collected, 3);
    assert!(
        collected
            .elements
            .iter()
            .all(|element| element.length == 100)
    );
}
