//! Everything that the runs of a backup say together.

use super::manifest::{Begin, DomainLine, Item, ItemName, Line};
use std::collections::BTreeMap;

/// The domains with their objects and files, as they were at the end of a run.
#[derive(Default, Clone, PartialEq, Eq, Debug)]
pub(in crate::cmd) struct State {
    /// The first line of the last run.
    pub(in crate::cmd) begin: Option<Begin>,
    pub(in crate::cmd) domains: BTreeMap<String, DomainLine>,
    pub(in crate::cmd) items: BTreeMap<ItemName, Item>,
}

impl State {
    /// Changes the state as this line says.
    pub(in crate::cmd) fn apply(&mut self, line: Line) {
        match line {
            Line::Put(item) => {
                self.items.insert(item.name.clone(), item);
            }
            Line::Delete { name } => {
                self.items.remove(&name);
            }
            Line::Domain(domain) => {
                self.domains.insert(domain.domain.clone(), domain);
            }
            Line::Removed { domain } => {
                self.domains.remove(&domain);
                self.items.retain(|name, _| name.domain != domain);
            }
            Line::Begin(_) | Line::End(_) | Line::Unreadable { .. } => {}
        }
    }

    /// The version of this name.
    pub(in crate::cmd) fn version(&self, name: &ItemName) -> Option<&str> {
        self.items.get(name).map(|item| &*item.version)
    }
}
