//! Why a server does not do what it is asked.

use std::fmt;

/// Why a server does not answer, with the number that stands for it on the wire. The list is closed: a number that this
/// version does not know is malformed, and a new one needs a feature bit in the hello. A refusal counts in no quorum; it never
/// says that the request had no effect, because an earlier attempt of the same request may have had one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[repr(u16)]
pub enum Refusal {
    /// Too much is under way, or too many unconfirmed versions of this object (`[X-3 unconfirmed-cap]`). May pass.
    Busy = 1,
    /// The disk is full.
    Full = 2,
    /// The requested element or record is damaged on this server (`[X-11 damage-abstains]`).
    Damaged = 3,
    /// The server is stopping. May pass.
    Draining = 4,
    /// The address belongs to another cluster.
    WrongCluster = 5,
    /// Another server answers at this address, or this one is no member of the configuration.
    WrongServer = 6,
    /// The caller is not authenticated, or lacks a right that the request needs.
    Unauthorised = 7,
    /// The server does not know the configuration: ask again with the descriptor.
    UnknownConfiguration = 8,
    /// Larger than the server takes: a value, or the number of a tag or a ballot (`[N-1 bounded-numbers]`).
    TooLarge = 9,
    /// The request could not be read.
    Malformed = 10,
    /// The request is of a later version.
    UnknownRequest = 11,
    /// The deadline had passed when the server came to it.
    DeadlinePassed = 12,
    /// The server waits for its incarnation to be confirmed. May pass.
    Starting = 13,
    /// The server runs on an old copy of its data: a later start of it is known (`[X-11 damage-abstains]`).
    RolledBack = 14,
    /// The two sides have no version, or no feature that must be understood, in common.
    UnsupportedVersion = 15,
    /// The domain was removed.
    Removed = 16,
    /// The server knows another configuration of the same index ([`crate::pointer::Fork`]).
    Forked = 17,
    /// The object has a fence above this version (`[X-3 unconfirmed-cap]`): it is decided by consensus whether it is kept.
    Fenced = 18,
    /// The server knows as many servers as a register holds ([`crate::limits::REGISTERED_SERVERS`]).
    RegisterFull = 19,
    /// All members are restarting the object's counters ([`crate::message::RestartNote`]). May pass.
    Restarting = 20,
    /// The server has no descriptor or no memory left for the request's records. May pass.
    Exhausted = 21,
    /// The program of the start is below the level that the cluster requires (`[X-46 cluster-level]`).
    OldProgram = 22,
}

impl Refusal {
    /// Every refusal, in the order of its number.
    pub const ALL: [Refusal; 22] = [
        Refusal::Busy,
        Refusal::Full,
        Refusal::Damaged,
        Refusal::Draining,
        Refusal::WrongCluster,
        Refusal::WrongServer,
        Refusal::Unauthorised,
        Refusal::UnknownConfiguration,
        Refusal::TooLarge,
        Refusal::Malformed,
        Refusal::UnknownRequest,
        Refusal::DeadlinePassed,
        Refusal::Starting,
        Refusal::RolledBack,
        Refusal::UnsupportedVersion,
        Refusal::Removed,
        Refusal::Forked,
        Refusal::Fenced,
        Refusal::RegisterFull,
        Refusal::Restarting,
        Refusal::Exhausted,
        Refusal::OldProgram,
    ];

    /// The number on the wire; never 0, which means "no refusal".
    pub fn code(self) -> u16 {
        self as u16
    }

    /// The refusal with this number, if the list has one.
    pub fn from_code(code: u16) -> Option<Refusal> {
        let index = usize::from(code).checked_sub(1)?;
        let refusal = *Refusal::ALL.get(index)?;
        assert_eq!(refusal.code(), code, "ALL is in the order of the codes");
        Some(refusal)
    }

    /// True if the server has lost the requested state, or everything: it abstains until it is repaired
    /// (`[X-11 damage-abstains]`).
    pub fn is_damage(self) -> bool {
        matches!(self, Refusal::Damaged | Refusal::RolledBack)
    }

    /// True if asking again later may help.
    pub fn may_pass(self) -> bool {
        matches!(
            self,
            Refusal::Busy
                | Refusal::Draining
                | Refusal::Starting
                | Refusal::Restarting
                | Refusal::Exhausted
        )
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
            Refusal::UnknownRequest => "does not know the request",
            Refusal::RolledBack => "runs on an old copy of its data",
            Refusal::UnsupportedVersion => "has no version in common",
            Refusal::DeadlinePassed => "too late",
            Refusal::Removed => "domain removed",
            Refusal::Forked => "knows another configuration of this index",
            Refusal::Fenced => "is about to drop the version",
            Refusal::RegisterFull => "knows as many servers as it can",
            Refusal::Restarting => "is restarting the object's counters",
            Refusal::Exhausted => "has no descriptor or memory left",
            Refusal::OldProgram => "registers no start of a program this old",
        })
    }
}
