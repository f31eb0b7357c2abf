//! The checksum of a whole value, across its pieces.

use crate::error::Damage;
use crate::object::Metadata;
use areo_core::tag::Tag as Version;
use bytes::Bytes;
use crc_fast::{CrcAlgorithm, Digest};
use std::io::{self, Read};

/// Bytes that are read at once.
const READ_BYTES: usize = 256 << 10;

/// The length and the checksum of a value outside of the store, to be compared with [`Metadata::checksum`] of an object: CRC-32C of all
/// bytes.
///
/// # Errors
/// Those of the source.
pub fn checksum_of(mut source: impl Read) -> io::Result<(u64, u32)> {
    let (mut digest, mut bytes) = (Digest::new(CrcAlgorithm::Crc32Iscsi), 0);
    let mut piece = vec![0; READ_BYTES];
    loop {
        match source.read(&mut piece) {
            Ok(0) => return Ok((bytes, finish(&digest))),
            Ok(read) => {
                digest.update(&piece[..read]);
                bytes += read as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// CRC-32C of the pieces one after another.
pub(crate) fn of(pieces: &[Bytes]) -> u32 {
    let mut digest = Digest::new(CrcAlgorithm::Crc32Iscsi);
    for piece in pieces {
        digest.update(piece);
    }
    finish(&digest)
}

/// The checksum of everything that the digest was given.
pub(crate) fn finish(digest: &Digest) -> u32 {
    u32::try_from(digest.finalize()).expect("CRC-32C has 32 bits")
}

/// Compares the value that was read with the checksum of its writer. It is the last of several checksums: frames and
/// elements have their own, so that a difference here is a fault of this software or of memory.
///
/// # Errors
/// [`Damage::Checksum`].
pub(crate) fn verify(
    pieces: &[Bytes],
    metadata: &Metadata,
    version: Version,
) -> Result<(), Damage> {
    let Some(expected) = metadata.checksum else {
        return Ok(());
    };
    let found = of(pieces);
    if found == expected {
        Ok(())
    } else {
        Err(Damage::Checksum {
            version,
            expected,
            found,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_make_the_checksum_of_the_whole() {
        // The check value of CRC-32C.
        let whole = Bytes::from_static(b"123456789");
        assert_eq!(of(std::slice::from_ref(&whole)), 0xe306_9283);
        for split in 0..=whole.len() {
            let pieces = [whole.slice(..split), whole.slice(split..)];
            assert_eq!(of(&pieces), 0xe306_9283, "{split}");
        }
        assert_eq!(of(&[]), 0);
    }

    #[test]
    fn a_source_has_the_checksum_of_its_value() {
        assert_eq!(checksum_of(&b"123456789"[..]).unwrap(), (9, 0xe306_9283));
        let long = vec![7; READ_BYTES + 1];
        let expected = of(&[Bytes::from(long.clone())]);
        assert_eq!(
            checksum_of(&long[..]).unwrap(),
            (READ_BYTES as u64 + 1, expected)
        );
        assert_eq!(checksum_of(io::empty()).unwrap(), (0, 0));
    }

    #[test]
    fn every_flipped_bit_is_found() {
        let whole = Bytes::from_static(b"areo");
        let metadata = Metadata {
            checksum: Some(of(std::slice::from_ref(&whole))),
            ..Metadata::default()
        };
        let version = Version::INITIAL;
        assert_eq!(
            verify(std::slice::from_ref(&whole), &metadata, version),
            Ok(())
        );
        for bit in 0..32 {
            let mut flipped = whole.to_vec();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(
                verify(&[flipped.into()], &metadata, version).is_err(),
                "{bit}"
            );
        }
        assert_eq!(
            verify(&[], &Metadata::default(), version),
            Ok(()),
            "none to compare with"
        );
    }
}
