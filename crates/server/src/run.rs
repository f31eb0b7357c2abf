//! Runs a server: from the data directory to a serving process, and down again.

use std::cell::OnceCell;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use areo_core::config::{Configuration, ServerId};
use areo_core::manager;
use areo_core::message::ServerRecord;
use areo_core::server;
use areo_core::shard::Shard;
use areo_net::{Identity as WireIdentity, Listener, ListenerConfig, Places, Pool, Tls, pool};
use areo_store::records::{MemoryRecords, Records};
use areo_store::{Directory, LogOptions};
use axum::Router;
use tokio::net::TcpListener;
use tokio::runtime;
use tokio::sync::{mpsc, oneshot};
use tokio::task::{LocalSet, spawn_local};

use crate::address;
use crate::admin::{self, Door, Guard, Health};
use crate::caller::Caller;
use crate::cluster::ClusterHealth;
use crate::descriptors::{self, Budget};
use crate::error::ServeError;
use crate::identity::{self, Identity};
use crate::metrics::{DiskWatch, Metrics};
use crate::registration::{Registrar, Seeds, place};
use crate::scrubbing;
use crate::service::NodeService;
use crate::signals::StopSignals;
use crate::trust::operator::Follower;
use crate::trust::{self, TrustFile, TrustKeeper};
use crate::trusting::Trusting;
use crate::worker::{Durable, Worker};
use directory::{Reach, Taken, named, take_directory, with_extent};
pub use options::{Durability, KeepAdministrator, Options, Start};

mod directory;
mod look;
mod opening;
mod options;

/// The end of a server that did not fail.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ended {
    /// It was to stop.
    Stopped,
    /// The directory belongs to another server now.
    Replaced,
}

/// Runs a server until SIGTERM, SIGINT or SIGHUP comes, and it has drained. If records are missing from its log another server takes
/// its place, in this process (`[X-37 another-in-its-place]`).
///
/// # Errors
/// [`ServeError`] if it does not come up, or must not go on.
pub fn run(options: &Options) -> Result<(), ServeError> {
    while run_once(options)? == Ended::Replaced {}
    Ok(())
}

fn run_once(options: &Options) -> Result<Ended, ServeError> {
    let runtime = runtime::Builder::new_current_thread()
        .enable_all()
        // One writes a commit, one reads or writes other files, and one may hang in a look at the room on the disk.
        .max_blocking_threads(3)
        // Threads stay: another one might not be had when it is needed.
        .thread_keep_alive(Duration::from_hours(24 * 365))
        .build()
        .map_err(system("starting the runtime"))?;
    // The first thread that syncs.
    runtime.spawn_blocking(|| {});
    LocalSet::new().block_on(&runtime, serve(options))
}

fn system(operation: &'static str) -> impl FnOnce(io::Error) -> ServeError {
    move |source| ServeError::System { operation, source }
}

async fn serve(options: &Options) -> Result<Ended, ServeError> {
    let mut signals = StopSignals::new().map_err(system("waiting for signals"))?;
    let Listening {
        directory,
        identity,
        record,
        trusted,
        known,
        worker,
        listener,
        metrics,
        health,
        asked_cluster,
    } = Listening::begin(options).await?;
    let tls = trusted.as_ref().map(|trusted| trusted.tls.clone());
    let position = worker.position();
    let seeds = seeds(options, &identity);
    let registrar = OnceCell::new();
    let joining = async {
        let places = (&seeds.all[..], tls.as_ref());
        let identity = named((identity, &record), &directory, options, places).await?;
        let name = identity.name.clone();
        // The position of the log before anything was asked of the server.
        let record = ServerRecord {
            name,
            position,
            ..record
        };
        let shown = (listener.process(), metrics.peers(), tls.clone());
        let registrar = registrar
            .get_or_init(|| Registrar::new(&identity, record, seeds, known, shown, &worker));
        worker.reach(&identity, registrar.network().clone());
        tokio::select! {
            outcome = join(registrar, &identity, &directory, (&worker, &health, &metrics), options) => outcome,
            never = registrar.show_cluster(identity.cluster, asked_cluster) => match never {},
            never = address::watch(&identity, &registrar.record.address, tls.as_ref()) => match never {},
            error = keep_trust(trusted.as_ref(), registrar) => Err(error),
        }
    };
    let outcome = tokio::select! {
        outcome = joining => outcome,
        error = worker.failed() => Err(ServeError::Store {
            path: directory.path().into(),
            error,
        }),
        () = signals.next() => Ok(Ended::Stopped),
    };
    health.set_ready(false);
    let parts = (&worker, &*listener, &*directory);
    stop(parts, registrar.get(), &outcome).await;
    outcome
}

/// A server that listens, and whose start is not confirmed yet.
struct Listening {
    directory: Rc<Directory>,
    identity: Identity,
    record: ServerRecord,
    trusted: Option<Trusted>,
    /// The servers that it knows from before, and where the root domain was.
    known: (Vec<ServerRecord>, Arc<Configuration>),
    worker: Rc<Worker>,
    listener: Rc<Listener<NodeService>>,
    metrics: Arc<Metrics>,
    health: Arc<Health>,
    /// Requests for the cluster's health.
    asked_cluster: mpsc::Receiver<oneshot::Sender<ClusterHealth>>,
}

impl Listening {
    async fn begin(options: &Options) -> Result<Listening, ServeError> {
        if let Some(name) = &options.name {
            manager::check_server_name(name).map_err(ServeError::InvalidName)?;
        }
        let listen = resolve(&options.listen)?;
        address::check(listen, options)?;
        let admin = AdminPort::bind(options).await?;
        let reach = Reach {
            listen,
            admin: admin.address,
        };
        let Taken {
            directory,
            identity,
            trust,
            record,
        } = take_directory(options, &reach).await?;
        let trusted = trust.map(|trust| Trusted::new(trust, &directory, identity.server));
        let budget = Budget::of(descriptors::raise());
        let tls = trusted.as_ref().map(|it| it.tls.clone());
        let guard = trusted.as_ref().map(|it| Guard::new(it.keeper.registry()));
        let door = Door::new(budget.admin, guard);
        spawn_local(Rc::clone(&door).serve(admin.listener, admin.router));

        let (shard, keep) = open(&directory, (&identity, record.incarnation), options)?;
        let identity = with_extent(identity, &keep);
        let known = known_before(&shard);
        place::check_program(&known.0, &options.program)?;
        let metrics = Arc::new(Metrics::new());
        let scrub = (options.scrub_bytes_per_s, scrubbing::read(&directory));
        let worker = Worker::new(shard, keep, metrics.clone(), scrub);
        let disk = DiskWatch::new(directory.path().to_owned());
        worker.watch(Rc::clone(&disk));
        let own = (&identity, record.incarnation);
        let listener = bind(listen, own, (&worker, trusted.as_ref()), budget.places).await;
        let listener = listener.map_err(|source| cannot_listen(&options.listen, source))?;
        spawn_local(accept(Rc::clone(&listener)));
        spawn_local(Rc::clone(&worker).upkeep());
        spawn_local(scrubbing::keep(directory.clone(), worker.clone()));
        spawn_local(look::answer(
            admin.asked,
            (metrics.clone(), options.recorder.clone()),
            (Rc::clone(&worker), disk),
            (Rc::clone(&listener), door, tls),
        ));
        Ok(Listening {
            directory,
            identity,
            record,
            trusted,
            known,
            worker,
            listener,
            metrics,
            health: admin.health,
            asked_cluster: admin.asked_cluster,
        })
    }
}

/// The admin port, which is there before anything is known of the server.
struct AdminPort {
    address: SocketAddr,
    listener: TcpListener,
    router: Router,
    health: Arc<Health>,
    /// Requests for the metrics.
    asked: mpsc::Receiver<oneshot::Sender<String>>,
    /// Requests for the cluster's health.
    asked_cluster: mpsc::Receiver<oneshot::Sender<ClusterHealth>>,
}

impl AdminPort {
    async fn bind(options: &Options) -> Result<AdminPort, ServeError> {
        let address = resolve(&options.admin)?;
        let listener = TcpListener::bind(address).await;
        let listener = listener.map_err(|source| cannot_listen(&options.admin, source))?;
        let health = Arc::new(Health::default());
        let (asking, asked) = mpsc::channel(admin::ASKING);
        let (asking_cluster, asked_cluster) = mpsc::channel(admin::ASKING);
        let recorder = options.recorder.clone();
        Ok(AdminPort {
            address,
            listener,
            router: admin::router(health.clone(), recorder, asking, asking_cluster),
            health,
            asked,
            asked_cluster,
        })
    }
}

/// The parts of a server of a cluster with keys.
struct Trusted {
    keeper: Rc<TrustKeeper>,
    tls: Tls,
    /// The part that answers requests about trust.
    trusting: Rc<Trusting>,
}

impl Trusted {
    fn new(
        trust: (TrustFile, Option<Follower>),
        directory: &Rc<Directory>,
        server: ServerId,
    ) -> Trusted {
        let keeper = TrustKeeper::new(trust, Rc::clone(directory), server);
        let tls = keeper.tls().clone();
        let trusting = Trusting::new(keeper.registry(), server, tls.clone(), trust::now_seconds);
        let trusting = Rc::new(trusting);
        Trusted {
            keeper,
            tls,
            trusting,
        }
    }
}

/// Goes down: earlier requests are answered if the server is sound.
async fn stop(
    (worker, listener, directory): (&Rc<Worker>, &Listener<NodeService>, &Directory),
    registrar: Option<&Registrar>,
    outcome: &Result<Ended, ServeError>,
) {
    if !matches!(outcome, Ok(Ended::Replaced)) {
        tracing::info!("stopping");
        let _ = sd_notify::notify(&[sd_notify::NotifyState::Stopping]);
    }
    if outcome.is_ok() {
        place::finish(worker, listener, registrar).await;
    }
    worker.drain();
    scrubbing::write(directory, worker);
    worker.close().await;
}

/// The addresses at which other servers may be.
fn seeds(options: &Options, identity: &Identity) -> Seeds {
    let joined = match &options.start {
        Start::Join { seeds, .. } => seeds.clone(),
        Start::Existing | Start::Init { .. } => Vec::new(),
    };
    let all = [&options.seeds[..], &joined, &identity.succession.addresses];
    let all = all.concat();
    Seeds { all, joined }
}

async fn bind(
    listen: SocketAddr,
    (identity, incarnation): (&Identity, u64),
    (worker, trusted): (&Rc<Worker>, Option<&Trusted>),
    places: Places,
) -> io::Result<Rc<Listener<NodeService>>> {
    let wire = WireIdentity {
        cluster: identity.cluster,
        server: identity.server.0,
        incarnation,
    };
    let trusting = trusted.map(|trusted| Rc::clone(&trusted.trusting));
    let service = NodeService::new(wire, worker, identity.root.id().domain, trusting);
    let config = ListenerConfig {
        places,
        tls: trusted.map(|trusted| trusted.tls.clone()),
        ..ListenerConfig::new(Pool::new(pool::IDLE_BYTES))
    };
    let listener = Listener::bind(listen, config, Rc::new(service)).await?;
    Ok(Rc::new(listener))
}

/// The servers that this one knows from before, and where the root domain was.
fn known_before(shard: &Shard<Caller>) -> (Vec<ServerRecord>, Arc<Configuration>) {
    let server = shard.server();
    (
        server.registered().cloned().collect(),
        server.root().clone(),
    )
}

async fn accept(listener: Rc<Listener<NodeService>>) {
    listener.run().await;
}

/// Has the start confirmed, then serves, and repairs itself, until the caller stops waiting, or another server takes its place.
async fn join(
    registrar: &Registrar,
    identity: &Identity,
    directory: &Directory,
    (worker, health, metrics): (&Rc<Worker>, &Health, &Metrics),
    options: &Options,
) -> Result<Ended, ServeError> {
    let incarnation = registrar.record.incarnation;
    let write = |starts| {
        let identity = identity.clone();
        identity::write(directory, &Identity { starts, ..identity })
    };
    let standstills = worker.standstills();
    let started = registrar.start(identity, worker.abstains(), write).await?;
    place::check(started, directory, incarnation)?;
    worker.serve(standstills);
    health.set_ready(worker.is_ready());
    // Fails only where no service manager listens.
    let _ = sd_notify::notify(&[sd_notify::NotifyState::Ready]);
    let record = &registrar.record;
    tracing::info!(name = %identity.name, incarnation, cluster = format!("{:032x}", identity.cluster), address = %record.address, admin = %record.admin, "serving");
    let path = directory.path();
    // No other process can be a server in memory.
    tokio::select! {
        ended = work(registrar, identity, directory, (worker, metrics), options) => ended,
        registered = registrar.hold(worker, health), if !identity.memory => {
            Err(ServeError::Superseded { path: path.into(), registered })
        }
    }
}

/// Does the work of a server beside requests, while it serves.
async fn work(
    registrar: &Registrar,
    identity: &Identity,
    directory: &Directory,
    (worker, metrics): (&Rc<Worker>, &Metrics),
    options: &Options,
) -> Result<Ended, ServeError> {
    registrar.learn_servers(worker).await;
    if worker.abstains() {
        return tokio::select! {
            given_up = registrar.give_up_place((identity, worker), directory, options.replaced_after) => {
                given_up.map(|()| Ended::Replaced)
            }
            never = registrar.watch_domains(metrics, worker) => match never {},
        };
    }
    tokio::select! {
        never = registrar.repair(identity, worker, options.repair_bytes_per_s) => match never {},
        never = registrar.lead(identity, worker) => match never {},
        never = registrar.grow(identity, worker) => match never {},
        never = registrar.take_places(identity, directory, options.decide_outside) => match never {},
        never = registrar.watch_domains(metrics, worker) => match never {},
    }
}

/// Keeps up with the log of trust, if the cluster has one, and answers those who ask about it. Ends if the cluster does not trust the certificate with
/// which this server was started.
async fn keep_trust(trusted: Option<&Trusted>, registrar: &Registrar) -> ServeError {
    let Some(trusted) = trusted else {
        return std::future::pending().await;
    };
    trusted.trusting.reach(Rc::clone(&registrar.access));
    tokio::select! {
        error = trusted.keeper.keep(&registrar.access) => ServeError::Certificate(error),
        never = trusted.keeper.follow() => match never {},
    }
}

/// Opens the store and recovers the shard from it.
fn open(
    directory: &Directory,
    (identity, incarnation): (&Identity, u64),
    options: &Options,
) -> Result<(Shard<Caller>, Durable), ServeError> {
    let mut shard = Shard::new(server::Identity {
        id: identity.server,
        incarnation,
        root: identity.root.clone(),
        durable: !identity.memory,
        max_value_bytes: options.max_value_bytes,
        max_unconfirmed: areo_core::limits::UNCONFIRMED_ELEMENTS,
        max_ranked: areo_core::limits::RANKED_VERSIONS,
    });
    if identity.memory {
        return Ok((shard, Durable::Memory(MemoryRecords::default())));
    }
    let disk = directory.disk("log")?;
    let log = LogOptions {
        extent: identity.extent,
        ..LogOptions::new(identity.server.0 as u64)
    };
    let recover = |header, damaged| shard.recover(header, damaged);
    let (records, opened) = Records::open(disk, log, recover).map_err(ServeError::Open)?;
    shard.recovered(opened.is_unreadable());
    opening::report(&opened, directory);
    Ok((shard, Durable::Disk(Box::new(records))))
}

fn cannot_listen(address: &str, source: io::Error) -> ServeError {
    let address = address.to_owned();
    ServeError::Listen { address, source }
}

fn resolve(address: &str) -> Result<SocketAddr, ServeError> {
    let invalid = || io::Error::new(io::ErrorKind::InvalidInput, "not of the form host:port");
    let found = address.to_socket_addrs().map(|mut found| found.next());
    found
        .and_then(|found| found.ok_or_else(invalid))
        .map_err(|source| cannot_listen(address, source))
}
