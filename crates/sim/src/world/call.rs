//! [`Env`] in the simulated world. The quorum call is that of `net`, with events in place of connections.

use super::network::Body;
use super::pace::Pace;
use super::{Event as Happening, World};
use crate::fault::Fault;
use areo_core::config::{Members, ServerId};
use areo_core::env::{Env, Work};
use areo_core::error::{Response, Unavailable};
use areo_core::instant::Instant;
use areo_core::message::{Note, Refusal, Request};
use areo_core::tally::{Decision, Event, Tally};
use areo_wire::codec;
use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::rc::{Rc, Weak};
use std::task::{Poll, Waker};
use std::time::Duration;

/// The world of one operation of one client.
#[derive(Clone)]
pub(crate) struct SimEnv {
    world: World,
    client: usize,
    started: Instant,
    deadline: Instant,
    pace: Rc<Pace>,
    watch: Option<Rc<dyn Watch>>,
}

/// Sees what an operation says to servers.
pub(crate) trait Watch {
    /// Somebody is asked; several are asked the same.
    fn asks(&self, request: &Request);
    /// Everybody is told.
    fn tells(&self, note: &Note);
}

impl SimEnv {
    pub(crate) fn new(world: &World, client: usize, timeout: Duration) -> SimEnv {
        let started = world.clock(client);
        SimEnv {
            world: world.clone(),
            client,
            started,
            deadline: started.plus(timeout),
            pace: Rc::default(),
            watch: None,
        }
    }

    /// The operation goes over all objects of a domain, or over all blocks of a file: it may call for each.
    pub(crate) fn goes_over_many(&self) {
        self.pace.go_over_many();
    }

    /// Another quorum call: too many in a short time are a livelock.
    fn keep_pace(&self) {
        let objects = || self.world.0.watch.borrow().objects.len();
        if let Some(broken) = self.pace.call(self.world.now(), objects) {
            self.world.violate(format!("livelock: {broken}"));
        }
    }

    /// The same under somebody's eyes.
    pub(crate) fn watched(&self, watch: Rc<dyn Watch>) -> SimEnv {
        SimEnv {
            watch: Some(watch),
            ..self.clone()
        }
    }
}

/// Who waits for an answer: a quorum call.
pub(super) trait Sink {
    fn on_event(&self, position: usize, event: Event);
    /// What could not be sent before goes out now.
    fn sent(&self);
    fn impatient(&self, number: u64);
    fn deadline(&self);
}

/// A request that may still be answered.
pub(super) struct Outstanding {
    pub(super) sink: Rc<dyn Sink>,
    pub(super) position: usize,
    pub(super) client: usize,
    pub(super) server: usize,
    pub(super) request: Body,
    pub(super) answered: bool,
}

struct Gather<T: Tally> {
    env: SimEnv,
    members: Members,
    /// For the answers that make it ask more.
    myself: Weak<Gather<T>>,
    state: RefCell<State<T>>,
}

struct State<T: Tally> {
    tally: T,
    calls: Vec<u64>,
    responses: Vec<Response>,
    handed_over: bool,
    outcome: Outcome<T::Output>,
    /// The patience for which a timer runs, and how many timers there were.
    armed: Option<Duration>,
    timers: u64,
    waker: Option<Waker>,
}

enum Outcome<T> {
    Open,
    Done(T),
    /// Impossible, or out of time.
    Failed,
    /// Handed to the operation, or given up by it.
    Over,
}

impl<T: Tally + 'static> Gather<T> {
    fn carry_out(&self, decision: Decision<T::Output>) {
        let mut decisions = vec![decision];
        while let Some(decision) = decisions.pop() {
            match decision {
                Decision::Pending => {}
                Decision::Done(output) => return self.finish(Outcome::Done(output)),
                Decision::Impossible => return self.finish(Outcome::Failed),
                Decision::Ask(positions) => {
                    for position in positions {
                        let Some(event) = self.ask(position) else {
                            continue;
                        };
                        decisions.push(self.state.borrow_mut().tally.add(position, event));
                    }
                }
            }
        }
        self.rearm();
    }

    /// Asks one server. An event says that this came to nothing for now.
    fn ask(&self, position: usize) -> Option<Event> {
        let mut state = self.state.borrow_mut();
        if !matches!(state.outcome, Outcome::Open) {
            return None;
        }
        let request = state.tally.ask(position)?;
        let Some(server) = self.env.world.find(self.members[position]) else {
            state.responses[position] = Response::Unreachable;
            return Some(Event::Unreachable);
        };
        if self.env.world.strikes(Fault::QueueFull) {
            state.responses[position] = Response::Refused(Refusal::Busy);
            return Some(Event::Refused(Refusal::Busy));
        }
        if let Some(watch) = &self.env.watch {
            watch.asks(&request);
        }
        let codec::Encoded { body, payload } = codec::encode_request(&request);
        let outstanding = Outstanding {
            sink: self.myself.upgrade().expect("whoever asks holds it"),
            position,
            client: self.env.client,
            server,
            request: Body { body, payload },
            answered: false,
        };
        let (call, reachable) = self.env.world.call(outstanding);
        state.calls.push(call);
        if reachable {
            state.handed_over = true;
            return None;
        }
        state.responses[position] = Response::Unreachable;
        Some(Event::Unreachable)
    }

    fn finish(&self, outcome: Outcome<T::Output>) {
        let mut state = self.state.borrow_mut();
        if !matches!(state.outcome, Outcome::Open) {
            return;
        }
        state.outcome = outcome;
        let (calls, waker) = (std::mem::take(&mut state.calls), state.waker.take());
        drop(state);
        self.env.world.forget(&calls);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Sets a timer if the tally's patience has changed.
    fn rearm(&self) {
        let mut state = self.state.borrow_mut();
        let wanted = state.tally.patience();
        if wanted == state.armed || !matches!(state.outcome, Outcome::Open) {
            return;
        }
        state.armed = wanted;
        state.timers += 1;
        if let Some(patience) = wanted {
            let sink: Weak<dyn Sink> = self.myself.clone();
            let timer = Happening::Impatient(self.env.client, sink, state.timers);
            self.env.world.at(patience, timer);
        }
    }

    /// The result, if there is one; otherwise whom to wake.
    fn take(&self, waker: &Waker) -> Poll<Result<T::Output, Unavailable>> {
        let mut state = self.state.borrow_mut();
        match std::mem::replace(&mut state.outcome, Outcome::Over) {
            Outcome::Done(output) => Poll::Ready(Ok(output)),
            Outcome::Failed => {
                let responses = state.responses.iter().copied();
                Poll::Ready(Err(Unavailable {
                    configuration: None,
                    needed: state.tally.needed(),
                    servers: self.members.iter().copied().zip(responses).collect(),
                    waited: self.env.now().since(self.env.started),
                    handed_over: state.handed_over,
                    obstacle: None,
                }))
            }
            Outcome::Open => {
                state.outcome = Outcome::Open;
                state.waker = Some(waker.clone());
                Poll::Pending
            }
            Outcome::Over => unreachable!("a quorum call is awaited once"),
        }
    }
}

impl<T: Tally + 'static> Sink for Gather<T> {
    fn on_event(&self, position: usize, event: Event) {
        let decision = {
            let mut state = self.state.borrow_mut();
            if !matches!(state.outcome, Outcome::Open) {
                return;
            }
            state.responses[position] = match &event {
                Event::Reply(reply) => reply
                    .refusal()
                    .map_or(Response::Answered, Response::Refused),
                Event::Refused(refusal) => Response::Refused(*refusal),
                Event::Unreachable => Response::Unreachable,
            };
            state.handed_over |= !matches!(event, Event::Unreachable);
            state.tally.add(position, event)
        };
        self.carry_out(decision);
    }

    fn sent(&self) {
        self.state.borrow_mut().handed_over = true;
    }

    fn impatient(&self, number: u64) {
        let decision = {
            let mut state = self.state.borrow_mut();
            if number != state.timers || !matches!(state.outcome, Outcome::Open) {
                return;
            }
            state.armed = None;
            state.tally.tick()
        };
        self.carry_out(decision);
    }

    fn deadline(&self) {
        self.finish(Outcome::Failed);
    }
}

/// Ends a quorum call that nobody waits for any more.
struct Abandon<T: Tally + 'static>(Rc<Gather<T>>);

impl<T: Tally + 'static> Drop for Abandon<T> {
    fn drop(&mut self) {
        let mut state = self.0.state.borrow_mut();
        state.outcome = Outcome::Over;
        let calls = std::mem::take(&mut state.calls);
        drop(state);
        self.0.env.world.forget(&calls);
    }
}

impl Env for SimEnv {
    fn gather<T: Tally + 'static>(
        &self,
        to: &Members,
        tally: T,
    ) -> impl Future<Output = Result<T::Output, Unavailable>> {
        let (env, members) = (self.clone(), to.clone());
        async move {
            let gather = Abandon(Rc::new_cyclic(|myself| Gather {
                state: RefCell::new(State {
                    tally,
                    calls: Vec::new(),
                    responses: vec![Response::Silent; members.len()],
                    handed_over: false,
                    outcome: Outcome::Open,
                    armed: None,
                    timers: 0,
                    waker: None,
                }),
                env,
                members,
                myself: myself.clone(),
            }));
            let call = &gather.0;
            call.env.keep_pace();
            call.carry_out(Decision::Ask((0..call.members.len()).collect()));
            let remaining = call.env.deadline.since(call.env.now());
            let sink: Weak<dyn Sink> = call.myself.clone();
            call.env
                .world
                .at(remaining, Happening::Deadline(call.env.client, sink));
            poll_fn(|context| call.take(context.waker())).await
        }
    }

    fn tell(&self, to: &Members, note: Note) {
        if let Some(watch) = &self.watch {
            watch.tells(&note);
        }
        let codec::Encoded { body, payload } = codec::encode_note(&note);
        let body = Body { body, payload };
        for server in to.iter().filter_map(|server| self.world.find(*server)) {
            self.world.send_note(self.client, server, body.clone());
        }
    }

    fn sleep(&self, time: Duration) -> impl Future<Output = ()> {
        let (env, until) = (self.clone(), self.now().plus(time));
        let mut armed = false;
        poll_fn(move |context| {
            if env.now() >= until {
                return Poll::Ready(());
            }
            if !std::mem::replace(&mut armed, true) {
                let left = until.since(env.now());
                let wake = Happening::Wake(env.client, context.waker().clone());
                env.world.at(left, wake);
            }
            Poll::Pending
        })
    }

    fn now(&self) -> Instant {
        self.world.clock(self.client)
    }

    fn random(&self) -> u64 {
        self.world.random().draw()
    }

    fn count(&self, work: Work) {
        if work == Work::Forked {
            let sentence = "decided_once: a client saw two configurations of one index";
            self.world.violate(sentence.into());
        }
    }

    fn slow(&self, server: ServerId) -> bool {
        let server = self.world.find(server);
        let slow = !server.is_some_and(|server| self.world.is_serving(server));
        slow != self.world.strikes(Fault::WrongHint)
    }
}
