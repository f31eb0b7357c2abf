//! TLS of a gateway or a console: by a certificate in files, or by one of the cluster's CA, which is renewed while the process runs.
//!
//! The key of a certificate of the cluster's CA is made for it, and is in memory alone: a process that starts again has another one.

use super::server::certificate;
use crate::args;
use crate::cmd::trust;
use crate::config::Settings;
use crate::exit::{Code, Failure, Outcome};
use areo_client::Client;
use areo_trust::authority::ServerKey;
use areo_trust::host::{Host, Hosts};
use std::fs;
use std::future::Future;
use std::path::Path;
use std::sync::{Arc, RwLock};
use std::time::Duration;
use tokio::time::sleep;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio_rustls::rustls::server::{ClientHello, ResolvesServerCert};
use tokio_rustls::rustls::sign::CertifiedKey;
use tokio_rustls::rustls::version::TLS13;
use tokio_rustls::rustls::{self, ConfigBuilder, ServerConfig, WantsVerifier};

/// The time between two certificates. A certificate counts for a week; a CA that is rotated is followed within the hour.
const PERIOD: Duration = Duration::from_hours(1);
/// The pause after a certificate could not be had.
const PAUSE: Duration = Duration::from_mins(1);

/// The encryption that an operator has chosen.
pub(super) enum Encryption {
    None,
    /// A certificate in files.
    Files(TlsAcceptor),
    /// A certificate of the cluster's CA, for these names.
    Cluster(Hosts),
}

/// The certificate of the cluster's CA that is to be renewed.
pub(super) struct Renewal {
    hosts: Hosts,
    current: Arc<CurrentCertificate>,
}

/// The keys of the settings that choose a certificate.
pub(super) struct CertificateSettings {
    pub(super) cert: &'static str,
    pub(super) cert_key: &'static str,
    pub(super) tls: &'static str,
}

impl Encryption {
    /// The encryption of these options and settings; `hosts` are the names in a certificate of the cluster's CA.
    ///
    /// # Errors
    /// The options contradict each other, or name no certificate.
    pub(super) fn of(
        settings: &Settings,
        args: &args::Certificate,
        keys: &CertificateSettings,
        hosts: impl FnOnce() -> Outcome<Hosts>,
    ) -> Outcome<Encryption> {
        let files = (args.cert.clone(), args.cert_key.clone());
        let files = certificate(settings, files, (keys.cert, keys.cert_key))?;
        match (files, settings.switch(args.tls, keys.tls)?) {
            (Some(_), true) => Err(Failure::usage(
                "a certificate of the cluster's CA and one in files cannot be shown at once: leave out --tls, or --cert and --cert-key",
            )),
            (Some(files), false) => of_files(&files.certificate, &files.key).map(Encryption::Files),
            (None, true) => hosts().map(Encryption::Cluster),
            (None, false) => Ok(Encryption::None),
        }
    }

    /// The acceptor of connections, and the certificate that is to be renewed.
    ///
    /// # Errors
    /// The cluster issues no certificate.
    pub(super) async fn begin(
        self,
        client: &Client,
    ) -> Outcome<(Option<TlsAcceptor>, Option<Renewal>)> {
        Ok(match self {
            Encryption::None => (None, None),
            Encryption::Files(acceptor) => (Some(acceptor), None),
            Encryption::Cluster(hosts) => {
                let first = issue(client, &hosts).await?;
                let current = Arc::new(CurrentCertificate(RwLock::new(first)));
                let config = builder().with_no_client_auth();
                let config = config.with_cert_resolver(Arc::<CurrentCertificate>::clone(&current));
                (Some(acceptor(config)), Some(Renewal { hosts, current }))
            }
        })
    }
}

/// The certificate that callers are shown.
#[derive(Debug)]
struct CurrentCertificate(RwLock<Arc<CertifiedKey>>);

impl CurrentCertificate {
    fn current(&self) -> Arc<CertifiedKey> {
        let current = self.0.read().expect("no holder of the lock panics");
        Arc::clone(&current)
    }

    fn replace(&self, next: Arc<CertifiedKey>) {
        *self.0.write().expect("no holder of the lock panics") = next;
    }
}

impl ResolvesServerCert for CurrentCertificate {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.current())
    }
}

/// The names in a certificate: those that are given by this option, domains with all names below them, and the host to listen on.
///
/// # Errors
/// One is no name, or there are none.
pub(super) fn hosts(
    names: &[String],
    domains: &[String],
    listen: &str,
    option: &str,
) -> Outcome<Hosts> {
    let below = domains.iter().map(|domain| format!("*.{domain}"));
    let given = names.iter().chain(domains).cloned().chain(below);
    let mut hosts = given.map(|it| host(&it)).collect::<Outcome<Vec<Host>>>()?;
    match listening(listen)? {
        Host::Address(address) if address.is_unspecified() => {}
        Host::Address(address) if address.is_loopback() => {
            let localhost = Host::Name("localhost".to_owned());
            hosts.extend([Host::Address(address), localhost]);
        }
        other => hosts.push(other),
    }
    if hosts.is_empty() {
        return Err(Failure::usage(format!(
            "{listen} is every address of this machine: say by which names it is reached, as in {option} gate.example,10.0.0.1"
        )));
    }
    Hosts::new(hosts).map_err(|error| Failure::usage(error.to_string()))
}

/// A name or an address that an operator gave.
///
/// # Errors
/// It is neither.
pub(super) fn host(text: &str) -> Outcome<Host> {
    let parsed = text.parse::<Host>();
    parsed.map_err(|error| Failure::usage(error.to_string()))
}

/// The host of an address to listen on.
///
/// # Errors
/// It is neither a name nor an address.
pub(super) fn listening(listen: &str) -> Outcome<Host> {
    let text = listen.rsplit_once(':').map_or(listen, |(host, _)| host);
    host(text.trim_start_matches('[').trim_end_matches(']'))
}

async fn issue(client: &Client, hosts: &Hosts) -> Outcome<Arc<CertifiedKey>> {
    let cannot = |reason: String| Failure::other(format!("cannot make a certificate: {reason}"));
    let key = ServerKey::create().map_err(|error| cannot(error.to_string()))?;
    let (asked, public) = (client.trust(), key.public());
    let issued = asked.gateway_certificate(hosts, &public).await;
    let issued = issued.map_err(trust::failure)?;
    let private = PrivatePkcs8KeyDer::from(key.private().expose().to_vec());
    let signing = ring::sign::any_supported_type(&PrivateKeyDer::Pkcs8(private));
    let signing = signing.map_err(|error| cannot(error.to_string()))?;
    let certified = CertifiedKey::new(vec![issued.certificate], signing);
    let is_of_key = certified.keys_match();
    is_of_key.map_err(|error| cannot(error.to_string()))?;
    Ok(Arc::new(certified))
}

/// Renews the certificate for as long as it is polled; without one it only waits.
pub(super) async fn renew(renewal: Option<Renewal>, client: &Client) {
    match renewal {
        None => std::future::pending().await,
        Some(Renewal { hosts, current }) => {
            keep(&current, (PERIOD, PAUSE), || issue(client, &hosts)).await;
        }
    }
}

/// Shows another certificate after each period. The one in use stays until the next one is there.
async fn keep<F>(
    current: &CurrentCertificate,
    (period, pause): (Duration, Duration),
    issue: impl Fn() -> F,
) where
    F: Future<Output = Outcome<Arc<CertifiedKey>>>,
{
    let mut wait = period;
    loop {
        sleep(wait).await;
        wait = match issue().await {
            Ok(next) => {
                current.replace(next);
                period
            }
            Err(failure) => {
                let reason = failure.message;
                tracing::warn!(%reason, "the certificate for callers is not renewed yet");
                pause
            }
        };
    }
}

fn builder() -> ConfigBuilder<ServerConfig, WantsVerifier> {
    ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(&[&TLS13])
        .expect("ring has TLS 1.3")
}

fn acceptor(mut config: ServerConfig) -> TlsAcceptor {
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    TlsAcceptor::from(Arc::new(config))
}

/// TLS 1.3 with a certificate in files.
///
/// # Errors
/// A file cannot be read, or is not what it is to be.
pub(super) fn of_files(certificate: &Path, key: &Path) -> Outcome<TlsAcceptor> {
    let read = |path: &Path| fs::read(path).map_err(|error| Failure::file("read", path, &error));
    let refused =
        |path: &Path, what: &str| Failure::new(Code::Usage, format!("{} {what}", path.display()));
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&read(certificate)?).collect();
    let chain = chain.ok().filter(|chain| !chain.is_empty());
    let chain = chain.ok_or_else(|| refused(certificate, "has no certificate in PEM"))?;
    let private = PrivateKeyDer::from_pem_slice(&read(key)?)
        .map_err(|_| refused(key, "has no private key in PEM"))?;
    let config = builder().with_no_client_auth();
    let config = config.with_single_cert(chain, private);
    let config = config.map_err(|error: rustls::Error| {
        refused(key, &format!("and {}: {error}", certificate.display()))
    })?;
    Ok(acceptor(config))
}

#[cfg(test)]
mod tests {
    use super::*;
    use areo_trust::authority::Authority;
    use std::sync::atomic::{AtomicUsize, Ordering};

    fn texts(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| (*text).to_owned()).collect()
    }

    #[test]
    fn a_certificate_has_the_names_by_which_the_gateway_is_reached() {
        for (names, domains, listen, expected) in [
            (&[][..], &[][..], "127.0.0.1:7480", "localhost, 127.0.0.1"),
            (&[], &[], "[::1]:7480", "localhost, ::1"),
            (&[], &[], "10.0.0.1:7480", "10.0.0.1"),
            (&[], &[], "gate:7480", "gate"),
            (&["Gate.Example"], &[], "0.0.0.0:7480", "gate.example"),
            (
                &[],
                &["s3.example"],
                "[::]:7480",
                "*.s3.example, s3.example",
            ),
            (&["a"], &["b.c"], "10.0.0.1:1", "*.b.c, a, b.c, 10.0.0.1"),
        ] {
            let hosts = hosts(&texts(names), &texts(domains), listen, "--tls-name").unwrap();
            assert_eq!(hosts.to_string(), expected, "{listen}");
        }
        for (names, listen, word) in [
            (&[][..], "0.0.0.0:7480", "--tls-name"),
            (&[], "[::]:7480", "--tls-name"),
            (&["gate:7480"], "127.0.0.1:7480", "without a port"),
        ] {
            let refused = hosts(&texts(names), &[], listen, "--tls-name").unwrap_err();
            assert!(refused.message.contains(word), "{}", refused.message);
        }
    }

    /// A certificate of a CA that is made for it.
    fn certified() -> Arc<CertifiedKey> {
        let authority = Authority::create(1, 1_800_000_000).unwrap();
        let key = ServerKey::create().unwrap();
        let hosts = hosts(&[], &[], "127.0.0.1:7480", "--tls-name").unwrap();
        let certificate = authority.issue_to_gateway(&hosts, &key.public(), 1_800_000_000);
        let private = PrivatePkcs8KeyDer::from(key.private().expose().to_vec());
        let signing = ring::sign::any_supported_type(&PrivateKeyDer::Pkcs8(private));
        let chain = vec![certificate.unwrap()];
        Arc::new(CertifiedKey::new(chain, signing.unwrap()))
    }

    /// The certificate in use stays while there is no other one, and goes with each that there is.
    #[test]
    fn a_certificate_is_renewed_again_and_again_and_stays_where_it_cannot_be() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build();
        let all: Vec<_> = (0..3).map(|_| certified()).collect();
        let shown = CurrentCertificate(RwLock::new(Arc::clone(&all[0])));
        let (asked, seen) = (AtomicUsize::new(0), RwLock::new(Vec::new()));
        let issue = || {
            let number = asked.fetch_add(1, Ordering::Relaxed);
            seen.write().unwrap().push(shown.current().cert.clone());
            let next = match number {
                1 => Ok(Arc::clone(&all[1])),
                3 => Ok(Arc::clone(&all[2])),
                _ => Err(Failure::other("no quorum")),
            };
            async move {
                if number == 5 {
                    std::future::pending::<()>().await;
                }
                next
            }
        };
        let often = Duration::from_millis(1);
        runtime.unwrap().block_on(async {
            // The end of the test where it asks no more.
            let enough = async {
                for _ in 0..10_000 {
                    if asked.load(Ordering::Relaxed) == 6 {
                        return;
                    }
                    sleep(often).await;
                }
            };
            tokio::select! {
                () = keep(&shown, (often, often), issue) => {}
                () = enough => {}
            }
        });
        let certificates = [0, 0, 1, 1, 2, 2].map(|index: usize| all[index].cert.clone());
        assert_eq!(*seen.read().unwrap(), certificates);
    }
}
