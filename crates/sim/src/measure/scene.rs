//! A world without faults in which it is given what messages cost, and tasks that are waited for.

use crate::cluster::Cluster;
use crate::fault::Restriction;
use crate::options::Scheduler;
use crate::workload::root;
use crate::world::call::SimEnv;
use crate::world::{Costs, Prices, Setup, World};
use areo_core::config::Configuration;
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// The time of a server for a message, and for each KiB that it receives or sends: given, in the order of what real servers take.
pub(super) const MESSAGE: Duration = Duration::from_micros(20);
pub(super) const KIB: Duration = Duration::from_nanos(512);
/// Timeout of an operation.
const TIMEOUT: Duration = Duration::from_mins(5);

pub(super) struct Scene {
    pub(super) world: World,
    pub(super) root: Arc<Configuration>,
    /// Tasks that are waited for.
    busy: Rc<Cell<usize>>,
}

impl Scene {
    /// `sites`: where clients are, and then servers.
    pub(super) fn new(
        (cluster, clients): (Cluster, usize),
        sites: &[usize],
        one_way: impl Fn(usize, usize) -> Duration,
        (prices, seed): (Prices, u64),
    ) -> Scene {
        let (root, servers) = (root(&cluster), cluster.servers);
        assert_eq!(sites.len(), clients + servers, "each is somewhere");
        let setup = Setup {
            faults: false,
            restriction: Restriction::default(),
            scheduler: Scheduler::Random,
            clients,
            costs: Some(Costs::new((sites, servers), one_way, prices)),
            cluster,
            traced: false,
        };
        let world = World::new(seed, &root, setup);
        Scene {
            world,
            root,
            busy: Rc::default(),
        }
    }

    /// The environment of an operation that this client begins now.
    pub(super) fn env(&self, client: usize) -> SimEnv {
        SimEnv::new(&self.world, client, TIMEOUT)
    }

    /// Lets servers lead, as soon as their starts are confirmed.
    pub(super) fn let_servers_lead(&self) {
        self.world.let_servers_lead(TIMEOUT);
    }

    /// Begins a task that is waited for.
    pub(super) fn begin(&self, task: impl Future<Output = ()> + 'static) {
        let busy = self.busy.clone();
        busy.update(|busy| busy + 1);
        self.world.spawn(async move {
            task.await;
            busy.update(|busy| busy - 1);
        });
    }

    /// Lets things happen until no such task is left.
    pub(super) fn wait(&self) {
        self.wait_while(|| self.busy.get() > 0);
    }

    /// Lets things happen while it is so.
    pub(super) fn wait_while(&self, is_so: impl Fn() -> bool) {
        while is_so() && self.world.violation().is_none() {
            assert!(
                self.world.step(),
                "servers look after their stores for ever"
            );
        }
    }

    /// Begins the task, and waits for all.
    pub(super) fn until_idle(&self, task: impl Future<Output = ()> + 'static) {
        self.begin(task);
        self.wait();
    }

    pub(super) fn fail(&self, sentence: &str) {
        self.world.violate(format!("measured: {sentence}"));
    }
}
