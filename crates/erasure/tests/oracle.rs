//! The fragments are those of another implementation, for every kernel.

use crate::common::{fragments_of, noise, on_every_kernel};
use areo_erasure::Code;
use proptest::prelude::*;
use reed_solomon_erasure::galois_8::ReedSolomon;

/// Fragments as `reed-solomon-erasure` makes them, data fragments filled up with zeros.
fn oracle_fragments(code: &Code, value: &[u8]) -> Vec<Vec<u8>> {
    let length = code.fragment_length(value.len());
    let mut fragments: Vec<Vec<u8>> = (0..code.k())
        .map(|index| {
            let mut fragment = value[code.data_range(value.len(), index)].to_vec();
            fragment.resize(length, 0);
            fragment
        })
        .collect();
    fragments.resize(code.n().into(), vec![0; length]);
    let oracle = ReedSolomon::new(code.k().into(), (code.n() - code.k()).into()).unwrap();
    oracle.encode(&mut fragments).unwrap();
    fragments
}

fn compare(n: u8, k: u8, value_length: usize, seed: u64) {
    let value = noise(seed, value_length);
    let mut expected = None;
    for code in on_every_kernel(n, k) {
        let expected = &*expected.get_or_insert_with(|| oracle_fragments(&code, &value));
        let fragments = fragments_of(&code, &value);
        for (index, fragment) in fragments.iter().enumerate() {
            let (stored, tail) = expected[index].split_at(fragment.len());
            assert!(
                fragment == stored && tail.iter().all(|&byte| byte == 0),
                "{code:?}: fragment {index} of {value_length} bytes"
            );
        }
    }
}

#[test]
fn the_codes_in_use_at_every_boundary() {
    for (n, k) in [
        (3, 2),
        (4, 2),
        (5, 3),
        (9, 5),
        (11, 6),
        (14, 10),
        (7, 1),
        (2, 1),
    ] {
        for blocks in [1, 2, 4, 5, 16, 64] {
            let full = blocks * 64 * usize::from(k);
            for length in [full - 64, full - 63, full - 1, full, full + 1] {
                compare(n, k, length.max(1), length as u64);
            }
        }
        for length in [1, 2, 63, 64, 65] {
            compare(n, k, length, length as u64);
        }
    }
}

#[test]
fn a_value_longer_than_the_caches_hold() {
    compare(5, 3, 3_000_001, 1);
    compare(14, 10, 3_000_001, 2);
}

#[test]
fn the_largest_codes() {
    compare(255, 200, 30_000, 1);
    compare(255, 1, 100, 2);
    compare(255, 254, 20_000, 3);
    compare(255, 128, 128 * 64, 4);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 120, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_small_code(n in 2u8..=24, k_of_n in 0u8..24, length in 1usize..20_000, seed: u64) {
        compare(n, 1 + k_of_n % (n - 1), length, seed);
    }

    #[test]
    fn any_code(n in 2u8..=255, k_of_n: u8, length in 1usize..3_000, seed: u64) {
        compare(n, 1 + k_of_n % (n - 1), length, seed);
    }
}
