//! Stores side by side: the same load on each in turn, again and again.
//!
//! All clusters run all the time, and the stores take turns in every run, each run beginning with another one: what else the
//! machine does hits all of them.

mod breakdown;
mod kill;
mod report;

pub use breakdown::{Ask, Breakdown, Part, Watch};
pub use kill::KillReport;
pub use report::{ComparedTargets, Point, Ratio, Report};

use crate::error::{RunError, failed, system};
use crate::limits;
pub use crate::load::Operation;
use crate::load::{self, History, Pace, Plan, Popularity};
pub use crate::spread::Spread;
use crate::system::Machine;
use crate::target::{Target, TargetError, TargetName};
use std::io;
use std::path::PathBuf;
use std::time::Duration;
use tokio::task::LocalSet;

/// Objects of a size if no number is given,
const OBJECTS: u64 = 1_000;
/// or fewer, so that they have no more bytes than this together, but no fewer than this many.
const VALUES_BYTES: u64 = 256 << 20;
const OBJECTS_MIN: u64 = 4;
/// Runs of the measurement of the machine's limits, and below the length of each: short, because the limits are equal
/// for all stores.
const LIMIT_RUNS: u32 = 3;
const LIMIT_TIME: Duration = Duration::from_millis(100);

/// Options of a comparison.
pub struct Options {
    /// The stores, each once.
    pub targets: Vec<TargetName>,
    /// A directory on the disk that is measured beside the stores.
    pub data: PathBuf,
    /// Sizes of values in bytes, each at least 16.
    pub sizes: Vec<usize>,
    /// The numbers of clients to measure with.
    pub clients: Vec<usize>,
    /// The operations of clients, one after the other. Stores that are not asked to compare and set are left out where that is needed.
    pub operations: Vec<Operation>,
    /// Objects of each size; `None`: a thousand, and fewer of large values.
    pub objects: Option<u64>,
    /// The popularity of each of them.
    pub popularity: Popularity,
    /// The pace of operations.
    pub pace: Pace,
    /// Clients that reconfigure the stores that can be, beside those that put and get.
    pub reconfigurers: usize,
    /// Upper bound of the random pause between two changes of a reconfigurer.
    pub between_changes: Duration,
    /// The file in which everything that clients did and saw is recorded.
    pub history: Option<PathBuf>,
    /// Not measured, before each measurement.
    pub warm_up: Duration,
    /// The length of each measurement.
    pub time: Duration,
    /// The number of times that everything is measured.
    pub runs: u32,
    /// The time before and after the kill of a member that is observed under load, in the end; `None`: no kill.
    pub kill: Option<Duration>,
    /// Traces operations beside the measurements, for a breakdown of their time; `None`: no breakdown.
    pub watch: Option<Watch>,
    /// The seed that everything is drawn from.
    pub seed: u64,
    /// The command, for the report.
    pub command: String,
}

/// The stage of a comparison.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stage {
    /// This store's servers start.
    Starting(TargetName),
    /// Objects are written to this store.
    Filling(TargetName),
    /// The number of measurements that are over; this store is next.
    Measuring(u64, TargetName),
    /// All measurements are over; it is looked where the time of this store's operations goes.
    Watching(TargetName),
    /// All measurements are over; a member of this store is killed.
    Killing(TargetName),
    /// The machine itself is measured.
    Limits,
}

impl Options {
    /// The number of measurements.
    pub fn measurements(&self) -> u64 {
        let targets = |case: &Case| {
            let able = self.targets.iter();
            able.filter(|target| case.2.is_possible_at(**target))
                .count()
        };
        let points: usize = self.cases().iter().map(targets).sum();
        points as u64 * u64::from(self.runs)
    }

    fn cases(&self) -> Vec<Case> {
        let (counts, of_sizes): (Vec<_>, Vec<_>) = {
            let operations = self.operations.iter().copied();
            operations.partition(|operation| *operation == Operation::Increment)
        };
        let counters = (load::counter::SIZE, counts);
        let sizes = self.sizes.iter().map(|size| (*size, of_sizes.clone()));
        let mut cases = Vec::new();
        for (size, operations) in sizes.chain([counters]) {
            for &clients in &self.clients {
                let operations = operations.iter();
                cases.extend(operations.map(|&operation| (size, clients, operation)));
            }
        }
        cases
    }

    /// Objects of this size.
    fn objects(&self, size: usize) -> u64 {
        let few = (VALUES_BYTES / size as u64).clamp(OBJECTS_MIN, OBJECTS);
        self.objects.unwrap_or(few)
    }

    fn plan(&self, (size, clients, operation): Case) -> Plan {
        Plan {
            others: Some((operation, clients)),
            reconfigurers: self.reconfigurers,
            between_changes: self.between_changes,
            objects: self.objects(size),
            popularity: self.popularity,
            size,
            pace: self.pace,
            warm_up: self.warm_up,
            time: self.time,
            seed: self.seed,
            ..Plan::default()
        }
    }
}

/// Bytes of a value, clients, and what they do.
type Case = (usize, usize, Operation);

/// Starts the clusters, each by `start`, and measures. Dropping the future ends the processes and removes their
/// files.
///
/// # Errors
/// [`RunError`]. Operations that failed are no error, but in the [`Report`].
pub async fn run(
    options: &Options,
    start: impl AsyncFn(TargetName) -> Result<Box<dyn Target>, TargetError>,
    observe: impl Fn(Stage),
) -> Result<Report, RunError> {
    LocalSet::new()
        .run_until(all(options, start, observe))
        .await
}

async fn all(
    options: &Options,
    start: impl AsyncFn(TargetName) -> Result<Box<dyn Target>, TargetError>,
    observe: impl Fn(Stage),
) -> Result<Report, RunError> {
    let history = options.history.as_deref().map(History::create);
    let history = history.transpose().map_err(unwritten(options))?;
    let mut targets: Vec<(TargetName, Box<dyn Target>)> = Vec::new();
    for &name in &options.targets {
        observe(Stage::Starting(name));
        targets.push((name, start(name).await?));
    }
    for (name, target) in &targets {
        observe(Stage::Filling(*name));
        for size in &options.sizes {
            let objects = (*size, options.objects(*size));
            let filled = load::fill(&**target, objects, history.as_ref()).await;
            filled.map_err(of(*name))?;
        }
    }
    let points = measure(options, &targets, history.as_ref(), &observe).await?;
    let mut breakdowns = Vec::new();
    for (name, target) in &targets {
        observe(Stage::Watching(*name));
        for case in options.cases() {
            if !case.2.is_traced() || !case.2.is_possible_at(*name) {
                continue;
            }
            let watched = breakdown::watch(options, (*name, &**target), case, history.as_ref());
            breakdowns.extend(watched.await?);
        }
    }
    let mut killed = Vec::new();
    if options.kill.is_some() {
        for (name, target) in &mut targets {
            observe(Stage::Killing(*name));
            let seen = kill::kill(options, (*name, &mut **target), history.as_ref());
            killed.push(seen.await?);
        }
    }
    let finished = history.map_or(Ok(()), |history| history.finish());
    finished.map_err(unwritten(options))?;
    let about = targets.iter().map(|(_, target)| target.about().clone());
    let mut report = Report::new(Machine::this(), &options.command, about.collect(), points);
    report.breakdowns = breakdowns;
    report.killed = killed;
    observe(Stage::Limits);
    let data = (&*options.data, &*options.command);
    let limits = limits::run(data, (LIMIT_RUNS, LIMIT_TIME), |_| ());
    report.limits = limits.map_err(failed("measure the machine"))?.limits;
    Ok(report)
}

/// Every case on every store, run by run.
async fn measure(
    options: &Options,
    targets: &[(TargetName, Box<dyn Target>)],
    history: Option<&History>,
    observe: &impl Fn(Stage),
) -> Result<Vec<Point>, RunError> {
    let mut points: Vec<Point> = Vec::new();
    for (size, clients, operation) in options.cases() {
        points.extend(targets.iter().map(|(target, _)| Point {
            target: *target,
            operation,
            size,
            clients,
            runs: Vec::new(),
        }));
    }
    let mut done = 0;
    for run in 0..options.runs as usize {
        for (at, case) in options.cases().into_iter().enumerate() {
            for turn in 0..targets.len() {
                let which = (run + turn) % targets.len();
                let (name, target) = &targets[which];
                if !case.2.is_possible_at(*name) {
                    continue;
                }
                observe(Stage::Measuring(done, *name));
                let plan = options.plan(case);
                let measured = load::run(&**target, &plan, history);
                let measured = measured.await.map_err(of(*name))?;
                points[at * targets.len() + which].runs.push(measured);
                done += 1;
            }
        }
    }
    points.retain(|point| !point.runs.is_empty());
    Ok(points)
}

fn unwritten(options: &Options) -> impl FnOnce(io::Error) -> RunError {
    let path = options.history.clone().unwrap_or_default();
    system(format!("write the history {}", path.display()))
}

/// An error of this store.
fn of(target: TargetName) -> impl FnOnce(RunError) -> RunError {
    move |error| RunError::Failed(format!("{target}: {error}"))
}
