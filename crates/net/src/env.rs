//! [`Env`] over TCP: the one implementation of the quorum call between processes.
//!
//! A quorum call is one allocation shared by its calls: each reply is decoded and folded into the tally on the task that
//! read it, and the operation is woken once, by the decision. What the tally asks for meanwhile is sent from there, too.

use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::{Rc, Weak};
use std::task::{Context, Poll, Waker, ready};
use std::time::{Duration, Instant, SystemTime};

use areo_core::config::{Decider, Members, ServerId};
use areo_core::env::{Env, Work};
use areo_core::error::{DeciderError, Response, Unavailable};
use areo_core::gather::{Call, Deadline};
use areo_core::instant::Instant as CoreInstant;
use areo_core::message::Note;
use areo_core::tally::{Event, Tally};
use areo_wire::codec;
use areo_wire::frame::TraceContext;
use bytes::Bytes;
use tokio::time::{sleep, sleep_until};
use tracing::Span;

use crate::message::{Outgoing, Segment};
use crate::network::Network;
use crate::outside::{self, Question};
use crate::peer::{Answer, CallKey, Peer, Sink, Status};

use answer::{event_of, refusal_of};
pub use meter::Counts;
use meter::{Meter, length_of};

mod answer;
mod meter;

/// A server that owes an answer and has sent nothing for this time is no good choice for the next read.
const SLOW: Duration = Duration::from_millis(50);

/// The environment of one operation: the servers of a cluster, the operation's deadline, and its cost so far.
#[derive(Clone)]
pub struct NetEnv {
    network: Network,
    started: Instant,
    deadline: Deadline,
    meter: Rc<Meter>,
}

impl Network {
    /// The environment of an operation with this timeout.
    pub fn env(&self, timeout: Duration) -> NetEnv {
        self.limited(Deadline::after(self.now(), timeout))
    }

    /// The environment of an operation that may take any time while it makes progress: it fails when none of its
    /// calls was decided for this time.
    pub fn patient_env(&self, patience: Duration) -> NetEnv {
        self.limited(Deadline::idle(self.now(), patience))
    }

    fn limited(&self, deadline: Deadline) -> NetEnv {
        NetEnv {
            network: self.clone(),
            started: Instant::now(),
            deadline,
            meter: Rc::new(Meter::new(self.calls())),
        }
    }
}

impl NetEnv {
    /// The cost of the operation so far.
    pub fn counts(&self) -> Counts {
        self.meter.counts()
    }

    /// The sentence with which a server has refused the caller of the operation as not authorised, the last one.
    pub fn unauthorised(&self) -> Option<String> {
        self.meter.unauthorised()
    }

    fn message(&self, outgoing: codec::EncodedMessage, started: Instant) -> Outgoing {
        let segment = |(bytes, crc32c): (Bytes, u32)| Segment { bytes, crc32c };
        let deadline = self.deadline.at();
        Outgoing {
            body: outgoing.body,
            payload: outgoing.payload.into_iter().map(segment).collect(),
            started,
            deadline: deadline.map(|deadline| self.network.instant(deadline)),
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
            myself: myself.clone(),
            state: RefCell::new(State {
                call: Call::new(to, tally, &self.deadline, self.now()),
                trace: None,
                sent_bytes: 0,
                received_bytes: 0,
                keys: Vec::with_capacity(to.len()),
                waiting: Vec::new(),
                waker: None,
            }),
        });
        async move {
            let begun = Instant::now();
            gather.env.meter.count_round();
            let span = Span::current();
            gather.state.borrow_mut().trace = gather.env.network.trace_of(&span);
            gather.send();
            let result = gather.clone().wait().await;
            gather.env.meter.count_end(result.is_ok(), begun.elapsed());
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

    fn clock_us(&self) -> u64 {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let since = since.unwrap_or_default().as_micros();
        u64::try_from(since).unwrap_or(0)
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
    ) -> Result<Bytes, DeciderError> {
        let now = self.now();
        let question = Question {
            service: service.clone(),
            key: key.to_owned(),
            proposal: proposal.clone(),
            timeout: self.deadline.of_call(now).since(now),
        };
        outside::decide(self.network.way_outside(), question).await
    }

    fn progressed(&self) {
        self.deadline.progressed();
    }

    fn slow(&self, server: ServerId) -> bool {
        self.network.peer(server).is_some_and(|peer| {
            let down = matches!(peer.status(), Status::Unreachable | Status::Refused(_));
            down || peer.silent_for(self.started) > SLOW
        })
    }
}

struct Gather<T: Tally> {
    env: NetEnv,
    /// For the answers that make it ask more.
    myself: Weak<Gather<T>>,
    state: RefCell<State<T>>,
}

struct State<T: Tally> {
    call: Call<T>,
    /// The span of the caller, for the servers that are asked.
    trace: Option<TraceContext>,
    sent_bytes: u64,
    received_bytes: u64,
    /// Every request that was taken; those that were answered are no longer there to be forgotten.
    keys: Vec<(Peer, CallKey)>,
    /// Peers that were out of reach when they were asked, with the connections that they had had by then: the request went
    /// out after all if there is another one since.
    waiting: Vec<(Peer, u64)>,
    waker: Option<Waker>,
}

impl<T: Tally> State<T> {
    /// Records the cost of the call in the span.
    fn describe(&self, span: &Span) {
        let responses = self.call.responses().iter();
        let answered = responses.filter(|response| matches!(response, Response::Answered));
        span.record("replies", answered.count());
        span.record("sent_bytes", self.sent_bytes);
        span.record("received_bytes", self.received_bytes);
    }
}

impl<T: Tally + 'static> Gather<T> {
    /// Sends the requests that the call wants to send.
    fn send(&self) {
        let mut state = self.state.borrow_mut();
        let state = &mut *state;
        let started = Instant::now();
        while let Some(next) = state.call.next_request() {
            // Where the address of a server is not known the request waits for it.
            let peer = self.env.network.peer_or_stranger(next.server);
            let message = Outgoing {
                trace: state.trace,
                expects_bulk: next.expects_bulk,
                ..self
                    .env
                    .message(codec::encode_request(&next.request), started)
            };
            let bytes = length_of(&message);
            let before = (peer.connections_made(), peer.bulk_received_bytes());
            let myself = self.myself.upgrade().expect("the operation holds it");
            let event = match peer.call(message, myself, next.position as u64) {
                Err(refused) => Event::Refused(refusal_of(refused)),
                Ok(call) => {
                    self.env.meter.count_request(&next.request, bytes);
                    state.sent_bytes += bytes;
                    state.keys.push((peer.clone(), call.key));
                    if call.reachable && !self.env.network.is_stranger(next.server) {
                        state.call.sent(&next, before.1);
                        continue;
                    }
                    state.waiting.push((peer, before.0));
                    Event::Unreachable
                }
            };
            let now = self.env.network.now();
            state.call.held_back(&next, event, now);
        }
    }

    /// Waits for the decision, the deadline, and the tally's patience.
    async fn wait(self: Rc<Self>) -> Result<T::Output, Unavailable> {
        let _over = Abandon(&self);
        let network = &self.env.network;
        let next_time = || network.instant(self.state.borrow().call.next_time());
        let mut timer = pin!(sleep_until(next_time().into()));
        poll_fn(|context| {
            loop {
                if let Some(result) = self.take(context) {
                    return Poll::Ready(result);
                }
                let due = next_time().into();
                if timer.deadline() != due {
                    timer.as_mut().reset(due);
                }
                ready!(timer.as_mut().poll(context));
                self.pass();
            }
        })
        .await
    }

    /// Takes in that time has passed.
    fn pass(&self) {
        let network = &self.env.network;
        let mut state = self.state.borrow_mut();
        state.call.pass(network.now(), |server| {
            let peer = network.peer(server);
            peer.map_or(0, |peer| peer.bulk_received_bytes())
        });
        drop(state);
        self.send();
    }

    /// The result, if there is one; otherwise whom to wake.
    fn take(&self, context: &Context<'_>) -> Option<Result<T::Output, Unavailable>> {
        let mut state = self.state.borrow_mut();
        if state.waiting.iter().any(sent_since) {
            state.call.sent_late();
        }
        let result = state.call.take();
        if result.is_none() {
            state.waker = Some(context.waker().clone());
        }
        result
    }

    /// Forgets the calls that are still in flight.
    fn forget(&self) {
        let keys = std::mem::take(&mut self.state.borrow_mut().keys);
        for (peer, key) in keys {
            peer.forget(key);
        }
    }
}

/// Ends a quorum call without a waiting caller: decided, out of time, or dropped.
struct Abandon<'a, T: Tally + 'static>(&'a Rc<Gather<T>>);

impl<T: Tally + 'static> Drop for Abandon<'_, T> {
    fn drop(&mut self) {
        self.0.state.borrow_mut().call.abandon();
        self.0.forget();
    }
}

impl<T: Tally + 'static> Sink for Gather<T> {
    fn on_answer(&self, token: u64, answer: Answer<'_>) {
        let position = usize::try_from(token).expect("positions are small");
        let bytes = self.env.meter.count_answer(&answer);
        let event = event_of(answer);
        let mut state = self.state.borrow_mut();
        state.received_bytes += bytes;
        if !state.call.hear(position, event, self.env.network.now()) {
            return;
        }
        drop(state);
        self.send();
        if !self.state.borrow().call.is_open() {
            self.forget();
        }
        // The operation takes the outcome, or waits for another time; everything else happens here.
        let waker = self.state.borrow_mut().waker.take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

fn sent_since((peer, connections): &(Peer, u64)) -> bool {
    peer.connections_made() > *connections
}
