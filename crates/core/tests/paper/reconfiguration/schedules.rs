//! Operations between configurations: what is known already, what is listed, what is confirmed, what is never moved
//! (`docs/spec` 1.2, 3.5, 10.5; schedules of section 8).

use super::{announce, move_to, reconfigure, resume};
use crate::world::{Actor, Content, Message, World, configuration, name, successor, text};
use areo_core::config::{Collect, Configuration, Dap, Descriptor, Options};
use areo_core::dap::{CachedVersion, FoundVersion};
use areo_core::message::Note;
use areo_core::pointer::Pointer;
use areo_core::reconfig::ReconfigOutcome;
use areo_core::reconfig::sequence;
use areo_core::tag::Tag;
use std::sync::Arc;

/// Kinds whose members learn from notes which versions are at a quorum.
const DAPS: [Dap; 2] = [Dap::Abd, Dap::Ec { k: 2 }];
/// The kinds under test: copies, fragments, and a kind with a finalizing round.
const KINDS: [Dap; 3] = [Dap::Abd, Dap::Ec { k: 2 }, Dap::CasGc { k: 2 }];

fn with(collect: Collect, dap: Dap) -> Arc<Configuration> {
    let options = Options {
        collect,
        ..Options::default()
    };
    let descriptor = Descriptor {
        options,
        ..configuration(4, dap, 3, 0).descriptor().clone()
    };
    Configuration::new(descriptor).expect("options change nothing else")
}

/// Announces `next` as pending, and nothing more.
fn pend(world: &World, c: &Arc<Configuration>, next: &Arc<Configuration>) {
    announce(world, c, &Pointer::pending(next));
}

fn read_knowing(world: &World, actor: &Actor, found: &FoundVersion) -> FoundVersion {
    let known = CachedVersion {
        tag: found.tag,
        value: found.value.clone(),
    };
    let (client, c) = (actor.client(), actor.c.clone());
    let read = async move { client.domain(&c).read(&name("k"), Some(&known)).await };
    world.run(read).expect("a quorum is up")
}

/// `[A-5 withheld-hop]`: what a pending configuration was asked ahead, and answered before the transfer, does not count where the
/// configuration before it withholds the object.
#[test]
fn what_was_answered_ahead_of_the_transfer_does_not_count() {
    let c = with(Collect::On, Dap::Abd);
    let next = successor(&c, 4, 4, Dap::Abd);
    let world = World::of(&c, 8, 1);
    world.actor(&c).put("k", "u");
    let before = world.actor(&c).put("k", "v");
    pend(&world, &c, &next);
    world.settle();
    let writer = world.actor(&c);
    writer.get("other");
    world.settle();
    // It knows what comes next, and asks both for their largest tag.
    let written = world.spawn(writer.write("k", "w"));
    let late = world.set_aside(|m| m.at(&[0, 1, 2, 3]));
    assert!(!late.is_empty(), "the first configuration is asked");
    let asked = world.deliver(|m| !m.is_reply() && m.at(&[4, 5, 6, 7]));
    assert!(asked >= 3, "so is a quorum of the next one");
    world.deliver(|m| m.is_reply() && m.at(&[4, 5, 6, 7]));
    let done = world.run(resume(world.actor(&c).client(), &c));
    assert_eq!(done, Ok(Some(next)));
    assert!(written.borrow().is_none(), "it waits for the first one");
    world.put_back(late);
    let written = world.finish(&written).expect("a quorum is up");
    assert!(written > before, "{written} comes after {before}");
}

/// Schedule T11, `[EC-9 distinct-absences]`, `[EC-4 known-not-sent]`: a reader that has the value gets it again, without a
/// byte sent, from a configuration that has a pending successor, one that has a final one, and one that was collected; "you
/// have it" is never taken for "withheld", nor the other way round; and it learns of a newer value.
#[test]
fn a_known_value_is_known_in_every_configuration() {
    for collect in [Collect::On, Collect::Off, Collect::Paper] {
        for (from, to) in KINDS
            .into_iter()
            .flat_map(|from| KINDS.map(|to| (from, to)))
        {
            let c = with(collect, from);
            let next = successor(&c, 4, 4, to);
            let world = World::of(&c, 8, 1);
            let writer = world.actor(&c);
            writer.put("k", "v");
            world.settle();
            let found = world.run(writer.read("k")).expect("a quorum is up");
            for step in ["alone", "pending", "final", "collected"] {
                match step {
                    "pending" => pend(&world, &c, &next),
                    "final" => {
                        let done = world.run(resume(world.actor(&c).client(), &c));
                        assert_eq!(done, Ok(Some(next.clone())));
                    }
                    _ => {}
                }
                world.settle();
                for reader in [world.actor(&c), writer.clone()] {
                    let before = world.element_bytes();
                    let again = read_knowing(&world, &reader, &found);
                    assert_eq!((again.tag, &again.value), (found.tag, &found.value));
                    let sent = world.element_bytes() - before;
                    assert_eq!(sent, 0, "{step}, {from} to {to}, {collect:?}");
                }
            }
            writer.put("k", "w");
            let newer = read_knowing(&world, &world.actor(&c), &found);
            assert_eq!(newer.value.as_ref().map(text).as_deref(), Some("w"));
        }
    }
}

/// Confirmations under way, of versions of this configuration.
fn confirms(world: &World, c: &Arc<Configuration>) -> usize {
    let id = c.id();
    world.in_flight(move |m| match &m.content {
        Content::Note(Note::Confirm { configuration, .. }) => *configuration == id,
        _ => false,
    })
}

/// Schedule T12, `[F-5 clean-confirm]`, `[X-4 confirm-write-backs]`: a put of which one acknowledgement showed a pointer is
/// confirmed where it ends, and not where it began: a server that is slow to be closed would vouch for what the transfer did
/// not see.
#[test]
fn a_put_that_met_a_pointer_is_not_confirmed_behind_it() {
    for dap in DAPS {
        for slow in 0..4 {
            let c = configuration(4, dap, 3, 0);
            let next = successor(&c, 4, 4, dap);
            let world = World::of(&c, 8, 1);
            let writer = world.actor(&c);
            // The put is under way when all but one server are closed.
            world.hold(Message::is_put);
            world.hold(Message::is_note);
            let write = world.spawn(writer.write("k", "v"));
            world.settle();
            world.hold(move |m| m.is_config() && m.at(&[slow]));
            let (env, from, pointer) = (world.env(), c.clone(), Pointer::pending(&next));
            let put = async move { sequence::put_config(&env, &from, &pointer).await };
            world.run(put).expect("a quorum is there");
            while write.borrow().is_none() {
                world.deliver(Message::is_put);
                world.settle();
            }
            write
                .borrow_mut()
                .take()
                .expect("it ended")
                .expect("and was acknowledged");
            assert_eq!(confirms(&world, &c), 0, "slow: {slow}");
            assert_eq!(confirms(&world, &next), 4);
            world.release();
            world.settle();
            for number in 0..4 {
                assert_eq!(world.held(number, "k").stable, Tag::INITIAL);
            }
            assert_eq!(world.actor(&c).get("k").1.as_deref(), Some("v"));
        }
    }
}

/// `[F-4 last-configuration]`: a version that is known to be at a quorum of a configuration is returned at once only if
/// no server knows a later one, where it may be older than another.
#[test]
fn a_complete_version_is_not_returned_at_once_where_something_comes_next() {
    for (dap, open) in KINDS
        .into_iter()
        .flat_map(|dap| [0, 1, 2, 3].map(|s| (dap, s)))
    {
        let c = configuration(4, dap, 3, 0);
        let next = successor(&c, 4, 4, dap);
        let world = World::of(&c, 8, 1);
        let (writer, reader) = (world.actor(&c), world.actor(&c));
        writer.put("k", "old");
        world.settle();
        // One member does not hear of it.
        world.hold(move |m| m.is_config() && m.at(&[open]));
        pend(&world, &c, &next);
        world.lose(Message::is_config);
        world.release();
        writer.put("k", "new");
        world.settle();
        for number in 0..4 {
            assert_eq!(world.held(number, "k").stable.number, 1, "complete in c0");
        }
        world.hold(move |m| m.at(&[(open + 1) % 4]));
        assert_eq!(reader.get("k").1.as_deref(), Some("new"));
        world.release();
        world.settle();
        assert_eq!(writer.get("k").1.as_deref(), Some("new"));
    }
}

/// `[F-4 last-configuration]`, 3.3: what a read found in an earlier configuration, complete there, it brings to the last one
/// before it returns it.
#[test]
fn a_version_of_an_earlier_configuration_is_brought_to_the_last_one() {
    for (from, to) in DAPS.into_iter().flat_map(|from| DAPS.map(|to| (from, to))) {
        let c = configuration(4, from, 3, 0);
        let next = successor(&c, 4, 4, to);
        let world = World::of(&c, 8, 1);
        world.actor(&c).put("k", "v");
        world.settle();
        pend(&world, &c, &next);
        let before = world.gathers();
        assert_eq!(world.actor(&c).get("k").1.as_deref(), Some("v"));
        assert_eq!(
            world.gathers() - before,
            3,
            "one for each, and the write-back"
        );
        world.settle();
        let holders = (4..8).filter(|number| world.disk(*number, |disk| disk.elements()) == 1);
        assert_eq!(holders.count(), 4);
    }
}

/// `[X-19 regular-listing]`, `[X-18 tombstone-versions]`: a listing while a configuration is pending shows what is in
/// either, each key once, and no key that was deleted in one of them; on pages of every size.
#[test]
fn a_listing_goes_over_all_configurations_in_use() {
    for (from, to) in KINDS
        .into_iter()
        .flat_map(|from| KINDS.map(|to| (from, to)))
    {
        for limit in [1, 2, 3, 100] {
            let c = configuration(4, from, 3, 0);
            let one = successor(&c, 4, 4, to);
            let two = successor(&one, 8, 4, from);
            let world = World::of(&c, 12, 1);
            let actor = world.actor(&c);
            for key in ["a", "b", "c", "d"] {
                actor.put(key, "0");
            }
            pend(&world, &c, &one);
            for key in ["b", "e"] {
                actor.put(key, "1");
            }
            world.run(actor.delete("a")).expect("it is there");
            pend(&world, &one, &two);
            for key in ["a", "f"] {
                actor.put(key, "2");
            }
            for key in ["c", "e"] {
                world.run(actor.delete(key)).expect("it is there");
            }
            let list = |actor: &Actor| {
                let (mut keys, mut after) = (Vec::new(), String::new());
                loop {
                    let page = world.run(actor.list("", &after, limit)).expect("a quorum");
                    keys.extend(page.entries.into_iter().map(|entry| entry.key));
                    match page.next {
                        Some(next) => after = next,
                        None => return keys,
                    }
                }
            };
            let expected = ["a", "b", "d", "f"];
            assert_eq!(list(&world.actor(&c)), expected, "limit {limit}");
            let done = world.run(resume(world.actor(&c).client(), &c));
            assert_eq!(done, Ok(Some(two.clone())));
            for start in [&c, &one, &two] {
                assert_eq!(list(&world.actor(start)), expected, "limit {limit}");
            }
        }
    }
}

/// `[A-9 real-pairs-moved]`, 3.5 item 7: what was not written is not moved: it stays unwritten over configurations that were
/// empty, and does not cover what was written in a later one.
#[test]
fn an_empty_configuration_is_never_transferred_as_a_value() {
    for (from, to) in KINDS
        .into_iter()
        .flat_map(|from| KINDS.map(|to| (from, to)))
    {
        let c = configuration(4, from, 3, 0);
        let one = successor(&c, 4, 4, to);
        let world = World::of(&c, 20, 1);
        let actor = world.actor(&c);
        assert_eq!(actor.get("k"), (Tag::INITIAL, None), "it was looked at");
        pend(&world, &c, &one);
        actor.put("later", "v");
        let two = successor(&one, 8, 4, from);
        move_to(&world, &actor, &two);
        let three = successor(&two, 12, 4, to);
        move_to(&world, &actor, &three);
        world.settle();
        for start in [&c, &one, &two, &three] {
            let actor = world.actor(start);
            assert_eq!(actor.get("k"), (Tag::INITIAL, None));
            assert_eq!(actor.get("later").1.as_deref(), Some("v"));
        }
        for number in 12..16 {
            assert_eq!(world.disk(number, |disk| disk.elements()), 1);
        }
    }
}

/// `[C-5 fresh-maxima]`: the largest tag is that of the operation and of the object, not one left over from another.
#[test]
fn maxima_begin_anew_with_every_operation() {
    for dap in KINDS {
        let c = configuration(4, dap, 3, 0);
        let world = World::of(&c, 8, 1);
        let actor = world.actor(&c);
        for number in 1..=5 {
            assert_eq!(actor.put("busy", "v").number, number);
        }
        pend(&world, &c, &successor(&c, 4, 4, dap));
        assert_eq!(actor.get("busy").0.number, 5);
        assert_eq!(actor.get("untouched"), (Tag::INITIAL, None));
        assert_eq!(actor.put("new", "v").number, 1);
        assert_eq!(actor.put("busy", "v").number, 6);
    }
}

/// 3.5 item 16: the final pointer of a reconfigurer that was slow arrives after a later one: where a later one is known it
/// changes nothing, where none is it leads on to a configuration from which the way goes on.
#[test]
fn a_late_final_pointer_leads_on_all_the_same() {
    for collect in [Collect::On, Collect::Off, Collect::Paper] {
        for dap in KINDS {
            let c = with(collect, dap);
            let world = World::of(&c, 12, 1);
            let actor = world.actor(&c);
            actor.put("k", "old");
            world.settle();
            let one = successor(&c, 4, 4, dap);
            // c1 is final, and one member of c0 does not hear of it.
            world.hold(|m| m.at(&[3]));
            move_to(&world, &actor, &one);
            let aside = world.set_aside(|m| m.at(&[3]));
            let two = successor(&one, 8, 4, dap);
            let done = world.run(reconfigure(world.actor(&c).client(), &c, &two));
            assert_eq!(done, Ok(ReconfigOutcome::Installed(two.clone())));
            announce(&world, &c, &Pointer::finalized(&two));
            actor.put("k", "new");
            // Late pointers at all servers.
            world.release();
            world.settle();
            world.put_back(aside);
            world.settle();
            for pointer in [Pointer::pending(&one), Pointer::finalized(&one)] {
                announce(&world, &c, &pointer);
            }
            world.assert_one_chain();
            for missing in 0..4 {
                world.hold(move |m| m.at(&[missing]));
                assert_eq!(world.actor(&c).get("k").1.as_deref(), Some("new"));
                world.actor(&c).put("other", "v");
                world.release();
                world.settle();
            }
            assert_eq!(world.actor(&two).get("other").1.as_deref(), Some("v"));
        }
    }
}

/// 3.5 item 18, `[A-12 pointer-tombstone]`: of a collected configuration one member that answers is enough to go on from;
/// with none, a client that knows nothing else has to ask elsewhere (3.6).
#[test]
fn one_member_of_a_collected_configuration_is_enough() {
    for alive in 0..4 {
        let c = configuration(4, Dap::Abd, 3, 0);
        let world = World::of(&c, 8, 1);
        let actor = world.actor(&c);
        actor.put("k", "v");
        move_to(&world, &actor, &successor(&c, 4, 4, Dap::Ec { k: 2 }));
        world.settle();
        for number in (0..4).filter(|number| *number != alive) {
            world.crash(number);
        }
        assert_eq!(world.actor(&c).get("k").1.as_deref(), Some("v"));
        world.actor(&c).put("k", "w");
        world.crash(alive);
        assert!(world.run(world.actor(&c).read("k")).is_err());
        assert_eq!(actor.get("k").1.as_deref(), Some("w"), "it knows the way");
    }
}

/// Servers die and come back from their disks between all steps, with records found again that they had dropped.
#[test]
fn restarts_between_all_steps_of_a_reconfiguration_lose_nothing() {
    for seed in 0..200 {
        let dap = KINDS[seed as usize % 3];
        let c = with(
            [Collect::On, Collect::Off, Collect::Paper][seed as usize % 3],
            dap,
        );
        let world = World::of(&c, 12, seed);
        let actor = world.actor(&c);
        actor.put("k", "0");
        world.run(actor.delete("k")).expect("it is there");
        actor.put("k", "1");
        actor.put("gone", "1");
        world.run(actor.delete("gone")).expect("it is there");
        let mut last = c.clone();
        let mut known = vec![c.clone()];
        for step in 1..=4 {
            let next = successor(&last, 4 * (step % 3), 4, KINDS[(step + 1) % 3]);
            let done = world.spawn(reconfigure(world.actor(&c).client(), &c, &next));
            while done.borrow().is_none() {
                assert!(world.step(), "it ends");
                if world.below(6) == 0 {
                    let number = world.below(12);
                    world.crash(number);
                    world.restart(number, world.below(2) == 0);
                }
            }
            let ended = done.borrow_mut().take();
            assert_eq!(ended, Some(Ok(ReconfigOutcome::Installed(next.clone()))));
            last = next;
            known.push(last.clone());
            for number in 0..12 {
                world.crash(number);
                world.restart(number, world.below(2) == 0);
            }
            world.assert_one_chain();
            for start in &known {
                let actor = world.actor(start);
                let expected = if step == 1 {
                    "1".into()
                } else {
                    format!("{step}")
                };
                assert_eq!(actor.get("k").1.as_deref(), Some(&*expected), "seed {seed}");
                assert_eq!(actor.get("gone").1.as_deref(), Some(""), "seed {seed}");
                let listed = world.run(actor.list("", "", 9)).expect("a quorum");
                assert_eq!(listed.entries.len(), 1, "seed {seed}");
            }
            world.actor(&c).put("k", &format!("{}", step + 1));
        }
    }
}
