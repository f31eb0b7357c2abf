//! The contract: what a code is, how a value becomes fragments and fragments a value.

use std::error::Error;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use crate::combine::combine;
use crate::kernel::{BLOCK, Engine, Kernel, Term};
use crate::plan::{IndexSet, cached_coefficients, coefficients};

/// Fragments up to this number are listed on the stack, more of them in one allocation per call.
const LISTED_ON_STACK: usize = 16;

/// A systematic `[n,k]` Reed-Solomon code: any k of the n fragments of a value give the value.
///
/// Cheap to clone and to share between threads. Two codes with the same n and k make the same fragments, whatever
/// their kernels.
#[derive(Clone)]
pub struct Code {
    shape: Arc<Shape>,
    engine: Engine,
}

struct Shape {
    n: u8,
    k: u8,
    /// `n - k` coefficients for each data fragment.
    parity_coefficients: Box<[u8]>,
}

impl Code {
    /// The code with `n` fragments of which any `k` suffice, on the fastest kernel of this processor.
    ///
    /// # Errors
    ///
    /// [`CodeError::Shape`] unless `1 <= k <= n <= 255`.
    ///
    /// # Panics
    ///
    /// Never: the scalar kernel is always available.
    pub fn new(n: u8, k: u8) -> Result<Code, CodeError> {
        if k == 0 || k > n {
            return Err(CodeError::Shape { n, k });
        }
        let parity = (k..n).collect();
        Ok(Code {
            shape: Arc::new(Shape {
                n,
                k,
                parity_coefficients: coefficients(IndexSet::below(k), parity),
            }),
            engine: Engine::new(Kernel::best()).expect("the best kernel is an available one"),
        })
    }

    /// This code on another kernel, for tests and comparisons.
    ///
    /// # Errors
    ///
    /// [`CodeError::KernelUnavailable`] if this processor lacks the kernel's instructions.
    pub fn with_kernel(self, kernel: Kernel) -> Result<Code, CodeError> {
        let engine = Engine::new(kernel).ok_or(CodeError::KernelUnavailable { kernel })?;
        Ok(Code { engine, ..self })
    }

    /// The number of fragments.
    pub fn n(&self) -> u8 {
        self.shape.n
    }

    /// The number of data fragments, and of fragments that suffice.
    pub fn k(&self) -> u8 {
        self.shape.k
    }

    /// The kernel that this code computes with.
    pub fn kernel(&self) -> Kernel {
        self.engine.kernel()
    }

    /// The length in bytes of a full fragment of a value of `value_length` bytes: `value_length / k` rounded up to a
    /// multiple of 64, and 0 for an empty value.
    ///
    /// # Panics
    ///
    /// If no value can be that long (more than `isize::MAX` bytes).
    pub fn fragment_length(&self, value_length: usize) -> usize {
        assert!(isize::try_from(value_length).is_ok(), "no slice is longer");
        value_length
            .div_ceil(usize::from(self.k()))
            .next_multiple_of(BLOCK)
    }

    /// The range of a value of `value_length` bytes that is data fragment `index`.
    ///
    /// Shorter than [`Code::fragment_length`], or empty, at the end of the value: the missing tail counts as zeros
    /// that are never stored or sent. The ranges of all data fragments in order cover the value exactly.
    ///
    /// # Panics
    ///
    /// If `index` is not below k, or no value can be that long (more than `isize::MAX` bytes).
    pub fn data_range(&self, value_length: usize, index: u8) -> Range<usize> {
        assert!(index < self.k(), "fragment {index} is not a data fragment");
        let length = self.fragment_length(value_length);
        let start = length.saturating_mul(index.into()).min(value_length);
        start..start.saturating_add(length).min(value_length)
    }

    /// Computes all parity fragments: `parity[j]` becomes fragment `k + j`.
    ///
    /// `data` are the k data fragments in order, each at most as long as the parity fragments, which are
    /// [`Code::fragment_length`] long; a shorter one counts as if filled up with zeros. What the parity buffers held
    /// does not matter. The same range of bytes of every fragment may be passed instead of whole fragments: bytes at
    /// one position depend on no other position.
    ///
    /// # Panics
    ///
    /// If `data` is not k or `parity` not `n - k` slices, the parity slices are not equally long, or a data slice is
    /// longer than they are.
    pub fn encode(&self, data: &[&[u8]], parity: &mut [&mut [u8]]) {
        let (n, k) = (usize::from(self.n()), usize::from(self.k()));
        assert_eq!(data.len(), k, "one slice per data fragment");
        assert_eq!(parity.len(), n - k, "one slice per parity fragment");
        let Some(length) = parity.first().map(|fragment| fragment.len()) else {
            return;
        };
        assert!(
            parity.iter().all(|fragment| fragment.len() == length),
            "parity fragments are equally long"
        );
        assert!(
            data.iter().all(|fragment| fragment.len() <= length),
            "no data fragment is longer than the parity fragments"
        );

        let mut terms = ShortList::new(k, Term::EMPTY);
        let columns = self.shape.parity_coefficients.chunks_exact(n - k);
        for ((term, bytes), coefficients) in terms.as_mut().iter_mut().zip(data).zip(columns) {
            *term = Term {
                bytes,
                coefficients,
            };
        }
        combine(self.engine, terms.as_mut(), parity);
    }

    /// Computes the `missing` fragments from any k of those present.
    ///
    /// `present` are fragments with their indices, at least k of them, in any order and with distinct indices; of
    /// more than k, the data fragments and then the parity fragments with the lowest indices are used. The parity
    /// fragments are equally long; a data fragment may be shorter and counts as if filled up with zeros. `missing`
    /// are distinct indices, none of them present, with buffers that are overwritten; of a fragment only as long a
    /// prefix is computed as its buffer is long, so that a last data fragment can go straight to its place at the end
    /// of a value. A parity fragment may be asked for, too (to repair it).
    ///
    /// As in [`Code::encode`], the same range of bytes of every fragment may take the place of whole fragments.
    ///
    /// # Errors
    ///
    /// See [`ReconstructError`]. No buffer has been changed then.
    pub fn reconstruct(
        &self,
        present: &[(u8, &[u8])],
        missing: &mut [(u8, &mut [u8])],
    ) -> Result<(), ReconstructError> {
        let known = self.choose_known(present)?;
        let wanted = self.check_missing(present, missing)?;
        if missing.is_empty() {
            return Ok(());
        }
        let coefficients = cached_coefficients(known, wanted);
        let rows_per_column = missing.len();

        let mut outputs = ShortList::new_with(missing.len(), <&mut [u8]>::default);
        for (index, buffer) in missing {
            outputs.as_mut()[wanted.rank(*index)] = buffer;
        }
        let mut terms = ShortList::new(usize::from(self.k()), Term::EMPTY);
        // Buffers in the order of indices nearly always fall in length, as values end in their last data fragments;
        // whatever order they have, runs of falling length are what can be computed together.
        let mut first_row = 0;
        for run in outputs.as_mut().chunk_by_mut(|a, b| a.len() >= b.len()) {
            let rows = first_row..first_row + run.len();
            first_row = rows.end;
            let chosen = present.iter().filter(|(index, _)| known.contains(*index));
            for (term, (index, bytes)) in terms.as_mut().iter_mut().zip(chosen) {
                let column = known.rank(*index) * rows_per_column;
                *term = Term {
                    bytes,
                    coefficients: &coefficients[column + rows.start..column + rows.end],
                };
            }
            combine(self.engine, terms.as_mut(), run);
        }
        Ok(())
    }

    /// Checks the present fragments and returns which k of them to use.
    fn choose_known(&self, present: &[(u8, &[u8])]) -> Result<IndexSet, ReconstructError> {
        let (n, k) = (self.n(), self.k());
        let mut indices = IndexSet::default();
        for &(index, _) in present {
            if index >= n {
                return Err(ReconstructError::IndexOutOfRange { index, n });
            }
            if !indices.insert(index) {
                return Err(ReconstructError::DuplicateIndex { index });
            }
        }
        if present.len() < usize::from(k) {
            return Err(ReconstructError::TooFewFragments {
                present: present.len(),
                required: k,
            });
        }
        if let Some(full) = full_length(present, k) {
            for &(index, bytes) in present {
                if bytes.len() > full || (index >= k && bytes.len() < full) {
                    return Err(ReconstructError::FragmentLength {
                        index,
                        length: bytes.len(),
                        expected: full,
                    });
                }
            }
        }
        // In ascending order data fragments come first: they may be short, and are more often in a cache.
        Ok(indices.iter().take(k.into()).collect())
    }

    fn check_missing(
        &self,
        present: &[(u8, &[u8])],
        missing: &[(u8, &mut [u8])],
    ) -> Result<IndexSet, ReconstructError> {
        let present_indices: IndexSet = present.iter().map(|&(index, _)| index).collect();
        let full = full_length(present, self.k());
        let mut wanted = IndexSet::default();
        for (index, buffer) in missing {
            let index = *index;
            if index >= self.n() {
                return Err(ReconstructError::IndexOutOfRange { index, n: self.n() });
            }
            if present_indices.contains(index) {
                return Err(ReconstructError::MissingIsPresent { index });
            }
            if !wanted.insert(index) {
                return Err(ReconstructError::DuplicateIndex { index });
            }
            if let Some(full) = full
                && buffer.len() > full
            {
                return Err(ReconstructError::BufferLength {
                    index,
                    length: buffer.len(),
                    limit: full,
                });
            }
        }
        Ok(wanted)
    }
}

impl fmt::Debug for Code {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Code")
            .field("n", &self.n())
            .field("k", &self.k())
            .field("kernel", &self.kernel())
            .finish()
    }
}

/// The length that a parity fragment shows fragments to have; data fragments alone may all be short.
fn full_length(present: &[(u8, &[u8])], k: u8) -> Option<usize> {
    let parity = present.iter().find(|(index, _)| *index >= k);
    parity.map(|(_, bytes)| bytes.len())
}

/// A list on the stack if it is short, as it nearly always is: nothing is allocated for everyday codes.
enum ShortList<T> {
    Stack([T; LISTED_ON_STACK], usize),
    Heap(Vec<T>),
}

impl<T> ShortList<T> {
    fn new(length: usize, fill: T) -> ShortList<T>
    where
        T: Copy,
    {
        ShortList::new_with(length, || fill)
    }

    fn new_with(length: usize, mut fill: impl FnMut() -> T) -> ShortList<T> {
        if length <= LISTED_ON_STACK {
            ShortList::Stack(std::array::from_fn(|_| fill()), length)
        } else {
            ShortList::Heap((0..length).map(|_| fill()).collect())
        }
    }

    fn as_mut(&mut self) -> &mut [T] {
        match self {
            ShortList::Stack(items, length) => &mut items[..*length],
            ShortList::Heap(items) => items,
        }
    }
}

/// Why there is no such code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CodeError {
    /// Not `1 <= k <= n`.
    Shape {
        /// The number of fragments asked for.
        n: u8,
        /// The number of data fragments asked for.
        k: u8,
    },
    /// The processor lacks the instructions.
    KernelUnavailable {
        /// The kernel asked for.
        kernel: Kernel,
    },
}

impl fmt::Display for CodeError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CodeError::Shape { n, k } => {
                write!(formatter, "no code [{n},{k}]: 1 <= k <= n must hold")
            }
            CodeError::KernelUnavailable { kernel } => write!(
                formatter,
                "this processor lacks the instructions of the kernel {}",
                kernel.name()
            ),
        }
    }
}

impl Error for CodeError {}

/// Why fragments cannot be reconstructed from those present.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReconstructError {
    /// Fewer than k fragments are present.
    TooFewFragments {
        /// The number of fragments present.
        present: usize,
        /// The k of the code.
        required: u8,
    },
    /// A fragment, present or missing, that the code does not have.
    IndexOutOfRange {
        /// Index of that fragment.
        index: u8,
        /// The number of fragments of the code.
        n: u8,
    },
    /// A fragment twice among those present or twice among those missing.
    DuplicateIndex {
        /// Index of that fragment.
        index: u8,
    },
    /// A fragment both present and missing.
    MissingIsPresent {
        /// Index of that fragment.
        index: u8,
    },
    /// A present parity fragment that is not as long as the first one, or a data fragment that is longer: they cannot
    /// be fragments of one value.
    FragmentLength {
        /// Index of that fragment.
        index: u8,
        /// Its length in bytes.
        length: usize,
        /// The length of the first parity fragment in bytes.
        expected: usize,
    },
    /// A buffer that is longer than the fragment that belongs into it.
    BufferLength {
        /// The index of the fragment.
        index: u8,
        /// The length of the buffer in bytes.
        length: usize,
        /// The length of fragments in bytes.
        limit: usize,
    },
}

impl fmt::Display for ReconstructError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReconstructError::TooFewFragments { present, required } => write!(
                formatter,
                "{present} fragments are present, {required} are required"
            ),
            ReconstructError::IndexOutOfRange { index, n } => {
                write!(formatter, "fragment {index} of a code of {n} fragments")
            }
            ReconstructError::DuplicateIndex { index } => {
                write!(formatter, "fragment {index} is listed twice")
            }
            ReconstructError::MissingIsPresent { index } => {
                write!(formatter, "fragment {index} is both present and missing")
            }
            ReconstructError::FragmentLength {
                index,
                length,
                expected,
            } => write!(
                formatter,
                "fragment {index} is {length} bytes long beside a parity fragment of {expected} bytes"
            ),
            ReconstructError::BufferLength {
                index,
                length,
                limit,
            } => write!(
                formatter,
                "the buffer of fragment {index} is {length} bytes long, fragments only {limit}"
            ),
        }
    }
}

impl Error for ReconstructError {}
