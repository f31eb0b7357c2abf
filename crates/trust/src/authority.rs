//! The cluster's own certificate authority, and the keys of servers.
//!
//! A server makes its key itself and sends the public half: 65 bytes, so that no signing request is parsed. The authority answers
//! with a certificate for [`CERTIFICATE_SECONDS`] that names the server by a URI. A certificate is renewed when a third of its
//! life is left, or when another root issues: [`is_due`].
//!
//! ECDSA P-256 for both, because every TLS implementation takes it. What is written to disk is PKCS #8, sealed by the caller. `ring`
//! wipes neither the copy of a key that it computes with nor the document in which it makes a new one; the encoded form is wiped when dropped.

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose, PKCS_ECDSA_P256_SHA256, PublicKeyData, SanType, SerialNumber,
    SignatureAlgorithm,
};
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use time::OffsetDateTime;
use zeroize::Zeroizing;

use areo_core::config::ServerId;

use crate::SKEW_SECONDS;
use crate::certificate::{self, ServerIdentity, Usage};
use crate::hexadecimal;
use crate::host::{Host, Hosts};
use crate::roots::{Root, RootDigest, Roots};
use crate::secret::{self, NoRandomness, Secret};

/// The life of a server's certificate, in seconds: 90 days.
pub const CERTIFICATE_SECONDS: u64 = 90 * 24 * 60 * 60;
/// The life of a gateway's certificate, in seconds: a week. The key of a gateway can be revoked, and its certificate cannot.
pub const GATEWAY_CERTIFICATE_SECONDS: u64 = 7 * 24 * 60 * 60;
/// Seconds of remaining life at which a certificate is due for renewal: a third.
pub const RENEWAL_SECONDS: u64 = CERTIFICATE_SECONDS / 3;
/// Bytes of a public key: a point of P-256, uncompressed.
pub const PUBLIC_KEY_BYTES: usize = 65;

const UNCOMPRESSED: u8 = 4;
/// The last second of the year 9999: RFC 5280's way to say that a root does not expire. It goes when it is dropped.
const NEVER: i64 = 253_402_300_799;
const SERIAL_BYTES: usize = 16;

/// A key or certificate that cannot be made or taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AuthorityError {
    /// The system gives no random bytes.
    #[error(transparent)]
    NoRandomness(#[from] NoRandomness),
    /// The bytes are no private key.
    #[error("this is no private key: ECDSA P-256 in PKCS #8 is needed")]
    PrivateKey,
    /// The bytes are no public key.
    #[error("this is no public key: 65 bytes of an uncompressed point of P-256 are needed")]
    PublicKey,
    /// The root's certificate is of another key.
    #[error("the certificate of the CA belongs to another private key")]
    OtherRoot,
    /// The time is beyond the calendar of certificates.
    #[error("the clock says {now_seconds} s since 1970, which no certificate can name: set it")]
    Clock { now_seconds: u64 },
    /// The library for certificates refused.
    #[error("a certificate could not be made: {reason}")]
    Library { reason: String },
}

impl From<rcgen::Error> for AuthorityError {
    fn from(error: rcgen::Error) -> AuthorityError {
        AuthorityError::Library {
            reason: error.to_string(),
        }
    }
}

/// The public half of a server's key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PublicKey([u8; PUBLIC_KEY_BYTES]);

impl PublicKey {
    /// Takes the bytes that a server sent. A point that is not on the curve makes a certificate that nothing can be done with.
    ///
    /// # Errors
    /// [`AuthorityError::PublicKey`].
    pub fn new(bytes: &[u8]) -> Result<PublicKey, AuthorityError> {
        match <[u8; PUBLIC_KEY_BYTES]>::try_from(bytes) {
            Ok(point @ [UNCOMPRESSED, ..]) => Ok(PublicKey(point)),
            _ => Err(AuthorityError::PublicKey),
        }
    }

    pub fn as_bytes(&self) -> &[u8; PUBLIC_KEY_BYTES] {
        &self.0
    }
}

impl PublicKeyData for PublicKey {
    fn der_bytes(&self) -> &[u8] {
        &self.0
    }

    fn algorithm(&self) -> &'static SignatureAlgorithm {
        &PKCS_ECDSA_P256_SHA256
    }
}

/// A key pair of a server or of a CA.
struct Pair(Zeroizing<KeyPair>);

impl Pair {
    fn create() -> Result<Pair, AuthorityError> {
        let pair = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
        Ok(Pair(Zeroizing::new(pair)))
    }

    fn load(private: &Secret) -> Result<Pair, AuthorityError> {
        let der = PrivatePkcs8KeyDer::from(private.expose());
        let pair = KeyPair::from_pkcs8_der_and_sign_algo(&der, &PKCS_ECDSA_P256_SHA256);
        let pair = pair.map_err(|_| AuthorityError::PrivateKey)?;
        Ok(Pair(Zeroizing::new(pair)))
    }

    fn private(&self) -> Secret {
        Secret::new(self.0.serialize_der())
    }
}

/// The key of a server, which its certificate is for.
pub struct ServerKey(Pair);

impl ServerKey {
    /// A new key.
    ///
    /// # Errors
    /// [`AuthorityError`].
    pub fn create() -> Result<ServerKey, AuthorityError> {
        Pair::create().map(ServerKey)
    }

    /// Takes a key back from PKCS #8.
    ///
    /// # Errors
    /// [`AuthorityError::PrivateKey`].
    pub fn load(private: &Secret) -> Result<ServerKey, AuthorityError> {
        Pair::load(private).map(ServerKey)
    }

    /// The key as PKCS #8, to be sealed and kept.
    pub fn private(&self) -> Secret {
        self.0.private()
    }

    /// Its public half, which the server sends to the authority.
    pub fn public(&self) -> PublicKey {
        PublicKey::new(self.0.0.der_bytes()).expect("the library writes points uncompressed")
    }
}

impl std::fmt::Debug for ServerKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ServerKey")
    }
}

/// The key of a cluster's CA with its root.
pub struct Authority {
    cluster: u128,
    pair: Pair,
    root: Root,
}

impl Authority {
    /// A new CA for a cluster.
    ///
    /// # Errors
    /// [`AuthorityError`].
    pub fn create(cluster: u128, now_seconds: u64) -> Result<Authority, AuthorityError> {
        let pair = Pair::create()?;
        let mut params = root_params(cluster, &pair);
        params.not_before = not_before(now_seconds)?;
        params.not_after = OffsetDateTime::from_unix_timestamp(NEVER).expect("within the calendar");
        params.serial_number = Some(serial()?);
        let certificate = params.self_signed(&*pair.0)?;
        let root = Root::from_der(certificate.der()).expect("the library writes certificates");
        Ok(Authority {
            cluster,
            pair,
            root,
        })
    }

    /// Takes a CA back: its key as PKCS #8, and its root.
    ///
    /// # Errors
    /// [`AuthorityError::PrivateKey`], [`AuthorityError::OtherRoot`].
    pub fn load(cluster: u128, private: &Secret, root: Root) -> Result<Authority, AuthorityError> {
        let pair = Pair::load(private)?;
        let public = pair.0.subject_public_key_info();
        // An anchor has the content of the field, without the tag and the length that begin it.
        if !public.ends_with(&root.anchor().subject_public_key_info) {
            return Err(AuthorityError::OtherRoot);
        }
        Ok(Authority {
            cluster,
            pair,
            root,
        })
    }

    /// The key as PKCS #8, to be sealed and kept.
    pub fn private(&self) -> Secret {
        self.pair.private()
    }

    pub fn root(&self) -> &Root {
        &self.root
    }

    /// A certificate for the key of a server, which counts from [`SKEW_SECONDS`] ago, for servers whose clocks are behind.
    ///
    /// # Errors
    /// [`AuthorityError`].
    pub fn issue(
        &self,
        server: ServerId,
        key: &PublicKey,
        now_seconds: u64,
    ) -> Result<CertificateDer<'static>, AuthorityError> {
        let identity = ServerIdentity {
            cluster: self.cluster,
            server,
        };
        let uri = identity.to_string();
        let mut params = leaf_params(now_seconds, CERTIFICATE_SECONDS)?;
        params.distinguished_name = common_name(&format!("areo server {server}"));
        params.subject_alt_names = vec![SanType::URI(
            uri.as_str().try_into().expect("the URI is ASCII"),
        )];
        params.extended_key_usages = vec![
            ExtendedKeyUsagePurpose::ServerAuth,
            ExtendedKeyUsagePurpose::ClientAuth,
        ];
        self.sign(&params, key)
    }

    /// A certificate for the key of a gateway that callers reach by these names, for [`GATEWAY_CERTIFICATE_SECONDS`]. It counts for the end that is called, and names
    /// no server, so that servers take it for none of theirs.
    ///
    /// # Errors
    /// [`AuthorityError`].
    pub fn issue_to_gateway(
        &self,
        hosts: &Hosts,
        key: &PublicKey,
        now_seconds: u64,
    ) -> Result<CertificateDer<'static>, AuthorityError> {
        let name = |host: &Host| match host {
            Host::Name(name) => {
                SanType::DnsName(name.as_str().try_into().expect("names are ASCII"))
            }
            Host::Address(address) => SanType::IpAddress(*address),
        };
        let mut params = leaf_params(now_seconds, GATEWAY_CERTIFICATE_SECONDS)?;
        params.distinguished_name = common_name("areo gateway");
        params.subject_alt_names = hosts.all().iter().map(name).collect();
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        self.sign(&params, key)
    }

    fn sign(
        &self,
        params: &CertificateParams,
        key: &PublicKey,
    ) -> Result<CertificateDer<'static>, AuthorityError> {
        let issuer = Issuer::new(root_params(self.cluster, &self.pair), &*self.pair.0);
        Ok(params.signed_by(key, &issuer)?.into())
    }
}

impl std::fmt::Debug for Authority {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Authority with {:?}", self.root)
    }
}

/// True if a certificate is to be renewed: a third of its life is left at most, or another root issues by now, so that the
/// one that issued it can be dropped once no certificate is due.
///
/// The certificate is the first of its chain, as a server shows it: an operator's own PKI may have CAs between it and the root. A
/// chain that other servers refuse, for its size or because it does not count now, is due too.
pub fn is_due(chain: &[CertificateDer<'_>], roots: &Roots, now_seconds: u64) -> bool {
    let Some((leaf, intermediates)) = chain.split_first() else {
        return true;
    };
    let issuing = [roots.issuing().anchor()];
    let later = now_seconds.saturating_add(RENEWAL_SECONDS);
    // A clock that was wrong may have made one that does not count now.
    certificate::verify(roots.all(), leaf, intermediates, Usage::Server, now_seconds).is_err()
        || certificate::chain_at(&issuing, leaf, intermediates, Usage::Server, later).is_err()
}

/// A certificate of this life that is no CA's.
fn leaf_params(now_seconds: u64, life_seconds: u64) -> Result<CertificateParams, AuthorityError> {
    let mut params = CertificateParams::default();
    params.not_before = not_before(now_seconds)?;
    params.not_after = instant(now_seconds, now_seconds.saturating_add(life_seconds))?;
    params.serial_number = Some(serial()?);
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.use_authority_key_identifier_extension = true;
    Ok(params)
}

/// The issuer, as all certificates of a CA name it. The name follows from the key, so that a CA that is taken back from disk
/// has it without reading its own certificate.
fn root_params(cluster: u128, pair: &Pair) -> CertificateParams {
    let key = RootDigest::of(pair.0.der_bytes()).0;
    let mut params = CertificateParams::default();
    let name = format!("areo {cluster:032x} CA {}", hexadecimal::write(&key[..8]));
    params.distinguished_name = common_name(&name);
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    params
}

fn common_name(name: &str) -> DistinguishedName {
    let mut distinguished = DistinguishedName::new();
    distinguished.push(DnType::CommonName, name);
    distinguished
}

fn serial() -> Result<SerialNumber, NoRandomness> {
    let bytes = secret::random::<SERIAL_BYTES>(&secret::system)?;
    Ok(SerialNumber::from_slice(&bytes))
}

fn not_before(now_seconds: u64) -> Result<OffsetDateTime, AuthorityError> {
    instant(now_seconds, now_seconds.saturating_sub(SKEW_SECONDS))
}

fn instant(now_seconds: u64, seconds: u64) -> Result<OffsetDateTime, AuthorityError> {
    i64::try_from(seconds)
        .ok()
        .filter(|seconds| *seconds <= NEVER)
        .and_then(|seconds| OffsetDateTime::from_unix_timestamp(seconds).ok())
        .ok_or(AuthorityError::Clock { now_seconds })
}

#[cfg(test)]
mod tests;
