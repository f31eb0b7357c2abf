//! The verdict on the operations of a case, and the smallest set of operations that shows a violation.
//!
//! A set of operations is judged by `areo-check`. Operations are left out while the rest is still illegal. An operation never goes without those that depend on
//! it: reads of its value, and for a deletion all that needs the object to be absent. A conditional write whose base is left out loses its condition. Any order
//! that explains the whole set then explains the smaller one, so that leaving out never makes a violation.

use super::history::{Versions, events};
use super::operation::{Action, Condition, Ending, Operation};
use areo_check::{History, Report, Verdict, judge};
use std::collections::BTreeMap;

/// Sets of three operations are tried in objects of at most this many operations: about a second.
const TRIPLES_MAX: usize = 48;

/// A violation, as places in the operations of a case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Finding {
    pub(super) what: String,
    pub(super) places: Vec<usize>,
}

/// Everything that is wrong, one finding for each object. Operations are in the order in which they were sent.
pub(super) fn findings(operations: &[Operation]) -> Vec<Finding> {
    let mut by_key: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (place, one) in operations.iter().enumerate() {
        by_key.entry(&one.key).or_default().push(place);
    }
    let versions = Versions::of(operations);
    let judged = by_key.values().filter_map(|places| {
        let object = Object {
            operations,
            versions: &versions,
        };
        object.finding(places).or_else(|| object.refused(places))
    });
    let mut found: Vec<Finding> = judged.collect();
    found.sort_by_key(|finding| finding.places.len());
    found
}

/// The operations of one object.
struct Object<'a> {
    operations: &'a [Operation],
    versions: &'a Versions<'a>,
}

impl Object<'_> {
    fn report(&self, places: &[usize]) -> Report {
        let history = History::from_events(events(self.operations, places, self.versions));
        judge(&history.expect("each operation is invoked and ends once"))
    }

    fn is_illegal(&self, places: &[usize]) -> bool {
        self.report(places).verdict == Verdict::Violated
    }

    fn finding(&self, places: &[usize]) -> Option<Finding> {
        if !self.is_illegal(places) {
            return None;
        }
        let few = self.without_needless(places.to_vec());
        let places = self.smaller(places, few.len()).unwrap_or(few);
        let report = self.report(&places);
        let mut violations = report.properties.iter().flat_map(|one| &one.violations);
        // A winner too many says more than the order that it breaks.
        let first = violations
            .clone()
            .find(|one| one.what.contains("conditional"));
        let first = first.or_else(|| violations.next());
        let what = first.map(|one| one.what.clone());
        Some(Finding {
            what: what.expect("an illegal set has a violation"),
            places,
        })
    }

    /// Leaves out operations, first in large parts, then one by one.
    fn without_needless(&self, mut places: Vec<usize>) -> Vec<usize> {
        let mut part = places.len().div_ceil(2);
        loop {
            let before = places.len();
            let mut from = 0;
            while from < places.len() {
                let gone = places[from..(from + part).min(places.len())].to_vec();
                let rest = self.without(&places, gone);
                match self.is_illegal(&rest) {
                    true => places = rest,
                    false => from += part,
                }
            }
            match part {
                1 if places.len() == before => return places,
                1 => {}
                _ => part = part.div_ceil(2),
            }
        }
    }

    /// The rest without some operations and those that depend on them.
    fn without(&self, places: &[usize], mut gone: Vec<usize>) -> Vec<usize> {
        let mut seen = 0;
        while let Some(&at) = gone.get(seen) {
            seen += 1;
            let depend = places.iter().copied();
            let depend = depend.filter(|&other| other != at && self.depends(other, at));
            let depend: Vec<usize> = depend.filter(|other| !gone.contains(other)).collect();
            gone.extend(depend);
        }
        let stays = |place: &usize| !gone.contains(place);
        places.iter().copied().filter(stays).collect()
    }

    /// True if an operation is explained by another one.
    fn depends(&self, place: usize, other: usize) -> bool {
        let (one, other) = (&self.operations[place], &self.operations[other]);
        let is_read = other.written().is_some() && one.observed() == other.written();
        let needs_deletion = other.is_deletion()
            && one.needs_absence()
            && (one.ending == Ending::Unknown || one.ended_ns > other.invoked_ns);
        is_read || needs_deletion
    }

    /// The smallest set of fewer than `than` operations that one, two or three operations and those that explain them make.
    fn smaller(&self, places: &[usize], than: usize) -> Option<Vec<usize>> {
        let mut sets = Vec::new();
        for (i, &a) in places.iter().enumerate() {
            sets.push(self.explained(places, vec![a]));
            let pairs = if than > 2 { i + 1 } else { places.len() };
            for (j, &b) in places.iter().enumerate().skip(pairs) {
                sets.push(self.explained(places, vec![a, b]));
                let more = (places.len() <= TRIPLES_MAX && than > 3).then_some(j + 1);
                for &c in more.map_or(&[][..], |from| &places[from..]) {
                    sets.push(self.explained(places, vec![a, b, c]));
                }
            }
        }
        sets.retain(|set| set.len() < than);
        sets.sort();
        sets.dedup();
        sets.sort_by_key(Vec::len);
        sets.into_iter().find(|set| self.is_illegal(set))
    }

    /// The set with all operations that explain one of it.
    fn explained(&self, places: &[usize], mut set: Vec<usize>) -> Vec<usize> {
        let mut seen = 0;
        while let Some(&at) = set.get(seen) {
            seen += 1;
            let explain = places.iter().copied();
            let explain = explain.filter(|&other| other != at && self.depends(at, other));
            let explain: Vec<usize> = explain.filter(|other| !set.contains(other)).collect();
            set.extend(explain);
        }
        set.sort_unstable();
        set
    }

    /// A condition that surely held when the store said that it did not. The whole history counts: less of it would make such a refusal.
    fn refused(&self, places: &[usize]) -> Option<Finding> {
        places.iter().find_map(|&place| {
            let one = &self.operations[place];
            if one.ending != Ending::ConditionFailed {
                return None;
            }
            let (Action::Put { condition, .. } | Action::Delete { condition }) = &one.action else {
                return None;
            };
            let writes = places.iter().copied();
            let mut writes = writes.filter(|&other| {
                let other = &self.operations[other];
                other.may_have_effect() && other.invoked_ns <= one.ended_ns
            });
            match condition {
                Condition::None => None,
                Condition::Absent => writes.next().is_none().then(|| Finding {
                    what: "a write that requires absence was refused although nothing was ever written"
                        .to_owned(),
                    places: vec![place],
                }),
                Condition::Match(base) => {
                    let writes: Vec<usize> = writes.collect();
                    let of_base = |place: &&usize| {
                        let one = &self.operations[**place];
                        one.written() == Some(base) && one.ending == Ending::Done
                    };
                    let &base = writes.iter().find(of_base)?;
                    let since = self.operations[base].invoked_ns;
                    let is_before = |&place: &usize| {
                        let other = &self.operations[place];
                        place == base || (other.ending == Ending::Done && other.ended_ns < since)
                    };
                    let is_there = self.operations[base].ended_ns < one.invoked_ns
                        && writes.iter().all(is_before);
                    is_there.then(|| Finding {
                        what: "a condition was refused although the object had the ETag that it names"
                            .to_owned(),
                        places: vec![base, place],
                    })
                }
            }
        })
    }
}

#[cfg(test)]
mod tests;
