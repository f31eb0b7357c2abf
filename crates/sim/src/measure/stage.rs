//! One run: servers, readers and reconfigurers in a world without faults.

use super::experiments::{Experiment, Reads, ReconfigurationWay, Work};
use super::runs::{MadeChange, PlannedRun, Read, Run};
use super::scene::{KIB, MESSAGE, Scene};
use crate::cluster::Cluster;
use crate::workload::lattice;
use crate::world::call::{SimEnv, Watch};
use crate::world::waiting::{pass, start_all};
use crate::world::{Prices, World, id_of};
use areo_core::config::{Configuration, ConfigurationId, Descriptor, ServerId};
use areo_core::dap::Scope;
use areo_core::dsm::Client;
use areo_core::element::Value;
use areo_core::env::Env;
use areo_core::instant::Instant;
use areo_core::manager::Creation;
use areo_core::message::{Note, Reply, Request};
use areo_core::object::{DomainId, Name};
use areo_core::reconfig::change::Change;
use areo_core::tag::Tag;
use areo_core::timing::LEADER_PATIENCE;
use bytes::Bytes;
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// Reads before it is measured, so that every member has the object.
const READS_BEFORE: usize = 60;
const DOMAIN: DomainId = DomainId(2);

/// Counts the requests of an operation, and the configurations that they go to.
#[derive(Default)]
struct Asked {
    requests: Cell<usize>,
    configurations: RefCell<BTreeSet<ConfigurationId>>,
}

impl Watch for Asked {
    fn asks(&self, request: &Request) {
        if let Request::Configured { configuration, .. } = request
            && configuration.domain == DOMAIN
        {
            self.requests.update(|requests| requests + 1);
            self.configurations.borrow_mut().insert(*configuration);
        }
    }

    fn hears(&self, _: &Request, _: usize, _: &Reply) {}

    fn tells(&self, _: &Note) {}
}

/// State that the clients of a run share.
struct Stage {
    scene: Scene,
    experiment: Experiment,
    first: Arc<Configuration>,
    name: Name,
    written: Cell<Tag>,
    reads: RefCell<Vec<Read>>,
    changes: RefCell<Vec<MadeChange>>,
    /// The configurations that changes ended with.
    installed: RefCell<Vec<Arc<Configuration>>>,
    asked: Rc<Asked>,
    is_over: Cell<bool>,
}

/// Makes the run. Without reconfigurers readers are alone for as long as the margins.
pub(super) fn run(plan: &PlannedRun<'_>) -> Result<Run, String> {
    let (experiment, reconfigurers) = (*plan.experiment, plan.reconfigurers);
    let stage = Stage::new(plan);
    let world = stage.scene.world.clone();
    start_all(&world);
    stage.scene.until_idle(stage.clone().prepare());
    let begun = since_start(&world);
    for reader in 0..experiment.readers {
        world.spawn(stage.clone().read_on(reader, plan.pause));
    }
    let margin = experiment.place.margin();
    pass(&world, margin);
    let changes_begin = since_start(&world);
    for number in 0..reconfigurers {
        stage.scene.begin(stage.clone().change(number));
    }
    if let Work::Constant(time) = experiment.work {
        pass(&world, time);
    }
    let changes_end = since_start(&world);
    stage.is_over.set(experiment.work != Work::Batch);
    stage.scene.wait();
    if experiment.work == Work::Batch {
        pass(&world, margin);
    }
    stage.is_over.set(true);
    if let Some(violation) = world.violation() {
        return Err(violation);
    }
    if experiment.work == Work::Batch {
        stage.check_changes(plan.way, reconfigurers)?;
    }
    let configurations = stage.asked.configurations.borrow().len();
    let run = Run {
        reads: stage.reads.take(),
        changes: stage.changes.take(),
        configurations: configurations.saturating_sub(1),
        counted: match experiment.work {
            Work::Batch => (begun, since_start(&world)),
            Work::Constant(_) => (changes_begin, changes_end),
        },
        hash: world.hash(),
    };
    world.end();
    Ok(run)
}

/// Time since the start of the run.
fn since_start(world: &World) -> Duration {
    world.now().since(Instant::default())
}

impl Stage {
    fn new(plan: &PlannedRun<'_>) -> Rc<Stage> {
        let (experiment, reconfigurers) = (*plan.experiment, plan.reconfigurers);
        let servers = experiment.servers + reconfigurers;
        let cluster = Cluster::in_memory(servers);
        let clients = experiment.readers + reconfigurers;
        let site = |number: usize| number % experiment.place.sites();
        let readers = (0..experiment.readers).map(site);
        let of_changes = (0..reconfigurers).map(site);
        // A server and the one that takes its place are at one site, and who replaces it, too.
        let of_servers = (0..experiment.servers).chain(0..reconfigurers).map(site);
        let sites: Vec<usize> = readers.chain(of_changes).chain(of_servers).collect();
        let one_way = |from, to| experiment.place.one_way(from, to);
        let prices = Prices {
            message: MESSAGE,
            kib: KIB,
            line: Duration::ZERO,
        };
        let scene = Scene::new((cluster, clients), &sites, one_way, (prices, plan.seed));
        let members: Vec<ServerId> = (0..experiment.servers).map(id_of).collect();
        let (dap, options) = experiment.reads.domain();
        let plain = Configuration::new(Descriptor {
            options,
            ..Descriptor::new(DOMAIN, members, dap)
        });
        let plain = plain.expect("a valid descriptor");
        let first = plan
            .way
            .lattice
            .map(|decider| lattice::first(&plain, &decider()));
        let first = first.unwrap_or(plain);
        scene.world.know(&first);
        if first.leader().is_some() {
            scene.let_servers_lead();
        }
        Rc::new(Stage {
            scene,
            experiment,
            first,
            name: Name::user("register").expect("a key"),
            written: Cell::default(),
            reads: RefCell::default(),
            changes: RefCell::default(),
            installed: RefCell::default(),
            asked: Rc::default(),
            is_over: Cell::new(false),
        })
    }

    fn env(&self, client: usize) -> SimEnv {
        self.scene.env(client)
    }

    /// Writes the object, and brings it to all members.
    async fn prepare(self: Rc<Self>) {
        let client = Client::new(self.env(0));
        let content = Bytes::from(vec![7; self.experiment.bytes]);
        let value = Value::new(Bytes::new(), content);
        if self.first.leader().is_some() {
            self.name_domain(&client).await;
        }
        let domain = client.domain(&self.first);
        match domain.write(&self.name, &value).await {
            Ok(tag) => self.written.set(tag),
            Err(error) => self.scene.fail(&format!("the first write: {error:?}")),
        }
        for _ in 0..READS_BEFORE {
            let domain = client.with(self.env(0)).domain(&self.first);
            let found = domain.read(&self.name, None).await;
            self.check(found.map(|found| found.tag));
        }
    }

    /// Leaders look the domain up.
    async fn name_domain(&self, client: &Client<SimEnv>) {
        let root = client.root(&self.scene.root);
        match root.create_domain("measured", &self.first).await {
            Ok(Creation::Created) => {}
            other => self.scene.fail(&format!("the domain: {other:?}")),
        }
    }

    /// One reader, until it is over.
    async fn read_on(self: Rc<Self>, reader: usize, pause: Option<Duration>) {
        let client = Client::new(self.env(reader));
        let mut next = self.scene.world.now();
        if let Some(pause) = pause {
            let share = u32::try_from(self.scene.world.random().below(1000)).expect("it is small");
            next = next.plus(pause * share / 1000);
        }
        while !self.is_over.get() && self.scene.world.violation().is_none() {
            let late = next.since(self.scene.world.now());
            if !late.is_zero() {
                client.env.sleep(late).await;
            }
            next = next
                .plus(pause.unwrap_or_default())
                .max(self.scene.world.now());
            self.read(&client, reader).await;
        }
    }

    async fn read(&self, client: &Client<SimEnv>, reader: usize) {
        let asked = Rc::new(Asked::default());
        let env = self.env(reader).watched(asked.clone());
        let domain = client.with(env).domain(&self.first);
        let begun = since_start(&self.scene.world);
        let found = match self.experiment.reads {
            Reads::Regular => domain.read_regular(&self.name, Scope::Whole).await,
            _ => domain.read(&self.name, None).await,
        };
        self.check(found.map(|found| found.tag));
        let configurations = asked.configurations.borrow();
        self.reads.borrow_mut().push(Read {
            reader,
            begun,
            took: since_start(&self.scene.world).saturating_sub(begun),
            requests: asked.requests.get(),
            configurations: configurations.len(),
        });
        let mut all = self.asked.configurations.borrow_mut();
        all.extend(configurations.iter().copied());
    }

    /// One reconfigurer, which replaces the server of its number by one of its own, and where it goes on all the time back.
    async fn change(self: Rc<Self>, number: usize) {
        let caller = self.experiment.readers + number;
        let client = Client::new(self.env(caller)).waiting_for_leaders(LEADER_PATIENCE);
        let its = [number, self.experiment.servers + number].map(id_of);
        loop {
            let known = client.sequences().start(&self.first);
            let env = self.env(caller).watched(self.asked.clone());
            env.goes_over_many();
            let change = replacement(&known, its);
            let begun = since_start(&self.scene.world);
            let domain = client.with(env).domain(&known);
            let approves = async |_: &Change| true;
            let done = domain.reconfigure(&self.scene.root, &change, &approves, &|_| {});
            match done.await {
                Ok(done) => self.installed.borrow_mut().push(done.into_configuration()),
                Err(error) => {
                    let sentence = format!("reconfigurer {number}: {error:?}");
                    self.scene.fail(&sentence);
                }
            }
            let took = since_start(&self.scene.world).saturating_sub(begun);
            let made = MadeChange { begun, took };
            self.changes.borrow_mut().push(made);
            let is_done = self.experiment.work == Work::Batch || self.is_over.get();
            if is_done || self.scene.world.violation().is_some() {
                break;
            }
        }
    }

    /// Nothing but the first write was written.
    fn check(&self, found: Result<Tag, impl std::fmt::Debug>) {
        match found {
            Ok(tag) if tag == self.written.get() => {}
            other => {
                let sentence = format!("a read found {other:?}, not the object");
                self.scene.fail(&sentence);
            }
        }
    }

    /// Every change was made, in as many configurations as the way may make.
    fn check_changes(&self, way: &ReconfigurationWay, reconfigurers: usize) -> Result<(), String> {
        let installed = self.installed.borrow();
        let Some(last) = installed.iter().max_by_key(|c| c.id().index) else {
            return Ok(());
        };
        let servers = self.experiment.servers;
        let kept = reconfigurers..servers + reconfigurers;
        let expected: BTreeSet<ServerId> = kept.map(id_of).collect();
        let members: BTreeSet<ServerId> = last.members().iter().copied().collect();
        if members != expected {
            return Err(format!("{}: a change was lost: {members:?}", way.name));
        }
        let made = self.asked.configurations.borrow().len() - 1;
        match (way.configurations)(reconfigurers).contains(&made) {
            true => Ok(()),
            false => Err(format!(
                "{}: {reconfigurers} changes at once made {made} configurations",
                way.name
            )),
        }
    }
}

/// The change that replaces that one of the two servers that is a member by the other one.
fn replacement(known: &Arc<Configuration>, its: [ServerId; 2]) -> Change {
    let [from, to] = match known.position(its[0]) {
        Some(_) => its,
        None => [its[1], its[0]],
    };
    let replaced = |member: &ServerId| if *member == from { to } else { *member };
    let members: Vec<ServerId> = known.members().iter().map(replaced).collect();
    let wanted = match &known.descriptor().lattice {
        None => Descriptor {
            members,
            ..known.descriptor().clone()
        },
        Some(membership) => {
            let changed = known.with_membership(membership.of_members(&members));
            changed.expect("a valid change").descriptor().clone()
        }
    };
    Change::new(known, &wanted).expect("a valid change")
}
