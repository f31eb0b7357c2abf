//! The tally of get-data: a few members are asked for elements, the others for tags only; the configuration's kind
//! says which version a quorum of answers allows to return; what is missing of it is fetched (`[X-5 single-reply]`).

use super::found::{CollectedVersion, Loss};
use super::kind::of_kind;
use super::{PassedVersions, Scope, single};
use crate::config::Configuration;
use crate::element::{Element, Form, ReplyElement};
use crate::env::{Env, Work};
use crate::error::CallError;
use crate::gather::{self, ConfiguredTally, Decision, Event, Visit};
use crate::message::{Access, Answer, Body, HeldVersions, Refusal, Want};
use crate::object::Name;
use crate::tag::Tag;
use crate::timing;
use member::{AWAITED_PATIENCE, Asks, FETCH_PATIENCE, Member, QUERY_PATIENCE, REFUSED};
use std::sync::Arc;
use std::time::Duration;

pub(super) mod elements;
mod losses;
mod member;

/// The tally of get-data.
pub(super) struct Collect {
    configuration: Arc<Configuration>,
    name: Name,
    scope: Scope,
    /// The caller has the value of this tag.
    have: Tag,
    passed: PassedVersions,
    members: Vec<Member>,
    /// Set once the rule has accepted a version; nothing changes it, so that all that is fetched is of one version.
    accepted: Option<Tag>,
    /// Ticks since then, or since the start.
    ticks: u32,
    /// Ticks after which members that are late are no longer hoped for; a multiple of that while elements are fetched.
    hope: u32,
    /// A member could not speak for the object: it is to be repaired by the write-back (`[X-11 damage-abstains]`).
    damaged: bool,
}

/// The end of a collection.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// A version that may be returned, with the elements that make it.
    Found(CollectedVersion),
    /// The answers fit no version, or one went away meanwhile: ask again (2.7).
    Restart,
    /// A restart where members have lost elements; with a version that is lost, if these answers prove it (`[X-40 named-loss]`).
    Damaged(Option<Box<Loss>>),
}

/// Collects a version that the kind accepts; asks again as long as the operation has time (2.7). `None`: an attempt that was
/// to pass some versions over found nothing to return in their place.
pub(super) async fn collect<E: Env>(
    env: &E,
    at: &Visit,
    name: &Name,
    (have, scope, passed): (Tag, Scope, &PassedVersions),
) -> Result<Option<CollectedVersion>, CallError> {
    let passes = !passed.unplaced.is_empty();
    let (mut attempt, mut lost, mut hears_all) = (0, None, false);
    loop {
        let wants = of_kind!(at.c(), K => K::wants(env, at.c(), name, scope, attempt));
        let mut tally = Collect::new(at.c(), name, scope, have, &wants);
        tally.passed = passed.clone();
        tally.await_members(hears_all);
        // Whatever the round trip is: sooner or later an attempt waits long enough for it. An older version takes the answers
        // of more members than a quorum.
        tally.hope <<= if passes { PASSING_HOPE } else { attempt.min(8) };
        let mut outcome = gather::query(env, at, tally).await?;
        let is_accepted = matches!(outcome, Outcome::Found(_));
        if let Outcome::Found(collected) = &mut outcome
            && !of_kind!(at.c(), K => {
                K::fetches(passed) || K::finish(env, at, name, (scope, attempt), collected).await?
            })
        {
            outcome = match collected.damaged {
                true => Outcome::Damaged(collected.loss.take()),
                false => Outcome::Restart,
            };
        }
        let before = lost.take();
        match outcome {
            Outcome::Found(collected) => return Ok(Some(collected)),
            Outcome::Restart | Outcome::Damaged(_) if passes => return Ok(None),
            // Once is not enough: an element may have been on its way.
            Outcome::Damaged(Some(loss)) if before == Some(loss.tag) => {
                return Err(loss.error(at.c(), name).into());
            }
            Outcome::Restart | Outcome::Damaged(_) => {
                if let Outcome::Damaged(loss) = outcome {
                    // A version that a round has finalized is accepted before all have said whether they have its element.
                    (lost, hears_all) = (loss.map(|it| it.tag), is_accepted);
                }
                env.count(Work::AskedAgain);
                // At once, then after a random while of up to about four round trips. A finalized version whose elements are not
                // there may be one that no writer brings any more: two rounds of each attempt are for nothing.
                if attempt > 0 {
                    let doublings = if is_accepted { 8 } else { 4 };
                    let most = timing::RESTART_PAUSE * (1 << (attempt - 1).min(doublings));
                    env.pause(most).await;
                }
                attempt += 1;
            }
        }
    }
}

impl Collect {
    /// A collection whose first request to each member is `wants[position]`.
    pub(super) fn new(
        configuration: &Arc<Configuration>,
        name: &Name,
        scope: Scope,
        have: Tag,
        wants: &[Want],
    ) -> Collect {
        assert_eq!(wants.len(), configuration.n(), "one for each member");
        let member = |want: &Want| Member {
            asks: Asks::Query(*want),
            held: None,
            element: None,
            patience: QUERY_PATIENCE,
            is_awaited: false,
            gone: false,
            refused: None,
        };
        Collect {
            configuration: configuration.clone(),
            name: name.clone(),
            scope,
            have,
            passed: PassedVersions::default(),
            members: wants.iter().map(member).collect(),
            accepted: None,
            ticks: 0,
            hope: 1,
            damaged: false,
        }
    }

    fn quorum(&self) -> usize {
        self.configuration.quorums().quorum()
    }

    /// Gives the members that are to be waited for their time.
    fn await_members(&mut self, all: bool) {
        let ids = self.configuration.members().iter();
        for (member, id) in self.members.iter_mut().zip(ids) {
            if all || self.passed.awaited.contains(id) {
                (member.is_awaited, member.patience) = (true, AWAITED_PATIENCE);
            }
        }
    }

    /// True if one of them may still answer.
    fn awaits(&self) -> bool {
        let may_answer = |member: &Member| member.held.is_none() && !member.gone;
        let mut awaited = self.members.iter().filter(|member| member.is_awaited);
        awaited.any(|member| may_answer(member) && member.patience > 0)
    }

    /// Decides if it can. Asks for elements that are known to be missing.
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
                .filter(|m| m.held.is_none() && m.asks == REFUSED)
                .count();
            return match self.members.len() - hopeless < self.quorum() {
                true => Decision::Impossible,
                false => Decision::Pending,
            };
        }
        if self.accepted.is_none() && self.awaits() {
            return Decision::Pending;
        }
        if self.accepted.is_none() {
            let (held, c) = (self.held(), &self.configuration);
            let accepted = of_kind!(c, K => K::accepted(c, &held, self.have, &self.passed));
            assert!(
                accepted.is_none_or(|tag| self.is_known(&held, tag)),
                "a version that is accepted was listed by a member, or the asker has it"
            );
            self.accepted = accepted;
            if accepted.is_some() {
                self.ticks = 0;
            }
        }
        let Some(tag) = self.accepted else {
            // More answers may allow a version; without any to come, only asking again can.
            return self.hope_for(|member| member.held.is_none());
        };
        let alike = match self.needs_none(tag) {
            true => Vec::new(),
            false => self.alike(tag),
        };
        if self.needs_none(tag) || self.enough(&alike) {
            return Decision::Done(Outcome::Found(self.collected(tag, alike)));
        }
        let c = &self.configuration;
        if !of_kind!(c, K => K::fetches(&self.passed)) {
            // Another round is worth while only where the version is not known to be complete, or no element is to come.
            return match self.is_complete(tag) && self.missing(tag) == 0 {
                true => Decision::Pending,
                false => Decision::Done(Outcome::Found(self.collected(tag, alike))),
            };
        }
        self.fetch_missing(tag)
    }

    /// The versions that each member holds, of the members that answered.
    fn held(&self) -> Vec<&HeldVersions> {
        let members = self.members.iter();
        members.filter_map(|member| member.held.as_ref()).collect()
    }

    /// True if a member listed the version. None needs to list the initial one, or the one that the asker has.
    fn is_known(&self, held: &[&HeldVersions], tag: Tag) -> bool {
        let mut listed = held.iter().flat_map(|held| &held.stored);
        let is_mark = held.iter().any(|held| held.stable == tag);
        let is_listed = listed.any(|(listed, _)| *listed == tag);
        tag.is_initial() || tag == self.have || is_listed || is_mark
    }

    /// True if the answers show that the version is at a quorum.
    fn is_complete(&self, tag: Tag) -> bool {
        let (held, c) = (self.held(), &self.configuration);
        // What nobody wrote is at every quorum.
        tag.is_initial() || of_kind!(c, K => K::is_complete(c, &held, tag))
    }

    /// The number of elements of `tag` that would be missing if all that are still expected came.
    fn missing(&self, tag: Tag) -> usize {
        let form = |m: &Member| m.held.as_ref().and_then(|held| held.form_of(tag));
        let is_copy = self
            .members
            .iter()
            .any(|m| form(m).is_some_and(Form::is_whole));
        let needed = match self.scope == Scope::Metadata || is_copy {
            true => 1,
            false => usize::from(self.configuration.dap().k()),
        };
        let gives = |member: &&Member| member.will_give(tag, is_copy, self.scope);
        let expected = self.members.iter().filter(gives).count();
        needed.saturating_sub(self.alike(tag).len() + expected)
    }

    /// Asks members that hold `tag` for their elements, as many as are missing.
    fn fetch_missing(&mut self, tag: Tag) -> Decision<Outcome> {
        assert!(!tag.is_initial(), "that fetch marks members that refused");
        let missing = self.missing(tag);
        let mut fetch: Vec<usize> = (0..self.members.len())
            .filter(|position| self.members[*position].may_be_asked_for(tag))
            .collect();
        // First whoever was chosen for its element: of an erasure-coded value that needs no decoding.
        fetch.sort_by_key(|position| {
            let member = &self.members[*position];
            (member.gone, member.asks == Asks::Query(Want::Tags))
        });
        fetch.truncate(missing);
        for position in &fetch {
            let member = &mut self.members[*position];
            assert!(
                member.held.is_some() && member.asks != REFUSED,
                "it lists the version"
            );
            member.asks = Asks::Fetch(tag);
            (member.patience, member.gone) = (FETCH_PATIENCE, false);
        }
        if !fetch.is_empty() {
            return Decision::Ask(fetch);
        }
        self.hope_for(Member::owes)
    }

    /// Waits if a member for which `helps` holds may still answer; otherwise only asking again can help. Members that are
    /// late are hoped for as long as the attempt's patience lasts.
    fn hope_for(&self, helps: impl Fn(&Member) -> bool) -> Decision<Outcome> {
        let patient = match self.accepted {
            Some(_) => self.ticks < self.hope.saturating_mul(FETCH_HOPE),
            None => self.ticks < self.hope,
        };
        let may_answer = |member: &&Member| !member.gone && (patient || member.patience > 0);
        match self.members.iter().filter(may_answer).any(helps) {
            true => Decision::Pending,
            false => Decision::Done(self.ended(Outcome::Restart)),
        }
    }

    /// True if the version is returned without elements, also if members sent some.
    fn needs_none(&self, tag: Tag) -> bool {
        tag.is_initial() || tag == self.have || self.scope == Scope::Version
    }

    /// Positions of the members whose elements of `tag` can belong to one value.
    fn alike(&self, tag: Tag) -> Vec<usize> {
        elements::alike(self.members.len(), |it| self.members[it].element_of(tag))
    }

    /// True if the elements of these members make the value.
    fn enough(&self, alike: &[usize]) -> bool {
        let elements = alike.iter().flat_map(|it| &self.members[*it].element);
        elements::enough(&self.configuration, self.scope, elements.map(|(_, it)| it))
    }

    /// The version, with the elements of these members.
    fn collected(&mut self, tag: Tag, alike: Vec<usize>) -> CollectedVersion {
        let holds = |member: &Member| member.held.as_ref().is_some_and(|held| held.stores(tag));
        let holders: Vec<bool> = self.members.iter().map(holds).collect();
        let held = self.members.iter().filter(|member| member.held.is_some());
        assert!(
            held.count() >= self.quorum(),
            "a version is returned after a quorum answered"
        );
        let complete = self.is_complete(tag);
        let is_enough = self.needs_none(tag) || self.enough(&alike);
        let gave = || (0..self.members.len()).map(|position| alike.contains(&position));
        let lacking = (!is_enough).then(|| gave().collect());
        let loss = match is_enough {
            true => None,
            false => self.loss(),
        };
        let elements = alike.into_iter();
        let elements = elements.filter_map(|position| self.members[position].element.take());
        let elements = elements.map(|(_, element)| element).collect();
        let fences = self.members.iter().flat_map(|member| &member.held);
        let fence = fences.map(|held| held.fence).max().unwrap_or_default();
        let mut answers = self
            .members
            .iter()
            .filter_map(|member| member.held.as_ref());
        CollectedVersion {
            tag,
            elements,
            lacking,
            loss,
            complete,
            holders,
            damaged: self.damaged,
            unaware: complete && answers.any(|held| is_unaware(held, tag)),
            fence,
        }
    }

    fn answer(&mut self, from: usize, answer: Answer) -> Decision<Outcome> {
        let (c, name, scope) = (&self.configuration, &self.name, self.scope);
        let form_fits = |element: &Element| elements::fits(c, name, from, element, scope);
        match answer {
            Answer::Held(mut held) if self.members[from].held.is_none() => {
                let element = match held.element.take() {
                    Some((tag, ReplyElement::Whole(element))) if form_fits(&element) => {
                        Some((tag, element))
                    }
                    _ => None,
                };
                self.damaged |= self.names_lost(&held);
                let member = &mut self.members[from];
                member.element = element;
                member.held = Some(held);
                self.evaluate()
            }
            Answer::Fetched(ReplyElement::Whole(element)) if form_fits(&element) => {
                let member = &mut self.members[from];
                if let Asks::Fetch(tag) = member.asks {
                    member.element = Some((tag, element));
                }
                self.evaluate()
            }
            Answer::Evicted => Decision::Done(Outcome::Restart),
            Answer::Refused(refusal) => self.refused(from, refusal),
            Answer::Held(_)
            | Answer::Ranked(_)
            | Answer::Fetched(_)
            | Answer::Stored
            | Answer::Needed
            | Answer::Dropped
            | Answer::Later { .. } => Decision::Pending,
        }
    }

    fn refused(&mut self, from: usize, refusal: Refusal) -> Decision<Outcome> {
        self.damaged |= refusal.is_damage();
        let member = &mut self.members[from];
        member.refused = Some(refusal);
        if let (Asks::Fetch(tag), Some(held)) = (member.asks, &mut member.held) {
            // It cannot give what it said it holds. The version accepted stays: that was judged by what members remember
            // of it; but this one is no holder, so that a write-back goes there.
            held.stored.retain(|(stored, _)| *stored != tag);
        }
        (member.asks, member.gone) = (REFUSED, true);
        self.evaluate()
    }
}

/// True if the member keeps older versions because it does not know that `tag` is at a quorum (`[X-3 unconfirmed-cap]`).
pub(super) fn is_unaware(held: &HeldVersions, tag: Tag) -> bool {
    let keeps_older = held.stored.first().is_some_and(|(oldest, _)| *oldest < tag);
    keeps_older && held.stable < tag
}

/// Ticks for which a read that passes versions over waits for more than a quorum: two to this power.
const PASSING_HOPE: u32 = 4;
/// Ticks to wait for late members that were asked for an element that no other member has.
const FETCH_HOPE: u32 = 8 * FETCH_PATIENCE;

impl ConfiguredTally for Collect {
    type Output = Outcome;

    fn needed(&self) -> usize {
        self.quorum()
    }

    fn prefers(&self, position: usize) -> bool {
        !matches!(self.members[position].asks, Asks::Query(Want::Tags))
    }

    fn ask(&mut self, position: usize) -> Option<Body> {
        let access = match self.members[position].asks {
            REFUSED => return None,
            Asks::Query(want) => Access::query(want, self.have),
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
                    let member = &mut self.members[from];
                    member.gone = member.asks == REFUSED;
                    self.answer(from, answer)
                }
                None => self.refused(from, Refusal::Malformed),
            },
            Event::Refused(refusal) => self.refused(from, refusal),
            Event::Unreachable => {
                self.members[from].gone = true;
                self.evaluate()
            }
        }
    }

    /// The hedge: takes one tick from the patience with each member that owes an answer. A member without patience left
    /// is late, and no longer waited for.
    fn tick(&mut self) -> Decision<Outcome> {
        self.ticks = self.ticks.saturating_add(1);
        for member in &mut self.members {
            member.patience -= u32::from(member.owes() && member.patience > 0);
        }
        self.evaluate()
    }

    fn patience(&self) -> Option<Duration> {
        Some(timing::HEDGE)
    }
}

#[cfg(test)]
mod tests;
