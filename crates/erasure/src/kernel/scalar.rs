//! One byte at a time with two look-ups per product: for processors that no other kernel knows.

use std::ops::Range;

use super::Term;
use crate::field::NIBBLES;

/// Bytes of an output that are summed over all terms before the next ones, so that they stay in the nearest cache.
const STRETCH: usize = 4096;

/// [`Engine::combine`](super::Engine::combine) without vector instructions.
pub(super) fn combine(terms: &[Term<'_>], outputs: &mut [&mut [u8]], range: Range<usize>) {
    for start in range.clone().step_by(STRETCH) {
        let stretch = start..range.end.min(start + STRETCH);
        for (row, output) in outputs.iter_mut().enumerate() {
            let output = &mut output[stretch.clone()];
            output.fill(0);
            for term in terms {
                let factor = &NIBBLES[usize::from(term.coefficients[row])];
                for (sum, byte) in output.iter_mut().zip(&term.bytes[stretch.clone()]) {
                    *sum ^=
                        factor.low[usize::from(byte & 15)] ^ factor.high[usize::from(byte >> 4)];
                }
            }
        }
    }
}
