//! Large objects of conditional domains: the register chooses the manifest (`[W-11 given-up]`).
//!
//! Which version a manifest becomes is not known before it is chosen, and a conditional write may come to none. So the commit of the upload's
//! cell says less than elsewhere: that the blocks are there, and of which object the manifest may become a version. A second
//! cell, *given up*, says that its writer proposes it no more. A sweep decides that of an upload that has stood still, and has
//! the object's current version chosen once more, above all that the writer has proposed. If that is not this manifest, no
//! reader will ever see it.

use super::{Commit, Fate, PublishError, cell, numbers};
use crate::dsm::Domain;
use crate::dsm::conditional::{Condition, UploadCommit, Wish, WriteDecision};
use crate::element::Value;
use crate::env::Env;
use crate::error::{Unavailable, WriteError};
use crate::object::{Blocks, Name};
use crate::tag::{Tag, Writer};
use bytes::Bytes;
use std::cmp::Ordering;

/// How the names of the cells begin that say that an upload is given up. They are no cells that are ever forgotten.
const GIVEN_UP: &str = "given-up-";

/// The cell that says that an upload is given up.
fn given_up(upload: Writer) -> Bytes {
    let Writer { client, counter } = upload;
    format!("{GIVEN_UP}{:016x}{counter:016x}", client.0).into()
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
        let commit = Fate::Commit(Box::new(Commit {
            name: name.clone(),
            // Which version it becomes is not known yet.
            tag: Tag::first(blocks.upload),
            metadata: metadata.clone(),
        }));
        let manifest = Value::manifest(metadata, blocks.length());
        let upload = UploadCommit {
            commit: &commit.encode(),
            is_decided: false,
            put: None,
        };
        self.publish_after(name, (blocks, &manifest), (condition, request), upload)
            .await
    }

    /// The same of an upload that may have been committed before the domain became conditional.
    pub(super) async fn publish_after(
        &self,
        name: &Name,
        (blocks, manifest): (&Blocks, &Value),
        (condition, request): (Condition, u128),
        upload: UploadCommit<'_>,
    ) -> Result<WriteDecision, PublishError> {
        let wish = Wish {
            writer: blocks.upload,
            request,
            ..self.client.wish(manifest, condition)
        };
        match Box::pin(self.decide_manifest(name, wish, upload)).await {
            Ok(Some(written @ WriteDecision::Written { replaced, .. })) => {
                self.remove_replaced(replaced).await;
                Ok(written)
            }
            Ok(Some(conflict @ WriteDecision::Conflict(_))) => {
                self.remove_upload(blocks.upload, numbers(blocks)).await;
                self.forget(&cell(blocks.upload));
                Ok(conflict)
            }
            Ok(None) => {
                self.remove_upload(blocks.upload, numbers(blocks)).await;
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
        blocks: &Blocks,
        tag: Tag,
    ) -> Result<Tag, PublishError> {
        let read = self.read_lineage(name).await;
        let (found, lineage) =
            read.map_err(|failed| PublishError::Write(WriteError::Unknown(failed)))?;
        let mut ancestors = lineage.ancestors.iter();
        if found.tag == tag || ancestors.any(|it| it.tag == tag) {
            return Ok(tag);
        }
        self.remove_upload(blocks.upload, numbers(blocks)).await;
        match lineage.order_of_put(found.tag, tag) {
            Some(Ordering::Less) => Ok(tag),
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

    /// Whether a sweep has given up an upload that is committed.
    pub(in crate::dsm) async fn is_given_up(&self, upload: Writer) -> Result<bool, Unavailable> {
        Ok(self.learn(&given_up(upload)).await?.is_some())
    }

    /// Gives up an upload that is committed and that no version shows. False: it is the current version.
    pub(in crate::dsm) async fn give_up(&self, commit: &Commit) -> Result<bool, Unavailable> {
        let upload = commit.tag.writer;
        // In this order: what its writer proposes before it hears of this has a smaller ballot than what comes next.
        self.decide(&given_up(upload), &Fate::Abort.encode())
            .await?;
        let current = self.shut_out_earlier(&commit.name).await?;
        Ok(current.writer != upload)
    }
}
