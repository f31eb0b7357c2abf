//! Why a server does not do what it is asked.

use std::fmt;

/// Why a server does not answer. A closed list; the server did nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// Too much is under way, or too many unconfirmed versions of this object (`[X-3 unconfirmed-cap]`). May pass.
    Busy,
    /// The disk is full.
    Full,
    /// What is asked for is damaged here (`[X-11 damage-abstains]`).
    Damaged,
    /// The server is stopping. May pass.
    Draining,
    /// The server waits for its incarnation to be confirmed. May pass.
    Starting,
    /// The address belongs to another cluster.
    WrongCluster,
    /// Another server answers at this address, or this one is no member of the configuration.
    WrongServer,
    /// Authentication failed.
    Unauthorised,
    /// The server does not know the configuration: ask again with the descriptor.
    UnknownConfiguration,
    /// Larger than the server takes: a value, or the number of a tag or a ballot (`[N-1 bounded-numbers]`).
    TooLarge,
    /// The request could not be read.
    Malformed,
    /// The request is of a later version.
    Unknown,
    /// The deadline had passed when the server came to it.
    DeadlinePassed,
    /// The domain was removed.
    Removed,
    /// The server knows another configuration of the same index ([`crate::pointer::Fork`]).
    Forked,
    /// The object has a fence above this version (`[X-3 unconfirmed-cap]`): it is decided by consensus whether it is kept.
    Fenced,
}

impl Refusal {
    /// Whether asking again later may help.
    pub fn may_pass(self) -> bool {
        matches!(self, Refusal::Busy | Refusal::Draining | Refusal::Starting)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Refusal::Busy => "busy",
            Refusal::Full => "disk full",
            Refusal::Damaged => "damaged",
            Refusal::Draining => "stopping",
            Refusal::Starting => "starting",
            Refusal::WrongCluster => "belongs to another cluster",
            Refusal::WrongServer => "is another server",
            Refusal::Unauthorised => "not authorised",
            Refusal::UnknownConfiguration => "does not know the configuration",
            Refusal::TooLarge => "takes nothing this large",
            Refusal::Malformed => "could not read the request",
            Refusal::Unknown => "does not know the request",
            Refusal::DeadlinePassed => "too late",
            Refusal::Removed => "domain removed",
            Refusal::Forked => "knows another configuration of this index",
            Refusal::Fenced => "is about to drop the version",
        })
    }
}
