//! Measuring what readers and writers notice when as many servers die as may fail.

pub use crate::load::PhaseReport;

use crate::cluster::Cluster;
use crate::error::{RunError, failed};
use crate::load::{Load, Phase, Times};
use crate::random::Random;
use crate::setup::{SERVE, Setup};
use areo_client::{Dap, DomainOptions, Shape};
use serde::Serialize;
use std::time::{Duration, Instant};
use tokio::task::LocalSet;
use tokio::time::sleep;

/// The domain that is read and written.
const DOMAIN: &str = "available";
/// Unmeasured time in which servers that are back fetch the versions that they missed.
const AFTERWARDS: Duration = Duration::from_millis(500);

/// The way in which servers fail.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum FailureKind {
    /// Their processes are killed: connections to them end at once.
    Killed,
    /// Their processes are stopped: connections to them stay, and no answer comes.
    Stopped,
}

/// Options of a measurement.
pub struct Options {
    /// Servers, all of them members of the domain, objects and clients. What is in memory only is forgotten by a server that
    /// is killed.
    pub setup: Setup,
    /// The kind by which the domain keeps values.
    pub dap: Dap,
    /// The way in which servers fail.
    pub failing: FailureKind,
    /// The number of times that servers fail; another set of them each time, until all had their turn.
    pub failures: u32,
    /// The measured time with all servers before each failure, and how long after it.
    pub time: Duration,
}

/// A measurement. The names of the fields are those of `--json`, and stay.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Report {
    pub seed: u64,
    /// Number of server processes.
    pub servers: usize,
    /// The shape of the domain, such as `ec [5,3]`.
    pub shape: String,
    /// The way in which servers failed.
    pub failing: FailureKind,
    /// The number of them at once: as many as may.
    pub failing_at_once: usize,
    /// The failed servers, failure by failure, numbered from 1.
    pub failed_servers: Vec<Vec<usize>>,
    /// Objects of the domain.
    pub objects: u64,
    /// Bytes of each object.
    pub size: usize,
    /// Clients that read and wrote.
    pub clients: usize,
    /// The meaning of an acknowledgement: `memory` or `fsync`.
    pub durability: &'static str,
    /// Operations of clients that failed, or read a value that was never written.
    pub failed: u64,
    /// The first of them, in sentences.
    pub failures: Vec<String>,
    /// The longest time in which no operation succeeded, from the failure on, in milliseconds.
    pub longest_gap_ms: f64,
    /// p99 of reads from the failure on, beyond one read without it, divided by p99 without it.
    pub read_p99_ratio: f64,
    /// The ratio of the p99 of writes.
    pub write_p99_ratio: f64,
    /// The phase with all servers.
    pub without: PhaseReport,
    /// The phase from failures on.
    pub with: PhaseReport,
    /// The time that everything took, in milliseconds.
    pub total_ms: u64,
}

/// Starts a cluster and measures; `observe` gets the number of failures so far. Dropping the future ends the
/// processes and removes their files.
///
/// # Errors
/// [`RunError`]: nothing is known then. Operations of clients that failed are no error, but in the [`Report`].
pub async fn run(options: Options, observe: impl Fn(u32)) -> Result<Report, RunError> {
    LocalSet::new().run_until(all(options, observe)).await
}

async fn all(options: Options, observe: impl Fn(u32)) -> Result<Report, RunError> {
    let begun = Instant::now();
    let setup = &options.setup;
    let shape = Shape::new(options.dap, setup.servers).map_err(failed("make the domain"))?;
    let mut started = setup.start().await?;
    let domain = DomainOptions {
        dap: options.dap,
        servers: started.servers.clone(),
        ..DomainOptions::default()
    };
    started
        .domain(DOMAIN, domain, (setup.size, setup.objects), None)
        .await?;

    let sets = sets(&options, shape.f());
    let (plan, clients) = (setup.plan(), started.callers(DOMAIN, setup.clients).await?);
    let load = Load::of(clients, &plan, None);
    sleep(plan.warm_up).await;
    let cluster = &mut started.cluster;
    for (over, set) in (1..).zip(&sets) {
        load.enter(Phase::Still);
        sleep(options.time).await;
        load.enter(Phase::Disturbed);
        fail(cluster, set, options.failing).await;
        sleep(options.time).await;
        load.enter(Phase::Unmeasured);
        mend(cluster, set, options.failing).await?;
        observe(over);
    }
    let ended = load.stop().await;
    let (without, with) = (ended.still.fared(), ended.disturbed.fared());
    Ok(Report {
        seed: setup.seed,
        servers: setup.servers,
        shape: shape.to_string(),
        failing: options.failing,
        failing_at_once: shape.f(),
        failed_servers: sets,
        objects: setup.objects,
        size: setup.size,
        clients: setup.clients,
        durability: setup.durability(),
        failed: ended.failures.count,
        failures: ended.failures.first,
        longest_gap_ms: with.longest_gap_ms,
        read_p99_ratio: ratio(&with.read, &without.read, &without),
        write_p99_ratio: ratio(&with.write, &without.write, &without),
        without,
        with,
        total_ms: begun.elapsed().as_millis() as u64,
    })
}

/// Ratio of the p99 latencies with and without events. One round trip, which is the median of a read, is subtracted
/// from the first one.
fn ratio(with: &Times, without: &Times, all: &PhaseReport) -> f64 {
    (with.p99_us - all.read.p50_us).max(0.0) / without.p99_us
}

/// The servers that fail, time by time: sets of `f`, drawn without drawing one twice before all had their turn.
fn sets(options: &Options, f: usize) -> Vec<Vec<usize>> {
    let servers = options.setup.servers;
    let every: Vec<u64> = (0..1_u64 << servers)
        .filter(|bits| bits.count_ones() as usize == f)
        .collect();
    let (mut random, mut left) = (Random::new(options.setup.seed), Vec::new());
    let mut sets = Vec::new();
    for _ in 0..options.failures {
        if left.is_empty() {
            left.clone_from(&every);
        }
        let bits = left.swap_remove(random.index(left.len()));
        let members = (0..servers).filter(|server| bits >> server & 1 == 1);
        sets.push(members.map(|server| server + 1).collect());
    }
    sets
}

async fn fail(cluster: &mut Cluster, set: &[usize], failing: FailureKind) {
    for server in set {
        match failing {
            FailureKind::Killed => {
                cluster.kill(server - 1).await;
            }
            FailureKind::Stopped => {
                cluster.stop(server - 1);
            }
        }
    }
}

async fn mend(cluster: &mut Cluster, set: &[usize], failing: FailureKind) -> Result<(), RunError> {
    for server in set {
        match failing {
            FailureKind::Killed => cluster.start(server - 1)?,
            FailureKind::Stopped => cluster.resume(server - 1),
        }
    }
    for server in set {
        if !cluster.ready(server - 1, SERVE).await {
            let error = format!("it does not serve after {} s", SERVE.as_secs());
            return Err(failed(format!("start s{server} again"))(error));
        }
    }
    sleep(AFTERWARDS).await;
    Ok(())
}
