//! Values of any length, written and read in blocks with bounded memory (`areo_core::dsm::large`).
//!
//! A stream is one operation on the network thread: blocks go to it, or come from it, through a channel that holds one, and
//! so many are under way as [`limits::WINDOW_BYTES`], or the window of the client, allow. It has no deadline; it fails when nothing of it gets on for as
//! long as the client's timeout.

mod adapters;
mod conflict;
mod download;
mod parts;
mod upload;
mod value;
mod whole;

use crate::domain::Domain;
use crate::error::{Error, Invalid};
use crate::object::{Metadata, Object, PutOptions};
use crate::operation::Operation;
use areo_core::dsm::conditional::Condition;
use areo_core::limits;
use areo_core::object::Name;
use areo_core::span::ErrorType;
use areo_core::tag::Tag as Version;
use bytes::{Bytes, BytesMut};
use futures_util::future::BoxFuture;
use std::io;
use std::ops::{Bound, Range, RangeBounds};
use std::pin::pin;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

pub(crate) use conflict::{conflict, version_conflict};
pub use download::ObjectStream;
pub use parts::{InvalidPartText, StoredPart, UploadId};
use upload::Upload;
use value::refuse;
pub(crate) use value::value_to_put;

/// Why a value was not streamed.
#[derive(Debug, thiserror::Error)]
pub enum StreamError {
    /// The store said so.
    #[error("{0}")]
    Store(Error),
    /// The source or the sink, which are the caller's, failed. Nothing was written to the store.
    #[error("{0}")]
    Local(io::Error),
}

impl From<Error> for StreamError {
    fn from(error: Error) -> Self {
        StreamError::Store(error)
    }
}

impl From<io::Error> for StreamError {
    fn from(error: io::Error) -> Self {
        StreamError::Local(error)
    }
}

impl ErrorType for StreamError {
    fn error_type(&self) -> &'static str {
        match self {
            StreamError::Store(error) => error.error_type(),
            StreamError::Local(_) => "local",
        }
    }
}

/// The result of a completed stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamReport {
    /// The version that was streamed.
    pub version: Version,
    /// Metadata of the version.
    pub metadata: Metadata,
    /// Bytes that were received.
    pub bytes: u64,
}

impl Domain {
    /// Writes an object from a source of any length, and returns its new version. Up to [`PutOptions::block_bytes`]
    /// it is written as [`Domain::put`] does it; beyond that in blocks, and as a whole once all of them are at
    /// quorums. Memory is bounded. The sent blocks are removed if the source fails, or a server refuses them;
    /// [`Domain::sweep`] removes the blocks of a process that ends half way.
    ///
    /// # Errors
    /// Those of [`Domain::put`], and of the source.
    pub async fn put_stream(
        &self,
        key: &str,
        source: impl AsyncRead + Unpin,
        options: PutOptions,
    ) -> Result<Version, StreamError> {
        let put = pin!(self.write_stream(key, source, options, None, |_, options| options));
        self.operate(Operation::Put, key, put).await
    }

    /// Writes an object from a source that is described only once it has ended, as a checksum does. With a condition the domain must be
    /// conditional. Otherwise as [`Domain::put_stream`].
    ///
    /// `describe` sees the source at its end, and completes `options`: of its result `etag`, `content_type` and `user_metadata` count.
    ///
    /// # Errors
    /// Those of [`Domain::put_stream`], and with a condition those of [`Domain::compare_and_put`].
    pub async fn put_described<S: AsyncRead + Unpin>(
        &self,
        key: &str,
        source: S,
        options: PutOptions,
        condition: Option<Condition>,
        describe: impl FnOnce(S, PutOptions) -> PutOptions,
    ) -> Result<Version, StreamError> {
        let operation = match condition {
            Some(_) => {
                self.require_one_winner()?;
                Operation::WriteIf
            }
            None => Operation::Put,
        };
        let put = pin!(self.write_stream(key, source, options, condition, describe));
        self.operate(operation, key, put).await
    }

    pub(crate) async fn write_stream<S: AsyncRead + Unpin>(
        &self,
        key: &str,
        source: S,
        options: PutOptions,
        condition: Option<Condition>,
        describe: impl FnOnce(S, PutOptions) -> PutOptions,
    ) -> Result<Version, StreamError> {
        let name = Name::user(key).map_err(Error::from)?;
        refuse(&options)?;
        let mut blocks = BlockSource::new(source, self.block_bytes(&options));
        let first = blocks.next().await?;
        let mut next = blocks.next().await?;
        if next.is_empty() {
            let options = described(&options, |options| describe(blocks.source, options));
            return Ok(self.write(Ok(name), first, options, condition).await?);
        }
        let mut upload = Upload::begin(self, name, &options, condition)?;
        upload.push(first).await?;
        while !next.is_empty() {
            upload.push(next).await?;
            next = match blocks.next().await {
                Ok(block) => block,
                Err(error) => {
                    upload.give_up().await;
                    return Err(error.into());
                }
            };
        }
        let options = described(&options, |options| describe(blocks.source, options));
        Ok(upload.finish(options).await?)
    }

    /// Reads an object of any length in pieces, in order: its newest version, every piece verified before it is handed
    /// out, the whole when it has ended. Memory is bounded.
    ///
    /// # Errors
    /// Those of [`Domain::get`]; later ones come with the pieces, also [`Error::VersionConflict`] if the value is written
    /// over or deleted, and swept, while it is read.
    pub async fn get_stream(&self, key: &str) -> Result<ObjectStream, Error> {
        self.get_range(key, ..).await
    }

    /// Reads these bytes of an object, counted from 0; of one in blocks only those are fetched that the range touches.
    ///
    /// # Errors
    /// As [`Domain::get_stream`], and [`crate::Invalid::Range`] if the range is not within the value.
    pub async fn get_range(
        &self,
        key: &str,
        range: impl RangeBounds<u64>,
    ) -> Result<ObjectStream, Error> {
        let wanted = WantedRange::new(&range).map(Wanted::Bytes);
        self.open_counted(key, wanted).await
    }

    /// Reads those bytes of an object that are chosen by its length and metadata. `choose` may be called for several versions, on the
    /// client's thread; the stream is of the last one. Where it chooses nothing, no bytes come, and none are fetched.
    ///
    /// # Errors
    /// As [`Domain::get_stream`], and [`crate::Invalid::Range`] if what is chosen is not within the value.
    pub async fn get_chosen(
        &self,
        key: &str,
        choose: impl Fn(u64, &Metadata) -> Range<u64> + Send + Sync + 'static,
    ) -> Result<ObjectStream, Error> {
        let wanted = Wanted::Chosen(Arc::new(choose));
        self.open_counted(key, Ok(wanted)).await
    }

    /// Opens a stream, which is counted when it ends; an error is counted at once.
    fn open_counted<'a>(
        &'a self,
        key: &'a str,
        wanted: Result<Wanted, Error>,
    ) -> BoxFuture<'a, Result<ObjectStream, Error>> {
        Box::pin(async move {
            let running = self.metrics().begin(Operation::Get);
            let open = async { ObjectStream::open(self, Name::user(key)?, wanted?).await };
            match open.await {
                Ok(stream) => Ok(stream.counted(running)),
                failed => {
                    running.end(&failed);
                    failed
                }
            }
        })
    }

    /// Reads an object of any length into a sink. After an error some of it may have come there.
    ///
    /// # Errors
    /// Those of [`Domain::get_stream`], and of the sink.
    pub async fn get_to(
        &self,
        key: &str,
        mut sink: impl AsyncWrite + Unpin,
    ) -> Result<StreamReport, StreamError> {
        let mut stream = self.get_stream(key).await?;
        while let Some(piece) = stream.next().await? {
            sink.write_all(&piece).await?;
        }
        sink.flush().await?;
        Ok(stream.streamed())
    }

    /// Reads a value of this length, which is in blocks, into memory, as a part of the read that found it. Nobody has seen a
    /// part of it, so that it begins again if it is written over meanwhile.
    pub(crate) async fn get_in_memory(&self, key: &str, length: u64) -> Result<Object, Error> {
        let mut length = length;
        loop {
            if length > limits::VALUE_BYTES {
                let reason = Invalid::InMemory { bytes: length };
                return Err(Error::Invalid { reason });
            }
            let stream = ObjectStream::open_within(self, key, WantedRange::EVERYTHING);
            let mut stream = stream.await?;
            length = stream.length();
            match stream.collect(limits::VALUE_BYTES).await {
                Ok(Some(object)) => return Ok(object),
                Ok(None) | Err(Error::VersionConflict { .. }) => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// The options with what is known of the source at its end.
fn described(options: &PutOptions, describe: impl FnOnce(PutOptions) -> PutOptions) -> PutOptions {
    let described = describe(options.clone());
    PutOptions {
        content_type: described.content_type,
        user_metadata: described.user_metadata,
        etag: described.etag,
        ..options.clone()
    }
}

/// Bytes for which there is room before a source has shown that it has more.
const FIRST_BYTES: usize = 64 << 10;

/// A source, cut into blocks.
struct BlockSource<S> {
    source: S,
    block_bytes: usize,
    has_ended: bool,
}

impl<S: AsyncRead + Unpin> BlockSource<S> {
    fn new(source: S, block_bytes: usize) -> BlockSource<S> {
        assert!(block_bytes > 0, "a block has a byte");
        BlockSource {
            source,
            block_bytes,
            has_ended: false,
        }
    }

    /// The next block, an empty one at the end. A shorter block is the last one, also if the source goes on after its end, as a file
    /// does that grows: blocks are found by their numbers, so that no block in the middle may be short.
    async fn next(&mut self) -> io::Result<Bytes> {
        if self.has_ended {
            return Ok(Bytes::new());
        }
        let block = read_block(&mut self.source, self.block_bytes).await?;
        self.has_ended = block.len() < self.block_bytes;
        Ok(block)
    }
}

/// The next `block_bytes` of the source, fewer only at its end.
async fn read_block(
    source: &mut (impl AsyncRead + Unpin),
    block_bytes: usize,
) -> io::Result<Bytes> {
    let mut block = BytesMut::new();
    while block.len() < block_bytes {
        if block.len() == block.capacity() {
            // What is short stays short. A buffer that grew by and by would leave one of each size on its way with the allocator.
            let room = match block.is_empty() {
                true => block_bytes.min(FIRST_BYTES),
                false => block_bytes,
            };
            block.reserve(room - block.len());
        }
        let left = (block_bytes - block.len()) as u64;
        if (&mut *source).take(left).read_buf(&mut block).await? == 0 {
            break;
        }
    }
    Ok(block.freeze())
}

/// Chooses bytes of a value by its length and metadata.
type Choice = dyn Fn(u64, &Metadata) -> Range<u64> + Send + Sync;

/// The bytes that a read is for.
pub(crate) enum Wanted {
    /// The bytes of this range.
    Bytes(WantedRange),
    /// The bytes that the reader chooses once it sees the length of the value.
    Chosen(Arc<Choice>),
}

impl Wanted {
    /// The bytes of a value of this length.
    ///
    /// # Errors
    /// [`Invalid::Range`]: they are not within it.
    fn within(&self, length: u64, metadata: &Metadata) -> Result<Range<u64>, Error> {
        match self {
            Wanted::Bytes(range) => range.within(length),
            Wanted::Chosen(choose) => {
                let chosen = choose(length, metadata);
                let range = WantedRange::new(&chosen)?;
                range.within(length)
            }
        }
    }
}

/// The requested bytes of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WantedRange {
    start: u64,
    /// After the last one; `None`: all from `start` on.
    end: Option<u64>,
}

impl WantedRange {
    const EVERYTHING: WantedRange = WantedRange {
        start: 0,
        end: None,
    };

    fn new(range: &impl RangeBounds<u64>) -> Result<WantedRange, Error> {
        let start = match range.start_bound() {
            Bound::Unbounded => 0,
            Bound::Included(start) => *start,
            Bound::Excluded(before) => before.saturating_add(1),
        };
        let end = match range.end_bound() {
            Bound::Unbounded => None,
            Bound::Included(last) => Some(last.saturating_add(1)),
            Bound::Excluded(end) => Some(*end),
        };
        let wanted = WantedRange { start, end };
        if end.is_some_and(|end| end < start) {
            Err(wanted.invalid(None))
        } else {
            Ok(wanted)
        }
    }

    fn invalid(self, length: Option<u64>) -> Error {
        let WantedRange { start, end } = self;
        let reason = Invalid::Range { start, end, length };
        Error::Invalid { reason }
    }

    /// The range within a value of this length.
    fn within(self, length: u64) -> Result<Range<u64>, Error> {
        let end = self.end.unwrap_or(length);
        if self.start <= end && end <= length {
            Ok(self.start..end)
        } else {
            Err(self.invalid(Some(length)))
        }
    }
}

#[cfg(test)]
mod tests;
