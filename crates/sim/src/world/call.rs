//! [`Env`] in the simulated world: [`Call`] drives the quorum call, with events in place of connections.

use super::network::Body;
use super::pace::Pace;
use super::{Event as Happening, World};
use crate::fault::Fault;
use areo_core::config::{Configuration, Members, ServerId};
use areo_core::env::{Conclusion, Env, Work};
use areo_core::error::{Response, Unavailable};
use areo_core::gather::{Call, Deadline, Outgoing};
use areo_core::instant::Instant;
use areo_core::message::{Note, Refusal, Reply, Request};
use areo_core::tally::{Event, Tally};
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
    deadline: Deadline,
    pace: Rc<Pace>,
    watch: Option<Rc<dyn Watch>>,
    /// It finds servers by names that never change, and not where their records say.
    is_by_name: bool,
    /// The key of the client may only read.
    only_reads: bool,
}

/// Sees the requests and notes of an operation.
pub(crate) trait Watch {
    /// Somebody is asked; several are asked the same.
    fn asks(&self, request: &Request);
    /// The member at this position of those that are asked so has answered.
    fn hears(&self, request: &Request, position: usize, reply: &Reply);
    /// The operation sends a note to all members.
    fn tells(&self, note: &Note);
}

/// Worlds of the operations of a server's task, each of which may go over many objects.
pub(super) fn envs(world: &World, caller: usize, timeout: Duration) -> impl Fn() -> SimEnv + use<> {
    let world = world.clone();
    move || {
        let env = SimEnv::new(&world, caller, timeout);
        env.goes_over_many();
        env
    }
}

impl SimEnv {
    pub(crate) fn new(world: &World, client: usize, timeout: Duration) -> SimEnv {
        SimEnv {
            world: world.clone(),
            client,
            deadline: Deadline::after(world.clock(client), timeout),
            pace: Rc::default(),
            watch: None,
            is_by_name: false,
            only_reads: false,
        }
    }

    /// The environment of an operation of this task. An operation of every other task may take any time as long as it makes progress, as
    /// clients run long ones: streams, files, sweeps, reconfigurations.
    pub(crate) fn of_task(self, task: usize, timeout: Duration) -> SimEnv {
        let deadline = match task % 2 {
            0 => Deadline::after(self.now(), timeout),
            _ => Deadline::idle(self.now(), timeout),
        };
        SimEnv { deadline, ..self }
    }

    /// This environment, which finds servers by names.
    pub(super) fn by_name(self) -> SimEnv {
        let is_by_name = true;
        SimEnv { is_by_name, ..self }
    }

    /// The environment of a client that may only read.
    pub(crate) fn only_reading(&self) -> SimEnv {
        SimEnv {
            only_reads: true,
            ..self.clone()
        }
    }

    /// The operation goes over all objects of a domain, or over all blocks of a file: it may call for each.
    pub(crate) fn goes_over_many(&self) {
        self.pace.go_over_many();
    }

    /// The client that the operation belongs to.
    pub(crate) fn client(&self) -> usize {
        self.client
    }

    /// Number of quorum calls that the operation has made.
    pub(crate) fn calls(&self) -> u64 {
        self.pace.calls()
    }

    /// Another quorum call: too many in a short time are a livelock.
    fn keep_pace(&self) {
        let objects = || self.world.0.watch.borrow().objects.len();
        let broken = self.pace.call(self.world.now(), objects);
        let end = self.deadline.of_progress();
        let is_over = end.is_some_and(|end| self.now() > end);
        let belated = is_over.then(|| self.pace.belated()).flatten();
        if let Some(broken) = broken.or(belated) {
            self.world.violate(format!("livelock: {broken}"));
        }
    }

    /// This environment with a watch on its calls.
    pub(crate) fn watched(&self, watch: Rc<dyn Watch>) -> SimEnv {
        SimEnv {
            watch: Some(watch),
            ..self.clone()
        }
    }
}

/// The receiver of answers: a quorum call.
pub(super) trait Sink {
    fn on_event(&self, position: usize, event: Event);
    /// The connection has room again: messages that could not be sent go out now.
    fn sent(&self);
    /// The timer of this number has run out.
    fn on_time(&self, number: u64);
}

/// A request that may still be answered.
pub(super) struct OpenCall {
    pub(super) sink: Rc<dyn Sink>,
    pub(super) position: usize,
    pub(super) client: usize,
    pub(super) server: usize,
    /// The server that is addressed; `None`: whichever server runs on that machine.
    pub(super) id: Option<ServerId>,
    pub(super) request: Body,
    /// Deadline on the client's clock.
    pub(super) deadline: Option<Instant>,
    pub(super) answered: bool,
}

struct Gather<T: Tally> {
    env: SimEnv,
    /// For the answers that make it ask more.
    myself: Weak<Gather<T>>,
    state: RefCell<State<T>>,
}

struct State<T: Tally> {
    call: Call<T>,
    /// Requests that may still be answered.
    asked: Vec<u64>,
    /// Servers that could not be asked because of a full queue, by position.
    refused: Vec<usize>,
    /// The last request, if the operation is watched.
    watched: Option<Request>,
    /// The time of the running timer. `timers` is the number of timers so far.
    armed: Option<Instant>,
    timers: u64,
    waker: Option<Waker>,
}

impl<T: Tally + 'static> Gather<T> {
    /// Carries out the wishes of the call: sends, waits for another time, ends.
    fn carry_out(&self) {
        while let Some(next) = self.next_request() {
            self.send(&next);
        }
        let mut state = self.state.borrow_mut();
        if !state.call.is_open() {
            let (asked, waker) = (std::mem::take(&mut state.asked), state.waker.take());
            drop(state);
            self.env.world.forget(&asked);
            return waker.into_iter().for_each(Waker::wake);
        }
        let time = state.call.next_time();
        if state.armed.replace(time) != Some(time) {
            state.timers += 1;
            let sink: Weak<dyn Sink> = self.myself.clone();
            let timer = Happening::Time(self.env.client, sink, state.timers);
            self.env.world.at(time.since(self.env.now()), timer);
        }
    }

    fn next_request(&self) -> Option<Outgoing> {
        self.state.borrow_mut().call.next_request()
    }

    fn send(&self, next: &Outgoing) {
        let held_back = self.try_send(next);
        let state = &mut *self.state.borrow_mut();
        if matches!(held_back, Some(Event::Refused(_))) {
            state.refused.push(next.position);
        }
        match held_back {
            None => state.call.sent(next, self.received_bytes()),
            Some(event) => state.call.held_back(next, event, self.env.now()),
        }
    }

    /// A server that was not asked because of a full queue is not silent: a client would wait for it, and blame it.
    fn check(&self, outcome: &Result<T::Output, Unavailable>, refused: &[usize]) {
        let Err(unavailable) = outcome else { return };
        let said = |position: &usize| unavailable.servers[*position];
        let silent = |(_, response): &(ServerId, Response)| {
            matches!(response, Response::Silent | Response::NotAwaited)
        };
        if let Some((server, _)) = refused.iter().map(said).find(silent) {
            let sentence = format!("blamed: {server} counts as silent and was not asked");
            self.env.world.violate(sentence);
        }
    }

    /// Bytes that a connection has received: the world's time, as if no connection were ever idle.
    fn received_bytes(&self) -> u64 {
        self.env.world.now().0
    }

    /// An event says that this came to nothing, for now or for good.
    fn try_send(&self, next: &Outgoing) -> Option<Event> {
        let Some(server) = self.env.world.find(next.server) else {
            return Some(Event::Unreachable);
        };
        if self.env.world.strikes(Fault::QueueFull) {
            return Some(Event::Refused(Refusal::Busy));
        }
        if let Some(watch) = &self.env.watch {
            watch.asks(&next.request);
            self.state.borrow_mut().watched = Some(next.request.clone());
        }
        let codec::EncodedMessage { body, payload } = codec::encode_request(&next.request);
        let outstanding = OpenCall {
            sink: self.myself.upgrade().expect("the operation holds it"),
            position: next.position,
            client: self.env.client,
            server,
            id: (!self.env.is_by_name).then_some(next.server),
            request: Body { body, payload },
            deadline: self.env.deadline.at(),
            answered: false,
        };
        let (number, is_reachable) = self.env.world.call(outstanding, self.env.only_reads);
        self.state.borrow_mut().asked.push(number);
        (!is_reachable).then_some(Event::Unreachable)
    }
}

impl<T: Tally + 'static> Sink for Gather<T> {
    fn on_event(&self, position: usize, event: Event) {
        let now = self.env.now();
        if let (Some(watch), Event::Reply(reply)) = (&self.env.watch, &event) {
            let watched = self.state.borrow().watched.clone();
            let asked = watched.expect("an answer follows a question");
            watch.hears(&asked, position, reply);
        }
        let is_news = self.state.borrow_mut().call.hear(position, event, now);
        if is_news {
            self.carry_out();
        }
    }

    fn sent(&self) {
        self.state.borrow_mut().call.sent_late();
    }

    fn on_time(&self, number: u64) {
        {
            let state = &mut *self.state.borrow_mut();
            if number != state.timers || !state.call.is_open() {
                return;
            }
            state.armed = None;
            let received = |_| match self.env.world.strikes(Fault::SlowBulk) {
                true => self.received_bytes(),
                false => 0,
            };
            state.call.pass(self.env.now(), received);
        }
        self.carry_out();
    }
}

/// Ends a quorum call that nobody waits for any more.
struct Abandon<T: Tally + 'static>(Rc<Gather<T>>);

impl<T: Tally + 'static> Drop for Abandon<T> {
    fn drop(&mut self) {
        let mut state = self.0.state.borrow_mut();
        state.call.abandon();
        let asked = std::mem::take(&mut state.asked);
        drop(state);
        self.0.env.world.forget(&asked);
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
            env.keep_pace();
            let call = Call::new(&members, tally, &env.deadline, env.now());
            let gather = Abandon(Rc::new_cyclic(|myself| Gather {
                state: RefCell::new(State {
                    call,
                    asked: Vec::new(),
                    refused: Vec::new(),
                    watched: None,
                    armed: None,
                    timers: 0,
                    waker: None,
                }),
                env,
                myself: myself.clone(),
            }));
            gather.0.carry_out();
            poll_fn(|context| {
                let state = &mut *gather.0.state.borrow_mut();
                if let Some(outcome) = state.call.take() {
                    gather.0.check(&outcome, &state.refused);
                    return Poll::Ready(outcome);
                }
                state.waker = Some(context.waker().clone());
                Poll::Pending
            })
            .await
        }
    }

    fn tell(&self, to: &Members, note: Note) {
        if self.only_reads {
            // Servers drop it.
            return;
        }
        if let Some(watch) = &self.watch {
            watch.tells(&note);
        }
        let codec::EncodedMessage { body, payload } = codec::encode_note(&note);
        let body = Body { body, payload };
        for server in to.iter() {
            _ = self.world.send_note(self.client, *server, body.clone());
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

    /// The time of day as this process has it: that of the others is a day or two ahead or behind.
    fn clock_us(&self) -> u64 {
        const APART: Duration = Duration::from_hours(24);
        self.now().plus(APART * (self.client % 3) as u32).0 / 1000
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

    fn concluded(&self, at: &Configuration, conclusion: Conclusion<'_>) {
        self.world.show_conclusion(at, conclusion);
    }

    fn progressed(&self) {
        self.deadline.progressed();
    }

    fn slow(&self, server: ServerId) -> bool {
        let server = self.world.find(server);
        let slow = !server.is_some_and(|server| self.world.is_serving(server));
        slow != self.world.strikes(Fault::WrongHint)
    }
}
