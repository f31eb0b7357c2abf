//! Spans to a collector, by OTLP, if the standard variables name one ([`Settings`]).
//!
//! ```text
//!   SpanRecord ──► a place in the queue? ──► batch processor of the SDK, its thread ──► exporter of the SDK ──► collector
//!                   no: counted as lost                                                  refused: counted as lost
//! ```
//!
//! An operation gives its spans to a bounded channel and goes on. Batches, delays and their `OTEL_BSP_*` variables are the
//! SDK's. It does not report what it drops, so that the queue is counted here, before it, and its ends behind it.

mod counts;
mod delivery;
mod settings;

pub use counts::ExportCounts;
pub use settings::{InvalidSetting, Settings};

use crate::record::{SpanRecord, Value};
use counts::Counts;
use delivery::Delivery;
use opentelemetry::trace::{
    SpanContext, SpanId, SpanKind, Status, TraceFlags, TraceId, TraceState,
};
use opentelemetry::{InstrumentationScope, Key, KeyValue};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::resource::{EnvResourceDetector, TelemetryResourceDetector};
use opentelemetry_sdk::trace::{
    BatchConfigBuilder, BatchSpanProcessor, SpanData, SpanEvents, SpanLinks, SpanProcessor,
};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, UNIX_EPOCH};

/// Why a span failed: the attribute that the semantic conventions have for it.
pub(crate) const ERROR_TYPE: &str = "error.type";

/// Takes spans that have ended.
#[derive(Debug)]
pub(crate) struct Exporter {
    settings: Settings,
    counts: Arc<Counts>,
    scope: InstrumentationScope,
    /// Begun with the first span: by then the process has a name, and a command without operations needs no thread.
    processor: OnceLock<BatchSpanProcessor>,
}

impl Exporter {
    pub(crate) fn new(settings: Settings) -> Exporter {
        let scope = InstrumentationScope::builder("areo");
        Exporter {
            settings,
            counts: Arc::default(),
            scope: scope.with_version(env!("CARGO_PKG_VERSION")).build(),
            processor: OnceLock::new(),
        }
    }

    /// Puts a span into the queue, or counts it as lost.
    pub(crate) fn push(&self, record: &SpanRecord) {
        if self.counts.admit(self.settings.queue) {
            let processor = self.processor.get_or_init(|| self.begin(&record.process));
            processor.on_end(data(record, self.scope.clone()));
        }
    }

    fn begin(&self, process: &str) -> BatchSpanProcessor {
        let is_server = process != crate::recorder::CLIENT;
        let delivery = Delivery {
            settings: self.settings.clone(),
            resource: resource(&self.settings, is_server.then_some(process)),
            persistent: is_server,
            counts: self.counts.clone(),
            line: Mutex::default(),
        };
        let config = BatchConfigBuilder::default().with_max_queue_size(self.settings.queue);
        BatchSpanProcessor::new(delivery, config.build())
    }

    /// Delivers the waiting spans, for this time at most; the rest is lost. The exporter is not used afterwards.
    pub(crate) fn finish(&self, patience: Duration) -> ExportCounts {
        if let Some(processor) = self.processor.get()
            && processor.shutdown_with_timeout(patience).is_err()
        {
            self.counts.give_up();
        }
        self.exported()
    }

    pub(crate) fn exported(&self) -> ExportCounts {
        self.counts.exported()
    }
}

/// The resource that reports: the variables count for more than these values.
fn resource(settings: &Settings, server: Option<&str>) -> Resource {
    let service = match server {
        Some(_) => "areo-server",
        None => "areo",
    };
    let instance = server.map(|name| KeyValue::new("service.instance.id", name.to_owned()));
    let resource = Resource::builder_empty()
        .with_service_name(service)
        .with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")))
        .with_attributes(instance)
        .with_detector(Box::new(TelemetryResourceDetector))
        .with_detector(Box::new(EnvResourceDetector::new()));
    match &settings.service {
        Some(name) => resource.with_service_name(name.clone()).build(),
        None => resource.build(),
    }
}

/// A record as the SDK has it.
fn data(record: &SpanRecord, scope: InstrumentationScope) -> SpanData {
    let at = |ns| UNIX_EPOCH + Duration::from_nanos(ns);
    let parent = record.parent.map(|parent| SpanId::from(parent.0));
    let failed = record.attributes.get(ERROR_TYPE);
    SpanData {
        span_context: SpanContext::new(
            TraceId::from(record.trace.0),
            SpanId::from(record.span.0),
            TraceFlags::SAMPLED,
            false,
            TraceState::NONE,
        ),
        parent_span_id: parent.unwrap_or(SpanId::INVALID),
        parent_span_is_remote: record.local_root && parent.is_some(),
        span_kind: kind(&record.name),
        name: record.name.clone(),
        start_time: at(record.start_ns),
        end_time: at(record.end_ns()),
        attributes: record.attributes.iter().map(attribute).collect(),
        dropped_attributes_count: 0,
        events: SpanEvents::default(),
        links: SpanLinks::default(),
        status: failed.map_or(Status::Unset, |why| Status::error(why.to_string())),
        instrumentation_scope: scope,
    }
}

fn kind(name: &str) -> SpanKind {
    match name {
        "net.quorum" => SpanKind::Client,
        name if name.starts_with("server.") => SpanKind::Server,
        _ => SpanKind::Internal,
    }
}

/// Attributes of ours stand in a name space of ours; those with a dot are the conventions'.
fn attribute((name, value): (&std::borrow::Cow<'static, str>, &Value)) -> KeyValue {
    let key = match name.contains('.') {
        true => Key::new(name.clone()),
        false => Key::new(format!("areo.{name}")),
    };
    match value {
        Value::Number(number) => KeyValue::new(key, i64::try_from(*number).unwrap_or(i64::MAX)),
        Value::Bool(bool) => KeyValue::new(key, *bool),
        Value::Text(text) => KeyValue::new(key, text.clone()),
    }
}

#[cfg(test)]
mod tests;
