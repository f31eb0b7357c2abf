//! The common part of the integration tests.
#![allow(dead_code, reason = "each test binary uses its part")]
#![allow(clippy::unwrap_used, reason = "test code outside of test functions")]

use areo_erasure::{Code, Kernel};

/// The code once per kernel of this machine.
pub(crate) fn on_every_kernel(n: u8, k: u8) -> Vec<Code> {
    let code = Code::new(n, k).unwrap();
    let available = Kernel::ALL
        .into_iter()
        .filter(|kernel| kernel.is_available());
    let codes: Vec<Code> = available
        .map(|kernel| code.clone().with_kernel(kernel).unwrap())
        .collect();
    assert!(!codes.is_empty(), "the scalar kernel is everywhere");
    codes
}

/// Bytes that look random and depend on the seed only.
pub(crate) fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut random = Random::new(seed);
    (0..length).map(|_| random.next() as u8).collect()
}

/// The data fragments of a value as slices of it.
pub(crate) fn data_of<'a>(code: &Code, value: &'a [u8]) -> Vec<&'a [u8]> {
    (0..code.k())
        .map(|index| &value[code.data_range(value.len(), index)])
        .collect()
}

/// All fragments of a value; data fragments as short as they are.
pub(crate) fn fragments_of(code: &Code, value: &[u8]) -> Vec<Vec<u8>> {
    let data = data_of(code, value);
    let length = code.fragment_length(value.len());
    let mut parity = vec![vec![0x5a; length]; usize::from(code.n() - code.k())];
    let mut outputs: Vec<&mut [u8]> = parity.iter_mut().map(Vec::as_mut_slice).collect();
    code.encode(&data, &mut outputs);
    (data.iter().map(|fragment| fragment.to_vec()))
        .chain(parity)
        .collect()
}

/// Reconstructs the fragments that are not among the survivors, in buffers as long as the fragments, and compares.
pub(crate) fn assert_recovers(code: &Code, fragments: &[Vec<u8>], survivors: &[u8]) {
    let present: Vec<(u8, &[u8])> = survivors
        .iter()
        .map(|&index| (index, &*fragments[usize::from(index)]))
        .collect();
    let lost: Vec<u8> = (0..code.n())
        .filter(|index| !survivors.contains(index))
        .collect();
    let mut buffers: Vec<Vec<u8>> = lost
        .iter()
        .map(|&index| vec![0x5a; fragments[usize::from(index)].len()])
        .collect();
    let mut missing: Vec<(u8, &mut [u8])> = lost
        .iter()
        .zip(&mut buffers)
        .map(|(&index, buffer)| (index, buffer.as_mut_slice()))
        .collect();
    code.reconstruct(&present, &mut missing).unwrap();
    for (index, buffer) in lost.iter().zip(&buffers) {
        assert!(
            *buffer == fragments[usize::from(*index)],
            "{code:?}: fragment {index} from {survivors:?}"
        );
    }
}

/// A small generator (xorshift) with a seed, so that every failure is repeatable.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 >> 24
    }

    /// `count` distinct indices below `n`, in random order.
    pub(crate) fn choose(&mut self, n: u8, count: u8) -> Vec<u8> {
        let mut indices: Vec<u8> = (0..n).collect();
        for at in 0..usize::from(count) {
            let other = at + self.next() as usize % (indices.len() - at);
            indices.swap(at, other);
        }
        indices.truncate(count.into());
        indices
    }
}
