//! Shapes, lengths and what is refused.

use crate::common::fragments_of;
use areo_erasure::{Code, CodeError, Kernel, ReconstructError};
use proptest::prelude::*;

#[test]
fn a_code_has_a_shape() {
    for (n, k) in [(0, 0), (5, 0), (3, 4), (0, 1), (254, 255)] {
        assert_eq!(Code::new(n, k).err(), Some(CodeError::Shape { n, k }));
    }
    for (n, k) in [(1, 1), (255, 1), (255, 255), (255, 128), (2, 1)] {
        let code = Code::new(n, k).unwrap();
        assert_eq!((code.n(), code.k()), (n, k));
        assert_eq!(code.kernel(), Kernel::best());
    }
}

#[test]
fn a_kernel_can_be_forced_if_the_processor_has_it() {
    for kernel in Kernel::ALL {
        let code = Code::new(5, 3).unwrap().with_kernel(kernel);
        if kernel.is_available() {
            assert_eq!(code.unwrap().kernel(), kernel);
        } else {
            let error = code.unwrap_err();
            assert_eq!(error, CodeError::KernelUnavailable { kernel });
            assert!(error.to_string().contains(kernel.name()));
        }
    }
}

#[test]
fn lengths_of_fragments_are_multiples_of_64() {
    let code = Code::new(5, 3).unwrap();
    let lengths = [
        (0, 0),
        (1, 64),
        (192, 64),
        (193, 128),
        (384, 128),
        (1 << 20, 349_568),
    ];
    for (value, fragment) in lengths {
        assert_eq!(code.fragment_length(value), fragment, "{value}");
    }
    assert_eq!(code.data_range(65, 0), 0..64);
    assert_eq!(code.data_range(65, 1), 64..65);
    assert_eq!(code.data_range(65, 2), 65..65);
    // The longest value there can be overflows nothing.
    let longest = isize::MAX.unsigned_abs();
    assert_eq!(code.data_range(longest, 2).end, longest);
    assert_eq!(
        Code::new(1, 1).unwrap().fragment_length(longest),
        longest + 1
    );
    assert_eq!(
        Code::new(255, 255).unwrap().data_range(longest, 254).end,
        longest
    );
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn data_fragments_cover_the_value_in_order(k in 1u8..=255, length in 0usize..100_000) {
        let code = Code::new(255, k).unwrap();
        let full = code.fragment_length(length);
        prop_assert!(full * usize::from(k) >= length && full.is_multiple_of(64));
        prop_assert!(full < length / usize::from(k) + 65, "no more padding than needed");
        let mut end = 0;
        for index in 0..k {
            let range = code.data_range(length, index);
            prop_assert_eq!(range.start, end);
            prop_assert!(range.len() == full || range.end == length);
            end = range.end;
        }
        prop_assert_eq!(end, length);
    }
}

#[test]
#[should_panic(expected = "not a data fragment")]
fn a_parity_fragment_holds_no_range_of_the_value() {
    let _ = Code::new(5, 3).unwrap().data_range(100, 3);
}

#[test]
#[should_panic(expected = "no slice is longer")]
fn a_value_longer_than_any_is_refused() {
    Code::new(5, 3).unwrap().fragment_length(usize::MAX);
}

#[test]
#[should_panic(expected = "one slice per data fragment")]
fn encoding_takes_every_data_fragment() {
    let code = Code::new(3, 2).unwrap();
    code.encode(&[&[1; 64]], &mut [&mut [0; 64]]);
}

#[test]
#[should_panic(expected = "one slice per parity fragment")]
fn encoding_fills_every_parity_fragment() {
    let code = Code::new(5, 3).unwrap();
    code.encode(&[&[1], &[2], &[3]], &mut [&mut [0]]);
}

#[test]
#[should_panic(expected = "equally long")]
fn parity_fragments_are_equally_long() {
    let code = Code::new(5, 3).unwrap();
    code.encode(&[&[1], &[2], &[3]], &mut [&mut [0; 1], &mut [0; 2]]);
}

#[test]
#[should_panic(expected = "longer than the parity fragments")]
fn data_fragments_are_not_longer_than_parity_fragments() {
    let code = Code::new(3, 2).unwrap();
    code.encode(&[&[1], &[2, 2]], &mut [&mut [0; 1]]);
}

/// The error of reconstructing `missing` (index, length of the buffer) from `present` of [5,3].
fn refusal(present: &[(u8, &[u8])], missing: &[(u8, usize)]) -> ReconstructError {
    let code = Code::new(5, 3).unwrap();
    let mut buffers: Vec<Vec<u8>> = missing.iter().map(|&(_, n)| vec![0x5a; n]).collect();
    let mut missing: Vec<(u8, &mut [u8])> = (missing.iter().zip(&mut buffers))
        .map(|(&(index, _), buffer)| (index, buffer.as_mut_slice()))
        .collect();
    let error = code.reconstruct(present, &mut missing).unwrap_err();
    assert!(
        buffers.iter().flatten().all(|&byte| byte == 0x5a),
        "a refusal changes no buffer"
    );
    assert!(!error.to_string().is_empty());
    error
}

#[test]
fn reconstruction_refuses_what_cannot_be_fragments_of_one_value() {
    let (a, b) = ([1; 64], [2; 64]);
    let (short, long) = ([3; 63], [4; 65]);
    let present: [(u8, &[u8]); 3] = [(0, &a), (1, &b), (3, &a)];

    assert_eq!(
        refusal(&present[..2], &[(2, 64)]),
        ReconstructError::TooFewFragments {
            present: 2,
            required: 3
        }
    );
    assert_eq!(
        refusal(&[(0, &a), (1, &b), (5, &a)], &[(2, 64)]),
        ReconstructError::IndexOutOfRange { index: 5, n: 5 }
    );
    assert_eq!(
        refusal(&present, &[(2, 64), (255, 64)]),
        ReconstructError::IndexOutOfRange { index: 255, n: 5 }
    );
    assert_eq!(
        refusal(&[(0, &a), (3, &b), (0, &a)], &[(2, 64)]),
        ReconstructError::DuplicateIndex { index: 0 }
    );
    assert_eq!(
        refusal(&present, &[(2, 64), (2, 64)]),
        ReconstructError::DuplicateIndex { index: 2 }
    );
    assert_eq!(
        refusal(&present, &[(2, 64), (1, 64)]),
        ReconstructError::MissingIsPresent { index: 1 }
    );
    assert_eq!(
        refusal(&[(0, &a), (3, &a), (4, &short)], &[(2, 64)]),
        ReconstructError::FragmentLength {
            index: 4,
            length: 63,
            expected: 64
        }
    );
    assert_eq!(
        refusal(&[(0, &long), (3, &a), (4, &b)], &[(2, 64)]),
        ReconstructError::FragmentLength {
            index: 0,
            length: 65,
            expected: 64
        }
    );
    assert_eq!(
        refusal(&present, &[(2, 65)]),
        ReconstructError::BufferLength {
            index: 2,
            length: 65,
            limit: 64
        }
    );
}

#[test]
fn nothing_missing_is_nothing_to_do() {
    let code = Code::new(5, 3).unwrap();
    let fragments = fragments_of(&code, &[9; 500]);
    let present: Vec<(u8, &[u8])> = (0..).zip(fragments.iter().map(Vec::as_slice)).collect();
    assert_eq!(code.reconstruct(&present, &mut []), Ok(()));
    assert_eq!(code.reconstruct(&present[2..], &mut []), Ok(()));
}

#[test]
fn a_code_shows_its_shape() {
    let code = Code::new(5, 3)
        .unwrap()
        .with_kernel(Kernel::Scalar)
        .unwrap();
    assert_eq!(format!("{code:?}"), "Code { n: 5, k: 3, kernel: Scalar }");
}
