//! The status of a server, in numbers.

use crate::config::ServerId;
use crate::object::DomainId;

/// The status of a server.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a field of its own on the wire"
)]
pub struct ServerStatus {
    /// Number of its current start.
    pub incarnation: u64,
    /// False while it waits for a quorum of the root domain to confirm its incarnation, and while its log lacks records.
    pub serving: bool,
    /// Records are missing from its log, so that it answers for no object (`[X-11 damage-abstains]`).
    pub incomplete: bool,
    /// Acknowledged writes are on disk.
    pub durable: bool,
    /// Number of objects, tombstones included.
    pub objects: u64,
    /// Versions held of them.
    pub versions: u64,
    /// Bytes of the elements held.
    pub element_bytes: u64,
    /// Bytes that the store has written and not reclaimed, on disk or in memory.
    pub stored_bytes: u64,
    /// Objects that wait for repair.
    pub damaged: u64,
    /// Number of configurations that it knows.
    pub configurations: u64,
    /// Configurations among them whose successor is decided and not final: changes under way, or left by their
    /// client.
    pub pending: u64,
    /// For how long the server has known the oldest of these successors, since its start at most; in milliseconds.
    pub pending_ms: u64,
    /// Versions let go for newer ones, since its start.
    pub trimmed: u64,
    /// Objects that were damaged and made whole again, since its start.
    pub repaired: u64,
    /// Users' objects that were deleted: of each a tombstone stays.
    pub tombstones: u64,
    /// The disk has no room for users' writes: those that bring values are refused.
    pub full: bool,
    /// Objects that it lacked when it last went over them (`[X-26 self-repair]`).
    pub lacking: u64,
    /// Milliseconds since it last went over all its objects. `None`: not since its start.
    pub proven_ms: Option<u64>,
    /// The longest time, at most, since a record was verified, in milliseconds. `None`: it is not known that all were, or there is no
    /// disk.
    pub unscrubbed_ms: Option<u64>,
    /// Its domains, by id: at most [`crate::limits::STANDINGS`] of them.
    pub domains: Vec<DomainStanding>,
    /// Members for which it waits to restart the counters of a domain (2.11), in order; at most [`crate::limits::STANDINGS`].
    pub waits: Vec<(DomainId, ServerId)>,
    /// Progress of the changes that it makes as a leader: at most [`crate::limits::LEADER_WINDOW`] domains.
    pub leads: Vec<LeaderStanding>,
}

/// Progress of the changes that a server makes as the leader of a domain (`[R-31 designated-leader]`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LeaderStanding {
    pub domain: DomainId,
    /// Objects and bytes that it has transferred since it began with these changes.
    pub transferred: Transferred,
}

/// Findings of a server when it last went over the objects of a domain (`[X-26 self-repair]`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DomainStanding {
    pub domain: DomainId,
    /// Its objects, tombstones included.
    pub objects: u64,
    /// Objects that the server lacked.
    pub lacking: u64,
    /// Milliseconds since it went over all of them. `None`: not since its start.
    pub proven_ms: Option<u64>,
}

/// Progress of a transfer. It only rises: the larger one of two is the later one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Transferred {
    /// Objects that were moved; blocks of a large value are none of their own.
    pub objects: u64,
    /// Bytes of their values, and of blocks.
    pub bytes: u64,
}

impl Transferred {
    /// Adds objects and bytes that were moved since.
    pub fn add(&mut self, more: Transferred) {
        self.objects += more.objects;
        self.bytes += more.bytes;
    }
}
