//! A tiny deterministic world: real servers ([`areo_core::shard::Shard`]) on disks in memory, a network that is a list of
//! messages, virtual time, and an executor that polls everything after every event. What happens next is said by the test
//! ([`World::hold`], [`World::crash`], ...) or drawn from a seed ([`World::random`]). Messages pass as values; the codec
//! has tests of its own.

#![allow(dead_code, unused_imports, missing_docs)] // every test uses a part of it, and it is no library

mod actor;
mod call;
mod chain;
mod disk;
mod machine;
mod network;

use areo_core::config::{Configuration, Dap, Decider, Descriptor, Options, ServerId};
use areo_core::element::Value;
use areo_core::env::Env;
use areo_core::instant::Instant;
use areo_core::limits;
use areo_core::message::Reply;
use areo_core::object::{DomainId, Name};
use areo_core::timing;
use bytes::Bytes;
use machine::Machine;
use network::Filter;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::Duration;

pub use actor::Actor;
pub use call::WorldEnv;
pub(crate) use call::like_the_inner_world;
pub use disk::Disk;
pub use machine::identity;
pub use network::{Content, Message};

#[derive(Clone)]
pub struct World(Rc<Inner>);

struct Inner {
    machines: RefCell<BTreeMap<ServerId, Machine>>,
    /// Not delivered yet, in the order of sending.
    flight: RefCell<Vec<Message>>,
    /// Requests to servers out of reach; they go out when those are back.
    parked: RefCell<Vec<Message>>,
    held: RefCell<Vec<Filter>>,
    latency: Cell<Duration>,
    jitter: Cell<Duration>,
    slow: RefCell<BTreeSet<ServerId>>,
    tasks: RefCell<Vec<Pin<Box<dyn Future<Output = ()>>>>>,
    timers: RefCell<BTreeSet<Instant>>,
    now: Cell<Instant>,
    random: Cell<u64>,
    chaos: Cell<Option<Chaos>>,
    gathers: Cell<usize>,
    element_bytes: Cell<usize>,
    put_bytes: Cell<usize>,
    requests: Cell<usize>,
    outside: RefCell<Outside>,
    bent: RefCell<Option<Bend>>,
    /// Unconfirmed versions of one object that a server takes.
    cap: Cell<usize>,
    /// Notes that servers send by themselves while time passes are delivered; otherwise they are lost.
    speaks: Cell<bool>,
}

/// A change of replies on their way.
type Bend = Box<dyn Fn(ServerId, &mut Reply)>;

/// A service outside the cluster, which decides.
#[derive(Default)]
pub struct Outside {
    pub decided: BTreeMap<String, Bytes>,
    pub reached: CallReach,
}

/// The fate of a question to the external service.
#[derive(Default, Clone, Copy, PartialEq)]
pub enum CallReach {
    #[default]
    Answered,
    /// It decides, and no client hears of it.
    Decided,
    Refused,
}

/// The rates of the random scheduler's other steps, per thousand events.
#[derive(Clone, Copy)]
pub struct Chaos {
    pub lose: u64,
    pub duplicate: u64,
    pub pass_time: u64,
}

/// The server with this number, from 0.
pub fn server(number: usize) -> ServerId {
    ServerId(number as u128 + 1)
}

pub fn configuration(n: usize, dap: Dap, delta: u16, copy_bytes: u32) -> Arc<Configuration> {
    Configuration::new(Descriptor {
        domain: DomainId(7),
        partition: 0,
        index: 0,
        members: (0..n).map(server).collect(),
        dap,
        delta,
        copy_bytes,
        options: Options::default(),
        decided_by: Decider::Members,
        lattice: None,
        era: 0,
        fixed: false,
    })
    .expect("a valid descriptor")
}

/// The configuration with other options.
pub fn with(c: &Configuration, options: Options) -> Arc<Configuration> {
    let descriptor = Descriptor {
        options,
        ..c.descriptor().clone()
    };
    Configuration::new(descriptor).expect("options change nothing else")
}

/// The configuration after `c`: of the servers from `first` on, as many as `n`.
pub fn successor(c: &Configuration, first: usize, n: usize, dap: Dap) -> Arc<Configuration> {
    let next = Descriptor {
        index: c.id().index + 1,
        members: (first..first + n).map(server).collect(),
        dap,
        era: c.era_of_next(dap),
        ..c.descriptor().clone()
    };
    Configuration::new(next).expect("a valid descriptor")
}

pub fn name(key: &str) -> Name {
    Name::user(key).expect("a valid key")
}

pub fn value(text: &str) -> Value {
    Value::new(Bytes::new(), Bytes::copy_from_slice(text.as_bytes()))
}

/// The content of a value as text.
pub fn text(value: &Value) -> String {
    String::from_utf8(value.contiguous().to_vec()).expect("text was written")
}

impl World {
    /// The members of `root`, up and serving; messages are delivered in order.
    pub fn new(root: &Arc<Configuration>, seed: u64) -> World {
        World::of(root, root.n(), seed)
    }

    /// A world with `servers` servers, of which the first ones are the members of `root`.
    pub fn of(root: &Arc<Configuration>, servers: usize, seed: u64) -> World {
        World::capped(root, servers, seed, limits::UNCONFIRMED_ELEMENTS)
    }

    /// Servers that take at most `cap` unconfirmed versions of one object, and as many versions of a register.
    pub fn capped(root: &Arc<Configuration>, servers: usize, seed: u64, cap: usize) -> World {
        let world = World(Rc::new(Inner {
            machines: RefCell::default(),
            flight: RefCell::default(),
            parked: RefCell::default(),
            held: RefCell::default(),
            latency: Cell::default(),
            jitter: Cell::default(),
            slow: RefCell::default(),
            tasks: RefCell::default(),
            timers: RefCell::default(),
            now: Cell::default(),
            random: Cell::new(seed),
            chaos: Cell::default(),
            gathers: Cell::default(),
            element_bytes: Cell::default(),
            put_bytes: Cell::default(),
            requests: Cell::default(),
            outside: RefCell::default(),
            bent: RefCell::default(),
            cap: Cell::new(cap),
            speaks: Cell::new(false),
        }));
        for id in (0..servers).map(server) {
            let machine = Machine::new(root);
            world.0.machines.borrow_mut().insert(id, machine);
            world.start_machine(id, false, true);
        }
        world
    }

    /// Draws the order of delivery, losses and the passing of time at random from now on.
    pub fn random(&self, chaos: Chaos) {
        self.0.chaos.set(Some(chaos));
    }

    pub fn now(&self) -> Instant {
        self.0.now.get()
    }

    /// A random number (splitmix64).
    pub fn draw(&self) -> u64 {
        let state = self.0.random.get().wrapping_add(0x9e37_79b9_7f4a_7c15);
        self.0.random.set(state);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&self, limit: usize) -> usize {
        (self.draw() % limit as u64) as usize
    }

    fn chance(&self, of_thousand: u64) -> bool {
        of_thousand > 0 && self.draw() % 1000 < of_thousand
    }

    /// Quorum calls made so far: the rounds of the algorithms.
    pub fn gathers(&self) -> usize {
        self.0.gathers.get()
    }

    /// Bytes of elements that servers have sent so far.
    pub fn element_bytes(&self) -> usize {
        self.0.element_bytes.get()
    }

    /// Requests that servers have received so far.
    pub fn requests(&self) -> usize {
        self.0.requests.get()
    }

    /// Bytes of elements that servers have been sent so far.
    pub fn put_bytes(&self) -> usize {
        self.0.put_bytes.get()
    }

    /// The external service.
    pub fn outside(&self) -> std::cell::RefMut<'_, Outside> {
        self.0.outside.borrow_mut()
    }

    /// For one operation that begins now.
    pub fn env(&self) -> WorldEnv {
        WorldEnv::new(self.clone(), Duration::from_secs(2))
    }

    /// A client with an identity of its own, that works on objects of `c`.
    pub fn actor(&self, c: &Arc<Configuration>) -> Actor {
        Actor::new(self, c)
    }

    /// Starts a future; its result appears in the cell.
    pub fn spawn<T: 'static>(
        &self,
        future: impl Future<Output = T> + 'static,
    ) -> Rc<RefCell<Option<T>>> {
        let result = Rc::new(RefCell::new(None));
        let cell = result.clone();
        let task = async move {
            let output = future.await;
            *cell.borrow_mut() = Some(output);
        };
        self.0.tasks.borrow_mut().push(Box::pin(task));
        self.poll();
        result
    }

    /// Runs the world until a future that was started has ended.
    pub fn finish<T>(&self, ended: &RefCell<Option<T>>) -> T {
        while ended.borrow().is_none() {
            assert!(self.step(), "it ends");
        }
        ended.borrow_mut().take().expect("it has ended")
    }

    /// Runs a future to its end.
    pub fn run<T: 'static>(&self, future: impl Future<Output = T> + 'static) -> T {
        let result = self.spawn(future);
        while result.borrow().is_none() {
            assert!(self.step(), "nothing will ever happen again");
        }
        let output = result.borrow_mut().take();
        output.expect("it has ended")
    }

    /// Delivers from now on the notes that servers send by themselves while time passes.
    pub fn let_servers_speak(&self) {
        self.0.speaks.set(true);
    }

    /// Delivers everything that is not held, and what follows from it. No time passes.
    pub fn settle(&self) {
        self.poll();
        while self.deliver_one() {
            self.poll();
        }
    }

    /// Lets time pass, and delivers all messages of that time.
    pub fn pass(&self, time: Duration) {
        let env = self.env();
        self.run(async move { env.sleep(time).await });
    }

    /// Runs one event; false if there will never be another.
    pub fn step(&self) -> bool {
        self.poll();
        let chaos = self.0.chaos.get();
        if chaos.is_some_and(|chaos| self.chance(chaos.pass_time)) {
            self.hurry();
        }
        let happened = self.deliver_one() || self.pass_to_next_timer();
        self.poll();
        happened
    }

    fn poll(&self) {
        let mut context = Context::from_waker(Waker::noop());
        let mut tasks = std::mem::take(&mut *self.0.tasks.borrow_mut());
        tasks.retain_mut(|task| task.as_mut().poll(&mut context).is_pending());
        self.0.tasks.borrow_mut().extend(tasks);
    }

    fn pass_to_next_timer(&self) -> bool {
        let next = self.0.timers.borrow_mut().pop_first();
        if let Some(next) = next {
            self.pass_to(next.max(self.now()));
        }
        next.is_some()
    }

    /// A little time passes although messages are in flight: enough for a hedge now and then, hardly for a deadline.
    fn hurry(&self) {
        let most = u64::try_from(timing::HEDGE.as_nanos()).expect("it is short");
        let time = Duration::from_nanos(self.draw() % most);
        self.pass_to(self.now().plus(time));
        self.poll();
    }

    fn pass_to(&self, time: Instant) {
        self.0.now.set(time);
        let mut sends = Vec::new();
        for machine in self.0.machines.borrow_mut().values_mut() {
            sends.extend(machine.tick(time).sends);
        }
        let is_known = |to: &ServerId| self.0.machines.borrow().contains_key(to);
        let heard = sends
            .into_iter()
            .filter(|(to, _)| self.0.speaks.get() && is_known(to));
        heard.for_each(|(to, note)| self.send(to, Content::Note(note)));
    }
}
