//! Writes and deletions with one winner, in domains that their clients know as conditional (`[W-7 one-winner]`).

use super::End;
use super::lattice::keeps_whole;
use super::operation::One;
use crate::fault::Fault;
use crate::history::{Kind, Operation};
use crate::world::call::SimEnv;
use areo_core::dsm::Client;
use areo_core::dsm::conditional::{Condition, Wish, WriteDecision};
use areo_core::element::Value;
use areo_core::error::WriteError;
use areo_core::tag::Tag;
use bytes::Bytes;

/// Share of the writes with one winner that create an object.
const CREATIONS_PER_MILLE: u64 = 300;
/// Share of deletions among the other writes with one winner.
const DELETIONS_PER_MILLE: u64 = 400;

impl One<'_> {
    /// Writes or deletes if this is the newest version, or writes if there is no object.
    pub(super) async fn decide_on(&self, base: Tag) -> End {
        let random = self.work.world.random();
        let on = match random.chance(CREATIONS_PER_MILLE) {
            true => (Kind::Creation, Condition::Absent),
            false => (Kind::ConditionalWrite(base), Condition::Version(base)),
        };
        let is_on_base = on.1 == Condition::Version(base);
        if is_on_base && !base.is_initial() && random.chance(DELETIONS_PER_MILLE) {
            return self.delete_on(base).await;
        }
        if !keeps_whole(&self.c) && random.chance(self.work.shape.blocks_per_mille) {
            return self.put_large_if(on).await;
        }
        let (value, hash) = self.any_value();
        let operation = self.begin(on.0, Some(hash));
        let decided = match is_on_base {
            true => self.put_named(&value, on.1).await,
            false => self.wish(&self.client, &value, (on.1, 0)).await,
        };
        self.end_decided(&operation, decided)
    }

    async fn delete_on(&self, base: Tag) -> End {
        let operation = self.begin(Kind::ConditionalDelete(base), None);
        let (tombstone, on) = (Value::tombstone(Bytes::new()), Condition::Version(base));
        let decided = self.wish(&self.client, &tombstone, (on, 0)).await;
        self.end_decided(&operation, decided)
    }

    async fn wish(
        &self,
        client: &Client<SimEnv>,
        value: &Value,
        (condition, request): (Condition, u128),
    ) -> Result<WriteDecision, WriteError> {
        let wish = Wish {
            request,
            ..client.wish(value, condition)
        };
        client.domain(&self.c).put_decided(&self.name(), wish).await
    }

    /// A write on a version, with a name. When its outcome is unknown another process may send it again: to the history it is one
    /// operation, which must not be applied twice.
    async fn put_named(
        &self,
        value: &Value,
        condition: Condition,
    ) -> Result<WriteDecision, WriteError> {
        let (work, random) = (self.work, self.work.world.random());
        let named = (condition, u128::from(random.draw()) + 1);
        let first = self.wish(&self.client, value, named).await;
        if !matches!(first, Err(WriteError::Unknown(_))) || random.chance(500) {
            return first;
        }
        let other = Client::new(work.env(self.process, work.shape.timeout));
        match self.wish(&other, value, named).await {
            written @ Ok(WriteDecision::Written { .. }) => {
                work.world.plan().note(Fault::RequestAgain);
                written
            }
            // What became of the first one is as unknown as before.
            Ok(WriteDecision::Conflict(_)) | Err(_) => first,
        }
    }

    pub(super) fn end_decided(
        &self,
        operation: &Operation,
        decided: Result<WriteDecision, WriteError>,
    ) -> End {
        match decided {
            Ok(WriteDecision::Written { tag, .. }) => {
                match operation.kind {
                    Kind::Creation => self.work.world.plan().note(Fault::Created),
                    Kind::ConditionalDelete(_) => self.work.world.plan().note(Fault::DeletedOn),
                    _ => {}
                }
                let ended = self.ended();
                self.end(Some(tag), |history| {
                    history.end_decided(&ended, operation, tag);
                });
                End::Done
            }
            Ok(WriteDecision::Conflict(found)) => self.end_uncovered(operation, &found),
            Err(error) => self.end_write(operation, &Err(error)),
        }
    }
}
