//! What is remembered: the last spans, and whole traces that took longest. Bounded in both.

use crate::record::{SpanRecord, TraceId};
use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};

/// How much a ring keeps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Spans, in the order in which they ended.
    pub spans: usize,
    /// Traces of each kind of operation that took longest.
    pub slowest: usize,
    /// Spans of one of those; the rest of a larger one is not kept.
    pub slow_spans: usize,
}

impl Default for Limits {
    /// About 5 MiB at most.
    fn default() -> Limits {
        Limits {
            spans: 16 << 10,
            slowest: 8,
            slow_spans: 512,
        }
    }
}

/// The spans of one process that ended last, and those of the slowest operations of each kind.
#[derive(Debug)]
pub struct Ring {
    limits: Limits,
    last: VecDeque<SpanRecord>,
    /// By the name of the outermost span in this process: durations with the spans, the slowest first.
    slowest: BTreeMap<Cow<'static, str>, Vec<(u64, Vec<SpanRecord>)>>,
}

impl Ring {
    /// An empty one.
    pub fn new(limits: Limits) -> Ring {
        assert!(limits.spans > 0, "a ring holds something");
        Ring {
            limits,
            last: VecDeque::new(),
            slowest: BTreeMap::new(),
        }
    }

    /// Takes in a span that has ended. Its children have ended before it.
    pub fn push(&mut self, record: SpanRecord) {
        if self.last.len() == self.limits.spans {
            self.last.pop_front();
        }
        let is_operation = record.local_root;
        let (name, trace, duration_ns) = (record.name.clone(), record.trace, record.duration_ns);
        let began_ns = record.start_ns;
        self.last.push_back(record);
        if is_operation && self.is_slow(&name, duration_ns) {
            let spans = self.recent_of(trace, began_ns);
            let slowest = self.slowest.entry(name).or_default();
            let at = slowest.partition_point(|(other, _)| *other >= duration_ns);
            slowest.insert(at, (duration_ns, spans));
            slowest.truncate(self.limits.slowest);
        }
    }

    fn is_slow(&self, name: &str, duration_ns: u64) -> bool {
        let Some(slowest) = self.slowest.get(name) else {
            return self.limits.slowest > 0;
        };
        let fastest = slowest.last().map(|(fastest, _)| *fastest);
        slowest.len() < self.limits.slowest || fastest.is_some_and(|fastest| fastest < duration_ns)
    }

    /// The spans of the trace that began with its operation or later, from the last one back.
    fn recent_of(&self, trace: TraceId, began_ns: u64) -> Vec<SpanRecord> {
        let from_last = self.last.iter().rev();
        let since = from_last.take_while(|record| record.end_ns() >= began_ns);
        let of_trace = since.filter(|record| record.trace == trace);
        of_trace.take(self.limits.slow_spans).cloned().collect()
    }

    /// Everything that is known of one trace.
    pub fn trace(&self, id: TraceId) -> Vec<SpanRecord> {
        let slow = self.slowest.values().flatten().flat_map(|(_, spans)| spans);
        let all = self.last.iter().chain(slow);
        distinct(all.filter(|record| record.trace == id))
    }

    /// Everything that is known of the traces whose operations ended last in this process, at most so many of them.
    pub fn last(&self, traces: usize) -> Vec<SpanRecord> {
        let mut ids: Vec<TraceId> = Vec::new();
        for record in self.last.iter().rev().filter(|record| record.local_root) {
            if !ids.contains(&record.trace) {
                if ids.len() == traces {
                    break;
                }
                ids.push(record.trace);
            }
        }
        distinct(
            self.last
                .iter()
                .filter(|record| ids.contains(&record.trace)),
        )
    }

    /// The spans of the slowest operations of each kind.
    pub fn slowest(&self) -> Vec<SpanRecord> {
        distinct(self.slowest.values().flatten().flat_map(|(_, spans)| spans))
    }

    /// The spans that ended at this time or later, in nanoseconds since 1970.
    pub fn since(&self, ns: u64) -> Vec<SpanRecord> {
        let recent = self.last.iter().filter(|record| record.end_ns() >= ns);
        recent.cloned().collect()
    }
}

fn distinct<'a>(records: impl Iterator<Item = &'a SpanRecord>) -> Vec<SpanRecord> {
    let by_id: BTreeMap<_, _> = records
        .map(|record| ((record.trace, record.span), record))
        .collect();
    by_id.into_values().cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::SpanId;

    fn span(trace: u128, id: u64, local_root: bool, start_ns: u64, duration_ns: u64) -> SpanRecord {
        SpanRecord {
            trace: TraceId(trace),
            span: SpanId(id),
            parent: None,
            local_root,
            name: if local_root { "areo.read" } else { "phase1" }.into(),
            process: "client".into(),
            start_ns,
            duration_ns,
            attributes: BTreeMap::new(),
        }
    }

    fn ids(records: &[SpanRecord]) -> Vec<(u128, u64)> {
        records
            .iter()
            .map(|record| (record.trace.0, record.span.0))
            .collect()
    }

    #[test]
    fn a_flood_leaves_the_last_spans_and_the_slowest_traces() {
        let limits = Limits {
            spans: 10,
            slowest: 2,
            slow_spans: 2,
        };
        let mut ring = Ring::new(limits);
        // Operation i takes 1 ns, but for two early ones; each has a part.
        for i in 0..100_u64 {
            let duration_ns = match i {
                3 => 500,
                5 => 700,
                _ => 1,
            };
            ring.push(span(u128::from(i), 1, false, 1000 * i, duration_ns));
            ring.push(span(u128::from(i), 2, true, 1000 * i, duration_ns));
        }
        assert_eq!(ids(&ring.last(1)), [(99, 1), (99, 2)]);
        assert_eq!(ring.last(1000).len(), 10);
        assert_eq!(ids(&ring.slowest()), [(3, 1), (3, 2), (5, 1), (5, 2)]);
        assert_eq!(ids(&ring.trace(TraceId(3))), [(3, 1), (3, 2)]);
        assert_eq!(ring.trace(TraceId(50)), [], "neither slow nor recent");
        assert_eq!(
            ids(&ring.since(98_001)),
            [(98, 1), (98, 2), (99, 1), (99, 2)]
        );
    }

    #[test]
    fn a_trace_with_very_many_spans_does_not_fill_the_memory_of_slow_ones() {
        let mut ring = Ring::new(Limits {
            slow_spans: 3,
            ..Limits::default()
        });
        for id in 1..100 {
            ring.push(span(1, id, false, 10, 5));
        }
        ring.push(span(1, 100, true, 10, 50));
        assert_eq!(ids(&ring.slowest()), [(1, 98), (1, 99), (1, 100)]);
    }
}
