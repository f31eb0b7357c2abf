//! Values in parts, put by several clients and published as one version (`areo_core::dsm::large::parts`).

use super::upload::{Target, UploadError, UploadPart, send_blocks};
use super::value::{block_value, check_block_bytes, metadata};
use super::{BlockSource, StreamError, conflict};
use crate::checksum;
use crate::domain::Domain;
use crate::error::{Error, Invalid};
use crate::object::{Metadata, PutOptions};
use crate::operation::Operation;
use crate::session::{Context, Deadline, RunningJob};
use crate::span;
use areo_core::dsm::conditional::Condition;
use areo_core::dsm::large::parts::{Publication, PublishOutcome};
use areo_core::dsm::large::{PublishError, parse_writer};
use areo_core::limits;
use areo_core::object::{Name, Part, PartList};
use areo_core::tag::{Tag as Version, Writer};
use crc_fast::{CrcAlgorithm, Digest, checksum_combine};
use futures_util::future::BoxFuture;
use std::fmt;
use std::pin::pin;
use std::str::FromStr;
use tokio::io::AsyncRead;
use tokio::sync::mpsc;

/// An upload in parts: its text form, of 32 hexadecimal digits, is all that another client needs to go on with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UploadId(Writer);

/// A part that was put. Its text form has 64 hexadecimal digits, and is all that another client needs to publish it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredPart {
    lane: Writer,
    length: u64,
    block_bytes: u32,
    checksum: u32,
}

/// A text that is none of an upload or of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this is not the text form of an upload or of a part")]
pub struct InvalidPartText;

impl fmt::Display for UploadId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}{:016x}", self.0.client.0, self.0.counter)
    }
}

impl FromStr for UploadId {
    type Err = InvalidPartText;

    fn from_str(text: &str) -> Result<UploadId, InvalidPartText> {
        let upload = parse_writer(text).filter(|upload| upload.is_upload());
        upload.map(UploadId).ok_or(InvalidPartText)
    }
}

impl StoredPart {
    /// Its length in bytes.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// CRC-32C of its bytes.
    pub fn checksum(&self) -> u32 {
        self.checksum
    }

    fn part(&self) -> Part {
        Part {
            lane: Some(self.lane),
            first: 0,
            length: self.length,
            block_bytes: self.block_bytes,
        }
    }
}

impl fmt::Display for StoredPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (client, counter) = (self.lane.client.0, self.lane.counter);
        let (length, width, checksum) = (self.length, self.block_bytes, self.checksum);
        write!(
            f,
            "{client:016x}{counter:016x}{length:016x}{width:08x}{checksum:08x}"
        )
    }
}

impl FromStr for StoredPart {
    type Err = InvalidPartText;

    fn from_str(text: &str) -> Result<StoredPart, InvalidPartText> {
        let is_digits = text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        if !is_digits {
            return Err(InvalidPartText);
        }
        let number = |range| u64::from_str_radix(&text[range], 16).map_err(|_| InvalidPartText);
        let short = |range| u32::try_from(number(range)?).map_err(|_| InvalidPartText);
        let part = StoredPart {
            lane: parse_writer(&text[..32]).ok_or(InvalidPartText)?,
            length: number(32..48)?,
            block_bytes: short(48..56)?,
            checksum: short(56..64)?,
        };
        match part.block_bytes {
            0 => Err(InvalidPartText),
            _ => Ok(part),
        }
    }
}

impl Domain {
    /// The id of a new upload in parts. Nothing is written. A sweep ends an upload that has stood still for long and has no record whose suffix
    /// begins with the text of its id ([`Domain::put_record`]).
    ///
    /// # Errors
    /// [`Error::Invalid`] in a domain that keeps values whole.
    pub fn begin_parts(&self) -> BoxFuture<'_, Result<UploadId, Error>> {
        Box::pin(async move {
            self.check_blocks()?;
            let draw = |context: Context| async move { context.client.next_upload() };
            let begun = self.run(Deadline::Timeout, Operation::Put, None, draw);
            Ok(UploadId(begun.await))
        })
    }

    /// Puts a part of an upload, from a source of any length, in blocks of `block_bytes`: 4 KiB to 64 MiB. Several clients may put parts of one
    /// upload at the same time. Memory is bounded as that of [`Domain::put_stream`]. A part that is not published goes with the upload.
    ///
    /// # Errors
    /// Those of [`Domain::put_stream`].
    pub async fn put_part(
        &self,
        upload: UploadId,
        source: impl AsyncRead + Unpin,
        block_bytes: u32,
    ) -> Result<StoredPart, StreamError> {
        let put = pin!(self.send_part(upload, source, block_bytes));
        self.operate(Operation::Put, "", put).await
    }

    /// Starts the part: its blocks come by the channel.
    fn begin_part(
        &self,
        upload: Writer,
        block_bytes: u32,
        receiver: mpsc::Receiver<UploadPart>,
    ) -> RunningJob<Result<Writer, Error>> {
        let work = move |context: Context| async move {
            let lane = context.client.next_writer();
            let target = Target::Lane { upload, lane };
            let put = async {
                let sent = send_blocks(&context, receiver, target, block_bytes).await?;
                span::record(sent.length, sent.blocks as usize);
                Ok(lane)
            };
            let ended = span::watch!(span::upload(""), put);
            ended.map_err(|(UploadError::Failed(error) | UploadError::GivenUp(error))| error)
        };
        self.run(Deadline::Idle, Operation::Put, None, work)
    }

    async fn send_part(
        &self,
        UploadId(upload): UploadId,
        source: impl AsyncRead + Unpin,
        block_bytes: u32,
    ) -> Result<StoredPart, StreamError> {
        self.check_blocks()?;
        check_block_bytes(block_bytes)?;
        let (sender, receiver) = mpsc::channel(1);
        let work = self.begin_part(upload, block_bytes, receiver);
        let (mut digest, mut length) = (Digest::new(CrcAlgorithm::Crc32Iscsi), 0);
        let mut blocks = BlockSource::new(source, block_bytes as usize);
        loop {
            let (next, is_end) = match blocks.next().await {
                Ok(block) if block.is_empty() => {
                    (UploadPart::End(Metadata::default(), length), true)
                }
                Ok(block) => {
                    digest.update(&block);
                    length += block.len() as u64;
                    self.metrics().large().written.inc_by(block.len() as u64);
                    (UploadPart::Block(block_value(block)?), false)
                }
                Err(error) => {
                    if sender.send(UploadPart::GiveUp).await.is_ok() {
                        // A sweep removes the remainder.
                        let _ = work.await;
                    }
                    return Err(StreamError::Local(error));
                }
            };
            let has_ended = sender.send(next).await.is_err();
            if is_end || has_ended {
                // It ends before its time only for a reason.
                let lane = work.await?;
                let checksum = checksum::finish(&digest);
                return Ok(StoredPart {
                    lane,
                    length,
                    block_bytes,
                    checksum,
                });
            }
        }
    }

    /// Publishes these parts of an upload, in order, as the newest version of the object, if the condition holds: any but [`Condition::Always`] in a conditional domain alone. To be repeated after
    /// [`Error::Unknown`], by any client: while the version has not been written over it is found, and returned again. Parts of the upload that are not
    /// among these are removed. After [`Error::VersionConflict`] the parts are still there.
    ///
    /// # Errors
    /// [`Error::Swept`] if the upload has ended, or was published and written over since; [`Error::Invalid`] for no parts, more than 10 000, or
    /// others than those that were published; otherwise those of [`Domain::put`] and [`Domain::compare_and_put`].
    pub async fn publish_parts(
        &self,
        key: &str,
        upload: UploadId,
        parts: &[StoredPart],
        options: PutOptions,
        condition: Condition,
    ) -> Result<Version, Error> {
        let published = self.publish_stored(key, upload, parts, options, condition);
        self.operate(Operation::Put, key, published).await
    }

    fn publish_stored<'a>(
        &'a self,
        key: &'a str,
        UploadId(upload): UploadId,
        parts: &'a [StoredPart],
        options: PutOptions,
        condition: Condition,
    ) -> BoxFuture<'a, Result<Version, Error>> {
        Box::pin(async move {
            let name = Name::user(key)?;
            self.check_blocks()?;
            check_block_bytes(options.block_bytes)?;
            if condition != Condition::Always {
                self.require_one_winner()?;
            }
            let request = options.request;
            let metadata = metadata(options, combined(parts));
            metadata.encode()?;
            let parts: Vec<Part> = parts.iter().map(StoredPart::part).collect();
            if PartList::of(upload, upload, &parts).is_none() {
                let (parts, most) = (parts.len(), limits::LISTED_PARTS);
                let reason = Invalid::Parts { parts, most };
                return Err(Error::Invalid { reason });
            }
            let list = block_value(PartList::encode_parts(&parts))?;
            let publish = move |context: Context| async move {
                let is_conditional = context.latest().dap().is_conditional();
                let on = (is_conditional || condition != Condition::Always)
                    .then_some((condition, request));
                let publication = Publication {
                    upload,
                    parts: &parts,
                    list: &list,
                    metadata: &metadata,
                    condition: on,
                };
                let domain = context.handle();
                let published = domain.publish_parts(context.name(), &publication);
                match Box::pin(published).await {
                    Ok(PublishOutcome::Written(version)) => Ok(version),
                    Ok(PublishOutcome::Conflict(found)) => {
                        let key = context.name().key();
                        Err(conflict(&context.domain, key, condition, found))
                    }
                    Ok(PublishOutcome::Differs(version)) => {
                        let reason = Invalid::OtherParts { version };
                        Err(Error::Invalid { reason })
                    }
                    Err(PublishError::Write(error)) => Err(context.write_error(&error)),
                    Err(PublishError::Swept) => Err(context.swept()),
                }
            };
            self.run(Deadline::Idle, Operation::Put, name, publish)
                .await
        })
    }

    /// Ends an upload in parts, and removes all that was put for it. One that was published keeps its version. To be repeated after an error.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Unauthorised`].
    pub fn abort_parts(&self, UploadId(upload): UploadId) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(async move {
            let abort = move |context: Context| async move {
                let aborted = context.handle().abort_parts(upload).await;
                aborted.map_err(|failed| context.not_applied(&failed))
            };
            let aborted = self.run(Deadline::Idle, Operation::Delete, None, abort);
            self.operate(Operation::Delete, "", aborted).await
        })
    }
}

/// CRC-32C of the parts one after another.
fn combined(parts: &[StoredPart]) -> u32 {
    let all = parts.iter().fold(0, |before, part| {
        let next = part.checksum.into();
        checksum_combine(CrcAlgorithm::Crc32Iscsi, before, next, part.length)
    });
    u32::try_from(all).expect("CRC-32C has 32 bits")
}

#[cfg(test)]
mod tests {
    use super::*;
    use areo_core::tag::ClientId;
    use bytes::Bytes;

    fn stored(content: &[u8]) -> StoredPart {
        let client = ClientId(0xabc);
        StoredPart {
            lane: Writer { client, counter: 7 },
            length: content.len() as u64,
            block_bytes: 4096,
            checksum: checksum::of(&[Bytes::copy_from_slice(content)]),
        }
    }

    #[test]
    fn the_checksum_of_the_whole_is_that_of_its_parts() {
        let whole = b"123456789";
        for (first, second) in [(0, 0), (0, 9), (1, 5), (4, 4), (9, 9)] {
            let parts = [&whole[..first], &whole[first..second], &whole[second..]];
            let parts = parts.map(stored);
            assert_eq!(combined(&parts), 0xe306_9283, "{first} {second}");
        }
        assert_eq!(combined(&[]), 0);
    }

    #[test]
    fn uploads_and_parts_are_texts() {
        let part = stored(b"areo");
        assert_eq!(part.to_string().len(), 64);
        assert_eq!(part.to_string().parse(), Ok(part));
        let client = ClientId(1);
        let upload = UploadId(Writer { client, counter: 2 }.as_upload());
        assert_eq!(upload.to_string().parse(), Ok(upload));
        let wrong = "0".repeat(64);
        for text in ["", "xyz", &wrong, &wrong[..63], &wrong[..32], "ä"] {
            assert_eq!(text.parse::<StoredPart>(), Err(InvalidPartText), "{text}");
            assert_eq!(text.parse::<UploadId>(), Err(InvalidPartText), "{text}");
        }
    }
}
