//! The simulated world: virtual time, a queue of events, tasks, links and machines. One thread, no clock, no entropy but
//! the seed's: the same seed makes the same run.

mod addresses;
mod arbitrary;
pub(crate) mod call;
mod costs;
mod departure;
mod executor;
mod frames;
mod growing;
mod identity;
pub(crate) mod leading;
mod loss;
mod machine;
mod network;
mod notes;
mod pace;
mod place;
mod queue;
mod readers;
mod repair;
mod rest;
mod rot;
mod snapshot;
mod trouble;
pub(crate) mod waiting;

use crate::cluster::Cluster;
use crate::fault::{Fault, Plan, Restriction};
use crate::invariant::{self, Context, Invariant, Observation};
use crate::options::Scheduler;
use crate::random::{Random, Table, digest, mix};
use crate::truth::{Domain, ObjectId, Objects, domain_of};
use addresses::Book;
use areo_core::config::{Configuration, ConfigurationId, ServerId};
use areo_core::instant::Instant;
use bytes::Bytes;
use call::{OpenCall, Sink};
pub(crate) use costs::{Costs, Prices};
use executor::Tasks;
use machine::{Caps, Machines};
use network::{Links, Message};
use queue::Queue;
use readers::Readers;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;
pub(crate) use trouble::Trouble;

/// Lines of the schedule that are kept for a report.
const SCHEDULE_LINES: usize = 20_000;

/// The world; clones are the same one.
#[derive(Clone)]
pub(crate) struct World(Rc<Inner>);

struct Inner {
    now: Cell<Instant>,
    cluster: Cluster,
    random: Random,
    plan: Plan,
    /// Given, and not drawn.
    costs: Option<Costs>,
    queue: RefCell<Queue>,
    /// For each caller (clients, then servers) the time by which its clock is ahead of the world's.
    clocks: RefCell<Vec<Duration>>,
    tasks: Tasks,
    calls: RefCell<Table<u64, OpenCall>>,
    links: RefCell<Links>,
    readers: Readers,
    /// For each caller the addresses of servers that it knows.
    books: RefCell<Vec<Book>>,
    machines: RefCell<Machines>,
    watch: RefCell<Watch>,
    hash: Cell<u64>,
    events: Cell<u64>,
    /// Elements that servers took from earlier configurations.
    adopted: Cell<u64>,
    /// Objects that servers brought themselves, and those whose elements they compared and found to be of one value.
    repaired: Cell<u64>,
    cross_checked: Cell<u64>,
    /// Timeout of a round of a leader; `None`: servers do not lead.
    leads: Cell<Option<Duration>>,
    /// Tombstones of blocks that servers dropped.
    tombstones_dropped: Cell<u64>,
    /// Kept if somebody wants to read it.
    schedule: RefCell<Option<VecDeque<String>>>,
}

/// The invariants, and the state that they need.
struct Watch {
    invariants: Vec<Box<dyn Invariant>>,
    objects: Objects,
    shapes: BTreeMap<ConfigurationId, Arc<Configuration>>,
    /// Configurations of the root domain from which servers have begun to change its members.
    grown: BTreeSet<ConfigurationId>,
    /// The numbers of the fences that servers have shown, by object.
    fences: BTreeMap<ObjectId, BTreeSet<u64>>,
    violation: Option<String>,
    /// Servers remember states that no execution produced: invariants are not checked.
    is_arbitrary: bool,
}

/// Something that happens at a time.
enum Event {
    Deliver(Message),
    /// The server that it has come to has the time for it.
    Worked(Message),
    /// A task's timer; with the caller whose it is, as the next one.
    Wake(usize, Waker),
    /// The time for which a quorum call waits; the number tells its timers apart.
    Time(usize, Weak<dyn Sink>, u64),
    /// The connection of a call was lost; it goes out again.
    Resend(u64),
    /// A server's commit has been handed to the disk for long enough. The number tells lives of a server apart.
    Commit(usize, u64),
    Upkeep(usize, u64),
    Serve(usize, u64, u64),
    Resume(usize, u64),
    Restart(usize),
    Trouble(Trouble),
}

impl Event {
    /// The channel of the event, if an asynchronous system may reorder it: a direction of a link, or a disk.
    fn channel(&self) -> Option<usize> {
        match self {
            Event::Deliver(message) | Event::Worked(message) => Some(message.channel()),
            Event::Commit(server, _) => Some(*server),
            _ => None,
        }
    }

    /// The caller whose timer it is.
    fn timer_of(&self) -> Option<usize> {
        match self {
            Event::Wake(caller, _) | Event::Time(caller, ..) => Some(*caller),
            _ => None,
        }
    }
}

/// The parameters of a world beside its seed.
pub(crate) struct Setup {
    pub(crate) faults: bool,
    pub(crate) restriction: Restriction,
    pub(crate) scheduler: Scheduler,
    pub(crate) clients: usize,
    pub(crate) cluster: Cluster,
    /// Fixed costs of messages; `None`: costs are drawn. With fixed costs servers do not repair themselves.
    pub(crate) costs: Option<Costs>,
    /// True if the schedule is written down for a reader.
    pub(crate) traced: bool,
}

/// Low bits of a server's id that name its machine. The other bits distinguish later servers of that machine.
const MACHINE_BITS: u32 = 16;

/// The number of a server's machine, from 0.
pub(crate) fn server_of(id: ServerId) -> usize {
    let place = id.0 & ((1 << MACHINE_BITS) - 1);
    usize::try_from(place - 1).expect("machines of the world are numbered from 1")
}

/// The generation of a server on its machine: 0 is the first server, later ones are random.
pub(crate) fn generation_of(id: ServerId) -> u128 {
    id.0 >> MACHINE_BITS
}

/// The first server on this machine.
pub(crate) fn id_of(server: usize) -> ServerId {
    ServerId(server as u128 + 1)
}

impl World {
    /// Servers that are up and empty, and as many clients as there may be.
    pub(crate) fn new(seed: u64, root: &Arc<Configuration>, setup: Setup) -> World {
        let random = Random::new(mix(seed ^ 0x5eed));
        let plan = match setup.faults {
            true => Plan::drawn(&random, setup.restriction, &setup.cluster),
            false => Plan::none(&random),
        };
        // Servers call, too: each other, to register.
        let servers = setup.cluster.servers;
        let callers = setup.clients + servers;
        let links = Links::new(callers, servers, &random);
        let depth = setup.scheduler.depth(&random);
        let mut machines = Machines::new(&setup.cluster, root, &random);
        if setup.costs.is_some() {
            // As shipped: what is measured meets the cap as users do.
            machines.caps = Caps::SHIPPED;
        }
        let world = World(Rc::new(Inner {
            now: Cell::default(),
            machines: RefCell::new(machines),
            links: RefCell::new(links),
            books: RefCell::new(vec![Book::new(servers); callers]),
            cluster: setup.cluster,
            random,
            plan,
            costs: setup.costs,
            queue: RefCell::new(Queue::new(seed, depth)),
            clocks: RefCell::new(vec![Duration::ZERO; callers]),
            tasks: Tasks::default(),
            calls: RefCell::default(),
            readers: Readers::new(servers),
            watch: RefCell::new(Watch {
                invariants: invariant::all(),
                objects: Objects::default(),
                shapes: BTreeMap::new(),
                grown: BTreeSet::new(),
                fences: BTreeMap::new(),
                violation: None,
                is_arbitrary: false,
            }),
            hash: Cell::new(seed),
            events: Cell::default(),
            adopted: Cell::default(),
            repaired: Cell::default(),
            cross_checked: Cell::default(),
            leads: Cell::default(),
            tombstones_dropped: Cell::default(),
            schedule: RefCell::new(setup.traced.then(VecDeque::new)),
        }));
        for server in 0..servers {
            world.start(server);
        }
        world.know(root);
        assert!(world.want(root.members()), "nothing is lost yet");
        world
    }

    pub(crate) fn now(&self) -> Instant {
        self.0.now.get()
    }

    pub(crate) fn random(&self) -> &Random {
        &self.0.random
    }

    pub(crate) fn cluster(&self) -> &Cluster {
        &self.0.cluster
    }

    pub(crate) fn plan(&self) -> &Plan {
        &self.0.plan
    }

    /// True if the clock of a server has jumped.
    pub(crate) fn has_fast_server(&self) -> bool {
        let clocks = self.0.clocks.borrow();
        clocks[self.caller_of(0)..]
            .iter()
            .any(|ahead| !ahead.is_zero())
    }

    /// The time on the clock of a caller.
    fn clock(&self, caller: usize) -> Instant {
        self.now().plus(self.0.clocks.borrow()[caller])
    }

    /// The caller of a server's process.
    fn caller_of(&self, server: usize) -> usize {
        let (callers, servers) = self.size();
        callers - servers + server
    }

    /// Draws whether the fault happens now.
    fn strikes(&self, fault: Fault) -> bool {
        self.0.plan.strikes(fault)
    }

    /// Callers and servers. Callers are clients, then the servers themselves.
    pub(crate) fn size(&self) -> (usize, usize) {
        self.0.links.borrow().size()
    }

    /// Invariants learn of a configuration.
    pub(crate) fn know(&self, c: &Arc<Configuration>) {
        let mut watch = self.0.watch.borrow_mut();
        watch.shapes.insert(c.id(), c.clone());
    }

    /// Size of a quorum of a configuration that the run knows.
    pub(crate) fn quorum(&self, c: &ConfigurationId) -> usize {
        let watch = self.0.watch.borrow();
        let known = watch
            .shapes
            .get(c)
            .expect("it is asked by those who know it");
        known.quorums().quorum()
    }

    // ---- events ----

    fn at(&self, delay: Duration, event: Event) {
        let at = self.now().plus(delay);
        self.0.queue.borrow_mut().push(at, event);
    }

    /// Lets the next thing happen; false if there is none.
    pub(crate) fn step(&self) -> bool {
        self.poll();
        let next = self.0.queue.borrow_mut().pop(self.now());
        let Some((at, event)) = next else {
            return false;
        };
        assert!(at >= self.now(), "time never goes back");
        self.0.now.set(at);
        self.0.events.set(self.0.events.get() + 1);
        match event {
            Event::Deliver(message) => self.arrive(message),
            Event::Worked(message) => self.deliver(message),
            Event::Wake(_, waker) => waker.wake(),
            Event::Time(_, sink, number) => {
                if let Some(sink) = sink.upgrade() {
                    sink.on_time(number);
                }
            }
            Event::Resend(call) => self.resend(call),
            Event::Commit(server, life) => self.finish_commit(server, life),
            Event::Upkeep(server, life) => self.upkeep(server, life),
            Event::Serve(server, life, standstills) => self.serve(server, life, standstills),
            Event::Resume(server, life) => self.resume(server, life),
            Event::Restart(server) => self.start(server),
            Event::Trouble(trouble) => self.trouble(trouble),
        }
        self.poll();
        true
    }

    pub(crate) fn adopted(&self) -> u64 {
        self.0.adopted.get()
    }

    pub(crate) fn repaired(&self) -> u64 {
        self.0.repaired.get()
    }

    pub(crate) fn cross_checked(&self) -> u64 {
        self.0.cross_checked.get()
    }

    pub(crate) fn tombstones_dropped(&self) -> u64 {
        self.0.tombstones_dropped.get()
    }

    /// Everything that happened so far.
    pub(crate) fn events(&self) -> u64 {
        self.0.events.get()
    }

    // ---- what is remembered of a run ----

    /// Takes an event into the rolling hash; `describe` is called only if somebody reads the schedule.
    fn record(&self, parts: [u64; 4], describe: impl FnOnce() -> String) {
        let mut hash = self.0.hash.get() ^ self.now().0;
        for part in parts {
            hash = mix(hash.rotate_left(17) ^ part);
        }
        self.0.hash.set(hash);
        if let Some(schedule) = self.0.schedule.borrow_mut().as_mut() {
            if schedule.len() == SCHEDULE_LINES {
                schedule.pop_front();
            }
            let time = self.now().0;
            let (ms, ns) = (time / 1_000_000, time % 1_000_000);
            schedule.push_back(format!("{ms:>6}.{ns:06} ms  {}", describe()));
        }
    }

    /// Calls [`World::record`] for an event without a number of its own.
    pub(crate) fn remark(&self, text: &str) {
        let hash = digest(text.as_bytes());
        self.record([0, hash, 0, 0], || text.to_owned());
    }

    /// The hash of everything that happened.
    pub(crate) fn hash(&self) -> u64 {
        mix(self.0.hash.get() ^ self.0.random.draw())
    }

    pub(crate) fn schedule(&self) -> Vec<String> {
        let schedule = self.0.schedule.borrow();
        schedule.iter().flatten().cloned().collect()
    }

    /// Shows the invariants an observation.
    fn observe(&self, machines: &Machines, observation: &Observation<'_>) {
        let watch = &mut *self.0.watch.borrow_mut();
        if watch.is_arbitrary {
            return;
        }
        let context = Context {
            truths: machines.truths(),
            objects: &watch.objects,
            shapes: &watch.shapes,
        };
        for rule in &mut watch.invariants {
            if let Some(broken) = rule.observe(observation, &context) {
                let sentence = format!("{}: {broken}", rule.name());
                watch.violation.get_or_insert(sentence);
            }
        }
    }

    /// The numbers of all fences of an object of the domain that servers have shown.
    pub(crate) fn fences(&self, domain: Domain, name: &[u8]) -> BTreeSet<u64> {
        let watch = self.0.watch.borrow();
        let objects = watch.objects.in_domain(domain, name);
        let fences = objects.filter_map(|object| watch.fences.get(&object));
        fences.flatten().copied().collect()
    }

    /// A read or a write of an object of the domain ended with this version.
    pub(crate) fn completed(&self, domain: Domain, name: &Bytes, tag: areo_core::tag::Tag) {
        let machines = self.0.machines.borrow();
        let start = invariant::final_index(machines.truths(), domain);
        let homes: Vec<(ObjectId, Arc<Configuration>)> = {
            let Watch {
                objects, shapes, ..
            } = &mut *self.0.watch.borrow_mut();
            let of_domain = shapes.iter().filter(|(id, _)| domain_of(id) == domain);
            let counts = |id: &ConfigurationId| id.index == 0 || id.index >= start;
            let homes = of_domain.filter(|(id, _)| counts(id));
            homes
                .map(|(id, c)| (objects.number(*id, name), c.clone()))
                .collect()
        };
        let homes = &homes[..];
        self.observe(&machines, &Observation::Completed { homes, tag });
    }

    /// The first rule that was broken.
    pub(crate) fn violation(&self) -> Option<String> {
        self.0.watch.borrow().violation.clone()
    }

    pub(crate) fn violate(&self, sentence: String) {
        self.0.watch.borrow_mut().violation.get_or_insert(sentence);
    }
}
