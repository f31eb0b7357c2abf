//! Block identification (4.3, steps 2 and 3): which blocks of a file an edit changes, and to what.
//!
//! The chunks of the new content are compared with the blocks that there were, by their digests: what is common at the
//! beginning and at the end, then, between them, the longest sequence of chunks that is in both in the same order, where
//! the i-th chunk of a kind is compared with the i-th block of that kind. (The papers say *string matching* and leave open
//! which. This one takes O(n log n) for n blocks, whatever they contain.)
//!
//! What lies between two blocks that stay is a *gap*. The blocks in a gap, empty ones among them, take the chunks in their
//! order; chunks that are left over become new blocks after the last of them, or after the block before the gap; blocks
//! that are left over become empty. None is ever unlinked (`[B-1 never-unlinked]`).

use super::Digest;
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

/// One step from the old sequence to the new one. Ranges are places in the old and in the new sequence.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Opcode {
    /// Equal blocks of both lists.
    Equal(Range<usize>, Range<usize>),
    /// Old blocks are replaced by new ones; neither range is empty.
    Replace(Range<usize>, Range<usize>),
    /// New blocks, at this place of the old sequence.
    Insert(usize, Range<usize>),
    /// Removed blocks, at this place of the new sequence.
    Delete(Range<usize>, usize),
}

/// The way from `old` to `new`.
pub fn opcodes(old: &[Digest], new: &[Digest]) -> Vec<Opcode> {
    let mut codes = Vec::new();
    let (mut a, mut b) = (0, 0);
    let end = (old.len(), new.len());
    for (in_old, in_new) in matches(old, new).into_iter().chain([end]) {
        assert!(a <= in_old && b <= in_new, "pairs ascend in both");
        let (gone, come) = (a..in_old, b..in_new);
        match (gone.is_empty(), come.is_empty()) {
            (true, true) => {}
            (true, false) => codes.push(Opcode::Insert(a, come)),
            (false, true) => codes.push(Opcode::Delete(gone, b)),
            (false, false) => codes.push(Opcode::Replace(gone, come)),
        }
        if (in_old, in_new) == end {
            break;
        }
        match codes.last_mut() {
            Some(Opcode::Equal(x, y)) if x.end == in_old && y.end == in_new => {
                (x.end, y.end) = (x.end + 1, y.end + 1);
            }
            _ => codes.push(Opcode::Equal(in_old..in_old + 1, in_new..in_new + 1)),
        }
        (a, b) = (in_old + 1, in_new + 1);
    }
    codes
}

/// Pairs of places with the same digest, ascending in both.
fn matches(old: &[Digest], new: &[Digest]) -> Vec<(usize, usize)> {
    let same = |(a, b): &(&Digest, &Digest)| a == b;
    let front = old.iter().zip(new).take_while(same).count();
    let (old_rest, new_rest) = (&old[front..], &new[front..]);
    let back = old_rest.iter().rev().zip(new_rest.iter().rev());
    let back = back.take_while(same).count();
    let shorter = old.len().min(new.len());
    assert!(front + back <= shorter, "front and back do not overlap");
    let middle = common(
        &old_rest[..old_rest.len() - back],
        &new_rest[..new_rest.len() - back],
    );
    let front_pairs = (0..front).map(|place| (place, place));
    let middle_pairs = middle.into_iter().map(|(a, b)| (front + a, front + b));
    let (old_back, new_back) = (old.len() - back, new.len() - back);
    let back_pairs = (0..back).map(|place| (old_back + place, new_back + place));
    front_pairs.chain(middle_pairs).chain(back_pairs).collect()
}

/// The longest ascending sequence of pairs of equal occurrences.
fn common(old: &[Digest], new: &[Digest]) -> Vec<(usize, usize)> {
    let mut places: BTreeMap<Digest, VecDeque<usize>> = BTreeMap::new();
    for (place, digest) in old.iter().enumerate() {
        places.entry(*digest).or_default().push_back(place);
    }
    // Patience: `ends[length - 1]` is the pair with the smallest place in `old` that ends a sequence of that length.
    let mut pairs: Vec<(usize, usize, Option<usize>)> = Vec::new();
    let mut ends: Vec<usize> = Vec::new();
    for (in_new, digest) in new.iter().enumerate() {
        let next = places.get_mut(digest).and_then(VecDeque::pop_front);
        let Some(in_old) = next else { continue };
        let length = ends.partition_point(|pair| pairs[*pair].0 < in_old);
        let before = length.checked_sub(1).map(|shorter| ends[shorter]);
        pairs.push((in_old, in_new, before));
        ends.truncate(length.max(ends.len()));
        match ends.get_mut(length) {
            Some(end) => *end = pairs.len() - 1,
            None => ends.push(pairs.len() - 1),
        }
    }
    let mut sequence = Vec::new();
    let mut last = ends.last().copied();
    while let Some(pair) = last {
        let (in_old, in_new, before) = pairs[pair];
        sequence.push((in_old, in_new));
        last = before;
    }
    assert_eq!(sequence.len(), ends.len(), "it is the longest");
    sequence.reverse();
    sequence
}

/// The change of one block: the sequence `<D0, D1..Dj>` of 4.3.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Update {
    /// The block's place in the list; `None` is the genesis block, which has no data.
    pub block: Option<usize>,
    /// D0: the chunk that it has from now on; `None`: it is empty.
    pub chunk: Option<usize>,
    /// D1 to Dj: the chunks that become new blocks after it.
    pub after: Vec<usize>,
}

/// The updates that make the blocks of a file the chunks of its new content. `blocks`: the digest of each block of the list
/// without genesis; `None`: it is empty.
pub fn updates(blocks: &[Option<Digest>], chunks: &[Digest]) -> Vec<Update> {
    let full: Vec<usize> = (0..blocks.len())
        .filter(|block| blocks[*block].is_some())
        .collect();
    let digests: Vec<Digest> = blocks.iter().copied().flatten().collect();
    let end = (blocks.len(), chunks.len());
    let stay = matches(&digests, chunks).into_iter();
    let stay = stay.map(|(place, chunk)| (full[place], chunk));
    let mut updates: Vec<Update> = Vec::new();
    let (mut block, mut chunk) = (0, 0);
    // The block before the gap, with its chunk: the last one that stays.
    let mut before = None;
    for (stays, its_chunk) in stay.chain([end]) {
        assert!(block <= stays && chunk <= its_chunk, "pairs ascend in both");
        gap(blocks, block..stays, chunk..its_chunk, before, &mut updates);
        before = Some((stays, its_chunk));
        (block, chunk) = (stays + 1, its_chunk + 1);
    }
    updates
}

/// Assigns the chunks between two equal blocks to the old blocks there.
fn gap(
    blocks: &[Option<Digest>],
    gap: Range<usize>,
    chunks: Range<usize>,
    before: Option<(usize, usize)>,
    updates: &mut Vec<Update>,
) {
    let full = gap.clone().filter(|block| blocks[*block].is_some()).count();
    // Empty blocks take a chunk only where there are not enough others, so that no more is written than must be.
    let mut empty = chunks.len().saturating_sub(full);
    let takes = |block: &usize| {
        let is_full = blocks[*block].is_some();
        let takes = is_full || empty > 0;
        empty -= usize::from(!is_full && takes);
        takes
    };
    let takers: Vec<usize> = gap.filter(takes).collect();
    let mut rest = chunks;
    let first = updates.len();
    for block in &takers {
        updates.push(Update {
            block: Some(*block),
            chunk: rest.next(),
            after: Vec::new(),
        });
    }
    if rest.is_empty() {
        return;
    }
    match updates[first..].last_mut() {
        Some(last) => last.after = rest.collect(),
        None => updates.push(Update {
            block: before.map(|(block, _)| block),
            chunk: before.map(|(_, chunk)| chunk),
            after: rest.collect(),
        }),
    }
}

#[cfg(test)]
mod tests;
