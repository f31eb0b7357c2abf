//! Questions of an operation on a register without a ballot: nothing is promised for it.

use super::base::Base;
use super::{Aim, ProposalEnd, Proposer};
use crate::dap::conditional::{self, SurveyOutcome};
use crate::dap::{FoundVersion, Scope};
use crate::env::Env;
use crate::error::{CallError, Unavailable};
use crate::gather::Visit;
use crate::message::Lineage;
use crate::timing;
use std::time::Duration;

/// Questions of a read without a ballot before it takes one.
const LOOKS: u32 = 3;

/// A version that was read, and where it comes from.
pub(super) type FoundRead = (FoundVersion, Lineage);

/// The answer to a question without a ballot.
pub(super) enum Looked {
    /// This version is chosen.
    Found(Box<FoundRead>),
    /// A proposal is under way, or was left by a proposer that is gone.
    Undecided,
    /// Not here, or not by such a question.
    Elsewhere,
}

impl<E: Env> Proposer<'_, E> {
    /// Fails if too few elements of the current version are left. Nothing is promised for that (`[W-18 lost-version]`).
    pub(in super::super) async fn check_readable(&self) -> Result<(), Unavailable> {
        let at = Visit::new(&self.domain.start());
        let k = usize::from(at.c().dap().k());
        for attempt in [0, 1] {
            let wanted = self.wanted().again(attempt);
            let asked = conditional::survey(self.env(), &at, self.name, (None, false), wanted);
            let answers = match asked.await {
                Ok(SurveyOutcome::Answered(answers)) => answers,
                Err(CallError::Unavailable(failed)) => return Err(failed),
                Ok(_) | Err(CallError::Moved) => return Ok(()),
            };
            let holders = answers.holders.iter().filter(|holds| **holds).count();
            if answers.current.tag.is_initial() || holders >= k {
                return Ok(());
            }
            let (env, scope) = (self.env(), Scope::Whole);
            match conditional::value_of(env, &at, self.name, &answers, scope).await {
                Ok(None) => {}
                Err(CallError::Unavailable(failed)) => return Err(failed),
                Ok(Some(_)) | Err(CallError::Moved) => return Ok(()),
            }
        }
        Ok(())
    }

    /// The current version, if a question without a ballot shows that it is chosen. A version that is not decided has a proposer, which is about to end: a ballot
    /// would overtake it, so that the question is asked again after a pause, twice at most (`[W-9 one-round-read]`).
    pub(super) async fn read_patiently(&self) -> Result<Option<FoundRead>, Unavailable> {
        for look in 0..LOOKS {
            let begun = self.env().now();
            match self.read_at_once().await? {
                Looked::Found(found) => return Ok(Some(*found)),
                Looked::Elsewhere => return Ok(None),
                Looked::Undecided if look + 1 < LOOKS => {
                    let took = self.env().now().since(begun).min(timing::ATTEMPT_MOST);
                    let most = took.max(timing::READER_PAUSE) * (1 << look);
                    self.env().sleep(self.draw_pause(most)).await;
                }
                Looked::Undecided => {}
            }
        }
        Ok(None)
    }

    /// A random time below this one.
    pub(super) fn draw_pause(&self, most: Duration) -> Duration {
        let most = u64::try_from(most.as_micros()).expect("a pause is short");
        Duration::from_micros(self.env().random() % most)
    }

    /// The current version, if one round shows that it is chosen. A value of which too few elements come is asked for once more, so that no ballot is
    /// taken for one that is lost (`[W-18 lost-version]`).
    pub(super) async fn read_at_once(&self) -> Result<Looked, Unavailable> {
        for attempt in [self.attempts, self.attempts + 1] {
            let at = Visit::new(&self.domain.start());
            if !at.c().is_ranked(self.name) {
                return Ok(Looked::Elsewhere);
            }
            let (asked, wanted) = ((None, false), self.wanted().again(attempt));
            let asked = conditional::survey(self.env(), &at, self.name, asked, wanted);
            let answers = match asked.await {
                Ok(SurveyOutcome::Answered(answers)) if answers.current.chosen.is_some() => answers,
                Ok(SurveyOutcome::Answered(_)) => return Ok(Looked::Undecided),
                Ok(_) | Err(CallError::Moved) => return Ok(Looked::Elsewhere),
                Err(CallError::Unavailable(unavailable)) => return Err(unavailable),
            };
            if answers.unaware && !answers.current.tag.is_initial() {
                self.confirm(&at, &answers.current, answers.current.chosen);
            }
            self.domain.client.remember_ballot(answers.promised);
            let mut base = Base::of(answers);
            match self.found(&at, &mut base).await {
                Ok(Some(found)) => {
                    return Ok(Looked::Found(Box::new((found, base.current.lineage))));
                }
                Ok(None) => {}
                Err(CallError::Moved) => return Ok(Looked::Elsewhere),
                Err(CallError::Unavailable(unavailable)) => return Err(unavailable),
            }
        }
        Ok(Looked::Elsewhere)
    }

    /// The current version of a configuration after one that is closed, if a question without a ballot shows that it is chosen. `inherited`:
    /// what the closed one has, which counts where this one has nothing (`[W-10 configuration-first]`). Nothing is accepted in the closed one
    /// any more, so that a version that is chosen here is the last one. A caller that may only read gets no ballot: members choose for it.
    pub(super) async fn read_beyond(
        &self,
        at: &Visit,
        inherited: Option<Base>,
    ) -> Result<Option<ProposalEnd>, CallError> {
        assert!(at.c().is_ranked(self.name), "it is a register there");
        if !matches!(self.aim, Aim::Read { .. }) {
            return Ok(None);
        }
        let asked = conditional::survey(self.env(), at, self.name, (None, false), self.wanted());
        let SurveyOutcome::Answered(answers) = asked.await? else {
            return Ok(None);
        };
        let is_behind = answers.current.tag.is_initial() && inherited.is_some();
        if is_behind || answers.current.chosen.is_none() {
            return Ok(None);
        }
        let mut base = Base::of(answers);
        let found = self.found(at, &mut base).await?;
        Ok(found.map(|found| ProposalEnd::Found(found, base.current.lineage)))
    }
}
