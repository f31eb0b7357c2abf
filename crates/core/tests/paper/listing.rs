//! Listings are regular: what completed before is there (`docs/spec` `[X-18 tombstone-versions]`, `[X-19 regular-listing]`,
//! `[X-24 kind-byte]`).

use crate::world::{Actor, Message, World, configuration};
use areo_core::config::Dap;
use areo_core::message::ListRequest;
use areo_core::object::{Kind, Name};
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

/// Whatever quorum answers, and whatever the others missed.
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
    world.settle();
    assert_eq!(all_keys(&world, &actor, "", 10), ["k"]);
    let request = ListRequest {
        kind: Kind::Block,
        prefix: String::new(),
        after: String::new(),
        limit: 10,
    };
    let (client, c) = (actor.client(), actor.c.clone());
    let blocks = world
        .run(async move { client.domain(&c).list(&request).await })
        .unwrap();
    assert_eq!((blocks.entries.len(), blocks.entries[0].length), (1, 5));
    assert_eq!(actor.get("k").1.as_deref(), Some("user"));
}
