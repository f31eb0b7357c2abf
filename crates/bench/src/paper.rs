//! The papers' experiments, repeated with real servers (`docs/spec` section 7).
//!
//! | module | what |
//! |---|---|
//! | `experiment` | what an experiment is |
//! | `experiments` | the experiments, as data, and which there are not |
//! | `claim` | what a publication claims in words |
//! | `parameters` | numbers of servers and clients, sizes, times |
//! | `scale` | how large: the parameters of every scale |
//! | `variant` | the algorithms that are compared, as options of domains |
//! | `point` | a variant at a point, with what was measured |
//! | `stage` | servers and domains |
//! | `actor` | a reader or writer, and what its operations cost |
//! | `sweep` | readers and writers at once |
//! | `outside` | an etcd that decides which configuration comes next |
//! | `longevity` | E5: reconfigurers beside them |
//! | `collected` | E7: reading after twelve reconfigurations |
//! | `changes` | J1 to J3: changes of the servers at the same time |
//! | `virtual_time` | the same without processes |
//! | `law` | counts that do not depend on the machine |
//! | `published` | the figures of the publication |
//! | `compare` | ratios, and whether their order is the published one |
//! | `figures` | means, and how figures are printed |
//! | `report` | what came of it |

mod actor;
mod changes;
mod claim;
mod collected;
mod compare;
mod experiment;
mod experiments;
mod figures;
mod law;
mod longevity;
mod outside;
mod parameters;
mod point;
mod published;
mod report;
mod scale;
mod stage;
mod sweep;
mod variant;
mod virtual_time;

pub use areo_sim::measure::Scale;
pub use changes::ChangesStage;
pub use experiment::{Experiment, ListEntry, Procedure};
pub use experiments::{VARIANTS_NOT_HERE, list, not_run};
pub use figures::short;
pub use report::{Comparison, Law, Point, Report, Setting, Verdict};
pub use virtual_time::{VirtualOptions, run_virtually};

use crate::cluster::Program;
use crate::error::RunError;
use crate::proxy::{Effect, Proxy, Rule};
use crate::random::Random;
use crate::setup::{Setup, StartedCluster};
use crate::spread::Spread;
use crate::system::{self, Machine};
use parameters::Parameters;
use point::MeasuredPoint;
use scale::show_size;
use stage::Stage;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tokio::task::LocalSet;
use variant::SequenceEnds;

/// The servers of an experiment.
pub struct ServerOptions {
    pub program: Program,
    /// The seed that everything is drawn from.
    pub seed: u64,
    /// The folder for directories of servers and local files.
    pub data: PathBuf,
    /// The longest time that an operation may take.
    pub timeout: Duration,
    /// The time that a message and its answer take, beside the work: from anywhere to any server.
    pub round_trip: Option<Duration>,
}

/// Options of a repetition.
pub struct Options {
    pub servers: ServerOptions,
    pub experiment: &'static Experiment,
    pub scale: Scale,
    /// The command, for the report.
    pub command: String,
}

/// The progress of a repetition.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Progress {
    /// Runs of points so far.
    pub done: usize,
    /// Number of all runs of points.
    pub of: usize,
    /// The point that comes now.
    pub point: String,
}

/// Starts servers and repeats the experiment. Dropping the future ends the processes and removes their files.
///
/// # Errors
/// [`RunError`]: nothing is known then. Operations that failed and laws that were broken are no error, but in the [`Report`].
pub async fn run(options: Options, observe: impl Fn(Progress)) -> Result<Report, RunError> {
    LocalSet::new().run_until(all(options, observe)).await
}

async fn all(options: Options, observe: impl Fn(Progress)) -> Result<Report, RunError> {
    let begun = Instant::now();
    let Options {
        servers,
        experiment,
        scale,
        command,
    } = options;
    let parameters = scale::parameters(experiment, scale);
    let (_proxy, started) = start(&servers, parameters.servers).await?;
    let mut points = points_of(experiment, scale::steps(experiment, scale));
    let needs_etcd = points.iter().any(|point| point.variant.etcd);
    let etcd = match needs_etcd {
        true => outside::start(&servers, scale).await?,
        false => None,
    };
    let mut not_run = Vec::new();
    if needs_etcd && etcd.is_none() {
        not_run = outside::left_out(&mut points);
    }
    let decider = etcd.as_ref().map(|(_, decider)| decider.clone());
    let stage = Stage::new(&started, &servers, decider.unwrap_or_default());
    let mut laws = Vec::new();
    let (of, mut done) = (points.len() * parameters.runs, 0);
    // Runs take turns, so that what else the machine does hits all variants.
    for run in 0..parameters.runs {
        for (number, point) in points.iter_mut().enumerate() {
            let name = format!("{} {}", point.name(), point.at());
            observe(Progress {
                done,
                of,
                point: name,
            });
            let random = Random::new(servers.seed).derive((run << 16 | number) as u64);
            let found = measure(&stage, point, &random, run == 0);
            let (values, found) = found.await?;
            laws.extend(found);
            for (quantity, value) in values {
                point.runs.entry(quantity).or_default().push(value);
            }
            done += 1;
        }
    }
    let failures = stage.failures.take();
    Ok(Report {
        report: "paper".into(),
        made_at_ms: system::now_ms(),
        command,
        machine: Machine::this(),
        experiment: experiment.name.into(),
        scale: scale.name().into(),
        changes: scale::changes(experiment, scale, servers.round_trip),
        runs: parameters.runs,
        seed: servers.seed,
        not_run,
        points: points.iter().map(shown).collect(),
        comparisons: compare::compare(&points),
        laws,
        failed: failures.count,
        failures: failures.first,
        total_ms: begun.elapsed().as_millis() as u64,
    })
}

/// Starts the servers of the experiment, behind a proxy if a round trip is to take longer.
async fn start(
    options: &ServerOptions,
    servers: usize,
) -> Result<(Option<Proxy>, StartedCluster), RunError> {
    let setup = Setup {
        program: options.program.clone(),
        servers,
        objects: 0,
        size: 0,
        clients: 0,
        seed: options.seed,
        memory: true,
        data: options.data.clone(),
        timeout: options.timeout,
    };
    let Some(trip) = options.round_trip else {
        return Ok((None, setup.start().await?));
    };
    let (proxy, started) = setup.start_behind_proxy(None).await?;
    proxy.apply(Rule {
        servers: u64::MAX,
        callers: u64::MAX,
        direction: None,
        effect: Effect::Latency(trip / 2),
    });
    Ok((Some(proxy), started))
}

/// Every variant at every size, and at every step of the other parameter.
fn points_of(
    experiment: &'static Experiment,
    steps: Vec<(String, Parameters)>,
) -> Vec<MeasuredPoint> {
    let mut points = Vec::new();
    for step in steps {
        for size in step.1.sizes {
            let point = |variant, left| MeasuredPoint {
                experiment,
                step: step.clone(),
                variant,
                size: *size,
                left,
                runs: BTreeMap::new(),
            };
            let variants = experiment.variants().into_iter();
            let variants = variants.filter(|variant| sweep::exists(*variant, *size));
            match experiment.procedure {
                Procedure::AtOnce | Procedure::Restart | Procedure::Stabilization => {
                    points.extend(variants.map(|variant| point(variant, None)));
                }
                Procedure::AfterReconfigurations => {
                    for left in SequenceEnds::ALL {
                        let variants = variants.clone();
                        points.extend(variants.map(|variant| point(variant, Some(left))));
                    }
                }
            }
        }
    }
    points
}

/// One run of one point.
async fn measure(
    stage: &Stage<'_>,
    point: &MeasuredPoint,
    random: &Random,
    is_first: bool,
) -> Result<(BTreeMap<&'static str, f64>, Vec<Law>), RunError> {
    let MeasuredPoint {
        variant,
        size,
        left,
        ..
    } = *point;
    let parameters = &point.step.1;
    if let Some(left) = left {
        let what = (variant, left, size);
        let (values, costs) = collected::run(stage, parameters, what, random).await?;
        return Ok((values, collected::laws(point, &costs)));
    }
    let at = point.at();
    let laws = is_first.then_some(&*at);
    let done = sweep::run(stage, parameters, (variant, size), random, laws);
    let (values, mut laws) = done.await?;
    if point.experiment.has_virtual_time() {
        for law in &mut laws {
            law.variant = point.name();
        }
    }
    Ok((values, laws))
}

fn shown(of: &MeasuredPoint) -> Point {
    let published = of.published();
    let spread = |(quantity, values): (&&'static str, &Vec<f64>)| {
        ((*quantity).to_owned(), Spread::of(values.iter().copied()))
    };
    Point {
        variant: of.name(),
        algorithm: of.variant.algorithm.name().into(),
        at: of.at(),
        setting: of.setting(),
        published_read_ms: published.map(|(ms, _)| ms),
        published_at: published.map(|(_, size)| show_size(size)),
        values: of.runs.iter().map(spread).collect(),
    }
}
