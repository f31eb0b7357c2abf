//! Asks other servers for what a caller passes on and may not decide. What they say under their certificates this server takes in.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use areo_core::config::{Configuration, ConfigurationId, Members};
use areo_core::dsm::Client;
use areo_core::gather::survey_for;
use areo_core::message::{Body, Reply, Request};
use areo_core::pointer::Successors;
use areo_net::env::NetEnv;

use super::need::Hearsay;
use crate::worker::Worker;

/// The longest wait for servers that do not answer.
const PATIENCE: Duration = Duration::from_millis(300);

/// One look at other servers.
pub(super) struct Inquiry<'a> {
    pub(super) client: &'a Client<NetEnv>,
    pub(super) worker: &'a Rc<Worker>,
}

impl Inquiry<'_> {
    /// Takes in what other servers say of this. `first` is the configuration with which the domain began, by the directory.
    pub(super) async fn ask(&self, passed_on: &Hearsay<'_>, first: Option<&Arc<Configuration>>) {
        let id = passed_on.configuration;
        let Some(members) = self.members(passed_on) else {
            return;
        };
        if passed_on.successors.is_none() {
            self.hear_latest(id, &members).await;
            return;
        }
        let is_known = self.worker.configuration(&id).is_some();
        let descriptor = passed_on.descriptor.filter(|_| !is_known);
        let is_believed = match descriptor {
            Some(descriptor) => self.is_vouched(descriptor, &members, first).await,
            None => is_known,
        };
        if !is_believed {
            return;
        }
        let successors = self.successors(read_config(id, None), &members).await;
        let known = configured(id, descriptor.cloned(), successors);
        self.worker.tell_itself(known).await;
    }

    /// The other members of the configuration. `None`: this server does not know it, and the caller does not describe it.
    fn members(&self, passed_on: &Hearsay<'_>) -> Option<Members> {
        let known = self.worker.configuration(&passed_on.configuration);
        let known = known.or_else(|| passed_on.descriptor.cloned())?;
        Some(self.others_of(&known))
    }

    fn others_of(&self, c: &Configuration) -> Members {
        let own = self.worker.own_id();
        let members = c.members().iter().copied();
        members.filter(|member| Some(*member) != own).collect()
    }

    /// True if the directory or a server has this configuration in the sequence of its domain.
    async fn is_vouched(
        &self,
        descriptor: &Arc<Configuration>,
        members: &Members,
        first: Option<&Arc<Configuration>>,
    ) -> bool {
        if first == Some(descriptor) || self.worker.points_to(descriptor) {
            return true;
        }
        let finals = self.hear_latest(descriptor.id(), members).await;
        for last in finals {
            if last == *descriptor {
                return true;
            }
            let request = read_config(last.id(), Some(&last));
            let next = self.successors(request, &self.others_of(&last)).await;
            if next.iter().any(|it| it.configuration == *descriptor) {
                return true;
            }
        }
        false
    }

    /// The final configurations of the domain that these servers know; this server knows them, too, from now on.
    async fn hear_latest(&self, id: ConfigurationId, servers: &Members) -> Vec<Arc<Configuration>> {
        let latest = |known| Request::Latest {
            domain: id.domain,
            partition: id.partition,
            known,
        };
        let mut finals: Vec<Arc<Configuration>> = Vec::new();
        for reply in self.survey(servers, latest(None)).await {
            if let Reply::Latest(Some(last)) = reply
                && !finals.contains(&last)
            {
                self.worker.tell_itself(latest(Some(last.clone()))).await;
                finals.push(last);
            }
        }
        finals
    }

    /// The successors that these servers know.
    async fn successors(&self, request: Request, servers: &Members) -> Successors {
        let mut all = Successors::default();
        for reply in self.survey(servers, request).await {
            let (successors, _) = reply.open();
            // Of two that contradict each other the first is kept.
            let _ = all.join(&successors);
        }
        all
    }

    async fn survey(&self, servers: &Members, request: Request) -> Vec<Reply> {
        if servers.is_empty() {
            return Vec::new();
        }
        let replies = survey_for(&self.client.env, servers, request, Some(PATIENCE)).await;
        replies.into_iter().flatten().collect()
    }
}

fn read_config(id: ConfigurationId, descriptor: Option<&Arc<Configuration>>) -> Request {
    configured(id, descriptor.cloned(), Successors::default())
}

fn configured(
    configuration: ConfigurationId,
    descriptor: Option<Arc<Configuration>>,
    successors: Successors,
) -> Request {
    Request::Configured {
        configuration,
        descriptor,
        successors,
        body: Body::ReadConfig,
    }
}
