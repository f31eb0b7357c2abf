//! Configurations of one domain: uniqueness, subsequence, progress (the properties that ARES proves of the sequences
//! that its clients hold).
//!
//! Two things tell about them: a reconfiguration that succeeded (`value` at index `version` is installed and final),
//! and the `sequence` that an operation may report, which is what its client knew when the operation ended.
//!
//! - *Uniqueness*: no index has two configurations.
//! - *Subsequence*: indices ascend; a reconfiguration is decided after the index that it follows; and an operation
//!   knows at least as far as a reconfiguration that had ended when it was invoked, and as its own client knew.
//! - *Progress*: the last final configuration that an operation knows does not go back in the same sense.

use crate::event::Kind;
use crate::history::{Effect, KnownConfiguration, Name, Operation, Outcome};
use crate::view::{Finding, View};
use std::collections::HashMap;

/// The configurations that an operation knows of the sequence.
fn known(operation: &Operation) -> Vec<KnownConfiguration> {
    let mut known: Vec<KnownConfiguration> = operation.sequence.iter().flatten().copied().collect();
    known.extend(installed(operation));
    known
}

fn installed(operation: &Operation) -> Option<KnownConfiguration> {
    if operation.kind != Kind::Reconfig || operation.outcome != Outcome::Ok {
        return None;
    }
    debug_assert_eq!(operation.effect(), Effect::Nothing);
    Some(KnownConfiguration {
        index: operation
            .version
            .expect("a reconfiguration that succeeds has a version")
            .number,
        configuration: operation
            .output
            .or(operation.input)
            .expect("a reconfiguration has a value"),
        r#final: true,
    })
}

/// True if there is anything to judge.
pub(crate) fn concerns(operation: &Operation) -> bool {
    operation.kind == Kind::Reconfig || operation.sequence.is_some()
}

/// Judges all operations of one domain that say something about configurations.
pub(crate) fn judge(view: &View<'_>) -> Result<(), Finding> {
    let mut unique: HashMap<u64, (Name, usize)> = HashMap::new();
    for (index, operation) in view.iter() {
        for known in known(operation) {
            let (other, first) = *unique
                .entry(known.index)
                .or_insert((known.configuration, index));
            if other != known.configuration {
                let what = format!("uniqueness: index {} has two configurations", known.index);
                return Err(view.finding(what, [first, index]));
            }
        }
        let sequence = operation.sequence.as_deref().unwrap_or_default();
        if !sequence.is_sorted_by(|a, b| a.index < b.index) {
            let what = "subsequence: a client holds configurations whose indices do not ascend";
            return Err(view.finding(what, [index]));
        }
        if let Some(installed) = installed(operation)
            && operation
                .based_on
                .is_some_and(|base| base.number >= installed.index)
        {
            let what = "subsequence: a configuration was decided at an index that is not after the one it follows";
            return Err(view.finding(what, [index]));
        }
    }
    real_time(view)
}

/// The furthest index known, and by which operation.
type Furthest = Option<(u64, usize)>;

#[derive(Default, Clone, Copy)]
struct Floor {
    last: Furthest,
    last_final: Furthest,
}

impl Floor {
    fn raise(&mut self, known: impl IntoIterator<Item = KnownConfiguration>, operation: usize) {
        for known in known {
            let here = Some((known.index, operation));
            if known.index > self.last.map_or(0, |(index, _)| index) {
                self.last = here;
            }
            if known.r#final && known.index > self.last_final.map_or(0, |(index, _)| index) {
                self.last_final = here;
            }
        }
    }
}

fn real_time(view: &View<'_>) -> Result<(), Finding> {
    let mut everyone = Floor::default();
    let mut own: HashMap<Name, Floor> = HashMap::new();
    let mut floors = vec![[Floor::default(); 2]; view.places.len()];
    for (_, index, is_end) in view.moments() {
        let operation = view.get(index);
        if !is_end {
            floors[index] = [
                everyone,
                own.get(&operation.client).copied().unwrap_or_default(),
            ];
            continue;
        }
        let known = known(operation);
        let last = known.iter().map(|known| known.index).max();
        let finals = known.iter().filter(|known| known.r#final);
        let last_final = finals.map(|known| known.index).max();
        for floor in floors[index] {
            let behind = |floor: Furthest, here: Option<u64>| {
                let (index, before) = floor?;
                (here? < index).then_some(before)
            };
            if let Some(before) = behind(floor.last, last) {
                let what = "subsequence: an operation ended without knowing a configuration that was installed, or \
                            that its client knew, before it was invoked";
                return Err(view.finding(what, [before, index]));
            }
            if let Some(before) = behind(floor.last_final, last_final) {
                let what = "progress: an operation ended with an older final configuration than one that was final, \
                            or that its client knew as final, before it was invoked";
                return Err(view.finding(what, [before, index]));
            }
        }
        everyone.raise(installed(operation), index);
        own.entry(operation.client).or_default().raise(known, index);
    }
    Ok(())
}
