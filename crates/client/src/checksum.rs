//! The checksum of a whole value, across its pieces.

use crate::error::Damage;
use crate::{Metadata, Version};
use bytes::Bytes;
use crc_fast::{CrcAlgorithm, Digest};

/// CRC-32C of the pieces one after another.
pub(crate) fn of(pieces: &[Bytes]) -> u32 {
    let mut digest = Digest::new(CrcAlgorithm::Crc32Iscsi);
    for piece in pieces {
        digest.update(piece);
    }
    finish(&digest)
}

/// That of everything that the digest was given.
pub(crate) fn finish(digest: &Digest) -> u32 {
    u32::try_from(digest.finalize()).expect("CRC-32C has 32 bits")
}

/// Compares what was read with what its writer computed. This is the last of several checksums: frames and elements have
/// their own, so that what it finds is a fault of ours or of memory.
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
