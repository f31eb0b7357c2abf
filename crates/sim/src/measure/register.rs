//! Readers and writers of one object in one configuration, in virtual time: what each operation costs, and how long members of the
//! kind `casss` take until nothing is left of what no execution produces (`docs/spec` 2.10, 2.11, 7.4).

use super::scene::{KIB, MESSAGE, Scene};
use crate::cluster::Cluster;
use crate::random::mix;
use crate::world::call::SimEnv;
use crate::world::waiting::{pass, start_all};
use crate::world::{Prices, id_of};
use areo_core::config::{Configuration, Dap, Descriptor};
use areo_core::dsm::{Client, Domain};
use areo_core::element::Value;
use areo_core::env::Env;
use areo_core::instant::Instant;
use areo_core::limits;
use areo_core::message::GossipMarks;
use areo_core::object::{DomainId, Name};
use areo_core::tag::{ClientId, Tag, Writer};
use areo_core::timing;
use bytes::Bytes;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// Latency between any two processes: half of the round trip in the study.
const ONE_WAY: Duration = Duration::from_millis(25);
/// Time of a client's line for each KiB: 50 Mbit/s.
const LINE: Duration = Duration::from_nanos(163_840);
/// Time in which messages that no operation waits for arrive.
const SETTLE: Duration = Duration::from_secs(1);
/// Writes before a restart, whose mean is the usual time of one.
const WRITES_BEFORE: usize = 4;
/// Pause of a client between two probes.
const BETWEEN_PROBES: Duration = Duration::from_millis(10);
/// Time for which an object is probed after its state became arbitrary.
const PROBED: Duration = Duration::from_secs(30);
/// Most notes of a restart (2.10).
const RESTART_NOTES: u32 = 40;
/// Readers beside the writer meanwhile.
const PROBING_READERS: usize = 2;

/// The readers, the writers, and the object's configuration.
#[derive(Clone, Debug)]
pub struct Setting {
    /// Kind of the object's configuration.
    pub dap: Dap,
    /// Members, and no other servers.
    pub servers: usize,
    pub delta: u16,
    pub readers: usize,
    pub writers: usize,
    /// Size of the object.
    pub bytes: usize,
    /// Operations of each client.
    pub operations: usize,
    /// Between two of these: drawn from this range.
    pub wait_ms: (u64, u64),
}

/// The cost of one operation.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct OperationCost {
    /// Duration in milliseconds.
    pub ms: f64,
    pub rounds: u64,
    /// Requests and notes that it sent.
    pub messages: u64,
    /// Bytes of these messages.
    pub sent: u64,
    /// Bytes of the replies.
    pub received: u64,
}

/// The costs of all operations of a run.
#[derive(Clone, PartialEq, Debug)]
pub struct Measured {
    /// All reads beside others.
    pub reads: Vec<OperationCost>,
    /// All writes beside others.
    pub writes: Vec<OperationCost>,
    /// A write when no other client is at work.
    pub quiet_write: OperationCost,
    /// A read after it.
    pub quiet_read: OperationCost,
    /// Hash of all events of the run.
    pub hash: u64,
}

/// Times of a restart of an object, in milliseconds, from the moment at which the member with the impossible record
/// serves.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RestartTimes {
    /// Mean duration of a write before the restart.
    pub write: f64,
    /// Until a read that needs all members succeeded.
    pub until_read: f64,
    /// Until a write that needs all members succeeded.
    pub until_write: f64,
}

/// The time from an arbitrary state to a state in which the object behaves as a register.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct StabilizationTime {
    /// Later operations all succeeded, their versions respected real time, and every value that they read had been
    /// written.
    pub took: Duration,
    /// The bound ([CASSS-4 stabilization-bound]), with a write as long as those before.
    pub bound: Duration,
    /// Some record may have had a number that cannot be, or a wrong checksum, so that members had to restart the object.
    pub was_restarted: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Operation {
    Read,
    Write,
}

/// State that the clients of a run share.
struct Stage {
    scene: Scene,
    setting: Setting,
    c: Arc<Configuration>,
    name: Name,
    ended: RefCell<Vec<(Operation, OperationCost)>>,
    probes: RefCell<Vec<Probe>>,
}

/// One of the operations of which it is seen when an object is a register again.
#[derive(Clone, Copy, Debug)]
struct Probe {
    operation: Operation,
    begun: Instant,
    ended: Instant,
    /// The version, if it succeeded.
    tag: Option<Tag>,
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// Measures operations of all clients at once, and then a write and a read alone. `seed`: with the number of the run.
///
/// # Errors
/// The rule that was broken.
pub fn run(setting: &Setting, seed: (u64, u64)) -> Result<Measured, String> {
    let clients = setting.readers + setting.writers;
    let stage = Stage::new(setting, (clients + 1, true), seed);
    let scene = &stage.scene;
    let last = Rc::new(Client::new(scene.env(clients)));
    scene.until_idle(stage.clone().alone(last.clone(), Operation::Write, 1));
    stage.ended.take();
    for number in 0..clients {
        scene.begin(stage.clone().work(number));
    }
    scene.wait();
    let beside = stage.ended.take();
    // What the last writes sent, copies of the value to all members at most, is on the line for as long.
    let copies = (setting.bytes * setting.servers).div_ceil(1 << 10);
    let settle = SETTLE + LINE * u32::try_from(copies).expect("values are small");
    for operation in [Operation::Write, Operation::Read] {
        pass(&scene.world, settle);
        scene.until_idle(stage.clone().alone(last.clone(), operation, 1));
    }
    let hash = stage.end()?;
    let of = |operation| {
        let these = beside.iter().filter(move |(it, _)| *it == operation);
        these.map(|(_, cost)| *cost).collect()
    };
    let quiet = stage.ended.borrow();
    Ok(Measured {
        reads: of(Operation::Read),
        writes: of(Operation::Write),
        quiet_write: quiet[0].1,
        quiet_read: quiet[1].1,
        hash,
    })
}

/// Measures how long a restart takes that one record begins.
///
/// # Errors
/// The rule that was broken.
pub fn restart(setting: &Setting, seed: (u64, u64)) -> Result<RestartTimes, String> {
    let stage = Stage::new(setting, (2, false), seed);
    assert_eq!(
        stage.c.quorums().quorum(),
        setting.servers,
        "an operation needs all"
    );
    let (scene, world) = (&stage.scene, &stage.scene.world);
    let writer = Rc::new(Client::new(scene.env(0)));
    scene.until_idle(stage.clone().alone(writer, Operation::Write, WRITES_BEFORE));
    let usual = stage.ended.take();
    let usual = usual.iter().map(|(_, cost)| cost.ms).sum::<f64>() / WRITES_BEFORE as f64;
    pass(world, SETTLE);
    let struck = world.random().index(setting.servers);
    let tag = Tag {
        number: limits::NUMBER,
        writer: Writer {
            client: ClientId(world.random().draw()),
            counter: 1,
        },
    };
    world.cease_to_judge();
    world.forge(struck, (&stage.c, &stage.name), tag);
    scene.wait_while(|| !world.is_serving(struck));
    let begun = world.now();
    for (number, operation) in [(0, Operation::Write), (1, Operation::Read)] {
        let probing = stage.clone();
        scene.begin(probing.probe_until(number, operation, |probe| probe.tag.is_some()));
    }
    scene.wait();
    stage.end()?;
    let probes = stage.probes.borrow();
    let until = |operation| {
        let is_it = |probe: &&Probe| probe.tag.is_some() && probe.operation == operation;
        let succeeded = probes.iter().find(is_it);
        ms(succeeded.expect("it was waited for").ended.since(begun))
    };
    Ok(RestartTimes {
        write: usual,
        until_read: until(Operation::Read),
        until_write: until(Operation::Write),
    })
}

/// Measures how long it takes from an arbitrary state to a register.
///
/// # Errors
/// The rule that was broken.
pub fn stabilize(setting: &Setting, seed: (u64, u64)) -> Result<StabilizationTime, String> {
    let stage = Stage::new(setting, (1 + PROBING_READERS, false), seed);
    let (scene, world) = (&stage.scene, &stage.scene.world);
    let names = [stage.name.clone()];
    let writer = Rc::new(Client::new(scene.env(0)));
    scene.until_idle(stage.clone().alone(writer, Operation::Write, WRITES_BEFORE));
    world.cease_to_judge();
    let restarts = world.make_arbitrary(&stage.c, &names);
    start_all(world);
    world.say_anything(&stage.c, &names);
    let begun = world.now();
    for number in 0..=PROBING_READERS {
        let operation = match number {
            0 => Operation::Write,
            _ => Operation::Read,
        };
        let is_enough =
            move |probe: &Probe| probe.tag.is_some() && probe.ended.since(begun) > PROBED;
        scene.begin(stage.clone().probe_until(number, operation, is_enough));
    }
    scene.wait();
    stage.end()?;
    let probes = stage.probes.borrow();
    let object = GossipMarks::bytes(stage.name.as_bytes().len());
    let periods = u32::try_from(object.div_ceil(limits::GOSSIP_BYTES)).expect("one") + 4;
    let usual = stage.ended.borrow();
    let usual = usual.iter().map(|(_, cost)| cost.ms).fold(0.0, f64::max);
    let write = Duration::from_secs_f64(usual / 1e3);
    let bound = timing::GOSSIP * periods + timing::RESTART * RESTART_NOTES * restarts + write;
    let unstable = unstable_until(&probes);
    Ok(StabilizationTime {
        took: unstable.map_or(Duration::ZERO, |last| last.since(begun)),
        bound,
        was_restarted: restarts > 0,
    })
}

/// The begin of the last operation that no register would show: it failed, it read a version that was not written, or
/// an operation that began after its end has a smaller version.
fn unstable_until(probes: &[Probe]) -> Option<Instant> {
    let written = probes
        .iter()
        .filter(|probe| probe.operation == Operation::Write);
    let written: BTreeSet<Tag> = written.filter_map(|probe| probe.tag).collect();
    let is_wrong = |probe: &Probe| {
        let Some(tag) = probe.tag.filter(|tag| written.contains(tag)) else {
            return true;
        };
        let mut later = probes.iter().filter(|later| later.begun > probe.ended);
        later.any(|later| {
            let is_new = later.operation == Operation::Write;
            later.tag.is_some_and(|of| of < tag || is_new && of == tag)
        })
    };
    let wrong = probes.iter().filter(|probe| is_wrong(probe));
    wrong.map(|probe| probe.begun).max()
}

impl Stage {
    fn new(
        setting: &Setting,
        (clients, is_in_memory): (usize, bool),
        (seed, run): (u64, u64),
    ) -> Rc<Stage> {
        let seed = mix(seed ^ mix(run));
        let cluster = Cluster::in_memory(setting.servers);
        let cluster = match is_in_memory {
            true => cluster,
            false => cluster.on_disks(2),
        };
        let sites = vec![0; clients + setting.servers];
        let prices = Prices {
            message: MESSAGE,
            kib: KIB,
            line: LINE,
        };
        let scene = Scene::new((cluster, clients), &sites, |_, _| ONE_WAY, (prices, seed));
        let members = (0..setting.servers).map(id_of).collect();
        let c = Configuration::new(Descriptor {
            delta: setting.delta,
            // As published: every value is coded.
            copy_bytes: 0,
            ..Descriptor::new(DomainId(2), members, setting.dap)
        });
        let c = c.expect("a valid descriptor");
        scene.world.know(&c);
        start_all(&scene.world);
        Rc::new(Stage {
            scene,
            setting: setting.clone(),
            c,
            name: Name::user("register").expect("a key"),
            ended: RefCell::default(),
            probes: RefCell::default(),
        })
    }

    /// Ends the world. Returns the hash of its events if no rule was broken.
    fn end(&self) -> Result<u64, String> {
        let world = &self.scene.world;
        if let Some(violation) = world.violation() {
            return Err(violation);
        }
        let hash = world.hash();
        world.end();
        Ok(hash)
    }

    /// The version that the operation wrote or found.
    async fn operate(&self, domain: &Domain<SimEnv>, operation: Operation) -> Result<Tag, String> {
        match operation {
            Operation::Write => {
                let content = vec![self.scene.world.random().draw() as u8; self.setting.bytes];
                let value = Value::new(Bytes::new(), Bytes::from(content));
                let written = domain.write(&self.name, &value).await;
                written.map_err(|error| format!("{error:?}"))
            }
            Operation::Read => {
                let found = domain.read(&self.name, None).await;
                let found = found.map_err(|error| format!("{error:?}"))?;
                let content = found.value.iter().flat_map(|value| &value.content);
                match content.map(Bytes::len).sum::<usize>() == self.setting.bytes {
                    true => Ok(found.tag),
                    false => Err(format!("{:?} is not of its length", found.tag)),
                }
            }
        }
    }

    /// One operation, which has to succeed, with a version not older than the ones that the client has seen.
    async fn measure(&self, client: &Client<SimEnv>, operation: Operation, newest: &mut Tag) {
        let world = &self.scene.world;
        let number = client.env.client();
        let env = self.scene.env(number);
        let (before, begun) = (world.traffic(number), world.now());
        let done = self
            .operate(&client.with(env.clone()).domain(&self.c), operation)
            .await;
        match done {
            Ok(tag) if tag >= *newest => *newest = tag,
            other => self
                .scene
                .fail(&format!("{operation:?} ended with {other:?}")),
        }
        let now = world.traffic(number);
        let cost = OperationCost {
            ms: ms(world.now().since(begun)),
            rounds: env.calls(),
            messages: now.messages - before.messages,
            sent: now.sent - before.sent,
            received: now.received - before.received,
        };
        self.ended.borrow_mut().push((operation, cost));
    }

    /// Runs `times` operations of a client one after the other.
    async fn alone(self: Rc<Self>, client: Rc<Client<SimEnv>>, operation: Operation, times: usize) {
        let mut newest = Tag::INITIAL;
        for _ in 0..times {
            self.measure(&client, operation, &mut newest).await;
        }
    }

    /// A reader or a writer: its operations, with waits between them.
    async fn work(self: Rc<Self>, number: usize) {
        let client = Client::new(self.scene.env(number));
        let operation = match number < self.setting.readers {
            true => Operation::Read,
            false => Operation::Write,
        };
        let (least, most) = self.setting.wait_ms;
        let mut newest = Tag::INITIAL;
        for _ in 0..self.setting.operations {
            let wait = self.scene.world.random().between(least, most);
            client.env.sleep(Duration::from_millis(wait)).await;
            self.measure(&client, operation, &mut newest).await;
        }
    }

    /// The operation again and again, until one is enough.
    async fn probe_until(
        self: Rc<Self>,
        number: usize,
        operation: Operation,
        is_enough: impl Fn(&Probe) -> bool,
    ) {
        let client = Client::new(self.scene.env(number));
        loop {
            let begun = self.scene.world.now();
            let domain = client.with(self.scene.env(number)).domain(&self.c);
            let done = self.operate(&domain, operation).await;
            let probe = Probe {
                operation,
                begun,
                ended: self.scene.world.now(),
                tag: done.ok(),
            };
            self.probes.borrow_mut().push(probe);
            if is_enough(&probe) || self.scene.world.violation().is_some() {
                break;
            }
            client.env.sleep(BETWEEN_PROBES).await;
        }
    }
}

#[cfg(test)]
mod tests;
