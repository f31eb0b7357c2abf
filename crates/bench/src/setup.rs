//! The setup of measurements of readers and writers: server processes that serve, and a domain full of objects.

use crate::cluster::{Cluster, Place, Program, loopback_places};
use crate::error::{RunError, failed, system};
use crate::load::{self, AnyCaller, FILLERS, History, Look, Plan};
use crate::proxy::Proxy;
use crate::target::AreoCaller;
use areo_client::{Client, ConnectOptions, Domain, DomainOptions};
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tokio::time::sleep;

/// The longest time that servers may take to serve when nothing hinders them.
pub(crate) const SERVE: Duration = Duration::from_mins(1);

/// Not measured: connections are made, caches filled.
const WARM_UP: Duration = Duration::from_millis(300);

/// The servers, objects and clients.
pub struct Setup {
    pub program: Program,
    /// Number of server processes.
    pub servers: usize,
    /// Objects of the domain.
    pub objects: u64,
    /// Bytes of each; at least 16.
    pub size: usize,
    /// Clients that read and write.
    pub clients: usize,
    /// The seed that everything is drawn from.
    pub seed: u64,
    /// Servers keep nothing on disk.
    pub memory: bool,
    /// The folder for directories of servers.
    pub data: PathBuf,
    /// The longest time that an operation may take.
    pub timeout: Duration,
}

/// A cluster that serves.
pub(crate) struct StartedCluster {
    pub(crate) client: Client,
    pub(crate) connect: ConnectOptions,
    /// Names of all servers.
    pub(crate) servers: Vec<String>,
    /// Dropped last: the others talk to it.
    pub(crate) cluster: Cluster,
}

impl Setup {
    /// A plan for clients that get and put by chance; each value that they get is verified.
    pub(crate) fn plan(&self) -> Plan {
        Plan {
            mixed: self.clients,
            objects: self.objects,
            size: self.size,
            look: Look::Bytes,
            warm_up: WARM_UP,
            seed: self.seed,
            // Phases are as long as what they wait for.
            ..Plan::default()
        }
    }

    /// The meaning of an acknowledgement, as reports say it.
    pub(crate) fn durability(&self) -> &'static str {
        if self.memory { "memory" } else { "fsync" }
    }

    /// Starts the servers, and waits until each knows of all.
    pub(crate) async fn start(&self) -> Result<StartedCluster, RunError> {
        self.start_at(loopback_places(self.servers, false)).await
    }

    /// Starts a cluster behind a proxy. `site`: where its callers are at first, if they are grouped by that.
    pub(crate) async fn start_behind_proxy(
        &self,
        site: Option<usize>,
    ) -> Result<(Proxy, StartedCluster), RunError> {
        let places = loopback_places(self.servers, true);
        let proxy = proxy_before(&places).await?;
        if let Some(site) = site {
            proxy.newcomers_are_at(site);
        }
        let started = self.start_at(places).await?;
        Ok((proxy, started))
    }

    /// Starts a cluster with its servers at these places.
    pub(crate) async fn start_at(&self, places: Vec<Place>) -> Result<StartedCluster, RunError> {
        let mut cluster = Cluster::make(&self.program, places, &self.data, self.memory)?;
        cluster.start_all()?;
        cluster.all_ready(SERVE).await?;
        let connect = cluster.connect(self.timeout);
        let client = Client::connect(connect.clone()).await;
        let client = client.map_err(failed("connect to the cluster"))?;
        wait_for_all(&client, self.servers).await?;
        let names = (0..self.servers).map(|server| cluster.name(server).to_owned());
        Ok(StartedCluster {
            client,
            connect,
            servers: names.collect(),
            cluster,
        })
    }
}

impl StartedCluster {
    /// Creates a domain with this number of objects of this size.
    pub(crate) async fn domain(
        &self,
        name: &str,
        options: DomainOptions,
        objects: (usize, u64),
        history: Option<&History>,
    ) -> Result<Domain, RunError> {
        let domain = self.client.create_domain(name, options).await;
        let domain = domain.map_err(failed("make the domain"))?;
        let fillers = 0..FILLERS.min(objects.1 as usize);
        let fillers = fillers.map(|_| Box::new(AreoCaller::of(&domain)) as AnyCaller);
        let history = history.map(|history| (history, name));
        load::fill_by(fillers.collect(), objects, history).await?;
        Ok(domain)
    }

    /// This count of clients of a domain, each connected for itself.
    pub(crate) async fn callers(
        &self,
        domain: &str,
        count: usize,
    ) -> Result<Vec<AnyCaller>, RunError> {
        let mut callers = Vec::new();
        for _ in 0..count {
            let caller = AreoCaller::connect(&self.connect, domain).await?;
            callers.push(Box::new(caller) as AnyCaller);
        }
        Ok(callers)
    }
}

/// Between these servers and all who find them.
pub(crate) async fn proxy_before(places: &[Place]) -> Result<Proxy, RunError> {
    let pairs = places.iter();
    let pairs = pairs.map(|place| (place.advertise.clone(), place.listen.clone()));
    let proxy = Proxy::start(&pairs.collect::<Vec<_>>()).await;
    proxy.map_err(system("start the proxy"))
}

/// Waits until the cluster knows all of its servers.
async fn wait_for_all(client: &Client, servers: usize) -> Result<(), RunError> {
    let begun = Instant::now();
    loop {
        let known = client.servers().await.map_err(failed("list the servers"))?;
        if known.len() == servers {
            return Ok(());
        }
        if begun.elapsed() > SERVE {
            let error = format!("it knows {} of {servers}", known.len());
            return Err(failed("make all servers known to the cluster")(error));
        }
        sleep(Duration::from_millis(50)).await;
    }
}
