//! A client that writes values in blocks of four bytes, step by step.

use crate::world::{Actor, World, WorldEnv, name, value};
use areo_core::config::Configuration;
use areo_core::dap::FoundVersion;
use areo_core::dsm::large::PublishError;
use areo_core::dsm::sweep::{Ages, UploadSweep};
use areo_core::element::Value;
use areo_core::error::Unavailable;
use areo_core::object::{Blocks, Metadata};
use areo_core::tag::{Tag, Writer};
use bytes::Bytes;
use std::sync::Arc;

pub const BLOCK_BYTES: usize = 4;

/// An upload that has begun.
#[derive(Clone)]
pub struct Upload {
    actor: Actor,
    pub text: String,
    pub id: Writer,
}

impl Upload {
    pub fn begin(actor: &Actor, text: &str) -> Upload {
        Upload {
            actor: actor.clone(),
            text: text.into(),
            id: actor.client().next_upload(),
        }
    }

    pub fn pieces(&self) -> Vec<String> {
        let bytes = self.text.as_bytes().chunks(BLOCK_BYTES);
        bytes
            .map(|piece| String::from_utf8(piece.to_vec()).expect("ASCII"))
            .collect()
    }

    /// Puts the blocks with these indices. Returns true if all of them are at quorums.
    pub async fn put_blocks(&self, indices: impl IntoIterator<Item = usize>) -> bool {
        let pieces = self.pieces();
        for index in indices {
            let client = self.actor.client();
            let block = (self.id, index as u32);
            let content = value(&pieces[index]);
            let domain = client.domain(&self.actor.c);
            if domain.put_block(block, &content).await.is_err() {
                return false;
            }
        }
        true
    }

    pub async fn publish(&self, key: &str) -> Result<Tag, PublishError> {
        let client = self.actor.client();
        let (blocks, metadata) = self.manifest();
        client
            .domain(&self.actor.c)
            .publish(&name(key), &blocks, metadata)
            .await
    }

    pub fn manifest(&self) -> (Blocks, Bytes) {
        let blocks = Blocks::new(self.id, self.text.len() as u64, BLOCK_BYTES as u32);
        let metadata = Metadata {
            blocks: Some(blocks.clone().into()),
            ..Metadata::default()
        };
        (blocks, metadata.encode().expect("small metadata"))
    }

    /// Writes the whole value: blocks and manifest.
    pub async fn write(&self, key: &str) -> Result<Tag, PublishError> {
        let client = self.actor.client();
        let (blocks, metadata) = self.manifest();
        let manifest = (&blocks, metadata);
        let contents = self.contents();
        client
            .domain(&self.actor.c)
            .write_large(&name(key), manifest, &contents)
            .await
    }

    pub fn contents(&self) -> Vec<Value> {
        self.pieces().iter().map(|piece| value(piece)).collect()
    }
}

/// Reads the whole value.
pub fn read(
    actor: &Actor,
    key: &str,
) -> impl Future<Output = Result<FoundVersion, Unavailable>> + use<> {
    let (client, c, name) = (actor.client(), actor.c.clone(), name(key));
    async move { client.domain(&c).read_large(&name).await }
}

/// The version of a read in the form of a history.
pub fn version(found: FoundVersion) -> (Tag, Option<String>) {
    let value = found.value.filter(|value| !value.deleted);
    (found.tag, value.as_ref().map(crate::world::text))
}

/// Removes everything that may be removed, of any age.
pub fn sweep(actor: &Actor) -> impl Future<Output = Result<UploadSweep, Unavailable>> + use<> {
    sweep_as(actor.client(), actor.c.clone(), Some(0), Some(0))
}

/// Runs a sweep that removes nothing.
pub fn look(actor: &Actor) -> impl Future<Output = Result<UploadSweep, Unavailable>> + use<> {
    sweep_as(actor.client(), actor.c.clone(), None, None)
}

/// Runs a sweep that gives up uploads of the first age, and removes replaced uploads of the second age.
pub async fn sweep_as(
    client: areo_core::dsm::Client<WorldEnv>,
    c: Arc<Configuration>,
    unfinished_ms: Option<u64>,
    replaced_ms: Option<u64>,
) -> Result<UploadSweep, Unavailable> {
    let ages = Ages {
        now_ms: 0,
        unfinished_ms,
        replaced_ms,
    };
    client.domain(&c).sweep(&ages).await
}

/// The text of an object, which must be readable: where the blocks of what is there are gone a read begins again for ever.
pub fn get(world: &World, actor: &Actor, key: &str) -> Option<String> {
    let reading = world.spawn(read(actor, key));
    for _ in 0..100_000 {
        if let Some(read) = reading.borrow_mut().take() {
            return version(read.expect("the read succeeds")).1;
        }
        assert!(world.step(), "the read ends");
    }
    panic!("the blocks of '{key}' are gone");
}
