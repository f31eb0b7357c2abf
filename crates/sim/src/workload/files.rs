//! Clients that edit one file of each domain together: they push pieces of text, pull what is there, and remove it now and
//! then. Judged as it ends:
//! every block by the order of its versions, what was covered by what was known, every link, every byte (oracles O1, O2
//! and O5 of `docs/spec` section 8); and again, from the history, by the judge of `crates/check`.

mod judge;
mod record;

use super::End;
use super::operation::One;
use crate::fault::Fault;
use crate::world::call::SimEnv;
use areo_core::dap::FoundVersion;
use areo_core::dsm::Client;
use areo_core::dsm::coverable::CoverableOutcome;
use areo_core::fragment::block::{Home, Metadata};
use areo_core::fragment::content::Sink;
use areo_core::fragment::file::{Block, Chain, FileError};
use areo_core::fragment::update::{Chunk, Source};
use areo_core::fragment::{Digest, block, identify};
use areo_core::hash::stable_hash;
use areo_core::object::Name;
use areo_core::tag::{Tag, Writer};
use bytes::Bytes;
use record::Recorder;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::rc::Rc;

/// The file of every domain.
const FILE: &str = "a file";

/// A block of a domain's file; `None` is the genesis block.
type Id = (usize, Option<Writer>);

/// The digest of the data of a version of a block, and the block that it leads to.
type Content = (Option<Digest>, Option<Writer>);

/// A file as a task has it, and its pieces.
type Desk = (Chain, Vec<Bytes>);

/// The versions of blocks that operations on files have shown.
#[derive(Default)]
pub(super) struct Files {
    /// The largest version of each block that an operation which has ended wrote or returned.
    floors: RefCell<BTreeMap<Id, Tag>>,
    /// Content of each version of a block.
    values: RefCell<BTreeMap<(Id, Tag), Content>>,
    /// For each task and domain the content that it last pushed or pulled.
    desks: RefCell<BTreeMap<(usize, usize), Desk>>,
    /// Updates that have begun.
    updates: Cell<u64>,
}

fn name(id: Option<Writer>) -> Name {
    let genesis = || block::genesis(FILE).expect("a short name");
    id.map_or_else(genesis, block::name)
}

fn digest(data: &[u8]) -> Digest {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&stable_hash(data).to_le_bytes());
    Digest(bytes)
}

/// The value of a version of a block in the history. It is unique, because an update writes a block once and puts its
/// own number in the place of the time.
fn value_of(metadata: &Metadata) -> u64 {
    let update = metadata.written_at_ms.expect("of an update of this run");
    let digest = metadata.digest.unwrap_or(Digest([0; 32]));
    stable_hash(&[&update.to_le_bytes(), &digest.0[..]].concat())
}

struct Pieces(Vec<Bytes>);

impl Source for Pieces {
    type Error = Infallible;

    async fn load(&self, chunk: usize) -> Result<Bytes, Infallible> {
        Ok(self.0[chunk].clone())
    }
}

/// Blocks of a file that a pull delivered.
#[derive(Default)]
struct DeliveredBlocks(Vec<(Block, Bytes)>);

impl Sink for DeliveredBlocks {
    type Error = FileError;

    fn has(&self, _block: &Block) -> bool {
        false
    }

    fn take(&mut self, block: &Block, data: Option<Vec<Bytes>>) -> Result<(), FileError> {
        let data = data.expect("nobody has it").concat();
        self.0.push((*block, data.into()));
        Ok(())
    }
}

impl One<'_> {
    /// An edit of the version that this task saw last, or of the current one.
    pub(super) async fn push_file(&self) -> End {
        self.client.env.goes_over_many();
        let desk = (self.task, self.object.0);
        // Whatever comes of it, what it was based on is then not what there is.
        let known = self.work.files.desks.borrow_mut().remove(&desk);
        let (base, pieces) = match known {
            Some(known) => known,
            None => match self.absent().await {
                Ok(Some(chain)) => (chain, Vec::new()),
                Ok(None) => return self.pull_file().await,
                Err(end) => return end,
            },
        };
        let floors = self.floors();
        let pieces = self.edited(pieces);
        let chunk = |piece: &Bytes| Chunk {
            digest: digest(piece),
            length: piece.len() as u64,
        };
        let chunks: Vec<Chunk> = pieces.iter().map(chunk).collect();
        let digests: Vec<Digest> = chunks.iter().map(|chunk| chunk.digest).collect();
        let updates = identify::updates(&base.digests(), &digests);
        let source = Pieces(pieces);
        let what = (&chunks[..], &updates[..]);
        let bases = base.blocks.iter();
        let client = self.recorded(bases.map(|old| (name(old.id), old.version)).collect());
        let from = (&source, Some(self.next_update()));
        let file = client.domain(&self.c).file(&name(None));
        let updated = file.update(&base, what, from).await;
        let Ok(updated) = updated else {
            return End::TimedOut;
        };
        self.judge_push(&base, &updated, &floors);
        if !updated.failed.is_empty() {
            return End::TimedOut;
        }
        if updated.conflicts.is_empty() {
            let pushed = (updated.chain, source.0);
            self.work.files.desks.borrow_mut().insert(desk, pushed);
        }
        End::Done
    }

    /// A client whose writes of blocks are written down.
    fn recorded(&self, bases: BTreeMap<Name, Tag>) -> Client<SimEnv> {
        let recorder = Recorder {
            world: self.work.world.clone(),
            history: Rc::clone(&self.work.history),
            client: self.process,
            domain: self.object.0,
            bases,
            blocks: RefCell::default(),
        };
        let env = self.client.env.watched(Rc::new(recorder));
        self.client.with(env)
    }

    fn next_update(&self) -> u64 {
        let updates = &self.work.files.updates;
        updates.set(updates.get() + 1);
        updates.get()
    }

    /// Pieces with one or two edits.
    fn edited(&self, mut pieces: Vec<Bytes>) -> Vec<Bytes> {
        let random = self.work.world.random();
        for _ in 0..=random.index(2) {
            let text = format!("{}:{:016x}", self.task, random.draw());
            let place = random.index(pieces.len() + 1);
            match random.index(4) {
                0 if place < pieces.len() && pieces.len() > 4 => drop(pieces.remove(place)),
                1 | 2 if place < pieces.len() => pieces[place] = text.into(),
                _ if pieces.len() < 12 => pieces.insert(place, text.into()),
                _ => pieces.truncate(6),
            }
        }
        pieces
    }

    /// The base of a new file; `None` if the file exists.
    async fn absent(&self) -> Result<Option<Chain>, End> {
        let floors = self.floors();
        match self.domain().file(&name(None)).walk(None).await {
            Ok(_) => Ok(None),
            Err(FileError::NotFound { version }) => {
                self.judge_absence(version, &floors);
                Ok(Some(Chain::absent(version)))
            }
            Err(error) => Err(self.not_read(&error)),
        }
    }

    /// Only for want of a quorum may a file not be read.
    fn not_read(&self, error: &FileError) -> End {
        if !matches!(error, FileError::Read(_) | FileError::Write(_)) {
            self.violate_file(&format!("{error:?}"));
        }
        End::TimedOut
    }

    pub(super) async fn pull_file(&self) -> End {
        self.client.env.goes_over_many();
        let desk = (self.task, self.object.0);
        let known = self.work.files.desks.borrow().get(&desk).cloned();
        let known = known.map(|(chain, _)| chain).filter(|chain| chain.exists);
        let (floors, began) = (self.floors(), self.work.world.now());
        let file = self.domain().file(&name(None));
        let mut content = DeliveredBlocks::default();
        let delivered = match file.walk(known.as_ref()).await {
            Ok(chain) => file.deliver(chain, &mut content).await,
            Err(error) => Err(error),
        };
        let chain = match delivered {
            Ok(chain) => chain,
            Err(FileError::NotFound { version }) => {
                self.judge_absence(version, &floors);
                self.work.files.desks.borrow_mut().remove(&desk);
                return End::Done;
            }
            Err(error) => return self.not_read(&error),
        };
        for read in &chain.blocks {
            self.judge_read(read, &floors, began);
        }
        for (read, data) in &content.0 {
            let expected = (!data.is_empty()).then(|| digest(data));
            if read.metadata.digest != expected || read.length != data.len() as u64 {
                self.violate_file("a block is torn");
            }
        }
        let pieces = content.0.into_iter().map(|(_, data)| data);
        let pieces = pieces.filter(|data| !data.is_empty()).collect();
        let desks = &self.work.files.desks;
        desks.borrow_mut().insert(desk, (chain, pieces));
        End::Done
    }

    /// Removes the file. A writer that goes on with the old file learns of the removal.
    pub(super) async fn remove_file(&self) -> End {
        self.client.env.goes_over_many();
        let (floors, client) = (self.floors(), self.recorded(BTreeMap::new()));
        match client.domain(&self.c).file(&name(None)).remove().await {
            Ok(version) => {
                self.work.world.plan().note(Fault::FileRemoved);
                if version <= floors.of(None) {
                    self.violate_file(&format!("removed as {version}, which is not above all"));
                }
                self.version_is(None, version);
                End::Done
            }
            Err(FileError::NotFound { version }) => {
                self.judge_absence(version, &floors);
                End::Done
            }
            Err(error) => self.not_read(&error),
        }
    }

    /// Removes the rest of removed files.
    pub(super) async fn sweep_files(&self) -> End {
        self.client.env.goes_over_many();
        let client = self.recorded(BTreeMap::new());
        match client.domain(&self.c).sweep_files(true).await {
            Ok(swept) => {
                if swept.removed.blocks > 0 {
                    self.work.world.plan().note(Fault::FileSwept);
                }
                End::Done
            }
            Err(_) => End::TimedOut,
        }
    }

    /// Reads and writes every block that anybody was shown as it is, also those that nothing leads to any more: then no
    /// server has a reason to keep what was there before (`[X-3 unconfirmed-cap]`). Twice, because a write that was given up
    /// may have left its version at a single server: it covers what the first of these writes covers, and has the same
    /// number and perhaps the larger writer. It stays above that one, as it must; the second one is above both.
    pub(super) async fn rewrite_blocks(&self) -> End {
        self.client.env.goes_over_many();
        let blocks: Vec<Option<Writer>> = self.floors().ids().collect();
        for id in blocks {
            let mut written = 0;
            while written < 2 {
                written += match self.rewrite_block(id).await {
                    Ok(is_done) => u32::from(is_done),
                    Err(end) => return end,
                };
            }
        }
        End::Done
    }

    /// Writes a block again with its own content. Returns false if another version came in between.
    async fn rewrite_block(&self, id: Option<Writer>) -> Result<bool, End> {
        let (floors, began, name) = (self.floors(), self.work.world.now(), name(id));
        let found = self.domain().read(&name, None).await;
        let FoundVersion { tag, value, .. } = found.map_err(|_| End::TimedOut)?;
        let Some(value) = value else {
            self.violate_file("a block is gone");
            return Ok(true);
        };
        if value.deleted {
            if tag < floors.of(id) {
                self.violate_file("a block is gone that was there since");
            }
            let client = self.recorded(BTreeMap::new());
            let removed = client.domain(&self.c).remove_covering(&name, tag).await;
            return removed.map(|_| true).map_err(|_| End::TimedOut);
        }
        let read = Block {
            id,
            version: tag,
            length: value.length(),
            metadata: Metadata::decode(&value.metadata).expect("of a block"),
        };
        self.judge_read(&read, &floors, began);
        let metadata = Metadata {
            written_at_ms: Some(self.next_update()),
            ..read.metadata
        };
        let client = self.recorded([(name.clone(), tag)].into());
        let home = Home::decode(&value.metadata).expect("of a block");
        let value = metadata.with(&home, value.contiguous());
        let written = client
            .domain(&self.c)
            .write_covering(&name, &value, tag)
            .await;
        match written.map_err(|_| End::TimedOut)? {
            CoverableOutcome::Changed(version) => {
                self.block_is(&Block {
                    version,
                    metadata,
                    ..read
                });
                Ok(true)
            }
            CoverableOutcome::Unchanged(found) => {
                self.version_is(id, found.tag);
                Ok(false)
            }
        }
    }
}
