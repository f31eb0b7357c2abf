//! Content-defined chunking (4.3, step 1): where content is cut depends on the content around the cut, not on its place, so
//! that an insertion changes the chunks that it touches and no others.
//!
//! [`Rabin`] is the papers' choice. Others stand behind the same trait: the client library's default is `FastCDC`, whose
//! implementation is a dependency that this crate does without.

use crate::limits;
use std::fmt;

/// Bytes that no chunk but the last is shorter than, roughly has, and is never longer than.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sizes {
    min: usize,
    avg: usize,
    max: usize,
}

/// Bytes of the smallest chunk that may be asked for.
pub const MIN_BYTES: usize = 4 << 10;
/// Bytes of the largest one.
pub const MAX_BYTES: usize = 64 << 20;
const _: () = assert!(
    MIN_BYTES == limits::MIN_BLOCK_BYTES as usize,
    "a chunk is a block's"
);
const _: () = assert!(
    MAX_BYTES == limits::MAX_BLOCK_BYTES as usize,
    "a chunk is a block's"
);

impl Default for Sizes {
    fn default() -> Sizes {
        Sizes {
            min: 512 << 10,
            avg: 1 << 20,
            max: 2 << 20,
        }
    }
}

/// Sizes that cannot be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InvalidSizes {
    /// Not min ≤ avg ≤ max.
    Order { min: usize, avg: usize, max: usize },
    /// A bound is outside [`MIN_BYTES`] to [`MAX_BYTES`].
    Outside { bytes: usize },
}

impl fmt::Display for InvalidSizes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            InvalidSizes::Order { min, avg, max } => write!(
                f,
                "blocks of at least {min}, about {avg} and at most {max} bytes cannot be: the sizes must ascend"
            ),
            InvalidSizes::Outside { bytes } => {
                write!(f, "blocks have 4 KiB to 64 MiB, not {bytes} bytes")
            }
        }
    }
}

impl std::error::Error for InvalidSizes {}

impl Sizes {
    /// Sizes in bytes.
    ///
    /// # Errors
    /// [`InvalidSizes`].
    pub fn new(min: usize, avg: usize, max: usize) -> Result<Sizes, InvalidSizes> {
        let outside = |bytes: &usize| !(MIN_BYTES..=MAX_BYTES).contains(bytes);
        if let Some(bytes) = [min, avg, max].into_iter().find(outside) {
            return Err(InvalidSizes::Outside { bytes });
        }
        match min <= avg && avg <= max {
            true => Ok(Sizes { min, avg, max }),
            false => Err(InvalidSizes::Order { min, avg, max }),
        }
    }

    /// Bytes of the shortest chunk that is not the last.
    pub fn min(self) -> usize {
        self.min
    }

    /// Bytes of a chunk, about.
    pub fn avg(self) -> usize {
        self.avg
    }

    /// Bytes of the longest chunk.
    pub fn max(self) -> usize {
        self.max
    }
}

/// A way to cut content.
pub trait Divide {
    /// The bounds of the sizes of its chunks.
    fn sizes(&self) -> Sizes;

    /// The length of the first chunk of `content`, which begins with a chunk and is the whole rest or at least as long as
    /// the longest chunk. A function of these bytes alone, so that all clients cut alike. Not 0 unless there is no content.
    fn first(&self, content: &[u8]) -> usize;

    /// The lengths of all chunks of `content`.
    fn divide(&self, content: &[u8]) -> Vec<usize> {
        let (mut lengths, mut rest) = (Vec::new(), content);
        while !rest.is_empty() {
            let length = self.first(rest);
            assert!(
                (1..=self.sizes().max()).contains(&length),
                "a chunk has bytes, and no more than it may"
            );
            lengths.push(length);
            rest = &rest[length..];
        }
        lengths
    }
}

/// Cuts where the Rabin fingerprint of the last [`WINDOW`] bytes, modulo the number of bytes that a chunk has beyond the
/// shortest on average, is one less than that.
#[derive(Clone)]
pub struct Rabin {
    sizes: Sizes,
    tables: Box<Tables>,
}

/// Bytes that decide about a cut after them.
pub const WINDOW: usize = 64;
/// An irreducible polynomial of degree 53 over GF(2).
const POLYNOMIAL: u64 = 0x003d_a335_8b4d_c173;
const DEGREE: u32 = 53;
const _: () = assert!(POLYNOMIAL >> DEGREE == 1, "it is of this degree");
const _: () = assert!(
    DEGREE + u8::BITS <= u64::BITS,
    "a shift by a byte loses nothing"
);
const _: () = assert!(WINDOW <= MIN_BYTES, "a window before a cut is of one chunk");

#[derive(Clone)]
struct Tables {
    /// For each value of the bits that a shift moves beyond the degree: the polynomial that removes them.
    reduce: [u64; 256],
    /// For each byte its share in the fingerprint when it leaves the window.
    leave: [u64; 256],
}

impl Tables {
    fn new() -> Tables {
        let mut tables = Tables {
            reduce: [0; 256],
            leave: [0; 256],
        };
        for byte in 0..256 {
            let high = (byte as u64) << DEGREE;
            tables.reduce[byte] = remainder(high) | high;
        }
        for byte in 0..256 {
            let mut fingerprint = tables.append(0, byte as u8);
            for _ in 1..WINDOW {
                fingerprint = tables.append(fingerprint, 0);
            }
            assert!(fingerprint >> DEGREE == 0, "a fingerprint is a remainder");
            tables.leave[byte] = fingerprint;
        }
        tables
    }

    /// The fingerprint with one more byte.
    fn append(&self, fingerprint: u64, byte: u8) -> u64 {
        let shifted = (fingerprint << 8) | u64::from(byte);
        shifted ^ self.reduce[(shifted >> DEGREE) as usize & 0xff]
    }
}

/// The remainder of a polynomial of a degree up to 60.
fn remainder(mut polynomial: u64) -> u64 {
    for bit in (DEGREE..61).rev() {
        if polynomial >> bit & 1 == 1 {
            polynomial ^= POLYNOMIAL << (bit - DEGREE);
        }
    }
    polynomial
}

impl Rabin {
    /// A chunker with these bounds.
    pub fn new(sizes: Sizes) -> Rabin {
        Rabin {
            sizes,
            tables: Box::new(Tables::new()),
        }
    }
}

impl Divide for Rabin {
    fn sizes(&self) -> Sizes {
        self.sizes
    }

    fn first(&self, content: &[u8]) -> usize {
        let Sizes { min, avg, max } = self.sizes;
        let most = content.len().min(max);
        if most <= min {
            return most;
        }
        let modulus = match avg - min {
            0 => avg,
            beyond => beyond,
        } as u64;
        let (tables, mut fingerprint) = (&*self.tables, 0);
        for byte in &content[min - WINDOW..min] {
            fingerprint = tables.append(fingerprint, *byte);
        }
        for length in min..most {
            if fingerprint % modulus == modulus - 1 {
                return length;
            }
            let gone = tables.leave[usize::from(content[length - WINDOW])];
            fingerprint = tables.append(fingerprint ^ gone, content[length]);
        }
        most
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes that look random, always the same.
    fn content(length: usize) -> Vec<u8> {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let next = |_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 32) as u8
        };
        (0..length).map(next).collect()
    }

    fn rabin(min: usize, avg: usize, max: usize) -> Rabin {
        Rabin::new(Sizes::new(min << 10, avg << 10, max << 10).unwrap())
    }

    fn chunks(by: &Rabin, content: &[u8]) -> Vec<Vec<u8>> {
        let mut rest = content;
        let cut = |length: usize| {
            let (chunk, after) = rest.split_at(length);
            rest = after;
            chunk.to_vec()
        };
        by.divide(content).into_iter().map(cut).collect()
    }

    #[test]
    fn a_fingerprint_is_that_of_the_window_alone() {
        let tables = Tables::new();
        let bytes = content(1000);
        let over = |bytes: &[u8]| {
            let append = |fingerprint, byte: &u8| tables.append(fingerprint, *byte);
            bytes.iter().fold(0, append)
        };
        let mut rolling = over(&bytes[..WINDOW]);
        for end in WINDOW..bytes.len() {
            assert_eq!(rolling, over(&bytes[end - WINDOW..end]));
            assert!(rolling < 1 << DEGREE);
            let gone = tables.leave[usize::from(bytes[end - WINDOW])];
            rolling = tables.append(rolling ^ gone, bytes[end]);
        }
    }

    /// All clients must cut alike, for ever: other cuts are other blocks.
    #[test]
    fn cuts_are_golden() {
        let cut = rabin(4, 8, 16).divide(&content(100_000));
        assert_eq!(cut, GOLDEN);
    }

    const GOLDEN: [usize; 11] = [
        9192, 6263, 4764, 9723, 10348, 12061, 8557, 4262, 11790, 9309, 13731,
    ];

    #[test]
    fn sizes_are_kept() {
        for (min, avg, max) in [(4, 8, 16), (4, 4, 8), (8, 8, 8)] {
            let lengths = rabin(min, avg, max).divide(&content(1 << 20));
            let (last, others) = lengths.split_last().unwrap();
            assert!(
                others
                    .iter()
                    .all(|length| (min << 10..=max << 10).contains(length))
            );
            assert!(*last <= max << 10);
            assert_eq!(lengths.iter().sum::<usize>(), 1 << 20);
        }
        let mean = (4 << 20) / rabin(4, 8, 64).divide(&content(4 << 20)).len();
        assert!((7 << 10..9 << 10).contains(&mean), "about 8 KiB: {mean}");
        assert_eq!(rabin(4, 8, 16).divide(&[]), [0; 0]);
        assert_eq!(rabin(4, 8, 16).divide(&[1]), [1]);
        let zeros = rabin(4, 8, 16).divide(&vec![0; 40 << 10]);
        assert_eq!(zeros, [16 << 10, 16 << 10, 8 << 10], "nothing to cut at");
    }

    #[test]
    fn an_insertion_changes_the_chunks_that_it_touches() {
        let by = rabin(4, 8, 16);
        let old = content(1 << 20);
        let before = chunks(&by, &old);
        for at in [0, 300_000, old.len()] {
            let mut new = old.clone();
            new.insert(at, 7);
            let after = chunks(&by, &new);
            let unknown = after.iter().filter(|chunk| !before.contains(chunk)).count();
            assert!(unknown <= 2, "{unknown} of {} at {at}", after.len());
        }
    }

    #[test]
    fn sizes_that_cannot_be_are_refused() {
        let kib = |min: usize, avg: usize, max: usize| Sizes::new(min << 10, avg << 10, max << 10);
        assert!(kib(512, 512, 1024).is_ok(), "the papers'");
        assert!(kib(4, 4, 64 << 10).is_ok());
        for (min, avg, max) in [(8, 4, 16), (4, 16, 8)] {
            assert!(matches!(
                kib(min, avg, max),
                Err(InvalidSizes::Order { .. })
            ));
        }
        let outside = |bytes| Err(InvalidSizes::Outside { bytes });
        assert_eq!(Sizes::new(4095, 8192, 8192), outside(4095));
        assert_eq!(kib(4, 8, (64 << 10) + 1), outside((64 << 20) + 1024));
    }
}
