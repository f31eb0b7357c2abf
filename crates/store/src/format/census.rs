//! The list of segments that must be there, and of their content.
//!
//! Segments are numbered without gaps, and one may go missing only after a census without it is durable. So a lost segment
//! file differs from a reclaimed one, and the store abstains instead of forgetting
//! `[X-11 damage-abstains]`. That a segment is whole is said by the batch that follows it, too, but that one may have been reclaimed.

use bytes::Bytes;

use super::{MAX_SEQUENCE, get_u64, put_u64};

/// The header of the record: the payload has entries of 16 bytes. Without it they are numbers of segments.
const WITH_SEQUENCES: &[u8] = &[1];

/// The payload of an internal record. Of several, the one with the largest generation counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Census {
    /// Counts the censuses of a log, from 1. The sequence of the batch would not do: one batch can hold several.
    pub(crate) generation: u64,
    /// Every number above this must be there, too.
    pub(crate) horizon: u64,
    /// The segments up to `horizon` that must be there.
    pub(crate) entries: Vec<CensusEntry>,
}

/// A segment that must be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CensusEntry {
    pub(crate) number: u64,
    /// Its batches up to this one must be there, too; 0 if it had none, or is missing.
    pub(crate) last_sequence: u64,
}

impl Census {
    /// The header of its record.
    pub(crate) fn header() -> &'static [u8] {
        WITH_SEQUENCES
    }

    /// Length of the payload with this number of entries, in bytes.
    pub(crate) fn length(entries: usize) -> usize {
        16 + 16 * entries
    }

    pub(crate) fn encode(&self) -> Bytes {
        assert!(self.generation > 0, "censuses are counted from 1");
        assert!(
            self.entries.is_sorted_by_key(|it| it.number),
            "a segment is listed once"
        );
        let mut bytes = vec![0; Self::length(self.entries.len())];
        put_u64(&mut bytes, 0, self.generation);
        put_u64(&mut bytes, 8, self.horizon);
        for (entry, chunk) in self.entries.iter().zip(bytes[16..].chunks_exact_mut(16)) {
            put_u64(chunk, 0, entry.number);
            put_u64(chunk, 8, entry.last_sequence);
        }
        Bytes::from(bytes)
    }

    /// The caller has verified the checksums of header and payload; `None` if it is no census all the same.
    pub(crate) fn decode(header: &[u8], bytes: &[u8]) -> Option<Self> {
        let size = match header {
            [] => 8,
            WITH_SEQUENCES => 16,
            _ => return None,
        };
        if bytes.len() < 16 || !(bytes.len() - 16).is_multiple_of(size) {
            return None;
        }
        let entry = |b: &[u8]| CensusEntry {
            number: get_u64(b, 0),
            last_sequence: if b.len() == 16 { get_u64(b, 8) } else { 0 },
        };
        let census = Self {
            generation: get_u64(bytes, 0),
            horizon: get_u64(bytes, 8),
            entries: bytes[16..].chunks_exact(size).map(entry).collect(),
        };
        // Segments and censuses are made by batches, so there are no more of them.
        let is_plausible = census.generation.max(census.horizon) <= MAX_SEQUENCE
            && census
                .entries
                .iter()
                .all(|it| it.last_sequence <= MAX_SEQUENCE);
        is_plausible.then_some(census)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comes_back() {
        for numbers in [vec![], vec![1], vec![4, 9, u64::MAX]] {
            let entry = |number: &u64| CensusEntry {
                number: *number,
                last_sequence: number / 4,
            };
            let census = Census {
                generation: 5,
                horizon: 11,
                entries: numbers.iter().map(entry).collect(),
            };
            let bytes = census.encode();
            let header = Census::header();
            assert_eq!(Census::decode(header, &bytes), Some(census));
            assert_eq!(Census::decode(header, &bytes[..bytes.len() - 1]), None);
            assert_eq!(Census::decode(&[2], &bytes), None);
        }
        assert_eq!(Census::decode(&[], &[0; 8]), None);
    }

    #[test]
    fn one_without_sequences_is_read() {
        let mut bytes = [0; 24];
        put_u64(&mut bytes, 0, 5);
        put_u64(&mut bytes, 16, 3);
        let census = Census::decode(&[], &bytes).expect("it is one");
        let entry = CensusEntry {
            number: 3,
            last_sequence: 0,
        };
        assert_eq!(census.entries, [entry]);
    }
}
