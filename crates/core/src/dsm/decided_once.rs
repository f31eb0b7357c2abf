//! Decided-once cells over the configurations of a domain's sequence (`docs/spec` `[X-20 decided-once]`).
//!
//! A configuration that has a successor promises and accepts nothing any more; what a quorum of its closed acceptors had
//! accepted is carried along to the next one. There it counts only as long as nothing was accepted: acceptances of a later
//! configuration go before those of an earlier one, ballots are compared within one configuration.

use super::{Client, Domain};
use crate::consensus::paxos::{self, Outcome, Page, State};
use crate::env::Env;
use crate::error::{CallError, Unavailable};
use crate::gather::Visit;
use crate::message::Note;
use crate::reconfig::walk::{Step, WalkOutcome};
use crate::tag::Writer;
use bytes::Bytes;

impl<E: Env> Domain<E> {
    /// Decides the cell and returns its value: `value`, or an earlier decision.
    ///
    /// # Errors
    /// [`Unavailable`] without a quorum in time; the value may be decided all the same, now or by a later proposer.
    pub async fn decide(&self, cell: &Bytes, value: &Bytes) -> Result<Bytes, Unavailable> {
        let mut inherited = InheritedValues::default();
        let mut start = self.start();
        loop {
            let propose = async |at: &Visit| {
                inherited.carry_to(&self.client, at, cell).await?;
                let (value, inherited) = (value, inherited.value.as_ref());
                let writer = || self.client.next_writer();
                let proposed = paxos::propose(&self.client.env, at, cell, value, inherited, writer);
                Ok(match proposed.await? {
                    Outcome::Decided(decided) => Step::End(decided),
                    Outcome::Closed => Step::GoOn,
                })
            };
            match self.walk_from(&start).until(propose).await? {
                WalkOutcome::Ended(decided) => {
                    self.client.env.progressed();
                    return Ok(decided);
                }
                // It was closed, and the next one is not seen yet: once more.
                WalkOutcome::ToTheEnd(last) => start = last.c().clone(),
            }
            super::pause(&self.client).await;
        }
    }

    /// [`Self::decide`] for the one proposer that owns the cell's first ballot, and uses it for one value only: one round where nobody else has
    /// proposed anything.
    ///
    /// # Errors
    /// As [`Domain::decide`]; if nothing was handed over, the value is not and will not be decided.
    pub async fn decide_as_owner(
        &self,
        cell: &Bytes,
        value: &Bytes,
        owner: Writer,
    ) -> Result<Bytes, Unavailable> {
        // Only where the sequence begins: in a later configuration what was accepted in an earlier one has precedence.
        let at = Visit::new(&self.start());
        match paxos::propose_as_owner(&self.client.env, &at, cell, value, owner).await {
            Ok(Some(decided)) => return Ok(decided),
            Ok(None) | Err(CallError::Moved) => {}
            Err(CallError::Unavailable(unavailable)) => return Err(unavailable),
        }
        let decided = self.decide(cell, value).await;
        decided.map_err(|failed| Unavailable {
            handed_over: true,
            ..failed
        })
    }

    /// The decided value, if there is one. Finishes what another proposer left undecided.
    ///
    /// # Errors
    /// [`Unavailable`] without a quorum in time.
    pub async fn learn(&self, cell: &Bytes) -> Result<Option<Bytes>, Unavailable> {
        let mut inherited = InheritedValues::default();
        let read = async |at: &Visit| {
            inherited.carry_to(&self.client, at, cell).await?;
            Ok(match paxos::read(&self.client.env, at, cell).await? {
                State::Empty => Step::GoOn,
                state => Step::End(state),
            })
        };
        let accepted = match self.walk().until(read).await? {
            WalkOutcome::Ended(State::Decided(decided)) => return Ok(Some(decided)),
            WalkOutcome::Ended(state) => state.value(),
            WalkOutcome::ToTheEnd(_) => inherited.value,
        };
        match accepted {
            Some(value) => self.decide(cell, &value).await.map(Some),
            None => Ok(None),
        }
    }

    /// The cells whose names begin with `prefix` and are larger than `after`.
    ///
    /// # Errors
    /// [`Unavailable`] without a quorum in time.
    pub async fn cells(&self, prefix: &Bytes, after: &Bytes) -> Result<Page, Unavailable> {
        let mut all: Option<Page> = None;
        let list = async |at: &Visit| {
            let page = paxos::list(&self.client.env, at, prefix, after).await?;
            all = Some(match all.take() {
                Some(all) => all.merge(page),
                None => page,
            });
            Ok(())
        };
        self.walk().to_the_end(list).await?;
        Ok(all.unwrap_or_default())
    }

    /// Tells the members that the cell is needed no more; nothing rests on it that they hear of it. Only for the cell of an upload
    /// that is dead: a version is complete that is larger than the one that it is, or would be. Without it, nobody can tell
    /// any more what was decided, and something else may be.
    pub(super) fn forget(&self, cell: &Bytes) {
        let c = self.start();
        let note = Note::Forget {
            configuration: c.id(),
            cell: cell.clone(),
        };
        self.client.env.tell(c.members(), note);
    }
}

/// The values that were accepted in the configurations that a walk has left.
#[derive(Default)]
struct InheritedValues {
    value: Option<Bytes>,
    /// The visit before this one.
    left: Option<Visit>,
}

impl InheritedValues {
    /// Takes along the value that was accepted in the configuration before this one, unless this one is final.
    async fn carry_to<E: Env>(
        &mut self,
        client: &Client<E>,
        at: &Visit,
        cell: &Bytes,
    ) -> Result<(), Unavailable> {
        let Some(left) = self.left.replace(at.clone()) else {
            return Ok(());
        };
        assert!(
            !at.c().precedes(left.c()),
            "what was accepted is carried upwards"
        );
        let Some(pending) = left.next().filter(|pointer| !pointer.is_final()) else {
            return Ok(());
        };
        match paxos::read(&client.env, &Visit::closing(left.c(), &pending), cell).await {
            Ok(state) => self.value = state.value().or(self.value.take()),
            // What was accepted was transferred by whoever made the successor final.
            Err(CallError::Moved) => {}
            Err(CallError::Unavailable(unavailable)) => return Err(unavailable),
        }
        Ok(())
    }
}
