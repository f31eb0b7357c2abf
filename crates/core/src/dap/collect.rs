//! The tally of get-data: a few members are asked for elements, the others for tags only; a rule of the configuration's
//! kind says which version a quorum of answers allows to return; what is missing of it is fetched (`[X-5]`).

use super::{Scope, single};
use crate::config::{Configuration, Dap};
use crate::element::{Carried, Element, Form};
use crate::env::Env;
use crate::error::Unavailable;
use crate::gather::{self, ConfiguredTally, Decision, Event};
use crate::limits;
use crate::message::{Access, Answer, Body, Held, Refusal, Want};
use crate::object::Name;
use crate::tag::Tag;
use std::sync::Arc;
use std::time::Duration;

/// Which version the answers of a quorum allow to return; `None`: none yet. Pure.
pub(super) type Rule = fn(&Configuration, &[Option<Held>], have: Tag) -> Option<Tag>;

/// What get-data needs to know.
pub(super) struct Collect {
    configuration: Arc<Configuration>,
    name: Name,
    rule: Rule,
    scope: Scope,
    /// The caller has the value of this tag.
    have: Tag,
    members: Vec<Member>,
    /// Set once the rule has accepted a version; later answers do not change it.
    accepted: Option<Tag>,
    /// A member could not speak for the object: it is to be repaired by the write-back (`[X-11]`).
    damaged: bool,
}

/// What is known of one member.
struct Member {
    asks: Asks,
    /// Its one answer to the query (`[X-5]`: by one single reply).
    held: Option<Held>,
    element: Option<(Tag, Element)>,
    /// Nothing more is to be expected of it, for now.
    silent: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Asks {
    Query(Want),
    Fetch(Tag),
}

/// How a collection ends.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// A version that may be returned, with the elements that make it.
    Found(Collected),
    /// The answers fit no version, or one went away meanwhile: ask again (2.7).
    Restart,
}

/// A version and its elements.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Collected {
    pub(super) tag: Tag,
    /// Enough elements of the version, each from another member; none if the caller has the value, or it is the initial one.
    pub(super) elements: Vec<Element>,
    pub(super) complete: bool,
    pub(super) holders: Vec<bool>,
    pub(super) damaged: bool,
}

/// Collects a version that `rule` accepts; asks again as long as the operation has time (2.7). `wants` says what each
/// member is asked at the given attempt, counted from 0.
pub(super) async fn collect<E: Env>(
    env: &E,
    c: &Arc<Configuration>,
    name: &Name,
    rule: Rule,
    (have, scope): (Tag, Scope),
    wants: impl Fn(u32) -> Vec<Want>,
) -> Result<Collected, Unavailable> {
    let mut attempt = 0;
    loop {
        let tally = Collect::new(c, name, rule, scope, have, &wants(attempt));
        match gather::gather(env, c, tally).await? {
            Outcome::Found(collected) => return Ok(collected),
            Outcome::Restart => {
                // At once, then after a random while of up to about four round trips.
                if attempt > 0 {
                    let most = 1 << attempt.min(5);
                    env.sleep(Duration::from_micros(env.random() % (most * 250)))
                        .await;
                }
                attempt += 1;
            }
        }
    }
}

impl Collect {
    /// `wants[position]` is what the member is asked at first.
    pub(super) fn new(
        configuration: &Arc<Configuration>,
        name: &Name,
        rule: Rule,
        scope: Scope,
        have: Tag,
        wants: &[Want],
    ) -> Collect {
        assert_eq!(wants.len(), configuration.n(), "one for each member");
        let member = |want: &Want| Member {
            asks: Asks::Query(*want),
            held: None,
            element: None,
            silent: false,
        };
        Collect {
            configuration: configuration.clone(),
            name: name.clone(),
            rule,
            scope,
            have,
            members: wants.iter().map(member).collect(),
            accepted: None,
            damaged: false,
        }
    }

    fn quorum(&self) -> usize {
        self.configuration.quorums().quorum()
    }

    /// Decides if it can; asks for what is missing if that is known to be missing.
    fn evaluate(&mut self) -> Decision<Outcome> {
        let replies = self
            .members
            .iter()
            .filter(|member| member.held.is_some())
            .count();
        if replies < self.quorum() {
            let hopeless = self
                .members
                .iter()
                .filter(|m| m.silent && m.held.is_none() && m.asks == REFUSED)
                .count();
            return match self.members.len() - hopeless < self.quorum() {
                true => Decision::Impossible,
                false => Decision::Pending,
            };
        }
        if self.accepted.is_none() {
            let held: Vec<Option<Held>> = self
                .members
                .iter()
                .map(|member| member.held.clone())
                .collect();
            self.accepted = (self.rule)(&self.configuration, &held, self.have);
        }
        let Some(tag) = self.accepted else {
            // More answers may allow a version; without any to come, only asking again can.
            return match self
                .members
                .iter()
                .any(|member| member.held.is_none() && !member.silent)
            {
                true => Decision::Pending,
                false => Decision::Done(Outcome::Restart),
            };
        };
        if tag.is_initial() || tag == self.have || self.enough(tag) {
            return Decision::Done(Outcome::Found(self.collected(tag)));
        }
        self.fetch_missing(tag)
    }

    /// Asks members that hold `tag` for their elements, as many as would be missing if all that are still expected came.
    fn fetch_missing(&mut self, tag: Tag) -> Decision<Outcome> {
        let expected = self
            .members
            .iter()
            .filter(|member| member.will_give(tag, self.scope))
            .count();
        let copies =
            |m: &Member| m.held.as_ref().and_then(|held| held.form_of(tag)) == Some(Form::Copy);
        let needed = match self.scope == Scope::Metadata || self.members.iter().any(copies) {
            true => 1,
            false => usize::from(self.configuration.dap().k()),
        };
        let have = self.members.iter().filter(|member| member.has(tag)).count();
        let mut missing = needed.saturating_sub(have + expected);
        let mut fetch = Vec::new();
        for (position, member) in self.members.iter_mut().enumerate() {
            let holds = member.held.as_ref().is_some_and(|held| held.stores(tag));
            if missing == 0 || !holds || member.has(tag) || member.asks == Asks::Fetch(tag) {
                continue;
            }
            member.asks = Asks::Fetch(tag);
            member.silent = false;
            missing -= 1;
            fetch.push(position);
        }
        if !fetch.is_empty() {
            return Decision::Ask(fetch);
        }
        let hope = self
            .members
            .iter()
            .any(|m| m.will_give(tag, self.scope) || (m.held.is_none() && !m.silent));
        match hope {
            true => Decision::Pending,
            false => Decision::Done(Outcome::Restart),
        }
    }

    /// Whether the elements here make the value of `tag`: one copy, or k distinct fragments of this configuration's form.
    fn enough(&self, tag: Tag) -> bool {
        let mut fragments = 0;
        for member in self.members.iter().filter(|member| member.has(tag)) {
            let (_, element) = member.element.as_ref().expect("it has one");
            match element.form {
                Form::Copy => return true,
                Form::Fragment { .. } => fragments += 1,
            }
        }
        fragments
            >= if self.scope == Scope::Metadata {
                1
            } else {
                usize::from(self.configuration.dap().k())
            }
    }

    fn collected(&mut self, tag: Tag) -> Collected {
        let holds = |member: &Member| member.held.as_ref().is_some_and(|held| held.stores(tag));
        let holders: Vec<bool> = self.members.iter().map(holds).collect();
        let stable = self
            .members
            .iter()
            .flat_map(|member| &member.held)
            .any(|held| held.stable >= tag);
        let at_quorum = holders.iter().filter(|holds| **holds).count() >= self.quorum();
        let elements = match tag.is_initial() || tag == self.have {
            true => Vec::new(),
            false => self
                .members
                .iter_mut()
                .filter(|m| m.has(tag))
                .filter_map(|m| m.element.take())
                .collect(),
        };
        Collected {
            tag,
            elements: elements.into_iter().map(|(_, element)| element).collect(),
            // What nobody wrote is at every quorum.
            complete: tag.is_initial() || stable || at_quorum,
            holders,
            damaged: self.damaged,
        }
    }

    fn answer(&mut self, from: usize, answer: Answer) -> Decision<Outcome> {
        let form_fits = |element: &Element| self.fits(from, element.form);
        match answer {
            Answer::Held(mut held) if self.members[from].held.is_none() => {
                let element = match held.element.take() {
                    Some((tag, Carried::Whole(element))) if form_fits(&element) => {
                        Some((tag, element))
                    }
                    _ => None,
                };
                let member = &mut self.members[from];
                member.element = element;
                member.held = Some(held);
                self.evaluate()
            }
            Answer::Fetched(Carried::Whole(element)) if form_fits(&element) => {
                let member = &mut self.members[from];
                if let Asks::Fetch(tag) = member.asks {
                    member.element = Some((tag, element));
                }
                self.evaluate()
            }
            Answer::Evicted => Decision::Done(Outcome::Restart),
            Answer::Refused(refusal) => self.refused(from, refusal),
            Answer::Held(_) | Answer::Fetched(_) | Answer::Stored => Decision::Pending,
        }
    }

    /// Whether an element of this form is the one that the member at this position holds (`[EC-2]`).
    fn fits(&self, from: usize, form: Form) -> bool {
        let c = &self.configuration;
        match (form, c.dap()) {
            (Form::Copy, _) => true,
            (Form::Fragment { .. }, Dap::Abd) => false,
            (Form::Fragment { n, k, index }, Dap::Ec { k: ours }) => {
                let hash = self.name.placement_hash(c.descriptor().domain);
                usize::from(n) == c.n() && k == ours && index == c.element_index(from, hash)
            }
        }
    }

    fn refused(&mut self, from: usize, refusal: Refusal) -> Decision<Outcome> {
        self.damaged |= refusal == Refusal::Damaged;
        let member = &mut self.members[from];
        if matches!(member.asks, Asks::Fetch(_)) {
            // It cannot give what it holds: its answer to the query no longer stands either.
            member.held = None;
            self.accepted = None;
        }
        member.asks = REFUSED;
        member.silent = true;
        self.evaluate()
    }
}

/// Marks a member that refused; it is not asked again in this collection.
const REFUSED: Asks = Asks::Fetch(Tag::INITIAL);

impl Member {
    fn has(&self, tag: Tag) -> bool {
        self.element.as_ref().is_some_and(|(held, _)| *held == tag)
    }

    /// Whether an element of `tag` may still come without asking for it.
    fn will_give(&self, tag: Tag, scope: Scope) -> bool {
        if self.silent || self.has(tag) {
            return false;
        }
        match self.asks {
            Asks::Fetch(fetched) => fetched == tag,
            Asks::Query(Want::Tags) => false,
            Asks::Query(Want::Metadata) => self.held.is_none() && scope == Scope::Metadata,
            Asks::Query(Want::Fragment | Want::Element) => self.held.is_none(),
        }
    }
}

impl ConfiguredTally for Collect {
    type Output = Outcome;

    fn needed(&self) -> usize {
        self.quorum()
    }

    fn ask(&mut self, position: usize) -> Option<Body> {
        let access = match self.members[position].asks {
            REFUSED => return None,
            Asks::Query(want) => Access::Query {
                want,
                have: self.have,
            },
            Asks::Fetch(tag) => Access::Fetch {
                tag,
                payload: self.scope == Scope::Whole,
            },
        };
        Some(Body::Access(vec![(self.name.clone(), access)]))
    }

    fn add(&mut self, from: usize, event: Event) -> Decision<Outcome> {
        match event {
            Event::Reply(reply) => match single(reply) {
                Some(answer) => {
                    self.members[from].silent = false;
                    self.answer(from, answer)
                }
                None => self.refused(from, Refusal::Malformed),
            },
            Event::Refused(refusal) => self.refused(from, refusal),
            Event::Unreachable => {
                self.members[from].silent = true;
                self.evaluate()
            }
        }
    }

    /// The hedge: whoever has not answered by now is not waited for.
    fn tick(&mut self) -> Decision<Outcome> {
        for member in &mut self.members {
            let answered = match member.asks {
                Asks::Query(_) => member.held.is_some(),
                Asks::Fetch(tag) => member.has(tag),
            };
            member.silent |= !answered;
        }
        self.evaluate()
    }

    fn patience(&self) -> Option<Duration> {
        Some(limits::HEDGE)
    }
}
