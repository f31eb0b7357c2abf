//! The task of a server that leads: it makes what reconfigurers posted in the domains that the server leads (`docs/spec` 6.5,
//! `[R-31 designated-leader]`).
//!
//! What there is to do is what the server has in its mailboxes, so that one that starts again goes on where it was. What came to nothing is
//! remembered until something is posted beside it.

use crate::config::{Configuration, ConfigurationId};
use crate::consensus::mailbox::PostedChanges;
use crate::dsm::Client;
use crate::env::Env;
use crate::gather;
use crate::limits::LEADER_WINDOW;
use crate::object::DomainId;
use crate::reconfig::ReconfigError;
use crate::reconfig::transfer::Progress;
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The server that leads, as its own process reaches it.
pub trait LeaderHost {
    /// The changes posted in the configurations that this server leads.
    fn posted(&self) -> Vec<PostedChanges>;

    /// Reports the next step of the leader in this domain: what was moved since the last report is added. `None`: the
    /// leader has made the posted changes, or begins again.
    fn progress(&self, domain: DomainId, step: Option<Progress>);
}

/// A server that leads. `F` makes the world of one operation, with its deadline.
pub struct Leader<E, F> {
    client: Client<E>,
    env: F,
    /// Any final configuration of the root domain.
    root: Arc<Configuration>,
    /// Any final configuration of domains.
    known: BTreeMap<DomainId, Arc<Configuration>>,
    /// Posted changes that led to no new configuration: they are not tried again until more is posted.
    idle: BTreeMap<ConfigurationId, BTreeSet<Bytes>>,
}

/// The result of a round in one domain: the new configuration, if there is one.
pub type LedDomain = Result<Option<Arc<Configuration>>, ReconfigError>;

impl<E: Env, F: Fn() -> E> Leader<E, F> {
    /// A server that leads with this client.
    pub fn new(client: Client<E>, env: F, root: &Arc<Configuration>) -> Leader<E, F> {
        Leader {
            client,
            env,
            root: root.clone(),
            known: BTreeMap::new(),
            idle: BTreeMap::new(),
        }
    }

    /// True if there may be something to make.
    pub fn is_due(&mut self, host: &dyn LeaderHost) -> bool {
        !self.due(host.posted()).is_empty()
    }

    /// Makes the posted changes, once in each domain. Returns the result of each domain; empty if there is nothing to
    /// do.
    pub async fn round(&mut self, host: &dyn LeaderHost) -> Vec<LedDomain> {
        let due = self.due(host.posted());
        self.find(&due).await;
        let lead = due.iter().map(async |posted| {
            let id = posted.configuration.id().domain;
            let domain = self.operation().domain(self.known.get(&id)?);
            let progress = |step| host.progress(id, Some(step));
            let led = domain.lead(&self.root, posted, &progress).await;
            host.progress(id, None);
            Some(led)
        });
        let led = gather::join(LEADER_WINDOW, lead).await;
        assert_eq!(led.len(), due.len(), "each of them has ended");
        for (posted, led) in due.iter().zip(&led) {
            if let Some(Ok(None)) = led {
                let id = posted.configuration.id();
                self.idle.insert(id, posted.changes.clone());
            }
        }
        led.into_iter().flatten().collect()
    }

    /// Looks up the domains of these changes. A configuration in which something is posted may be pending, and no operation begins there.
    async fn find(&mut self, due: &[PostedChanges]) {
        let is_known = |it: &PostedChanges| self.known.contains_key(&it.configuration.id().domain);
        if due.iter().all(is_known) {
            return;
        }
        // Without a quorum of the root domain it is looked up in the next round.
        let is_posted = |id: DomainId| due.iter().any(|it| it.configuration.id().domain == id);
        let root = self.operation().root(&self.root);
        let domains = root.domains_where(is_posted).await;
        let domains = domains.unwrap_or_default().into_iter();
        let known = domains.map(|(_, known)| (known.id().domain, known));
        self.known.extend(known);
    }

    /// The client, for one operation.
    fn operation(&self) -> Client<E> {
        self.client.with((self.env)())
    }

    /// The posted changes that are worth a round.
    fn due(&mut self, posted: Vec<PostedChanges>) -> Vec<PostedChanges> {
        let is_posted = |id: &ConfigurationId| posted.iter().any(|it| it.configuration.id() == *id);
        self.idle.retain(|id, _| is_posted(id));
        let is_idle = |it: &PostedChanges| {
            let known = self.idle.get(&it.configuration.id());
            known == Some(&it.changes)
        };
        posted.into_iter().filter(|it| !is_idle(it)).collect()
    }
}
