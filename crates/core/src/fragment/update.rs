//! Writing a file: the blocks that changed, and no others (4.4).
//!
//! New blocks come first. Nobody knows their names, so that each takes one round and all go at once (`[B-3 create-first]`).
//! When all of them are there, the blocks that lead to them, and those whose data changed, are written coverably on the
//! versions that the writer's content is based on, again all at once (`[B-4 independent-links]`): three rounds, whatever the
//! number of blocks. Where another client has written the block meanwhile, the write is a read: the writer is told. The new
//! blocks that it would have led to are removed at once, as are those of an update that ends before its links: no server was
//! ever sent anything that leads there. Those stay whose link may have been written, and those that a link of the same
//! version with a larger tag hides (`[V-1 weak-coverability]`): a third writer may have read them, and be about to write
//! what leads there again.
//!
//! The update of a file as a whole is not atomic. Its list is connected at every moment: the only link that is ever written
//! leads to new blocks that end in the old link, or is the old link, and it covers the very version that the old link was
//! read from.

use super::block::{self, Home, Metadata};
use super::file::{Block, Chain};
use super::identify::Update;
use super::{Digest, FragmentedObject};
use crate::dsm::coverable::CoverableOutcome;
use crate::env::Env;
use crate::error::{Unavailable, WriteError};
use crate::gather;
use crate::tag::{Tag, Writer};
use bytes::Bytes;

/// A chunk of the new content: its digest and length, without its bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Chunk {
    pub digest: Digest,
    /// Length in bytes.
    pub length: u64,
}

/// The source of the bytes of chunks.
pub trait Source {
    /// Why there are none.
    type Error;

    /// The bytes of the chunk with this index.
    ///
    /// # Errors
    /// They are not there any more: the content has changed since it was cut.
    fn load(&self, chunk: usize) -> impl Future<Output = Result<Bytes, Self::Error>>;

    /// Hook: all new blocks are written, and the next write changes the file.
    ///
    /// # Errors
    /// The file is to stay as it is.
    fn before_links(&self) -> Result<(), Self::Error> {
        Ok(())
    }
}

/// Why something was not written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum UpdateError<S> {
    /// It was not acknowledged.
    Write(WriteError),
    /// The content is not there any more.
    Source(S),
}

/// The result of an update.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UpdateReport<S> {
    /// The file as the writer's content is based on it now. Blocks in conflict are in it as they were, so that writing them
    /// again is told again; read the file first (`[B-6 reread-after-loss]`).
    pub chain: Chain,
    /// Blocks that were written: changed and new ones.
    pub written: usize,
    /// Bytes of their data.
    pub written_bytes: u64,
    /// Blocks that another client has written since.
    pub conflicts: Vec<Conflict>,
    /// Blocks that were not written for another reason.
    pub failed: Vec<(Block, UpdateError<S>)>,
}

impl<S> UpdateReport<S> {
    /// The papers' update success ratio (`[B-7 success-ratio]`): of the blocks that were to be written, new ones among them,
    /// those that were. 1 if there were none.
    pub fn success_ratio(&self) -> f64 {
        let lost: usize = self.conflicts.iter().map(|conflict| conflict.lost).sum();
        let attempted = self.written + lost + self.failed.len();
        match attempted {
            0 => 1.0,
            attempted => self.written as f64 / attempted as f64,
        }
    }
}

/// A block that another client has written since.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Conflict {
    /// The block as the writer knew it.
    pub block: Block,
    /// The newest version of the block.
    pub newest: Tag,
    /// It was removed, and the file with it.
    pub removed: bool,
    /// Blocks that were not written for it: itself, and the new ones after it.
    pub lost: usize,
}

impl<E: Env> FragmentedObject<E> {
    /// Writes what `updates` say ([`super::identify::updates`] of `base` and `chunks`). `base`: the file as the new content was
    /// made from it.
    ///
    /// # Errors
    /// [`UpdateError`], if a new block could not be written; then nothing of the file has changed.
    pub async fn update<S: Source>(
        &self,
        base: &Chain,
        (chunks, updates): (&[Chunk], &[Update]),
        (source, now_ms): (&S, Option<u64>),
    ) -> Result<UpdateReport<S::Error>, UpdateError<S::Error>> {
        let home = Home {
            file: self.name.clone(),
            era: base.era(),
        };
        let writer = Write {
            file: self,
            home,
            chunks,
            source,
            now_ms,
        };
        let splits: Vec<Split> = updates
            .iter()
            .map(|update| writer.plan(base, update))
            .collect();
        let longest = chunks.iter().map(|chunk| chunk.length).max().unwrap_or(0);
        let window = crate::dsm::large::window(u32::try_from(longest).unwrap_or(u32::MAX));
        let new = splits.iter().flat_map(|split| &split.new);
        let created = gather::join(window, new.map(|new| writer.create(new))).await;
        let created: Result<Vec<Block>, _> = created.into_iter().collect();
        let created = created.and_then(|created| {
            let may_go_on = source.before_links().map_err(UpdateError::Source);
            may_go_on.map(|()| created)
        });
        let mut created = match created {
            Ok(created) => created.into_iter(),
            Err(error) => {
                if is_worth_it(&error) {
                    writer.take_back(&splits).await;
                }
                return Err(error);
            }
        };
        // Each split with the new blocks as they were written.
        let with_new = |split: Split| {
            let blocks: Vec<Block> = created.by_ref().take(split.new.len()).collect();
            assert_eq!(blocks.len(), split.new.len(), "all of them were created");
            (split, blocks)
        };
        let mut ready: Vec<(Split, Vec<Block>)> = splits.into_iter().map(with_new).collect();
        assert!(created.next().is_none(), "each of them is of an update");
        let hint = hint(base, &ready);
        if is_due(base, &ready, hint.len()) {
            ready.insert(0, (Split::default(), Vec::new()));
        }
        let (linked, is_removed) = writer.link_all(base, &ready, &hint, window).await;
        assert_eq!(linked.len(), ready.len(), "each block was to be linked");
        let results: Vec<LinkResult<S::Error>> = ready.into_iter().zip(linked).collect();
        let has_ended = matches!(is_removed, Ok(true));
        let lost = results.iter().filter(|(_, (_, link))| match link {
            Ok(CoverableOutcome::Unchanged(_)) => true,
            // What was written, or may have been, may be read, unless the file is gone.
            Ok(CoverableOutcome::Changed(_)) | Err(UpdateError::Write(WriteError::Unknown(_))) => {
                has_ended
            }
            Err(error) => is_worth_it(error),
        });
        writer.take_back(lost.map(|((split, _), _)| split)).await;
        let mut updated = outcome(base, results, hint.len(), has_ended);
        if let Err(failed) = is_removed {
            let unknown = UpdateError::Write(WriteError::Unknown(failed));
            updated.failed.push((base.blocks[0], unknown));
        }
        Ok(updated)
    }
}

/// True if the blocks that were created for a failed write should be removed. If servers are
/// silent and none has refused the write, the removal would only wait a second time.
fn is_worth_it<S>(error: &UpdateError<S>) -> bool {
    match error {
        UpdateError::Source(_) => true,
        UpdateError::Write(WriteError::NotApplied(failed) | WriteError::Unknown(failed)) => {
            failed.is_refused()
        }
    }
}

/// The ids of all blocks as they will be.
fn hint(base: &Chain, ready: &[(Split, Vec<Block>)]) -> Vec<Writer> {
    let mut new: Vec<&[Block]> = vec![&[]; base.blocks.len()];
    for (split, blocks) in ready {
        new[split.place] = blocks;
    }
    let all = base.blocks.iter().zip(new);
    let all = all.flat_map(|(block, new)| std::iter::once(block).chain(new));
    all.filter_map(|block| block.id).collect()
}

/// True if the genesis block is to be written although nothing is linked to it: to make the file, or because its hint leaves out so much that reading
/// takes long.
fn is_due(base: &Chain, ready: &[(Split, Vec<Block>)], blocks: usize) -> bool {
    let is_written = ready.first().is_some_and(|(split, _)| split.place == 0);
    let missing = blocks.saturating_sub(base.hinted);
    !is_written && (!base.exists || missing > MISSING_BLOCKS + blocks / 8)
}

/// Blocks that a hint may lack, in addition to an eighth of the file.
const MISSING_BLOCKS: usize = 8;

/// The writes of an update at one place: a block, and the new blocks between it and its old successor.
#[derive(Default)]
struct Split {
    /// Its place in the chain.
    place: usize,
    chunk: Option<usize>,
    new: Vec<New>,
}

struct New {
    id: Writer,
    chunk: usize,
    next: Option<Writer>,
}

struct Write<'a, E, S> {
    file: &'a FragmentedObject<E>,
    home: Home,
    chunks: &'a [Chunk],
    source: &'a S,
    now_ms: Option<u64>,
}

impl<E: Env, S: Source> Write<'_, E, S> {
    /// Gives the new blocks their names, and links each to the next.
    fn plan(&self, base: &Chain, update: &Update) -> Split {
        let place = update.block.map_or(0, |block| block + 1);
        assert!(
            place < base.blocks.len(),
            "an update is of a block of the base"
        );
        let mut used = update.after.iter().chain(&update.chunk);
        assert!(
            used.all(|chunk| *chunk < self.chunks.len()),
            "blocks hold chunks"
        );
        let ids: Vec<Writer> = update
            .after
            .iter()
            .map(|_| self.file.domain.client.next_writer())
            .collect();
        let nexts = ids.iter().skip(1).copied().map(Some);
        let nexts = nexts.chain([base.blocks[place].metadata.next]);
        let new = ids.iter().zip(&update.after).zip(nexts);
        let new = new.map(|((id, chunk), next)| New {
            id: *id,
            chunk: *chunk,
            next,
        });
        let new: Vec<New> = new.collect();
        assert_eq!(new.len(), update.after.len(), "a block for each chunk");
        Split {
            place,
            chunk: update.chunk,
            new,
        }
    }

    fn metadata(&self, chunk: Option<usize>, next: Option<Writer>) -> Metadata {
        Metadata {
            next,
            digest: chunk.map(|chunk| self.chunks[chunk].digest),
            written_at_ms: self.now_ms,
        }
    }

    fn length(&self, chunk: Option<usize>) -> u64 {
        chunk.map_or(0, |chunk| self.chunks[chunk].length)
    }

    async fn create(&self, new: &New) -> Result<Block, UpdateError<S::Error>> {
        let data = self.source.load(new.chunk).await;
        let data = data.map_err(UpdateError::Source)?;
        let metadata = self.metadata(Some(new.chunk), new.next);
        // Nobody knows the name, so that nothing needs to be asked.
        let version = Tag::first(new.id);
        assert_ne!(new.next, Some(new.id), "no block leads to itself");
        let (name, value) = (block::name(new.id), metadata.with(&self.home, data));
        let put = self.file.domain.put_version(&name, (version, &value)).await;
        put.map_err(|error| {
            // Whatever became of it, nothing leads there.
            let (WriteError::NotApplied(failed) | WriteError::Unknown(failed)) = error;
            UpdateError::Write(WriteError::NotApplied(failed))
        })?;
        Ok(Block {
            id: Some(new.id),
            version,
            length: self.length(Some(new.chunk)),
            metadata,
        })
    }

    /// Removes new blocks that nothing leads to and nothing ever will: only this update knows their names, and it either has
    /// not put what would lead there to any server, or the era of its file has ended ([`super::remove`]).
    async fn take_back<'a>(&self, splits: impl IntoIterator<Item = &'a Split>) {
        let new = splits.into_iter().flat_map(|split| &split.new);
        let removals = new.map(|new| {
            let tag = Tag::first(new.id).next_era(self.file.domain.client.next_writer());
            (block::name(new.id), tag.expect("it is of the first era"))
        });
        // Whatever is left stays until the file is removed.
        let _ = self.file.domain.remove_all(removals).await;
    }

    /// The coverable writes of all blocks, and whether the file was removed before they began: blocks of it may be left,
    /// which can be written all the same, and nothing leads there any more.
    async fn link_all(
        &self,
        base: &Chain,
        ready: &[(Split, Vec<Block>)],
        hint: &[Writer],
        window: usize,
    ) -> (Vec<Link<S::Error>>, Result<bool, Unavailable>) {
        let links = ready.iter().map(|(split, _)| self.link(base, split, hint));
        let links = gather::join(window, links);
        if let [] | [(Split { place: 0, .. }, _), ..] = ready {
            let linked = links.await;
            let genesis = match linked.first() {
                Some((_, Ok(CoverableOutcome::Unchanged(newest)))) => newest.tag,
                _ => base.blocks[0].version,
            };
            return (linked, Ok(genesis.era() != base.era()));
        }
        let era = self.file.era();
        let (linked, era) = gather::both(links, era).await;
        (linked, era.map(|era| era != base.era()))
    }

    /// The coverable write of one block.
    async fn link(&self, base: &Chain, split: &Split, hint: &[Writer]) -> Link<S::Error> {
        let old = base.blocks[split.place];
        let next = split.new.first().map(|new| new.id).or(old.metadata.next);
        let metadata = self.metadata(split.chunk, next);
        let block = Block {
            id: old.id,
            version: old.version,
            length: self.length(split.chunk),
            metadata,
        };
        let data = match (old.id, split.chunk) {
            (None, _) => Ok(block::encode_hint(hint.iter().copied())),
            (Some(_), None) => Ok(Bytes::new()),
            (Some(_), Some(chunk)) => self.source.load(chunk).await,
        };
        let data = match data {
            Ok(data) => data,
            Err(error) => return (block, Err(UpdateError::Source(error))),
        };
        let (name, value) = (old.name(&self.home.file), metadata.with(&self.home, data));
        let covered = self
            .file
            .domain
            .write_covering(&name, &value, old.version)
            .await;
        (block, covered.map_err(UpdateError::Write))
    }
}

/// A block as it was to be written, and what became of that.
type Link<S> = (Block, Result<CoverableOutcome, UpdateError<S>>);

type LinkResult<S> = ((Split, Vec<Block>), Link<S>);

fn outcome<S>(
    base: &Chain,
    results: Vec<LinkResult<S>>,
    hinted: usize,
    is_removed: bool,
) -> UpdateReport<S> {
    let mut updated = UpdateReport {
        chain: Chain {
            blocks: Vec::with_capacity(base.blocks.len()),
            hinted: base.hinted,
            exists: base.exists,
        },
        written: 0,
        written_bytes: 0,
        conflicts: Vec::new(),
        failed: Vec::new(),
    };
    let mut results = results.into_iter().peekable();
    for (place, old) in base.blocks.iter().enumerate() {
        let Some(((_, new), (block, covered))) =
            results.next_if(|((split, _), _)| split.place == place)
        else {
            updated.chain.blocks.push(*old);
            continue;
        };
        let conflict = |newest, removed| Conflict {
            block: *old,
            newest,
            removed,
            lost: new.len() + usize::from(old.id.is_some()),
        };
        match covered {
            // Nothing leads there any more.
            Ok(CoverableOutcome::Changed(version)) if is_removed => {
                updated.conflicts.push(conflict(version, true));
            }
            Ok(CoverableOutcome::Changed(version)) => {
                let written = Block { version, ..block };
                updated.written += new.len() + usize::from(old.id.is_some());
                updated.written_bytes += written.length;
                updated.written_bytes += new.iter().map(|block| block.length).sum::<u64>();
                if old.id.is_none() {
                    (updated.chain.hinted, updated.chain.exists) = (hinted, true);
                }
                updated.chain.blocks.push(written);
                updated.chain.blocks.extend(new);
                continue;
            }
            // Only for its hint: others will write it again.
            Ok(CoverableOutcome::Unchanged(_))
                if old.id.is_none() && new.is_empty() && base.exists => {}
            Ok(CoverableOutcome::Unchanged(found)) => {
                let is_removed = is_removed || found.value.is_none_or(|value| value.deleted);
                updated.conflicts.push(conflict(found.tag, is_removed));
            }
            Err(error) => updated.failed.push((*old, error)),
        }
        updated.chain.blocks.push(*old);
    }
    assert!(
        results.next().is_none(),
        "updates are in the order of blocks"
    );
    let blocks = updated.chain.blocks.len();
    assert!(
        blocks >= base.blocks.len(),
        "blocks are emptied and never go"
    );
    updated
}
