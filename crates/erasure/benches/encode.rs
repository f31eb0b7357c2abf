//! Encoding and decoding against `memcpy` of the same value in the same run: `cargo bench -p areo-erasure`, or with
//! `-- NAME` on the kernel of that name.
//!
//! Machines are shared and noisy: the figure that can be compared is the ratio, the median of several rounds in each of
//! which the three are measured in turn. Figures are GB (10^9 bytes) of value per second.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a report on standard output"
)]

use std::hint::black_box;
use std::time::{Duration, Instant};

use areo_erasure::{Code, Kernel};

const SHAPES: [(u8, u8); 5] = [(3, 2), (5, 3), (9, 5), (11, 6), (14, 10)];
const VALUE_LENGTHS: [usize; 4] = [4 << 10, 64 << 10, 1 << 20, 16 << 20];
const ROUNDS: usize = 7;
const ROUND: Duration = Duration::from_millis(12);
const ALIGNMENT: usize = 64;

fn main() {
    // Cargo adds flags of its own (`--bench`).
    let name = std::env::args()
        .skip(1)
        .find(|argument| !argument.starts_with('-'));
    let kernel = name.map_or(Kernel::best(), |name| {
        let named = Kernel::ALL.into_iter().find(|kernel| kernel.name() == name);
        named.unwrap_or_else(|| panic!("no kernel is named {name}"))
    });
    println!(
        "kernel {}; median (min - max) of {ROUNDS} rounds, GB/s of value; x = ratio to memcpy",
        kernel.name()
    );
    for (n, k) in SHAPES {
        let code = Code::new(n, k).expect("a shape of the list");
        let code = code.with_kernel(kernel).expect("asked of this machine");
        for length in VALUE_LENGTHS {
            measure(&code, length);
        }
    }
}

fn measure(code: &Code, length: usize) {
    let (n, k) = (code.n(), code.k());
    let lost = (n - k).min(2).min(k);
    let mut value = Buffer::new(length);
    for (position, byte) in value.bytes().iter_mut().enumerate() {
        *byte = (position * 31 + position / 251) as u8;
    }
    let value = &*value.bytes();
    let data: Vec<&[u8]> = (0..k)
        .map(|index| &value[code.data_range(length, index)])
        .collect();
    let mut copy = Buffer::new(length);
    let mut parity = Buffers::new((n - k).into(), code.fragment_length(length));
    let mut parity = parity.slices();
    code.encode(&data, &mut parity);
    let kept = parity.iter().map(|fragment| fragment.to_vec());
    let kept: Vec<Vec<u8>> = kept.collect();
    let present: Vec<(u8, &[u8])> = (lost..k)
        .map(|index| (index, data[usize::from(index)]))
        .chain((k..n).zip(kept.iter().map(Vec::as_slice)))
        .collect();
    let mut recovered = Buffers::new(lost.into(), code.fragment_length(length));
    let mut recovered: Vec<(u8, &mut [u8])> = (0..lost).zip(recovered.slices()).collect();
    for (index, buffer) in &mut recovered {
        *buffer = &mut std::mem::take(buffer)[..data[usize::from(*index)].len()];
    }

    let (mut encodes, mut decodes, mut copies) = (vec![], vec![], vec![]);
    for _ in 0..ROUNDS {
        copies.push(speed(length, || {
            copy.bytes().copy_from_slice(black_box(value));
            black_box(copy.bytes());
        }));
        encodes.push(speed(length, || {
            code.encode(black_box(&data), black_box(&mut parity));
        }));
        decodes.push(speed(length, || {
            let done = code.reconstruct(black_box(&present), black_box(&mut recovered));
            done.expect("k fragments are present");
        }));
    }
    for (index, buffer) in &recovered {
        assert_eq!(
            **buffer,
            *data[usize::from(*index)],
            "decoding gives the value"
        );
    }
    println!(
        "{:>8} {:>6} KiB  memcpy {}  encode {}  decode {lost} lost {}",
        format!("[{n},{k}]"),
        length >> 10,
        summary(&copies, None),
        summary(&encodes, Some(&copies)),
        summary(&decodes, Some(&copies)),
    );
}

/// GB/s of value over about [`ROUND`].
fn speed(length: usize, mut operation: impl FnMut()) -> f64 {
    let mut repetitions = 0u32;
    let start = Instant::now();
    // The clock is read once per 256 KiB, so that it does not count.
    let batch = ((256 << 10) / length).max(1) as u32;
    loop {
        for _ in 0..batch {
            operation();
        }
        repetitions += batch;
        let elapsed = start.elapsed();
        if elapsed >= ROUND {
            return length as f64 * f64::from(repetitions) / elapsed.as_secs_f64() / 1e9;
        }
    }
}

fn summary(speeds: &[f64], reference: Option<&[f64]>) -> String {
    let sorted = |mut figures: Vec<f64>| {
        figures.sort_by(f64::total_cmp);
        figures
    };
    let figures = sorted(speeds.to_vec());
    let (median, last) = (figures[figures.len() / 2], figures[figures.len() - 1]);
    let range = format!("{median:>6.1} ({:>5.1} - {last:>5.1})", figures[0]);
    let Some(reference) = reference else {
        return range;
    };
    let ratios = sorted(speeds.iter().zip(reference).map(|(a, b)| a / b).collect());
    format!("{range} {:>4.2}x", ratios[ratios.len() / 2])
}

/// Bytes on a boundary of cache lines, as the store and the network hold them.
struct Buffer(Vec<u8>, usize);

impl Buffer {
    fn new(length: usize) -> Buffer {
        Buffer(vec![1; length + ALIGNMENT], length)
    }

    fn bytes(&mut self) -> &mut [u8] {
        let offset = self.0.as_ptr().align_offset(ALIGNMENT);
        &mut self.0[offset..offset + self.1]
    }
}

struct Buffers(Vec<Buffer>);

impl Buffers {
    fn new(count: usize, length: usize) -> Buffers {
        Buffers((0..count).map(|_| Buffer::new(length)).collect())
    }

    fn slices(&mut self) -> Vec<&mut [u8]> {
        self.0.iter_mut().map(Buffer::bytes).collect()
    }
}
