//! The callers that may see more at the admin port of a cluster with keys than whether the server is well.
//!
//! | path | needs |
//! |---|---|
//! | `/health/...` | nothing |
//! | `/traces/...` | `trace` |
//! | `/metrics`, and each other one | `status` |
//!
//! A caller shows its access key as a bearer token, or is a process of the server's own user, or of root, on this machine: the system knows
//! which user a connection over loopback is of ([`Users`]). What is sent on this port is not encrypted, so that a key is taken on loopback alone.

use std::net::SocketAddr;
use std::rc::Rc;

use areo_trust::grant::{Need, Verb};
use areo_trust::key::AccessKey;
use areo_trust::registry::{BearerError, Registry};
use tokio::sync::OnceCell;

use super::users::Users;

/// The user that may do everything.
const ROOT: u32 = 0;
/// The user as which the system shows those that this process cannot know.
const OVERFLOW: u32 = 65534;
/// Judges the callers of the admin port.
pub(crate) struct Guard {
    registry: Rc<Registry>,
    users: Users,
    /// The user of this process.
    own_user: u32,
}

/// A caller of the admin port.
pub(crate) struct Visit {
    ends: Ends,
    /// Its user, once that was asked for: a connection stays with the user that made it.
    user: OnceCell<Option<u32>>,
}

impl Visit {
    pub(crate) fn new(ends: Ends) -> Visit {
        let user = OnceCell::new();
        Visit { ends, user }
    }
}

/// A connection to the admin port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Ends {
    /// The address at which the server was called.
    pub(crate) own: SocketAddr,
    /// The address of the caller.
    pub(crate) caller: SocketAddr,
}

/// A request that is refused on the admin port. The sentence contains the remedy.
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
        /// The grant that the request needs.
        verb: Verb,
    },
    /// It is no key.
    #[error("the bearer token is no access key: {reason}")]
    Unreadable { reason: String },
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
            users: Users::new(),
            own_user: rustix::process::geteuid().as_raw(),
        }
    }

    /// Judges whether the caller may see this path.
    pub(crate) async fn judge(
        &self,
        path: &str,
        authorization: Option<&str>,
        visit: &Visit,
    ) -> Result<(), NotShown> {
        let Some(verb) = verb_of(path) else {
            return Ok(());
        };
        if !visit.ends.caller.ip().to_canonical().is_loopback() {
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
        let user = visit.user.get_or_init(|| self.users.user_of(visit.ends));
        match user.await.is_some_and(is_own) {
            true => Ok(()),
            false => Err(NotShown::NoKey { verb }),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};
    use std::sync::atomic::{AtomicUsize, Ordering};

    use areo_trust::secret::{SECRET_BYTES, Secret};

    use super::*;

    fn guard(own_user: u32) -> Guard {
        let registry = Registry::new(7, Secret::new(vec![1; SECRET_BYTES]));
        Guard {
            registry: Rc::new(registry),
            users: Users::new(),
            own_user,
        }
    }

    async fn judge(
        own_user: u32,
        path: &str,
        shown: Option<&str>,
        ends: Ends,
    ) -> Result<(), NotShown> {
        let visit = Visit::new(ends);
        guard(own_user).judge(path, shown, &visit).await
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
    #[tokio::test]
    async fn the_user_of_a_connection_is_known_to_the_system() {
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
            assert_eq!(Users::new().user_of(ends).await, Some(user), "{host}");
            assert_eq!(judge(user, "/metrics", None, ends).await, Ok(()));
            let swapped = Ends {
                own: ends.caller,
                caller: SocketAddr::from(([127, 0, 0, 1], 1)),
            };
            assert_eq!(Users::new().user_of(swapped).await, None);
            let refused = judge(user, "/metrics", None, swapped).await;
            let verb = Verb::Status;
            assert_eq!(refused, Err(NotShown::NoKey { verb }));
            let health = judge(user, "/health/live", None, swapped).await;
            assert_eq!(health, Ok(()));
        }
    }

    #[tokio::test]
    async fn the_system_is_asked_once_for_a_connection() {
        static READINGS: AtomicUsize = AtomicUsize::new(0);
        let read = || {
            READINGS.fetch_add(1, Ordering::Relaxed);
            String::new()
        };
        let guard = Guard {
            users: Users::read_by(read),
            ..guard(1)
        };
        let visit = Visit::new(Ends {
            own: "127.0.0.1:7490".parse().unwrap(),
            caller: "127.0.0.1:1".parse().unwrap(),
        });
        for _ in 0..3 {
            let verb = Verb::Status;
            let judged = guard.judge("/metrics", None, &visit).await;
            assert_eq!(judged, Err(NotShown::NoKey { verb }));
        }
        assert_eq!(READINGS.load(Ordering::Relaxed), 1);
    }

    #[tokio::test]
    async fn other_machines_see_health_alone() {
        let ends = Ends {
            own: "10.0.0.1:7490".parse().unwrap(),
            caller: "10.0.0.2:4000".parse().unwrap(),
        };
        let key = format!("Bearer areokey1.0000000000000007.{}", "5".repeat(64));
        for shown in [None, Some(&*key)] {
            let refused = judge(1, "/metrics", shown, ends).await;
            assert_eq!(refused, Err(NotShown::Elsewhere));
        }
        let health = judge(1, "/health/cluster", None, ends).await;
        assert_eq!(health, Ok(()));
    }

    #[tokio::test]
    async fn a_bearer_token_has_to_be_a_key_that_counts() {
        let ends = Ends {
            own: "127.0.0.1:7490".parse().unwrap(),
            caller: "127.0.0.1:1".parse().unwrap(),
        };
        let judge = async |shown: &str| judge(1, "/metrics", Some(shown), ends).await;
        let unreadable = judge("Bearer nothing").await.unwrap_err();
        assert!(matches!(unreadable, NotShown::Unreadable { .. }));
        let key = format!("Bearer areokey1.0000000000000007.{}", "5".repeat(64));
        assert_eq!(judge(&key).await, Err(BearerError::NotRead.into()));
        let verb = Verb::Status;
        assert_eq!(judge("Basic eA==").await, Err(NotShown::NoKey { verb }));
    }
}
