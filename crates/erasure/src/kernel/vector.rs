//! The common part of the vector kernels: the tiling of outputs and positions into registers and caches.
//!
//! The functions are generic over the registers and always inlined into a function per kernel that enables the
//! instructions; compiled on their own they would not have them.

#![allow(
    clippy::inline_always,
    reason = "must be compiled within a function that enables the instructions"
)]

use std::ops::Range;

use super::BLOCK;
use super::Term;

/// Bytes of terms that one pass over a stretch may touch so that the next pass finds them in the nearest cache.
const CACHE_BYTES: usize = 32 * 1024;
/// A stretch is not made shorter than this: below it the start of a pass costs more than the cache saves.
const SHORTEST_STRETCH: usize = 1024;

/// Distance in bytes between the prefetch of an input and its use. The processor's own prefetching stops at pages and
/// loses track of many inputs at once: without this, values beyond the caches took up to a quarter longer.
const PREFETCH: usize = 512;

/// A register of an instruction set, and arithmetic on it.
///
/// # Safety of every function
///
/// The processor must have the instruction set.
pub(super) trait Vector: Copy {
    /// The size of the register in bytes; divides [`BLOCK`].
    const BYTES: usize;
    /// The number of outputs that are computed in one pass over the terms.
    const MOST_OUTPUTS: usize;
    /// A multiplier as the instructions take it.
    type Factor: Copy;
    /// A register of input as the multiplication takes it, prepared once for all outputs.
    type Prepared: Copy;

    /// A register with zeros.
    unsafe fn zero() -> Self;
    /// Reads [`Self::BYTES`] bytes, which must be readable, from any alignment.
    unsafe fn load(from: *const u8) -> Self;
    /// Writes [`Self::BYTES`] bytes, which must be writable, to any alignment.
    unsafe fn store(self, to: *mut u8);
    /// Fetches the multiplier for a coefficient.
    unsafe fn factor(coefficient: u8) -> Self::Factor;
    /// Prepares input for [`Vector::add_product`].
    unsafe fn prepare(self) -> Self::Prepared;
    /// This register plus the product.
    unsafe fn add_product(self, input: Self::Prepared, factor: Self::Factor) -> Self;
    /// This register plus two products: fewer instructions where one adds three registers.
    #[inline(always)]
    unsafe fn add_products(
        self,
        [first, second]: [Self::Prepared; 2],
        factors: [Self::Factor; 2],
    ) -> Self {
        // SAFETY: the caller vouches for the instructions.
        unsafe {
            let sum = self.add_product(first, factors[0]);
            sum.add_product(second, factors[1])
        }
    }

    /// Asks for the cache line at an address, which may be any, to be fetched.
    #[inline(always)]
    unsafe fn prefetch(_address: *const u8) {}

    /// Calls [`pass`] for `outputs` (at most [`Self::MOST_OUTPUTS`]) with as many registers per output as fit.
    ///
    /// The conditions of [`pass`] must hold.
    unsafe fn pass(
        terms: &[Term<'_>],
        first_output: usize,
        outputs: &mut [&mut [u8]],
        range: Range<usize>,
    );
}

/// [`Vector::pass`]: for each number of outputs, the registers of each of them.
macro_rules! passes {
    ($($outputs:literal => $wide:literal),+) => {
        #[inline(always)]
        unsafe fn pass(
            terms: &[Term<'_>],
            first_output: usize,
            outputs: &mut [&mut [u8]],
            range: Range<usize>,
        ) {
            // SAFETY: the caller's promise, and the match says how many outputs there are.
            unsafe {
                match outputs.len() {
                    $($outputs => vector::pass::<Self, $outputs, $wide>(terms, first_output, outputs, range),)+
                    count => unreachable!("a pass takes at most {} outputs, not {count}", Self::MOST_OUTPUTS),
                }
            }
        }
    };
}
pub(super) use passes;

/// Sums every output over the range, [`Vector::MOST_OUTPUTS`] at a time.
///
/// # Safety
///
/// The processor has the instructions of `V`; the conditions asserted by `Engine::combine` hold.
#[inline(always)]
pub(super) unsafe fn combine<V: Vector>(
    terms: &[Term<'_>],
    outputs: &mut [&mut [u8]],
    range: Range<usize>,
) {
    let passes = outputs.len().div_ceil(V::MOST_OUTPUTS);
    if passes == 0 {
        return;
    }
    // Equal shares: five outputs in groups of at most four are three and two, not four and one.
    let share = outputs.len().div_ceil(passes);
    let stretch = if passes == 1 {
        range.len()
    } else {
        stretch_length(terms.len())
    };
    let mut start = range.start;
    while start < range.end {
        let end = range.end.min(start + stretch);
        for (pass, group) in outputs.chunks_mut(share).enumerate() {
            // SAFETY: a group is at most MOST_OUTPUTS long, and the range a part of the caller's in whole blocks.
            unsafe { V::pass(terms, pass * share, group, start..end) };
        }
        start = end;
    }
}

fn stretch_length(terms: usize) -> usize {
    (CACHE_BYTES / terms.max(1)).max(SHORTEST_STRETCH) / BLOCK * BLOCK
}

/// Sums `OUTPUTS` outputs over the range, with `WIDE` registers of each at a time.
///
/// # Safety
///
/// The processor has the instructions of `V`. `outputs` are exactly `OUTPUTS`. Every term and every output is at least
/// `range.end` long and the range a whole number of blocks. Every term has a coefficient at `first_output + i` for
/// every output i.
#[inline(always)]
pub(super) unsafe fn pass<V: Vector, const OUTPUTS: usize, const WIDE: usize>(
    terms: &[Term<'_>],
    first_output: usize,
    outputs: &mut [&mut [u8]],
    range: Range<usize>,
) {
    debug_assert_eq!(outputs.len(), OUTPUTS);
    let mut pointers = [std::ptr::null_mut(); OUTPUTS];
    for (pointer, output) in pointers.iter_mut().zip(outputs) {
        *pointer = output.as_mut_ptr();
    }
    let mut at = range.start;
    while range.end - at >= WIDE * V::BYTES {
        // SAFETY: WIDE registers from here end within the range.
        unsafe { tile::<V, OUTPUTS, WIDE>(terms, first_output, pointers, at) };
        at += WIDE * V::BYTES;
    }
    while at < range.end {
        // SAFETY: the range is a multiple of BLOCK and thereby of one register, so that a whole one is left.
        unsafe { tile::<V, OUTPUTS, 1>(terms, first_output, pointers, at) };
        at += V::BYTES;
    }
}

/// `WIDE` registers from byte `at` of every output: each input is read once, each output written once.
///
/// # Safety
///
/// As for [`pass`], for the bytes from `at` on.
#[inline(always)]
unsafe fn tile<V: Vector, const OUTPUTS: usize, const WIDE: usize>(
    terms: &[Term<'_>],
    first_output: usize,
    outputs: [*mut u8; OUTPUTS],
    at: usize,
) {
    // SAFETY: the caller vouches for the instructions and that WIDE registers at `at` are within every term and every
    // output, and `first_output + OUTPUTS` coefficients within every term's.
    unsafe {
        let mut sums = [[V::zero(); WIDE]; OUTPUTS];
        let (pairs, rest) = terms.as_chunks::<2>();
        for pair in pairs {
            let coefficients = pair.map(|term| term.coefficients.as_ptr().add(first_output));
            let inputs = [load::<V, WIDE>(&pair[0], at), load::<V, WIDE>(&pair[1], at)];
            for (output, sums) in sums.iter_mut().enumerate() {
                let factors = [
                    V::factor(*coefficients[0].add(output)),
                    V::factor(*coefficients[1].add(output)),
                ];
                for (wide, sum) in sums.iter_mut().enumerate() {
                    *sum = sum.add_products([inputs[0][wide], inputs[1][wide]], factors);
                }
            }
        }
        for term in rest {
            let coefficients = term.coefficients.as_ptr().add(first_output);
            let inputs = load::<V, WIDE>(term, at);
            for (output, sums) in sums.iter_mut().enumerate() {
                let factor = V::factor(*coefficients.add(output));
                for (sum, input) in sums.iter_mut().zip(inputs) {
                    *sum = sum.add_product(input, factor);
                }
            }
        }
        for (output, sums) in outputs.into_iter().zip(sums) {
            for (wide, sum) in sums.into_iter().enumerate() {
                sum.store(output.add(at + wide * V::BYTES));
            }
        }
    }
}

/// `WIDE` registers from byte `at` of a term, ready for multiplication.
///
/// # Safety
///
/// The processor has the instructions of `V`, and the term that many bytes from `at` on.
#[inline(always)]
unsafe fn load<V: Vector, const WIDE: usize>(term: &Term<'_>, at: usize) -> [V::Prepared; WIDE] {
    // SAFETY: the caller's promise; what is only prefetched may be beyond the end.
    unsafe {
        let bytes = term.bytes.as_ptr().add(at);
        let mut inputs = [V::zero().prepare(); WIDE];
        for (wide, input) in inputs.iter_mut().enumerate() {
            let offset = wide * V::BYTES;
            // Once per cache line.
            if offset.is_multiple_of(BLOCK) {
                V::prefetch(bytes.wrapping_add(offset + PREFETCH));
            }
            *input = V::load(bytes.add(offset)).prepare();
        }
        inputs
    }
}
