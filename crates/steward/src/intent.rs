//! An intent: a change that is to be made, or advice, with its reasons, its cost and its state.

use crate::rules::{Guards, RuleName};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use std::fmt;

/// An intent. It is written with one winner, and nothing of it is removed at success.
#[derive(Serialize, Deserialize, Clone, PartialEq, Debug)]
pub struct Intent {
    /// The number of the intent in its journal.
    pub number: u64,
    /// The server or the domain that it is about.
    pub subject: String,
    /// The reasons, that of the greatest risk first; at least one.
    #[serde(deserialize_with = "at_least_one")]
    pub reasons: Vec<Reason>,
    /// The change; `None`: it is advice.
    pub change: Option<Change>,
    /// The next thing for people to do, with the command that does it.
    pub remedy: String,
    /// An operator agreed to it.
    pub approved: bool,
    /// Evaluations in a row that found a reason for it.
    pub found: u32,
    /// Evaluations in a row that found none.
    pub missing: u32,
    /// The state that it is in.
    #[serde(flatten)]
    pub state: State,
    /// The time at which it came into its state.
    pub since_ms: u64,
    /// The states before, and the times at which they began.
    pub history: Vec<Step>,
}

fn at_least_one<'d, D: Deserializer<'d>>(from: D) -> Result<Vec<Reason>, D::Error> {
    let reasons = Vec::deserialize(from)?;
    if reasons.is_empty() {
        return Err(D::Error::custom("an intent has a reason"));
    }
    Ok(reasons)
}

/// A state that an intent was in.
#[derive(Serialize, Deserialize, Clone, PartialEq, Debug)]
pub struct Step {
    /// The time at which the state began.
    pub since_ms: u64,
    /// The state that is over.
    #[serde(flatten)]
    pub state: State,
}

/// A reason for an intent.
#[derive(Serialize, Deserialize, Clone, PartialEq, Debug)]
pub struct Reason {
    /// The rule that was met.
    pub rule: RuleName,
    /// The finding, as a sentence for people.
    pub sentence: String,
    /// The observations that it was found by.
    pub evidence: Vec<Evidence>,
}

/// One observation beside the threshold that it passed.
#[derive(Serialize, Deserialize, Clone, PartialEq, Debug)]
pub struct Evidence {
    /// The signal, by the name that the registry has.
    pub signal: String,
    /// The observer; the server itself unless another one saw it.
    pub observer: String,
    /// The value, in the unit of the signal.
    pub value: f64,
    /// The threshold, in the unit of the signal.
    pub threshold: f64,
}

/// The replacement of a server by a spare, in every domain that names it.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Debug)]
pub struct Change {
    /// The server that goes.
    pub server: String,
    /// The server that comes.
    pub with: String,
    /// The domains that are changed.
    pub domains: Vec<DomainChange>,
    /// Objects to be moved, at most.
    pub objects: u64,
    /// Bytes to be moved, at most.
    pub bytes: u64,
}

/// A domain before and after a change.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Debug)]
pub struct DomainChange {
    /// The name of the domain.
    pub domain: String,
    /// Crashes that its configuration tolerates, before and after.
    pub f: Sides,
    /// Crashes that it survives now and after: f without the members that are dead.
    pub survivable: Sides,
}

/// A number before a change and after it.
#[derive(Serialize, Deserialize, Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sides {
    /// The number before the change.
    pub before: usize,
    /// The number after the change.
    pub after: usize,
}

/// The state of an intent. *Not begun*, *just begun* and *finished* can always be distinguished.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Debug)]
#[serde(tag = "state", rename_all = "kebab-case")]
pub enum State {
    /// A reason for it was found.
    Proposed,
    /// Something keeps it from being carried out.
    Waiting {
        /// The reasons that hold it, a sentence each.
        waits_for: Vec<String>,
    },
    /// It is being carried out.
    Running {
        /// The step that it is at.
        step: String,
        /// The number of domains that are done.
        done: u64,
        /// Domains that are to be changed.
        total: u64,
    },
    /// It was carried out.
    Done {
        /// The observation that shows it.
        proof: String,
    },
    /// A try has failed.
    Failed {
        /// The step of the try that failed.
        step: String,
        /// The error of that step.
        error: String,
        /// The number of tries so far.
        tries: u32,
        /// The time of the next try; `None`: it waits for an operator.
        next_ms: Option<u64>,
    },
    /// An operator does not want it. It is superseded once its reason is gone: until then nothing like it is proposed.
    Declined,
    /// It is no longer wanted.
    Superseded {
        /// The intent, or the event, that took its place.
        by: String,
    },
}

impl State {
    /// The word for it in output.
    pub fn word(&self) -> &'static str {
        match self {
            State::Proposed => "proposed",
            State::Waiting { .. } => "waiting",
            State::Running { .. } => "running",
            State::Done { .. } => "done",
            State::Failed { .. } => "failed",
            State::Declined => "declined",
            State::Superseded { .. } => "superseded",
        }
    }

    /// It is not carried out from here on.
    pub fn is_final(&self) -> bool {
        matches!(
            self,
            State::Done { .. } | State::Declined | State::Superseded { .. }
        )
    }

    /// A change has been begun and not finished: a domain may be half changed.
    pub fn is_begun(&self) -> bool {
        matches!(self, State::Running { .. } | State::Failed { .. })
    }

    fn may_become(&self, next: &State) -> bool {
        match self {
            State::Proposed | State::Waiting { .. } => !matches!(
                next,
                State::Proposed | State::Done { .. } | State::Failed { .. }
            ),
            State::Running { .. } => !matches!(
                next,
                State::Proposed
                    | State::Waiting { .. }
                    | State::Declined
                    | State::Superseded { .. }
            ),
            // A domain may be half changed: another try finishes it. The evaluator ends one that has changed all of them.
            State::Failed { .. } => !matches!(
                next,
                State::Proposed | State::Waiting { .. } | State::Done { .. } | State::Declined
            ),
            State::Declined => matches!(next, State::Superseded { .. }),
            State::Done { .. } | State::Superseded { .. } => false,
        }
    }
}

/// A state that cannot come after another one.
#[derive(thiserror::Error, Clone, PartialEq, Eq, Debug)]
#[error("intent {number} is {from}: it cannot become {to}")]
pub struct InvalidStep {
    /// The number of the intent.
    pub number: u64,
    /// The word of its state.
    pub from: &'static str,
    /// The word of the other state.
    pub to: &'static str,
}

impl Intent {
    /// The state as of now.
    ///
    /// # Errors
    /// [`InvalidStep`]: it is done, or superseded, or would skip a state.
    pub fn advance(&mut self, next: State, now_ms: u64) -> Result<(), InvalidStep> {
        if !self.state.may_become(&next) {
            return Err(InvalidStep {
                number: self.number,
                from: self.state.word(),
                to: next.word(),
            });
        }
        // The progress of one state is no history.
        if self.state.word() == next.word() {
            self.state = next;
            return Ok(());
        }
        let state = std::mem::replace(&mut self.state, next);
        let since_ms = std::mem::replace(&mut self.since_ms, now_ms);
        self.history.push(Step { since_ms, state });
        Ok(())
    }

    /// The state after a try that failed: another try after a pause that doubles, or none.
    pub fn failed(&self, step: &str, error: &str, guards: &Guards, now_ms: u64) -> State {
        let tries = 1 + self.tries();
        let pause_ms = guards
            .retry_seconds
            .saturating_mul(1000 << (tries - 1).min(16));
        State::Failed {
            step: step.into(),
            error: error.into(),
            tries,
            next_ms: (tries < guards.tries).then(|| now_ms.saturating_add(pause_ms)),
        }
    }

    /// Tries that have failed since an operator last had it tried again.
    pub fn tries(&self) -> u32 {
        let states = self
            .history
            .iter()
            .map(|step| &step.state)
            .chain([&self.state]);
        let mut tries = states.filter_map(|state| match state {
            State::Failed { tries, .. } => Some(*tries),
            _ => None,
        });
        tries.next_back().unwrap_or(0)
    }

    /// The rule with the greatest risk among its reasons.
    pub fn rule(&self) -> RuleName {
        let rules = self.reasons.iter().map(|reason| reason.rule);
        rules.min().expect("an intent has a reason")
    }

    /// The domains that its change touches.
    pub fn domains(&self) -> impl Iterator<Item = &str> {
        let domains = self.change.iter().flat_map(|change| &change.domains);
        domains.map(|it| it.domain.as_str())
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "replace {} by {}", self.server, self.with)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::rules::Rules;

    pub(crate) fn proposed(number: u64) -> Intent {
        let sides = Sides {
            before: 1,
            after: 1,
        };
        Intent {
            number,
            subject: "s2".into(),
            reasons: vec![Reason {
                rule: RuleName::Dead,
                sentence: "s2 is gone".into(),
                evidence: vec![Evidence {
                    signal: "reachable".into(),
                    observer: "s1".into(),
                    value: 901.0,
                    threshold: 900.0,
                }],
            }],
            change: Some(Change {
                server: "s2".into(),
                with: "s4".into(),
                domains: vec![DomainChange {
                    domain: "d".into(),
                    f: sides,
                    survivable: sides,
                }],
                objects: 3,
                bytes: 4096,
            }),
            remedy: "areo server replace s2".into(),
            approved: false,
            found: 1,
            missing: 0,
            state: State::Proposed,
            since_ms: 5,
            history: Vec::new(),
        }
    }

    fn running() -> State {
        State::Running {
            step: "d".into(),
            done: 0,
            total: 1,
        }
    }

    fn done() -> State {
        State::Done {
            proof: "0 objects below redundancy".into(),
        }
    }

    #[test]
    fn states_follow_each_other_and_are_kept() {
        let mut intent = proposed(7);
        let refused = intent.advance(done(), 6).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "intent 7 is proposed: it cannot become done"
        );
        let waiting = State::Waiting {
            waits_for: vec!["approval".into()],
        };
        for (state, now_ms) in [(waiting, 10), (running(), 20), (done(), 30)] {
            intent.advance(state, now_ms).unwrap();
        }
        let kept: Vec<_> = intent
            .history
            .iter()
            .map(|it| (it.state.word(), it.since_ms))
            .collect();
        assert_eq!(kept, [("proposed", 5), ("waiting", 10), ("running", 20)]);
        assert!(intent.state.is_final() && intent.since_ms == 30);
        for state in [
            running(),
            State::Proposed,
            State::Superseded { by: "x".into() },
        ] {
            assert!(intent.advance(state, 40).is_err());
        }
    }

    #[test]
    fn a_change_that_was_begun_is_never_given_up_silently() {
        let mut intent = proposed(1);
        intent.advance(running(), 6).unwrap();
        let superseded = State::Superseded {
            by: "it answers again".into(),
        };
        assert!(intent.advance(superseded, 7).is_err());
        let failed = intent.failed("d", "no quorum", &Rules::built_in().guards, 8);
        intent.advance(failed, 8).unwrap();
        let waiting = State::Waiting {
            waits_for: Vec::new(),
        };
        assert!(intent.advance(waiting, 9).is_err());
    }

    #[test]
    fn three_tries_with_a_pause_that_doubles_then_an_operator() {
        let guards = Rules::built_in().guards;
        let mut intent = proposed(1);
        let mut seen = Vec::new();
        for _ in 0..3 {
            intent.advance(running(), 100).unwrap();
            let failed = intent.failed("d", "no quorum", &guards, 1000);
            intent.advance(failed.clone(), 1000).unwrap();
            let State::Failed { tries, next_ms, .. } = failed else {
                unreachable!()
            };
            seen.push((tries, next_ms));
        }
        assert_eq!(seen, [(1, Some(61_000)), (2, Some(121_000)), (3, None)]);
    }

    #[test]
    fn an_intent_is_read_as_it_was_written() {
        let mut intent = proposed(7);
        intent.advance(running(), 10).unwrap();
        let text = serde_json::to_string(&intent).unwrap();
        assert!(
            text.contains(r#""state":"running","step":"d","done":0,"total":1"#),
            "{text}"
        );
        assert_eq!(serde_json::from_str::<Intent>(&text).unwrap(), intent);
        intent.reasons.clear();
        let text = serde_json::to_string(&intent).unwrap();
        assert!(
            serde_json::from_str::<Intent>(&text).is_err(),
            "an intent has a reason"
        );
    }
}
