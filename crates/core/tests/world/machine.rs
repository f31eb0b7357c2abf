//! A server of the tiny world: a shard and its disk. Every request is a batch of its own, so that a loop like that of `node`,
//! which gathers requests for a batch and reserves room for it, has nothing to do here: `Machine::batch` is all there is of one.

use super::call::Origin;
use super::{Disk, World, name, server};
use areo_core::config::{Configuration, ConfigurationId, ServerId};
use areo_core::consensus::mailbox::PostedChanges;
use areo_core::instant::Instant;
use areo_core::limits;
use areo_core::message::{
    Access, Answer, Body, DomainStanding, HeldVersions, Note, Refusal, Reply, Request,
    ServerStatus, Transferred, Want,
};
use areo_core::object::{DomainId, Name};
use areo_core::pointer::Successors;
use areo_core::server::Identity;
use areo_core::shard::{ReleasedBatch, Shard, catches_up, frees, writes};
use areo_core::tag::Tag;
use std::sync::Arc;
use std::time::Duration;

/// The receiver of a reply, and the request that it answers.
type Caller = (Origin, Request);

pub(super) struct Machine {
    /// `None` while it is down.
    shard: Option<Shard<Caller>>,
    disk: Disk,
    root: Arc<Configuration>,
    incarnation: u64,
    /// Elements adopted so far.
    adopted: usize,
}

/// The identity of a server of this world.
pub fn identity(id: ServerId, incarnation: u64, root: &Arc<Configuration>) -> Identity {
    Identity {
        id,
        incarnation,
        root: root.clone(),
        durable: true,
        max_value_bytes: 16 << 20,
        max_unconfirmed: limits::UNCONFIRMED_ELEMENTS,
        max_ranked: limits::RANKED_VERSIONS,
    }
}

impl Machine {
    pub(super) fn new(root: &Arc<Configuration>) -> Machine {
        Machine {
            shard: None,
            disk: Disk::default(),
            root: root.clone(),
            // Above those that tests register: a server that hears of a later start of itself abstains.
            incarnation: 100,
            adopted: 0,
        }
    }

    /// A request as a batch of its own.
    pub(super) fn receive(
        &mut self,
        now: Instant,
        caller: Caller,
        mut request: Request,
    ) -> Vec<(Caller, Result<Reply, Refusal>)> {
        let no_room =
            self.disk.is_full && !catches_up(&request) || self.disk.is_stuffed && !frees(&request);
        if self.shard.is_some() && no_room && writes(&request) {
            return vec![(caller, Err(Refusal::Full))];
        }
        if let Some(shard) = &mut self.shard {
            self.adopted += shard.adopt(&mut request, &self.disk);
        }
        self.batch(|shard| shard.receive(now, caller, request))
    }

    pub(super) fn batch(
        &mut self,
        act: impl FnOnce(&mut Shard<Caller>),
    ) -> Vec<(Caller, Result<Reply, Refusal>)> {
        self.released(act).replies
    }

    /// Runs the work of the server that is due at this time.
    pub(super) fn tick(&mut self, now: Instant) -> ReleasedBatch<Caller> {
        if let Some(shard) = &mut self.shard {
            shard.tick(now, &self.disk);
        }
        self.released(|_| ())
    }

    /// One batch of one thing: carried out, made durable, released. Nothing happens while the machine is down.
    pub(super) fn released(
        &mut self,
        act: impl FnOnce(&mut Shard<Caller>),
    ) -> ReleasedBatch<Caller> {
        let Some(shard) = &mut self.shard else {
            return ReleasedBatch::default();
        };
        act(shard);
        let steps = shard.close();
        self.disk.apply(steps);
        shard.release(&self.disk)
    }
}

impl World {
    pub(super) fn stop_machine(&self, id: ServerId) {
        let mut machines = self.0.machines.borrow_mut();
        let machine = machines.get_mut(&id).expect("servers are known");
        assert!(machine.shard.take().is_some(), "it was up");
    }

    /// `serves`: its start is confirmed at once.
    pub(super) fn start_machine(&self, id: ServerId, resurrect: bool, serves: bool) {
        let mut machines = self.0.machines.borrow_mut();
        let machine = machines.get_mut(&id).expect("servers are known");
        assert!(machine.shard.is_none(), "it was down");
        machine.incarnation += 1;
        let identity = Identity {
            max_unconfirmed: self.0.cap.get(),
            max_ranked: self.0.cap.get().min(limits::RANKED_VERSIONS),
            ..identity(id, machine.incarnation, &machine.root)
        };
        let mut shard = Shard::new(identity);
        let below = &mut |limit| self.below(limit);
        machine.disk.recover(&mut shard, resurrect, below);
        if serves {
            shard.serve();
        }
        machine.shard = Some(shard);
    }

    /// The number of servers.
    pub fn servers(&self) -> usize {
        self.0.machines.borrow().len()
    }

    /// Elements that a server has adopted so far.
    pub fn adopted(&self, number: usize) -> usize {
        self.0.machines.borrow()[&server(number)].adopted
    }

    pub fn is_up(&self, number: usize) -> bool {
        self.is_server_up(server(number))
    }

    pub(super) fn is_server_up(&self, id: ServerId) -> bool {
        self.0.machines.borrow()[&id].shard.is_some()
    }

    /// Looks at, or harms, a server's disk.
    pub fn disk<T>(&self, number: usize, look: impl FnOnce(&mut Disk) -> T) -> T {
        let mut machines = self.0.machines.borrow_mut();
        let machine = machines.get_mut(&server(number));
        look(&mut machine.expect("servers are known").disk)
    }

    /// Asks a server directly, past the network.
    pub fn ask(&self, number: usize, request: Request) -> Result<Reply, Refusal> {
        let now = self.now();
        let mut machines = self.0.machines.borrow_mut();
        let machine = machines.get_mut(&server(number));
        let caller = (Origin::nobody(), request.clone());
        let machine = machine.expect("servers are known");
        let mut replies = machine.receive(now, caller, request);
        replies.pop().expect("a server that is up answers").1
    }

    /// The status that a server reports.
    pub fn status(&self, number: usize) -> ServerStatus {
        match self.ask(number, Request::Status) {
            Ok(Reply::Status(status)) => *status,
            other => panic!("{other:?} is no status"),
        }
    }

    /// The changes posted to domains that a server leads; none while it is down.
    pub fn posted(&self, number: usize) -> Vec<PostedChanges> {
        let machines = self.0.machines.borrow();
        let shard = machines[&server(number)].shard.as_ref();
        shard.map_or_else(Vec::new, |shard| shard.server().posted())
    }

    /// Notes the objects and bytes that a server has moved as the leader of a domain.
    pub fn leads(&self, number: usize, domain: DomainId, moved: Option<Transferred>) {
        let mut machines = self.0.machines.borrow_mut();
        let machine = machines.get_mut(&server(number));
        if let Some(shard) = &mut machine.expect("servers are known").shard {
            shard.leads(domain, moved);
        }
    }

    /// Hands a note to a server directly.
    pub fn tell(&self, number: usize, note: Note) {
        let now = self.now();
        let mut machines = self.0.machines.borrow_mut();
        let machine = machines.get_mut(&server(number));
        let act = |shard: &mut Shard<Caller>| shard.note(now, note);
        machine.expect("servers are known").batch(act);
    }

    /// Lets a server take an element of its own for damaged.
    pub fn distrust(&self, number: usize, key: ConfigurationId, name: &Name, tag: Tag) {
        let mut machines = self.0.machines.borrow_mut();
        let machine = machines.get_mut(&server(number));
        let act = |shard: &mut Shard<Caller>| shard.distrust(key, name, tag);
        machine.expect("servers are known").batch(act);
    }

    /// Lets a server drop tombstones of blocks that no member lists.
    pub fn drop_tombstones(&self, number: usize, key: ConfigurationId, blocks: &[Name]) {
        let mut machines = self.0.machines.borrow_mut();
        let machine = machines.get_mut(&server(number));
        let machine = machine.expect("servers are known");
        if let Some(shard) = &mut machine.shard {
            shard.drop_tombstones(key, blocks, |grave| machine.disk.may_return(grave));
        }
        // They go with the batch after the next one.
        machine.batch(|_| {});
        machine.batch(|_| {});
    }

    /// A round of repair of a server has gone over all objects of its configuration, and time passes.
    pub fn gone_over(&self, number: usize) {
        let now = self.now();
        {
            let mut machines = self.0.machines.borrow_mut();
            let machine = machines.get_mut(&server(number));
            let machine = machine.expect("servers are known");
            let standing = DomainStanding {
                domain: machine.root.id().domain,
                objects: 0,
                lacking: 0,
                proven_ms: Some(0),
            };
            if let Some(shard) = &mut machine.shard {
                shard.gone_over(now, &[standing], true);
            }
        }
        self.pass(Duration::from_secs(1));
        // What was superseded goes with the batch after the next one.
        for _ in 0..2 {
            self.pass(Duration::from_millis(1));
        }
    }

    /// Asks a server directly for something of its configuration.
    pub fn ask_configured(&self, number: usize, body: Body) -> Result<Reply, Refusal> {
        let root = self.0.machines.borrow()[&server(number)].root.clone();
        let request = Request::Configured {
            configuration: root.id(),
            descriptor: Some(root),
            successors: Successors::default(),
            body,
        };
        self.ask(number, request)
    }

    /// Sends one access to an object to a server directly.
    pub fn access(&self, number: usize, key: &str, access: Access) -> Result<Answer, Refusal> {
        let body = Body::Access(vec![(name(key), access)]);
        match self.ask_configured(number, body)?.open().1 {
            Some(Reply::Access(mut answers)) => match answers.remove(0) {
                Answer::Refused(refusal) => Err(refusal),
                answer => Ok(answer),
            },
            reply => panic!("{reply:?} answers no access"),
        }
    }

    /// The versions of an object that a server shows, or its refusal.
    pub fn query(&self, number: usize, key: &str) -> Result<HeldVersions, Refusal> {
        let (want, have) = (Want::Tags, Tag::INITIAL);
        match self.access(number, key, Access::query(want, have))? {
            Answer::Held(held) => Ok(held),
            answer => panic!("{answer:?} answers no query"),
        }
    }

    /// The versions of an object that a server says that it holds; it does not abstain.
    pub fn held(&self, number: usize, key: &str) -> HeldVersions {
        let held = self.query(number, key);
        held.unwrap_or_else(|refusal| panic!("server {number} refuses {key}: {refusal}"))
    }

    /// The numbers of the tags stored at a server, ascending.
    pub fn numbers(&self, number: usize, key: &str) -> Vec<u64> {
        let held = self.held(number, key);
        held.stored.iter().map(|(tag, _)| tag.number).collect()
    }
}
