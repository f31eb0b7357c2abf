//! The known versions of one object, checked against real time: the oracle by tags (O1).

use crate::Version;
use crate::history::{Effect, Name, Outcome};
use crate::view::{Finding, View};
use std::collections::{BTreeMap, HashMap, HashSet};

/// The versions of one object.
#[derive(Debug, Default)]
pub(crate) struct Versions {
    /// For each operation the version that it wrote or returned. An unknown write has one if a read returned its
    /// value.
    pub(crate) of: Vec<Option<Version>>,
    /// The operation that wrote each version.
    pub(crate) creator: BTreeMap<Version, usize>,
    /// Per operation, the largest version among the operations that had ended when it was invoked.
    pub(crate) floor: Vec<Option<(Version, usize)>>,
    /// Invocation of the first write that may have taken effect at an unknown version.
    unplaced_first: Option<u32>,
    /// Invocations of the deletes among them, ascending.
    pub(crate) unplaced_deletes: Vec<u32>,
    values: HashMap<Version, (Option<Name>, usize)>,
    /// Versions that were read, or found by a write that lost.
    seen: HashSet<Version>,
}

impl Versions {
    /// The effect of reading this version, if its value is known.
    pub(crate) fn read(&self, version: Version) -> Option<Effect> {
        match version == Version::INITIAL {
            true => Some(Effect::Reads(None)),
            false => self
                .values
                .get(&version)
                .map(|&(value, _)| Effect::Reads(value)),
        }
    }

    /// True if the version exists as far as is known at `rank`: it is the first one, or written by an operation that was invoked before, or possibly
    /// by one of unknown version.
    pub(crate) fn may_exist(&self, view: &View<'_>, version: Version, rank: u32) -> bool {
        version == Version::INITIAL
            || match self.creator.get(&version) {
                Some(&creator) => view.get(creator).invoked.rank < rank,
                None => self.unplaced_first.is_some_and(|first| first < rank),
            }
    }

    /// True if the operation surely wrote: it succeeded, or an operation saw its version.
    pub(crate) fn took_effect(&self, view: &View<'_>, index: usize) -> bool {
        let operation = view.get(index);
        let seen = self.of[index].is_some_and(|version| self.seen.contains(&version));
        operation.writes() && (operation.outcome == Outcome::Ok || seen)
    }

    /// Collects them. Fails if one version has two values or two writes, or one value two versions.
    pub(crate) fn learn(view: &View<'_>) -> Result<Versions, Finding> {
        let mut versions = Versions {
            of: vec![None; view.places.len()],
            ..Versions::default()
        };
        let mut of_value: HashMap<Name, (Version, usize)> = HashMap::new();
        for (index, operation) in view.iter() {
            let (Some(version), effect) = (operation.version, operation.effect()) else {
                continue;
            };
            let value = match effect {
                Effect::Nothing => continue,
                Effect::Sees => None,
                Effect::Reads(value) | Effect::Writes(value) => Some(value),
            };
            versions.of[index] = Some(version);
            if !operation.writes() {
                versions.seen.insert(version);
            }
            let Some(value) = value else { continue };
            if version == Version::INITIAL && (value.is_some() || operation.writes()) {
                return Err(view.finding(
                    "something was written at the version of an object never written",
                    [index],
                ));
            }
            let (other, first) = *versions.values.entry(version).or_insert((value, index));
            if other != value {
                return Err(view.finding("one version has two values", [first, index]));
            }
            if let Some(value) = value {
                let (other, first) = *of_value.entry(value).or_insert((version, index));
                if other != version {
                    return Err(view.finding("one value has two versions", [first, index]));
                }
            }
            if operation.writes()
                && let Some(first) = versions.creator.insert(version, index)
            {
                return Err(view.finding("two writes created one version", [first, index]));
            }
        }
        versions.infer(view, &of_value);
        versions.sweep(view);
        Ok(versions)
    }

    /// Finds the versions of writes that did not report them by those who read their values.
    fn infer(&mut self, view: &View<'_>, of_value: &HashMap<Name, (Version, usize)>) {
        for (index, operation) in view.iter() {
            let Effect::Writes(value) = operation.effect() else {
                continue;
            };
            if self.of[index].is_some() {
                continue;
            }
            self.of[index] = value.and_then(|value| Some(of_value.get(&value)?.0));
            if let Some(version) = self.of[index] {
                self.creator.entry(version).or_insert(index);
                continue;
            }
            let rank = operation.invoked.rank;
            self.unplaced_first = Some(self.unplaced_first.map_or(rank, |first| first.min(rank)));
            self.unplaced_deletes
                .extend(value.is_none().then_some(rank));
        }
        self.unplaced_deletes.sort_unstable();
    }

    fn sweep(&mut self, view: &View<'_>) {
        self.floor = vec![None; view.places.len()];
        let mut largest: Option<(Version, usize)> = None;
        for (_, index, is_end) in view.moments() {
            let ended = self.of[index].map(|version| (version, index));
            if !is_end {
                self.floor[index] = largest;
            } else if ended.map(|(version, _)| version) > largest.map(|(version, _)| version) {
                largest = ended;
            }
        }
    }
}

/// Judges the order: versions never go back in real time, and every write has a larger one than all that ended before
/// it was invoked.
pub(crate) fn judge(view: &View<'_>, versions: &Versions) -> Result<(), Finding> {
    for (index, operation) in view.iter() {
        let (Some(version), Some((floor, before))) = (versions.of[index], versions.floor[index])
        else {
            continue;
        };
        if operation.writes() && version <= floor {
            return Err(view.finding(
                "a write got a version that is not larger than that of an operation that had ended before",
                [before, index],
            ));
        }
        if version < floor {
            return Err(view.finding(
                "an operation returned an older version than one that had ended before",
                [before, index],
            ));
        }
    }
    absences(view, versions)
}

/// Every version that was read as absent belongs to a delete of its own: one that reported it, or one that reported
/// none and was invoked in time.
fn absences(view: &View<'_>, versions: &Versions) -> Result<(), Finding> {
    let mut unmatched: BTreeMap<Version, (u32, usize)> = BTreeMap::new();
    for (index, operation) in view.iter() {
        let (Effect::Reads(None), Some(version)) = (operation.effect(), versions.of[index]) else {
            continue;
        };
        if version != Version::INITIAL && !versions.creator.contains_key(&version) {
            let first = unmatched.entry(version).or_insert((operation.end(), index));
            *first = (*first).min((operation.end(), index));
        }
    }
    if unmatched.is_empty() {
        return Ok(());
    }
    let mut reads: Vec<(u32, usize)> = unmatched.into_values().collect();
    reads.sort_unstable();
    for (matched, &(end, index)) in reads.iter().enumerate() {
        if versions
            .unplaced_deletes
            .partition_point(|&rank| rank < end)
            <= matched
        {
            return Err(view.finding(
                "a version was read as absent, but no delete can have written it",
                [index],
            ));
        }
    }
    Ok(())
}
