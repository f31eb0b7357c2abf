//! Writes with one winner, and reads, of the registers of a conditional domain ([`crate::dap::conditional`]): one configuration
//! decides, and the others on the way say what it begins with.
//!
//! An operation prepares in the configuration where it starts. A member that knows of a next configuration refuses, and the
//! operation reads *closed* answers there (`[W-8 closing]`): from these members nothing is accepted any more. It goes on, and
//! makes its proposal in the last configuration. What that one holds goes before what earlier ones hold, also at smaller ballots
//! (`[W-10 configuration-first]`).
//!
//! An operation that began before the domain became conditional goes on here, with the version that it put there
//! (`[W-12 becoming-conditional]`). The largest version that closed answers of those configurations show is what the first
//! conditional one begins with.
//!
//! A proposer that was overtaken cannot know whether its version is chosen. It prepares again, and looks for the version among the
//! current one and its ancestors (`[W-6 ancestors]`): if it is there the write has succeeded; if not, it never will, once what is
//! proposed now is chosen. So an operation applies once, although messages are lost.
//!
//! Where the domain ceases to be conditional an operation has the last version of the register decided, and learns so what became of
//! what it proposed (`[W-13 ceasing-to-be-conditional]`). A conditional write that was not applied ends there; anything else goes
//! on as it does in the new kind.
//!
//! | | rounds, quiet | otherwise |
//! |---|---|---|
//! | [`Domain::decide_write`] | 2, of a manifest 3 | as many more for each proposer that was faster, after a pause |
//! | read | 1 | 2 more to settle |

mod leaving;
mod proposer;

use super::newest::SettledVersion;
use super::{Client, Domain};
use crate::dap::conditional::CurrentVersion;
use crate::dap::{CachedVersion, FoundVersion, Scope};
use crate::element::Value;
use crate::env::Env;
use crate::error::{Unavailable, WriteError};
use crate::message::Lineage;
use crate::object::Name;
use crate::tag::{Tag, Writer};
use bytes::Bytes;
use proposer::{Aim, ProposalEnd, Proposer};

/// The condition on the current version under which a write happens.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Condition {
    /// Any version, or none.
    Always,
    /// Exactly this version.
    Version(Tag),
    /// If there is no such object: never written, or deleted.
    Absent,
    /// If there is one.
    Present,
}

impl Condition {
    fn holds(self, current: &CurrentVersion) -> bool {
        let is_absent = current.tag.is_initial() || current.deleted;
        match self {
            Condition::Always => true,
            Condition::Version(tag) => current.tag == tag,
            Condition::Absent => is_absent,
            Condition::Present => !is_absent,
        }
    }
}

/// A write that is to be decided.
#[derive(Clone, Copy, Debug)]
pub struct Wish<'a> {
    pub value: &'a Value,
    /// The condition of the write.
    pub condition: Condition,
    /// The writer, unique to this write.
    pub writer: Writer,
    /// The caller's name for the request, the same when it tries again; 0: none. A version that this request wrote is found as
    /// such while fewer than [`crate::limits::ANCESTORS`] came after it.
    pub request: u128,
}

impl<E: Env> Client<E> {
    /// A write of this client, which no other request names.
    pub fn wish<'a>(&self, value: &'a Value, condition: Condition) -> Wish<'a> {
        Wish {
            value,
            condition,
            writer: self.next_writer(),
            request: 0,
        }
    }
}

/// The fate that a manifest's upload has to commit before it is proposed (`[W-11 given-up]`).
#[derive(Clone, Copy, Debug)]
pub(super) struct UploadCommit<'a> {
    /// The value that its cell is to decide.
    pub(super) commit: &'a Bytes,
    /// The cell has decided that already, before the domain became conditional.
    pub(super) is_decided: bool,
    /// The version that was put, as in [`Domain::decide_after`].
    pub(super) put: Option<Tag>,
}

/// The decision about a write.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum WriteDecision {
    /// It is the version after `replaced`.
    Written {
        tag: Tag,
        /// The one that it is based on.
        replaced: Tag,
    },
    /// The condition does not hold: this is there, and nothing was written.
    Conflict(FoundVersion),
}

/// The end of a proposer of a write.
pub(super) enum DecisionEnd {
    Decided(WriteDecision),
    /// A sweep has given up the blocks of a manifest: nothing was written.
    GivenUp,
    /// The domain has ceased to be conditional. Nothing was written, and no proposal of the write will ever be chosen
    /// (`[W-13 ceasing-to-be-conditional]`).
    Left {
        /// The upload of a manifest is committed.
        committed: bool,
    },
}

async fn decide<E: Env>(mut proposer: Proposer<'_, E>) -> Result<DecisionEnd, WriteError> {
    let ended = match proposer.run().await {
        Ok(ended) => ended,
        Err(failed) if proposer.sent => return Err(WriteError::Unknown(failed)),
        Err(failed) => return Err(WriteError::NotApplied(failed)),
    };
    match ended {
        ProposalEnd::Written { tag, replaced } => {
            let written = WriteDecision::Written { tag, replaced };
            Ok(DecisionEnd::Decided(written))
        }
        ProposalEnd::Found(found, _) => Ok(DecisionEnd::Decided(WriteDecision::Conflict(found))),
        ProposalEnd::GivenUp => Ok(DecisionEnd::GivenUp),
        ProposalEnd::Outrun(tag) => Err(WriteError::Unknown(Unavailable::outrun(tag))),
        ProposalEnd::Last(last) => Box::pin(proposer.hand_on(*last)).await,
        ProposalEnd::Left => Box::pin(proposer.judge_left()).await,
    }
}

impl<E: Env> Domain<E> {
    /// Writes if the condition holds; of concurrent writes on one version one succeeds (`[W-7 one-winner]`).
    ///
    /// # Errors
    /// [`WriteError`] says whether the value may have been written.
    pub async fn decide_write(
        &self,
        name: &Name,
        wish: Wish<'_>,
    ) -> Result<WriteDecision, WriteError> {
        self.decide_after(name, wish, None).await
    }

    /// [`Self::decide_write`] for a write that began before the domain became conditional. `put`: the version that it
    /// put there (`[W-12 becoming-conditional]`).
    pub(super) async fn decide_after(
        &self,
        name: &Name,
        wish: Wish<'_>,
        put: Option<Tag>,
    ) -> Result<WriteDecision, WriteError> {
        let decided = self.decide_unless_left(name, wish, put).await?;
        decided.ok_or_else(|| WriteError::NotApplied(Unavailable::not_conditional()))
    }

    /// [`Self::decide_after`] without an error where the domain has ceased to be conditional. `None` then: nothing was written, and never will be.
    async fn decide_unless_left(
        &self,
        name: &Name,
        wish: Wish<'_>,
        put: Option<Tag>,
    ) -> Result<Option<WriteDecision>, WriteError> {
        let is_own = |tag: Tag| !tag.is_initial() && tag.writer != Writer::default();
        assert!(
            put.is_none_or(is_own),
            "a version that was put has a writer"
        );
        let proposer = Proposer::new(self, name, Aim::Write(wish)).after(put);
        match decide(proposer).await? {
            DecisionEnd::Decided(decided) => Ok(Some(decided)),
            DecisionEnd::Left { .. } => Ok(None),
            DecisionEnd::GivenUp => unreachable!("it has no blocks that could be given up"),
        }
    }

    /// Decides the write of a manifest, whose upload has this to commit.
    pub(super) async fn decide_manifest(
        &self,
        name: &Name,
        wish: Wish<'_>,
        upload: UploadCommit<'_>,
    ) -> Result<DecisionEnd, WriteError> {
        assert!(wish.value.apart.is_some(), "its content is in blocks");
        let is_after = upload.put.is_none() || upload.is_decided;
        assert!(is_after, "a manifest is put after the commit");
        let proposer = Proposer::new(self, name, Aim::Write(wish)).after(upload.put);
        decide(proposer.of_upload(upload)).await
    }

    /// Proposes the current version once more at a higher ballot, so that no proposal at a lower one can be decided
    /// any more (`[W-11 given-up]`). Returns the tag of that version. An object that was never written has no version
    /// to be proposed: it gets a tombstone, whose tag is returned. `None`: the domain has ceased to be conditional.
    pub(super) async fn shut_out_earlier(&self, name: &Name) -> Result<Option<Tag>, Unavailable> {
        let Some(chosen) = self.choose_again(name).await? else {
            return Ok(None);
        };
        assert!(chosen.found.complete, "what is chosen is at a quorum");
        if !chosen.found.tag.is_initial() {
            return Ok(Some(chosen.found.tag));
        }
        let tombstone = Value::tombstone(Bytes::new());
        let wish = self
            .client
            .wish(&tombstone, Condition::Version(Tag::INITIAL));
        match self.decide_unless_left(name, wish, None).await {
            Ok(Some(WriteDecision::Written { tag, .. })) => Ok(Some(tag)),
            Ok(Some(WriteDecision::Conflict(_))) => {
                let chosen = self.choose_again(name).await?;
                Ok(chosen.map(|chosen| chosen.found.tag))
            }
            Ok(None) => Ok(None),
            Err(WriteError::NotApplied(failed) | WriteError::Unknown(failed)) => Err(failed),
        }
    }

    /// Writes on the version that is current; returns that, and its own. `put`: as in [`Domain::decide_after`]. `None`: nothing is
    /// written, the domain has ceased to be conditional.
    pub(super) async fn write_register(
        &self,
        name: &Name,
        value: &Value,
        put: Option<Tag>,
    ) -> Result<Option<(Tag, Tag)>, WriteError> {
        let wish = self.client.wish(value, Condition::Always);
        match self.decide_unless_left(name, wish, put).await? {
            Some(WriteDecision::Written { tag, replaced }) => Ok(Some((replaced, tag))),
            Some(WriteDecision::Conflict(_)) => {
                unreachable!("without a condition there is no conflict")
            }
            None => Ok(None),
        }
    }

    /// The current version of a register: in one round if the answers show that it is chosen (`[W-9 one-round-read]`). `None`: the
    /// domain has ceased to be conditional.
    pub(super) async fn read_register(
        &self,
        name: &Name,
        known: Option<&CachedVersion>,
        scope: Scope,
    ) -> Result<Option<FoundVersion>, Unavailable> {
        let found = Proposer::new(self, name, Aim::Read { scope, known }).read();
        Ok(found.await?.map(|(found, _)| found))
    }

    /// The current version without its content, and where it comes from. `None`: as [`Domain::read_register`].
    pub(super) async fn read_lineage(
        &self,
        name: &Name,
    ) -> Result<Option<(FoundVersion, Lineage)>, Unavailable> {
        let (scope, known) = (Scope::Metadata, None);
        Proposer::new(self, name, Aim::Read { scope, known })
            .read()
            .await
    }

    /// Fails if too few elements of the current version are left, and takes no ballot to see that (`[W-18 lost-version]`).
    pub(super) async fn check_register(&self, name: &Name) -> Result<(), Unavailable> {
        let proposer = Proposer::new(self, name, Aim::Again);
        proposer.check_readable().await
    }

    /// Has the current version chosen again, with its elements for all members that lack them. `None`: as
    /// [`Domain::read_register`].
    pub(super) async fn choose_again(
        &self,
        name: &Name,
    ) -> Result<Option<SettledVersion>, Unavailable> {
        Proposer::new(self, name, Aim::Again).choose_again().await
    }
}
