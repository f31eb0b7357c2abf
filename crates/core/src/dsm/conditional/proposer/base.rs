//! The version that a proposal is based on, and its value.

use super::{Aim, Proposer};
use crate::config::Configuration;
use crate::dap::conditional::{self, Answers, CurrentVersion};
use crate::dap::{FoundVersion, Scope};
use crate::element::Value;
use crate::env::Env;
use crate::error::CallError;
use crate::gather::Visit;
use crate::tag::Tag;

/// The current version where a proposal is made, and its value if it was read.
pub(super) struct Base {
    pub(super) current: CurrentVersion,
    pub(super) value: Option<(Value, u64)>,
    /// Members of the configuration that hold its element.
    pub(super) holders: Vec<bool>,
    /// What the configuration answered; `None`: it is of an earlier one.
    pub(super) answers: Option<Answers>,
}

impl Base {
    pub(super) fn of(answers: Answers) -> Base {
        Base {
            current: answers.current.clone(),
            value: None,
            holders: answers.holders.clone(),
            answers: Some(answers),
        }
    }

    /// As the base of a proposal in a later configuration, whose members hold nothing of it.
    pub(super) fn moved_to(self, c: &Configuration) -> Base {
        Base {
            current: CurrentVersion {
                chosen: None,
                ..self.current
            },
            holders: vec![false; c.n()],
            answers: None,
            ..self
        }
    }
}

impl<E: Env> Proposer<'_, E> {
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
        let answers = base.answers.as_ref().expect("an inherited value was read");
        let read = conditional::value_of(self.env(), at, self.name, answers, scope).await?;
        base.value = read;
        Ok(base.value.is_some())
    }

    /// What a read returns of the current version, which is chosen. `None`: it went for a newer one.
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
