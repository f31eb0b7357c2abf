//! Decided-once cells and the registration of servers: one winner (`docs/spec` `[R-9 random-backoff]`,
//! `[R-10 one-value-per-ballot]`, `[X-16 decider-in-descriptor]`, `[X-20 decided-once]`, `[X-21 directory-join]`).

use crate::paper::reconfiguration::root::move_with_directory;
use crate::world::{Actor, Chaos, Message, World, configuration, server, successor};
use areo_core::config::{Configuration, Dap, Descriptor};
use areo_core::error::Unavailable;
use areo_core::manager::{Creation, Naming, Registration};
use areo_core::message::{
    Ballot, Body, CellReply, CellRequest, Labels, Levels, Program, Reply, ServerRecord,
};
use areo_core::object::DomainId;
use areo_core::tag::{ClientId, Writer};
use bytes::Bytes;
use std::sync::Arc;
use std::time::Duration;

pub fn cell() -> Bytes {
    Bytes::from_static(b"cell")
}

pub fn propose(
    actor: &Actor,
    value: &'static str,
) -> impl Future<Output = Result<Bytes, Unavailable>> + use<> {
    let (client, c) = (actor.client(), actor.c.clone());
    async move {
        let value = Bytes::from_static(value.as_bytes());
        client.domain(&c).decide(&cell(), &value).await
    }
}

pub fn learn(actor: &Actor) -> impl Future<Output = Result<Option<Bytes>, Unavailable>> + use<> {
    let (client, c) = (actor.client(), actor.c.clone());
    async move { client.domain(&c).learn(&cell()).await }
}

/// Proposers at once, in every order of deliveries that the seeds draw, with losses and restarts: all that end agree, and
/// so does a later reader.
#[test]
fn a_cell_has_one_winner() {
    let mut winners = [0; 3];
    for seed in 0..2000 {
        let dap = if seed % 2 == 0 {
            Dap::Abd
        } else {
            Dap::Ec { k: 2 }
        };
        let c = configuration(if seed % 2 == 0 { 3 } else { 4 }, dap, 1, 0);
        let world = World::new(&c, seed);
        let lose = [0, 50][world.below(2)];
        world.random(Chaos {
            lose,
            duplicate: 50,
            pass_time: 100,
        });
        let values = ["one", "two", "three"];
        let results = values.map(|value| world.spawn(propose(&world.actor(&c), value)));
        while results.iter().any(|result| result.borrow().is_none()) {
            world.step();
            let number = world.below(c.n());
            match world.below(60) {
                0 if (0..c.n()).all(|number| world.is_up(number)) => world.crash(number),
                1..=5 if !world.is_up(number) => world.restart(number, world.below(2) == 0),
                _ => {}
            }
        }
        for number in (0..c.n()).filter(|number| !world.is_up(*number)) {
            world.restart(number, true);
        }
        world.random(Chaos {
            lose: 0,
            duplicate: 0,
            pass_time: 0,
        });
        let ended = results
            .iter()
            .filter_map(|result| result.borrow().clone().expect("all have ended").ok());
        let mut decided: Vec<Bytes> = ended.collect();
        let learned = world.run(learn(&world.actor(&c))).expect("a quorum is up");
        assert!(
            decided.is_empty() || learned.is_some(),
            "seed {seed}: it was decided"
        );
        decided.extend(learned);
        decided.dedup();
        assert!(decided.len() <= 1, "seed {seed}: {decided:?}");
        for winner in decided {
            winners[values
                .iter()
                .position(|value| *value == winner)
                .expect("it was proposed")] += 1;
        }
    }
    assert!(
        winners.iter().all(|wins| *wins > 100),
        "the orders differ: {winners:?}"
    );
}

/// A value that a proposer left at one acceptor may have been decided: the one that learns it finishes it.
#[test]
fn learning_finishes_what_was_left_undecided() {
    let c = configuration(3, Dap::Abd, 1, 0);
    let world = World::new(&c, 1);
    assert_eq!(world.run(learn(&world.actor(&c))), Ok(None));
    let is_accept = |m: &Message| m.is_cell_accept();
    world.hold(move |m| is_accept(m) && !m.at(&[0]));
    assert!(world.run(propose(&world.actor(&c), "left")).is_err());
    world.lose(is_accept);
    world.release();
    // A quorum without that acceptor may decide something else ...
    let other = World::new(&c, 1);
    assert_eq!(
        other.run(propose(&other.actor(&c), "other")).unwrap(),
        "other"
    );
    // ... and one with it finishes what it finds.
    world.hold(|m| m.at(&[2]));
    assert_eq!(world.run(learn(&world.actor(&c))).unwrap().unwrap(), "left");
    world.release();
    world.hold(|m| m.at(&[0]));
    assert_eq!(world.run(learn(&world.actor(&c))).unwrap().unwrap(), "left");
    assert_eq!(
        world.run(propose(&world.actor(&c), "late")).unwrap(),
        "left"
    );
}

pub fn step_at(world: &World, number: usize, step: CellRequest) -> CellReply {
    match world.ask_configured(number, Body::Cell { cell: cell(), step }) {
        Ok(Reply::Cell(reply)) => reply,
        reply => panic!("{reply:?} answers no step"),
    }
}

fn step(world: &World, step: CellRequest) -> CellReply {
    step_at(world, 0, step)
}

pub fn ballot(number: u64) -> Ballot {
    let proposer = Writer {
        client: ClientId(1),
        counter: number,
    };
    Ballot { number, proposer }
}

/// The accepted value of the highest ballot counts, in every order of the answers: it may be decided.
#[test]
fn the_value_of_the_highest_ballot_is_taken_up() {
    let c = configuration(3, Dap::Abd, 1, 0);
    for absent in 0..3 {
        let world = World::new(&c, 1);
        for (number, at, value) in [(1, vec![1], "abandoned"), (2, vec![0, 2], "decided")] {
            for acceptor in at {
                let (ballot, value) = (ballot(number), Bytes::from_static(value.as_bytes()));
                let accept = CellRequest::Accept { ballot, value };
                assert_eq!(step_at(&world, acceptor, accept), CellReply::Accepted);
            }
        }
        world.hold(move |m| m.at(&[absent]));
        assert_eq!(
            world.run(propose(&world.actor(&c), "late")).unwrap(),
            "decided"
        );
        assert_eq!(
            world.run(learn(&world.actor(&c))).unwrap().unwrap(),
            "decided"
        );
    }
}

/// An acceptor keeps its promise and what it accepted, however often it starts again and whichever of its older records
/// are found. It used to go back at the second restart.
#[test]
fn acceptors_keep_their_word_across_restarts() {
    let c = configuration(3, Dap::Abd, 1, 0);
    for seed in 0..100 {
        let world = World::new(&c, seed);
        let (old, new) = (Bytes::from_static(b"old"), Bytes::from_static(b"new"));
        let accept = |number, value: &Bytes| CellRequest::Accept {
            ballot: ballot(number),
            value: value.clone(),
        };
        let prepare = |number| CellRequest::Prepare {
            ballot: ballot(number),
        };
        assert_eq!(
            step(&world, prepare(1)),
            CellReply::Promised { accepted: None }
        );
        assert_eq!(step(&world, accept(1, &old)), CellReply::Accepted);
        let accepted = Some((ballot(1), old.clone()));
        assert_eq!(step(&world, prepare(3)), CellReply::Promised { accepted });
        assert_eq!(step(&world, accept(3, &new)), CellReply::Accepted);
        for resurrect in [true, false, true, false] {
            world.crash(0);
            world.restart(0, resurrect);
            assert_eq!(
                step(&world, prepare(2)),
                CellReply::Rejected {
                    promised: ballot(3)
                }
            );
            assert_eq!(
                step(&world, accept(2, &old)),
                CellReply::Rejected {
                    promised: ballot(3)
                }
            );
            let accepted = Some((ballot(3), new.clone()));
            assert_eq!(
                step(&world, CellRequest::Query),
                CellReply::Promised { accepted }
            );
        }
        // The same accept again changes nothing, and a decision stands.
        assert_eq!(step(&world, accept(3, &new)), CellReply::Accepted);
        let (configuration, value) = (c.id(), new.clone());
        let decided = areo_core::message::Note::Decided {
            configuration,
            cell: cell(),
            value,
        };
        world.tell(0, decided);
        world.crash(0);
        world.restart(0, true);
        assert_eq!(step(&world, accept(9, &old)), CellReply::Decided(new));
    }
}

fn first_configuration(c: &Arc<Configuration>, domain: u128) -> Arc<Configuration> {
    let descriptor = Descriptor {
        domain: DomainId(domain),
        ..c.descriptor().clone()
    };
    Configuration::new(descriptor).expect("it differs in its domain only")
}

/// `[X-20 decided-once]`: of two creators of a domain one wins, and the other gets the winner's configuration.
#[test]
fn of_two_creators_of_a_domain_one_wins() {
    for seed in 0..300 {
        let root = configuration(3, Dap::Abd, 1, 0);
        let world = World::new(&root, seed);
        world.random(Chaos {
            lose: 0,
            duplicate: 50,
            pass_time: 50,
        });
        let create = |domain| {
            let (client, root) = (world.actor(&root).client(), root.clone());
            let first = first_configuration(&root, domain);
            world.spawn(async move { client.root(&root).create_domain("photos", &first).await })
        };
        let creations = [create(11), create(12)];
        while creations.iter().any(|creation| creation.borrow().is_none()) {
            world.step();
        }
        let outcomes = creations.map(|creation| creation.borrow().clone().unwrap().unwrap());
        let winner = match &outcomes {
            [Creation::Created, Creation::Exists(c)] => (11, c.clone()),
            [Creation::Exists(c), Creation::Created] => (12, c.clone()),
            other => panic!("seed {seed}: {other:?}"),
        };
        assert_eq!(winner.1.descriptor().domain, DomainId(winner.0));
        let (client, c) = (world.actor(&root).client(), root.clone());
        let found = world.run(async move {
            let found = client.root(&c).find_domain("photos").await;
            (found, client.root(&c).domains().await)
        });
        assert_eq!(found.0, Ok(Some(winner.1.clone())));
        assert_eq!(found.1, Ok(vec![("photos".into(), winner.1)]));
    }
}

pub fn record(number: usize, incarnation: u64, start: u64) -> ServerRecord {
    ServerRecord {
        id: server(number),
        incarnation,
        start,
        resumed: false,
        name: format!("server-{number}"),
        address: format!("host-{incarnation}-{start}"),
        admin: String::new(),
        generation: None,
        leaving: 0,
        position: None,
        program: Program::default(),
        levels: Levels::default(),
        labels: Labels::default(),
    }
}

/// `[X-11 damage-abstains]`, `[X-21 directory-join]`: a server that starts from an older state, or from a copy of its
/// directory, is told.
#[test]
fn a_server_with_an_older_state_is_not_registered() {
    let c = configuration(3, Dap::Abd, 1, 0);
    let world = World::new(&c, 1);
    let actor = world.actor(&c);
    let outdated = Registration::Outdated { registered: 5 };
    assert_eq!(actor.register(record(0, 5, 77)), Registration::Registered);
    assert_eq!(
        actor.register(record(0, 5, 77)),
        Registration::Registered,
        "again"
    );
    assert_eq!(actor.register(record(0, 4, 78)), outdated);
    assert_eq!(
        actor.register(record(0, 5, 78)),
        outdated,
        "a copied directory"
    );
    // For every quorum that answers, and every server that has started again from any of its records.
    for absent in 0..3 {
        for number in (0..3).filter(|number| *number != absent) {
            world.crash(number);
            world.restart(number, true);
        }
        world.hold(move |m| m.at(&[absent]));
        assert_eq!(actor.register(record(0, 4, 79)), outdated);
        world.release();
        world.settle();
    }
    assert_eq!(actor.register(record(0, 6, 80)), Registration::Registered);
    let outdated = Registration::Outdated { registered: 6 };
    for _ in 0..20 {
        for number in 0..3 {
            world.crash(number);
            world.restart(number, true);
        }
        assert_eq!(actor.register(record(0, 5, 77)), outdated);
    }
    let (client, root) = (actor.client(), c.clone());
    let servers = world
        .run(async move { client.root(&root).servers().await })
        .unwrap();
    assert_eq!(servers[&server(0)], record(0, 6, 80));
    world.pass(Duration::from_secs(1));
}

/// `[X-27 forgotten-server]`: no start of a forgotten server is registered, also where members have not heard of it, and its name stays taken.
#[test]
fn a_forgotten_server_does_not_start_again() {
    let c = configuration(3, Dap::Abd, 1, 0);
    let world = World::new(&c, 1);
    let actor = world.actor(&c);
    let last = record(7, 5, 77);
    let registered = actor.register(last.clone());
    assert_eq!(registered, Registration::Registered);
    let forget = || {
        let (client, c, last) = (actor.client(), actor.c.clone(), last.clone());
        async move { client.root(&c).forget(&last).await }
    };
    // One member does not hear of it at once.
    world.hold(|m| m.at(&[2]));
    assert_eq!(world.run(forget()), Ok(()));
    world.release();
    assert_eq!(world.run(forget()), Ok(()), "again");
    for absent in 0..3 {
        world.hold(move |m| m.at(&[absent]));
        let outdated = actor.register(record(7, 6, 78));
        let is_last = |it| matches!(it, Registration::Outdated { registered } if ServerRecord::is_last(registered));
        assert!(is_last(outdated), "without {absent}: {outdated:?}");
        world.release();
        world.settle();
    }
    let (client, root) = (actor.client(), c.clone());
    let (servers, naming) = world.run(async move {
        let root = client.root(&root);
        let servers = root.servers().await.unwrap();
        (
            servers,
            root.name_server(&record(8, 0, 0), Some("server-7")).await,
        )
    });
    assert!(servers[&server(7)].is_forgotten());
    assert_eq!(naming, Ok(Naming::Taken { by: server(7) }));
}

/// `[X-36 leaving-server]`: also when the server registers later starts, and when the root domain moves; until it is taken back.
#[test]
fn it_is_remembered_that_a_server_is_to_go() {
    let c = configuration(3, Dap::Abd, 1, 0);
    let world = World::of(&c, 6, 1);
    let actor = world.actor(&c);
    let first = record(4, 5, 77);
    let registered = actor.register(first.clone());
    assert_eq!(registered, Registration::Registered);
    let mark = |of: ServerRecord, is_leaving| {
        let (client, c) = (actor.client(), actor.c.clone());
        world.run(async move { client.root(&c).mark_leaving(&of, is_leaving).await })
    };
    let shown = |actor: &Actor| {
        let (client, c) = (actor.client(), actor.c.clone());
        let servers = world.run(async move { client.root(&c).servers().await });
        servers.unwrap()[&server(4)].clone()
    };
    assert_eq!(mark(first.clone(), true), Ok(()));
    assert_eq!(mark(first, true), Ok(()), "two clients at once");
    assert!(shown(&actor).is_leaving());
    // The server knows nothing of it when it starts again.
    let again = actor.register(record(4, 6, 78));
    assert_eq!(again, Registration::Registered);
    assert!(shown(&actor).is_leaving());
    // What a client knew before is enough for the mark.
    assert_eq!(mark(shown(&actor), false), Ok(()));
    assert_eq!(mark(record(4, 5, 77), true), Ok(()), "that was said before");
    assert!(!shown(&actor).is_leaving());
    assert_eq!(mark(shown(&actor), true), Ok(()));
    let next = successor(&c, 3, 3, Dap::Abd);
    move_with_directory(&world, &actor, &next);
    world.settle();
    for member in 0..3 {
        world.crash(member);
    }
    let late = world.actor(&next);
    let last = shown(&late);
    assert!(last.is_leaving() && last.incarnation == 6, "{last:?}");
}

/// Two starts of one directory at once: at most one of them is registered.
#[test]
fn of_two_copies_of_a_server_at_most_one_is_registered() {
    let mut registered = 0;
    for seed in 0..500 {
        let c = configuration(3, Dap::Abd, 1, 0);
        let world = World::new(&c, seed);
        world.random(Chaos {
            lose: 0,
            duplicate: 50,
            pass_time: 0,
        });
        let actor = world.actor(&c);
        let copies = [1, 2].map(|start| world.spawn(actor.registering(record(0, 3, start))));
        while copies.iter().any(|copy| copy.borrow().is_none()) {
            world.step();
        }
        let won = copies
            .iter()
            .filter(|copy| *copy.borrow() == Some(Ok(Registration::Registered)))
            .count();
        assert!(won <= 1, "seed {seed}");
        registered += won;
    }
    assert!(registered > 100, "mostly one of them: {registered}");
}

/// `[R-10 one-value-per-ballot]`: a second value in a ballot could be decided beside the first.
#[test]
fn an_acceptor_takes_one_value_in_a_ballot() {
    let c = configuration(3, Dap::Abd, 1, 0);
    let world = World::new(&c, 1);
    let ballot = Ballot {
        number: 3,
        ..Ballot::default()
    };
    let accept = |value: &'static str| {
        let value = Bytes::from_static(value.as_bytes());
        step_at(&world, 0, CellRequest::Accept { ballot, value })
    };
    assert_eq!(accept("one"), CellReply::Accepted);
    let rejected = CellReply::Rejected { promised: ballot };
    assert_eq!(accept("two"), rejected);
    assert_eq!(accept("one"), CellReply::Accepted, "it came twice");
    let accepted = Some((ballot, Bytes::from_static(b"one")));
    let promised = CellReply::Promised { accepted };
    assert_eq!(step_at(&world, 0, CellRequest::Query), promised);
}
