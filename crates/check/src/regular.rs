//! Regular reads (Lamport; here of registers with several writers): each returns the value of a write that was invoked before the read
//! ended, and that no other write replaced before the read began. Two reads may see two writes in different orders.
//!
//! A write is replaced if another one was invoked after its end, and ended before the read began. A write of unknown
//! outcome never ends: it is not replaced, and replaces none.

use crate::Kind;
use crate::history::{Effect, Name, Outcome};
use crate::view::{Finding, View};
use std::collections::HashMap;

/// True if there are regular reads.
pub(crate) fn concerns(view: &View<'_>) -> bool {
    view.iter().any(|(_, operation)| {
        operation.kind == Kind::RegularRead && operation.outcome == Outcome::Ok
    })
}

/// Judges each regular read by the writes of the object, in time `n log n`.
pub(crate) fn judge(view: &View<'_>) -> Result<(), Finding> {
    let mut writes: HashMap<Option<Name>, Vec<usize>> = HashMap::new();
    // Writes that ended, by their ends; of each the one that was invoked last of it and those before.
    let mut ended: Vec<(u32, usize)> = Vec::new();
    for (index, operation) in view.iter() {
        if let Effect::Writes(value) = operation.effect() {
            writes.entry(value).or_default().push(index);
            ended.extend(operation.ended.map(|moment| (moment.rank, index)));
        }
    }
    ended.sort_unstable();
    let mut last = None;
    for (_, index) in &mut ended {
        let later =
            last.filter(|last| view.get(*last).invoked.rank > view.get(*index).invoked.rank);
        *index = later.unwrap_or(*index);
        last = Some(*index);
    }
    for (read, operation) in view.iter() {
        if operation.kind != Kind::RegularRead || operation.outcome != Outcome::Ok {
            continue;
        }
        let before = ended.partition_point(|(end, _)| *end < operation.invoked.rank);
        let replacing = before.checked_sub(1).map(|last| ended[last].1);
        let of_value = writes.get(&operation.output).map_or(&[][..], Vec::as_slice);
        let begun = |write: &&usize| view.get(**write).invoked.rank < operation.end();
        let Some(newest) = of_value
            .iter()
            .filter(begun)
            .max_by_key(|write| view.get(**write).end())
        else {
            match (operation.output, replacing) {
                // Absent from the beginning.
                (None, None) => continue,
                (None, Some(by)) => {
                    let what = "a regular read found the object absent, which no delete explains";
                    return Err(view.finding(what, [by, read]));
                }
                (Some(_), _) => {
                    let what =
                        "a regular read returned a value that no operation had begun to write";
                    return Err(view.finding(what, of_value.iter().copied().chain([read])));
                }
            }
        };
        let is_initial = operation.output.is_none() && replacing.is_none();
        if let Some(by) = replacing
            && !is_initial
            && view.get(*newest).end() < view.get(by).invoked.rank
        {
            let what = "a regular read returned a value that was replaced before it began";
            return Err(view.finding(what, [*newest, by, read]));
        }
    }
    Ok(())
}
