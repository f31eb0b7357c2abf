//! `[X-20]`, agreement of Paxos: a decided-once cell has one value, whoever says it, whenever, and in whichever configuration
//! of its domain. What comes after a configuration is decided once in each; and wherever it was decided, all pointers of a
//! domain lead to one configuration of each index.

use super::{Context, Invariant, Observation};
use areo_core::config::Configuration;
use areo_core::consensus::SUCCESSOR_CELL;
use areo_core::pointer::Fork;
use areo_core::server::record::Key;
use bytes::Bytes;
use std::collections::BTreeMap;
use std::sync::Arc;

#[derive(Default)]
pub(super) struct Rule {
    decided: BTreeMap<(Key, Bytes), Bytes>,
    /// What a pointer was seen to lead to.
    configurations: BTreeMap<Key, Arc<Configuration>>,
}

impl Rule {
    fn lead_to(&mut self, c: &Arc<Configuration>) -> Option<String> {
        let first = self.configurations.entry(Key::of(&c.id()));
        let first = first.or_insert_with(|| c.clone());
        Fork::check(first, c).err().map(|fork| fork.to_string())
    }
}

impl Invariant for Rule {
    fn name(&self) -> &'static str {
        "decided_once"
    }

    fn observe(&mut self, observation: &Observation<'_>, _: &Context<'_>) -> Option<String> {
        let (key, cell, value) = match observation {
            Observation::CellShown { key, cell, value } => (key, cell, value),
            Observation::PointerShown { pointer } => return self.lead_to(&pointer.configuration),
            _ => return None,
        };
        let index = if *cell == SUCCESSOR_CELL {
            key.index
        } else {
            0
        };
        let key = Key { index, ..*key };
        let first = self.decided.entry((key, (*cell).clone()));
        let first = first.or_insert_with(|| (*value).clone());
        (first != *value).then(|| {
            let cell = String::from_utf8_lossy(cell);
            format!("cell {cell} was decided to {first:?} and to {value:?}")
        })
    }
}
