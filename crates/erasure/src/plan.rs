//! The multiples of known fragments that make each wanted fragment.
//!
//! Fragment `x` is `sum over known s of L(s, x) * fragment s` with the Lagrange coefficient
//! `L(s, x) = product over known t != s of (x - t) / (s - t)`, where minus is exclusive or. Encoding is the case that
//! `0..k` are known. There is no matrix to invert; what is left is about `k * (k + wanted)` additions of logarithms,
//! which are still worth remembering for the sets of survivors that are seen again and again.

use std::cell::RefCell;
use std::rc::Rc;

use crate::field::{EXP, GROUP_ORDER, LOG};

/// Plans remembered per thread. One is at most 16 KiB (128 known, 127 wanted), and 6 bytes for two wanted of [5,3].
const CACHE_SLOTS: usize = 64;

/// A set of fragment indices.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct IndexSet([u64; 4]);

impl IndexSet {
    /// The indices below `end`.
    pub(crate) fn below(end: u8) -> IndexSet {
        (0..end).collect()
    }

    /// False if the index was already in the set.
    pub(crate) fn insert(&mut self, index: u8) -> bool {
        let was_absent = !self.contains(index);
        self.0[usize::from(index / 64)] |= 1 << (index % 64);
        was_absent
    }

    pub(crate) fn contains(&self, index: u8) -> bool {
        self.0[usize::from(index / 64)] >> (index % 64) & 1 == 1
    }

    pub(crate) fn len(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// The number of members that are below `index`: the position of a member in ascending order.
    pub(crate) fn rank(&self, index: u8) -> usize {
        let word = usize::from(index / 64);
        let below = self.0[word] & ((1 << (index % 64)) - 1);
        let before = self.0[..word].iter().map(|word| word.count_ones());
        (before.sum::<u32>() + below.count_ones()) as usize
    }

    /// The members in ascending order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = u8> + '_ {
        (0..4u8).flat_map(move |word| {
            let mut rest = self.0[usize::from(word)];
            std::iter::from_fn(move || {
                let lowest = (rest != 0).then(|| rest.trailing_zeros() as u8)?;
                rest &= rest - 1;
                Some(word * 64 + lowest)
            })
        })
    }
}

impl FromIterator<u8> for IndexSet {
    fn from_iter<I: IntoIterator<Item = u8>>(indices: I) -> IndexSet {
        let mut set = IndexSet::default();
        for index in indices {
            set.insert(index);
        }
        set
    }
}

/// The coefficients that make the `wanted` fragments from the `known` ones, one column per known fragment and in it
/// one coefficient per wanted fragment, both in ascending order. Depends on nothing else, so every code shares it.
pub(crate) fn coefficients(known: IndexSet, wanted: IndexSet) -> Box<[u8]> {
    assert!(
        known.iter().all(|index| !wanted.contains(index)),
        "a known fragment needs no coefficients"
    );
    let log_of_difference = |a: u8, b: u8| u32::from(LOG[usize::from(a ^ b)]);
    let log_of_numerators: Vec<u32> = wanted
        .iter()
        .map(|x| known.iter().map(|t| log_of_difference(x, t)).sum())
        .collect();

    let mut coefficients = Vec::with_capacity(known.len() * wanted.len());
    for s in known.iter() {
        let others = known.iter().filter(|&t| t != s);
        let log_of_denominator: u32 = others.map(|t| log_of_difference(s, t)).sum();
        // Below GROUP_ORDER, so that subtracting it from a multiple of GROUP_ORDER stays positive.
        let log_of_denominator = log_of_denominator % GROUP_ORDER;
        for (x, log_of_numerator) in wanted.iter().zip(&log_of_numerators) {
            // The numerator lacks the factor of s itself.
            let log = log_of_numerator - log_of_difference(x, s) + GROUP_ORDER - log_of_denominator;
            coefficients.push(EXP[(log % GROUP_ORDER) as usize]);
        }
    }
    coefficients.into_boxed_slice()
}

/// [`coefficients`], remembered per thread: a hit takes no lock, allocates nothing and costs one comparison of keys.
pub(crate) fn cached_coefficients(known: IndexSet, wanted: IndexSet) -> Rc<[u8]> {
    thread_local! {
        static CACHE: RefCell<[Option<Entry>; CACHE_SLOTS]> = const { RefCell::new([const { None }; CACHE_SLOTS]) };
    }
    CACHE.with_borrow_mut(|slots| {
        let slot = &mut slots[slot_of(known, wanted)];
        if let Some(entry) = slot
            && entry.known == known
            && entry.wanted == wanted
        {
            return Rc::clone(&entry.coefficients);
        }
        // Two sets that share a slot replace each other: bounded without bookkeeping on a hit.
        let coefficients: Rc<[u8]> = coefficients(known, wanted).into();
        *slot = Some(Entry {
            known,
            wanted,
            coefficients: Rc::clone(&coefficients),
        });
        coefficients
    })
}

struct Entry {
    known: IndexSet,
    wanted: IndexSet,
    coefficients: Rc<[u8]>,
}

fn slot_of(known: IndexSet, wanted: IndexSet) -> usize {
    // An odd constant with irregular bits spreads every word's change to the top bits, which select the slot.
    let mixed = known.0.iter().chain(&wanted.0).fold(0u64, |hash, word| {
        (hash.rotate_left(23) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    });
    (mixed >> (u64::BITS - CACHE_SLOTS.ilog2())) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_set_counts_ranks_and_lists_in_order() {
        let members = [0, 1, 63, 64, 127, 128, 191, 192, 254, 255];
        let mut set: IndexSet = members.into_iter().rev().collect();
        assert_eq!(set.len(), members.len());
        assert!(set.iter().eq(members));
        for (rank, member) in members.into_iter().enumerate() {
            assert_eq!(set.rank(member), rank);
            assert!(!set.insert(member), "already a member");
        }
        assert!(!set.contains(65));
        assert!(set.insert(65));
        assert!(IndexSet::below(70).iter().eq(0..70));
    }

    #[test]
    fn coefficients_of_a_known_small_code() {
        // [3,2]: L(0, 2) = (2 - 1) / (0 - 1) = 3 and L(1, 2) = (2 - 0) / (1 - 0) = 2.
        let plan = coefficients(IndexSet::below(2), [2].into_iter().collect());
        assert_eq!(*plan, [3, 2]);
    }

    #[test]
    fn replication_is_the_case_of_one_known_fragment() {
        let wanted: IndexSet = (0..255).filter(|&index| index != 17).collect();
        assert!(
            coefficients([17].into_iter().collect(), wanted)
                .iter()
                .all(|&c| c == 1)
        );
    }

    #[test]
    fn the_cache_returns_what_it_would_compute_whatever_was_asked_before() {
        // More pairs than slots, twice, so that slots are hit, replaced and filled again.
        for _ in 0..2 {
            for first in 0..100u8 {
                let known: IndexSet = [first, first + 1, first + 3].into_iter().collect();
                for wanted in [[first + 2, first + 9], [first + 2, first + 10]] {
                    let wanted: IndexSet = wanted.into_iter().collect();
                    let cached = cached_coefficients(known, wanted);
                    assert_eq!(*cached, *coefficients(known, wanted));
                }
            }
        }
    }
}
