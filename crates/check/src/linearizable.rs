//! Linearizable: all operations on an object could have happened one after the other, each between its invocation and
//! its end. Reads return the last value written, absent at the beginning.

use crate::history::{Effect, Name, Outcome};
use crate::register::{self, Action, Flaw, OPEN, Step};
use crate::search;
use crate::shrink::shrink;
use crate::versions::Versions;
use crate::view::{Verdict, View};
use std::collections::HashMap;

/// Registers of at most this many steps get a second opinion.
pub(crate) const SECOND_OPINION_STEPS_MAX: usize = 24;
/// The search gives up after this many states: tens of milliseconds.
pub(crate) const STATES_MAX: usize = 100_000;

/// Judges one object. Versions help only where an operation reported a version without its value.
pub(crate) fn judge(view: &View<'_>, versions: Option<&Versions>) -> Verdict {
    let Register { steps, sources, .. } = steps(view, versions);
    if let Err(twice) = register::unique(&steps) {
        let who = [twice.first, twice.second].map(|step| sources[step]);
        return match search::search(&steps, STATES_MAX) {
            Some(true) => Verdict::Holds,
            Some(false) => {
                Verdict::Violated(view.finding("no order of these operations explains it", sources))
            }
            None => Verdict::Unjudged(format!(
                "a value was written twice, by operations {} and {}",
                view.get(who[0]).op,
                view.get(who[1]).op
            )),
        };
    }
    let first = register::check(&steps);
    if steps.len() <= SECOND_OPINION_STEPS_MAX
        && let Some(second) = search::search(&steps, STATES_MAX)
        && second != first.is_ok()
    {
        return Verdict::Unjudged("a defect of this checker: its two methods disagree".to_owned());
    }
    match first {
        Ok(()) => Verdict::Holds,
        Err(flaw) => {
            let mut shown: Vec<usize> = shrink(&steps, &flaw)
                .into_iter()
                .map(|step| sources[step])
                .collect();
            let mut what = describe(&flaw, &steps);
            if let Flaw::NeverWritten { read } = flaw
                && let Some(failed) = failed_write(view, sources[read])
            {
                shown.push(failed);
                "a value was read although its write failed and so never took effect"
                    .clone_into(&mut what);
            }
            Verdict::Violated(view.finding(what, shown))
        }
    }
}

/// An object as a register.
pub(crate) struct Register {
    pub(crate) steps: Vec<Step>,
    /// The operation of each.
    pub(crate) sources: Vec<usize>,
    /// The number that stands for a value in them.
    pub(crate) numbers: HashMap<Name, u32>,
}

pub(crate) fn steps(view: &View<'_>, versions: Option<&Versions>) -> Register {
    let mut numbers: HashMap<Name, u32> = HashMap::with_capacity(view.places.len() / 2);
    let mut number = |value: Option<Name>| {
        let next = numbers.len() as u32;
        value.map(|value| *numbers.entry(value).or_insert(next))
    };
    let mut steps = Vec::with_capacity(view.places.len());
    let mut sources = Vec::with_capacity(view.places.len());
    for (index, operation) in view.iter() {
        let effect = match operation.effect() {
            Effect::Sees => versions.and_then(|versions| versions.read(operation.version?)),
            effect => Some(effect),
        };
        let action = match effect {
            Some(Effect::Reads(value)) => Action::Read(number(value)),
            Some(Effect::Writes(value)) => Action::Write(number(value)),
            Some(Effect::Sees | Effect::Nothing) | None => continue,
        };
        let (start, end) = (operation.invoked.rank, operation.end());
        steps.push(Step { action, start, end });
        sources.push(index);
    }
    assert!(
        steps
            .iter()
            .all(|s| s.end != OPEN || matches!(s.action, Action::Write(_)))
    );
    Register {
        steps,
        sources,
        numbers,
    }
}

fn failed_write(view: &View<'_>, read: usize) -> Option<usize> {
    let value = view.get(read).output?;
    let mut failed = view
        .iter()
        .filter(|(_, o)| o.outcome == Outcome::Fail && o.input == Some(value));
    failed.next().map(|(index, _)| index)
}

fn describe(flaw: &Flaw, steps: &[Step]) -> String {
    let what = match flaw {
        Flaw::NeverWritten { .. } => "a read returned a value that no operation wrote",
        Flaw::ReadBeforeWritten { .. } => "a value was read before its write was invoked",
        Flaw::TwoAtOnce { .. } => "two values both had to be there at one instant",
        Flaw::NoInstant { inside, .. } => match steps[inside[0]].action {
            Action::Read(None) => "the object was read as absent while a value had to be there",
            Action::Write(None) => {
                "a delete succeeded while a value had to be there before and after it"
            }
            _ => "a value came and went while another one had to be there",
        },
        Flaw::NotDeleted { .. } => "the object was read as absent, which no delete explains",
    };
    what.to_owned()
}
