//! The servers of the cluster as this one knows them: a join by incarnation (`[X-21 directory-join]`).

use super::record::{Header, Ledger};
use crate::config::ServerId;
use crate::element::Handle;
use crate::limits;
use crate::message::{Enrolment, Refusal, Reply, ServerRecord};
use std::collections::BTreeMap;

#[derive(Default)]
pub(super) struct Registry {
    servers: BTreeMap<ServerId, (ServerRecord, Handle)>,
}

impl Registry {
    pub(super) fn records(&self) -> impl Iterator<Item = &ServerRecord> {
        self.servers.values().map(|(record, _)| record)
    }

    pub(super) fn enrol(
        &mut self,
        step: Enrolment,
        record: ServerRecord,
        ledger: &mut Ledger,
    ) -> Result<Reply, Refusal> {
        match step {
            Enrolment::Ask => Ok(self.ask(&record)),
            Enrolment::Register => self.register(record, ledger),
            Enrolment::HandOn => self.know(record, ledger),
        }
    }

    /// Whether a start of this incarnation would be registered.
    fn ask(&self, record: &ServerRecord) -> Reply {
        match self.servers.get(&record.id) {
            Some((known, _)) if known.incarnation >= record.incarnation => outdated(known),
            _ => Reply::Registered,
        }
    }

    /// Knows the start afterwards, unless a later one is known, or another one of the same incarnation: then the registering
    /// server runs on a copy. So does the process that began the start, if a later one of the directory has resumed it.
    fn register(&mut self, record: ServerRecord, ledger: &mut Ledger) -> Result<Reply, Refusal> {
        if let Some((known, _)) = self.servers.get(&record.id) {
            let is_other = known.start != record.start || known.resumed && !record.resumed;
            if known.incarnation > record.incarnation
                || known.incarnation == record.incarnation && is_other
            {
                return Ok(outdated(known));
            }
        }
        self.know(record, ledger)
    }

    /// Joins the record with what is known.
    pub(super) fn know(
        &mut self,
        record: ServerRecord,
        ledger: &mut Ledger,
    ) -> Result<Reply, Refusal> {
        let fits = |text: &str| text.len() <= 255;
        if !(fits(&record.name) && fits(&record.address) && fits(&record.admin)) {
            return Err(Refusal::TooLarge);
        }
        let joined = match self.servers.get(&record.id) {
            Some((known, _)) if known.incarnation > record.incarnation => {
                return Ok(outdated(known));
            }
            Some((known, _)) => {
                let mut joined = known.clone();
                joined.join(record);
                if joined == *known {
                    return Ok(Reply::Registered);
                }
                joined
            }
            None if self.servers.len() >= limits::REGISTERED_SERVERS => return Err(Refusal::Full),
            None => record,
        };
        let handle = ledger.append(Header::Registry(joined.clone()));
        self.recover(joined, handle, ledger);
        Ok(Reply::Registered)
    }

    pub(super) fn recover(&mut self, record: ServerRecord, handle: Handle, ledger: &mut Ledger) {
        match self.servers.get(&record.id) {
            Some((known, _)) if rank(known) > rank(&record) => ledger.supersede([handle]),
            _ => {
                let replaced = self.servers.insert(record.id, (record, handle));
                ledger.supersede(replaced.map(|(_, old)| old));
            }
        }
    }
}

fn outdated(known: &ServerRecord) -> Reply {
    Reply::Outdated {
        registered: known.incarnation,
    }
}

/// Of the records that one server has had of another, the last has the largest.
fn rank(record: &ServerRecord) -> (u64, bool, bool) {
    let is_contested = record.start == ServerRecord::CONTESTED;
    (record.incarnation, is_contested, record.resumed)
}
