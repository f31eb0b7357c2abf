//! Laws that hold on any machine: counts (`docs/spec` 7.5, and the hops of E7).

use super::actor::Actor;
use super::report::Law;
use super::variant::{Algorithm, Extras, Variant};
use crate::target::{CallError, Cost};
use bytes::Bytes;
use std::ops::RangeInclusive;
use std::time::Duration;
use tokio::time::sleep;

/// The size of messages beside elements, in bytes: of every server, and of every block of a file.
pub(super) const OF_A_SERVER: u64 = 4 << 10;
const OF_A_BLOCK: u64 = 128;
/// The number of times that the laws are checked until the system is quiet: confirmations travel after an operation has ended.
const LOOKS: usize = 50;
const BETWEEN: Duration = Duration::from_millis(20);

/// A law that holds if every count is in the expected range, and there is a count.
pub(super) fn counted(
    what: &'static str,
    (variant, at): (&str, &str),
    counts: impl IntoIterator<Item = u64>,
    expected: RangeInclusive<u64>,
) -> Law {
    let show = |from: u64, to: u64| match (from, to) {
        (from, u64::MAX) => format!("at least {from}"),
        (from, to) if from == to => from.to_string(),
        (from, to) => format!("{from} to {to}"),
    };
    let counts: Vec<u64> = counts.into_iter().collect();
    let ends = counts.iter().min().zip(counts.iter().max());
    Law {
        what: what.into(),
        variant: variant.into(),
        at: at.into(),
        expected: show(*expected.start(), *expected.end()),
        measured: ends.map_or("nothing".into(), |(min, max)| show(*min, *max)),
        holds: !counts.is_empty() && counts.iter().all(|count| expected.contains(count)),
    }
}

/// The laws of a variant without other clients, in a domain of `n` servers of which `k` make a value. `elements_come_first`: before
/// a quorum has shown a mark, as where no message takes long.
///
/// # Errors
/// [`CallError`].
pub(super) async fn quiet(
    variant: Variant,
    (actor, value): (&mut Actor, &Bytes),
    shape: (usize, usize, usize),
    (at, elements_come_first): (&str, bool),
) -> Result<Vec<Law>, CallError> {
    let mut laws = Vec::new();
    for _ in 0..LOOKS {
        // Up to date first: the newest version, and a local file.
        actor.read().await?;
        let write = actor.write(value.clone()).await?;
        sleep(BETWEEN).await;
        let (_, read) = actor.read().await?;
        let costs = (write, read);
        laws = of_costs(variant, costs, shape, (at, elements_come_first));
        if laws.iter().all(|law| law.holds) {
            break;
        }
    }
    Ok(laws)
}

pub(super) fn of_costs(
    variant: Variant,
    (write, read): (Cost, Cost),
    (n, k, size): (usize, usize, usize),
    (at, elements_come_first): (&str, bool),
) -> Vec<Law> {
    let name = variant.name();
    let law = |what, count, expected| counted(what, (&name, at), [count], expected);
    let element = if variant.dap.is_coded() {
        size.div_ceil(k)
    } else {
        size
    };
    let (wrote, got) = (write.counts, read.counts);
    let (writes, reads) = variant.quiet_rounds(element);
    // A read that a quorum has shown a mark, and of whose elements some are still on their way, asks for them again.
    let is_late = !elements_come_first && variant.finalizes();
    let most = if is_late { reads.max(2) } else { reads };
    let least = reads - u64::from(variant.writes_back_where_it_lacks());
    if variant.algorithm == Algorithm::CoAresF {
        let beside = n as u64 * (OF_A_SERVER + OF_A_BLOCK * read.blocks);
        // All blocks are asked for in one message only where one message tells all: with pointers on replies.
        return match variant.extras {
            Extras::Plain => vec![law(
                "rounds of a read of an unchanged file: at least those of a read for every block",
                got.rounds,
                least * read.blocks..=u64::MAX,
            )],
            Extras::Piggyback | Extras::Collecting => vec![
                law(
                    "rounds of a read of an unchanged file: one for all blocks",
                    got.rounds,
                    reads..=reads,
                ),
                law(
                    "bytes received by it: none of its data",
                    got.received_bytes,
                    0..=beside,
                ),
            ],
        };
    }
    let (all, beside) = ((n * element) as u64, n as u64 * OF_A_SERVER);
    vec![
        law("rounds of a read, quiet", got.rounds, least..=most),
        law("rounds of a write, quiet", wrote.rounds, writes..=writes),
        law(
            "bytes sent by a write: an element to every server",
            wrote.sent_bytes,
            all..=all + beside,
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use areo_client::{Counts, DapKind};

    #[test]
    fn a_law_is_broken_by_one_count() {
        let law = |counts: &[u64]| counted("hops", ("ARES", "1 MiB"), counts.to_vec(), 13..=14);
        let held = law(&[13, 14, 13]);
        assert!(held.holds);
        assert_eq!((&*held.expected, &*held.measured), ("13 to 14", "13 to 14"));
        let broken = law(&[13, 12]);
        assert!(!broken.holds);
        assert_eq!(broken.measured, "12 to 13");
        assert!(!law(&[]).holds, "what was not counted does not hold");
        assert_eq!(counted("hops", ("ARES", "1 MiB"), [2], 2..=2).expected, "2");
    }
    #[test]
    fn laws_are_those_of_the_variant() {
        let cost = |rounds, sent_bytes, received_bytes, blocks| Cost {
            counts: Counts {
                rounds,
                configurations: 1,
                sent_bytes,
                received_bytes,
                ..Counts::default()
            },
            blocks,
            ..Cost::default()
        };
        let held = |algorithm, dap, extras, write, read| -> Vec<bool> {
            let variant = Variant {
                algorithm,
                dap,
                extras,
                etcd: false,
            };
            let laws = of_costs(variant, (write, read), (5, 3, 60_000), ("64 KiB", true));
            laws.iter().map(|law| law.holds).collect()
        };
        let (ares, file) = (Algorithm::Ares, Algorithm::CoAresF);
        let write = cost(2, 100_500, 0, 0);
        let read = cost(1, 0, 60_000, 0);
        let of = |dap, extras| held(ares, dap, extras, write, read);
        assert_eq!(of(DapKind::Ec, Extras::Piggyback), [true; 3]);
        assert_eq!(of(DapKind::Ec, Extras::Plain), [false, false, true]);
        let ares = |read| {
            let laws = held(ares, DapKind::Ec, Extras::Plain, write, cost(read, 0, 0, 0));
            laws[0]
        };
        assert_eq!([2, 3, 4, 5].map(ares), [false, true, true, false]);
        let cas = |read| {
            let (write, read) = (cost(5, 0, 0, 0), cost(read, 0, 0, 0));
            held(Algorithm::Ares, DapKind::Cas, Extras::Plain, write, read)[0]
        };
        assert_eq!([3, 4, 5, 6].map(cas), [false, true, true, false]);
        let abd = of(DapKind::Abd, Extras::Collecting);
        assert_eq!(abd, [true, true, false], "whole values are sent");
        let read = |rounds, received| cost(rounds, 0, received, 10);
        let of = |extras, read| held(file, DapKind::Ec, extras, write, read);
        assert_eq!(of(Extras::Piggyback, read(1, 1_000)), [true; 2]);
        assert_eq!(of(Extras::Piggyback, read(2, 60_000)), [false; 2]);
        assert_eq!(of(Extras::Plain, read(40, 60_000)), [true]);
        assert_eq!(of(Extras::Plain, read(29, 60_000)), [false]);
    }
}
