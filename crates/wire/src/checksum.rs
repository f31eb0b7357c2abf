//! CRC-32C (Castagnoli): of frames, of elements, of records.

use crc_fast::{CrcAlgorithm, Digest};

/// CRC-32C of one slice.
pub fn crc32c(bytes: &[u8]) -> u32 {
    crc_fast::crc32_iscsi(bytes)
}

/// A CRC-32C over bytes that come in pieces.
#[derive(Clone, Debug)]
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
        assert_eq!(Crc32c::default().finish(), 0);
    }

    #[test]
    fn pieces_equal_the_whole() {
        let whole: Vec<u8> = (0..5000u32).map(|i| (i * 7) as u8).collect();
        for piece in [1, 63, 64, 4999, 5000] {
            let mut digest = Crc32c::default();
            whole.chunks(piece).for_each(|bytes| digest.update(bytes));
            assert_eq!(digest.finish(), crc32c(&whole));
        }
    }
}
