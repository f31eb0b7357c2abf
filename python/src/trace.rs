//! The record of this process's operations, kept while a caller asks for it.

use crate::ending::detached;
use areo_client::TraceContext;
use areo_telemetry::{Limits, Recorder, Sampler, Trace, context_of, waterfall};
use pyo3::prelude::*;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tracing::Span;
use tracing::subscriber::{NoSubscriber, set_global_default};

/// Columns of a drawing.
const COLUMNS: usize = 120;
/// The longest wait for spans that end on the client's thread.
const ENDS: Duration = Duration::from_millis(250);

static RECORDER: OnceLock<Recorder> = OnceLock::new();
/// The number of callers that watch now.
static WATCHING: AtomicUsize = AtomicUsize::new(0);

/// The recorder, which rests until a caller asks.
fn recorder() -> &'static Recorder {
    RECORDER.get_or_init(|| {
        let recorder = Recorder::new(Sampler::Always, true, Limits::default());
        set_global_default(recorder.subscriber(NoSubscriber::new()))
            .expect("this library has a copy of `tracing` of its own, and does this once");
        recorder.rest(true);
        recorder
    })
}

/// The identity of a span, for servers.
pub(crate) fn trace_of(span: &Span) -> Option<TraceContext> {
    let context = context_of(span)?;
    Some(TraceContext {
        trace_id: context.trace.0.to_be_bytes(),
        span_id: context.span.0.to_be_bytes(),
        // Bit 0: watched.
        flags: 1,
    })
}

/// Records operations that begin from now on, until as many calls of `unwatch` came. Returns the traces that are known already.
#[pyfunction]
pub(crate) fn watch() -> Vec<String> {
    let recorder = recorder();
    if WATCHING.fetch_add(1, Ordering::Relaxed) == 0 {
        recorder.rest(false);
    }
    traces(recorder)
        .iter()
        .map(|it| it.id.to_string())
        .collect()
}

/// Ends a `watch`, and returns all traces that are known, oldest first: id, name, nanoseconds, the spans as JSON, and a drawing.
#[pyfunction]
pub(crate) fn unwatch(py: Python<'_>) -> Vec<(String, String, u64, String, String)> {
    let recorder = recorder();
    detached(py, || recorder.settle(ENDS));
    if WATCHING.fetch_sub(1, Ordering::Relaxed) == 1 {
        recorder.rest(true);
    }
    let shown = |trace: Trace| {
        let spans: Vec<_> = trace.walk().into_iter().map(|(_, span)| span).collect();
        let spans = serde_json::to_string(&spans).expect("names and numbers are JSON");
        (
            trace.id.to_string(),
            trace.name().to_owned(),
            trace.duration_ns(),
            spans,
            waterfall::draw(&trace, COLUMNS),
        )
    };
    traces(recorder).into_iter().map(shown).collect()
}

fn traces(recorder: &Recorder) -> Vec<Trace> {
    Trace::assemble(recorder.ring().since(0))
}
