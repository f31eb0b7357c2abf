//! Which traces are shown, and a line about each.

use crate::record::TraceId;
use crate::trace::Trace;
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// A trace in a list of traces.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct ListedTrace {
    /// The id of the trace.
    pub trace: TraceId,
    /// Name of the operation.
    pub operation: String,
    /// The time that it took, in nanoseconds.
    pub duration_ns: u64,
    /// Spans that are known of it.
    pub spans: usize,
}

impl From<&Trace> for ListedTrace {
    fn from(trace: &Trace) -> ListedTrace {
        ListedTrace {
            trace: trace.id,
            operation: trace.name().to_owned(),
            duration_ns: trace.duration_ns(),
            spans: trace.walk().len(),
        }
    }
}

/// The last operations of callers, the last one first.
pub fn last(mut traces: Vec<Trace>, count: usize) -> Vec<Trace> {
    traces.retain(|trace| !trace.is_aside());
    traces.reverse();
    traces.truncate(count);
    traces
}

/// The slowest operations of each kind, the slowest first. Requests of which the operation is not known, which are of other users, are shown where
/// there is nothing else.
pub fn slowest(mut traces: Vec<Trace>, count: usize) -> Vec<Trace> {
    let is_operation = |trace: &Trace| trace.name().starts_with("areo.");
    if traces.iter().any(is_operation) {
        traces.retain(is_operation);
    }
    traces.sort_by_key(|trace| Reverse(trace.duration_ns()));
    let mut of_kind: BTreeMap<String, usize> = BTreeMap::new();
    traces.retain(|trace| {
        let seen = of_kind.entry(trace.name().into()).or_default();
        *seen += 1;
        *seen <= count
    });
    traces
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{SpanId, SpanRecord};

    /// Names of the slowest traces among those with one span each.
    fn slow(names: &[&'static str]) -> Vec<String> {
        let record = |(number, name): (usize, &&'static str)| SpanRecord {
            trace: TraceId(number as u128),
            span: SpanId(1),
            parent: None,
            local_root: true,
            name: (*name).into(),
            process: "s1".into(),
            start_ns: 0,
            duration_ns: number as u64,
            attributes: BTreeMap::new(),
        };
        let records: Vec<SpanRecord> = names.iter().enumerate().map(record).collect();
        let chosen = slowest(Trace::assemble(records), 1);
        chosen.iter().map(|trace| trace.name().to_owned()).collect()
    }

    #[test]
    fn requests_of_others_do_not_stand_beside_operations() {
        let requests = ["server.access", "server.list", "server.access"];
        assert_eq!(slow(&requests), ["server.access", "server.list"]);
        let operations = ["areo.read", "areo.sweep", "areo.read"];
        let both = [requests, operations].concat();
        assert_eq!(slow(&both), ["areo.read", "areo.sweep"]);
    }
}
