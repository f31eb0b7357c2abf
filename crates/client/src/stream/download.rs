//! The reading of one value in pieces.

use super::{StreamReport, Wanted, WantedRange};
use crate::checksum;
use crate::domain::Domain;
use crate::error::{Damage, Error};
use crate::metrics::OperationGauge;
use crate::object::{Blocks, Manifest, Metadata, Object};
use crate::operation::Operation;
use crate::session::{Context, Deadline, RunningJob};
use crate::span;
use areo_core::dsm::large::BlockPlace;
use areo_core::element::Value;
use areo_core::error::Unavailable;
use areo_core::limits;
use areo_core::object::{Block as PlacedBlock, Name};
use areo_core::tag::Tag as Version;
use bytes::Bytes;
use crc_fast::{CrcAlgorithm, Digest};
use futures_util::future::BoxFuture;
use std::collections::VecDeque;
use std::ops::Range;
use tokio::sync::{mpsc, oneshot};
use tokio::task::{JoinHandle, spawn_local};
use tracing::{Instrument, Span};

/// A value on its way, piece by piece ([`Domain::get_stream`], [`Domain::get_range`]).
pub struct ObjectStream {
    domain: Domain,
    key: String,
    opened: OpenValue,
    parts: mpsc::Receiver<Part>,
    /// `None` once it has ended.
    work: Option<RunningJob<Result<(), Error>>>,
    /// Pieces of a block that was verified.
    pieces: VecDeque<Bytes>,
    /// The digest of all bytes that came, if all of the value comes.
    digest: Option<Digest>,
    bytes: u64,
    /// Until it has ended, if it is an operation of its own.
    running: Option<OperationGauge>,
}

/// The description of a value before its bytes come.
struct OpenValue {
    version: Version,
    metadata: Metadata,
    length: u64,
    /// True if all of it is wanted.
    is_whole: bool,
}

/// Content that was written at once.
struct Part {
    content: Vec<Bytes>,
    /// The metadata of a block, and its length.
    block: Option<(Metadata, u64)>,
    /// The wanted bytes of it.
    wanted: Range<u64>,
}

impl ObjectStream {
    /// A read of its own.
    pub(super) async fn open(
        domain: &Domain,
        name: Name,
        wanted: Wanted,
    ) -> Result<ObjectStream, Error> {
        let span = areo_core::span::read(name.key());
        ObjectStream::open_in(span, domain, name, wanted).await
    }

    /// A part of the read that the caller is in.
    pub(super) async fn open_within(
        domain: &Domain,
        key: &str,
        wanted: WantedRange,
    ) -> Result<ObjectStream, Error> {
        let (name, wanted) = (Name::user(key)?, Wanted::Bytes(wanted));
        ObjectStream::open_in(Span::none(), domain, name, wanted).await
    }

    fn open_in(
        span: Span,
        domain: &Domain,
        name: Name,
        wanted: Wanted,
    ) -> BoxFuture<'_, Result<ObjectStream, Error>> {
        Box::pin(async move {
            let (sender, opened) = oneshot::channel();
            let (parts_sender, parts) = mpsc::channel(1);
            let key = name.key().to_owned();
            let work = move |context| async move {
                span::watch!(span, run(context, wanted, sender, parts_sender))
            };
            let work = domain.run(Deadline::Idle, Operation::Get, Some(name), work);
            let Ok(opened) = opened.await else {
                let ended = work.await;
                return Err(ended.expect_err("it ends before it has begun only for a reason"));
            };
            let is_whole = opened.is_whole;
            Ok(ObjectStream {
                domain: domain.clone(),
                key,
                opened,
                parts,
                work: Some(work),
                pieces: VecDeque::new(),
                digest: is_whole.then(|| Digest::new(CrcAlgorithm::Crc32Iscsi)),
                bytes: 0,
                running: None,
            })
        })
    }

    /// This stream, as an operation that is counted when it ends.
    pub(super) fn counted(self, running: OperationGauge) -> ObjectStream {
        ObjectStream {
            running: Some(running),
            ..self
        }
    }

    /// The version that is read.
    pub fn version(&self) -> Version {
        self.opened.version
    }

    /// The metadata of the value.
    pub fn metadata(&self) -> &Metadata {
        &self.opened.metadata
    }

    /// The length of the whole value in bytes, of which perhaps not all come.
    pub fn length(&self) -> u64 {
        self.opened.length
    }

    /// The result up to now.
    pub fn streamed(&self) -> StreamReport {
        StreamReport {
            version: self.opened.version,
            metadata: self.opened.metadata.clone(),
            bytes: self.bytes,
        }
    }

    /// The next piece; `None` at the end.
    ///
    /// # Errors
    /// Those of [`Domain::get`]; [`Error::VersionConflict`] if what follows of this version is gone.
    pub async fn next(&mut self) -> Result<Option<Bytes>, Error> {
        let next = self.next_piece().await;
        if !matches!(next, Ok(Some(_)))
            && let Some(running) = self.running.take()
        {
            running.end(&next);
        }
        next
    }

    async fn next_piece(&mut self) -> Result<Option<Bytes>, Error> {
        loop {
            if let Some(piece) = self.pieces.pop_front() {
                self.bytes += piece.len() as u64;
                return Ok(Some(piece));
            }
            match self.parts.recv().await {
                Some(part) => self.take(part)?,
                None => return self.end().await.map(|()| None),
            }
        }
    }

    /// Verifies the received bytes, and keeps the wanted ones.
    fn take(&mut self, part: Part) -> Result<(), Error> {
        if let Some((metadata, length)) = &part.block {
            let came: u64 = part.content.iter().map(|piece| piece.len() as u64).sum();
            if came != *length {
                let reason = format!("a block of it has {came} bytes instead of {length}");
                return Err(self.damaged(Damage::Metadata {
                    version: self.opened.version,
                    reason,
                }));
            }
            checksum::verify(&part.content, metadata, self.opened.version)
                .map_err(|damage| self.damaged(damage))?;
            assert!(
                part.wanted.end <= came,
                "wanted bytes are within their block"
            );
            self.domain.metrics().large().read.inc_by(came);
        }
        let mut position = 0;
        for piece in part.content {
            let (begin, end) = (position, position + piece.len() as u64);
            position = end;
            let from = part.wanted.start.clamp(begin, end) - begin;
            let to = part.wanted.end.clamp(begin, end) - begin;
            if let Some(digest) = &mut self.digest {
                digest.update(&piece);
            }
            if from < to {
                self.pieces
                    .push_back(piece.slice(from as usize..to as usize));
            }
        }
        Ok(())
    }

    async fn end(&mut self) -> Result<(), Error> {
        let Some(work) = self.work.take() else {
            return Ok(());
        };
        work.await?;
        let expected = self.opened.metadata.checksum;
        let found = self.digest.as_ref().map(checksum::finish);
        match (expected, found) {
            (Some(expected), Some(found)) if expected != found => {
                Err(self.damaged(Damage::Checksum {
                    version: self.opened.version,
                    expected,
                    found,
                }))
            }
            _ => Ok(()),
        }
    }

    fn damaged(&self, damage: Damage) -> Error {
        self.domain.known.corrupted(&self.key, damage)
    }

    /// All of it; `None` if it is longer than `limit_bytes`.
    pub(super) async fn collect(&mut self, limit_bytes: u64) -> Result<Option<Object>, Error> {
        if self.opened.length > limit_bytes {
            return Ok(None);
        }
        let mut content = Vec::new();
        while let Some(piece) = self.next().await? {
            content.push(piece);
        }
        Ok(Some(Object {
            version: self.opened.version,
            metadata: self.opened.metadata.clone(),
            length: self.opened.length,
            content,
        }))
    }
}

/// Runs the operation: reads the newest version, then the wanted part of it.
async fn run(
    context: Context,
    wanted: Wanted,
    opened: oneshot::Sender<OpenValue>,
    parts: mpsc::Sender<Part>,
) -> Result<(), Error> {
    let mut gone = None;
    loop {
        let found = context.handle().read_within(context.name(), None).await;
        let found = found.map_err(|error| context.not_applied(&error))?;
        let (version, metadata, value) = context.domain.opened(context.name().key(), found)?;
        if gone == Some(version) {
            let reason = "it is not there, and its version is the newest".into();
            let block = "the first one that is wanted".into();
            let damage = Damage::Block { block, reason };
            return Err(context.domain.corrupted(context.name().key(), damage));
        }
        let length = value.length();
        let range = wanted.within(length, &metadata)?;
        let manifest = metadata.blocks.clone();
        let about = OpenValue {
            version,
            metadata,
            length,
            is_whole: range == (0..length),
        };
        let Some(manifest) = manifest else {
            let part = Part {
                content: value.content,
                block: None,
                wanted: range,
            };
            // Failing means that the reader is gone.
            let _ = opened.send(about);
            let _ = parts.send(part).await;
            return Ok(());
        };
        let Some(blocks) = blocks_of(&context, version, manifest).await? else {
            gone = Some(version);
            continue;
        };
        let mut ahead = Ahead::new(&context, blocks, range);
        // Up to here nothing was handed out: if a block is gone, a newer version is complete, and is read instead.
        let first = match ahead.next().await {
            None => None,
            Some(Err(error)) => return Err(context.not_applied(&error)),
            Some(Ok(None)) => {
                gone = Some(version);
                continue;
            }
            Some(Ok(Some(block))) => Some(block),
        };
        let _ = opened.send(about);
        return hand_out(&context, version, first, ahead, &parts).await;
    }
}

/// The blocks of a value. `None`: their list is gone.
async fn blocks_of(
    context: &Context,
    version: Version,
    manifest: Manifest,
) -> Result<Option<Blocks>, Error> {
    let list = match manifest {
        Manifest::Parts(blocks) => return Ok(Some(blocks)),
        Manifest::List(list) => list,
    };
    let found = context.handle().list_of(&list).await;
    let Some(value) = found.map_err(|error| context.not_applied(&error))? else {
        return Ok(None);
    };
    let corrupted = |damage| context.domain.corrupted(context.name().key(), damage);
    let invalid = |reason: String| {
        let block = "the list of its parts".into();
        corrupted(Damage::Block { block, reason })
    };
    let metadata = Metadata::decode(&value.metadata);
    let metadata = metadata.map_err(|error| invalid(error.to_string()))?;
    checksum::verify(&value.content, &metadata, version).map_err(corrupted)?;
    match list.decode_parts(&value.content.concat()) {
        Some(blocks) => Ok(Some(blocks)),
        None => Err(invalid(
            "it is of another value, or of a later version".into(),
        )),
    }
}

async fn hand_out(
    context: &Context,
    version: Version,
    first: Option<Block>,
    mut ahead: Ahead<'_>,
    parts: &mpsc::Sender<Part>,
) -> Result<(), Error> {
    let mut next = first;
    while let Some(block) = next {
        let part = block.part(context, version)?;
        if parts.send(part).await.is_err() {
            // The reader is gone.
            return Ok(());
        }
        next = match ahead.next().await {
            None => None,
            Some(Ok(Some(block))) => Some(block),
            Some(Ok(None)) => return Err(conflict(context, version).await),
            Some(Err(error)) => return Err(context.not_applied(&error)),
        };
    }
    Ok(())
}

/// Bytes of the version were handed out, and what follows is gone: a newer one is complete (`[X-23 replaced-blocks]`).
async fn conflict(context: &Context, expected: Version) -> Error {
    let key = context.name().key();
    let found = match context.handle().stat(context.name()).await {
        Err(error) => return context.not_applied(&error),
        Ok(found) => found,
    };
    let length = found.length;
    let latest = match context.domain.opened(key, found) {
        Err(Error::NotFound { .. }) => None,
        Err(error) => return error,
        Ok((version, metadata, _)) => Some(Box::new(Object {
            version,
            metadata,
            length,
            content: Vec::new(),
        })),
    };
    Error::VersionConflict {
        domain: context.domain.name().into(),
        key: key.into(),
        expected: Some(expected),
        latest,
    }
}

/// A block that came.
struct Block {
    value: Value,
    length: u64,
    wanted: Range<u64>,
}

impl Block {
    fn part(self, context: &Context, version: Version) -> Result<Part, Error> {
        let metadata = Metadata::decode(&self.value.metadata).map_err(|error| {
            let reason = error.to_string();
            let damage = Damage::Metadata { version, reason };
            context.domain.corrupted(context.name().key(), damage)
        })?;
        Ok(Part {
            content: self.value.content,
            block: Some((metadata, self.length)),
            wanted: self.wanted,
        })
    }
}

/// Blocks in order, of which a few are read ahead.
struct Ahead<'a> {
    context: &'a Context,
    blocks: Blocks,
    range: Range<u64>,
    /// The blocks that are to be asked for.
    rest: Range<u64>,
    /// The reads under way, with the bytes of the value that each brings.
    reads: VecDeque<(Range<u64>, Read)>,
    /// Bytes of the value that the reads under way bring.
    under_way: u64,
    /// The span that the reads are a part of.
    span: Span,
}

/// A read under way, which ends with this.
struct Read(JoinHandle<Result<Option<Value>, Unavailable>>);

impl Drop for Read {
    fn drop(&mut self) {
        self.0.abort();
    }
}

fn length_of(range: &Range<u64>) -> u64 {
    range.end - range.start
}

impl Ahead<'_> {
    fn new(context: &Context, blocks: Blocks, range: Range<u64>) -> Ahead<'_> {
        let span = span::download(context.name().key(), range.end - range.start);
        let rest = blocks.places(&range);
        Ahead {
            context,
            blocks,
            range,
            rest,
            reads: VecDeque::new(),
            under_way: 0,
            span,
        }
    }

    /// The next block to ask for, if the window has room for it. A block that is longer than the window goes alone.
    fn next_in_window(&mut self) -> Option<PlacedBlock> {
        if self.reads.len() as u64 >= limits::BLOCK_WINDOW {
            return None;
        }
        let block = self.blocks.block(self.rest.clone().next()?);
        let bytes = self.under_way + length_of(&block.range);
        let has_room = self.reads.is_empty() || bytes <= self.context.window_bytes();
        has_room.then(|| {
            self.rest.next();
            block
        })
    }

    /// The next block; `Ok(None)`: it is gone. `None` after the last one.
    async fn next(&mut self) -> Option<Result<Option<Block>, Unavailable>> {
        while let Some(block) = self.next_in_window() {
            self.under_way += length_of(&block.range);
            let (domain, upload) = (self.context.handle(), self.blocks.upload);
            let place = BlockPlace::from(&block);
            let read = async move { domain.get_block(upload, place).await };
            let read = spawn_local(read.instrument(self.span.clone()));
            self.reads.push_back((block.range, Read(read)));
        }
        let (of_value, mut read) = self.reads.pop_front()?;
        self.under_way -= length_of(&of_value);
        assert_eq!(
            self.reads.is_empty(),
            self.under_way == 0,
            "a block has a byte"
        );
        let value = (&mut read.0).await.expect("a read does not panic");
        let wanted = self.range.start.max(of_value.start)..self.range.end.min(of_value.end);
        assert!(!wanted.is_empty(), "only blocks with wanted bytes are read");
        let block = |value| Block {
            value,
            length: length_of(&of_value),
            wanted: wanted.start - of_value.start..wanted.end - of_value.start,
        };
        Some(value.map(|value| value.map(block)))
    }
}
