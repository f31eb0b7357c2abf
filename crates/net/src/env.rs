//! [`Env`] over TCP: the one implementation of the quorum call between processes.
//!
//! A quorum call is one allocation shared by its calls: each reply is decoded and folded into the tally on the task that
//! read it, and the operation is woken once, by the decision. What the tally asks for meanwhile is sent from there, too.

use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::{Rc, Weak};
use std::task::{Context, Poll, Waker, ready};
use std::time::{Duration, Instant};

use areo_core::config::{Decider, Members, ServerId};
use areo_core::env::{Env, Work};
use areo_core::error::{Response, Unavailable, Undecided};
use areo_core::instant::Instant as CoreInstant;
use areo_core::message::{Access, Body, Note, Request};
use areo_core::tally::{Decision, Event, Tally};
use areo_wire::codec;
use areo_wire::frame::TraceContext;
use bytes::Bytes;
use tokio::time::{sleep, sleep_until};
use tracing::Span;

use crate::message::{Outgoing, Segment};
use crate::network::Network;
use crate::outside::{self, Question};
use crate::peer::{Answer, CallKey, Peer, Sink, Status};
use crate::trace;

use answer::{event_of, refusal_of, response_of};
use limit::Limit;
pub use meter::Counts;
use meter::{Meter, length_of};

mod answer;
mod limit;
mod meter;

/// A server that owes an answer and has sent nothing for so long is no good choice for the next read.
const SLOW: Duration = Duration::from_millis(50);

/// The world of one operation: the servers of a cluster, the operation's deadline, and what it has cost so far.
#[derive(Clone)]
pub struct NetEnv {
    network: Network,
    started: Instant,
    limit: Limit,
    meter: Rc<Meter>,
}

impl NetEnv {
    /// What the operation has cost so far.
    pub fn counts(&self) -> Counts {
        self.meter.counts()
    }

    fn message(&self, outgoing: codec::Encoded, started: Instant) -> Outgoing {
        let segment = |(bytes, crc32c): (Bytes, u32)| Segment { bytes, crc32c };
        Outgoing {
            body: outgoing.body,
            payload: outgoing.payload.into_iter().map(segment).collect(),
            started,
            deadline: match self.limit {
                Limit::Deadline(deadline) => Some(deadline),
                Limit::Patience(_) => None,
            },
            trace: None,
            expects_bulk: false,
        }
    }
}

impl Env for NetEnv {
    fn gather<T: Tally + 'static>(
        &self,
        to: &Members,
        tally: T,
    ) -> impl Future<Output = Result<T::Output, Unavailable>> {
        let gather = Rc::new_cyclic(|myself| Gather {
            env: self.clone(),
            begun: Instant::now(),
            members: to.clone(),
            myself: myself.clone(),
            state: RefCell::new(State {
                tally,
                trace: None,
                sent_bytes: 0,
                received_bytes: 0,
                calls: Vec::with_capacity(to.len()),
                responses: vec![Response::Silent; to.len()],
                handed_over: false,
                waiting: Vec::new(),
                bulk: Vec::new(),
                bulk_bytes: 0,
                outcome: Outcome::Open,
                armed: None,
                waker: None,
            }),
        });
        async move {
            gather.env.meter.count_round();
            let span = Span::current();
            gather.state.borrow_mut().trace = trace::context_of(&span);
            gather.start();
            let result = gather.clone().wait().await;
            let waited = gather.begun.elapsed();
            gather.env.meter.count_end(result.is_ok(), waited);
            if !span.is_disabled() {
                gather.state.borrow().describe(&span);
            }
            result
        }
    }

    fn tell(&self, to: &Members, note: Note) {
        let encoded = codec::encode_note(&note);
        let message = self.message(encoded, Instant::now());
        for server in to.iter() {
            if let Some(peer) = self.network.peer(*server) {
                // Best effort: a server that is not connected does not hear it.
                let _ = peer.tell(&message);
            }
        }
    }

    fn sleep(&self, time: Duration) -> impl Future<Output = ()> {
        sleep(time)
    }

    fn now(&self) -> CoreInstant {
        self.network.now()
    }

    fn random(&self) -> u64 {
        self.network.random()
    }

    fn count(&self, work: Work) {
        self.meter.count_work(work);
    }

    async fn decide_outside(
        &self,
        service: &Decider,
        key: &str,
        proposal: &Bytes,
    ) -> Result<Bytes, Undecided> {
        let now = Instant::now();
        let question = Question {
            service: service.clone(),
            key: key.to_owned(),
            proposal: proposal.clone(),
            timeout: self.until(now).saturating_duration_since(now),
        };
        outside::decide(question).await
    }

    fn slow(&self, server: ServerId) -> bool {
        self.network.peer(server).is_some_and(|peer| {
            let down = matches!(peer.status(), Status::Unreachable | Status::Refused(_));
            down || peer.silent_for(self.started) > SLOW
        })
    }
}

/// One quorum call.
struct Gather<T: Tally> {
    env: NetEnv,
    begun: Instant,
    members: Members,
    /// For the answers that make it ask more.
    myself: Weak<Gather<T>>,
    state: RefCell<State<T>>,
}

struct State<T: Tally> {
    tally: T,
    /// The span that asks, for those who are asked.
    trace: Option<TraceContext>,
    sent_bytes: u64,
    received_bytes: u64,
    /// Every call that was made; those that were answered are no longer there to be forgotten.
    calls: Vec<(Peer, CallKey)>,
    responses: Vec<Response>,
    handed_over: bool,
    /// Peers that were out of reach when they were asked, with the connections that they had had by then: the call went
    /// out after all if there is another one since.
    waiting: Vec<(Peer, u64)>,
    /// Who owes a large answer, with their positions; and how much they had sent when somebody last looked.
    bulk: Vec<(usize, Peer)>,
    bulk_bytes: u64,
    outcome: Outcome<T::Output>,
    /// The patience for which a timer runs.
    armed: Option<Duration>,
    waker: Option<Waker>,
}

impl<T: Tally> State<T> {
    /// Whether anything has arrived from those who owe a large answer since this was last asked.
    fn is_receiving(&mut self) -> bool {
        let owing = self.bulk.iter();
        let bytes = owing.map(|(_, peer)| peer.bulk_received_bytes()).sum();
        let before = std::mem::replace(&mut self.bulk_bytes, bytes);
        bytes > before
    }

    /// From now on the server at this position owes a large answer, or does not.
    fn owes_bulk(&mut self, position: usize, peer: Option<&Peer>) {
        self.bulk.retain(|(owing, _)| *owing != position);
        self.bulk.extend(peer.map(|peer| (position, peer.clone())));
    }
}

impl<T: Tally> State<T> {
    /// Says what the call cost.
    fn describe(&self, span: &Span) {
        let answered = |response: &&Response| matches!(response, Response::Answered);
        span.record("replies", self.responses.iter().filter(answered).count());
        span.record("sent_bytes", self.sent_bytes);
        span.record("received_bytes", self.received_bytes);
    }
}

enum Outcome<T> {
    Open,
    Done(T),
    Impossible,
    /// Handed to the operation, or given up by it.
    Over,
}

impl<T: Tally + 'static> Gather<T> {
    /// Asks everybody what the tally wants of them first.
    fn start(&self) {
        let all = (0..self.members.len()).collect();
        self.carry_out(Decision::Ask(all));
    }

    /// Does what the tally decided, and what it decides about servers that refuse to be asked, and so on.
    fn carry_out(&self, decision: Decision<T::Output>) {
        if matches!(decision, Decision::Pending) {
            return;
        }
        let mut decisions = vec![decision];
        while let Some(decision) = decisions.pop() {
            match decision {
                Decision::Pending => {}
                Decision::Done(output) => return self.finish(Outcome::Done(output)),
                Decision::Impossible => return self.finish(Outcome::Impossible),
                Decision::Ask(positions) => {
                    let now = Instant::now();
                    for position in positions {
                        let Some(event) = self.ask(position, now) else {
                            continue;
                        };
                        decisions.push(self.state.borrow_mut().tally.add(position, event));
                    }
                }
            }
        }
    }

    /// Asks one server. An event says that this came to nothing, for now or for good.
    fn ask(&self, position: usize, now: Instant) -> Option<Event> {
        let mut state = self.state.borrow_mut();
        if !matches!(state.outcome, Outcome::Open) {
            return None;
        }
        let request = state.tally.ask(position)?;
        // If nobody has said where it is, the call waits until somebody does.
        let server = self.members[position];
        let peer = self.env.network.peer_or_stranger(server);
        let expects_bulk = expects_bulk(&request);
        let message = Outgoing {
            trace: state.trace,
            expects_bulk,
            ..self.env.message(codec::encode_request(&request), now)
        };
        let bytes = length_of(&message);
        let connections = peer.connections_made();
        let myself = self.myself.upgrade().expect("whoever asks holds it");
        match peer.call(message, myself, position as u64) {
            Ok(call) => {
                self.env.meter.count_request(&request, bytes);
                state.sent_bytes += bytes;
                state.calls.push((peer.clone(), call.key));
                state.owes_bulk(position, expects_bulk.then_some(&peer));
                if call.reachable && !self.env.network.is_stranger(server) {
                    state.handed_over = true;
                    return None;
                }
                state.waiting.push((peer, connections));
                state.responses[position] = Response::Unreachable;
                Some(Event::Unreachable)
            }
            Err(refused) => {
                let refusal = refusal_of(refused);
                state.responses[position] = Response::Refused(refusal);
                Some(Event::Refused(refusal))
            }
        }
    }

    /// Decided: what is still in flight is forgotten, the operation is woken.
    fn finish(&self, outcome: Outcome<T::Output>) {
        let mut state = self.state.borrow_mut();
        if !matches!(state.outcome, Outcome::Open) {
            return;
        }
        if matches!(outcome, Outcome::Done(_)) {
            self.env.meter.move_on();
        }
        state.outcome = outcome;
        let waker = state.waker.take();
        let calls = std::mem::take(&mut state.calls);
        drop(state);
        forget(calls);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Waits for the decision, the deadline, and whatever the tally is impatient for.
    async fn wait(self: Rc<Self>) -> Result<T::Output, Unavailable> {
        let _over = Abandon(&self);
        // One timer for both: what ends the operation, and what the tally waits for.
        let mut timer = pin!(sleep_until(self.env.until(self.begun).into()));
        let mut impatient_at = None;
        poll_fn(|context| {
            loop {
                if let Some(result) = self.take(context) {
                    return Poll::Ready(result);
                }
                let until = self.env.until(self.begun);
                if self.rearm() {
                    let patience = self.state.borrow().armed;
                    impatient_at = patience.map(|patience| Instant::now() + patience);
                }
                let due = impatient_at.map_or(until, |tick| until.min(tick)).into();
                if timer.deadline() != due {
                    timer.as_mut().reset(due);
                }
                ready!(timer.as_mut().poll(context));
                if self.env.until(self.begun) <= Instant::now() {
                    return Poll::Ready(Err(self.unavailable()));
                }
                if impatient_at.is_none_or(|tick| tick > Instant::now()) {
                    continue;
                }
                impatient_at = None;
                let mut state = self.state.borrow_mut();
                state.armed = None;
                if state.is_receiving() {
                    // Whoever is sending something large is not late.
                    continue;
                }
                let decision = state.tally.tick();
                drop(state);
                self.carry_out(decision);
            }
        })
        .await
    }

    /// Takes note of the tally's patience; true if another timer is to run from now on.
    fn rearm(&self) -> bool {
        let mut state = self.state.borrow_mut();
        let wanted = state.tally.patience();
        let changed = wanted != state.armed;
        state.armed = wanted;
        changed
    }

    /// The result, if there is one; otherwise whom to wake.
    fn take(&self, context: &Context<'_>) -> Option<Result<T::Output, Unavailable>> {
        let mut state = self.state.borrow_mut();
        match std::mem::replace(&mut state.outcome, Outcome::Over) {
            Outcome::Done(output) => Some(Ok(output)),
            Outcome::Impossible => {
                drop(state);
                Some(Err(self.unavailable()))
            }
            Outcome::Open => {
                state.outcome = Outcome::Open;
                state.waker = Some(context.waker().clone());
                None
            }
            Outcome::Over => unreachable!("a quorum call is awaited once"),
        }
    }

    fn unavailable(&self) -> Unavailable {
        let state = self.state.borrow();
        let responses = state.responses.iter().copied();
        Unavailable {
            configuration: None,
            needed: state.tally.needed(),
            servers: self.members.iter().copied().zip(responses).collect(),
            waited: self.env.idle_since(self.begun).elapsed(),
            handed_over: state.handed_over || state.waiting.iter().any(sent_since),
            obstacle: None,
        }
    }
}

/// Ends a quorum call that nobody waits for any more: decided, out of time, or dropped.
struct Abandon<'a, T: Tally + 'static>(&'a Rc<Gather<T>>);

impl<T: Tally + 'static> Drop for Abandon<'_, T> {
    fn drop(&mut self) {
        let mut state = self.0.state.borrow_mut();
        state.outcome = Outcome::Over;
        let calls = std::mem::take(&mut state.calls);
        drop(state);
        forget(calls);
    }
}

impl<T: Tally + 'static> Sink for Gather<T> {
    fn on_answer(&self, token: u64, answer: Answer<'_>) {
        let position = usize::try_from(token).expect("positions are small");
        let bytes = self.env.meter.count_answer(&answer);
        let event = event_of(answer);
        let decision = {
            let mut state = self.state.borrow_mut();
            if !matches!(state.outcome, Outcome::Open) {
                return;
            }
            state.responses[position] = response_of(&event);
            state.received_bytes += bytes;
            state.owes_bulk(position, None);
            state.handed_over |= !matches!(event, Event::Unreachable);
            state.tally.add(position, event)
        };
        self.carry_out(decision);
        let mut state = self.state.borrow_mut();
        let impatient = state.tally.patience() != state.armed;
        if matches!(state.outcome, Outcome::Open) && impatient {
            // The operation sets another timer; everything else happens here.
            if let Some(waker) = state.waker.take() {
                waker.wake();
            }
        }
    }
}

/// Answers to these are of no interest any more.
fn forget(calls: Vec<(Peer, CallKey)>) {
    for (peer, key) in calls {
        peer.forget(key);
    }
}

/// Elements that come with the answer to a query are small ([`areo_core::limits::INLINE_BYTES`]); those that are fetched
/// need not be.
fn expects_bulk(request: &Request) -> bool {
    let Request::Configured { body, .. } = request else {
        return false;
    };
    let fetches = |access: &Access| matches!(access, Access::Fetch { payload: true, .. });
    matches!(body, Body::Access(accesses) if accesses.iter().any(|(_, access)| fetches(access)))
}

fn sent_since((peer, connections): &(Peer, u64)) -> bool {
    peer.connections_made() > *connections
}
