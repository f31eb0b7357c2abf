//! Names of servers that join: decided once, as those of domains are (`[X-20 decided-once]`).

use crate::paper::cells::record;
use crate::world::{Actor, Chaos, World, configuration, server};
use areo_core::config::{Dap, ServerId};
use areo_core::manager::Naming;
use areo_core::message::{Enrolment, ServerRecord};
use std::cell::RefCell;
use std::rc::Rc;

/// Outside the root domain, which has three members.
const JOINING: [usize; 3] = [10, 11, 12];

type Outcome = Rc<RefCell<Option<Naming>>>;

fn name(world: &World, actor: &Actor, id: ServerId, wanted: Option<&'static str>) -> Outcome {
    let (client, root) = (actor.client(), actor.c.clone());
    let record = ServerRecord::at_address(id, String::new());
    world.spawn(async move {
        let named = client.root(&root).name_server(&record, wanted).await;
        named.expect("a quorum answers")
    })
}

fn ended(world: &World, outcomes: &[Outcome]) -> Vec<Naming> {
    while outcomes.iter().any(|outcome| outcome.borrow().is_none()) {
        world.step();
    }
    let taken = outcomes.iter().map(|outcome| outcome.borrow().clone());
    taken.map(|naming| naming.expect("it ended")).collect()
}

fn world(seed: u64) -> (World, Actor) {
    let root = configuration(3, Dap::Abd, 1, 0);
    let world = World::new(&root, seed);
    let actor = world.actor(&root);
    (world, actor)
}

fn register(world: &World, actor: &Actor, number: usize, name: &str) {
    let name = name.to_owned();
    let record = ServerRecord {
        name,
        ..record(number, 1, 7)
    };
    let (client, root) = (actor.client(), actor.c.clone());
    let step = Enrolment::Register;
    let registered = async move { client.root(&root).register(step, &record).await };
    let registered = world.run(registered);
    registered.expect("a quorum answers");
}

#[test]
fn of_servers_that_join_at_once_each_gets_a_name_of_its_own() {
    for seed in 0..200 {
        let (world, actor) = world(seed);
        for number in 0..3 {
            register(&world, &actor, number, &format!("s{}", number + 1));
        }
        world.random(Chaos {
            lose: 0,
            duplicate: 50,
            pass_time: 50,
        });
        let outcomes = JOINING.map(|number| {
            let own = world.actor(&actor.c);
            name(&world, &own, server(number), None)
        });
        let mut names: Vec<String> = ended(&world, &outcomes)
            .into_iter()
            .map(|naming| match naming {
                Naming::Named(name) => name,
                taken @ Naming::Taken { .. } => panic!("seed {seed}: {taken:?}"),
            })
            .collect();
        names.sort();
        assert_eq!(names, ["s4", "s5", "s6"], "seed {seed}");
    }
}

#[test]
fn of_two_servers_that_want_one_name_one_gets_it() {
    for seed in 0..200 {
        let (world, actor) = world(seed);
        world.random(Chaos {
            lose: 0,
            duplicate: 50,
            pass_time: 50,
        });
        let outcomes = [JOINING[0], JOINING[1]].map(|number| {
            let own = world.actor(&actor.c);
            name(&world, &own, server(number), Some("rack-7"))
        });
        let (first, second) = (server(JOINING[0]), server(JOINING[1]));
        let named = || Naming::Named("rack-7".into());
        let outcomes = ended(&world, &outcomes);
        assert!(
            outcomes == [named(), Naming::Taken { by: first }]
                || outcomes == [Naming::Taken { by: second }, named()],
            "seed {seed}: {outcomes:?}"
        );
    }
}

#[test]
fn a_name_stays_with_its_server_and_with_no_other() {
    let (world, actor) = world(1);
    let ask = |number: usize, wanted| {
        let outcome = name(&world, &actor, server(number), wanted);
        ended(&world, &[outcome]).remove(0)
    };
    let named = |name: &str| Naming::Named(name.into());
    // The first servers were never started: their names are not known, and not given away.
    assert_eq!(ask(10, None), named("s4"));
    // It crashed before it registered, and asks again.
    assert_eq!(ask(10, None), named("s4"));
    assert_eq!(ask(11, None), named("s5"), "another one in the meantime");
    register(&world, &actor, 11, "s5");
    register(&world, &actor, 0, "a");
    register(&world, &actor, 1, "s17");
    let taken = |number| Naming::Taken { by: server(number) };
    assert_eq!(ask(12, Some("a")), taken(0), "it never asked for its name");
    assert_eq!(ask(12, Some("s4")), taken(10), "it has not registered yet");
    assert_eq!(ask(11, Some("s5")), named("s5"), "it is its own");
    assert_eq!(ask(12, None), named("s18"), "above all that are known");
}
