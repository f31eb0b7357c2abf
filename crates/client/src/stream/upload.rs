//! The writing of one value in blocks.

use super::conflict;
use super::value::{block_value, metadata, refuse};
use crate::checksum;
use crate::domain::Domain;
use crate::error::Error;
use crate::object::{Blocks, Metadata, PutOptions};
use crate::operation::Operation;
use crate::session::{Context, Deadline, RunningJob};
use crate::span;
use areo_core::dsm::conditional::{Condition, WriteDecision};
use areo_core::dsm::large::{BlockPlace, PublishError};
use areo_core::element::Value;
use areo_core::error::WriteError;
use areo_core::object::Name;
use areo_core::span::ErrorType;
use areo_core::tag::{Tag as Version, Writer};
use areo_trust::grant::Verb;
use bytes::Bytes;
use crc_fast::{CrcAlgorithm, Digest};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tracing::Instrument;

/// A value in blocks on its way.
pub(super) struct Upload {
    domain: Domain,
    /// The way to the operation on the network thread.
    parts: mpsc::Sender<UploadPart>,
    work: RunningJob<Result<Version, Error>>,
    digest: Digest,
    length: u64,
}

pub(super) enum UploadPart {
    Block(Value),
    /// There are no more bytes; this metadata is kept with the value.
    End(Metadata, u64),
    GiveUp,
}

impl Upload {
    /// Starts the write: its blocks are pushed in order. `condition`: on which version; `None`: on any.
    pub(super) fn begin(
        domain: &Domain,
        name: Name,
        options: &PutOptions,
        condition: Option<Condition>,
    ) -> Result<Upload, Error> {
        refuse(options)?;
        domain.check_blocks()?;
        let (parts, receiver) = mpsc::channel(1);
        let block_bytes = options.block_bytes;
        let condition = condition.map(|it| (it, options.request));
        let work = move |context: Context| async move {
            context.demand(&[Verb::Write])?;
            let span = span::upload(context.name().key());
            let ended = span::watch!(span, run(context, receiver, block_bytes, condition));
            ended.map_err(|(UploadError::Failed(error) | UploadError::GivenUp(error))| error)
        };
        Ok(Upload {
            domain: domain.clone(),
            parts,
            work: domain.run(Deadline::Idle, Operation::Put, name, work),
            digest: Digest::new(CrcAlgorithm::Crc32Iscsi),
            length: 0,
        })
    }

    /// Takes the next block. Waits while as many are under way as may be.
    pub(super) async fn push(&mut self, block: Bytes) -> Result<(), Error> {
        assert!(!block.is_empty(), "a value in blocks has no empty block");
        self.digest.update(&block);
        let bytes = block.len() as u64;
        self.length += bytes;
        self.send(UploadPart::Block(block_value(block)?)).await?;
        self.domain.metrics().large().written.inc_by(bytes);
        Ok(())
    }

    async fn send(&mut self, part: UploadPart) -> Result<(), Error> {
        if self.parts.send(part).await.is_ok() {
            return Ok(());
        }
        // It ends before its time only for a reason.
        (&mut self.work).await.map(|_| ())
    }

    /// After the last block: makes the pushed value the newest version of the object. The metadata is of these options, which
    /// may be known only now.
    pub(super) async fn finish(mut self, options: PutOptions) -> Result<Version, Error> {
        let metadata = metadata(options, checksum::finish(&self.digest));
        if let Err(error) = metadata.encode() {
            self.give_up().await;
            return Err(error.into());
        }
        let end = UploadPart::End(metadata, self.length);
        self.send(end).await?;
        self.work.await
    }

    /// Removes the sent blocks, as far as that is possible now.
    pub(super) async fn give_up(mut self) {
        if self.send(UploadPart::GiveUp).await.is_ok() {
            // A sweep removes the remainder.
            let _ = self.work.await;
        }
    }
}

/// The name space that the blocks of a stream are put in.
#[derive(Clone, Copy)]
pub(super) enum Target {
    /// Numbers of an upload of its own.
    Own(Writer),
    /// A lane of an upload that has several writers.
    Lane { upload: Writer, lane: Writer },
}

impl Target {
    fn upload(self) -> Writer {
        match self {
            Target::Own(upload) | Target::Lane { upload, .. } => upload,
        }
    }

    fn place(self, number: u32) -> BlockPlace {
        match self {
            Target::Own(_) => BlockPlace::Own(number),
            Target::Lane { lane, .. } => BlockPlace::Lane { lane, number },
        }
    }

    /// The first `count` blocks of the upload.
    fn first(self, count: u32) -> (Writer, impl Iterator<Item = BlockPlace>) {
        let places = (0..count).map(move |number| self.place(number));
        (self.upload(), places)
    }
}

/// Blocks that are all at quorums.
pub(super) struct SentBlocks {
    metadata: Metadata,
    pub(super) length: u64,
    pub(super) blocks: u32,
}

/// Why an upload came to no version.
pub(super) enum UploadError {
    Failed(Error),
    /// Its source failed, or its caller is gone. No caller sees the error.
    GivenUp(Error),
}

impl From<Error> for UploadError {
    fn from(error: Error) -> UploadError {
        UploadError::Failed(error)
    }
}

impl ErrorType for UploadError {
    fn error_type(&self) -> &'static str {
        match self {
            UploadError::Failed(error) => error.error_type(),
            UploadError::GivenUp(_) => span::CANCELLED,
        }
    }
}

/// The operation: blocks as they come, then the manifest.
async fn run(
    context: Context,
    parts: mpsc::Receiver<UploadPart>,
    block_bytes: u32,
    condition: Option<(Condition, u128)>,
) -> Result<Version, UploadError> {
    let upload = context.client.next_upload();
    let sent = send_blocks(&context, parts, Target::Own(upload), block_bytes).await?;
    let blocks = Blocks::new(upload, sent.length, block_bytes);
    let listed = (blocks.count(), blocks.length());
    assert_eq!(
        listed,
        (sent.blocks.into(), sent.length),
        "the manifest lists what was sent"
    );
    Ok(publish(&context, blocks, sent.metadata, condition).await?)
}

/// Puts blocks as they come. After an error those that were put are removed.
pub(super) async fn send_blocks(
    context: &Context,
    mut parts: mpsc::Receiver<UploadPart>,
    target: Target,
    block_bytes: u32,
) -> Result<SentBlocks, UploadError> {
    let (window, mut sent, mut bytes) = (context.window(block_bytes), 0, 0);
    let mut puts = JoinSet::new();
    loop {
        tokio::select! {
            biased;
            Some(put) = puts.join_next() => {
                let put: Result<(), WriteError> = put.expect("a put does not panic");
                if let Err(error) = put {
                    puts.shutdown().await;
                    return Err(not_applied(context, target.first(sent), error).await.into());
                }
            }
            part = parts.recv(), if puts.len() < window => match part {
                Some(UploadPart::Block(content)) => {
                    let is_full = bytes == u64::from(sent) * u64::from(block_bytes);
                    assert!(is_full, "only the last block is shorter than the others");
                    bytes += content.length();
                    let (domain, block) = (context.handle(), (target.upload(), target.place(sent)));
                    sent += 1;
                    let put = async move { domain.put_block(block, &content).await };
                    puts.spawn_local(put.in_current_span());
                }
                Some(UploadPart::End(metadata, length)) => {
                    assert_eq!(bytes, length, "each byte that was pushed has come");
                    while let Some(put) = puts.join_next().await {
                        let put: Result<(), WriteError> = put.expect("a put does not panic");
                        if let Err(error) = put {
                            puts.shutdown().await;
                            return Err(not_applied(context, target.first(sent), error).await.into());
                        }
                    }
                    return Ok(SentBlocks { metadata, length, blocks: sent });
                }
                // A process that ends has no time for more.
                None => return Err(UploadError::GivenUp(context.gone())),
                Some(UploadPart::GiveUp) => {
                    puts.shutdown().await;
                    let (upload, blocks) = target.first(sent);
                    context.handle().remove_upload(upload, blocks).await;
                    return Err(UploadError::GivenUp(context.gone()));
                }
            },
        }
    }
}

async fn publish(
    context: &Context,
    blocks: Blocks,
    metadata: Metadata,
    condition: Option<(Condition, u128)>,
) -> Result<Version, Error> {
    let metadata = Metadata {
        blocks: Some(blocks.clone().into()),
        ..metadata
    };
    span::record(blocks.length(), blocks.count() as usize);
    let metadata = metadata.encode()?;
    let (domain, name) = (context.handle(), context.name());
    let published = match condition {
        None => domain.publish(name, &blocks, metadata).await.map(Ok),
        Some(wanted) => {
            let decided = domain.publish_if(name, &blocks, metadata, wanted).await;
            decided.map(|decided| match decided {
                WriteDecision::Written { tag, .. } => Ok(tag),
                WriteDecision::Conflict(found) => {
                    Err(conflict(&context.domain, name.key(), wanted.0, found))
                }
            })
        }
    };
    match published {
        Ok(version) => version,
        Err(PublishError::Write(error)) => Err(context.write_error(&error)),
        Err(PublishError::Swept) => Err(context.swept()),
    }
}

/// The error of a write whose block failed. The write is not applied even if servers have the block, because the object
/// will not have it.
async fn not_applied(
    context: &Context,
    blocks: (Writer, impl Iterator<Item = BlockPlace>),
    error: WriteError,
) -> Error {
    let (WriteError::NotApplied(failed) | WriteError::Unknown(failed)) = error;
    context.handle().remove_upload_after(blocks, &failed).await;
    context.write_error(&WriteError::NotApplied(failed))
}
