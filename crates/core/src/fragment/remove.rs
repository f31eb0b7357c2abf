//! Removing a file: first its genesis block, so that nobody finds the others any more, then these.
//!
//! The tombstone of a genesis block begins an *era* of the name. A write of the genesis block that goes on at the same time
//! stays below it, and a file that is made later under the name is of the new era. So no block of an older era is ever
//! reached again, whoever writes whatever; who finds one removes it ([`super::sweep`]).

use super::file::FileError;
use super::{FragmentedObject, block};
use crate::dsm::coverable::CoverableOutcome;
use crate::env::Env;
use crate::gather;
use crate::limits;
use crate::tag::{Tag, Writer};
use std::collections::BTreeSet;

impl<E: Env> FragmentedObject<E> {
    /// Removes the file and returns the version of its tombstone. Writers who go on with the file as it was are told; what
    /// they have written and not linked yet stays behind.
    ///
    /// # Errors
    /// [`FileError`]. After [`FileError::Write`] the file may be gone and blocks of it may be left behind.
    pub async fn remove(&self) -> Result<Tag, FileError> {
        let (chain, removed) = loop {
            let chain = self.walk(None).await?;
            let version = chain.blocks[0].version;
            let covered = self.domain.remove_covering(&self.name, version).await;
            if let CoverableOutcome::Changed(removed) = covered.map_err(FileError::Write)? {
                assert!(removed.era() > chain.era(), "a removal begins another era");
                break (chain, removed);
            }
        };
        let mut passed: BTreeSet<Writer> = BTreeSet::new();
        let mut blocks: Vec<Writer> = chain.blocks.iter().filter_map(|block| block.id).collect();
        while !blocks.is_empty() {
            passed.extend(blocks.iter().copied());
            let removals = blocks.iter().map(|id| self.remove_block(*id));
            let nexts = gather::join(limits::SWEEP_WINDOW, removals).await;
            let nexts: Result<Vec<_>, FileError> = nexts.into_iter().collect();
            // Others may have put blocks in between.
            blocks = nexts?
                .into_iter()
                .flatten()
                .filter(|id| !passed.contains(id))
                .collect();
            blocks.dedup();
        }
        Ok(removed)
    }

    /// Removes a block in any version; returns the block that it led to in the version that was removed.
    async fn remove_block(&self, id: Writer) -> Result<Option<Writer>, FileError> {
        let name = block::name(id);
        let mut found = self.domain.stat(&name).await?;
        loop {
            let Some(value) = found.value.filter(|value| !value.deleted) else {
                return Ok(None);
            };
            let covered = self.domain.remove_covering(&name, found.tag).await;
            match covered.map_err(FileError::Write)? {
                CoverableOutcome::Unchanged(newer) => found = newer,
                CoverableOutcome::Changed(_) => {
                    // What cannot be understood leads nowhere.
                    let metadata = block::Metadata::decode(&value.metadata);
                    return Ok(metadata.ok().and_then(|metadata| metadata.next));
                }
            }
        }
    }
}
