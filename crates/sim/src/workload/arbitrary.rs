//! After everything else: a domain of its own, of the kind `casss`, whose servers come to remember anything
//! (`world/arbitrary.rs`). Within a bound it is a register again: every operation that begins later succeeds, and what clients
//! see from then on is linearizable (`[CASSS-4 stabilization-bound]`).

use super::apart::{Begun, name};
use super::{End, PATIENT, Workload, configuration, moving};
use crate::cluster::Cluster;
use crate::fault::Fault;
use crate::world::waiting::{mend, pass, start_all};
use areo_core::config::{Configuration, Dap, Descriptor};
use areo_core::env::Env;
use areo_core::object::{DomainId, Name};
use areo_core::timing;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// The number of the domain to the history.
const DOMAIN: usize = moving::ROOT + 1;
const KEYS: usize = 2;
/// Periods of gossip after which members have sent everything about each object, if all of it fits into one note
/// (`[CASSS-4 stabilization-bound]`).
const PERIODS: u32 = 5;
/// Restarts that an object may still need then: one for each damaged element that is found, if that was the largest at its member.
const RESTARTS: usize = 12;
/// Upper bound for the time of a restart.
const RESTART: Duration = Duration::from_secs(8);

/// Makes the state of a domain arbitrary, and judges later operations.
pub(crate) fn stabilize(work: &Rc<Workload>) {
    let world = &work.world;
    let Some(c) = work.to_be_struck() else {
        return;
    };
    let before = work.begin(DOMAIN, &c);
    work.each(&before[..1], Workload::prepare);
    work.each(&before, Workload::meet_anything);
    if world.violation().is_some() {
        return;
    }
    let names: Vec<Name> = (0..KEYS).map(name).collect();
    world.plan().note(Fault::ArbitraryState);
    world.cease_to_judge();
    let _ = world.make_arbitrary(&c, &names);
    start_all(world);
    world.say_anything(&c, &names);
    // What clients remember of versions may be of none that is there now.
    let clients = match world.random().chance(500) {
        true => before,
        false => work.begin(DOMAIN, &c),
    };
    work.each(&clients, Workload::meet_anything);
    pass(world, timing::GOSSIP * PERIODS);
    // One write of each object is part of the bound: what it finds takes its place below it.
    work.each(&clients[..1], Workload::put_once);
    pass(world, Duration::from_secs(1));
    if world.violation().is_some() {
        return;
    }
    world.judge_anew();
    work.each(&clients, async |work, it| work.go_on(it, 0..KEYS).await);
    pass(world, Duration::from_secs(5));
    mend(world);
}

impl Workload {
    /// A domain of servers with sound disks, as many as there are or fewer.
    fn to_be_struck(&self) -> Option<Arc<Configuration>> {
        let random = self.world.random();
        let sound = self.world.sound_servers();
        if sound.len() < 2 {
            return None;
        }
        let n = 2 + random.index(sound.len() - 1);
        let k = u8::try_from(1 + random.index(n)).expect("few servers");
        let members = self.world.ids(&Cluster::members(random, sound, n, &[]));
        let domain = DomainId(u128::from(random.draw()) << 64 | u128::from(random.draw()));
        let dap = Dap::CasSs { k };
        let plain = configuration(domain, members, dap, self.shape.copy_bytes);
        let descriptor = Descriptor {
            delta: self.shape.delta,
            ..plain.descriptor().clone()
        };
        let c = Configuration::new(descriptor).expect("a valid descriptor");
        self.world.want(c.members()).then_some(c)
    }

    /// Creates the domain, and writes each key some times.
    async fn prepare(&self, begun: &Begun) {
        if !self.found(begun, "arbitrary").await {
            return;
        }
        for key in (0..KEYS).cycle().take(4 * KEYS) {
            let one = self.one(begun, key);
            let (value, _) = one.any_value();
            if one.domain().put(&name(key), &value).await.is_err() {
                return self.stuck("put", begun.process);
            }
        }
    }

    /// Runs operations that may fail or show anything until the bound has passed. The history does not have them.
    async fn meet_anything(&self, begun: &Begun) {
        for key in 0..KEYS {
            let env = self.env(begun.process, self.shape.timeout);
            let domain = begun.client.with(env).domain(&begun.c);
            match self.world.random().below(4) {
                0 => drop(domain.read_large(&name(key)).await),
                1 => drop(domain.stat(&name(key)).await),
                2 => {
                    let (value, _) = self.one(begun, key).any_value();
                    drop(domain.put(&name(key), &value).await);
                }
                _ => {}
            }
        }
    }

    /// Puts every object. The put fails while too many members abstain, until they have agreed on what is left
    /// (`[CASSS-9 agreed-end-of-abstention]`), and is retried.
    async fn put_once(&self, begun: &Begun) {
        for key in 0..KEYS {
            let mut end = self.one(begun, key).put().await;
            for _ in 0..RESTARTS {
                if matches!(end, End::TimedOut) {
                    self.env(begun.process, PATIENT).sleep(RESTART).await;
                    end = self.one(begun, key).put().await;
                }
            }
            self.must_end("the first put", begun, &end);
        }
    }
}
