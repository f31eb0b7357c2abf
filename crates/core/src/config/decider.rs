//! Who decides which configuration comes next.

use crate::limits;
use std::fmt;
use std::str::FromStr;

/// Who decides which configuration comes after one; the one itself says so (`[X-16 decider-in-descriptor]`).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Decider {
    /// Its members, by Paxos: the consensus of Ares.
    #[default]
    Members,
    /// A service outside, as in Ares II: etcd.
    Etcd {
        /// Where its members listen for clients, each as `HOST:PORT`.
        endpoints: Vec<String>,
    },
    /// Its members, in a domain whose configurations are a lattice: by lattice agreement, as in SM. Changes that are made at
    /// the same time are merged.
    Agreement,
    /// The same by a speculating snapshot, as in SpSn-Store.
    Speculation,
}

impl Decider {
    /// Whether changes that are made at the same time are merged: in a lattice, and without consensus.
    pub fn merges(&self) -> bool {
        matches!(self, Decider::Agreement | Decider::Speculation)
    }
}

const MEMBERS: &str = "members";
const AGREEMENT: &str = "lattice-agreement";
const SPECULATION: &str = "speculating-snapshot";
const ETCD: &str = "etcd=";

impl fmt::Display for Decider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Decider::Members => f.write_str(MEMBERS),
            Decider::Agreement => f.write_str(AGREEMENT),
            Decider::Speculation => f.write_str(SPECULATION),
            Decider::Etcd { endpoints } => write!(f, "{ETCD}{}", endpoints.join(",")),
        }
    }
}

/// A text that names nobody who decides.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InvalidDecider {
    /// The text.
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
            _ => {}
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deciders_are_words() {
        for text in [
            "members",
            "lattice-agreement",
            "speculating-snapshot",
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
            &long,
        ] {
            let told = wrong.parse::<Decider>().unwrap_err().to_string();
            assert!(told.contains("etcd=HOST:PORT"), "{told}");
        }
    }
}
