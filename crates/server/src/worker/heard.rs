//! This server's knowledge of configurations, and its own questions for more.

use std::rc::Rc;
use std::sync::Arc;

use areo_core::config::{Configuration, ConfigurationId, ServerId};
use areo_core::message::{Refusal, Request};
use areo_core::server::Server;
use areo_net::network::Network;
use areo_node::Node;

use super::Worker;
use crate::caller::Caller;
use crate::service::Hearsay;

impl Worker {
    fn of_server<T>(&self, of: impl FnOnce(&Server) -> T) -> Option<T> {
        let node = self.node.borrow();
        node.as_ref()
            .map(Node::shard)
            .map(|shard| of(shard.server()))
    }

    /// The last root configuration that it knows. `None`: it is stopping.
    pub(crate) fn root(&self) -> Option<Arc<Configuration>> {
        self.of_server(|server| server.root().clone())
    }

    /// The way to the other servers, once there is one.
    pub(crate) fn network(&self) -> Option<&Network> {
        self.others.get().map(|(_, _, network)| network)
    }

    /// The id of this server, once it reaches others.
    pub(crate) fn own_id(&self) -> Option<ServerId> {
        self.others.get().map(|(_, own, _)| *own)
    }

    /// True if it knows all of this.
    pub(crate) fn has_heard(&self, passed_on: &Hearsay<'_>) -> bool {
        let Hearsay {
            configuration,
            descriptor,
            successors,
        } = passed_on;
        let heard = self.of_server(|it| it.has_heard(configuration, *descriptor, *successors));
        // A server that has stopped drops what comes.
        heard.unwrap_or(true)
    }

    /// The configuration of this id, if it has heard of it.
    pub(crate) fn configuration(&self, id: &ConfigurationId) -> Option<Arc<Configuration>> {
        self.of_server(|server| server.configuration(id).cloned())?
    }

    /// The highest final configuration of the domain of this one, if it has heard of one. The first one is not said to be final.
    pub(crate) fn latest(&self, id: &ConfigurationId) -> Option<Arc<Configuration>> {
        self.of_server(|it| it.latest_of(id).cloned())?
    }

    /// True if it has heard that this configuration is one of its domain.
    pub(crate) fn points_to(&self, c: &Arc<Configuration>) -> bool {
        self.of_server(|server| server.points_to(c))
            .unwrap_or(false)
    }

    /// Counts a request that was refused before it came here.
    pub(crate) fn count_refused(&self, refusal: Refusal) {
        self.metrics.refused(refusal);
    }

    /// Takes in what other servers say, and returns when that is done.
    pub(crate) async fn tell_itself(self: &Rc<Self>, request: Request) {
        let (caller, answer) = Caller::admin();
        self.request(request, caller, None);
        self.turn();
        // A refusal, too, ends it.
        let _ = answer.await;
    }
}
