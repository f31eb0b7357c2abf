//! 32 bytes per instruction; a product is two look-ups in tables of 16 bytes, one per half of a byte.

use std::arch::x86_64::{
    __m256i, _MM_HINT_T0, _mm_load_si128, _mm_prefetch, _mm256_and_si256,
    _mm256_broadcastsi128_si256, _mm256_loadu_si256, _mm256_set1_epi8, _mm256_setzero_si256,
    _mm256_shuffle_epi8, _mm256_srli_epi64, _mm256_storeu_si256, _mm256_xor_si256,
};
use std::ops::Range;

use super::Term;
use super::vector::{self, Vector};
use crate::field::NIBBLES;

/// A register that is multiplied by look-ups.
#[derive(Clone, Copy)]
#[repr(transparent)]
struct Shuffle(__m256i);

/// See [`Engine::combine`](super::Engine::combine).
///
/// # Safety
///
/// The processor has AVX2; the conditions asserted by `Engine::combine` hold.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn combine(terms: &[Term<'_>], outputs: &mut [&mut [u8]], range: Range<usize>) {
    // SAFETY: the caller's promise.
    unsafe { vector::combine::<Shuffle>(terms, outputs, range) }
}

// The methods are always inlined into `combine`, which enables the instructions.
#[allow(
    clippy::inline_always,
    reason = "must be compiled within a function that enables the instructions"
)]
impl Vector for Shuffle {
    const BYTES: usize = 32;
    const MOST_OUTPUTS: usize = 4;
    /// The products of the low and of the high halves, each table in both lanes.
    type Factor = [__m256i; 2];
    /// The low and the high halves of the bytes.
    type Prepared = [__m256i; 2];

    #[inline(always)]
    unsafe fn zero() -> Self {
        // SAFETY: the caller vouches for the instructions.
        Shuffle(unsafe { _mm256_setzero_si256() })
    }

    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        // SAFETY: the caller vouches for the instructions and for the bytes.
        Shuffle(unsafe { _mm256_loadu_si256(from.cast()) })
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        // SAFETY: the caller vouches for the instructions and for the bytes.
        unsafe { _mm256_storeu_si256(to.cast(), self.0) }
    }

    #[inline(always)]
    unsafe fn factor(coefficient: u8) -> Self::Factor {
        // SAFETY: the caller vouches for the instructions; the tables are aligned.
        unsafe {
            let tables = &NIBBLES[usize::from(coefficient)];
            [&tables.low, &tables.high]
                .map(|table| _mm256_broadcastsi128_si256(_mm_load_si128(table.as_ptr().cast())))
        }
    }

    #[inline(always)]
    unsafe fn prepare(self) -> Self::Prepared {
        // SAFETY: the caller vouches for the instructions.
        unsafe {
            let mask = _mm256_set1_epi8(0x0f);
            [
                _mm256_and_si256(self.0, mask),
                _mm256_and_si256(_mm256_srli_epi64::<4>(self.0), mask),
            ]
        }
    }

    #[inline(always)]
    unsafe fn add_product(self, [low, high]: Self::Prepared, factor: Self::Factor) -> Self {
        // SAFETY: the caller vouches for the instructions.
        unsafe {
            let product = _mm256_xor_si256(
                _mm256_shuffle_epi8(factor[0], low),
                _mm256_shuffle_epi8(factor[1], high),
            );
            Shuffle(_mm256_xor_si256(self.0, product))
        }
    }

    #[inline(always)]
    unsafe fn prefetch(address: *const u8) {
        // SAFETY: a hint, which no address makes fault.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast()) }
    }

    // Of the 16 registers up to 8 hold sums; the halves of the inputs, the tables and the products take the rest.
    vector::passes!(1 => 2, 2 => 2, 3 => 2, 4 => 2);
}
