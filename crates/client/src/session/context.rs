//! The context of one operation, on the network thread.

use super::cluster::KnownCluster;
use super::domain::KnownDomain;
use super::thread::World;
use super::{OperationLimits, Subject, cluster};
use crate::cluster::{Health, Names};
use crate::error::{Error, Invalid, NoQuorum};
use crate::metrics::Metrics;
use crate::operation::Operation;
use crate::shape::Shape;
use areo_core::config::{Configuration, InvalidConfiguration, Members, ServerId};
use areo_core::dsm::large;
use areo_core::error::{DeciderError, Unavailable, WriteError};
use areo_core::fragment::FragmentedObject;
use areo_core::manager::Root;
use areo_core::message::{Reply, Request, ServerView};
use areo_core::object::{Kind, Name};
use areo_core::reconfig::ReconfigError;
use areo_core::{dsm, gather};
use areo_net::env::NetEnv;
use areo_net::{PeerState, Status};
use areo_trust::grant::{Need, Verb};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// One operation: its client, its subject, the known configurations, and the parts of its errors.
#[derive(Clone)]
pub(crate) struct Context {
    /// Identity and memory of the client, with the operation's deadline.
    pub(crate) client: dsm::Client<NetEnv>,
    pub(crate) domain: Arc<KnownDomain>,
    operation: Operation,
    name: Option<Name>,
    limits: OperationLimits,
    cluster: Arc<KnownCluster>,
    world: Rc<World>,
}

impl Context {
    pub(super) fn new(
        world: Rc<World>,
        cluster: Arc<KnownCluster>,
        subject: Subject,
        limits: OperationLimits,
        env: NetEnv,
    ) -> Context {
        cluster::refresh_if_old(&world, &cluster);
        let Subject {
            operation,
            domain,
            name,
        } = subject;
        Context {
            client: world.client.with(env),
            domain,
            operation,
            name,
            limits,
            cluster,
            world,
        }
    }

    /// The context of a step that fails as another operation: a listing within a reconfiguration.
    pub(crate) fn during(&self, operation: Operation) -> Context {
        Context {
            operation,
            ..self.clone()
        }
    }

    /// A handle on the domain, for this operation.
    pub(crate) fn handle(&self) -> dsm::Domain<NetEnv> {
        self.client.domain(self.domain.found())
    }

    /// A handle on the file that it is about.
    pub(crate) fn file(&self) -> FragmentedObject<NetEnv> {
        self.handle().file(self.name())
    }

    /// The latest final configuration of the domain that the client knows.
    pub(crate) fn latest(&self) -> Arc<Configuration> {
        self.domain.latest(&self.client)
    }

    /// A final configuration of the root domain.
    pub(crate) fn root(&self) -> &Arc<Configuration> {
        self.cluster.root.found()
    }

    /// A handle on the root domain, for this operation.
    pub(crate) fn root_handle(&self) -> Root<NetEnv> {
        self.client.root(self.root())
    }

    /// The object, or the file, that it is about.
    pub(crate) fn name(&self) -> &Name {
        let name = self.name.as_ref();
        name.expect("it was begun for an object or a file")
    }

    /// Timeout of the client's operations.
    pub(crate) fn timeout(&self) -> Duration {
        self.limits.timeout
    }

    /// Bytes of the blocks of a value that are under way at once.
    pub(crate) fn window_bytes(&self) -> u64 {
        self.limits.window_bytes
    }

    /// Blocks of this length of the value that are under way at once.
    pub(crate) fn window(&self, block_bytes: u32) -> usize {
        large::window_within(self.limits.window_bytes, block_bytes)
    }

    pub(crate) fn cluster(&self) -> &KnownCluster {
        &self.cluster
    }

    pub(crate) fn metrics(&self) -> &Metrics {
        &self.world.metrics
    }

    /// A part of the operation with a deadline of its own.
    pub(crate) fn within(&self, timeout: Duration) -> dsm::Client<NetEnv> {
        self.client.with(self.world.network.env(timeout))
    }

    /// Asks a quorum for the servers of the cluster, for a second at most: the answer of one server is nearly always
    /// enough.
    pub(crate) async fn refresh(&self) {
        self.refresh_within(cluster::DIRECTORY_PATIENCE).await;
    }

    /// Asks a quorum which servers there are, for at most twice `patience`.
    pub(crate) async fn refresh_within(&self, patience: Duration) {
        let patience = cluster::DIRECTORY_PATIENCE.min(patience);
        cluster::refresh(&self.world, &self.cluster, patience).await;
    }

    /// Before the root domain is asked something: finds its members if they are not known yet, because the cluster was
    /// just starting when this client connected.
    pub(crate) async fn find_root(&self) {
        if !cluster::knows_root_quorum(&self.world, &self.cluster) {
            self.refresh().await;
        }
    }

    /// The servers that a quorum knows; takes note of them.
    ///
    /// # Errors
    /// No quorum in time.
    pub(crate) async fn servers(&self) -> Result<Arc<Names>, Error> {
        self.find_root().await;
        match cluster::ask_quorum(&self.world, &self.cluster, &self.client).await {
            Ok(()) => Ok(self.cluster.names()),
            Err(failed) => Err(self.on(self.cluster.root.clone()).not_applied(&failed)),
        }
    }

    /// The names of all members of these configurations; asks for them if one is not known.
    pub(crate) async fn names_of(&self, configurations: &[Arc<Configuration>]) -> Arc<Names> {
        let names = self.cluster.names();
        let is_known = |member: &ServerId| names.records().contains_key(member);
        let mut members = configurations.iter().flat_map(|c| c.members().iter());
        if members.all(is_known) {
            return names;
        }
        self.refresh().await;
        self.cluster.names()
    }

    /// The health of these servers, in their order; waits no longer than `patience` for those that are silent.
    pub(crate) async fn health(&self, servers: &Members, patience: Duration) -> Vec<Health> {
        let env = self.within(patience).env;
        let replies = gather::survey(&env, servers, Request::Status).await;
        let unauthorised = env.unauthorised();
        let health = |(server, reply): (&ServerId, Option<Reply>)| match (reply, &unauthorised) {
            (Some(Reply::Status(status)), _) => Health::Answered(*status),
            (_, Some(sentence)) if self.describe(*server).1.is_none() => {
                Health::unauthorised(sentence)
            }
            _ => Health::unreachable(self.describe(*server).1),
        };
        servers.iter().zip(replies).map(health).collect()
    }
}

/// Views that servers have of others, and of their disks.
impl Context {
    /// The views of these servers, by id; waits no longer than `patience` for those that are silent. One that does not know the request has none.
    pub(crate) async fn views(
        &self,
        servers: &Members,
        patience: Duration,
    ) -> BTreeMap<ServerId, ServerView> {
        let env = self.within(patience).env;
        let replies = gather::survey(&env, servers, Request::View).await;
        let view = |(server, reply): (&ServerId, Option<Reply>)| match reply {
            Some(Reply::View(view)) => Some((*server, *view)),
            _ => None,
        };
        servers.iter().zip(replies).filter_map(view).collect()
    }
}

/// Errors of the operation.
impl Context {
    /// The context of this operation on another domain.
    pub(crate) fn on(&self, domain: Arc<KnownDomain>) -> Context {
        Context {
            domain,
            name: None,
            ..self.clone()
        }
    }

    /// The error of a call that had no effect.
    pub(crate) fn not_applied(&self, failed: &Unavailable) -> Error {
        self.no_quorum(failed).not_applied()
    }

    /// The error of a write that some server was sent.
    pub(crate) fn unknown(&self, failed: &Unavailable) -> Error {
        self.no_quorum(failed).unknown()
    }

    pub(crate) fn write_error(&self, error: &WriteError) -> Error {
        match error {
            WriteError::NotApplied(failed) => self.not_applied(failed),
            WriteError::Unknown(failed) => self.unknown(failed),
        }
    }

    /// The error of a change of the domain's configuration.
    pub(crate) fn reconfig_error(&self, error: ReconfigError) -> Error {
        match error {
            ReconfigError::Removed => self.removed(),
            ReconfigError::Invalid(error) | ReconfigError::Decided(error) => later_version(&error),
            ReconfigError::NotBegun(failed) => self.not_applied(&failed),
            ReconfigError::TooFew { .. }
            | ReconfigError::Contradicts(..)
            | ReconfigError::Unwanted(_) => {
                unreachable!("a removal contradicts nothing, and leaves any number of servers")
            }
            ReconfigError::Undecided(undecided) => self.undecided(undecided),
            ReconfigError::Pending(failed) => self.unknown(&failed),
        }
    }

    pub(crate) fn removed(&self) -> Error {
        let domain = self.domain.name().into();
        Error::Removed { domain }
    }

    pub(crate) fn swept(&self) -> Error {
        Error::Swept {
            domain: self.domain.name().into(),
            key: self.name().user_key().into(),
        }
    }

    /// The end of an operation whose caller is gone, so that no caller sees it.
    pub(crate) fn gone(&self) -> Error {
        Error::Swept {
            domain: self.domain.name().into(),
            key: String::new(),
        }
    }

    fn undecided(&self, undecided: DeciderError) -> Error {
        Error::Undecided {
            domain: self.domain.name().into(),
            undecided: Box::new(undecided),
        }
    }

    fn no_quorum(&self, failed: &Unavailable) -> Box<NoQuorum> {
        // Servers that did not answer may have moved: the next operation asks where they are.
        self.world.asked_directory.set(None);
        let describe = |server| self.describe(server);
        let call = NoQuorum {
            domain: self.domain.name_in_errors(),
            key: self.name.as_ref().map(|name| name.user_key().into()),
            unauthorised: self.client.env.unauthorised(),
            ..NoQuorum::of(self.operation, &self.latest(), failed, describe)
        };
        Box::new(call)
    }

    /// Refuses a write of the object for which the client's own key has no grant. Servers judge each request; in a conditional domain they take the first step of such a write for
    /// that of a reader, whom they help, so that it would wait for its deadline.
    ///
    /// # Errors
    /// [`Error::Unauthorised`].
    pub(crate) fn demand(&self, verbs: &[Verb]) -> Result<(), Error> {
        let (Some(holder), Some(domain)) = (&self.world.key, self.domain.name_in_errors()) else {
            return Ok(());
        };
        let key = match self.name().kind() {
            Kind::User | Kind::Upload => self.name().user_key(),
            Kind::Block | Kind::Genesis | Kind::System => return Ok(()),
        };
        let need = |verb: &Verb| Need::keys(*verb, &domain, key);
        let needs: Vec<Need<'_>> = match self.name().is_document() {
            true => vec![Need::domain(Verb::Admin, &domain)],
            false => verbs.iter().map(need).collect(),
        };
        let Some(sentence) = holder.lacks(&needs) else {
            return Ok(());
        };
        let latest = self.latest();
        let call = Box::new(NoQuorum {
            operation: self.operation,
            configuration: latest.id().index,
            shape: Shape::of(&latest),
            needed: 0,
            servers: Vec::new(),
            waited: Duration::ZERO,
            obstacle: None,
            unauthorised: Some(sentence),
            domain: Some(domain.clone()),
            key: Some(key.into()),
        });
        Err(Error::Unauthorised { call })
    }

    /// A server's name, and why it cannot be reached if it cannot.
    fn describe(&self, server: ServerId) -> (String, Option<String>) {
        let state = self.world.network.server_state(server);
        let reason = match &state {
            None => Some("is not in the directory".into()),
            Some(state) => reason(state),
        };
        (self.cluster.names().name(server), reason)
    }
}

fn reason(state: &PeerState) -> Option<String> {
    match state.status {
        Status::Refused(refusal) => Some(refusal.to_string()),
        Status::Unreachable => state.last_error.clone(),
        Status::Idle | Status::Connecting | Status::Connected => None,
    }
}

/// An obstacle: the decided configuration cannot be read here.
pub(crate) fn later_version(error: &InvalidConfiguration) -> Error {
    let field = error.to_string();
    let reason = Invalid::LaterVersion { field };
    Error::Invalid { reason }
}
