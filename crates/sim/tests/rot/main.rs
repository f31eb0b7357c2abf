//! Bits that flip on the disks of as many servers as may fail: no wrong byte is ever read, nothing is lost, and what one
//! server lost it has again once the object was read.
//!
//! `AREO_ROT_FLIPS` says how many bits flip.

#![allow(missing_docs, unreachable_pub)] // It is no library.

mod cluster;

use areo_core::config::{Configuration, Dap};
use areo_core::dsm::Client;
use areo_core::element::Value;
use areo_core::message::Refusal;
use areo_core::object::Name;
use areo_core::tag::Tag;
use areo_store::MemoryDisk;
use bytes::Bytes;
use cluster::{Cluster, configuration, run};
use std::collections::BTreeMap;
use std::sync::Arc;

const VARIABLE: &str = "AREO_ROT_FLIPS";
/// Trials on every change.
const USUAL: usize = 600;
/// Copies and fragments, some empty.
const LENGTHS: [usize; 6] = [0, 20, 400, 401, 3000, 10_000];

/// Reads until each rotten server was met, by all odds.
const READS: usize = 100;

/// On each of nearly all servers.
const FLIPS_BEYOND: usize = 16;

/// A written version, which must be readable.
struct WrittenValue {
    name: Name,
    tag: Tag,
    content: Bytes,
}

fn content(key: usize, round: u8) -> Bytes {
    let byte = |at: usize| (at as u8).wrapping_mul(31) ^ (at >> 8) as u8 ^ round ^ key as u8;
    (0..LENGTHS[key]).map(byte).collect()
}

/// Disks of servers that have lived: every object was written, some of them while one server was away, and all again.
fn lived(c: &Arc<Configuration>, seed: u64) -> (Vec<MemoryDisk>, Vec<WrittenValue>) {
    let disks: Vec<MemoryDisk> = (0..c.n()).map(|_| MemoryDisk::new()).collect();
    let cluster = Cluster::start(c, &disks, seed);
    let client = Client::new(cluster.env());
    let mut newest = BTreeMap::new();
    for round in 0..3_u8 {
        let laggard = cluster.below(c.n());
        cluster.away(&[laggard][..usize::from(round == 1)]);
        for key in 0..LENGTHS.len() {
            if round == 1 && cluster.below(2) == 0 {
                continue;
            }
            let name = Name::user(&format!("key-{key}")).expect("a valid key");
            let content = content(key, round);
            let value = Value::new(Bytes::new(), content.clone());
            let client = client.with(cluster.env());
            let tag = run(client.domain(c).write(&name, &value)).expect("a quorum is there");
            newest.insert(key, WrittenValue { name, tag, content });
        }
    }
    cluster.away(&[]);
    let written: Vec<WrittenValue> = newest.into_values().collect();
    // Everything is proven.
    for server in 0..c.n() {
        cluster.keep_house(server);
        if seed % 2 == 1 {
            cluster.restart(server);
        }
    }
    (cluster.disks(), written)
}

/// Reads an object, which must succeed.
fn read(cluster: &Cluster, written: &WrittenValue, what: &str) {
    assert!(try_to_read(cluster, written, what), "no quorum: {what}");
}

fn read_all(cluster: &Cluster, written: &[WrittenValue], what: &str) {
    for one in written {
        read(cluster, one, what);
    }
}

/// Reads an object: exactly what was written, or nothing (`false`).
fn try_to_read(cluster: &Cluster, written: &WrittenValue, what: &str) -> bool {
    let client = Client::new(cluster.env());
    let domain = client.domain(cluster.configuration());
    let found = domain.read(&written.name, None);
    let Ok(found) = run(found) else {
        return false;
    };
    assert_eq!(found.tag, written.tag, "{what}");
    let value = found.value.expect("it was written");
    assert!(value.contiguous() == written.content, "wrong bytes: {what}");
    true
}

/// The effect of the flips of one trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Fate {
    /// No object is touched.
    Harmless,
    /// A server abstained for an object, and has it again.
    Repaired,
    /// A server that started cannot say which record it lost: it answers for no object, as long as it lives.
    Abstains,
}

/// Flips one bit on each of `rotten` servers, lets them find out in any way, reads everything, and looks at what they have.
fn trial(
    c: &Arc<Configuration>,
    disks: &[MemoryDisk],
    written: &[WrittenValue],
    seed: u64,
) -> Fate {
    let cluster = Cluster::start(c, disks, seed);
    let tolerated = c.n() - c.quorums().quorum();
    let first = cluster.below(c.n());
    let rotten: Vec<usize> = (0..tolerated).map(|more| (first + more) % c.n()).collect();
    let flips: Vec<String> = rotten.iter().map(|server| cluster.flip(*server)).collect();
    let what = format!("{}, seed {seed}: {}", c.n(), flips.join(", "));
    let (restarts, reads_first) = (cluster.below(2) == 0, cluster.below(2) == 0);
    if reads_first {
        read_all(&cluster, written, &what);
    }
    for server in &rotten {
        if restarts {
            cluster.restart(*server);
        }
        cluster.keep_house(*server);
    }
    let mut fate = Fate::Harmless;
    for one in written {
        for server in &rotten {
            // Asked as a read asks it: rot is found now at the latest.
            match cluster.newest_at(*server, &one.name) {
                Ok(tag) => assert_eq!(tag, one.tag, "older or newer: {what}"),
                Err(refusal) => {
                    assert_eq!(refusal, Refusal::Damaged, "{what}");
                    fate = fate.max(Fate::Repaired);
                }
            }
        }
        // Whichever servers answer first decide, so that not every read meets the damage.
        for _ in 0..READS {
            read(&cluster, one, &what);
            let has_it = |server: &usize| cluster.newest_at(*server, &one.name) == Ok(one.tag);
            if rotten
                .iter()
                .all(|s| has_it(s) || cluster.is_unreadable(*s))
            {
                break;
            }
        }
    }
    for server in &rotten {
        if cluster.is_unreadable(*server) {
            assert_eq!(
                cluster.newest_at(*server, &written[0].name),
                Err(Refusal::Damaged)
            );
            fate = Fate::Abstains;
            continue;
        }
        // Repaired, and durably so.
        for one in written {
            let newest = cluster.newest_at(*server, &one.name);
            assert_eq!(
                newest,
                Ok(one.tag),
                "server {server} has not {:?} again: {what}",
                one.name
            );
        }
        cluster.keep_house(*server);
    }
    if fate != Fate::Abstains {
        // As many others as may fail are gone: every read now needs those that were rotten.
        let others = (0..c.n()).filter(|server| !rotten.contains(server));
        let gone: Vec<usize> = others.take(tolerated).collect();
        cluster.away(&gone);
        read_all(&cluster, written, &what);
    }
    fate
}

/// Flips several bits on each of more servers than may fail: what is read is right, or nothing is.
fn beyond(
    c: &Arc<Configuration>,
    disks: &[MemoryDisk],
    written: &[WrittenValue],
    seed: u64,
) -> usize {
    let cluster = Cluster::start(c, disks, seed);
    let mut flips = Vec::new();
    for server in 0..c.n() - 1 {
        for _ in 0..FLIPS_BEYOND {
            flips.push(cluster.flip(server));
        }
        if cluster.below(2) == 0 {
            cluster.restart(server);
        }
        cluster.keep_house(server);
    }
    let what = format!("{} servers, seed {seed}: {flips:?}", c.n());
    let unread = written
        .iter()
        .filter(|one| !try_to_read(&cluster, one, &what));
    unread.count()
}

fn count() -> usize {
    let said = std::env::var(VARIABLE).ok();
    said.map_or(USUAL, |number| number.parse().expect("a number"))
}

#[test]
fn rot_of_as_many_servers_as_may_fail_is_found_and_repaired_and_never_read() {
    let configurations = [
        configuration(5, Dap::Ec { k: 3 }),
        configuration(5, Dap::Abd),
        configuration(7, Dap::Ec { k: 3 }),
    ];
    let mut fates: BTreeMap<Fate, usize> = BTreeMap::new();
    let (mut flips, mut seed) = (0, 0);
    while flips < count() {
        for c in &configurations {
            seed += 1;
            let (disks, written) = lived(c, seed);
            for trial_seed in 0..50 {
                let fate = trial(c, &disks, &written, seed << 32 | trial_seed);
                *fates.entry(fate).or_default() += 1;
                flips += c.n() - c.quorums().quorum();
            }
        }
    }
    println!("{flips} flips: {fates:?}");
    assert!(fates[&Fate::Repaired] > flips / 20, "{fates:?}");
}

#[test]
fn rot_of_more_servers_than_may_fail_is_never_read_as_anything_else() {
    let configurations = [
        configuration(5, Dap::Ec { k: 3 }),
        configuration(5, Dap::Abd),
    ];
    let (mut flips, mut seed, mut reads, mut unread) = (0, 1000, 0, 0);
    while flips < count() {
        for c in &configurations {
            seed += 1;
            let (disks, written) = lived(c, seed);
            for trial_seed in 0..10 {
                unread += beyond(c, &disks, &written, seed << 32 | trial_seed);
                reads += written.len();
                flips += FLIPS_BEYOND * (c.n() - 1);
            }
        }
    }
    println!("{flips} flips: {unread} of {reads} reads found no quorum");
    assert!(unread > reads / 50 && unread < reads, "{unread} of {reads}");
}
