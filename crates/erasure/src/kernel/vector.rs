//! What the vector kernels share: how outputs and positions are tiled into registers and caches.
//!
//! The functions are generic over the registers and always inlined into a function per kernel that enables the
//! instructions; compiled on their own they would not have them.

use std::ops::Range;

use super::BLOCK;
use crate::combine::Term;

/// Bytes of terms that one pass over a stretch may touch so that the next pass finds them in the nearest cache.
const CACHE_BYTES: usize = 32 * 1024;
/// A stretch is not made shorter than this: below it the start of a pass costs more than the cache saves.
const SHORTEST_STRETCH: usize = 1024;

/// A register of an instruction set, and arithmetic on it.
///
/// # Safety of every function
///
/// The processor must have the instruction set.
pub(super) trait Vector: Copy {
    /// The size of the register in bytes; divides [`BLOCK`].
    const BYTES: usize;
    /// How many outputs are computed in one pass over the terms.
    const MOST_OUTPUTS: usize;
    /// A multiplier as the instructions take it.
    type Factor: Copy;
    /// A register of input as the multiplication takes it, prepared once for all outputs.
    type Prepared: Copy;

    /// Zeros.
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

/// Sums every output over the range, [`Vector::MOST_OUTPUTS`] at a time.
///
/// # Safety
///
/// The processor has the instructions of `V`; the conditions asserted by `Engine::combine` hold.
#[inline(always)]
#[allow(
    clippy::inline_always,
    reason = "must be compiled within a function that enables the instructions"
)]
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
#[allow(
    clippy::inline_always,
    reason = "must be compiled within a function that enables the instructions"
)]
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
#[allow(
    clippy::inline_always,
    reason = "must be compiled within a function that enables the instructions"
)]
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
        for term in terms {
            let bytes = term.bytes.as_ptr().add(at);
            let coefficients = term.coefficients.as_ptr().add(first_output);
            let mut inputs = [V::zero().prepare(); WIDE];
            for (wide, input) in inputs.iter_mut().enumerate() {
                *input = V::load(bytes.add(wide * V::BYTES)).prepare();
            }
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
