//! The address at which others find the server: checked before it starts, and as long as it runs.

use std::convert::Infallible;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, ToSocketAddrs};
use std::time::Duration;

use areo_core::config::ServerId;
use areo_net::Tls;
use areo_net::network::{BootstrapError, Network};
use areo_wire::hello::Role;

use crate::error::ServeError;
use crate::identity::{self, Identity};
use crate::run::Options;

const NO_ADDRESS: &str = "those are written HOST:PORT";
const ANY_PORT: &str = "with port 0 the system chooses another port at each start; choose one";
/// The address of the own name of a machine, in `/etc/hosts` of some systems.
const OWN_NAME: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 1, 1));
/// The longest time that the server waits for its own answer.
const PATIENCE: Duration = Duration::from_secs(2);
/// The pause after the address did not lead to the server.
const SOON: Duration = Duration::from_secs(5);
/// The pause after it did.
const PAUSE: Duration = Duration::from_mins(1);

/// The address that others get.
pub(crate) fn advertised(options: &Options) -> &str {
    options.advertise.as_ref().unwrap_or(&options.listen)
}

/// The address of the admin port that others get: where it listens at all addresses of a machine, at the host of the advertised one.
#[must_use]
pub fn advertised_admin(address: &str, admin: &str) -> String {
    let parts = (address.rsplit_once(':'), admin.rsplit_once(':'));
    match parts {
        (Some((host, _)), Some((_, port))) if is_everywhere(&resolved(admin)) => {
            format!("{host}:{port}")
        }
        _ => admin.to_owned(),
    }
}

/// Refuses what cannot be the address of a server: others keep it, and look for the server there.
pub(crate) fn check(listen: SocketAddr, options: &Options) -> Result<(), ServeError> {
    let listen = listen.ip().to_canonical();
    if options.advertise.is_none() && listen.is_unspecified() {
        let address = options.listen.clone();
        return Err(ServeError::NotAnAddress { address });
    }
    let not_advertised = |address: &str, reason| {
        let address = address.to_owned();
        Err(ServeError::NotAdvertised { address, reason })
    };
    let address = advertised(options);
    if let Some(reason) = fault(address, !listen.is_loopback()) {
        return not_advertised(address, reason);
    }
    let admin = options.admin.rsplit_once(':');
    match admin.map(|(_, port)| port.parse::<u16>()) {
        Some(Ok(0)) => not_advertised(&options.admin, ANY_PORT),
        _ => Ok(()),
    }
}

/// The fault of an address that is to be advertised to others, if it has one; the server is to be reached from other machines if `is_wide`.
/// A name need not resolve yet.
fn fault(address: &str, is_wide: bool) -> Option<&'static str> {
    let Some((host, port)) = address.rsplit_once(':') else {
        return Some(NO_ADDRESS);
    };
    match port.parse::<u16>() {
        Err(_) => return Some(NO_ADDRESS),
        Ok(0) => return Some(ANY_PORT),
        Ok(_) => {}
    }
    if host.is_empty() {
        return Some("the host is missing");
    }
    if host.contains(|c: char| c == '/' || c.is_whitespace()) {
        return Some("a host is a name or an IP address, without '/' and spaces");
    }
    let found = resolved(address);
    if is_everywhere(&found) {
        return Some("it is every address of a machine; name one");
    }
    // Some systems have the name of the machine itself at this address, and others find it elsewhere.
    let is_name = host.contains(|c: char| c.is_alphabetic()) && !host.contains(':');
    let is_own_name = is_name && found == [OWN_NAME];
    let is_here = !found.is_empty() && found.iter().all(IpAddr::is_loopback);
    (is_wide && is_here && !is_own_name)
        .then_some("only this machine finds it there, and it listens for others; name the address at which they reach it")
}

/// The addresses of a host; none if its name does not resolve.
fn resolved(address: &str) -> Vec<IpAddr> {
    let found = address.to_socket_addrs();
    let found = found.into_iter().flatten();
    found.map(|it| it.ip().to_canonical()).collect()
}

fn is_everywhere(found: &[IpAddr]) -> bool {
    found.iter().any(IpAddr::is_unspecified)
}

/// Says again and again that the address does not lead to the server, for as long as it does not. Never returns.
pub(crate) async fn watch(identity: &Identity, address: &str, tls: Option<&Tls>) -> Infallible {
    let network = Network::with_tls(Role::Client, identity::random(), tls.cloned());
    loop {
        let answer = network.bootstrap(address, None, PATIENCE).await;
        let found = answer.map(|found| found.server);
        let pause = match lost(found, identity.server) {
            None => PAUSE,
            Some(why) => {
                tracing::warn!(
                    "this server advertises {address}, and {why}: others cannot find it; say at which address they can (--advertise HOST:PORT)"
                );
                SOON
            }
        };
        tokio::time::sleep(pause).await;
    }
}

/// Why the address does not lead to the server.
fn lost(found: Result<ServerId, BootstrapError>, own: ServerId) -> Option<String> {
    match found {
        Ok(server) if server == own => None,
        Ok(_) => Some("another server answers there".into()),
        // A server that takes no more connections is where it should be.
        Err(BootstrapError::Refused { .. }) => None,
        Err(error) => Some(format!("cannot reach itself there ({error})")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_that_others_cannot_use_are_refused() {
        for good in [
            "127.0.0.1:7400",
            "host.invalid:1",
            "[::1]:7400",
            "10.0.0.1:65535",
        ] {
            assert_eq!(fault(good, false), None, "{good}");
        }
        for wrong in [
            "0.0.0.0:7400",
            "[::]:7400",
            ":::7400",
            "[::ffff:0.0.0.0]:7400",
            "0:7400",
            "0x0:7400",
            "host",
            "host:0",
            "host:x",
            ":7400",
            "host:65536",
            "http://host:1",
            "a b:1",
        ] {
            assert!(fault(wrong, false).is_some(), "{wrong}");
        }
    }

    #[test]
    fn a_server_for_other_machines_is_not_advertised_for_its_own_alone() {
        let here = [
            "127.0.0.1:1",
            "127.1:1",
            "localhost:1",
            "[::1]:1",
            "[::ffff:127.0.0.1]:1",
        ];
        for here in here {
            assert!(fault(here, true).is_some(), "{here}");
            assert_eq!(fault(here, false), None, "{here}");
        }
        assert_eq!(fault("10.0.0.1:1", true), None);
        assert_eq!(
            fault("host.invalid:1", true),
            None,
            "it need not resolve yet"
        );
    }

    #[test]
    fn an_admin_port_at_all_addresses_is_registered_at_one() {
        let admin = |admin| advertised_admin("host:7400", admin);
        for everywhere in ["0.0.0.0:7490", "[::]:7490", "0:7490"] {
            assert_eq!(admin(everywhere), "host:7490");
        }
        assert_eq!(admin("127.0.0.1:7490"), "127.0.0.1:7490");
    }

    #[test]
    fn an_address_that_leads_elsewhere_is_noticed() {
        let own = ServerId(1);
        assert_eq!(lost(Ok(own), own), None);
        assert!(lost(Ok(ServerId(2)), own).is_some());
        assert!(lost(Err(BootstrapError::TimedOut), own).is_some());
    }
}
