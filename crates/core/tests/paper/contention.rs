//! Readers and writers of one ranked register at once: who takes a ballot, and who does not (`[W-9 one-round-read]`, `[W-19 conflict-without-ballot]`).

use crate::world::{Actor, Message, World, configuration, text};
use areo_core::config::{Configuration, Dap};
use areo_core::dsm::coverable::CoverableOutcome;
use areo_core::error::WriteError;
use areo_core::message::{Access, Ballot};
use areo_core::tag::{ClientId, Tag};
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

fn shapes() -> [Arc<Configuration>; 3] {
    [(3, 1), (4, 2), (5, 3)].map(|(n, k)| configuration(n, Dap::Conditional { k }, 1, 8))
}

/// The ballot that this client asks a member to promise.
fn asked_by(message: &Message, client: ClientId) -> Option<Ballot> {
    match message.access() {
        Some(Access::Rank { ballot, .. }) if !message.is_reply() => {
            ballot.filter(|it| it.proposer.client == client)
        }
        _ => None,
    }
}

/// An ACCEPT of a version of its own that this client sends.
fn proposes(message: &Message, client: ClientId) -> bool {
    let is_own = |access: &Access| matches!(access, Access::Accept(it) if !it.settles && it.tag.writer.client == client);
    !message.is_reply() && message.access().is_some_and(is_own)
}

/// An object is there, and a writer of it has its ACCEPTs held as long as the cell says so.
struct Contended {
    world: World,
    writer: Actor,
    other: Actor,
    first: Tag,
    is_held: Rc<Cell<bool>>,
    /// The ballots for which the other one has asked.
    ballots: Rc<RefCell<BTreeSet<Ballot>>>,
}

impl Contended {
    fn new(c: &Arc<Configuration>) -> Contended {
        let world = World::of(c, 10, 1);
        let (writer, other) = (world.actor(c), world.actor(c));
        let first = writer.put("k", "the first value");
        world.settle();
        world.pass(Duration::from_millis(1));
        let (is_held, ballots) = (Rc::new(Cell::new(true)), Rc::default());
        let (held, asked) = (is_held.clone(), Rc::clone(&ballots));
        let (of_writer, of_other) = (writer.client().id(), other.client().id());
        world.hold(move |m| {
            let asked: &RefCell<BTreeSet<Ballot>> = &asked;
            asked.borrow_mut().extend(asked_by(m, of_other));
            held.get() && proposes(m, of_writer)
        });
        Contended {
            world,
            writer,
            other,
            first,
            is_held,
            ballots,
        }
    }

    /// The writer's proposal has come to as many members as make its version current, and not to a quorum.
    fn propose(&self, c: &Configuration) -> Rc<RefCell<Option<Result<Tag, WriteError>>>> {
        let written = self.writer.write("k", "the second value");
        let written = self.world.spawn(written);
        self.world.settle();
        let of_writer = self.writer.client().id();
        let shared = 0..c.quorums().intersection();
        let members: Vec<usize> = shared.collect();
        self.world
            .deliver(|m| m.at(&members) && proposes(m, of_writer));
        self.world.settle();
        written
    }
}

/// A read that meets a proposal waits for the end of it, and takes no ballot.
#[test]
fn a_read_does_not_overtake_a_proposal() {
    for c in shapes() {
        let contended = Contended::new(&c);
        let Contended { world, other, .. } = &contended;
        let written = contended.propose(&c);
        let read = world.spawn(other.read("k"));
        world.settle();
        contended.is_held.set(false);
        world.release();
        let written = world
            .finish(&written)
            .expect("no other ballot is asked for");
        let found = world.finish(&read).expect("a quorum answers");
        assert!(found.tag == written || found.tag == contended.first);
        assert_eq!(contended.ballots.borrow().len(), 0, "{c:?}");
    }
}

/// The proposer is gone: a read has what it left decided, and ends.
#[test]
fn a_read_does_not_wait_for_a_proposer_that_is_gone() {
    for c in shapes() {
        let contended = Contended::new(&c);
        let Contended { world, other, .. } = &contended;
        contended.propose(&c);
        let of_writer = contended.writer.client().id();
        world.lose(|m| proposes(m, of_writer));
        // Those that stay are a quorum, and all are asked.
        let away = c.n() - c.quorums().quorum();
        for member in c.n() - away..c.n() {
            world.crash(member);
        }
        let found = world.run(other.read("k")).expect("a quorum answers");
        assert!(found.tag >= contended.first);
        assert_eq!(contended.ballots.borrow().len(), 1, "{c:?}");
    }
}

/// A conditional write that was overtaken, and that has lost meanwhile, takes no second ballot to say so.
#[test]
fn who_has_lost_takes_no_other_ballot() {
    for c in shapes() {
        let contended = Contended::new(&c);
        let Contended { world, other, .. } = &contended;
        let of_other = other.client().id();
        let is_late = Rc::new(Cell::new(true));
        let (late, ballots) = (is_late.clone(), Rc::clone(&contended.ballots));
        contended.is_held.set(false);
        world.hold(move |m| {
            let asked = asked_by(m, of_other);
            ballots.borrow_mut().extend(asked);
            late.get() && asked.is_some()
        });
        let lost = world.spawn(other.cover("k", "a value that loses", contended.first));
        world.settle();
        world.pass(Duration::from_millis(1));
        let won = contended.writer.put("k", "the second value");
        world.settle();
        is_late.set(false);
        world.deliver(|m| asked_by(m, of_other).is_some());
        match world.finish(&lost) {
            Ok(CoverableOutcome::Unchanged(found)) => assert_eq!(found.tag, won),
            ended => panic!("{c:?}: {ended:?}"),
        }
        assert_eq!(contended.ballots.borrow().len(), 1, "{c:?}");
    }
}

/// Clients that count one object up, each by reading it and writing on the version that it read, again until that succeeds. The figures of
/// `docs/decisions/0084-readers-and-losers-take-no-ballot.md` are what this prints (`--nocapture`).
#[allow(clippy::disallowed_macros)] // a test may print
#[test]
fn many_count_one_object_up() {
    let c = configuration(3, Dap::Conditional { k: 1 }, 1, 8);
    for (clients, increments) in [(1, 200), (8, 40), (64, 6)] {
        let world = World::of(&c, 3, 1);
        // Messages take between 0.1 and 0.5 ms.
        world.latency(Duration::from_micros(100));
        world.jitter(Duration::from_micros(400));
        world.actor(&c).put("k", "0");
        let begun = (world.now(), world.gathers());
        let counts: Vec<_> = (0..clients)
            .map(|_| {
                let actor = world.actor(&c);
                world.spawn(async move {
                    for _ in 0..increments {
                        count_up(&actor).await;
                    }
                })
            })
            .collect();
        for count in &counts {
            world.finish(count);
        }
        let all = clients * increments;
        let counted = world.actor(&c).get("k").1.expect("it is there");
        let seconds = world.now().since(begun.0).as_secs_f64();
        let rounds = (world.gathers() - begun.1) as f64 / f64::from(all);
        println!(
            "{clients} clients: {:.0} increments/s, {rounds:.1} rounds each",
            f64::from(all) / seconds
        );
        assert_eq!(counted, all.to_string(), "none is lost or doubled");
    }
}

async fn count_up(actor: &Actor) {
    loop {
        let Ok(found) = actor.read("k").await else {
            continue;
        };
        let count: u32 = text(&found.value.expect("it is there"))
            .parse()
            .expect("it is a number");
        let put = actor.cover("k", &(count + 1).to_string(), found.tag).await;
        match put {
            Ok(CoverableOutcome::Changed(_)) => return,
            Ok(CoverableOutcome::Unchanged(_)) | Err(WriteError::NotApplied(_)) => {}
            Err(WriteError::Unknown(why)) => panic!("all members are up: {why:?}"),
        }
    }
}
