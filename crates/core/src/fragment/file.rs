//! Reading a file's list of blocks (4.4); the data of those that the reader does not have comes after ([`super::content`]).
//!
//! The papers go from block to block, each with its own rounds. Here the blocks that the reader knows from before are asked
//! for at once, a thousand in a message, and say nothing but that they are what they were. Where the reader knows nothing,
//! the genesis block's hint says what to ask for. The list itself is gone along links that were read in this operation,
//! and no others (`[B-8 links-read-now]`), to a block that has none.
//!
//! | | rounds, quiet | bytes |
//! |---|---|---|
//! | [`FragmentedObject::walk`], nothing changed | 1 for each 1024 blocks, all at once | no data |
//! | [`FragmentedObject::walk`], blocks changed | the same | their metadata |
//! | [`FragmentedObject::walk`], nothing known | 1 more | metadata |
//! | a block that neither the reader nor the hint knew | + 1 | its metadata |

use super::block::{self, Metadata};
use super::{Digest, FragmentedObject};
use crate::dap::headers::Header;
use crate::element::Value;
use crate::env::Env;
use crate::error::{Unavailable, WriteError};
use crate::object::Name;
use crate::tag::{Tag, Writer};
use crate::tlv::TlvError;
use std::collections::{BTreeMap, BTreeSet};

/// A block as it was read or written: everything but its data.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Block {
    /// Identity of the block; `None`: the genesis block.
    pub id: Option<Writer>,
    pub version: Tag,
    pub length: u64,
    pub metadata: Metadata,
}

impl Block {
    fn key(id: Option<Writer>, file: &Name) -> Name {
        id.map_or_else(|| file.clone(), block::name)
    }

    /// It was there when it was read, and not removed.
    pub fn is_there(&self) -> bool {
        !self.version.is_initial()
    }

    /// Name of the object that holds the block.
    pub fn name(&self, file: &Name) -> Name {
        Block::key(self.id, file)
    }
}

/// A file as it was read or written: its blocks in their order, the genesis block first.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Chain {
    /// The blocks; there is at least one.
    pub blocks: Vec<Block>,
    /// Number of blocks that the hint in the genesis block names, as far as is known.
    pub hinted: usize,
    /// True if there is such a file.
    pub exists: bool,
}

impl Chain {
    /// The chain of a file that does not exist, as the base of its first update. `version`: the version of the
    /// tombstone, if the file was removed.
    pub fn absent(version: Tag) -> Chain {
        let genesis = Block {
            version,
            ..Block::default()
        };
        Chain {
            blocks: vec![genesis],
            hinted: 0,
            exists: false,
        }
    }

    /// The blocks with data, or that had some.
    pub fn data(&self) -> &[Block] {
        &self.blocks[1..]
    }

    /// For each block the digest of its data, to compare new content with.
    pub fn digests(&self) -> Vec<Option<Digest>> {
        let digest = |block: &Block| block.metadata.digest;
        self.data().iter().map(digest).collect()
    }

    /// The era of its name that the file is of; see [`super::remove`].
    pub fn era(&self) -> u64 {
        self.blocks[0].version.era()
    }

    /// Bytes of the file.
    pub fn length(&self) -> u64 {
        self.blocks.iter().map(|block| block.length).sum()
    }
}

/// Why a file could not be read or written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FileError {
    /// There is no such file. An update that is to make it covers this version of the genesis block.
    NotFound {
        /// The version of the tombstone, or the initial one.
        version: Tag,
    },
    /// A read did not return.
    Read(Unavailable),
    /// A write was not acknowledged.
    Write(WriteError),
    /// A block cannot be understood.
    Metadata { key: String, error: TlvError },
    /// The links lead to a block that is not there, or in a circle.
    Broken {
        /// The key of the block that they lead to.
        key: String,
    },
}

impl From<Unavailable> for FileError {
    fn from(error: Unavailable) -> FileError {
        FileError::Read(error)
    }
}

/// Blocks by their ids.
type BlocksById = BTreeMap<Option<Writer>, Block>;

impl<E: Env> FragmentedObject<E> {
    /// The list of the file's blocks. `known`: as it was before, whenever that was; it saves bytes and rounds, and decides
    /// nothing.
    ///
    /// # Errors
    /// [`FileError`].
    pub async fn walk(&self, known: Option<&Chain>) -> Result<Chain, FileError> {
        let (mut hinted, mut seen) = match known {
            Some(known) => (known.hinted, self.ask_again(&known.blocks).await?),
            None => self.ask_for_hinted().await?,
        };
        loop {
            let genesis = match seen.remove(&None) {
                Some(genesis) => genesis,
                None => self.ask_alone(None).await?,
            };
            match self.along(genesis, seen).await {
                // It may be that the file was removed meanwhile: the genesis block goes first.
                Err(broken @ FileError::Broken { .. }) => {
                    if self.ask_alone(None).await?.version == genesis.version {
                        return Err(broken);
                    }
                    (hinted, seen) = self.ask_for_hinted().await?;
                }
                blocks => {
                    let blocks = blocks?;
                    assert_eq!(blocks[0].id, None, "a file begins with its genesis block");
                    return Ok(Chain {
                        blocks,
                        hinted,
                        exists: true,
                    });
                }
            }
        }
    }

    /// The blocks from `first` on, which was just read. What follows it there may be reached from no other version of it: of two
    /// concurrent writes one prevails, and the new blocks of the other go with it (`[V-1 weak-coverability]`).
    ///
    /// # Errors
    /// [`FileError`].
    pub(super) async fn walk_on(
        &self,
        first: Block,
        known: &[Block],
    ) -> Result<Vec<Block>, FileError> {
        let seen = self.ask_again(known).await?;
        self.along(first, seen).await
    }

    /// The era of the file's name; a removal begins another.
    ///
    /// # Errors
    /// [`Unavailable`].
    pub(super) async fn era(&self) -> Result<u64, Unavailable> {
        let genesis = self.domain.stat(&self.name).await?;
        Ok(genesis.tag.era())
    }

    /// Why a file of this era could not be read to its end, where this is what a block said: it may be that it was removed
    /// meanwhile.
    pub(super) async fn gone(&self, (of, error): (u64, FileError)) -> FileError {
        if !matches!(error, FileError::Broken { .. }) {
            return error;
        }
        match self.domain.stat(&self.name).await {
            Ok(genesis) if genesis.tag.era() == of => error,
            Ok(genesis) => FileError::NotFound {
                version: genesis.tag,
            },
            Err(error) => error.into(),
        }
    }

    /// Goes along the links from the first block to the end.
    async fn along(&self, first: Block, mut seen: BlocksById) -> Result<Vec<Block>, FileError> {
        let mut blocks = vec![first];
        let mut passed: BTreeSet<Writer> = BTreeSet::new();
        while let Some(id) = blocks.last().and_then(|block| block.metadata.next) {
            let key = || block::name(id).key().to_owned();
            let known = seen.remove(&Some(id)).filter(Block::is_there);
            let block = match known {
                Some(block) => block,
                None => self.ask_alone(Some(id)).await?,
            };
            if !block.is_there() || !passed.insert(id) {
                return Err(FileError::Broken { key: key() });
            }
            assert_eq!(
                block.id,
                Some(id),
                "a link leads to the block that it names"
            );
            blocks.push(block);
        }
        assert_eq!(blocks.len(), 1 + passed.len(), "none is passed twice");
        Ok(blocks)
    }

    /// Asks for blocks that were seen before.
    async fn ask_again(&self, known: &[Block]) -> Result<BlocksById, FileError> {
        let objects: Vec<(Name, Tag)> = known
            .iter()
            .map(|block| (block.name(&self.name), block.version))
            .collect();
        let found = self.domain.headers(&objects).await?;
        assert_eq!(found.len(), known.len(), "each was asked for");
        let mut seen = BlocksById::new();
        for (block, header) in known.iter().zip(found) {
            let Some(Header {
                tag, value, length, ..
            }) = header
            else {
                continue;
            };
            let newest = match value {
                // What was read before is confirmed in this operation.
                None if tag == block.version => *block,
                value => self.block(block.id, tag, value.as_ref(), length)?,
            };
            seen.insert(block.id, newest);
        }
        Ok(seen)
    }

    /// Reads the genesis block, and asks for the blocks that its hint names.
    async fn ask_for_hinted(&self) -> Result<(usize, BlocksById), FileError> {
        let found = self.domain.read(&self.name, None).await?;
        let genesis = self.block(None, found.tag, found.value.as_ref(), 0)?;
        let hint = found.value.map(|value| value.contiguous());
        let hinted = block::decode_hint(&hint.unwrap_or_default());
        let ids = hinted.iter().map(|id| Block {
            id: Some(*id),
            ..Block::default()
        });
        let ids: Vec<Block> = ids.collect();
        let mut seen = self.ask_again(&ids).await?;
        seen.insert(None, genesis);
        Ok((hinted.len(), seen))
    }

    async fn ask_alone(&self, id: Option<Writer>) -> Result<Block, FileError> {
        let name = Block::key(id, &self.name);
        let found = self.domain.stat(&name).await?;
        self.block(id, found.tag, found.value.as_ref(), found.length)
    }

    /// The block in the found version; `None` if the block does not exist.
    fn block(
        &self,
        id: Option<Writer>,
        version: Tag,
        value: Option<&Value>,
        length: u64,
    ) -> Result<Block, FileError> {
        let key = || Block::key(id, &self.name).key().to_owned();
        let Some(value) = value.filter(|value| !value.deleted) else {
            return match id {
                None => Err(FileError::NotFound { version }),
                // Hinted, and gone; or never there.
                Some(_) => Ok(Block {
                    id,
                    ..Block::default()
                }),
            };
        };
        let metadata = Metadata::decode(&value.metadata);
        let metadata = metadata.map_err(|error| FileError::Metadata { key: key(), error })?;
        // What the genesis block has in the place of data is not the file's.
        let length = id.map_or(0, |_| length);
        Ok(Block {
            id,
            version,
            length,
            metadata,
        })
    }
}
