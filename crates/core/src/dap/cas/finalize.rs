//! The tally of FIN, and of FIN2: a quorum raises its mark, durably (`[CAS-1 durable-marks]`). A reader takes the elements that it lacks
//! out of the acknowledgements: of the members that were chosen for them at first, then of all.

use crate::config::Configuration;
use crate::dap::collect::elements;
use crate::dap::{Scope, single};
use crate::element::{Element, ReplyElement};
use crate::env::Env;
use crate::error::CallError;
use crate::gather::{self, Batch, ConfiguredTally, Decision, Event, Visit};
use crate::message::{Access, Answer, Body, Refusal, Want};
use crate::object::Name;
use crate::tag::Tag;
use crate::timing;
use std::sync::Arc;
use std::time::Duration;

pub(in crate::dap) struct Finalize {
    configuration: Arc<Configuration>,
    name: Name,
    tag: Tag,
    /// It is FIN2: a quorum has acknowledged FIN.
    complete: bool,
    /// The part of the value that the elements are to make; `None`: none are needed.
    scope: Option<Scope>,
    members: Vec<Member>,
    /// Every member that has not sent its element was asked for it.
    asks_all: bool,
    /// Ticks since elements were asked for.
    ticks: u32,
    /// Ticks for which late members are hoped for once all were asked.
    hope: u32,
    /// A member could not speak for the object.
    damaged: bool,
}

struct Member {
    want: Want,
    acknowledged: bool,
    /// Answers that are to come. Only the last of them answers the last request.
    owed: u32,
    refused: bool,
    /// Out of reach for now.
    gone: bool,
    element: Option<Element>,
}

/// The end of FIN.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::dap) enum Outcome {
    /// A quorum has raised its mark.
    Finalized {
        /// The elements, by position; enough for the value, if they were asked for.
        elements: Vec<Option<Element>>,
        /// A member could not speak for the object (`[X-11 damage-abstains]`).
        damaged: bool,
    },
    /// The members that answered have too few elements: newer versions took the place of this one.
    Lacking,
}

/// Ticks after which members that were chosen for their elements are late.
const PATIENCE: u32 = 7;
/// Ticks to wait for late members when all were asked.
const HOPE: u32 = 8 * PATIENCE;

impl Finalize {
    /// FIN of this version, without its elements.
    pub(in crate::dap) fn new(c: &Arc<Configuration>, name: &Name, tag: Tag) -> Finalize {
        assert!(!tag.is_initial(), "the initial version is everywhere");
        let member = || Member {
            want: Want::Tags,
            acknowledged: false,
            owed: 1,
            refused: false,
            gone: false,
            element: None,
        };
        Finalize {
            configuration: c.clone(),
            name: name.clone(),
            tag,
            complete: false,
            scope: None,
            members: std::iter::repeat_with(member).take(c.n()).collect(),
            asks_all: false,
            ticks: 0,
            hope: HOPE,
            damaged: false,
        }
    }

    /// FIN2 of the version.
    pub(in crate::dap) fn completing(self) -> Finalize {
        Finalize {
            complete: true,
            ..self
        }
    }

    /// FIN2 of a reader that has some elements, and asks for others. `given`: those that came, with the members that sent them. Later attempts hope
    /// longer.
    pub(in crate::dap) fn taking(
        mut self,
        (scope, attempt): (Scope, u32),
        wants: &[Want],
        (elements, gave): (Vec<Element>, &[bool]),
    ) -> Finalize {
        assert_eq!(wants.len(), self.members.len(), "one for each member");
        assert_eq!(gave.len(), wants.len(), "each gave one or not");
        self.scope = Some(scope);
        self.hope <<= attempt.min(8);
        let mut elements = elements.into_iter();
        for ((member, want), gave) in self.members.iter_mut().zip(wants).zip(gave) {
            if *gave {
                member.element = elements.next();
            } else {
                member.want = *want;
            }
        }
        assert_eq!(elements.next(), None, "each is of a member");
        self
    }

    fn quorum(&self) -> usize {
        self.configuration.quorums().quorum()
    }

    fn count(&self, is_so: impl Fn(&Member) -> bool) -> usize {
        self.members.iter().filter(|member| is_so(member)).count()
    }

    /// True if the elements make the wanted part of the value.
    fn has_enough(&self) -> bool {
        let alike = self.alike();
        let elements = alike.iter().flat_map(|it| &self.members[*it].element);
        self.scope
            .is_none_or(|scope| elements::enough(&self.configuration, scope, elements))
    }

    /// The members whose elements are of one value.
    fn alike(&self) -> Vec<usize> {
        let given = |position: usize| self.members[position].element.as_ref();
        elements::alike(self.members.len(), given)
    }

    fn evaluate(&mut self) -> Decision<Outcome> {
        let (quorum, acknowledged) = (self.quorum(), self.count(|it| it.acknowledged));
        let refused = self.count(|it| it.refused && !it.acknowledged);
        if self.members.len() - refused < quorum {
            return Decision::Impossible;
        }
        let has_enough = self.has_enough();
        assert!(
            acknowledged + refused <= self.members.len(),
            "each answers once"
        );
        if acknowledged >= quorum && has_enough {
            let alike = self.alike();
            let members = self.members.iter_mut().enumerate();
            let elements = members.map(|(position, it)| {
                let element = it.element.take();
                element.filter(|_| alike.contains(&position))
            });
            return Decision::Done(Outcome::Finalized {
                elements: elements.collect(),
                damaged: self.damaged,
            });
        }
        if has_enough || self.hopes() {
            return Decision::Pending;
        }
        if !self.asks_all {
            let asked = self.ask_all();
            if !asked.is_empty() {
                return Decision::Ask(asked);
            }
        }
        match acknowledged >= quorum {
            true => Decision::Done(Outcome::Lacking),
            false => Decision::Pending,
        }
    }

    /// True if an element may still come from a member that was asked for it, and is not late.
    fn hopes(&self) -> bool {
        let patience = if self.asks_all { self.hope } else { PATIENCE };
        let may_give = |it: &Member| it.want != Want::Tags && it.owed > 0 && !it.gone;
        self.ticks < patience && self.count(|it| may_give(it) && !it.refused) > 0
    }

    /// Turns to the other members for their elements, because the chosen members do not have enough. Returns the
    /// positions to ask.
    fn ask_all(&mut self) -> Vec<usize> {
        assert!(!self.asks_all, "once");
        (self.asks_all, self.ticks) = (true, 0);
        let want = match self.scope {
            Some(Scope::Metadata) => Want::Metadata,
            _ => Want::Element,
        };
        let mut asked = Vec::new();
        for (position, member) in self.members.iter_mut().enumerate() {
            if member.element.is_none() && !member.refused {
                (member.want, member.owed) = (want, member.owed + 1);
                asked.push(position);
            }
        }
        assert!(asked.len() <= self.members.len(), "each once");
        asked
    }

    fn refused(&mut self, from: usize, refusal: Refusal) {
        self.damaged |= refusal.is_damage();
        (self.members[from].refused, self.members[from].owed) = (true, 0);
    }

    fn answered(&mut self, from: usize, answer: Option<Answer>) {
        let element = match answer {
            Some(Answer::Stored) => None,
            Some(Answer::Fetched(ReplyElement::Whole(element))) => Some(element),
            Some(Answer::Refused(refusal)) => return self.refused(from, refusal),
            _ => return self.refused(from, Refusal::Malformed),
        };
        let (c, name) = (&self.configuration, &self.name);
        let fits = |element: &Element, scope| elements::fits(c, name, from, element, scope);
        let element = element.filter(|it| self.scope.is_some_and(|scope| fits(it, scope)));
        let member = &mut self.members[from];
        (member.acknowledged, member.gone) = (true, false);
        member.owed = member.owed.saturating_sub(1);
        member.element = member.element.take().or(element);
    }
}

impl ConfiguredTally for Finalize {
    type Output = Outcome;

    fn needed(&self) -> usize {
        self.quorum()
    }

    fn ask(&mut self, position: usize) -> Option<Body> {
        let member = &self.members[position];
        let needs_element = member.want != Want::Tags && member.element.is_none();
        let asks = !member.refused && (!member.acknowledged || needs_element);
        let finalize = Access::Finalize {
            tag: self.tag,
            want: member.want,
            complete: self.complete,
        };
        asks.then(|| Body::Access(vec![(self.name.clone(), finalize)]))
    }

    fn add(&mut self, from: usize, event: Event) -> Decision<Outcome> {
        match event {
            Event::Unreachable => self.members[from].gone = true,
            Event::Refused(refusal) => self.refused(from, refusal),
            Event::Reply(reply) => self.answered(from, single(reply)),
        }
        self.evaluate()
    }

    fn tick(&mut self) -> Decision<Outcome> {
        self.ticks = self.ticks.saturating_add(1);
        self.evaluate()
    }

    fn patience(&self) -> Option<Duration> {
        (!self.has_enough()).then_some(timing::HEDGE)
    }
}

/// FIN or FIN2 of several versions, as `round` says.
///
/// # Errors
/// [`CallError`].
pub(in crate::dap) async fn fin<E: Env>(
    env: &E,
    at: &Visit,
    versions: &[(&Name, Tag)],
    round: fn(Finalize) -> Finalize,
) -> Result<(), CallError> {
    let c = at.c();
    let call = |(name, tag): &(&Name, Tag)| round(Finalize::new(c, name, *tag));
    if let [version] = versions {
        return gather::gather(env, at, call(version)).await.map(|_| ());
    }
    let batch = Batch::new(c.n(), versions.iter().map(call));
    let finalized = gather::gather(env, at, batch).await?;
    assert_eq!(finalized.len(), versions.len(), "each was asked for");
    // Some member refused one of them.
    let alone = versions
        .iter()
        .zip(finalized)
        .filter(|(_, done)| done.is_none());
    for (version, _) in alone {
        gather::gather(env, at, call(version)).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Dap;
    use crate::config::testing::configuration;
    use crate::element::Value;
    use crate::message::Reply;
    use crate::tag::Writer;
    use bytes::Bytes;

    fn answer(answer: Answer) -> Event {
        Event::Reply(Reply::Access(vec![answer]))
    }

    /// The member that was chosen has no element, so that all others are asked for theirs, while their acknowledgements are on
    /// the way: those do not say that they have none.
    #[test]
    fn an_acknowledgement_that_was_on_its_way_is_no_answer_to_what_was_asked_after_it() {
        let c = configuration(4, Dap::Cas { k: 2 });
        let name = Name::user("k").expect("a short key");
        let content = Bytes::from(vec![7; 100]);
        let elements = crate::dap::elements(&c, &name, &Value::new(Bytes::new(), content));
        let (number, writer) = (1, Writer::default());
        let mut wants = vec![Want::Tags; 4];
        wants[0] = Want::Element;
        let tally = Finalize::new(&c, &name, Tag { number, writer });
        let mut tally = tally.taking((Scope::Whole, 0), &wants, (Vec::new(), &[false; 4]));
        let asked = tally.add(0, answer(Answer::Stored));
        assert_eq!(asked, Decision::Ask(vec![0, 1, 2, 3]));
        for member in [1, 2, 3, 0] {
            let decision = tally.add(member, answer(Answer::Stored));
            assert_eq!(decision, Decision::Pending, "{member}");
        }
        let give = |member: usize| {
            answer(Answer::Fetched(ReplyElement::Whole(
                elements[member].clone(),
            )))
        };
        assert_eq!(tally.add(1, give(1)), Decision::Pending);
        let done = tally.add(3, give(3));
        let Decision::Done(Outcome::Finalized { elements, damaged }) = done else {
            panic!("two elements make the value: {done:?}");
        };
        let gave: Vec<bool> = elements.iter().map(Option::is_some).collect();
        assert_eq!((gave, damaged), (vec![false, true, false, true], false));
    }

    /// Once all reachable members have answered with too few elements for the value, only asking again helps.
    #[test]
    fn too_few_elements_are_lacking() {
        let c = configuration(4, Dap::CasGc { k: 2 });
        let name = Name::user("k").expect("a short key");
        let (number, writer) = (1, Writer::default());
        let tally = Finalize::new(&c, &name, Tag { number, writer });
        let wants = [Want::Element, Want::Fragment, Want::Tags, Want::Tags];
        let mut tally = tally.taking((Scope::Whole, 0), &wants, (Vec::new(), &[false; 4]));
        let mut decisions = Vec::new();
        for member in [0, 1, 2, 0, 1, 2] {
            decisions.push(tally.add(member, answer(Answer::Stored)));
        }
        assert!(
            !decisions.iter().any(|it| matches!(it, Decision::Done(_))),
            "{decisions:?}"
        );
        assert_eq!(
            tally.add(3, Event::Unreachable),
            Decision::Done(Outcome::Lacking)
        );
    }
}
