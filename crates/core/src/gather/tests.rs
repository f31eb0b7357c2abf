//! Every order of replies, refusals and members out of reach: a call is decided exactly when a quorum is in, and given up
//! only when none can come. [`explore`] serves the tallies of the data access primitives, too.

use super::visit::AddressedTally;
use super::*;
use crate::config::Descriptor;
use crate::config::testing::replicated;
use crate::message::{Answer, CellReply, CellRequest};
use crate::pointer::Pointer;
use crate::timing;

/// An event of one sequence.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum CallEvent {
    Event(usize, Event),
    Tick,
}

/// Sees what has happened so far, the last of it being what led to the decision, and whether anything is still to come.
pub(crate) type Judge<'a, T> = dyn FnMut(&[CallEvent], Decision<T>, bool) + 'a;

/// A configuration like this at another index of its sequence.
fn at_index(c: &Configuration, index: u32) -> Arc<Configuration> {
    let descriptor = Descriptor {
        index,
        ..c.descriptor().clone()
    };
    Configuration::new(descriptor).expect("a valid descriptor")
}

/// Tries every order in which the answers to what a tally asks can come, with up to `ticks` ticks anywhere between.
/// `answers` says what a member makes of a request, in this order. Returns the number of ways.
pub(crate) fn explore<T: ConfiguredTally>(
    n: usize,
    ticks: usize,
    make: &dyn Fn() -> T,
    answers: &dyn Fn(usize, &Body) -> Vec<Event>,
    judge: &mut Judge<'_, T::Output>,
) -> usize {
    let mut ways = 0;
    let mut unfinished: Vec<Vec<usize>> = vec![Vec::new()];
    while let Some(path) = unfinished.pop() {
        let mut way = Way::start(n, ticks, make(), answers);
        let mut last = None;
        for choice in &path {
            last = Some(way.take(*choice));
        }
        let choices = way.choices();
        let open = matches!(last, None | Some(Decision::Pending | Decision::Ask(_)));
        if let Some(decision) = last {
            judge(&way.happened, decision, !way.streams.is_empty());
        }
        if open && !way.streams.is_empty() {
            unfinished.extend((0..choices).map(|choice| [path.as_slice(), &[choice]].concat()));
        } else {
            ways += 1;
        }
    }
    ways
}

struct Way<'a, T> {
    tally: T,
    answers: &'a dyn Fn(usize, &Body) -> Vec<Event>,
    /// Answers to come: of one request each, in their order.
    streams: Vec<(usize, Vec<Event>)>,
    ticks: usize,
    happened: Vec<CallEvent>,
}

impl<'a, T: ConfiguredTally> Way<'a, T> {
    fn start(
        n: usize,
        ticks: usize,
        tally: T,
        answers: &'a dyn Fn(usize, &Body) -> Vec<Event>,
    ) -> Self {
        let (streams, happened) = (Vec::new(), Vec::new());
        let mut way = Way {
            tally,
            answers,
            streams,
            ticks,
            happened,
        };
        for position in 0..n {
            way.ask(position);
        }
        way
    }

    fn ask(&mut self, position: usize) {
        if let Some(body) = self.tally.ask(position) {
            let mut events = (self.answers)(position, &body);
            events.reverse();
            if !events.is_empty() {
                self.streams.push((position, events));
            }
        }
    }

    fn choices(&self) -> usize {
        self.streams.len() + usize::from(self.ticks > 0)
    }

    fn take(&mut self, choice: usize) -> Decision<T::Output> {
        let decision = if choice == self.streams.len() {
            self.ticks -= 1;
            self.happened.push(CallEvent::Tick);
            self.tally.tick()
        } else {
            let (position, events) = &mut self.streams[choice];
            let (position, event) = (*position, events.pop().expect("streams are not empty"));
            if events.is_empty() {
                self.streams.remove(choice);
            }
            self.happened
                .push(CallEvent::Event(position, event.clone()));
            self.tally.add(position, event)
        };
        if let Decision::Ask(positions) = &decision {
            for position in positions {
                self.ask(*position);
            }
        }
        decision
    }
}

/// Members that replied, and members that refused and never replied, in what happened.
pub(crate) fn count(n: usize, happened: &[CallEvent]) -> (usize, usize) {
    let did = |position: usize, what: fn(&Event) -> bool| {
        happened
            .iter()
            .any(|h| matches!(h, CallEvent::Event(from, event) if *from == position && what(event)))
    };
    let replied = |p: &usize| did(*p, |event| matches!(event, Event::Reply(_)));
    let refused = |p: &usize| did(*p, |event| matches!(event, Event::Refused(_)));
    let replies = (0..n).filter(replied).count();
    (
        replies,
        (0..n).filter(|p| refused(p) && !replied(p)).count(),
    )
}

/// Everything that `choices` allows for `n` members, one choice each.
pub(crate) fn assignments<C: Copy>(n: usize, choices: &[C]) -> Vec<Vec<C>> {
    let mut all = vec![Vec::new()];
    for _ in 0..n {
        let longer = |list: Vec<C>| {
            choices
                .iter()
                .map(move |c| [list.as_slice(), &[*c]].concat())
        };
        all = all.into_iter().flat_map(longer).collect();
    }
    all
}

fn reply() -> Event {
    Event::Reply(Reply::Cell(CellReply::Accepted))
}

/// The reaction of a member to the one request of a plain quorum call.
#[derive(Clone, Copy, Debug)]
enum Does {
    Reply,
    ReplyTwice,
    ReplyLate,
    Refuse,
    RefuseThenReply,
    Vanish,
}

fn events(does: Does) -> Vec<Event> {
    let refusal = || Event::Refused(Refusal::Full);
    match does {
        Does::Reply => vec![reply()],
        Does::ReplyTwice => vec![reply(), reply()],
        Does::ReplyLate => vec![Event::Unreachable, reply()],
        Does::Refuse => vec![refusal()],
        Does::RefuseThenReply => vec![refusal(), reply()],
        Does::Vanish => vec![Event::Unreachable],
    }
}

#[test]
fn a_quorum_call_is_decided_exactly_when_a_quorum_is_in() {
    let some = [Does::Reply, Does::Refuse, Does::Vanish, Does::ReplyLate];
    let all = [some.as_slice(), &[Does::ReplyTwice, Does::RefuseThenReply]].concat();
    for n in 1..=4 {
        let choices = if n < 4 { &all } else { &some[..3] };
        for does in assignments(n, choices) {
            for quorum in 1..=n {
                let body = Body::Cell {
                    cell: bytes::Bytes::new(),
                    step: CellRequest::Query,
                };
                let fold = |count: &mut usize, _from: usize, _reply: Reply| {
                    *count += 1;
                    Fold::Count
                };
                let make = || Quorum::new(n, quorum, body.clone(), 0, fold);
                let answers = |position: usize, _: &Body| events(does[position]);
                explore(n, 0, &make, &answers, &mut |happened, decision, _| {
                    let (replied, refused) = count(n, happened);
                    let expected = match (replied >= quorum, n - refused < quorum) {
                        (true, _) => Decision::Done(quorum),
                        (false, true) => Decision::Impossible,
                        (false, false) => Decision::Pending,
                    };
                    // A member that has replied is not heard again, and a refusal decides but once.
                    assert_eq!(
                        decision, expected,
                        "{does:?}, quorum {quorum}: {happened:?}"
                    );
                });
            }
        }
    }
}

/// `[C-7 describe-unknown]`: a server that does not know the configuration is sent its descriptor; answers to the first
/// question that come late or twice are no refusals.
#[test]
fn unknown_configurations_are_described_and_never_counted_as_refusals() {
    let c = replicated(3);
    let body = Body::Access(Vec::new());
    let fold = |(): &mut (), _: usize, _: Reply| Fold::Count;
    let quorum = Quorum::new(3, 2, body, (), fold);
    let mut tally = AddressedTally::new(&Visit::new(&c), quorum);
    let unknown = || Event::Refused(Refusal::UnknownConfiguration);
    let described = |tally: &mut AddressedTally<_>, position| match Tally::ask(tally, position) {
        Some(Request::Configured { descriptor, .. }) => descriptor.is_some(),
        _ => panic!("it asks"),
    };
    assert!(!described(&mut tally, 0));
    for position in 0..3 {
        assert_eq!(
            Tally::add(&mut tally, position, unknown()),
            Decision::Ask(vec![position])
        );
        assert!(described(&mut tally, position));
        assert_eq!(
            Tally::add(&mut tally, position, unknown()),
            Decision::Pending
        );
    }
    assert_eq!(Tally::add(&mut tally, 1, reply()), Decision::Pending);
    assert_eq!(Tally::add(&mut tally, 2, reply()), Decision::Done(Some(())));
}

/// `[A-8 closed-get]`, `[A-11 drop-when-final]`: an answer is withheld only with a final pointer, and one to a closing
/// request shows that pointer or a larger one; a pointer that does not lead on is none. A server that answers otherwise is in no
/// quorum.
#[test]
fn answers_without_the_pointers_that_belong_to_them_do_not_count() {
    let c = replicated(3);
    let (pending, last) = (
        Pointer::pending(&at_index(&c, 1)),
        Pointer::finalized(&at_index(&c, 1)),
    );
    let back = Pointer::finalized(&c);
    let next = |pointer: &Pointer, answered: bool| {
        Event::Reply(Reply::Next {
            successors: pointer.into(),
            reply: answered.then(|| Box::new(Reply::Access(Vec::new()))),
        })
    };
    let plain = || Event::Reply(Reply::Access(Vec::new()));
    let (open, closing) = (Visit::new(&c), Visit::closing(&c, &pending));
    let cases = [
        (&open, plain(), Decision::Done(Some(()))),
        (&open, next(&pending, true), Decision::Done(Some(()))),
        (&open, next(&back, true), Decision::Done(Some(()))),
        (&open, next(&last, false), Decision::Done(None)),
        (&open, next(&last, true), Decision::Done(None)),
        (&open, next(&pending, false), Decision::Impossible),
        (&open, next(&back, false), Decision::Impossible),
        (&closing, plain(), Decision::Impossible),
        (&closing, next(&back, true), Decision::Impossible),
        (&closing, next(&pending, true), Decision::Done(Some(()))),
        (&closing, next(&last, false), Decision::Done(None)),
    ];
    for (at, event, expected) in cases {
        let fold = |(): &mut (), _: usize, _: Reply| Fold::Count;
        let quorum = Quorum::new(3, 2, Body::Access(Vec::new()), (), fold);
        let mut tally = AddressedTally::new(at, quorum);
        assert_eq!(Tally::add(&mut tally, 0, event.clone()), Decision::Pending);
        assert_eq!(
            Tally::add(&mut tally, 1, event.clone()),
            expected,
            "{event:?}"
        );
    }
    assert_eq!(open.next(), Some(last.clone()));
    assert_eq!(closing.next(), Some(last));
}

/// A final pointer is a safe place to go on from, whoever knows it: members that refuse for good do not stand in the way.
#[test]
fn one_final_pointer_is_enough_where_the_others_refuse() {
    let c = replicated(3);
    let next = at_index(&c, 1);
    let refused = || Event::Refused(Refusal::Damaged);
    let shown = Event::Reply(Reply::Next {
        successors: (&Pointer::finalized(&next)).into(),
        reply: None,
    });
    for first in [true, false] {
        let at = Visit::new(&c);
        let fold = |(): &mut (), _: usize, _: Reply| Fold::Count;
        let quorum = Quorum::new(3, 2, Body::Access(Vec::new()), (), fold);
        let mut tally = AddressedTally::new(&at, quorum);
        let events = match first {
            true => [shown.clone(), refused(), refused()],
            false => [refused(), shown.clone(), refused()],
        };
        let mut decision = Decision::Pending;
        for (position, event) in events.into_iter().enumerate() {
            assert_eq!(decision, Decision::Pending);
            decision = Tally::add(&mut tally, position, event);
        }
        assert_eq!(decision, Decision::Done(None));
        assert_eq!(at.next(), Some(Pointer::finalized(&next)));
    }
}

/// A final pointer is written when a quorum has it, however long that takes: the first server to take it shows it, and that is
/// no sign that the configuration may be left. Seed 350 of the simulator: the reconfiguration ended, and a write after it met
/// only those who had not heard.
#[test]
fn a_final_pointer_is_written_at_a_quorum() {
    let c = replicated(3);
    let written = Pointer::finalized(&at_index(&c, 1));
    let later = Pointer::finalized(&at_index(&c, 2));
    let shows = |pointer: &Pointer| {
        Event::Reply(Reply::Next {
            successors: pointer.into(),
            reply: None,
        })
    };
    let asked = |at: &Visit| {
        let fold = |(): &mut (), _: usize, _: Reply| Fold::Count;
        let quorum = Quorum::new(3, 2, Body::ReadConfig, (), fold);
        AddressedTally::new(at, quorum)
    };
    for shown in [&written, &later] {
        let at = Visit::closing(&c, &written);
        let mut tally = asked(&at);
        assert_eq!(Tally::add(&mut tally, 0, shows(shown)), Decision::Pending);
        assert_eq!((tally.patience(), tally.tick()), (None, Decision::Pending));
        let done = Tally::add(&mut tally, 2, shows(&written));
        assert_eq!(done, Decision::Done(None));
        assert_eq!(at.next().as_ref(), Some(shown));
        // Without a quorum it is not written, and whoever writes it is told so.
        let mut tally = asked(&at);
        let refused = Event::Refused(Refusal::Damaged);
        Tally::add(&mut tally, 0, shows(shown));
        assert_eq!(
            Tally::add(&mut tally, 1, refused.clone()),
            Decision::Pending
        );
        assert_eq!(Tally::add(&mut tally, 2, refused), Decision::Impossible);
        // Whoever only meets it goes on after a while, closing the configuration or not.
        for at in [
            Visit::new(&c),
            Visit::closing(&c, &Pointer::pending(&at_index(&c, 1))),
        ] {
            let mut tally = asked(&at);
            assert_eq!(Tally::add(&mut tally, 0, shows(shown)), Decision::Pending);
            assert!(tally.patience().is_some());
            assert_eq!(tally.tick(), Decision::Done(None));
        }
    }
}

/// Busy, starting and stopping servers are asked again after a while, and count neither way meanwhile.
#[test]
fn refusals_that_may_pass_are_asked_again() {
    let c = replicated(3);
    let body = Body::Access(Vec::new());
    let fold = |(): &mut (), _: usize, _: Reply| Fold::Count;
    let quorum = Quorum::new(3, 2, body, (), fold);
    check_refusals_that_pass(AddressedTally::new(&Visit::new(&c), quorum), Some(()));
    check_refusals_that_pass(Servers::new(3, 2, Request::Status, (), fold), ());
}

fn check_refusals_that_pass<T: Tally>(mut tally: T, done: T::Output)
where
    T::Output: PartialEq + std::fmt::Debug,
{
    assert_eq!(tally.patience(), None);
    for refusal in [Refusal::Busy, Refusal::Starting, Refusal::Draining] {
        for position in [2, 0, 2] {
            assert_eq!(
                tally.add(position, Event::Refused(refusal)),
                Decision::Pending
            );
        }
        assert_eq!(tally.patience(), Some(timing::ASK_AGAIN));
        let Decision::Ask(mut positions) = tally.tick() else {
            panic!("it asks again")
        };
        positions.sort_unstable();
        assert_eq!(positions, [0, 2], "each once");
        assert!(tally.ask(0).is_some());
        assert_eq!((tally.patience(), tally.tick()), (None, Decision::Pending));
    }
    assert_eq!(tally.add(0, reply()), Decision::Pending);
    assert_eq!(tally.ask(0), None, "it has answered");
    assert_eq!(tally.add(2, reply()), Decision::Done(done));
}

/// A window of futures: all run, in order of their results, never more than the window at once.
#[test]
fn joined_futures_run_within_their_window() {
    use std::cell::Cell;
    use std::rc::Rc;
    use std::task::Waker;
    for window in 1..=4 {
        let (running, most) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(0)));
        let future = |number: usize| {
            let (running, most) = (running.clone(), most.clone());
            // Takes as many polls as its number says, the last ones the fewest.
            let mut polls = 10 - number;
            std::future::poll_fn(move |_| {
                if polls == 10 - number {
                    running.set(running.get() + 1);
                    most.set(running.get().max(most.get()));
                }
                polls -= 1;
                if polls > 0 {
                    return Poll::Pending;
                }
                running.set(running.get() - 1);
                Poll::Ready(number)
            })
        };
        let mut joined = std::pin::pin!(join(window, (0..5).map(future)));
        let mut context = Context::from_waker(Waker::noop());
        let results = loop {
            if let Poll::Ready(results) = joined.as_mut().poll(&mut context) {
                break results;
            }
        };
        assert_eq!(results, [0, 1, 2, 3, 4]);
        assert_eq!(most.get(), window);
    }
    let none: [std::future::Ready<()>; 0] = [];
    let mut joined = std::pin::pin!(join(1, none));
    let mut context = Context::from_waker(Waker::noop());
    assert_eq!(joined.as_mut().poll(&mut context), Poll::Ready(vec![]));
}

/// A reply that refuses every part of a request counts as a refusal.
#[test]
fn a_reply_of_refusals_is_a_refusal() {
    let refused = Answer::Refused(Refusal::Damaged);
    let reply = |answers| Reply::Access(answers).refusal();
    assert_eq!(
        reply(vec![refused.clone(), refused.clone()]),
        Some(Refusal::Damaged)
    );
    assert_eq!(reply(vec![refused, Answer::Stored]), None);
    assert_eq!(reply(vec![]), None);
}
