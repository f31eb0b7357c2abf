//! Turns spans into records.

mod sampler;
mod watcher;

use crate::export::{ExportCounts, Exporter, Settings};
use crate::ids::Ids;
use crate::record::{SpanId, SpanRecord, TraceId};
use crate::ring::{EndedSpan, Limits, Ring};
use crate::span_attributes::SpanAttributes;
use sampler::Pace;
use std::borrow::Cow;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tracing::Subscriber;
use tracing::span::Id;
use watcher::{Slots, Watcher};

pub use sampler::Sampler;

/// Fields by which a server says which span of another process asked.
const REMOTE_TRACE: &str = "remote_trace";
const REMOTE_SPAN: &str = "remote_span";
/// The name of a process without a given name.
pub(crate) const CLIENT: Cow<'static, str> = Cow::Borrowed("client");
/// The interval at which the end of spans is checked while a caller waits for it.
const GLANCE: Duration = Duration::from_millis(1);
/// The one field with a name that a user gave.
const KEY: &str = "key";

/// Remembers what happens in this process. Clones are the same recorder.
#[derive(Clone)]
pub struct Recorder(Arc<Shared>);

struct Shared {
    process: OnceLock<Cow<'static, str>>,
    sampler: Sampler,
    /// Nothing that begins here is watched for now.
    rests: AtomicBool,
    pace: Pace,
    keys: bool,
    ids: Ids,
    slots: Mutex<Slots>,
    ring: Mutex<Ring>,
    exporter: OnceLock<Exporter>,
    /// Wall-clock time is read once; from then on the monotonic clock counts, so that parts never begin before the whole.
    started: (Instant, u64),
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recorder")
            .field("process", &self.0.process)
            .field("sampler", &self.0.sampler)
            .finish_non_exhaustive()
    }
}

impl Recorder {
    /// A recorder. With `keys`, spans say which key an operation was for.
    pub fn new(sampler: Sampler, keys: bool, limits: Limits) -> Recorder {
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH);
        let now_ns = since_1970.map_or(0, |time| time.as_nanos() as u64);
        Recorder(Arc::new(Shared {
            process: OnceLock::new(),
            sampler,
            rests: AtomicBool::new(false),
            pace: Pace::default(),
            keys,
            ids: Ids::new(),
            slots: Mutex::default(),
            ring: Mutex::new(Ring::new(limits, CLIENT)),
            exporter: OnceLock::new(),
            started: (Instant::now(), now_ns),
        }))
    }

    /// Watches no operation that begins from now on, or those that the sampler chooses again. While it rests, spans
    /// cost nothing. For a thread whose subscriber is this one's: `tracing` asks anew there which spans are wanted.
    pub fn rest(&self, rests: bool) {
        self.0.rests.store(rests, Ordering::Relaxed);
        // Who records which kinds of spans was remembered.
        tracing_core::callsite::rebuild_interest_cache();
    }

    /// True if it rests.
    pub fn rests(&self) -> bool {
        self.0.rests.load(Ordering::Relaxed)
    }

    /// Sets the name of the process in its records, once: the name of a server. It is `client` otherwise.
    pub fn name_process(&self, name: impl Into<Cow<'static, str>>) {
        let name = name.into();
        if self.0.process.set(name.clone()).is_ok() {
            self.ring().name_process(name);
        }
    }

    /// Sends spans to a collector, too, from now on. The first call counts.
    pub fn export_to(&self, settings: Settings) {
        self.0.exporter.get_or_init(|| Exporter::new(settings));
    }

    /// Counts of the spans that were to be exported.
    pub fn exported(&self) -> ExportCounts {
        let exporter = self.0.exporter.get();
        exporter.map_or_else(ExportCounts::default, Exporter::exported)
    }

    /// Waits until every span has ended, for this time at most: an abandoned operation ends on its own thread.
    pub fn settle(&self, patience: Duration) {
        let begun = Instant::now();
        while self.open_spans() > 0 && begun.elapsed() < patience {
            std::thread::sleep(GLANCE);
        }
    }

    fn open_spans(&self) -> usize {
        let slots = self.0.slots.lock().expect("no holder of the lock panics");
        slots.open()
    }

    /// Delivers the spans that wait to be exported, for this time at most, and exports nothing after that. Blocks.
    pub fn finish_export(&self, patience: Duration) -> ExportCounts {
        let finish = |exporter: &Exporter| exporter.finish(patience);
        self.0.exporter.get().map(finish).unwrap_or_default()
    }

    /// A subscriber that takes spans to this recorder, and events to another one (`NoSubscriber`: nowhere).
    pub fn subscriber(
        &self,
        events: impl Subscriber + Send + Sync,
    ) -> impl Subscriber + Send + Sync {
        Watcher::new(self.0.clone(), Box::new(events))
    }

    /// The ring of remembered spans, locked.
    pub fn ring(&self) -> MutexGuard<'_, Ring> {
        self.0.ring.lock().expect("no holder of the lock panics")
    }
}

impl Shared {
    fn at(&self, instant: Instant) -> u64 {
        let (started, started_ns) = self.started;
        let since = instant.saturating_duration_since(started).as_nanos() as u64;
        started_ns.saturating_add(since)
    }

    /// True if operations that begin here may be watched.
    fn samples(&self) -> bool {
        self.sampler != Sampler::Never && !self.rests.load(Ordering::Relaxed)
    }

    /// True if one that begins now is.
    fn takes(&self) -> bool {
        if !self.samples() {
            return false;
        }
        match self.sampler {
            Sampler::Never => false,
            Sampler::Always => true,
            // 53 random bits are a number from 0 to 1.
            Sampler::Share(share) => {
                ((self.ids.random() >> 11) as f64) < share * (1_u64 << 53) as f64
            }
            Sampler::PerSecond(count) => self.pace.takes(count, self.started.0.elapsed()),
        }
    }

    /// Remembers a span. What is returned is to be exported.
    fn remember(&self, ended: EndedSpan, said: &SpanAttributes) -> Option<SpanRecord> {
        let mut ring = self.ring.lock().expect("no holder of the lock panics");
        ring.push(ended, said);
        drop(ring);
        self.exporter.get()?;
        let process = self.process.get().cloned().unwrap_or(CLIENT);
        Some(ended.record(process, said.all()))
    }

    fn export(&self, record: &SpanRecord) {
        if let Some(exporter) = self.exporter.get() {
            exporter.push(record);
        }
    }
}

/// A span of a trace, as it crosses processes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Context {
    pub trace: TraceId,
    /// The span that others are to be parts of.
    pub span: SpanId,
}

/// The identity of a span that is watched. For [`tracing::Span::current`], for instance.
pub fn context_of(span: &tracing::Span) -> Option<Context> {
    let of =
        |(id, dispatch): (&Id, &tracing::Dispatch)| dispatch.downcast_ref::<Watcher>()?.context(id);
    span.with_subscriber(of).flatten()
}

#[cfg(test)]
mod tests;
