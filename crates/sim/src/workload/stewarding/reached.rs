//! The cluster as an instance of the autopilot reaches it from a client process: servers by the truth, the rest by the protocol.

use super::{Cared, KEYS};
use crate::workload::apart::Begun;
use crate::workload::{PATIENT, Workload};
use crate::world::call::SimEnv;
use crate::world::server_of;
use areo_core::config::{Configuration, Descriptor, ServerId};
use areo_core::dsm;
use areo_core::dsm::coverable::CoverableOutcome;
use areo_core::element::Value;
use areo_core::env::Env;
use areo_core::instant::Instant;
use areo_core::message::ListRequest;
use areo_core::object::{Kind, Name};
use areo_core::reconfig::change::Change;
use areo_core::tag::Tag;
use areo_steward::instance::{Cluster, JournalStore};
use areo_steward::intent::{Change as Replacement, Intent, InvalidStep};
use areo_steward::journal::{Journal, Lease};
use areo_steward::records::{DomainRecord, Observer};
use areo_steward::signal::{Sample, ServerSample, ViewSample};
use bytes::Bytes;
use std::collections::BTreeMap;
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

const INTENTS: &str = "intents/";
const LEASE: &str = "lease";

/// A request that failed.
pub(super) struct Failed(String);

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<InvalidStep> for Failed {
    fn from(step: InvalidStep) -> Failed {
        panic!("an instance took a step that there is not: {step}");
    }
}

fn failed(error: impl fmt::Debug) -> Failed {
    Failed(format!("{error:?}"))
}

/// The cluster as an instance in one client process reaches it.
#[derive(Clone)]
pub(super) struct Reached<'a> {
    pub(super) work: &'a Workload,
    pub(super) begun: &'a Begun,
    pub(super) cared: Rc<Cared>,
}

/// A server that goes out of a domain.
pub(super) struct Departing {
    name: &'static str,
    known: Arc<Configuration>,
    server: ServerId,
    with: ServerId,
}

/// The journal with the versions that one instance has read.
pub(super) struct Read<'a> {
    reached: Reached<'a>,
    intents: BTreeMap<u64, (Tag, Intent)>,
    lease: Option<(Tag, Lease)>,
}

fn name_of(server: ServerId) -> String {
    format!("s{}", server_of(server))
}

impl Reached<'_> {
    fn env(&self) -> SimEnv {
        let env = self.work.env(self.begun.process, PATIENT);
        env.goes_over_many();
        env
    }

    fn domain(&self, known: &Arc<Configuration>) -> dsm::Domain<SimEnv> {
        self.begun.client.with(self.env()).domain(known)
    }

    fn journal(&self) -> dsm::Domain<SimEnv> {
        self.domain(&self.cared.domains[1].1)
    }

    /// No domain names the server any more, and the journal has no change in progress.
    pub(super) async fn is_whole(&self, victim: usize) -> bool {
        for (_, known) in &self.cared.domains {
            let Ok(path) = self.domain(known).path().await else {
                return false;
            };
            let names =
                |c: &Arc<Configuration>| c.members().iter().any(|it| server_of(*it) == victim);
            if path.iter().any(names) {
                return false;
            }
        }
        let mut read = Read {
            reached: self.clone(),
            intents: BTreeMap::new(),
            lease: None,
        };
        let journal = read.read().await;
        journal.is_ok_and(|it| it.open().all(|it| !it.state.is_begun()))
    }

    fn id_of(&self, name: &str) -> ServerId {
        let ids = self.work.world.ids(&self.cared.servers);
        let mut ids = ids.into_iter();
        ids.find(|id| name_of(*id) == name)
            .expect("a server's name")
    }

    async fn record(&self, name: &str, known: &Arc<Configuration>) -> Result<DomainRecord, Failed> {
        let path = self.domain(known).path().await.map_err(failed)?;
        let c = path.first().expect("a sequence has a beginning");
        let k = usize::from(c.dap().k()).max(1);
        Ok(DomainRecord {
            name: name.to_owned(),
            members: c.members().iter().map(|it| name_of(*it)).collect(),
            k,
            is_replicated: k == 1,
            is_pending: path.len() > 1,
            objects: KEYS as u64,
            member_bytes: 1000,
            ..DomainRecord::default()
        })
    }

    async fn put(
        &self,
        key: &str,
        value: Vec<u8>,
        before: Option<Tag>,
    ) -> Result<Option<Tag>, Failed> {
        let name = Name::user(key).expect("keys are short");
        let value = Value::new(Bytes::new(), value.into());
        let written = self.journal().put_if(&name, &value, before).await;
        Ok(match written.map_err(failed)? {
            CoverableOutcome::Changed(tag) => Some(tag),
            CoverableOutcome::Unchanged(_) => None,
        })
    }
}

impl<'a> Cluster for Reached<'a> {
    type Error = Failed;
    type Store = Read<'a>;
    type Departure = Departing;

    fn now_ms(&self) -> u64 {
        let passed = self.work.world.now().since(Instant::default());
        u64::try_from(passed.as_millis()).expect("runs are short")
    }

    async fn sleep(&self, ms: u64) {
        self.begun.client.env.sleep(Duration::from_millis(ms)).await;
    }

    async fn sample(&self) -> Result<Sample, Failed> {
        let mut sample = Sample::default();
        for (name, known) in &self.cared.domains {
            sample.domains.push(self.record(name, known).await?);
        }
        let world = &self.work.world;
        let serving = |server: &usize| world.is_serving(*server);
        for (server, id) in self
            .cared
            .servers
            .iter()
            .zip(world.ids(&self.cared.servers))
        {
            sample.servers.push(ServerSample {
                name: name_of(id),
                serves: serving(server),
                leaving: self.cared.leaving.borrow().contains(&id),
                io_errors: Some(0),
                ..ServerSample::default()
            });
            let others = self.cared.servers.iter().filter(|it| *it != server);
            let view = |observer: &usize| ViewSample {
                observer: Observer::Server(format!("s{observer}")),
                server: name_of(id),
                is_reachable: serving(server),
                answer_ms: None,
            };
            sample
                .views
                .extend(others.filter(|it| serving(it)).map(view));
        }
        Ok(sample)
    }

    async fn open(&self) -> Result<Read<'a>, Failed> {
        Ok(Read {
            reached: self.clone(),
            intents: BTreeMap::new(),
            lease: None,
        })
    }

    async fn begin(&self, change: &Replacement) -> Result<Vec<Departing>, Failed> {
        let (server, with) = (self.id_of(&change.server), self.id_of(&change.with));
        self.cared.leaving.borrow_mut().insert(server);
        let mut naming = Vec::new();
        for (name, known) in &self.cared.domains {
            if self.domain(known).names(server).await.map_err(failed)? {
                naming.push(Departing {
                    name,
                    known: known.clone(),
                    server,
                    with,
                });
            }
        }
        Ok(naming)
    }

    fn domain(departure: &Departing) -> &str {
        departure.name
    }

    async fn run(&self, departure: &Departing) -> Result<(), Failed> {
        let domain = self.domain(&departure.known);
        let path = domain.path().await.map_err(failed)?;
        let last = path.last().expect("a sequence has an end");
        let mut members = last.members().to_vec();
        let Some(place) = members.iter().position(|it| *it == departure.server) else {
            return domain
                .resume(&self.work.root, &|_| {})
                .await
                .map(drop)
                .map_err(failed);
        };
        members[place] = departure.with;
        let world = &self.work.world;
        if !world.want(&members) {
            return Err(Failed("too many of them are lost".to_owned()));
        }
        let wanted = Descriptor {
            members,
            ..last.descriptor().clone()
        };
        let change = Change::new(last, &wanted).map_err(failed)?;
        self.work.merging.begin(&change);
        let approves = async |joined: &Change| self.work.approves(joined);
        let moved = domain.reconfigure(&self.work.root, &change, &approves, &|_| {});
        let installed = moved.await.map_err(failed)?.into_configuration();
        world.know(&installed);
        self.work
            .reconfigurations
            .set(self.work.reconfigurations.get() + 1);
        Ok(())
    }

    /// Asks as `areo repair` does whether the server that came has all objects, which servers bring to it by themselves.
    async fn repair(&self, name: &str, came: &str) -> Result<(), Failed> {
        let came = self.id_of(came);
        let mut domains = self.cared.domains.iter();
        let known = &domains.find(|(it, _)| *it == name).expect("a domain").1;
        let domain = self.domain(known);
        let path = domain.path().await.map_err(failed)?;
        let c = path.first().expect("a sequence has a beginning");
        let Some(place) = c.members().iter().position(|it| *it == came) else {
            return Err(Failed("it was changed again".to_owned()));
        };
        let page = domain.redundancy(c, Kind::User, "").await.map_err(failed)?;
        match page.objects.iter().find(|it| it.lacking()[place]) {
            None => Ok(()),
            Some(it) => Err(Failed(format!("{:?} is not at all members", it.name))),
        }
    }

    fn tell(&self, intents: &[Intent]) -> Result<(), Failed> {
        for it in intents {
            let word = it.state.word();
            self.work
                .world
                .remark(&format!("intent {}: {word}", it.number));
        }
        Ok(())
    }
}

impl JournalStore for Read<'_> {
    type Error = Failed;

    async fn read(&mut self) -> Result<Journal, Failed> {
        let journal = self.reached.journal();
        let page = journal
            .list_objects(&ListRequest::new(Kind::User, ""))
            .await;
        for entry in page.map_err(failed)?.entries {
            let name = Name::user(&entry.key).expect("it was a key");
            let found = journal.read_large(&name).await.map_err(failed)?;
            let Some(value) = found.value.filter(|it| !it.deleted) else {
                continue;
            };
            let text = value.content.concat();
            match entry.key.strip_prefix(INTENTS) {
                None => {
                    let lease = serde_json::from_slice(&text).map_err(failed)?;
                    self.lease = Some((found.tag, lease));
                }
                Some(number) => {
                    let number = number.parse().map_err(failed)?;
                    let intent = serde_json::from_slice(&text).map_err(failed)?;
                    self.intents.insert(number, (found.tag, intent));
                }
            }
        }
        Ok(Journal {
            intents: self.intents.values().map(|(_, it)| it.clone()).collect(),
            paused: false,
        })
    }

    fn lease(&self) -> Option<&Lease> {
        self.lease.as_ref().map(|(_, lease)| lease)
    }

    async fn write(&mut self, intent: &Intent) -> Result<bool, Failed> {
        let before = self.intents.get(&intent.number).map(|(tag, _)| *tag);
        let text = serde_json::to_vec(intent).expect("our own records have text for keys");
        let key = format!("{INTENTS}{:010}", intent.number);
        let written = self.reached.put(&key, text, before).await?;
        if let Some(tag) = written {
            self.intents.insert(intent.number, (tag, intent.clone()));
        }
        Ok(written.is_some())
    }

    async fn write_lease(&mut self, lease: &Lease) -> Result<bool, Failed> {
        let before = self.lease.as_ref().map(|(tag, _)| *tag);
        let text = serde_json::to_vec(lease).expect("our own records have text for keys");
        let written = self.reached.put(LEASE, text, before).await?;
        self.lease = written.map(|tag| (tag, lease.clone()));
        Ok(written.is_some())
    }

    async fn drop_expired(&mut self, _: u64) -> Result<(), Failed> {
        Ok(())
    }
}
