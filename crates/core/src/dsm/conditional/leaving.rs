//! The end of a proposer where the domain has ceased to be conditional (`[W-13 ceasing-to-be-conditional]`).
//!
//! One that has proposed nothing leaves all to the new kind. Otherwise it has the last version of the register decided, which says with
//! its ancestors what became of the proposals; a version of its own that was applied is brought to the new configuration before
//! the write is acknowledged, because clients that start there do not ask the old one.

use super::proposer::{Aim, Fate, LastOwn, OwnVersion, ProposalEnd, Proposer, Turn};
use super::{DecisionEnd, WriteDecision};
use crate::config::Configuration;
use crate::dap::PassedVersions;
use crate::dsm::interruption::{Departure, Interruption, PutInterruption};
use crate::env::Env;
use crate::error::{CallError, Unavailable, WriteError};
use crate::pointer::Pointer;
use crate::tag::Tag;
use std::sync::Arc;

impl<E: Env> Proposer<'_, E> {
    /// Leaves a configuration in which the object is a register for one where it is none.
    pub(super) async fn leave(
        &mut self,
        c: &Arc<Configuration>,
        pointer: &Pointer,
    ) -> Result<Turn, CallError> {
        assert!(c.changes_into(&pointer.configuration), "it is left");
        let sequences = self.domain.client.sequences();
        let request = match self.aim {
            Aim::Write(wish) => wish.request,
            Aim::Read { .. } | Aim::Again => 0,
        };
        if self.own.is_empty() && request == 0 {
            match pointer.is_final() {
                true => sequences.learn(&pointer.configuration),
                false => sequences.expect(&pointer.configuration),
            }
            return Ok(Turn::Ended(ProposalEnd::Left));
        }
        let ends = !self.own.is_empty();
        let left = self.domain.depart_to(c, pointer, (self.name, ends)).await?;
        let Departure::Leaves { last, next } = left else {
            unreachable!("the object is no register there")
        };
        let Some(last) = last else {
            // What comes next is final. Otherwise nothing is found of the request.
            return Ok(match self.own.is_empty() {
                true => Turn::Ended(ProposalEnd::Left),
                false => Turn::Again,
            });
        };
        Ok(match self.fate(&last.current, request, c) {
            Fate::Applied(tag) => Turn::Ended(ProposalEnd::Last(Box::new(LastOwn {
                tag,
                replaced: last.current.before(tag),
                last: *last,
                next,
            }))),
            Fate::Unknown => {
                let lost = self.own.last().expect("it proposed something");
                Turn::Ended(ProposalEnd::Outrun(lost.tag))
            }
            Fate::NotApplied => {
                // None of them is chosen any more.
                self.own.clear();
                Turn::Ended(ProposalEnd::Left)
            }
        })
    }

    /// The end of a write that was applied: brings the decided version to the configuration in which the domain is
    /// not conditional.
    pub(super) async fn hand_on(mut self, own: LastOwn) -> Result<DecisionEnd, WriteError> {
        let LastOwn {
            tag,
            replaced,
            last,
            next,
        } = own;
        let version = (last.current.tag, &last.value);
        assert!(tag <= version.0, "it is that version, or an ancestor");
        match self.domain.put_from(&next, self.name, version).await {
            Ok(()) => {
                let written = WriteDecision::Written { tag, replaced };
                Ok(DecisionEnd::Decided(written))
            }
            Err(PutInterruption::Failed(
                WriteError::NotApplied(failed) | WriteError::Unknown(failed),
            )) => Err(WriteError::Unknown(failed)),
            Err(PutInterruption::Ranked { .. }) => {
                let era = next.era() - 1;
                let ballot = self.proposed_at();
                self.own = vec![OwnVersion { tag, era, ballot }];
                self.sent = true;
                Box::pin(super::decide(self)).await
            }
        }
    }

    /// The end of a write of which the domain's present kind says nothing but which version is the newest.
    pub(super) async fn judge_left(self) -> Result<DecisionEnd, WriteError> {
        let committed = self.is_committed();
        let Some(lost) = self.own.last() else {
            return Ok(DecisionEnd::Left { committed });
        };
        let unknown = || WriteError::Unknown(Unavailable::outrun(lost.tag));
        let found = match self
            .domain
            .read_settled(self.name, None, PassedVersions::default())
            .await
        {
            Ok(settled) => settled.found.tag,
            Err(Interruption::Unavailable(failed)) => return Err(WriteError::Unknown(failed)),
            Err(Interruption::Ranked) => return Err(unknown()),
        };
        if self.own.iter().any(|own| own.tag == found) {
            let (tag, replaced) = (found, Tag::INITIAL);
            let written = WriteDecision::Written { tag, replaced };
            return Ok(DecisionEnd::Decided(written));
        }
        // What was chosen of it would be there, or something larger.
        let is_above = self.own.iter().all(|own| own.tag > found);
        match is_above && !found.is_initial() {
            true => Ok(DecisionEnd::Left { committed }),
            false => Err(unknown()),
        }
    }
}
