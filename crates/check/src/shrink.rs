//! The smallest set of steps that still shows that a register is not linearizable.
//!
//! What is left out must never *make* the violation. Leaving out a read, or a value with all its reads, cannot: any
//! order of the steps that explains all of them explains the rest. Leaving out a delete can, if a read of absence stays
//! that it explained. So deletes are made optional, which cannot, and are left out only when they ended before all
//! other steps began (the object is absent at the beginning anyway) or began after all had ended. Two flaws show without
//! regard to deletes, by their witness alone; then none is looked at, and no step may go that would leave a set that only
//! the lack of deletes makes wrong.

use crate::register::{Action, Flaw, OPEN, Step, check};

/// How many steps may be looked at in all: a bound on time, about a second.
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
    assert!(is_flawed(&set), "the witness of a flaw shows it");
    let mut work_left = WORK_MAX;
    let mut chunk = set.len().div_ceil(2);
    loop {
        let before = set.len();
        let mut from = 0;
        while from < set.len() && work_left > 0 {
            work_left = work_left.saturating_sub(set.len());
            let smaller = without(&set, from..(from + chunk).min(set.len()));
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
    if by_deletes {
        relax_deletes(&mut set, &mut work_left);
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

/// Leaves out the deletes that have nothing to do with it.
fn relax_deletes(set: &mut Vec<(usize, Step)>, work_left: &mut usize) {
    let others = || {
        set.iter()
            .filter(|(_, step)| step.action != Action::Write(None))
    };
    let first_start = others().map(|(_, step)| step.start).min().unwrap_or(0);
    let last_end = others()
        .filter(|(_, step)| step.end != OPEN)
        .map(|(_, step)| step.end);
    let last_end = last_end.max().unwrap_or(0);
    let mut place = 0;
    while place < set.len() && *work_left > 0 {
        *work_left = work_left.saturating_sub(set.len());
        let step = set[place].1;
        if step.action != Action::Write(None) {
            place += 1;
            continue;
        }
        let (number, mut optional) = set.remove(place);
        let outside = step.end < first_start || step.start > last_end;
        if outside && is_flawed(set, true) {
            continue;
        }
        optional.end = OPEN;
        set.insert(place, (number, optional));
        if !is_flawed(set, true) {
            set[place].1 = step;
        }
        place += 1;
    }
}
