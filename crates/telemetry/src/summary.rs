//! Many traces added up: where the time of operations goes. The table from which the papers argued.

use crate::record::SpanRecord;
use crate::trace::{Node, Trace};
use serde::Serialize;
use std::collections::BTreeMap;

/// A share of the time of an operation. What a span's parts do not account for is its own.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Share {
    /// Waiting for servers: requests, their work, replies.
    Communication,
    /// Computing parity fragments.
    Encode,
    /// Computing missing data fragments.
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
    /// Name of the operation.
    pub operation: String,
    /// The span; the operation itself first.
    pub span: String,
    /// Number of operations.
    pub count: usize,
    /// Median duration, in nanoseconds.
    pub p50_ns: u64,
    /// 99 of 100 were faster, in nanoseconds.
    pub p99_ns: u64,
    /// Quorum calls for each, on average.
    pub rounds: f64,
    /// Shares of the operation's time, from 0 to 1; only for the operation itself.
    pub shares: BTreeMap<Share, f64>,
    /// Share of the operation's time, from 0 to 1, in which the slowest server that it waited for wrote to disk; only
    /// for the operation itself.
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
                spend(node, &mut spent);
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

/// The begin and the end of an interval, in nanoseconds.
type Interval = (u64, u64);

fn interval(span: &SpanRecord) -> Interval {
    (span.start_ns, span.end_ns())
}

/// The number of nanoseconds that lie in at least one of them.
fn covered(intervals: &[Interval]) -> u64 {
    let mut sorted = intervals.to_vec();
    sorted.sort_unstable();
    let mut until = 0;
    let uncovered = |(begin, end): Interval| {
        let begin = begin.max(until);
        until = until.max(end);
        end.saturating_sub(begin)
    };
    sorted.into_iter().map(uncovered).sum()
}

/// Assigns each nanosecond of an operation in the client to a share. Parts that run side by side take no more time
/// than the operation: a nanosecond is assigned once, in the order of [`ORDER`].
fn spend(operation: &Node, spent: &mut BTreeMap<Share, u64>) {
    let mut of_share: BTreeMap<Share, Vec<Interval>> = BTreeMap::new();
    find_shares(operation, interval(&operation.span), &mut of_share);
    let (mut given, mut before) = (Vec::new(), 0);
    for share in ORDER {
        given.extend(of_share.remove(&share).unwrap_or_default());
        let until_here = covered(&given);
        *spent.entry(share).or_default() += until_here - before;
        before = until_here;
    }
    *spent.entry(Share::Other).or_default() += operation.span.duration_ns - before;
}

/// The order in which shares that overlap count. Computing comes first, because it keeps the client busy while other
/// parts wait. Finding configurations comes last, because it costs nothing while another part is waited for.
const ORDER: [Share; 4] = [
    Share::Encode,
    Share::Decode,
    Share::Communication,
    Share::Configuration,
];

/// Finds the intervals of each share within the operation. A call that asks about configurations counts as that, not
/// as communication.
fn find_shares(node: &Node, (begin, end): Interval, found: &mut BTreeMap<Share, Vec<Interval>>) {
    let Some(share) = Share::of(&node.span.name) else {
        let local = |part: &&Node| !part.span.name.starts_with("server.");
        for part in node.parts.iter().filter(local) {
            find_shares(part, (begin, end), found);
        }
        return;
    };
    let (from, to) = interval(&node.span);
    let within = (from.clamp(begin, end), to.clamp(begin, end));
    found.entry(share).or_default().push(within);
}

/// The quorum calls below a span, itself included.
fn rounds(node: &Node) -> usize {
    usize::from(node.span.name == "net.quorum") + node.parts.iter().map(rounds).sum::<usize>()
}

/// The time that the disks took that an operation waited for: in each quorum call the longest sync that ended before it did; at most as long as the
/// calls, which may go on side by side.
fn sync_ns(operation: &Node) -> u64 {
    let mut syncs = Vec::new();
    find_syncs(operation, &mut syncs);
    covered(&syncs)
}

fn find_syncs(node: &Node, syncs: &mut Vec<Interval>) {
    if node.span.name != "net.quorum" {
        node.parts.iter().for_each(|part| find_syncs(part, syncs));
        return;
    }
    let (begin, end) = interval(&node.span);
    if let Some(sync) = longest_sync(&node.parts, end) {
        // A server's clock is its own: how long is known, when is not, but for that it was during the call.
        let ns = sync.duration_ns.min(end - begin);
        let begun = sync.start_ns.clamp(begin, end - ns);
        syncs.push((begun, begun + ns));
    }
}

fn longest_sync(nodes: &[Node], before_ns: u64) -> Option<&SpanRecord> {
    let mut longest: Option<&SpanRecord> = None;
    for node in nodes {
        let is_sync = |span: &&SpanRecord| span.name == "store.sync" && span.end_ns() <= before_ns;
        let own = Some(&node.span).filter(is_sync);
        let below = longest_sync(&node.parts, before_ns);
        let all = longest.into_iter().chain(own).chain(below);
        longest = all.max_by_key(|span| span.duration_ns);
    }
    longest
}

/// The value below which this number of thousandths of the sorted values are.
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

    /// Spans of a read of a value in blocks: four reads of 400 µs, of which three run at any time, and one decodes
    /// meanwhile.
    fn side_by_side() -> Vec<SpanRecord> {
        let span = |span, parent, name: &'static str, start_us: u64, us: u64| SpanRecord {
            name: name.into(),
            process: "client".into(),
            span: SpanId(span),
            parent: (parent > 0).then_some(SpanId(parent)),
            start_ns: 1_000_000 + start_us * 1000,
            duration_ns: us * 1000,
            ..example()[2].clone()
        };
        let mut records = vec![span(1, 0, "areo.download", 0, 1000)];
        for read in 0..4 {
            let (id, begin) = (10 * (read + 1), 100 + read * 100);
            records.extend([
                span(id, 1, "areo.read", begin, 400),
                span(id + 1, id, "dap.get_data", begin, 400),
                span(id + 2, id + 1, "net.quorum", begin, 350),
            ]);
        }
        // While the second and the third read wait.
        records.push(span(14, 11, "ec.decode", 460, 30));
        // A call that began in time, and was given up after the operation.
        records.extend([
            span(51, 1, "config.read", 900, 200),
            span(52, 51, "net.quorum", 900, 200),
        ]);
        records
    }

    #[test]
    fn what_goes_on_side_by_side_takes_no_more_than_the_whole() {
        let rows = summarize(&Trace::assemble(side_by_side()));
        let whole = &rows[0];
        assert_eq!((&*whole.operation, whole.count), ("areo.download", 1));
        let percent = |share| format!("{:.1}", whole.shares[&share] * 100.0);
        // From 100 to 750 µs the client waits, less the 30 in which it computes.
        assert_eq!(percent(Share::Communication), "62.0");
        assert_eq!(percent(Share::Decode), "3.0");
        assert_eq!(percent(Share::Configuration), "10.0");
        assert_eq!(percent(Share::Other), "25.0");
        let all: f64 = whole.shares.values().sum();
        assert_eq!(format!("{all:.6}"), "1.000000");
    }

    #[test]
    fn disks_that_write_side_by_side_take_no_more_than_the_calls() {
        let mut records = side_by_side();
        let sync = |id, parent, start_us: u64| SpanRecord {
            name: "store.sync".into(),
            process: "s1".into(),
            span: SpanId(id),
            parent: Some(SpanId(parent)),
            start_ns: 1_000_000 + start_us * 1000,
            duration_ns: 300_000,
            ..example()[2].clone()
        };
        // One as it was; and one by a clock that is late, in a call that ended before.
        records.extend([sync(61, 12, 120), sync(62, 22, 0)]);
        let rows = summarize(&Trace::assemble(records));
        // From 120 to 420 µs, and from 200 to 500.
        assert_eq!(format!("{:.3}", rows[0].disk), "0.380");
    }

    #[test]
    fn intervals_are_added_up_without_what_they_share() {
        assert_eq!(covered(&[]), 0);
        assert_eq!(covered(&[(5, 9), (1, 3)]), 6);
        assert_eq!(covered(&[(1, 5), (3, 9), (4, 4), (2, 3)]), 8);
    }

    #[test]
    fn quantiles_of_few_values_are_values() {
        assert_eq!(quantile(&[], 500), 0);
        assert_eq!(quantile(&[7], 990), 7);
        assert_eq!(quantile(&[1, 2, 3], 500), 2);
        assert_eq!(quantile(&[1, 2, 3], 990), 3);
    }
}
