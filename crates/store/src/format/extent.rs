//! The least extent of the log that a start must find, in a file beside it.
//!
//! The log alone cannot say that its newest files are gone, nor a directory that all of them are. The file has two slots, each on a
//! page of its own, and the next extent is written over the older one: after a crash one of the two is whole, and a full disk has
//! room for it.

use crate::checksum::crc32c;

use super::{FORMAT_VERSION, HeaderFault, PAGE, get_u32, get_u64, put_u32, put_u64};

pub(crate) const EXTENT_NAME: &str = "EXTENT";
const MAGIC: u64 = u64::from_le_bytes(*b"AreoExte");
const BYTES: usize = 128;
const SLOTS: usize = 2;
const FLAG_LOST: u32 = 1;

/// The reach of a log: its newest batch, and the segments that must be there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Extent {
    pub(crate) store_id: u64,
    /// Number of writes to the file, from 1.
    pub(crate) generation: u64,
    /// Every segment below this number must be there, unless a census leaves it out.
    pub(crate) next_number: u64,
    /// The newest durable batch, and the segment that it is in; 0 if there was none.
    pub(crate) segment: u64,
    pub(crate) sequence: u64,
    /// Records are missing, of which nothing is known, until the layer above has repaired them.
    pub(crate) is_lost: bool,
    /// A segment out of which recovery cuts a torn batch, and where: it may end there.
    pub(crate) cut_segment: u64,
    pub(crate) cut_at: u64,
}

impl Extent {
    /// The offset in the file at which this extent is written.
    pub(crate) fn offset(&self) -> u64 {
        let offset = self.generation % SLOTS as u64 * PAGE;
        assert!(
            offset + (BYTES as u64) <= Self::file_bytes() as u64,
            "a slot is in the file"
        );
        offset
    }

    pub(crate) fn encode(&self) -> [u8; BYTES] {
        assert!(self.generation > 0, "generations are counted from 1");
        let mut bytes = [0; BYTES];
        put_u64(&mut bytes, 0, MAGIC);
        put_u32(&mut bytes, 8, FORMAT_VERSION);
        put_u32(&mut bytes, 12, if self.is_lost { FLAG_LOST } else { 0 });
        let numbers = [
            self.store_id,
            self.generation,
            self.next_number,
            self.segment,
            self.sequence,
            self.cut_segment,
            self.cut_at,
        ];
        for (at, number) in (16..).step_by(8).zip(numbers) {
            put_u64(&mut bytes, at, number);
        }
        let checksum = crc32c(&bytes[..BYTES - 4]);
        put_u32(&mut bytes, BYTES - 4, checksum);
        bytes
    }

    /// The length of the file in bytes.
    pub(crate) fn file_bytes() -> usize {
        SLOTS * usize::try_from(PAGE).expect("a page is small")
    }

    /// A whole file with this in it.
    pub(crate) fn file(&self) -> Vec<u8> {
        let mut bytes = vec![0; Self::file_bytes()];
        let at = usize::try_from(self.offset()).expect("it is in the file");
        bytes[at..at + BYTES].copy_from_slice(&self.encode());
        bytes
    }

    fn decode(bytes: &[u8]) -> Result<Self, HeaderFault> {
        if bytes.len() < BYTES
            || get_u64(bytes, 0) != MAGIC
            || get_u32(bytes, BYTES - 4) != crc32c(&bytes[..BYTES - 4])
        {
            return Err(HeaderFault::Damaged);
        }
        match get_u32(bytes, 8) {
            FORMAT_VERSION => {}
            other => return Err(HeaderFault::Version(other)),
        }
        Ok(Self {
            store_id: get_u64(bytes, 16),
            generation: get_u64(bytes, 24),
            next_number: get_u64(bytes, 32),
            segment: get_u64(bytes, 40),
            sequence: get_u64(bytes, 48),
            is_lost: get_u32(bytes, 12) & FLAG_LOST != 0,
            cut_segment: get_u64(bytes, 56),
            cut_at: get_u64(bytes, 64),
        })
    }
}

impl Extent {
    /// The newest that is whole in the bytes of the file. A number that cannot be is damage that a checksum did not show.
    pub(crate) fn newest(bytes: &[u8]) -> Result<Option<Self>, HeaderFault> {
        let mut newest: Option<Self> = None;
        for slot in bytes.chunks(usize::try_from(PAGE).expect("a page is small")) {
            match Self::decode(slot) {
                Ok(extent) if extent.is_plausible() => {
                    let is_newer = newest.is_none_or(|it| it.generation < extent.generation);
                    newest = if is_newer { Some(extent) } else { newest };
                }
                Ok(_) | Err(HeaderFault::Damaged) => {}
                Err(version @ HeaderFault::Version(_)) => return Err(version),
            }
        }
        Ok(newest)
    }

    /// Makes the checksums of a file right.
    pub(crate) fn mend(bytes: &mut [u8]) {
        for slot in bytes.chunks_mut(usize::try_from(PAGE).expect("a page is small")) {
            if slot.len() >= BYTES && get_u64(slot, 0) == MAGIC {
                let checksum = crc32c(&slot[..BYTES - 4]);
                put_u32(slot, BYTES - 4, checksum);
            }
        }
    }

    fn is_plausible(&self) -> bool {
        let numbers = [self.generation, self.next_number, self.sequence];
        numbers.iter().all(|it| *it <= super::MAX_SEQUENCE)
            && self.segment < self.next_number.max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extent(generation: u64) -> Extent {
        Extent {
            store_id: 7,
            generation,
            next_number: 9,
            segment: 4,
            sequence: 1234,
            is_lost: generation.is_multiple_of(2),
            cut_segment: 3,
            cut_at: 8192,
        }
    }

    #[test]
    fn the_newest_slot_counts_and_one_that_is_damaged_does_not() {
        let mut bytes = extent(4).file();
        let at = extent(5).offset() as usize;
        bytes[at..at + BYTES].copy_from_slice(&extent(5).encode());
        assert_eq!(Extent::newest(&bytes), Ok(Some(extent(5))));
        for flipped in 0..BYTES {
            let mut rotten = bytes.clone();
            rotten[at + flipped] ^= 4;
            assert_eq!(Extent::newest(&rotten), Ok(Some(extent(4))));
        }
        for length in 0..bytes.len() {
            let newest = match length {
                _ if length >= at + BYTES => Some(extent(5)),
                _ if length >= BYTES && at > 0 => Some(extent(4)),
                _ => None,
            };
            assert_eq!(Extent::newest(&bytes[..length]), Ok(newest), "{length}");
        }
    }

    #[test]
    fn another_version_is_refused_and_numbers_that_cannot_be_are_damage() {
        let mut bytes = extent(4).file();
        let huge = Extent {
            next_number: u64::MAX,
            ..extent(4)
        };
        assert_eq!(Extent::newest(&huge.file()), Ok(None));
        bytes[8] = 9;
        let checksum = crc32c(&bytes[..BYTES - 4]);
        put_u32(&mut bytes, BYTES - 4, checksum);
        assert_eq!(Extent::newest(&bytes), Err(HeaderFault::Version(9)));
    }
}
