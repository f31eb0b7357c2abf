//! The layer that turns spans into records.

use crate::export::{Exported, Exporter, Settings};
use crate::ids::Ids;
use crate::record::{SpanId, SpanRecord, TraceId, Value};
use crate::ring::{Limits, Ring};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::Interest;
use tracing::{Metadata, Subscriber};
use tracing_subscriber::Registry;
use tracing_subscriber::layer::{Context as LayerContext, Filter, Layer};
use tracing_subscriber::registry::LookupSpan;

/// Spans of ours come from crates whose names begin so.
const OURS: &str = "areo";
/// Fields by which a server says which span of another process asked.
const REMOTE_TRACE: &str = "remote_trace";
const REMOTE_SPAN: &str = "remote_span";
/// What a process is called that nobody named.
pub(crate) const CLIENT: Cow<'static, str> = Cow::Borrowed("client");
/// The one field that tells what a user called something.
const KEY: &str = "key";

/// Which operations are watched. Decided where an operation begins; servers go by what the client decided.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Sampler {
    /// None of this process's own.
    Never,
    /// This share of them, from 0 to 1.
    Share(f64),
    /// All.
    Always,
}

impl Sampler {
    fn takes(self, random: u64) -> bool {
        match self {
            Sampler::Never => false,
            Sampler::Always => true,
            // 53 random bits are a number from 0 to 1.
            Sampler::Share(share) => ((random >> 11) as f64) < share * (1_u64 << 53) as f64,
        }
    }
}

/// Remembers what happens in this process. Clones are the same recorder.
#[derive(Clone)]
pub struct Recorder(Arc<Shared>);

struct Shared {
    process: OnceLock<Cow<'static, str>>,
    sampler: Sampler,
    keys: bool,
    ids: Ids,
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
            keys,
            ids: Ids::new(),
            ring: Mutex::new(Ring::new(limits)),
            exporter: OnceLock::new(),
            started: (Instant::now(), now_ns),
        }))
    }

    /// Says what the process is called in its records, once: the name of a server. It is `client` otherwise.
    pub fn name_process(&self, name: impl Into<Cow<'static, str>>) {
        let name = name.into();
        self.0.process.get_or_init(|| name);
    }

    /// From now on spans also go to a collector. The first call counts.
    pub fn export_to(&self, settings: Settings) {
        self.0.exporter.get_or_init(|| Exporter::new(settings));
    }

    /// What became of the spans that were to be exported.
    pub fn exported(&self) -> Exported {
        let exporter = self.0.exporter.get();
        exporter.map_or_else(Exported::default, Exporter::exported)
    }

    /// Delivers what waits to be exported, for so long at most, and exports nothing after that. Blocks.
    pub fn finish_export(&self, patience: Duration) -> Exported {
        let finish = |exporter: &Exporter| exporter.finish(patience);
        self.0.exporter.get().map(finish).unwrap_or_default()
    }

    /// The layer for a subscriber on top of a [`Registry`].
    pub fn layer<S>(&self) -> impl Layer<S> + use<S>
    where
        S: Subscriber + for<'a> LookupSpan<'a>,
    {
        Spans(self.0.clone()).with_filter(Watched(self.0.clone()))
    }

    /// What is remembered.
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
}

/// Which span of which trace, as it crosses processes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Context {
    /// The trace.
    pub trace: TraceId,
    /// The span that others are to be parts of.
    pub span: SpanId,
}

/// The identity of a span that is watched. For [`tracing::Span::current`], for instance.
pub fn context_of(span: &tracing::Span) -> Option<Context> {
    let of = |(id, dispatch): (&Id, &tracing::Dispatch)| {
        let span = dispatch.downcast_ref::<Registry>()?.span(id)?;
        let extensions = span.extensions();
        extensions.get::<Open>().map(|open| open.context)
    };
    span.with_subscriber(of).flatten()
}

/// A span that has not ended.
struct Open {
    context: Context,
    parent: Option<SpanId>,
    local_root: bool,
    started: Instant,
    attributes: BTreeMap<Cow<'static, str>, Value>,
}

/// Decides whether a span is watched: it is a part of one that is, a server was asked by one that is, or an operation begins
/// here and the sampler takes it. All others cost a look at their name.
struct Watched(Arc<Shared>);

impl Watched {
    fn is_ours(metadata: &Metadata<'_>) -> bool {
        metadata.is_span() && metadata.target().starts_with(OURS)
    }

    /// Made only where a request came from an operation that is watched, and what is done for it.
    fn is_served(metadata: &Metadata<'_>) -> bool {
        metadata.name().starts_with("server.") || metadata.name().starts_with("store.")
    }
}

impl<S> Filter<S> for Watched
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    fn enabled(&self, metadata: &Metadata<'_>, context: &LayerContext<'_, S>) -> bool {
        if !Watched::is_ours(metadata) {
            return false;
        }
        if metadata.name().starts_with("server.") || context.lookup_current().is_some() {
            return true;
        }
        metadata.name().starts_with("areo.") && self.0.sampler.takes(self.0.ids.random())
    }

    fn callsite_enabled(&self, metadata: &'static Metadata<'static>) -> Interest {
        let possible = self.0.sampler != Sampler::Never || Watched::is_served(metadata);
        match Watched::is_ours(metadata) && possible {
            true => Interest::sometimes(),
            false => Interest::never(),
        }
    }
}

struct Spans(Arc<Shared>);

impl<S> Layer<S> for Spans
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: LayerContext<'_, S>) {
        let span = context.span(id).expect("it was just made");
        let mut fields = Fields::new(self.0.keys);
        attributes.record(&mut fields);
        let parent = span.parent();
        let parent = parent
            .as_ref()
            .and_then(|parent| Some(parent.extensions().get::<Open>()?.context));
        let asked = parent.or(fields.remote());
        let open = Open {
            context: Context {
                trace: asked.map_or_else(|| TraceId(self.0.ids.trace()), |asked| asked.trace),
                span: SpanId(self.0.ids.span()),
            },
            parent: asked.map(|asked| asked.span),
            local_root: parent.is_none(),
            started: Instant::now(),
            attributes: fields.attributes,
        };
        span.extensions_mut().insert(open);
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: LayerContext<'_, S>) {
        let span = context.span(id).expect("it is open");
        if let Some(open) = span.extensions_mut().get_mut::<Open>() {
            let mut fields = Fields::new(self.0.keys);
            fields.attributes = std::mem::take(&mut open.attributes);
            values.record(&mut fields);
            open.attributes = fields.attributes;
        }
    }

    fn on_close(&self, id: Id, context: LayerContext<'_, S>) {
        let span = context.span(&id).expect("it closes now");
        let Some(open) = span.extensions_mut().remove::<Open>() else {
            return;
        };
        let duration_ns = open.started.elapsed().as_nanos() as u64;
        let record = SpanRecord {
            trace: open.context.trace,
            span: open.context.span,
            parent: open.parent,
            local_root: open.local_root,
            name: span.name().into(),
            process: self.0.process.get().cloned().unwrap_or(CLIENT),
            start_ns: self.0.at(open.started),
            duration_ns,
            attributes: open.attributes,
        };
        if let Some(exporter) = self.0.exporter.get() {
            exporter.push(&record);
        }
        let mut ring = self.0.ring.lock().expect("no holder of the lock panics");
        ring.push(record);
    }
}

/// Collects what a span says of itself.
struct Fields {
    keys: bool,
    trace: Option<u128>,
    span: Option<u64>,
    attributes: BTreeMap<Cow<'static, str>, Value>,
}

impl Fields {
    fn new(keys: bool) -> Fields {
        Fields {
            keys,
            trace: None,
            span: None,
            attributes: BTreeMap::new(),
        }
    }

    fn remote(&self) -> Option<Context> {
        Some(Context {
            trace: TraceId(self.trace?),
            span: SpanId(self.span?),
        })
    }

    fn set(&mut self, field: &Field, value: Value) {
        if field.name() != KEY || self.keys {
            self.attributes.insert(field.name().into(), value);
        }
    }
}

impl Visit for Fields {
    fn record_u64(&mut self, field: &Field, value: u64) {
        match field.name() {
            REMOTE_SPAN => self.span = Some(value),
            _ => self.set(field, Value::Number(value)),
        }
    }

    fn record_u128(&mut self, field: &Field, value: u128) {
        match field.name() {
            REMOTE_TRACE => self.trace = Some(value),
            _ => self.set(field, Value::Text(value.to_string())),
        }
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        match u64::try_from(value) {
            Ok(value) => self.set(field, Value::Number(value)),
            Err(_) => self.set(field, Value::Text(value.to_string())),
        }
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.set(field, Value::Bool(value));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() != KEY || self.keys {
            self.set(field, Value::Text(value.into()));
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.set(field, Value::Text(format!("{value:?}")));
    }
}

#[cfg(test)]
mod tests;
