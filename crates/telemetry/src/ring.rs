//! The remembered spans: the last ones, and whole traces that took longest. Bounded in both.
//!
//! The last spans lie one after the other in segments, which are written over in turn: remembering one copies a few lines of
//! memory and allocates nothing. They become [`SpanRecord`]s when they are read.

use crate::record::{Attributes, SpanId, SpanRecord, TraceId};
use crate::span_attributes::{Mark, SpanAttributes};
use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};

/// The most that a ring keeps.
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

/// A span that has ended, without its attributes and its process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EndedSpan {
    pub(crate) trace: TraceId,
    pub(crate) span: SpanId,
    pub(crate) parent: Option<SpanId>,
    pub(crate) local_root: bool,
    pub(crate) name: &'static str,
    pub(crate) start_ns: u64,
    pub(crate) duration_ns: u64,
}

impl EndedSpan {
    fn end_ns(&self) -> u64 {
        self.start_ns.saturating_add(self.duration_ns)
    }

    pub(crate) fn record(self, process: Cow<'static, str>, attributes: Attributes) -> SpanRecord {
        SpanRecord {
            trace: self.trace,
            span: self.span,
            parent: self.parent,
            local_root: self.local_root,
            name: self.name.into(),
            process,
            start_ns: self.start_ns,
            duration_ns: self.duration_ns,
            attributes,
        }
    }
}

/// Spans one after the other, and their attributes likewise: each up to its mark.
#[derive(Default, Debug)]
struct Segment {
    spans: Vec<(EndedSpan, Mark)>,
    said: SpanAttributes,
}

impl Segment {
    fn clear(&mut self) {
        self.spans.clear();
        self.said.clear();
    }

    fn record(&self, at: usize, process: Cow<'static, str>) -> SpanRecord {
        let (ended, to) = self.spans[at];
        let from = at.checked_sub(1).map(|before| self.spans[before].1);
        let said = self.said.read(from.unwrap_or_default(), to);
        ended.record(process, said)
    }
}

/// The spans of one process that ended last, and those of the slowest operations of each kind.
#[derive(Debug)]
pub struct Ring {
    limits: Limits,
    process: Cow<'static, str>,
    /// The last one is written to. Together they may hold one segment more than the limit.
    segments: VecDeque<Segment>,
    /// Spans in all of them.
    spans: usize,
    /// The slowest operations, by the name of the outermost span in this process: durations with the spans, the slowest first.
    slowest: BTreeMap<&'static str, Vec<(u64, Vec<SpanRecord>)>>,
}

/// Number of segments in a ring.
const SEGMENTS: usize = 32;

impl Ring {
    /// An empty one, of the process that is called so.
    pub(crate) fn new(limits: Limits, process: Cow<'static, str>) -> Ring {
        assert!(limits.spans > 0, "a ring holds something");
        Ring {
            limits,
            process,
            segments: VecDeque::new(),
            spans: 0,
            slowest: BTreeMap::new(),
        }
    }

    /// Sets the process name of the spans.
    pub(crate) fn name_process(&mut self, name: Cow<'static, str>) {
        self.process = name;
    }

    /// Takes in a span that has ended. Its children have ended before it.
    pub(crate) fn push(&mut self, ended: EndedSpan, said: &SpanAttributes) {
        let segment = self.segment();
        segment.said.append(said);
        let mark = segment.said.mark();
        segment.spans.push((ended, mark));
        self.spans += 1;
        if ended.local_root && self.is_slow(ended.name, ended.duration_ns) {
            let spans = self.recent_of(ended.trace, ended.start_ns);
            let slowest = self.slowest.entry(ended.name).or_default();
            let at = slowest.partition_point(|(other, _)| *other >= ended.duration_ns);
            slowest.insert(at, (ended.duration_ns, spans));
            slowest.truncate(self.limits.slowest);
        }
    }

    /// The segment that the next span goes into.
    fn segment(&mut self) -> &mut Segment {
        let room = (self.limits.spans / SEGMENTS).max(1);
        let is_full = |segment: &Segment| segment.spans.len() == room;
        if self.segments.back().is_none_or(is_full) {
            let first = self.segments.front().map_or(0, |first| first.spans.len());
            let segment = match self.spans - first >= self.limits.spans {
                true => self.reuse(),
                false => Segment::default(),
            };
            self.segments.push_back(segment);
        }
        self.segments.back_mut().expect("there is one by now")
    }

    /// The oldest one, empty.
    fn reuse(&mut self) -> Segment {
        let mut oldest = self.segments.pop_front().expect("it holds spans");
        self.spans -= oldest.spans.len();
        oldest.clear();
        oldest
    }

    fn is_slow(&self, name: &str, duration_ns: u64) -> bool {
        let Some(slowest) = self.slowest.get(name) else {
            return self.limits.slowest > 0;
        };
        let fastest = slowest.last().map(|(fastest, _)| *fastest);
        slowest.len() < self.limits.slowest || fastest.is_some_and(|fastest| fastest < duration_ns)
    }

    /// The last spans, from the last one back.
    fn recent(&self) -> impl Iterator<Item = (&Segment, usize)> {
        let segments = self.segments.iter().rev();
        let all = segments.flat_map(|segment| {
            let places = (0..segment.spans.len()).rev();
            places.map(move |at| (segment, at))
        });
        all.take(self.limits.spans)
    }

    /// The wanted records of the recent spans, in the order in which they ended.
    fn records(&self, wanted: impl Fn(&EndedSpan) -> bool) -> Vec<SpanRecord> {
        let recent = self.recent();
        let wanted = recent.filter(|(segment, at)| wanted(&segment.spans[*at].0));
        let records = wanted.map(|(segment, at)| segment.record(at, self.process.clone()));
        let mut records: Vec<SpanRecord> = records.collect();
        records.reverse();
        records
    }

    /// The spans of the trace that began with its operation or later, from the last one back.
    fn recent_of(&self, trace: TraceId, began_ns: u64) -> Vec<SpanRecord> {
        let ended = |(segment, at): &(&Segment, usize)| segment.spans[*at].0;
        let since = self
            .recent()
            .take_while(|span| ended(span).end_ns() >= began_ns);
        let of_trace = since.filter(|span| ended(span).trace == trace);
        let records = of_trace.map(|(segment, at)| segment.record(at, self.process.clone()));
        records.take(self.limits.slow_spans).collect()
    }

    /// Everything that is known of one trace.
    pub fn trace(&self, id: TraceId) -> Vec<SpanRecord> {
        let slow = self.slowest.values().flatten().flat_map(|(_, spans)| spans);
        let slow = slow.filter(|record| record.trace == id).cloned();
        distinct(
            self.records(|ended| ended.trace == id)
                .into_iter()
                .chain(slow),
        )
    }

    /// Everything that is known of the last `traces` traces whose operations ended in this process.
    pub fn last(&self, traces: usize) -> Vec<SpanRecord> {
        let mut ids: Vec<TraceId> = Vec::new();
        for (segment, at) in self.recent() {
            let (ended, _) = segment.spans[at];
            if ended.local_root && !ids.contains(&ended.trace) {
                if ids.len() == traces {
                    break;
                }
                ids.push(ended.trace);
            }
        }
        distinct(self.records(|ended| ids.contains(&ended.trace)))
    }

    /// The spans of the slowest operations of each kind.
    pub fn slowest(&self) -> Vec<SpanRecord> {
        let all = self.slowest.values().flatten().flat_map(|(_, spans)| spans);
        distinct(all.cloned())
    }

    /// The spans that ended at this time or later, in nanoseconds since 1970.
    pub fn since(&self, ns: u64) -> Vec<SpanRecord> {
        self.records(|ended| ended.end_ns() >= ns)
    }
}

fn distinct(records: impl IntoIterator<Item = SpanRecord>) -> Vec<SpanRecord> {
    let by_id: BTreeMap<_, _> = records
        .into_iter()
        .map(|record| ((record.trace, record.span), record))
        .collect();
    by_id.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Value;

    /// A span that says which it is.
    fn push(
        ring: &mut Ring,
        trace: u128,
        id: u64,
        local_root: bool,
        [start_ns, duration_ns]: [u64; 2],
    ) {
        let ended = EndedSpan {
            trace: TraceId(trace),
            span: SpanId(id),
            parent: None,
            local_root,
            name: if local_root { "areo.read" } else { "phase1" },
            start_ns,
            duration_ns,
        };
        let mut said = SpanAttributes::default();
        said.number("id", id);
        ring.push(ended, &said);
    }

    fn ids(records: &[SpanRecord]) -> Vec<(u128, u64)> {
        let id = |record: &SpanRecord| {
            let said = [("id".into(), Value::Number(record.span.0))];
            assert_eq!(record.attributes, said.into(), "what it said stays with it");
            (record.trace.0, record.span.0)
        };
        records.iter().map(id).collect()
    }

    #[test]
    fn a_flood_leaves_the_last_spans_and_the_slowest_traces() {
        let limits = Limits {
            spans: 10,
            slowest: 2,
            slow_spans: 2,
        };
        let mut ring = Ring::new(limits, "client".into());
        // Operation i takes 1 ns, but for two early ones; each has a part.
        for i in 0..100_u64 {
            let duration_ns = match i {
                3 => 500,
                5 => 700,
                _ => 1,
            };
            let times = [1000 * i, duration_ns];
            push(&mut ring, u128::from(i), 1, false, times);
            push(&mut ring, u128::from(i), 2, true, times);
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
        let limits = Limits {
            slow_spans: 3,
            ..Limits::default()
        };
        let mut ring = Ring::new(limits, "client".into());
        for id in 1..100 {
            push(&mut ring, 1, id, false, [10, 5]);
        }
        push(&mut ring, 1, 100, true, [10, 50]);
        assert_eq!(ids(&ring.slowest()), [(1, 98), (1, 99), (1, 100)]);
    }

    #[test]
    fn segments_are_written_over_in_turn() {
        let limits = Limits {
            spans: 4 * SEGMENTS,
            ..Limits::default()
        };
        let mut ring = Ring::new(limits, "client".into());
        let mut most = 0;
        for id in 1..1_000 {
            push(&mut ring, 1, id, false, [id, 1]);
            let held: usize = ring
                .segments
                .iter()
                .map(|segment| segment.spans.len())
                .sum();
            assert_eq!(held, ring.spans);
            most = most.max(held);
            let recent = ids(&ring.since(0));
            assert_eq!(recent.len(), held.min(limits.spans));
            assert_eq!(recent.last(), Some(&(1, id)), "the last one is there");
        }
        assert!((limits.spans..limits.spans + 8).contains(&most), "{most}");
    }
}
