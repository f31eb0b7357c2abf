//! The reports of the libraries on their work: events as lines on standard error, spans to the recorder.

mod limit;
mod line;

use crate::args::LogWord;
use crate::output::{self, Log, Output};
use areo_client::TraceContext;
use areo_telemetry::{Recorder, context_of};
use limit::Limit;
use line::Lines;
use tracing::{Level, Metadata, Span};
use tracing_subscriber::filter::{FilterExt, LevelFilter, filter_fn};
use tracing_subscriber::layer::{Layer, SubscriberExt};

/// The log of a server.
pub(crate) fn of_server(out: Output, log: LogWord, recorder: &Recorder) {
    let level = match (out.quiet, out.verbose) {
        (true, _) => LevelFilter::WARN,
        (false, 0) => LevelFilter::INFO,
        (false, 1) => LevelFilter::DEBUG,
        (false, _) => LevelFilter::TRACE,
    };
    output::never_wait_for_readers();
    start(log, level, recorder);
}

/// The log of any other command: none, unless more is asked for.
pub(crate) fn of_client(out: Output, recorder: &Recorder) {
    let level = match out.verbose {
        0 => LevelFilter::OFF,
        1 => LevelFilter::DEBUG,
        _ => LevelFilter::TRACE,
    };
    start(LogWord::Text, level, recorder);
}

fn start(log: LogWord, level: LevelFilter, recorder: &Recorder) {
    // Spans are the recorder's: some say which key they are for, which no log may.
    let events = level.and(filter_fn(is_event));
    let format = Lines {
        json: log == LogWord::Json,
        limit: Limit::default(),
    };
    let lines = tracing_subscriber::fmt::layer()
        .event_format(format)
        // Its complaints of a writer would go to standard error, and panic there.
        .log_internal_errors(false)
        .with_writer(|| Log);
    let lines = tracing_subscriber::registry().with(lines.with_filter(events));
    tracing::subscriber::set_global_default(recorder.subscriber(lines))
        .expect("a process does this once");
}

/// The identity of a span that is watched, for clients: servers join its trace.
pub(crate) fn trace_of(span: &Span) -> Option<TraceContext> {
    let context = context_of(span)?;
    Some(TraceContext {
        trace_id: context.trace.0.to_be_bytes(),
        span_id: context.span.0.to_be_bytes(),
        // Bit 0: watched.
        flags: 1,
    })
}

/// True for events of these crates, and for warnings of others.
fn is_event(metadata: &Metadata<'_>) -> bool {
    let is_ours = metadata.target().starts_with("areo");
    metadata.is_event() && (is_ours || *metadata.level() <= Level::WARN)
}
