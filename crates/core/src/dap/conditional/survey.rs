//! The tally of PREPARE, and of a question that promises nothing: answers of a quorum, judged.

use super::Wanted;
use super::judge::{self, CurrentVersion};
use crate::config::Configuration;
use crate::dap::collect::elements::fits;
use crate::dap::{Scope, single};
use crate::element::{Element, Form, ReplyElement};
use crate::gather::{ConfiguredTally, Decision, Event};
use crate::message::{Access, Answer, Ballot, Body, RankedVersions, Refusal, Want};
use crate::object::Name;
use crate::tag::Tag;
use crate::timing;
use std::sync::Arc;
use std::time::Duration;

pub(super) struct Survey {
    c: Arc<Configuration>,
    name: Name,
    ballot: Option<Ballot>,
    /// A question to a configuration that is closed, of which every answer is.
    closed: bool,
    wants: Vec<Want>,
    have: Tag,
    members: Vec<State>,
    /// The number of ticks so far. After the first tick, members that were asked for elements are no longer waited for.
    ticks: u32,
    /// The number of earlier attempts that ended without a result.
    attempt: u32,
    /// Ticks for which more than a quorum is waited for, where too few of those that answered hold an element of the version.
    hope: u32,
}

/// The attempt from which on `hope` no longer grows.
const MOST_HOPE: u32 = 8;

enum State {
    Asked,
    /// Its element was damaged; without that it speaks for the register all the same.
    AskedAgain,
    Refused,
    Answered(Box<RankedVersions>),
}

impl State {
    fn is_open(&self) -> bool {
        matches!(self, State::Asked | State::AskedAgain)
    }
}

/// The end of a survey.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// A quorum answered, and promised the ballot if there was one.
    Answered(Answers),
    /// A larger ballot was promised.
    Overtaken(Ballot),
    /// A configuration comes after this one.
    Closed,
    /// The answers contradict each other.
    Contradicted,
}

/// The answers of a quorum about a register.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools)] // Each is about something else.
pub struct Answers {
    pub current: CurrentVersion,
    /// The largest place of a ballot that a member has promised.
    pub promised: u64,
    /// A member does not know that the current version is chosen, and keeps others.
    pub unaware: bool,
    /// The holders, by position: whether the member listed the current version with its element.
    pub holders: Vec<bool>,
    /// The number of earlier attempts that ended without a result.
    pub(super) attempt: u32,
    /// No further answer makes another version current, so that this one may be lost (`[W-18 lost-version]`).
    pub(super) is_certain: bool,
    /// True if `elements` came with their payload; otherwise they are for their metadata only.
    pub(super) has_payload: bool,
    /// The elements of the current version that came with the answers.
    pub(super) elements: Vec<Element>,
}

impl Survey {
    pub(super) fn new(
        c: &Arc<Configuration>,
        name: &Name,
        (ballot, closed): (Option<Ballot>, bool),
        wants: Vec<Want>,
        wanted: Wanted,
    ) -> Survey {
        assert_eq!(wants.len(), c.n(), "one for each member");
        assert!(
            ballot.is_none_or(|ballot| ballot.is_closing() == closed),
            "where something comes next only closing ballots are promised"
        );
        let is_possible = ballot.is_none_or(|ballot| ballot.is_possible());
        assert!(is_possible, "servers refuse others");
        Survey {
            c: c.clone(),
            name: name.clone(),
            ballot,
            closed,
            wants,
            have: wanted.have,
            members: (0..c.n()).map(|_| State::Asked).collect(),
            ticks: 0,
            hope: 1 << wanted.attempt.min(MOST_HOPE),
            attempt: wanted.attempt,
        }
    }

    fn evaluate(&mut self) -> Decision<Outcome> {
        let quorum = self.c.quorums().quorum();
        let answers: Vec<&RankedVersions> = self.answers().map(|(_, answer)| answer).collect();
        if answers.len() < quorum {
            let refused = |member: &&State| matches!(member, State::Refused);
            let refused = self.members.iter().filter(refused).count();
            return match self.members.len() - refused < quorum {
                true => Decision::Impossible,
                false => Decision::Pending,
            };
        }
        let Some(current) = judge::current(&self.c, &answers) else {
            return Decision::Done(Outcome::Contradicted);
        };
        let awaits = match self.lacks_elements(current.tag) {
            true => self.ticks < self.hope && self.members.iter().any(State::is_open),
            false => self.ticks == 0 && self.awaits_elements(current.tag),
        };
        if awaits {
            return Decision::Pending;
        }
        let promised = answers.iter().map(|it| it.promised.place()).max();
        let promised = promised.expect("a quorum has a member");
        let is_unaware = |it: &&RankedVersions| it.versions.iter().any(|v| v.tag != current.tag);
        let unaware = current.chosen.is_some() && answers.iter().any(is_unaware);
        let lists = answers.iter().filter(|it| it.find(current.tag).is_some());
        let is_certain = current.chosen.is_some()
            || lists.count() >= quorum
            || !self.members.iter().any(State::is_open);
        let mut holders = vec![false; self.members.len()];
        for (position, answer) in self.answers() {
            holders[position] = answer.stores(current.tag);
        }
        let elements = self.members.iter_mut().filter_map(|member| match member {
            State::Answered(answer) => answer.element.take(),
            _ => None,
        });
        let elements = elements.filter_map(|(tag, carried)| match carried {
            ReplyElement::Whole(element) if tag == current.tag => Some(element),
            _ => None,
        });
        Decision::Done(Outcome::Answered(Answers {
            promised,
            unaware,
            holders,
            attempt: self.attempt,
            is_certain,
            has_payload: !self.wants.contains(&Want::Metadata),
            elements: elements.collect(),
            current,
        }))
    }

    /// True if the members that answered hold too few elements of the version to make its value. With the answers of more members
    /// another version may be current, or this one is readable (`[W-18 lost-version]`).
    fn lacks_elements(&self, tag: Tag) -> bool {
        if tag.is_initial() || tag == self.have {
            return false;
        }
        let listed = self.answers().filter_map(|(_, answer)| answer.find(tag));
        let forms = listed.map(|it| it.form).filter(|it| *it != Form::Trimmed);
        let forms: Vec<Form> = forms.collect();
        forms.len() < usize::from(self.c.dap().k()) && !forms.iter().any(|form| form.is_whole())
    }

    /// True if elements of the version are wanted that are to come with answers.
    fn awaits_elements(&self, tag: Tag) -> bool {
        let asked = self.wants.iter().zip(&self.members);
        let mut asked = asked.filter(|(want, _)| **want != Want::Tags);
        let is_wanted = !tag.is_initial() && tag != self.have;
        if !is_wanted || !asked.any(|(_, member)| member.is_open()) {
            return false;
        }
        let is_metadata = self.wants.contains(&Want::Metadata);
        let needed = if is_metadata {
            1
        } else {
            usize::from(self.c.dap().k())
        };
        let elements = self
            .answers()
            .filter_map(|(_, answer)| answer.element.as_ref());
        let came: Vec<bool> = elements
            .filter_map(|(of, carried)| match carried {
                ReplyElement::Whole(element) if *of == tag => Some(element.form.is_whole()),
                _ => None,
            })
            .collect();
        came.len() < needed && !came.contains(&true)
    }

    fn answers(&self) -> impl Iterator<Item = (usize, &RankedVersions)> {
        let members = self.members.iter().enumerate();
        members.filter_map(|(position, member)| match member {
            State::Answered(answer) => Some((position, &**answer)),
            _ => None,
        })
    }
}

impl ConfiguredTally for Survey {
    type Output = Outcome;

    fn needed(&self) -> usize {
        self.c.quorums().quorum()
    }

    fn ask(&mut self, position: usize) -> Option<Body> {
        let access = Access::Rank {
            ballot: self.ballot,
            want: self.wants[position],
            have: self.have,
        };
        let is_due = !matches!(self.members[position], State::Answered(_));
        is_due.then(|| Body::Access(vec![(self.name.clone(), access)]))
    }

    fn add(&mut self, from: usize, event: Event) -> Decision<Outcome> {
        if matches!(self.members[from], State::Answered(_)) {
            return Decision::Pending;
        }
        let answer = match event {
            Event::Unreachable => return self.evaluate(),
            Event::Refused(_) => None,
            Event::Reply(reply) => single(reply),
        };
        match answer {
            Some(Answer::Ranked(answer)) if answer.closed && !self.closed => {
                return Decision::Done(Outcome::Closed);
            }
            Some(Answer::Ranked(answer)) if self.ballot.is_some() && !answer.granted => {
                return Decision::Done(Outcome::Overtaken(answer.promised));
            }
            Some(Answer::Ranked(mut answer)) => {
                let c = &self.c;
                let is_metadata = self.wants[from] == Want::Metadata;
                let scope = match is_metadata {
                    true => Scope::Metadata,
                    false => Scope::Whole,
                };
                let fits = |element: &Element| fits(c, &self.name, from, element, scope);
                answer.element.take_if(|(_, carried)| match carried {
                    ReplyElement::Whole(element) => !fits(element),
                    ReplyElement::Stored { .. } => true,
                });
                self.members[from] = State::Answered(answer);
            }
            Some(Answer::Refused(Refusal::Damaged))
                if matches!(self.members[from], State::Asked) =>
            {
                self.members[from] = State::AskedAgain;
                return Decision::Ask(vec![from]);
            }
            _ => self.members[from] = State::Refused,
        }
        self.evaluate()
    }

    fn tick(&mut self) -> Decision<Outcome> {
        self.ticks = self.ticks.saturating_add(1);
        self.evaluate()
    }

    fn patience(&self) -> Option<Duration> {
        (self.ticks < self.hope).then_some(timing::HEDGE)
    }
}
