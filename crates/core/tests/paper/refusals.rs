//! The fate of a ranked register's proposal that members refused, as its writer learns it (`[W-6 ancestors]`, `[W-15 conclusive-refusal]`).

use crate::world::{Actor, Message, World, configuration};
use areo_core::config::{Configuration, Dap};
use areo_core::dsm::coverable::CoverableOutcome;
use areo_core::error::{Obstacle, WriteError};
use areo_core::message::{Access, Ballot, Want};
use areo_core::tag::{ClientId, Tag, Writer};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// More than versions say of their ancestors.
const MANY: usize = 20;

fn shapes() -> [Arc<Configuration>; 3] {
    [(3, 1), (4, 2), (5, 3)].map(|(n, k)| configuration(n, Dap::Conditional { k }, 1, 8))
}

/// An ACCEPT of a version of its own that this client sends.
fn proposes(message: &Message, client: ClientId) -> bool {
    let is_own = |access: &Access| matches!(access, Access::Accept(it) if !it.settles && it.tag.writer.client == client);
    !message.is_reply() && message.access().is_some_and(is_own)
}

/// A PREPARE that it sends.
fn prepares(message: &Message, client: ClientId) -> bool {
    let is_own = |access: &Access| matches!(access, Access::Rank { ballot: Some(it), .. } if it.proposer.client == client);
    !message.is_reply() && message.access().is_some_and(is_own)
}

/// Two writers, of which each has its messages held as long as the cell says so.
struct Meeting {
    world: World,
    late: Actor,
    other: Actor,
    first: Tag,
    late_is_held: Rc<Cell<bool>>,
    other_is_held: Rc<Cell<bool>>,
}

impl Meeting {
    /// The object is there; ACCEPTs of both are held, and PREPAREs of the one that is late once `late_is_held`.
    fn new(c: &Arc<Configuration>) -> Meeting {
        let world = World::of(c, 10, 1);
        let (late, other) = (world.actor(c), world.actor(c));
        let first = other.put("k", "the first value");
        world.settle();
        world.pass(Duration::from_millis(1));
        let (late_is_held, other_is_held) = (Rc::new(Cell::new(false)), Rc::new(Cell::new(true)));
        let (of_late, of_other) = (late.client().id(), other.client().id());
        let (prepares_are_held, others_are_held) = (late_is_held.clone(), other_is_held.clone());
        world.hold(move |m| {
            let is_late = prepares_are_held.get() && prepares(m, of_late);
            proposes(m, of_late) || is_late || (others_are_held.get() && proposes(m, of_other))
        });
        Meeting {
            world,
            late,
            other,
            first,
            late_is_held,
            other_is_held,
        }
    }

    fn parts(&self) -> (&World, &Actor, &Actor) {
        (&self.world, &self.late, &self.other)
    }

    /// The late one writes on the first version, and comes to its ACCEPTs.
    fn write_late(&self) -> Rc<RefCell<Option<Result<CoverableOutcome, WriteError>>>> {
        let write = self.late.cover("k", "the late value", self.first);
        let write = self.world.spawn(write);
        self.world.settle();
        write
    }

    /// The ACCEPTs of the late one get to these members.
    fn propose(&self, to: impl Fn(usize) -> bool) {
        let late = self.late.client().id();
        let to = |m: &Message| (0..10).any(|member| to(member) && m.at(&[member]));
        self.world.deliver(|m| proposes(m, late) && to(m));
        self.world.settle();
    }

    /// Lets everything go on until the late write has ended.
    fn end<T>(&self, late: &RefCell<Option<T>>) -> T {
        self.late_is_held.set(false);
        self.other_is_held.set(false);
        self.world.release();
        self.world.finish(late)
    }
}

/// `[W-15 conclusive-refusal]`: all members have promised another ballot before the proposal came. Its writer stands still while many
/// versions follow, and knows all the same that it was not written.
#[test]
fn what_all_members_refuse_is_forgotten() {
    for c in shapes() {
        let meeting = Meeting::new(&c);
        let (world, _, other) = meeting.parts();
        let write = meeting.write_late();
        world.pass(Duration::from_millis(1));
        let written = world.spawn(other.write("k", "another value"));
        world.settle();
        meeting.late_is_held.set(true);
        meeting.propose(|_| true);
        meeting.other_is_held.set(false);
        assert!(world.finish(&written).is_ok());
        for _ in 0..MANY {
            other.put("k", "a later value");
        }
        let ended = meeting.end(&write);
        let is_conflict = matches!(ended, Ok(CoverableOutcome::Unchanged(_)));
        assert!(is_conflict, "{c:?}: {ended:?}");
    }
}

/// A proposal that as many members as two quorums share have accepted is written, although the other members refused
/// it: the other writer has found it with these members.
#[test]
fn what_the_next_writer_may_find_is_not_forgotten() {
    for c in shapes() {
        let meeting = Meeting::new(&c);
        let (world, late, other) = meeting.parts();
        let shared = c.quorums().intersection();
        let write = meeting.write_late();
        meeting.propose(|member| member < shared);
        world.pass(Duration::from_millis(1));
        let written = world.spawn(other.write("k", "another value"));
        world.settle();
        meeting.propose(|member| member >= shared);
        let ended = meeting.end(&write);
        let Ok(CoverableOutcome::Changed(tag)) = ended else {
            panic!("{c:?}: {ended:?}");
        };
        let Ok(after) = world.finish(&written) else {
            panic!("nothing keeps it out");
        };
        assert!(after > tag, "it follows the one that it found");
        assert_eq!(late.get("k"), (after, Some("another value".to_owned())));
    }
}

/// An ACCEPT that comes twice: its version was chosen, another one followed, and then all members refuse it. Its writer has not heard of the
/// acknowledgements, and does not take the refusals for the whole story.
#[test]
fn what_was_accepted_before_it_was_refused_is_not_forgotten() {
    for c in shapes() {
        let meeting = Meeting::new(&c);
        let (world, late, other) = meeting.parts();
        let write = meeting.write_late();
        let writer = late.client().id();
        let again = world.set_aside(|m| proposes(m, writer));
        world.put_back(again.clone());
        world.deliver(|m| proposes(m, writer));
        world.lose(Message::is_proposal);
        meeting.other_is_held.set(false);
        world.pass(Duration::from_millis(1));
        let after = other.put("k", "a later value");
        world.settle();
        world.put_back(again);
        meeting.propose(|_| true);
        let ended = meeting.end(&write);
        let is_written = matches!(ended, Ok(CoverableOutcome::Changed(tag)) if tag < after);
        assert!(is_written, "{c:?}: {ended:?}");
    }
}

/// `[W-6 ancestors]`: one member has accepted the proposal, so that it may be chosen yet. Each attempt meets a larger ballot while versions
/// come, in the end more than say what became of it. Its writer has asked in time.
#[test]
fn a_writer_that_is_kept_out_asks_what_became_of_its_version() {
    let c = configuration(3, Dap::Conditional { k: 1 }, 1, 8);
    let meeting = Meeting::new(&c);
    let (world, late, other) = meeting.parts();
    let write = meeting.write_late();
    world.pass(Duration::from_millis(1));
    let of_other = other.client().id();
    world.hold(move |m| m.at(&[0]) && prepares(m, of_other));
    let written = world.spawn(other.write("k", "another value"));
    world.settle();
    meeting.late_is_held.set(true);
    meeting.propose(|_| true);
    meeting.other_is_held.set(false);
    assert!(world.finish(&written).is_ok());
    let writer = late.client().id();
    for _ in 0..8 {
        while write.borrow().is_none() && world.in_flight(|m| prepares(m, writer)) == 0 {
            assert!(
                world.step(),
                "it tries again, or has heard that it has lost"
            );
        }
        world.pass(Duration::from_millis(1));
        for _ in 0..3 {
            other.put("k", "a later value");
        }
        world.deliver(|m| prepares(m, writer));
        world.settle();
    }
    let ended = meeting.end(&write);
    let is_conflict = matches!(ended, Ok(CoverableOutcome::Unchanged(_)));
    assert!(is_conflict, "{ended:?}");
}

/// A proposal is not lost when a version is chosen below its ballot: one member has accepted the proposal, and the others, which are asked
/// in a pause, show the version before. A writer that took this for the end called its write a conflict with itself.
#[test]
fn what_is_chosen_below_its_proposal_says_nothing_of_it() {
    let c = configuration(3, Dap::Conditional { k: 1 }, 1, 8);
    let meeting = Meeting::new(&c);
    let (world, late, _) = meeting.parts();
    let write = meeting.write_late();
    world.pass(Duration::from_millis(1));
    // Members 1 and 2 promise larger ballots, of a client of which nothing more is heard.
    let promise = |number: u64| {
        for member in [1, 2] {
            let proposer = Writer {
                client: ClientId(77),
                counter: number,
            };
            let access = Access::Rank {
                ballot: Some(Ballot { number, proposer }),
                want: Want::Tags,
                have: Tag::INITIAL,
            };
            assert!(world.access(member, "k", access).is_ok());
        }
    };
    promise(1 << 40);
    meeting.late_is_held.set(true);
    meeting.propose(|_| true);
    world.crash(0);
    let writer = late.client().id();
    for attempt in 1..8 {
        while world.in_flight(|m| prepares(m, writer)) == 0 {
            assert!(world.step(), "it tries again");
        }
        promise((1 << 40) + (attempt << 20));
        world.deliver(|m| prepares(m, writer));
        world.settle();
    }
    while world.in_flight(|m| prepares(m, writer)) == 0 {
        assert!(world.step(), "it tries again");
    }
    world.restart(0, false);
    world.crash(1);
    let ended = meeting.end(&write);
    assert!(
        matches!(ended, Ok(CoverableOutcome::Changed(_))),
        "{ended:?}"
    );
}

/// Clients that write one object at the same time, each many times: where all members are up, each of them knows what it has
/// written. The figures of `docs/conditional.md` are what this prints (`--nocapture`).
#[allow(clippy::disallowed_macros)] // a test may print
#[test]
fn of_many_that_write_one_object_none_ends_as_unknown() {
    let c = configuration(3, Dap::Conditional { k: 1 }, 1, 8);
    for (clients, puts) in [(1, 200), (8, 200), (64, 40)] {
        let world = World::of(&c, 3, 1);
        // Messages take between 0.1 and 0.5 ms.
        world.latency(Duration::from_micros(100));
        world.jitter(Duration::from_micros(400));
        let ended: Vec<_> = (0..clients)
            .map(|_| {
                let actor = world.actor(&c);
                world.spawn(async move {
                    let mut ended = Vec::new();
                    for put in 0..puts {
                        ended.push(actor.write("k", &format!("value {put}")).await);
                    }
                    ended
                })
            })
            .collect();
        let ended: Vec<_> = ended.iter().flat_map(|of| world.finish(of)).collect();
        let written = ended.iter().filter(|it| it.is_ok()).count();
        let is_outrun = |it: &&Result<Tag, WriteError>| matches!(it, Err(WriteError::Unknown(why)) if matches!(why.obstacle.as_deref(), Some(Obstacle::Outrun(_))));
        let outrun = ended.iter().filter(is_outrun).count();
        let (seconds, rounds) = (world.now().0 as f64 / 1e9, world.gathers());
        println!(
            "{clients} clients: {written} of {} written, {outrun} unknown, {:.0} puts/s, {:.1} rounds each",
            ended.len(),
            written as f64 / seconds,
            rounds as f64 / ended.len() as f64
        );
        assert_eq!(outrun, 0, "{clients} clients");
        assert!(written > 0 && (clients > 8 || written == ended.len()));
    }
}
