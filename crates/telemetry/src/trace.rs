//! A trace, put together from what several processes remember of it.

use crate::record::{SpanId, SpanRecord, TraceId, Value};
use std::collections::{BTreeMap, BTreeSet};

/// One trace: a forest, because a process that has forgotten its part, or has ended, leaves holes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// The id of the trace.
    pub id: TraceId,
    /// The outermost spans that are known, in order of time.
    pub roots: Vec<Node>,
}

/// A span with its parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    pub span: SpanRecord,
    /// Its parts, in order of time.
    pub parts: Vec<Node>,
}

impl Trace {
    /// Puts together the known spans of traces, from any processes in any order; the oldest first.
    pub fn assemble(records: impl IntoIterator<Item = SpanRecord>) -> Vec<Trace> {
        let mut by_trace: BTreeMap<TraceId, BTreeMap<SpanId, SpanRecord>> = BTreeMap::new();
        for record in records {
            let spans = by_trace.entry(record.trace).or_default();
            spans.insert(record.span, record);
        }
        let mut traces: Vec<Trace> = by_trace
            .into_iter()
            .map(|(id, spans)| Trace::grow(id, spans))
            .collect();
        traces.sort_by_key(Trace::start_ns);
        traces
    }

    fn grow(id: TraceId, spans: BTreeMap<SpanId, SpanRecord>) -> Trace {
        let known: BTreeSet<SpanId> = spans.keys().copied().collect();
        let mut below: BTreeMap<Option<SpanId>, Vec<SpanRecord>> = BTreeMap::new();
        for span in spans.into_values() {
            let parent = span
                .parent
                .filter(|parent| known.contains(parent) && *parent != span.span);
            below.entry(parent).or_default().push(span);
        }
        Trace {
            id,
            roots: attach(None, &mut below),
        }
    }

    /// Beginning of its first span, in nanoseconds since 1970.
    pub fn start_ns(&self) -> u64 {
        self.roots.first().map_or(0, |root| root.span.start_ns)
    }

    /// The time that it took until the last of its outermost spans had ended, in nanoseconds.
    pub fn duration_ns(&self) -> u64 {
        let end_ns = self.roots.iter().map(|root| root.span.end_ns()).max();
        end_ns.unwrap_or(0).saturating_sub(self.start_ns())
    }

    /// Name of the operation: the name of the first span.
    pub fn name(&self) -> &str {
        self.roots.first().map_or("", |root| &root.span.name)
    }

    /// True if it is no operation of a caller: a process did it beside something else, and its first span says so (`aside`).
    pub fn is_aside(&self) -> bool {
        let first = self.roots.first();
        first.is_some_and(|root| root.span.attributes.get("aside") == Some(&Value::Bool(true)))
    }

    /// Its spans with their depths, each before its parts.
    pub fn walk(&self) -> Vec<(usize, &SpanRecord)> {
        let mut walked = Vec::new();
        let mut waiting: Vec<(usize, &Node)> =
            self.roots.iter().rev().map(|root| (0, root)).collect();
        while let Some((depth, node)) = waiting.pop() {
            walked.push((depth, &node.span));
            waiting.extend(node.parts.iter().rev().map(|part| (depth + 1, part)));
        }
        walked
    }

    /// Names and depths, a line each, processes left out: the shape by which two traces are compared.
    pub fn outline(&self) -> String {
        let line =
            |(depth, span): (usize, &SpanRecord)| format!("{}{}\n", "  ".repeat(depth), span.name);
        self.walk().into_iter().map(line).collect()
    }
}

/// The spans below this one, with theirs. Each is taken out, so that a ring of parents (garbage) ends.
fn attach(
    parent: Option<SpanId>,
    below: &mut BTreeMap<Option<SpanId>, Vec<SpanRecord>>,
) -> Vec<Node> {
    let mut spans = below.remove(&parent).unwrap_or_default();
    spans.sort_by_key(|span| (span.start_ns, span.span));
    let grow = |span: SpanRecord| {
        let parts = attach(Some(span.span), below);
        Node { span, parts }
    };
    spans.into_iter().map(grow).collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A read that asked two servers.
    pub(crate) fn example() -> Vec<SpanRecord> {
        let span =
            |span, parent, process: &'static str, name: &'static str, start_us: u64, us: u64| {
                SpanRecord {
                    trace: TraceId(0xa1),
                    span: SpanId(span),
                    parent: (parent > 0).then_some(SpanId(parent)),
                    local_root: parent == 0 || name.starts_with("server."),
                    name: name.into(),
                    process: process.into(),
                    start_ns: 1_000_000 + start_us * 1000,
                    duration_ns: us * 1000,
                    attributes: BTreeMap::new(),
                }
            };
        let mut all = vec![
            span(5, 3, "s2", "server.access", 250, 300),
            span(4, 3, "s1", "server.access", 200, 100),
            span(1, 0, "client", "areo.read", 0, 1000),
            span(2, 1, "client", "dap.get_data", 50, 900),
            span(3, 2, "client", "net.quorum", 100, 600),
            span(6, 2, "client", "ec.decode", 710, 200),
        ];
        all[5]
            .attributes
            .insert("bytes".into(), Value::Number(4096));
        all
    }

    #[test]
    fn a_trace_is_put_together_from_parts_in_any_order() {
        let mut records = example();
        records.extend(example());
        let traces = Trace::assemble(records);
        assert_eq!(traces.len(), 1);
        let trace = &traces[0];
        assert_eq!(
            (trace.name(), trace.duration_ns()),
            ("areo.read", 1_000_000)
        );
        assert_eq!(
            trace.outline(),
            "areo.read\n  dap.get_data\n    net.quorum\n      server.access\n      server.access\n    ec.decode\n"
        );
        let processes: Vec<&str> = trace
            .walk()
            .iter()
            .map(|(_, span)| &*span.process)
            .collect();
        assert_eq!(
            processes,
            ["client", "client", "client", "s1", "s2", "client"]
        );
    }

    #[test]
    fn what_is_done_beside_something_else_says_so_in_its_first_span() {
        let mut records = example();
        let aside = |record: &mut SpanRecord| {
            record.attributes.insert("aside".into(), Value::Bool(true));
        };
        aside(&mut records[3]);
        assert!(
            !Trace::assemble(records.clone())[0].is_aside(),
            "a part of it"
        );
        aside(&mut records[2]);
        assert!(Trace::assemble(records)[0].is_aside());
    }

    #[test]
    fn a_trace_with_a_hole_has_several_roots() {
        let without_middle = example().into_iter().filter(|span| span.span != SpanId(2));
        let trace = Trace::assemble(without_middle).remove(0);
        let roots: Vec<&str> = trace.roots.iter().map(|root| &*root.span.name).collect();
        assert_eq!(roots, ["areo.read", "net.quorum", "ec.decode"]);
    }
}
