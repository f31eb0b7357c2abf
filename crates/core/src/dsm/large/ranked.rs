//! Large objects of conditional domains: the register chooses the manifest (`[W-11 given-up]`).
//!
//! Which version a manifest becomes is not known before it is chosen, and a conditional write may come to none. So the commit of the upload's
//! cell says less than elsewhere: that the blocks are there, and of which object the manifest may become a version. A second
//! cell, *given up*, says that its writer proposes it no more. A sweep decides that of an upload that has stood still, and has
//! the object's current version chosen once more, above all that the writer has proposed. If that is not this manifest, no
//! reader will ever see it.

use super::{Commit, Fate, PublishError, cell, digits, written};
use crate::dsm::Domain;
use crate::dsm::conditional::{Condition, DecisionEnd, UploadCommit, Wish, WriteDecision};
use crate::element::Value;
use crate::env::Env;
use crate::error::{Unavailable, WriteError};
use crate::object::{Blocks, Manifest, Name};
use crate::tag::{Tag, Writer};
use bytes::Bytes;
use std::cmp::Ordering;

/// The beginning of the names of cells that say that an upload is given up. They are no cells that are ever forgotten.
pub const GIVEN_UP: &str = "given-up-";

/// The cell that says that an upload is given up.
fn given_up(upload: Writer) -> Bytes {
    format!("{GIVEN_UP}{}", digits(upload)).into()
}

impl<E: Env> Domain<E> {
    /// Makes an upload whose blocks are all at quorums the next version of `name` if the condition holds, in a conditional domain; after
    /// a conflict the blocks are removed.
    ///
    /// # Errors
    /// [`PublishError`].
    pub async fn publish_if(
        &self,
        name: &Name,
        blocks: &Blocks,
        metadata: Bytes,
        (condition, request): (Condition, u128),
    ) -> Result<WriteDecision, PublishError> {
        let manifest = Manifest::Parts(blocks.clone());
        let on = (condition, request);
        self.publish_manifest_if(name, &manifest, metadata, on)
            .await
    }

    pub(super) async fn publish_manifest_if(
        &self,
        name: &Name,
        blocks: &Manifest,
        metadata: Bytes,
        (condition, request): (Condition, u128),
    ) -> Result<WriteDecision, PublishError> {
        let commit = Fate::Commit(Box::new(Commit {
            name: name.clone(),
            // Which version it becomes is not known yet.
            tag: Tag::first(blocks.writer()),
            metadata: metadata.clone(),
            era: self.start().era(),
        }));
        let manifest = Value::manifest(metadata.clone(), blocks.length());
        let upload = UploadCommit {
            commit: &commit.encode(),
            is_decided: false,
            put: None,
        };
        let on = (condition, request);
        match self
            .publish_after(name, (blocks, &manifest), on, upload)
            .await?
        {
            Some(decided) => Ok(decided),
            None if condition == Condition::Always => {
                let written = Box::pin(self.publish_unranked(name, blocks, metadata)).await;
                let replaced = Tag::INITIAL;
                written.map(|tag| WriteDecision::Written { tag, replaced })
            }
            None => {
                let failed = Unavailable::not_conditional();
                Err(self.not_applied(blocks, failed).await)
            }
        }
    }

    /// [`Self::publish_if`] without a condition. `None`: the domain has ceased to be conditional, and the upload has committed nothing.
    pub(super) async fn publish_always(
        &self,
        name: &Name,
        blocks: &Manifest,
        metadata: Bytes,
    ) -> Result<Option<Tag>, PublishError> {
        let commit = Fate::Commit(Box::new(Commit {
            name: name.clone(),
            tag: Tag::first(blocks.writer()),
            metadata: metadata.clone(),
            era: self.start().era(),
        }));
        let manifest = Value::manifest(metadata, blocks.length());
        let upload = UploadCommit {
            commit: &commit.encode(),
            is_decided: false,
            put: None,
        };
        let always = (Condition::Always, 0);
        let published = self.publish_after(name, (blocks, &manifest), always, upload);
        Ok(published.await?.as_ref().map(written))
    }

    /// [`Self::publish_if`] of an upload that may have been committed before the domain became conditional. `None`: as [`Domain::publish_always`].
    pub(super) async fn publish_after(
        &self,
        name: &Name,
        (blocks, manifest): (&Manifest, &Value),
        (condition, request): (Condition, u128),
        upload: UploadCommit<'_>,
    ) -> Result<Option<WriteDecision>, PublishError> {
        let wish = Wish {
            writer: blocks.writer(),
            request,
            ..self.client.wish(manifest, condition)
        };
        match Box::pin(self.decide_manifest(name, wish, upload)).await {
            Ok(DecisionEnd::Decided(written @ WriteDecision::Written { tag, replaced })) => {
                self.remove_replaced(replaced).await;
                if tag.writer != blocks.writer() {
                    // The request was made before: that version has blocks of its own.
                    self.remove_own(blocks).await;
                    self.forget(&cell(blocks.writer()));
                }
                Ok(Some(written))
            }
            Ok(DecisionEnd::Decided(conflict @ WriteDecision::Conflict(_))) => {
                self.remove_own(blocks).await;
                self.forget(&cell(blocks.writer()));
                Ok(Some(conflict))
            }
            Ok(DecisionEnd::Left { committed: false }) => Ok(None),
            Ok(DecisionEnd::Left { committed: true }) => {
                // Which version it is was not said, so that no sweep could tell it from one that is to come.
                self.remove_own(blocks).await;
                self.forget(&cell(blocks.writer()));
                let failed = Unavailable::not_conditional();
                Err(PublishError::Write(WriteError::NotApplied(failed)))
            }
            Ok(DecisionEnd::GivenUp) => {
                self.remove_own(blocks).await;
                Err(PublishError::Swept)
            }
            Err(WriteError::NotApplied(failed)) => Err(self.not_applied(blocks, failed).await),
            Err(unknown) => Err(PublishError::Write(unknown)),
        }
    }

    /// The end of an upload whose cell says that it was aborted, and that would have become this version before the domain became
    /// conditional. It may have been committed and finished by others, and its cell forgotten: then versions follow it.
    pub(super) async fn aborted_of_register(
        &self,
        name: &Name,
        blocks: &Manifest,
        tag: Tag,
    ) -> Result<Option<Tag>, PublishError> {
        let read = self.read_lineage(name).await;
        let read = read.map_err(|failed| PublishError::Write(WriteError::Unknown(failed)))?;
        let Some((found, lineage)) = read else {
            return Ok(None);
        };
        let mut ancestors = lineage.ancestors.iter();
        if found.tag == tag || ancestors.any(|it| it.tag == tag) {
            return Ok(Some(tag));
        }
        self.remove_own(blocks).await;
        match lineage.order_of_put(found.tag, tag) {
            Some(Ordering::Less) if matches!(blocks, Manifest::Parts(_)) => Ok(Some(tag)),
            Some(_) => Err(PublishError::Swept),
            None => Err(PublishError::Write(WriteError::Unknown(
                Unavailable::outrun(tag),
            ))),
        }
    }

    /// Commits an upload of which a register is to choose the manifest. False: a sweep was faster.
    pub(in crate::dsm) async fn commit_upload(
        &self,
        upload: Writer,
        commit: &Bytes,
    ) -> Result<bool, Unavailable> {
        let decided = self.decide_as_owner(&cell(upload), commit, upload).await?;
        Ok(decided == *commit)
    }

    /// True if a sweep has given up an upload that is committed.
    pub(in crate::dsm) async fn is_given_up(&self, upload: Writer) -> Result<bool, Unavailable> {
        Ok(self.learn(&given_up(upload)).await?.is_some())
    }

    /// Gives up an upload that is committed and that no version shows. False: it is the current version.
    pub(in crate::dsm) async fn give_up(&self, commit: &Commit) -> Result<bool, Unavailable> {
        let upload = commit.tag.writer;
        // In this order: what its writer proposes before it hears of this has a smaller ballot than what comes next.
        self.decide(&given_up(upload), &Fate::Abort.encode())
            .await?;
        let current = match self.shut_out_earlier(&commit.name).await? {
            Some(current) => current,
            None => self.shut_out_of_earlier_eras(&commit.name).await?,
        };
        Ok(current.writer != upload)
    }
}
