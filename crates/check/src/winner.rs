//! One winner: at most one conditional write of a version takes effect, and nothing comes between the two.
//!
//! Versions say so for any number of operations. Of few ones the general search is asked, too, which knows nothing of versions but
//! the value that a write is for, and tries what operations of unknown outcome may have done.

use crate::Version;
use crate::event::Kind;
use crate::history::{Effect, Operation};
use crate::linearizable::{self, Register, SECOND_OPINION_STEPS_MAX, STATES_MAX};
use crate::search;
use crate::versions::Versions;
use crate::view::{Finding, View};
use std::collections::HashMap;

/// True if there is anything to judge.
pub(crate) fn concerns(view: &View<'_>) -> bool {
    view.iter()
        .any(|(_, operation)| operation.kind == Kind::ConditionalWrite)
}

/// Judges the conditional writes of one object.
pub(crate) fn judge(view: &View<'_>, versions: &Versions) -> Result<(), Finding> {
    by_versions(view, versions)?;
    let register = linearizable::steps(view, Some(versions));
    match search(view, versions, &register) {
        Some(false) => {
            let what = "no order of these operations has each conditional write on its version";
            Err(view.finding(what, register.sources))
        }
        Some(true) | None => Ok(()),
    }
}

/// The second opinion, if there are few operations.
fn search(view: &View<'_>, versions: &Versions, register: &Register) -> Option<bool> {
    if register.steps.len() > SECOND_OPINION_STEPS_MAX {
        return None;
    }
    let needs = register
        .sources
        .iter()
        .map(|&index| Need::of(view.get(index), versions, register));
    let needs: Vec<Need> = needs.collect::<Option<_>>()?;
    let may = |step: usize, value| match needs[step] {
        Need::Nothing => true,
        Need::Value(needed) => needed == value,
    };
    search::search_on(&register.steps, may, STATES_MAX)
}

/// The state of the object that an operation needs to take effect.
enum Need {
    /// The operation may take effect on any state.
    Nothing,
    /// This value; nothing is absent.
    Value(Option<u32>),
}

impl Need {
    /// `None`: the history does not say which value the version has.
    fn of(operation: &Operation, versions: &Versions, register: &Register) -> Option<Need> {
        if operation.kind != Kind::ConditionalWrite || !operation.writes() {
            return Some(Need::Nothing);
        }
        let Some(base) = operation.based_on else {
            return Some(Need::Value(None));
        };
        match versions.read(base)? {
            Effect::Reads(Some(value)) => Some(Need::Value(Some(*register.numbers.get(&value)?))),
            _ => Some(Need::Value(None)),
        }
    }
}

/// Judges one object by its versions.
fn by_versions(view: &View<'_>, versions: &Versions) -> Result<(), Finding> {
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

#[cfg(test)]
mod tests;
