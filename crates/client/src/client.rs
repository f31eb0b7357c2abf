//! A connection to a cluster.

use crate::choice::{self, CreateDomainError, DomainOptions};
use crate::cluster::{ClusterId, ClusterStatus, DomainInfo, LabelChange, Maintenance, ServerInfo};
use crate::connect::{Access, ConnectError, ConnectOptions};
use crate::domain::Domain;
use crate::error::Error;
use crate::metrics::Metrics;
use crate::operation::Operation;
use crate::reconfig::{
    self, Departure, FinalizeError, ForgetError, LabelError, LevelChange, PlannedDeparture,
    ReconfigError, Successor,
};
use crate::session::{Context, Deadline, KnownDomain, STATUS_PATIENCE, Session};
use crate::trust::Trust;
use areo_core::config::{Configuration, Members, ServerId};
use areo_core::manager;
use areo_core::message::ServerView;
use areo_net::Traffic;
use areo_trust::id::KeyId;
use futures_util::future::BoxFuture;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

mod domains;
mod status;

use domains::{create_domain, find_domain, gone, list_domains, remove_domain};

/// A connection to a cluster, and an identity in it: versions that it writes carry a number drawn when it connected.
///
/// Clones are the same client. It owns one thread, which runs all of its operations and ends with the last clone; its
/// futures can be awaited in any executor. Dropping the future of an operation gives the operation up: a write may then
/// have been applied or not, like one that is [`Error::Unknown`].
#[derive(Clone)]
pub struct Client {
    session: Session,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("cluster", &self.cluster())
            .field("timeout", &self.timeout())
            .finish_non_exhaustive()
    }
}

impl Client {
    /// Connects to the cluster that one of the addresses belongs to. All are asked at once, the first answer is enough.
    ///
    /// # Errors
    /// [`ConnectError`] says what happened at each address.
    pub async fn connect(options: impl Into<ConnectOptions>) -> Result<Client, ConnectError> {
        let session = Session::connect(options.into()).await?;
        Ok(Client { session })
    }

    /// This client with another deadline for each operation. Streams, files, sweeps, repairs and reconfigurations may take any time:
    /// they end when none of their calls was decided for as long as `timeout`, or when nothing came of their calls (no byte, no object, no
    /// later configuration) for three times as long.
    #[must_use]
    pub fn with_timeout(&self, timeout: Duration) -> Client {
        let session = self.session.with_timeout(timeout);
        Client { session }
    }

    /// This client with another window: bytes of the blocks of a value that one stream has under way at once, [`crate::limits::WINDOW_BYTES`] otherwise. A
    /// larger block goes alone. Beside the window a stream has the block that its caller fills or takes, and two that wait between the two.
    #[must_use]
    pub fn with_window(self, window_bytes: u64) -> Client {
        let session = self.session.with_window(window_bytes);
        Client { session }
    }

    /// The deadline of each operation, see [`Client::with_timeout`].
    pub fn timeout(&self) -> Duration {
        self.session.timeout()
    }

    /// The metrics of its operations, with those of all of its clones: for a program that shows it to Prometheus.
    pub fn metrics(&self) -> &Metrics {
        self.session.metrics()
    }

    /// The id of the cluster.
    pub fn cluster(&self) -> ClusterId {
        self.session.cluster().id
    }

    /// Runs an operation that asks the root domain, which knows servers and domains.
    async fn run<T, F>(
        &self,
        operation: Operation,
        work: impl FnOnce(Context) -> F + Send + 'static,
    ) -> T
    where
        T: Send + 'static,
        F: Future<Output = T> + 'static,
    {
        let root = Domain::new(self.session.clone(), self.session.cluster().root.clone());
        root.run(Deadline::Timeout, operation, None, work).await
    }

    /// Makes versions that this client writes from now on begin with the number of the hardware on which it runs, in place of a random one, and with
    /// how often this was called for that hardware, which is returned. For people who read versions. Of two programs that run at a time each needs a
    /// number of hardware of its own.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Unauthorised`], [`Error::Unknown`]: it writes as before.
    pub fn reincarnate(&self, hardware: u32) -> BoxFuture<'_, Result<u32, Error>> {
        Box::pin(async move {
            let start = move |context: Context| async move {
                context.find_root().await;
                let started = context.root_handle().reincarnate(hardware).await;
                let id = started.map_err(|error| context.write_error(&error))?;
                Ok(u32::try_from(id.0 & u64::from(u32::MAX)).expect("half of it"))
            };
            self.run(Operation::Reincarnate, start).await
        })
    }

    /// The domain of this name. The result stays usable for as long as the client; look a domain up once, not per
    /// operation.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::Invalid`] for what cannot be a name, [`Error::Unavailable`],
    /// [`Error::Unauthorised`].
    pub fn domain<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Domain, Error>> {
        Box::pin(async move {
            manager::check_domain_name(name)?;
            let wanted = name.to_owned();
            let find = move |context| async move { find_domain(&context, &wanted).await };
            match self.run(Operation::FindDomain, find).await? {
                Some(configuration) => Ok(self.handle(name, configuration)),
                None => Err(Error::NotFound {
                    domain: name.into(),
                    key: None,
                }),
            }
        })
    }

    fn handle(&self, name: &str, configuration: Arc<Configuration>) -> Domain {
        let known = KnownDomain::new(Some(name.into()), configuration);
        Domain::new(self.session.clone(), known)
    }

    /// The root domain, which knows servers and domains: to look at its configurations and to change them. It is called
    /// [`ROOT_DOMAIN`](crate::ROOT_DOMAIN).
    pub fn root_domain(&self) -> BoxFuture<'_, Domain> {
        Box::pin(async move {
            let find = |context: Context| async move {
                context.find_root().await;
                context.latest()
            };
            let latest = self.run(Operation::FindDomain, find).await;
            Domain::new(self.session.clone(), KnownDomain::new(None, latest))
        })
    }

    /// Creates a domain. Of two creators of one name one wins; the other gets [`CreateDomainError::Exists`].
    /// [`Domain::configuration`] shows the result and its cost.
    ///
    /// # Errors
    /// [`CreateDomainError`].
    pub fn create_domain<'a>(
        &'a self,
        name: &'a str,
        options: DomainOptions,
    ) -> BoxFuture<'a, Result<Domain, CreateDomainError>> {
        Box::pin(async move {
            manager::check_domain_name(name).map_err(Error::from)?;
            let new = name.to_owned();
            let create =
                move |context| async move { create_domain(&context, &new, &options).await };
            let created = self.run(Operation::CreateDomain, create);
            Ok(self.handle(name, created.await?))
        })
    }

    /// Removes a domain and everything in it. Its name may be used again then.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::Unavailable`], [`Error::Unauthorised`]; [`Error::Unknown`] if it may be removed, or half:
    /// removing it again goes on.
    pub fn remove_domain<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async move {
            manager::check_domain_name(name)?;
            let name = name.to_owned();
            let remove = move |context| async move { remove_domain(&context, &name).await };
            self.run(Operation::RemoveDomain, remove).await
        })
    }

    /// A client of the same cluster that acts on behalf of another key, for a gateway, whose own key has the grant `gateway`. Each server judges its
    /// requests by the grants of the other key; of the whole cluster it has `status` at most. It has a thread and connections of its own, this
    /// client's counters, timeout, window and receive buffers, and ends with either key.
    ///
    /// # Errors
    /// [`ConnectError::Unauthorised`] if this client has no access key, its key has no grant `gateway`, or there is no other key or it was revoked;
    /// otherwise as with [`Client::connect`].
    pub async fn on_behalf(&self, of: KeyId) -> Result<Client, ConnectError> {
        let options = self.session.options();
        let gateway = match options.access {
            Some(Access::Key(gateway) | Access::Behalf { gateway, .. }) => gateway,
            Some(Access::Certificate(_)) | None => {
                let sentence = format!(
                    "to act on behalf of key {of} a client needs an access key with the grant 'gateway'"
                );
                return Err(ConnectError::Unauthorised { sentence });
            }
        };
        let access = Some(Access::Behalf { gateway, of });
        let options = ConnectOptions { access, ..options };
        let pool = self.session.pool().clone();
        let session = Session::connect_sharing(options, pool).await?;
        let session = session.with_window(self.session.window_bytes());
        Ok(Client { session })
    }

    /// Requests about the trust of the cluster. Each needs a key with the grant `keys`, `join` if it is about join tokens, or `gateway` if it is about
    /// signing keys.
    pub fn trust(&self) -> Trust {
        Trust::new(self.session.clone())
    }

    /// All domains, by name.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Unauthorised`].
    pub fn domains(&self) -> BoxFuture<'_, Result<Vec<DomainInfo>, Error>> {
        Box::pin(async move {
            let list = |context: Context| async move {
                let domains = list_domains(&context, None).await?;
                let names = context.cluster().names();
                let info = |(name, c): &(String, Arc<Configuration>)| names.domain(name, c);
                Ok(domains.iter().map(info).collect())
            };
            self.run(Operation::ListDomains, list).await
        })
    }

    /// All servers that a quorum of the root domain knows, in order of their names.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Unauthorised`].
    pub fn servers(&self) -> BoxFuture<'_, Result<Vec<ServerInfo>, Error>> {
        Box::pin(async move {
            let list = |context: Context| async move { Ok(context.servers().await?.sorted()) };
            self.run(Operation::ListServers, list).await
        })
    }

    /// The servers of a new domain for which none is named, in order of their names.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Unauthorised`].
    pub fn candidates(&self) -> BoxFuture<'_, Result<Vec<ServerInfo>, Error>> {
        Box::pin(async move {
            let list = |context: Context| async move {
                let names = context.servers().await?;
                let gone = gone(&context, &names).await;
                Ok(choice::candidates(&names, &gone))
            };
            self.run(Operation::ListServers, list).await
        })
    }

    /// The steps after which no domain names the server, by name or id; the root domain first. Asks, and changes nothing. Empty: no domain names it.
    ///
    /// # Errors
    /// [`ReconfigError::Choice`] and [`ReconfigError::Unreachable`] if it cannot be done in one of the domains;
    /// [`ReconfigError::NotBegun`] without a quorum of the root domain.
    pub fn departures<'a>(
        &'a self,
        server: &'a str,
        successor: &'a Successor,
    ) -> BoxFuture<'a, Result<Vec<Departure>, ReconfigError>> {
        Box::pin(async move {
            let (server, successor) = (server.to_owned(), successor.clone());
            let plan = move |context: Context| async move {
                let domains = list_domains(&context, None).await?;
                reconfig::departures(&context, domains, &server, &successor).await
            };
            let planned = self.run(Operation::ListDomains, plan);
            let handle = |planned: PlannedDeparture| {
                let known = KnownDomain::new(planned.name.clone(), planned.known.clone());
                planned.of(Domain::new(self.session.clone(), known))
            };
            Ok(planned.await?.into_iter().map(handle).collect())
        })
    }

    /// Marks a server as one that leaves, and returns the steps that this needs, as [`Client::departures`] does.
    /// `confirm` is given the plan beforehand, and decides whether the server is marked; `None`: it is not.
    ///
    /// The plan is made again after the mark: from then on no client chooses the server, and what was chosen before is seen. Of
    /// two operators who each mark a server, the later one sees the mark of the other.
    ///
    /// # Errors
    /// As with [`Client::departures`] and [`Client::mark_leaving`].
    pub async fn begin_departure(
        &self,
        server: &str,
        successor: &Successor,
        confirm: impl FnOnce(&[Departure]) -> bool,
    ) -> Result<Option<Vec<Departure>>, ReconfigError> {
        if !confirm(&self.departures(server, successor).await?) {
            return Ok(None);
        }
        self.mark_leaving(server, true).await?;
        self.departures(server, successor).await.map(Some)
    }

    /// Marks a server, by name or id, as one that is to go, or that is to stay after all. The cluster remembers it until the server
    /// is forgotten: no server that is to go is chosen for a domain, or for the root domain. `None`: it is in no directory, where
    /// no server is chosen from.
    ///
    /// # Errors
    /// [`ReconfigError::Choice`] if there is no such server, or there are several; [`ReconfigError::Other`].
    pub fn mark_leaving<'a>(
        &'a self,
        server: &'a str,
        is_leaving: bool,
    ) -> BoxFuture<'a, Result<Option<ServerInfo>, ReconfigError>> {
        Box::pin(async move {
            let server = server.to_owned();
            let mark = move |context: Context| async move {
                let domains = list_domains(&context, None).await?;
                reconfig::mark_leaving(&context, domains, &server, is_leaving).await
            };
            self.run(Operation::Reconfigure, mark).await
        })
    }

    /// Changes labels of a server, by name or id. The cluster remembers them until they are removed: they belong to no start of the server. What
    /// they mean is with rules of the autopilot, and with commands that choose servers.
    ///
    /// # Errors
    /// [`LabelError`]. With [`LabelError::Overtaken`] some of the labels may be changed.
    pub fn label_server<'a>(
        &'a self,
        server: &'a str,
        changes: &'a [LabelChange],
    ) -> BoxFuture<'a, Result<ServerInfo, LabelError>> {
        Box::pin(async move {
            let (server, changes) = (server.to_owned(), changes.to_vec());
            let label = move |context: Context| async move {
                reconfig::label(&context, &server, &changes).await
            };
            self.run(Operation::Reconfigure, label).await
        })
    }

    /// Puts a server into maintenance, in which the autopilot does not replace it; `None`: ends that.
    ///
    /// # Errors
    /// As with [`Client::label_server`].
    pub async fn maintain_server(
        &self,
        server: &str,
        maintenance: Option<&Maintenance>,
    ) -> Result<ServerInfo, LabelError> {
        let change = LabelChange::of_maintenance(maintenance);
        self.label_server(server, &[change]).await
    }

    /// Finalizes the cluster up to the largest level that one of its servers knows, if all of them do: what comes with it is used from then on, and
    /// no older program starts a server any more.
    ///
    /// # Errors
    /// [`FinalizeError`].
    pub fn finalize(&self) -> BoxFuture<'_, Result<LevelChange, FinalizeError>> {
        let finalize = |context: Context| async move { reconfig::finalize(&context).await };
        Box::pin(self.run(Operation::Reconfigure, finalize))
    }

    /// The level up to which the cluster is finalized, as far as this client has heard; a message is sent to no server.
    pub fn level(&self) -> BoxFuture<'_, u32> {
        let look = |context: Context| async move { context.cluster().names().levels().finalized };
        Box::pin(self.run(Operation::ListServers, look))
    }

    /// One sentence with the remedy, if the root domain tolerates no crash: while one of its members is away, no domain can be found,
    /// created or changed.
    pub fn root_warning(&self) -> BoxFuture<'_, Option<String>> {
        Box::pin(async move {
            let look = |context: Context| async move {
                context.find_root().await;
                context.refresh().await;
                status::root_warning(&context)
            };
            self.run(Operation::ListServers, look).await
        })
    }

    /// Forgets a server, by name or id, that no configuration names and that does not serve: it is not listed any more, and its
    /// data directory cannot be started again. Its name stays taken.
    ///
    /// # Errors
    /// [`ForgetError`].
    pub fn forget_server<'a>(
        &'a self,
        server: &'a str,
    ) -> BoxFuture<'a, Result<ServerInfo, ForgetError>> {
        Box::pin(async move {
            let server = server.to_owned();
            let forget = move |context: Context| async move {
                let domains = list_domains(&context, None).await?;
                reconfig::forget(&context, domains, &server).await
            };
            self.run(Operation::Reconfigure, forget).await
        })
    }

    /// The state of every known server, and the domains that there are. Waits three seconds at most for silent servers.
    pub async fn status(&self) -> ClusterStatus {
        self.status_within(STATUS_PATIENCE).await
    }

    /// The state of every known server, and the domains that there are. Takes no longer than `patience`, however many servers are silent.
    pub fn status_within(&self, patience: Duration) -> BoxFuture<'_, ClusterStatus> {
        Box::pin(async move {
            let patience = self.timeout().min(patience);
            let ask = move |context| async move { status::status(&context, patience).await };
            self.run(Operation::ListDomains, ask).await
        })
    }

    /// The views of the known servers, by id: which others each of them reaches, and its disk. Takes no longer than `patience`. A server that does not
    /// answer has none. Needs the grant `status`.
    pub fn views_within(
        &self,
        patience: Duration,
    ) -> BoxFuture<'_, BTreeMap<ServerId, ServerView>> {
        Box::pin(async move {
            let patience = self.timeout().min(patience);
            let ask = move |context: Context| async move {
                let servers = context.cluster().names().sorted();
                let servers: Members = servers.iter().map(|it| it.id).collect();
                match servers.is_empty() {
                    true => BTreeMap::new(),
                    false => context.views(&servers, patience).await,
                }
            };
            self.run(Operation::ListDomains, ask).await
        })
    }

    /// The traffic of this client, with all of its clones, with servers so far: to show how an operation on a large value gets on. Sends no message.
    pub async fn traffic(&self) -> Traffic {
        self.session.traffic().await
    }

    /// The names, in order, of the servers that have owed this client, all of its clones together, an answer for this
    /// time or longer: to tell a person what an operation waits for. Sends no message.
    pub async fn awaited(&self, for_at_least: Duration) -> Vec<String> {
        self.session.awaited(for_at_least).await
    }

    /// Closes this handle after sending waiting messages: notes that versions are complete, which save the next
    /// reader a round and let servers drop replaced versions, and elements for servers that lag behind their quorum.
    /// Takes a quarter of a second at most. For a process that ends now.
    pub async fn close(self) {
        self.session.flush().await;
    }
}
