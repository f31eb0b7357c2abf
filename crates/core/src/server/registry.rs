//! The servers of the cluster as this one knows them: a join by incarnation (`[X-21 directory-join]`).

use super::record::{Header, Ledger};
use crate::config::ServerId;
use crate::element::Handle;
use crate::limits;
use crate::message::{Enrolment, Note, Refusal, Reply, ServerRecord};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Default)]
pub(super) struct Registry {
    servers: BTreeMap<ServerId, (ServerRecord, Handle)>,
    /// Servers whose records changed since this server introduced itself.
    met: BTreeSet<ServerId>,
    /// Records that changed since they were taken.
    news: Vec<ServerRecord>,
}

impl Registry {
    pub(super) fn records(&self) -> impl Iterator<Item = &ServerRecord> {
        self.servers.values().map(|(record, _)| record)
    }

    /// The records that changed since this was asked last.
    pub(super) fn take_news(&mut self) -> Vec<ServerRecord> {
        std::mem::take(&mut self.news)
    }

    /// What a server that serves since this start says of itself to servers that it has met since the last time, and to all
    /// that it knows once its own record has changed. Nothing before it knows what it was registered as.
    pub(super) fn introduce(&mut self, own: ServerId, incarnation: u64) -> Vec<(ServerId, Note)> {
        let is_own = |record: &&ServerRecord| {
            record.incarnation == incarnation && record.start != ServerRecord::CONTESTED
        };
        let record = self.servers.get(&own).map(|(record, _)| record);
        let Some(record) = record.filter(is_own).filter(|_| !self.met.is_empty()) else {
            return Vec::new();
        };
        assert_eq!(record.id, own, "a record stands under its server");
        let mut met = std::mem::take(&mut self.met);
        if met.contains(&own) {
            met.extend(self.servers.keys());
        }
        met.remove(&own);
        // A forgotten server is not called any more.
        met.retain(|server| !self.servers[server].0.is_forgotten());
        let introduce = |server| (server, Note::Serving(record.clone()));
        met.into_iter().map(introduce).collect()
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
                assert!(rank(known) < rank(&joined), "a record that changes rises");
                joined
            }
            None if self.servers.len() >= limits::REGISTERED_SERVERS => return Err(Refusal::Full),
            None => record,
        };
        self.news.push(joined.clone());
        let handle = ledger.append(Header::Registry(joined.clone()));
        self.recover(joined, handle, ledger);
        Ok(Reply::Registered)
    }

    pub(super) fn recover(&mut self, record: ServerRecord, handle: Handle, ledger: &mut Ledger) {
        match self.servers.get(&record.id) {
            Some((known, _)) if rank(known) > rank(&record) => ledger.supersede([handle]),
            _ => {
                self.met.insert(record.id);
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
