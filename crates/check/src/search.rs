//! The second opinion: a search through all orders, for any values, feasible for small registers only.
//!
//! Wing and Gong, "Testing and verifying concurrent objects" (1993), with the memory of visited states that Lowe
//! added, "Testing for linearizability" (2017): the same set of steps done with the same value never needs a second
//! look.

use crate::register::{Action, OPEN, Step};
use std::collections::HashSet;

/// The most steps that a search takes on.
pub(crate) const STEPS_MAX: usize = 64;

/// True if the steps are linearizable. Nothing if there are more than [`STEPS_MAX`] steps or more than `states_max` states to visit.
pub(crate) fn search(steps: &[Step], states_max: usize) -> Option<bool> {
    search_on(steps, |_, _| true, states_max)
}

/// Searches an order where a write may take effect on some values only: `may` decides whether a step does on a value.
pub(crate) fn search_on(
    steps: &[Step],
    may: impl Fn(usize, Option<u32>) -> bool,
    states_max: usize,
) -> Option<bool> {
    if steps.len() > STEPS_MAX {
        return None;
    }
    let bit = |index: usize| 1_u64 << index;
    let required = (0..steps.len()).filter(|&index| steps[index].end != OPEN);
    let required: u64 = required.map(bit).sum();
    let mut visited = HashSet::new();
    let mut stack = vec![(0_u64, None)];
    while let Some((done, value)) = stack.pop() {
        if done & required == required {
            return Some(true);
        }
        if !visited.insert((done, value)) {
            continue;
        }
        if visited.len() > states_max {
            return None;
        }
        let rest = || {
            steps
                .iter()
                .enumerate()
                .filter(|&(index, _)| done & bit(index) == 0)
        };
        // The operation that ends first bounds the candidates for the next one.
        let first_end = rest().map(|(_, step)| step.end).min().unwrap_or(OPEN);
        for (index, step) in rest().filter(|(_, step)| step.start <= first_end) {
            match step.action {
                Action::Write(written) if may(index, value) => {
                    stack.push((done | bit(index), written));
                }
                Action::Read(read) if read == value => stack.push((done | bit(index), value)),
                Action::Write(_) | Action::Read(_) => {}
            }
        }
    }
    Some(false)
}
