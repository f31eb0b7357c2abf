//! Two traces side by side: what each did, how often, and where its time went.

use crate::summary::{Share, summarize};
use crate::trace::{Node, Trace};
use serde::Serialize;
use std::time::Duration;

/// The count of a piece of work in one trace, and its duration.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct WorkTotal {
    /// Number of times that the work was done.
    pub count: usize,
    /// Nanoseconds, all of them together; of servers, which work side by side, the longest.
    pub ns: u64,
}

/// One kind of span, at one place in the trees.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Row {
    /// Its depth in them.
    pub depth: usize,
    /// The name of the span.
    pub span: String,
    /// In the first trace; nothing if it is not there.
    pub first: Option<WorkTotal>,
    /// In the second one.
    pub second: Option<WorkTotal>,
}

/// The time of a share in two traces.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Went {
    /// The share; `None`: the wait for disks, which is a part of communication.
    pub share: Option<Share>,
    /// The time of the first trace, in nanoseconds.
    pub first_ns: u64,
    /// The time of the second one, in nanoseconds.
    pub second_ns: u64,
}

/// The trees of both, laid upon each other: spans of one name below the same are one row.
pub fn rows(first: &Trace, second: &Trace) -> Vec<Row> {
    let mut rows = Vec::new();
    let (one, other): (Vec<_>, Vec<_>) =
        (first.roots.iter().collect(), second.roots.iter().collect());
    match (&one[..], &other[..]) {
        // Two operations of any kind are compared.
        ([one], [other]) if one.span.name != other.span.name => {
            rows.push(Row {
                depth: 0,
                span: format!("{} | {}", one.span.name, other.span.name),
                first: spent(&[one]),
                second: spent(&[other]),
            });
            merge(1, &parts(&[one]), &parts(&[other]), &mut rows);
        }
        _ => merge(0, &one, &other, &mut rows),
    }
    rows
}

/// The shares of the time of both traces, and the numbers of their quorum calls.
pub fn went(first: &Trace, second: &Trace) -> (Vec<Went>, [f64; 2]) {
    let sums = [first, second].map(|trace| {
        let rows = summarize(std::slice::from_ref(trace));
        rows.into_iter().find(|row| !row.shares.is_empty())
    });
    let ns = |which: usize, share: Option<Share>| {
        let Some(sum) = &sums[which] else { return 0 };
        let of_all = share.map_or(sum.disk, |share| sum.shares[&share]);
        Duration::from_nanos(sum.p50_ns).mul_f64(of_all).as_nanos() as u64
    };
    let kinds = Share::ALL.into_iter().map(Some).chain([None]);
    let went = kinds.map(|share| Went {
        share,
        first_ns: ns(0, share),
        second_ns: ns(1, share),
    });
    let rounds = |which: usize| sums[which].as_ref().map_or(0.0, |sum| sum.rounds);
    (went.collect(), [rounds(0), rounds(1)])
}

fn merge(depth: usize, first: &[&Node], second: &[&Node], rows: &mut Vec<Row>) {
    let mut names: Vec<&str> = Vec::new();
    for node in first.iter().chain(second) {
        if !names.contains(&&*node.span.name) {
            names.push(&node.span.name);
        }
    }
    for name in names {
        let (one, other) = (named(name, first), named(name, second));
        rows.push(Row {
            depth,
            span: name.into(),
            first: spent(&one),
            second: spent(&other),
        });
        merge(depth + 1, &parts(&one), &parts(&other), rows);
    }
}

fn named<'a>(name: &str, nodes: &[&'a Node]) -> Vec<&'a Node> {
    let of_name = nodes.iter().filter(|node| node.span.name == name);
    of_name.copied().collect()
}

fn parts<'a>(nodes: &[&'a Node]) -> Vec<&'a Node> {
    nodes.iter().flat_map(|node| &node.parts).collect()
}

fn spent(nodes: &[&Node]) -> Option<WorkTotal> {
    let name = &nodes.first()?.span.name;
    let durations = nodes.iter().map(|node| node.span.duration_ns);
    let ns = match name.starts_with("server.") || name.starts_with("store.") {
        true => durations.max().unwrap_or(0),
        false => durations.sum(),
    };
    let count = nodes.len();
    Some(WorkTotal { count, ns })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::SpanId;
    use crate::trace::tests::example;

    #[test]
    fn what_only_one_of_them_did_stands_beside_nothing() {
        let first = Trace::assemble(example()).remove(0);
        let mut other = example();
        // Without decoding, and twice as fast.
        other.retain(|span| span.name != "ec.decode");
        for span in &mut other {
            span.duration_ns /= 2;
        }
        let second = Trace::assemble(other).remove(0);
        let rows = rows(&first, &second);
        let shown: Vec<String> = rows
            .iter()
            .map(|row| {
                let of = |spent: Option<WorkTotal>| {
                    spent.map_or("-".into(), |spent| {
                        format!("{}x{}", spent.count, spent.ns / 1000)
                    })
                };
                let (first, second) = (of(row.first), of(row.second));
                format!("{} {} {first} {second}", row.depth, row.span)
            })
            .collect();
        assert_eq!(
            shown,
            [
                "0 areo.read 1x1000 1x500",
                "1 dap.get_data 1x900 1x450",
                "2 net.quorum 1x600 1x300",
                "3 server.access 2x300 2x150",
                "2 ec.decode 1x200 -"
            ]
        );
        let (went, rounds) = went(&first, &second);
        let of = |share| went.iter().find(|went| went.share == share).unwrap();
        let decode = of(Some(Share::Decode));
        assert_eq!((decode.first_ns, decode.second_ns), (200_000, 0));
        assert_eq!(of(Some(Share::Communication)).first_ns, 600_000);
        assert!(rounds.iter().all(|rounds| (rounds - 1.0).abs() < 1e-9));
    }

    #[test]
    fn different_operations_are_compared_all_the_same() {
        let first = Trace::assemble(example()).remove(0);
        let mut other = example();
        for span in other.iter_mut().filter(|span| span.span == SpanId(1)) {
            span.name = "areo.write".into();
        }
        let second = Trace::assemble(other).remove(0);
        let rows = rows(&first, &second);
        assert_eq!(rows[0].span, "areo.read | areo.write");
        assert!(rows.iter().all(|row| row.first == row.second));
    }
}
