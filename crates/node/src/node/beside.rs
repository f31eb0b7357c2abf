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
    /// True if a turn can begin: jobs wait that no turn has looked at since the commit began.
    pub fn is_ready(&self) -> bool {
        !self.inbox.is_empty() && !self.has_failed
    }

    /// Jobs that wait for a turn, or for the batch that they joined.
    pub fn waiting(&self) -> usize {
        self.inbox.len() + self.joining.len()
    }

    /// A turn while a commit is being written: answers what need not wait for it. All else joins the next batch.
    pub(super) fn turn_beside(&mut self, now: Instant) -> Result<Turn<K, C>, NodeError> {
        assert!(self.is_committing(), "without one every job is taken");
        let mut answered = Vec::new();
        loop {
            if let Some(answer) = self.answer(now) {
                answered.push(answer);
            } else if let Some(job) = self.inbox.pop_front() {
                self.joining.push_back(job);
            } else {
                break;
            }
        }
        // A commit that failed meanwhile has made the store unreadable, and what was just read of it means nothing.
        match self.keep.log().and_then(Records::failure) {
            Some(first) => Err(NodeError::Broken {
                first: first.to_owned(),
            }),
            None => Ok(Turn::beside(answered)),
        }
    }

    /// Answers the first request of the inbox if it waits for no batch.
    pub(super) fn answer(&mut self, now: Instant) -> Option<Answered<C>> {
        match self.inbox.front() {
            Some(Job::Request { request, .. }) if self.shard.is_settled(request) => {}
            _ => return None,
        }
        let Some(Job::Request {
            request,
            caller,
            deadline,
        }) = self.inbox.pop_front()
        else {
            unreachable!("it was a request");
        };
        // It needs no room.
        let refusal = self.refusal(now, &request, deadline, Room::Enough);
        let reply = match refusal {
            Some(refusal) => Err(refusal),
            None => self.shard.answer(now, request, &self.keep),
        };
        Some((caller, reply))
    }

    /// The commit is durable: the jobs that joined the next batch go first, in their order.
    pub(super) fn begin_next(&mut self) {
        assert!(!self.is_committing(), "its parts are durable now");
        while let Some(job) = self.joining.pop_back() {
            self.inbox.push_front(job);
        }
    }
}

impl<K: Keep, C> Turn<K, C> {
    /// A turn that began no commit, with these answers.
    pub(super) fn beside(replies: Vec<Answered<C>>) -> Self {
        Turn {
            released: ReleasedBatch {
                replies,
                ..ReleasedBatch::default()
            },
            commit: None,
        }
    }
}
