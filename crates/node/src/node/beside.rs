//! Requests that are answered beside the batches: they change nothing, and their replies reflect nothing but what is durable
//! (`[X-10 durable-replies]`).

use super::{Answered, Node, Turn};
use crate::error::NodeError;
use crate::job::Job;
use crate::keep::Keep;
use crate::room::Room;
use areo_core::instant::Instant;
use areo_core::shard::ReleasedBatch;
use areo_store::records::Records;

impl<K: Keep, C> Node<K, C> {
    /// True if a turn can begin: jobs wait that no turn has looked at, or a batch can be gathered of those that wait for it.
    pub fn is_ready(&self) -> bool {
        let may_gather = !self.is_committing() && !self.joining.is_empty();
        (may_gather || !self.inbox.is_empty()) && !self.has_failed
    }

    /// Jobs that wait for a turn, or for the next batch.
    pub fn waiting(&self) -> usize {
        self.inbox.len() + self.joining.len()
    }

    /// Looks at each job of the inbox: answers those that wait for no batch. The others wait for the next one.
    pub(super) fn answer_beside(&mut self, now: Instant) -> Result<Vec<Answered<C>>, NodeError> {
        let mut answered = Vec::new();
        while let Some(job) = self.inbox.pop_front() {
            match job {
                Job::Request {
                    request,
                    caller,
                    deadline,
                } if self.shard.is_settled(&request) => {
                    // It needs no room.
                    let reply = match self.refusal(now, &request, deadline, Room::Enough) {
                        Some(refusal) => Err(refusal),
                        None => self.shard.answer(now, request, &self.keep),
                    };
                    answered.push((caller, reply));
                }
                job => self.joining.push_back(job),
            }
        }
        assert!(self.inbox.is_empty(), "each job was looked at");
        // A commit that failed meanwhile has made the store unreadable, and what was just read of it means nothing.
        match self.keep.log().and_then(Records::failure) {
            None => Ok(answered),
            Some(first) => Err(NodeError::Broken {
                first: first.to_owned(),
            }),
        }
    }
}

impl<K: Keep, C> Turn<K, C> {
    /// A turn that began no batch, with these answers.
    pub(super) fn without_batch(replies: Vec<Answered<C>>) -> Self {
        let released = ReleasedBatch {
            replies,
            ..ReleasedBatch::default()
        };
        Turn {
            released,
            commit: None,
        }
    }
}
