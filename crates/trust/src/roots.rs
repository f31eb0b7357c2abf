//! The CAs that a cluster trusts, and their rotation.
//!
//! A rotation has three steps, and at each of them every certificate in use is trusted by every server that has made the step or the
//! one before it:
//!
//! 1. [`Roots::trust`]: the new root is trusted beside the old one, which issues on.
//! 2. [`Roots::issue_from`]: the new root issues. Certificates of the old one are *due* (`authority::is_due`), so that
//!    servers renew them.
//! 3. [`Roots::drop_root`]: the old root goes.

use std::fmt;

use bytes::{Bytes, BytesMut};
use ring::digest::{SHA256, digest};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, TrustAnchor};

use areo_core::tlv::{self, TlvError};

use crate::certificate;
use crate::hexadecimal;

/// Roots that are trusted at one time: a rotation needs two, and an operator's own PKI may have one more.
pub const MAX_ROOTS: usize = 4;
/// The longest certificate that is read, in bytes.
pub const MAX_CERTIFICATE_BYTES: usize = 4096;

/// The beginning of a certificate as text.
const PEM_MARK: &[u8] = b"-----BEGIN CERTIFICATE-----";

const ROOT: u16 = tlv::MUST_UNDERSTAND | 1;

/// SHA-256 of the certificate of a root, as it stands in a join token.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RootDigest(pub [u8; 32]);

impl RootDigest {
    /// The digest of any certificate.
    pub(crate) fn of(certificate: &[u8]) -> RootDigest {
        let digest = digest(&SHA256, certificate);
        RootDigest(digest.as_ref().try_into().expect("SHA-256 has 32 bytes"))
    }

    /// Reads 64 lower-case hexadecimal digits; none if the text is anything else.
    pub fn parse(text: &str) -> Option<RootDigest> {
        hexadecimal::read(text).map(RootDigest)
    }
}

impl fmt::Display for RootDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hexadecimal::write(&self.0))
    }
}

impl fmt::Debug for RootDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// The certificate of a CA.
#[derive(Clone, PartialEq, Eq)]
pub struct Root {
    certificate: CertificateDer<'static>,
}

impl Root {
    /// Takes the certificate of a CA in DER.
    ///
    /// A certificate of a server is refused: as a root it would make that server a CA, which issues for any id.
    ///
    /// # Errors
    /// [`RootsError::Unreadable`], [`RootsError::NoCa`].
    pub fn from_der(der: &[u8]) -> Result<Root, RootsError> {
        let certificate = CertificateDer::from(der.to_vec());
        let is_readable = der.len() <= MAX_CERTIFICATE_BYTES
            && webpki::anchor_from_trusted_cert(&certificate).is_ok();
        if !is_readable {
            return Err(RootsError::Unreadable);
        }
        if !certificate::is_ca(&certificate) {
            return Err(RootsError::NoCa);
        }
        Ok(Root { certificate })
    }

    /// Takes the content of a file with the certificate of a CA, which is PEM or DER.
    ///
    /// # Errors
    /// [`RootsError::Unreadable`], [`RootsError::NoCa`].
    pub fn from_file(content: &[u8]) -> Result<Root, RootsError> {
        match content
            .windows(PEM_MARK.len())
            .any(|bytes| bytes == PEM_MARK)
        {
            true => {
                let certificate = CertificateDer::from_pem_slice(content);
                Root::from_der(&certificate.map_err(|_| RootsError::Unreadable)?)
            }
            false => Root::from_der(content),
        }
    }

    pub fn certificate(&self) -> &CertificateDer<'static> {
        &self.certificate
    }

    /// The certificate in PEM, as [`Root::from_file`] reads it.
    pub fn pem(&self) -> String {
        crate::pem::write("CERTIFICATE", &self.certificate)
    }

    pub fn digest(&self) -> RootDigest {
        RootDigest::of(&self.certificate)
    }

    /// Name and key, as a verification needs them.
    pub(crate) fn anchor(&self) -> TrustAnchor<'_> {
        webpki::anchor_from_trusted_cert(&self.certificate).expect("`from_der` has read it")
    }
}

impl fmt::Debug for Root {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Root {}", self.digest())
    }
}

/// Roots that cannot be read, or a change of them that would lock servers out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RootsError {
    /// The bytes are no certificate.
    #[error(
        "this is no certificate of a CA: a root is one X.509 certificate of at most 4096 bytes in DER"
    )]
    Unreadable,
    /// The certificate does not say that it is that of a CA.
    #[error(
        "this certificate is not that of a CA (its basic constraints do not say so), and as a root it would make its owner one: trust the certificate of the CA that issued it"
    )]
    NoCa,
    /// The list cannot be read.
    #[error("the list of trusted CAs cannot be read: {0}")]
    List(#[from] TlvError),
    /// The list is empty, too long, or names a root twice.
    #[error("a cluster trusts 1 to {MAX_ROOTS} different CAs, and the list has {count}")]
    Count {
        /// Roots in the list.
        count: usize,
    },
    /// One more would be too many.
    #[error("the cluster trusts {MAX_ROOTS} CAs already: end the rotation that is under way first")]
    Full,
    /// The root is not in the list.
    #[error("the cluster does not trust the CA {digest}")]
    Unknown { digest: RootDigest },
    /// The root issues certificates.
    #[error(
        "the CA {digest} issues the certificates of this cluster: have another one issue them before it goes"
    )]
    Issuing { digest: RootDigest },
}

/// The CAs that a cluster trusts, of which the first one issues.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Roots(Vec<Root>);

impl Roots {
    /// One root, which issues.
    pub fn new(issuing: Root) -> Roots {
        Roots(vec![issuing])
    }

    /// The root that issues.
    pub fn issuing(&self) -> &Root {
        &self.0[0]
    }

    /// All of them, the one that issues first.
    pub fn all(&self) -> &[Root] {
        &self.0
    }

    /// Trusts one more; one that is trusted already stays as it is.
    ///
    /// # Errors
    /// [`RootsError::Full`].
    pub fn trust(&mut self, root: Root) -> Result<(), RootsError> {
        if self.0.contains(&root) {
            return Ok(());
        }
        if self.0.len() == MAX_ROOTS {
            return Err(RootsError::Full);
        }
        self.0.push(root);
        Ok(())
    }

    /// Has a trusted root issue from now on.
    ///
    /// # Errors
    /// [`RootsError::Unknown`].
    pub fn issue_from(&mut self, digest: RootDigest) -> Result<(), RootsError> {
        let place = self.place(digest)?;
        self.0[..=place].rotate_right(1);
        Ok(())
    }

    /// Trusts a root no longer. Connections of servers whose certificates stand on it are closed, and such servers get no other one.
    ///
    /// The list does not know which servers there are. Before it drops a root, the leader of a rotation asks every server that is not
    /// forgotten for the root of its certificate, and goes on only if all stand on another one; a server that does not answer is
    /// waited for, or forgotten by a person. The root that issues is never dropped: no server could renew.
    ///
    /// # Errors
    /// [`RootsError::Unknown`], [`RootsError::Issuing`].
    pub fn drop_root(&mut self, digest: RootDigest) -> Result<(), RootsError> {
        match self.place(digest)? {
            0 => Err(RootsError::Issuing { digest }),
            place => {
                self.0.remove(place);
                Ok(())
            }
        }
    }

    fn place(&self, digest: RootDigest) -> Result<usize, RootsError> {
        let place = self.0.iter().position(|root| root.digest() == digest);
        place.ok_or(RootsError::Unknown { digest })
    }

    /// The list as bytes: one field per root.
    pub fn encode(&self) -> Bytes {
        let mut out = BytesMut::new();
        for root in &self.0 {
            tlv::put_field(&mut out, ROOT, &root.certificate);
        }
        out.freeze()
    }

    /// Reads what [`Roots::encode`] wrote.
    ///
    /// # Errors
    /// [`RootsError`].
    pub fn decode(bytes: &[u8]) -> Result<Roots, RootsError> {
        let mut roots: Vec<Root> = Vec::new();
        for field in tlv::fields(bytes) {
            let (kind, value) = field?;
            if kind != ROOT {
                tlv::unknown(kind)?;
                continue;
            }
            let root = Root::from_der(value)?;
            let count = roots.len() + 1;
            if count > MAX_ROOTS || roots.contains(&root) {
                return Err(RootsError::Count { count });
            }
            roots.push(root);
        }
        if roots.is_empty() {
            return Err(RootsError::Count { count: 0 });
        }
        Ok(Roots(roots))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::authority::{Authority, ServerKey};
    use areo_core::config::ServerId;

    fn root() -> Root {
        Authority::create(7, 1_800_000_000).unwrap().root().clone()
    }

    #[test]
    fn a_root_is_read_from_the_file_that_it_makes() {
        for _ in 0..4 {
            let root = Authority::create(1, 1_800_000_000).unwrap().root().clone();
            let pem = root.pem();
            assert!(
                pem.lines().all(|line| (1..=64).contains(&line.len())),
                "{pem}"
            );
            assert_eq!(Root::from_file(pem.as_bytes()), Ok(root));
        }
    }

    #[test]
    fn a_rotation_never_drops_the_root_that_issues() {
        let (old, new) = (root(), root());
        let mut roots = Roots::new(old.clone());
        roots.trust(new.clone()).unwrap();
        roots.trust(new.clone()).unwrap();
        assert_eq!(roots.all(), [old.clone(), new.clone()]);
        let digest = old.digest();
        assert_eq!(roots.drop_root(digest), Err(RootsError::Issuing { digest }));
        roots.issue_from(new.digest()).unwrap();
        assert_eq!(roots.all(), [new.clone(), old.clone()]);
        roots.drop_root(digest).unwrap();
        assert_eq!(roots.all(), [new]);
        assert_eq!(roots.drop_root(digest), Err(RootsError::Unknown { digest }));
        assert_eq!(
            roots.issue_from(digest),
            Err(RootsError::Unknown { digest })
        );
    }

    #[test]
    fn roots_are_few_and_come_back_from_bytes() {
        let mut roots = Roots::new(root());
        for _ in 1..MAX_ROOTS {
            roots.trust(root()).unwrap();
        }
        assert_eq!(roots.trust(root()), Err(RootsError::Full));
        let bytes = roots.encode();
        assert_eq!(Roots::decode(&bytes), Ok(roots.clone()));
        assert_eq!(Roots::decode(b""), Err(RootsError::Count { count: 0 }));
        let twice = [Roots::new(root()).encode(), bytes].concat();
        assert_eq!(Roots::decode(&twice), Err(RootsError::Count { count: 5 }));
        let one = Roots::new(root()).encode();
        let doubled = [&one[..], &one].concat();
        assert_eq!(Roots::decode(&doubled), Err(RootsError::Count { count: 2 }));
        for length in 1..one.len() {
            assert!(Roots::decode(&one[..length]).is_err(), "{length} bytes");
        }
        assert_eq!(Root::from_der(b"rubbish"), Err(RootsError::Unreadable));
    }

    #[test]
    fn the_certificate_of_a_server_is_no_root() {
        let now = 1_800_000_000;
        let authority = Authority::create(7, now).unwrap();
        let key = ServerKey::create().unwrap().public();
        let leaf = authority.issue(ServerId(1), &key, now).unwrap();
        let refused = Root::from_der(&leaf).unwrap_err();
        assert_eq!(refused, RootsError::NoCa);
        assert!(
            refused.to_string().contains("not that of a CA"),
            "{refused}"
        );
        assert!(Root::from_der(authority.root().certificate()).is_ok());
        let mut list = BytesMut::new();
        tlv::put_field(&mut list, ROOT, &leaf);
        assert_eq!(Roots::decode(&list), Err(RootsError::NoCa));
    }

    #[test]
    fn a_file_has_a_certificate_as_text_or_as_bytes() {
        let root = root();
        let der = root.certificate();
        let pem = include_str!("../tests/golden/root-1.pem");
        let found = Root::from_file(pem.as_bytes()).unwrap();
        let with_comment = format!("# our CA\n{pem}");
        assert_eq!(Root::from_file(with_comment.as_bytes()), Ok(found.clone()));
        assert_eq!(Root::from_file(found.certificate()), Ok(found));
        assert_eq!(Root::from_file(der), Ok(root.clone()));
        for wrong in ["", "text", "-----BEGIN CERTIFICATE-----\nAAAA\n"] {
            let refused = Root::from_file(wrong.as_bytes());
            assert_eq!(refused, Err(RootsError::Unreadable), "{wrong}");
        }
    }

    #[test]
    fn a_digest_has_one_text() {
        let digest = root().digest();
        assert_eq!(RootDigest::parse(&digest.to_string()), Some(digest));
        assert_eq!(RootDigest::parse(&digest.to_string().to_uppercase()), None);
    }
}
