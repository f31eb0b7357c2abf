//! Large objects of conditional domains: the register chooses the manifest (`[W-11 given-up]`).
//!
//! Which version a manifest becomes is not known before it is chosen, and a conditional write may come to none. So the commit of the upload's
//! cell says less than elsewhere: that the blocks are there, and of which object the manifest may become a version. A second
//! cell, *given up*, says that its writer proposes it no more. A sweep decides that of an upload that has stood still, and has
//! the object's current version chosen once more, above all that the writer has proposed. If that is not this manifest, no
//! reader will ever see it.

use super::{Commit, Fate, PublishError, cell, numbers};
use crate::dsm::Domain;
use crate::dsm::conditional::{Condition, Wish, WriteDecision};
use crate::element::Value;
use crate::env::Env;
use crate::error::{Unavailable, WriteError};
use crate::object::{Blocks, Name};
use crate::tag::{Tag, Writer};
use bytes::Bytes;

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
        assert!(
            self.known.is_ranked(name),
            "a register chooses the manifest"
        );
        let commit = Fate::Commit(Box::new(Commit {
            name: name.clone(),
            // Which version it becomes is not known yet.
            tag: Tag::first(blocks.upload),
            metadata: metadata.clone(),
        }));
        let manifest = Value::manifest(metadata, blocks.length());
        let wish = Wish {
            writer: blocks.upload,
            request,
            ..self.client.wish(&manifest, condition)
        };
        let commit = commit.encode();
        match Box::pin(self.decide_manifest(name, wish, &commit)).await {
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
