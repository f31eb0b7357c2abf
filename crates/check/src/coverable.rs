//! Coverable, weakly (`[V-1 weak-coverability]`, `[V-2 coverable-properties]`): two concurrent writes of one version may
//! both succeed, and one prevails.
//!
//! - *Validity*: a write that succeeds creates a new version, larger than the one that it covers.
//! - *Continuity*: the covered version existed.
//! - *Consolidation*: it is not older than what any operation that had ended before the write was invoked wrote or
//!   returned.
//! - *Evolution*: the links from versions to those that they cover lead back to the beginning, and of two versions with
//!   the same beginning, the one with more links is larger.

use crate::event::Kind;
use crate::versions::Versions;
use crate::view::{Finding, View};
use crate::{Outcome, Version};
use std::collections::HashMap;

/// True if there is anything to judge.
pub(crate) fn concerns(view: &View<'_>) -> bool {
    view.iter()
        .any(|(_, operation)| operation.kind == Kind::CvrWrite)
}

/// Judges one object. Reads need no more than the judge of linearizability says, and the order of versions is judged
/// apart.
pub(crate) fn judge(view: &View<'_>, versions: &Versions) -> Result<(), Finding> {
    for (index, operation) in view.iter() {
        if let Some(version) = operation.version
            && operation.outcome != Outcome::Unknown
            && !operation.writes()
            && !versions.may_exist(view, version, operation.end())
        {
            return Err(view.finding(
                "validity: a version was returned that no write created",
                [index],
            ));
        }
        if operation.kind == Kind::CvrWrite && versions.took_effect(view, index) {
            covering(view, versions, index)?;
        }
    }
    evolution(view, versions)
}

fn covering(view: &View<'_>, versions: &Versions, index: usize) -> Result<(), Finding> {
    let operation = view.get(index);
    let base = operation.based_on.unwrap_or_default();
    if versions.of[index].is_some_and(|version| version <= base) {
        let what = "validity: a coverable write created a version that is not larger than the one that it covers";
        return Err(view.finding(what, [index]));
    }
    if !versions.may_exist(view, base, operation.end()) {
        let what = "continuity: a coverable write covers a version that no write created";
        return Err(view.finding(what, [index]));
    }
    if let Some((floor, before)) = versions.floor[index]
        && base < floor
    {
        let what = "consolidation: a coverable write succeeded on a version older than that of an operation that had \
                    ended before";
        return Err(view.finding(what, [before, index]));
    }
    Ok(())
}

/// Links from a version back to the first one that covers nothing known.
#[derive(Clone, Copy)]
struct Depth {
    beginning: Version,
    links: u64,
}

fn evolution(view: &View<'_>, versions: &Versions) -> Result<(), Finding> {
    let mut depths: HashMap<Version, Depth> = HashMap::new();
    let mut deepest: HashMap<Version, (u64, usize)> = HashMap::new();
    // Ascending, so that what is covered comes first.
    for (&version, &index) in &versions.creator {
        let operation = view.get(index);
        let links_back = operation.kind == Kind::CvrWrite && versions.took_effect(view, index);
        if !links_back {
            continue;
        }
        let base = operation.based_on.unwrap_or_default();
        assert!(base < version, "validity was judged before");
        let Depth { beginning, links } = depths.get(&base).copied().unwrap_or(Depth {
            beginning: base,
            links: 0,
        });
        let links = links + 1;
        depths.insert(version, Depth { beginning, links });
        let (most, deeper) = *deepest.entry(beginning).or_insert((links, index));
        if links < most {
            let what = "evolution: a version is larger than one with more links back to the same beginning";
            return Err(view.finding(what, [deeper, index]));
        }
        deepest.insert(beginning, (links, index));
    }
    Ok(())
}
