//! Blocks of large values that their writers remove themselves, at once, so that they do not wait for a sweep.
//!
//! | blocks | why nobody will read them |
//! |---|---|
//! | of an upload that is not committed | only its writer proposes to commit it, and this is its writer, which does not any more (`[X-22 upload-fate]`) |
//! | of the version that a write replaced | the write is complete, so that every later read returns its version or a larger one (`[X-23 replaced-blocks]`) |
//!
//! Where the outcome is unknown nothing is removed: what was sent may be read from now on, or what it replaces still is. Nor
//! does anything rest on a removal: what is left, for want of a quorum or because the process ends, is left to a sweep
//! ([`super::sweep`]). So are the blocks of a version that came and went between the two phases of a write, which saw the
//! one before it.
//!
//! A reader under way may lose blocks of what was replaced. It starts again, unless it has handed bytes on; then it fails.
//! Who wants to spare it leaves them to a later sweep ([`super::Client::keeping_replaced`]).

use super::large::{self, BlockPlace};
use super::{Domain, sweep};
use crate::element::Value;
use crate::env::Env;
use crate::error::{Unavailable, WriteError};
use crate::gather;
use crate::limits;
use crate::object::{Manifest, Name};
use crate::tag::{Tag, Writer};
use bytes::Bytes;

impl<E: Env> Domain<E> {
    /// Removes these blocks of an upload that its writer, who calls this, gives up without having proposed to commit
    /// it, or because the proposal was not handed to any connection, or because the cell has decided to abort it.
    pub async fn remove_upload(
        &self,
        upload: Writer,
        blocks: impl IntoIterator<Item = impl Into<BlockPlace>>,
    ) {
        // The rest is left to a sweep.
        let _ = self.remove_blocks(upload, blocks).await;
    }

    /// Removes the blocks of a publication that its writer gives up. A value of one writer loses all of its blocks. An
    /// upload in parts loses only the list, because another publication may have the parts.
    pub(super) async fn remove_own(&self, manifest: &Manifest) {
        match manifest {
            Manifest::Parts(blocks) => {
                let numbers = blocks.iter().map(|block| block.number);
                self.remove_upload(blocks.upload, numbers).await;
            }
            Manifest::List(list) => {
                let place = BlockPlace::List(list.publication);
                self.remove_upload(list.upload, [place]).await;
            }
        }
    }

    /// Removes blocks of an upload after this failure, unless no server could remove anything either: a server that refuses is there, and has room
    /// for a removal even if it has none for anything else; where they are silent, it would only be waited twice.
    pub async fn remove_upload_after(
        &self,
        (upload, blocks): (Writer, impl IntoIterator<Item = impl Into<BlockPlace>>),
        failed: &Unavailable,
    ) {
        if failed.is_refused() {
            self.remove_upload(upload, blocks).await;
        }
    }

    /// Removes the blocks of `version`, if it has some. To be called when a larger version of the object is complete.
    pub async fn remove_replaced(&self, version: Tag) {
        if self.client.keeps_replaced || !version.writer.is_upload() {
            return;
        }
        // Of a version that was seen the upload is committed, and all its blocks were there before that.
        let Ok(uploads) = self.uploads(&large::prefix(version.writer)).await else {
            return;
        };
        if uploads.is_empty() {
            let _ = self.remove_replaced_parts(version.writer).await;
            return;
        }
        for upload in uploads {
            // The rest is left to a sweep.
            let places = upload.blocks.into_iter().map(|block| block.place);
            if self.remove_blocks(upload.id, places).await.is_err() {
                return;
            }
        }
        self.forget(&large::cell(version.writer));
    }

    /// Writes tombstones over blocks, each in one round; they stay (`[X-18 tombstone-versions]`).
    pub(super) async fn remove_blocks(
        &self,
        upload: Writer,
        blocks: impl IntoIterator<Item = impl Into<BlockPlace>>,
    ) -> Result<(), Unavailable> {
        // Above the only other tag that a block can have.
        let tag = || {
            let next = large::block_tag(upload).next(self.client.next_writer());
            next.expect("two follows one")
        };
        let blocks = blocks.into_iter();
        let blocks = blocks.map(|place| (large::block_name(upload, place), tag()));
        self.remove_all(blocks).await
    }

    /// Writes tombstones with these tags.
    pub(crate) async fn remove_all(
        &self,
        objects: impl IntoIterator<Item = (Name, Tag)>,
    ) -> Result<(), Unavailable> {
        let tombstone = &Value::tombstone(Bytes::new());
        let removals = objects
            .into_iter()
            .map(|(name, tag)| async move { self.put_version(&name, (tag, tombstone)).await });
        let removed = gather::join(limits::SWEEP_WINDOW, removals).await;
        let removed: Result<(), WriteError> = removed.into_iter().collect();
        removed.map_err(sweep::unavailable)
    }
}
