//! EC-DAP through whole operations: what is sent, what is computed, and what happens when members do not answer
//! (`docs/spec` 2, `[X-1 support-threshold]`, `[X-5 single-reply]`, `[X-18 tombstone-versions]`).

use crate::world::{Actor, Message, World, configuration, name, server};
use areo_core::config::Dap;
use areo_core::element::Form;
use areo_core::limits;
use areo_core::manager::Deletion;
use areo_core::server::record::Header;
use areo_core::timing;
use std::time::Duration;

const LONG: &str = "a value that is longer than a copy may be, and than sixty-four bytes: the length of a block of the code";

fn world(n: usize, k: u8) -> (World, Actor, Actor) {
    let c = configuration(n, Dap::Ec { k }, 1, 16);
    let world = World::new(&c, 1);
    (world.clone(), world.actor(&c), world.actor(&c))
}

/// The positions that hold the data fragments of an object, by index.
fn data_positions(actor: &Actor, key: &str) -> Vec<usize> {
    let c = &actor.c;
    let hash = name(key).placement_hash(c.descriptor().domain);
    let holder = |index| (0..c.n()).find(|position| c.element_index(*position, hash) == index);
    (0..c.dap().k())
        .map(|index| holder(index).expect("a permutation"))
        .collect()
}

/// An undisturbed read takes one round, sends exactly the value, and computes nothing: its pieces are the very bytes that
/// the servers hold.
#[test]
fn an_undisturbed_read_decodes_nothing() {
    let (world, writer, reader) = world(5, 3);
    let tag = writer.put("k", LONG);
    world.settle();
    let (rounds, bytes) = (world.gathers(), world.element_bytes());
    let found = world.run(reader.read("k")).unwrap();
    assert_eq!((found.tag, world.gathers() - rounds), (tag, 1));
    assert_eq!(world.element_bytes() - bytes, LONG.len());
    let content = found.value.unwrap().content;
    assert_eq!(content.concat(), LONG.as_bytes());
    let fragments = data_positions(&reader, "k").into_iter().map(|position| {
        world.disk(position, |disk| {
            disk.payloads().next().expect("it holds one").clone()
        })
    });
    let filled = fragments.filter(|fragment| !fragment.is_empty());
    let same = filled
        .zip(&content)
        .filter(|(held, read)| held.as_ptr() == read.as_ptr())
        .count();
    assert_eq!(same, content.len());
}

/// Any f members may be lost, data fragments among them.
#[test]
fn a_read_decodes_around_lost_members() {
    for (n, k) in [(4, 2), (5, 3), (6, 2)] {
        let f = configuration(n, Dap::Ec { k }, 1, 16).quorums().f();
        for lost in (0u32..1 << n).filter(|set| set.count_ones() as usize <= f) {
            let (world, writer, reader) = world(n, k);
            let tag = writer.put("k", LONG);
            world.settle();
            for number in (0..n).filter(|number| lost & (1 << number) != 0) {
                world.crash(number);
            }
            assert_eq!(
                reader.get("k"),
                (tag, Some(LONG.into())),
                "[{n},{k}] without {lost:b}"
            );
        }
    }
}

/// A large element is fetched by a call of its own, from the members with the data, and from no other although it takes
/// longer than the hedge of a query.
#[test]
fn a_large_value_is_fetched_from_the_members_with_the_data() {
    let (world, writer, reader) = world(5, 3);
    let long = LONG.repeat(20_000);
    assert!(long.len() as u64 > 3 * limits::INLINE_BYTES);
    for key in ["a", "b", "c", "d", "e"] {
        let tag = writer.put(key, &long);
        world.settle();
        world.latency(timing::HEDGE * 2);
        let bytes = world.element_bytes();
        let found = world.run(reader.read(key)).unwrap();
        assert_eq!((found.tag, found.length), (tag, long.len() as u64));
        assert_eq!(world.element_bytes() - bytes, long.len(), "{key}");
        assert!(found.value.unwrap().content.concat() == long.as_bytes());
        world.latency(Duration::ZERO);
    }
}

/// `[X-1 support-threshold]`: a small value is a copy everywhere; one server sends it, and one is enough to read it.
#[test]
fn a_small_value_is_a_copy_everywhere_and_one_is_sent() {
    let (world, writer, reader) = world(5, 3);
    let tag = writer.put("k", "sixteen bytes ab");
    world.settle();
    for number in 0..5 {
        assert_eq!(world.held(number, "k").stored, [(tag, Form::Copy)]);
    }
    let bytes = world.element_bytes();
    assert_eq!(reader.get("k"), (tag, Some("sixteen bytes ab".into())));
    assert_eq!(world.element_bytes() - bytes, 16);
    // One byte more makes fragments; then a copy again, over it.
    let larger = writer.put("k", "seventeen bytes a");
    world.settle();
    let forms = (0..5).map(|number| world.held(number, "k").form_of(larger).expect("held"));
    assert!(
        forms
            .into_iter()
            .all(|form| matches!(form, Form::Fragment { n: 5, k: 3, .. }))
    );
    assert_eq!(reader.get("k"), (larger, Some("seventeen bytes a".into())));
    let small = writer.put("k", "small");
    assert_eq!(reader.get("k"), (small, Some("small".into())));
}

/// `[X-1 support-threshold]`: PUT of a version already held is acknowledged and changes nothing.
#[test]
fn a_repeated_put_writes_nothing() {
    let (world, writer, _) = world(5, 3);
    world.hold(|m| m.is_put() && m.is_reply());
    let write = world.spawn(writer.write("k", LONG));
    world.settle();
    world.release();
    let records = world.disk(0, |disk| disk.written());
    world.lose(Message::is_reply);
    let again = world.held(0, "k");
    world.settle();
    assert!(write.borrow().is_none(), "its acknowledgements are lost");
    assert_eq!(world.disk(0, |disk| disk.written()), records);
    assert_eq!(world.held(0, "k"), again);
}

/// `[X-18 tombstone-versions]`: a delete is a write of a tombstone: listed with its tag, kept by every server, and older
/// than the next write.
#[test]
fn a_delete_is_an_ordinary_version() {
    let (world, writer, reader) = world(5, 3);
    let first = writer.put("k", LONG);
    let deleted = match world.run(reader.delete("k")).unwrap() {
        Deletion::Deleted(tag) => tag,
        Deletion::NotFound => panic!("it is there"),
    };
    assert!(deleted > first);
    world.pass(Duration::from_secs(3));
    for number in 0..5 {
        assert_eq!(
            world.held(number, "k").stored,
            [(deleted, Form::Copy)],
            "a copy, and alone"
        );
    }
    let found = world.run(reader.read("k")).unwrap();
    let value = found.value.expect("a tombstone is a value");
    assert_eq!(
        (found.tag, value.deleted, value.length()),
        (deleted, true, 0)
    );
    assert_eq!(world.run(reader.delete("k")), Ok(Deletion::NotFound));
    assert_eq!(
        world.run(reader.delete("never written")),
        Ok(Deletion::NotFound)
    );
    let again = writer.put("k", "again");
    assert!(again > deleted);
    assert_eq!(reader.get("k"), (again, Some("again".into())));
}

/// A stat is a read without the content, and tells its length.
#[test]
fn a_stat_sends_no_content() {
    let (world, writer, reader) = world(5, 3);
    for text in [LONG, "small"] {
        let tag = writer.put("k", text);
        world.settle();
        let (rounds, bytes) = (world.gathers(), world.element_bytes());
        let found = world.run(reader.stat("k")).unwrap();
        assert_eq!((found.tag, found.length), (tag, text.len() as u64));
        assert_eq!(found.value.map(|value| value.content), Some(vec![]));
        assert_eq!(
            (world.gathers() - rounds, world.element_bytes() - bytes),
            (1, 0)
        );
    }
}

/// `[X-2 get-tag-maximum]`: a stat is a read, never a get-tag: what it returns is at a quorum afterwards.
#[test]
fn a_stat_of_an_incomplete_version_completes_it() {
    let (world, writer, reader) = world(5, 3);
    world.hold(|m| m.is_put() && m.at(&[3, 4]));
    assert!(world.run(writer.write("k", LONG)).is_err());
    world.lose(Message::is_put);
    world.release();
    let found = world.run(reader.stat("k")).unwrap();
    world.settle();
    let holders = (0..5)
        .filter(|number| world.held(*number, "k").stores(found.tag))
        .count();
    assert!(holders >= 4, "{holders} hold it");
}

/// A member that was asked for its element and is silent: after the hedge another one is asked, long before the deadline.
#[test]
fn a_silent_member_is_replaced_after_the_hedge() {
    for dap in [Dap::Abd, Dap::Ec { k: 3 }] {
        let c = configuration(5, dap, 1, 16);
        for silent in 0..5 {
            for text in [LONG, "small"] {
                let world = World::new(&c, 1);
                let tag = world.actor(&c).put("k", text);
                world.settle();
                world.hold(move |m| m.at(&[silent]));
                let begin = world.now();
                assert_eq!(world.actor(&c).get("k"), (tag, Some(text.into())));
                let took = world.now().since(begin);
                assert!(took <= timing::HEDGE, "{took:?} without server {silent}");
            }
        }
    }
}

/// A member that cannot be reached costs no time at all, and a member that was slow lately is not asked for elements.
#[test]
fn an_unreachable_or_slow_member_costs_no_time() {
    let (world, writer, reader) = world(5, 3);
    let tag = writer.put("k", LONG);
    world.settle();
    let first = data_positions(&reader, "k")[0];
    world.hint_slow(first);
    world.hold(move |m| m.at(&[first]));
    let begin = world.now();
    assert_eq!(reader.get("k"), (tag, Some(LONG.into())));
    assert_eq!(world.in_flight(Message::is_fetch), 0);
    world.crash(first);
    assert_eq!(reader.get("k"), (tag, Some(LONG.into())));
    assert_eq!(world.now(), begin);
}

/// However long the round trip, and however many hedges go by in it: the read ends. It used to begin again for ever.
#[test]
fn a_read_over_a_long_way_ends() {
    for dap in [Dap::Abd, Dap::Ec { k: 3 }] {
        let c = configuration(5, dap, 1, 16);
        let world = World::new(&c, 1);
        world.latency(Duration::from_millis(100));
        let tag = world.actor(&c).put("k", LONG);
        // Each member that is chosen for an element is silent in turn, so that one has to be fetched.
        for silent in 0..5 {
            world.release();
            world.hold(move |m| m.at(&[silent]));
            let (begin, rounds) = (world.now(), world.gathers());
            assert_eq!(world.actor(&c).get("k"), (tag, Some(LONG.into())));
            let took = world.now().since(begin);
            assert!(
                took <= Duration::from_millis(400),
                "{took:?}: two round trips"
            );
            assert_eq!(world.gathers() - rounds, 1, "it does not begin again");
        }
    }
}

/// Versions in flight at the members with the data: the read fetches the one that it may return.
#[test]
fn a_read_passes_by_versions_that_cannot_be_complete() {
    let (world, writer, reader) = world(5, 3);
    let tag = writer.put("k", LONG);
    world.settle();
    let first = data_positions(&reader, "k")[0];
    world.hold(move |m| m.is_put() && !m.at(&[first]));
    assert!(world.run(writer.write("k", &LONG.to_uppercase())).is_err());
    world.lose(Message::is_put);
    world.release();
    assert_eq!(world.numbers(first, "k").len(), 2);
    assert_eq!(reader.get("k"), (tag, Some(LONG.into())));
}

/// An element of another member, or of another code, is not taken for one (`[EC-2 self-describing-elements]`): elements
/// carry their form.
#[test]
fn every_member_holds_its_own_fragment() {
    let (world, writer, reader) = world(5, 3);
    writer.put("k", LONG);
    world.settle();
    let hash = name("k").placement_hash(reader.c.descriptor().domain);
    for number in 0..5 {
        let form = world.disk(number, |disk| {
            let element = disk.headers().find_map(|header| match header {
                Header::Element(element) => Some(element.form),
                _ => None,
            });
            element.expect("it holds one")
        });
        let position = reader.c.position(server(number)).unwrap();
        let index = reader.c.element_index(position, hash);
        assert_eq!(form, Form::Fragment { n: 5, k: 3, index });
    }
}
