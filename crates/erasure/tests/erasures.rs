//! Any k fragments give the value, and every other fragment, back.

use crate::common::{Random, assert_recovers, fragments_of, noise, on_every_kernel};
use areo_erasure::Code;
use proptest::prelude::*;

/// Lengths that leave every kind of end: none, a byte, a byte short of a block, empty last fragments.
const VALUE_LENGTHS: [usize; 8] = [0, 1, 63, 64, 65, 191, 640, 1_337];

/// Every set of survivors of every size from k to n, on every kernel.
fn exhaust(n: u8, k: u8) {
    let mut sets = 0;
    for code in on_every_kernel(n, k) {
        for length in VALUE_LENGTHS {
            let fragments = fragments_of(&code, &noise(length as u64, length));
            for set in 0u32..1 << n {
                if set.count_ones() >= u32::from(k) {
                    let survivors: Vec<u8> = (0..n).filter(|index| set >> index & 1 == 1).collect();
                    assert_recovers(&code, &fragments, &survivors);
                    sets += 1;
                }
            }
        }
    }
    assert!(sets >= VALUE_LENGTHS.len(), "at least the set of all");
}

fn sample(n: u8, k: u8, sets: usize) {
    let mut random = Random::new(u64::from(n) << 8 | u64::from(k));
    for code in on_every_kernel(n, k) {
        for length in VALUE_LENGTHS.into_iter().chain([20_000]) {
            let fragments = fragments_of(&code, &noise(length as u64, length));
            // The worst loss: every data fragment that the parity fragments can stand in for.
            let last: Vec<u8> = (n - k..n).collect();
            assert_recovers(&code, &fragments, &last);
            for _ in 0..sets {
                assert_recovers(&code, &fragments, &random.choose(n, k));
            }
        }
    }
}

#[test]
fn every_loss_of_3_2() {
    exhaust(3, 2);
}

#[test]
fn every_loss_of_4_2() {
    exhaust(4, 2);
}

#[test]
fn every_loss_of_5_3() {
    exhaust(5, 3);
}

#[test]
fn every_loss_of_9_5() {
    exhaust(9, 5);
}

#[test]
fn sampled_losses_of_11_6() {
    sample(11, 6, 200);
}

#[test]
fn sampled_losses_of_14_10() {
    sample(14, 10, 200);
}

#[test]
fn sampled_losses_of_255_200() {
    sample(255, 200, 5);
}

#[test]
fn replication_is_k_1() {
    for code in on_every_kernel(5, 1) {
        let value = noise(1, 100);
        let fragments = fragments_of(&code, &value);
        for parity in &fragments[1..] {
            assert_eq!(parity[..100], value);
            assert_eq!(parity[100..], [0; 28]);
        }
    }
    exhaust(5, 1);
}

#[test]
fn striping_is_k_equal_to_n() {
    for n in [1, 4, 255] {
        let code = Code::new(n, n).unwrap();
        let value = noise(2, 3_000);
        let fragments = fragments_of(&code, &value);
        assert_eq!(fragments.concat(), value);
        let all: Vec<u8> = (0..n).collect();
        assert_recovers(&code, &fragments, &all);
    }
}

/// Maximum distance separable: two different values agree in fewer than k fragments. (The code is linear, so values
/// that differ from zeros stand for all pairs.)
#[test]
fn different_values_share_fewer_than_k_fragments() {
    for (n, k) in [(5, 3), (9, 5), (14, 10), (255, 200)] {
        let code = Code::new(n, k).unwrap();
        let mut random = Random::new(7);
        for _ in 0..50 {
            // One byte per data fragment, each zero or not, but not all.
            let mut columns: Vec<u8> = (0..k)
                .map(|_| {
                    if random.next().is_multiple_of(2) {
                        0
                    } else {
                        random.next() as u8
                    }
                })
                .collect();
            columns[random.next() as usize % usize::from(k)] = 1;
            let data: Vec<&[u8]> = columns.iter().map(std::slice::from_ref).collect();
            let mut parity = vec![[0]; usize::from(n - k)];
            let mut outputs: Vec<&mut [u8]> =
                parity.iter_mut().map(<[u8; 1]>::as_mut_slice).collect();
            code.encode(&data, &mut outputs);
            let zeros = columns
                .iter()
                .chain(parity.as_flattened())
                .filter(|&&b| b == 0);
            assert!(zeros.count() < usize::from(k));
        }
    }
}

#[test]
fn a_range_of_every_fragment_is_as_good_as_the_whole() {
    let code = Code::new(9, 5).unwrap();
    let fragments = fragments_of(&code, &noise(3, 5 * 1_024));
    for range in [0..1, 100..101, 63..200, 512..1_024, 1_023..1_024] {
        let parts: Vec<Vec<u8>> = (fragments.iter())
            .map(|fragment| fragment[range.clone()].to_vec())
            .collect();
        assert_recovers(&code, &parts, &[8, 7, 6, 5, 0]);
    }
}

#[test]
fn threads_share_a_code() {
    let code = Code::new(6, 4).unwrap();
    let fragments = fragments_of(&code, &noise(4, 4_000));
    std::thread::scope(|scope| {
        for seed in 0..4 {
            let (code, fragments) = (code.clone(), &fragments);
            scope.spawn(move || {
                let mut random = Random::new(seed);
                for _ in 0..100 {
                    assert_recovers(&code, fragments, &random.choose(6, 4));
                }
            });
        }
    });
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    /// Buffers of any length up to the whole, asked for in any order, for data and for parity fragments.
    #[test]
    fn a_prefix_of_any_missing_fragment(
        n in 1u8..=20,
        k_of_n in 0u8..20,
        value_length in 0usize..5_000,
        extra in 0u8..3,
        seed: u64,
    ) {
        let k = 1 + k_of_n % n;
        let mut random = Random::new(seed);
        let value = noise(seed, value_length);
        for code in on_every_kernel(n, k) {
            let fragments = fragments_of(&code, &value);
            let full = code.fragment_length(value_length);
            let order = random.choose(n, n);
            let (survivors, lost) = order.split_at(usize::from(n.min(k + extra)));
            let present: Vec<(u8, &[u8])> = survivors.iter()
                .map(|&index| (index, &*fragments[usize::from(index)]))
                .collect();
            let mut buffers: Vec<Vec<u8>> = lost.iter()
                .map(|_| vec![0x5a; random.next() as usize % (full + 1)])
                .collect();
            let mut missing: Vec<(u8, &mut [u8])> = lost.iter().copied()
                .zip(buffers.iter_mut().map(Vec::as_mut_slice))
                .collect();
            prop_assert_eq!(code.reconstruct(&present, &mut missing), Ok(()));
            for (&index, buffer) in lost.iter().zip(&buffers) {
                let mut expected = fragments[usize::from(index)].clone();
                expected.resize(buffer.len().max(expected.len()), 0);
                prop_assert_eq!(&**buffer, &expected[..buffer.len()]);
            }
        }
    }
}

/// A server that holds a fragment need not know how many there are: codes of one k have the same fragments.
#[test]
fn codes_of_one_k_begin_with_the_same_fragments() {
    for k in [1, 2, 3, 7, 100] {
        let data: Vec<Vec<u8>> = (0..k).map(|piece| vec![piece ^ 0x5a; 64]).collect();
        let data: Vec<&[u8]> = data.iter().map(Vec::as_slice).collect();
        let parity = |n: u8| {
            let code = Code::new(n, k).unwrap();
            let mut parity = vec![vec![0; 64]; usize::from(n - k)];
            let mut targets: Vec<&mut [u8]> = parity.iter_mut().map(Vec::as_mut_slice).collect();
            code.encode(&data, &mut targets);
            parity
        };
        let all = parity(255);
        for n in [k, k + 1, k + 2, k + 30] {
            assert_eq!(parity(n)[..], all[..usize::from(n - k)], "[{n}, {k}]");
        }
    }
}
