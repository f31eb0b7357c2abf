//! Many calls of one object in one: each member gets one request with an access of every call that asks something of it,
//! and every call takes its own answer out of the reply. So moving many small objects costs the messages of one
//! (`[X-15 batch-snapshot]`).

use super::{ConfiguredTally, Decision, Event};
use crate::limits;
use crate::message::{Access, Body, Refusal, Reply};
use crate::object::Name;
use std::time::Duration;

/// Calls of the same configuration. Each member is asked once; a call that wants to ask again is left without a result.
pub struct Batch<T: ConfiguredTally> {
    calls: Vec<Call<T>>,
    /// The request to each member, by position, with the calls that it is asked for.
    asked: Vec<Option<MemberRequest>>,
    needed: usize,
}

struct Call<T: ConfiguredTally> {
    tally: T,
    is_decided: bool,
    /// A call that is decided without one is to be made alone.
    result: Option<T::Output>,
}

struct MemberRequest {
    accesses: Vec<(Name, Access)>,
    calls: Vec<usize>,
}

impl<T: ConfiguredTally> Batch<T> {
    /// Calls of a configuration with `n` members; each must consist of accesses.
    pub fn new(n: usize, calls: impl IntoIterator<Item = T>) -> Batch<T> {
        let call = |tally| Call {
            tally,
            is_decided: false,
            result: None,
        };
        let mut calls: Vec<Call<T>> = calls.into_iter().map(call).collect();
        let asked = (0..n).map(|position| MemberRequest::of(&mut calls, position));
        let asked = asked.collect();
        let needed = calls.iter().map(|call| call.tally.needed()).max();
        let needed = needed.expect("a batch has something in it");
        assert!(needed <= n, "no call needs more members than there are");
        Batch {
            calls,
            asked,
            needed,
        }
    }

    /// Takes in what became of the call.
    fn fold(&mut self, call: usize, decision: Decision<T::Output>) {
        let call = &mut self.calls[call];
        assert!(!call.is_decided, "a call is decided once");
        call.is_decided = !matches!(decision, Decision::Pending);
        if let Decision::Done(output) = decision {
            call.result = Some(output);
        }
    }

    fn evaluate(&mut self) -> Decision<Vec<Option<T::Output>>> {
        if self.calls.iter().any(|call| !call.is_decided) {
            return Decision::Pending;
        }
        let results = self.calls.iter_mut().map(|call| call.result.take());
        Decision::Done(results.collect())
    }
}

impl MemberRequest {
    fn of<T: ConfiguredTally>(calls: &mut [Call<T>], position: usize) -> Option<MemberRequest> {
        let mut asked = MemberRequest {
            accesses: Vec::with_capacity(calls.len()),
            calls: Vec::with_capacity(calls.len()),
        };
        for (number, call) in calls.iter_mut().enumerate() {
            if let Some(Body::Access(accesses)) = call.tally.ask(position) {
                asked.calls.extend(accesses.iter().map(|_| number));
                asked.accesses.extend(accesses);
            }
        }
        let count = asked.accesses.len();
        assert_eq!(count, asked.calls.len(), "each access is of a call");
        assert!(
            count <= limits::ACCESSES,
            "a server takes them in one request"
        );
        (!asked.calls.is_empty()).then_some(asked)
    }
}

impl<T: ConfiguredTally> ConfiguredTally for Batch<T> {
    /// The result of each call, in their order; `None`: it is to be made alone.
    type Output = Vec<Option<T::Output>>;

    fn needed(&self) -> usize {
        self.needed
    }

    fn ask(&mut self, position: usize) -> Option<Body> {
        let asked = self.asked[position].as_ref()?;
        Some(Body::Access(asked.accesses.clone()))
    }

    fn add(&mut self, from: usize, event: Event) -> Decision<Self::Output> {
        let Some(asked) = &self.asked[from] else {
            return Decision::Pending;
        };
        let calls = asked.calls.clone();
        let events: Vec<Event> = match event {
            Event::Reply(Reply::Access(answers)) if answers.len() == calls.len() => {
                let alone = |answer| Event::Reply(Reply::Access(vec![answer]));
                answers.into_iter().map(alone).collect()
            }
            Event::Reply(_) => vec![Event::Refused(Refusal::Malformed); calls.len()],
            event => vec![event; calls.len()],
        };
        assert_eq!(events.len(), calls.len(), "each call hears what it asked");
        for (call, event) in calls.into_iter().zip(events) {
            if !self.calls[call].is_decided {
                let decision = self.calls[call].tally.add(from, event);
                self.fold(call, decision);
            }
        }
        self.evaluate()
    }

    fn tick(&mut self) -> Decision<Self::Output> {
        for call in 0..self.calls.len() {
            if !self.calls[call].is_decided {
                let decision = self.calls[call].tally.tick();
                self.fold(call, decision);
            }
        }
        self.evaluate()
    }

    fn patience(&self) -> Option<Duration> {
        let undecided = self.calls.iter().filter(|call| !call.is_decided);
        undecided.filter_map(|call| call.tally.patience()).min()
    }
}

#[cfg(test)]
mod tests;
