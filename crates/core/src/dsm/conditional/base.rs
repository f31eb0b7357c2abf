//! What a proposal builds on.

use crate::config::Configuration;
use crate::dap::conditional::{Answers, CurrentVersion};
use crate::element::Value;

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
