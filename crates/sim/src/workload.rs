//! The clients: processes with two tasks each, that work on a few keys of two domains.

use crate::cluster::Cluster;
use crate::fault::Fault;
use crate::history::{History, Operation};
use crate::options::{Options, Work};
use crate::world::{World, call::SimEnv, id_of, leading};
use areo_core::config::{self, Configuration, Dap, Decider, Descriptor, ServerId};
use areo_core::dsm::Client;
use areo_core::env::Env;
use areo_core::manager::Creation;
use areo_core::object::DomainId;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

mod apart;
pub(crate) mod arbitrary;
mod deciding;
mod files;
mod finale;
mod large;
pub(crate) mod lattice;
mod leaving;
pub(crate) mod losing;
mod merging;
mod moving;
mod operation;
mod shape;
pub(crate) mod stewarding;
mod trusting;

use operation::One;
use shape::{conditional, drawn_conditional, drawn_members, drawn_options, options_of};

/// Number of client processes.
pub(crate) const PROCESSES: usize = 3;
/// Tasks of each process, which share its identity.
const TASKS: usize = 2;
/// Names of the domains.
const DOMAINS: [&str; 3] = ["copies", "coded", "conditional"];
/// Timeout of a reconfiguration.
const MOVING: Duration = Duration::from_secs(5);
/// Timeout of an operation when all faults have ended.
const PATIENT: Duration = Duration::from_secs(30);

/// State that the clients of one run share.
pub(crate) struct Workload {
    pub(crate) world: World,
    pub(crate) history: Rc<RefCell<History>>,
    root: Arc<Configuration>,
    shape: Shape,
    /// The decided root configuration of each domain name.
    decided: RefCell<BTreeMap<String, Arc<Configuration>>>,
    operations: u64,
    started: Cell<u64>,
    /// The operation that each task runs.
    running: RefCell<Vec<Option<Operation>>>,
    /// Lives of processes so far: each is another client to the history.
    lives: Cell<usize>,
    /// The executor's tasks of each process.
    tasks: RefCell<Vec<Vec<usize>>>,
    /// Tasks that have not ended.
    busy: Cell<usize>,
    /// Configurations that were installed.
    reconfigurations: Cell<u64>,
    /// Reconfigurations that are under way.
    changing: Cell<u64>,
    merging: merging::Merging,
    files: files::Files,
    tombstones: large::Tombstones,
    trusting: trusting::Trusting,
}

/// The parameters of the clients, drawn by the seed.
struct Shape {
    /// The servers of the coded domain, and how they keep it.
    coded: (Vec<usize>, Dap),
    /// The servers of the domain with copies.
    copied: Vec<usize>,
    /// The decider that establishes successors of the domain with copies; `None`: configurations are a sequence.
    lattice: Option<Decider>,
    /// Time for which reconfigurers wait for a leader.
    leader_patience: Duration,
    /// Half of the reads of a lattice are regular.
    regular: bool,
    /// Tasks of each process that read with a key that may only read.
    readers: usize,
    /// Each start of a process takes the number of its hardware (`[CASSS-8 new-number]`), of which two processes have the same.
    reincarnates: bool,
    /// The servers of the conditional domain, and how they keep it.
    conditional: (Vec<usize>, Dap),
    delta: u16,
    copy_bytes: u32,
    keys: usize,
    timeout: Duration,
    /// The least time for an operation of a conditional domain. Without faults, an operation that others outvote must not look like one
    /// that misses a quorum.
    least_conditional: Duration,
    think_us: u64,
    large_per_mille: u64,
    /// Share of writes of values in blocks, per mille.
    blocks_per_mille: u64,
    /// Sweeps wait for as long as the product does before they give an upload up.
    patient_sweeps: bool,
    idle_per_mille: u64,
    /// Share of reconfigurations, per mille.
    moves_per_mille: u64,
    /// Share of operations on files, per mille.
    files_per_mille: u64,
    /// Operations on the trust of the cluster.
    trust_per_mille: u64,
    /// Share of the reconfigurations of `abd` and `ec` after which the domain is conditional. Unless it is 0,
    /// conditional domains become others, too.
    becoming_per_mille: u64,
    options: config::Options,
}

/// The root configuration of every run.
pub(crate) fn root(cluster: &Cluster) -> Arc<Configuration> {
    let members = cluster.root().into_iter().map(id_of).collect();
    configuration(DomainId(1), members, Dap::Abd, 0)
}

fn configuration(
    domain: DomainId,
    members: Vec<ServerId>,
    dap: Dap,
    copy_bytes: u32,
) -> Arc<Configuration> {
    Configuration::new(Descriptor {
        delta: 1,
        copy_bytes,
        ..Descriptor::new(domain, members, dap)
    })
    .expect("a valid descriptor")
}

/// Salt of the draw of regular reads.
const REGULAR: u64 = 0x4e61;
/// Salt of the draw of clients that may only read.
const READERS: u64 = 0x4eaf;
/// Salt of the draw of clients that are named after their hardware.
const HARDWARE: u64 = 0xca55;
/// Drawn beside all else, so that other draws stay: whether a seed has operations on the trust of the cluster.
const TRUST: u64 = 0x7245;

/// The end of an operation.
enum End {
    Done,
    /// No quorum in time: it may be tried again.
    TimedOut,
}

impl Workload {
    pub(crate) fn new(world: &World, root: &Arc<Configuration>, options: &Options) -> Rc<Workload> {
        let random = world.random();
        let mut shape = Shape {
            coded: drawn_members(world, true),
            copied: drawn_members(world, false).0,
            lattice: lattice::drawn(random, options.faults),
            leader_patience: lattice::drawn_patience(random),
            regular: random.beside(REGULAR).is_multiple_of(2),
            readers: [1, 0, 0][(random.beside(READERS) % 3) as usize],
            reincarnates: random.beside(HARDWARE).is_multiple_of(4),
            conditional: drawn_conditional(world),
            delta: [0, 1, 1, 5][random.index(4)],
            copy_bytes: [0, 24, 24, 1000][random.index(4)],
            keys: [1, 2, 4][random.index(3)],
            timeout: Duration::from_millis(random.between(200, 1500)),
            least_conditional: match options.faults {
                true => Duration::ZERO,
                false => Duration::from_secs(1),
            },
            think_us: [1, 1000, 10_000][random.index(3)],
            large_per_mille: [0, 100][random.index(2)],
            blocks_per_mille: [0, 300, 700][random.index(3)],
            patient_sweeps: random.index(3) == 0,
            idle_per_mille: [0, 3][random.index(2)],
            moves_per_mille: [0, 10, 40][random.index(3)],
            files_per_mille: [0, 0, 150][random.index(3)],
            trust_per_mille: [100, 0, 0, 0, 0, 0, 0, 0][(random.beside(TRUST) % 8) as usize],
            becoming_per_mille: [0, 200, 1000][random.index(3)],
            options: drawn_options(random),
        };
        if options.work != Work::Drawn {
            shape.moves_per_mille = 0;
        }
        if options.work == Work::Trusting {
            (shape.trust_per_mille, shape.moves_per_mille) = (700, 40);
        }
        if options.work == Work::Registers {
            let everywhere: Vec<usize> = (0..world.cluster().servers).collect();
            shape.coded = (everywhere.clone(), Dap::Ec { k: 3 });
            shape.conditional = (everywhere.clone(), Dap::Conditional { k: 3 });
            shape.copied = everywhere;
            (shape.blocks_per_mille, shape.files_per_mille) = (0, 0);
            shape.trust_per_mille = 0;
        }
        if let Some(Decider::Leader { .. }) = shape.lattice {
            world.let_servers_lead(leading::ATTEMPT);
        }
        Rc::new(Workload {
            world: world.clone(),
            history: Rc::default(),
            root: root.clone(),
            shape,
            decided: RefCell::default(),
            operations: options.operations,
            started: Cell::new(0),
            running: RefCell::new(vec![None; PROCESSES * TASKS]),
            lives: Cell::new(0),
            tasks: RefCell::new(vec![Vec::new(); PROCESSES]),
            busy: Cell::new(0),
            reconfigurations: Cell::new(0),
            changing: Cell::new(0),
            merging: merging::Merging::default(),
            files: files::Files::default(),
            tombstones: large::Tombstones::default(),
            trusting: trusting::Trusting::new(world),
        })
    }

    pub(crate) fn is_busy(&self) -> bool {
        self.busy.get() > 0
    }

    /// Operations that have begun.
    pub(crate) fn started(&self) -> u64 {
        self.started.get()
    }

    /// Configurations that were installed.
    pub(crate) fn reconfigurations(&self) -> u64 {
        self.reconfigurations.get()
    }

    /// Changes that became one configuration with another one.
    pub(crate) fn merged(&self) -> u64 {
        self.merging.merged()
    }

    /// Starts a process with all its tasks.
    pub(crate) fn start(self: &Rc<Self>, process: usize) {
        let client = Client::new(self.env(process, self.shape.timeout));
        let client = client.waiting_for_leaders(self.shape.leader_patience);
        let who = self.live();
        let task = |task: usize| {
            self.busy.set(self.busy.get() + 1);
            let (work, client) = (Rc::clone(self), client.clone());
            self.world.spawn(async move {
                work.work((process, who), process * TASKS + task, client)
                    .await;
                work.busy.set(work.busy.get() - 1);
            })
        };
        self.tasks.borrow_mut()[process] = (0..TASKS).map(task).collect();
    }

    /// A process begins another life; its number.
    fn live(&self) -> usize {
        self.lives.replace(self.lives.get() + 1)
    }

    /// Ends a process wherever it stands; another takes its place.
    pub(crate) fn crash(self: &Rc<Self>, process: usize) {
        if self.started.get() >= self.operations {
            return;
        }
        self.world.plan().note(Fault::ClientCrash);
        self.world.remark(&format!("client {process} crashes"));
        for task in std::mem::take(&mut self.tasks.borrow_mut()[process]) {
            if self.world.abort(task) {
                self.busy.set(self.busy.get() - 1);
            }
        }
        for task in process * TASKS..(process + 1) * TASKS {
            if let Some(operation) = self.running.borrow_mut()[task].take() {
                let now = self.world.now();
                self.history.borrow_mut().end_unknown(now, &operation);
            }
        }
        // What it knew of servers died with it.
        self.world.close_book(process);
        self.trusting.forget(process);
        self.start(process);
    }

    fn env(&self, process: usize, timeout: Duration) -> SimEnv {
        let tombstones = Rc::new(self.tombstones.clone());
        SimEnv::new(&self.world, process, timeout).watched(tombstones)
    }

    /// Names the client by its hardware in some seeds; whether that was possible.
    async fn reincarnate(&self, process: usize, client: &Client<SimEnv>) -> bool {
        let hardware = u32::try_from(process / 2).expect("few processes");
        !self.shape.reincarnates || client.root(&self.root).reincarnate(hardware).await.is_ok()
    }

    // ---- the safety phase ----

    async fn work(
        self: &Rc<Self>,
        (process, who): (usize, usize),
        task: usize,
        client: Client<SimEnv>,
    ) {
        // Half of them leave what they replace to the sweeps.
        let client = match task % 2 {
            0 => client.keeping_replaced(),
            _ => client,
        };
        if task.is_multiple_of(TASKS) {
            // Without a quorum it goes on as it is.
            self.reincarnate(process, &client).await;
        }
        let mut again = None;
        while self.started.get() < self.operations {
            let Some(domains) = self.domains(process, &client).await else {
                continue;
            };
            self.think(&client).await;
            self.started.set(self.started.get() + 1);
            let random = self.world.random();
            let choice = match again.take() {
                Some(choice) => {
                    self.world.plan().note(Fault::Retry);
                    choice
                }
                None => (
                    random.below(100),
                    random.index(DOMAINS.len()),
                    random.index(self.shape.keys),
                ),
            };
            let (what, domain, key) = choice;
            let start = client.sequences().start(&domains[domain]);
            let is_conditional = start.dap().is_conditional();
            let least = is_conditional.then_some(self.shape.least_conditional);
            let timeout = self.shape.timeout.max(least.unwrap_or_default());
            let operation = One {
                work: self,
                client: client.with(self.env(process, timeout).of_task(task, timeout)),
                c: domains[domain].clone(),
                object: (domain, format!("key-{key}")),
                process,
                who,
                task,
            };
            let env = operation.client.env.clone();
            let operation = Box::pin(self.carry_out(operation, what));
            let end = self.unless_cancelled(&env, task, operation).await;
            if matches!(end, End::TimedOut) && random.chance(800) {
                again = Some(choice);
            }
        }
    }

    /// One operation, of a kind that `what` (below 100) chooses.
    async fn carry_out(&self, operation: One<'_>, what: u64) -> End {
        let random = self.world.random();
        match what {
            _ if random.chance(self.moves_per_mille()) => operation.reconfigure().await,
            _ if random.chance(self.shape.trust_per_mille) => operation.trust().await,
            _ if random.chance(self.shape.files_per_mille) => match random.below(100) {
                0..55 => operation.push_file().await,
                55..89 => operation.pull_file().await,
                89..96 => operation.remove_file().await,
                _ => operation.sweep_files().await,
            },
            0..40 => operation.get().await,
            40..65 if random.chance(self.shape.blocks_per_mille) => operation.put_large().await,
            40..65 => operation.put().await,
            65..80 => operation.cover().await,
            80..88 => operation.delete().await,
            88..92 => operation.stat().await,
            92..95 => operation.sweep().await,
            95..98 => operation.list().await,
            _ => operation.create().await,
        }
    }

    async fn think(&self, client: &Client<SimEnv>) {
        let random = self.world.random();
        let time = match random.chance(self.shape.idle_per_mille) {
            true => Duration::from_millis(2500),
            false => Duration::from_micros(random.below(self.shape.think_us)),
        };
        client.env.sleep(time).await;
    }

    /// Both domains, created unless another client was faster.
    async fn domains(
        &self,
        process: usize,
        client: &Client<SimEnv>,
    ) -> Option<Vec<Arc<Configuration>>> {
        let mut found = Vec::new();
        for name in DOMAINS {
            let known = self.decided.borrow().get(name).cloned();
            match known {
                // A process that has just started does not know it; asking costs three rounds, so only some ask.
                Some(known) if !self.world.random().chance(5) => found.push(known),
                _ => {
                    let client = client.with(self.env(process, self.shape.timeout));
                    found.push(self.create(&client, name).await?);
                }
            }
        }
        Some(found)
    }

    /// Creates a domain, or finds it; all processes must find the same.
    async fn create(&self, client: &Client<SimEnv>, name: &str) -> Option<Arc<Configuration>> {
        let random = self.world.random();
        let domain = DomainId(u128::from(random.draw()) << 64 | u128::from(random.draw()));
        let (coded, dap) = &self.shape.coded;
        let first = match name {
            "coded" => {
                let plain = self.first(domain, coded, *dap, self.shape.copy_bytes);
                let lattice = lattice::drawn_coded(random, *dap);
                lattice.map_or(plain.clone(), |by| lattice::first(&plain, &by))
            }
            "conditional" => {
                let (servers, dap) = &self.shape.conditional;
                self.first(domain, servers, *dap, self.shape.copy_bytes)
            }
            _ => {
                let plain = self.first(domain, &self.shape.copied, Dap::Abd, 0);
                let lattice = self.shape.lattice.as_ref();
                lattice.map_or(plain.clone(), |by| lattice::first(&plain, by))
            }
        };
        if !self.world.want(first.members()) {
            // Too many of its servers are gone, or going.
            return None;
        }
        let created = client.root(&self.root).create_domain(name, &first).await;
        if created.is_ok() && client.sequences().start(&self.root).id().index > 0 {
            self.world.plan().note(Fault::DecidedElsewhere);
        }
        let winner = match created {
            Ok(Creation::Created) => first,
            Ok(Creation::Exists(winner)) => winner,
            Err(_) => return None,
        };
        self.world.know(&winner);
        let mut decided = self.decided.borrow_mut();
        let known = decided
            .entry(name.to_owned())
            .or_insert_with(|| winner.clone());
        if known.id().domain != winner.id().domain {
            let sentence = format!("one_winner: domain {name} was decided to two configurations");
            self.world.violate(sentence);
        }
        Some(winner)
    }

    /// The first configuration of a domain.
    fn first(
        &self,
        domain: DomainId,
        servers: &[usize],
        dap: Dap,
        copy_bytes: u32,
    ) -> Arc<Configuration> {
        let members = self.world.ids(servers);
        let plain = configuration(domain, members, dap, copy_bytes);
        let descriptor = Descriptor {
            options: options_of(&plain, self.shape.options),
            delta: self.shape.delta,
            ..plain.descriptor().clone()
        };
        Configuration::new(descriptor).expect("a valid descriptor")
    }
}
