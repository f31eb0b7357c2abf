//! Large objects: a value in blocks, and a manifest that is written last (`docs/spec` 10.6).
//!
//! The value is cut into blocks. Each becomes an object of `Kind::Block` whose name derives from the *upload*, a writer
//! that was never used before, and its index; it is written once and never changed. The user's object then gets a version
//! without content, the *manifest*, whose metadata names the upload. So a large object is read and written as a whole by
//! the one version that its manifest is, and is linearizable because that is.
//!
//! Between the two the upload has to win its **cell**: commit(tag, manifest), once all blocks are at quorums and before any
//! put of the manifest (`[X-22 upload-fate]`). A client that wants to remove the blocks of a writer that seems to be gone
//! proposes abort instead, and removes nothing that was committed ([`super::sweep`]). The cell holds all that is needed to
//! finish the put. It goes when the upload is written over and its blocks are removed: what is decided about it then does no
//! harm (`docs/decisions/0021-cells-go-with-their-uploads.md`).
//!
//! | | rounds | bytes |
//! |---|---|---|
//! | [`Domain::put_block`] | 1: a new name needs no query | those of a put |
//! | [`Domain::publish`] | 3: get-tag, commit, put-data; 2 more over a version in blocks, which are removed | a few hundred |
//! | [`Domain::get_block`] | as a read: 1 or 2 | those of a get |
//!
//! Who has the whole value in memory uses [`Domain::write_large`] and [`Domain::read_large`]; who streams it has a window of blocks of its own.
//!
//! A reader may find that a block is gone ([`Domain::get_block`]: `None`): a larger version is complete then, and it reads the
//! manifest again, unless it has handed bytes of the old one on (`[X-23 replaced-blocks]`).

use super::Domain;
use super::conditional::{Condition, UploadCommit, WriteDecision};
use super::interruption::{Interruption, PutInterruption};
use crate::dap::{FoundVersion, OfferOutcome};
use crate::element::Value;
use crate::env::Env;
use crate::error::{Unavailable, WriteError};
use crate::gather;
use crate::limits;
use crate::object::{Blocks, Manifest, Metadata, Name, PartList};
use crate::tag::{ClientId, Tag, Writer};
use crate::tlv::{self, MUST_UNDERSTAND, TlvError};
use bytes::{Buf, BufMut, Bytes, BytesMut};

pub mod parts;
mod place;
mod ranked;

pub use crate::object::UPLOAD_PREFIX as PREFIX;
use place::digits;
pub use place::{BlockPlace, block_name, parse_key, parse_writer};
pub(super) use place::{block_tag, prefix};
pub use ranked::GIVEN_UP;

impl<E: Env> Domain<E> {
    /// Writes one block. `content` is all of it; it may be put again after an error.
    ///
    /// # Errors
    /// [`WriteError`].
    pub async fn put_block(
        &self,
        (upload, place): (Writer, impl Into<BlockPlace>),
        content: &Value,
    ) -> Result<(), WriteError> {
        let name = block_name(upload, place);
        self.put_version(&name, (block_tag(upload), content)).await
    }

    /// Reads one block; `None`: it is gone, and a larger version of the object than the one with this manifest is complete.
    ///
    /// # Errors
    /// [`Unavailable`].
    pub async fn get_block(
        &self,
        upload: Writer,
        place: impl Into<BlockPlace>,
    ) -> Result<Option<Value>, Unavailable> {
        let name = block_name(upload, place);
        let found = self.read(&name, None).await?;
        match found.value.filter(|value| !value.deleted) {
            Some(_) if found.tag != block_tag(upload) => {
                Err(Unavailable::left(&name, block_tag(upload)))
            }
            block => Ok(block),
        }
    }
}

/// Why an upload has not become a version of its object.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PublishError {
    /// The write of the manifest was not acknowledged.
    Write(WriteError),
    /// A sweep removed the blocks, because the write took too long. Nothing was written.
    Swept,
}

impl<E: Env> Domain<E> {
    /// Makes an upload whose blocks are all at quorums the newest version of `name`. `metadata` is encoded [`Metadata`] with
    /// `blocks`. To be called once for an upload.
    ///
    /// # Errors
    /// [`PublishError`].
    pub async fn publish(
        &self,
        name: &Name,
        blocks: &Blocks,
        metadata: Bytes,
    ) -> Result<Tag, PublishError> {
        let manifest = Manifest::Parts(blocks.clone());
        self.publish_manifest(name, &manifest, metadata).await
    }

    async fn publish_manifest(
        &self,
        name: &Name,
        blocks: &Manifest,
        metadata: Bytes,
    ) -> Result<Tag, PublishError> {
        if self.is_ranked(name)
            && let Some(tag) = self.publish_always(name, blocks, metadata.clone()).await?
        {
            return Ok(tag);
        }
        self.publish_unranked(name, blocks, metadata).await
    }

    /// [`Self::publish`] where the object is no register, unless it becomes one on the way.
    pub(super) async fn publish_unranked(
        &self,
        name: &Name,
        blocks: &Manifest,
        metadata: Bytes,
    ) -> Result<Tag, PublishError> {
        // A manifest is short: it has room wherever one of its blocks had.
        let (max, last) = loop {
            match self.largest_tag(name, None).await {
                Ok((OfferOutcome::Room(max), last)) => break (max, last),
                Ok((OfferOutcome::Busy, _)) => unreachable!("no version was announced"),
                Err(Interruption::Unavailable(failed)) => {
                    return Err(self.not_applied(blocks, failed).await);
                }
                Err(Interruption::Ranked) => {}
            }
            let published = self.publish_always(name, blocks, metadata.clone());
            if let Some(tag) = Box::pin(published).await? {
                return Ok(tag);
            }
        };
        // Unique: this upload is published once.
        let tag = match max.next_in(last.era(), blocks.writer()) {
            Ok(tag) => tag,
            Err(used_up) => return Err(self.not_applied(blocks, used_up.into()).await),
        };
        let commit = Fate::Commit(Box::new(Commit {
            name: name.clone(),
            tag,
            metadata: metadata.clone(),
            era: last.era(),
        }));
        let (cell, value) = (cell(blocks.writer()), commit.encode());
        let decided = self.decide_as_owner(&cell, &value, blocks.writer()).await;
        let decided = match decided {
            Ok(decided) => decided,
            // A client that learns of the commit finishes it.
            Err(failed) if failed.handed_over => {
                return Err(PublishError::Write(WriteError::Unknown(failed)));
            }
            Err(failed) => return Err(self.not_applied(blocks, failed).await),
        };
        if decided != value {
            return match Fate::decode(&decided) == Ok(Fate::Abort) {
                true => self.aborted((name, tag, last.era()), blocks, max).await,
                false => Err(PublishError::Swept),
            };
        }
        let manifest = Value::manifest(metadata, blocks.length());
        match self.put_manifest(&last, name, (tag, &manifest)).await {
            Ok(()) => {
                self.remove_replaced(max).await;
                Ok(tag)
            }
            Err(PutInterruption::Failed(
                WriteError::NotApplied(failed) | WriteError::Unknown(failed),
            )) => Err(PublishError::Write(WriteError::Unknown(failed))),
            Err(PutInterruption::Ranked { .. }) => {
                // A client that learns of the commit may have put it, too.
                let (is_decided, put) = (true, Some(tag));
                let commit = UploadCommit {
                    commit: &value,
                    is_decided,
                    put,
                };
                let always = (Condition::Always, 0);
                let published = self.publish_after(name, (blocks, &manifest), always, commit);
                let decided = Box::pin(published).await?;
                Ok(written(&decided.expect("the upload has committed")))
            }
        }
    }

    /// The end of an upload whose cell says that it was aborted. That is so, and nothing was written, if the object has no larger
    /// version. If it has one, the upload may have been committed and finished by others, and its cell forgotten: then it was
    /// written over, and if it was not committed it is as good as that. No client ever reads it from now on.
    async fn aborted(
        &self,
        (name, tag, era): (&Name, Tag, u32),
        blocks: &Manifest,
        max: Tag,
    ) -> Result<Tag, PublishError> {
        let unknown = |failed| PublishError::Write(WriteError::Unknown(failed));
        let (found, last) = loop {
            match self.stat_last(name).await {
                Ok(found) => break found,
                Err(Interruption::Unavailable(failed)) => return Err(unknown(failed)),
                Err(Interruption::Ranked) => {}
            }
            if let Some(tag) = self.aborted_of_register(name, blocks, tag).await? {
                return Ok(tag);
            }
        };
        self.remove_own(blocks).await;
        // Another publication of the parts may be what is there: its caller looks.
        let may_be_another = matches!(blocks, Manifest::List(_));
        if found.tag < tag || may_be_another {
            return Err(PublishError::Swept);
        }
        if last.era() > era && found.tag != tag {
            // It need not have been there when that was written ([W-13 ceasing-to-be-conditional]).
            return Err(unknown(Unavailable::outrun(tag)));
        }
        self.remove_replaced(max).await;
        Ok(tag)
    }

    /// The end of an upload whose commit was not proposed to any server, and will not be.
    async fn not_applied(&self, blocks: &Manifest, failed: Unavailable) -> PublishError {
        if failed.is_refused() {
            self.remove_own(blocks).await;
        }
        PublishError::Write(WriteError::NotApplied(failed))
    }

    /// Writes a value that is in memory, in blocks: `contents` are those of the blocks, in order, each with its own metadata.
    ///
    /// # Errors
    /// [`PublishError`].
    pub async fn write_large(
        &self,
        name: &Name,
        (blocks, metadata): (&Blocks, Bytes),
        contents: &[Value],
    ) -> Result<Tag, PublishError> {
        assert_eq!(contents.len() as u64, blocks.count(), "all of them");
        let puts = blocks
            .iter()
            .zip(contents)
            .map(|(block, content)| self.put_block((blocks.upload, block.number), content));
        for put in gather::join(window(blocks.block_bytes()), puts).await {
            // The block may be at some servers: there is no manifest, and will be none.
            if let Err(WriteError::NotApplied(failed) | WriteError::Unknown(failed)) = put {
                let manifest = Manifest::Parts(blocks.clone());
                return Err(self.not_applied(&manifest, failed).await);
            }
        }
        self.publish(name, blocks, metadata).await
    }

    /// Reads an object into memory, with its content wherever that is.
    ///
    /// # Errors
    /// [`Unavailable`].
    pub async fn read_large(&self, name: &Name) -> Result<FoundVersion, Unavailable> {
        loop {
            let mut found = self.read(name, None).await?;
            let Some(manifest) = found.value.as_ref().and_then(manifest_of) else {
                return Ok(found);
            };
            let Some(blocks) = self.blocks(&manifest).await? else {
                continue;
            };
            let gets = blocks.iter();
            let gets = gets.map(|block| self.get_block(blocks.upload, BlockPlace::from(&block)));
            let gets = gather::join(window(blocks.block_bytes()), gets).await;
            let gets = gets.into_iter().collect::<Result<Option<Vec<_>>, _>>()?;
            // Otherwise a larger version is complete.
            if let (Some(contents), Some(value)) = (gets, &mut found.value) {
                value.content = contents.into_iter().flat_map(|v| v.content).collect();
                value.apart = None;
                return Ok(found);
            }
        }
    }
}

/// The version that a write without a condition came to.
fn written(decided: &WriteDecision) -> Tag {
    match decided {
        WriteDecision::Written { tag, .. } => *tag,
        WriteDecision::Conflict(_) => unreachable!("without a condition there is no conflict"),
    }
}

/// The place of the content of a manifest.
pub fn manifest_of(value: &Value) -> Option<Manifest> {
    value.apart?;
    Metadata::decode(&value.metadata).ok()?.blocks
}

/// Blocks of this length that are under way at once, so that their bytes are bounded.
pub fn window(block_bytes: u32) -> usize {
    window_within(limits::WINDOW_BYTES, block_bytes)
}

/// Blocks of this length that are under way at once in `window_bytes`; one at least.
pub fn window_within(window_bytes: u64, block_bytes: u32) -> usize {
    let blocks = window_bytes / u64::from(block_bytes).max(1);
    blocks.clamp(1, limits::BLOCK_WINDOW) as usize
}

/// The decided-once cell of an upload.
pub(super) fn cell(upload: Writer) -> Bytes {
    format!("{PREFIX}{}", digits(upload)).into()
}

/// The upload of this cell, if it is that of one.
pub(super) fn upload_of(cell: &[u8]) -> Option<Writer> {
    parse_writer(std::str::from_utf8(cell).ok()?.strip_prefix(PREFIX)?)
}

/// The decision of an upload's cell.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Fate {
    /// It is a version of an object.
    Commit(Box<Commit>),
    /// It never will be.
    Abort,
    /// It is the seal of a client that ends an upload in parts, and goes on ([`parts`]).
    Ends,
}

/// All that is needed to put the manifest.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Commit {
    pub(super) name: Name,
    pub(super) tag: Tag,
    pub(super) metadata: Bytes,
    /// The number of times that the domain had ceased to be conditional.
    pub(super) era: u32,
}

const NAME: u16 = MUST_UNDERSTAND | 1;
const TAG: u16 = MUST_UNDERSTAND | 2;
const METADATA: u16 = MUST_UNDERSTAND | 3;
const ABORT: u16 = MUST_UNDERSTAND | 4;
/// Left out where it is 0.
const ERA: u16 = MUST_UNDERSTAND | 5;
const ENDS: u16 = MUST_UNDERSTAND | 6;

impl Fate {
    pub(super) fn encode(&self) -> Bytes {
        let mut out = BytesMut::new();
        match self {
            Fate::Abort => tlv::put_field(&mut out, ABORT, &[]),
            Fate::Ends => tlv::put_field(&mut out, ENDS, &[]),
            Fate::Commit(commit) => {
                let mut tag = BytesMut::with_capacity(24);
                tag.put_u64_le(commit.tag.number);
                tag.put_u64_le(commit.tag.writer.client.0);
                tag.put_u64_le(commit.tag.writer.counter);
                tlv::put_field(&mut out, NAME, commit.name.as_bytes());
                tlv::put_field(&mut out, TAG, &tag);
                tlv::put_field(&mut out, METADATA, &commit.metadata);
                if commit.era > 0 {
                    tlv::put_field(&mut out, ERA, &commit.era.to_le_bytes());
                }
            }
        }
        assert!(out.len() <= limits::CELL_BYTES, "its parts are bounded");
        out.freeze()
    }

    pub(super) fn decode(bytes: &Bytes) -> Result<Fate, TlvError> {
        let (mut name, mut tag, mut metadata, mut era) = (None, None, None, 0);
        for field in tlv::fields(bytes) {
            let (kind, value) = field?;
            let invalid = TlvError::Invalid { kind };
            match kind {
                ABORT => return Ok(Fate::Abort),
                ENDS => return Ok(Fate::Ends),
                NAME => name = Some(Name::from_bytes(bytes.slice_ref(value)).map_err(|_| invalid)?),
                TAG => {
                    let mut fields = &tlv::number::<24>(kind, value)?[..];
                    let number = fields.get_u64_le();
                    let client = ClientId(fields.get_u64_le());
                    let counter = fields.get_u64_le();
                    let writer = Writer { client, counter };
                    tag = Some(Tag { number, writer })
                        .filter(Tag::is_possible)
                        .ok_or(invalid)
                        .map(Some)?;
                }
                METADATA => metadata = Some(bytes.slice_ref(value)),
                ERA => era = u32::from_le_bytes(tlv::number(kind, value)?),
                _ => tlv::unknown(kind)?,
            }
        }
        let missing = |kind| TlvError::Missing { kind };
        Ok(Fate::Commit(Box::new(Commit {
            name: name.ok_or(missing(NAME))?,
            tag: tag.ok_or(missing(TAG))?,
            metadata: metadata.ok_or(missing(METADATA))?,
            era,
        })))
    }
}

/// The version that the cell of an upload has committed, if it has: for the checks of decisions.
pub fn committed(decided: &Bytes) -> Option<(Name, Tag)> {
    match Fate::decode(decided) {
        Ok(Fate::Commit(commit)) => Some((commit.name, commit.tag)),
        Ok(Fate::Abort | Fate::Ends) | Err(_) => None,
    }
}

impl Commit {
    /// The list of parts, if the version has one.
    pub(super) fn list(&self) -> Option<PartList> {
        match Metadata::decode(&self.metadata).ok()?.blocks? {
            Manifest::List(list) => Some(list),
            Manifest::Parts(_) => None,
        }
    }

    /// The value of the version.
    pub(super) fn manifest(&self) -> Result<Value, TlvError> {
        let blocks = Metadata::decode(&self.metadata)?.blocks;
        // Its own field, whose number is not repeated here.
        let blocks = blocks.ok_or(TlvError::Missing { kind: METADATA })?;
        Ok(Value::manifest(self.metadata.clone(), blocks.length()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn upload() -> Writer {
        Writer {
            client: ClientId(0xabc),
            counter: 7,
        }
    }

    #[test]
    fn names_of_cells_say_the_upload() {
        let name = block_name(upload(), 258);
        assert!(name.key().as_bytes().starts_with(&cell(upload())));
        assert_eq!(upload_of(&cell(upload())), Some(upload()));
        assert_eq!(upload_of(b"upload-1"), None);
    }

    fn of_first_era(fate: &Fate) -> Fate {
        let mut fate = fate.clone();
        if let Fate::Commit(commit) = &mut fate {
            commit.era = 0;
        }
        fate
    }

    #[test]
    fn the_fate_of_an_upload_survives_its_cell() {
        let blocks = Blocks::new(upload(), 9, 4);
        let metadata = Metadata {
            blocks: Some(blocks.into()),
            ..Metadata::default()
        };
        let commit = Commit {
            name: Name::user("k").unwrap(),
            tag: block_tag(upload()),
            metadata: metadata.encode().unwrap(),
            era: 7,
        };
        assert_eq!(commit.manifest().unwrap().length(), 9);
        for fate in [Fate::Abort, Fate::Ends, Fate::Commit(Box::new(commit))] {
            let encoded = fate.encode();
            assert_eq!(Fate::decode(&encoded), Ok(fate.clone()));
            for end in 0..encoded.len() {
                let cut = Fate::decode(&encoded.slice(..end));
                // Without the last field it is one of the first era.
                let is_of_first_era = cut == Ok(of_first_era(&fate)) && cut != Ok(fate.clone());
                assert!(cut.is_err() || is_of_first_era, "cut at {end}: {cut:?}");
            }
        }
    }
}
