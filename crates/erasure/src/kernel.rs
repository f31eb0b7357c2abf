//! Sums of products over whole 64-byte blocks: one implementation per instruction set, chosen when the program runs.

use std::ops::Range;

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx2_gfni;
#[cfg(target_arch = "x86_64")]
mod avx512_gfni;
#[cfg(target_arch = "aarch64")]
mod neon;
mod scalar;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod vector;

/// One summand: a fragment and the multiple of it that goes into each output.
#[derive(Clone, Copy)]
pub(crate) struct Term<'a> {
    /// The fragment; what is missing at its end counts as zeros.
    pub(crate) bytes: &'a [u8],
    /// One coefficient per output, in the order of the outputs.
    pub(crate) coefficients: &'a [u8],
}

impl Term<'_> {
    /// Adds nothing to nothing: fills unused places of arrays.
    pub(crate) const EMPTY: Term<'static> = Term {
        bytes: &[],
        coefficients: &[],
    };
}

/// The unit of work in bytes: one AVX-512 register, one cache line, and what fragment lengths are rounded up to.
pub(crate) const BLOCK: usize = 64;

/// An implementation of the arithmetic. All give the same bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kernel {
    /// 64 bytes per instruction, multiplication by bit matrices (Intel Ice Lake, AMD Zen 4 and later).
    Avx512Gfni,
    /// 32 bytes per instruction, multiplication by bit matrices (Intel processors without AVX-512 since Alder Lake).
    Avx2Gfni,
    /// 32 bytes per instruction, two table look-ups per product.
    Avx2,
    /// 16 bytes per instruction, two table look-ups per product (every 64-bit Arm).
    Neon,
    /// One byte at a time, everywhere.
    Scalar,
}

impl Kernel {
    /// Every kernel, the fastest first.
    pub const ALL: [Kernel; 5] = [
        Kernel::Avx512Gfni,
        Kernel::Avx2Gfni,
        Kernel::Avx2,
        Kernel::Neon,
        Kernel::Scalar,
    ];

    /// True if this processor has the instructions.
    pub fn is_available(self) -> bool {
        match self {
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx512Gfni => {
                is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("gfni")
            }
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx2Gfni => {
                is_x86_feature_detected!("avx2") && is_x86_feature_detected!("gfni")
            }
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx2 => is_x86_feature_detected!("avx2"),
            #[cfg(target_arch = "aarch64")]
            Kernel::Neon => std::arch::is_aarch64_feature_detected!("neon"),
            Kernel::Scalar => true,
            // What the target architecture cannot have.
            #[allow(
                unreachable_patterns,
                reason = "which arms are left depends on the target"
            )]
            _ => false,
        }
    }

    /// The fastest kernel of this processor.
    pub fn best() -> Kernel {
        (Kernel::ALL.into_iter())
            .find(|kernel| kernel.is_available())
            .unwrap_or(Kernel::Scalar)
    }

    /// The name for reports and logs.
    pub fn name(self) -> &'static str {
        match self {
            Kernel::Avx512Gfni => "avx512-gfni",
            Kernel::Avx2Gfni => "avx2-gfni",
            Kernel::Avx2 => "avx2",
            Kernel::Neon => "neon",
            Kernel::Scalar => "scalar",
        }
    }
}

/// The name of the default kernel of this machine.
pub fn kernel() -> &'static str {
    Kernel::best().name()
}

/// A kernel that is known to be available: the proof that its instructions may be executed.
#[derive(Clone, Copy)]
pub(crate) struct Engine(Kernel);

impl Engine {
    /// None if the processor lacks the instructions.
    pub(crate) fn new(kernel: Kernel) -> Option<Engine> {
        kernel.is_available().then_some(Engine(kernel))
    }

    /// The kernel of this engine.
    pub(crate) fn kernel(self) -> Kernel {
        self.0
    }

    /// Overwrites the range, a whole number of blocks, of every output with its sum over the terms.
    pub(crate) fn combine(
        self,
        terms: &[Term<'_>],
        outputs: &mut [&mut [u8]],
        range: Range<usize>,
    ) {
        // The kernels check nothing again: these conditions are what makes them sound.
        assert!(range.start <= range.end && range.len().is_multiple_of(BLOCK));
        assert!(
            terms
                .iter()
                .all(|term| term.bytes.len() >= range.end
                    && term.coefficients.len() >= outputs.len())
        );
        assert!(outputs.iter().all(|output| output.len() >= range.end));
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: `Engine::new` saw AVX-512F and GFNI; the lengths were asserted above.
            Kernel::Avx512Gfni => unsafe { avx512_gfni::combine(terms, outputs, range) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: `Engine::new` saw AVX2 and GFNI; the lengths were asserted above.
            Kernel::Avx2Gfni => unsafe { avx2_gfni::combine(terms, outputs, range) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: `Engine::new` saw AVX2; the lengths were asserted above.
            Kernel::Avx2 => unsafe { avx2::combine(terms, outputs, range) },
            #[cfg(target_arch = "aarch64")]
            // SAFETY: `Engine::new` saw NEON; the lengths were asserted above.
            Kernel::Neon => unsafe { neon::combine(terms, outputs, range) },
            Kernel::Scalar => scalar::combine(terms, outputs, range),
            #[allow(
                unreachable_patterns,
                reason = "which arms are left depends on the target"
            )]
            unavailable => unreachable!("{unavailable:?} cannot be available on this target"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_kernel_is_available_and_named() {
        assert!(Kernel::best().is_available());
        assert_eq!(kernel(), Kernel::best().name());
        assert!(Engine::new(Kernel::best()).is_some());
    }

    #[test]
    fn a_kernel_of_another_architecture_is_refused() {
        let foreign = if cfg!(target_arch = "aarch64") {
            Kernel::Avx2
        } else {
            Kernel::Neon
        };
        assert!(!foreign.is_available());
        assert!(Engine::new(foreign).is_none());
    }
}
