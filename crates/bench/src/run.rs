//! A run of the nemesis from the first directory to the verdict.

use crate::cluster::{Cluster, ClusterError, Place, Program, loopback_places};
use crate::disk::SmallDisk;
use crate::namespace::Namespaces;
use crate::nemesis::{self, Disk, Reconfigurers, World};
use crate::proxy::Proxy;
use crate::random::Random;
use crate::report::{Report, TroubleCount};
use crate::trouble::{Lane, Schedule, Trouble};
use crate::workload::{self, DOMAINS, Habits, Recorder, Shared, value};
use areo_check::{History, HistoryError, judge};
use areo_client::{Client, DEFAULT_TIMEOUT, Dap, DomainOptions, Error, Health};
use std::cell::Cell;
use std::fmt;
use std::fs::File;
use std::io::{self, BufReader};
use std::path::PathBuf;
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::task::{JoinSet, LocalSet};
use tokio::time::{sleep, timeout};

/// How long servers may take to serve when nothing hinders them.
pub(crate) const SERVE: Duration = Duration::from_mins(1);
/// How long clients may take for their last operations.
const FINISH: Duration = Duration::from_mins(3);
/// How often the progress is reported.
const TICK: Duration = Duration::from_millis(200);

/// What to do.
#[derive(Clone)]
pub struct Options {
    /// The program `areo`.
    pub program: Program,
    /// Server processes, from 3 to 32.
    pub servers: usize,
    /// Clients at a time.
    pub clients: usize,
    /// How long there is to be trouble.
    pub time: Duration,
    /// Of schedule and clients.
    pub seed: u64,
    /// What may happen.
    pub kinds: Vec<Trouble>,
    /// Where the history goes; `None`: with the rest, and away with it.
    pub history: Option<PathBuf>,
    /// Where the servers' folder is made.
    pub data: PathBuf,
    /// How long an operation may take while there is trouble.
    pub timeout: Duration,
    /// Between two troubles of the same sort, on average.
    pub pause: Duration,
}

/// How it goes.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// How long there has been trouble.
    pub elapsed: Duration,
    /// Operations so far.
    pub operations: u64,
    /// kill -9 so far.
    pub kills: u64,
}

/// The run could not be carried out, so that nothing is known.
#[derive(Debug)]
pub enum RunError {
    /// The cluster could not be made, or did not serve.
    Cluster {
        /// Why.
        source: ClusterError,
    },
    /// The operating system refused something.
    System {
        /// What was tried.
        what: String,
        /// What it said.
        source: io::Error,
    },
    /// A tool for packets failed.
    Packets {
        /// Which, and what it said.
        why: String,
    },
    /// What has to succeed did not.
    Operation {
        /// What was tried.
        what: String,
        /// How it ended.
        error: String,
    },
    /// The history that was written cannot be read.
    History {
        /// Why.
        source: HistoryError,
    },
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RunError::Cluster { source } => source.fmt(f),
            RunError::System { what, source } => write!(f, "cannot {what}: {source}"),
            RunError::Packets { why } => f.write_str(why),
            RunError::Operation { what, error } => write!(f, "cannot {what}: {error}"),
            RunError::History { source } => write!(f, "the history that was recorded: {source}"),
        }
    }
}

impl std::error::Error for RunError {}

impl From<ClusterError> for RunError {
    fn from(source: ClusterError) -> RunError {
        RunError::Cluster { source }
    }
}

pub(crate) fn failed<E: std::fmt::Display>(what: impl Into<String>) -> impl FnOnce(E) -> RunError {
    let what = what.into();
    move |error| RunError::Operation {
        what,
        error: error.to_string(),
    }
}

pub(crate) fn system(what: impl Into<String>) -> impl FnOnce(io::Error) -> RunError {
    let what = what.into();
    move |source| RunError::System { what, source }
}

/// Starts a cluster, makes trouble for as long as was asked, mends everything, and judges. Dropping the future ends the
/// processes and removes everything but a history that was asked for.
///
/// # Errors
/// [`RunError`]: nothing is known then. Broken promises are no error, but in the [`Report`].
pub async fn run(options: Options, observe: impl Fn(Progress)) -> Result<Report, RunError> {
    LocalSet::new().run_until(all(options, observe)).await
}

async fn all(options: Options, observe: impl Fn(Progress)) -> Result<Report, RunError> {
    let begun = Instant::now();
    let mut scene = Scene::set(&options).await?;
    let clients = scene.clients(&options);
    let troubled = Instant::now();
    scene.trouble(&options, observe).await?;
    let trouble_ms = troubled.elapsed().as_millis() as u64;
    let Scene {
        world,
        cluster,
        reconfigurers,
        history,
        not_run,
    } = &mut scene;
    let shared = world.shared.clone();
    // Before everything works again, so that the wait for it counts.
    mend(world, cluster).await?;
    nemesis::finish_changes(world, reconfigurers).await;
    finish(&shared, clients).await;
    check_counters(cluster, &shared).await?;
    check_servers(world, cluster).await?;
    let mut recorder = shared.recorder.borrow_mut();
    recorder
        .finish()
        .map_err(system(format!("write {}", history.display())))?;
    let file = File::open(&history).map_err(system(format!("read {}", history.display())))?;
    let judged = History::read(BufReader::with_capacity(1 << 20, file));
    let judged = judge(&judged.map_err(|source| RunError::History { source })?);
    let gaps = recorder.longest_windows().into_iter();
    let mut report = Report {
        seed: options.seed,
        servers: options.servers,
        clients: options.clients,
        trouble_ms,
        total_ms: begun.elapsed().as_millis() as u64,
        operations: judged.counts.clone(),
        troubles: fired(&shared, &options.kinds, not_run),
        kills: shared.kills(),
        longest_gap_ms: DOMAINS
            .into_iter()
            .zip(gaps.map(|gap| gap.as_millis() as u64))
            .collect(),
        verdict: judged.verdict,
        violations: shared.violations(),
        judged: judged.to_string(),
        history: options.history.clone(),
        kept: None,
    };
    if !report.holds() {
        cluster.keep_folder();
        report.history = Some(history.clone());
        report.kept = Some(cluster.folder().to_owned());
    }
    Ok(report)
}

fn fired(shared: &Shared, kinds: &[Trouble], not_run: &[(Lane, String)]) -> Vec<TroubleCount> {
    let fired = |trouble: &Trouble| TroubleCount {
        trouble: *trouble,
        times: shared.count(*trouble),
        not_run: reason(not_run, trouble.lane()),
    };
    kinds.iter().map(fired).collect()
}

fn reason(not_run: &[(Lane, String)], lane: Lane) -> Option<String> {
    let found = not_run.iter().find(|(which, _)| *which == lane);
    found.map(|(_, why)| why.clone())
}

/// Everything that a run needs. Dropped in this order: processes end before what they stand on goes.
struct Scene {
    cluster: Cluster,
    world: World,
    reconfigurers: Reconfigurers,
    history: PathBuf,
    /// Lanes that have nothing to do here, and why.
    not_run: Vec<(Lane, String)>,
}

impl Scene {
    async fn set(options: &Options) -> Result<Scene, RunError> {
        let mut not_run = Vec::new();
        let (namespaces, mut places) = network(options, &mut not_run).await;
        let disk = small_disk(options, &mut places, &mut not_run);
        let addresses = |place: &Place| (place.advertise.clone(), place.listen.clone());
        let pairs: Vec<(String, String)> = places.iter().map(addresses).collect();
        let proxy = Proxy::start(&pairs)
            .await
            .map_err(system("start the proxy"))?;
        let mut cluster = Cluster::make(&options.program, places, &options.data, false)?;
        let history = options.history.clone();
        let history = history.unwrap_or_else(|| cluster.folder().join("history.jsonl"));
        let recorder = Recorder::create(&history, &DOMAINS);
        let recorder = recorder.map_err(system(format!("write {}", history.display())))?;
        cluster.start_all()?;
        for server in 0..options.servers {
            cluster.ready(server, SERVE).await;
        }
        let k = u8::try_from(options.servers - 2).expect("at most 32 servers");
        let conditional = Dap::Conditional { k: 1 };
        for (name, dap) in
            DOMAINS
                .into_iter()
                .zip([Dap::Abd, Dap::Ec { k }, conditional, conditional])
        {
            let shape = DomainOptions {
                dap,
                ..DomainOptions::default()
            };
            cluster.domain(name, shape).await?;
        }
        let disk = match disk {
            None => None,
            Some(small) => {
                let shape = DomainOptions {
                    servers: vec![cluster.name(options.servers - 1).to_owned()],
                    allow_f0: true,
                    ..DomainOptions::default()
                };
                let domain = cluster.domain("disk", shape).await?;
                let domain = domain.with_timeout(options.timeout);
                Some(Disk { small, domain })
            }
        };
        let world = World {
            shared: Rc::new(Shared::new(recorder)),
            proxy,
            servers: options.servers,
            until: Instant::now() + options.time,
            pause: options.pause,
            disk,
            namespaces,
        };
        let names = (0..options.servers).map(|server| cluster.name(server).to_owned());
        let reconfigurers = Reconfigurers {
            connect: cluster.connect(options.timeout),
            servers: names.collect(),
            lives: Cell::new(0),
        };
        Ok(Scene {
            cluster,
            world,
            reconfigurers,
            history,
            not_run,
        })
    }

    fn clients(&self, options: &Options) -> JoinSet<()> {
        let habits = Habits {
            connect: self.cluster.connect(options.timeout),
            seed: Random::new(options.seed),
            deaths: options.kinds.contains(&Trouble::Client),
        };
        let mut clients = JoinSet::new();
        for place in 0..options.clients as u64 {
            clients.spawn_local(workload::work(
                self.world.shared.clone(),
                habits.clone(),
                place,
            ));
        }
        clients
    }

    async fn trouble(
        &mut self,
        options: &Options,
        observe: impl Fn(Progress),
    ) -> Result<(), RunError> {
        let (world, seed) = (&self.world, Random::new(options.seed));
        let schedule = |lane| Schedule::new(lane, &options.kinds, &seed);
        let lanes = async {
            let who = &self.reconfigurers;
            let (processes, (), packets, disk, ()) = tokio::join!(
                nemesis::processes(world, &mut self.cluster, schedule(Lane::Processes)),
                nemesis::links(world, schedule(Lane::Links)),
                nemesis::packets(world, schedule(Lane::Packets)),
                nemesis::disk(world, schedule(Lane::Disk)),
                nemesis::changes(world, who, schedule(Lane::Configurations)),
            );
            processes?;
            packets.map_err(|why| RunError::Packets { why })?;
            disk.map_err(system("fill the small disk"))
        };
        let begun = Instant::now();
        let watch = async {
            loop {
                sleep(TICK).await;
                observe(Progress {
                    elapsed: begun.elapsed(),
                    operations: world.shared.recorder.borrow().operations(),
                    kills: world.shared.kills(),
                });
            }
        };
        tokio::select! {
            done = lanes => done,
            () = watch => unreachable!("it does not end"),
        }
    }
}

/// Where servers are: in namespaces of their own if packets are to be dropped and that can be done.
async fn network(
    options: &Options,
    not_run: &mut Vec<(Lane, String)>,
) -> (Option<Namespaces>, Vec<Place>) {
    if options
        .kinds
        .iter()
        .any(|kind| kind.lane() == Lane::Packets)
    {
        match Namespaces::make(options.servers).await {
            Ok(made) => {
                let places = made.places();
                return (Some(made), places);
            }
            Err(why) => not_run.push((Lane::Packets, why)),
        }
    }
    (None, loopback_places(options.servers, true))
}

/// A small disk for the last server, if one is to be filled and that can be done.
fn small_disk(
    options: &Options,
    places: &mut [Place],
    not_run: &mut Vec<(Lane, String)>,
) -> Option<SmallDisk> {
    if !options.kinds.contains(&Trouble::FullDisk) {
        return None;
    }
    match SmallDisk::mount(&options.data) {
        Ok(disk) => {
            let last = places.last_mut().expect("there are servers");
            last.data = Some(disk.directory());
            Some(disk)
        }
        Err(why) => {
            not_run.push((Lane::Disk, why));
            None
        }
    }
}

/// Every server runs and serves. The lanes have ended, and with them all that they did to links, packets and disks.
async fn mend(world: &World, cluster: &mut Cluster) -> Result<(), RunError> {
    nemesis::notice_deaths(world, cluster)?;
    cluster.start_all()?;
    for server in 0..world.servers {
        if !cluster.ready(server, SERVE).await {
            let name = cluster.name(server);
            world.shared.violation(format!(
                "{name} does not serve although everything was mended {} s ago",
                SERVE.as_secs()
            ));
        }
    }
    world.shared.mended.set(true);
    Ok(())
}

async fn finish(shared: &Shared, mut clients: JoinSet<()>) {
    let all = async {
        while let Some(ended) = clients.join_next().await {
            ended.expect("clients do not panic");
        }
    };
    if timeout(FINISH, all).await.is_err() {
        shared.violation(format!(
            "operations did not end within {} s after everything was mended",
            FINISH.as_secs()
        ));
    }
}

/// No increment was lost, and none happened twice.
async fn check_counters(cluster: &Cluster, shared: &Shared) -> Result<(), RunError> {
    let client = Client::connect(cluster.connect(DEFAULT_TIMEOUT)).await;
    let client = client.map_err(failed("connect to read the counters"))?;
    // The clients have ended.
    for ((place, key), increments) in shared.increments.take() {
        let domain = client.domain(DOMAINS[place]).await;
        let domain = domain.map_err(failed("open the domain of a counter"))?;
        let count = match domain.get(&key).await {
            Ok(read) => value::count(&value::recognise(&read.into_bytes())),
            Err(Error::NotFound { key: Some(_), .. }) => 0,
            Err(error) => return Err(failed("read a counter")(error)),
        };
        if let Some(sentence) = increments.against(count) {
            let name = DOMAINS[place];
            shared.violation(format!(
                "counter '{key}' of '{name}' is {count}: {sentence}"
            ));
        }
    }
    Ok(())
}

/// No server has ended, panicked or found damage; all of them stop at the signal.
async fn check_servers(world: &World, cluster: &mut Cluster) -> Result<(), RunError> {
    let shared = &world.shared;
    nemesis::notice_deaths(world, cluster)?;
    match Client::connect(cluster.connect(DEFAULT_TIMEOUT)).await {
        Err(error) => shared.violation(format!("the cluster cannot be found: {error}")),
        Ok(client) => {
            for server in client.status().await.servers {
                let name = &server.server.name;
                match server.status {
                    Health::Answered(status) if status.serving && status.damaged == 0 => {}
                    other => shared.violation(format!("{name} is not as it should be: {other:?}")),
                }
            }
        }
    }
    for server in 0..world.servers {
        let ended = cluster.terminate(server, nemesis::STOP).await;
        nemesis::check_stopped(shared, cluster.name(server), ended);
        if let Some(line) = panicked(&cluster.log(server)) {
            shared.violation(format!("{} panicked: {line}", cluster.name(server)));
        }
    }
    Ok(())
}

fn panicked(log: &str) -> Option<&str> {
    log.lines().find(|line| line.contains("panicked at"))
}
