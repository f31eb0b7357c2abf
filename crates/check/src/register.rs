//! Linearizable registers: one object, values unique per write, deletes that all write the same *absent*, and writes
//! that may take effect at any later time or never.
//!
//! # The zones of values (Gibbons and Korach, "Testing shared memories", 1997)
//!
//! A write and the reads of its value are a *cluster*. With `f` the first end and `s` the last start in it, the value
//! must be there all the time from `f` to `s` if `f < s` (a *forward* zone), and otherwise (a *backward* zone) at some
//! instant from `s` to `f`, where the whole cluster can take effect at once. Without absence the history is
//! linearizable iff every read starts no later than its write allows, no two forward zones overlap, and no backward
//! zone lies inside a forward one. An unknown write whose value no read returned never took effect; one that was read has no end
//! of its own.
//!
//! # Absence
//!
//! Deletes cannot be distinguished by value, so they form no clusters. Module `absence` decides where they take effect.

mod absence;

use std::collections::HashMap;
use std::hash::Hash;

/// The action of one step of a register; nothing is absent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    Read(Option<u32>),
    Write(Option<u32>),
}

/// The end of a step that may take effect at any later time or never.
pub(crate) const OPEN: u32 = u32::MAX;

/// One step of one register. All starts and ends are different numbers, except for [`OPEN`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) action: Action,
    pub(crate) start: u32,
    /// [`OPEN`] only for writes.
    pub(crate) end: u32,
}

/// Why a register is not linearizable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flaw {
    /// A read of a value that no write wrote.
    NeverWritten { read: usize },
    /// A read that ended before the write of its value started.
    ReadBeforeWritten { read: usize, write: usize },
    /// Two values that both had to be there at one instant.
    TwoAtOnce {
        first: [usize; 3],
        second: [usize; 3],
    },
    /// A value (or a delete, or an absence that was read) with no instant for it, as another value had to be there.
    NoInstant {
        around: [usize; 3],
        inside: [usize; 3],
    },
    /// An absence was read, and no delete can be placed where it would explain it.
    NotDeleted { read: usize },
}

impl Flaw {
    /// The steps that show it. They show it on their own, except for [`Flaw::NotDeleted`], where every other step
    /// may matter.
    pub(crate) fn witness(&self) -> Vec<usize> {
        let mut steps = match *self {
            Flaw::NeverWritten { read } | Flaw::NotDeleted { read } => vec![read],
            Flaw::ReadBeforeWritten { read, write } => vec![write, read],
            Flaw::TwoAtOnce { first, second } => [first, second].concat(),
            Flaw::NoInstant { around, inside } => [around, inside].concat(),
        };
        steps.sort_unstable();
        steps.dedup();
        steps
    }
}

/// Two writes of one value: the history is outside of what can be judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NotUnique {
    pub(crate) first: usize,
    pub(crate) second: usize,
}

/// An interval in which something must be (forward) or happen (backward).
#[derive(Debug, Clone, Copy)]
pub(crate) struct Zone {
    pub(crate) low: u32,
    pub(crate) high: u32,
    /// The steps that make it: the write, the one that ends first, the one that starts last.
    pub(crate) steps: [usize; 3],
}

#[derive(Debug, Clone, Copy)]
struct Cluster {
    write: Option<usize>,
    first_end: usize,
    last_start: usize,
    is_read: bool,
}

/// Checks that no value is written twice.
pub(crate) fn unique(steps: &[Step]) -> Result<(), NotUnique> {
    let mut writes = HashMap::new();
    for (second, step) in steps.iter().enumerate() {
        if let Action::Write(Some(value)) = step.action
            && let Some(first) = writes.insert(value, second)
        {
            return Err(NotUnique { first, second });
        }
    }
    Ok(())
}

/// Checks that the steps are linearizable, in time `n log n`. Values must be [`unique`].
pub(crate) fn check(steps: &[Step]) -> Result<(), Flaw> {
    let mut forward = Vec::new();
    let mut backward = Vec::new();
    for cluster in clusters(steps)? {
        let (f, s) = (
            steps[cluster.first_end].end,
            steps[cluster.last_start].start,
        );
        let write = cluster
            .write
            .expect("a cluster without write is a flaw of its own");
        let zone = Zone {
            low: f.min(s),
            high: f.max(s),
            steps: [write, cluster.first_end, cluster.last_start],
        };
        match f < s {
            true => forward.push(zone),
            false => backward.push(zone),
        }
    }
    forward.sort_unstable_by_key(|zone| zone.low);
    for pair in forward.windows(2) {
        if pair[1].low < pair[0].high {
            return Err(Flaw::TwoAtOnce {
                first: pair[0].steps,
                second: pair[1].steps,
            });
        }
    }
    absence::check(steps, &forward, &backward)
}

/// The clusters that took effect, in the order of their first steps.
fn clusters(steps: &[Step]) -> Result<Vec<Cluster>, Flaw> {
    let mut places = HashMap::with_capacity(steps.len() / 2);
    let mut clusters: Vec<Cluster> = Vec::new();
    for (index, step) in steps.iter().enumerate() {
        let (Action::Read(Some(value)) | Action::Write(Some(value))) = step.action else {
            continue;
        };
        let cluster = entry(&mut places, &mut clusters, value, index);
        match step.action {
            Action::Write(_) => cluster.write = Some(index),
            Action::Read(_) => cluster.is_read = true,
        }
        if step.end < steps[cluster.first_end].end {
            cluster.first_end = index;
        }
        if step.start > steps[cluster.last_start].start {
            cluster.last_start = index;
        }
    }
    for cluster in &clusters {
        let read = cluster.first_end;
        let Some(write) = cluster.write else {
            return Err(Flaw::NeverWritten { read });
        };
        if steps[read].end < steps[write].start {
            return Err(Flaw::ReadBeforeWritten { read, write });
        }
    }
    clusters.retain(|cluster| cluster.is_read || steps[cluster.first_end].end != OPEN);
    Ok(clusters)
}

fn entry<'c, K: Hash + Eq>(
    places: &mut HashMap<K, usize>,
    clusters: &'c mut Vec<Cluster>,
    key: K,
    index: usize,
) -> &'c mut Cluster {
    let place = *places.entry(key).or_insert_with(|| {
        clusters.push(Cluster {
            write: None,
            first_end: index,
            last_start: index,
            is_read: false,
        });
        clusters.len() - 1
    });
    &mut clusters[place]
}

#[cfg(test)]
mod tests;
