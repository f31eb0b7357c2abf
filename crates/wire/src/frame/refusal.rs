//! Why a server, or this side's own queue, would not do what was asked: a closed list.

use std::fmt;

/// Why a request was refused.
///
/// The list is closed: a code that this version does not know is a malformed frame, and a new code needs a
/// feature bit in the hello. A refusal is an answer that counts in no quorum; it never says that the
/// request had no effect, because an earlier attempt of the same request may have had one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u16)]
pub enum Refusal {
    /// The server has more work than it takes on; ask again later.
    Busy = 1,
    /// The disk, or the share of it that this request may use, is full.
    Full = 2,
    /// What was asked for, or the payload that arrived, does not match its checksum. The server abstains.
    Damaged = 3,
    /// The server is going down and takes no new requests.
    Draining = 4,
    /// The server belongs to another cluster.
    WrongCluster = 5,
    /// Another server answers at this address.
    WrongServer = 6,
    /// The caller has not proven that it may do this.
    Unauthorised = 7,
    /// The server does not know the configuration and was given no descriptor of it.
    UnknownConfiguration = 8,
    /// The request, or what it would store, is over a limit of this server.
    TooLarge = 9,
    /// The frame was intact, its body made no sense.
    Malformed = 10,
    /// A kind of request that this server does not know.
    UnknownRequest = 11,
    /// The deadline of the request passed before the server came to it.
    DeadlinePassed = 12,
    /// The server is still opening its data.
    Starting = 13,
    /// The server's incarnation is behind one that it is known to have had: its data is an old copy.
    RolledBack = 14,
    /// The two sides have no version, or no must-understand feature set, in common.
    UnsupportedVersion = 15,
    /// The domain was removed.
    Removed = 16,
    /// The server knows another configuration of the index that was named.
    Forked = 17,
    /// The object has a fence above this version: it is decided by consensus whether it is kept.
    Fenced = 18,
}

impl Refusal {
    /// Every code, in the order of its number.
    pub const ALL: [Refusal; 18] = [
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
}

impl fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Refusal::Busy => "busy",
            Refusal::Full => "full",
            Refusal::Damaged => "damaged",
            Refusal::Draining => "draining",
            Refusal::WrongCluster => "of another cluster",
            Refusal::WrongServer => "another server at this address",
            Refusal::Unauthorised => "unauthorised",
            Refusal::UnknownConfiguration => "unknown configuration",
            Refusal::TooLarge => "too large",
            Refusal::Malformed => "malformed request",
            Refusal::UnknownRequest => "unknown request",
            Refusal::DeadlinePassed => "deadline passed",
            Refusal::Starting => "starting",
            Refusal::RolledBack => "data directory is an old copy",
            Refusal::UnsupportedVersion => "unsupported version",
            Refusal::Removed => "domain removed",
            Refusal::Forked => "forked configuration",
            Refusal::Fenced => "fenced",
        })
    }
}
