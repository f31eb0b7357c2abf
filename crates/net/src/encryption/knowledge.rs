//! What a process knows of the cluster that it connects to: its CAs, or the digest of one.

use std::sync::{Arc, RwLock};

use areo_trust::certificate::{CertificateError, Usage};
use areo_trust::roots::{RootDigest, Roots};
use areo_trust::tls::{Endpoint, TimeProvider, joining_config};
use tokio_rustls::rustls::Error;
use tokio_rustls::rustls::pki_types::CertificateDer;

use super::{Current, Tls};

/// The certificates that count for a process.
#[derive(Clone, Debug)]
pub(super) enum Knowledge {
    /// Those of a cluster.
    Cluster(Endpoint),
    /// Those of a CA with this digest, which the other end shows itself.
    Digest {
        digest: RootDigest,
        clock: Arc<dyn TimeProvider>,
    },
}

impl Knowledge {
    pub(super) fn endpoint(&self) -> Option<&Endpoint> {
        match self {
            Knowledge::Cluster(endpoint) => Some(endpoint),
            Knowledge::Digest { .. } => None,
        }
    }

    pub(super) fn clock(&self) -> &Arc<dyn TimeProvider> {
        match self {
            Knowledge::Cluster(endpoint) => &endpoint.clock,
            Knowledge::Digest { clock, .. } => clock,
        }
    }

    /// True if certificates that count by this may not count at that end. A root that is added, or issues from now on, takes trust from none.
    pub(super) fn has_more_than(&self, end: &Endpoint) -> bool {
        match self {
            Knowledge::Cluster(before) => {
                let stays = |root| end.roots.all().contains(root);
                before.cluster != end.cluster || !before.roots.all().iter().all(stays)
            }
            // By a digest servers of any cluster count.
            Knowledge::Digest { .. } => true,
        }
    }

    /// Judges certificates again that the other end showed. By a digest they are judged once, in the handshake.
    pub(super) fn judge(
        &self,
        shown: &[CertificateDer<'_>],
        usage: Usage,
    ) -> Result<(), CertificateError> {
        match self {
            Knowledge::Cluster(endpoint) => endpoint.judge(shown, usage).map(|_| ()),
            Knowledge::Digest { .. } => Ok(()),
        }
    }
}

impl Tls {
    /// Connections of a caller that knows nothing but the digest of a CA, from a join token or a cluster file: to any server that shows this
    /// CA and a certificate of it, of whichever cluster. The caller learns more from the server ([`Tls::trust`]).
    pub fn of_digest(digest: RootDigest, clock: Arc<dyn TimeProvider>) -> Tls {
        let error = "this process knows nothing but the digest of a CA, and accepts no connection";
        Tls::from(Current {
            calling: joining_config(digest, Arc::clone(&clock)),
            called: Err(Error::General(error.to_owned())),
            known: Knowledge::Digest { digest, clock },
            changes: 0,
            bearer: None,
            verifier: None,
        })
    }

    /// From now on these CAs count, and the servers of this cluster alone. A caller that knew a digest alone knows them by this.
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
            Knowledge::Digest { clock, .. } => Ok(Endpoint {
                cluster,
                roots,
                credentials: None,
                clock: Arc::clone(clock),
            }),
        })
    }

    /// The CA that issued the certificate of this process, if it is one that it trusts.
    pub fn issuer(&self) -> Option<RootDigest> {
        self.current().known.endpoint()?.issuer()
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
