//! An instance of the autopilot: looks, evaluates, writes intents, and carries out the one that nothing holds.
//!
//! A process reaches its cluster by a client, a simulation is a cluster itself: both run this code.

use crate::guard::{Actor, Level, World};
use crate::intent::{Change, Intent, InvalidStep, State};
use crate::journal::{Journal, Lease, LeaseWatch};
use crate::records::Records;
use crate::rule;
use crate::rules::Rules;
use crate::signal::{History, Sample};
use std::collections::BTreeMap;
use std::fmt;
use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;

/// A cluster as one instance reaches it.
#[allow(async_fn_in_trait, reason = "an instance runs on one thread")]
pub trait Cluster {
    /// The reason why something failed, as a sentence.
    type Error: fmt::Display + From<InvalidStep> + From<<Self::Store as JournalStore>::Error>;
    /// The journal of the cluster.
    type Store: JournalStore;
    /// A change of one domain that takes a server out of it.
    type Departure;

    /// The time by a clock of this instance, which no jump of its machine's clock moves.
    fn now_ms(&self) -> u64;

    /// Waits for so long.
    async fn sleep(&self, ms: u64);

    /// One look at the cluster.
    ///
    /// # Errors
    /// A part of the cluster that changes are judged by cannot be seen.
    async fn sample(&self) -> Result<Sample, Self::Error>;

    /// The journal, which the first instance creates.
    ///
    /// # Errors
    /// It can be neither found nor created.
    async fn open(&self) -> Result<Self::Store, Self::Error>;

    /// Marks the server as one that is to go, and returns the domains that it is still to be taken out of.
    ///
    /// # Errors
    /// The server that comes is no server any more, or the mark could not be written.
    async fn begin(&self, change: &Change) -> Result<Vec<Self::Departure>, Self::Error>;

    /// The name of the domain that is changed.
    fn domain(departure: &Self::Departure) -> &str;

    /// Changes the domain, or finishes the change that another instance began.
    ///
    /// # Errors
    /// The domain may be half changed: another try finishes it.
    async fn run(&self, departure: &Self::Departure) -> Result<(), Self::Error>;

    /// Repairs the domain, and checks that this server, which came, has all of its objects.
    ///
    /// # Errors
    /// It lacks objects, or not all of them could be looked at.
    async fn repair(&self, domain: &str, came: &str) -> Result<(), Self::Error>;

    /// Shows the intents that were written, or at level `observe` would be.
    ///
    /// # Errors
    /// The output is closed.
    fn tell(&self, intents: &[Intent]) -> Result<(), Self::Error>;

    /// Takes note of what a look has found, for metrics.
    fn note(&self, _seen: &Seen<'_>) {}
}

/// The findings of one look.
pub struct Seen<'a> {
    /// The journal, as it was before this look; `None`: it was not read yet.
    pub journal: Option<&'a Journal>,
    /// This instance is the one that acts.
    pub holds_lease: bool,
    /// The crashes that each domain survives now.
    pub spare_crashes: &'a BTreeMap<String, isize>,
}

/// The journal of a cluster with the versions that one instance has read: of two writers on one version, one wins.
#[allow(async_fn_in_trait, reason = "an instance runs on one thread")]
pub trait JournalStore {
    /// The reason why something failed.
    type Error;

    /// Reads what has changed since the last time.
    ///
    /// # Errors
    /// The journal cannot be read.
    async fn read(&mut self) -> Result<Journal, Self::Error>;

    /// The lease as it was last read.
    fn lease(&self) -> Option<&Lease>;

    /// Writes an intent on the version that was read. False: another writer was faster.
    ///
    /// # Errors
    /// It is not known whether the intent was written.
    async fn write(&mut self, intent: &Intent) -> Result<bool, Self::Error>;

    /// Writes the lease on the version that was read. False: another instance was faster.
    ///
    /// # Errors
    /// It is not known whether the lease was written.
    async fn write_lease(&mut self, lease: &Lease) -> Result<bool, Self::Error>;

    /// Drops an intent that is old enough.
    ///
    /// # Errors
    /// It is not known whether the intent was dropped.
    async fn drop_expired(&mut self, number: u64) -> Result<(), Self::Error>;
}

/// An instance of the autopilot.
pub struct Instance<C> {
    cluster: C,
    rules: Rules,
    level: Level,
    history: History,
    watch: LeaseWatch,
    /// The intents that were shown last, at level `observe`.
    shown: Vec<Intent>,
}

impl<C: Cluster> Instance<C> {
    /// An instance with a name that no other one has.
    pub fn new(cluster: C, name: &str, rules: Rules, level: Level) -> Instance<C> {
        let watch = LeaseWatch::new(name, rules.guards.lease_seconds.saturating_mul(1000));
        Instance {
            cluster,
            rules,
            level,
            history: History::default(),
            watch,
            shown: Vec::new(),
        }
    }

    /// Looks once, and does what follows from it.
    ///
    /// # Errors
    /// The look failed somewhere. The next one begins anew, from the journal.
    pub async fn look(&mut self) -> Result<(), C::Error> {
        let sample = self.cluster.sample().await?;
        let now_ms = self.cluster.now_ms();
        let records = self.history.add(sample, &self.rules, now_ms);
        let spare_crashes = &rule::spare_crashes(&self.rules, &records, now_ms);
        // Noted at once: the journal may be out of reach.
        self.cluster.note(&Seen {
            journal: None,
            holds_lease: self.actor().holds_lease,
            spare_crashes,
        });
        if self.level == Level::Observe {
            return self.show_only(&records, now_ms);
        }
        let mut store = self.cluster.open().await?;
        let journal = store.read().await?;
        beat(&self.cluster, &mut self.watch, &mut store).await?;
        self.cluster.note(&Seen {
            journal: Some(&journal),
            holds_lease: self.actor().holds_lease,
            spare_crashes,
        });
        let decision = rule::decide(&self.rules, &records, &journal, self.actor(), now_ms);
        let mut written = Vec::new();
        for intent in decision.writes {
            let known = journal.intents.iter().find(|it| it.number == intent.number);
            let is_news = known.is_none_or(|it| it.state != intent.state);
            if store.write(&intent).await? && is_news {
                written.push(intent);
            }
        }
        self.cluster.tell(&written)?;
        for number in journal.expired(now_ms) {
            store.drop_expired(number).await?;
        }
        match decision.act {
            Some(number) => self.act(&mut store, number, &records).await,
            None => Ok(()),
        }
    }

    /// Shows the intents that an instance of another level would write, if they are others than before.
    fn show_only(&mut self, records: &Records, now_ms: u64) -> Result<(), C::Error> {
        let found = rule::evaluate(&self.rules, records, &Journal::default(), now_ms);
        let key = |it: &Intent| (it.subject.clone(), it.rule(), it.change.clone());
        let is_new = |it: &&Intent| self.shown.iter().all(|shown| key(shown) != key(it));
        let news: Vec<Intent> = found.iter().filter(is_new).cloned().collect();
        self.shown = found;
        self.cluster.tell(&news)
    }

    fn actor(&self) -> Actor {
        Actor {
            level: self.level,
            holds_lease: self.watch.holds(self.cluster.now_ms()),
        }
    }

    /// Carries the intent out, or goes on with it, after its guards were asked again on the journal as it is now.
    async fn act(
        &mut self,
        store: &mut C::Store,
        number: u64,
        records: &Records,
    ) -> Result<(), C::Error> {
        let journal = store.read().await?;
        let intent = journal.intents.iter().find(|it| it.number == number);
        let Some(mut intent) = intent.cloned() else {
            return Ok(());
        };
        let world = World {
            rules: &self.rules,
            records,
            journal: &journal,
            now_ms: self.cluster.now_ms(),
        };
        if intent.state.is_final() || !world.holds(&intent, self.actor()).is_empty() {
            return Ok(());
        }
        let change = intent.change.clone().expect("advice is held");
        let begun = State::Running {
            step: "begin".into(),
            done: 0,
            total: change.domains.len() as u64,
        };
        if !self.advance(store, &mut intent, begun).await? {
            return Ok(());
        }
        let next = match self.replace(store, &mut intent, &change).await {
            Ok(Some(proof)) => State::Done { proof },
            // Another instance goes on with it.
            Ok(None) => return Ok(()),
            Err(failed) => {
                let step = match &intent.state {
                    State::Running { step, .. } => step.clone(),
                    _ => change.to_string(),
                };
                let (guards, now_ms) = (&self.rules.guards, self.cluster.now_ms());
                intent.failed(&step, &failed.to_string(), guards, now_ms)
            }
        };
        self.advance(store, &mut intent, next).await.map(drop)
    }

    /// Writes the next state. False: another writer was faster, and this instance goes no further.
    async fn advance(
        &self,
        store: &mut C::Store,
        intent: &mut Intent,
        next: State,
    ) -> Result<bool, C::Error> {
        intent.advance(next, self.cluster.now_ms())?;
        let is_written = store.write(intent).await?;
        if is_written {
            self.cluster.tell(std::slice::from_ref(intent))?;
        }
        Ok(is_written)
    }

    /// Replaces the server as `areo server replace` does, and returns what shows that all is whole. `None`: the lease is lost.
    async fn replace(
        &mut self,
        store: &mut C::Store,
        intent: &mut Intent,
        change: &Change,
    ) -> Result<Option<String>, C::Error> {
        let departures = self.cluster.begin(change).await?;
        let (mut first, total) = (None, departures.len() as u64);
        for (done, departure) in (0..).zip(&departures) {
            let running = State::Running {
                step: C::domain(departure).to_owned(),
                done,
                total,
            };
            // An operator may have paused the autopilot in the meantime.
            let is_paused = store.read().await?.paused;
            if is_paused || !self.advance(store, intent, running).await? {
                return Ok(None);
            }
            let run = async |cluster: &C| cluster.run(departure).await;
            let Some(changed) = self.while_holding(store, run).await else {
                return Ok(None);
            };
            // The others do not wait for it.
            if let Err(error) = changed {
                first.get_or_insert(error);
            }
        }
        if let Some(error) = first {
            return Err(error);
        }
        // Domains that an earlier try has changed are looked at, too.
        for it in &change.domains {
            let repair = async |cluster: &C| cluster.repair(&it.domain, &change.with).await;
            match self.while_holding(store, repair).await {
                Some(looked) => looked?,
                None => return Ok(None),
            }
        }
        let domains: Vec<&str> = intent.domains().collect();
        let (with, domains) = (&change.with, domains.join(", "));
        Ok(Some(format!("{with} has all objects of {domains}")))
    }

    /// The result of this work, during which the lease is kept. `None`: it was lost, and another instance goes on.
    async fn while_holding<T>(
        &mut self,
        store: &mut C::Store,
        work: impl AsyncFnOnce(&C) -> T,
    ) -> Option<T> {
        let Instance { cluster, watch, .. } = self;
        let pause_ms = watch.lease_ms() / 8;
        let mut work = pin!(work(cluster));
        loop {
            let mut pause = pin!(cluster.sleep(pause_ms));
            let done = poll_fn(|cx| match work.as_mut().poll(cx) {
                Poll::Ready(done) => Poll::Ready(Some(done)),
                Poll::Pending => pause.as_mut().poll(cx).map(|()| None),
            });
            if let Some(done) = done.await {
                return Some(done);
            }
            // The work goes on without a beat for as long as the lease lasts.
            drop(beat(cluster, watch, store).await);
            if !watch.holds(cluster.now_ms()) {
                return None;
            }
        }
    }
}

/// Takes the lease, or shows that its holder is still there.
async fn beat<C: Cluster>(
    cluster: &C,
    watch: &mut LeaseWatch,
    store: &mut C::Store,
) -> Result<(), C::Error> {
    let begun_ms = cluster.now_ms();
    if let Some(lease) = watch.next(store.lease(), begun_ms)
        && store.write_lease(&lease).await?
    {
        watch.written(begun_ms);
    }
    Ok(())
}
