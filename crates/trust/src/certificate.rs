//! A chain of certificates against the trusted roots, and the server that it names.
//!
//! `webpki` reads and verifies; this module adds the tolerated skew of clocks, and the URI that says which server it is. Names of
//! hosts count for nothing: addresses of servers may change.

use std::fmt;

pub use rustls::pki_types::CertificateDer;
use rustls::pki_types::{TrustAnchor, UnixTime};
use webpki::{EndEntityCert, KeyUsage};

use areo_core::config::ServerId;

use crate::SKEW_SECONDS;
use crate::hexadecimal;
use crate::roots::{MAX_CERTIFICATE_BYTES, Root, RootDigest};

const SCHEME: &str = "areo://";
const PATH: &str = "/server/";
/// A second after the year 9999, the last one that a certificate can name.
const AFTER_ALL_SECONDS: u64 = 253_402_300_800;

/// Certificates that may follow the one of the server: two CAs of an operator's own PKI, and the root.
///
/// A stranger shows as many as fit into 64 KiB. `webpki` tries their orders, and would keep a thread busy with them for long.
pub const MAX_INTERMEDIATES: usize = 3;

/// The server that a certificate is for: `areo://CLUSTER/server/ID`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerIdentity {
    pub cluster: u128,
    pub server: ServerId,
}

impl fmt::Display for ServerIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{SCHEME}{:032x}{PATH}{}", self.cluster, self.server)
    }
}

impl ServerIdentity {
    /// Reads the URI; none if it is another one.
    pub fn parse(uri: &str) -> Option<ServerIdentity> {
        let (cluster, server) = uri.strip_prefix(SCHEME)?.split_once(PATH)?;
        Some(ServerIdentity {
            cluster: u128::from_be_bytes(hexadecimal::read(cluster)?),
            server: ServerId(u128::from_be_bytes(hexadecimal::read(server)?)),
        })
    }
}

/// The end of a connection that shows a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Usage {
    /// The end that was called.
    Server,
    /// The end that calls.
    Client,
}

/// A certificate that is refused. Each sentence has the reason and the remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CertificateError {
    /// The bytes are no certificate, or one with parts that must be understood and are not.
    #[error(
        "the certificate cannot be read: the other end is no areo server, or its file is damaged"
    )]
    Unreadable,
    /// More certificates follow than any PKI needs.
    #[error(
        "{count} certificates follow the one of the server, and at most {MAX_INTERMEDIATES} are read: have it show the CAs up to its root alone"
    )]
    TooMany {
        /// Certificates after the first.
        count: usize,
    },
    /// A certificate is longer than any that is read.
    #[error(
        "a certificate of {bytes} bytes was shown, and at most {MAX_CERTIFICATE_BYTES} are read: have a shorter one issued"
    )]
    TooLong { bytes: usize },
    /// No trusted root issued it.
    #[error(
        "the certificate was issued by a CA that this cluster does not trust: look whether the address is that of a server of this cluster"
    )]
    OtherAuthority,
    /// It was valid until a while ago.
    #[error("the certificate expired {} ago: have the server renew it, and compare the clocks of both machines", duration(*.seconds))]
    Expired {
        /// Since when, in seconds.
        seconds: u64,
    },
    /// It is valid from a later time on.
    #[error("the certificate is valid in {} only: compare the clocks of both machines", duration(*.seconds))]
    NotYet {
        /// Until then, in seconds.
        seconds: u64,
    },
    /// It is for another purpose.
    #[error(
        "the certificate must not be used for this end of a connection: a server needs one for both ends (extended key usage serverAuth and clientAuth)"
    )]
    Usage,
    /// It does not say which server it is for.
    #[error(
        "the certificate names no server: it needs one subject alternative name of the form areo://CLUSTER/server/ID"
    )]
    NoIdentity,
    /// It is for a server of another cluster.
    #[error(
        "the certificate is for a server of cluster {found:032x}, and this is cluster {expected:032x}: give an address of this cluster"
    )]
    OtherCluster {
        /// The cluster that was meant.
        expected: u128,
        /// The cluster in the certificate.
        found: u128,
    },
    /// It is for another server.
    #[error(
        "the certificate is for server {found}, and server {expected} was called: the address belongs to another server by now"
    )]
    OtherServer {
        /// The server that was called.
        expected: ServerId,
        /// The server in the certificate.
        found: ServerId,
    },
    /// None of the shown certificates has the expected digest.
    #[error(
        "the server's CA is not the one of the token ({expected}): the address is of another cluster, or its CA was rotated since the token was made; have a new one made there (`areo token create`)"
    )]
    OtherDigest {
        /// The digest that was expected.
        expected: RootDigest,
    },
}

/// Verifies a chain: a trusted root issued it, it is valid now give or take [`SKEW_SECONDS`], and it names one server.
///
/// # Errors
/// [`CertificateError`].
pub fn verify(
    roots: &[Root],
    leaf: &CertificateDer<'_>,
    intermediates: &[CertificateDer<'_>],
    usage: Usage,
    now_seconds: u64,
) -> Result<ServerIdentity, CertificateError> {
    check_size(leaf, intermediates)?;
    let anchors: Vec<TrustAnchor<'_>> = roots.iter().map(Root::anchor).collect();
    let at = |seconds| chain_at(&anchors, leaf, intermediates, usage, seconds);
    let verified = match at(now_seconds) {
        Err(webpki::Error::CertExpired { .. }) => at(now_seconds.saturating_sub(SKEW_SECONDS)),
        Err(webpki::Error::CertNotValidYet { .. }) => at(now_seconds.saturating_add(SKEW_SECONDS)),
        verified => verified,
    };
    verified.map_err(|error| refusal(&error, now_seconds))?;
    identity(leaf)
}

/// Bounds the work that a stranger's certificates make, before anything reads them.
///
/// # Errors
/// [`CertificateError::TooMany`], [`CertificateError::TooLong`].
pub(crate) fn check_size(
    leaf: &CertificateDer<'_>,
    intermediates: &[CertificateDer<'_>],
) -> Result<(), CertificateError> {
    let count = intermediates.len();
    if count > MAX_INTERMEDIATES {
        return Err(CertificateError::TooMany { count });
    }
    let mut lengths = std::iter::once(leaf)
        .chain(intermediates)
        .map(|der| der.len());
    match lengths.find(|bytes| *bytes > MAX_CERTIFICATE_BYTES) {
        Some(bytes) => Err(CertificateError::TooLong { bytes }),
        None => Ok(()),
    }
}

/// Verifies a chain at one time, without skew and names. Its size must have been checked.
pub(crate) fn chain_at(
    anchors: &[TrustAnchor<'_>],
    leaf: &CertificateDer<'_>,
    intermediates: &[CertificateDer<'_>],
    usage: Usage,
    seconds: u64,
) -> Result<(), webpki::Error> {
    let usage = match usage {
        Usage::Server => KeyUsage::server_auth(),
        Usage::Client => KeyUsage::client_auth(),
    };
    let time = UnixTime::since_unix_epoch(std::time::Duration::from_secs(seconds));
    EndEntityCert::try_from(leaf)?
        .verify_for_usage(
            webpki::ALL_VERIFICATION_ALGS,
            anchors,
            intermediates,
            time,
            usage,
            None,
            None,
        )
        .map(|_| ())
}

/// The times between which a certificate counts, by its own words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Validity {
    /// The first second, since 1970.
    pub from_seconds: u64,
    /// The last second in which it counts.
    pub until_seconds: u64,
}

/// The times between which a certificate counts; none if it cannot be read.
///
/// `webpki` has no question for that. It judges the time before it looks for an issuer, and a refusal names the time: judged before all and after
/// all times, a certificate says both.
pub(crate) fn validity(certificate: &CertificateDer<'_>) -> Option<Validity> {
    let at = |seconds| chain_at(&[], certificate, &[], Usage::Server, seconds);
    let from_seconds = match at(0) {
        Err(webpki::Error::CertNotValidYet { not_before, .. }) => not_before.as_secs(),
        // It begins in 1970, or before.
        _ => 0,
    };
    match at(AFTER_ALL_SECONDS) {
        Err(webpki::Error::CertExpired { not_after, .. }) => Some(Validity {
            from_seconds,
            until_seconds: not_after.as_secs(),
        }),
        _ => None,
    }
}

/// The times between which a chain counts: from the first second of the server's certificate until the first one of them ends. The end of a root is
/// not looked at, because a verification does not either. None if one cannot be read.
pub(crate) fn validity_of_chain(chain: &[CertificateDer<'_>], roots: &[Root]) -> Option<Validity> {
    let whole = validity(chain.first()?)?;
    let is_root = |shown: &CertificateDer<'_>| roots.iter().any(|root| root.certificate() == shown);
    let others = chain.iter().filter(|shown| !is_root(shown));
    others.map(validity).try_fold(whole, |whole, other| {
        let until_seconds = whole.until_seconds.min(other?.until_seconds);
        Some(Validity {
            until_seconds,
            ..whole
        })
    })
}

/// Says whether a certificate is that of a CA.
///
/// `webpki` has no question for that either: it judges the time first and refuses a CA as the end of a chain next. So the certificate is judged at the
/// first second of its life.
pub(crate) fn is_ca(certificate: &CertificateDer<'_>) -> bool {
    let first = validity(certificate).map_or(0, |validity| validity.from_seconds);
    let judged = chain_at(&[], certificate, &[], Usage::Server, first);
    judged == Err(webpki::Error::CaUsedAsEndEntity)
}

/// True if both certificates are for one key.
pub(crate) fn have_one_key(one: &CertificateDer<'_>, other: &CertificateDer<'_>) -> bool {
    let key = |der: &CertificateDer<'_>| {
        let certificate = EndEntityCert::try_from(der).ok()?;
        Some(certificate.subject_public_key_info())
    };
    key(one).is_some_and(|known| key(other) == Some(known))
}

/// The one server that a certificate names. A certificate with two such names is refused, because a reader could mean
/// either.
///
/// # Errors
/// [`CertificateError::Unreadable`], [`CertificateError::NoIdentity`].
pub fn identity(leaf: &CertificateDer<'_>) -> Result<ServerIdentity, CertificateError> {
    let leaf = EndEntityCert::try_from(leaf).map_err(|_| CertificateError::Unreadable)?;
    let mut names = leaf.valid_uri_names().filter(|uri| uri.starts_with(SCHEME));
    match (names.next(), names.next()) {
        (Some(uri), None) => ServerIdentity::parse(uri).ok_or(CertificateError::NoIdentity),
        _ => Err(CertificateError::NoIdentity),
    }
}

fn refusal(error: &webpki::Error, now_seconds: u64) -> CertificateError {
    use webpki::Error;
    match error {
        Error::CertExpired { not_after, .. } => CertificateError::Expired {
            seconds: now_seconds.saturating_sub(not_after.as_secs()),
        },
        Error::CertNotValidYet { not_before, .. } => CertificateError::NotYet {
            seconds: not_before.as_secs().saturating_sub(now_seconds),
        },
        Error::UnknownIssuer
        | Error::InvalidSignatureForPublicKey
        | Error::MaximumPathBuildCallsExceeded
        | Error::MaximumPathDepthExceeded
        | Error::MaximumSignatureChecksExceeded => CertificateError::OtherAuthority,
        Error::RequiredEkuNotFoundContext(_) | Error::CaUsedAsEndEntity => CertificateError::Usage,
        _ => CertificateError::Unreadable,
    }
}

/// A length of time in its largest unit.
pub(crate) fn duration(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", seconds / 60),
        7200..172_800 => format!("{} h", seconds / 3600),
        _ => format!("{} days", seconds / 86_400),
    }
}

/// A time as people read it.
pub fn utc(seconds: u64) -> String {
    let time = i64::try_from(seconds).ok();
    let time = time.and_then(|seconds| time::OffsetDateTime::from_unix_timestamp(seconds).ok());
    let Some(time) = time else {
        return format!("{seconds} s since 1970");
    };
    let (hour, minute, second) = time.to_hms();
    let date = time.date();
    let (year, month, day) = (date.year(), u8::from(date.month()), date.day());
    format!("{year}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02} UTC")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::authority::{Authority, ServerKey};

    const NOW: u64 = 1_800_000_000;

    #[test]
    fn a_chain_is_refused_by_its_size_before_it_is_read() {
        let authority = Authority::create(0xab, NOW).unwrap();
        let key = ServerKey::create().unwrap().public();
        let leaf = authority.issue(ServerId(1), &key, NOW).unwrap();
        let root = authority.root();
        let judge = |leaf: &CertificateDer<'_>, intermediates: &[CertificateDer<'_>]| {
            let roots = std::slice::from_ref(root);
            verify(roots, leaf, intermediates, Usage::Client, NOW)
        };
        let four = vec![root.certificate().clone(); MAX_INTERMEDIATES + 1];
        assert!(judge(&leaf, &four[1..]).is_ok());
        let refused = judge(&leaf, &four).unwrap_err();
        assert_eq!(refused, CertificateError::TooMany { count: 4 });
        let sentence = refused.to_string();
        assert!(sentence.contains("at most 3 are read"), "{sentence}");

        let bytes = MAX_CERTIFICATE_BYTES + 1;
        let long = CertificateDer::from(vec![0x30; bytes]);
        let too_long = CertificateError::TooLong { bytes };
        let shown = [root.certificate().clone(), long.clone()];
        assert_eq!(judge(&leaf, &shown), Err(too_long.clone()));
        assert_eq!(judge(&long, &[]), Err(too_long.clone()));
        let sentence = too_long.to_string();
        assert!(sentence.contains("4097 bytes"), "{sentence}");
        let longest = CertificateDer::from(vec![0x30; bytes - 1]);
        assert!(judge(&leaf, &[longest]).is_ok());
    }

    #[test]
    fn an_identity_has_one_uri() {
        let identity = ServerIdentity {
            cluster: 0xab,
            server: ServerId(u128::MAX),
        };
        let uri = identity.to_string();
        let expected =
            "areo://000000000000000000000000000000ab/server/ffffffffffffffffffffffffffffffff";
        assert_eq!(uri, expected);
        assert_eq!(ServerIdentity::parse(&uri), Some(identity));
        let upper = uri.replace('a', "A");
        let longer = format!("{uri}/x");
        let host = uri.replace("areo://", "areo://x@");
        for wrong in [
            &uri[..uri.len() - 1],
            &upper,
            &longer,
            &host,
            "areo:///server/",
            "",
        ] {
            assert_eq!(ServerIdentity::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn lengths_of_time_are_shown_in_their_largest_unit() {
        let shown: Vec<String> = [59, 3600, 7200, 86_400 * 3].map(duration).into();
        assert_eq!(shown, ["59 s", "60 min", "2 h", "3 days"]);
    }
}
