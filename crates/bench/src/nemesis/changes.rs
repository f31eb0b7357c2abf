//! Reconfiguring the workload's domains, and ending half way.

use super::World;
use crate::load::{ChangeEnd, Diary, KnownConfiguration, shape_name};
use crate::random::Random;
use crate::trouble::{Schedule, Trouble};
use crate::workload::{CHANGING, CONDITIONAL, DOMAINS, PATIENCE};
use areo_client::{
    Change, Client, ConnectOptions, DapKind, Domain, Progress, ReconfigError, ReconfigOutcome,
    Shape,
};
use std::mem::discriminant;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};
use tokio::sync::Notify;
use tokio::time::sleep;

/// Time for which one change is retried: other troubles may leave no quorum for a while.
const TRY: Duration = Duration::from_mins(1);
/// Pause between two attempts.
const AGAIN: Duration = Duration::from_millis(50);

/// The steps at which a reconfigurer may stop. After the last one nothing is left to do.
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
}

/// Reconfigures until the time is over.
pub(crate) async fn changes(world: &World, who: &Reconfigurers, mut schedule: Schedule) {
    while let Some(trouble) = schedule.next(world.is_over()) {
        let begun = Instant::now();
        while begun.elapsed() < TRY {
            if who.trouble(world, trouble, &mut schedule.random).await == Some(()) {
                world.incidents.fired(trouble);
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
                Some(mut life) => life.resume().await.is_some(),
                None => false,
            };
            if done {
                break;
            }
            if begun.elapsed() > PATIENCE {
                let sentence = format!(
                    "what is pending of '{name}' cannot be finished although everything was mended"
                );
                world.incidents.violation(sentence);
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
        Some(Life {
            world,
            diary: world.history.client(),
            domain,
        })
    }

    /// Does it once; nothing if it did not come about.
    async fn trouble(&self, world: &World, trouble: Trouble, random: &mut Random) -> Option<()> {
        let place = random.index(DOMAINS.len());
        let (wanted, name) = self.wanted(place, random);
        let mut life = self.connect(world, place).await?;
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
    diary: Diary,
    domain: Domain,
}

impl Life<'_> {
    fn begin(&mut self, wanted: Option<String>) {
        let after = self.domain.configuration().index;
        self.diary.begin_change(self.domain.name(), after, wanted);
    }

    fn failed(&self, error: &ReconfigError) -> ChangeEnd {
        match error {
            ReconfigError::NotBegun { .. } | ReconfigError::Conflict { .. } => ChangeEnd::Nothing,
            ReconfigError::Pending { .. } => ChangeEnd::Unknown,
            // What is asked for can be, and nothing here damages what is stored.
            other => {
                let name = self.diary.client();
                let sentence =
                    format!("reconfigurer {name} got an error that nothing explains: {other}");
                self.world.incidents.violation(sentence);
                ChangeEnd::Unknown
            }
        }
    }

    /// Asks for the change; nothing if it is not done.
    async fn change(&mut self, wanted: &Change, name: String) -> Option<()> {
        self.begin(Some(name));
        let watch = Watch::default();
        let done = self.domain.reconfigure(wanted, watch.progress()).await;
        let changed = self.changed(&watch, &done);
        let is_new = changed != ChangeEnd::Nothing;
        self.diary.end_change(changed);
        (done.is_ok() && is_new).then_some(())
    }

    /// Asks for the change, and ends when it comes to the step.
    async fn abandon(&mut self, wanted: &Change, name: String, step: Progress) {
        self.begin(Some(name));
        let watch = Watch::default();
        let (end, ended) = mpsc::channel();
        let progress = watch.progress_until(step, ended);
        let changed = tokio::select! {
            biased;
            () = watch.reached.notified() => ChangeEnd::Unknown,
            done = self.domain.reconfigure(wanted, progress) => self.changed(&watch, &done),
        };
        drop(end);
        self.diary.end_change(changed);
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

    /// Finishes pending configurations. Returns whether there were any; `None` if they are not finished.
    async fn resume(&mut self) -> Option<bool> {
        self.begin(None);
        let watch = Watch::default();
        let done = self.domain.resume(watch.progress()).await;
        let changed = match &done {
            Ok(Some(c)) => watch.changed(c.into()),
            Ok(None) => ChangeEnd::Nothing,
            Err(error) => self.failed(error),
        };
        self.diary.end_change(changed);
        done.ok().map(|installed| installed.is_some())
    }
}
