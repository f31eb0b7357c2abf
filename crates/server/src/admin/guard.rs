//! The callers that may see more at the admin port of a cluster with keys than whether the server is well.
//!
//! | path | needs |
//! |---|---|
//! | `/health/...` | nothing |
//! | `/traces/...` | `trace` |
//! | `/metrics`, and each other one | `status` |
//!
//! A caller shows its access key as a bearer token, or is a process of the server's own user, or of root, on this machine: the system knows
//! which user a connection over loopback is of. What is sent on this port is not encrypted, so that a key is taken on loopback alone.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::rc::Rc;

use areo_trust::grant::{Need, Verb};
use areo_trust::key::AccessKey;
use areo_trust::registry::{BearerError, Registry};

/// The user that may do everything.
const ROOT: u32 = 0;
/// The user as which the system shows those that this process cannot know.
const OVERFLOW: u32 = 65534;
/// The state of an open connection in the system's table.
const ESTABLISHED: &str = "01";

/// Judges the callers of the admin port.
pub(crate) struct Guard {
    registry: Rc<Registry>,
    /// The user of this process.
    own_user: u32,
}

/// A connection to the admin port.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ends {
    /// The address at which the server was called.
    pub(crate) own: SocketAddr,
    /// The address of the caller.
    pub(crate) caller: SocketAddr,
}

/// A caller that does not see what it asked for. The sentence says what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NotShown {
    /// The caller is another machine.
    #[error(
        "health alone is shown to other machines here, where nothing is encrypted: ask on the machine of the server, over loopback"
    )]
    Elsewhere,
    /// The caller is another user, and shows no key.
    #[error(
        "this needs an access key with the grant '{}': show it as a bearer token (`Authorization: Bearer KEY`), or ask as the user of the \
         server", .verb.word()
    )]
    NoKey {
        /// The grant.
        verb: Verb,
    },
    /// It is no key.
    #[error("the bearer token is no access key: {reason}")]
    Unreadable {
        /// The reason.
        reason: String,
    },
    /// The key does not open it.
    #[error(transparent)]
    Key(#[from] BearerError),
}

/// The verb that a path needs.
fn verb_of(path: &str) -> Option<Verb> {
    match path {
        _ if path.starts_with("/health/") => None,
        _ if path.starts_with("/traces/") => Some(Verb::Trace),
        _ => Some(Verb::Status),
    }
}

impl Guard {
    pub(crate) fn new(registry: Rc<Registry>) -> Guard {
        Guard {
            registry,
            own_user: rustix::process::geteuid().as_raw(),
        }
    }

    /// Judges a request.
    pub(crate) fn judge(
        &self,
        path: &str,
        authorization: Option<&str>,
        ends: Ends,
    ) -> Result<(), NotShown> {
        let Some(verb) = verb_of(path) else {
            return Ok(());
        };
        if !ends.caller.ip().to_canonical().is_loopback() {
            return Err(NotShown::Elsewhere);
        }
        let shown = authorization.and_then(|shown| shown.strip_prefix("Bearer "));
        if let Some(shown) = shown {
            let key = AccessKey::parse(shown).map_err(|error| NotShown::Unreadable {
                reason: error.to_string(),
            })?;
            return Ok(self.registry.judge_bearer(&key, &Need::cluster(verb))?);
        }
        let is_own = |user| user == ROOT || (user == self.own_user && user != OVERFLOW);
        match user_of(ends).is_some_and(is_own) {
            true => Ok(()),
            false => Err(NotShown::NoKey { verb }),
        }
    }
}

/// The user of the caller's end of a connection over loopback, as the system has it; `None`: it does not say.
fn user_of(ends: Ends) -> Option<u32> {
    ["/proc/net/tcp", "/proc/net/tcp6"]
        .into_iter()
        .filter_map(|table| fs::read_to_string(table).ok())
        .find_map(|table| table.lines().skip(1).find_map(|line| user_in(line, ends)))
}

/// The user in a line of the system's table of connections, if it is of that end.
fn user_in(line: &str, ends: Ends) -> Option<u32> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let [_, local, remote, state, _, _, _, user, _, inode, ..] = fields[..] else {
        return None;
    };
    // An end that is closed already has no user, and is shown as one of root.
    if state != ESTABLISHED || inode == "0" {
        return None;
    }
    let canonical = |end: SocketAddr| (end.ip().to_canonical(), end.port());
    let is_it =
        address(local)? == canonical(ends.caller) && address(remote)? == canonical(ends.own);
    user.parse().ok().filter(|_| is_it)
}

/// An address as the system writes it: hexadecimal, in words of 32 bits in the order of this machine.
fn address(text: &str) -> Option<(IpAddr, u16)> {
    let (ip, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let words = ip.as_bytes().chunks(8).map(|word| {
        let word = std::str::from_utf8(word).ok()?;
        Some(u32::from_str_radix(word, 16).ok()?.to_ne_bytes())
    });
    let bytes: Vec<u8> = words.collect::<Option<Vec<_>>>()?.concat();
    let ip = match <[u8; 4]>::try_from(&bytes[..]) {
        Ok(bytes) => IpAddr::V4(Ipv4Addr::from(bytes)),
        Err(_) => IpAddr::V6(Ipv6Addr::from(<[u8; 16]>::try_from(&bytes[..]).ok()?)),
    };
    Some((ip.to_canonical(), port))
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use areo_trust::secret::{SECRET_BYTES, Secret};

    use super::*;

    fn guard(own_user: u32) -> Guard {
        let registry = Registry::new(7, Secret::new(vec![1; SECRET_BYTES]));
        Guard {
            registry: Rc::new(registry),
            own_user,
        }
    }

    #[test]
    fn each_path_but_health_needs_a_grant() {
        assert_eq!(verb_of("/health/ready"), None);
        assert_eq!(verb_of("/metrics"), Some(Verb::Status));
        assert_eq!(verb_of("/traces/last/3"), Some(Verb::Trace));
        for other in ["/", "/healthy", "/health", "/debug", "", "//health/live"] {
            assert_eq!(verb_of(other), Some(Verb::Status), "{other}");
        }
    }

    /// A connection over loopback to this process, of this process.
    #[test]
    fn the_user_of_a_connection_is_known_to_the_system() {
        for host in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = TcpListener::bind(host) else {
                continue;
            };
            let own = listener.local_addr().unwrap();
            let caller = TcpStream::connect(own).unwrap();
            let ends = Ends {
                own,
                caller: caller.local_addr().unwrap(),
            };
            let user = rustix::process::geteuid().as_raw();
            assert_eq!(user_of(ends), Some(user), "{host}");
            assert_eq!(guard(user).judge("/metrics", None, ends), Ok(()));
            let swapped = Ends {
                own: ends.caller,
                caller: SocketAddr::from(([127, 0, 0, 1], 1)),
            };
            assert_eq!(user_of(swapped), None);
            let refused = guard(user).judge("/metrics", None, swapped);
            let verb = Verb::Status;
            assert_eq!(refused, Err(NotShown::NoKey { verb }));
            assert_eq!(guard(user).judge("/health/live", None, swapped), Ok(()));
        }
    }

    #[test]
    fn the_table_of_the_system_is_read_as_it_is_written() {
        let line = "   1: 0100007F:A1B2 0100007F:1D42 01 00000000:00000000 00:00000000 00000000  1000        0 123 1 0 20 4 30 10 -1";
        let ends = Ends {
            own: "127.0.0.1:7490".parse().unwrap(),
            caller: "127.0.0.1:41394".parse().unwrap(),
        };
        if cfg!(target_endian = "little") {
            assert_eq!(user_in(line, ends), Some(1000));
        }
        for (open, closed) in [(" 01 ", " 06 "), (" 123 ", " 0 ")] {
            assert_eq!(user_in(&line.replacen(open, closed, 1), ends), None);
        }
        for line in ["", "x", "1: 0100007F:A1B2", "1: g:1 0:1 1 1 1 1 1 1"] {
            assert_eq!(user_in(line, ends), None, "{line}");
        }
    }

    #[test]
    fn other_machines_see_health_alone() {
        let ends = Ends {
            own: "10.0.0.1:7490".parse().unwrap(),
            caller: "10.0.0.2:4000".parse().unwrap(),
        };
        let key = format!("Bearer areokey1.0000000000000007.{}", "5".repeat(64));
        for shown in [None, Some(&*key)] {
            let refused = guard(1).judge("/metrics", shown, ends);
            assert_eq!(refused, Err(NotShown::Elsewhere));
        }
        assert_eq!(guard(1).judge("/health/cluster", None, ends), Ok(()));
    }

    #[test]
    fn a_bearer_token_has_to_be_a_key_that_counts() {
        let ends = Ends {
            own: "127.0.0.1:7490".parse().unwrap(),
            caller: "127.0.0.1:1".parse().unwrap(),
        };
        let judge = |shown: &str| guard(1).judge("/metrics", Some(shown), ends);
        let unreadable = judge("Bearer nothing").unwrap_err();
        assert!(matches!(unreadable, NotShown::Unreadable { .. }));
        let key = format!("Bearer areokey1.0000000000000007.{}", "5".repeat(64));
        assert_eq!(judge(&key), Err(BearerError::NotRead.into()));
        let verb = Verb::Status;
        assert_eq!(judge("Basic eA=="), Err(NotShown::NoKey { verb }));
    }
}
