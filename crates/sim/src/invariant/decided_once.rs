//! `[X-20]`, agreement of Paxos: a decided-once cell has one value, whoever says it, whenever, and in whichever configuration
//! of its domain. What comes after a configuration is decided once in each.

use super::{Context, Invariant, Observation};
use areo_core::consensus::SUCCESSOR_CELL;
use areo_core::server::record::Key;
use bytes::Bytes;
use std::collections::BTreeMap;

#[derive(Default)]
pub(super) struct Rule {
    decided: BTreeMap<(Key, Bytes), Bytes>,
}

impl Invariant for Rule {
    fn name(&self) -> &'static str {
        "decided_once"
    }

    fn observe(&mut self, observation: &Observation<'_>, _: &Context<'_>) -> Option<String> {
        let Observation::CellShown { key, cell, value } = observation else {
            return None;
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
