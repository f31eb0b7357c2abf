//! The version that a proposal is based on, and its value.

use super::{Aim, ProposalEnd, Proposer, Turn};
use crate::config::Configuration;
use crate::dap::conditional::{self, Answers, CurrentVersion, SurveyOutcome, Wanted};
use crate::dap::{self, FoundVersion, Scope};
use crate::element::Value;
use crate::env::Env;
use crate::error::{CallError, Unavailable};
use crate::gather::Visit;
use crate::pointer::Pointer;
use crate::reconfig::sequence;
use crate::reconfig::walk::Step;
use crate::tag::Tag;

/// The current version where a proposal is made, and its value if it was read.
pub(super) struct Base {
    pub(super) current: CurrentVersion,
    pub(super) value: Option<(Value, u64)>,
    /// Members of the configuration that hold its element.
    pub(super) holders: Vec<bool>,
    /// The answers of the configuration; `None`: it is of an earlier one.
    pub(super) answers: Option<Answers>,
    /// It is of an earlier one, and too few elements of it are left there: it can be written over, and nothing else
    /// (`[W-18 lost-version]`).
    lost: Option<Unavailable>,
}

/// The inheritance that a proposer takes along from a configuration that is closed.
pub(super) enum Inheritance {
    /// Nothing that can be used: the attempt begins again.
    Nothing,
    /// The base of its proposal, if the next one has nothing.
    Base(Box<Base>),
    /// Nothing: the next one is not conditional. So the attempt ends.
    Left(Box<Turn>),
}

impl Base {
    pub(super) fn of(answers: Answers) -> Base {
        Base {
            current: answers.current.clone(),
            value: None,
            holders: answers.holders.clone(),
            answers: Some(answers),
            lost: None,
        }
    }

    /// The base of a version found where the object is no register: as if accepted at ballot 0, and never known to be chosen. It has no ancestors
    /// (`[W-12 becoming-conditional]`).
    fn of_put(found: FoundVersion) -> Base {
        let current = CurrentVersion::put(found.tag, found.value.as_ref());
        let length = found.length;
        Base {
            current,
            value: found.value.map(|value| (value, length)),
            holders: found.holders,
            answers: None,
            lost: None,
        }
    }

    /// The version as the base of a proposal in a later configuration, whose members hold nothing of it.
    pub(super) fn moved_to(self, c: &Configuration) -> Base {
        Base {
            current: self.current.inherited(),
            holders: vec![false; c.n()],
            answers: None,
            ..self
        }
    }
}

impl<E: Env> Proposer<'_, E> {
    /// Closes a configuration in which the object is no register, takes its largest version along, and goes on.
    pub(super) async fn leave_unranked(
        &self,
        at: &Visit,
        largest: &mut Option<Base>,
    ) -> Result<Step<Turn>, CallError> {
        let (env, sequences) = (self.env(), self.domain.client.sequences());
        let pointer = if let Some(next) = sequences.expected(at.c()) {
            Pointer::pending(&next)
        } else {
            sequence::read_config(env, at).await?;
            let Some(pointer) = at.next() else {
                // It was conditional when the operation began.
                return Ok(Step::End(Turn::Ended(ProposalEnd::Left)));
            };
            pointer
        };
        let closed = Visit::closing(at.c(), &pointer);
        match dap::get_data(env, &closed, self.name, None, Scope::Whole).await {
            Ok(found) => {
                let is_larger = |before: &Base| found.tag > before.current.tag;
                if largest.as_ref().is_none_or(is_larger) && !found.tag.is_initial() {
                    *largest = Some(Base::of_put(found));
                }
            }
            // What moved on has everything that came before it.
            Err(CallError::Moved) => *largest = None,
            Err(failed) => return Err(failed),
        }
        let next = closed.next().expect("a closed request is answered so");
        assert!(at.c().precedes(&next.configuration), "a walk leads upwards");
        if next.is_final() {
            sequences.learn(&next.configuration);
        }
        Ok(Step::Again(next.configuration))
    }

    /// Goes on from a configuration that is closed.
    pub(super) async fn leave_or_inherit(&mut self, at: &Visit) -> Result<Inheritance, CallError> {
        if at.is_last() {
            // It does not say so with its replies.
            sequence::read_config(self.env(), at).await?;
        }
        let Some(pointer) = at.next() else {
            return Ok(Inheritance::Nothing);
        };
        if at.c().changes_into(&pointer.configuration) {
            let turn = self.leave(at.c(), &pointer).await?;
            return Ok(Inheritance::Left(Box::new(turn)));
        }
        let inherited = self.inherit(at, pointer).await?;
        Ok(inherited.map_or(Inheritance::Nothing, |base| {
            Inheritance::Base(Box::new(base))
        }))
    }

    /// The version that a configuration holds that is closed. `None`: ask again.
    async fn inherit(&self, at: &Visit, pointer: Pointer) -> Result<Option<Base>, CallError> {
        let env = self.env();
        assert!(
            pointer.configuration.id().index > at.c().id().index,
            "it comes next"
        );
        let closed = Visit::closing(at.c(), &pointer);
        let wanted = Wanted::new(Scope::Whole).again(self.attempts);
        let asked = conditional::survey(env, &closed, self.name, (None, true), wanted).await?;
        let SurveyOutcome::Answered(answers) = asked else {
            unreachable!("nothing is promised, and it is closed")
        };
        let mut base = Base::of(answers);
        match self.read_value(&closed, &mut base, Scope::Whole).await {
            Ok(is_read) => Ok(is_read.then_some(base)),
            Err(CallError::Unavailable(failed)) if failed.is_lost() => Ok(Some(Base {
                lost: Some(failed),
                ..base
            })),
            Err(failed) => Err(failed),
        }
    }

    /// Reads the value of the current version, if it was not read. False: the version went, begin again.
    pub(super) async fn read_value(
        &self,
        at: &Visit,
        base: &mut Base,
        scope: Scope,
    ) -> Result<bool, CallError> {
        if base.value.is_some() || base.current.tag.is_initial() {
            return Ok(true);
        }
        if let Some(lost) = &base.lost {
            return Err(lost.clone().into());
        }
        let answers = base.answers.as_ref().expect("an inherited value was read");
        let read = conditional::value_of(self.env(), at, self.name, answers, scope).await?;
        base.value = read;
        Ok(base.value.is_some())
    }

    /// The result of a read of the current version, which is chosen. `None`: it went for a newer one.
    pub(super) async fn found(
        &self,
        at: &Visit,
        base: &mut Base,
    ) -> Result<Option<FoundVersion>, CallError> {
        let (scope, known) = match self.aim {
            Aim::Read { scope, known } => (scope, known),
            Aim::Write(_) | Aim::Again => (Scope::Whole, None),
        };
        let tag = base.current.tag;
        let known = known.filter(|known| known.tag == tag);
        let is_needed = known.is_none() && scope != Scope::Version;
        if is_needed && !self.read_value(at, base, scope).await? {
            return Ok(None);
        }
        let (value, length) = match (base.value.take(), known) {
            (Some((value, length)), _) => (Some(value), length),
            (None, Some(known)) => {
                let length = known.value.as_ref().map_or(0, Value::length);
                (known.value.clone(), length)
            }
            (None, None) => (None, 0),
        };
        let without_content = |value: Value| Value {
            content: Vec::new(),
            ..value
        };
        let value = match scope {
            Scope::Whole => value,
            Scope::Metadata => value.map(without_content),
            Scope::Version => None,
        };
        Ok(Some(FoundVersion {
            tag,
            value,
            length,
            complete: true,
            holders: base.holders.clone(),
            damaged: false,
            unaware: false,
            fence: Tag::INITIAL,
        }))
    }
}
