//! Systematic Reed-Solomon over GF(2^8): unsafe code is here and in the allocator alone.
//!
//! A value is cut into `k` data fragments, and `n - k` parity fragments of the same length are computed from them;
//! any `k` of the `n` fragments give the value back (the code is maximum distance separable).
//!
//! # The code
//!
//! Column by column, the `k` data bytes are the values at the points `0, 1, ..., k-1` of the only polynomial of degree
//! below `k` through them, over the field of 256 elements with the polynomial `x^8 + x^4 + x^3 + x^2 + 1` (0x11d).
//! Fragment `i` holds its values at the point `i`. Every coefficient of encoding *and* of reconstruction is therefore
//! one Lagrange coefficient (module `plan`), and no matrix is ever inverted. The fragments are byte for byte those of
//! the systematic Vandermonde construction that `reed-solomon-erasure` uses, which the tests check. They are a format
//! on disk: a golden test pins them, and they must never change.
//!
//! # Reading order
//!
//! `field` (the arithmetic and its tables) → `plan` (which coefficients) → `combine` (sums of products over fragments
//! of uneven length) → `kernel` (the same over whole 64-byte blocks, once per instruction set) → `code` (the contract).
//!
//! Where `unsafe` is: only below `kernel`, whose one entry checks every length and that the processor has the
//! instructions before it calls into it.
//!
//! ```
//! let code = areo_erasure::Code::new(5, 3)?;
//! let value = vec![7; 1_000];
//! let length = code.fragment_length(value.len());
//! let data: Vec<&[u8]> = (0..3).map(|i| &value[code.data_range(value.len(), i)]).collect();
//! let (mut p, mut q) = (vec![0; length], vec![0; length]);
//! code.encode(&data, &mut [&mut p, &mut q]);
//!
//! let mut first = vec![0; length];
//! code.reconstruct(&[(4, &q), (1, data[1]), (3, &p)], &mut [(0, &mut first)])?;
//! assert_eq!(first, data[0]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod code;
mod combine;
mod field;
mod kernel;
mod plan;

pub use code::{Code, CodeError, ReconstructError};
pub use kernel::{Kernel, kernel};
