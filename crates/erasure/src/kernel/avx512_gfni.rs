//! 64 bytes per instruction; a product is one multiplication by an 8x8 bit matrix.

use std::arch::x86_64::{
    __m512i, _MM_HINT_T0, _mm_prefetch, _mm512_gf2p8affine_epi64_epi8, _mm512_loadu_si512,
    _mm512_set1_epi64, _mm512_setzero_si512, _mm512_storeu_si512, _mm512_ternarylogic_epi64,
    _mm512_xor_si512,
};
use std::ops::Range;

use super::Term;
use super::vector::{self, Vector};
use crate::field::AFFINE;

/// The truth table of the exclusive or of three bits, as the ternary logic instruction takes it.
const EXCLUSIVE_OR: i32 = 0x96;

/// See [`Engine::combine`](super::Engine::combine).
///
/// # Safety
///
/// The processor has AVX-512F and GFNI; the conditions asserted by `Engine::combine` hold.
#[target_feature(enable = "avx512f,gfni")]
pub(super) unsafe fn combine(terms: &[Term<'_>], outputs: &mut [&mut [u8]], range: Range<usize>) {
    // SAFETY: the caller's promise.
    unsafe { vector::combine::<__m512i>(terms, outputs, range) }
}

// The methods are always inlined into `combine`, which enables the instructions.
#[allow(
    clippy::inline_always,
    reason = "must be compiled within a function that enables the instructions"
)]
impl Vector for __m512i {
    const BYTES: usize = 64;
    const MOST_OUTPUTS: usize = 6;
    type Factor = Self;
    type Prepared = Self;

    #[inline(always)]
    unsafe fn zero() -> Self {
        // SAFETY: the caller vouches for the instructions.
        unsafe { _mm512_setzero_si512() }
    }

    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        // SAFETY: the caller vouches for the instructions and for the bytes.
        unsafe { _mm512_loadu_si512(from.cast()) }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        // SAFETY: the caller vouches for the instructions and for the bytes.
        unsafe { _mm512_storeu_si512(to.cast(), self) }
    }

    #[inline(always)]
    unsafe fn factor(coefficient: u8) -> Self::Factor {
        // SAFETY: the caller vouches for the instructions.
        unsafe { _mm512_set1_epi64(AFFINE[usize::from(coefficient)].cast_signed()) }
    }

    #[inline(always)]
    unsafe fn prepare(self) -> Self::Prepared {
        self
    }

    #[inline(always)]
    unsafe fn add_product(self, input: Self::Prepared, factor: Self::Factor) -> Self {
        // SAFETY: the caller vouches for the instructions.
        unsafe { _mm512_xor_si512(self, _mm512_gf2p8affine_epi64_epi8::<0>(input, factor)) }
    }

    #[inline(always)]
    unsafe fn add_products(
        self,
        [first, second]: [Self::Prepared; 2],
        factors: [Self::Factor; 2],
    ) -> Self {
        // SAFETY: the caller vouches for the instructions.
        unsafe {
            let first = _mm512_gf2p8affine_epi64_epi8::<0>(first, factors[0]);
            let second = _mm512_gf2p8affine_epi64_epi8::<0>(second, factors[1]);
            _mm512_ternarylogic_epi64::<EXCLUSIVE_OR>(self, first, second)
        }
    }

    #[inline(always)]
    unsafe fn prefetch(address: *const u8) {
        // SAFETY: a hint, which no address makes fault.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast()) }
    }

    // Of the 32 registers up to 24 hold sums; inputs, a factor and a product take the rest.
    vector::passes!(1 => 4, 2 => 4, 3 => 4, 4 => 4, 5 => 3, 6 => 3);
}
