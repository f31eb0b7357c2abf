//! Requests of an operator about one intent.

use crate::intent::{Intent, State};

/// The reason why an intent is not changed as an operator asks.
#[derive(thiserror::Error, Clone, PartialEq, Eq, Debug)]
pub enum RefusedRequest {
    /// It has no change that could be carried out.
    #[error("intent {number} is advice, which is not carried out: {remedy}")]
    Advice {
        /// The number of the intent.
        number: u64,
        /// The next thing for people to do.
        remedy: String,
    },
    /// Nothing comes after its state.
    #[error("intent {number} is {state} already")]
    Final {
        /// The number of the intent.
        number: u64,
        /// The word of its state.
        state: &'static str,
    },
    /// Domains may be half changed.
    #[error(
        "intent {number} is {state}: a change that was begun is finished, `areo autopilot pause` holds it"
    )]
    Begun {
        /// The number of the intent.
        number: u64,
        /// The word of its state.
        state: &'static str,
    },
    /// It has not failed.
    #[error("intent {number} is {state}: only one that failed is tried again")]
    NotFailed {
        /// The number of the intent.
        number: u64,
        /// The word of its state.
        state: &'static str,
    },
}

impl Intent {
    /// Has the change carried out.
    ///
    /// # Errors
    /// It is advice, or has ended.
    pub fn approve(&mut self) -> Result<(), RefusedRequest> {
        if self.change.is_none() {
            return Err(RefusedRequest::Advice {
                number: self.number,
                remedy: self.remedy.clone(),
            });
        }
        self.refuse_final()?;
        self.approved = true;
        Ok(())
    }

    /// Gives the intent up: nothing like it is proposed for as long as its reason lasts.
    ///
    /// # Errors
    /// It was begun, or has ended.
    pub fn decline(&mut self, now_ms: u64) -> Result<(), RefusedRequest> {
        self.refuse_final()?;
        let begun = RefusedRequest::Begun {
            number: self.number,
            state: self.state.word(),
        };
        self.advance(State::Declined, now_ms).map_err(|_| begun)
    }

    fn refuse_final(&self) -> Result<(), RefusedRequest> {
        let (number, state) = (self.number, self.state.word());
        match self.state.is_final() {
            true => Err(RefusedRequest::Final { number, state }),
            false => Ok(()),
        }
    }

    /// Has the change tried again at once. It stays begun.
    ///
    /// # Errors
    /// It has not failed.
    pub fn retry(&mut self, now_ms: u64) -> Result<(), RefusedRequest> {
        let State::Failed { tries, next_ms, .. } = &mut self.state else {
            return Err(RefusedRequest::NotFailed {
                number: self.number,
                state: self.state.word(),
            });
        };
        (*tries, *next_ms) = (0, Some(now_ms));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::intent::tests::proposed;

    #[test]
    fn a_change_that_has_not_ended_is_approved() {
        let mut intent = proposed(3);
        intent.approve().unwrap();
        assert!(intent.approved);
        let by = "intent 4".into();
        intent.advance(State::Superseded { by }, 6).unwrap();
        let refused = intent.approve().unwrap_err();
        assert_eq!(refused.to_string(), "intent 3 is superseded already");
        intent.change = None;
        let refused = intent.approve().unwrap_err().to_string();
        assert_eq!(
            refused,
            "intent 3 is advice, which is not carried out: areo server replace s2"
        );
    }

    #[test]
    fn an_intent_is_declined_before_it_is_begun() {
        let mut intent = proposed(3);
        let mut running = intent.clone();
        intent.decline(7).unwrap();
        assert_eq!((&intent.state, intent.since_ms), (&State::Declined, 7));
        for refused in [intent.decline(8), intent.approve()] {
            let refused = refused.unwrap_err().to_string();
            assert_eq!(refused, "intent 3 is declined already");
        }
        running.state = State::Running {
            step: "d".into(),
            done: 0,
            total: 1,
        };
        let refused = running.decline(8).unwrap_err().to_string();
        assert_eq!(
            refused,
            "intent 3 is running: a change that was begun is finished, `areo autopilot pause` holds it"
        );
    }

    #[test]
    fn a_change_that_failed_is_tried_again_and_stays_begun() {
        let mut intent = proposed(3);
        let refused = intent.retry(7).unwrap_err().to_string();
        assert_eq!(
            refused,
            "intent 3 is proposed: only one that failed is tried again"
        );
        let failed = |tries, next_ms| State::Failed {
            step: "d".into(),
            error: "no quorum".into(),
            tries,
            next_ms,
        };
        intent.state = failed(3, None);
        intent.retry(2000).unwrap();
        assert_eq!(intent.state, failed(0, Some(2000)));
        assert_eq!(intent.tries(), 0);
        assert!(intent.state.is_begun(), "a domain may be half changed");
    }
}
