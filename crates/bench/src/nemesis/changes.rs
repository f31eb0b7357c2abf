//! Reconfiguring the workload's domains, and ending half way.

use super::World;
use crate::random::Random;
use crate::trouble::{Schedule, Trouble};
use crate::workload::record::{Change as Recorded, ChangeEnd, KnownConfiguration, shape_name};
use crate::workload::{CHANGING, CONDITIONAL, DOMAINS, PATIENCE};
use areo_client::{
    Change, Client, ConnectOptions, DapKind, Domain, Progress, ReconfigError, ReconfigOutcome,
    Shape,
};
use std::cell::Cell;
use std::mem::discriminant;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};
use tokio::sync::Notify;
use tokio::time::sleep;

/// How long one change is tried again: others may leave no quorum for a while.
const TRY: Duration = Duration::from_mins(1);
/// Between two attempts.
const AGAIN: Duration = Duration::from_millis(50);

/// Where a reconfigurer may end. Later than this nothing is left to do.
const STEPS: [Progress; 4] = [
    Progress::Deciding,
    Progress::Announcing,
    Progress::Transferring {
        objects: 0,
        bytes: 0,
    },
    Progress::Finalizing,
];

/// Clients that reconfigure, one after the other.
pub(crate) struct Reconfigurers {
    pub(crate) connect: ConnectOptions,
    /// All servers, by name.
    pub(crate) servers: Vec<String>,
    pub(crate) lives: Cell<u64>,
}

/// Reconfigures until the time is over.
pub(crate) async fn changes(world: &World, who: &Reconfigurers, mut schedule: Schedule) {
    while let Some(trouble) = schedule.next(world.is_over()) {
        let begun = Instant::now();
        while begun.elapsed() < TRY {
            if who.trouble(world, trouble, &mut schedule.random).await == Some(()) {
                world.shared.fired(trouble);
                break;
            }
            sleep(AGAIN).await;
        }
        world.pause(&mut schedule.random).await;
    }
}

/// Nothing is left pending when everything was mended.
pub(crate) async fn finish(world: &World, who: &Reconfigurers) {
    for (place, name) in DOMAINS.into_iter().enumerate() {
        let begun = Instant::now();
        loop {
            let done = match who.connect(world, place).await {
                Some(life) => life.resume().await.is_some(),
                None => false,
            };
            if done {
                break;
            }
            if begun.elapsed() > PATIENCE {
                let sentence = format!(
                    "what is pending of '{name}' cannot be finished although everything was mended"
                );
                world.shared.violation(sentence);
                break;
            }
            sleep(AGAIN).await;
        }
    }
}

/// The progress of a reconfiguration.
#[derive(Clone, Default)]
struct Watch {
    finalized: Arc<AtomicBool>,
    reached: Arc<Notify>,
}

impl Watch {
    /// Notices the end of the last step that matters.
    fn progress(&self) -> impl Fn(Progress) + Send + 'static {
        let watch = self.clone();
        move |step| {
            if step == Progress::Collecting {
                watch.finalized.store(true, Ordering::Relaxed);
            }
        }
    }

    /// Notices the beginning of the step at which the reconfigurer is to end. There the operation stands still until no task waits
    /// for it any more, and ends: nothing that the step would send leaves.
    fn progress_until(
        &self,
        last: Progress,
        ended: mpsc::Receiver<()>,
    ) -> impl Fn(Progress) + Send + 'static {
        let (watch, progress) = (self.clone(), self.progress());
        move |step| {
            progress(step);
            if discriminant(&last) == discriminant(&step) {
                watch.reached.notify_one();
                // An error says that the other end is gone, too.
                let _ = ended.recv();
                // Ends the operation, not the thread, and prints no message, for this is no mistake.
                resume_unwind(Box::new("the reconfigurer has ended"));
            }
        }
    }

    /// A client that only heard that others have made a configuration final knows more than a quorum may, as yet.
    fn changed(&self, known: KnownConfiguration) -> ChangeEnd {
        match self.finalized.load(Ordering::Relaxed) {
            true => ChangeEnd::Decided(known),
            false => ChangeEnd::Unknown,
        }
    }
}

impl Reconfigurers {
    async fn connect<'a>(&self, world: &'a World, place: usize) -> Option<Life<'a>> {
        let client = Client::connect(self.connect.clone()).await.ok()?;
        let domain = client.domain(DOMAINS[place]).await.ok()?;
        self.lives.set(self.lives.get() + 1);
        Some(Life {
            world,
            name: format!("r{}", self.lives.get()),
            place,
            domain,
        })
    }

    /// Does it once; nothing if it did not come about.
    async fn trouble(&self, world: &World, trouble: Trouble, random: &mut Random) -> Option<()> {
        let place = random.index(DOMAINS.len());
        let (wanted, name) = self.wanted(place, random);
        let life = self.connect(world, place).await?;
        match trouble {
            Trouble::Reconfigure => life.change(&wanted, name).await,
            Trouble::Abandon => {
                let step = STEPS[random.index(STEPS.len())];
                life.abandon(&wanted, name, step).await;
                // As if its process had ended.
                drop(life);
                let finished = self.connect(world, place).await?.resume().await?;
                finished.then_some(())
            }
            other => unreachable!("{other} is not of this lane"),
        }
    }

    /// Any configuration of this domain that tolerates a crash, and what histories call it.
    fn wanted(&self, place: usize, random: &mut Random) -> (Change, String) {
        let n = 3 + random.index(self.servers.len() - 2);
        let mut servers = self.servers.clone();
        while servers.len() > n {
            servers.swap_remove(random.index(servers.len()));
        }
        let k = Shape::default_k(n);
        let k = [1, k][random.index(2)];
        let is_conditional = match DOMAINS[place] {
            CONDITIONAL => true,
            CHANGING => random.index(2) == 0,
            _ => false,
        };
        let kind = match k {
            _ if is_conditional => DapKind::Conditional,
            1 => DapKind::Abd,
            _ => DapKind::Ec,
        };
        let dap = kind.with(k);
        let name = shape_name(dap, &servers);
        let change = Change {
            servers,
            dap: Some(kind),
            k: (kind != DapKind::Abd).then_some(k),
            // One that is down now comes back.
            force: true,
            ..Change::default()
        };
        (change, name)
    }
}

/// A client that does one thing.
struct Life<'a> {
    world: &'a World,
    name: String,
    place: usize,
    domain: Domain,
}

impl Life<'_> {
    fn begin(&self, op: u64, wanted: Option<String>) -> Recorded {
        let change = Recorded {
            client: self.name.clone(),
            op,
            domain: self.place,
            after: self.domain.configuration().index,
            wanted,
        };
        self.world
            .shared
            .recorder
            .borrow_mut()
            .begin_change(&change);
        change
    }

    fn end(&self, change: &Recorded, changed: &ChangeEnd) {
        let mut recorder = self.world.shared.recorder.borrow_mut();
        recorder.end_change(change, changed);
    }

    fn failed(&self, error: &ReconfigError) -> ChangeEnd {
        match error {
            ReconfigError::NotBegun { .. } | ReconfigError::Conflict { .. } => ChangeEnd::Nothing,
            ReconfigError::Pending { .. } => ChangeEnd::Unknown,
            // What is asked for can be, and nothing here damages what is stored.
            other => {
                let name = &self.name;
                let sentence =
                    format!("reconfigurer {name} got an error that nothing explains: {other}");
                self.world.shared.violation(sentence);
                ChangeEnd::Unknown
            }
        }
    }

    /// Asks for the change; nothing if it is not done.
    async fn change(&self, wanted: &Change, name: String) -> Option<()> {
        let change = self.begin(1, Some(name));
        let watch = Watch::default();
        let done = self.domain.reconfigure(wanted, watch.progress()).await;
        let changed = self.changed(&watch, &done);
        self.end(&change, &changed);
        let is_new = !matches!(changed, ChangeEnd::Nothing);
        (done.is_ok() && is_new).then_some(())
    }

    /// Asks for the change, and ends when it comes to the step.
    async fn abandon(&self, wanted: &Change, name: String, step: Progress) {
        let change = self.begin(1, Some(name));
        let watch = Watch::default();
        let (end, ended) = mpsc::channel();
        let progress = watch.progress_until(step, ended);
        let changed = tokio::select! {
            biased;
            () = watch.reached.notified() => ChangeEnd::Unknown,
            done = self.domain.reconfigure(wanted, progress) => self.changed(&watch, &done),
        };
        drop(end);
        self.end(&change, &changed);
    }

    fn changed(&self, watch: &Watch, done: &Result<ReconfigOutcome, ReconfigError>) -> ChangeEnd {
        match done {
            Ok(ReconfigOutcome::Unchanged(_)) => ChangeEnd::Nothing,
            Ok(ReconfigOutcome::Installed(c) | ReconfigOutcome::Superseded(c)) => {
                watch.changed(c.into())
            }
            Ok(ReconfigOutcome::LeftOff(_)) => unreachable!("no change here is an experiment"),
            Err(error) => self.failed(error),
        }
    }

    /// Finishes what is pending; whether anything was, or nothing if that is not done.
    async fn resume(&self) -> Option<bool> {
        let change = self.begin(2, None);
        let watch = Watch::default();
        let done = self.domain.resume(watch.progress()).await;
        let changed = match &done {
            Ok(Some(c)) => watch.changed(c.into()),
            Ok(None) => ChangeEnd::Nothing,
            Err(error) => self.failed(error),
        };
        self.end(&change, &changed);
        done.ok().map(|installed| installed.is_some())
    }
}
