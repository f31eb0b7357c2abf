//! Messages to the root domain about servers.

use super::labels::Labels;
use crate::config::ServerId;
use std::cmp::Ordering;

/// The effect of a registration on its record (decision record 0017).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Enrolment {
    /// Nothing: the reply says whether a start of that incarnation would be registered.
    Ask,
    /// Registers the start. A server answers this before its own start is confirmed.
    Register,
    /// Makes known what another configuration of the root domain has registered.
    HandOn,
}

/// The key under which a register keeps one record.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum RegisterKey {
    /// A server, for ever.
    Server(ServerId),
    /// The servers in memory that were at this address, one after the other (`[X-28 memory-replaced]`).
    Address(String),
}

/// The order of the records of one [`RegisterKey`]: generation, server, incarnation. The larger one replaces the other.
pub type RecordRank = (u64, ServerId, u64);

/// The program that a server runs.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Program {
    /// Its version, for people; empty where it is not known.
    pub version: String,
    /// The largest level of a cluster that it knows (`[X-46 cluster-level]`).
    pub level: u32,
}

/// The levels of a cluster; each only rises (`[X-46 cluster-level]`). They travel with the records of servers because the register joins
/// records. The cluster has the largest levels of all records.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Levels {
    /// The register takes no start of a program below this level.
    pub required: u32,
    /// Every server runs a program that knows this level, so that clients and servers may use what comes with it.
    pub finalized: u32,
}

impl Levels {
    /// Joins both: the larger one of each stays.
    #[must_use]
    pub fn join(self, other: Levels) -> Levels {
        Levels {
            required: self.required.max(other.required),
            finalized: self.finalized.max(other.finalized),
        }
    }

    /// The largest levels of these records.
    pub fn of<'a>(records: impl IntoIterator<Item = &'a ServerRecord>) -> Levels {
        let levels = records.into_iter().map(|record| record.levels);
        levels.fold(Levels::default(), Levels::join)
    }
}

/// A server as the root domain knows it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ServerRecord {
    pub id: ServerId,
    /// Counts the starts of that server; the larger record wins.
    pub incarnation: u64,
    /// Random per start: tells two starts under one incarnation apart, which a copied directory would cause.
    /// [`ServerRecord::CONTESTED`] if both were registered somewhere.
    pub start: u64,
    /// The process that began the start has left it to a later one of the same directory, and is refused if it still runs.
    pub resumed: bool,
    /// Name for people; unique within a cluster by convention, never used to distinguish servers.
    pub name: String,
    /// Address at which it listens for nodes and clients.
    pub address: String,
    /// Address of its admin port.
    pub admin: String,
    /// Only of a server in memory whose process drew its id, so that no other process ever has it: the larger one of an address
    /// replaces the others (`[X-28 memory-replaced]`). Below 2^62.
    pub generation: Option<u64>,
    /// Counts how often people said that it is to go, and took that back: odd while it is to go (`[X-36 leaving-server]`). It does not
    /// depend on starts: the larger count is kept, whichever record it came with.
    pub leaving: u64,
    /// The number of the last batch of its log that is known to hold what the server cannot miss (`[X-31 log-position]`). `None`
    /// of a server in memory, and of one that does not say.
    pub position: Option<u64>,
    /// The program of that start.
    pub program: Program,
    /// Levels of the cluster; a record that replaces this one keeps them.
    pub levels: Levels,
    /// Labels that operators gave it. They do not depend on starts either (`[X-47 server-labels]`).
    pub labels: Labels,
}

impl ServerRecord {
    /// The number of no start.
    pub const CONTESTED: u64 = 0;
    /// The incarnation of a server that is forgotten: no start of it is registered any more (`[X-27 forgotten-server]`).
    const FORGOTTEN: u64 = u64::MAX;

    /// A record of a server's address without a start: for a process that is not registered yet, and for servers
    /// known by their addresses alone.
    pub fn at_address(id: ServerId, address: String) -> ServerRecord {
        ServerRecord {
            id,
            incarnation: 0,
            start: 0,
            resumed: false,
            name: String::new(),
            address,
            admin: String::new(),
            generation: None,
            leaving: 0,
            position: None,
            program: Program::default(),
            levels: Levels::default(),
            labels: Labels::default(),
        }
    }

    /// True if it is to leave: nothing that chooses servers chooses it.
    pub fn is_leaving(&self) -> bool {
        self.leaving % 2 == 1
    }

    /// The record of a server that is to go, or is to stay, which was as this record says.
    #[must_use]
    pub fn with_leaving(&self, is_leaving: bool) -> ServerRecord {
        let leaving = self.leaving + u64::from(self.is_leaving() != is_leaving);
        ServerRecord {
            leaving,
            ..self.clone()
        }
    }

    /// The last record of a server, which no other one replaces.
    #[must_use]
    pub fn forgotten(&self) -> ServerRecord {
        ServerRecord {
            incarnation: Self::FORGOTTEN,
            // All forget it alike.
            start: Self::CONTESTED + 1,
            resumed: false,
            position: None,
            ..self.clone()
        }
    }

    /// True if the server is forgotten.
    pub fn is_forgotten(&self) -> bool {
        Self::is_last(self.incarnation)
    }

    /// True if the incarnation is that of a forgotten server.
    pub fn is_last(incarnation: u64) -> bool {
        incarnation == Self::FORGOTTEN
    }

    /// The key of the record in a register.
    pub fn key(&self) -> RegisterKey {
        match self.generation {
            Some(_) => RegisterKey::Address(self.address.clone()),
            None => RegisterKey::Server(self.id),
        }
    }

    /// Order of the records of one key: a register keeps the largest.
    pub fn rank(&self) -> RecordRank {
        (self.generation.unwrap_or(0), self.id, self.incarnation)
    }

    /// The number that a refusal as *outdated* states: the generation, or the incarnation of a server without one.
    pub fn number(&self) -> u64 {
        self.generation.unwrap_or(self.incarnation)
    }

    /// True if the register has room for one of the two only, although they are of two servers.
    pub fn displaces(&self, other: &ServerRecord) -> bool {
        let are_in_memory = self.generation.is_some() && other.generation.is_some();
        are_in_memory && self.id != other.id && self.address == other.address
    }

    /// Joins two records of a server, or of an address: the larger rank stays. Two different starts of one
    /// incarnation exclude each other: none is admitted any more. Of one start the larger log position stays. Of one
    /// server, over all of its starts, the larger `leaving` and the last change of each label stay. The larger levels of the cluster stay in any case.
    pub fn join(&mut self, other: ServerRecord) {
        let is_one = self.id == other.id || self.displaces(&other);
        assert!(is_one, "records of one server or of one address");
        let process = |it: &ServerRecord| (it.generation, it.id);
        let levels = self.levels.join(other.levels);
        let of_operators = (process(self) == process(&other)).then(|| {
            let mut labels = self.labels.clone();
            labels.join_all(other.labels.clone());
            (self.leaving.max(other.leaving), labels)
        });
        match other.rank().cmp(&self.rank()) {
            Ordering::Less => {}
            Ordering::Greater => *self = other,
            Ordering::Equal => {
                if self.start != other.start {
                    self.start = Self::CONTESTED;
                }
                self.resumed |= other.resumed;
                self.position = self.position.max(other.position);
            }
        }
        if let Some((leaving, labels)) = of_operators {
            (self.leaving, self.labels) = (leaving, labels);
        }
        self.levels = levels;
    }
}
