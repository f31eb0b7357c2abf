//! A run of the nemesis from the first directory to the verdict.

use crate::clock::WallClock;
use crate::cluster::{Cluster, Place, Program, loopback_places};
use crate::disk::SmallDisk;
use crate::error::{RunError, failed, system};
use crate::load::{self, Increments, Load, value};
use crate::namespace::Namespaces;
use crate::nemesis::{self, Disk, Incidents, Reconfigurers, World};
use crate::random::Random;
use crate::report::{Report, TroubleCount};
use crate::setup::{SERVE, proxy_before};
use crate::target::{AreoCaller, Caller};
use crate::trouble::{Lane, Schedule, Trouble};
use crate::workload::{self, DOMAINS};
use areo_check::{History, Kind, Outcome, judge};
use areo_client::{Client, DEFAULT_TIMEOUT, DomainOptions, Health};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufReader;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::task::LocalSet;
use tokio::time::sleep;

/// The longest time that clients may take for their last operations.
const FINISH: Duration = Duration::from_mins(3);
/// The interval at which the progress is reported.
const TICK: Duration = Duration::from_millis(200);

/// Options of a run of the nemesis.
#[derive(Clone)]
pub struct Options {
    pub program: Program,
    /// Server processes, from 3 to 32.
    pub servers: usize,
    /// Clients at a time.
    pub clients: usize,
    /// The time that there is to be trouble.
    pub time: Duration,
    /// Seed of the schedule and of the clients.
    pub seed: u64,
    /// The kinds of trouble that may happen.
    pub kinds: Vec<Trouble>,
    /// File for the history; `None`: the history is removed with the servers' folder.
    pub history: Option<PathBuf>,
    /// Folder in which the servers' folder is made.
    pub data: PathBuf,
    /// The longest time that an operation may take while there is trouble.
    pub timeout: Duration,
    /// Between two troubles of the same sort, on average.
    pub pause: Duration,
}

/// The progress of a run.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// The time that there has been trouble.
    pub elapsed: Duration,
    /// Operations of all clients so far.
    pub operations: u64,
    /// kill -9 so far.
    pub kills: u64,
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
    let load = scene.clients(&options);
    let troubled = Instant::now();
    scene.trouble(&options, &load, observe).await?;
    let trouble_ms = troubled.elapsed().as_millis() as u64;
    let Scene {
        world,
        cluster,
        reconfigurers,
        path,
        not_run,
    } = &mut scene;
    // Before everything works again, so that the wait for it counts.
    mend(world, cluster).await?;
    let finish_changes = nemesis::finish_changes(world, reconfigurers);
    let ((), ended) = tokio::join!(finish_changes, load.stop_within(FINISH));
    if !ended.in_time {
        world.incidents.violation(format!(
            "operations did not end within {} s after everything was mended",
            FINISH.as_secs()
        ));
    }
    check_counters(cluster, ended.increments, &world.incidents).await?;
    nemesis::finish_keys(world, &cluster.connect(DEFAULT_TIMEOUT)).await;
    check_servers(world, cluster).await?;
    let finished = world.history.finish();
    finished.map_err(system(format!("write {}", path.display())))?;
    let file = File::open(&*path).map_err(system(format!("read {}", path.display())))?;
    let history = History::read(BufReader::with_capacity(1 << 20, file));
    let history = history.map_err(failed("read the history that was recorded"))?;
    let judged = judge(&history);
    let mut violations = world.incidents.violations();
    violations.extend(world.keys.violations());
    violations.extend(ended.failures.first);
    let fired = |trouble: &Trouble| TroubleCount {
        trouble: *trouble,
        times: match trouble {
            Trouble::Client => ended.deaths,
            other => world.incidents.count(*other),
        },
        not_run: reason(not_run, trouble.lane()),
    };
    let mut report = Report {
        seed: options.seed,
        servers: options.servers,
        clients: options.clients,
        trouble_ms,
        total_ms: begun.elapsed().as_millis() as u64,
        operations: judged.counts.clone(),
        troubles: options.kinds.iter().map(fired).collect(),
        kills: world.incidents.kills(),
        key_requests: world.keys.counts(),
        longest_gap_ms: DOMAINS
            .map(|name| (name, longest_gap_ms(&history, name)))
            .into(),
        verdict: judged.verdict,
        violations,
        judged: judged.to_string(),
        history: options.history.clone(),
        kept: None,
    };
    if !report.holds() {
        cluster.keep_folder();
        report.history = Some(path.clone());
        report.kept = Some(cluster.folder().to_owned());
    }
    Ok(report)
}

/// The longest time without a success of a client in this domain, from the beginning on.
fn longest_gap_ms(history: &History, domain: &str) -> u64 {
    let of_domain = history.operations().iter().filter(|operation| {
        let object = history.objects()[operation.object as usize];
        history.text(object.domain) == domain && operation.kind != Kind::Reconfig
    });
    let succeeded = of_domain.filter(|operation| operation.outcome == Outcome::Ok);
    let mut ends: Vec<u64> = succeeded.filter_map(|it| Some(it.ended?.t_ns)).collect();
    ends.push(0);
    ends.sort_unstable();
    let gaps = ends.windows(2).map(|pair| pair[1] - pair[0]);
    gaps.max().unwrap_or(0) / 1_000_000
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
    /// Path of the history.
    path: PathBuf,
    /// Lanes that have nothing to do here, and why.
    not_run: Vec<(Lane, String)>,
}

impl Scene {
    async fn set(options: &Options) -> Result<Scene, RunError> {
        let mut not_run = Vec::new();
        let (namespaces, mut places) = network(options, &mut not_run).await;
        let disk = small_disk(options, &mut places, &mut not_run);
        let proxy = proxy_before(&places).await?;
        let clock = wall_clock(options, &mut not_run);
        let program = Program {
            has_keys: true,
            ..options.program.clone()
        };
        let program = match &clock {
            Some(clock) => clock.moving(program),
            None => program,
        };
        let mut cluster = Cluster::make(&program, places, &options.data, false)?;
        let path = options.history.clone();
        let path = path.unwrap_or_else(|| cluster.folder().join("history.jsonl"));
        let history = load::History::create(&path);
        let history = history.map_err(system(format!("write {}", path.display())))?;
        cluster.start_all()?;
        for server in 0..options.servers {
            cluster.ready(server, SERVE).await;
        }
        for (name, dap) in DOMAINS.into_iter().zip(workload::shapes(options.servers)) {
            let shape = DomainOptions {
                dap,
                ..DomainOptions::default()
            };
            cluster.domain(name, shape).await?;
        }
        let disk = match disk {
            None => None,
            Some(small) => {
                let shape = alone(cluster.name(options.servers - 1));
                let domain = cluster.domain("disk", shape).await?;
                let domain = domain.with_timeout(options.timeout);
                Some(Disk { small, domain })
            }
        };
        if moves_trust(options) {
            own_domains(&cluster).await?;
        }
        let world = World {
            incidents: Incidents::default(),
            history,
            proxy,
            servers: options.servers,
            until: Instant::now() + options.time,
            pause: options.pause,
            disk,
            namespaces,
            clock,
            admins: cluster.admins(),
            keys: Rc::default(),
        };
        let names = (0..options.servers).map(|server| cluster.name(server).to_owned());
        let reconfigurers = Reconfigurers {
            connect: cluster.connect(options.timeout),
            servers: names.collect(),
        };
        Ok(Scene {
            cluster,
            world,
            reconfigurers,
            path,
            not_run,
        })
    }

    fn clients(&self, options: &Options) -> Load {
        let clients = (options.clients, options.kinds.contains(&Trouble::Client));
        let connect = self.cluster.connect(options.timeout);
        let plan = workload::plan(clients, connect, self.world.history.clone(), options.seed);
        Load::of(Vec::new(), &plan, None)
    }

    async fn trouble(
        &mut self,
        options: &Options,
        load: &Load,
        observe: impl Fn(Progress),
    ) -> Result<(), RunError> {
        let (world, seed) = (&self.world, Random::new(options.seed));
        let schedule = |lane| Schedule::new(lane, &options.kinds, &seed);
        if moves_trust(options) {
            nemesis::begin_witness(world, &self.cluster.connect(options.timeout)).await;
        }
        let lanes = async {
            let who = &self.reconfigurers;
            let administrator = self.cluster.connect(options.timeout);
            let of_clocks = self.cluster.connect(options.timeout);
            let (processes, (), packets, disk, (), (), clocks) = tokio::join!(
                nemesis::processes(world, &mut self.cluster, schedule(Lane::Processes)),
                nemesis::links(world, schedule(Lane::Links)),
                nemesis::packets(world, schedule(Lane::Packets)),
                nemesis::disk(world, schedule(Lane::Disk)),
                nemesis::changes(world, who, schedule(Lane::Configurations)),
                nemesis::trust(world, administrator, schedule(Lane::Trust)),
                nemesis::clocks(world, of_clocks, schedule(Lane::Clocks)),
            );
            processes?;
            clocks.map_err(system("move the clocks of servers"))?;
            packets.map_err(RunError::Failed)?;
            disk.map_err(system("fill the small disk"))
        };
        let begun = Instant::now();
        let watch = async {
            loop {
                sleep(TICK).await;
                observe(Progress {
                    elapsed: begun.elapsed(),
                    operations: load.operations(),
                    kills: world.incidents.kills(),
                });
            }
        };
        tokio::select! {
            done = lanes => done,
            () = watch => unreachable!("it does not end"),
        }
    }
}

/// The places of the servers: in network namespaces of their own if packets are to be dropped and namespaces can be
/// made.
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

/// True if keys, CAs or clocks are to change, so that keys are used at each server by itself.
fn moves_trust(options: &Options) -> bool {
    let is_of_trust = |kind: &Trouble| matches!(kind.lane(), Lane::Trust | Lane::Clocks);
    options.kinds.iter().any(is_of_trust)
}

/// Makes a domain for each server that it alone holds.
async fn own_domains(cluster: &Cluster) -> Result<(), RunError> {
    for server in 0..cluster.servers() {
        let shape = alone(cluster.name(server));
        cluster.domain(&nemesis::own_domain(server), shape).await?;
    }
    Ok(())
}

/// A domain that this server alone holds.
fn alone(server: &str) -> DomainOptions {
    DomainOptions {
        servers: vec![server.to_owned()],
        allow_f0: true,
        ..DomainOptions::default()
    }
}

/// A clock for the servers that can be moved, if it is to be and that can be done.
fn wall_clock(options: &Options, not_run: &mut Vec<(Lane, String)>) -> Option<WallClock> {
    if !options.kinds.iter().any(|kind| kind.lane() == Lane::Clocks) {
        return None;
    }
    let made = WallClock::make(&options.data);
    made.map_err(|why| not_run.push((Lane::Clocks, why))).ok()
}

/// Every server runs and serves. The lanes have ended, and with them all that they did to links, packets and disks.
async fn mend(world: &World, cluster: &mut Cluster) -> Result<(), RunError> {
    nemesis::notice_deaths(world, cluster)?;
    cluster.start_all()?;
    for server in 0..world.servers {
        if !cluster.ready(server, SERVE).await {
            let name = cluster.name(server);
            world.incidents.violation(format!(
                "{name} does not serve although everything was mended {} s ago",
                SERVE.as_secs()
            ));
        }
    }
    Ok(())
}

/// No increment was lost, and none happened twice.
async fn check_counters(
    cluster: &Cluster,
    counters: BTreeMap<(usize, String), Increments>,
    incidents: &Incidents,
) -> Result<(), RunError> {
    for ((place, key), increments) in counters {
        let (name, connect) = (DOMAINS[place], cluster.connect(DEFAULT_TIMEOUT));
        let read = AreoCaller::connect(&connect, name).await?.get(&key).await;
        let (found, _) = read.map_err(failed("read a counter"))?;
        let count = found.map_or(0, |found| value::count(&value::recognise(&found)));
        if let Some(sentence) = increments.against(count) {
            incidents.violation(format!(
                "counter '{key}' of '{name}' is {count}: {sentence}"
            ));
        }
    }
    Ok(())
}

/// No server has ended, panicked or found damage; all of them stop at the signal.
async fn check_servers(world: &World, cluster: &mut Cluster) -> Result<(), RunError> {
    let incidents = &world.incidents;
    nemesis::notice_deaths(world, cluster)?;
    match Client::connect(cluster.connect(DEFAULT_TIMEOUT)).await {
        Err(error) => incidents.violation(format!("the cluster cannot be found: {error}")),
        Ok(client) => {
            for server in client.status().await.servers {
                let name = &server.server.name;
                match server.status {
                    Health::Answered(status) if status.serving && status.damaged == 0 => {}
                    other => {
                        incidents.violation(format!("{name} is not as it should be: {other:?}"));
                    }
                }
            }
        }
    }
    for server in 0..world.servers {
        let ended = cluster.terminate(server, nemesis::STOP).await;
        nemesis::check_stopped(incidents, cluster.name(server), ended);
        if let Some(line) = panicked(&cluster.log(server)) {
            incidents.violation(format!("{} panicked: {line}", cluster.name(server)));
        }
    }
    Ok(())
}

fn panicked(log: &str) -> Option<&str> {
    log.lines().find(|line| line.contains("panicked at"))
}
