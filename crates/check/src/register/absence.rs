//! Finds places for deletes in the order of effects, so that every absence that was read is explained.
//!
//! Forward zones hold one value all the time, so they are cut out of time: what remains is a line on which they are
//! instants (*walls*) that make the object present. On it, three kinds of things have a window from start to deadline:
//! backward zones (at some instant the object is present), deletes (at some instant it becomes absent; those of unknown
//! outcome have no deadline and may be left out) and reads of absence (at some instant it is absent).
//!
//! One pass decides with the rules below. Each is forced or harmless, by an exchange argument:
//! - A read of absence is served at once when the object is absent.
//! - At a wall, all open backward zones happen too: the object is present there anyway.
//! - A backward zone at its deadline happens, and all other open ones with it.
//! - Just before a delete all open backward zones happen: until the delete, no other operation depends on them.
//! - A delete waits until its deadline, or until the deadline of a read that needs one; then the open delete with the
//!   earliest deadline is used (any other is usable for longer). Waiting serves no fewer reads, since a read that is
//!   open now and not at its deadline is still open then.
//!
//! If a read at its deadline finds no open delete, no order of the steps explains it.

use crate::register::{Action, Flaw, OPEN, Step, Zone};
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

/// Ties at one instant of the line without forward zones: what ends there, the wall, what starts there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Deadline(usize),
    Wall,
    Start(usize),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    /// A value whose operations all overlap at some time: a backward zone.
    Value,
    Delete,
    /// A read of absence.
    Absence,
}

#[derive(Debug, Clone, Copy)]
struct Window {
    what: What,
    zone: Zone,
}

/// Decides the whole register, given its zones. `forward` is sorted and does not overlap.
pub(crate) fn check(steps: &[Step], forward: &[Zone], backward: &[Zone]) -> Result<(), Flaw> {
    let mut windows: Vec<Window> = Vec::with_capacity(backward.len());
    windows.extend(backward.iter().map(|&zone| Window {
        what: What::Value,
        zone,
    }));
    for (index, step) in steps.iter().enumerate() {
        let what = match step.action {
            Action::Read(None) => What::Absence,
            Action::Write(None) => What::Delete,
            _ => continue,
        };
        let zone = Zone {
            low: step.start,
            high: step.end,
            steps: [index; 3],
        };
        windows.push(Window { what, zone });
    }
    for window in &mut windows {
        cut(&mut window.zone, forward)?;
    }
    match windows.iter().any(|window| window.what == What::Absence) {
        true => Sweep::new(&windows).run(forward),
        false => Ok(()),
    }
}

/// Moves the ends of a window out of the forward zones.
fn cut(zone: &mut Zone, forward: &[Zone]) -> Result<(), Flaw> {
    let around = |instant: u32| {
        let after = forward.partition_point(|zone| zone.low < instant);
        let zone = forward[..after].last()?;
        (instant < zone.high).then_some(zone)
    };
    let (low, high) = (around(zone.low), around(zone.high));
    if let (Some(low), Some(high)) = (low, high)
        && low.low == high.low
    {
        return Err(Flaw::NoInstant {
            around: low.steps,
            inside: zone.steps,
        });
    }
    zone.low = low.map_or(zone.low, |around| around.high);
    zone.high = high.map_or(zone.high, |around| around.low);
    assert!(zone.low <= zone.high);
    Ok(())
}

struct Sweep<'w> {
    windows: &'w [Window],
    done: Vec<bool>,
    absent: bool,
    open_values: Vec<usize>,
    open_absences: BTreeSet<usize>,
    /// Earliest deadline first. Deletes that are done stay in it until they come up.
    open_deletes: BinaryHeap<Reverse<(u32, usize)>>,
}

impl<'w> Sweep<'w> {
    fn new(windows: &'w [Window]) -> Sweep<'w> {
        Sweep {
            windows,
            done: vec![false; windows.len()],
            absent: true,
            open_values: Vec::new(),
            open_absences: BTreeSet::new(),
            open_deletes: BinaryHeap::new(),
        }
    }

    fn run(mut self, forward: &[Zone]) -> Result<(), Flaw> {
        let mut events = Vec::with_capacity(self.windows.len() * 2 + forward.len());
        events.extend(forward.iter().map(|zone| (zone.low, Event::Wall)));
        for (index, window) in self.windows.iter().enumerate() {
            events.push((window.zone.low, Event::Start(index)));
            if window.zone.high != OPEN {
                events.push((window.zone.high, Event::Deadline(index)));
            }
        }
        events.sort_unstable();
        for (_, event) in events {
            match event {
                Event::Wall => self.present(),
                Event::Start(index) => self.start(index),
                Event::Deadline(index) if !self.done[index] => self.deadline(index)?,
                Event::Deadline(_) => {}
            }
        }
        Ok(())
    }

    fn start(&mut self, index: usize) {
        match self.windows[index].what {
            What::Value => self.open_values.push(index),
            What::Delete => self
                .open_deletes
                .push(Reverse((self.windows[index].zone.high, index))),
            What::Absence if self.absent => self.done[index] = true,
            What::Absence => {
                self.open_absences.insert(index);
            }
        }
    }

    fn deadline(&mut self, index: usize) -> Result<(), Flaw> {
        match self.windows[index].what {
            What::Value => self.present(),
            What::Delete => self.delete(index),
            What::Absence => {
                let delete = loop {
                    let Some(Reverse((_, delete))) = self.open_deletes.pop() else {
                        let read = self.windows[index].zone.steps[0];
                        return Err(Flaw::NotDeleted { read });
                    };
                    if !self.done[delete] {
                        break delete;
                    }
                };
                self.delete(delete);
            }
        }
        assert!(self.done[index], "what reaches its deadline is done");
        Ok(())
    }

    fn present(&mut self) {
        for index in self.open_values.drain(..) {
            self.done[index] = true;
        }
        self.absent = false;
    }

    fn delete(&mut self, index: usize) {
        self.present();
        self.done[index] = true;
        self.absent = true;
        for index in std::mem::take(&mut self.open_absences) {
            self.done[index] = true;
        }
    }
}
