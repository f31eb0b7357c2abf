//! The content of a file, in order, in bounded memory.
//!
//! The list is walked first, then data is fetched ahead, a window at a time. A block may be written between the two. Then
//! the version that came counts, with the link that came with it, and the list from there on is asked for again: what is
//! delivered is connected by links that were read with the data (`[B-8 links-read-now]`), and is never taken back. A read of
//! a file is as the papers have it: each block is read atomically, the file as a whole is not.

use super::FragmentedObject;
use super::block::{self, Metadata};
use super::file::{Block, Chain, FileError};
use crate::dsm::large;
use crate::env::Env;
use crate::gather;
use crate::tag::Writer;
use bytes::Bytes;

/// The receiver of a file's content.
pub trait Sink {
    /// Why it takes no more.
    type Error: From<FileError>;

    /// True if it has the data of this block already, so that it need not be fetched.
    fn has(&self, block: &Block) -> bool;

    /// Takes the next block; `None`: it has the data.
    ///
    /// # Errors
    /// It takes no more.
    fn take(&mut self, block: &Block, data: Option<Vec<Bytes>>) -> Result<(), Self::Error>;
}

impl<E: Env> FragmentedObject<E> {
    /// Delivers the blocks of a file to `sink`, in their order, without the genesis block. `chain`: as it was just walked. Returns
    /// the file as it was delivered.
    ///
    /// # Errors
    /// Those of the sink, and [`FileError`].
    pub async fn deliver<S: Sink>(
        &self,
        mut chain: Chain,
        sink: &mut S,
    ) -> Result<Chain, S::Error> {
        let (mut delivered, era) = (vec![chain.blocks[0]], chain.era());
        let mut rest = chain.blocks.split_off(1);
        while !rest.is_empty() {
            let later = rest.split_off(window(&rest, sink));
            let group = std::mem::replace(&mut rest, later);
            let wanted = |block: &&Block| block.length > 0 && !sink.has(block);
            assert!(
                group.iter().all(|block| block.id.is_some()),
                "the genesis block comes first"
            );
            let ids: Vec<Writer> = group.iter().filter(wanted).filter_map(|b| b.id).collect();
            let fetches = ids.iter().map(|id| self.fetch(*id));
            let fetched = gather::join(ids.len().max(1), fetches).await;
            let mut fetched = ids.into_iter().zip(fetched).peekable();
            for (place, block) in group.iter().enumerate() {
                let (mut block, next) = (*block, block.metadata.next);
                let is_fetched = fetched.next_if(|(id, _)| Some(*id) == block.id);
                let data = match is_fetched {
                    None if block.length == 0 => Some(Vec::new()),
                    None => None,
                    Some((_, fetched)) => {
                        let (newest, data) = match fetched {
                            Ok(fetched) => fetched,
                            Err(error) => {
                                return Err(self.gone((era, error)).await.into());
                            }
                        };
                        block = newest;
                        Some(data)
                    }
                };
                sink.take(&block, data)?;
                delivered.push(block);
                if block.metadata.next != next {
                    let known = [&group[place + 1..], &rest].concat();
                    rest = match self.walk_on(block, &known).await {
                        Ok(rest) => rest,
                        Err(error) => {
                            return Err(self.gone((era, error)).await.into());
                        }
                    };
                    let first = rest.remove(0);
                    assert_eq!(first, block, "the walk begins where it was to");
                    break;
                }
            }
        }
        Ok(Chain {
            blocks: delivered,
            hinted: chain.hinted,
            exists: true,
        })
    }

    /// A block with its data, in its newest version.
    async fn fetch(&self, id: Writer) -> Result<(Block, Vec<Bytes>), FileError> {
        let name = block::name(id);
        let found = self.domain.read(&name, None).await?;
        let key = || name.key().to_owned();
        let Some(value) = found.value.filter(|value| !value.deleted) else {
            return Err(FileError::Broken { key: key() });
        };
        let metadata = Metadata::decode(&value.metadata);
        let metadata = metadata.map_err(|error| FileError::Metadata { key: key(), error })?;
        let block = Block {
            id: Some(id),
            version: found.tag,
            length: found.length,
            metadata,
        };
        Ok((block, value.content))
    }
}

/// Number of the next blocks to take at once: as many as a window of fetches allows.
fn window<S: Sink>(ahead: &[Block], sink: &S) -> usize {
    assert!(!ahead.is_empty(), "there is a block to take");
    let longest = ahead.iter().take(64).map(|block| block.length).max();
    let most = large::window(u32::try_from(longest.unwrap_or(0)).unwrap_or(u32::MAX));
    let mut fetches = 0;
    let within = ahead.iter().take_while(|block| {
        fetches += usize::from(block.length > 0 && !sink.has(block));
        fetches <= most
    });
    within.count().max(1)
}
