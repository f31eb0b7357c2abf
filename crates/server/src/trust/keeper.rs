//! Keeps the trust of a server up with the log in the root domain, for as long as it runs.
//!
//! Every few seconds it reads on: a key that is revoked, a CA that is added or dropped, counts at this server from then on. A certificate
//! is issued again when a third of its life is left, or when another CA issues. The file in the data directory follows. A certificate of an operator's
//! own PKI is shown as its files have it.

use std::cell::RefCell;
use std::convert::Infallible;
use std::rc::Rc;
use std::time::Duration;

use areo_core::config::ServerId;
use areo_core::manager::Root;
use areo_net::Tls;
use areo_net::env::NetEnv;
use areo_store::Directory;
use areo_trust::registry::{Actor, FoundError, Origin, Registry, View};

use super::operator::{self, CertificateFileError, Follower};
use super::{Trust, TrustError, TrustFile, now_seconds};
use crate::registration::RootAccess;

/// The pause between two looks at the log. A revoked key counts for this time at most while the root domain answers.
const PERIOD: Duration = Duration::from_secs(2);
/// The pause after a look that failed.
const SOON: Duration = Duration::from_millis(100);
/// The deadline of one look.
const ATTEMPT: Duration = Duration::from_secs(5);

/// The trust of a server that runs.
pub(crate) struct TrustKeeper {
    server: ServerId,
    trust: RefCell<Trust>,
    directory: Rc<Directory>,
    tls: Tls,
    registry: Rc<Registry>,
    /// The certificate is not renewed, or not written, for this reason.
    unrenewed: LoggedReason,
    /// The files of an operator's own certificate, if the server has any.
    follower: Option<RefCell<Follower>>,
}

/// A reason for which something does not work, and that is logged once.
#[derive(Default)]
struct LoggedReason(RefCell<Option<String>>);

impl LoggedReason {
    /// True if the reason is another one than before. `None`: it works.
    fn is_news(&self, reason: Option<String>) -> bool {
        let mut known = self.0.borrow_mut();
        let is_news = reason.is_some() && *known != reason;
        *known = reason;
        is_news
    }
}

/// A look at the log of trust that came to nothing.
enum LookError {
    /// The log cannot be read, or its records cannot be written down: another look may succeed.
    Later(String),
    /// The cluster does not trust the certificate with which this server was started.
    Distrusted(CertificateFileError),
}

impl TrustKeeper {
    pub(crate) fn new(
        (file, follower): (TrustFile, Option<Follower>),
        directory: Rc<Directory>,
        server: ServerId,
    ) -> Rc<TrustKeeper> {
        let TrustFile { trust, kept } = file;
        let registry = Registry::new(trust.cluster, trust.cluster_key.clone());
        let tls = Tls::new(trust.endpoint());
        let recalled = kept.as_ref().map(|kept| registry.recall(kept));
        if let Some(Err(error)) = recalled {
            tracing::warn!(%error, "keys that were kept in TRUST cannot be read, so that callers wait for the log of trust");
        }
        if let Some(view) = registry.view() {
            tls.verify_by(view.verifier.clone());
        }
        Rc::new(TrustKeeper {
            follower: follower.map(RefCell::new),
            server,
            tls,
            registry: Rc::new(registry),
            unrenewed: LoggedReason::default(),
            trust: RefCell::new(trust),
            directory,
        })
    }

    /// The certificates of this server on all of its connections.
    pub(crate) fn tls(&self) -> &Tls {
        &self.tls
    }

    /// The trust of the cluster as far as it was read, for those who answer callers.
    pub(crate) fn registry(&self) -> Rc<Registry> {
        Rc::clone(&self.registry)
    }

    /// Reads on in the log again and again. Ends if the cluster does not trust the certificate with which this server was started.
    pub(crate) async fn keep(&self, root: &RootAccess) -> CertificateFileError {
        let (mut generation, mut pause) = (None, SOON);
        let behind = LoggedReason::default();
        loop {
            let read = self.read_on(&root.within(ATTEMPT), generation).await;
            pause = match read {
                Ok(read) => {
                    behind.is_news(None);
                    generation = Some(read);
                    PERIOD
                }
                Err(LookError::Distrusted(error)) => return error,
                Err(LookError::Later(reason)) => match behind.is_news(Some(reason.clone())) {
                    true => {
                        tracing::info!(%reason, "this server has not taken in the log of trust, and tries again");
                        SOON
                    }
                    false => (pause * 2).min(PERIOD),
                },
            };
            tokio::time::sleep(pause).await;
        }
    }

    /// Looks at the files of the operator's certificate again and again. Never returns.
    pub(crate) async fn follow(&self) -> Infallible {
        let Some(follower) = &self.follower else {
            return std::future::pending().await;
        };
        loop {
            tokio::time::sleep(operator::PERIOD).await;
            self.look(follower);
        }
    }

    fn look(&self, follower: &RefCell<Follower>) {
        let mut trust = self.trust.borrow_mut();
        if follower.borrow_mut().look(&mut trust, now_seconds()) {
            self.show(&trust);
        }
    }

    async fn read_on(&self, root: &Root<NetEnv>, before: Option<u32>) -> Result<u32, LookError> {
        // With a certificate that the others do not take nothing could be read. A server that cannot issue one may still read which CA does.
        self.renew();
        self.found(root).await.map_err(LookError::Later)?;
        let view = self.registry.refresh(root).await;
        let view = view.map_err(|error| LookError::Later(error.to_string()))?;
        if before != Some(view.generation) {
            self.confirm(&view)?;
            let taken = self.take(&view);
            taken.map_err(|error| LookError::Later(error.to_string()))?;
        }
        Ok(view.generation)
    }

    /// Judges the certificate of the operator with which this server was started, once.
    fn confirm(&self, view: &View) -> Result<(), LookError> {
        let Some(follower) = &self.follower else {
            return Ok(());
        };
        let confirmed = follower.borrow_mut().confirm(&view.roots, now_seconds());
        confirmed.map_err(LookError::Distrusted)
    }

    /// Writes the foundation of the cluster to the log of trust, its first CA and the key of its first administrator,
    /// if this server still has to do that.
    async fn found(&self, root: &Root<NetEnv>) -> Result<(), String> {
        let foundation = self.trust.borrow().foundation.clone();
        let Some(foundation) = foundation else {
            return Ok(());
        };
        let origin = Origin {
            by: Actor::Founder,
            address: String::new(),
            now_seconds: now_seconds(),
        };
        match self.registry.found(root, &foundation, &origin).await {
            Ok(()) => {}
            Err(error @ FoundError::Other { .. }) => {
                tracing::error!(%error, "the cluster was founded by another server");
                return Err(error.to_string());
            }
            Err(error) => return Err(error.to_string()),
        }
        let mut trust = self.trust.borrow_mut();
        trust.drop_foundation();
        let written = trust.write_missing(&self.directory, || self.registry.keep());
        written.map_err(|error| error.to_string())
    }

    /// Takes in the records of the log.
    fn take(&self, view: &View) -> Result<(), TrustError> {
        self.tls.verify_by(view.verifier.clone());
        let mut trust = self.trust.borrow_mut();
        let authorities = (view.roots.clone(), self.registry.issuing());
        let kept = self.registry.keep();
        trust.take_in(authorities, &self.directory, kept.as_ref())?;
        self.show(&trust);
        drop(trust);
        // Another CA may issue from now on.
        self.renew();
        if let Some(follower) = &self.follower {
            self.look(follower);
        }
        Ok(())
    }

    /// Issues the certificate again if it is time, and writes down the missing parts.
    fn renew(&self) {
        let mut trust = self.trust.borrow_mut();
        let renewed = trust.renew(self.server, now_seconds());
        if let Ok(true) = renewed {
            tracing::info!("the certificate of this server was issued again");
            self.show(&trust);
        }
        let written = trust.write_missing(&self.directory, || self.registry.keep());
        let failed = renewed.err().or(written.err());
        let reason = failed.map(|error| error.to_string());
        if self.unrenewed.is_news(reason.clone()) {
            let reason = reason.unwrap_or_default();
            tracing::warn!(%reason, "the certificate of this server is not renewed, or not written down: that is tried again");
        }
    }

    fn show(&self, trust: &Trust) {
        let endpoint = trust.endpoint();
        let updated = self.tls.update(|_| endpoint);
        updated.expect("the certificate was made for the key");
    }
}
