//! Every kernel of this machine against sums of products by definition, around every boundary of the tiling.

use super::*;
use crate::field::{EXP, LOG};
use crate::kernel::Kernel;

/// Bytes that look random and depend on `seed` only.
fn noise(seed: usize, length: usize) -> Vec<u8> {
    let mut state = seed as u64 ^ 0x9e37_79b9_7f4a_7c15;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    };
    (0..length).map(|_| next()).collect()
}

fn product(a: u8, b: u8) -> u8 {
    if a == 0 || b == 0 {
        return 0;
    }
    let log = usize::from(LOG[usize::from(a)]) + usize::from(LOG[usize::from(b)]);
    EXP[log % 255]
}

fn engines() -> Vec<Engine> {
    let engines: Vec<Engine> = Kernel::ALL.into_iter().filter_map(Engine::new).collect();
    assert!(!engines.is_empty(), "the scalar kernel is everywhere");
    engines
}

/// Combines terms of these lengths into outputs of these lengths and compares with the definition.
fn check(term_lengths: &[usize], output_lengths: &[usize]) {
    let fragments: Vec<Vec<u8>> = (term_lengths.iter().enumerate())
        .map(|(seed, &length)| noise(seed, length))
        .collect();
    let coefficients: Vec<Vec<u8>> = (0..term_lengths.len())
        .map(|seed| noise(1_000 + seed, output_lengths.len()))
        .collect();
    let expected: Vec<Vec<u8>> = (output_lengths.iter().enumerate())
        .map(|(row, &length)| {
            let byte = |at| {
                (fragments.iter().zip(&coefficients)).fold(0, |sum, (fragment, factors)| {
                    let byte = fragment.get(at).copied().unwrap_or(0);
                    sum ^ product(factors[row], byte)
                })
            };
            (0..length).map(byte).collect()
        })
        .collect();
    for engine in engines() {
        let mut terms: Vec<Term<'_>> = (fragments.iter().zip(&coefficients))
            .map(|(bytes, coefficients)| Term {
                bytes,
                coefficients,
            })
            .collect();
        let mut buffers: Vec<Vec<u8>> = output_lengths.iter().map(|&n| vec![0xa5; n]).collect();
        let mut outputs: Vec<&mut [u8]> = buffers.iter_mut().map(Vec::as_mut_slice).collect();
        combine(engine, &mut terms, &mut outputs);
        assert!(
            buffers == expected,
            "{:?}: {term_lengths:?} -> {output_lengths:?}",
            engine.kernel()
        );
    }
}

#[test]
fn equal_lengths_around_every_boundary() {
    let lengths = [
        0, 1, 63, 64, 65, 127, 128, 129, 191, 192, 193, 255, 256, 257, 511, 512, 513, 1_023, 1_024,
        1_025, 4_095, 4_096, 4_097,
    ];
    for length in lengths {
        for (terms, outputs) in [(1, 1), (2, 1), (3, 2), (5, 4), (6, 5), (10, 4)] {
            check(&vec![length; terms], &vec![length; outputs]);
        }
    }
}

#[test]
fn every_number_of_outputs_up_to_three_passes() {
    for outputs in 0..=19 {
        check(&[700; 3], &vec![700; outputs]);
    }
}

#[test]
fn more_terms_than_a_padded_block_takes() {
    for terms in [15, 16, 17, 31, 32, 33, 48] {
        check(&vec![150; terms], &[150; 9]);
        check(&vec![6_000; terms], &[6_000; 7]);
    }
}

#[test]
fn short_and_empty_terms_count_as_zeros_at_the_end() {
    for short in [0, 1, 63, 64, 65, 200, 448, 449, 511] {
        check(&[512, 512, short], &[512, 512]);
        check(&[short, 512, short], &[512; 5]);
        check(&[512, short, 0, 0], &[512; 3]);
        check(&[short, short], &[512]);
    }
    check(&[0, 0], &[100, 100]);
    check(&[], &[100, 100]);
    check(&[300, 10, 290, 100, 101, 64, 128, 299], &[310, 300]);
}

#[test]
fn outputs_may_end_early() {
    for short in [0, 1, 63, 64, 65, 300, 511] {
        check(&[512, 512, 512], &[512, short]);
        check(&[512, 512, 512], &[short, short]);
        check(&[512, 100, 512], &[512, 512, short, 0]);
    }
    check(
        &[700, 600, 500],
        &[650, 640, 630, 500, 100, 99, 65, 63, 1, 0],
    );
}

#[test]
fn replication_copies_and_fills_up() {
    for engine in engines() {
        let source = noise(1, 100);
        let mut terms = [Term {
            bytes: &source,
            coefficients: &[1, 1, 1],
        }];
        let (mut long, mut equal, mut short) = ([7; 150], [7; 100], [7; 50]);
        combine(engine, &mut terms, &mut [&mut long, &mut equal, &mut short]);
        assert_eq!(long[..100], source);
        assert_eq!(long[100..], [0; 50]);
        assert_eq!(equal[..], source);
        assert_eq!(short[..], source[..50]);
    }
}

#[test]
fn one_term_is_copied_only_where_its_coefficient_is_one() {
    for engine in engines() {
        let source = noise(2, 100);
        let mut terms = [Term {
            bytes: &source,
            coefficients: &[1, 2],
        }];
        let (mut once, mut twice) = ([7; 100], [7; 100]);
        combine(engine, &mut terms, &mut [&mut once, &mut twice]);
        assert_eq!(once[..], source);
        assert!(twice.iter().zip(&source).all(|(&a, &b)| a == product(2, b)));
    }
}

#[test]
fn unaligned_fragments_and_bytes_around_outputs() {
    // Nothing beside the output may be written, at any alignment.
    for engine in engines() {
        for offset in [0, 1, 31, 63] {
            let source = noise(offset, 1_000);
            let mut buffer = vec![0xee; 1_200];
            let mut terms = [Term {
                bytes: &source[offset..offset + 517],
                coefficients: &[29],
            }];
            combine(
                engine,
                &mut terms,
                &mut [&mut buffer[100 - offset..617 - offset]],
            );
            let (before, rest) = buffer.split_at(100 - offset);
            let (output, after) = rest.split_at(517);
            assert!(before.iter().chain(after).all(|&byte| byte == 0xee));
            let expected: Vec<u8> = (source[offset..offset + 517].iter())
                .map(|&byte| product(29, byte))
                .collect();
            assert_eq!(output, expected);
        }
    }
}

#[test]
#[should_panic(expected = "one coefficient per output")]
fn a_term_without_a_coefficient_for_every_output_is_refused() {
    let mut terms = [Term {
        bytes: &[1],
        coefficients: &[1],
    }];
    combine(engines()[0], &mut terms, &mut [&mut [0], &mut [0]]);
}
