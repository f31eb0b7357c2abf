//! A few servers and one client in one thread: the production shards over the production store on disks in memory, the
//! production client, and messages that arrive at once, through the codec.

use areo_core::config::{Configuration, Dap, Decider, Descriptor, Members, Options, ServerId};
use areo_core::element::Form;
use areo_core::env::Env;
use areo_core::error::Unavailable;
use areo_core::gather::{Call, Deadline};
use areo_core::instant::Instant;
use areo_core::message::{Access, Answer, Body, Note, Refusal, Reply, Request, Want};
use areo_core::object::{DomainId, Name};
use areo_core::pointer::Successors;
use areo_core::server::Identity;
use areo_core::shard::Shard;
use areo_core::tag::Tag;
use areo_core::tally::{Event, Tally};
use areo_node::{Job, Node, Sizes, Turn, UPKEEP_PERIOD};
use areo_store::disk::Survive;
use areo_store::records::Records;
use areo_store::{Disk, LogOptions, MemoryDisk};
use areo_wire::codec;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::{Future, ready};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// Small, so that there are several.
const SEGMENT_BYTES: u64 = 32 << 10;
/// The scrub verifies everything at once.
const SIZES: Sizes = Sizes {
    batch: SEGMENT_BYTES / 2,
    slack: 8 << 10,
    scrub: u64::MAX,
};
/// Timeout of an operation.
const TIMEOUT: Duration = Duration::from_secs(10);

pub fn configuration(n: usize, dap: Dap) -> Arc<Configuration> {
    Configuration::new(Descriptor {
        domain: DomainId(7),
        partition: 0,
        index: 0,
        members: (1..=n as u128).map(ServerId).collect(),
        dap,
        delta: 2,
        copy_bytes: 400,
        options: Options::default(),
        decided_by: Decider::Members,
        lattice: None,
        era: 0,
        fixed: false,
    })
    .expect("a valid descriptor")
}

type Replies = Vec<((), Result<Reply, Refusal>)>;

struct Server {
    disk: MemoryDisk,
    node: Node<Records<MemoryDisk>, ()>,
    /// Some records of the disk that it started from were unreadable, even their keys.
    is_unreadable: bool,
}

impl Server {
    fn start(number: usize, disk: MemoryDisk, c: &Arc<Configuration>, life: u64) -> Server {
        let mut shard = Shard::new(Identity {
            id: ServerId(number as u128 + 1),
            incarnation: life,
            root: c.clone(),
            durable: true,
            max_value_bytes: 1 << 20,
            max_unconfirmed: areo_core::limits::UNCONFIRMED_ELEMENTS,
            max_ranked: areo_core::limits::RANKED_VERSIONS,
        });
        let options = LogOptions {
            segment_bytes: SEGMENT_BYTES,
            ..LogOptions::new(number as u64 + 1)
        };
        let opened = Records::open(disk.clone(), options, |header, damaged| {
            shard.recover(header, damaged)
        });
        let (records, opened) = opened.expect("rot never keeps a store from opening");
        shard.recovered(opened.is_unreadable());
        shard.serve();
        Server {
            disk,
            node: Node::new(shard, records, SIZES),
            is_unreadable: opened.is_unreadable(),
        }
    }

    /// Takes one thing, which is durable then.
    fn take(&mut self, now: Instant, job: Job<()>) -> Option<Result<Reply, Refusal>> {
        self.node.push(job);
        let turn = self.node.turn(now, &mut ());
        let mut replies = self.written(turn.expect("a sound disk takes it"));
        assert!(!self.node.is_ready(), "one turn takes one thing");
        replies.pop().map(|((), reply)| reply)
    }

    fn written(&mut self, turn: Turn<Records<MemoryDisk>, ()>) -> Replies {
        let Some(commit) = turn.commit else {
            return turn.released.replies;
        };
        let turn = self.node.committed(commit.run());
        turn.expect("a sound disk takes it").released.replies
    }

    fn ask(&mut self, now: Instant, request: &Request) -> Result<Reply, Refusal> {
        let sent = codec::encode_request(request);
        let request = codec::decode_request(&sent.body, sent.payload).expect("it was encoded");
        let job = Job::Request {
            request,
            caller: (),
            deadline: None,
        };
        let reply = self.take(now, job).expect("a request is answered")?;
        let reply = codec::encode_reply(&reply);
        Ok(codec::decode_reply(&reply.body, reply.payload).expect("it was encoded"))
    }

    /// Does the upkeep of an idle server: evicts, reclaims, verifies everything, proves the last batch.
    fn keep_house(&mut self, now: Instant) {
        loop {
            let upkeep = self.node.upkeep(now, &mut ());
            let upkeep = upkeep.expect("a sound disk takes it");
            let turn = upkeep.turn.expect("no commit takes time");
            assert!(self.written(turn).is_empty(), "nothing was asked");
            if upkeep.wait == UPKEEP_PERIOD {
                break;
            }
        }
        self.node.seal().expect("there is room");
    }
}

struct Inner {
    configuration: Arc<Configuration>,
    servers: RefCell<Vec<Server>>,
    /// Servers that are out of reach.
    away: RefCell<Vec<usize>>,
    now: Cell<Instant>,
    random: Cell<u64>,
    lives: Cell<u64>,
}

#[derive(Clone)]
pub struct Cluster(Rc<Inner>);

impl Cluster {
    /// Servers that start from these disks.
    pub fn start(c: &Arc<Configuration>, disks: &[MemoryDisk], seed: u64) -> Cluster {
        let start =
            |(number, disk): (usize, &MemoryDisk)| Server::start(number, disk.duplicate(), c, 1);
        Cluster(Rc::new(Inner {
            configuration: c.clone(),
            servers: RefCell::new(disks.iter().enumerate().map(start).collect()),
            away: RefCell::default(),
            now: Cell::default(),
            random: Cell::new(seed),
            lives: Cell::new(1),
        }))
    }

    pub fn disks(&self) -> Vec<MemoryDisk> {
        let servers = self.0.servers.borrow();
        servers.iter().map(|s| s.disk.duplicate()).collect()
    }

    pub fn configuration(&self) -> &Arc<Configuration> {
        &self.0.configuration
    }

    /// The world of one operation.
    pub fn env(&self) -> Operation {
        Operation {
            cluster: self.clone(),
            deadline: Deadline::after(self.0.now.get(), TIMEOUT),
        }
    }

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

    /// Puts these servers, and no others, out of reach.
    pub fn away(&self, servers: &[usize]) {
        *self.0.away.borrow_mut() = servers.to_vec();
    }

    pub fn keep_house(&self, server: usize) {
        let now = self.0.now.get();
        self.0.servers.borrow_mut()[server].keep_house(now);
    }

    /// Ends the process of a server and starts it again from its disk.
    pub fn restart(&self, server: usize) {
        let life = self.0.lives.get() + 1;
        self.0.lives.set(life);
        let mut servers = self.0.servers.borrow_mut();
        let disk = servers[server].disk.clone();
        disk.crash(|_| Survive::All);
        servers[server] = Server::start(server, disk, self.configuration(), life);
    }

    pub fn is_unreadable(&self, server: usize) -> bool {
        self.0.servers.borrow()[server].is_unreadable
    }

    /// Flips any bit of what a server has written; says which.
    pub fn flip(&self, server: usize) -> String {
        let disk = self.0.servers.borrow()[server].disk.clone();
        let mut names = disk.list().expect("the power is on");
        // Hints are small and few.
        let ending = [".log", ".log", ".log", ".log", ".hint"][self.below(5)];
        if names.iter().any(|name| name.ends_with(ending)) {
            names.retain(|name| name.ends_with(ending));
        }
        names.sort();
        let name = names.swap_remove(self.below(names.len()));
        let content = disk.content(&name).expect("it was listed");
        let last = content.iter().rposition(|byte| *byte != 0);
        let offset = self.below(last.expect("every file has a header") + 1);
        let bit = self.below(8);
        disk.flip(&name, offset, 1 << bit);
        format!("server {server}: bit {bit} of byte {offset} of {name}")
    }

    /// The newest version that a server shows, once it was asked for its element, too.
    pub fn newest_at(&self, server: usize, name: &Name) -> Result<Tag, Refusal> {
        let query = Access::query(Want::Element, Tag::INITIAL);
        let c = self.configuration();
        let request = Request::Configured {
            configuration: c.id(),
            descriptor: Some(c.clone()),
            successors: Successors::default(),
            body: Body::Access(vec![(name.clone(), query)]),
        };
        let now = self.0.now.get();
        let reply = self.0.servers.borrow_mut()[server].ask(now, &request)?;
        match reply {
            Reply::Access(answers) => match answers.into_iter().next() {
                Some(Answer::Held(held)) => match (held.stored.last(), held.element) {
                    // It names the largest version as lost (`[X-40 named-loss]`); an element beside that is of an older one.
                    (Some((_, Form::Trimmed)), _) | (_, None) => Err(Refusal::Damaged),
                    (_, Some((tag, _))) => Ok(tag),
                },
                Some(Answer::Refused(refusal)) => Err(refusal),
                other => panic!("the answer to a query: {other:?}"),
            },
            other => panic!("the answer to accesses: {other:?}"),
        }
    }

    fn send(&self, server: ServerId, request: &Request) -> Event {
        let server = usize::try_from(server.0 - 1).expect("a small number");
        if self.0.away.borrow().contains(&server) {
            return Event::Unreachable;
        }
        let now = self.0.now.get();
        let reply = self.0.servers.borrow_mut()[server].ask(now, request);
        reply.map_or_else(Event::Refused, Event::Reply)
    }

    fn pass(&self, time: Duration) {
        self.0.now.set(self.0.now.get().plus(time));
    }
}

/// Runs an operation. Messages arrive at once, so it never waits.
pub fn run<T>(operation: impl Future<Output = T>) -> T {
    match pin!(operation).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => unreachable!("nothing here waits"),
    }
}

/// One operation of the client.
#[derive(Clone)]
pub struct Operation {
    cluster: Cluster,
    deadline: Deadline,
}

impl Operation {
    fn decide<T: Tally>(&self, to: &Members, tally: T) -> Result<T::Output, Unavailable> {
        let inner = &self.cluster.0;
        let now = || inner.now.get();
        let mut call = Call::new(to, tally, &self.deadline, now());
        let mut replies = VecDeque::new();
        loop {
            // All requests are on their way before the first reply comes; they arrive in any order.
            let mut asked = Vec::new();
            while let Some(next) = call.next_request() {
                call.sent(&next, 0);
                asked.insert(self.cluster.below(asked.len() + 1), next);
            }
            let sent = asked.into_iter();
            replies.extend(sent.map(|asked| {
                let event = self.cluster.send(asked.server, &asked.request);
                (asked.position, event)
            }));
            if let Some(outcome) = call.take() {
                return outcome;
            }
            if let Some((position, event)) = replies.pop_front() {
                call.hear(position, event, now());
            } else {
                self.cluster.pass(call.next_time().since(now()));
                call.pass(now(), |_| 0);
            }
        }
    }
}

impl Env for Operation {
    fn gather<T: Tally + 'static>(
        &self,
        to: &Members,
        tally: T,
    ) -> impl Future<Output = Result<T::Output, Unavailable>> {
        ready(self.decide(to, tally))
    }

    fn tell(&self, to: &Members, note: Note) {
        let sent = codec::encode_note(&note);
        let now = self.cluster.0.now.get();
        for server in to.iter().map(|id| id.0 as usize - 1) {
            if !self.cluster.0.away.borrow().contains(&server) {
                let note = codec::decode_note(&sent.body, Vec::new()).expect("it was encoded");
                self.cluster.0.servers.borrow_mut()[server].take(now, Job::Note(note));
            }
        }
    }

    fn sleep(&self, time: Duration) -> impl Future<Output = ()> {
        self.cluster.pass(time);
        ready(())
    }

    fn now(&self) -> Instant {
        self.cluster.0.now.get()
    }

    fn random(&self) -> u64 {
        self.cluster.draw()
    }

    fn slow(&self, _server: ServerId) -> bool {
        false
    }
}
