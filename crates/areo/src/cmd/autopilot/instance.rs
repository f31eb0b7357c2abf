//! An instance of the autopilot as a process: reaches the cluster by a client, until it is interrupted.

use super::metrics::Counts;
use super::{observe, show};
use crate::args::{Autopilot, LevelWord};
use crate::cmd::reconfig::reconfig_failure;
use crate::exit::{Code, Failure, Outcome};
use crate::interrupt::Interrupt;
use crate::output::Output;
use crate::session::{self, Session, failure};
use areo_client::journal::{JournalObjects, now_ms};
use areo_client::units::show_count;
use areo_client::{BelowRedundancy, Client, Departure, Error, ROOT_DOMAIN, Successor};
use areo_steward::guard::Level;
use areo_steward::instance::{Cluster, Instance, Seen};
use areo_steward::intent::{Change, Intent, InvalidStep};
use areo_steward::rules::Rules;
use areo_steward::signal::Sample;
use std::time::{Duration, Instant};

const EVERY: Duration = Duration::from_secs(5);
/// The longest time that one look waits for servers that say nothing.
const LOOK: Duration = Duration::from_secs(3);

/// The cluster that a client reaches.
struct Reached<'a> {
    out: Output,
    client: &'a Client,
    begun: Instant,
    begun_ms: u64,
    counts: Counts,
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
    let counts = Counts::default();
    if let Some(address) = session.global.metrics {
        counts.serve(session.out, address, session.metrics.clone())?;
    }
    session::run_until(async |interrupt| {
        let client = session.connect().await?;
        let reached = Reached {
            out: session.out,
            client: &client,
            begun: Instant::now(),
            begun_ms: now_ms(),
            counts: counts.clone(),
        };
        // No other instance has this name: a process id is not used again within a millisecond.
        let name = format!("{}-{}-{}", host(), std::process::id(), reached.begun_ms);
        let mut instance = Instance::new(reached, &name, rules, level);
        let ended = work(&mut instance, (session.out, &counts), every, interrupt).await;
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

/// Looks until it is interrupted. A look that fails is said, and made again.
async fn work(
    instance: &mut Instance<Reached<'_>>,
    (out, counts): (Output, &Counts),
    every: Duration,
    mut interrupt: Interrupt,
) -> Outcome {
    let mut said = None;
    loop {
        let looked = tokio::select! {
            looked = instance.look() => looked,
            () = interrupt.asked() => return Ok(()),
        };
        // An instance whose output is closed gives the lease to another one.
        if let Err(failure) = &looked
            && failure.code == Code::Closed
        {
            return looked;
        }
        counts.looked(looked.is_err());
        let why = looked.err().map(|failure| failure.message);
        if let Some(why) = why.as_ref().filter(|why| said.as_ref() != Some(*why)) {
            out.note(why);
        }
        said = why;
        tokio::select! {
            () = tokio::time::sleep(every) => {}
            () = interrupt.asked() => return Ok(()),
        }
    }
}

impl From<InvalidStep> for Failure {
    fn from(step: InvalidStep) -> Failure {
        Failure::other(step.to_string())
    }
}

impl Cluster for Reached<'_> {
    type Error = Failure;
    type Store = JournalObjects;
    type Departure = Departure;

    fn now_ms(&self) -> u64 {
        let passed = u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.begun_ms.saturating_add(passed)
    }

    async fn sleep(&self, ms: u64) {
        tokio::time::sleep(Duration::from_millis(ms)).await;
    }

    async fn sample(&self) -> Outcome<Sample> {
        observe::sample(self.client, LOOK, self.now_ms()).await
    }

    async fn open(&self) -> Outcome<JournalObjects> {
        Ok(JournalObjects::open(self.client).await?)
    }

    async fn begin(&self, change: &Change) -> Outcome<Vec<Departure>> {
        self.counts.acts();
        let servers = self.client.servers().await.map_err(failure)?;
        let spare = servers.iter().find(|it| it.name == change.with);
        let Some(spare) = spare else {
            return Err(Failure::other(format!(
                "{} is no server any more",
                change.with
            )));
        };
        if servers.iter().all(|it| it.name != change.server) {
            // It was forgotten, so that no domain names it.
            return Ok(Vec::new());
        }
        let successor = Successor::Preferred(spare.id);
        let begun = self
            .client
            .begin_departure(&change.server, &successor, |_| true);
        let failed = |error| reconfig_failure(&change.server, error);
        Ok(begun.await.map_err(failed)?.unwrap_or_default())
    }

    fn domain(departure: &Departure) -> &str {
        departure.domain().name()
    }

    async fn run(&self, departure: &Departure) -> Outcome {
        let changed = departure.run(|_| {}).await;
        let failed = |error| reconfig_failure(departure.domain().name(), error);
        changed.map(drop).map_err(failed)
    }

    /// A domain that was removed lacks nothing.
    async fn repair(&self, name: &str, came: &str) -> Outcome {
        let domain = match name {
            ROOT_DOMAIN => self.client.root_domain().await,
            name => match self.client.domain(name).await {
                Ok(domain) => domain,
                Err(Error::NotFound { .. }) => return Ok(()),
                Err(error) => return Err(failure(error)),
            },
        };
        let redundancy = domain.repair(|_| {}).await.map_err(failure)?;
        if redundancy.being_reconfigured {
            return Err(Failure::other(format!(
                "'{name}' is being reconfigured: not all of its objects were looked at"
            )));
        }
        let lacks = |it: &&BelowRedundancy| it.lacking.iter().any(|lacking| lacking == came);
        match redundancy.below.iter().filter(lacks).count() as u64 {
            0 => Ok(()),
            lacking => Err(Failure::other(format!(
                "{came} of '{name}' lacks {}",
                show_count(lacking, "object")
            ))),
        }
    }

    fn tell(&self, intents: &[Intent]) -> Outcome {
        show::intents(self.out, intents)
    }

    fn note(&self, seen: &Seen<'_>) {
        self.counts.seen(seen);
    }
}
