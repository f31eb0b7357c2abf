//! Which segments must be there.
//!
//! Segments are numbered without gaps, and one may go missing only after a census without it is durable. So a lost segment
//! file differs from a reclaimed one, and the store abstains instead of forgetting
//! `[X-11 damage-abstains]`.

use bytes::Bytes;

use super::{MAX_SEQUENCE, get_u64, put_u64};

/// The payload of an internal record. Of several, the one with the largest generation counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Census {
    /// Counts the censuses of a log, from 1. The sequence of the batch would not do: one batch can hold several.
    pub(crate) generation: u64,
    /// Every number above this must be there, too.
    pub(crate) horizon: u64,
    /// The numbers up to `horizon` that must be there.
    pub(crate) numbers: Vec<u64>,
}

impl Census {
    pub(crate) fn encode(&self) -> Bytes {
        assert!(self.generation > 0, "censuses are counted from 1");
        let mut bytes = vec![0; 16 + 8 * self.numbers.len()];
        put_u64(&mut bytes, 0, self.generation);
        put_u64(&mut bytes, 8, self.horizon);
        for (number, chunk) in self.numbers.iter().zip(bytes[16..].chunks_exact_mut(8)) {
            put_u64(chunk, 0, *number);
        }
        Bytes::from(bytes)
    }

    /// The caller has verified the checksum; `None` if it is no census all the same.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        if bytes.len() < 16 || !bytes.len().is_multiple_of(8) {
            return None;
        }
        let census = Self {
            generation: get_u64(bytes, 0),
            horizon: get_u64(bytes, 8),
            numbers: bytes[16..].chunks_exact(8).map(|b| get_u64(b, 0)).collect(),
        };
        // Segments and censuses are made by batches, so there are no more of them.
        let is_plausible = census.generation.max(census.horizon) <= MAX_SEQUENCE;
        is_plausible.then_some(census)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comes_back() {
        for numbers in [vec![], vec![1], vec![4, 9, u64::MAX]] {
            let census = Census {
                generation: 5,
                horizon: 11,
                numbers,
            };
            let bytes = census.encode();
            assert_eq!(Census::decode(&bytes), Some(census));
            assert_eq!(Census::decode(&bytes[..bytes.len() - 1]), None);
        }
        assert_eq!(Census::decode(&[0; 8]), None);
    }
}
