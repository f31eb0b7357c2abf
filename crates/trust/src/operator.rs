//! A certificate of an operator's own PKI, with its key, as files give them.
//!
//! The certificate is in PEM, the server's own first, then the CAs between it and a root that the cluster trusts. The key is in PEM, too, of
//! any kind that TLS 1.3 has. What a file may get wrong is judged where the operator sees the sentence: at the server that shows the
//! certificate, before another one refuses it.

use std::fmt;
use std::sync::Arc;

use rustls::crypto::ring::sign::any_supported_type;
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::{self, PemObject};
use rustls::sign::{CertifiedKey, SigningKey};
use zeroize::Zeroizing;

use crate::certificate::{
    self, CertificateDer, CertificateError, ServerIdentity, Usage, Validity, utc,
};
use crate::roots::{MAX_CERTIFICATE_BYTES, Roots};
use crate::secret::Secret;

/// A certificate is about to expire when this part of its life is left, or [`MAX_LATE_SECONDS`].
const LATE_PART: u64 = 6;
/// The longest time before its end at which a certificate is about to expire: two weeks.
const MAX_LATE_SECONDS: u64 = 14 * 24 * 60 * 60;

/// The mark of a key that is encrypted under a passphrase, in both of its forms.
const ENCRYPTED: [&[u8]; 2] = [b"ENCRYPTED PRIVATE KEY", b"Proc-Type: 4,ENCRYPTED"];

/// A certificate with the CAs that issued it, and its key, which fits.
#[derive(Clone)]
pub struct OperatorCertificate {
    chain: Vec<CertificateDer<'static>>,
    key: Arc<dyn SigningKey>,
}

/// Files that make no certificate of this server. Each sentence has the reason and the remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OperatorError {
    /// There is no certificate in the file.
    #[error(
        "it has no certificate: PEM is needed (-----BEGIN CERTIFICATE-----), the server's own first, then the CAs that issued it"
    )]
    NoCertificate,
    /// The PEM of the file with the certificate is cut short, or is none.
    #[error("its PEM is damaged or cut short: write the file anew")]
    Damaged,
    /// There is no key in the file.
    #[error("it has no private key: PEM is needed (-----BEGIN PRIVATE KEY-----)")]
    NoKey,
    /// The key asks for a passphrase.
    #[error(
        "its private key is encrypted, and a server asks for no passphrase: write it without one (`openssl pkey`), in a file for the server's user alone"
    )]
    EncryptedKey,
    /// The key is of a kind that is not known.
    #[error(
        "its private key cannot be used: one of ECDSA P-256 or P-384, Ed25519, or RSA of 2048 to 4096 bits is needed"
    )]
    KeyKind,
    /// The key is another one than that of the certificate.
    #[error(
        "its private key is not that of the certificate: put files in place that were made together"
    )]
    OtherKey,
    /// The certificate cannot be read, or is one that no end takes.
    #[error(
        "its certificate cannot be read: X.509 version 3 of at most {MAX_CERTIFICATE_BYTES} bytes, signed with ECDSA, Ed25519 or RSA, is needed"
    )]
    Unreadable,
    /// The certificate names no server, another one, or several.
    #[error(
        "its certificate is {}: this server needs one with the subject alternative name URI:{needed}, and no other one that begins with areo:",
        named(.found.as_ref())
    )]
    OtherName {
        /// The name of this server.
        needed: ServerIdentity,
        /// The name in the certificate, if it has one.
        found: Option<ServerIdentity>,
    },
    /// The certificate counts no longer.
    #[error("its certificate expired on {}: have another one issued, or set the clock of this machine", utc(*.since_seconds))]
    Expired {
        /// The last second in which it counted.
        since_seconds: u64,
    },
    /// The certificate does not count yet.
    #[error("its certificate is valid from {} on: wait, or set the clock of this machine", utc(*.from_seconds))]
    NotYet {
        /// The first second in which it counts.
        from_seconds: u64,
    },
    /// No root that the cluster trusts issued it.
    #[error(
        "its certificate was issued by a CA that the cluster does not trust: trust the root of that CA (`areo ca trust FILE`) while this server runs without the certificate, and have each CA between the two in the file"
    )]
    OtherAuthority,
    /// Other ends refuse it for another reason.
    #[error("{0}")]
    Refused(CertificateError),
}

fn named(found: Option<&ServerIdentity>) -> String {
    match found {
        Some(found) => format!("for {found}"),
        None => "for no server".to_owned(),
    }
}

impl OperatorCertificate {
    /// Takes the contents of the two files, which may be one.
    ///
    /// # Errors
    /// [`OperatorError`] for what is wrong in the file of the certificate: [`OperatorError::is_of_key`] says otherwise.
    pub fn read(certificate: &[u8], key: &Secret) -> Result<OperatorCertificate, OperatorError> {
        let chain = CertificateDer::pem_slice_iter(certificate);
        let chain: Result<Vec<_>, pem::Error> = chain.collect();
        let chain = chain.map_err(|_| OperatorError::Damaged)?;
        let Some((leaf, intermediates)) = chain.split_first() else {
            return Err(OperatorError::NoCertificate);
        };
        certificate::check_size(leaf, intermediates).map_err(OperatorError::Refused)?;
        certificate::validity_of_chain(&chain, &[]).ok_or(OperatorError::Unreadable)?;
        let key = signing_key(key)?;
        let certified = CertifiedKey::new(chain.clone(), Arc::clone(&key));
        match certified.keys_match() {
            Ok(()) => {}
            Err(rustls::Error::InconsistentKeys(_)) => return Err(OperatorError::OtherKey),
            Err(_) => return Err(OperatorError::Unreadable),
        }
        Ok(OperatorCertificate { chain, key })
    }

    /// Judges the certificate as the other ends of its connections will, as that of this server.
    ///
    /// # Errors
    /// [`OperatorError`].
    pub fn judge(
        &self,
        needed: ServerIdentity,
        roots: &Roots,
        now_seconds: u64,
    ) -> Result<(), OperatorError> {
        let (leaf, intermediates) = self.chain.split_first().expect("`read` found one");
        let found = certificate::identity(leaf).ok();
        if found != Some(needed) {
            return Err(OperatorError::OtherName { needed, found });
        }
        for usage in [Usage::Server, Usage::Client] {
            let judged = certificate::verify(roots.all(), leaf, intermediates, usage, now_seconds);
            judged.map_err(|error| self.refusal(error, roots, now_seconds))?;
        }
        Ok(())
    }

    fn refusal(&self, error: CertificateError, roots: &Roots, now_seconds: u64) -> OperatorError {
        let validity = self.validity(roots);
        match error {
            CertificateError::Expired { .. } => OperatorError::Expired {
                since_seconds: validity.until_seconds,
            },
            CertificateError::NotYet { seconds } => OperatorError::NotYet {
                from_seconds: now_seconds.saturating_add(seconds),
            },
            CertificateError::OtherAuthority => OperatorError::OtherAuthority,
            CertificateError::Unreadable => OperatorError::Unreadable,
            other => OperatorError::Refused(other),
        }
    }

    /// The server that the certificate names, if it names one.
    pub fn identity(&self) -> Option<ServerIdentity> {
        certificate::identity(&self.chain[0]).ok()
    }

    /// The times between which it counts: until the first certificate of its chain ends.
    pub fn validity(&self, roots: &Roots) -> Validity {
        let validity = certificate::validity_of_chain(&self.chain, roots.all());
        validity.expect("`read` has read each of them")
    }

    /// True if a person should renew it now: a sixth of its life is left, or two weeks.
    pub fn is_late(&self, roots: &Roots, now_seconds: u64) -> bool {
        let validity = self.validity(roots);
        let life = validity.until_seconds.saturating_sub(validity.from_seconds);
        let late = (life / LATE_PART).min(MAX_LATE_SECONDS);
        now_seconds.saturating_add(late) > validity.until_seconds
    }

    pub(crate) fn chain(&self) -> &[CertificateDer<'static>] {
        &self.chain
    }

    pub(crate) fn key(&self) -> Arc<dyn SigningKey> {
        Arc::clone(&self.key)
    }
}

impl fmt::Debug for OperatorCertificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OperatorCertificate of {:?}", self.identity())
    }
}

impl OperatorError {
    /// True if it is the file with the key that is wrong.
    pub fn is_of_key(&self) -> bool {
        matches!(
            self,
            OperatorError::NoKey
                | OperatorError::EncryptedKey
                | OperatorError::KeyKind
                | OperatorError::OtherKey
        )
    }
}

fn signing_key(content: &Secret) -> Result<Arc<dyn SigningKey>, OperatorError> {
    let content = content.expose();
    let has = |mark: &[u8]| content.windows(mark.len()).any(|bytes| bytes == mark);
    if ENCRYPTED.into_iter().any(has) {
        return Err(OperatorError::EncryptedKey);
    }
    let key = PrivateKeyDer::from_pem_slice(content).map_err(|_| OperatorError::NoKey)?;
    let key = Zeroizing::new(key);
    any_supported_type(&key).map_err(|_| OperatorError::KeyKind)
}

#[cfg(test)]
mod tests;
