//! Sweeping: what becomes of blocks that no object needs (`docs/spec` `[X-22 upload-fate]`, `[X-23 replaced-blocks]`).
//!
//! Writers remove what they replace and what they give up ([`super::removal`]). Blocks are left over where they cannot, or
//! do not: when a writer ends between its first block and its manifest, or before it has removed what it replaced; when two
//! write at once; and where readers were to be spared. A sweep lists all blocks of a domain and settles the fate of each upload by its cell:
//!
//! | the cell | then |
//! |---|---|
//! | is not decided | the writer may be slow or gone: abort is proposed if its newest block is old, as servers say |
//! | aborted | nobody will ever read the blocks: they are removed |
//! | committed | the manifest is put with the tag that was decided, as its writer would; then the object is read |
//! | and the read returns that tag | the upload is live |
//! | and the read returns a larger one | it is complete, so that every later read returns it or a larger one: the blocks are removed, after a while for those who still read them |
//!
//! In a conditional domain a register chooses the manifest, and not the cell. There an upload that was committed and that no version
//! shows is as one that is not decided, and is given up by a cell of its own ([`super::large`], `[W-11 given-up]`).
//!
//! The cell of what was committed and is written over goes with its blocks, or after them.
//!
//! Time only decides when to try: no clock makes a sweep remove what somebody may read from now on. But to try too early
//! ends an upload that is under way. So neither the clock of the sweeping client nor that of the writer has a say in it: a server
//! that lists a block says for how long it has had it, and the upload is as old as the youngest block that any server of a
//! quorum lists. A block that was put is at a quorum, so that one of them knows of it.
//!
//! To remove a block is to write a tombstone over it, in one round, because all tags that it can have are known.

use super::Domain;
use super::interruption::{Interruption, PutInterruption};
use super::large::{self, BlockPlace, Commit, Fate};
use crate::dap::Scope;
use crate::element::Value;
use crate::env::Env;
use crate::error::{Unavailable, WriteError};
use crate::message::ListRequest;
use crate::object::{Kind, Manifest, Metadata, Name};
use crate::tag::{Tag, Writer};
use bytes::Bytes;
use std::collections::BTreeSet;

mod parts;

/// The ages at which uploads are removed; in milliseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ages {
    /// The present time, since 1970, by the caller's clock: it matters for replaced uploads only.
    pub now_ms: u64,
    /// Age after which undecided uploads without a new block are removed, by the servers' clocks; `None`: they are
    /// only counted.
    pub unfinished_ms: Option<u64>,
    /// Age after which uploads are removed whose object was overwritten or deleted. Aborted uploads are removed at any
    /// age. `None`: both are only counted.
    pub replaced_ms: Option<u64>,
}

/// Uploads, their blocks, and the bytes in those.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Count {
    pub uploads: u64,
    /// Blocks of them that are there.
    pub blocks: u64,
    /// Bytes in these blocks.
    pub bytes: u64,
}

/// The findings of a sweep, and the removed part of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct UploadSweep {
    /// The newest versions of their objects.
    pub live: Count,
    /// No version, so far: being written, or left by a writer that is gone.
    pub unfinished: Count,
    /// Their objects have a newer version, or are deleted.
    pub replaced: Count,
    /// Given up before they were a version that a reader sees.
    pub aborted: Count,
    /// Removed, out of the last three.
    pub removed: Count,
}

impl UploadSweep {
    /// The blocks that no object needs: all but the live ones.
    pub fn orphans(&self) -> Count {
        let mut sum = Count::default();
        for count in [self.unfinished, self.replaced, self.aborted] {
            sum.uploads += count.uploads;
            sum.blocks += count.blocks;
            sum.bytes += count.bytes;
        }
        sum
    }
}

/// The blocks of one upload that are there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Upload {
    pub(super) id: Writer,
    pub(super) blocks: Vec<UploadBlock>,
    /// Seconds in which no block of the upload has come to any of the servers that listed it, by their own clocks.
    idle_s: u32,
}

/// A block of an upload that is there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct UploadBlock {
    pub(super) place: BlockPlace,
    pub(super) bytes: u64,
}

impl Upload {
    fn count(&self) -> Count {
        let content = self.blocks.iter().filter(|it| it.place.is_content());
        Count {
            uploads: 1,
            blocks: content.clone().count() as u64,
            bytes: content.map(|block| block.bytes).sum(),
        }
    }

    /// The cells that decide about it: its own, or those of its publications and of those who end it.
    fn cells(&self) -> impl Iterator<Item = Bytes> {
        let publications = self.blocks.iter().filter_map(|it| match it.place {
            BlockPlace::List(writer) | BlockPlace::Seal(writer) => Some(writer),
            BlockPlace::Own(_) | BlockPlace::Lane { .. } => None,
        });
        let all = [self.id].into_iter().chain(publications);
        all.map(large::cell)
    }
}

/// The state of an upload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    Unfinished,
    Aborted,
    /// Committed, and never a version that a reader sees from now on (`[W-11 given-up]`).
    GivenUp,
    Live,
    /// Time of the write of the newer version, by its writer's clock.
    Replaced(Option<u64>),
}

impl<E: Env> Domain<E> {
    /// Goes over all blocks of uploads in the domain; removes what no object needs and is older than `ages` say.
    ///
    /// # Errors
    /// [`Unavailable`] without a quorum in time. What was removed stays removed; the next sweep goes on.
    pub async fn sweep(&self, ages: &Ages) -> Result<UploadSweep, Unavailable> {
        let mut swept = UploadSweep::default();
        let uploads = self.uploads(large::PREFIX).await?;
        let with_blocks: BTreeSet<Bytes> = uploads.iter().flat_map(Upload::cells).collect();
        let mut recorded = None;
        for upload in uploads {
            if upload.blocks.iter().any(|it| it.place.is_of_parts()) {
                self.sweep_parts(&upload, ages, &mut recorded, &mut swept)
                    .await?;
                continue;
            }
            let mut state = self.fate_of(upload.id).await?;
            if state == State::Unfinished && is_old(&upload, ages) {
                state = self.abort(upload.id).await?;
            }
            let (class, goes) = match state {
                State::Live => (&mut swept.live, false),
                State::Unfinished => (&mut swept.unfinished, false),
                State::Aborted | State::GivenUp => (&mut swept.aborted, ages.replaced_ms.is_some()),
                State::Replaced(at) => (&mut swept.replaced, passed(ages, at, ages.replaced_ms)),
            };
            add(class, upload.count());
            if goes {
                let blocks = upload.blocks.iter().map(|block| block.place);
                self.remove_blocks(upload.id, blocks).await?;
                add(&mut swept.removed, upload.count());
                if let State::Replaced(_) | State::GivenUp = state {
                    self.forget(&large::cell(upload.id));
                }
            }
        }
        if ages.replaced_ms.is_some() {
            self.forget_cells(&with_blocks).await?;
        }
        Ok(swept)
    }

    /// Forgets cells that were left when the blocks of their uploads were removed, if the upload was committed and is
    /// overwritten. The cell of an aborted upload stays: its writer may be slow, and must never hear another
    /// decision. A cell without a decision, whose upload had its blocks removed, was forgotten before, and came back
    /// with a late message (decision record 0021).
    async fn forget_cells(&self, with_blocks: &BTreeSet<Bytes>) -> Result<(), Unavailable> {
        let (prefix, mut after) = (Bytes::from_static(large::PREFIX.as_bytes()), Bytes::new());
        loop {
            let page = self.cells(&prefix, &after).await?;
            for (cell, decided) in &page.cells {
                if with_blocks.contains(cell) {
                    continue;
                }
                let (decided, was_removed) = if let Some(decided) = decided {
                    (Some(decided.clone()), false)
                } else {
                    // In this order: an abort that was decided before the removal is learnt.
                    let was_removed = self.is_removed(cell).await?;
                    (self.learn(cell).await?, was_removed)
                };
                let is_over = match decided {
                    // Its seal is removed.
                    Some(decided) if Fate::decode(&decided) == Ok(Fate::Ends) => true,
                    Some(decided) => match self.settled(&decided).await? {
                        State::Replaced(_) => true,
                        // Its writer gave it up, or a sweep.
                        State::Unfinished => self.has_lost_blocks(&decided).await?,
                        _ => false,
                    },
                    None => was_removed,
                };
                if is_over {
                    self.forget(cell);
                }
            }
            match (page.truncated, page.cells.into_keys().next_back()) {
                (true, Some(last)) => after = last,
                _ => return Ok(()),
            }
        }
    }
}

impl<E: Env> Domain<E> {
    /// True if the first block of the upload of this cell is removed.
    async fn is_removed(&self, cell: &Bytes) -> Result<bool, Unavailable> {
        let Some(upload) = large::upload_of(cell) else {
            return Ok(false);
        };
        let first = self.stat(&large::block_name(upload, 0)).await?;
        Ok(first.value.is_some_and(|block| block.deleted))
    }

    /// True if the first block of an upload that was committed is removed. All blocks were complete before that, so that one that is not there was
    /// removed, and its tombstone dropped since (`[X-30 dropped-tombstones]`). Before the commit that says nothing: the block may be under way.
    async fn has_lost_blocks(&self, decided: &Bytes) -> Result<bool, Unavailable> {
        let Ok(Fate::Commit(commit)) = Fate::decode(decided) else {
            return Ok(false);
        };
        let metadata = Metadata::decode(&commit.metadata).ok();
        let blocks = metadata.and_then(|metadata| metadata.blocks);
        let name = match blocks {
            Some(Manifest::Parts(blocks)) => match blocks.iter().next() {
                Some(first) => large::block_name(blocks.upload, first.number),
                None => return Ok(false),
            },
            // It goes after the blocks.
            Some(Manifest::List(list)) => {
                large::block_name(list.upload, BlockPlace::List(list.publication))
            }
            None => return Ok(false),
        };
        let first = self.stat(&name).await?;
        Ok(first.value.is_none_or(|block| block.deleted))
    }
}

fn add(sum: &mut Count, count: Count) {
    sum.uploads += count.uploads;
    sum.blocks += count.blocks;
    sum.bytes += count.bytes;
}

impl<E: Env> Domain<E> {
    /// All blocks that are there whose keys begin with this, by upload.
    pub(super) async fn uploads(&self, prefix: &str) -> Result<Vec<Upload>, Unavailable> {
        let mut uploads: Vec<Upload> = Vec::new();
        let mut after = Some(String::new());
        while let Some(begin) = after {
            let request = ListRequest {
                after: begin,
                ..ListRequest::new(Kind::Block, prefix)
            };
            let page = self.list(&request).await?;
            for entry in page.entries {
                let Some((id, place)) = large::parse_key(&entry.key) else {
                    continue;
                };
                if uploads.last().is_none_or(|upload| upload.id != id) {
                    uploads.push(Upload {
                        id,
                        blocks: Vec::new(),
                        idle_s: entry.age_s,
                    });
                }
                let upload = uploads.last_mut().expect("one was pushed");
                let bytes = entry.length;
                upload.blocks.push(UploadBlock { place, bytes });
                upload.idle_s = upload.idle_s.min(entry.age_s);
            }
            after = page.next;
        }
        Ok(uploads)
    }

    /// The state of an upload. What was committed and not put yet is put here.
    pub(super) async fn fate_of(&self, upload: Writer) -> Result<State, Unavailable> {
        let decided = self.learn(&large::cell(upload)).await?;
        match decided {
            None => Ok(State::Unfinished),
            Some(decided) => match self.settled(&decided).await {
                // The object cannot be read: what it needs is not known.
                Err(failed) if failed.is_damage() => Ok(State::Live),
                settled => settled,
            },
        }
    }

    /// The state of an upload whose cell decided this.
    async fn settled(&self, decided: &Bytes) -> Result<State, Unavailable> {
        let commit = match Fate::decode(decided) {
            Ok(Fate::Abort | Fate::Ends) => return Ok(State::Aborted),
            Ok(Fate::Commit(commit)) => commit,
            // Of a later version of this software: it may be anything, so it is left alone.
            Err(_) => return Ok(State::Live),
        };
        let Ok(manifest) = commit.manifest() else {
            return Ok(State::Live);
        };
        let mut is_register = self.is_ranked(&commit.name);
        loop {
            if is_register && let Some(state) = self.settled_in_register(&commit).await? {
                return Ok(state);
            }
            match self.settled_unranked(&commit, &manifest).await {
                Ok(state) => return Ok(state),
                Err(PutInterruption::Failed(error)) => return Err(unavailable(error)),
                // A version that it may have put is current there, or never will be.
                Err(PutInterruption::Ranked { .. }) => is_register = true,
            }
        }
    }

    /// The state of an upload that was committed, of an object that is no register.
    async fn settled_unranked(
        &self,
        commit: &Commit,
        manifest: &Value,
    ) -> Result<State, PutInterruption> {
        loop {
            let found = self.stat_last(&commit.name).await;
            let (found, last) = found.map_err(PutInterruption::from_first_phase)?;
            if found.tag.writer == commit.tag.writer {
                return Ok(State::Live);
            }
            let is_earlier = commit.era < last.era();
            if is_earlier && found.tag.is_initial() {
                return Ok(State::Unfinished);
            }
            // What a register was to decide is decided: it is another one ([W-13 ceasing-to-be-conditional]).
            if is_earlier || found.tag > commit.tag {
                let metadata = found.value.and_then(|v| Metadata::decode(&v.metadata).ok());
                return Ok(State::Replaced(metadata.and_then(|m| m.written_at_ms)));
            }
            self.put_manifest(&last, &commit.name, (commit.tag, manifest))
                .await?;
        }
    }
}

impl<E: Env> Domain<E> {
    /// The state of an upload that was committed in a conditional domain. Where no version shows it its writer may still propose it.
    /// `None`: the domain has ceased to be conditional.
    async fn settled_in_register(&self, commit: &Commit) -> Result<Option<State>, Unavailable> {
        let Some((found, lineage)) = self.read_lineage(&commit.name).await? else {
            return Ok(None);
        };
        let is_this = |tag: Tag| tag.writer == commit.tag.writer;
        if is_this(found.tag) {
            return Ok(Some(State::Live));
        }
        if !lineage.ancestors.iter().any(|it| is_this(it.tag)) {
            return Ok(Some(State::Unfinished));
        }
        let metadata = found.value.and_then(|v| Metadata::decode(&v.metadata).ok());
        let replaced_at = metadata.and_then(|m| m.written_at_ms);
        Ok(Some(State::Replaced(replaced_at)))
    }

    /// Makes sure that no version of an object which a register of an earlier era may still bring is read, and returns what is there. An
    /// object that was never written gets a tombstone: above all that may come so, and below all that is written since then.
    pub(super) async fn shut_out_of_earlier_eras(&self, name: &Name) -> Result<Tag, Unavailable> {
        loop {
            let newest = match self.newest(name, None, Scope::Metadata).await {
                Ok(newest) => newest,
                Err(Interruption::Unavailable(failed)) => return Err(failed),
                Err(Interruption::Ranked) => {
                    if let Some(current) = self.shut_out_earlier(name).await? {
                        return Ok(current);
                    }
                    continue;
                }
            };
            if !newest.found.tag.is_initial() {
                return Ok(newest.found.tag);
            }
            let last = newest.last.c();
            let tombstone = Value::tombstone(Bytes::new());
            let tag = Tag::last_before(last.era(), self.client.next_writer());
            match self.put_from(last, name, (tag, &tombstone)).await {
                Ok(()) | Err(PutInterruption::Ranked { .. }) => {}
                Err(PutInterruption::Failed(error)) => return Err(unavailable(error)),
            }
        }
    }
}

/// True if an unfinished upload has made no progress for so long that it is given up.
fn is_old(upload: &Upload, ages: &Ages) -> bool {
    let idle_ms = u64::from(upload.idle_s) * 1000;
    ages.unfinished_ms.is_some_and(|age_ms| idle_ms >= age_ms)
}

/// True if `age_ms` have passed since `then`. What has no time is old.
fn passed(ages: &Ages, then: Option<u64>, age_ms: Option<u64>) -> bool {
    let since = ages.now_ms.saturating_sub(then.unwrap_or(0));
    age_ms.is_some_and(|age| since >= age)
}

impl<E: Env> Domain<E> {
    /// Proposes that the upload never becomes a version. Its writer may be faster.
    pub(super) async fn abort(&self, upload: Writer) -> Result<State, Unavailable> {
        let cell = large::cell(upload);
        let decided = self.decide(&cell, &Fate::Abort.encode()).await?;
        match (self.settled(&decided).await?, Fate::decode(&decided)) {
            (State::Unfinished, Ok(Fate::Commit(commit))) => {
                let is_given_up = self.give_up(&commit).await?;
                Ok(if is_given_up {
                    State::GivenUp
                } else {
                    State::Live
                })
            }
            (state, _) => Ok(state),
        }
    }
}

pub(super) fn unavailable(error: WriteError) -> Unavailable {
    let (WriteError::NotApplied(failed) | WriteError::Unknown(failed)) = error;
    failed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_of_the_caller_s_clock() {
        let ages = |now_ms| Ages {
            now_ms,
            unfinished_ms: Some(10),
            replaced_ms: None,
        };
        assert!(passed(&ages(20), Some(10), Some(10)));
        assert!(!passed(&ages(19), Some(10), Some(10)));
        assert!(
            !passed(&ages(5), Some(10), Some(1)),
            "written in the future"
        );
        assert!(passed(&ages(5), Some(10), Some(0)), "whatever its age");
        assert!(passed(&ages(20), None, Some(10)), "without a time");
        assert!(!passed(&ages(20), Some(10), None), "only counted");
    }
}
