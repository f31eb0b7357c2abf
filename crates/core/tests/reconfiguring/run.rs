//! One random world: who does what, and what goes wrong meanwhile.

use crate::history::{History, Kind};
use crate::reconfiguring::bent::{Bent, Bug};
use crate::world::{Chaos, World, configuration, name, server, text, value};
use areo_core::config::{Collect, Configuration, Dap, Descriptor, Options};
use areo_core::consensus::Members;
use areo_core::dap::FoundVersion;
use areo_core::dsm::Client;
use areo_core::manager::Deletion;
use areo_core::message::{ListEntry, ListRequest};
use areo_core::reconfig::ares::{self, AresError, Reconfigured, Reconfigurer};
use areo_core::server::record::Header;
use areo_core::tag::Tag;
use bytes::Bytes;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

pub const SERVERS: usize = 9;
/// Clients that operate, and after them those that reconfigure.
const CLIENTS: usize = 4;
const RECONFIGURERS: usize = 5;
const OPERATIONS: usize = 40;

/// What happened in a run.
#[derive(Clone, Default, Debug)]
pub struct Counts {
    pub installed: usize,
    pub lost: usize,
    pub superseded: usize,
    pub failed: usize,
    pub crashes: usize,
    pub listings: usize,
}

impl Counts {
    pub fn add(&mut self, other: &Counts) {
        self.installed += other.installed;
        self.lost += other.lost;
        self.superseded += other.superseded;
        self.failed += other.failed;
        self.crashes += other.crashes;
        self.listings += other.listings;
    }
}

/// What is written down.
#[derive(Default)]
pub struct Notebook {
    /// Of each object.
    pub histories: BTreeMap<String, History>,
    /// What listings showed that they should not have, or the other way round.
    pub violations: Vec<String>,
    /// The values for which a proposer of the cell was told that they were decided.
    pub decided: BTreeSet<Bytes>,
    pub counts: Counts,
}

pub struct Run {
    pub world: World,
    pub first: Arc<Configuration>,
    clients: Vec<Client<Bent>>,
    pub notebook: Rc<RefCell<Notebook>>,
    busy: Rc<RefCell<Vec<bool>>>,
    bug: Bug,
    /// `None`: each configuration has its own.
    options: Option<Options>,
}

fn options(number: usize) -> Options {
    let collect = [Collect::On, Collect::Off, Collect::Paper];
    match number {
        0..=4 => Options::default(),
        5 => Options::ARES,
        _ => Options {
            piggyback: number.is_multiple_of(2),
            collect: collect[number % 3],
        },
    }
}

impl Run {
    pub fn new(seed: u64, bug: Bug) -> Run {
        let dap = [Dap::Abd, Dap::Ec { k: 2 }][seed as usize % 2];
        let plain = configuration(4, dap, 1, 24);
        let world = World::of(&plain, SERVERS, seed);
        let mixed = world.below(4) == 0;
        let options = (!mixed).then(|| options(world.below(10)));
        let first = Descriptor {
            options: options.unwrap_or_default(),
            ..plain.descriptor().clone()
        };
        world.random(Chaos {
            lose: [0, 0, 5, 20][world.below(4)],
            duplicate: [0, 50][world.below(2)],
            pass_time: [0, 20, 100][world.below(3)],
        });
        let env = || Bent {
            env: world.env(),
            bug: Bug::None,
        };
        let everybody = CLIENTS + RECONFIGURERS;
        Run {
            first: Configuration::new(first).expect("options change nothing else"),
            clients: (0..everybody).map(|_| Client::new(env())).collect(),
            notebook: Rc::default(),
            busy: Rc::new(RefCell::new(vec![false; everybody])),
            bug,
            options,
            world,
        }
    }

    pub fn counts(&self) -> Counts {
        self.notebook.borrow().counts.clone()
    }

    /// Runs operations and reconfigurations with faults; what must hold at the end is said in `end`.
    pub fn finish(&self) -> Result<(), String> {
        let mut started = 0;
        while started < OPERATIONS || self.busy.borrow().contains(&true) {
            for who in 0..self.clients.len() {
                if started < OPERATIONS && !self.busy.borrow()[who] && self.world.below(12) == 0 {
                    match who < CLIENTS {
                        true => self.operate(who, started),
                        false => self.reconfigure(who),
                    }
                    started += usize::from(who < CLIENTS);
                }
            }
            self.disturb();
            self.world.step();
        }
        self.mend_and_judge()
    }

    /// A client for one operation.
    pub fn client(&self, who: usize, bug: Bug) -> Client<Bent> {
        let env = self.world.env();
        self.clients[who].with(Bent { env, bug })
    }

    /// Runs something that a client is busy with; `end` says what it means.
    fn spawn<T: 'static>(
        &self,
        who: usize,
        operation: impl Future<Output = T> + 'static,
        end: impl FnOnce(&mut Notebook, T) + 'static,
    ) {
        self.busy.borrow_mut()[who] = true;
        let (notebook, busy) = (self.notebook.clone(), self.busy.clone());
        self.world.spawn(async move {
            let result = operation.await;
            end(&mut notebook.borrow_mut(), result);
            busy.borrow_mut()[who] = false;
        });
    }

    fn operate(&self, who: usize, number: usize) {
        let keys = ["a", "b", "c", "d", "e"];
        let key = match self.world.below(8) {
            0 => format!("new {number}"),
            _ => keys[self.world.below(keys.len())].to_owned(),
        };
        match self.world.below(16) {
            0 | 1 => self.delete(who, key),
            2..=6 => self.write(who, key, number),
            7 => self.list(who),
            8 => self.decide(who, number),
            _ => self.read(who, key),
        }
    }

    fn begin(&self, key: &str, kind: Kind) -> usize {
        let mut notebook = self.notebook.borrow_mut();
        let history = notebook.histories.entry(key.to_owned()).or_default();
        history.begin(kind)
    }

    fn write(&self, who: usize, key: String, number: usize) {
        // Around the size where copies become fragments; every value is unique.
        let text = format!("{number:->width$}", width = 4 + self.world.below(60));
        let id = self.begin(&key, Kind::Write(text.clone()));
        let (client, c, object) = (
            self.client(who, self.bug_if(&[Bug::PutEndsBehindPointer])),
            self.first.clone(),
            name(&key),
        );
        let operation = async move { client.domain(&c).write(&object, &value(&text)).await };
        self.spawn(who, operation, move |notebook, ended| {
            notebook.history(&key).end_write(id, ended.ok());
        });
    }

    /// A bug that is one of these.
    fn bug_if(&self, any: &[Bug]) -> Bug {
        if any.contains(&self.bug) {
            self.bug
        } else {
            Bug::None
        }
    }

    fn delete(&self, who: usize, key: String) {
        let id = self.begin(&key, Kind::Delete);
        let (client, c, object) = (
            self.client(who, self.bug_if(&[Bug::PutEndsBehindPointer])),
            self.first.clone(),
            name(&key),
        );
        let operation = async move { client.domain(&c).delete(&object, Bytes::new()).await };
        self.spawn(who, operation, move |notebook, ended| {
            let history = notebook.history(&key);
            match ended {
                Ok(Deletion::NotFound) => history.forget(id),
                Ok(Deletion::Deleted(tag)) => history.end_write(id, Some(tag)),
                Err(_) => history.end_write(id, None),
            }
        });
    }

    fn read(&self, who: usize, key: String) {
        let id = self.begin(&key, Kind::Read);
        let bug = self.bug_if(&[Bug::PutEndsBehindPointer, Bug::FastReadBehindPointer]);
        let (client, c, object) = (self.client(who, bug), self.first.clone(), name(&key));
        let operation = async move { client.domain(&c).read(&object, None).await };
        self.spawn(who, operation, move |notebook, found| {
            notebook.history(&key).end_read(id, found.ok().map(version));
        });
    }

    fn list(&self, who: usize) {
        let before = self.notebook.borrow().completed();
        let limit = [1, 2, 100][self.world.below(3)];
        let listing = list_all(self.client(who, Bug::None), self.first.clone(), limit);
        self.spawn(who, listing, move |notebook, listed| {
            if let Some(listed) = listed {
                notebook.counts.listings += 1;
                notebook.judge_listing(&before, &listed);
            }
        });
    }

    fn decide(&self, who: usize, number: usize) {
        let (client, c) = (self.client(who, Bug::None), self.first.clone());
        let operation = async move {
            let (cell, value) = (
                Bytes::from_static(b"cell"),
                Bytes::from(format!("{number}")),
            );
            client.domain(&c).decide(&cell, &value).await
        };
        self.spawn(who, operation, |notebook, decided| {
            notebook.decided.extend(decided);
        });
    }

    /// Any servers, any algorithm.
    pub fn draw_configuration(&self) -> Descriptor {
        let shapes = [
            (3, Dap::Abd),
            (5, Dap::Abd),
            (3, Dap::Ec { k: 1 }),
            (4, Dap::Ec { k: 2 }),
            (5, Dap::Ec { k: 3 }),
            (6, Dap::Ec { k: 2 }),
        ];
        let (n, dap) = shapes[self.world.below(shapes.len())];
        let mut servers: Vec<usize> = (0..SERVERS).collect();
        let members = (0..n).map(|_| server(servers.swap_remove(self.world.below(servers.len()))));
        let drawn = || options(self.world.below(10));
        Descriptor {
            members: members.collect(),
            dap,
            options: self.options.unwrap_or_else(drawn),
            ..self.first.descriptor().clone()
        }
    }

    fn reconfigure(&self, who: usize) {
        let bug = self.bug_if(&[
            Bug::TombstonesStay,
            Bug::FirstPageOnly,
            Bug::FinalBeforeTransfer,
        ]);
        let next = self.draw_configuration();
        let operation = reconfigure(self.client(who, bug), self.first.clone(), next);
        self.spawn(who, operation, |notebook, ended| {
            let counts = &mut notebook.counts;
            match ended {
                Ok(Reconfigured::Installed(_) | Reconfigured::Unchanged(_)) => {
                    counts.installed += 1;
                }
                Ok(Reconfigured::Lost(_)) => counts.lost += 1,
                Ok(Reconfigured::Superseded(_)) => counts.superseded += 1,
                Err(AresError::Invalid(_) | AresError::Decided(_)) => unreachable!(),
                Err(_) => counts.failed += 1,
            }
        });
    }

    /// Perhaps crashes a server, or starts one again.
    fn disturb(&self) {
        let victim = self.world.below(SERVERS);
        match self.world.below(60) {
            0 if self.world.is_up(victim) && self.may_crash(victim) => {
                self.notebook.borrow_mut().counts.crashes += 1;
                self.world.crash(victim);
            }
            1..=3 if !self.world.is_up(victim) => {
                if self.bug == Bug::PointerGoesBack {
                    let pointer = |h: &Header| matches!(h, Header::Pointer { .. });
                    self.world.disk(victim, |disk| disk.lose(pointer));
                }
                self.world.restart(victim, self.world.below(2) == 0);
            }
            _ => {}
        }
    }

    /// Within f of every configuration that is not superseded.
    fn may_crash(&self, victim: usize) -> bool {
        let mut known: BTreeMap<u32, Arc<Configuration>> = BTreeMap::new();
        known.insert(0, self.first.clone());
        let mut last_final = 0;
        for number in 0..SERVERS {
            self.world.disk(number, |disk| {
                for header in disk.headers() {
                    let c = match header {
                        Header::Configuration(c) | Header::Final(c) => c,
                        Header::Pointer { pointer, .. } => &pointer.configuration,
                        _ => continue,
                    };
                    known.insert(c.id().index, c.clone());
                    if let Header::Final(c) = header {
                        last_final = last_final.max(c.id().index);
                    }
                }
            });
        }
        known.range(last_final..).all(|(_, c)| {
            let is_down = |number: &usize| {
                let member = c.position(server(*number)).is_some();
                member && (*number == victim || !self.world.is_up(*number))
            };
            (0..SERVERS).filter(is_down).count() <= c.quorums().f()
        })
    }
}

/// What a history says of a read.
pub fn version(found: FoundVersion) -> (Tag, Option<String>) {
    let value = found.value.filter(|value| !value.deleted);
    (found.tag, value.as_ref().map(text))
}

/// Reconfigures the domain to what `next` describes, but for its index.
pub async fn reconfigure(
    client: Client<Bent>,
    known: Arc<Configuration>,
    next: Descriptor,
) -> Result<Reconfigured, AresError> {
    let by = Reconfigurer {
        env: &client.env,
        sequences: client.sequences(),
        consensus: &Members(|| client.next_writer()),
        progress: &|_| {},
    };
    ares::reconfigure(&by, &known, &next).await
}

/// All pages. `None` without a quorum in time.
pub async fn list_all(
    client: Client<Bent>,
    c: Arc<Configuration>,
    limit: u16,
) -> Option<Vec<ListEntry>> {
    let (mut entries, mut after) = (Vec::new(), String::new());
    loop {
        let request = ListRequest {
            after,
            limit,
            ..ListRequest::new(areo_core::object::Kind::User, "")
        };
        let page = client.domain(&c).list_objects(&request).await.ok()?;
        entries.extend(page.entries);
        match page.next {
            Some(next) => after = next,
            None => return Some(entries),
        }
    }
}

impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (key, history) in &self.notebook.borrow().histories {
            writeln!(f, "{key}:\n{history}")?;
        }
        Ok(())
    }
}
