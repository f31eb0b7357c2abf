//! The breakdown of the time of operations: beside the measurements, a load of which some operations are watched.

use super::{Operation, Options, of};
use crate::error::RunError;
use crate::load::{self, History, Plan};
use crate::system;
use crate::target::{Answer, Target, TargetName};
use areo_telemetry::summary::{Share, summarize};
use areo_telemetry::{Recorder, SpanRecord, Trace};
use serde::Serialize;
use std::time::Duration;
use tokio::time::sleep;

/// The length of such a load, at most: some hundred operations are watched.
const TIME: Duration = Duration::from_millis(500);
/// Time in which servers complete the rest of operations that have ended for their clients.
const SETTLED: Duration = Duration::from_millis(50);

/// Asks the server with this admin port for the spans of operations that have ended since then, in nanoseconds since
/// 1970.
pub type Ask = dyn Fn(String, u64) -> Answer<'static, Vec<SpanRecord>, String>;

/// The recorders that watch operations.
pub struct Watch {
    /// The recorder of this process. It rests while anything is measured, unless it is to watch all the time.
    pub recorder: Recorder,
    /// The recorders of servers.
    pub ask: Box<Ask>,
}

/// The breakdown of the time of operations, of a store that tells. The names of the fields are those of `--json`, and stay.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Breakdown {
    pub target: TargetName,
    /// The operation of clients.
    pub operation: Operation,
    /// Bytes of a value.
    pub size: usize,
    /// The number of clients.
    pub clients: usize,
    /// Operations that were watched.
    pub operations: usize,
    /// The time that they took on average, in microseconds.
    pub mean_us: f64,
    /// The parts of that time, which are all of it.
    pub parts: Vec<Part>,
    /// The operation of them that took the time in the middle: its spans, in this process and in servers.
    pub sample: Vec<SpanRecord>,
}

/// A part of the time of operations.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Part {
    /// The work that it was spent on.
    pub name: String,
    /// The time of it, in microseconds on average.
    pub us: f64,
}

/// Goes on with the measured load for some time, with operations traced; does nothing for a store without traces.
pub(super) async fn watch(
    options: &Options,
    (name, target): (TargetName, &dyn Target),
    case: (usize, usize, Operation),
    history: Option<&History>,
) -> Result<Option<Breakdown>, RunError> {
    let admins = target.admins().await?;
    let Some(watch) = &options.watch else {
        return Ok(None);
    };
    if admins.is_empty() {
        return Ok(None);
    }
    let plan = Plan {
        time: options.time.min(TIME),
        ..options.plan(case)
    };
    let rests = watch.recorder.rests();
    watch.recorder.rest(false);
    let since = system::now_ms() * 1_000_000;
    let done = load::run(target, &plan, history).await;
    sleep(SETTLED).await;
    watch.recorder.rest(rests);
    done.map_err(of(name))?;
    let mut records = watch.recorder.ring().since(since);
    for admin in admins {
        let told = (watch.ask)(admin, since).await;
        let untold = |why| format!("a server of {name} does not tell what it did: {why}");
        records.extend(told.map_err(|why: String| RunError::Failed(untold(why)))?);
    }
    Ok(broken_down((name, case), records))
}

/// `None` if no operation was watched as a whole.
fn broken_down(
    (target, (size, clients, operation)): (TargetName, (usize, usize, Operation)),
    records: Vec<SpanRecord>,
) -> Option<Breakdown> {
    let names: &[&str] = match operation {
        Operation::Put | Operation::PutIf => &["areo.write", "areo.upload"],
        Operation::Get => &["areo.read"],
        Operation::Increment | Operation::List | Operation::ListFolder => return None,
    };
    let mut traces = Trace::assemble(records);
    traces.retain(|trace| {
        let is_whole = trace.roots.len() == 1 && names.contains(&trace.name());
        is_whole && !trace.is_aside()
    });
    traces.sort_by_key(Trace::duration_ns);
    let rows = summarize(&traces);
    let wholes = rows.iter().filter(|row| row.span == row.operation);
    let row = wholes.max_by_key(|row| row.count)?;
    traces.retain(|trace| trace.name() == row.operation);
    let sample = traces.get(traces.len() / 2)?;
    let ns: u64 = traces.iter().map(Trace::duration_ns).sum();
    let mean_us = ns as f64 / 1e3 / traces.len() as f64;
    let share = |share| row.shares.get(&share).copied().unwrap_or_default();
    let waited = share(Share::Communication);
    let disk = row.disk.min(waited);
    let parts = [
        ("encoding", share(Share::Encode)),
        ("decoding", share(Share::Decode)),
        ("configurations", share(Share::Configuration)),
        ("network and servers", waited - disk),
        ("disk", disk),
        ("rest of the client", share(Share::Other)),
    ];
    let part = |(name, share): (&str, f64)| Part {
        name: name.into(),
        us: share * mean_us,
    };
    Some(Breakdown {
        target,
        operation,
        size,
        clients,
        operations: traces.len(),
        mean_us,
        parts: parts.map(part).into(),
        sample: sample
            .walk()
            .into_iter()
            .map(|(_, span)| span.clone())
            .collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use areo_telemetry::{SpanId, TraceId};
    use std::collections::BTreeMap;

    /// A put of this many microseconds: half of it in a quorum call, of which a server synced the first tenth.
    fn put(trace: u128, us: u64) -> Vec<SpanRecord> {
        let span =
            |span, parent: u64, name: &'static str, process: &'static str, end: u64| SpanRecord {
                trace: TraceId(trace),
                span: SpanId(span),
                parent: (parent > 0).then_some(SpanId(parent)),
                local_root: false,
                name: name.into(),
                process: process.into(),
                start_ns: 1_000_000,
                duration_ns: end * 1_000,
                attributes: BTreeMap::new(),
            };
        vec![
            span(1, 0, "areo.write", "client", us),
            span(2, 1, "net.quorum", "client", us / 2),
            span(3, 2, "server.access", "s1", us / 4),
            span(4, 3, "store.sync", "s1", us / 20),
        ]
    }

    #[test]
    fn parts_are_the_whole_and_the_sample_is_in_the_middle() {
        let mut records = [put(1, 1_000), put(2, 100_000), put(3, 2_000)].concat();
        // What began before, and what is no put.
        records.extend(put(4, 10).into_iter().skip(1));
        let mut other = put(5, 10);
        other[0].name = "areo.read".into();
        records.extend(other);
        let case = (1024, 2, Operation::Put);
        let found = broken_down((TargetName::Areo, case), records.clone()).unwrap();
        assert_eq!((found.operations, found.clients), (3, 2));
        assert!((found.mean_us - 103_000.0 / 3.0).abs() < 1e-6);
        let all: f64 = found.parts.iter().map(|part| part.us).sum();
        assert!((all - found.mean_us).abs() < 1e-6, "{found:?}");
        let share = |name: &str| {
            let part = found.parts.iter().find(|part| part.name == name);
            format!("{:.2}", part.unwrap().us / found.mean_us)
        };
        assert_eq!(share("disk"), "0.05");
        assert_eq!(share("network and servers"), "0.45");
        assert_eq!(share("rest of the client"), "0.50");
        let sampled: Vec<&str> = found.sample.iter().map(|span| &*span.name).collect();
        assert_eq!(
            sampled,
            ["areo.write", "net.quorum", "server.access", "store.sync"]
        );
        assert_eq!(found.sample[0].duration_ns, 2_000_000);
        let none = broken_down((TargetName::Areo, (1024, 2, Operation::Get)), put(1, 5));
        assert_eq!(none, None);
    }
}
