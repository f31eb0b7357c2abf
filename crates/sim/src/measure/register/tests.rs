//! Counts that do not depend on time, and what the time to stabilize is made of.

use super::*;
use std::ops::RangeInclusive;

const BYTES: usize = 96 << 10;
/// Upper bound for the bytes of a message to one member beside its element.
const BESIDE: u64 = 1 << 10;

fn setting(dap: Dap, servers: usize) -> Setting {
    Setting {
        dap,
        servers,
        delta: 2,
        readers: 2,
        writers: 2,
        bytes: BYTES,
        operations: 3,
        wait_ms: (0, 100),
    }
}

/// Quiet, of a kind: rounds, messages to each member, and values that go up, of a write and of a read.
struct Counts {
    dap: Dap,
    rounds: (u64, RangeInclusive<u64>),
    messages: (u64, RangeInclusive<u64>),
    values: (u64, u64),
}

/// A write of EC ends with a note to each. A read of CAS takes another round where marks come before the elements.
fn counts(servers: usize) -> [Counts; 4] {
    let k = u8::try_from(servers - 4).unwrap();
    let of = |dap, rounds, messages, values| Counts {
        dap,
        rounds,
        messages,
        values,
    };
    [
        of(Dap::AbdPublished, (2, 2..=2), (2, 2..=2), (1, 1)),
        of(Dap::Ec { k }, (2, 1..=1), (3, 1..=1), (1, 0)),
        of(Dap::Cas { k }, (3, 1..=2), (3, 1..=2), (1, 0)),
        of(Dap::CasSs { k }, (4, 1..=2), (4, 1..=2), (1, 0)),
    ]
}

#[test]
fn counts_are_those_of_the_kind_up_to_30_members() {
    for servers in [5, 10, 20, 30] {
        for of in counts(servers) {
            let dap = of.dap;
            let measured = run(&setting(dap, servers), (1, 0)).unwrap();
            let (write, read) = (measured.quiet_write, measured.quiet_read);
            let n = servers as u64;
            assert_eq!(write.rounds, of.rounds.0, "{dap:?} {servers}");
            assert!(of.rounds.1.contains(&read.rounds), "{dap:?} {servers}");
            assert_eq!(write.messages, n * of.messages.0, "{dap:?} {servers}");
            let to_each = read.messages / n;
            assert!(of.messages.1.contains(&to_each), "{dap:?} {servers}");
            let element = match dap {
                Dap::AbdPublished => BYTES,
                _ => BYTES.div_ceil(servers - 4),
            };
            for (cost, values) in [(write, of.values.0), (read, of.values.1)] {
                let all = n * values * element as u64;
                let all = all..all + n * BESIDE;
                assert!(all.contains(&cost.sent), "{dap:?} {servers}: {cost:?}");
            }
            assert!(read.received >= BYTES as u64, "{dap:?} {servers}: {read:?}");
            assert_eq!((measured.reads.len(), measured.writes.len()), (6, 6));
        }
    }
}

#[test]
fn a_read_of_coded_atomic_storage_sends_no_value_up_beside_writers() {
    for dap in [Dap::Cas { k: 3 }, Dap::CasGc { k: 3 }, Dap::CasSs { k: 3 }] {
        let busy = Setting {
            writers: 6,
            readers: 6,
            wait_ms: (0, 5),
            ..setting(dap, 5)
        };
        let measured = run(&busy, (7, 0)).unwrap();
        let most = measured.reads.iter().map(|read| read.sent).max();
        assert!(most.unwrap() < 5 * BESIDE, "{dap:?}: {most:?}");
        assert!(
            measured.reads.iter().any(|read| read.rounds == 2),
            "{dap:?}: no read met a writer"
        );
    }
}

#[test]
fn the_same_seed_has_the_same_costs() {
    let of = |run_number| run(&setting(Dap::CasSs { k: 3 }, 5), (4, run_number)).unwrap();
    assert_eq!(of(0), of(0));
    assert_ne!(of(0).hash, of(1).hash);
}

#[test]
fn one_impossible_record_restarts_an_object_of_30_members() {
    for servers in [3, 30] {
        let k = u8::try_from(servers).unwrap();
        let small = Setting {
            bytes: 256,
            ..setting(Dap::CasSs { k }, servers)
        };
        let times = restart(&small, (2, 0)).unwrap();
        let longer = [times.until_read, times.until_write];
        assert!(longer.iter().all(|time| *time > times.write), "{times:?}");
        // Without a restart the object would not be read before the operations' time is over.
        assert!(times.until_read < 10_000.0, "{times:?}");
    }
}

#[test]
fn what_is_no_register_yet_is_seen() {
    let tag = |number| Tag {
        number,
        writer: Writer {
            client: ClientId(1),
            counter: 1,
        },
    };
    let at = |ms| Instant::default().plus(Duration::from_millis(ms));
    let probe = |operation, begun, ended, number| Probe {
        operation,
        begun: at(begun),
        ended: at(ended),
        tag: (number > 0).then(|| tag(number)),
    };
    let (read, write) = (Operation::Read, Operation::Write);
    let sound = [
        probe(write, 0, 2, 1),
        probe(read, 3, 4, 1),
        probe(write, 5, 7, 2),
        probe(read, 6, 8, 1),
    ];
    assert_eq!(unstable_until(&sound), None);
    let with = |wrong| [&sound[..], &[wrong]].concat();
    // One that failed, one of what was not written, one that is behind an earlier one, and a write that is not above it.
    assert_eq!(unstable_until(&with(probe(read, 9, 10, 0))), Some(at(9)));
    assert_eq!(unstable_until(&with(probe(read, 10, 11, 9))), Some(at(10)));
    assert_eq!(unstable_until(&with(probe(read, 9, 10, 1))), Some(at(5)));
    assert_eq!(unstable_until(&with(probe(write, 9, 10, 2))), Some(at(5)));
}
