//! From the data directory to a serving process, and down again.

use std::cell::OnceCell;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use areo_core::config::{Configuration, ServerId};
use areo_core::manager;
use areo_core::message::ServerRecord;
use areo_core::server;
use areo_core::shard::Shard;
use areo_core::starts::Starts;
use areo_net::{Identity as WireIdentity, Listener, ListenerConfig, Places, Pool, pool};
use areo_node::{Keep, may_start};
use areo_store::records::{MemoryRecords, Records};
use areo_store::{Directory, LogOptions};
use areo_telemetry::Recorder;
use tokio::net::TcpListener;
use tokio::runtime;
use tokio::sync::{mpsc, oneshot};
use tokio::task::{LocalSet, spawn_local};

use crate::address;
use crate::admin::{self, Door, Health};
use crate::caller::Caller;
use crate::descriptors::{self, Budget};
use crate::error::ServeError;
use crate::identity::{self, Identity};
use crate::metrics::{ExternalMetrics, Metrics};
use crate::naming;
use crate::registration::{self, Registrar, Seeds, place};
use crate::scrubbing;
use crate::service::NodeService;
use crate::signals::StopSignals;
use crate::worker::{Durable, Worker};

/// The place of acknowledged writes: disk or memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// On disk, synced.
    Fsync,
    /// In the memory of the process.
    Memory,
}

/// The treatment of a directory that has no identity yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Start {
    /// It must have one.
    Existing,
    /// A new cluster, whose root domain this server holds alone.
    Init {
        /// It stays so until people change it: otherwise it grows when servers join.
        fixed_root: bool,
    },
    /// A new server of the cluster that one of these addresses belongs to.
    Join {
        /// Addresses.
        seeds: Vec<String>,
    },
}

/// The options of a server's start.
#[derive(Clone, Debug)]
pub struct Options {
    /// The data directory.
    pub data: PathBuf,
    /// The host and port to listen on.
    pub listen: String,
    /// The address that is advertised to others, if it is another one than `listen`.
    pub advertise: Option<String>,
    /// The address that the admin port listens on.
    pub admin: String,
    /// For a directory without an identity.
    pub start: Start,
    /// The place of acknowledged writes: disk or memory.
    pub durability: Durability,
    /// The name for people of a new server; without it a new cluster's first one is `s1`, and one that joins gets the next free
    /// name.
    pub name: Option<String>,
    /// The largest value that it takes, in bytes.
    pub max_value_bytes: u64,
    /// Bytes of objects that it reads in a second, at most, to repair itself; 0: it does not.
    pub repair_bytes_per_s: u64,
    /// Bytes of its records that it verifies in a second, at most; 0: none but those that are read.
    pub scrub_bytes_per_s: u64,
    /// Listen on addresses that other machines reach, although there is no authentication.
    pub insecure: bool,
    /// The recorder of watched operations; shown on the admin port.
    pub recorder: Recorder,
    /// Addresses of other servers, to find the root domain by if those known from before have moved.
    pub seeds: Vec<String>,
}

/// Runs a server until SIGTERM, SIGINT or SIGHUP comes, and it has drained.
///
/// # Errors
/// [`ServeError`] if it does not come up, or must not go on.
pub fn run(options: Options) -> Result<(), ServeError> {
    let runtime = runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(2)
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

async fn serve(options: Options) -> Result<(), ServeError> {
    if let Some(name) = &options.name {
        manager::check_server_name(name).map_err(ServeError::InvalidName)?;
    }
    let mut signals = StopSignals::new().map_err(system("waiting for signals"))?;
    let listen = resolve(&options.listen, options.insecure)?;
    address::check(listen, &options)?;
    let admin = bind_admin(&options).await?;
    let health = Arc::new(Health::default());
    let (asking, asked) = mpsc::channel(admin::ASKING);
    let (asking_cluster, asked_cluster) = mpsc::channel(admin::ASKING);
    let recorder = options.recorder.clone();
    let router = admin::router(health.clone(), recorder, asking, asking_cluster);
    let (directory, identity, record) = take_directory(&options).await?;
    let budget = Budget::of(descriptors::raise());
    let door = Door::new(budget.admin);
    spawn_local(Rc::clone(&door).serve(admin, router));

    let (shard, keep) = open(&directory, (&identity, record.incarnation), &options)?;
    let identity = with_extent(identity, &keep);
    let known = known_before(&shard);
    let metrics = Arc::new(Metrics::new());
    let scrub = (options.scrub_bytes_per_s, scrubbing::read(&directory));
    let worker = Worker::new(shard, keep, metrics.clone(), scrub);
    let position = worker.position();
    let own = (&identity, record.incarnation);
    let listener = bind(listen, own, &worker, budget.places).await;
    let listener = listener.map_err(|source| cannot_listen(&options.listen, source))?;
    spawn_local(accept(Rc::clone(&listener)));
    spawn_local(Rc::clone(&worker).upkeep());
    spawn_local(scrubbing::keep(directory.clone(), worker.clone()));
    spawn_local(tell(
        asked,
        (metrics.clone(), options.recorder.clone()),
        Rc::clone(&worker),
        (Rc::clone(&listener), door),
    ));

    let seeds = seeds(&options);
    let registrar = OnceCell::new();
    let joining = async {
        let identity = named((identity, &record), &directory, &options, &seeds.all).await?;
        let name = identity.name.clone();
        // The position of the log before anything was asked of the server.
        let record = ServerRecord {
            name,
            position,
            ..record
        };
        let shown = (listener.process(), metrics.peers());
        let registrar =
            registrar.get_or_init(|| Registrar::new(&identity, record, seeds, known, shown));
        worker.reach(&identity, registrar.network.clone());
        tokio::select! {
            outcome = join(registrar, &identity, &directory, (&worker, options.repair_bytes_per_s), (&health, &metrics)) => outcome,
            never = registrar.show_cluster(identity.cluster, asked_cluster) => match never {},
            never = address::watch(&identity, &registrar.record.address) => match never {},
        }
    };
    let outcome = tokio::select! {
        outcome = joining => outcome,
        error = worker.failed() => Err(ServeError::Store {
            path: directory.path().into(),
            error,
        }),
        () = signals.next() => Ok(()),
    };
    health.set_ready(false);
    let parts = (&worker, &*listener, &*directory);
    stop(parts, registrar.get(), outcome.is_ok()).await;
    outcome
}

async fn bind_admin(options: &Options) -> Result<TcpListener, ServeError> {
    let address = resolve(&options.admin, options.insecure)?;
    let bound = TcpListener::bind(address).await;
    bound.map_err(|source| cannot_listen(&options.admin, source))
}

/// Goes down: what came before is answered if the server is sound.
async fn stop(
    (worker, listener, directory): (&Rc<Worker>, &Listener<NodeService>, &Directory),
    registrar: Option<&Registrar>,
    is_sound: bool,
) {
    tracing::info!("stopping");
    let _ = sd_notify::notify(&[sd_notify::NotifyState::Stopping]);
    if is_sound {
        place::finish(worker, listener, registrar).await;
    }
    worker.drain();
    scrubbing::write(directory, worker);
    worker.close().await;
}

/// The directory, whose server it is, and what is known of that before it starts.
async fn take_directory(
    options: &Options,
) -> Result<(Rc<Directory>, Identity, ServerRecord), ServeError> {
    // The identity of the server is known before anything is made on disk.
    let new = match Directory::has_identity(&options.data)? {
        true => None,
        false => Some(new_identity(options).await?),
    };
    let directory = Rc::new(Directory::open(&options.data)?);
    let is_drawn = new.is_some();
    let identity = identity_of(&directory, new, options)?;
    let record = place::record_of(&identity, is_drawn, options);
    Ok((directory, identity, record))
}

/// The addresses at which other servers may be.
fn seeds(options: &Options) -> Seeds {
    let joined = match &options.start {
        Start::Join { seeds } => seeds.clone(),
        Start::Existing | Start::Init { .. } => Vec::new(),
    };
    let all = [&options.seeds[..], &joined].concat();
    Seeds { all, joined }
}

async fn bind(
    listen: SocketAddr,
    (identity, incarnation): (&Identity, u64),
    worker: &Rc<Worker>,
    places: Places,
) -> io::Result<Rc<Listener<NodeService>>> {
    let service = NodeService {
        identity: WireIdentity {
            cluster: identity.cluster,
            server: identity.server.0,
            incarnation,
        },
        worker: Rc::clone(worker),
    };
    let config = ListenerConfig {
        places,
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

/// Answers those who look at the metrics.
async fn tell(
    mut asked: mpsc::Receiver<oneshot::Sender<String>>,
    (metrics, recorder): (Arc<Metrics>, Recorder),
    worker: Rc<Worker>,
    (listener, door): (Rc<Listener<NodeService>>, Rc<Door>),
) {
    while let Some(answer) = asked.recv().await {
        if let Some((status, waiting)) = worker.status().await {
            let text = metrics.text(&ExternalMetrics {
                status,
                waiting,
                scrubbed: worker.scrubbed(),
                callers: listener.counts(),
                administrators: (door.open(), door.displaced()),
                traffic: listener.traffic(),
                exported: recorder.exported(),
            });
            // The caller may be gone.
            let _ = answer.send(text);
        }
    }
}

/// Has the start confirmed, then serves, and repairs itself, until the caller stops waiting.
async fn join(
    registrar: &Registrar,
    identity: &Identity,
    directory: &Directory,
    (worker, repair_bytes_per_s): (&Rc<Worker>, u64),
    (health, metrics): (&Health, &Metrics),
) -> Result<(), ServeError> {
    let incarnation = registrar.record.incarnation;
    let write = |starts| {
        let identity = identity.clone();
        identity::write(directory, &Identity { starts, ..identity })
    };
    let standstills = worker.standstills();
    let started = registrar.start(identity, worker.abstains(), write).await?;
    place::check(started, directory, incarnation)?;
    worker.serve(standstills);
    health.set_ready(worker.is_serving());
    // Fails only where no service manager listens.
    let _ = sd_notify::notify(&[sd_notify::NotifyState::Ready]);
    let record = &registrar.record;
    tracing::info!(name = %identity.name, incarnation, cluster = format!("{:032x}", identity.cluster), address = %record.address, admin = %record.admin, "serving");
    let work = async {
        registrar.learn_servers(worker).await;
        tokio::select! {
            never = registrar.repair(identity, worker, repair_bytes_per_s) => match never {},
            never = registrar.lead(identity, worker) => match never {},
            never = registrar.grow(identity) => match never {},
            never = registrar.watch_domains(metrics) => match never {},
        }
    };
    let path = directory.path();
    // No other process can be a server in memory.
    tokio::select! {
        never = work => match never {},
        registered = registrar.hold(worker, health), if !identity.memory => {
            Err(ServeError::Superseded { path: path.into(), registered })
        }
    }
}

/// The identity in the directory, which has one from now on. That of a server in memory is written when its start begins, so that
/// no other process finds it and serves under it (`[X-28 memory-replaced]`).
fn identity_of(
    directory: &Directory,
    new: Option<Identity>,
    options: &Options,
) -> Result<Identity, ServeError> {
    let path = options.data.clone();
    let memory = options.durability == Durability::Memory;
    let identity = match (identity::read(directory)?, new) {
        (Some(identity), _) => identity,
        (None, Some(new)) if new.memory => new,
        (None, Some(new)) => {
            identity::write(directory, &new)?;
            new
        }
        (None, None) => return Err(ServeError::NotInitialised { path }),
    };
    if identity.memory != memory {
        let memory = identity.memory;
        return Err(ServeError::Durability { path, memory });
    }
    if !may_start(memory, identity.starts) {
        return Err(ServeError::MemoryRestart { path });
    }
    Ok(identity)
}

/// The identity with a name, which is written down if it is new.
async fn named(
    (mut identity, record): (Identity, &ServerRecord),
    directory: &Directory,
    options: &Options,
    seeds: &[String],
) -> Result<Identity, ServeError> {
    if identity.name.is_empty() {
        let own = (&identity, record);
        identity.name = naming::name(own, options.name.as_deref(), seeds).await?;
        if !identity.memory {
            identity::write(directory, &identity)?;
        }
    }
    options.recorder.name_process(identity.name.clone());
    Ok(identity)
}

async fn new_identity(options: &Options) -> Result<Identity, ServeError> {
    let server = ServerId(identity::random());
    let (cluster, root, name) = match &options.start {
        Start::Existing => {
            return Err(ServeError::NotInitialised {
                path: options.data.clone(),
            });
        }
        Start::Init { fixed_root } => (
            identity::random(),
            identity::root_configuration(&[server], *fixed_root),
            options.name.clone().unwrap_or_else(|| "s1".into()),
        ),
        Start::Join { seeds } => {
            registration::check_seeds(seeds, server).await?;
            let found = registration::find_cluster(seeds, server).await?;
            // It gets its name when it can be found under it.
            (found.cluster, found.directory.root, String::new())
        }
    };
    Ok(Identity {
        cluster,
        server,
        name,
        starts: Starts::NONE,
        memory: options.durability == Durability::Memory,
        extent: 0,
        root,
    })
}

/// The identity as it is to be written down with the start that is registered next.
fn with_extent(identity: Identity, keep: &Durable) -> Identity {
    let extent = keep.log().map_or(0, Records::extent);
    Identity {
        extent: identity.extent.max(extent),
        ..identity
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
    report(&opened, directory);
    Ok((shard, Durable::Disk(Box::new(records))))
}

fn report(opened: &areo_store::records::OpeningReport, directory: &Directory) {
    let log = &opened.log;
    tracing::info!(
        records = log.records,
        scanned_bytes = log.scanned_bytes,
        damaged = log.damaged_payloads,
        "store opened"
    );
    if let Some(torn) = log.torn_tail {
        tracing::info!(
            segment = torn.segment,
            offset = torn.offset,
            "cut an unfinished batch, which was never acknowledged"
        );
    }
    if opened.is_unreadable() {
        tracing::error!(
            records = log.unknown_damaged + opened.unknown_records,
            missing = log.missing(),
            path = %directory.path().display(),
            "records are missing from the log, or damaged beyond recognition: this server answers for no object; replace it by a new one"
        );
    }
}

fn cannot_listen(address: &str, source: io::Error) -> ServeError {
    let address = address.to_owned();
    ServeError::Listen { address, source }
}

fn resolve(address: &str, insecure: bool) -> Result<SocketAddr, ServeError> {
    let invalid = || io::Error::new(io::ErrorKind::InvalidInput, "not of the form host:port");
    let found = address.to_socket_addrs().map(|mut found| found.next());
    let found = found
        .and_then(|found| found.ok_or_else(invalid))
        .map_err(|source| cannot_listen(address, source))?;
    if !insecure && !registration::is_loopback(&found) {
        return Err(ServeError::NotLoopback {
            address: address.to_owned(),
        });
    }
    Ok(found)
}
