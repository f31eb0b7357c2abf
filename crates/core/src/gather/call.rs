//! The driver of a tally: one quorum call, as pure as the tally.
//!
//! A world hands in what happened ([`Call::hear`], [`Call::sent`], [`Call::pass`]), sends what [`Call::next_request`] says, and
//! waits until [`Call::next_time`] or for a reply, whichever comes first. Patience, the deadline and what an
//! [`Unavailable`] says are here and nowhere else: over TCP, in the simulator, in the explorer and in the tests the same
//! lines drive the same tallies.

use super::deadline::Deadline;
use crate::config::{Members, ServerId};
use crate::error::{Response, Unavailable};
use crate::instant::Instant;
use crate::message::{Access, Body, Request, Want};
use crate::tally::{Decision, Event, Tally};
use std::collections::VecDeque;
use std::ops::Range;
use std::time::Duration;

/// A request that is to be sent.
#[derive(Debug)]
pub struct Outgoing {
    /// The position of the receiver.
    pub position: usize,
    pub server: ServerId,
    pub request: Request,
    /// True if the answer may be large: elements that come with the answer to a query are small ([`crate::limits::INLINE_BYTES`]), those that are
    /// fetched need not be.
    pub expects_bulk: bool,
}

/// A quorum call as a state machine: its driver sends requests and feeds events.
pub struct Call<T: Tally> {
    members: Members,
    deadline: Deadline,
    begun: Instant,
    needed: usize,
    state: State<T>,
    /// The members that were not asked yet, and after them those that the tally wants asked, in this order.
    unasked: Range<usize>,
    to_ask: VecDeque<usize>,
    responses: Vec<Response>,
    /// A member was asked, or had answered before: time alone decides no call.
    has_asked: bool,
    handed_over: bool,
    /// The members that owe a large answer, each with the bytes that had come from it at the last look.
    owing: Vec<(usize, u64)>,
    /// The tally's patience for which a timer runs, and when it is over.
    patience: Option<Duration>,
    tick_at: Instant,
    now: Instant,
}

enum State<T: Tally> {
    Open(T),
    Done(T::Output),
    /// Undecided when its time was over.
    OutOfTime,
    /// No further answer can decide it.
    Impossible,
    /// The outcome was handed out.
    Over,
}

impl<T: Tally> Call<T> {
    /// A call to these members, which wants to ask all of them.
    pub fn new(members: &Members, mut tally: T, deadline: &Deadline, now: Instant) -> Call<T> {
        deadline.calls(now);
        let (needed, known) = (tally.needed(), tally.known());
        assert!(needed <= members.len(), "there are as many as it takes");
        let mut call = Call {
            members: members.clone(),
            deadline: deadline.clone(),
            begun: now,
            needed,
            state: State::Open(tally),
            unasked: 0..members.len(),
            to_ask: VecDeque::new(),
            responses: vec![Response::Silent; members.len()],
            has_asked: !known.is_empty(),
            handed_over: false,
            owing: Vec::new(),
            patience: None,
            tick_at: now,
            now,
        };
        for (position, reply) in known {
            call.add(position, Event::Reply(reply), now);
        }
        // All others are asked anyway.
        call.to_ask.clear();
        call
    }

    /// The next request to send, until there is none. A call asks at least one member: a caller that has no member to ask makes no
    /// call, which would wait for time to pass (`[C-9 no-empty-call]`). The world says of each what became of it: [`Call::sent`] or
    /// [`Call::held_back`].
    pub fn next_request(&mut self) -> Option<Outgoing> {
        while let State::Open(tally) = &mut self.state {
            let owes = |position: &usize| self.responses[*position] != Response::Answered;
            let next = self.unasked.find(owes).or_else(|| self.to_ask.pop_front());
            let Some(position) = next else {
                assert!(self.has_asked, "there is no quorum call without a request");
                self.set_timer();
                return None;
            };
            let Some(request) = tally.ask(position) else {
                continue;
            };
            self.has_asked = true;
            return Some(Outgoing {
                position,
                server: self.members[position],
                expects_bulk: expects_bulk(&request),
                request,
            });
        }
        None
    }

    /// The request was handed to a connection: it may have its effect. So many bytes have come from the server before.
    pub fn sent(&mut self, request: &Outgoing, received_bytes: u64) {
        self.handed_over = true;
        self.owing.retain(|(owing, _)| *owing != request.position);
        if request.expects_bulk {
            self.owing.push((request.position, received_bytes));
        }
        let n = self.members.len();
        assert!(self.owing.len() <= n, "each owes one answer");
    }

    /// A request that was held back has left after all.
    pub fn sent_late(&mut self) {
        self.handed_over = true;
    }

    /// The request was not handed to a connection: the server is out of reach for now, and the request goes out later; or the
    /// queue to it is full, and it does not.
    pub fn held_back(&mut self, request: &Outgoing, event: Event, now: Instant) {
        let is_answer = matches!(event, Event::Reply(_));
        assert!(!is_answer, "a server answers what it was asked");
        self.add(request.position, event, now);
    }

    /// Takes in what became of the request to the server at this position. True if there is something to do: a request to
    /// send, another time to wait for, an outcome.
    pub fn hear(&mut self, position: usize, event: Event, now: Instant) -> bool {
        self.handed_over |= !matches!(event, Event::Unreachable);
        self.add(position, event, now)
    }

    fn add(&mut self, position: usize, event: Event, now: Instant) -> bool {
        assert!(position < self.members.len(), "a member answers");
        self.clock(now);
        let State::Open(tally) = &mut self.state else {
            return false;
        };
        self.responses[position] = match &event {
            Event::Reply(reply) => match reply.refusal() {
                None => Response::Answered,
                Some(refusal) => Response::Refused(refusal),
            },
            Event::Refused(refusal) => Response::Refused(*refusal),
            Event::Unreachable => Response::Unreachable,
        };
        self.owing.retain(|(owing, _)| *owing != position);
        let decision = tally.add(position, event);
        self.carry_out(decision)
    }

    /// Time has passed. `received` says how many bytes have come so far from a server: one that is
    /// sending something large is not late.
    pub fn pass(&mut self, now: Instant, received: impl Fn(ServerId) -> u64) {
        self.clock(now);
        if !matches!(self.state, State::Open(_)) {
            return;
        }
        if self.deadline.of_call(self.begun) <= now {
            self.state = State::OutOfTime;
            return;
        }
        if self.patience.is_none() || now < self.tick_at {
            return;
        }
        let mut is_receiving = false;
        for (position, seen) in &mut self.owing {
            let bytes = received(self.members[*position]);
            is_receiving |= std::mem::replace(seen, bytes) < bytes;
        }
        match is_receiving {
            true => {
                self.deadline.progressed();
                self.tick_at = now.plus(self.patience.expect("a timer ran for it"));
            }
            false => self.tick(),
        }
    }

    /// The tally's patience is over.
    pub fn tick(&mut self) {
        self.patience = None;
        if let State::Open(tally) = &mut self.state {
            let decision = tally.tick();
            self.carry_out(decision);
        }
    }

    /// The time at which [`Call::pass`] is wanted, if nothing happens before.
    pub fn next_time(&self) -> Instant {
        let until = self.deadline.of_call(self.begun);
        match self.patience {
            Some(_) => until.min(self.tick_at),
            None => until,
        }
    }

    /// True if the tally waits for time to pass.
    pub fn is_impatient(&self) -> bool {
        self.patience.is_some()
    }

    /// True if nothing is decided yet.
    pub fn is_open(&self) -> bool {
        matches!(self.state, State::Open(_))
    }

    /// The outcome, once there is one.
    pub fn take(&mut self) -> Option<Result<T::Output, Unavailable>> {
        match std::mem::replace(&mut self.state, State::Over) {
            State::Done(output) => Some(Ok(output)),
            State::OutOfTime => Some(Err(self.unavailable(Response::Silent))),
            State::Impossible => Some(Err(self.unavailable(Response::NotAwaited))),
            State::Open(tally) => {
                self.state = State::Open(tally);
                None
            }
            State::Over => unreachable!("a quorum call has one outcome"),
        }
    }

    /// The operation has ended, or does without: what still comes is not counted.
    pub fn abandon(&mut self) {
        self.state = State::Over;
    }

    /// The response of each server so far, by position.
    pub fn responses(&self) -> &[Response] {
        &self.responses
    }

    fn clock(&mut self, now: Instant) {
        assert!(self.now <= now, "time never goes back");
        self.now = now;
    }

    fn carry_out(&mut self, decision: Decision<T::Output>) -> bool {
        assert!(self.is_open(), "a call is decided once");
        match decision {
            Decision::Pending => return self.set_timer(),
            Decision::Ask(positions) => {
                let n = self.members.len();
                assert!(positions.iter().all(|p| *p < n), "members are asked");
                self.to_ask.extend(positions);
                self.set_timer();
            }
            Decision::Done(output) => {
                let servers = self
                    .members
                    .iter()
                    .copied()
                    .zip(self.responses.iter().copied());
                self.deadline.decided(self.now, servers);
                self.state = State::Done(output);
            }
            Decision::Impossible => self.state = State::Impossible,
        }
        true
    }

    /// The timer runs for the patience that the tally has now; true if that has changed.
    fn set_timer(&mut self) -> bool {
        let State::Open(tally) = &self.state else {
            return false;
        };
        let patience = tally.patience();
        let has_changed = patience != self.patience;
        if let (true, Some(patience)) = (has_changed, patience) {
            self.tick_at = self.now.plus(patience);
        }
        self.patience = patience;
        has_changed
    }

    /// The failure of the call. `unheard`: the response of a server of which nothing is known.
    fn unavailable(&self, unheard: Response) -> Unavailable {
        let n = self.members.len();
        assert_eq!(self.responses.len(), n, "each member is spoken of");
        let responses = self.responses.iter().copied();
        let servers = self.members.iter().copied().zip(responses).collect();
        let mut servers = self.deadline.reported(self.begun, self.now, servers);
        for ((_, reported), heard) in servers.iter_mut().zip(&self.responses) {
            // A call that ends before its time does not pass off what a server answered to an earlier call as an answer to this one.
            let was_answered = *reported == Response::Answered && unheard == Response::NotAwaited;
            let is_unheard = *heard == Response::Silent;
            if is_unheard && (was_answered || *reported == Response::Silent) {
                *reported = unheard;
            }
        }
        Unavailable {
            configuration: None,
            needed: self.needed,
            servers,
            waited: self.deadline.waited(self.begun, self.now),
            handed_over: self.handed_over,
            obstacle: None,
        }
    }
}

fn expects_bulk(request: &Request) -> bool {
    let Request::Configured { body, .. } = request else {
        return false;
    };
    let fetches = |access: &Access| match access {
        Access::Fetch { payload, .. } => *payload,
        Access::Finalize { want, .. } => matches!(want, Want::Fragment | Want::Element),
        _ => false,
    };
    matches!(body, Body::Access(accesses) if accesses.iter().any(|(_, access)| fetches(access)))
}

#[cfg(test)]
mod tests;
