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
use super::{Trust, TrustError, now_seconds};
use crate::registration::RootAccess;

/// The pause between two looks at the log: a revoked key counts for so long at most where the root domain answers.
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
    /// The files of an operator's own certificate, if the server has any.
    follower: Option<RefCell<Follower>>,
}

impl TrustKeeper {
    pub(crate) fn new(
        (trust, follower): (Trust, Option<Follower>),
        directory: Rc<Directory>,
        server: ServerId,
    ) -> Rc<TrustKeeper> {
        let registry = Registry::new(trust.cluster, trust.cluster_key.clone());
        let tls = Tls::new(trust.endpoint());
        let recalled = trust.kept.as_ref().map(|kept| registry.recall(kept));
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
        let mut said: Option<String> = None;
        loop {
            match self.read_on(&root.within(ATTEMPT), generation).await {
                Ok(read) => {
                    if generation.is_none()
                        && let Err(error) = self.confirm()
                    {
                        return error;
                    }
                    (generation, said) = (Some(read), None);
                    pause = PERIOD;
                }
                Err(reason) => {
                    let is_news = said.as_ref() != Some(&reason);
                    if is_news {
                        tracing::info!(%reason, "the log of trust is not read");
                    }
                    said = Some(reason);
                    pause = match is_news {
                        true => SOON,
                        false => (pause * 2).min(PERIOD),
                    };
                }
            }
            tokio::time::sleep(pause).await;
        }
    }

    /// Judges the certificate of the operator when the log was read for the first time.
    fn confirm(&self) -> Result<(), CertificateFileError> {
        if let Some(follower) = &self.follower {
            let confirmed = follower
                .borrow()
                .confirm(&self.trust.borrow(), now_seconds());
            confirmed?;
            self.look(follower);
        }
        Ok(())
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

    async fn read_on(&self, root: &Root<NetEnv>, before: Option<u32>) -> Result<u32, String> {
        // With a certificate that the others do not take nothing could be read. A server that cannot issue one may still read which CA does.
        let renewed = self.renew();
        self.found(root).await?;
        let view = self.registry.refresh(root).await;
        let view = view.map_err(|error| match &renewed {
            Ok(()) => error.to_string(),
            Err(renewal) => format!("{error}; {renewal}"),
        })?;
        let taken = self.take(&view, before != Some(view.generation));
        taken.map_err(|error| error.to_string())?;
        Ok(view.generation)
    }

    /// Writes down what the cluster begins with, if this server still has that to do.
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
        trust.foundation = None;
        let written = trust.write(&self.directory);
        written.map_err(|error| error.to_string())
    }

    /// Takes in what was read.
    fn take(&self, view: &View, is_new: bool) -> Result<(), TrustError> {
        if is_new {
            let mut trust = self.trust.borrow_mut();
            trust.roots = view.roots.clone();
            trust.authority = self.registry.issuing();
            trust.kept = self.registry.keep();
            self.tls.verify_by(view.verifier.clone());
            // The next start stands on what is written: no certificate counts before that.
            trust.write(&self.directory)?;
            self.show(&trust);
        }
        self.renew()
    }

    /// Issues the certificate again if it is time.
    fn renew(&self) -> Result<(), TrustError> {
        let mut trust = self.trust.borrow_mut();
        if trust.renew(&self.directory, self.server, now_seconds())? {
            tracing::info!("the certificate of this server was issued again");
            self.show(&trust);
        }
        Ok(())
    }

    fn show(&self, trust: &Trust) {
        let endpoint = trust.endpoint();
        let updated = self.tls.update(|_| endpoint);
        updated.expect("the certificate was made for the key");
    }
}
