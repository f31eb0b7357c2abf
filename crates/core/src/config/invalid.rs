//! Why a configuration cannot be.

use super::{Dap, ServerId};
use crate::limits;
use crate::tlv::TlvError;
use std::fmt;

/// A descriptor that is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InvalidConfiguration {
    /// No members, or more than [`limits::MEMBERS`].
    MemberCount { members: usize },
    /// A member is listed twice.
    MemberTwice { member: ServerId },
    /// `k` is 0 or larger than the number of members.
    DataFragments {
        /// The `k` asked for.
        k: u8,
        /// The number of members.
        members: usize,
    },
    /// The index is not below [`limits::INDEX`]: the domain has had all the configurations that it can have.
    Index,
    /// The era is not below [`limits::ERAS`]: the domain has ceased to be conditional as often as it can.
    Eras,
    /// It does not follow in its domain, which would have ceased to be conditional another number of times.
    Era {
        /// The era in the descriptor.
        era: u32,
        /// The era that it must have.
        expected: u32,
    },
    /// Its index or its members are not those of its membership, or no lattice keeps objects so.
    Lattice,
    /// A domain was to become conditional, or to cease to be so, that cannot.
    Conditional { from: Dap, to: Dap },
    /// The bytes are no descriptor.
    Encoding(TlvError),
}

impl fmt::Display for InvalidConfiguration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            InvalidConfiguration::MemberCount { members } => {
                write!(
                    f,
                    "{members} members: a configuration has 1 to {}",
                    limits::MEMBERS
                )
            }
            InvalidConfiguration::MemberTwice { member } => {
                write!(f, "server {member} is listed twice")
            }
            InvalidConfiguration::DataFragments { k, members } => {
                write!(
                    f,
                    "k = {k} with {members} servers: k must be between 1 and the number of servers"
                )
            }
            InvalidConfiguration::Index => {
                write!(f, "no configuration has index {} or more", limits::INDEX)
            }
            InvalidConfiguration::Eras => {
                write!(
                    f,
                    "a domain ceases to be conditional at most {} times",
                    limits::ERAS
                )
            }
            InvalidConfiguration::Era { era, expected } => {
                write!(
                    f,
                    "era {era} does not follow here, where era {expected} does"
                )
            }
            InvalidConfiguration::Lattice => {
                f.write_str("the descriptor contradicts its place in the lattice of its domain")
            }
            InvalidConfiguration::Conditional { from, to } if to.is_conditional() => write!(
                f,
                "a domain of the kind {from} cannot become conditional, only abd and ec in a sequence can: create a conditional domain and copy the objects"
            ),
            InvalidConfiguration::Conditional { to, .. } => write!(
                f,
                "a conditional domain cannot become {to}, only abd and ec: create a domain of that kind and copy the objects"
            ),
            InvalidConfiguration::Encoding(error) => {
                write!(f, "the descriptor cannot be read: {error}")
            }
        }
    }
}

impl std::error::Error for InvalidConfiguration {}
