//! After everything else: a domain of its own of any kind, one of whose members stops for good, and instances of the autopilot that replace it while clients read
//! and write. The instances are those that `areo autopilot` runs. They die wherever they stand, and others take their place.
//!
//! The journal is a conditional domain on the same members, so that it is moved as well.

mod reached;

use super::apart::Begun;
use super::{Workload, configuration, moving, options_of};
use crate::cluster::Cluster;
use crate::world::server_of;
use crate::world::waiting::{mend, pass, start_all};
use areo_core::config::{Configuration, Dap, Descriptor, ServerId};
use areo_core::env::Env;
use areo_core::object::DomainId;
use areo_steward::guard::Level;
use areo_steward::instance::Instance;
use areo_steward::rules::Rules;
use reached::Reached;
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

/// The number of the domain to the history.
const DOMAIN: usize = moving::ROOT + 3;
const KEYS: usize = 3;
const EVERY: Duration = Duration::from_millis(500);
/// The time in which a member that stopped is replaced, though instances die.
const PATIENCE: Duration = Duration::from_mins(10);
const RULES: &str = "\
[dead]
unreachable_seconds = 3
spare_stable_seconds = 2
[guards]
observer_seconds = 2
between_changes_seconds = 3
lease_seconds = 8
view_seconds = 4
retry_seconds = 1
";

/// The cluster that instances look after.
struct Cared {
    /// The domain and its journal, in their first configurations.
    domains: [(&'static str, Arc<Configuration>); 2],
    servers: Vec<usize>,
    leaving: RefCell<BTreeSet<ServerId>>,
    /// Instances that have begun.
    instances: Cell<u64>,
    /// No domain has a member that stopped.
    is_done: Cell<bool>,
}

/// Has instances replace a member of a domain, and judges that nothing else is noticed.
pub(crate) fn steward(work: &Rc<Workload>) {
    let world = &work.world;
    let cared = work.to_steward();
    let c = cared.domains[0].1.clone();
    let cared = Rc::new(cared);
    let clients = work.begin(DOMAIN, &c);
    let created = cared.clone();
    work.each(&clients[..1], async move |work, it| {
        work.create_stewarded(it, &created).await;
    });
    pass(world, Duration::from_secs(1));
    if world.violation().is_some() {
        return;
    }
    let victim = server_of(c.members()[world.random().index(c.n())]);
    let life = world.stand_still(victim);
    let meanwhile = cared.clone();
    work.each(&clients, async move |work, it| match it.process {
        2 => {
            while !meanwhile.is_done.get() {
                work.go_on(it, 0..KEYS).await;
                it.client.env.sleep(EVERY).await;
            }
        }
        _ => work.tend(it, &meanwhile, victim).await,
    });
    world.resume(victim, life);
    start_all(world);
    if world.violation().is_some() {
        return;
    }
    work.each(&clients, async |work, it| work.go_on(it, 0..KEYS).await);
    pass(world, Duration::from_secs(5));
    mend(world);
}

impl Workload {
    /// A domain of servers with sound disks that tolerates a crash, with spares, and its journal.
    fn to_steward(&self) -> Cared {
        let random = self.world.random();
        let servers = self.world.sound_servers();
        assert!(servers.len() >= 5, "the cluster has spares");
        let n = 3 + random.index(servers.len() - 4);
        let k = u8::try_from(1 + random.index(n - 2)).expect("few servers");
        let dap = match random.index(6) {
            0 => Dap::Abd,
            1 => Dap::AbdPublished,
            2 => Dap::Ec { k },
            3 => Dap::Cas { k },
            4 => Dap::CasGc { k },
            _ => Dap::Conditional { k },
        };
        let members = Cluster::members(random, servers.clone(), n, &[]);
        let members = self.world.ids(&members);
        let drawn = |dap| {
            let domain = DomainId(u128::from(random.draw()) << 64 | u128::from(random.draw()));
            let plain = configuration(domain, members.clone(), dap, self.shape.copy_bytes);
            Configuration::new(Descriptor {
                delta: self.shape.delta,
                options: options_of(&plain, self.shape.options),
                ..plain.descriptor().clone()
            })
            .expect("a valid descriptor")
        };
        let domains = [
            ("stewarded", drawn(dap)),
            ("areo-autopilot", drawn(Dap::Conditional { k: 1 })),
        ];
        assert!(self.world.want(&members), "nothing is lost yet");
        Cared {
            domains,
            servers,
            leaving: RefCell::default(),
            instances: Cell::new(0),
            is_done: Cell::new(false),
        }
    }

    async fn create_stewarded(&self, begun: &Begun, cared: &Cared) {
        let root = begun.client.root(&self.root);
        for (name, c) in &cared.domains {
            if root.create_domain(name, c).await.is_err() {
                return self.stuck("create", begun.process);
            }
            self.world.know(c);
        }
        for key in 0..KEYS {
            let end = self.one(begun, key).put().await;
            self.must_end("put", begun, &end);
        }
    }

    /// Runs one instance after the other, until no domain has the member that stopped.
    async fn tend(&self, begun: &Begun, cared: &Rc<Cared>, victim: usize) {
        let reached = Reached {
            work: self,
            begun,
            cared: cared.clone(),
        };
        let since = self.world.now();
        while !cared.is_done.get() && self.world.violation().is_none() {
            if self.world.now().since(since) > PATIENCE {
                return self.stuck("the replacement of a server that stopped", begun.process);
            }
            let number = cared.instances.replace(cared.instances.get() + 1);
            let rules = Rules::overridden(RULES).expect("they are rules");
            let name = format!("i{number}");
            let mut instance = Instance::new(reached.clone(), &name, rules, Level::Act);
            let life = Duration::from_millis(self.world.random().between(8000, 60_000));
            let mut death = pin!(begun.client.env.sleep(life));
            let mut living = pin!(async {
                while !reached.is_whole(victim).await {
                    if let Err(why) = instance.look().await {
                        self.world.remark(&format!("{name}: {why}"));
                    }
                    begun.client.env.sleep(EVERY).await;
                }
            });
            let is_done = poll_fn(|cx| match living.as_mut().poll(cx) {
                Poll::Ready(()) => Poll::Ready(true),
                Poll::Pending => death.as_mut().poll(cx).map(|()| false),
            });
            cared.is_done.set(is_done.await || cared.is_done.get());
        }
    }
}
