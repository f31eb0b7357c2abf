//! 32 bytes per instruction; a product is one multiplication by an 8x8 bit matrix.

use std::arch::x86_64::{
    __m256i, _MM_HINT_T0, _mm_prefetch, _mm256_gf2p8affine_epi64_epi8, _mm256_loadu_si256,
    _mm256_set1_epi64x, _mm256_setzero_si256, _mm256_storeu_si256, _mm256_xor_si256,
};
use std::ops::Range;

use super::Term;
use super::vector::{self, Vector};
use crate::field::AFFINE;

/// A register that is multiplied by bit matrices.
#[derive(Clone, Copy)]
#[repr(transparent)]
struct Affine(__m256i);

/// See [`Engine::combine`](super::Engine::combine).
///
/// # Safety
///
/// The processor has AVX2 and GFNI; the conditions asserted by `Engine::combine` hold.
#[target_feature(enable = "avx2,gfni")]
pub(super) unsafe fn combine(terms: &[Term<'_>], outputs: &mut [&mut [u8]], range: Range<usize>) {
    // SAFETY: the caller's promise.
    unsafe { vector::combine::<Affine>(terms, outputs, range) }
}

// The methods are always inlined into `combine`, which enables the instructions.
#[allow(
    clippy::inline_always,
    reason = "must be compiled within a function that enables the instructions"
)]
impl Vector for Affine {
    const BYTES: usize = 32;
    const MOST_OUTPUTS: usize = 4;
    type Factor = __m256i;
    type Prepared = __m256i;

    #[inline(always)]
    unsafe fn zero() -> Self {
        // SAFETY: the caller vouches for the instructions.
        Affine(unsafe { _mm256_setzero_si256() })
    }

    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        // SAFETY: the caller vouches for the instructions and for the bytes.
        Affine(unsafe { _mm256_loadu_si256(from.cast()) })
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        // SAFETY: the caller vouches for the instructions and for the bytes.
        unsafe { _mm256_storeu_si256(to.cast(), self.0) }
    }

    #[inline(always)]
    unsafe fn factor(coefficient: u8) -> Self::Factor {
        // SAFETY: the caller vouches for the instructions.
        unsafe { _mm256_set1_epi64x(AFFINE[usize::from(coefficient)].cast_signed()) }
    }

    #[inline(always)]
    unsafe fn prepare(self) -> Self::Prepared {
        self.0
    }

    #[inline(always)]
    unsafe fn add_product(self, input: Self::Prepared, factor: Self::Factor) -> Self {
        // SAFETY: the caller vouches for the instructions.
        Affine(unsafe {
            _mm256_xor_si256(self.0, _mm256_gf2p8affine_epi64_epi8::<0>(input, factor))
        })
    }

    #[inline(always)]
    unsafe fn prefetch(address: *const u8) {
        // SAFETY: a hint, which no address makes fault.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast()) }
    }

    // Of the 16 registers up to 9 hold sums; inputs, a factor and a product take the rest.
    vector::passes!(1 => 4, 2 => 4, 3 => 3, 4 => 2);
}
