//! Coverable objects: a write succeeds on the newest version or reads it, over replication and erasure coding and over
//! several configurations; and how weak that is (`docs/spec` 1.3, 4.1; `[V-1 weak-coverability]` to
//! `[V-3 read-after-unknown]`, `[K-1 no-data-if-current]` to `[K-4 unchanged-is-read]`).

use crate::paper::reconfiguration::{announce, reconfigure};
use crate::world::{Actor, Message, World, configuration, successor, text};
use areo_core::config::Dap;
use areo_core::dsm::coverable::CoverableOutcome;
use areo_core::error::WriteError;
use areo_core::pointer::Pointer;
use areo_core::tag::{ClientId, Tag, Writer};

const DAPS: [Dap; 2] = [Dap::Abd, Dap::Ec { k: 3 }];

fn world(dap: Dap) -> (World, Actor, Actor) {
    let c = configuration(5, dap, 1, 8);
    let world = World::of(&c, 10, 1);
    (world.clone(), world.actor(&c), world.actor(&c))
}

/// The version that a coverable write read instead of writing.
fn unchanged(world: &World, actor: &Actor, version: Tag) -> (Tag, Option<String>) {
    match world.run(actor.cover("k", "this is not to be written", version)) {
        Ok(CoverableOutcome::Unchanged(found)) => (found.tag, found.value.as_ref().map(text)),
        other => panic!("{other:?}: {version} is not the newest"),
    }
}

#[test]
fn a_write_on_the_newest_version_succeeds_and_others_read_it() {
    for dap in DAPS {
        let (world, a, b) = world(dap);
        let first = a.change("k", "the first value", Tag::INITIAL);
        world.settle();
        let second = b.change("k", "the second value", first);
        assert_eq!(second.number, 2, "one more than what it covers");
        world.settle();
        let newest = (second, Some("the second value".to_owned()));
        assert_eq!(unchanged(&world, &a, first), newest);
        assert_eq!(unchanged(&world, &a, Tag::INITIAL), newest);
        assert_eq!(a.get("k"), newest, "nothing was written");
        a.change("k", "the third value", second);
    }
}

/// `[K-1 no-data-if-current]`, and the rounds of 1.3: two for a change, one for a write that reads.
#[test]
fn who_is_up_to_date_receives_no_data() {
    for dap in DAPS {
        let (world, a, b) = world(dap);
        let mut version = a.change("k", "a value of some length", Tag::INITIAL);
        world.settle();
        let (rounds, bytes) = (world.gathers(), world.element_bytes());
        let tag = b.change("k", "another of some length", version);
        assert_eq!(world.gathers() - rounds, 2);
        assert_eq!(world.element_bytes(), bytes, "no reply carried an element");
        let rounds = world.gathers();
        unchanged(&world, &a, version);
        assert_eq!(world.gathers() - rounds, 1, "[K-4 unchanged-is-read]");
        version = tag;
        assert_eq!(a.get("k").0, version);
    }
}

/// `[V-1 weak-coverability]`: both have read the same version, neither sees the other, both succeed.
/// The larger version prevails; nothing is ever based on the other, and its writer never learns it.
#[test]
fn two_concurrent_writes_of_one_version_may_both_succeed() {
    for dap in DAPS {
        let (world, alice, bob) = world(dap);
        let read = alice.put("k", "what both have read");
        world.settle();
        world.hold(|m| m.is_put() && !m.is_reply());
        let writes = [(&alice, "by alice"), (&bob, "by bob")]
            .map(|(actor, text)| world.spawn(actor.cover("k", text, read)));
        world.settle();
        world.release();
        world.settle();
        let won = writes.map(|write| match write.borrow_mut().take() {
            Some(Ok(CoverableOutcome::Changed(tag))) => tag,
            other => panic!("{other:?}: neither saw the other"),
        });
        assert_eq!(won.map(|tag| tag.number), [read.number + 1; 2]);
        let prevails = match won[0] > won[1] {
            true => (won[0], Some("by alice".to_owned())),
            false => (won[1], Some("by bob".to_owned())),
        };
        assert_eq!(alice.get("k"), prevails);
        // From now on the other one covers nothing.
        let lost = won[0].min(won[1]);
        assert_eq!(unchanged(&world, &alice, lost), prevails);
        assert_eq!(unchanged(&world, &bob, read), prevails);
    }
}

/// A version that the object never had is no version of it, however large.
#[test]
fn a_version_of_another_object_covers_nothing() {
    for dap in DAPS {
        let (world, a, b) = world(dap);
        let ours = a.put("k", "our value");
        let mut other = a.put("other", "a value");
        for _ in 0..3 {
            other = a.put("other", "a value");
        }
        world.settle();
        assert!(other > ours);
        let newest = (ours, Some("our value".to_owned()));
        assert_eq!(unchanged(&world, &b, other), newest);
        let invented = Tag {
            number: 1,
            writer: Writer {
                client: ClientId(1),
                counter: 1,
            },
        };
        for version in [invented.min(ours), Tag { number: 9, ..ours }] {
            assert_eq!(unchanged(&world, &b, version), newest);
        }
        let missing = b.cover("nobody wrote this", "a value", ours);
        let Ok(CoverableOutcome::Unchanged(found)) = world.run(missing) else {
            panic!("it has no version yet")
        };
        assert_eq!((found.tag, found.value), (Tag::INITIAL, None));
    }
}

/// `[K-2 all-configurations]`: a newer version in the pending configuration is found there; one that is only in the old one,
/// before the transfer, as well.
#[test]
fn the_newest_version_is_that_of_all_configurations() {
    for (from, to) in DAPS.into_iter().zip([DAPS[1], DAPS[0]]) {
        let (world, a, b) = world(from);
        let old = a.put("k", "in the old configuration");
        world.settle();
        let next = successor(&a.c, 5, 5, to);
        announce(&world, &a.c, &Pointer::pending(&next));
        // Not transferred yet: the pending one has nothing.
        let new = a.change("k", "in the pending one", old);
        world.settle();
        let newest = (new, Some("in the pending one".to_owned()));
        assert_eq!(world.actor(&next).get("k"), newest);
        assert_eq!(unchanged(&world, &b, old), newest);
        let newer = b.change("k", "again in the pending one", new);
        world
            .run(reconfigure(a.client(), &a.c, &next))
            .expect("a quorum is there");
        world.settle();
        let newest = (newer, Some("again in the pending one".to_owned()));
        for actor in [&a, &b, &world.actor(&a.c)] {
            assert_eq!(unchanged(&world, actor, new), newest);
        }
        a.change("k", "in the new configuration", newer);
    }
}

/// `[K-3 held-pairs-only]`: the old members withhold what they have once the next configuration is final. The write decides
/// there, on what is really held.
#[test]
fn a_withheld_version_decides_nothing() {
    for dap in DAPS {
        let (world, a, late) = world(dap);
        let version = a.put("k", "moved with the domain");
        world.settle();
        let next = successor(&a.c, 5, 5, dap);
        world
            .run(reconfigure(a.client(), &a.c, &next))
            .expect("a quorum is there");
        world.settle();
        // This client knows only the old configuration.
        let rounds = world.gathers();
        let tag = late.change("k", "written by a late-comer", version);
        assert!(world.gathers() - rounds <= 3, "one hop");
        assert_eq!((tag.number, late.get("k").0), (2, tag));
    }
}

/// `[V-3 read-after-unknown]`: a writer that does not know the outcome has to read. If it took effect, writing again
/// on the old version reads the own value.
#[test]
fn after_an_unknown_outcome_the_next_write_reads() {
    let (world, a, b) = world(Dap::Abd);
    let old = a.put("k", "old");
    world.settle();
    world.hold(|m| m.is_put() && m.is_reply());
    let failed = world.run(a.cover("k", "did it arrive?", old));
    assert!(matches!(failed, Err(WriteError::Unknown(_))), "{failed:?}");
    world.release();
    world.settle();
    let (tag, value) = unchanged(&world, &a, old);
    assert_eq!(value.as_deref(), Some("did it arrive?"));
    assert_eq!(b.get("k").0, tag);
    world.crash(0);
    world.crash(1);
    world.crash(2);
    let failed = world.run(a.cover("k", "nobody is there", tag));
    assert!(
        matches!(failed, Err(WriteError::NotApplied(_))),
        "{failed:?}"
    );
}

/// An incomplete version that the write met is read like by a read: written back, because others may not have met it.
#[test]
fn an_incomplete_version_is_written_back_before_it_is_returned() {
    let (world, a, b) = world(Dap::Abd);
    let old = a.put("k", "old");
    world.settle();
    world.hold(|m| m.is_put() && !m.is_reply() && m.at(&[1, 2, 3, 4]));
    let failed = world.run(a.cover("k", "straggler", old));
    assert!(matches!(failed, Err(WriteError::Unknown(_))), "{failed:?}");
    world.lose(Message::is_put);
    world.release();
    world.hold(|m| m.at(&[3, 4]));
    let (tag, value) = unchanged(&world, &b, old);
    assert_eq!(value.as_deref(), Some("straggler"));
    world.release();
    world.settle();
    world.hold(|m| m.at(&[0]));
    assert_eq!(b.get("k").0, tag);
}
