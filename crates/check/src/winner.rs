//! One winner: at most one conditional write of a version takes effect, and nothing comes between the two.

use crate::Version;
use crate::event::Kind;
use crate::history::Effect;
use crate::versions::Versions;
use crate::view::{Finding, View};
use std::collections::HashMap;

/// Whether there is anything to judge.
pub(crate) fn concerns(view: &View<'_>) -> bool {
    view.iter()
        .any(|(_, operation)| operation.kind == Kind::ConditionalWrite)
}

/// Judges one object.
pub(crate) fn judge(view: &View<'_>, versions: &Versions) -> Result<(), Finding> {
    let mut winners: HashMap<Version, usize> = HashMap::new();
    let mut previous: Option<(Version, usize)> = None;
    let written = versions
        .creator
        .iter()
        .filter(|&(_, &index)| versions.took_effect(view, index));
    for (&version, &index) in written {
        let operation = view.get(index);
        if operation.kind == Kind::ConditionalWrite {
            match operation.based_on {
                Some(base) => {
                    if let Some(other) = winners.insert(base, index) {
                        return Err(view.finding(
                            "two conditional writes of one version took effect",
                            [other, index],
                        ));
                    }
                    follows(view, versions, previous, (version, index), base)?;
                }
                None => creates(view, versions, previous, index)?,
            }
        }
        previous = Some((version, index));
    }
    Ok(())
}

fn follows(
    view: &View<'_>,
    versions: &Versions,
    previous: Option<(Version, usize)>,
    (version, index): (Version, usize),
    base: Version,
) -> Result<(), Finding> {
    if version <= base {
        let what =
            "a conditional write created a version that is not larger than the one that it is for";
        return Err(view.finding(what, [index]));
    }
    if let Some((between, other)) = previous
        && between > base
    {
        let what = "another write came between a version and the conditional write of it";
        return Err(view.finding(what, [other, index]));
    }
    if !versions.may_exist(view, base, view.get(index).end()) {
        let what = "a conditional write took effect on a version that no write created";
        return Err(view.finding(what, [index]));
    }
    Ok(())
}

/// A conditional write that requires absence.
fn creates(
    view: &View<'_>,
    versions: &Versions,
    previous: Option<(Version, usize)>,
    index: usize,
) -> Result<(), Finding> {
    let Some((_, other)) = previous else {
        return Ok(());
    };
    let was_deleted = view.get(other).effect() == Effect::Writes(None);
    let end = view.get(index).end();
    let may_be_deleted = versions
        .unplaced_deletes
        .first()
        .is_some_and(|&rank| rank < end);
    if was_deleted || may_be_deleted {
        return Ok(());
    }
    let what =
        "a conditional write that requires absence took effect although the object was there";
    Err(view.finding(what, [other, index]))
}
