//! The smallest set of steps that still shows that a register is not linearizable.
//!
//! What is left out must never *make* the violation. Leaving out a read, or a value with all its reads, cannot: any
//! order of the steps that explains all of them explains the rest. Leaving out a delete can, if a read of absence stays
//! that it explained; so a delete goes only when it ended before all other steps began (the object is absent at the
//! beginning anyway) or began after all had ended. Most flaws show without regard to deletes, by their witness alone;
//! then no delete is looked at, and no step may go that would leave what only the lack of deletes makes wrong.

use crate::register::{Action, Flaw, OPEN, Step, check};

/// The number of steps that may be looked at in all: a bound on time, about a second.
const WORK_MAX: usize = 20_000_000;

/// The places of the steps of a small set that shows `flaw`, which [`check`] found in `steps`.
pub(crate) fn shrink(steps: &[Step], flaw: &Flaw) -> Vec<usize> {
    let by_deletes = matches!(flaw, Flaw::NotDeleted { .. });
    let all = match by_deletes {
        true => (0..steps.len()).collect(),
        false => flaw.witness(),
    };
    let is_flawed = |set: &[(usize, Step)]| is_flawed(set, by_deletes);
    let mut set: Vec<(usize, Step)> = all.into_iter().map(|place| (place, steps[place])).collect();
    set = prune(set);
    assert!(is_flawed(&set), "the witness of a flaw shows it");
    let mut work_left = WORK_MAX;
    let mut chunk = set.len().div_ceil(2);
    loop {
        let before = set.len();
        let mut from = 0;
        while from < set.len() && work_left > 0 {
            work_left = work_left.saturating_sub(set.len());
            let smaller = prune(without(&set, from..(from + chunk).min(set.len())));
            match smaller.len() < set.len() && is_flawed(&smaller) {
                true => set = smaller,
                false => from += chunk,
            }
        }
        match chunk {
            1 if set.len() == before || work_left == 0 => break,
            1 => {}
            _ => chunk = chunk.div_ceil(2),
        }
    }
    set.into_iter().map(|(place, _)| place).collect()
}

fn is_flawed(set: &[(usize, Step)], by_deletes: bool) -> bool {
    let steps: Vec<Step> = set.iter().map(|&(_, step)| step).collect();
    match check(&steps) {
        Ok(()) => false,
        Err(Flaw::NotDeleted { .. }) => by_deletes,
        Err(_) => true,
    }
}

/// The set without the steps at `range`, and without the reads of the values whose writes are among them. Deletes stay.
fn without(set: &[(usize, Step)], range: std::ops::Range<usize>) -> Vec<(usize, Step)> {
    let gone = set[range.clone()]
        .iter()
        .filter_map(|(_, step)| match step.action {
            Action::Write(Some(value)) => Some(value),
            _ => None,
        });
    let gone: std::collections::HashSet<u32> = gone.collect();
    let stays = |place: usize, step: &Step| match step.action {
        Action::Write(None) => true,
        Action::Read(Some(value)) if gone.contains(&value) => false,
        _ => !range.contains(&place),
    };
    let kept = set
        .iter()
        .enumerate()
        .filter(|(place, (_, step))| stays(*place, step));
    kept.map(|(_, &kept)| kept).collect()
}

/// Leaves out the deletes that ended before all other steps began, or began after all had ended: they explain nothing.
fn prune(mut set: Vec<(usize, Step)>) -> Vec<(usize, Step)> {
    let is_delete = |step: &Step| step.action == Action::Write(None);
    let others = set.iter().filter(|(_, step)| !is_delete(step));
    let (mut first_start, mut last_end) = (OPEN, 0);
    for (_, step) in others {
        first_start = first_start.min(step.start);
        if step.end != OPEN {
            last_end = last_end.max(step.end);
        }
    }
    set.retain(|(_, step)| !is_delete(step) || (step.end > first_start && step.start < last_end));
    set
}
