//! The base of a local file: the blocks as they were when it was last pushed or pulled.

use super::BlockInfo;
use super::chunking::{Chunking, Method};
use areo_core::fragment::Digest;
use areo_core::fragment::block::Metadata;
use areo_core::fragment::divide::MAX_BYTES;
use areo_core::fragment::file::{Block, Chain};
use areo_core::tag::{ClientId, Tag, Writer};
use bytes::{Buf, BufMut, Bytes, TryGetError};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The version that a local file is based on. With it a push writes the local changes, and no part that others have
/// changed meanwhile; and a pull fetches the changes of others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Base {
    pub(crate) chain: Chain,
    pub(super) chunking: Chunking,
}

const MAGIC: &[u8; 12] = b"areo-base-1\n";
const BLOCK_LEAST_BYTES: usize = 24 + 8 + 4;

impl Base {
    /// The rule by which the file was cut.
    pub fn chunking(&self) -> Chunking {
        self.chunking
    }

    /// The blocks, in the order of the file, the genesis block first; as they were.
    pub fn blocks(&self) -> Vec<BlockInfo> {
        self.chain.blocks.iter().map(BlockInfo::from).collect()
    }

    /// The path of the base of a local file: in `directory`, one file for each domain, file and local path.
    pub fn place(directory: &Path, domain_id: &str, name: &str, local: &Path) -> PathBuf {
        let local = std::path::absolute(local).unwrap_or_else(|_| local.into());
        let mut hasher = blake3::Hasher::new();
        for part in [domain_id.as_bytes(), name.as_bytes()] {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
        hasher.update(local.as_os_str().as_encoded_bytes());
        directory.join(format!("{}.base", hasher.finalize().to_hex()))
    }

    /// Reads a base; `None` if there is none, or if it cannot be read: then the file is compared with the stored one.
    pub fn load(place: &Path) -> Option<Base> {
        Base::decode(&fs::read(place).ok()?)
    }

    /// Keeps a base, complete or not at all. That of a file that does not exist is none.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn save(&self, place: &Path) -> io::Result<()> {
        if !self.chain.exists {
            return Ok(());
        }
        let folder = place.parent().unwrap_or_else(|| Path::new("."));
        fs::create_dir_all(folder)?;
        let beside = tempfile::NamedTempFile::new_in(folder)?;
        fs::write(beside.path(), self.encode())?;
        beside.persist(place)?;
        Ok(())
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        Base::checked(&self.body())
    }

    /// The kept bytes, with their checksum.
    pub(crate) fn checked(body: &[u8]) -> Vec<u8> {
        [MAGIC, &blake3::hash(body).as_bytes()[..], body].concat()
    }

    pub(crate) fn body(&self) -> Vec<u8> {
        let mut body = Vec::new();
        body.put_u8(match self.chunking.method() {
            Method::FastCdc => 0,
            Method::Rabin => 1,
        });
        let (min, avg, max) = self.chunking.sizes();
        for size in [min, avg, max] {
            body.put_u64_le(size as u64);
        }
        body.put_u64_le(self.chain.hinted as u64);
        for block in &self.chain.blocks {
            put_writer(&mut body, block.id);
            body.put_u64_le(block.version.number);
            put_writer(&mut body, Some(block.version.writer));
            body.put_u64_le(block.length);
            put_writer(&mut body, block.metadata.next);
            let digest = block.metadata.digest;
            body.put_u8(digest.is_some().into());
            body.put_slice(digest.as_ref().map_or(&[], |digest| &digest.0));
        }
        body
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<Base> {
        let rest = bytes.strip_prefix(MAGIC)?;
        let (checksum, body) = rest.split_at_checked(blake3::OUT_LEN)?;
        if blake3::hash(body).as_bytes()[..] != *checksum {
            return None;
        }
        let mut body = Bytes::copy_from_slice(body);
        let method = match body.try_get_u8().ok()? {
            0 => Method::FastCdc,
            1 => Method::Rabin,
            _ => return None,
        };
        let mut size = || usize::try_from(body.try_get_u64_le().ok()?).ok();
        let (min, avg, max, hinted) = (size()?, size()?, size()?, size()?);
        let chunking = Chunking::new(method, min, avg, max).ok()?;
        let mut blocks = Vec::with_capacity(body.len() / BLOCK_LEAST_BYTES);
        while body.has_remaining() {
            blocks.push(block(&mut body)?);
        }
        let chain = Chain {
            blocks,
            hinted,
            exists: true,
        };
        (!chain.blocks.is_empty()).then_some(Base { chain, chunking })
    }
}

fn put_writer(out: &mut Vec<u8>, writer: Option<Writer>) {
    out.put_u8(writer.is_some().into());
    if let Some(Writer { client, counter }) = writer {
        out.put_u64_le(client.0);
        out.put_u64_le(counter);
    }
}

fn writer(body: &mut Bytes) -> Result<Option<Writer>, TryGetError> {
    if body.try_get_u8()? == 0 {
        return Ok(None);
    }
    let client = ClientId(body.try_get_u64_le()?);
    let counter = body.try_get_u64_le()?;
    Ok(Some(Writer { client, counter }))
}

fn digest(body: &mut Bytes) -> Result<Option<Digest>, TryGetError> {
    if body.try_get_u8()? == 0 {
        return Ok(None);
    }
    let mut digest = [0; blake3::OUT_LEN];
    body.try_copy_to_slice(&mut digest)?;
    Ok(Some(Digest(digest)))
}

fn block(body: &mut Bytes) -> Option<Block> {
    let id = writer(body).ok()?;
    let number = body.try_get_u64_le().ok()?;
    let version = Some(Tag {
        number,
        writer: writer(body).ok()??,
    });
    let version = version.filter(Tag::is_possible)?;
    let length = body.try_get_u64_le().ok()?;
    // No client makes larger ones, and no part of a local file of that length is read at once.
    if length > MAX_BYTES as u64 {
        return None;
    }
    let (next, digest) = (writer(body).ok()?, digest(body).ok()?);
    let metadata = Metadata {
        next,
        digest,
        written_at_ms: None,
    };
    Some(Block {
        id,
        version,
        length,
        metadata,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Base {
        /// A base to begin with.
        pub(crate) fn examples() -> [Base; 2] {
            let mut empty = base();
            empty.chain.blocks.truncate(1);
            [base(), empty]
        }
    }

    fn base() -> Base {
        let id = |counter| Writer {
            client: ClientId(7),
            counter,
        };
        let block = |counter: u64, next| Block {
            id: (counter > 0).then(|| id(counter)),
            version: Tag::first(id(counter + 10)),
            length: counter * 100,
            metadata: Metadata {
                next,
                digest: (counter > 0).then_some(Digest([counter as u8; 32])),
                written_at_ms: None,
            },
        };
        Base {
            chain: Chain {
                blocks: vec![block(0, Some(id(1))), block(1, Some(id(2))), block(2, None)],
                hinted: 2,
                exists: true,
            },
            chunking: Chunking::new(Method::Rabin, 4096, 8192, 8192).unwrap(),
        }
    }

    #[test]
    fn a_base_is_kept_and_a_damaged_one_is_none() {
        let directory = tempfile::tempdir().unwrap();
        let place = Base::place(
            &directory.path().join("a"),
            "1f",
            "notes",
            Path::new("notes.txt"),
        );
        assert_ne!(
            place,
            Base::place(
                &directory.path().join("a"),
                "1f",
                "note",
                Path::new("snotes.txt")
            )
        );
        assert_eq!(Base::load(&place), None);
        base().save(&place).unwrap();
        assert_eq!(Base::load(&place), Some(base()));
        let bytes = fs::read(&place).unwrap();
        for damage in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[damage] ^= 1;
            assert_eq!(Base::decode(&damaged), None, "byte {damage}");
            assert_eq!(Base::decode(&bytes[..damage]), None, "{damage} bytes");
        }
    }
}
