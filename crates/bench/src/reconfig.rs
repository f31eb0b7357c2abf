//! Measuring reconfigurations of real servers: what readers and writers notice, and what they cost.
//!
//! | module | what |
//! |---|---|
//! | `ring` | which configuration comes next |
//! | `still` | what is measured while nobody else reads or writes |
//! | `report` | what came of it |

mod report;
mod ring;
mod still;

pub use crate::load::Fared;
pub use report::{Behind, Moved, PerObject, ReadCost, Report};

use crate::generator::Latencies;
use crate::load::{Ended, Load, Phase, Source};
use crate::run::{RunError, failed, system};
use crate::setup::{Setup, Started};
use crate::workload::Recorder;
use crate::workload::record::{Change as Recorded, Changed, Known};
use areo_client::{Change, Domain, Progress, Reconfigured};
use ring::Ring;
use std::cell::RefCell;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::task::LocalSet;
use tokio::time::sleep;

/// The domain that is reconfigured.
const DOMAIN: &str = "moved";
/// Measuring without and with reconfigurations takes turns so often, so that what else the machine does hits both.
const TURNS: u32 = 4;

/// What is to be measured.
pub struct Options {
    /// Servers, at least 4 of them, objects and clients. A domain is on all servers but one.
    pub setup: Setup,
    /// Reconfigurations under load.
    pub reconfigurations: u32,
    /// How long is measured without reconfigurations, and at most in each of the parts that may be cut short.
    pub time: Duration,
    /// Where the history of operations and reconfigurations under load goes, if it is wanted.
    pub history: Option<PathBuf>,
}

/// What is being done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stage {
    /// Servers start, objects are written.
    Preparing,
    /// So many operations and reconfigurations under load so far.
    Loaded(u64, u32),
    /// All objects in one domain, nobody else.
    Batched,
    /// So many domains of one object each so far.
    Single(u64),
    /// So many configurations behind one domain so far.
    Behind(u64),
}

/// Starts a cluster and measures. Dropping the future ends the processes and removes what they left.
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
        longest_gap_ms: ended.disturbed.longest_gap_ms,
        throughput_ratio: ended.disturbed.per_second / ended.still.per_second,
        without: ended.still,
        with: ended.disturbed,
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
    source: Source,
    domain: Domain,
    ring: Ring,
    options: Options,
    /// Dropped last: the others talk to it.
    started: Started,
}

impl Scene {
    async fn set(options: Options) -> Result<Scene, RunError> {
        let started = options.setup.start().await?;
        let mut source = options.setup.source();
        source.recorder = recorder(&options)?;
        let ring = Ring::new(started.servers.clone());
        let filled = (&source, options.setup.objects);
        let domain = started.domain(DOMAIN, ring.options(), filled).await?;
        Ok(Scene {
            source,
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
    ) -> Result<Ended, RunError> {
        let options = &self.options;
        let (connect, clients) = (&self.started.connect, options.setup.clients);
        let load = Load::start(&self.source, connect, DOMAIN, clients).await?;
        let turns = TURNS.min(options.reconfigurations);
        for turn in 1..=turns {
            load.enter(Phase::Still);
            sleep(options.time / turns).await;
            load.enter(Phase::Disturbed);
            while times.len() < (options.reconfigurations * turn / turns) as usize {
                let change = self.ring.turn();
                times.push(self.recorded(&change).await?);
                observe(Stage::Loaded(load.operations(), times.len() as u32));
            }
        }
        let ended = load.stop().await;
        if let Some(recorder) = self.source.recorder.take() {
            let written = recorder.borrow_mut().finish();
            written.map_err(system("write the history"))?;
        }
        Ok(ended)
    }

    /// Makes the change, and records it if there is a history.
    async fn recorded(&self, change: &Change) -> Result<Duration, RunError> {
        let known = self.domain.configuration();
        let record = Recorded {
            client: "reconfigurer".into(),
            op: known.index.into(),
            domain: 0,
            after: known.index,
            wanted: Some(self.ring.name()),
        };
        let recorder = self.source.recorder.as_ref();
        if let Some(recorder) = recorder {
            recorder.borrow_mut().begin_change(&record);
        }
        let time = reconfigure(&self.domain, change).await?;
        if let Some(recorder) = recorder {
            let decided = Known::from(&self.domain.configuration());
            let mut recorder = recorder.borrow_mut();
            recorder.end_change(&record, &Changed::Decided(decided));
        }
        Ok(time)
    }
}

/// Where operations are recorded, if they are to be.
fn recorder(options: &Options) -> Result<Option<Rc<RefCell<Recorder>>>, RunError> {
    let create = |path: &PathBuf| {
        let made = Recorder::create(path, &[DOMAIN]);
        made.map_err(system(format!("write {}", path.display())))
    };
    let made = options.history.as_ref().map(create).transpose()?;
    Ok(made.map(|recorder| Rc::new(RefCell::new(recorder))))
}

/// Makes the change. How long it took, from the moment at which it was proposed: finding out what there is before, and
/// whether the new servers serve, is for people and not part of it.
async fn reconfigure(domain: &Domain, change: &Change) -> Result<Duration, RunError> {
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
    match (done, begun) {
        (Ok(Reconfigured::Installed(_)), Some(begun)) => Ok(begun.elapsed()),
        (Ok(other), _) => {
            let error = format!("nobody else does, and it ended as {other:?}");
            Err(failed("reconfigure the domain")(error))
        }
        (Err(error), _) => Err(failed("reconfigure the domain")(error)),
    }
}
