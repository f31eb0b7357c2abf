//! Reconfiguring a domain, as a user asks for it ([`crate::reconfig`]).

use super::Root;
use crate::config::{Configuration, Descriptor, Members};
use crate::consensus;
use crate::consensus::mailbox::PostedChanges;
use crate::dsm::Domain;
use crate::env::Env;
use crate::error::Unavailable;
use crate::gather::{self, Fold, Servers};
use crate::message::{Reply, Request};
use crate::reconfig::ares;
use crate::reconfig::change::Change;
use crate::reconfig::leading;
use crate::reconfig::merged;
use crate::reconfig::transfer::Progress;
use crate::reconfig::walk::{self, GraphNode};
use crate::reconfig::{LeaveOff, ReconfigError, ReconfigOutcome, Reconfigurer};
use crate::tag::Writer;
use crate::timing::HOLDINGS_PATIENCE;
use std::sync::Arc;
use std::time::Duration;

impl<E: Env> Domain<E> {
    /// The domain's sequence from its last final configuration to its end, as far as it can be seen. All but the first are
    /// pending: another client installs them, or left them.
    ///
    /// # Errors
    /// [`Unavailable`] without a quorum in time.
    pub async fn path(&self) -> Result<Vec<Arc<Configuration>>, Unavailable> {
        walk::path(&self.client.env, self.client.sequences(), &self.known).await
    }

    /// The configurations of [`Domain::path`], and which of them is known to come after which.
    ///
    /// # Errors
    /// As [`Domain::path`].
    pub async fn graph(&self) -> Result<Vec<GraphNode>, Unavailable> {
        walk::graph(&self.client.env, self.client.sequences(), &self.known).await
    }

    /// Makes the change while clients read and write, with those that others make at the same time or after them; then tells the
    /// directory. `approves`: as [`merged::make`].
    ///
    /// # Errors
    /// [`ReconfigError`].
    pub async fn reconfigure(
        &self,
        root: &Arc<Configuration>,
        change: &Change,
        approves: &impl AsyncFn(&Change) -> bool,
        progress: &dyn Fn(Progress),
    ) -> Result<ReconfigOutcome, ReconfigError> {
        let done = self.make(change, approves, progress).await?;
        let c = done.clone().into_configuration();
        self.client.domain(&c).tell_directory(root).await;
        Ok(done)
    }

    /// Appends the last configuration, which keeps nothing, without telling the directory.
    ///
    /// # Errors
    /// [`ReconfigError`].
    pub(super) async fn append_removal(&self) -> Result<Arc<Configuration>, ReconfigError> {
        let removal = Change::new(&self.known, &self.known.descriptor().removal());
        let removal = removal.map_err(ReconfigError::Invalid)?;
        let done = self.make(&removal, &async |_: &_| true, &|_| {}).await?;
        Ok(done.into_configuration())
    }

    async fn make(
        &self,
        change: &Change,
        approves: &impl AsyncFn(&Change) -> bool,
        progress: &dyn Fn(Progress),
    ) -> Result<ReconfigOutcome, ReconfigError> {
        let consensus = self.consensus();
        let by = Reconfigurer {
            patience: self.client.leader_patience(),
            ..self.reconfigurer(&consensus, progress)
        };
        let done = merged::make(&by, &self.known, change, approves).await?;
        let c = done.clone().into_configuration();
        assert!(
            !c.precedes(&self.known),
            "a reconfiguration never leads back"
        );
        Ok(done)
    }

    /// Calls [`ares::leave_off`] without an entry in the directory.
    ///
    /// # Errors
    /// [`ReconfigError`].
    pub async fn leave_off(
        &self,
        wanted: &Descriptor,
        after: LeaveOff,
    ) -> Result<Option<Arc<Configuration>>, ReconfigError> {
        let consensus = self.consensus();
        let by = self.reconfigurer(&consensus, &|_| {});
        ares::leave_off(&by, &self.known, wanted, after).await
    }

    /// Finishes what another reconfigurer left pending; then tells the directory. `None`: nothing is pending.
    ///
    /// # Errors
    /// [`ReconfigError`].
    pub async fn resume(
        &self,
        root: &Arc<Configuration>,
        progress: &dyn Fn(Progress),
    ) -> Result<Option<Arc<Configuration>>, ReconfigError> {
        let consensus = self.consensus();
        let by = self.reconfigurer(&consensus, progress);
        let installed = ares::resume(&by, &self.known).await?;
        Ok(self.enter_into_directory(root, installed).await)
    }

    /// Makes the changes that were posted in a configuration of the domain; then updates the directory. `None`: there
    /// is nothing to make.
    ///
    /// # Errors
    /// As [`leading::lead`].
    pub async fn lead(
        &self,
        root: &Arc<Configuration>,
        posted: &PostedChanges,
        progress: &dyn Fn(Progress),
    ) -> Result<Option<Arc<Configuration>>, ReconfigError> {
        let consensus = self.consensus();
        let by = self.reconfigurer(&consensus, progress);
        let made = leading::lead(&by, &self.known, posted).await?;
        Ok(self.enter_into_directory(root, made).await)
    }

    fn consensus(&self) -> consensus::AsDescribed<impl Fn() -> Writer> {
        consensus::AsDescribed(|| self.client.next_writer())
    }

    /// A reconfigurer that waits for no leader.
    fn reconfigurer<'a, C>(
        &'a self,
        consensus: &'a C,
        progress: &'a dyn Fn(Progress),
    ) -> Reconfigurer<'a, E, C> {
        Reconfigurer {
            env: &self.client.env,
            sequences: self.client.sequences(),
            consensus,
            progress,
            patience: Duration::ZERO,
        }
    }

    /// Makes the installed configuration known to the directory, and returns it.
    async fn enter_into_directory(
        &self,
        root: &Arc<Configuration>,
        installed: Option<Arc<Configuration>>,
    ) -> Option<Arc<Configuration>> {
        if let Some(c) = &installed {
            self.client.domain(c).tell_directory(root).await;
        }
        installed
    }

    /// Best effort: a directory that is behind costs the next client that looks the domain up some rounds.
    async fn tell_directory(&self, root: &Arc<Configuration>) {
        let root = self.client.root(&self.client.sequences().start(root));
        // The directory last: it frees the name of a domain that was removed.
        for to in [&self.known, &root.domain.known] {
            // A quorum that does not answer hears of it from the next reconfigurer.
            let _ = self.announce(to).await;
        }
        if self.known.id().domain == root.domain.known.id().domain {
            root.tell_servers().await;
        }
    }
}

impl<E: Env> Root<E> {
    /// Lets every server know where the root domain is, for clients that ask it first. Waits for most of them: one that is down
    /// hears of it when it registers again.
    async fn tell_servers(&self) {
        if let Some((servers, latest)) = self.latest_for_all(&self.domain.known).await {
            let fold = |(): &mut (), _from: usize, _reply: Reply| Fold::Count;
            let tally = Servers::new(servers.len(), servers.len() / 2 + 1, latest, (), fold);
            // Best effort.
            let _ = self.domain.client.env.gather(&servers, tally).await;
        }
    }

    /// Lets every server know that a domain was removed, for each may hold state of a configuration that was to be kept. Each hears of it
    /// once: one that is away keeps what it holds.
    pub(super) async fn tell_removal(&self, last: &Arc<Configuration>) {
        if let Some((servers, latest)) = self.latest_for_all(last).await {
            let (env, patience) = (&self.domain.client.env, Some(HOLDINGS_PATIENCE));
            drop(gather::survey_for(env, &servers, latest, patience).await);
        }
    }

    /// All servers that clients may call, and the request that lets them know the last configuration of its domain. `None`: no server is known.
    async fn latest_for_all(&self, known: &Arc<Configuration>) -> Option<(Members, Request)> {
        let others = self.servers().await.ok()?.into_values();
        let others = others.filter(|it| !it.is_forgotten());
        let servers: Members = others.map(|record| record.id).collect();
        let id = known.id();
        let latest = Request::Latest {
            domain: id.domain,
            partition: id.partition,
            known: Some(known.clone()),
        };
        (!servers.is_empty()).then_some((servers, latest))
    }
}
