//! An instance of the autopilot: looks, evaluates, writes intents, and carries out the one that nothing holds.

use super::store::Store;
use super::{now_ms, observe, show};
use crate::args::{Autopilot, LevelWord};
use crate::cmd::reconfig::reconfig_failure;
use crate::exit::{Code, Failure, Outcome};
use crate::interrupt::Interrupt;
use crate::output::Output;
use crate::session::{self, Session, failure};
use areo_client::units::show_count;
use areo_client::{BelowRedundancy, Client, Error, ROOT_DOMAIN, ServerInfo, Successor};
use areo_steward::guard::{Actor, Level, World};
use areo_steward::intent::{Change, Intent, State};
use areo_steward::journal::{Journal, LeaseWatch};
use areo_steward::records::Records;
use areo_steward::rule;
use areo_steward::rules::Rules;
use areo_steward::signal::History;
use std::time::{Duration, Instant};

const EVERY: Duration = Duration::from_secs(5);
/// The longest time that one look waits for servers that say nothing.
const LOOK: Duration = Duration::from_secs(3);

/// The clock of an instance, which no jump of the machine's clock moves.
#[derive(Clone, Copy)]
struct Clock {
    begun: Instant,
    begun_ms: u64,
}

struct Instance<'a> {
    out: Output,
    client: &'a Client,
    rules: Rules,
    level: Level,
    clock: Clock,
    history: History,
    watch: LeaseWatch,
    /// The intents that were printed last, at level `observe`.
    shown: Vec<Intent>,
}

pub(super) fn run(session: &Session, args: &Autopilot) -> Outcome {
    let rules = rules(args)?;
    let level = match args.level.unwrap_or(LevelWord::Advise) {
        LevelWord::Observe => Level::Observe,
        LevelWord::Advise => Level::Advise,
        LevelWord::Act => Level::Act,
    };
    let every = args.every.unwrap_or(EVERY);
    if every * 2 > Duration::from_secs(rules.guards.view_seconds) {
        return Err(Failure::usage(format!(
            "--every is at most half of `guards.view_seconds`, {} s: a view that is older counts for nothing",
            rules.guards.view_seconds
        )));
    }
    session::run_until(async |interrupt| {
        let client = session.connect().await?;
        let clock = Clock {
            begun: Instant::now(),
            begun_ms: now_ms(),
        };
        // No other instance has this name: a process id is not used again within a millisecond.
        let name = format!("{}-{}-{}", host(), std::process::id(), clock.begun_ms);
        let watch = LeaseWatch::new(&name, rules.guards.lease_seconds.saturating_mul(1000));
        let mut instance = Instance {
            out: session.out,
            client: &client,
            rules,
            level,
            clock,
            history: History::default(),
            watch,
            shown: Vec::new(),
        };
        let ended = instance.work(every, interrupt).await;
        client.close().await;
        ended
    })
}

fn rules(args: &Autopilot) -> Outcome<Rules> {
    let Some(path) = &args.rules else {
        return Ok(Rules::built_in());
    };
    let text =
        std::fs::read_to_string(path).map_err(|error| Failure::file("read", path, &error))?;
    let wrong = |error| Failure::usage(format!("{} has no rules: {error}", path.display()));
    Rules::overridden(&text).map_err(wrong)
}

fn host() -> String {
    let system = rustix::system::uname();
    system.nodename().to_string_lossy().into_owned()
}

impl Clock {
    fn now_ms(self) -> u64 {
        let passed = u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.begun_ms.saturating_add(passed)
    }
}

impl Instance<'_> {
    /// Goes on until it is interrupted. A look that fails is said, and made again.
    async fn work(&mut self, every: Duration, mut interrupt: Interrupt) -> Outcome {
        let mut said = None;
        loop {
            let looked = tokio::select! {
                looked = self.look() => looked,
                () = interrupt.asked() => return Ok(()),
            };
            // An instance whose output is closed gives the lease to another one.
            if let Err(failure) = &looked
                && failure.code == Code::Closed
            {
                return looked;
            }
            let why = looked.err().map(|failure| failure.message);
            if let Some(why) = why.as_ref().filter(|why| said.as_ref() != Some(*why)) {
                self.out.note(why);
            }
            said = why;
            tokio::select! {
                () = tokio::time::sleep(every) => {}
                () = interrupt.asked() => return Ok(()),
            }
        }
    }

    async fn look(&mut self) -> Outcome {
        let sample = observe::sample(self.client, LOOK).await?;
        let now_ms = self.clock.now_ms();
        let records = self.history.add(sample, &self.rules, now_ms);
        if self.level == Level::Observe {
            return self.show_only(&records, now_ms);
        }
        let mut store = Store::open(self.client).await?;
        let journal = store.read().await?;
        self.beat(&mut store).await?;
        let decision = rule::decide(&self.rules, &records, &journal, self.actor(), now_ms);
        let mut written = Vec::new();
        for intent in decision.writes {
            let known = journal.intents.iter().find(|it| it.number == intent.number);
            let is_news = known.is_none_or(|it| it.state != intent.state);
            if store.write(&intent).await? && is_news {
                written.push(intent);
            }
        }
        show::intents(self.out, &written)?;
        for number in journal.expired(now_ms) {
            store.drop_expired(number).await?;
        }
        match decision.act {
            Some(number) => self.act(&mut store, number, &records).await,
            None => Ok(()),
        }
    }

    /// Prints the intents that an instance of another level would write, if they are others than before.
    fn show_only(&mut self, records: &Records, now_ms: u64) -> Outcome {
        let found = rule::evaluate(&self.rules, records, &Journal::default(), now_ms);
        let key = |it: &Intent| (it.subject.clone(), it.rule(), it.change.clone());
        let is_new = |it: &&Intent| self.shown.iter().all(|shown| key(shown) != key(it));
        let news: Vec<Intent> = found.iter().filter(is_new).cloned().collect();
        self.shown = found;
        show::intents(self.out, &news)
    }

    fn actor(&self) -> Actor {
        let holds_lease = self.watch.holds(self.clock.now_ms());
        Actor {
            level: self.level,
            holds_lease,
        }
    }

    /// Takes the lease, or shows that its holder is still there.
    async fn beat(&mut self, store: &mut Store) -> Outcome {
        let begun_ms = self.clock.now_ms();
        if let Some(lease) = self.watch.next(store.lease(), begun_ms)
            && store.write_lease(&lease).await?
        {
            self.watch.written(begun_ms);
        }
        Ok(())
    }

    /// Carries the intent out, or goes on with it, after its guards were asked again on the journal as it is now.
    async fn act(&mut self, store: &mut Store, number: u64, records: &Records) -> Outcome {
        let journal = store.read().await?;
        let intent = journal.intents.iter().find(|it| it.number == number);
        let Some(mut intent) = intent.cloned() else {
            return Ok(());
        };
        let now_ms = self.clock.now_ms();
        let world = World {
            rules: &self.rules,
            records,
            journal: &journal,
            now_ms,
        };
        if intent.state.is_final() || !world.holds(&intent, self.actor()).is_empty() {
            return Ok(());
        }
        let change = intent.change.clone().expect("advice is held");
        let total = change.domains.len() as u64;
        let running = State::Running {
            step: "begin".into(),
            done: 0,
            total,
        };
        if !self.advance(store, &mut intent, running).await? {
            return Ok(());
        }
        let ended = self.replace(store, &mut intent, &change).await;
        let next = match ended {
            Ok(Some(proof)) => State::Done { proof },
            // Another instance goes on with it.
            Ok(None) => return Ok(()),
            Err(failed) => {
                let step = match &intent.state {
                    State::Running { step, .. } => step.clone(),
                    _ => change.to_string(),
                };
                intent.failed(
                    &step,
                    &failed.message,
                    &self.rules.guards,
                    self.clock.now_ms(),
                )
            }
        };
        self.advance(store, &mut intent, next).await.map(drop)
    }

    /// Writes the next state. False: another writer was faster, and this instance goes no further.
    async fn advance(&self, store: &mut Store, intent: &mut Intent, next: State) -> Outcome<bool> {
        let advanced = intent.advance(next, self.clock.now_ms());
        advanced.map_err(|error| Failure::other(error.to_string()))?;
        let is_written = store.write(intent).await?;
        if is_written {
            show::intents(self.out, std::slice::from_ref(intent))?;
        }
        Ok(is_written)
    }

    /// Replaces the server as `areo server replace` does, and returns what shows that all is whole. `None`: the lease is lost.
    async fn replace(
        &mut self,
        store: &mut Store,
        intent: &mut Intent,
        change: &Change,
    ) -> Outcome<Option<String>> {
        let servers = self.client.servers().await.map_err(failure)?;
        let spare = servers.iter().find(|it| it.name == change.with);
        let Some(spare) = spare else {
            return Err(Failure::other(format!(
                "{} is no server any more",
                change.with
            )));
        };
        let (client, successor) = (self.client, Successor::Preferred(spare.id));
        let failed = |error| reconfig_failure(&change.server, error);
        let begun = client.begin_departure(&change.server, &successor, |_| true);
        let departures = begun.await.map_err(failed)?.unwrap_or_default();
        let (mut first, total) = (None, departures.len() as u64);
        for (done, departure) in departures.iter().enumerate() {
            let domain = departure.domain();
            let running = State::Running {
                step: domain.name().to_owned(),
                done: done as u64,
                total,
            };
            // An operator may have paused the autopilot in the meantime.
            let is_paused = store.read().await?.paused;
            if is_paused || !self.advance(store, intent, running).await? {
                return Ok(None);
            }
            let Some(changed) = self.while_holding(store, departure.run(|_| {})).await? else {
                return Ok(None);
            };
            // The others do not wait for it.
            if let Err(error) = changed {
                first.get_or_insert(reconfig_failure(domain.name(), error));
            }
        }
        if let Some(failure) = first {
            return Err(failure);
        }
        // Domains that an earlier try has changed are looked at, too.
        for change in &change.domains {
            let look = repaired(client, &change.domain, spare);
            match self.while_holding(store, look).await? {
                Some(looked) => looked?,
                None => return Ok(None),
            }
        }
        Ok(Some(format!(
            "{}: {} has all of their objects",
            show_count(change.domains.len() as u64, "domain"),
            spare.name
        )))
    }

    /// The result of this work, during which the lease is kept. `None`: it was lost, and another instance goes on.
    async fn while_holding<T>(
        &mut self,
        store: &mut Store,
        work: impl Future<Output = T>,
    ) -> Outcome<Option<T>> {
        let pause = Duration::from_secs(self.rules.guards.lease_seconds) / 8;
        let mut work = std::pin::pin!(work);
        loop {
            tokio::select! {
                done = &mut work => return Ok(Some(done)),
                // The work goes on without a beat for as long as the lease lasts.
                () = tokio::time::sleep(pause) => drop(self.beat(store).await),
            }
            if !self.watch.holds(self.clock.now_ms()) {
                return Ok(None);
            }
        }
    }
}

/// Repairs a domain, and checks that the server which came has all of its objects. A domain that was removed has none.
async fn repaired(client: &Client, domain: &str, came: &ServerInfo) -> Outcome {
    let domain = match domain {
        ROOT_DOMAIN => client.root_domain().await,
        name => match client.domain(name).await {
            Ok(domain) => domain,
            Err(Error::NotFound { .. }) => return Ok(()),
            Err(error) => return Err(failure(error)),
        },
    };
    let redundancy = domain.repair(|_| {}).await.map_err(failure)?;
    let lacks = |it: &&BelowRedundancy| it.lacking.contains(&came.name);
    let lacking = redundancy.below.iter().filter(lacks).count() as u64;
    if redundancy.being_reconfigured {
        return Err(Failure::other(format!(
            "'{}' is being reconfigured: not all of its objects were looked at",
            domain.name()
        )));
    }
    match lacking {
        0 => Ok(()),
        lacking => Err(Failure::other(format!(
            "{} of '{}' lacks {}",
            came.name,
            domain.name(),
            show_count(lacking, "object")
        ))),
    }
}
