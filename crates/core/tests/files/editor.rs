//! A client that works on a file: pushes content, pulls it, and remembers what it is based on.

use crate::world::{Actor, World};
use areo_core::config::Configuration;
use areo_core::fragment::content::Sink;
use areo_core::fragment::divide::{Divide, Rabin, Sizes};
use areo_core::fragment::file::{Block, Chain, FileError};
use areo_core::fragment::sweep::FileSweep;
use areo_core::fragment::update::{Chunk, Source, UpdateError, UpdateReport};
use areo_core::fragment::{Digest, block, identify};
use areo_core::hash::stable_hash;
use areo_core::object::Name;
use areo_core::tag::Tag;
use bytes::Bytes;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

/// A hash that is good enough for a test.
pub fn digest(bytes: &[u8]) -> Digest {
    let mut out = [0; 32];
    out[..8].copy_from_slice(&stable_hash(bytes).to_le_bytes());
    out[8..16].copy_from_slice(&(bytes.len() as u64).to_le_bytes());
    let reversed: Vec<u8> = bytes.iter().rev().copied().collect();
    out[16..24].copy_from_slice(&stable_hash(&reversed).to_le_bytes());
    Digest(out)
}

/// Bytes that look random.
pub fn bytes(length: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let next = |_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    };
    (0..length).map(next).collect()
}

/// About 4 KiB to a block.
pub fn cutter() -> Rabin {
    Rabin::new(Sizes::new(4 << 10, 4 << 10, 8 << 10).expect("valid sizes"))
}

pub fn cut(content: &[u8]) -> Vec<Bytes> {
    let mut rest = Bytes::copy_from_slice(content);
    let lengths = cutter().divide(content);
    lengths
        .into_iter()
        .map(|length| rest.split_to(length))
        .collect()
}

/// The content of a file in memory, of which every block is looked at.
struct Content(Vec<u8>);

impl Sink for Content {
    type Error = FileError;

    fn has(&self, _block: &Block) -> bool {
        false
    }

    fn take(&mut self, block: &Block, data: Option<Vec<Bytes>>) -> Result<(), FileError> {
        let data = data.expect("nobody has it").concat();
        assert_eq!(data.len() as u64, block.length);
        let is_there = (!data.is_empty()).then(|| digest(&data));
        assert_eq!(block.metadata.digest, is_there, "nothing is torn");
        self.0.extend(data);
        Ok(())
    }
}

/// A source of chunks in memory.
pub struct Pieces(pub Vec<Bytes>);

impl Source for Pieces {
    type Error = std::convert::Infallible;

    async fn load(&self, chunk: usize) -> Result<Bytes, Self::Error> {
        Ok(self.0[chunk].clone())
    }
}

pub type PushOutcome =
    Result<UpdateReport<std::convert::Infallible>, UpdateError<std::convert::Infallible>>;

#[derive(Clone)]
pub struct Editor {
    world: World,
    actor: Actor,
    file: Name,
    /// The file that the content is based on, if it was read or written before.
    pub base: Rc<RefCell<Option<Chain>>>,
}

impl Editor {
    pub fn new(world: &World, c: &Arc<Configuration>) -> Editor {
        Editor {
            world: world.clone(),
            actor: world.actor(c),
            file: block::genesis("a file").expect("a short name"),
            base: Rc::default(),
        }
    }

    /// Writes the new content over what it was based on; for `spawn`.
    pub fn writes(&self, content: &[u8]) -> impl Future<Output = PushOutcome> + use<> {
        let file = self.actor.domain().file(&self.file);
        let (pieces, base) = (cut(content), self.base.clone());
        async move {
            let known = base.borrow().clone();
            let known = match known {
                Some(known) => known,
                None => match file.walk(None).await {
                    Ok(chain) => chain,
                    Err(FileError::NotFound { version }) => Chain::absent(version),
                    Err(error) => panic!("{error:?}"),
                },
            };
            let chunk = |piece: &Bytes| Chunk {
                digest: digest(piece),
                length: piece.len() as u64,
            };
            let chunks: Vec<Chunk> = pieces.iter().map(chunk).collect();
            let digests: Vec<Digest> = chunks.iter().map(|chunk| chunk.digest).collect();
            let updates = identify::updates(&known.digests(), &digests);
            let source = Pieces(pieces);
            let what = (&chunks[..], &updates[..]);
            let updated = file.update(&known, what, (&source, None)).await?;
            *base.borrow_mut() = Some(updated.chain.clone());
            Ok(updated)
        }
    }

    /// Writes the new content, and runs until that has ended.
    pub fn push(&self, content: &[u8]) -> UpdateReport<std::convert::Infallible> {
        let pushed = self
            .world
            .run(self.writes(content))
            .expect("a quorum is there");
        self.world.settle();
        pushed
    }

    /// [`Self::push`] that must have no conflict.
    pub fn push_alone(&self, content: &[u8]) -> UpdateReport<std::convert::Infallible> {
        let updated = self.push(content);
        assert!(updated.conflicts.is_empty() && updated.failed.is_empty());
        assert_eq!(updated.success_ratio().to_bits(), 1_f64.to_bits());
        updated
    }

    pub fn walks(&self) -> impl Future<Output = Result<Chain, FileError>> + use<> {
        let file = self.actor.domain().file(&self.file);
        let known = self.base.borrow().clone();
        async move { file.walk(known.as_ref()).await }
    }

    /// The content, for `spawn`.
    pub fn reads(&self) -> impl Future<Output = Result<Vec<u8>, FileError>> + use<> {
        let file = self.actor.domain().file(&self.file);
        let base = self.base.clone();
        async move {
            let known = base.borrow().clone();
            let chain = file.walk(known.as_ref()).await?;
            let mut content = Content(Vec::new());
            let chain = file.deliver(chain, &mut content).await?;
            *base.borrow_mut() = Some(chain);
            Ok(content.0)
        }
    }

    pub fn pull(&self) -> Vec<u8> {
        self.world.run(self.reads()).expect("the file is there")
    }

    pub fn removes(&self) -> impl Future<Output = Result<Tag, FileError>> + use<> {
        let file = self.actor.domain().file(&self.file);
        async move { file.remove().await }
    }

    /// Counts the blocks of files; removes those of removed files if `removes`.
    pub fn sweep(&self, removes: bool) -> FileSweep {
        let domain = self.actor.domain();
        let sweep = async move { domain.sweep_files(removes).await };
        let swept = self.world.run(sweep).expect("a quorum is there");
        self.world.settle();
        swept
    }

    pub fn actor(&self) -> &Actor {
        &self.actor
    }
}
