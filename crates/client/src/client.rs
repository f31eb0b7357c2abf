//! A connection to a cluster.

use crate::cluster::{self, ClusterStatus, DomainInfo, Health, ServerHealth, ServerInfo};
use crate::create::{self, CreateDomainError, DomainOptions};
use crate::domain::Domain;
use crate::error::{Error, Invalid, Operation};
use crate::known::{self, Known, Session};
use crate::metrics::Metrics;
use crate::strangers;
use crate::thread::{FAREWELL, Started, Thread, World};
use crate::{ClusterId, ConnectError, ConnectOptions};
use areo_core::config::{Configuration, InvalidConfiguration, Members, ServerId};
use areo_core::env::Env;
use areo_core::gather;
use areo_core::manager::{self, Creation, DomainError, Removal, RemovalError, reconfiguration};
use areo_core::message::{Reply, Request};
use areo_core::object::DomainId;
use areo_core::reconfig::ares::ReconfigError;
use areo_net::Traffic;
use std::fmt;
use std::future::Future;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::spawn_local;

/// How long [`Client::status`] waits for servers that say nothing.
pub(crate) const STATUS_PATIENCE: Duration = Duration::from_secs(3);
/// What the root domain is called: no name of another one.
pub const ROOT_DOMAIN: &str = "@root";
/// Domains that are asked at once what is pending in them.
const DOMAINS_AT_ONCE: usize = 64;

/// A connection to a cluster, and an identity in it: versions that it writes carry a number drawn when it connected.
///
/// Clones are the same client. It owns one thread, which runs all of its operations and ends with the last clone; its
/// futures can be awaited in any executor. Dropping the future of an operation gives the operation up: a write may then
/// have been applied or not, like one that is [`Error::Unknown`].
#[derive(Clone)]
pub struct Client {
    inner: Arc<Inner>,
    timeout: Duration,
}

struct Inner {
    thread: Thread,
    known: Arc<Known>,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("cluster", &self.cluster())
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

impl Client {
    /// Connects to the cluster that one of the addresses belongs to. All are asked at once, the first answer is enough.
    ///
    /// # Errors
    /// [`ConnectError`] says what happened at each address.
    pub async fn connect(options: impl Into<ConnectOptions>) -> Result<Client, ConnectError> {
        Client::connect_counted(options, &Metrics::new()).await
    }

    /// As [`Client::connect`]; what the client does is counted in `metrics`, with that of others that were given the same.
    ///
    /// # Errors
    /// As there.
    pub async fn connect_counted(
        options: impl Into<ConnectOptions>,
        metrics: &Metrics,
    ) -> Result<Client, ConnectError> {
        let options = options.into();
        if options.addresses.is_empty() {
            return Err(ConnectError::NoAddress);
        }
        let timeout = options.timeout;
        let started = Thread::start(metrics);
        let thread = started.map_err(|error| ConnectError::Thread {
            error: error.to_string(),
        })?;
        let find = |world: Rc<World>| async move {
            let known = known::find_cluster(world.clone(), options).await?;
            drop(spawn_local(strangers::introduce(world, known.clone())));
            Ok(known)
        };
        let known = thread.run(find).await?;
        let inner = Arc::new(Inner { thread, known });
        Ok(Client { inner, timeout })
    }

    /// The same client with another deadline for each operation.
    #[must_use]
    pub fn with_timeout(&self, timeout: Duration) -> Client {
        Client {
            inner: self.inner.clone(),
            timeout,
        }
    }

    /// How long each operation may take.
    pub fn timeout(&self) -> Duration {
        self.timeout
    }

    /// What its operations come to, all of its clones together: for a program that shows it to Prometheus.
    pub fn metrics(&self) -> &Metrics {
        self.inner.thread.metrics()
    }

    /// Which cluster it is.
    pub fn cluster(&self) -> ClusterId {
        self.inner.known.cluster
    }

    /// The domain of this name. The result stays usable for as long as the client; look a domain up once, not per
    /// operation.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::Invalid`] for what cannot be a name, [`Error::Unavailable`],
    /// [`Error::Unauthorised`].
    pub async fn domain(&self, name: &str) -> Result<Domain, Error> {
        manager::check_domain_name(name)?;
        let domain = name.to_owned();
        let configuration = self
            .run(move |session| find_domain(session, domain))
            .await?;
        match configuration {
            Some(configuration) => Ok(Domain::new(self.clone(), name, configuration)),
            None => Err(Error::NotFound {
                domain: name.into(),
                key: None,
            }),
        }
    }

    /// The root domain, which knows servers and domains: to look at its configurations and to change them. It is called
    /// [`ROOT_DOMAIN`].
    pub async fn root_domain(&self) -> Domain {
        let configuration = self.run(|session| async move {
            session.find_root().await;
            session.client.sequences().start(&session.known.root)
        });
        Domain::new(self.clone(), ROOT_DOMAIN, configuration.await)
    }

    /// Creates a domain. Of two creators of one name one wins; the other gets [`CreateDomainError::Exists`]. What was
    /// created, and what it costs, says [`Domain::configuration`].
    ///
    /// # Errors
    /// [`CreateDomainError`].
    pub async fn create_domain(
        &self,
        name: &str,
        options: DomainOptions,
    ) -> Result<Domain, CreateDomainError> {
        manager::check_domain_name(name).map_err(Error::from)?;
        let domain = name.to_owned();
        let create = move |session| create_domain(session, domain, options);
        let configuration = self.run(create).await?;
        Ok(Domain::new(self.clone(), name, configuration))
    }

    /// Removes a domain and everything in it. Its name may be used again then.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::Unavailable`], [`Error::Unauthorised`]; [`Error::Unknown`] if it may be removed, or half:
    /// removing it again goes on.
    pub async fn remove_domain(&self, name: &str) -> Result<(), Error> {
        manager::check_domain_name(name)?;
        let domain = name.to_owned();
        self.run(move |session| remove_domain(session, domain))
            .await
    }

    /// All domains, by name.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Unauthorised`].
    pub async fn domains(&self) -> Result<Vec<DomainInfo>, Error> {
        self.run(|session| async move {
            let domains = list_domains(&session, None).await?;
            let names = session.known.names();
            let info = |(name, c): &(String, Arc<Configuration>)| names.domain(name, c);
            Ok(domains.iter().map(info).collect())
        })
        .await
    }

    /// All servers that a quorum of the root domain knows, in order of their names.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Unauthorised`].
    pub async fn servers(&self) -> Result<Vec<ServerInfo>, Error> {
        self.run(|session| async move {
            let names = session.servers(Operation::ListServers).await?;
            Ok(names.sorted())
        })
        .await
    }

    /// How every known server is, and which domains there are. Waits three seconds at most for those that say nothing.
    pub async fn status(&self) -> ClusterStatus {
        let patience = self.timeout.min(STATUS_PATIENCE);
        self.run(move |session| status(session, patience)).await
    }

    /// What this client, all of its clones together, has exchanged with servers so far: to show how an operation on a
    /// large value gets on. Asks nobody.
    pub async fn traffic(&self) -> Traffic {
        let count = |world: Rc<World>| async move { world.network.traffic() };
        self.inner.thread.run(count).await
    }

    /// Lets go of this handle after sending off what waits: notes that versions are complete, which save the next reader
    /// a round and let servers drop what was replaced, and elements for servers that lag behind their quorum. Takes a
    /// quarter of a second at most. For a process that ends now.
    pub async fn close(self) {
        let flush = |world: Rc<World>| async move { world.network.flush(FAREWELL).await };
        self.inner.thread.run(flush).await;
    }

    /// Runs an operation on the network thread; its time runs from now.
    pub(crate) async fn run<T, F>(&self, operation: impl FnOnce(Session) -> F + Send + 'static) -> T
    where
        T: Send + 'static,
        F: Future<Output = T> + 'static,
    {
        self.begin(operation).end().await
    }

    /// Starts an operation on the network thread; it goes on while nobody asks for its end.
    pub(crate) fn begin<T, F>(
        &self,
        operation: impl FnOnce(Session) -> F + Send + 'static,
    ) -> Started<T>
    where
        T: Send + 'static,
        F: Future<Output = T> + 'static,
    {
        let (known, timeout) = (self.inner.known.clone(), self.timeout);
        let started = Instant::now();
        let within_time = move |world| {
            let timeout = timeout.saturating_sub(started.elapsed());
            operation(Session::new(world, known, timeout))
        };
        self.inner.thread.begin(within_time)
    }

    pub(crate) fn known(&self) -> &Known {
        &self.inner.known
    }
}

async fn find_domain(session: Session, name: String) -> Result<Option<Arc<Configuration>>, Error> {
    session.find_root().await;
    let root = &session.known.root;
    let found = manager::find_domain(&session.client, root, &name).await;
    let found = found.map_err(|error| domain_error(&session, Operation::FindDomain, error))?;
    find_members(&session, found.as_slice()).await;
    Ok(found)
}

/// Finds out who the members are, if one of them is not known.
pub(crate) async fn find_members(session: &Session, configurations: &[Arc<Configuration>]) {
    let names = session.known.names();
    let is_known = |member: &ServerId| names.records().contains_key(member);
    let mut members = configurations.iter().flat_map(|c| c.members().iter());
    if !members.all(is_known) {
        session.refresh().await;
    }
}

async fn create_domain(
    session: Session,
    name: String,
    options: DomainOptions,
) -> Result<Arc<Configuration>, CreateDomainError> {
    let exists = async |c: &Arc<Configuration>| {
        find_members(&session, std::slice::from_ref(c)).await;
        let domain = name.clone();
        match reconfiguration::path(&session.within(STATUS_PATIENCE), c).await {
            Ok(path) if path.last().is_some_and(|last| last.dap().is_removal()) => {
                Error::Removed { domain }.into()
            }
            _ => CreateDomainError::Exists {
                name: domain,
                configuration: Box::new(session.known.names().configuration(c)),
            },
        }
    };
    let operation = Operation::CreateDomain;
    let names = session.servers(operation).await?;
    let env = &session.client.env;
    let id = u128::from(env.random()) << 64 | u128::from(env.random());
    let first = create::first_configuration(&options, &names, DomainId(id))?;
    // Asking first proposes nothing: without a quorum it is certain that nothing was created.
    let root = &session.known.root;
    let found = manager::find_domain(&session.client, root, &name).await;
    let found = found.map_err(|error| domain_error(&session, operation, error))?;
    if let Some(configuration) = found {
        return Err(exists(&configuration).await);
    }
    match manager::create_domain(&session.client, root, &name, &first).await {
        Ok(Creation::Created) => Ok(first),
        Ok(Creation::Exists(configuration)) => Err(exists(&configuration).await),
        Err(DomainError::Unavailable(failed)) if failed.handed_over => {
            let asked = session.asked_root(operation);
            Err(session.unknown(&asked, &failed).into())
        }
        Err(error) => Err(domain_error(&session, operation, error).into()),
    }
}

async fn remove_domain(session: Session, name: String) -> Result<(), Error> {
    session.find_root().await;
    let operation = Operation::RemoveDomain;
    let root = &session.known.root;
    let found = manager::find_domain(&session.client, root, &name).await;
    let found = found.map_err(|error| domain_error(&session, operation, error))?;
    let not_found = || Error::NotFound {
        domain: name.clone(),
        key: None,
    };
    let c = found.ok_or_else(not_found)?;
    let asked = Session::asked(operation, Some(&name), &c, None);
    match manager::remove_domain(&session.client, root, &name).await {
        Ok(Removal::Removed) => Ok(()),
        // Another remover was faster.
        Ok(Removal::NotFound) | Err(RemovalError::Reconfig(ReconfigError::Removed)) => {
            Err(not_found())
        }
        Err(RemovalError::Domain(error)) => Err(domain_error(&session, operation, error)),
        Err(RemovalError::Reconfig(ReconfigError::NotBegun(failed))) => {
            Err(session.not_applied(&asked, &failed))
        }
        Err(RemovalError::Reconfig(ReconfigError::Undecided(undecided))) => Err(Error::Undecided {
            domain: name,
            undecided: Box::new(undecided),
        }),
        Err(RemovalError::Reconfig(ReconfigError::Pending(failed))) => {
            Err(session.unknown(&asked, &failed))
        }
        Err(RemovalError::Reconfig(
            ReconfigError::Invalid(error) | ReconfigError::Decided(error),
        )) => Err(later_version(&error)),
    }
}

/// All domains, by name; `patience` replaces the operation's deadline.
async fn list_domains(
    session: &Session,
    patience: Option<Duration>,
) -> Result<Vec<(String, Arc<Configuration>)>, Error> {
    let client = match patience {
        Some(patience) => session.within(patience),
        None => session.client.clone(),
    };
    session.find_root().await;
    let domains = manager::domains(&client, &session.known.root).await;
    domains.map_err(|error| domain_error(session, Operation::ListDomains, error))
}

/// All domains with what is pending in them.
async fn domains_in_full(session: &Session, patience: Duration) -> Result<Vec<DomainInfo>, Error> {
    let domains = list_domains(session, Some(patience)).await?;
    let client = session.within(patience);
    let paths = domains
        .iter()
        .map(|(_, c)| reconfiguration::path(&client, c));
    let paths = gather::join(DOMAINS_AT_ONCE, paths).await;
    let known: Vec<_> = paths.iter().flatten().flatten().cloned().collect();
    find_members(session, &known).await;
    let names = session.known.names();
    let info = |((name, listed), path): (&(String, Arc<Configuration>), _)| match path {
        Err(_) => names.domain(name, listed),
        Ok(path) => {
            let path: Vec<Arc<Configuration>> = path;
            let pending = path[1..].iter().map(|c| names.configuration(c));
            DomainInfo {
                pending: Some(pending.collect()),
                ..names.domain(name, &path[0])
            }
        }
    };
    Ok(domains.iter().zip(paths).map(info).collect())
}

/// How a server is, by what it said if it said anything.
pub(crate) fn health(session: &Session, server: ServerId, reply: Option<Reply>) -> Health {
    match reply {
        Some(Reply::Status(status)) => Health::Answered(status),
        _ => cluster::unreachable(session.describe(server).1),
    }
}

async fn status(session: Session, patience: Duration) -> ClusterStatus {
    session.refresh().await;
    let names = session.known.names();
    let servers = names.sorted();
    let members: Members = servers.iter().map(|server| server.id).collect();
    let env = session.within(patience).env;
    let (replies, domains) = tokio::join!(
        gather::survey(&env, &members, Request::Status),
        domains_in_full(&session, patience),
    );
    let health = |(server, reply): (ServerInfo, Option<Reply>)| ServerHealth {
        status: health(&session, server.id, reply),
        server,
    };
    ClusterStatus {
        cluster: session.known.cluster,
        root: names.configuration(&session.client.sequences().start(&session.known.root)),
        servers: servers.into_iter().zip(replies).map(health).collect(),
        domains,
    }
}

fn domain_error(session: &Session, operation: Operation, error: DomainError) -> Error {
    match error {
        DomainError::Name(error) => error.into(),
        DomainError::Unavailable(failed) => {
            session.not_applied(&session.asked_root(operation), &failed)
        }
        DomainError::Descriptor(error) => later_version(&error),
    }
}

/// What was decided cannot be read here.
pub(crate) fn later_version(error: &InvalidConfiguration) -> Error {
    let field = error.to_string();
    let reason = Invalid::LaterVersion { field };
    Error::Invalid { reason }
}
