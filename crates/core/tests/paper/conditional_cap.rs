//! Members that hold as many versions of a register as they take (`[W-4 cap]`): no quorum is kept out, and nothing that was chosen goes.

use crate::world::{Message, World, configuration};
use areo_core::config::{Configuration, Dap};
use areo_core::element::{Element, Form};
use areo_core::message::{
    Access, Answer, Ballot, Lineage, Proposal, RankedVersions, Refusal, Want,
};
use areo_core::tag::{ClientId, Tag, Writer};
use bytes::Bytes;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// Proposals of these clients, and their answers, reach these members and no other one.
type Reach = Rc<RefCell<BTreeMap<ClientId, usize>>>;

/// Clients that die one after the other.
struct Deaths {
    world: World,
    c: Arc<Configuration>,
    reach: Reach,
}

impl Deaths {
    fn new(cap: usize) -> Deaths {
        let c = configuration(3, Dap::Conditional { k: 1 }, 1, 8);
        let world = World::capped(&c, 3, 1, cap);
        let reach = Reach::default();
        let of = reach.clone();
        world.hold(move |message: &Message| {
            let Some(Access::Accept(it)) = message.access() else {
                return false;
            };
            let reached = of.borrow().get(&it.ballot.proposer.client).copied();
            reached.is_some_and(|member| message.is_reply() || !message.at(&[member]))
        });
        Deaths { world, c, reach }
    }

    /// A member is down while a client writes, or reads; its proposal reaches one member.
    fn dies(&self, down: usize, reached: usize, writes: Option<&str>) {
        self.only_down(Some(down));
        let actor = self.world.actor(&self.c);
        self.reach.borrow_mut().insert(actor.client().id(), reached);
        self.world.pass(Duration::from_millis(1));
        match writes {
            Some(text) => drop(self.world.spawn(actor.write("k", text))),
            None => drop(self.world.spawn(actor.read("k"))),
        }
        self.world.settle();
        self.world.pass(Duration::from_millis(1));
    }

    fn only_down(&self, down: Option<usize>) {
        for server in 0..self.c.n() {
            match (self.world.is_up(server), Some(server) == down) {
                (true, true) => self.world.crash(server),
                (false, false) => self.world.restart(server, false),
                _ => {}
            }
        }
        self.world.settle();
    }
}

/// Writers died after they had reached one member, and readers after they had settled at one. What they left kept a quorum that was up
/// from ever reading or writing the object.
#[test]
fn what_dead_clients_left_keeps_no_quorum_out() {
    for cap in [1, 2, 4] {
        for writers in 0..6 {
            let deaths = Deaths::new(cap);
            for writer in 0..writers {
                deaths.dies(2, 1, Some(&format!("b{writer}")));
            }
            deaths.dies(1, 2, Some("s"));
            // It settles s at member 1.
            deaths.dies(0, 1, None);
            deaths.dies(1, 0, Some("z"));
            deaths.only_down(Some(2));
            let world = &deaths.world;
            let read = world.run(world.actor(&deaths.c).read("k"));
            assert!(read.is_ok(), "cap {cap}, {writers} writers: {read:?}");
            let written = world.run(world.actor(&deaths.c).write("k", "another one"));
            assert!(written.is_ok(), "cap {cap}, {writers} writers: {written:?}");
            deaths.only_down(None);
            let found = world.actor(&deaths.c).get("k").1;
            assert_eq!(found.as_deref(), Some("another one"));
        }
    }
}

fn tag(number: u64) -> Tag {
    let writer = Writer {
        client: ClientId(number),
        counter: 1,
    };
    Tag { number, writer }
}

/// Has a member accept version `number`, which follows these, the last one first.
fn accept(world: &World, at: usize, ballot: u64, version: (u64, &[u64]), settles: bool) {
    let (number, ancestors) = version;
    let mut lineage = Lineage::default();
    for number in ancestors.iter().rev() {
        lineage = lineage.followed_by(tag(*number), 0);
    }
    let content = format!("value {number}");
    let proposal = Proposal {
        ballot: Ballot {
            number: ballot,
            proposer: tag(ballot).writer,
        },
        tag: tag(number),
        element: Some(Element {
            form: Form::Copy,
            deleted: false,
            length: content.len() as u64,
            metadata: Bytes::new(),
            payload: content.into(),
            checksum: None,
        }),
        lineage,
        settles,
        base_chosen: false,
    };
    let accepted = world.access(at, "k", Access::Accept(Box::new(proposal)));
    assert_eq!(accepted, Ok(Answer::Stored), "{number} at {at}");
}

/// A quorum of four of six has accepted version 5, and no member knows that it is chosen. A version that follows it is settled at one member,
/// which is at the cap, and at no other one. Where that member dropped version 5, two answers of four listed it, of three at least that are
/// needed, and as few the other one: the object was taken for one that was never written.
#[test]
fn what_was_chosen_stays_where_a_settled_version_takes_the_place_of_others() {
    for cap in 1..=4 {
        let c = configuration(6, Dap::Conditional { k: 2 }, 1, 64);
        let world = World::capped(&c, 6, 1, cap);
        for at in 0..4 {
            accept(&world, at, 10, (5, &[]), false);
        }
        // Of writers that reached one member and died.
        for number in 11..10 + cap as u64 {
            accept(&world, 2, number, (number, &[5]), false);
        }
        for at in [0, 1] {
            accept(&world, at, 20, (6, &[5]), true);
        }
        accept(&world, 2, 30, (6, &[5]), true);
        for server in [0, 1] {
            world.crash(server);
        }
        let found = world.actor(&c).get("k").1;
        assert!(found.is_some(), "cap {cap}: {found:?}");
        // The other members come back in the place of two of these.
        world.restart(0, false);
        world.restart(1, false);
        assert_eq!(world.actor(&c).get("k").1, found, "it is chosen");
    }
}

/// The versions of the register that a member lists.
fn ranked(world: &World, at: usize) -> Result<RankedVersions, Refusal> {
    let access = Access::Rank {
        ballot: None,
        want: Want::Tags,
        have: Tag::INITIAL,
    };
    match world.access(at, "k", access)? {
        Answer::Ranked(held) => Ok(*held),
        other => panic!("{other:?}"),
    }
}

/// A writer finds a version whose base is not known to be chosen, either: it has that version chosen before it writes the next one.
#[test]
fn a_new_version_follows_a_chosen_one_or_the_next() {
    for depth in 1..=3 {
        let c = configuration(3, Dap::Conditional { k: 1 }, 1, 8);
        let world = World::of(&c, 3, 1);
        for number in 1..=depth {
            let ancestors: Vec<u64> = (1..number).rev().collect();
            accept(&world, 1, number, (number, &ancestors), false);
        }
        world.crash(2);
        let writes = world.actor(&c);
        let client = writes.client().id();
        world.hold(move |message: &Message| {
            let is_new = |it: &Proposal| it.tag.writer.client == client;
            matches!(message.access(), Some(Access::Accept(it)) if is_new(it))
        });
        let written = world.spawn(writes.write("k", "the next one"));
        world.settle();
        world.pass(Duration::from_secs(1));
        let held = ranked(&world, 0).expect("it is up");
        let is_settled = held.versions.iter().any(|it| it.tag == tag(depth));
        assert_eq!(is_settled, depth > 1, "{depth}: {held:?}");
        world.release();
        assert!(world.finish(&written).is_ok());
    }
}
