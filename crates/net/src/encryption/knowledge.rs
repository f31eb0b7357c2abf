//! A process's knowledge of the cluster that it connects to: its CAs, or the digest of one.

use std::sync::{Arc, RwLock};

use areo_trust::authority::PublicKey;
use areo_trust::certificate::{CertificateError, Usage};
use areo_trust::roots::{Root, RootDigest, Roots};
use areo_trust::tls::{Endpoint, TimeProvider, joining_config, proving_config};
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::{ClientConfig, Error};

use super::{Current, Tls};

/// The certificates that count for a process.
#[derive(Clone, Debug)]
pub(super) enum Knowledge {
    /// The CAs of a cluster, with its certificates.
    Cluster(Endpoint),
    /// Those that the handshake takes: the CAs of the cluster are not known yet.
    NoRoots { clock: Arc<dyn TimeProvider> },
}

impl Knowledge {
    pub(super) fn endpoint(&self) -> Option<&Endpoint> {
        match self {
            Knowledge::Cluster(endpoint) => Some(endpoint),
            Knowledge::NoRoots { .. } => None,
        }
    }

    pub(super) fn clock(&self) -> &Arc<dyn TimeProvider> {
        match self {
            Knowledge::Cluster(endpoint) => &endpoint.clock,
            Knowledge::NoRoots { clock } => clock,
        }
    }

    /// True if certificates that count by this may not count at that end. A root that is added, or issues from now on, takes trust from none.
    pub(super) fn has_more_than(&self, end: &Endpoint) -> bool {
        match self {
            Knowledge::Cluster(before) => {
                let stays = |root| end.roots.all().contains(root);
                before.cluster != end.cluster || !before.roots.all().iter().all(stays)
            }
            // Servers of any cluster count.
            Knowledge::NoRoots { .. } => true,
        }
    }

    /// Judges certificates again that the other end showed. Without roots they are judged once, in the handshake.
    pub(super) fn judge(
        &self,
        shown: &[CertificateDer<'_>],
        usage: Usage,
    ) -> Result<(), CertificateError> {
        match self {
            Knowledge::Cluster(endpoint) => endpoint.judge(shown, usage).map(|_| ()),
            Knowledge::NoRoots { .. } => Ok(()),
        }
    }
}

impl Tls {
    /// Connections of a caller that knows nothing but the digest of a CA, from a join token or a cluster file: to any server that shows this
    /// CA and a certificate of it, of whichever cluster. The caller learns more from the server ([`Tls::trust`]).
    pub fn of_digest(digest: RootDigest, clock: Arc<dyn TimeProvider>) -> Tls {
        let calling = joining_config(digest, Arc::clone(&clock));
        Tls::of_caller(calling, Knowledge::NoRoots { clock })
    }

    /// Connections to any server, with any certificate: for a caller that proves a key, and knows the server by its proof of the same key on
    /// the same session.
    pub fn of_prover(clock: Arc<dyn TimeProvider>) -> Tls {
        let calling = proving_config(Arc::clone(&clock));
        Tls::of_caller(calling, Knowledge::NoRoots { clock })
    }

    fn of_caller(calling: Result<Arc<ClientConfig>, Error>, known: Knowledge) -> Tls {
        let error = "this process has no certificate, and accepts no connection";
        Tls::from(Current {
            calling,
            called: Err(Error::General(error.to_owned())),
            known,
            issuer: None,
            changes: 0,
            bearer: None,
            verifier: None,
        })
    }

    /// Trusts these CAs, and the servers of this cluster alone, from the next connection on. A caller that knew only a digest knows the CAs from then on.
    ///
    /// # Errors
    /// The configuration cannot be made. Nothing is changed.
    pub fn trust(&self, cluster: u128, roots: &Roots) -> Result<(), Error> {
        let roots = roots.clone();
        self.know(|known| match known {
            Knowledge::Cluster(endpoint) => Ok(Endpoint {
                cluster,
                roots,
                ..endpoint.clone()
            }),
            Knowledge::NoRoots { clock } => Ok(Endpoint {
                cluster,
                roots,
                credentials: None,
                clock: Arc::clone(clock),
            }),
        })
    }

    /// The CAs by which this process judges certificates, the one that issues first.
    pub fn trusted(&self) -> Vec<RootDigest> {
        let roots = self.roots();
        let digests = roots.map(|roots| roots.all().iter().map(Root::digest).collect());
        digests.unwrap_or_default()
    }

    /// The CAs and their certificates. `None`: this process knows none.
    pub fn roots(&self) -> Option<Roots> {
        let current = self.current();
        let endpoint = current.known.endpoint();
        endpoint.map(|endpoint| endpoint.roots.clone())
    }

    /// Judges a server by this process's knowledge: by the certificates that it showed, or by others for the same
    /// key. A process that knows no CA takes any.
    pub(crate) fn judge(
        &self,
        shown: &[CertificateDer<'_>],
        also: &[CertificateDer<'_>],
    ) -> Result<(), CertificateError> {
        match self.current().known.endpoint() {
            Some(endpoint) => endpoint.judge_either(shown, also).map(|_| ()),
            None => Ok(()),
        }
    }

    /// The key of the certificate of this process.
    pub fn public_key(&self) -> Option<PublicKey> {
        self.current().known.endpoint()?.public_key()
    }

    /// The CA that issued the certificate of this process, if it is one that it trusts.
    pub fn issuer(&self) -> Option<RootDigest> {
        self.current().issuer
    }

    /// The last second, since 1970, of the certificate of this process.
    pub fn expires_seconds(&self) -> Option<u64> {
        self.current().known.endpoint()?.expires_seconds()
    }
}

impl From<Current> for Tls {
    fn from(current: Current) -> Tls {
        Tls {
            current: Arc::new(RwLock::new(Arc::new(current))),
            renewal: Arc::default(),
        }
    }
}
