//! Listings are regular: what completed before is there (`docs/spec` `[X-18 tombstone-versions]`, `[X-19 regular-listing]`,
//! `[X-24 kind-byte]`).

use crate::world::{Actor, Message, World, configuration, name};
use areo_core::config::Dap;
use areo_core::element::Value;
use areo_core::message::{ListEntry, ListRequest};
use areo_core::object::{Etag, Kind, Metadata, Name};
use std::collections::BTreeSet;

fn world(seed: u64) -> (World, Actor) {
    let c = configuration(5, Dap::Ec { k: 3 }, 1, 16);
    let world = World::new(&c, seed);
    (world.clone(), world.actor(&c))
}

/// All keys, page by page. Every page is within its limit, and ends.
fn all_keys(world: &World, actor: &Actor, prefix: &str, limit: u16) -> Vec<String> {
    let (mut keys, mut after) = (Vec::new(), String::new());
    for _ in 0..100 {
        let page = world
            .run(actor.list(prefix, &after, limit))
            .expect("a quorum answers");
        assert!(
            page.entries.len() <= usize::from(limit),
            "{} of {limit}",
            page.entries.len()
        );
        keys.extend(page.entries.into_iter().map(|entry| entry.key));
        let Some(next) = page.next else { return keys };
        assert!(next > after, "pages go on");
        after = next;
    }
    panic!("pages without end: {keys:?}")
}

/// For every quorum that answers, and everything that the others missed.
#[test]
fn a_listing_contains_every_write_that_completed_before() {
    for seed in 0..50 {
        let (world, actor) = world(seed);
        let mut expected = BTreeSet::new();
        for number in 0..12 {
            let missed = world.below(5);
            world.hold(move |m| m.is_put() && m.at(&[missed]));
            let key = format!("key-{}", world.below(20));
            if number % 4 == 3 {
                world.run(actor.delete(&key)).unwrap();
                expected.remove(&key);
            } else {
                actor.put(&key, "v");
                expected.insert(key);
            }
            world.lose(Message::is_put);
            world.release();
        }
        let silent = world.below(5);
        world.hold(move |m| m.at(&[silent]));
        for limit in [1, 3, 100] {
            let keys = all_keys(&world, &actor, "key-", limit);
            assert_eq!(
                keys,
                expected.iter().cloned().collect::<Vec<_>>(),
                "limit {limit}"
            );
        }
    }
}

/// Pages contain every key once, in order, also where the prefix is itself a key.
#[test]
fn pages_contain_every_key_once() {
    let (world, actor) = world(1);
    let keys = ["a", "a/", "a/b", "a/b/c", "a/c", "aa", "b", "ä", "ä/1"];
    for key in keys {
        actor.put(key, "v");
    }
    world.settle();
    for prefix in ["", "a", "a/", "a/b", "ä", "b", "c"] {
        let expected: Vec<&str> = keys
            .into_iter()
            .filter(|key| key.starts_with(prefix))
            .collect();
        for limit in 1..=10 {
            assert_eq!(
                all_keys(&world, &actor, prefix, limit),
                expected,
                "{prefix}, {limit}"
            );
        }
    }
    let page = world.run(actor.list("a", "b", 10)).unwrap();
    assert_eq!(
        (page.entries.len(), page.next),
        (0, None),
        "nothing with that prefix is larger"
    );
}

/// The names on all pages of a listing with common prefixes. Every page is within its limit and advances; no two
/// pages show one name.
fn all_names(world: &World, actor: &Actor, request: &ListRequest) -> Vec<String> {
    let (mut names, mut request) = (Vec::new(), request.clone());
    for _ in 0..200 {
        let page = world.run(actor.list_by(request.clone()));
        let page = page.expect("a quorum answers");
        let keys = page.entries.into_iter().map(|entry| entry.key);
        let mut shown: Vec<String> = keys.chain(page.prefixes).collect();
        assert!(shown.len() <= usize::from(request.limit), "{shown:?}");
        shown.sort();
        names.append(&mut shown);
        let Some(next) = page.next else {
            assert!(names.is_sorted_by(|a, b| a < b), "{names:?}");
            return names;
        };
        assert!(next > request.after, "pages go on");
        request.after = next;
    }
    panic!("pages without end: {names:?}")
}

/// The names that a listing of these keys must show.
fn expected_names(keys: &BTreeSet<String>, request: &ListRequest) -> Vec<String> {
    let is_asked = |key: &&String| key.starts_with(&request.prefix) && **key > request.after;
    let names = keys.iter().filter(is_asked);
    let names: BTreeSet<&str> = names.map(|key| request.listed_as(key)).collect();
    names.into_iter().map(Into::into).collect()
}

/// Keys with delimiters at their ends, twice, and next to the largest character; some are deleted. A server missed each write,
/// another one is silent.
#[test]
fn a_common_prefix_is_listed_if_some_key_below_it_is_there() {
    let parts = ["", "a", "/", "//", "a/b", "+%", " ", "\u{10ffff}"];
    for seed in 0..60 {
        let (world, actor) = world(seed);
        let mut keys = BTreeSet::new();
        for number in 0..24 {
            let missed = world.below(5);
            world.hold(move |m| m.is_put() && m.at(&[missed]));
            let part = || parts[world.below(parts.len())];
            let key = format!("k{}{}{}", part(), part(), part());
            if number % 3 == 2 {
                let _ = world.run(actor.delete(&key));
                keys.remove(&key);
            } else {
                actor.put(&key, "v");
                keys.insert(key);
            }
            world.lose(Message::is_put);
            world.release();
        }
        let silent = world.below(5);
        world.hold(move |m| m.at(&[silent]));
        for delimiter in ["/", "//", "a", "\u{10ffff}", "none"] {
            for prefix in ["", "k", "k/", "ka", "k\u{10ffff}"] {
                let limit = 1 + world.below(5) as u16;
                let request = ListRequest {
                    delimiter: delimiter.into(),
                    limit,
                    ..ListRequest::new(Kind::User, prefix)
                };
                let names = all_names(&world, &actor, &request);
                let expected = expected_names(&keys, &request);
                assert_eq!(names, expected, "{seed}: {request:?}");
            }
        }
    }
}

/// A folder of a thousand objects costs one entry, and is passed over from a page to the next.
#[test]
fn servers_pass_over_the_keys_of_a_common_prefix() {
    let (world, actor) = world(1);
    for number in 0..40 {
        actor.put(&format!("a/{number:02}"), "v");
    }
    actor.put("b", "v");
    world.settle();
    let request = ListRequest {
        delimiter: "/".into(),
        limit: 1,
        ..ListRequest::new(Kind::User, "")
    };
    let page = world.run(actor.list_by(request.clone())).unwrap();
    assert_eq!(page.prefixes, ["a/"]);
    assert_eq!((page.entries.len(), page.next.as_deref()), (0, Some("a/")));
    // A key within a folder as the start: the folder is shown for those behind it.
    for (after, prefixes) in [("a/", 0), ("a/00", 1), ("a/39", 0)] {
        let request = ListRequest {
            after: after.into(),
            limit: 10,
            ..request.clone()
        };
        let page = world.run(actor.list_by(request)).unwrap();
        assert_eq!((page.prefixes.len(), page.entries.len()), (prefixes, 1));
    }
}

/// Servers keep the listed metadata of a version in memory, and have it again after a restart.
#[test]
fn a_listing_shows_etag_and_time_of_the_write() {
    let (world, actor) = world(1);
    let metadata = Metadata {
        etag: Some(Etag::new("0123-2").unwrap()),
        written_at_ms: Some(1_700_000_000_000),
        ..Metadata::default()
    };
    let value = Value::new(metadata.encode().unwrap(), vec![1; 99].into());
    let (client, c) = (actor.client(), actor.c.clone());
    world
        .run(async move { client.domain(&c).write(&name("k"), &value).await })
        .unwrap();
    actor.put("plain", "v");
    world.settle();
    let shown = || {
        let page = world.run(actor.list("", "", 10)).unwrap();
        let shown = |entry: ListEntry| (entry.etag, entry.written_at_ms);
        page.entries.into_iter().map(shown).collect::<Vec<_>>()
    };
    let expected = [(metadata.etag, metadata.written_at_ms), (None, None)];
    assert_eq!(shown(), expected);
    for number in 0..5 {
        world.crash(number);
        world.restart(number, false);
    }
    assert_eq!(shown(), expected);
}

/// Servers that hold different keys, because writes are under way, make no page longer than was asked for.
#[test]
fn a_page_is_within_its_limit_whatever_servers_list() {
    let (world, actor) = world(1);
    for number in 0..20 {
        let at = number % 5;
        world.hold(move |m| m.is_put() && !m.at(&[at]));
        assert!(
            world
                .run(actor.write(&format!("{number:02}"), "v"))
                .is_err()
        );
        world.lose(Message::is_put);
        world.release();
    }
    actor.put("99", "complete");
    world.settle();
    let keys = all_keys(&world, &actor, "", 4);
    assert!(keys.is_sorted() && keys.contains(&"99".into()), "{keys:?}");
}

/// `[X-24 kind-byte]`: the store's own objects have a kind of their own; no listing of users' keys shows them.
#[test]
fn kinds_are_apart() {
    let (world, actor) = world(1);
    actor.put("k", "user");
    let block = Name::new(Kind::Block, "k").unwrap();
    let (client, c) = (actor.client(), actor.c.clone());
    let write = async move {
        client
            .domain(&c)
            .write(&block, &crate::world::value("block"))
            .await
    };
    world.run(write).unwrap();
    let record = Name::record("k", "id").unwrap();
    let (client, c) = (actor.client(), actor.c.clone());
    let write = async move {
        let value = crate::world::value("record");
        client.domain(&c).write(&record, &value).await
    };
    world.run(write).unwrap();
    world.settle();
    assert_eq!(all_keys(&world, &actor, "", 10), ["k"]);
    let (client, c) = (actor.client(), actor.c.clone());
    let records = ListRequest::new(Kind::Upload, "k");
    let records = world
        .run(async move { client.domain(&c).list(&records).await })
        .unwrap();
    assert_eq!(records.entries.len(), 1);
    assert_eq!(records.entries[0].key, "k\0id");
    let request = ListRequest::new(Kind::Block, "");
    let (client, c) = (actor.client(), actor.c.clone());
    let blocks = world
        .run(async move { client.domain(&c).list(&request).await })
        .unwrap();
    assert_eq!((blocks.entries.len(), blocks.entries[0].length), (1, 5));
    assert_eq!(actor.get("k").1.as_deref(), Some("user"));
}
