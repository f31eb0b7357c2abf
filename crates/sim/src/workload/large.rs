//! Values in blocks: to the history they are values like others, whose hash is that of all their bytes.

use super::End;
use super::lattice::keeps_whole;
use super::operation::One;
use crate::fault::Fault;
use crate::history::{Kind, Operation};
use crate::world::call::Watch;
use areo_core::dap::FoundVersion;
use areo_core::dsm::conditional::Condition;
use areo_core::dsm::large::PublishError;
use areo_core::dsm::sweep::Ages;
use areo_core::element::Value;
use areo_core::env::Env;
use areo_core::hash::stable_hash;
use areo_core::instant::Instant;
use areo_core::message::{Access, Body, Note, Reply, Request};
use areo_core::object::{Blocks, Metadata};
use areo_core::tag::Tag;
use bytes::Bytes;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::time::Duration;

/// Name of the pair in a manifest with the hash of its value, for readers that do not fetch the blocks.
const HASH: &str = "hash";

/// The hash of the found value, if there is an object.
pub(super) fn hash(found: &FoundVersion) -> Option<u64> {
    let live = found.value.as_ref().filter(|value| !value.deleted)?;
    if live.apart.is_none() {
        return Some(stable_hash(&live.contiguous()));
    }
    let metadata = Metadata::decode(&live.metadata).expect("written by this program");
    let mut pairs = metadata.user.iter();
    let (_, hash) = pairs.find(|(name, _)| name == HASH).expect("of a manifest");
    Some(u64::from_str_radix(hash, 16).expect("as it was written"))
}

/// Tombstones of objects that were never written: by sweeps ([W-11 given-up]), and by those who leave a register
/// ([W-13 ceasing-to-be-conditional]).
#[derive(Clone, Default)]
pub(super) struct Tombstones(Rc<RefCell<BTreeSet<Tag>>>);

impl Watch for Tombstones {
    fn asks(&self, request: &Request) {
        let Request::Configured { body, .. } = request else {
            return;
        };
        if let Body::Access(accesses) = body {
            for (_, access) in accesses {
                // An object is deleted only if it is there; the last number before an era is that of sweeps.
                let (element, tag, is_on_nothing) = match access {
                    Access::Accept(proposed) => {
                        let base = proposed.lineage.ancestors.first();
                        let is_on_nothing = base.is_some_and(|base| base.tag.is_initial());
                        (proposed.element.as_ref(), proposed.tag, is_on_nothing)
                    }
                    Access::Put { tag, element, .. } => (
                        Some(element),
                        *tag,
                        (tag.number + 1).is_multiple_of(1 << 48),
                    ),
                    _ => continue,
                };
                if is_on_nothing && element.is_some_and(|element| element.deleted) {
                    self.0.borrow_mut().insert(tag);
                }
            }
        }
    }

    fn hears(&self, _request: &Request, _position: usize, _reply: &Reply) {}

    fn tells(&self, _note: &Note) {}
}

/// A value in blocks that are not written yet.
struct Upload {
    blocks: Blocks,
    contents: Vec<Value>,
    /// Metadata of its manifest.
    metadata: Bytes,
    hash: u64,
}

impl One<'_> {
    /// The version that the history records: a tombstone that a sweep wrote is of an object that no client ever wrote.
    pub(super) fn shown(&self, tag: Tag) -> Tag {
        match self.work.tombstones.0.borrow().contains(&tag) {
            true => Tag::INITIAL,
            false => tag,
        }
    }

    /// A value for one to five blocks.
    fn any_upload(&self) -> Upload {
        let random = self.work.world.random();
        let (value, hash) = self.any_value();
        let content = value.contiguous();
        let block_bytes = content.len().div_ceil(1 + random.index(5));
        let upload = self.client.next_upload();
        let blocks = Blocks::new(upload, content.len() as u64, block_bytes as u32);
        let contents = blocks
            .iter()
            .map(|block| content.slice(block.range.start as usize..block.range.end as usize))
            .map(|part| Value::new(self.written_now(), part))
            .collect();
        let metadata = Metadata {
            user: vec![(HASH.into(), format!("{hash:x}"))],
            blocks: Some(blocks.clone().into()),
            ..Metadata::default()
        };
        let metadata = metadata.encode().expect("small metadata");
        Upload {
            blocks,
            contents,
            metadata,
            hash,
        }
    }

    /// Writes a value in blocks.
    pub(super) async fn put_large(&self) -> End {
        if keeps_whole(&self.c) {
            return self.put().await;
        }
        let upload = self.any_upload();
        let operation = self.begin(Kind::Write, Some(upload.hash));
        let manifest = (&upload.blocks, upload.metadata);
        let written = self
            .domain()
            .write_large(&self.name(), manifest, &upload.contents)
            .await;
        match written {
            Ok(tag) => {
                self.work.world.plan().note(Fault::LargeWrite);
                self.end_write(&operation, &Ok(tag))
            }
            Err(error) => self.end_upload(&operation, error),
        }
    }

    /// Puts a large value on a condition, with one winner.
    pub(super) async fn put_large_if(&self, (kind, condition): (Kind, Condition)) -> End {
        let upload = self.any_upload();
        let operation = self.begin(kind, Some(upload.hash));
        let domain = self.domain();
        for (block, content) in upload.blocks.iter().zip(&upload.contents) {
            let name = (upload.blocks.upload, block.number);
            if domain.put_block(name, content).await.is_err() {
                // Sweeps find the others.
                let now = self.work.world.now();
                self.end(None, |history| history.end_failed(now, &operation));
                return End::TimedOut;
            }
        }
        let on = (condition, 0);
        let (name, blocks) = (self.name(), &upload.blocks);
        match domain.publish_if(&name, blocks, upload.metadata, on).await {
            Ok(decided) => {
                self.work.world.plan().note(Fault::LargeWrite);
                self.end_decided(&operation, Ok(decided))
            }
            Err(error) => self.end_upload(&operation, error),
        }
    }

    fn end_upload(&self, operation: &Operation, error: PublishError) -> End {
        let PublishError::Write(error) = error else {
            self.work.world.plan().note(Fault::SweptUpload);
            let now = self.work.world.now();
            if self.work.shape.patient_sweeps && !self.work.world.has_fast_server() {
                let swept = "uploads_go_on: an upload was swept while its writer was at it";
                self.work.world.violate(swept.into());
            }
            self.end(None, |history| history.end_failed(now, operation));
            return End::Done;
        };
        self.end_write(operation, &Err(error))
    }

    /// The time of day as this process sees it: those of the others are hours behind or ahead of it.
    fn time_of_day_ms(&self) -> u64 {
        const APART: Duration = Duration::from_hours(5);
        let now = self.client.env.now().plus(APART * self.process as u32);
        now.since(Instant::default()).as_millis() as u64
    }

    fn written_now(&self) -> Bytes {
        let metadata = Metadata {
            written_at_ms: Some(self.time_of_day_ms()),
            ..Metadata::default()
        };
        metadata.encode().expect("small metadata")
    }

    /// Removes all blocks that may be removed: whatever their age, or after the times of the product.
    pub(super) async fn sweep(&self) -> End {
        self.sweep_after(self.work.shape.patient_sweeps).await
    }

    /// Removes all blocks that may be removed, of any age.
    pub(super) async fn sweep_all(&self) -> End {
        self.sweep_after(false).await
    }

    async fn sweep_after(&self, is_patient: bool) -> End {
        self.client.env.goes_over_many();
        let after = |time: Duration| match is_patient {
            true => Some(time.as_millis() as u64),
            false => Some(0),
        };
        let ages = Ages {
            now_ms: self.time_of_day_ms(),
            unfinished_ms: after(Duration::from_hours(1)),
            replaced_ms: after(Duration::from_mins(1)),
        };
        let tombstones = Rc::new(self.work.tombstones.clone());
        let env = self.client.env.watched(tombstones);
        let client = self.client.with(env);
        match client.domain(&self.c).sweep(&ages).await {
            Ok(swept) => {
                if swept.removed.blocks > 0 {
                    self.work.world.plan().note(Fault::BlocksRemoved);
                }
                End::Done
            }
            Err(_) => End::TimedOut,
        }
    }
}
