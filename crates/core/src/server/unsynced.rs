//! The parts of a server's state that changed and are not durable yet. A read that reflects none of them waits for no batch
//! (`[X-10 durable-replies]`).

use super::Server;
use crate::config::ConfigurationId;
use crate::message::{Access, Body, CellRequest, Request};
use crate::object::{DomainId, Name};
use bytes::Bytes;
use std::collections::BTreeSet;

/// A part of the state that one record states.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Part {
    /// The versions, marks and register of an object.
    Object(ConfigurationId, Name),
    /// The promises for registers of which nothing is here.
    BallotFloors(ConfigurationId),
    Cell(ConfigurationId, Bytes),
    /// A configuration with its successors.
    Configuration(ConfigurationId),
    /// The highest final configuration of a domain.
    Final(DomainId, u32),
    /// The servers of the cluster.
    Registry,
}

impl Part {
    /// The highest final configuration of the domain that this one is of.
    pub(super) fn final_of(id: &ConfigurationId) -> Part {
        Part::Final(id.domain, id.partition)
    }
}

/// The parts that records of batches state which are not durable. A part of which records are only freed is not among them: a record that comes
/// back after a crash does no harm.
#[derive(Default, Debug)]
pub(super) struct Unsynced {
    /// Parts of the open batch.
    open: BTreeSet<Part>,
    /// Parts of the closed batch, until its replies are released.
    closed: BTreeSet<Part>,
}

impl Unsynced {
    /// The open batch has a record of this part.
    pub(super) fn append(&mut self, part: Part) {
        self.open.insert(part);
    }

    /// The open batch is closed.
    pub(super) fn close(&mut self) {
        self.closed.append(&mut self.open);
    }

    /// The closed batch is durable.
    pub(super) fn release(&mut self) {
        self.closed.clear();
    }

    fn has(&self, part: &Part) -> bool {
        self.open.contains(part) || self.closed.contains(part)
    }
}

impl Server {
    /// True if the request changes nothing, and its reply reflects nothing but what is durable. A request that is not plainly a
    /// read of something with a name is left out: it waits for a batch.
    pub(crate) fn is_settled(&self, request: &Request) -> bool {
        match request {
            // Each connection begins with it.
            Request::Directory => {
                let root = Part::final_of(&self.identity.root.id());
                self.is_durable(&Part::Registry) && self.is_durable(&root)
            }
            Request::Latest {
                domain,
                partition,
                known: None,
            } => self.is_durable(&Part::Final(*domain, *partition)),
            Request::Configured {
                configuration: id,
                successors,
                body,
                ..
            } => {
                // A descriptor of a known configuration is not looked at.
                self.known(id).is_some()
                    && self.has_heard(id, None, Some(successors))
                    && self.is_durable(&Part::Configuration(*id))
                    && self.is_durable(&Part::final_of(id))
                    && self.reads_durable(id, body)
            }
            Request::Latest { .. } | Request::Know(_) | Request::Status | Request::View => false,
        }
    }

    fn reads_durable(&self, id: &ConfigurationId, body: &Body) -> bool {
        let is_read = |(name, access): &(Name, Access)| {
            let is_read = match access {
                // With an announcement it asks for room, too.
                Access::Query {
                    announced: None, ..
                }
                | Access::Fetch { .. } => true,
                Access::Rank { ballot: None, .. } => self.is_durable(&Part::BallotFloors(*id)),
                _ => false,
            };
            is_read && self.is_durable(&Part::Object(*id, name.clone()))
        };
        match body {
            // The answers for later configurations reflect more than this one.
            Body::Access(accesses) => !self.answers_once(id, body) && accesses.iter().all(is_read),
            Body::Cell {
                cell,
                step: CellRequest::Query,
            } => self.is_durable(&Part::Cell(*id, cell.clone())),
            Body::ReadConfig => true,
            _ => false,
        }
    }

    fn is_durable(&self, part: &Part) -> bool {
        !self.ledger.unsynced.has(part)
    }
}
