//! Writers of one conditional object that are far from each other (`[R-9 random-backoff]`).

use super::experiments::Place;
use super::scene::{KIB, MESSAGE, Scene};
use crate::cluster::Cluster;
use crate::world::call::SimEnv;
use crate::world::waiting::start_all;
use crate::world::{Prices, id_of};
use areo_core::config::{Configuration, Dap, Descriptor};
use areo_core::dsm::Client;
use areo_core::dsm::conditional::{Condition, WriteDecision};
use areo_core::element::Value;
use areo_core::object::{DomainId, Name};
use bytes::Bytes;
use std::sync::Arc;
use std::time::Duration;

const SERVERS: usize = 3;

/// Writes once, on the version that is there.
async fn write_on_current(client: Client<SimEnv>, first: Arc<Configuration>) {
    let name = Name::user("counter").expect("a key");
    let domain = client.domain(&first);
    let value = Value::new(Bytes::new(), Bytes::from_static(b"counted"));
    let mut base = domain.read(&name, None).await.expect("nothing fails").tag;
    loop {
        let wish = client.wish(&value, Condition::Version(base));
        match domain.decide_write(&name, wish).await {
            Ok(WriteDecision::Written { .. }) => return,
            Ok(WriteDecision::Conflict(found)) => base = found.tag,
            Err(error) => panic!("nothing fails: {error:?}"),
        }
    }
}

/// Time until all these clients have written, each once.
fn time_of(clients: usize, seed: u64) -> Duration {
    let place = Place::Wan;
    let site = |number: usize| number % place.sites();
    let sites: Vec<usize> = (0..clients).chain(0..SERVERS).map(site).collect();
    let prices = Prices {
        message: MESSAGE,
        kib: KIB,
        line: Duration::ZERO,
    };
    let of = (Cluster::in_memory(SERVERS), clients);
    let one_way = |from, to| place.one_way(from, to);
    let scene = Scene::new(of, &sites, one_way, (prices, seed));
    let (dap, members) = (Dap::Conditional { k: 1 }, (0..SERVERS).map(id_of));
    let first = Configuration::new(Descriptor::new(DomainId(2), members.collect(), dap));
    let first = first.expect("a valid descriptor");
    scene.world.know(&first);
    start_all(&scene.world);
    let begun = scene.world.now();
    for client in 0..clients {
        scene.begin(write_on_current(
            Client::new(scene.env(client)),
            first.clone(),
        ));
    }
    scene.wait();
    assert_eq!(scene.world.violation(), None);
    let took = scene.world.now().since(begun);
    scene.world.end();
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
