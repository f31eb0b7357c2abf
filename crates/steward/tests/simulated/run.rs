//! One run: draws a cluster, instances and events, and runs the instances in virtual time.

use crate::judge;
use crate::random::Random;
use crate::reached::Reached;
use crate::world::{Domain, Server, World};
use areo_steward::guard::Level;
use areo_steward::instance::Instance;
use areo_steward::intent::State;
use areo_steward::rules::Rules;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Waker};

const MINUTE_MS: u64 = 60_000;
pub(crate) const OBSERVER_MS: u64 = 2 * MINUTE_MS;
pub(crate) const BETWEEN_MS: u64 = 10 * MINUTE_MS;
const EVERY_MS: u64 = 20_000;
/// Events happen for so long, after which all goes well.
const TROUBLE_MS: u64 = 120 * MINUTE_MS;
/// The time in which each server that is down is replaced: it is found, others go first, and tries may have failed before.
const EACH_MS: u64 = 25 * MINUTE_MS;
const RULES: &str = "\
[dead]
unreachable_seconds = 300
spare_stable_seconds = 120
[guards]
observer_seconds = 120
between_changes_seconds = 600
";

/// The number of times that each thing happened in runs.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Seen {
    pub(crate) changes: u64,
    pub(crate) domains_changed: u64,
    pub(crate) tries_failed: u64,
    pub(crate) superseded: u64,
    pub(crate) leases_taken_over: u64,
    crashes: u64,
    starts: u64,
    cuts: u64,
    errors: u64,
    labels: u64,
    pub(crate) crowded: u64,
    maintenances: u64,
    maintained_while_down: u64,
    operators: u64,
    pauses: u64,
    instances_died: u64,
    instances_stopped: u64,
    died_while_working: u64,
    other_clocks: u64,
}

impl Seen {
    fn all(&mut self) -> [(&'static str, &mut u64); 19] {
        [
            ("changes", &mut self.changes),
            ("domains changed", &mut self.domains_changed),
            ("tries failed", &mut self.tries_failed),
            ("superseded", &mut self.superseded),
            ("leases taken over", &mut self.leases_taken_over),
            ("crashes", &mut self.crashes),
            ("starts", &mut self.starts),
            ("cuts", &mut self.cuts),
            ("errors", &mut self.errors),
            ("labels", &mut self.labels),
            ("crowded zones", &mut self.crowded),
            ("maintenances", &mut self.maintenances),
            ("maintained while down", &mut self.maintained_while_down),
            ("operators", &mut self.operators),
            ("pauses", &mut self.pauses),
            ("instances died", &mut self.instances_died),
            ("instances stopped", &mut self.instances_stopped),
            ("died while working", &mut self.died_while_working),
            ("other clocks", &mut self.other_clocks),
        ]
    }

    pub(crate) fn add(&mut self, other: &Seen) {
        let mut other = other.clone();
        for ((_, sum), (_, count)) in self.all().into_iter().zip(other.all()) {
            *sum += *count;
        }
    }

    pub(crate) fn assert_all_drawn(&mut self) {
        for (name, count) in self.all() {
            assert!(*count >= 5, "{name}: {count}");
        }
    }
}

/// An instance that runs, and until when it is stopped.
struct Task {
    future: Pin<Box<dyn Future<Output = ()>>>,
    stopped_until_ms: u64,
}

struct Run {
    world: Rc<RefCell<World>>,
    tasks: Vec<Option<Task>>,
    names: u64,
}

/// Runs this seed to its end.
///
/// # Panics
/// A rule was broken.
pub(crate) fn run(seed: u64) -> Seen {
    let result = std::panic::catch_unwind(|| {
        let mut run = Run::draw(seed);
        run.work();
        let world = run.world.borrow();
        world.seen.clone()
    });
    result.unwrap_or_else(|why| {
        eprintln!("seed {seed}");
        std::panic::resume_unwind(why);
    })
}

fn drawn_domains(random: &mut Random, servers: usize) -> Vec<Domain> {
    let mut domains = Vec::new();
    for (i, name) in ["@root", "copies", "coded"].into_iter().enumerate() {
        let k = if i == 2 { random.between(1, 3) } else { 1 };
        let k = usize::try_from(k).unwrap();
        let length = (k + 2 + 2 * random.index(2)).min(servers - 1);
        let first = random.index(servers);
        let members: Vec<String> = (0..length)
            .map(|j| name_of((first + j) % servers))
            .collect();
        domains.push(Domain {
            name: name.into(),
            k: k.min(length.saturating_sub(2)).max(1),
            whole: members.iter().cloned().collect(),
            members,
            operator_ms: None,
            is_half_changed: false,
        });
    }
    domains
}

fn name_of(i: usize) -> String {
    format!("s{}", i + 1)
}

impl Run {
    fn draw(seed: u64) -> Run {
        let mut random = Random::new(seed);
        let count = 5 + random.index(5);
        // In the other seeds no server has a zone.
        let has_zones = random.chance(330);
        let zones: Vec<u64> = (0..count).map(|_| random.below(5)).collect();
        let server = |i: usize| Server {
            name: name_of(i),
            is_up: true,
            since_ms: 0,
            io_errors: 0,
            to_empty: false,
            zone: has_zones.then(|| format!("z{}", zones[i])),
            maintenance_ms: None,
            leaving: false,
            reasons: u64::from(has_zones),
            replaced: 0,
        };
        let domains = drawn_domains(&mut random, count);
        let one_clock = random.chance(750);
        let world = World {
            // Clocks show some day.
            now_ms: 1_000_000 * MINUTE_MS,
            random,
            servers: (0..count).map(server).collect(),
            cuts: BTreeSet::new(),
            domains,
            intents: BTreeMap::new(),
            lease: None,
            versions: 0,
            paused_ms: None,
            changed_ms: 0,
            one_clock,
            has_faults: true,
            wakes: Vec::new(),
            begun_ms: BTreeMap::new(),
            last_begun_ms: None,
            doomed: None,
            seen: Seen::default(),
        };
        let mut run = Run {
            world: Rc::new(RefCell::new(world)),
            tasks: Vec::new(),
            names: 0,
        };
        let instances = 1 + run.world.borrow_mut().random.index(3);
        for task in 0..instances {
            run.tasks.push(None);
            run.world.borrow_mut().wakes.push(0);
            run.start(task);
        }
        run
    }

    fn start(&mut self, task: usize) {
        let world = &mut *self.world.borrow_mut();
        let mut ahead_ms = 0;
        if !world.one_clock {
            world.seen.other_clocks += 1;
            ahead_ms = world.random.between(0, 60) * MINUTE_MS;
        }
        let reached = Reached {
            world: self.world.clone(),
            task,
            born_ms: world.now_ms,
            ahead_ms,
        };
        self.names += 1;
        let rules = Rules::overridden(RULES).unwrap();
        let mut instance = Instance::new(
            reached.clone(),
            &format!("i{}", self.names),
            rules,
            Level::Act,
        );
        let future = Box::pin(async move {
            loop {
                // A look that failed is made again.
                let _ = instance.look().await;
                reached.pass(EVERY_MS).await;
            }
        });
        world.wakes[task] = world.now_ms;
        self.tasks[task] = Some(Task {
            future,
            stopped_until_ms: 0,
        });
    }

    fn work(&mut self) {
        let start_ms = self.world.borrow().now_ms;
        let mut event_ms = start_ms + 10 * MINUTE_MS;
        while event_ms < start_ms + TROUBLE_MS {
            self.until(event_ms);
            self.event();
            event_ms += self.world.borrow_mut().random.between(1, 12) * MINUTE_MS;
        }
        self.until(event_ms);
        self.end_trouble();
        let servers = self.world.borrow().servers.len() as u64;
        let end_ms = event_ms + (servers + 2) * EACH_MS;
        while let Some(left) = self.left() {
            assert!(event_ms < end_ms, "{left}");
            event_ms += 5 * MINUTE_MS;
            self.until(event_ms);
        }
    }

    fn left(&self) -> Option<String> {
        judge::left(&self.world.borrow())
    }

    /// Runs the instances until then.
    fn until(&mut self, end_ms: u64) {
        loop {
            let next = {
                let world = self.world.borrow();
                let live = self.tasks.iter().enumerate();
                let wakes = live.filter_map(|(i, it)| {
                    Some((it.as_ref()?.stopped_until_ms.max(world.wakes[i]), i))
                });
                wakes.min()
            };
            let Some((ms, i)) = next.filter(|(ms, _)| *ms <= end_ms) else {
                break;
            };
            let doomed = self.world.borrow().doomed.filter(|(_, at_ms)| *at_ms <= ms);
            if let Some((task, _)) = doomed {
                self.world.borrow_mut().doomed = None;
                self.kill(task);
                continue;
            }
            {
                let world = &mut *self.world.borrow_mut();
                world.now_ms = world.now_ms.max(ms);
                world.wakes[i] = u64::MAX;
            }
            let task = self.tasks[i].as_mut().expect("it is live");
            let mut context = Context::from_waker(Waker::noop());
            assert!(task.future.as_mut().poll(&mut context).is_pending());
        }
        let world = &mut *self.world.borrow_mut();
        world.now_ms = world.now_ms.max(end_ms);
    }

    fn event(&mut self) {
        let kind = self.world.borrow_mut().random.below(100);
        let task = self.world.borrow_mut().random.index(self.tasks.len());
        match kind {
            0..10 => self.kill(task),
            10..20 => {
                let world = &mut *self.world.borrow_mut();
                let ms = world.random.between(1, 180) * 1000;
                world.seen.instances_stopped += 1;
                if let Some(it) = &mut self.tasks[task] {
                    it.stopped_until_ms = world.now_ms + ms;
                }
            }
            _ => self.world.borrow_mut().event(kind),
        }
    }

    /// An instance dies wherever it is, and another one is started in its place.
    fn kill(&mut self, task: usize) {
        {
            let world = &mut *self.world.borrow_mut();
            world.seen.instances_died += 1;
            let mut intents = world.intents.values();
            let is_working = intents.any(|(_, it)| matches!(it.state, State::Running { .. }));
            world.seen.died_while_working += u64::from(is_working);
        }
        self.tasks[task] = None;
        self.start(task);
    }

    /// Nothing breaks from now on, and operators do what they are asked to do.
    fn end_trouble(&mut self) {
        let world = &mut *self.world.borrow_mut();
        let now_ms = world.now_ms;
        world.has_faults = false;
        world.cuts.clear();
        world.paused_ms = None;
        for domain in &mut world.domains {
            domain.operator_ms = None;
        }
        for server in &mut world.servers {
            server.maintenance_ms = None;
        }
        for (number, (_, mut intent)) in world.intents.clone() {
            if intent.retry(now_ms).is_ok() {
                let version = world.version();
                world.intents.insert(number, (version, intent));
            }
        }
    }
}

impl World {
    fn event(&mut self, kind: u64) {
        let (a, b) = (
            self.random.index(self.servers.len()),
            self.random.index(self.servers.len()),
        );
        let (now_ms, minutes) = (self.now_ms, self.random.between(5, 60));
        let server = &mut self.servers[a];
        match kind {
            20..34 if server.is_up => {
                (server.is_up, server.since_ms) = (false, now_ms);
                server.reasons += 1;
                self.changed_ms = now_ms;
                self.seen.crashes += 1;
            }
            34..60 if !server.is_up => {
                (server.is_up, server.since_ms) = (true, now_ms);
                self.changed_ms = now_ms;
                self.seen.starts += 1;
            }
            60..66 if a != b => {
                self.cuts.insert((a, b));
                self.servers[b].reasons += 1;
                self.changed_ms = now_ms;
                self.seen.cuts += 1;
            }
            66..70 => self.cuts.clear(),
            70..74 => {
                server.io_errors += 1;
                server.reasons += 1;
                self.seen.errors += 1;
            }
            74..78 => {
                server.to_empty = true;
                server.reasons += 1;
                self.seen.labels += 1;
            }
            78..86 => {
                let i = self.random.index(self.domains.len());
                let operator_ms = &mut self.domains[i].operator_ms;
                *operator_ms = match operator_ms {
                    None => Some(now_ms),
                    Some(_) => None,
                };
                self.seen.operators += 1;
            }
            86..92 => {
                self.paused_ms = match self.paused_ms {
                    None => Some(now_ms),
                    Some(_) => None,
                };
                self.seen.pauses += 1;
            }
            92..98 => {
                self.seen.maintained_while_down += u64::from(!server.is_up);
                server.maintenance_ms = match server.maintenance_ms {
                    None => Some(now_ms..now_ms + minutes * MINUTE_MS),
                    Some(_) => None,
                };
                self.seen.maintenances += 1;
            }
            _ => {}
        }
    }
}
