//! The servers of the cluster as this one knows them: a join by incarnation (`[X-21]`).

use super::record::{Header, Ledger};
use crate::config::ServerId;
use crate::element::Handle;
use crate::limits;
use crate::message::{Refusal, Reply, ServerRecord};
use std::collections::BTreeMap;

#[derive(Default)]
pub(super) struct Registry {
    servers: BTreeMap<ServerId, (ServerRecord, Handle)>,
}

impl Registry {
    pub(super) fn records(&self) -> impl Iterator<Item = &ServerRecord> {
        self.servers.values().map(|(record, _)| record)
    }

    /// Knows the server afterwards, unless a later incarnation of it is known, or another start of the same one: then
    /// the registering server runs on a copy of an older state.
    pub(super) fn register(
        &mut self,
        record: ServerRecord,
        ledger: &mut Ledger,
    ) -> Result<Reply, Refusal> {
        let fits = |text: &str| text.len() <= 255;
        if !(fits(&record.name) && fits(&record.address) && fits(&record.admin)) {
            return Err(Refusal::TooLarge);
        }
        match self.servers.get(&record.id) {
            Some((known, _))
                if known.incarnation == record.incarnation && known.start == record.start =>
            {
                return Ok(Reply::Registered);
            }
            Some((known, _)) if known.incarnation >= record.incarnation => {
                return Ok(Reply::Outdated {
                    registered: known.incarnation,
                });
            }
            None if self.servers.len() >= limits::REGISTERED_SERVERS => return Err(Refusal::Full),
            _ => {}
        }
        let handle = ledger.append(Header::Registry(record.clone()));
        self.recover(record, handle, ledger);
        Ok(Reply::Registered)
    }

    pub(super) fn recover(&mut self, record: ServerRecord, handle: Handle, ledger: &mut Ledger) {
        match self.servers.get(&record.id) {
            Some((known, _)) if known.incarnation > record.incarnation => {
                ledger.supersede([handle]);
            }
            _ => {
                let replaced = self.servers.insert(record.id, (record, handle));
                ledger.supersede(replaced.map(|(_, old)| old));
            }
        }
    }
}
