//! The deciders of successors of a configuration.

use crate::limits;
use crate::tag::{ClientId, Writer};
use std::fmt;
use std::str::FromStr;

/// The component that decides the successor of a configuration. A descriptor names the decider of its own successor
/// (`[X-16 decider-in-descriptor]`).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Decider {
    /// Its members, by Paxos: the consensus of Ares.
    #[default]
    Members,
    /// A service outside, as in Ares II: etcd.
    Etcd {
        /// Client addresses of its members, each as `HOST:PORT`.
        endpoints: Vec<String>,
    },
    /// Its members, in a domain whose configurations are a lattice: by lattice agreement, as in SM. Changes that are made at
    /// the same time are merged.
    Agreement,
    /// Its members, in a lattice, by a speculating snapshot, as in SpSn-Store.
    Speculation,
    /// Its members, in a lattice, by a weak snapshot, as in DynaStore. Of changes that are made at the same time each may become a
    /// successor, beside the others.
    Snapshot,
    /// A leader, with the members' consent by Paxos, as in L-Rambo; in a lattice. Changes that are made at the same time are merged where
    /// they meet.
    Leader {
        /// The proposer of this configuration. It alone may propose a successor at ballot 0 (`[R-11 owned-ballot]`).
        /// In the first configuration this is the initial writer: no proposer may use ballot 0 there.
        owner: Writer,
    },
}

impl Decider {
    /// True if changes that are made at the same time are merged: in a lattice, and without consensus.
    pub fn merges(&self) -> bool {
        matches!(self, Decider::Agreement | Decider::Speculation)
    }

    /// True if there may be successors of which none precedes the other ([`crate::pointer::Fork`]).
    pub fn branches(&self) -> bool {
        *self == Decider::Snapshot
    }

    /// The writer that may propose a successor at ballot 0. The initial writer stands for no writer. `None`: no
    /// leader decides.
    pub fn owner(&self) -> Option<Writer> {
        match self {
            Decider::Leader { owner } => Some(*owner),
            _ => None,
        }
    }
}

const MEMBERS: &str = "members";
const AGREEMENT: &str = "lattice-agreement";
const SPECULATION: &str = "speculating-snapshot";
const SNAPSHOT: &str = "weak-snapshot";
const LEADER: &str = "leader";
const ETCD: &str = "etcd=";

impl fmt::Display for Decider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Decider::Members => f.write_str(MEMBERS),
            Decider::Agreement => f.write_str(AGREEMENT),
            Decider::Speculation => f.write_str(SPECULATION),
            Decider::Snapshot => f.write_str(SNAPSHOT),
            Decider::Leader { owner } if *owner == Writer::default() => f.write_str(LEADER),
            Decider::Leader { owner } => {
                write!(f, "{LEADER}={:?}.{}", owner.client, owner.counter)
            }
            Decider::Etcd { endpoints } => write!(f, "{ETCD}{}", endpoints.join(",")),
        }
    }
}

/// A text that names nobody who decides.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InvalidDecider {
    pub text: String,
}

impl fmt::Display for InvalidDecider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "'{}' does not decide: say members, or {ETCD}HOST:PORT, with commas between several members of etcd, and at most {} bytes",
            self.text,
            limits::DECIDER_BYTES
        )
    }
}

impl std::error::Error for InvalidDecider {}

impl FromStr for Decider {
    type Err = InvalidDecider;

    fn from_str(text: &str) -> Result<Decider, InvalidDecider> {
        match text {
            MEMBERS => return Ok(Decider::Members),
            AGREEMENT => return Ok(Decider::Agreement),
            SPECULATION => return Ok(Decider::Speculation),
            SNAPSHOT => return Ok(Decider::Snapshot),
            _ => {}
        }
        if let Some(owner) = text.strip_prefix(LEADER) {
            let decider = owner_of(owner).map(|owner| Decider::Leader { owner });
            // Of one decider there is one text.
            let decider = decider.filter(|decider| decider.to_string() == text);
            return decider.ok_or_else(|| InvalidDecider { text: text.into() });
        }
        let listed = text.strip_prefix(ETCD).unwrap_or_default();
        let endpoints: Vec<String> = listed.split(',').map(ToOwned::to_owned).collect();
        let is_sound = |endpoint: &String| {
            let plain = endpoint
                .bytes()
                .all(|byte| byte.is_ascii_graphic() && byte != b'/');
            let port = endpoint
                .rsplit_once(':')
                .filter(|(host, _)| !host.is_empty());
            plain && port.is_some_and(|(_, port)| port.parse::<u16>().is_ok())
        };
        match text.len() <= limits::DECIDER_BYTES && endpoints.iter().all(is_sound) {
            true => Ok(Decider::Etcd { endpoints }),
            false => Err(InvalidDecider { text: text.into() }),
        }
    }
}

/// The writer that is named behind the word.
fn owner_of(text: &str) -> Option<Writer> {
    if text.is_empty() {
        return Some(Writer::default());
    }
    let (client, counter) = text.strip_prefix('=')?.split_once('.')?;
    let client = ClientId(u64::from_str_radix(client, 16).ok()?);
    let counter = counter.parse().ok()?;
    Some(Writer { client, counter })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deciders_are_words() {
        for text in [
            "members",
            "lattice-agreement",
            "speculating-snapshot",
            "weak-snapshot",
            "leader",
            "leader=00000000000000ab.7",
            "leader=ffffffffffffffff.18446744073709551615",
            "etcd=127.0.0.1:2379",
            "etcd=a:1,[::1]:2,c.example:3",
        ] {
            assert_eq!(text.parse::<Decider>().unwrap().to_string(), text);
        }
        let long = format!("etcd={}:1", "a".repeat(limits::DECIDER_BYTES));
        for wrong in [
            "",
            "etcd",
            "etcd=",
            "etcd=a",
            "etcd=a:b",
            "etcd=:1",
            "etcd=a:1,",
            "etcd=http://a:1",
            "raft=a:1",
            "leader=",
            "leader=0000000000000000.0",
            "leader=ab.7",
            "leader=00000000000000AB.7",
            "leader=00000000000000ab.+7",
            "leaders",
            &long,
        ] {
            let told = wrong.parse::<Decider>().unwrap_err().to_string();
            assert!(told.contains("etcd=HOST:PORT"), "{told}");
        }
    }
}
