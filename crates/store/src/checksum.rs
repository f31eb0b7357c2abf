//! CRC-32C (Castagnoli), the one checksum of this format.

use bytes::Bytes;
use crc_fast::{CrcAlgorithm, Digest};

/// CRC-32C of one slice.
pub fn crc32c(bytes: &[u8]) -> u32 {
    crc_fast::crc32_iscsi(bytes)
}

/// CRC-32C of the concatenation of `parts`, without concatenating them: what [`crate::Log::append`] expects as the
/// checksum of a payload.
pub fn crc32c_of_parts(parts: &[Bytes]) -> u32 {
    match parts {
        [] => crc32c(&[]),
        [one] => crc32c(one),
        many => {
            let mut digest = Crc32c::default();
            for part in many {
                digest.update(part);
            }
            digest.finish()
        }
    }
}

/// A CRC-32C over bytes that arrive in pieces.
pub struct Crc32c(Digest);

impl Default for Crc32c {
    fn default() -> Self {
        Self(Digest::new(CrcAlgorithm::Crc32Iscsi))
    }
}

impl Crc32c {
    /// Adds the next bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The checksum of everything added.
    pub fn finish(&self) -> u32 {
        u32::try_from(self.0.finalize()).expect("a 32-bit CRC")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_crc_32_iscsi() {
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
        assert_eq!(crc32c(b""), 0);
    }

    #[test]
    fn parts_equal_the_whole() {
        let whole: Vec<u8> = (0..5000u32).map(|i| (i * 7) as u8).collect();
        for cut in [0, 1, 63, 64, 4999, 5000] {
            let parts = [
                Bytes::copy_from_slice(&whole[..cut]),
                Bytes::copy_from_slice(&whole[cut..]),
            ];
            assert_eq!(crc32c_of_parts(&parts), crc32c(&whole));
        }
    }
}
