//! The servers of the cluster as this one knows them: a join by incarnation (`[X-21 directory-join]`), and of servers in memory
//! by generation (`[X-28 memory-replaced]`). Each key has the largest record that was heard of, in any order. The keys do not
//! depend on one another, so that the whole is a join, too.

use super::record::{Header, Ledger};
use crate::config::ServerId;
use crate::element::Handle;
use crate::limits;
use crate::message::{Enrolment, Labels, Levels, Note, Refusal, RegisterKey, Reply, ServerRecord};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

#[derive(Default)]
pub(super) struct Registry {
    servers: BTreeMap<RegisterKey, (ServerRecord, Handle)>,
    /// The keys of the records, by server.
    keys: BTreeMap<ServerId, RegisterKey>,
    /// Servers whose records changed since this server introduced itself.
    met: BTreeSet<ServerId>,
    /// Records that changed since they were taken.
    news: Vec<ServerRecord>,
}

impl Registry {
    pub(super) fn records(&self) -> impl Iterator<Item = &ServerRecord> {
        self.servers.values().map(|(record, _)| record)
    }

    /// The record of a server, if there is one.
    pub(super) fn record(&self, server: ServerId) -> Option<&ServerRecord> {
        let (record, _) = self.servers.get(self.keys.get(&server)?)?;
        assert_eq!(record.id, server, "a key leads to the record of its server");
        Some(record)
    }

    /// The records that changed since this was asked last.
    pub(super) fn take_news(&mut self) -> Vec<ServerRecord> {
        std::mem::take(&mut self.news)
    }

    /// Notes with the server's own record, each with its receiver: servers that were met since the last call, and all
    /// known servers once the record has changed. There are none before this start is registered, because the server
    /// does not know its registered record before.
    pub(super) fn introduce(&mut self, own: ServerId, incarnation: u64) -> Vec<(ServerId, Note)> {
        if self.met.is_empty() {
            return Vec::new();
        }
        let is_own = |record: &&ServerRecord| {
            let is_contested = record.start == ServerRecord::CONTESTED;
            record.id == own && record.incarnation == incarnation && !is_contested
        };
        let Some(record) = self.records().find(is_own).cloned() else {
            return Vec::new();
        };
        let met = std::mem::take(&mut self.met);
        let is_met = |id: &ServerId| *id != own && (met.contains(id) || met.contains(&own));
        // A forgotten server is not called any more.
        let others = self.records().filter(|record| !record.is_forgotten());
        let others = others.map(|record| record.id).filter(is_met);
        let introduce = |server| (server, Note::Serving(record.clone()));
        others.map(introduce).collect()
    }

    pub(super) fn enrol(
        &mut self,
        step: Enrolment,
        record: ServerRecord,
        ledger: &mut Ledger,
    ) -> Result<Reply, Refusal> {
        match step {
            Enrolment::Ask => {
                self.check_program(&record)?;
                self.ask(&record)
            }
            Enrolment::Register => self.register(record, ledger),
            Enrolment::HandOn => self.know(record, ledger),
        }
    }

    /// Answers whether a start of this incarnation would be registered. A server that keeps a log gets its last known
    /// record.
    fn ask(&self, record: &ServerRecord) -> Result<Reply, Refusal> {
        match self.servers.get(&record.key()) {
            Some((known, _)) if known.rank() >= record.rank() => Ok(outdated(known)),
            Some((known, _)) if record.position.is_some() => {
                Ok(Reply::Admissible(Box::new(known.clone())))
            }
            None if self.is_full() => Err(Refusal::RegisterFull),
            _ => Ok(Reply::Registered),
        }
    }

    /// Refuses a start of a program below the required level (`[X-46 cluster-level]`). The record of a forgotten server is no start.
    fn check_program(&self, record: &ServerRecord) -> Result<(), Refusal> {
        let required = Levels::of(self.records()).required;
        if record.program.level < required && !record.is_forgotten() {
            Err(Refusal::OldProgram)
        } else {
            Ok(())
        }
    }

    /// A start of the server that is later than this one.
    pub(super) fn has_later(&self, own: ServerId, incarnation: u64) -> bool {
        let is_last = ServerRecord::is_last(incarnation);
        assert!(!is_last, "a forgotten server has no process");
        let known = self.servers.get(&RegisterKey::Server(own));
        known.is_some_and(|(record, _)| record.incarnation > incarnation)
    }

    fn is_full(&self) -> bool {
        assert!(self.servers.len() <= limits::REGISTERED_SERVERS);
        self.servers.len() == limits::REGISTERED_SERVERS
    }

    /// Knows the start afterwards, unless a later one is known, or another one of the same incarnation: then the registering
    /// server runs on a copy. So does the process that began the start, if a later one of the directory has resumed it.
    fn register(&mut self, record: ServerRecord, ledger: &mut Ledger) -> Result<Reply, Refusal> {
        if let Some((known, _)) = self.servers.get(&record.key()) {
            let is_other = known.start != record.start || known.resumed && !record.resumed;
            if known.rank() > record.rank() || known.rank() == record.rank() && is_other {
                return Ok(outdated(known));
            }
        }
        // A known start is no exception: it may have been handed on, and never been at a quorum.
        self.check_program(&record)?;
        // Levels and labels are changed by those who may reconfigure.
        let of_start = ServerRecord {
            levels: Levels::default(),
            labels: Labels::default(),
            ..record
        };
        self.know(of_start, ledger)
    }

    /// Joins the record with the known one.
    pub(super) fn know(
        &mut self,
        record: ServerRecord,
        ledger: &mut Ledger,
    ) -> Result<Reply, Refusal> {
        let fits = |text: &str| text.len() <= 255;
        let fit = fits(&record.name) && fits(&record.address) && fits(&record.admin);
        let fit = fit && fits(&record.program.version) && record.labels.are_bounded();
        let counts = [record.generation.unwrap_or(0), record.leaving];
        if !fit || counts.iter().any(|it| *it >= limits::NUMBER) {
            return Err(Refusal::TooLarge);
        }
        let key = record.key();
        let joined = match self.servers.get(&key) {
            Some((known, _)) => {
                let mut joined = known.clone();
                let is_outdated = known.rank() > record.rank();
                joined.join(record);
                if !joined.labels.are_bounded() {
                    return Err(Refusal::TooLarge);
                }
                if joined == *known {
                    return Ok(match is_outdated {
                        true => outdated(known),
                        false => Reply::Registered,
                    });
                }
                assert!(rank(known) < rank(&joined), "a record that changes rises");
                let has_position_of = |known: &ServerRecord| ServerRecord {
                    position: joined.position,
                    ..known.clone()
                };
                if joined == has_position_of(known) {
                    self.move_on(key, joined, ledger);
                    return Ok(Reply::Registered);
                }
                joined
            }
            None if self.is_full() => return Err(Refusal::RegisterFull),
            None => record,
        };
        self.news.push(joined.clone());
        let handle = ledger.append(Header::Registry(joined.clone()));
        self.recover(joined, handle, ledger);
        Ok(Reply::Registered)
    }

    /// The log of a server has come further (`[X-31 log-position]`). Nothing else is new of it, so that no other server hears of
    /// that, and the log of this one does not count it as growth: two members of the root domain would keep each other busy.
    fn move_on(&mut self, key: RegisterKey, record: ServerRecord, ledger: &mut Ledger) {
        let known = self.servers.get(&key).map(|(known, _)| known.position);
        assert!(known < Some(record.position), "a position rises");
        let handle = ledger.append_aside(Header::Registry(record.clone()));
        let replaced = self.insert(key, record, handle);
        ledger.supersede(replaced);
    }

    pub(super) fn recover(&mut self, record: ServerRecord, handle: Handle, ledger: &mut Ledger) {
        let key = record.key();
        match self.servers.get(&key) {
            Some((known, _)) if rank(known) > rank(&record) => ledger.supersede([handle]),
            _ => {
                self.met.insert(record.id);
                let replaced = self.insert(key, record, handle);
                ledger.supersede(replaced);
            }
        }
    }

    /// Keeps the record under its key. Returns the place of the record that it replaces.
    fn insert(&mut self, key: RegisterKey, record: ServerRecord, handle: Handle) -> Option<Handle> {
        let server = record.id;
        let replaced = self.servers.insert(key.clone(), (record, handle));
        if let Some((before, _)) = &replaced
            && self.keys.get(&before.id) == Some(&key)
        {
            self.keys.remove(&before.id);
        }
        self.keys.insert(server, key);
        replaced.map(|(_, handle)| handle)
    }
}

fn outdated(known: &ServerRecord) -> Reply {
    Reply::Outdated {
        registered: known.number(),
    }
}

/// Order of the records of one key that this server has had: the last one is the largest.
fn rank(record: &ServerRecord) -> impl Ord + fmt::Debug + use<'_> {
    let is_contested = record.start == ServerRecord::CONTESTED;
    // After as many changes in all, each label has as many, and none has a smaller text.
    let labels = (record.labels.changes(), &record.labels);
    (
        record.rank(),
        is_contested,
        record.resumed,
        record.leaving,
        record.levels,
        labels,
        record.position,
    )
}

#[cfg(test)]
mod tests;
