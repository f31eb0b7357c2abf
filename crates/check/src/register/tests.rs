//! The zones against the search: they agree on random small registers, right and wrong ones.

use super::*;
use crate::search::search;
use crate::shrink::shrink;
use proptest::prelude::*;

const STATES_MAX: usize = 1_000_000;

/// One operation of a simulated register, in the order in which they take effect.
#[derive(Debug, Clone, Copy)]
struct Plan {
    what: u8,
    before: u32,
    after: u32,
    unknown: bool,
    applied: bool,
}

fn plans(most: usize) -> impl Strategy<Value = Vec<Plan>> {
    let plan = (
        0..8_u8,
        0..1_000_u32,
        0..1_000_u32,
        prop::bool::weighted(0.25),
        any::<bool>(),
    )
        .prop_map(|(what, before, after, unknown, applied)| Plan {
            what,
            before,
            after,
            unknown,
            applied,
        });
    prop::collection::vec(plan, 1..most)
}

/// Runs the plan: the result is linearizable by construction.
fn simulate(plans: &[Plan]) -> Vec<Step> {
    let mut value = None;
    let mut steps = Vec::new();
    for (number, plan) in (0_u32..).zip(plans) {
        let written = match plan.what {
            0..=2 => Some(Some(number)),
            3 => Some(None),
            _ => None,
        };
        let unknown = plan.unknown && written.is_some();
        let action = match written {
            Some(written) => {
                if !unknown || plan.applied {
                    value = written;
                }
                Action::Write(written)
            }
            None => Action::Read(value),
        };
        let effect = 10_000 + number * 250;
        steps.push(Step {
            action,
            start: effect - plan.before - 1,
            end: if unknown { OPEN } else { effect + plan.after },
        });
    }
    rank(steps)
}

/// Makes all starts and ends different, in the same order.
fn rank(mut steps: Vec<Step>) -> Vec<Step> {
    let mut moments: Vec<(u32, usize, bool)> = Vec::new();
    for (index, step) in steps.iter().enumerate() {
        moments.push((step.start, index, false));
        if step.end != OPEN {
            moments.push((step.end, index, true));
        }
    }
    moments.sort_unstable();
    for (rank, (_, index, is_end)) in (0_u32..).zip(moments) {
        match is_end {
            true => steps[index].end = rank,
            false => steps[index].start = rank,
        }
    }
    steps
}

fn agree(steps: &[Step]) -> Result<bool, TestCaseError> {
    let zones = check(steps);
    prop_assert_eq!(
        Some(zones.is_ok()),
        search(steps, STATES_MAX),
        "{:?} of {:#?}",
        zones,
        steps
    );
    if let Err(flaw) = zones {
        // The witness stands on its own, and the other method sees it too.
        let places = shrink(steps, &flaw);
        let small: Vec<Step> = places.iter().map(|&place| steps[place]).collect();
        prop_assert!(
            check(&small).is_err(),
            "{:?} does not show {:?}",
            small,
            flaw
        );
        prop_assert_eq!(search(&small, STATES_MAX), Some(false));
        // No delete was left out that explains it.
        let is_delete = |place: usize| steps[place].action == Action::Write(None);
        let with_deletes =
            (0..steps.len()).filter(|&place| is_delete(place) || places.contains(&place));
        let with_deletes: Vec<Step> = with_deletes.map(|place| steps[place]).collect();
        prop_assert_eq!(search(&with_deletes, STATES_MAX), Some(false));
        smallest(steps, &flaw, &places)?;
    }
    Ok(zones.is_ok())
}

/// Nothing can be left out of the steps at `places` that show `flaw`.
fn smallest(steps: &[Step], flaw: &Flaw, places: &[usize]) -> Result<(), TestCaseError> {
    let is_delete = |place: usize| steps[place].action == Action::Write(None);
    if !matches!(flaw, Flaw::NotDeleted { .. }) {
        // Two values, each with its write, the first end and the last start.
        prop_assert!(places.len() <= 6, "{:?}", places);
        return Ok(());
    }
    for &gone in places.iter().filter(|&&place| !is_delete(place)) {
        // With its reads, if it is a write.
        let depends = |place: usize| match (steps[gone].action, steps[place].action) {
            (Action::Write(written), Action::Read(read)) => written == read,
            _ => false,
        };
        let stays = |place: usize| places.contains(&place) && place != gone && !depends(place);
        let rest = (0..steps.len()).filter(|&place| is_delete(place) || stays(place));
        let rest: Vec<Step> = rest.map(|place| steps[place]).collect();
        prop_assert_eq!(search(&rest, STATES_MAX), Some(true), "{} can go", gone);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_096))]

    #[test]
    fn what_a_register_did_is_linearizable(plans in plans(24)) {
        let steps = simulate(&plans);
        prop_assert_eq!(check(&steps), Ok(()));
        prop_assert!(agree(&steps)?);
    }

    #[test]
    fn what_a_register_with_many_deletes_did_is_linearizable(mut plans in plans(20)) {
        // Long deletes, short reads: which delete explains which read matters.
        for plan in &mut plans {
            plan.what = match plan.what {
                0..=2 => 3,
                3..=4 => 0,
                _ => 5,
            };
            if plan.what != 3 {
                plan.before %= 125;
                plan.after %= 125;
            }
        }
        prop_assert!(agree(&simulate(&plans))?);
    }

    #[test]
    fn methods_agree_after_one_read_returned_something_else(
        plans in plans(16),
        which in any::<prop::sample::Index>(),
        other in any::<prop::sample::Index>(),
    ) {
        let mut steps = simulate(&plans);
        let reads: Vec<usize> = (0..steps.len()).filter(|&i| matches!(steps[i].action, Action::Read(_))).collect();
        if reads.is_empty() {
            return Ok(());
        }
        let other = match steps[other.index(steps.len())].action {
            Action::Read(value) | Action::Write(value) => value,
        };
        steps[reads[which.index(reads.len())]].action = Action::Read(other);
        agree(&steps)?;
    }

    #[test]
    fn methods_agree_after_operations_moved_in_time(
        plans in plans(14),
        moves in prop::collection::vec((any::<prop::sample::Index>(), 0..12_u32, 1..12_u32), 1..4),
    ) {
        let mut steps = simulate(&plans);
        // Room between the ranks for what is moved.
        for step in &mut steps {
            step.start *= 16;
            step.end = step.end.saturating_mul(16);
        }
        for (which, start, length) in moves {
            let which = which.index(steps.len());
            steps[which].start = start * 32 + 1;
            if steps[which].end != OPEN {
                steps[which].end = steps[which].start + length * 16 + 1;
            }
        }
        agree(&rank(steps))?;
    }

    #[test]
    fn methods_agree_on_absence_alone(plans in plans(14), values in prop::collection::vec(0..6_u32, 14)) {
        // Mostly deletes and reads of absence, in any order: what the sweep has to decide.
        let mut steps = simulate(&plans);
        for (number, (step, value)) in (0_u32..).zip(steps.iter_mut().zip(values)) {
            step.action = match (step.action, value) {
                (Action::Write(_), 0..=2) => Action::Write(None),
                (Action::Write(_), _) => Action::Write(Some(number)),
                (Action::Read(_), _) => Action::Read(None),
            };
        }
        agree(&steps)?;
    }
}

fn step(action: Action, start: u32, end: u32) -> Step {
    Step { action, start, end }
}

#[test]
fn an_unknown_write_may_take_effect_late_or_never_but_only_once() {
    let unknown = step(Action::Write(Some(1)), 0, OPEN);
    let write = step(Action::Write(Some(2)), 1, 2);
    let late = [
        unknown,
        write,
        step(Action::Read(Some(2)), 3, 4),
        step(Action::Read(Some(1)), 5, 6),
    ];
    assert_eq!(check(&late), Ok(()));
    assert_eq!(
        check(&[unknown, write, step(Action::Read(Some(2)), 3, 4)]),
        Ok(())
    );
    let mut twice = late.to_vec();
    twice.push(step(Action::Read(Some(2)), 7, 8));
    assert!(matches!(check(&twice), Err(Flaw::NoInstant { .. })));
}

#[test]
fn every_flaw_is_named() {
    let write = step(Action::Write(Some(1)), 2, 3);
    let never = [step(Action::Read(Some(1)), 0, 1)];
    assert_eq!(check(&never), Err(Flaw::NeverWritten { read: 0 }));
    let early = [never[0], write];
    assert_eq!(
        check(&early),
        Err(Flaw::ReadBeforeWritten { read: 0, write: 1 })
    );
    let around = [write, step(Action::Read(Some(1)), 8, 9)];
    let inside = |action| check(&[around[0], around[1], step(action, 5, 6)]);
    for action in [
        Action::Read(None),
        Action::Write(None),
        Action::Write(Some(2)),
    ] {
        assert!(
            matches!(inside(action), Err(Flaw::NoInstant { .. })),
            "{action:?}"
        );
    }
    let after = [write, step(Action::Read(None), 4, 5)];
    assert_eq!(check(&after), Err(Flaw::NotDeleted { read: 1 }));
}

#[test]
fn one_delete_explains_all_absences_up_to_the_next_value_and_none_after() {
    let mut steps = vec![
        step(Action::Write(Some(1)), 0, 1),
        step(Action::Write(None), 2, 20),
        step(Action::Read(None), 3, 4),
        step(Action::Read(None), 5, 6),
    ];
    assert_eq!(check(&steps), Ok(()));
    steps.push(step(Action::Write(Some(2)), 7, 8));
    assert_eq!(check(&steps), Ok(()));
    steps.push(step(Action::Read(None), 9, 10));
    assert_eq!(check(&steps), Err(Flaw::NotDeleted { read: 5 }));
    // A second delete, of unknown outcome, does.
    steps.push(step(Action::Write(None), 3, OPEN));
    assert_eq!(check(&rank(steps)), Ok(()));
}

#[test]
fn of_two_open_deletes_the_one_that_ends_first_is_used() {
    let mut steps = vec![
        step(Action::Write(Some(1)), 0, 1),
        step(Action::Write(None), 2, 20),
        step(Action::Write(None), 3, 9),
        step(Action::Read(None), 4, 5),
        step(Action::Write(Some(2)), 10, 11),
        step(Action::Read(None), 12, 13),
    ];
    assert_eq!(check(&steps), Ok(()));
    steps[1].end = 8;
    assert_eq!(check(&steps), Err(Flaw::NotDeleted { read: 5 }));
}

#[test]
fn a_value_written_twice_is_noticed() {
    let steps = [0, 2, 4].map(|start| step(Action::Write(Some(start / 4)), start, start + 1));
    assert_eq!(
        unique(&steps),
        Err(NotUnique {
            first: 0,
            second: 1
        })
    );
    assert_eq!(unique(&steps[1..]), Ok(()));
}

#[test]
fn a_read_that_shows_that_a_value_stayed_is_not_left_out() {
    // Without the read of the value, the delete would explain the absence.
    let steps = [
        step(Action::Write(Some(1)), 0, 1),
        step(Action::Write(None), 2, 20),
        step(Action::Read(None), 5, 6),
        step(Action::Read(Some(1)), 8, 9),
    ];
    let flaw = check(&steps).unwrap_err();
    assert!(matches!(flaw, Flaw::NoInstant { .. }));
    assert_eq!(shrink(&steps, &flaw), [0, 2, 3]);
}

#[test]
fn a_violation_in_a_long_history_is_shown_by_a_few_steps() {
    let mut steps = Vec::new();
    for number in 0..2_000 {
        let at = number * 10;
        steps.push(step(Action::Write(Some(number)), at, at + 3));
        steps.push(step(Action::Read(Some(number)), at + 1, at + 4));
        steps.push(step(Action::Write(None), at + 5, at + 6));
        steps.push(step(Action::Read(None), at + 7, at + 8));
    }
    assert_eq!(check(&steps), Ok(()));
    // One delete less.
    steps.remove(4 * 1_000 + 2);
    let flaw = check(&steps).unwrap_err();
    assert_eq!(
        flaw,
        Flaw::NotDeleted {
            read: 4 * 1_000 + 2
        }
    );
    let small = shrink(&steps, &flaw);
    assert_eq!(small, [4_000, 4_002]);
}
