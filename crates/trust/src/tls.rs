//! The configuration of `rustls` for connections of areo: TLS 1.3 alone, ALPN `areo/1`, certificates of the cluster.
//!
//! | connection | caller shows | caller checks |
//! |---|---|---|
//! | server to server | its certificate | that it reached the server that it called |
//! | client to server | nothing; it proves a key above TLS | that a server of the cluster answers |
//! | to join | nothing | that the server's CA has the digest of the token: [`joining_config`] |
//! | to prove a key | nothing | that the server proves the same key on this session: [`proving_config`] |
//!
//! A server shows the certificate of an operator's own PKI, if it has one, to all but servers that join: those know the digest of the cluster's CA, and
//! say so by a name in their first message ([`server_name`]), which no other caller sends.
//!
//! There is no resumption of sessions and no early data: each connection verifies certificates anew, so that a renewed, dropped
//! or expired one counts from the next connection on. Open connections are judged again where the roots change ([`Endpoint::judge`]).
//! Configurations are immutable; an [`Endpoint`] makes them, and is made anew after a renewal or a change of the roots.

use std::sync::Arc;

use rustls::client::Resumption;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::ring::sign::any_ecdsa_type;
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms};
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer, ServerName, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{
    ClientConfig, CommonState, DigitallySignedStruct, DistinguishedName, Error, ServerConfig,
    SignatureScheme,
};

use areo_core::config::ServerId;

use crate::authority::{PUBLIC_KEY_BYTES, PublicKey, ServerKey};
use crate::certificate::{self, CertificateError, ServerIdentity, Usage};
use crate::operator::OperatorCertificate;
use crate::roots::{Root, RootDigest, Roots};

pub use explanation::{explain, explain_io};
pub use rustls::time_provider::{DefaultTimeProvider, TimeProvider};

mod explanation;
#[cfg(test)]
mod tests;

/// The protocol above TLS, by which a server of another kind is recognised before a byte of it is read.
pub const ALPN: &[u8] = b"areo/1";

/// The label of the bytes that bind a proof to its session of TLS (RFC 9266, `tls-exporter`).
pub const BINDING_LABEL: &[u8] = b"EXPORTER-Channel-Binding";
/// The number of those bytes.
pub const BINDING_BYTES: usize = 32;

/// Bytes before the point in the description of a public key of P-256; of another kind of key they are more or fewer.
const P256_HEAD_BYTES: usize = 26;

/// The name for `rustls`, which wants one. A certificate names a server by its id. The name is sent by a server that joins, to be shown a
/// certificate of the cluster's own CA, and by no other caller.
///
/// # Panics
/// Never.
pub fn server_name() -> ServerName<'static> {
    ServerName::try_from("server.areo.invalid").expect("a name of a host")
}

/// The identity of a server: its key with the certificate for it, and the certificates up to the root.
#[derive(Clone, Debug)]
pub struct Credentials {
    shown: Arc<CertifiedKey>,
    /// Shown to servers that join.
    joining: Arc<CertifiedKey>,
}

impl Credentials {
    /// A certificate of the cluster's own CA. The root goes with it, for servers that join and have its digest alone.
    ///
    /// # Panics
    /// Never: a key of a server is of a kind that `rustls` takes.
    pub fn new(certificate: CertificateDer<'static>, root: &Root, key: &ServerKey) -> Credentials {
        let private = key.private();
        // A borrowed form: one that `rustls` owns is not wiped.
        let borrowed = PrivatePkcs8KeyDer::from(private.expose()).into();
        let key = any_ecdsa_type(&borrowed).expect("a server's key is ECDSA P-256 in PKCS #8");
        let chain = vec![certificate, root.certificate().clone()];
        let shown = Arc::new(CertifiedKey::new(chain, key));
        Credentials {
            joining: Arc::clone(&shown),
            shown,
        }
    }

    /// These credentials, which show a certificate of an operator's own PKI to everyone but servers that join.
    #[must_use]
    pub fn with_operator(self, operator: &OperatorCertificate) -> Credentials {
        let shown = CertifiedKey::new(operator.chain().to_vec(), operator.key());
        Credentials {
            shown: Arc::new(shown),
            joining: self.joining,
        }
    }

    /// Refuses a key that does not belong to its certificate.
    fn check(&self) -> Result<(), Error> {
        self.shown.keys_match()?;
        self.joining.keys_match()
    }
}

/// Chooses the certificate of a server by its caller.
impl ResolvesServerCert for Credentials {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(match hello.server_name() {
            Some(_) => &self.joining,
            None => &self.shown,
        }))
    }
}

/// One end of connections within a cluster.
#[derive(Clone, Debug)]
pub struct Endpoint {
    pub cluster: u128,
    /// The CAs that count.
    pub roots: Roots,
    /// The identity of this process; a client has none.
    pub credentials: Option<Credentials>,
    /// The clock by which certificates are judged.
    pub clock: Arc<dyn TimeProvider>,
}

impl Endpoint {
    /// For connections that this server accepts: a caller may show a certificate, and [`peer`] says who it is.
    ///
    /// # Errors
    /// The key does not belong to the certificate, or there is none.
    pub fn server_config(&self) -> Result<Arc<ServerConfig>, Error> {
        let Some(credentials) = &self.credentials else {
            return Err(Error::General("a server needs a certificate".to_owned()));
        };
        credentials.check()?;
        let clock = Arc::clone(&self.clock);
        let mut config = ServerConfig::builder_with_details(provider(), clock)
            .with_protocol_versions(&[&rustls::version::TLS13])?
            .with_client_cert_verifier(self.verifier(None))
            .with_cert_resolver(Arc::new(credentials.clone()));
        config.alpn_protocols = vec![ALPN.to_vec()];
        config.send_tls13_tickets = 0;
        Ok(Arc::new(config))
    }

    /// For a connection to a server, which must be `expected` if the caller knows.
    ///
    /// # Errors
    /// The key does not belong to the certificate.
    pub fn client_config(&self, expected: Option<ServerId>) -> Result<Arc<ClientConfig>, Error> {
        let clock = Arc::clone(&self.clock);
        let builder = ClientConfig::builder_with_details(provider(), clock)
            .with_protocol_versions(&[&rustls::version::TLS13])?
            .dangerous()
            .with_custom_certificate_verifier(self.verifier(expected));
        let config = match &self.credentials {
            Some(credentials) => {
                credentials.check()?;
                let shown = SingleCertAndKey::from(Arc::clone(&credentials.shown));
                builder.with_client_cert_resolver(Arc::new(shown))
            }
            None => builder.with_no_client_auth(),
        };
        Ok(Arc::new(as_caller(config)))
    }

    /// Judges certificates again that the other end of a connection showed, by the roots of now.
    ///
    /// # Errors
    /// [`CertificateError`].
    pub fn judge(
        &self,
        shown: &[CertificateDer<'_>],
        usage: Usage,
    ) -> Result<ServerIdentity, CertificateError> {
        let now = self.clock.current_time();
        let (Some((leaf, others)), Some(now)) = (shown.split_first(), now) else {
            return Err(CertificateError::Unreadable);
        };
        let found = certificate::verify(self.roots.all(), leaf, others, usage, now.as_secs())?;
        is_meant(self.cluster, None, found)?;
        Ok(found)
    }

    /// Judges a server that showed these certificates, and has others for the same key: one that counts is enough.
    ///
    /// # Errors
    /// [`CertificateError`], for those that it showed.
    pub fn judge_either(
        &self,
        shown: &[CertificateDer<'_>],
        also: &[CertificateDer<'_>],
    ) -> Result<ServerIdentity, CertificateError> {
        let judged = self.judge(shown, Usage::Server);
        let counts = |other: &CertificateDer<'_>| {
            let leaf = shown.first()?;
            let found = self
                .judge(std::slice::from_ref(other), Usage::Server)
                .ok()?;
            let is_its = certificate::identity(leaf) == Ok(found);
            (is_its && certificate::have_one_key(leaf, other)).then_some(found)
        };
        judged.or_else(|error| also.iter().find_map(counts).ok_or(error))
    }

    /// The key of the certificate that this process shows, if it is of the kind that the cluster's CA certifies.
    pub fn public_key(&self) -> Option<PublicKey> {
        let spki = self.credentials.as_ref()?.shown.key.public_key()?;
        match spki.split_last_chunk::<PUBLIC_KEY_BYTES>() {
            Some((head, point)) if head.len() == P256_HEAD_BYTES => PublicKey::new(point).ok(),
            _ => None,
        }
    }

    /// The CA that issued the certificate of this process, if it is one that is trusted. The clock does not matter: the certificate is judged as it
    /// is in its own last second.
    pub fn issuer(&self) -> Option<RootDigest> {
        let (leaf, others) = self.credentials.as_ref()?.shown.cert.split_first()?;
        let until = self.expires_seconds()?;
        let issued = |root: &&Root| {
            let root = std::slice::from_ref(*root);
            certificate::verify(root, leaf, others, Usage::Server, until).is_ok()
        };
        self.roots.all().iter().find(issued).map(Root::digest)
    }

    /// The last second, since 1970, of the certificate that this process shows.
    pub fn expires_seconds(&self) -> Option<u64> {
        let shown = &self.credentials.as_ref()?.shown.cert;
        let validity = certificate::validity_of_chain(shown, self.roots.all());
        validity.map(|validity| validity.until_seconds)
    }

    fn verifier(&self, expected: Option<ServerId>) -> Arc<Verifier> {
        Arc::new(Verifier {
            trusted: Trusted::Cluster {
                cluster: self.cluster,
                roots: self.roots.clone(),
                expected,
            },
            algorithms: provider().signature_verification_algorithms,
        })
    }
}

/// For a connection of a server that is about to join and knows nothing but the digest in its token. Nothing secret may be
/// sent before the handshake is over.
///
/// # Errors
/// The library refuses its own defaults.
pub fn joining_config(
    digest: RootDigest,
    clock: Arc<dyn TimeProvider>,
) -> Result<Arc<ClientConfig>, Error> {
    let mut config = caller_config(Trusted::Digest(digest), clock)?;
    config.enable_sni = true;
    Ok(Arc::new(config))
}

/// For the connection of a client that proves its key. The server proves the same key on this session of TLS
/// ([`crate::key::Prover::Server`]), by which the client knows it: its certificate may stand on a CA that the client has not heard of. Before the server
/// has proven the key, nothing that it says counts, and nothing secret may be sent.
///
/// # Errors
/// The library refuses its own defaults.
pub fn proving_config(clock: Arc<dyn TimeProvider>) -> Result<Arc<ClientConfig>, Error> {
    caller_config(Trusted::Anyone, clock).map(Arc::new)
}

fn caller_config(trusted: Trusted, clock: Arc<dyn TimeProvider>) -> Result<ClientConfig, Error> {
    let verifier = Verifier {
        trusted,
        algorithms: provider().signature_verification_algorithms,
    };
    let config = ClientConfig::builder_with_details(provider(), clock)
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    Ok(as_caller(config))
}

fn as_caller(mut config: ClientConfig) -> ClientConfig {
    config.alpn_protocols = vec![ALPN.to_vec()];
    config.resumption = Resumption::disabled();
    config.enable_sni = false;
    config
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

/// The other end of a connection after its handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// It showed no certificate: a client, which proves a key, or a server that is about to join.
    Anonymous,
    /// A server with a certificate that was verified.
    Server(ServerIdentity),
}

/// The other end of a connection whose handshake is over.
///
/// # Errors
/// It did not agree on [`ALPN`], or the certificate that was verified names no server.
pub fn peer(connection: &CommonState) -> Result<Peer, Error> {
    if connection.alpn_protocol() != Some(ALPN) {
        return Err(Error::NoApplicationProtocol);
    }
    match connection.peer_certificates() {
        Some([leaf, ..]) => {
            let identity = certificate::identity(leaf).map_err(refusal)?;
            Ok(Peer::Server(identity))
        }
        _ => Ok(Peer::Anonymous),
    }
}

/// The root with this digest among the certificates that the other end showed.
pub fn shown_root(chain: &[CertificateDer<'_>], digest: RootDigest) -> Option<Root> {
    let root = chain.iter().find(|shown| RootDigest::of(shown) == digest)?;
    Root::from_der(root).ok()
}

/// The certificates that a verifier takes.
#[derive(Debug)]
enum Trusted {
    /// Certificates of servers of a cluster, or of one server.
    Cluster {
        cluster: u128,
        roots: Roots,
        expected: Option<ServerId>,
    },
    /// Certificates of a root that the other end shows itself.
    Digest(RootDigest),
    /// Any one: the other end proves itself above TLS.
    Anyone,
}

/// Judges the certificates of the other end.
#[derive(Debug)]
struct Verifier {
    trusted: Trusted,
    algorithms: WebPkiSupportedAlgorithms,
}

impl Verifier {
    fn verify(
        &self,
        leaf: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        usage: Usage,
        now: UnixTime,
    ) -> Result<(), CertificateError> {
        let now_seconds = now.as_secs();
        match &self.trusted {
            Trusted::Cluster {
                cluster,
                roots,
                expected,
            } => {
                let found =
                    certificate::verify(roots.all(), leaf, intermediates, usage, now_seconds)?;
                is_meant(*cluster, *expected, found)
            }
            Trusted::Digest(digest) => {
                let root = shown_root(intermediates, *digest);
                let root = root.ok_or(CertificateError::OtherDigest { expected: *digest })?;
                certificate::verify(&[root], leaf, intermediates, usage, now_seconds).map(|_| ())
            }
            Trusted::Anyone => Ok(()),
        }
    }
}

fn is_meant(
    cluster: u128,
    expected: Option<ServerId>,
    found: ServerIdentity,
) -> Result<(), CertificateError> {
    if found.cluster != cluster {
        return Err(CertificateError::OtherCluster {
            expected: cluster,
            found: found.cluster,
        });
    }
    match expected {
        Some(expected) if expected != found.server => Err(CertificateError::OtherServer {
            expected,
            found: found.server,
        }),
        _ => Ok(()),
    }
}

/// Carries the sentence through `rustls` to [`explain`].
fn refusal(error: CertificateError) -> Error {
    rustls::CertificateError::Other(rustls::OtherError(Arc::new(error))).into()
}

/// Judges signatures of a handshake, as both traits ask for it in the same words. There is no TLS 1.2 in this build.
macro_rules! signatures {
    () => {
        fn verify_tls12_signature(
            &self,
            _message: &[u8],
            _leaf: &CertificateDer<'_>,
            _signature: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            Err(Error::PeerIncompatible(
                rustls::PeerIncompatible::Tls12NotOfferedOrEnabled,
            ))
        }

        fn verify_tls13_signature(
            &self,
            message: &[u8],
            leaf: &CertificateDer<'_>,
            signature: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            rustls::crypto::verify_tls13_signature(message, leaf, signature, &self.algorithms)
        }

        fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
            self.algorithms.supported_schemes()
        }
    };
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        leaf: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.verify(leaf, intermediates, Usage::Server, now)
            .map(|()| ServerCertVerified::assertion())
            .map_err(refusal)
    }

    signatures!();
}

impl ClientCertVerifier for Verifier {
    /// Clients show nothing, and prove a key above TLS.
    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        leaf: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        self.verify(leaf, intermediates, Usage::Client, now)
            .map(|()| ClientCertVerified::assertion())
            .map_err(refusal)
    }

    signatures!();
}
