//! MW-ABD: rounds, the conditions under which a read may skip its write-back, and that it may not without them
//! (`docs/spec` 1.1, 1.2).

use crate::world::{Actor, Message, World, configuration, name, text};
use areo_core::config::Dap;
use areo_core::dap::CachedVersion;
use areo_core::gather::Visit;
use areo_core::tag::Tag;

fn world() -> (World, Actor, Actor) {
    let c = configuration(3, Dap::Abd, 1, 0);
    let world = World::new(&c, 1);
    (world.clone(), world.actor(&c), world.actor(&c))
}

/// The quorum calls that `act` takes.
fn rounds<T>(world: &World, act: impl FnOnce() -> T) -> (usize, T) {
    let before = world.gathers();
    let output = act();
    (world.gathers() - before, output)
}

/// A version that reached the first server only; its writer gave up.
fn straggler(world: &World, writer: &Actor) -> Tag {
    world.hold(|m| m.is_put() && !m.is_reply() && m.at(&[1, 2]));
    let failed = world
        .run(writer.write("k", "straggler"))
        .expect_err("it has no quorum");
    assert!(matches!(failed, areo_core::error::WriteError::Unknown(_)));
    world.lose(Message::is_put);
    world.release();
    let held = world.held(0, "k");
    held.stored.last().expect("it reached the first server").0
}

#[test]
fn a_write_takes_two_rounds_and_a_quiet_read_one() {
    let (world, writer, reader) = world();
    assert_eq!(
        rounds(&world, || reader.get("k")),
        (1, (Tag::INITIAL, None))
    );
    let (took, tag) = rounds(&world, || writer.put("k", "v"));
    assert_eq!(took, 2);
    world.settle();
    assert_eq!(
        rounds(&world, || reader.get("k")),
        (1, (tag, Some("v".into())))
    );
}

/// `[F-1 quorum-agrees]`: replies that differ mean a write-back, after which every later read sees the version.
#[test]
fn a_version_at_fewer_than_a_quorum_is_written_back_before_it_is_returned() {
    let (world, writer, reader) = world();
    let old = writer.put("k", "old");
    world.settle();
    let new = straggler(&world, &writer);
    assert!(new > old);
    // The reader meets the one server that has it ...
    world.hold(|m| m.at(&[2]));
    assert_eq!(
        rounds(&world, || reader.get("k")),
        (2, (new, Some("straggler".into())))
    );
    world.release();
    world.settle();
    // ... so that one who does not meet it sees it too.
    world.hold(|m| m.at(&[0]));
    assert_eq!(reader.get("k"), (new, Some("straggler".into())));
}

/// Without the straggler's server the older version is the right answer: the write never completed.
#[test]
fn an_incomplete_version_that_nobody_met_may_stay_unseen() {
    let (world, writer, reader) = world();
    let old = writer.put("k", "old");
    world.settle();
    straggler(&world, &writer);
    world.hold(|m| m.at(&[0]));
    assert_eq!(reader.get("k"), (old, Some("old".into())));
}

/// Brings a version to the first two servers, whose confirmation is lost, and lets readers meet the first and the third.
fn at_two_of_three(world: &World, writer: &Actor) -> Tag {
    world.hold(|m| m.is_put() && m.at(&[2]));
    let tag = writer.put("k", "v");
    world.lose(|m| m.is_put() || m.is_note());
    world.release();
    world.hold(|m| m.at(&[1]));
    tag
}

/// `[F-2 own-puts]`: a client that brought the version to a quorum itself need not do it again; one that only sees it must.
#[test]
fn a_client_remembers_what_it_brought_to_a_quorum() {
    let (world, writer, reader) = world();
    let tag = at_two_of_three(&world, &writer);
    assert_eq!(
        rounds(&world, || writer.get("k")),
        (1, (tag, Some("v".into())))
    );
    assert_eq!(
        rounds(&world, || reader.get("k")),
        (2, (tag, Some("v".into())))
    );
    assert_eq!(
        rounds(&world, || reader.get("k")).0,
        1,
        "its write-back completed"
    );
}

/// `[F-6 puts-not-reads]`: a version that was read and not brought to a quorum is not remembered as if it had been.
#[test]
fn a_version_that_was_only_read_is_not_remembered() {
    let (world, writer, reader) = world();
    let tag = at_two_of_three(&world, &writer);
    world.hold(Message::is_put);
    assert!(
        world.run(reader.read("k")).is_err(),
        "its write-back has no quorum"
    );
    world.lose(Message::is_put);
    world.release();
    world.hold(|m| m.at(&[1]));
    assert_eq!(
        rounds(&world, || reader.get("k")),
        (2, (tag, Some("v".into())))
    );
}

/// `[F-3 confirmed-tag]`: a confirmation in one reply is enough.
#[test]
fn a_confirmed_version_is_returned_in_one_round() {
    let (world, writer, reader) = world();
    world.hold(|m| (m.is_put() && m.at(&[2])) || m.is_note());
    let tag = writer.put("k", "v");
    world.lose(Message::is_put);
    assert_eq!(world.deliver(|m| m.is_note() && m.at(&[2])), 1);
    world.release();
    world.hold(|m| m.at(&[1]) || m.is_note());
    assert_eq!(
        rounds(&world, || reader.get("k")),
        (2, (tag, Some("v".into()))),
        "the third server has not heard of the object"
    );
    let again = rounds(&world, || world.actor(&reader.c).get("k"));
    assert_eq!(
        again,
        (1, (tag, Some("v".into()))),
        "now all that answer hold it"
    );
    let (world, writer, reader) = self::world();
    at_two_of_three(&world, &writer);
    let confirm = writer.clone();
    let tag = world.held(0, "k").stored[0].0;
    areo_core::dap::confirm(
        &confirm.client().env,
        &Visit::new(&confirm.c),
        &name("k"),
        tag,
    );
    assert_eq!(world.deliver(|m| m.is_note() && m.at(&[0])), 1);
    assert_eq!(
        rounds(&world, || reader.get("k")).0,
        1,
        "one server knows that it is complete"
    );
}

/// QUERY(have): a value that the caller has is not sent (1.1, `[EC-4 known-not-sent]`).
#[test]
fn a_known_value_is_not_sent_again() {
    let (world, writer, reader) = world();
    let tag = writer.put("k", "eight ab");
    world.settle();
    let before = world.element_bytes();
    let found = world.run(reader.read("k")).unwrap();
    assert_eq!(
        world.element_bytes() - before,
        8,
        "one server is asked for the value"
    );
    let known = CachedVersion {
        tag,
        value: found.value.clone(),
    };
    let (client, c, before) = (reader.client(), reader.c.clone(), world.element_bytes());
    let again = world.run(async move { client.domain(&c).read(&name("k"), Some(&known)).await });
    assert_eq!(again.unwrap().value, found.value);
    assert_eq!(world.element_bytes(), before, "nothing was sent");
    // A newer one is.
    let known = CachedVersion {
        tag,
        value: found.value,
    };
    let newer = writer.put("k", "newer");
    world.settle();
    let (client, c) = (reader.client(), reader.c.clone());
    let found = world.run(async move { client.domain(&c).read(&name("k"), Some(&known)).await });
    let found = found.unwrap();
    assert_eq!(
        (found.tag, text(&found.value.unwrap())),
        (newer, "newer".into())
    );
}

/// Invariant I1 and idempotence (`[C-1 idempotent-handlers]`): late and repeated puts change nothing.
#[test]
fn late_and_repeated_puts_do_not_bring_an_old_version_back() {
    let (world, writer, reader) = world();
    world.hold(|m| m.is_put() && !m.is_reply() && m.at(&[0]));
    writer.put("k", "one");
    let two = writer.put("k", "two");
    world.duplicate(Message::is_put);
    world.release();
    // The puts of both writes arrive at the first server now, twice and in the wrong order as well.
    world.settle();
    assert_eq!(world.held(0, "k").stored.last().unwrap().0, two);
    assert_eq!(reader.get("k"), (two, Some("two".into())));
}

/// A status counts the tombstones of users' objects that were deleted; a key that was written again has none.
#[test]
fn tombstones_of_users_are_counted() {
    let (world, actor, _) = world();
    actor.put("a", "one");
    actor.put("b", "two");
    let counted = || [0, 1, 2].map(|number| world.status(number).tombstones);
    assert_eq!(counted(), [0; 3]);
    for key in ["a", "b"] {
        world.run(actor.delete(key)).expect("it was there");
    }
    assert_eq!(counted(), [2; 3]);
    actor.put("a", "three");
    assert_eq!(counted(), [1; 3]);
    assert_eq!(world.status(0).objects, 2);
}
