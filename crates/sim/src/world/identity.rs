//! Who a server is, and disks that are wiped, copied, or put back as they once were (decision record 0002). As in
//! `server`, a start is counted on the disk, then registered at a quorum of the root domain, and only then answers.

use super::call::SimEnv;
use super::{Event as Happening, World, id_of};
use crate::fault::Fault;
use crate::invariant::Observation;
use areo_core::config::ServerId;
use areo_core::dsm::Client;
use areo_core::env::Env;
use areo_core::manager::{self, Registration};
use areo_core::message::ServerRecord;
use areo_core::server::starts::Starts;
use areo_store::disk::Survive;
use areo_store::{Disk, MemoryDisk};
use std::time::Duration;

/// How long one attempt to register may take, and the wait between two, as in `server`.
const ATTEMPT: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(100);
/// Servers whose disks are wiped or copied: not of the root domain. There a copy may be admitted if the one other member
/// that knows better is away, which is more than may fail.
const EXCHANGED: [usize; 2] = [3, 4];

/// A data directory: the store, and the file that says whose it is. That file is written in place of the whole, durably.
pub(super) struct Platter {
    pub(super) disk: MemoryDisk,
    pub(super) id: ServerId,
    pub(super) starts: Starts,
}

impl Platter {
    pub(super) fn new(id: ServerId) -> Platter {
        Platter {
            disk: MemoryDisk::new(),
            id,
            starts: Starts::NONE,
        }
    }

    /// The power is off, or a read or a write has failed: whatever comes of that is no fault of the store.
    pub(super) fn is_broken(&self) -> bool {
        self.disk.list().is_err() || self.disk.has_failed()
    }

    fn duplicate(&self) -> Platter {
        Platter {
            disk: self.disk.duplicate(),
            ..*self
        }
    }
}

/// What happens to the disk of one server.
#[derive(Default)]
pub(super) struct Exchange {
    /// A copy that was made while the server was down.
    copy: Option<Platter>,
    /// The server's own disk while a copy is in its place.
    aside: Option<Platter>,
    /// How often the copy is still to be started.
    attempts: u64,
}

impl Exchange {
    /// A copy is in the place of the true disk.
    pub(super) fn is_copy(&self) -> bool {
        self.aside.is_some()
    }
}

impl World {
    /// The server of this id, which may be that of a disk that took a wiped one's place; nothing if that was wiped, too.
    pub(super) fn find(&self, id: ServerId) -> Option<usize> {
        let (_, servers) = self.size();
        let first = (0..servers).find(|server| id_of(*server) == id);
        let machines = self.0.machines.borrow();
        first.or_else(|| machines.list.iter().position(|it| it.platter.id == id))
    }

    // ---- a start ----

    /// Registers a start, however long that takes, and lets the server serve, or end.
    pub(super) fn register(&self, server: usize, life: u64) {
        let record = {
            let machine = &self.0.machines.borrow().list[server];
            record(&machine.platter)
        };
        let world = self.clone();
        let task = self.spawn(async move {
            let registration = world.registered(server, &record).await;
            world.record([5, server as u64, life, record.incarnation], || {
                format!(
                    "server {server}, incarnation {}: {registration:?}",
                    record.incarnation
                )
            });
            match registration {
                Registration::Registered => world.confirm(server, life),
                Registration::Outdated { .. } => world.refused(server, life),
            }
        });
        self.0.machines.borrow_mut().list[server].registering = Some(task);
    }

    async fn registered(&self, server: usize, record: &ServerRecord) -> Registration {
        let (caller, root) = (self.caller_of(server), self.root());
        loop {
            let client = Client::new(SimEnv::new(self, caller, ATTEMPT));
            if let Ok(ended) = manager::register(&client, &root, record.clone()).await {
                if client.sequences().start(&root).id().index > 0 {
                    self.plan().note(Fault::RegisteredElsewhere);
                }
                return ended;
            }
            client.env.sleep(PAUSE).await;
        }
    }

    fn confirm(&self, server: usize, life: u64) {
        {
            let machines = &mut *self.0.machines.borrow_mut();
            let machine = &mut machines.list[server];
            if machine.life != life {
                return;
            }
            machine.platter.starts.confirm();
            let is_copy = machine.exchange.is_copy();
            self.observe(machines, &Observation::Confirmed { server, is_copy });
        }
        let delay = match life > 1 && self.strikes(Fault::SlowStart) {
            true => Duration::from_millis(self.random().between(1, 100)),
            false => Duration::ZERO,
        };
        self.at(delay, Happening::Serve(server, life));
    }

    /// A later start is known: the process ends. Whoever looks after it starts it again and again, then finds the mistake.
    fn refused(&self, server: usize, life: u64) {
        {
            let machines = &mut *self.0.machines.borrow_mut();
            let machine = &mut machines.list[server];
            if machine.life != life {
                return;
            }
            if !machine.exchange.is_copy() {
                self.violate(format!(
                    "identity: server {server} is refused with its own disk"
                ));
                return;
            }
        }
        self.stop(server, |_| Survive::All);
        let machines = &mut *self.0.machines.borrow_mut();
        machines.list[server].exchange.attempts -= 1;
        if machines.list[server].exchange.attempts == 0 {
            self.put_back(machines, server);
        }
    }

    fn put_back(&self, machines: &mut super::Machines, server: usize) {
        let machine = &mut machines.list[server];
        if let Some(own) = machine.exchange.aside.take() {
            machine.platter = own;
            machines.truth(server).put_back();
            self.remark(&format!("server {server} has its own disk again"));
        }
    }

    // ---- faults ----

    /// The servers that the root domain may be on: all, unless disks are exchanged.
    pub(crate) fn root_candidates(&self) -> Vec<usize> {
        let exchanges = [Fault::DiskWiped, Fault::DiskCopied, Fault::DiskRolledBack];
        let exchanged = exchanges.iter().any(|fault| self.plan().is_planned(*fault));
        let (_, servers) = self.size();
        (0..servers)
            .filter(|server| !exchanged || !EXCHANGED.contains(server))
            .collect()
    }

    /// Wipes the disk of a server that has to go on without ever being counted again.
    pub(super) fn wipe(&self) {
        let server = EXCHANGED[self.random().index(2)];
        let may_go = self.may_go(server) && self.may_be_harmed(server);
        if !may_go || self.0.machines.borrow().list[server].exchange.is_copy() {
            return;
        }
        self.plan().note(Fault::DiskWiped);
        self.kill(server);
        // Random, as a new directory's is.
        let id = u128::from(self.random().draw()) + 1000;
        let machines = &mut *self.0.machines.borrow_mut();
        machines.harmed = Some(server);
        machines.list[server].platter = Platter::new(ServerId(id));
        machines.list[server].exchange = Exchange::default();
        machines.truth(server).wipe();
        self.remark(&format!("the disk of server {server} is wiped"));
    }

    /// Makes a copy of a server's disk; later, when the server has been started again, uses it.
    pub(super) fn exchange(&self, fault: Fault) {
        let server = EXCHANGED[self.random().index(2)];
        if !self.may_go(server) {
            return;
        }
        let copy = {
            let machine = &mut self.0.machines.borrow_mut().list[server];
            let is_own = machine.platter.id == id_of(server) && !machine.exchange.is_copy();
            if !is_own || machine.platter.starts.unconfirmed.is_some() {
                return;
            }
            let later = machine.platter.starts.incarnation;
            let is_older = |copy: &mut Platter| copy.starts.incarnation < later;
            machine.exchange.copy.take_if(is_older)
        };
        match copy {
            None => {
                self.kill(server);
                let machine = &mut self.0.machines.borrow_mut().list[server];
                machine.exchange.copy = Some(machine.platter.duplicate());
                self.remark(&format!("the disk of server {server} is copied"));
            }
            Some(copy) if fault == Fault::DiskCopied => self.start_twin(server, copy),
            Some(copy) => self.roll_back(server, copy),
        }
    }

    fn roll_back(&self, server: usize, copy: Platter) {
        self.plan().note(Fault::DiskRolledBack);
        self.kill(server);
        let machines = &mut *self.0.machines.borrow_mut();
        let own = std::mem::replace(&mut machines.list[server].platter, copy);
        machines.list[server].exchange.aside = Some(own);
        machines.truth(server).put_aside();
        machines.list[server].exchange.attempts = self.random().between(1, 6);
        self.remark(&format!("the disk of server {server} is an old copy"));
    }

    /// A second process with the copy, while the server runs.
    fn start_twin(&self, server: usize, mut copy: Platter) {
        self.plan().note(Fault::DiskCopied);
        self.remark(&format!(
            "server {server} is started a second time, from a copy"
        ));
        copy.starts.begin(self.random().draw());
        let (world, record) = (self.clone(), record(&copy));
        self.spawn(async move {
            if world.registered(server, &record).await == Registration::Registered {
                let machines = world.0.machines.borrow();
                let is_copy = true;
                world.observe(&machines, &Observation::Confirmed { server, is_copy });
            }
        });
    }

    /// The copies go, the true disks come back.
    pub(super) fn heal_disks(&self) {
        let (_, servers) = self.size();
        for server in 0..servers {
            if !self.0.machines.borrow().list[server].exchange.is_copy() {
                continue;
            }
            if self.is_up(server) {
                self.kill(server);
            }
            self.put_back(&mut self.0.machines.borrow_mut(), server);
        }
    }
}

fn record(platter: &Platter) -> ServerRecord {
    let start = platter.starts.unconfirmed;
    ServerRecord {
        id: platter.id,
        incarnation: platter.starts.incarnation,
        start: start.expect("it has begun and is not confirmed"),
        name: String::new(),
        address: String::new(),
        admin: String::new(),
    }
}
