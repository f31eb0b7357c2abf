//! Sums of products over fragments of uneven length, without copying a fragment because it is short.

use crate::kernel::{BLOCK, Engine, Term};

/// Terms that a ragged block pads at once: bounds the stack that padding takes to 1 KiB.
const PADDED_TERMS: usize = 16;
/// Outputs that a ragged block computes at once.
const PADDED_OUTPUTS: usize = 8;

/// Overwrites every output with its sum over the terms. The outputs are in order of falling length; the terms come in
/// any order and are put in another.
pub(crate) fn combine(engine: Engine, terms: &mut [Term<'_>], outputs: &mut [&mut [u8]]) {
    assert!(
        terms
            .iter()
            .all(|term| term.coefficients.len() == outputs.len()),
        "one coefficient per output"
    );
    assert!(
        outputs.is_sorted_by(|a, b| a.len() >= b.len()),
        "the outputs still unfinished are always the first ones"
    );
    if let [term] = terms
        && term.coefficients.iter().all(|&c| c == 1)
    {
        return replicate(term.bytes, outputs);
    }

    // A multiple of BLOCK up to the end of the loop. Up to here every output is done.
    let mut position = 0;
    let mut live_terms = terms.len();
    let mut live_outputs = outputs.len();
    loop {
        while live_outputs > 0 && outputs[live_outputs - 1].len() <= position {
            live_outputs -= 1;
        }
        if live_outputs == 0 {
            return;
        }
        live_terms = retire(&mut terms[..live_terms], position);
        let (terms, outputs) = (&terms[..live_terms], &mut outputs[..live_outputs]);
        if terms.is_empty() {
            for output in outputs {
                output[position..].fill(0);
            }
            return;
        }

        let shortest_output = outputs[live_outputs - 1].len();
        let end = (terms.iter().map(|term| term.bytes.len())).fold(shortest_output, usize::min);
        assert!(end > position, "what has ended was retired");
        let whole = (end - position) / BLOCK * BLOCK;
        if whole > 0 {
            engine.combine(terms, outputs, position..position + whole);
            position += whole;
        } else {
            combine_ragged_block(engine, terms, outputs, position);
            position += BLOCK;
        }
    }
}

fn replicate(bytes: &[u8], outputs: &mut [&mut [u8]]) {
    for output in outputs {
        let length = bytes.len().min(output.len());
        output[..length].copy_from_slice(&bytes[..length]);
        output[length..].fill(0);
    }
}

/// Moves the terms that have bytes at `position` to the front and returns how many they are.
fn retire(terms: &mut [Term<'_>], position: usize) -> usize {
    let mut live = terms.len();
    let mut at = 0;
    while at < live {
        if terms[at].bytes.len() > position {
            at += 1;
        } else {
            live -= 1;
            terms.swap(at, live);
        }
    }
    live
}

/// The block at `position`, where a term or an output ends, on padded copies of its at most 64 bytes per fragment.
fn combine_ragged_block(
    engine: Engine,
    terms: &[Term<'_>],
    outputs: &mut [&mut [u8]],
    position: usize,
) {
    for (chunk_number, chunk) in terms.chunks(PADDED_TERMS).enumerate() {
        let mut padded = [[0; BLOCK]; PADDED_TERMS];
        for (padded, term) in padded.iter_mut().zip(chunk) {
            let length = BLOCK.min(term.bytes.len() - position);
            padded[..length].copy_from_slice(&term.bytes[position..position + length]);
        }
        for (group_number, group) in outputs.chunks_mut(PADDED_OUTPUTS).enumerate() {
            let first = group_number * PADDED_OUTPUTS;
            let mut padded_terms = [Term::EMPTY; PADDED_TERMS];
            for ((padded_term, padded), term) in padded_terms.iter_mut().zip(&padded).zip(chunk) {
                *padded_term = Term {
                    bytes: padded,
                    coefficients: &term.coefficients[first..first + group.len()],
                };
            }
            let mut sums = [[0; BLOCK]; PADDED_OUTPUTS];
            let mut sums_as_outputs = sums.each_mut().map(<[u8; BLOCK]>::as_mut_slice);
            engine.combine(
                &padded_terms[..chunk.len()],
                &mut sums_as_outputs[..group.len()],
                0..BLOCK,
            );
            for (output, sum) in group.iter_mut().zip(&sums) {
                let end = output.len().min(position + BLOCK);
                let output = &mut output[position..end];
                if chunk_number == 0 {
                    output.copy_from_slice(&sum[..output.len()]);
                } else {
                    (output.iter_mut().zip(sum)).for_each(|(byte, addend)| *byte ^= addend);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
