//! The identity of a server, and the check that a caller means it.

use areo_wire::frame::Refusal;
use areo_wire::hello::Hello;

/// The identity of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The cluster; 0 while the server does not know it.
    pub cluster: u128,
    /// The server's random id.
    pub server: u128,
    /// Number of its current start.
    pub incarnation: u64,
}

impl Identity {
    /// Judges a hello by what both sides know.
    ///
    /// # Errors
    /// No version in common, another cluster, another server, or this server's data is an old copy: the caller
    /// knows a higher incarnation.
    pub fn check(&self, hello: &Hello) -> Result<(), Refusal> {
        hello.agree()?;
        if hello.expected_server != 0 && hello.expected_server != self.server {
            return Err(Refusal::WrongServer);
        }
        if hello.cluster != 0 && hello.cluster != self.cluster {
            return Err(Refusal::WrongCluster);
        }
        if hello.expected_server != 0 && hello.known_incarnation > self.incarnation {
            return Err(Refusal::RolledBack);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use areo_wire::hello::{Channel, Role};

    use super::*;

    #[test]
    fn a_server_knows_when_a_caller_means_another_or_has_seen_more_of_it() {
        let identity = Identity {
            cluster: 1,
            server: 2,
            incarnation: 3,
        };
        let stranger = Hello::new(Role::Client, Channel::Calls, 9);
        let friend = Hello {
            cluster: 1,
            expected_server: 2,
            known_incarnation: 3,
            ..stranger.clone()
        };
        assert_eq!(identity.check(&stranger), Ok(()));
        assert_eq!(identity.check(&friend), Ok(()));
        for (hello, refusal) in [
            (
                Hello {
                    cluster: 5,
                    ..friend.clone()
                },
                Refusal::WrongCluster,
            ),
            (
                Hello {
                    expected_server: 5,
                    ..friend.clone()
                },
                Refusal::WrongServer,
            ),
            (
                Hello {
                    known_incarnation: 4,
                    ..friend.clone()
                },
                Refusal::RolledBack,
            ),
            (
                Hello {
                    version_low: 1,
                    version_high: 1,
                    ..friend.clone()
                },
                Refusal::UnsupportedVersion,
            ),
        ] {
            assert_eq!(identity.check(&hello), Err(refusal));
        }
        // An incarnation without a server says nothing about this one.
        assert_eq!(
            identity.check(&Hello {
                known_incarnation: 4,
                ..stranger
            }),
            Ok(())
        );
    }
}
