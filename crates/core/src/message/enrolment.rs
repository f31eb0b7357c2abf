//! What the root domain is told of servers.

use crate::config::ServerId;
use std::cmp::Ordering;

/// What a registration does with its record (decision record 0017).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Enrolment {
    /// Nothing: the reply says whether a start of that incarnation would be registered.
    Ask,
    /// Registers the start. A server answers this before its own start is confirmed.
    Register,
    /// Makes known what another configuration of the root domain has registered.
    HandOn,
}

/// A server as the root domain knows it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ServerRecord {
    /// Who.
    pub id: ServerId,
    /// Counts the starts of that server; the larger record wins.
    pub incarnation: u64,
    /// Random per start: tells two starts under one incarnation apart, which a copied directory would cause.
    /// [`ServerRecord::CONTESTED`] if both were registered somewhere.
    pub start: u64,
    /// The process that began the start has left it to a later one of the same directory, and is refused if it still runs.
    pub resumed: bool,
    /// What people call it; unique within a cluster by convention, never used to tell servers apart.
    pub name: String,
    /// Where it listens for nodes and clients.
    pub address: String,
    /// Where its admin port listens.
    pub admin: String,
}

impl ServerRecord {
    /// The number of no start.
    pub const CONTESTED: u64 = 0;
    /// The incarnation of a server that is forgotten: no start of it is registered any more (`[X-27 forgotten-server]`).
    const FORGOTTEN: u64 = u64::MAX;

    /// Where a server is found, without a start: what a process knows of itself before it is registered, and of others by
    /// their addresses alone.
    pub fn at_address(id: ServerId, address: String) -> ServerRecord {
        ServerRecord {
            id,
            incarnation: 0,
            start: 0,
            resumed: false,
            name: String::new(),
            address,
            admin: String::new(),
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
            ..self.clone()
        }
    }

    /// Whether the server is forgotten.
    pub fn is_forgotten(&self) -> bool {
        Self::is_last(self.incarnation)
    }

    /// Whether the incarnation is that of a forgotten server.
    pub fn is_last(incarnation: u64) -> bool {
        incarnation == Self::FORGOTTEN
    }

    /// Of two records of a server the one to keep: that of the larger incarnation. Of two starts of one incarnation none is
    /// admitted any more.
    pub fn join(&mut self, other: ServerRecord) {
        assert_eq!(self.id, other.id, "records of one server");
        match other.incarnation.cmp(&self.incarnation) {
            Ordering::Less => {}
            Ordering::Greater => *self = other,
            Ordering::Equal => {
                if self.start != other.start {
                    self.start = Self::CONTESTED;
                }
                self.resumed |= other.resumed;
            }
        }
    }
}
