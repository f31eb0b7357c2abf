//! Whether changes that meet are merged: what an operation returned has its change, and none is undone by those that did not know
//! of it (`docs/spec` `[A-13 change-after-its-base]`, `[A-14 merged-changes]`).

use crate::world::World;
use areo_core::config::{Configuration, ConfigurationId};
use areo_core::reconfig::change::Change;
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The changes of a run.
#[derive(Default)]
pub(super) struct Merging {
    /// Configurations from which a change was made.
    bases: RefCell<BTreeSet<ConfigurationId>>,
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
        self.bases.borrow_mut().insert(change.base().id());
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

    /// A change is undone by one that was made from the configuration that has it, and by no other.
    fn check(&self, world: &World, (change, c): (&Change, &Configuration), next: &Configuration) {
        let follows = c.precedes(next) && c.id().index + 1 == next.id().index;
        if follows && !self.bases.borrow().contains(&c.id()) && !change.is_in(next) {
            world.violate(format!(
                "undone: {next:?} comes after {c:?}, from which no change was made"
            ));
        }
    }
}
