//! The shard at work: requests in, one turn for all that came, one commit for all that changed, replies out.
//!
//! ```text
//!  push ──► inbox ──► turn: shard.receive ... close ──► store ──► Turn.commit ──► committed: release ──► Turn.replies
//!             ▲                                                                       │
//!             └──────────── what joins the next batch meanwhile waits here ◄──────────┘
//! ```
//!
//! A batch that changed nothing durable is released at once, by the turn that closed it. While a commit is being written,
//! by what drives the node, requests gather for the next one: that is the group commit. A read of what neither the commit nor the
//! batch has touched waits for none: any turn answers it (`[X-10 durable-replies]`).
//!
//! Pure: the node knows no clock, thread or socket. It says when it wants to be called again.

use std::collections::VecDeque;
use std::time::Duration;

use areo_core::instant::Instant;
use areo_core::message::{Refusal, Reply, Request};
use areo_core::server::record::Step;
use areo_core::shard::{ReleasedBatch, Shard, catches_up, frees, writes};
use areo_store::records::Records;
use areo_store::{Commit, CommitError, CommitProof, Disk, StepOutcome};

use crate::error::NodeError;
use crate::job::Job;
use crate::keep::{Keep, Purpose};
use crate::room::{self, Room};
use crate::watch::{Watch, show_adopted};
use pulse::Pulse;

use fullness::Fullness;
pub use notes::OutgoingNote;
pub use scrub::{ScrubCursor, ScrubProgress};

/// The interval of the store's upkeep.
pub const UPKEEP_PERIOD: Duration = Duration::from_millis(200);
/// The interval while upkeep has more to do.
const UPKEEP_SOON: Duration = Duration::from_millis(1);
/// Pieces of housekeeping, of about 1 MiB each, in one go.
const UPKEEP_STEPS: usize = 4;

const _: () = assert!(
    UPKEEP_SOON.as_millis() < UPKEEP_PERIOD.as_millis(),
    "what has more to do is looked after sooner"
);
const _: () = assert!(UPKEEP_STEPS > 0, "housekeeping gets on");

/// The amounts of work in one step, in bytes.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    /// Bytes of records after which a turn takes no further request, beside what the shard owes.
    pub batch: u64,
    /// Set aside in every turn for what no request accounts for: floors, descriptors.
    pub slack: u64,
    /// Verified on disk in each period, on average; 0: nothing.
    pub scrub: u64,
}

/// The output of a turn.
#[must_use = "replies are sent, and a commit is written"]
pub struct Turn<K: Keep, C> {
    /// Replies, and notes that the server sends without a request: those go through [`Node::outgoing`].
    pub released: ReleasedBatch<C>,
    /// A commit that the caller runs now, and then passes to [`Node::committed`].
    pub commit: Option<Commit<<K::Disk as Disk>::File>>,
}

/// The result of the store's upkeep.
#[must_use = "replies are sent, and a commit is written"]
pub struct Upkeep<K: Keep, C> {
    /// The output, if there is any.
    pub turn: Option<Turn<K, C>>,
    /// The wait before the next upkeep.
    pub wait: Duration,
}

/// The relation of the shard's batch to a commit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Batch {
    /// It is, with the replies that wait for it.
    Closes,
    /// The store commits records of its own: no reply waits, or there is no room for the shard's records.
    Open,
}

/// A request that is answered before the batch is durable: refused by the node itself, or [beside](Node::answer_beside) the batch.
type Answered<C> = (C, Result<Reply, Refusal>);

/// A server's state, its records and its inbox.
pub struct Node<K: Keep, C> {
    shard: Shard<C>,
    keep: K,
    sizes: Sizes,
    /// Jobs that no turn has looked at.
    inbox: VecDeque<Job<C>>,
    /// Jobs that wait for the next batch.
    joining: VecDeque<Job<C>>,
    /// The batch that is being written.
    committing: Option<Batch>,
    /// A commit failed: no turn begins any more.
    has_failed: bool,
    is_draining: bool,
    /// Commits so far, and how many there were when the store was looked after last.
    commits: u64,
    commits_at_upkeep: u64,
    scrubbing: ScrubCursor,
    fullness: Fullness,
    pulse: Pulse,
    /// Notes whose receiver was not connected.
    unsent: Vec<OutgoingNote>,
}

impl<K: Keep, C> Node<K, C> {
    /// A node of a shard that has recovered from these records.
    pub fn new(shard: Shard<C>, keep: K, sizes: Sizes) -> Node<K, C> {
        assert!(sizes.batch > sizes.slack, "a turn has room for a request");
        let pulse = Pulse::new(keep.log().map(Records::position));
        Node {
            shard,
            keep,
            sizes,
            inbox: VecDeque::new(),
            joining: VecDeque::new(),
            committing: None,
            has_failed: false,
            is_draining: false,
            commits: 0,
            commits_at_upkeep: 0,
            scrubbing: ScrubCursor::default(),
            fullness: Fullness::default(),
            pulse,
            unsent: Vec::new(),
        }
    }

    pub fn shard(&self) -> &Shard<C> {
        &self.shard
    }

    /// The place of its records.
    pub fn keep(&self) -> &K {
        &self.keep
    }

    /// The records, at the end of the node.
    pub fn into_keep(self) -> K {
        self.keep
    }

    /// True if a commit is being written.
    pub fn is_committing(&self) -> bool {
        self.committing.is_some()
    }

    /// Takes a job; it is handled in the next turn.
    #[inline]
    pub fn push(&mut self, job: Job<C>) {
        self.inbox.push_back(job);
    }

    /// One turn: answers what need not wait for a batch, and unless a commit is being written hands the others to the shard, up to the
    /// size of a batch, and commits. To be called while the node [is ready](Node::is_ready).
    ///
    /// # Errors
    /// [`NodeError`].
    pub fn turn(
        &mut self,
        now: Instant,
        watch: &mut impl Watch<C>,
    ) -> Result<Turn<K, C>, NodeError> {
        assert!(self.is_ready(), "a turn has something to do");
        let mut answered = self.answer_beside(now)?;
        if self.is_committing() || self.joining.is_empty() {
            return Ok(Turn::without_batch(answered));
        }
        let (waiting, beside) = (self.joining.len(), answered.len());
        let owed = self.owed_bytes();
        let mut batch_bytes = owed + self.sizes.slack;
        let mut batch = Batch::Open;
        // However much is owed after a start, every turn takes something.
        while batch_bytes < owed + self.sizes.batch {
            let Some(mut job) = self.joining.pop_front() else {
                break;
            };
            let adopted = self.adopt(&mut job);
            let bytes = self.footprint(&job);
            let room = self.room(&job, batch_bytes + bytes, owed)?;
            if room == Room::Enough {
                batch_bytes += bytes;
                show_adopted(&job, adopted, watch);
            }
            if !matches!(room, Room::None(_)) {
                batch = Batch::Closes;
            }
            self.hand_over(now, job, (room, bytes), (&mut answered, watch));
        }
        let (taken, refused) = (waiting - self.joining.len(), answered.len() - beside);
        assert!(taken > 0, "every turn takes something");
        assert!(refused <= taken, "a job is answered once");
        self.commit(batch, answered, watch)
    }

    /// Turns the adoptions of the job into puts, and takes room like any other put. How many elements that are.
    fn adopt(&self, job: &mut Job<C>) -> usize {
        match job {
            Job::Request { request, .. } => self.shard.adopt(request, &self.keep),
            Job::Note(_) => 0,
        }
    }

    /// Space that handling the job may take in the store, in bytes, to within the slack.
    fn footprint(&self, job: &Job<C>) -> u64 {
        match job {
            Job::Request { request, .. } => room::of_request(request, self.sizes.batch),
            Job::Note(note) => room::of_note(note),
        }
    }

    /// Makes room on the disk for a batch of `bytes` bytes with this job, if possible.
    fn room(&mut self, job: &Job<C>, bytes: u64, owed: u64) -> Result<Room, NodeError> {
        let least = owed + self.sizes.slack;
        assert!(bytes >= least, "what the shard owes has room, too");
        // Asked only where the disk is nearly full.
        let frees = || match job {
            Job::Request { request, .. } => frees(request),
            Job::Note(_) => true,
        };
        let completes = || match job {
            Job::Request { request, .. } => catches_up(request),
            Job::Note(_) => false,
        };
        let Some(lack) = self.reserve(bytes, Purpose::Write)? else {
            return Ok(Room::Enough);
        };
        if frees() && self.reserve(bytes, Purpose::Free)?.is_none()
            || completes() && self.reserve(bytes, Purpose::Complete)?.is_none()
        {
            return Ok(Room::Enough);
        }
        // What changes nothing is still answered, unless the batch cannot be closed.
        Ok(match self.has_room_for_owed(owed)? {
            true => Room::ForReads(lack),
            false => Room::None(lack),
        })
    }

    /// True if there is room for the records that the shard owes, so that it can drop others.
    fn has_room_for_owed(&mut self, bytes: u64) -> Result<bool, NodeError> {
        Ok(bytes == 0 || self.reserve(bytes, Purpose::Release)?.is_none())
    }

    /// Makes room, or says why there is none.
    fn reserve(&mut self, bytes: u64, purpose: Purpose) -> Result<Option<Refusal>, NodeError> {
        let lack = room::lack(self.keep.reserve(bytes, purpose));
        lack.map_err(|error| self.error(NodeError::Reserve(error)))
    }

    /// The error to show: of a broken store the one that broke it.
    fn error(&self, error: NodeError) -> NodeError {
        match self.keep.log().and_then(Records::failure) {
            Some(first) if error.is_poisoned() => NodeError::Broken {
                first: first.to_owned(),
            },
            _ => error,
        }
    }

    /// The bytes of the next batch even if no request comes.
    fn owed_bytes(&self) -> u64 {
        Records::<K::Disk>::footprint(self.shard.owed())
    }

    /// Hands the job to the shard, or refuses it.
    fn hand_over(
        &mut self,
        now: Instant,
        job: Job<C>,
        (room, bytes): (Room, u64),
        (answered, watch): (&mut Vec<Answered<C>>, &mut impl Watch<C>),
    ) {
        match job {
            Job::Note(note) => {
                if room == Room::Enough {
                    self.shard.note(now, note);
                }
            }
            Job::Request {
                request,
                caller,
                deadline,
            } => {
                if let Some(refusal) = self.refusal(now, &request, deadline, room) {
                    self.note_refusal(now, (refusal, bytes), watch);
                    answered.push((caller, Err(refusal)));
                    return;
                }
                let has_room = !matches!(room, Room::None(_));
                assert!(has_room, "what has no room was refused");
                watch.received(&caller);
                self.shard.receive(now, caller, request);
            }
        }
    }

    fn refusal(
        &self,
        now: Instant,
        request: &Request,
        deadline: Option<Instant>,
        room: Room,
    ) -> Option<Refusal> {
        if self.is_draining {
            Some(Refusal::Draining)
        } else if deadline.is_some_and(|deadline| deadline <= now) {
            Some(Refusal::DeadlinePassed)
        } else {
            match room {
                Room::ForReads(lack) if writes(request) => Some(lack),
                Room::None(lack) => Some(lack),
                Room::Enough | Room::ForReads(_) => None,
            }
        }
    }

    /// Carries the batch to the store; its replies go out when it is durable, the others at once.
    fn commit(
        &mut self,
        batch: Batch,
        answered: Vec<Answered<C>>,
        watch: &mut impl Watch<C>,
    ) -> Result<Turn<K, C>, NodeError> {
        assert!(!self.is_committing(), "one commit at a time");
        let steps = match batch {
            Batch::Closes => self.shard.close(),
            Batch::Open => Vec::new(),
        };
        let records = steps.iter().any(|s| matches!(s, Step::Append { .. }));
        watch.closed(&steps);
        let grows = matches!(batch, Batch::Closes) && self.shard.take_growth();
        self.keep.apply(steps);
        let commit = self.keep.log_mut().map_or(Ok(None), Records::begin_commit);
        watch.applied();
        let commit = commit.map_err(|error| self.error(NodeError::Commit(error)))?;
        let mut released = ReleasedBatch::default();
        if commit.is_some() {
            self.committing = Some(batch);
            self.commits += 1;
            self.pulse.grows(grows);
        } else {
            released = self.release(batch);
        }
        released.replies.splice(..0, answered);
        assert!(
            commit.is_some() || !records || self.keep.log().is_none(),
            "what is recorded is written before it is shown"
        );
        Ok(Turn { released, commit })
    }

    /// The commit has ended: its replies go out if it is durable.
    ///
    /// # Errors
    /// [`NodeError::Commit`].
    pub fn committed(
        &mut self,
        written: Result<CommitProof, CommitError>,
    ) -> Result<Turn<K, C>, NodeError> {
        let batch = self.committing.expect("a commit was being written");
        // After an error the node stays as it is: nothing that may not be durable is shown.
        self.has_failed = written.is_err();
        let committed = written.map_err(|error| self.error(NodeError::Commit(error)))?;
        let log = self.keep.log_mut().expect("only a log commits");
        log.finish_commit(committed);
        self.pulse.committed(log.position());
        self.committing = None;
        Ok(Turn {
            released: self.release(batch),
            commit: None,
        })
    }

    fn release(&mut self, batch: Batch) -> ReleasedBatch<C> {
        assert!(!self.is_committing(), "what is released is durable");
        let failure = self.keep.log().and_then(Records::failure);
        assert_eq!(failure, None, "a store that is broken shows nothing");
        let mut released = match batch {
            Batch::Closes => self.shard.release(&self.keep),
            Batch::Open => ReleasedBatch::default(),
        };
        for (_, reply) in &mut released.replies {
            if let Ok(Reply::Status(status)) = reply {
                status.stored_bytes = self.keep.stored_bytes();
                status.full = self.fullness.is_full();
            }
        }
        released
    }

    /// Looks after the shard and the store: lets superseded versions go, reclaims, verifies, proves the last batch durable.
    ///
    /// # Errors
    /// [`NodeError`].
    pub fn upkeep(
        &mut self,
        now: Instant,
        watch: &mut impl Watch<C>,
    ) -> Result<Upkeep<K, C>, NodeError> {
        if self.is_committing() {
            return Ok(Upkeep {
                turn: None,
                wait: UPKEEP_PERIOD,
            });
        }
        let renamed = self.shard.renamed().map(room::of_renamed).sum::<u64>();
        let owed = self.owed_bytes() + renamed + self.sizes.slack;
        if self.shard.is_due(now) && self.has_room_for_owed(owed)? {
            self.shard.tick(now, &self.keep);
        }
        let has_more = self.step()?;
        if !has_more {
            self.scrub(now);
        }
        self.look_for_room(now, watch)?;
        for version in self.shard.take_damaged() {
            watch.damaged(version);
        }
        let batch = match self.has_room_for_owed(self.owed_bytes())? {
            true => Batch::Closes,
            false => Batch::Open,
        };
        let turn = self.commit(batch, Vec::new(), watch)?;
        if !self.is_committing() && self.commits == self.commits_at_upkeep {
            self.seal()?;
        }
        self.commits_at_upkeep = self.commits;
        Ok(Upkeep {
            turn: Some(turn),
            wait: if has_more { UPKEEP_SOON } else { UPKEEP_PERIOD },
        })
    }

    /// A few pieces of the store's housekeeping; true if there is more.
    fn step(&mut self) -> Result<bool, NodeError> {
        for _ in 0..UPKEEP_STEPS {
            let Some(log) = self.keep.log_mut() else {
                return Ok(false);
            };
            let step = log.step();
            let (outcome, damaged) = step.map_err(|error| self.error(NodeError::Step(error)))?;
            if let Some(element) = &damaged {
                self.note_damage(element);
            }
            match outcome {
                StepOutcome::Idle => return Ok(false),
                StepOutcome::CommitFirst => return Ok(true),
                StepOutcome::More | StepOutcome::Damaged(_) => {}
            }
        }
        Ok(true)
    }

    /// Proves the last batch durable, so that rot in it is never taken for an unfinished write. A node that is idle does so
    /// by itself.
    ///
    /// # Errors
    /// [`NodeError`].
    pub fn seal(&mut self) -> Result<(), NodeError> {
        assert!(!self.is_committing(), "a seal is a commit of its own");
        match self.keep.log_mut().map_or(Ok(()), Records::seal) {
            // There is no room to say so; nothing is lost by that.
            Ok(()) | Err(CommitError::Full) => Ok(()),
            Err(error) => Err(self.error(NodeError::Commit(error))),
        }
    }
}

mod beside;
mod fullness;
mod notes;
mod pulse;
mod scrub;
mod standing;
#[cfg(test)]
mod tests;
