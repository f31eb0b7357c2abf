//! Many traces added up: where the time of operations goes. The table from which the papers argued.

use crate::record::SpanRecord;
use crate::trace::{Node, Trace};
use serde::Serialize;
use std::collections::BTreeMap;

/// Where time can go. What a span's parts do not account for is its own.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Share {
    /// Waiting for servers: requests, their work, replies.
    Communication,
    /// Computing parity.
    Encode,
    /// Computing missing data.
    Decode,
    /// Finding out about configurations.
    Configuration,
    /// Everything else in the client.
    Other,
}

impl Share {
    /// All, in the order of a table.
    pub const ALL: [Share; 5] = [
        Share::Communication,
        Share::Encode,
        Share::Decode,
        Share::Configuration,
        Share::Other,
    ];

    fn of(name: &str) -> Option<Share> {
        Some(match name {
            "net.quorum" => Share::Communication,
            "ec.encode" => Share::Encode,
            "ec.decode" => Share::Decode,
            name if name.starts_with("config.") => Share::Configuration,
            _ => return None,
        })
    }
}

/// One kind of operation, or one kind of span in it.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Row {
    /// The operation.
    pub operation: String,
    /// The span; the operation itself first.
    pub span: String,
    /// How many.
    pub count: usize,
    /// Median duration, in nanoseconds.
    pub p50_ns: u64,
    /// 99 of 100 were faster, in nanoseconds.
    pub p99_ns: u64,
    /// Quorum calls for each, on average.
    pub rounds: f64,
    /// Of the operation's time, from 0 to 1; only for the operation itself.
    pub shares: BTreeMap<Share, f64>,
    /// Of the operation's time, from 0 to 1, how long the slowest server that it waited for wrote to disk; only for the
    /// operation itself.
    pub disk: f64,
}

/// Adds up traces by kind of operation.
pub fn summarize(traces: &[Trace]) -> Vec<Row> {
    let mut by_operation: BTreeMap<&str, Vec<&Node>> = BTreeMap::new();
    for root in traces.iter().flat_map(|trace| &trace.roots) {
        if root.span.name.starts_with("areo.") {
            by_operation.entry(&root.span.name).or_default().push(root);
        }
    }
    by_operation
        .into_iter()
        .flat_map(|(operation, roots)| rows(operation, &roots))
        .collect()
}

fn rows(operation: &str, roots: &[&Node]) -> Vec<Row> {
    let mut by_span: BTreeMap<&str, Vec<&Node>> = BTreeMap::new();
    let mut order: Vec<&str> = Vec::new();
    let mut waiting: Vec<&Node> = roots.to_vec();
    waiting.reverse();
    while let Some(node) = waiting.pop() {
        let name: &str = &node.span.name;
        if !order.contains(&name) {
            order.push(name);
        }
        by_span.entry(name).or_default().push(node);
        waiting.extend(node.parts.iter().rev());
    }
    let row = |span: &str| {
        let nodes = &by_span[span];
        let mut durations: Vec<u64> = nodes.iter().map(|node| node.span.duration_ns).collect();
        durations.sort_unstable();
        let (mut shares, mut disk) = (BTreeMap::new(), 0.0);
        if span == operation {
            let whole: u64 = durations.iter().sum();
            let mut spent: BTreeMap<Share, u64> = BTreeMap::new();
            for node in nodes {
                spend(node, None, &mut spent);
            }
            let share = |kind| *spent.get(&kind).unwrap_or(&0) as f64 / whole.max(1) as f64;
            shares = Share::ALL
                .into_iter()
                .map(|kind| (kind, share(kind)))
                .collect();
            let synced: u64 = nodes.iter().map(|node| sync_ns(node)).sum();
            disk = synced as f64 / whole.max(1) as f64;
        }
        Row {
            operation: operation.into(),
            span: span.into(),
            count: nodes.len(),
            p50_ns: quantile(&durations, 500),
            p99_ns: quantile(&durations, 990),
            rounds: nodes.iter().map(|node| rounds(node)).sum::<usize>() as f64
                / nodes.len() as f64,
            shares,
            disk,
        }
    };
    order.into_iter().map(row).collect()
}

/// Gives each nanosecond of the client to what it was spent on. A call that asks about configurations is that, not
/// communication.
fn spend(node: &Node, within: Option<Share>, spent: &mut BTreeMap<Share, u64>) {
    let share = within.or(Share::of(&node.span.name));
    let local = |part: &&Node| !part.span.name.starts_with("server.");
    let parts: u64 = node
        .parts
        .iter()
        .filter(local)
        .map(|part| part.span.duration_ns)
        .sum();
    let own = node.span.duration_ns.saturating_sub(parts);
    *spent.entry(share.unwrap_or(Share::Other)).or_default() += own;
    for part in node.parts.iter().filter(local) {
        spend(part, share, spent);
    }
}

/// The quorum calls below a span, itself included.
fn rounds(node: &Node) -> usize {
    usize::from(node.span.name == "net.quorum") + node.parts.iter().map(rounds).sum::<usize>()
}

/// How long the disks took that an operation waited for: in each quorum call the longest sync that ended before it did.
fn sync_ns(node: &Node) -> u64 {
    if node.span.name == "net.quorum" {
        let ends_ns = node.span.end_ns();
        return longest_sync(&node.parts, ends_ns);
    }
    node.parts.iter().map(sync_ns).sum()
}

fn longest_sync(nodes: &[Node], before_ns: u64) -> u64 {
    let of = |node: &Node| {
        let is_sync = |span: &SpanRecord| span.name == "store.sync" && span.end_ns() <= before_ns;
        let own = if is_sync(&node.span) {
            node.span.duration_ns
        } else {
            0
        };
        own.max(longest_sync(&node.parts, before_ns))
    };
    nodes.iter().map(of).max().unwrap_or(0)
}

/// The value below which so many thousandths of them are; they are sorted.
fn quantile(sorted: &[u64], thousandths: usize) -> u64 {
    let last = sorted.len().saturating_sub(1);
    let at = (last * thousandths).div_ceil(1000);
    sorted.get(at).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::SpanId;
    use crate::trace::tests::example;

    #[test]
    fn the_time_of_an_operation_is_given_to_what_it_was_spent_on() {
        let rows = summarize(&Trace::assemble(example()));
        let names: Vec<&str> = rows.iter().map(|row| &*row.span).collect();
        assert_eq!(
            names,
            [
                "areo.read",
                "dap.get_data",
                "net.quorum",
                "server.access",
                "ec.decode"
            ]
        );
        let read = &rows[0];
        assert_eq!(
            (read.count, read.p50_ns, &*format!("{}", read.rounds)),
            (1, 1_000_000, "1")
        );
        let percent = |share: f64| format!("{:.0}", share * 100.0);
        let share = |kind| percent(read.shares[&kind]);
        assert_eq!(share(Share::Communication), "60");
        assert_eq!(share(Share::Decode), "20");
        assert_eq!(share(Share::Other), "20");
        assert_eq!(share(Share::Configuration), "0");
        assert_eq!(rows[3].count, 2);
        assert!(rows[1..].iter().all(|row| row.shares.is_empty()));
    }

    #[test]
    fn an_operation_waits_for_the_slowest_disk_of_those_that_counted() {
        let mut records = example();
        let sync = |span, parent, start_us: u64, us: u64| SpanRecord {
            name: "store.sync".into(),
            span: SpanId(span),
            parent: Some(SpanId(parent)),
            start_ns: 1_000_000 + start_us * 1000,
            duration_ns: us * 1000,
            ..example()[0].clone()
        };
        // The second began in time, and ended after the call was decided.
        records.extend([sync(10, 4, 210, 50), sync(11, 5, 260, 900)]);
        let rows = summarize(&Trace::assemble(records));
        assert_eq!(format!("{:.3}", rows[0].disk), "0.050");
    }

    #[test]
    fn quantiles_of_few_values_are_values() {
        assert_eq!(quantile(&[], 500), 0);
        assert_eq!(quantile(&[7], 990), 7);
        assert_eq!(quantile(&[1, 2, 3], 500), 2);
        assert_eq!(quantile(&[1, 2, 3], 990), 3);
    }
}
