//! The quorum call: what to ask each server, and when the replies decide.
//!
//! Counting replies to a quorum happens in implementations of [`Tally`] and nowhere else; no algorithm has a loop of its
//! own that resends and counts.

use crate::config::{Configuration, Members};
use crate::env::{Env, Work};
use crate::error::{CallError, Unavailable};
use crate::message::{Access, Body, Refusal, Reply, Request};
use crate::object::Name;
use crate::pointer::Successors;
use crate::span;
use crate::timing;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use thrifty::Thrifty;
use tracing::Instrument;
use visit::AddressedTally;

pub use crate::tally::{Decision, Event, Tally};
pub use batch::Batch;
pub use call::{Call, Outgoing};
pub use contact::EarlyAnswers;
pub use deadline::{Deadline, STALLS};
pub use visit::Visit;

mod batch;
mod call;
mod contact;
mod deadline;
mod thrifty;
mod visit;

/// A tally that speaks of one configuration: makes the bodies, not the envelopes.
pub trait ConfiguredTally {
    /// The result of the call.
    type Output: 'static;
    /// [`Tally::needed`] for one configuration.
    fn needed(&self) -> usize;
    /// [`Tally::ask`] for one configuration.
    fn ask(&mut self, position: usize) -> Option<Body>;
    /// True if the member at this position is among those that a thrifty call asks first: its answer alone has the
    /// wanted part.
    fn prefers(&self, _position: usize) -> bool {
        false
    }
    /// [`Tally::add`] for one configuration.
    fn add(&mut self, from: usize, event: Event) -> Decision<Self::Output>;
    /// [`Tally::tick`] for one configuration.
    fn tick(&mut self) -> Decision<Self::Output> {
        Decision::Pending
    }
    /// [`Tally::patience`] for one configuration.
    fn patience(&self) -> Option<Duration> {
        None
    }
}

/// Gathers from the members of a configuration. Every call to a configuration goes through here: a server that does not
/// know the configuration is sent the descriptor (`[C-7 describe-unknown]`), one that refuses for a reason that may pass is
/// asked again, and what servers know of the configuration's successor is taken from their replies.
///
/// # Errors
/// As [`Env::gather`]; or [`CallError::Moved`], if a quorum answered and one of them knows a final successor. With
/// [`crate::error::Obstacle::Forked`] if they know two successors of one index.
pub async fn gather<E: Env, T: ConfiguredTally + 'static>(
    env: &E,
    at: &Visit,
    tally: T,
) -> Result<T::Output, CallError> {
    call(env, at, Thrifty::new(env, at, tally, false)).await
}

/// A call that writes nothing, which may ask fewer members ([`Thrift`](crate::config::Thrift)).
///
/// # Errors
/// As [`gather`].
pub async fn query<E: Env, T: ConfiguredTally + 'static>(
    env: &E,
    at: &Visit,
    tally: T,
) -> Result<T::Output, CallError> {
    call(env, at, Thrifty::new(env, at, tally, true)).await
}

async fn call<E: Env, T: ConfiguredTally + 'static>(
    env: &E,
    at: &Visit,
    tally: T,
) -> Result<T::Output, CallError> {
    let addressed = AddressedTally::new(at, tally);
    let members = at.c().members();
    let span = span::of_call!(members, addressed.needed());
    let named = |unavailable| Unavailable {
        configuration: Some(at.c().clone()),
        ..unavailable
    };
    let gathered = span::watch!(span, env.gather(members, addressed));
    if let Some(fork) = at.fork() {
        env.count(Work::Forked);
        return Err(CallError::Unavailable(named(fork.into())));
    }
    gathered.map_err(named)?.ok_or(CallError::Moved)
}

/// The plain quorum: asks every member the same, hands each reply to `fold`, and is decided when `quorum` different
/// members gave a reply that `fold` counts.
pub struct Quorum<S, F> {
    body: Body,
    needed: usize,
    /// Counted already; the member is not asked.
    counted: Vec<bool>,
    /// For each member whether it refused, and has given no reply that counts since.
    refused: Vec<bool>,
    state: Option<S>,
    fold: F,
}

/// The effect of a reply on a fold.
pub enum Fold {
    /// It counts towards the quorum.
    Count,
    /// It does not, and this member will not.
    Ignore,
    /// Enough: decided now, whatever the quorum.
    Decide,
}

impl<S, F: FnMut(&mut S, usize, Reply) -> Fold> Quorum<S, F> {
    /// A quorum call to a configuration.
    pub fn of(c: &Configuration, body: Body, state: S, fold: F) -> Self {
        Quorum::new(c.n(), c.quorums().quorum(), body, state, fold)
    }

    /// A quorum call over `members` members.
    pub fn new(members: usize, quorum: usize, body: Body, state: S, fold: F) -> Self {
        assert!(0 < quorum && quorum <= members, "a quorum of the members");
        Quorum {
            body,
            needed: quorum,
            counted: vec![false; members],
            refused: vec![false; members],
            state: Some(state),
            fold,
        }
    }

    fn finish(&mut self) -> Decision<S> {
        Decision::Done(self.state.take().expect("a call is decided once"))
    }
}

impl<S: 'static, F: FnMut(&mut S, usize, Reply) -> Fold> ConfiguredTally for Quorum<S, F> {
    type Output = S;

    fn needed(&self) -> usize {
        self.needed
    }

    fn ask(&mut self, position: usize) -> Option<Body> {
        (!self.counted[position]).then(|| self.body.clone())
    }

    fn add(&mut self, from: usize, event: Event) -> Decision<S> {
        if self.counted[from] {
            return Decision::Pending;
        }
        match event {
            Event::Unreachable => Decision::Pending,
            Event::Refused(_) => {
                self.refused[from] = true;
                let refused = self.refused.iter().filter(|refused| **refused).count();
                match self.refused.len() - refused < self.needed {
                    true => Decision::Impossible,
                    false => Decision::Pending,
                }
            }
            Event::Reply(reply) => {
                let state = self.state.as_mut().expect("a call is decided once");
                match (self.fold)(state, from, reply) {
                    Fold::Decide => self.finish(),
                    Fold::Ignore => self.add(from, Event::Refused(Refusal::Malformed)),
                    Fold::Count => {
                        self.counted[from] = true;
                        self.refused[from] = false;
                        let counted = self.counted.iter().filter(|counted| **counted).count();
                        match counted >= self.needed {
                            true => self.finish(),
                            false => Decision::Pending,
                        }
                    }
                }
            }
        }
    }
}

/// A request to servers as such, not to a configuration: the same to all, decided by `quorum` replies.
pub struct Servers<S, F> {
    request: Request,
    again: Vec<usize>,
    quorum: Quorum<S, F>,
}

impl<S, F: FnMut(&mut S, usize, Reply) -> Fold> Servers<S, F> {
    /// A call to `servers` servers.
    pub fn new(servers: usize, quorum: usize, request: Request, state: S, fold: F) -> Self {
        let body = Body::Access(Vec::new());
        Servers {
            request,
            again: Vec::new(),
            quorum: Quorum::new(servers, quorum, body, state, fold),
        }
    }
}

impl<S: 'static, F: FnMut(&mut S, usize, Reply) -> Fold> Tally for Servers<S, F> {
    type Output = S;

    fn needed(&self) -> usize {
        self.quorum.needed()
    }

    fn ask(&mut self, position: usize) -> Option<Request> {
        (!self.quorum.counted[position]).then(|| self.request.clone())
    }

    fn add(&mut self, from: usize, event: Event) -> Decision<S> {
        match event {
            Event::Refused(refusal) if refusal.may_pass() => {
                if !self.again.contains(&from) {
                    self.again.push(from);
                }
                let members = self.quorum.counted.len();
                assert!(self.again.len() <= members, "each is asked again once");
                Decision::Pending
            }
            event => self.quorum.add(from, event),
        }
    }

    fn tick(&mut self) -> Decision<S> {
        match std::mem::take(&mut self.again) {
            again if again.is_empty() => Decision::Pending,
            again => Decision::Ask(again),
        }
    }

    fn patience(&self) -> Option<Duration> {
        (!self.again.is_empty()).then_some(timing::ASK_AGAIN)
    }
}

/// Asks every server of `to` the same and collects whatever comes until all have answered, refused or are out of reach,
/// or the deadline passes. Never fails: the result has `None` where there was no answer.
pub async fn survey<E: Env>(env: &E, to: &Members, request: Request) -> Vec<Option<Reply>> {
    survey_for(env, to, request, None).await
}

/// Asks some members of a configuration about one object, as [`survey_for`] asks servers.
pub async fn survey_object<E: Env>(
    env: &E,
    (c, members): (&Arc<Configuration>, &Members),
    (name, access): (&Name, Access),
    patience: Duration,
) -> Vec<Option<Reply>> {
    let request = Request::Configured {
        configuration: c.id(),
        descriptor: Some(c.clone()),
        successors: Successors::default(),
        body: Body::Access(vec![(name.clone(), access)]),
    };
    survey_for(env, members, request, Some(patience)).await
}

/// Surveys servers, but waits no longer than `patience` for servers that are silent.
pub async fn survey_for<E: Env>(
    env: &E,
    to: &Members,
    request: Request,
    patience: Option<Duration>,
) -> Vec<Option<Reply>> {
    if to.is_empty() {
        // No answer would come that could decide it, so that it would wait for the deadline.
        return Vec::new();
    }
    let state = Arc::new(std::sync::OnceLock::new());
    let survey = Survey {
        request,
        heard: vec![false; to.len()],
        replies: vec![None; to.len()],
        late: state.clone(),
        patience,
    };
    let span = span::of_call!(to, to.len());
    // At the deadline it has what it has: that is no error.
    let replies = match env.gather(to, survey).instrument(span).await {
        Ok(replies) => replies,
        Err(_) => state.get().cloned().unwrap_or_else(|| vec![None; to.len()]),
    };
    assert_eq!(replies.len(), to.len(), "a place for each server");
    replies
}

struct Survey {
    request: Request,
    heard: Vec<bool>,
    replies: Vec<Option<Reply>>,
    /// Filled when the survey is dropped undecided at the deadline.
    late: Arc<std::sync::OnceLock<Vec<Option<Reply>>>>,
    patience: Option<Duration>,
}

impl Drop for Survey {
    fn drop(&mut self) {
        // Failing means that it is filled already, which cannot happen: a survey is dropped once.
        let _ = self.late.set(std::mem::take(&mut self.replies));
    }
}

impl Tally for Survey {
    type Output = Vec<Option<Reply>>;

    fn needed(&self) -> usize {
        self.heard.len()
    }

    fn ask(&mut self, position: usize) -> Option<Request> {
        (!self.heard[position]).then(|| self.request.clone())
    }

    fn add(&mut self, from: usize, event: Event) -> Decision<Self::Output> {
        self.heard[from] = true;
        if let Event::Reply(reply) = event {
            self.replies[from] = Some(reply);
        }
        match self.heard.iter().all(|heard| *heard) {
            true => Decision::Done(std::mem::take(&mut self.replies)),
            false => Decision::Pending,
        }
    }

    /// Ends the survey with the replies that came in time.
    fn tick(&mut self) -> Decision<Self::Output> {
        Decision::Done(std::mem::take(&mut self.replies))
    }

    fn patience(&self) -> Option<Duration> {
        self.patience
    }
}

/// Runs the futures at once, at most `window` of them at a time, and returns their results in their order.
pub async fn join<F: Future>(
    window: usize,
    futures: impl IntoIterator<Item = F>,
) -> Vec<F::Output> {
    assert!(window > 0, "a window lets something through");
    let mut waiting = futures.into_iter();
    let mut running: Vec<(usize, Pin<Box<F>>)> = Vec::new();
    let mut done: Vec<Option<F::Output>> = Vec::new();
    std::future::poll_fn(move |context: &mut Context<'_>| {
        loop {
            while running.len() < window {
                let Some(future) = waiting.next() else { break };
                running.push((done.len(), Box::pin(future)));
                done.push(None);
            }
            let before = running.len();
            assert!(before <= window, "no more run at once");
            running.retain_mut(|(position, future)| match future.as_mut().poll(context) {
                Poll::Ready(output) => {
                    done[*position] = Some(output);
                    false
                }
                Poll::Pending => true,
            });
            if running.is_empty() && running.len() == before {
                let outputs = done
                    .drain(..)
                    .map(|output| output.expect("all have finished"));
                return Poll::Ready(outputs.collect());
            }
            if running.len() == before {
                return Poll::Pending;
            }
        }
    })
    .await
}

/// Runs two futures at once, and returns what both came to.
pub async fn both<A: Future, B: Future>(a: A, b: B) -> (A::Output, B::Output) {
    let (mut a, mut b) = (pin!(a), pin!(b));
    let (mut of_a, mut of_b) = (None, None);
    std::future::poll_fn(move |context: &mut Context<'_>| {
        if of_a.is_none()
            && let Poll::Ready(output) = a.as_mut().poll(context)
        {
            of_a = Some(output);
        }
        if of_b.is_none()
            && let Poll::Ready(output) = b.as_mut().poll(context)
        {
            of_b = Some(output);
        }
        match (of_a.take(), of_b.take()) {
            (Some(a), Some(b)) => Poll::Ready((a, b)),
            (a, b) => {
                (of_a, of_b) = (a, b);
                Poll::Pending
            }
        }
    })
    .await
}

#[cfg(test)]
pub(crate) mod tests;
