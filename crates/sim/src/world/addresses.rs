//! The addresses of servers, as far as callers know. A server may come back under another address; its record says which
//! (`[X-21 directory-join]`). A caller has the records that the production code hands to the network of a process: those that a
//! quorum of the root domain lists, those that a single server lists, and, of a server, those that it has met.
//! What only `net` and the sessions of `client` decide is here as simple as it can be: when a caller asks again.

use super::call::SimEnv;
use super::{World, id_of, server_of};
use crate::fault::Fault;
use areo_core::config::{Members, ServerId};
use areo_core::dsm::Client;
use areo_core::env::Env;
use areo_core::gather;
use areo_core::manager::merge_record;
use areo_core::message::{Reply, Request, ServerRecord};
use std::collections::BTreeMap;
use std::time::Duration;

/// Timeout of a request for the directory, as in `client`, and the pause before the next one.
const PATIENCE: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(100);
/// Attempts after which a caller that still misses a server waits until it wants to reach one again.
const ATTEMPTS: usize = 10;

/// The addresses that one caller knows.
#[derive(Clone)]
pub(super) struct Book {
    records: BTreeMap<ServerId, ServerRecord>,
    /// The task that asks where servers are.
    asking: Option<usize>,
}

impl Book {
    /// The servers with which the cluster begins, where they are then.
    pub(super) fn new(servers: usize) -> Book {
        let records = (0..servers).map(|server| {
            let id = id_of(server);
            (id, ServerRecord::at_address(id, address(server, 0)))
        });
        Book {
            records: records.collect(),
            asking: None,
        }
    }
}

/// Address of a server's machine after this many moves. An address is never used again.
fn address(server: usize, moves: u64) -> String {
    format!("s{server}:{moves}")
}

impl World {
    pub(super) fn address(&self, server: usize) -> String {
        address(server, self.moves(server))
    }

    pub(super) fn moves(&self, server: usize) -> u64 {
        self.0.machines.borrow().list[server].moves
    }

    /// True if the caller's messages to that server arrive at the place of its machine now. Another server may run
    /// there.
    pub(super) fn reaches(&self, caller: usize, id: ServerId) -> bool {
        let server = server_of(id);
        let books = self.0.books.borrow();
        let known = books[caller].records.get(&id);
        self.caller_of(server) == caller
            || known.is_some_and(|known| known.address == self.address(server))
    }

    /// The request is for a server that was on this machine before. What says nothing of identity in itself is not
    /// answered then: the hello names the server.
    pub(super) fn is_for_another(&self, call: u64, server: usize) -> bool {
        let calls = self.0.calls.borrow();
        let id = calls.get(&call).and_then(|call| call.id);
        id.is_some_and(|id| self.0.machines.borrow().list[server].platter.id != id)
    }

    /// A process of a server begins: it knows what its records say.
    pub(super) fn open_book(&self, server: usize) {
        let caller = self.caller_of(server);
        self.close_book(caller);
        let records = self.0.machines.borrow().list[server].all_registered();
        self.learn(caller, records);
    }

    /// A process ends. The next one begins with what people wrote down when the cluster was new.
    pub(crate) fn close_book(&self, caller: usize) {
        let book = Book::new(self.cluster().servers);
        let before = std::mem::replace(&mut self.0.books.borrow_mut()[caller], book);
        if let Some(task) = before.asking {
            self.abort(task);
        }
    }

    /// The caller hears of servers. What it could not send to those that it finds now goes out.
    pub(super) fn learn(&self, caller: usize, records: impl IntoIterator<Item = ServerRecord>) {
        let mut moved = Vec::new();
        {
            let book = &mut self.0.books.borrow_mut()[caller];
            for record in records {
                let id = record.id;
                let address = |book: &Book| book.records.get(&id).map(|it| it.address.clone());
                let before = address(book);
                merge_record(&mut book.records, record);
                if address(book).is_some_and(|now| before != Some(now)) {
                    moved.push(id);
                }
            }
        }
        for id in moved {
            self.reconnect(server_of(id), Some(caller));
        }
    }

    /// A caller has no way to the server: it asks where servers are, until it knows.
    pub(super) fn seek(&self, caller: usize, id: ServerId) {
        self.disturb_link(caller, server_of(id));
        if self.0.books.borrow()[caller].asking.is_some() {
            return;
        }
        let world = self.clone();
        let asking = self.spawn(async move {
            for _ in 0..ATTEMPTS {
                world.ask_directory(caller).await;
                if world.reaches(caller, id) {
                    break;
                }
                world.sim_env(caller).sleep(PAUSE).await;
            }
            world.0.books.borrow_mut()[caller].asking = None;
        });
        self.0.books.borrow_mut()[caller].asking = Some(asking);
    }

    fn sim_env(&self, caller: usize) -> SimEnv {
        SimEnv::new(self, caller, PATIENCE)
    }

    /// A client asks a quorum of the root domain which servers there are. Without one it asks every machine, as servers do.
    async fn ask_directory(&self, caller: usize) {
        if caller < self.caller_of(0) {
            let client = Client::new(self.sim_env(caller));
            if let Ok(servers) = client.root(&self.root()).servers().await {
                return self.learn(caller, servers.into_values());
            }
        }
        self.ask_machines(caller).await;
    }

    /// Asks every machine whom it knows. Machines are found by names that never change, as the addresses that people give may
    /// be. Where a server has answered counts more than where any record says that it is.
    async fn ask_machines(&self, caller: usize) {
        let all: Vec<usize> = (0..self.cluster().servers).collect();
        let machines: Members = self.ids(&all).into();
        let env = self.sim_env(caller).by_name();
        let replies = gather::survey(&env, &machines, Request::Directory).await;
        let mut answered = Vec::new();
        for (id, reply) in machines.iter().zip(replies) {
            if let Some(Reply::Directory(directory)) = reply {
                self.learn(caller, directory.servers);
                answered.push(*id);
            }
        }
        for id in answered {
            self.found(caller, id);
        }
    }

    /// The server has answered where its machine is now.
    fn found(&self, caller: usize, id: ServerId) {
        let found = self.address(server_of(id));
        {
            let book = &mut self.0.books.borrow_mut()[caller];
            let known = book.records.entry(id);
            let known = known.or_insert_with(|| ServerRecord::at_address(id, String::new()));
            if known.address == found {
                return;
            }
            known.address = found;
        }
        self.reconnect(server_of(id), Some(caller));
    }

    /// The machine of a server that is down gets another address.
    pub(super) fn perhaps_move(&self, server: usize) {
        let life = self.0.machines.borrow().list[server].life;
        if life > 0 && self.strikes(Fault::AddressChanged) {
            self.0.machines.borrow_mut().list[server].moves += 1;
            self.remark(&format!("server {server} is at {}", self.address(server)));
        }
    }
}
