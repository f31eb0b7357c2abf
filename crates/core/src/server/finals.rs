//! The highest final configuration of each domain that a server has heard of: kept for ever, because it is what the server
//! answers with when it is asked for a configuration that it let go (`[X-13 highest-final]`, `[A-12 pointer-tombstone]`).

use super::record::{Header, Ledger};
use crate::config::{Configuration, ConfigurationId};
use crate::element::Handle;
use crate::object::DomainId;
use crate::pointer::Pointer;
use std::collections::BTreeMap;
use std::sync::Arc;

#[derive(Default)]
pub(super) struct Finals {
    highest: BTreeMap<(DomainId, u32), (Arc<Configuration>, Handle)>,
}

impl Finals {
    /// The highest of the domain.
    pub(super) fn of(&self, domain: DomainId, partition: u32) -> Option<&Arc<Configuration>> {
        let highest = self.highest.get(&(domain, partition));
        highest.map(|(configuration, _)| configuration)
    }

    /// A pointer to it, if it comes after the configuration of this key.
    pub(super) fn after(&self, key: &ConfigurationId) -> Option<Pointer> {
        let highest = self.of(key.domain, key.partition)?;
        (highest.id().index > key.index).then(|| Pointer::finalized(highest))
    }

    /// Hears of a final configuration. Returns whether it is the highest now.
    pub(super) fn raise(&mut self, c: &Arc<Configuration>, ledger: &mut Ledger) -> bool {
        let id = c.id();
        let known = self.of(id.domain, id.partition);
        let rises = known.is_none_or(|known| known.precedes(c));
        if rises {
            let handle = ledger.append(Header::Final(c.clone()));
            self.recover(c.clone(), handle, ledger);
        }
        let highest = self.of(id.domain, id.partition);
        assert!(
            highest.is_some_and(|highest| !highest.precedes(c)),
            "the highest never falls"
        );
        rises
    }

    pub(super) fn recover(&mut self, c: Arc<Configuration>, handle: Handle, ledger: &mut Ledger) {
        let id = c.id();
        match self.highest.get(&(id.domain, id.partition)) {
            Some((known, _)) if !known.precedes(&c) => ledger.supersede([handle]),
            _ => {
                let before = self.highest.insert((id.domain, id.partition), (c, handle));
                ledger.supersede(before.map(|(_, old)| old));
            }
        }
    }
}
