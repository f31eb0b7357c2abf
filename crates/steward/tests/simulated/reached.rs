//! The cluster as an instance reaches it: each request takes time, may fail, and may have done its work although it failed.

use crate::judge;
use crate::world::{Version, World};
use areo_steward::instance::{Cluster, JournalStore};
use areo_steward::intent::{Change, Intent, InvalidStep};
use areo_steward::journal::{Journal, Lease};
use areo_steward::signal::Sample;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;

/// A request that failed.
#[derive(thiserror::Error, Clone, PartialEq, Eq, Debug)]
#[error("{0}")]
pub(crate) struct Failed(String);

impl From<InvalidStep> for Failed {
    fn from(step: InvalidStep) -> Failed {
        panic!("an instance took a step that there is not: {step}");
    }
}

/// The shared world, as task `task` reaches it.
#[derive(Clone)]
pub(crate) struct Reached {
    pub(crate) world: Rc<RefCell<World>>,
    pub(crate) task: usize,
    pub(crate) born_ms: u64,
    /// Its clock is ahead by so much.
    pub(crate) ahead_ms: u64,
}

impl Reached {
    pub(crate) async fn pass(&self, ms: u64) {
        let until_ms = self.world.borrow().now_ms + ms;
        poll_fn(|_| {
            let world = &mut *self.world.borrow_mut();
            if world.now_ms >= until_ms {
                return Poll::Ready(());
            }
            let wake = &mut world.wakes[self.task];
            *wake = (*wake).min(until_ms);
            Poll::Pending
        })
        .await;
    }

    /// A request: it takes a moment, and now and then a while. True: it fails.
    async fn request(&self) -> bool {
        let (ms, fails) = {
            let world = &mut *self.world.borrow_mut();
            let ms = match world.random.chance(30) {
                true => world.random.between(1000, 8000),
                false => world.random.between(1, 300),
            };
            (ms, world.has_faults && world.random.chance(20))
        };
        self.pass(ms).await;
        fails
    }

    async fn asked(&self) -> Result<(), Failed> {
        match self.request().await {
            true => Err(Failed("no answer".into())),
            false => Ok(()),
        }
    }

    /// The result of a write that fails before its work, or after it.
    async fn written(&self, work: impl FnOnce(&mut World) -> bool) -> Result<bool, Failed> {
        let fails = self.request().await;
        let world = &mut *self.world.borrow_mut();
        let is_done = !fails || world.random.chance(500);
        let won = is_done && work(world);
        match fails {
            true => Err(Failed("it is not known whether it was written".into())),
            false => Ok(won),
        }
    }
}

/// A server that goes out of a domain.
pub(crate) struct Departing {
    domain: String,
    server: String,
    with: String,
}

/// The journal with the versions that one instance has read.
pub(crate) struct Read {
    reached: Reached,
    intents: BTreeMap<u64, (Version, Intent)>,
    lease: Option<(Version, Lease)>,
}

impl Cluster for Reached {
    type Error = Failed;
    type Store = Read;
    type Departure = Departing;

    fn now_ms(&self) -> u64 {
        self.world.borrow().now_ms + self.ahead_ms
    }

    async fn sleep(&self, ms: u64) {
        self.pass(ms).await;
    }

    async fn sample(&self) -> Result<Sample, Failed> {
        self.asked().await?;
        Ok(self.world.borrow().sample(self.ahead_ms))
    }

    async fn open(&self) -> Result<Read, Failed> {
        self.asked().await?;
        Ok(Read {
            reached: self.clone(),
            intents: BTreeMap::new(),
            lease: None,
        })
    }

    async fn begin(&self, change: &Change) -> Result<Vec<Departing>, Failed> {
        self.asked().await?;
        let world = &mut *self.world.borrow_mut();
        judge::works(world);
        world.server_mut(&change.server).leaving = true;
        let domains = world.domains.iter().filter(|it| it.has(&change.server));
        let departing = |name: &str| Departing {
            domain: name.into(),
            server: change.server.clone(),
            with: change.with.clone(),
        };
        Ok(domains.map(|it| departing(&it.name)).collect())
    }

    fn domain(departure: &Departing) -> &str {
        &departure.domain
    }

    async fn run(&self, departure: &Departing) -> Result<(), Failed> {
        let at = |world: &World| {
            let mut domains = world.domains.iter();
            domains.position(|it| it.name == departure.domain).unwrap()
        };
        let ms = {
            let world = &mut *self.world.borrow_mut();
            judge::works(world);
            let i = at(world);
            if world.domains[i].has(&departure.server) {
                world.domains[i].is_half_changed = true;
            }
            world.random.between(100, 90_000)
        };
        self.pass(ms).await;
        let fails = self.request().await;
        let world = &mut *self.world.borrow_mut();
        let i = at(world);
        if !world.domains[i].has(&departure.server) {
            return Ok(());
        }
        let after = world.members_after(&world.domains[i], &departure.server, &departure.with);
        let (n, k) = (after.len(), world.domains[i].k);
        let down = after.iter().filter(|it| !world.is_up(it)).count();
        if fails || !world.has_quorum(&world.domains[i]) || down > n.saturating_sub(k) / 2 {
            return Err(Failed("no quorum".into()));
        }
        judge::replaces(world, i, &departure.server, &departure.with);
        Ok(())
    }

    async fn repair(&self, domain: &str, came: &str) -> Result<(), Failed> {
        let ms = self.world.borrow_mut().random.between(100, 20_000);
        self.pass(ms).await;
        self.asked().await?;
        let world = &mut *self.world.borrow_mut();
        if !world.is_up(came) {
            return Err(Failed(format!("{came} is away")));
        }
        let i = world.domains.iter().position(|it| it.name == domain);
        world.domains[i.unwrap()].whole.insert(came.into());
        Ok(())
    }

    fn tell(&self, _: &[Intent]) -> Result<(), Failed> {
        Ok(())
    }
}

impl JournalStore for Read {
    type Error = Failed;

    async fn read(&mut self) -> Result<Journal, Failed> {
        self.reached.asked().await?;
        let world = self.reached.world.borrow();
        self.intents.clone_from(&world.intents);
        self.lease.clone_from(&world.lease);
        Ok(Journal {
            intents: self.intents.values().map(|(_, it)| it.clone()).collect(),
            paused: world.paused_ms.is_some(),
        })
    }

    fn lease(&self) -> Option<&Lease> {
        self.lease.as_ref().map(|(_, lease)| lease)
    }

    async fn write(&mut self, intent: &Intent) -> Result<bool, Failed> {
        let before = self
            .intents
            .get(&intent.number)
            .map(|(version, _)| *version);
        let (mut version, reached) = (None, &self.reached);
        let won = reached.written(|world| {
            let now = world.intents.get(&intent.number);
            if now.map(|(version, _)| *version) != before {
                return false;
            }
            judge::writes(
                world,
                reached,
                now.map(|(_, it)| it.clone()).as_ref(),
                intent,
            );
            let next = world.version();
            world.intents.insert(intent.number, (next, intent.clone()));
            version = Some(next);
            true
        });
        let won = won.await?;
        if let Some(version) = version {
            self.intents
                .insert(intent.number, (version, intent.clone()));
        }
        Ok(won)
    }

    async fn write_lease(&mut self, lease: &Lease) -> Result<bool, Failed> {
        let before = self.lease.as_ref().map(|(version, _)| *version);
        let mut version = None;
        let won = self.reached.written(|world| {
            if world.lease.as_ref().map(|(version, _)| *version) != before {
                return false;
            }
            let holder = |it: &(Version, Lease)| it.1.holder.clone();
            if world
                .lease
                .as_ref()
                .is_some_and(|it| holder(it) != lease.holder)
            {
                world.seen.leases_taken_over += 1;
            }
            let next = world.version();
            world.lease = Some((next, lease.clone()));
            version = Some(next);
            true
        });
        let won = won.await?;
        self.lease = version.map(|version| (version, lease.clone()));
        Ok(won)
    }

    async fn drop_expired(&mut self, number: u64) -> Result<(), Failed> {
        let work = |world: &mut World| world.intents.remove(&number).is_some();
        self.reached.written(work).await.map(drop)
    }
}
