//! Compares a local file with the blocks of a file.

use super::chunking::Chunking;
use super::error::FileError;
use super::{File, push, walk};
use crate::operation::Operation;
use crate::session::Context;
use crate::view;
use areo_core::fragment::file::Block;
use areo_core::fragment::identify::{self, Opcode};
use futures_util::future::BoxFuture;
use serde::Serialize;
use std::ops::Range;
use std::path::Path;

/// One step of the way from the file to the local one. Ranges are serialised as `[start, end]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// The kind of change that leads from the file to the local one.
    pub kind: Kind,
    /// The bytes of the file that it is about.
    #[serde(serialize_with = "view::range")]
    pub there: Range<u64>,
    /// The bytes of the local file.
    #[serde(serialize_with = "view::range")]
    pub here: Range<u64>,
    /// Blocks of the file.
    pub blocks: usize,
    /// Chunks of the local file.
    pub chunks: usize,
}

/// The kind of a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Both have equal bytes there.
    Equal,
    /// Other bytes take their place.
    Replaced,
    /// The local file has more.
    Added,
    /// The local file has less.
    Removed,
}

impl File {
    /// Compares the local file with the current version of the file, chunk by chunk. `chunking`: the way in which the
    /// file was cut.
    ///
    /// # Errors
    /// [`FileError`].
    pub fn diff<'a>(
        &'a self,
        path: &'a Path,
        chunking: Chunking,
    ) -> BoxFuture<'a, Result<Vec<Difference>, FileError>> {
        Box::pin(async move {
            let path = path.to_owned();
            let diff = move |context: Context| async move {
                let scanned = push::scan(&path, chunking, &|_| {}).await?;
                let chain = walk(&context, None).await?;
                let full = |block: &&Block| block.metadata.digest.is_some();
                let there: Vec<&Block> = chain.data().iter().filter(full).collect();
                let old: Vec<_> = there
                    .iter()
                    .filter_map(|block| block.metadata.digest)
                    .collect();
                let new: Vec<_> = scanned.chunks.iter().map(|chunk| chunk.digest).collect();
                let there = starts(there.iter().map(|block| block.length));
                let here = starts(scanned.chunks.iter().map(|chunk| chunk.length));
                let codes = identify::opcodes(&old, &new).into_iter();
                Ok(codes.map(|code| difference(code, &there, &here)).collect())
            };
            self.run(Operation::Get, diff).await
        })
    }
}

/// The offset at which each begins, and the offset at which the last one ends.
fn starts(lengths: impl Iterator<Item = u64>) -> Vec<u64> {
    let mut starts = vec![0];
    for length in lengths {
        starts.push(starts.last().expect("there is one") + length);
    }
    starts
}

fn difference(code: Opcode, there: &[u64], here: &[u64]) -> Difference {
    let (kind, old, new) = match code {
        Opcode::Equal(old, new) => (Kind::Equal, old, new),
        Opcode::Replace(old, new) => (Kind::Replaced, old, new),
        Opcode::Insert(at, new) => (Kind::Added, at..at, new),
        Opcode::Delete(old, at) => (Kind::Removed, old, at..at),
    };
    Difference {
        kind,
        there: there[old.start]..there[old.end],
        here: here[new.start]..here[new.end],
        blocks: old.len(),
        chunks: new.len(),
    }
}
