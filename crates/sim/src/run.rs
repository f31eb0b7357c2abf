//! One seed, and many.

use crate::cluster::Cluster;
use crate::fault::{Fault, FaultCounts, Restriction};
use crate::opinion;
use crate::options::{Options, Work};
use crate::random::mix;
use crate::workload::arbitrary::stabilize;
use crate::workload::losing::lose;
use crate::workload::stewarding::steward;
use crate::workload::{self, PROCESSES, Workload};
use crate::world::waiting::{MENDED_AFTER, mend, pass, start_all};
use crate::world::{Setup, World};
use areo_core::instant::Instant;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::time::Duration;

/// The result of one seed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    pub seed: u64,
    /// The hash of everything that happened: equal for equal seeds and options.
    pub hash: u64,
    /// Operations that began, by all clients.
    pub operations: u64,
    /// Configurations that were installed.
    pub reconfigurations: u64,
    /// Changes that became one configuration with another one.
    pub merged: u64,
    /// Elements that servers took from earlier configurations (`[X-17 adopted-elements]`).
    pub adopted: u64,
    /// Objects that servers brought themselves (`[X-26 self-repair]`).
    pub repaired: u64,
    /// Objects whose elements servers compared, and found to be of one value (`[X-29 cross-check]`).
    pub cross_checked: u64,
    /// Tombstones of blocks that servers dropped (`[X-30 dropped-tombstones]`).
    pub tombstones_dropped: u64,
    /// Things that happened: messages, commits, timers, faults.
    pub events: u64,
    /// Virtual time that passed.
    pub virtual_time: Duration,
    /// The faults that fired.
    pub fired: FaultCounts,
    /// The strikes of faults, each with its number.
    pub strikes: Vec<(Fault, u64)>,
    /// The rule that was broken, if one was.
    pub violation: Option<String>,
    /// The results that clients saw, as JSON lines.
    pub history: String,
    /// The last events as people read them; empty unless it was a replay.
    pub schedule: Vec<String>,
}

/// The summed results of many seeds.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Number of seeds that ran.
    pub seeds: u64,
    pub operations: u64,
    /// Configurations that were installed.
    pub reconfigurations: u64,
    /// Changes that became one configuration with another one.
    pub merged: u64,
    /// Elements that servers took from earlier configurations (`[X-17 adopted-elements]`).
    pub adopted: u64,
    /// Objects that servers brought themselves (`[X-26 self-repair]`).
    pub repaired: u64,
    /// Objects whose elements servers compared, and found to be of one value (`[X-29 cross-check]`).
    pub cross_checked: u64,
    /// Tombstones of blocks that servers dropped (`[X-30 dropped-tombstones]`).
    pub tombstones_dropped: u64,
    pub events: u64,
    pub fired: FaultCounts,
    /// The seeds that broke a rule, in order.
    pub violations: Vec<Outcome>,
}

/// Runs seeds; `progress` is told of each as it ends, in no particular order.
pub fn run(options: &Options, mut progress: impl FnMut(&Outcome)) -> Report {
    let next = AtomicU64::new(options.first_seed);
    let end = options.first_seed.saturating_add(options.seeds);
    let (sender, outcomes) = mpsc::channel();
    let mut report = Report::default();
    std::thread::scope(|scope| {
        for _ in 0..options.threads.max(1) {
            let (sender, next) = (sender.clone(), &next);
            scope.spawn(move || {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= end {
                        return;
                    }
                    let outcome = once_or_twice(seed, options);
                    if options.stop_at_first && outcome.violation.is_some() {
                        next.store(end, Ordering::Relaxed);
                    }
                    if sender.send(outcome).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        for outcome in outcomes {
            progress(&outcome);
            report.seeds += 1;
            report.operations += outcome.operations;
            report.reconfigurations += outcome.reconfigurations;
            report.merged += outcome.merged;
            report.adopted += outcome.adopted;
            report.repaired += outcome.repaired;
            report.cross_checked += outcome.cross_checked;
            report.tombstones_dropped += outcome.tombstones_dropped;
            report.events += outcome.events;
            report.fired.add(&outcome.fired);
            if outcome.violation.is_some() {
                report.violations.push(outcome);
            }
        }
    });
    report.violations.sort_by_key(|outcome| outcome.seed);
    report
}

/// Runs one seed again, and writes its schedule down.
pub fn replay(seed: u64, options: &Options) -> Outcome {
    restricted(seed, options, &Restriction::default(), true)
}

fn once_or_twice(seed: u64, options: &Options) -> Outcome {
    let everything = Restriction::default();
    let mut outcome = restricted(seed, options, &everything, false);
    if options.twice && outcome.violation.is_none() {
        let again = restricted(seed, options, &everything, false);
        if (again.hash, &again.history) != (outcome.hash, &outcome.history) {
            outcome.violation = Some("replay: the same seed made another run".to_owned());
        }
    }
    outcome
}

/// Virtual time without an operation that begins after which trouble ends, and after which, without trouble, a run is stuck. In
/// few seeds servers end so often, and disks are full for so long, that a domain is hardly ever created.
const STALLED_AFTER: Duration = Duration::from_mins(5);

/// Sweeps after which every server must have been heard by one.
const SWEEPS: usize = 40;

/// Runs one seed without the restricted faults and operations.
pub fn restricted(
    seed: u64,
    options: &Options,
    restriction: &Restriction,
    traced: bool,
) -> Outcome {
    let cluster = match options.work {
        Work::Registers => Cluster::USUAL,
        Work::Drawn | Work::Settled | Work::Trusting => Cluster::drawn(seed),
        Work::Stabilizing | Work::Losing => Cluster::drawn(seed).on_disks(2),
        Work::Stewarding => Cluster::drawn(seed).on_disks(5),
    };
    let root = workload::root(&cluster);
    let setup = Setup {
        faults: options.faults,
        restriction: restriction.clone(),
        scheduler: options.scheduler,
        clients: PROCESSES,
        cluster,
        costs: None,
        traced,
    };
    let world = World::new(seed, &root, setup);
    let work = Workload::new(&world, &root, options);
    let ended = catch_unwind(AssertUnwindSafe(|| match options.work {
        Work::Stabilizing | Work::Losing | Work::Stewarding => {
            world.heal();
            start_all(&world);
            match options.work {
                Work::Losing => lose(&work),
                Work::Stewarding => steward(&work),
                _ => stabilize(&work),
            }
        }
        _ => safety_then_liveness(&world, &work, options.planted),
    }));
    if let Err(panic) = &ended {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
        // What was borrowed when it happened stays borrowed: nothing but the sentence can be had.
        return broken(seed, text.unwrap_or("of an unknown kind"), &world);
    }
    let outcome = Outcome {
        seed,
        hash: mix(world.hash() ^ work.started()),
        operations: work.started(),
        reconfigurations: work.reconfigurations(),
        merged: work.merged(),
        adopted: world.adopted(),
        repaired: world.repaired(),
        cross_checked: world.cross_checked(),
        tombstones_dropped: world.tombstones_dropped(),
        events: world.events(),
        virtual_time: world.now().since(Instant::default()),
        fired: world.plan().fired(),
        strikes: world.plan().strikes_drawn(),
        violation: world
            .violation()
            .or_else(|| opinion::against(work.history.borrow().lines())),
        history: work.history.borrow().lines().to_owned(),
        schedule: world.schedule(),
    };
    world.end();
    outcome
}

fn broken(seed: u64, panic: &str, world: &World) -> Outcome {
    Outcome {
        seed,
        hash: 0,
        operations: 0,
        reconfigurations: 0,
        merged: 0,
        adopted: 0,
        repaired: 0,
        cross_checked: 0,
        tombstones_dropped: 0,
        events: world.events(),
        virtual_time: Duration::ZERO,
        fired: FaultCounts::default(),
        strikes: world.plan().strikes_drawn(),
        violation: Some(format!("panic: {panic}")),
        history: String::new(),
        schedule: world.schedule(),
    }
}

fn safety_then_liveness(world: &World, work: &Rc<Workload>, planted: Option<Fault>) {
    // It strikes when all else is over, and not where clients are busy with other things.
    let is_arbitrary = world.plan().draws(Fault::ArbitraryState);
    let is_losing = world.plan().draws(Fault::ObjectLost);
    for process in 0..PROCESSES {
        work.start(process);
    }
    world.begin_trouble();
    operate(world, work, planted);
    if world.violation().is_some() {
        return;
    }
    world.heal();
    pass(world, Duration::from_secs(3));
    // A server that is still starting would miss the finale, and what confirms the versions that it has.
    start_all(world);
    // In half of the seeds what was written in trouble comes to all members before anything is written over it.
    if world.random().chance(500) {
        mend(world);
    }
    if world.violation().is_some() {
        return;
    }
    work.start_finale();
    while work.is_busy() && world.violation().is_none() {
        if !world.step() {
            return world.violate("liveness: nothing happens any more".to_owned());
        }
    }
    refuse_forgotten(world);
    pass(world, Duration::from_secs(5));
    if let Some(crowded) = world.crowded() {
        return world.violate(crowded);
    }
    mend(world);
    grow(world);
    if world.violation().is_none() {
        close(world, work);
    }
    if is_losing && world.violation().is_none() {
        lose(work);
    }
    if is_arbitrary && world.violation().is_none() {
        stabilize(work);
    }
}

/// Every forgotten server is started again, and must be refused.
fn refuse_forgotten(world: &World) {
    world.let_all_return();
    let patience = world.now().plus(Duration::from_mins(1));
    while world.is_any_returning() && world.violation().is_none() {
        if world.now() > patience {
            return world.violate("liveness: a start is not decided".to_owned());
        }
        pass(world, Duration::from_millis(100));
    }
}

/// Lets things happen until all operations have ended.
fn operate(world: &World, work: &Rc<Workload>, planted: Option<Fault>) {
    let (mut steps, mut has_calm) = (0_u64, false);
    let (mut started, mut since) = (0, world.now());
    while work.is_busy() && world.violation().is_none() {
        if work.started() > started {
            (started, since) = (work.started(), world.now());
        }
        let is_stalled = world.now().since(since) > STALLED_AFTER;
        if !world.step() || is_stalled && has_calm {
            return world.violate("liveness: nothing happens any more".to_owned());
        }
        if is_stalled {
            (has_calm, since) = (true, world.now());
            world.heal();
        }
        if let Some(fault) = planted.filter(|fault| world.plan().fired().count(*fault) > 0) {
            world.violate(format!("planted: {} has struck", fault.name()));
        }
        steps += 1;
        if steps.is_multiple_of(100) && world.plan().strikes(Fault::ClientCrash) {
            work.crash(world.random().index(PROCESSES));
        }
    }
}

/// After a while the root domain has the members that it should have.
fn grow(world: &World) {
    let patience = world.now().plus(MENDED_AFTER);
    while let Some(ungrown) = world.ungrown()
        && world.violation().is_none()
    {
        if world.now() > patience {
            return world.violate(ungrown);
        }
        pass(world, Duration::from_millis(200));
    }
}

/// Sweeps until no server holds more than its bound. A sweep hears from a quorum, so that one server may miss the first ones.
fn close(world: &World, work: &Rc<Workload>) {
    world.spread_latencies();
    let mut overgrown = None;
    for _ in 0..SWEEPS {
        work.start_closing();
        while work.is_busy() && world.violation().is_none() {
            if !world.step() {
                return world.violate("liveness: nothing happens any more".to_owned());
            }
        }
        pass(world, Duration::from_secs(5));
        overgrown = world.overgrown();
        if overgrown.is_none() {
            return;
        }
    }
    if let Some(overgrown) = overgrown {
        world.violate(overgrown);
    }
}
