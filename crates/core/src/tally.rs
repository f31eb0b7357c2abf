//! The pure fold that joins the two halves: what to ask each server, and what its replies decide.

use crate::message::{Refusal, Reply, Request};
use std::time::Duration;

/// The outcome of a request to one server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// The server answered.
    Reply(Reply),
    /// It refused, and will not answer unless asked again.
    Refused(Refusal),
    /// It cannot be reached at the moment; the request goes out again when it can, so a reply may follow.
    Unreachable,
}

/// The decision of a tally after an event.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Decision<T> {
    /// Wait for more events.
    Pending,
    /// Ask the servers at these positions (again): [`Tally::ask`] says what.
    Ask(Vec<usize>),
    /// The call has this result.
    Done(T),
    /// No further reply can decide it.
    Impossible,
}

/// A pure fold of replies into a decision. Positions are those of the member list that it was started with.
///
/// A tally must take every reply at any time: twice, late, for a question that it has since replaced.
pub trait Tally {
    /// The result of the call.
    type Output;

    /// Replies that it takes at least; for the error sentence.
    fn needed(&self) -> usize;

    /// The request to the server at this position now; `None` leaves it alone. First called once for every position, later for those of
    /// [`Decision::Ask`]. A function of the tally's state.
    fn ask(&mut self, position: usize) -> Option<Request>;

    /// Replies that servers gave already: they are folded in first, and these servers are left alone.
    fn known(&mut self) -> Vec<(usize, Reply)> {
        Vec::new()
    }

    /// Folds in what became of a request to the server at this position.
    fn add(&mut self, from: usize, event: Event) -> Decision<Self::Output>;

    /// Called when [`Tally::patience`] has run out.
    fn tick(&mut self) -> Decision<Self::Output> {
        Decision::Pending
    }

    /// The time after the last event of importance at which [`Tally::tick`] is wanted; `None`: not at all.
    fn patience(&self) -> Option<Duration> {
        None
    }
}
