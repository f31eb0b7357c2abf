//! 16 bytes per instruction; a product is two look-ups in tables of 16 bytes, one per half of a byte.

use std::arch::aarch64::{
    uint8x16_t, vandq_u8, vdupq_n_u8, veorq_u8, vld1q_u8, vqtbl1q_u8, vshrq_n_u8, vst1q_u8,
};
use std::ops::Range;

use super::Term;
use super::vector::{self, Vector};
use crate::field::NIBBLES;

/// See [`Engine::combine`](super::Engine::combine).
///
/// # Safety
///
/// The processor has NEON; the conditions asserted by `Engine::combine` hold.
#[target_feature(enable = "neon")]
pub(super) unsafe fn combine(terms: &[Term<'_>], outputs: &mut [&mut [u8]], range: Range<usize>) {
    // SAFETY: the caller's promise.
    unsafe { vector::combine::<uint8x16_t>(terms, outputs, range) }
}

// The methods are always inlined into `combine`, which enables the instructions.
#[allow(
    clippy::inline_always,
    reason = "must be compiled within a function that enables the instructions"
)]
impl Vector for uint8x16_t {
    const BYTES: usize = 16;
    const MOST_OUTPUTS: usize = 4;
    /// The products of the low and of the high halves.
    type Factor = [Self; 2];
    /// The low and the high halves of the bytes.
    type Prepared = [Self; 2];

    #[inline(always)]
    unsafe fn zero() -> Self {
        // SAFETY: the caller vouches for the instructions.
        unsafe { vdupq_n_u8(0) }
    }

    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        // SAFETY: the caller vouches for the instructions and for the bytes.
        unsafe { vld1q_u8(from) }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        // SAFETY: the caller vouches for the instructions and for the bytes.
        unsafe { vst1q_u8(to, self) }
    }

    #[inline(always)]
    unsafe fn factor(coefficient: u8) -> Self::Factor {
        // SAFETY: the caller vouches for the instructions; a table is one register.
        unsafe {
            let tables = &NIBBLES[usize::from(coefficient)];
            [
                vld1q_u8(tables.low.as_ptr()),
                vld1q_u8(tables.high.as_ptr()),
            ]
        }
    }

    #[inline(always)]
    unsafe fn prepare(self) -> Self::Prepared {
        // SAFETY: the caller vouches for the instructions.
        unsafe { [vandq_u8(self, vdupq_n_u8(0x0f)), vshrq_n_u8::<4>(self)] }
    }

    #[inline(always)]
    unsafe fn add_product(self, [low, high]: Self::Prepared, factor: Self::Factor) -> Self {
        // SAFETY: the caller vouches for the instructions.
        unsafe {
            veorq_u8(
                self,
                veorq_u8(vqtbl1q_u8(factor[0], low), vqtbl1q_u8(factor[1], high)),
            )
        }
    }

    // Of the 32 registers up to 16 hold sums; the halves of the inputs, the tables and the products take the rest.
    vector::passes!(1 => 4, 2 => 4, 3 => 4, 4 => 4);
}
