//! Two decisions for one index are an alarm, never a silent fork: each index is decided once (`docs/spec`
//! `[A-2 pointers-rise]`, `[X-13 highest-final]`), so that something forgot. Members keep what they know, and who sees both
//! names both.

use super::{announce, reconfigure, resume};
use crate::world::{Actor, Message, World, configuration, server, successor};
use areo_core::config::{Configuration, Dap, Descriptor};
use areo_core::error::{Obstacle, Unavailable, WriteError};
use areo_core::message::{Body, Note, Refusal, Reply, Request};
use areo_core::pointer::{Fork, Pointer, Successors};
use areo_core::reconfig::ReconfigError;
use std::sync::Arc;

const SERVICE: &str = "etcd=a:1,b:2";

fn world() -> (World, Arc<Configuration>, Actor) {
    let descriptor = Descriptor {
        decided_by: SERVICE.parse().expect("it names a service"),
        ..configuration(3, Dap::Abd, 1, 8).descriptor().clone()
    };
    let c = Configuration::new(descriptor).expect("a valid descriptor");
    let world = World::of(&c, 9, 1);
    let actor = world.actor(&c);
    actor.put("k", "v");
    world.settle();
    (world, c, actor)
}

/// True if this is a fork of the two, in whichever order they were seen.
fn is_fork(failed: &Unavailable, both: &[Arc<Configuration>; 2]) -> bool {
    let Some(Obstacle::Forked(Fork { configurations })) = failed.obstacle.as_deref() else {
        return false;
    };
    let [first, second] = both;
    *configurations == [first.clone(), second.clone()]
        || *configurations == [second.clone(), first.clone()]
}

/// The successor that a server shows, when this pointer is in the request's envelope.
fn next(
    world: &World,
    number: usize,
    c: &Arc<Configuration>,
    pointer: Option<Pointer>,
) -> Result<Option<Pointer>, Refusal> {
    let request = Request::Configured {
        configuration: c.id(),
        descriptor: None,
        successors: pointer.into(),
        body: Body::ReadConfig,
    };
    let shown = world.ask(number, request)?.open().0;
    Ok(shown.nearest().cloned())
}

/// The service decides one successor, and one member hears of it; then the service loses its data and decides another. The
/// second reconfigurer, the first one when it goes on, and every read and write that meets both end at once and name both.
#[test]
fn a_service_that_forgets_is_an_alarm() {
    for (heard, silent) in [(0, 1), (1, 2), (2, 0)] {
        let (world, c, actor) = world();
        let both = [
            successor(&c, 3, 3, Dap::Abd),
            successor(&c, 6, 3, Dap::Ec { k: 1 }),
        ];
        world.hold(move |m| m.is_config() && !m.is_reply() && !m.at(&[heard]));
        // So that it learns that nothing comes after it.
        world.settle();
        let first = world.actor(&c);
        let decided = |at: &World| !at.outside().decided.is_empty();
        world.release();
        let change = world.spawn(reconfigure(first.client(), &c, &both[0]));
        while !decided(&world) {
            assert!(world.step(), "it asks the service");
        }
        world.hold(move |m| m.is_config() && !m.is_reply() && !m.at(&[heard]));
        world.settle();
        assert!(change.borrow().is_none(), "one member is no quorum");
        world.lose(Message::is_config);
        world.release();

        world.outside().decided.clear();
        let second = world.actor(&c);
        world.hold(move |m| m.at(&[heard]));
        let change = world.spawn(reconfigure(second.client(), &c, &both[1]));
        while !decided(&world) {
            assert!(world.step(), "it asks the service");
        }
        // One of the others is slow, so that the member that knows better is heard.
        world.release();
        world.hold(move |m| m.at(&[silent]) && m.is_reply());
        world.settle();
        let ended = change.borrow_mut().take();
        let Some(Err(ReconfigError::Pending(failed))) = ended else {
            panic!("{ended:?}")
        };
        assert!(is_fork(&failed, &both), "{failed}");
        world.release();
        world.settle();

        // Each member kept what it had heard first.
        for number in 0..3 {
            let kept = next(&world, number, &c, None).expect("it answers");
            let expected = &both[usize::from(number != heard)];
            assert_eq!(kept, Some(Pointer::pending(expected)), "{number}");
        }
        world.hold(move |m| m.at(&[silent]));
        let ended = world.run(resume(world.actor(&c).client(), &c));
        let Err(ReconfigError::NotBegun(failed)) = ended else {
            panic!("{ended:?}")
        };
        assert!(is_fork(&failed, &both), "{failed}");
        let read = world.run(world.actor(&c).read("k"));
        let Err(failed) = read else {
            panic!("{read:?}")
        };
        assert!(is_fork(&failed, &both), "{failed}");
        let write = world.run(actor.write("k", "w"));
        let Err(WriteError::NotApplied(failed)) = write else {
            panic!("{write:?}")
        };
        assert!(is_fork(&failed, &both), "{failed}");
    }
}

/// `[X-9 honest-outcome]`: a write that meets the fork after it was sent is unknown.
#[test]
fn a_write_that_meets_a_fork_after_it_was_sent_is_unknown() {
    let (world, c, actor) = world();
    let both = [successor(&c, 3, 3, Dap::Abd), successor(&c, 6, 3, Dap::Abd)];
    world.hold(Message::is_put);
    let write = world.spawn(actor.write("k", "w"));
    world.settle();
    for (number, c_next) in both.iter().enumerate() {
        let pointer = Some(Pointer::pending(c_next));
        next(&world, number, &c, pointer).expect("it knows no other");
    }
    world.release();
    world.hold(|m| m.at(&[2]));
    world.settle();
    let ended = write.borrow_mut().take();
    let Some(Err(WriteError::Unknown(failed))) = ended else {
        panic!("{ended:?}")
    };
    assert!(is_fork(&failed, &both), "{failed}");
}

/// A client that has gone on to one of the two does not go to the other, for no answer of a server.
#[test]
fn a_client_that_knows_one_does_not_go_to_the_other() {
    let (world, c, actor) = world();
    let both = [successor(&c, 0, 3, Dap::Abd), successor(&c, 6, 3, Dap::Abd)];
    announce(&world, &c, &Pointer::pending(&both[0]));
    assert_eq!(actor.get("k").1.as_deref(), Some("v"));
    world.bend_replies({
        let (c, other) = (both[0].clone(), both[1].clone());
        move |from, reply| {
            if let Reply::Next { successors, .. } = reply
                && successors.iter().all(|pointer| pointer.configuration == c)
                && from != server(9)
            {
                *successors = Successors::from(&Pointer::finalized(&other));
            }
        }
    });
    let read = world.run(actor.read("k"));
    let Err(failed) = read else {
        panic!("{read:?}")
    };
    assert!(is_fork(&failed, &both), "{failed}");
}

/// A member refuses a second successor, in whichever message it comes, and keeps the first one.
#[test]
fn a_member_keeps_the_first_and_refuses_the_other() {
    for status in [Pointer::pending, Pointer::finalized] {
        let (world, c, _) = world();
        let both = [successor(&c, 0, 3, Dap::Abd), successor(&c, 6, 3, Dap::Abd)];
        let known = status(&both[0]);
        assert_eq!(
            next(&world, 0, &c, Some(known.clone())),
            Ok(Some(known.clone()))
        );
        for other in [Pointer::pending(&both[1]), Pointer::finalized(&both[1])] {
            let refused = next(&world, 0, &c, Some(other.clone()));
            assert_eq!(refused, Err(Refusal::Forked));
            let configuration = c.id();
            let pointer = other;
            world.tell(
                0,
                Note::Next {
                    configuration,
                    pointer,
                },
            );
            assert_eq!(next(&world, 0, &c, None), Ok(Some(known.clone())));
        }
        let id = c.id();
        let latest = |known: Option<&Arc<Configuration>>| {
            let request = Request::Latest {
                domain: id.domain,
                partition: id.partition,
                known: known.cloned(),
            };
            world.ask(0, request)
        };
        let is_final = known.is_final();
        let expected = is_final.then(|| both[0].clone());
        if is_final {
            assert_eq!(latest(Some(&both[1])), Err(Refusal::Forked));
        }
        assert_eq!(latest(None), Ok(Reply::Latest(expected)));
        // It is a member of the first: asked as one of the other, it refuses too.
        let as_member = Request::Configured {
            configuration: both[0].id(),
            descriptor: Some(both[0].clone()),
            successors: Successors::default(),
            body: Body::ReadConfig,
        };
        assert_eq!(world.ask(0, as_member), Ok(Reply::Config));
        let other = successor(&c, 0, 4, Dap::Abd);
        let as_another = Request::Configured {
            configuration: other.id(),
            descriptor: Some(other.clone()),
            successors: Successors::default(),
            body: Body::ReadConfig,
        };
        assert_eq!(world.ask(0, as_another), Err(Refusal::Forked));
    }
}
