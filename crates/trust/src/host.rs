//! The names under which callers reach a gateway, as its certificate has them: names of DNS and addresses.
//!
//! A certificate for them names no server (`crate::certificate::ServerIdentity`), so that no server takes its holder for one.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// Names of one certificate, at most.
pub const MAX_HOSTS: usize = 16;
/// Bytes of a name of DNS, at most.
const NAME_BYTES: usize = 253;
/// Bytes of a part of it between two dots, at most.
const LABEL_BYTES: usize = 63;

/// A name of DNS in small letters, of which the first part may be `*`, or an address.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Host {
    /// A name of DNS.
    Name(String),
    /// An IP address.
    Address(IpAddr),
}

/// Names that no certificate can have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HostError {
    /// It is neither a name nor an address.
    #[error("'{}' is no name of a host: use a name of DNS, `*.` and a name of DNS, or an address without a port", .text.escape_debug())]
    Malformed { text: String },
    /// Too many, or none.
    #[error("a certificate has 1 to {MAX_HOSTS} names, and not {count}")]
    Count { count: usize },
}

impl FromStr for Host {
    type Err = HostError;

    fn from_str(text: &str) -> Result<Host, HostError> {
        if let Ok(address) = text.parse() {
            return Ok(Host::Address(address));
        }
        let name = text.to_ascii_lowercase();
        match is_name(&name) {
            true => Ok(Host::Name(name)),
            false => Err(HostError::Malformed {
                text: text.to_owned(),
            }),
        }
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Host::Name(name) => f.write_str(name),
            Host::Address(address) => address.fmt(f),
        }
    }
}

/// True of a name of DNS in small letters. The last part is no number, or it would be an address that is written in another way.
fn is_name(name: &str) -> bool {
    let plain = name.strip_prefix("*.");
    let labels: Vec<&str> = plain.unwrap_or(name).split('.').collect();
    let is_label = |label: &&str| {
        let bytes = label.as_bytes();
        let ends = [bytes.first(), bytes.last()];
        bytes.len() <= LABEL_BYTES
            && ends
                .iter()
                .all(|end| end.is_some_and(u8::is_ascii_alphanumeric))
            && bytes
                .iter()
                .all(|byte| byte.is_ascii_alphanumeric() || *byte == b'-')
    };
    let last = labels.last().copied().unwrap_or_default();
    name.len() <= NAME_BYTES
        && (plain.is_none() || labels.len() >= 2)
        && labels.iter().all(is_label)
        && !last.bytes().all(|byte| byte.is_ascii_digit())
}

/// The names of one certificate: 1 to [`MAX_HOSTS`], each once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hosts(Vec<Host>);

impl Hosts {
    /// These names, without repetitions.
    ///
    /// # Errors
    /// [`HostError::Count`].
    pub fn new(mut hosts: Vec<Host>) -> Result<Hosts, HostError> {
        hosts.sort();
        hosts.dedup();
        match hosts.len() {
            1..=MAX_HOSTS => Ok(Hosts(hosts)),
            count => Err(HostError::Count { count }),
        }
    }

    /// All of them, in order.
    pub fn all(&self) -> &[Host] {
        &self.0
    }
}

impl fmt::Display for Hosts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<String> = self.0.iter().map(Host::to_string).collect();
        f.write_str(&names.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_addresses_are_told_from_everything_else() {
        for good in [
            "a",
            "gate.example",
            "*.s3.example",
            "10.0.0.1",
            "::1",
            "xn--4ca.de",
        ] {
            let host: Host = good.parse().unwrap();
            assert_eq!(host.to_string(), good);
        }
        let capitals: Host = "Gate.Example".parse().unwrap();
        assert_eq!(capitals, Host::Name("gate.example".into()));
        let long = format!("{}.example", "a".repeat(64));
        for wrong in [
            "",
            ".",
            "a..b",
            "a.",
            "-a",
            "a-.b",
            "a_b",
            "*",
            "*.com",
            "a.*.b",
            "host:7480",
            "http://a",
            "areo://00/server/00",
            "1.2.3",
            "300.1.1.1",
            "\u{e4}.de",
            &long,
        ] {
            let refused = wrong.parse::<Host>();
            assert!(
                matches!(refused, Err(HostError::Malformed { .. })),
                "{wrong}"
            );
        }
    }

    #[test]
    fn a_certificate_has_each_name_once_and_few_of_them() {
        let host = |number: usize| format!("h{number}").parse::<Host>().unwrap();
        let hosts = Hosts::new(vec![host(2), host(1), host(2)]).unwrap();
        assert_eq!(hosts.all(), [host(1), host(2)]);
        assert_eq!(hosts.to_string(), "h1, h2");
        for count in [0, MAX_HOSTS + 1] {
            let refused = Hosts::new((0..count).map(host).collect());
            assert_eq!(refused, Err(HostError::Count { count }));
        }
    }
}
