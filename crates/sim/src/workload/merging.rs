//! Checks that changes that meet are merged: the configuration that an operation returned has its change, and none is undone by those that did not know
//! of it (`docs/spec` `[A-13 change-after-its-base]`, `[A-14 merged-changes]`).

use crate::world::World;
use areo_core::config::{Configuration, Descriptor};
use areo_core::reconfig::change::Change;
use std::cell::{Cell, RefCell};
use std::sync::Arc;

/// The changes of a run.
#[derive(Default)]
pub(super) struct Merging {
    /// Changes that were begun.
    begun: RefCell<Vec<Change>>,
    /// Changes of sequences that ended, with the configurations that they became.
    made: RefCell<Vec<(Change, Arc<Configuration>)>>,
    merged: Cell<u64>,
}

impl Merging {
    /// Changes that became one configuration with another one.
    pub(super) fn merged(&self) -> u64 {
        self.merged.get()
    }

    /// A client makes the change.
    pub(super) fn begin(&self, change: &Change) {
        self.begun.borrow_mut().push(change.clone());
    }

    /// It ended with this configuration.
    pub(super) fn end(&self, world: &World, change: &Change, c: &Arc<Configuration>) {
        if !change.is_in(c) {
            let wanted = change.made();
            world.violate(format!(
                "undone: {c:?} does not contain the change to {wanted:?}"
            ));
        }
        if c.descriptor().lattice.is_some() {
            return;
        }
        let mut made = self.made.borrow_mut();
        for (other, became) in made.iter() {
            self.merged.update(|count| count + u64::from(became == c));
            self.check(world, (other, became), c);
            self.check(world, (change, c), became);
        }
        made.push((change.clone(), c.clone()));
    }

    fn check(&self, world: &World, (change, c): (&Change, &Configuration), next: &Configuration) {
        // Servers change the root domain as well, and from what clients have made of it.
        if !world.is_grown(c.id()) && undoes(&self.begun.borrow(), (change, c), next) {
            world.violate(format!(
                "undone: {next:?} comes after {c:?}, from which no change was made"
            ));
        }
    }
}

/// A change is undone by one that was made from the configuration that has it, or that sets the same thing itself, and by no other.
fn undoes(begun: &[Change], (change, c): (&Change, &Configuration), next: &Configuration) -> bool {
    let follows = c.precedes(next) && c.id().index + 1 == next.id().index;
    if !follows || begun.iter().any(|it| it.base().id() == c.id()) || change.is_in(next) {
        return false;
    }
    let others = Descriptor {
        delta: unless_set(begun, (c, next), |it| it.delta),
        options: unless_set(begun, (c, next), |it| it.options),
        dap: unless_set(begun, (c, next), |it| it.dap),
        copy_bytes: unless_set(begun, (c, next), |it| it.copy_bytes),
        ..next.descriptor().clone()
    };
    Configuration::new(others).is_ok_and(|others| !change.is_in(&others))
}

/// The value of an option in `next`. If a change that began earlier sets that value, the value in `c` counts: the
/// option may have been set and reset meanwhile.
fn unless_set<T: PartialEq>(
    begun: &[Change],
    (c, next): (&Configuration, &Configuration),
    of: impl Fn(&Descriptor) -> T,
) -> T {
    let [before, after] = [c, next].map(|it| of(it.descriptor()));
    let sets = |change: &Change| {
        let [base, made] = [change.base(), change.made()].map(|it| of(it.descriptor()));
        base != made && made == after
    };
    match begun.iter().any(sets) {
        true => before,
        false => after,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use areo_core::config::{Dap, ServerId};
    use areo_core::object::DomainId;

    /// Found by seed 430 of the commit that draws conditional deletions: one change sets delta, as another one had done and a third one
    /// had taken back.
    #[test]
    fn what_was_set_there_and_back_is_not_undone() {
        let members = (1..=3).map(ServerId).collect();
        let first = Descriptor {
            delta: 1,
            ..Descriptor::new(DomainId(1), members, Dap::Abd)
        };
        let first = Configuration::new(first).unwrap();
        let to = |base: &Arc<Configuration>, delta: u16| {
            let wanted = Descriptor {
                delta,
                ..base.descriptor().clone()
            };
            Change::new(base, &wanted).unwrap()
        };
        let (there, slow) = (to(&first, 0), to(&first, 0));
        let back = to(there.made(), 1);
        let last = slow.after(back.made()).unwrap();
        let last = last.made();
        let of_back = (&back, &**back.made());
        let begun = [there.clone(), slow, back.clone()];
        assert!(!undoes(&begun, of_back, last));
        let begun = [back.clone()];
        assert!(undoes(&begun, of_back, last), "by no change");
        assert!(!undoes(&begun, (&there, &**there.made()), back.made()));
    }
}
