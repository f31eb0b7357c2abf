//! Where others find the server: checked before it starts, and as long as it runs.

use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use areo_core::config::ServerId;
use areo_net::Tls;
use areo_net::network::{BootstrapError, Network};
use areo_wire::hello::Role;

use crate::error::ServeError;
use crate::identity::{self, Identity};
use crate::run::Options;

/// The longest time that the server waits for its own answer.
const PATIENCE: Duration = Duration::from_secs(2);
/// The pause after the address did not lead to the server.
const SOON: Duration = Duration::from_secs(5);
/// The pause after it did.
const PAUSE: Duration = Duration::from_mins(1);

/// Refuses what cannot be the address of a server: others keep it, and look for the server there.
pub(crate) fn check(listen: SocketAddr, options: &Options) -> Result<(), ServeError> {
    if let Some(advertised) = &options.advertise {
        return match fault(advertised) {
            None => Ok(()),
            Some(reason) => Err(ServeError::NotAdvertised {
                address: advertised.clone(),
                reason,
            }),
        };
    }
    let address = options.listen.clone();
    if listen.ip().is_unspecified() {
        return Err(ServeError::NotAnAddress { address });
    }
    match fault(&address) {
        None => Ok(()),
        Some(reason) => Err(ServeError::NotAdvertised { address, reason }),
    }
}

/// The fault of an address that is to be advertised to others, if it has one. A name need not resolve yet.
fn fault(address: &str) -> Option<&'static str> {
    let Some((host, port)) = address.rsplit_once(':') else {
        return Some("those are written HOST:PORT");
    };
    let bare = host.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
    let ip = bare.unwrap_or(host).parse::<IpAddr>();
    match (ip, port.parse::<u16>()) {
        (_, Err(_)) => Some("those are written HOST:PORT"),
        (_, Ok(0)) => Some("with port 0 the system chooses another port at each start; choose one"),
        (Ok(ip), _) if ip.is_unspecified() => Some("it is every address of a machine; name one"),
        _ if host.is_empty() => Some("the host is missing"),
        _ => None,
    }
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
            "host:1",
            "s1.areo:7400",
            "[::1]:7400",
            "10.0.0.1:65535",
        ] {
            assert_eq!(fault(good), None, "{good}");
        }
        for wrong in [
            "0.0.0.0:7400",
            "[::]:7400",
            ":::7400",
            "host",
            "host:0",
            "host:x",
            ":7400",
            "host:65536",
        ] {
            assert!(fault(wrong).is_some(), "{wrong}");
        }
    }

    #[test]
    fn an_address_that_leads_elsewhere_is_noticed() {
        let own = ServerId(1);
        assert_eq!(lost(Ok(own), own), None);
        assert!(lost(Ok(ServerId(2)), own).is_some());
        assert!(lost(Err(BootstrapError::TimedOut), own).is_some());
    }
}
