//! CRC-32C (Castagnoli), the one checksum of this format.

pub use areo_wire::checksum::{Crc32c, crc32c};
use bytes::Bytes;

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

#[cfg(test)]
mod tests {
    use super::*;

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
