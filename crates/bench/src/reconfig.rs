//! Measuring reconfigurations of real servers: what readers and writers notice, and what they cost.
//!
//! | module | what |
//! |---|---|
//! | `ring` | which configuration comes next |
//! | `still` | what is measured without other clients |
//! | `report` | what came of it |

mod report;
mod ring;
mod still;

pub use crate::load::PhaseReport;
pub use report::{Behind, MovedBytes, PerObject, ReadCost, Report};

use crate::error::{RunError, failed, system};
use crate::load::{ChangeEnd, Diary, History, KnownConfiguration, Latencies, Load, LoadEnd, Phase};
use crate::setup::{Setup, StartedCluster};
use areo_client::{Change, Domain, Progress, ReconfigError, ReconfigOutcome};
use ring::Ring;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::task::LocalSet;
use tokio::time::sleep;

/// The domain that is reconfigured.
const DOMAIN: &str = "moved";
/// Number of turns in which measurements without and with reconfigurations alternate, so that other work of the
/// machine affects both.
const TURNS: u32 = 4;

/// Options of a measurement.
pub struct Options {
    /// Servers, at least 4 of them, objects and clients. A domain is on all servers but one.
    pub setup: Setup,
    /// Number of reconfigurations under load.
    pub reconfigurations: u32,
    /// The measured time without reconfigurations, and at most in each of the parts that may be cut short.
    pub time: Duration,
    /// File for the history of operations and reconfigurations under load; `None`: not kept.
    pub history: Option<PathBuf>,
}

/// The stage of the measurement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stage {
    /// Servers start, objects are written.
    Preparing,
    /// Operations and reconfigurations under load so far.
    Loaded(u64, u32),
    /// All objects in one domain, without other clients.
    Batched,
    /// Domains of one object each so far.
    Single(u64),
    /// Configurations behind one domain so far.
    Behind(u64),
}

/// Starts a cluster and measures. Dropping the future ends the processes and removes their files.
///
/// # Errors
/// [`RunError`]: nothing is known then. Operations of clients that failed are no error, but in the [`Report`].
pub async fn run(options: Options, observe: impl Fn(Stage)) -> Result<Report, RunError> {
    LocalSet::new().run_until(all(options, observe)).await
}

async fn all(options: Options, observe: impl Fn(Stage)) -> Result<Report, RunError> {
    let begun = Instant::now();
    observe(Stage::Preparing);
    let mut scene = Scene::set(options).await?;
    let mut times = Vec::new();
    let ended = scene.loaded(&observe, &mut times).await?;
    observe(Stage::Batched);
    let (batched, bytes) = scene.batched().await?;
    let single = scene.single(&observe).await?;
    let behind = scene.behind(&observe).await?;
    let setup = &scene.options.setup;
    let (without, with) = (ended.still.fared(), ended.disturbed.fared());
    Ok(Report {
        seed: setup.seed,
        servers: setup.servers,
        objects: setup.objects,
        size: setup.size,
        clients: setup.clients,
        durability: setup.durability(),
        reconfigurations: times.len() as u64,
        reconfiguration: Latencies::from_iter(times).times().unwrap_or_default(),
        failed: ended.failures.count,
        failures: ended.failures.first,
        longest_gap_ms: with.longest_gap_ms,
        throughput_ratio: with.per_second / without.per_second,
        without,
        with,
        batch_speedup: single.us_per_object / batched.us_per_object,
        batched,
        single,
        bytes,
        behind,
        total_ms: begun.elapsed().as_millis() as u64,
    })
}

/// Everything that is measured with.
struct Scene {
    history: Option<History>,
    domain: Domain,
    ring: Ring,
    options: Options,
    /// Dropped last: the others talk to it.
    started: StartedCluster,
}

impl Scene {
    async fn set(options: Options) -> Result<Scene, RunError> {
        let started = options.setup.start().await?;
        let history = options.history.as_ref().map(|path| {
            let made = History::create(path);
            made.map_err(system(format!("write {}", path.display())))
        });
        let history = history.transpose()?;
        let ring = Ring::new(started.servers.clone());
        let objects = (options.setup.size, options.setup.objects);
        let domain = started.domain(DOMAIN, ring.options(), objects, history.as_ref());
        let domain = domain.await?;
        Ok(Scene {
            history,
            domain,
            ring,
            options,
            started,
        })
    }

    /// Clients read and write, without and with reconfigurations in turn.
    async fn loaded(
        &mut self,
        observe: &impl Fn(Stage),
        times: &mut Vec<Duration>,
    ) -> Result<LoadEnd, RunError> {
        let options = &self.options;
        let plan = options.setup.plan();
        let clients = self.started.callers(DOMAIN, options.setup.clients).await?;
        let load = Load::of(clients, &plan, self.history.as_ref().map(|of| (of, DOMAIN)));
        sleep(plan.warm_up).await;
        let turns = TURNS.min(options.reconfigurations);
        let mut diary = self.history.as_ref().map(History::client);
        for turn in 1..=turns {
            load.enter(Phase::Still);
            sleep(options.time / turns).await;
            load.enter(Phase::Disturbed);
            while times.len() < (options.reconfigurations * turn / turns) as usize {
                let change = self.ring.turn();
                times.push(self.recorded(&change, diary.as_mut()).await?);
                observe(Stage::Loaded(load.operations(), times.len() as u32));
            }
        }
        let ended = load.stop().await;
        if let Some(history) = self.history.take() {
            history.finish().map_err(system("write the history"))?;
        }
        Ok(ended)
    }

    /// Makes the change, and records it if there is a history.
    async fn recorded(
        &self,
        change: &Change,
        mut diary: Option<&mut Diary>,
    ) -> Result<Duration, RunError> {
        if let Some(diary) = &mut diary {
            let known = self.domain.configuration();
            diary.begin_change(DOMAIN, known.index, Some(self.ring.name()));
        }
        let time = reconfigure(&self.domain, change).await?;
        if let Some(diary) = &mut diary {
            let decided = KnownConfiguration::from(&self.domain.configuration());
            diary.end_change(ChangeEnd::Decided(decided));
        }
        Ok(time)
    }
}

/// Makes the change. Returns its end, and the time at which it was proposed: the look at the current configuration
/// and at the new servers is for people, and not part of the measurement.
pub(crate) async fn proposed(
    domain: &Domain,
    change: &Change,
) -> (Result<ReconfigOutcome, ReconfigError>, Option<Instant>) {
    let begun: Arc<Mutex<Option<Instant>>> = Arc::default();
    let noted = begun.clone();
    let progress = move |progress| {
        if progress == Progress::Deciding {
            let mut begun = noted.lock().expect("no holder of the lock panics");
            begun.get_or_insert_with(Instant::now);
        }
    };
    let done = domain.reconfigure(change, progress).await;
    let begun = *begun.lock().expect("no holder of the lock panics");
    (done, begun)
}

/// Makes the change, beside no other. How long it took, from the moment at which it was proposed.
async fn reconfigure(domain: &Domain, change: &Change) -> Result<Duration, RunError> {
    match proposed(domain, change).await {
        (Ok(ReconfigOutcome::Installed(_)), Some(begun)) => Ok(begun.elapsed()),
        (Ok(other), _) => {
            let error = format!("nobody else does, and it ended as {other:?}");
            Err(failed("reconfigure the domain")(error))
        }
        (Err(error), _) => Err(failed("reconfigure the domain")(error)),
    }
}
