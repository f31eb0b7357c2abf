//! The keys and certificates of a server, kept in the file `TRUST` of its data directory.
//!
//! The file is what a start needs before it has read anything from the cluster: the cluster's key, this server's own key with its
//! certificate, the trusted CAs, and the CA that issues. So a server that was off for longer than its certificate lasts makes itself a new
//! one, and a whole cluster that was off comes back.
//!
//! All that is secret in it but the cluster's key is sealed under that key. The file is for its user alone (0600), as all of the directory: who reads
//! it is a server of the cluster.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use areo_core::config::ServerId;
use areo_core::tlv::{self, MUST_UNDERSTAND, TlvError};
use areo_store::{Directory, DirectoryError};
use areo_trust::authority::{self, AuthorityError, ServerKey};
use areo_trust::certificate::{self, CertificateDer, ServerIdentity, Usage};
use areo_trust::key::AccessKey;
use areo_trust::operator::OperatorCertificate;
use areo_trust::protocol::JoinAnswer;
use areo_trust::registry::{AuthorityRecord, Foundation, FoundationError, RecordError};
use areo_trust::roots::{Roots, RootsError};
use areo_trust::secret::{self, NoRandomness, OpenError, Secret};
use areo_trust::tls::{Credentials, DefaultTimeProvider, Endpoint};
use bytes::BytesMut;
use zeroize::Zeroize;

use crate::error::ServeError;
pub(crate) use keeper::TrustKeeper;

pub(crate) mod joining;
mod keeper;
pub(crate) mod operator;

const CLUSTER_KEY: u16 = MUST_UNDERSTAND | 1;
const SERVER_KEY: u16 = MUST_UNDERSTAND | 2;
const CERTIFICATE: u16 = MUST_UNDERSTAND | 3;
const ROOTS: u16 = MUST_UNDERSTAND | 4;
const AUTHORITY: u16 = MUST_UNDERSTAND | 5;
const FOUNDATION: u16 = MUST_UNDERSTAND | 6;
/// A program that does not know it does without.
const KEPT: u16 = 7;

/// The keys and certificates of a server.
#[derive(Debug)]
pub(crate) struct Trust {
    pub(crate) cluster: u128,
    /// The key under which the cluster's secrets are sealed.
    pub(crate) cluster_key: Secret,
    /// The key of this server.
    key: ServerKey,
    /// The certificate for it, of the cluster's own CA.
    certificate: CertificateDer<'static>,
    /// The file has all of this.
    is_written: bool,
    /// The certificate that is shown instead, to all but servers that join. Not in the file.
    operator: Option<OperatorCertificate>,
    /// The CAs that count, as far as this server has read.
    pub(crate) roots: Roots,
    /// The CA that issues, as far as this server has read; `None` before it has read anything.
    pub(crate) authority: Option<AuthorityRecord>,
    /// The beginning of the log of trust, until the cluster has it.
    pub(crate) foundation: Option<Foundation>,
}

/// The contents of the file.
#[derive(Debug)]
pub(crate) struct TrustFile {
    pub(crate) trust: Trust,
    /// The CAs and keys by which callers are judged before the log was read again ([`areo_trust::registry::Registry::keep`]).
    pub(crate) kept: Option<Secret>,
}

/// A file of trust that cannot be used, or made.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    /// The identity says that there is one.
    #[error(
        "the file TRUST is missing, which has the keys of this server: put it back; without it this server cannot prove itself, so that \
         another one has to take its place (`areo server replace`)"
    )]
    Missing,
    /// The file cannot be read.
    #[error("{0}")]
    Directory(DirectoryError),
    /// The file cannot be written.
    #[error("the file TRUST cannot be written: {0}")]
    Write(io::Error),
    /// Its fields make no sense.
    #[error("the file TRUST cannot be read: {0}")]
    Fields(#[from] TlvError),
    /// Its sealed content does not open.
    #[error("the file TRUST cannot be read: {0}")]
    Sealed(#[from] OpenError),
    /// A record in it cannot be read.
    #[error("the file TRUST cannot be read: {0}")]
    Record(#[from] RecordError),
    /// The CAs in it cannot be read.
    #[error("the file TRUST cannot be read: {0}")]
    Roots(#[from] RootsError),
    /// A key or a certificate cannot be read or made.
    #[error(transparent)]
    Authority(#[from] AuthorityError),
    /// A key cannot be made.
    #[error(transparent)]
    NoRandomness(#[from] NoRandomness),
    /// The cluster cannot be founded.
    #[error(transparent)]
    Foundation(#[from] FoundationError),
    /// The certificate is due, and there is no CA to issue another one.
    #[error(
        "the certificate of this server is for another one or has expired, and it was never connected to its cluster to get another \
         one: remove the directory and let a new server join (`areo server --join`)"
    )]
    NoCertificate,
}

/// The trust of a cluster that is about to be made.
#[derive(Debug)]
pub(crate) struct NewTrust {
    cluster: u128,
    cluster_key: Secret,
    foundation: Foundation,
    key: AccessKey,
}

impl NewTrust {
    pub(crate) fn create(cluster: u128, now_seconds: u64) -> Result<NewTrust, TrustError> {
        let (foundation, key) = Foundation::create(cluster, now_seconds)?;
        Ok(NewTrust {
            cluster,
            cluster_key: Secret::random(&secret::system)?,
            foundation,
            key,
        })
    }

    /// The key of the administrator.
    pub(crate) fn administrator(&self) -> AccessKey {
        self.key.clone()
    }

    /// The trust of one of its first servers. Each has the foundation, because any of them may be the first that can write it down.
    pub(crate) fn of(&self, server: ServerId, now_seconds: u64) -> Result<Trust, TrustError> {
        let key = ServerKey::create()?;
        let authority = &self.foundation.authority;
        let certificate = issue(authority, self.cluster, server, (&key, now_seconds))?;
        Ok(Trust {
            cluster: self.cluster,
            cluster_key: self.cluster_key.clone(),
            key,
            certificate,
            operator: None,
            roots: Roots::new(authority.root().clone()),
            authority: Some(authority.clone()),
            foundation: Some(self.foundation.clone()),
            is_written: false,
        })
    }
}

fn issue(
    record: &AuthorityRecord,
    cluster: u128,
    server: ServerId,
    (key, now_seconds): (&ServerKey, u64),
) -> Result<CertificateDer<'static>, TrustError> {
    let authority = record.authority(cluster).ok_or(TrustError::NoCertificate)?;
    Ok(authority?.issue(server, &key.public(), now_seconds)?)
}

impl Trust {
    /// The trust of a server that was let in; none if the answer is for another server or another key.
    fn joined(
        (cluster, server): (u128, ServerId),
        key: ServerKey,
        answer: JoinAnswer,
    ) -> Option<Trust> {
        let trust = Trust {
            cluster,
            cluster_key: answer.cluster_key,
            key,
            certificate: answer.certificate,
            operator: None,
            roots: answer.roots,
            authority: None,
            foundation: None,
            is_written: false,
        };
        let meant = ServerIdentity { cluster, server };
        let is_meant = certificate::identity(&trust.certificate) == Ok(meant);
        let has_key = trust.endpoint().server_config().is_ok();
        (is_meant && has_key).then_some(trust)
    }

    /// This server's end of connections, by the clock of the machine. Its certificate goes with the CA that issues now.
    pub(crate) fn endpoint(&self) -> Endpoint {
        let issuing = self.roots.issuing();
        let own = Credentials::new(self.certificate.clone(), issuing, &self.key);
        Endpoint {
            cluster: self.cluster,
            roots: self.roots.clone(),
            credentials: Some(match &self.operator {
                Some(operator) => own.with_operator(operator),
                None => own,
            }),
            clock: Arc::new(DefaultTimeProvider),
        }
    }

    /// Issues the certificate of this server again if it is due, is of another CA than the one that issues, or names another server. True: it has a
    /// new one, which counts before it is written: a start without it issues another one, by the CA that the file has.
    pub(crate) fn renew(&mut self, server: ServerId, now_seconds: u64) -> Result<bool, TrustError> {
        let chain = [self.certificate.clone()];
        if self.names(server) && !authority::is_due(&chain, &self.roots, now_seconds) {
            return Ok(false);
        }
        let record = self.authority.as_ref().ok_or(TrustError::NoCertificate)?;
        self.certificate = issue(record, self.cluster, server, (&self.key, now_seconds))?;
        self.is_written = false;
        Ok(true)
    }

    fn names(&self, server: ServerId) -> bool {
        let named = certificate::identity(&self.certificate);
        named.is_ok_and(|named| named.server == server)
    }

    /// True if other servers take the certificate as that of this server now.
    fn counts(&self, server: ServerId, now_seconds: u64) -> bool {
        let (roots, usage) = (self.roots.all(), Usage::Server);
        let judged = certificate::verify(roots, &self.certificate, &[], usage, now_seconds);
        self.names(server) && judged.is_ok()
    }

    /// Has these CAs count, of which `authority` issues, once they are written down: the next start uses the written
    /// ones. Otherwise nothing changes.
    pub(crate) fn take_in(
        &mut self,
        (roots, authority): (Roots, Option<AuthorityRecord>),
        directory: &Directory,
        kept: Option<&Secret>,
    ) -> Result<(), TrustError> {
        let roots = std::mem::replace(&mut self.roots, roots);
        let authority = std::mem::replace(&mut self.authority, authority);
        let written = self.write(directory, kept);
        if written.is_err() {
            (self.roots, self.authority) = (roots, authority);
        }
        written
    }

    /// The cluster has its foundation, which the file need not have any more.
    pub(crate) fn drop_foundation(&mut self) {
        self.foundation = None;
        self.is_written = false;
    }

    /// The contents of the file in a directory of a server of this cluster.
    pub(crate) fn read(
        directory: &Directory,
        cluster: u128,
    ) -> Result<Option<TrustFile>, TrustError> {
        let bytes = directory.read_trust().map_err(TrustError::Directory)?;
        let bytes = bytes.map(|bytes| Secret::new(bytes.to_vec()));
        bytes
            .map(|bytes| Trust::decode(&bytes, cluster))
            .transpose()
    }

    /// Writes it down durably, with the CAs and keys that are kept for the next start.
    pub(crate) fn write(
        &mut self,
        directory: &Directory,
        kept: Option<&Secret>,
    ) -> Result<(), TrustError> {
        let written = directory.write_trust(self.encode(kept)?.expose());
        written.map_err(TrustError::Write)?;
        self.is_written = true;
        Ok(())
    }

    /// Writes it down if the file lacks something of it.
    pub(crate) fn write_missing(
        &mut self,
        directory: &Directory,
        kept: impl FnOnce() -> Option<Secret>,
    ) -> Result<(), TrustError> {
        match self.is_written {
            true => Ok(()),
            false => self.write(directory, kept().as_ref()),
        }
    }

    fn encode(&self, kept: Option<&Secret>) -> Result<Secret, TrustError> {
        let seal = |kind, content: &Secret| {
            let purpose = purpose(self.cluster, kind);
            secret::seal(&self.cluster_key, &purpose, content, &secret::system)
        };
        let mut out = BytesMut::new();
        let key = seal(SERVER_KEY, &self.key.private())?;
        tlv::put_field(&mut out, SERVER_KEY, &key);
        tlv::put_field(&mut out, CERTIFICATE, &self.certificate);
        tlv::put_field(&mut out, ROOTS, &self.roots.encode());
        if let Some(authority) = &self.authority {
            tlv::put_field(&mut out, AUTHORITY, &seal(AUTHORITY, &authority.encode())?);
        }
        if let Some(foundation) = &self.foundation {
            let foundation = seal(FOUNDATION, &foundation.encode())?;
            tlv::put_field(&mut out, FOUNDATION, &foundation);
        }
        if let Some(kept) = kept {
            tlv::put_field(&mut out, KEPT, &seal(KEPT, kept)?);
        }
        // Last, in a buffer that does not grow, so that no copy of it is left behind.
        let bytes = out.len() + tlv::HEAD_BYTES + secret::SECRET_BYTES;
        let mut file = BytesMut::with_capacity(bytes);
        file.extend_from_slice(&out);
        tlv::put_field(&mut file, CLUSTER_KEY, self.cluster_key.expose());
        let written = Secret::new(file.to_vec());
        file.as_mut().zeroize();
        Ok(written)
    }

    fn decode(bytes: &Secret, cluster: u128) -> Result<TrustFile, TrustError> {
        let (mut cluster_key, mut key, mut certificate) = (None, None, None);
        let (mut roots, mut authority, mut foundation, mut kept) = (None, None, None, None);
        for field in tlv::fields(bytes.expose()) {
            let (kind, value) = field?;
            match kind {
                CLUSTER_KEY => {
                    let value: [u8; secret::SECRET_BYTES] = tlv::number(kind, value)?;
                    cluster_key = Some(Secret::new(value.to_vec()));
                }
                SERVER_KEY => key = Some(value),
                CERTIFICATE => certificate = Some(CertificateDer::from(value.to_vec())),
                ROOTS => roots = Some(Roots::decode(value)?),
                AUTHORITY => authority = Some(value),
                FOUNDATION => foundation = Some(value),
                KEPT => kept = Some(value),
                _ => tlv::unknown(kind)?,
            }
        }
        let missing = |kind| TlvError::Missing { kind };
        let cluster_key = cluster_key.ok_or(missing(CLUSTER_KEY))?;
        let open = |kind, sealed| secret::open(&cluster_key, &purpose(cluster, kind), sealed);
        let key = open(SERVER_KEY, key.ok_or(missing(SERVER_KEY))?)?;
        let authority = authority
            .map(|sealed| open(AUTHORITY, sealed))
            .transpose()?;
        let foundation = foundation
            .map(|sealed| open(FOUNDATION, sealed))
            .transpose()?;
        let kept = kept.map(|sealed| open(KEPT, sealed)).transpose()?;
        let trust = Trust {
            cluster,
            key: ServerKey::load(&key)?,
            certificate: certificate.ok_or(missing(CERTIFICATE))?,
            is_written: true,
            operator: None,
            roots: roots.ok_or(missing(ROOTS))?,
            authority: authority
                .as_ref()
                .map(AuthorityRecord::decode)
                .transpose()?,
            foundation: foundation.as_ref().map(Foundation::decode).transpose()?,
            cluster_key,
        };
        Ok(TrustFile { trust, kept })
    }
}

/// The place of a secret in the file, which it is sealed for.
fn purpose(cluster: u128, kind: u16) -> String {
    format!("trust file {cluster:032x} {}", kind & !MUST_UNDERSTAND)
}

/// The trust of a server that starts in this directory, if its cluster has any. A certificate that is due, or was issued for the server whose place this one
/// takes, is issued again. Where that is not possible, or it cannot be written, a server with a certificate that counts starts all the same: both are tried again
/// while it runs.
pub(crate) fn of_start(
    directory: &Directory,
    (cluster, server): (u128, ServerId),
    (is_expected, now_seconds): (bool, u64),
) -> Result<Option<TrustFile>, TrustError> {
    let Some(mut file) = Trust::read(directory, cluster)? else {
        return if is_expected {
            Err(TrustError::Missing)
        } else {
            Ok(None)
        };
    };
    match file.trust.renew(server, now_seconds) {
        Ok(_) => {}
        Err(error) if file.trust.counts(server, now_seconds) => {
            tracing::warn!(%error, "the certificate of this server is due, and is not renewed yet");
        }
        Err(error) => return Err(error),
    }
    let written = file.trust.write_missing(directory, || file.kept.clone());
    if let Err(error) = written {
        tracing::warn!(%error, "the renewed certificate of this server is used, and is not written down yet");
    }
    Ok(Some(file))
}

/// Adds the path of an unusable file of trust to its error.
pub(crate) fn at(path: &Path) -> impl FnOnce(TrustError) -> ServeError {
    let path = path.to_owned();
    move |error| ServeError::Trust { path, error }
}

/// Seconds since 1970 by the clock of the machine.
pub(crate) fn now_seconds() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.unwrap_or_default().as_secs()
}

#[cfg(test)]
mod tests;
