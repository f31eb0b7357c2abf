//! The tally of an adoption (`[X-17 adopted-elements]`): which members hold the version afterwards, without its having been
//! sent to them.

use super::{ec, form, single};
use crate::config::Configuration;
use crate::element::{Element, Form};
use crate::env::Env;
use crate::gather::{ConfiguredTally, Decision, Event};
use crate::message::{Access, Answer, Body};
use crate::object::Name;
use crate::tag::Tag;
use crate::timing;
use std::time::Duration;

/// True if the member of `new` at this position can make its element from its element in `old`.
pub fn is_adoptable(
    (old, new): (&Configuration, &Configuration),
    name: &Name,
    position: usize,
    kept: (u64, bool),
) -> bool {
    let before = old.position(new.members()[position]);
    let held = before.map(|before| form(old, name, before, kept));
    held.is_some_and(|held| is_enough(held, form(new, name, position, kept)))
}

/// True if an element of the wanted form can be made of one of this form alone.
pub(crate) fn is_enough(held: Form, wanted: Form) -> bool {
    held == Form::Copy || held.is_same(wanted)
}

/// The element in the form that this configuration wants, if it can be made of this one alone (`[X-17 adopted-elements]`).
pub fn adapted(c: &Configuration, form: Form, element: Element) -> Option<Element> {
    match (element.form, form) {
        (held, wanted) if held.is_same(wanted) => Some(Element { form, ..element }),
        (Form::Copy, Form::Fragment { index, .. }) => Some(Element {
            form,
            payload: ec::fragment(c, &element.payload, index),
            checksum: None,
            ..element
        }),
        _ => None,
    }
}

pub(super) struct Adopt {
    name: Name,
    tag: Tag,
    quorum: usize,
    /// The answer of each member: whether it holds the version.
    said: Vec<Option<bool>>,
    /// Out of reach, or slow lately: not waited for.
    late: Vec<bool>,
}

impl Adopt {
    pub(super) fn new<E: Env>(env: &E, c: &Configuration, name: &Name, tag: Tag) -> Adopt {
        Adopt {
            name: name.clone(),
            tag,
            quorum: c.quorums().quorum(),
            said: vec![None; c.n()],
            late: c.members().iter().map(|server| env.slow(*server)).collect(),
        }
    }

    /// A quorum has spoken; the others are waited for unless they are late.
    fn evaluate(&self, patient: bool) -> Decision<Vec<bool>> {
        let spoken = self.said.iter().flatten().count();
        let mut members = self.said.iter().zip(&self.late);
        let waits = patient && members.any(|(said, late)| said.is_none() && !late);
        match spoken < self.quorum || waits {
            true => Decision::Pending,
            false => Decision::Done(self.said.iter().map(|said| *said == Some(true)).collect()),
        }
    }
}

impl ConfiguredTally for Adopt {
    /// A flag for each member, true if it holds the version: an acknowledgement, as of a put.
    type Output = Vec<bool>;

    fn needed(&self) -> usize {
        self.quorum
    }

    fn ask(&mut self, position: usize) -> Option<Body> {
        let adopt = Access::Adopt(self.tag);
        let asks = self.said[position].is_none();
        asks.then(|| Body::Access(vec![(self.name.clone(), adopt)]))
    }

    fn add(&mut self, from: usize, event: Event) -> Decision<Vec<bool>> {
        let before = self.said[from];
        match event {
            Event::Unreachable => self.late[from] = true,
            Event::Refused(_) => self.said[from] = self.said[from].or(Some(false)),
            Event::Reply(reply) => {
                let holds = single(reply) == Some(Answer::Stored);
                self.said[from] = Some(holds || self.said[from] == Some(true));
            }
        }
        assert!(
            before != Some(true) || self.said[from] == before,
            "a later answer takes no acknowledgement back"
        );
        self.evaluate(true)
    }

    fn tick(&mut self) -> Decision<Vec<bool>> {
        self.evaluate(false)
    }

    fn patience(&self) -> Option<Duration> {
        let spoken = self.said.iter().flatten().count();
        (spoken >= self.quorum).then_some(timing::ADOPTION_GRACE)
    }
}

#[cfg(test)]
mod tests;
