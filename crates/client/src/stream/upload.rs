//! The writing of one value in blocks.

use super::conflict;
use super::whole::{check, value_to_put};
use crate::checksum;
use crate::domain::Domain;
use crate::error::{Error, Operation};
use crate::object::{Blocks, Metadata, PutOptions, now_ms};
use crate::reconfig_kind::ReconfigKind;
use crate::session::{Context, Deadline, RunningJob};
use crate::span;
use areo_core::dsm::conditional::{Condition, WriteDecision};
use areo_core::dsm::large::{BlockPlace, PublishError};
use areo_core::element::Value;
use areo_core::error::WriteError;
use areo_core::limits;
use areo_core::object::Name;
use areo_core::span::ErrorType;
use areo_core::tag::{Tag as Version, Writer};
use areo_trust::grant::Verb;
use bytes::Bytes;
use crc_fast::{CrcAlgorithm, Digest};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tracing::Instrument;

/// A value on its way: as one object while only one block of it has come, otherwise as blocks.
pub(super) struct Upload {
    domain: Domain,
    name: Name,
    options: PutOptions,
    /// On which version; `None`: on any.
    condition: Option<Condition>,
    /// The first block, until it is known that there is another one.
    first: Option<Bytes>,
    sending: Option<UploadTask>,
    digest: Digest,
    length: u64,
}

/// The operation on the network thread.
struct UploadTask {
    parts: mpsc::Sender<UploadPart>,
    work: RunningJob<Result<Version, Error>>,
}

pub(super) enum UploadPart {
    Block(Value),
    /// There are no more bytes; this metadata is kept with the value.
    End(Metadata, u64),
    GiveUp,
}

impl Upload {
    pub(super) fn new(
        domain: &Domain,
        name: Name,
        options: PutOptions,
        condition: Option<Condition>,
    ) -> Result<Upload, Error> {
        check(&options)?;
        let upload = Upload {
            domain: domain.clone(),
            name,
            options,
            condition,
            first: None,
            sending: None,
            digest: Digest::new(CrcAlgorithm::Crc32Iscsi),
            length: 0,
        };
        // Refused before anything is sent.
        upload.metadata().encode()?;
        Ok(upload)
    }

    /// Completes the metadata of the value, before [`Upload::finish`].
    ///
    /// # Errors
    /// It is over the limits.
    pub(super) fn describe(
        &mut self,
        describe: impl FnOnce(PutOptions) -> PutOptions,
    ) -> Result<(), Error> {
        let described = describe(self.options.clone());
        self.options = PutOptions {
            content_type: described.content_type,
            user_metadata: described.user_metadata,
            etag: described.etag,
            ..self.options.clone()
        };
        self.metadata().encode()?;
        Ok(())
    }

    /// The length of every block that is pushed but the last one.
    pub(super) fn block_bytes(&self) -> usize {
        match self.domain.reconfig_kind() {
            ReconfigKind::Ares => self.options.block_bytes as usize,
            // The first one is the whole value.
            ReconfigKind::Rambo
            | ReconfigKind::LRambo
            | ReconfigKind::Sm
            | ReconfigKind::Spsn
            | ReconfigKind::DynaStore => limits::MAX_BLOCK_BYTES as usize,
        }
    }

    fn metadata(&self) -> Metadata {
        Metadata {
            content_type: self.options.content_type.clone(),
            user: self.options.user_metadata.clone(),
            checksum: Some(checksum::finish(&self.digest)),
            etag: self.options.etag.clone(),
            written_at_ms: self.options.written_at_ms.or_else(now_ms),
            blocks: None,
            lost: None,
        }
    }

    /// Takes the next block. Waits while as many are under way as may be.
    pub(super) async fn push(&mut self, block: Bytes) -> Result<(), Error> {
        match self.first.take() {
            None if self.sending.is_none() => {
                self.first = Some(block);
                return Ok(());
            }
            None => {}
            Some(first) => {
                self.begin()?;
                self.send_block(first).await?;
            }
        }
        self.send_block(block).await
    }

    async fn send_block(&mut self, block: Bytes) -> Result<(), Error> {
        self.digest.update(&block);
        self.length += block.len() as u64;
        let metadata = Metadata {
            checksum: Some(checksum::of(std::slice::from_ref(&block))),
            written_at_ms: now_ms(),
            ..Metadata::default()
        };
        let bytes = block.len() as u64;
        let value = Value::new(metadata.encode()?, block);
        self.send(UploadPart::Block(value)).await?;
        self.domain.metrics().large().written.inc_by(bytes);
        Ok(())
    }

    fn begin(&mut self) -> Result<(), Error> {
        self.domain.check_blocks()?;
        let (parts, receiver) = mpsc::channel(1);
        let block_bytes = self.options.block_bytes;
        let condition = self.condition.map(|it| (it, self.options.request));
        let work = move |context: Context| async move {
            context.demand(&[Verb::Write])?;
            let span = span::upload(context.name().key());
            let ended = span::watch!(span, run(context, receiver, block_bytes, condition));
            ended.map_err(|(UploadError::Failed(error) | UploadError::GivenUp(error))| error)
        };
        let name = self.name.clone();
        let work = self
            .domain
            .begin(Deadline::Idle, Operation::Put, Some(name), work);
        self.sending = Some(UploadTask { parts, work });
        Ok(())
    }

    async fn send(&mut self, part: UploadPart) -> Result<(), Error> {
        let sending = self.sending.as_mut().expect("it has begun");
        if sending.parts.send(part).await.is_ok() {
            return Ok(());
        }
        // It ends before its time only for a reason.
        let sending = self.sending.take().expect("it has begun");
        sending.work.end().await.map(|_| ())
    }

    /// After the last block: makes the pushed value the newest version of the object.
    pub(super) async fn finish(mut self) -> Result<Version, Error> {
        if self.sending.is_none() {
            let value = self.first.take().unwrap_or_default();
            let name = self.name;
            if let Some(condition) = self.condition {
                let wish = (condition, self.options.request);
                let value = value_to_put(value, self.options)?;
                let put = self.domain.decide(Operation::Put, name, value, wish);
                return put.await;
            }
            let put = self.domain.put_at_once(name, value, self.options);
            return put.await;
        }
        let end = UploadPart::End(self.metadata(), self.length);
        self.send(end).await?;
        let sending = self.sending.take().expect("it has begun");
        sending.work.end().await
    }

    /// Removes the sent blocks, as far as that is possible now.
    pub(super) async fn give_up(mut self) {
        if self.sending.is_some()
            && self.send(UploadPart::GiveUp).await.is_ok()
            && let Some(sending) = self.sending.take()
        {
            // A sweep removes the remainder.
            let _ = sending.work.end().await;
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
    Ok(publish(&context, blocks, sent.metadata, condition).await?)
}

/// Puts blocks as they come. After an error those that were put are removed.
pub(super) async fn send_blocks(
    context: &Context,
    mut parts: mpsc::Receiver<UploadPart>,
    target: Target,
    block_bytes: u32,
) -> Result<SentBlocks, UploadError> {
    let (window, mut sent) = (context.window(block_bytes), 0);
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
                    let (domain, block) = (context.handle(), (target.upload(), target.place(sent)));
                    sent += 1;
                    let put = async move { domain.put_block(block, &content).await };
                    puts.spawn_local(put.in_current_span());
                }
                Some(UploadPart::End(metadata, length)) => {
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
