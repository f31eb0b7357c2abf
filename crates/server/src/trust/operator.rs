//! The certificate of a server by an operator's own PKI, from two files that are read again for as long as the server runs.
//!
//! A thread reads the files every second: their disk may be one of the network, which must not hold the server up. The contents are compared, not
//! names or times, so that a rename, a link that is changed and a file that is written in place are all the same. The certificate in use stays until
//! another one is good, so that two files that are changed one after the other are no harm. If the one in use counts no longer, the server
//! goes back to the certificate of the cluster's own CA, which it always has: a renewal that was forgotten stops no cluster.

use std::fs::{Metadata, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use areo_core::config::ServerId;
use areo_trust::certificate::{ServerIdentity, utc};
use areo_trust::operator::{OperatorCertificate, OperatorError};
use areo_trust::roots::Roots;
use areo_trust::secret::Secret;
use rustix::fs::OFlags;
use rustix::process::geteuid;
use tokio::sync::watch;

use super::Trust;

/// The pause between two looks at the files.
pub(crate) const PERIOD: Duration = Duration::from_secs(1);
/// The time, in seconds, after which a certificate is judged again that has not changed: it may have expired.
const AGAIN_SECONDS: u64 = 60;
/// The longest file that is read.
const MAX_FILE_BYTES: usize = 64 << 10;
/// Rights of users that are neither the owner nor in the group, and rights of the group to write.
const OF_OTHERS: u32 = 0o027;
/// Rights of all but the owner.
const OF_GROUP_AND_OTHERS: u32 = 0o077;
const ROOT: u32 = 0;

/// The files with the certificate of a server, and its key; they may be one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateFiles {
    /// The certificate in PEM, and the CAs between it and the root.
    pub certificate: PathBuf,
    /// Its private key in PEM.
    pub key: PathBuf,
}

/// Files by which a server has no certificate.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CertificateFileError {
    /// A file cannot be read.
    #[error("cannot read {}: {reason}", .path.display())]
    Unreadable {
        path: PathBuf,
        /// The reason of the system.
        reason: String,
    },
    /// The file is longer than any with a certificate.
    #[error("{} is longer than 64 KiB: name a file with a certificate, or its key, alone", .path.display())]
    TooLong { path: PathBuf },
    /// Other users may read the private key.
    #[error(
        "{} has a private key, and other users may read it (mode {mode:04o}): chmod 600 it; one that belongs to root may be 640",
        .path.display()
    )]
    Open {
        path: PathBuf,
        /// The permission bits of the file.
        mode: u32,
    },
    /// The private key belongs to another user.
    #[error("{} has a private key, and belongs to another user: it must be that of the server's user, or of root", .path.display())]
    OtherOwner { path: PathBuf },
    /// The contents make no certificate of this server.
    #[error("{}: {error}", .path.display())]
    Content { path: PathBuf, error: OperatorError },
    /// The cluster has no keys.
    #[error(
        "the cluster of this server has no keys, and its connections are plain: start the server without a certificate, or begin a cluster \
         that has keys (`areo server --init --tls`)"
    )]
    NoKeys,
    /// There is no server yet that a certificate could name.
    #[error(
        "a server that is made now gets its id now, and no certificate can name it yet: start it without a certificate first, have one issued \
         for the id that `areo status --json` shows, and start it again"
    )]
    NoServer,
}

impl CertificateFileError {
    /// True if the files are well made, and the certificate is one that this cluster does not take.
    pub(crate) fn is_refusal(&self) -> bool {
        matches!(
            self.content(),
            Some(
                OperatorError::OtherName { .. }
                    | OperatorError::Expired { .. }
                    | OperatorError::NotYet { .. }
                    | OperatorError::OtherAuthority
                    | OperatorError::Refused(_)
            )
        )
    }

    fn content(&self) -> Option<&OperatorError> {
        match self {
            CertificateFileError::Content { error, .. } => Some(error),
            _ => None,
        }
    }

    /// True if no CA that is trusted issued the certificate.
    fn is_distrust(&self) -> bool {
        self.content() == Some(&OperatorError::OtherAuthority)
    }

    /// True if the certificate is that of one of these servers.
    fn is_of_one_of(&self, cluster: u128, servers: &[ServerId]) -> bool {
        match self.content() {
            Some(OperatorError::OtherName {
                found: Some(found), ..
            }) => found.cluster == cluster && servers.contains(&found.server),
            _ => false,
        }
    }
}

/// Contents of the files, or the reason why there are none.
type Reading = Result<Arc<Contents>, CertificateFileError>;

#[derive(Debug, PartialEq, Eq)]
struct Contents {
    certificate: Vec<u8>,
    key: Secret,
}

impl CertificateFiles {
    fn read(&self) -> Reading {
        let key = Secret::new(content(&self.key, is_private)?);
        let certificate = content(&self.certificate, |_, _| Ok(()))?;
        Ok(Arc::new(Contents { certificate, key }))
    }

    fn error(&self, error: OperatorError) -> CertificateFileError {
        let path = match error.is_of_key() {
            true => &self.key,
            false => &self.certificate,
        };
        let path = path.clone();
        CertificateFileError::Content { path, error }
    }
}

/// The content of a file whose owner and mode are good.
fn content(
    path: &Path,
    check: impl FnOnce(&Path, &Metadata) -> Result<(), CertificateFileError>,
) -> Result<Vec<u8>, CertificateFileError> {
    let unreadable = |error: io::Error| CertificateFileError::Unreadable {
        path: path.to_owned(),
        reason: error.to_string(),
    };
    // A pipe without a writer is opened at once, and refused.
    let flags = OFlags::NONBLOCK.bits();
    let flags = i32::try_from(flags).expect("flags of the system");
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(flags)
        .open(path)
        .map_err(unreadable)?;
    let metadata = file.metadata().map_err(unreadable)?;
    if !metadata.is_file() {
        return Err(unreadable(io::Error::other("it is no regular file")));
    }
    check(path, &metadata)?;
    // A buffer that does not grow leaves no copy of a key behind.
    let mut bytes = Vec::with_capacity(MAX_FILE_BYTES + 1);
    let read = file.take(MAX_FILE_BYTES as u64 + 1).read_to_end(&mut bytes);
    read.map_err(unreadable)?;
    if bytes.len() > MAX_FILE_BYTES {
        let path = path.to_owned();
        return Err(CertificateFileError::TooLong { path });
    }
    Ok(bytes)
}

/// Refuses a private key that other users have. A group may read one that belongs to root: so an administrator gives it to a service.
fn is_private(path: &Path, metadata: &Metadata) -> Result<(), CertificateFileError> {
    let path = path.to_owned();
    let (owner, mode) = (metadata.uid(), metadata.mode() & 0o7777);
    if owner != ROOT && owner != geteuid().as_raw() {
        return Err(CertificateFileError::OtherOwner { path });
    }
    let forbidden = match owner {
        ROOT => OF_OTHERS,
        _ => OF_GROUP_AND_OTHERS,
    };
    match mode & forbidden {
        0 => Ok(()),
        _ => Err(CertificateFileError::Open { path, mode }),
    }
}

/// The files of a server that runs, and the state of the certificate in them.
pub(crate) struct Follower {
    files: CertificateFiles,
    needed: ServerIdentity,
    readings: watch::Receiver<Reading>,
    /// The contents that the files had at the start, until the cluster's CAs are known.
    at_start: Option<Arc<Contents>>,
    /// The contents that the certificate in use was made of.
    used: Option<Arc<Contents>>,
    /// The circumstances of the last look.
    looked: Option<Looked>,
    /// The reason for which the present contents are not used.
    problem: Option<Problem>,
    is_late: bool,
}

struct Problem {
    error: CertificateFileError,
    /// A problem is logged if it is still there at the next look: of two files one is changed first.
    is_logged: bool,
}

/// The circumstances of a look at the files. One in the same circumstances comes to the same.
struct Looked {
    reading: Reading,
    roots: Roots,
    at_seconds: u64,
}

/// Reads the files of a server that starts, which uses the certificate in them, and follows them from then on.
///
/// A CA that this server does not trust may be trusted by the cluster meanwhile: that is judged when the server has read on ([`Follower::confirm`]). A
/// certificate of the server whose place this one takes by itself is not used, and stops no start.
pub(crate) fn of_start(
    files: &CertificateFiles,
    (trust, server): (&mut Trust, ServerId),
    predecessors: &[ServerId],
    now_seconds: u64,
) -> Result<Follower, CertificateFileError> {
    let reading = files.read();
    let at_start = reading.as_ref().ok().cloned();
    let (sender, readings) = watch::channel(reading);
    let cluster = trust.cluster;
    let mut follower = Follower {
        files: files.clone(),
        needed: ServerIdentity { cluster, server },
        readings,
        at_start,
        used: None,
        looked: None,
        problem: None,
        is_late: false,
    };
    match follower.certificate(&trust.roots, now_seconds) {
        Ok((certificate, contents)) => follower.take(trust, certificate, contents),
        Err(error) if error.is_distrust() => {}
        Err(error) if error.is_of_one_of(cluster, predecessors) => follower.log(error),
        Err(error) => return Err(error),
    }
    follower.report_if_late(trust, now_seconds);
    if let Err(error) = read_on(files.clone(), sender) {
        tracing::error!(%error, "no thread can be had: the certificate files are not read again");
    }
    Ok(follower)
}

/// Reads the files again and again, on a thread that ends when the receiver is gone.
fn read_on(
    files: CertificateFiles,
    sender: watch::Sender<Reading>,
) -> io::Result<thread::JoinHandle<()>> {
    let read = move || {
        while !sender.is_closed() {
            thread::sleep(PERIOD);
            let reading = files.read();
            sender.send_if_modified(|before| {
                let is_new = *before != reading;
                if is_new {
                    *before = reading;
                }
                is_new
            });
        }
    };
    thread::Builder::new()
        .name("certificate".into())
        .spawn(read)
}

impl Follower {
    /// The certificate in the present contents.
    fn certificate(
        &self,
        roots: &Roots,
        now_seconds: u64,
    ) -> Result<(OperatorCertificate, Arc<Contents>), CertificateFileError> {
        let contents = self.readings.borrow().clone()?;
        let certificate = OperatorCertificate::read(&contents.certificate, &contents.key);
        let certificate = certificate.map_err(|error| self.files.error(error))?;
        let judged = certificate.judge(self.needed, roots, now_seconds);
        judged.map_err(|error| self.files.error(error))?;
        Ok((certificate, contents))
    }

    /// Judges the certificate that the files had at the start by the CAs that the cluster trusts, once. Files that were changed since then end no
    /// server.
    pub(crate) fn confirm(
        &mut self,
        roots: &Roots,
        now_seconds: u64,
    ) -> Result<(), CertificateFileError> {
        let at_start = self.at_start.take();
        let present = self.readings.borrow().as_ref().ok().cloned();
        if at_start.is_none() || present != at_start {
            return Ok(());
        }
        match self.certificate(roots, now_seconds) {
            Err(error) if error.is_distrust() => Err(error),
            _ => Ok(()),
        }
    }

    /// Uses another certificate if the files have a good one, and none that counts no longer. True: it is another one than before.
    pub(crate) fn look(&mut self, trust: &mut Trust, now_seconds: u64) -> bool {
        if !self.is_due(&trust.roots, now_seconds) {
            return false;
        }
        let counts = match &trust.operator {
            Some(certificate) => certificate.judge(self.needed, &trust.roots, now_seconds),
            None => Ok(()),
        };
        let has_ended = counts.is_err();
        if let Err(error) = counts {
            let error = self.files.error(error);
            tracing::error!(%error, "the certificate of this server counts no longer: it shows that of the cluster's CA until there is another one");
            (trust.operator, self.used) = (None, None);
            let is_logged = true;
            self.problem = Some(Problem { error, is_logged });
        }
        let is_new = !self.is_used() && self.use_present(trust, now_seconds);
        self.report_if_late(trust, now_seconds);
        self.looked = Some(Looked {
            reading: self.readings.borrow().clone(),
            roots: trust.roots.clone(),
            at_seconds: now_seconds,
        });
        has_ended || is_new
    }

    /// True if a look may come to something else than the last one.
    fn is_due(&self, roots: &Roots, now_seconds: u64) -> bool {
        let is_unlogged = |problem: &Problem| !problem.is_logged;
        let Some(before) = &self.looked else {
            return true;
        };
        self.problem.as_ref().is_some_and(is_unlogged)
            || before.at_seconds.abs_diff(now_seconds) >= AGAIN_SECONDS
            || before.roots != *roots
            || before.reading != *self.readings.borrow()
    }

    /// True if the certificate in use is that of the present contents.
    fn is_used(&mut self) -> bool {
        let is_used = match (&*self.readings.borrow(), &self.used) {
            (Ok(present), Some(used)) => present == used,
            _ => false,
        };
        if is_used {
            self.problem = None;
        }
        is_used
    }

    /// Uses the certificate of the present contents if it is good.
    fn use_present(&mut self, trust: &mut Trust, now_seconds: u64) -> bool {
        match self.certificate(&trust.roots, now_seconds) {
            Ok((certificate, contents)) => {
                self.take(trust, certificate, contents);
                true
            }
            Err(error) => {
                self.report(error);
                false
            }
        }
    }

    fn take(
        &mut self,
        trust: &mut Trust,
        certificate: OperatorCertificate,
        contents: Arc<Contents>,
    ) {
        let until = utc(certificate.validity(&trust.roots).until_seconds);
        let file = self.files.certificate.display();
        tracing::info!(%file, until, "this server shows the certificate of its file");
        trust.operator = Some(certificate);
        (self.used, self.problem, self.is_late) = (Some(contents), None, false);
    }

    /// Logs a problem that is there for the second time, once.
    fn report(&mut self, error: CertificateFileError) {
        match &self.problem {
            Some(problem) if problem.error == error && problem.is_logged => {}
            Some(problem) if problem.error == error => self.log(error),
            _ => {
                let is_logged = false;
                self.problem = Some(Problem { error, is_logged });
            }
        }
    }

    fn log(&mut self, error: CertificateFileError) {
        tracing::warn!(%error, "the certificate files cannot be used, and this server keeps the certificate that it has");
        let is_logged = true;
        self.problem = Some(Problem { error, is_logged });
    }

    /// Logs once that a certificate is about to expire.
    fn report_if_late(&mut self, trust: &Trust, now_seconds: u64) {
        let Some(certificate) = &trust.operator else {
            return;
        };
        if !self.is_late && certificate.is_late(&trust.roots, now_seconds) {
            self.is_late = true;
            let until = utc(certificate.validity(&trust.roots).until_seconds);
            let file = self.files.certificate.display();
            tracing::warn!(%file, until, "the certificate of this server is about to expire: put a renewed one, and its key, in the place of the files");
        }
    }
}

#[cfg(test)]
mod tests;
