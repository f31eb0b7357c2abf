//! Writers of one conditional object that are far from each other (`[R-9 random-backoff]`).

use super::experiments::Place;
use super::stage::{KIB, MESSAGE};
use crate::cluster::Cluster;
use crate::fault::Restriction;
use crate::run::{Scheduler, start_all};
use crate::workload::root;
use crate::world::call::SimEnv;
use crate::world::{Costs, Setup, World, id_of};
use areo_core::config::{Configuration, Dap, Descriptor};
use areo_core::dsm::Client;
use areo_core::dsm::conditional::{Condition, WriteDecision};
use areo_core::element::Value;
use areo_core::object::{DomainId, Name};
use bytes::Bytes;
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

const SERVERS: usize = 3;
/// No operation takes that long.
const TIMEOUT: Duration = Duration::from_mins(5);

/// Writes once, on the version that is there.
async fn write_on_current(
    client: Client<SimEnv>,
    first: Arc<Configuration>,
    left: Rc<Cell<usize>>,
) {
    let name = Name::user("counter").expect("a key");
    let domain = client.domain(&first);
    let value = Value {
        deleted: false,
        metadata: Bytes::new(),
        content: vec![Bytes::from_static(b"counted")],
        apart: None,
    };
    let mut base = domain.read(&name, None).await.expect("nothing fails").tag;
    loop {
        let wish = client.wish(&value, Condition::Version(base));
        match domain.decide_write(&name, wish).await {
            Ok(WriteDecision::Written { .. }) => break,
            Ok(WriteDecision::Conflict(found)) => base = found.tag,
            Err(error) => panic!("nothing fails: {error:?}"),
        }
    }
    left.set(left.get() - 1);
}

/// How long these clients take, of which each writes once.
fn time_of(clients: usize, seed: u64) -> Duration {
    let place = Place::Wan;
    let cluster = Cluster::in_memory(SERVERS);
    let site = |number: usize| number % place.sites();
    let sites: Vec<usize> = (0..clients).chain(0..SERVERS).map(site).collect();
    let root = root(&cluster);
    let setup = Setup {
        faults: false,
        restriction: Restriction::default(),
        scheduler: Scheduler::Random,
        clients,
        costs: Some(Costs::new(
            (&sites, SERVERS),
            |from, to| place.one_way(from, to),
            (MESSAGE, KIB),
        )),
        cluster,
        traced: false,
    };
    let world = World::new(seed, &root, setup);
    let members = (0..SERVERS).map(id_of).collect();
    let first = Configuration::new(Descriptor::new(
        DomainId(2),
        members,
        Dap::Conditional { k: 1 },
    ));
    let first = first.expect("a valid descriptor");
    world.know(&first);
    start_all(&world);
    let (begun, left) = (world.now(), Rc::new(Cell::new(clients)));
    for client in 0..clients {
        let client = Client::new(SimEnv::new(&world, client, TIMEOUT));
        world.spawn(write_on_current(client, first.clone(), left.clone()));
    }
    while left.get() > 0 {
        assert_eq!(world.violation(), None);
        assert!(world.step());
    }
    let took = world.now().since(begun);
    world.end();
    took
}

/// Proposers pause for as long as their exchanges take, and longer the more of them there seem to be. With pauses of 80 ms at most 24
/// of them that are 75 to 115 ms from each other did not end within 20 minutes.
#[test]
fn writers_far_apart_do_not_keep_each_other_off() {
    for seed in 1..=3 {
        let took = time_of(24, seed);
        assert!(took < Duration::from_mins(1), "{took:?}, seed {seed}");
    }
}
