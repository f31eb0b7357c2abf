//! The far end of the queue: batches, one after the other, to the collector.

use super::counts::Counts;
use super::settings::{Protocol, Settings};
use opentelemetry_otlp::{
    ExporterBuildError, RetryPolicy, SpanExporter as Otlp, WithExportConfig, WithHttpConfig,
    WithTonicConfig,
};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::{OTelSdkError, OTelSdkResult};
use opentelemetry_sdk::trace::{SpanData, SpanExporter};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::runtime::{self, Runtime};

/// Delivers on the thread of the batch processor, where it also makes its client: nothing of it happens on the thread
/// of an operation.
#[derive(Debug)]
pub(super) struct Delivery {
    pub(super) settings: Settings,
    pub(super) resource: Resource,
    /// Try again when the collector does not answer. A command that ends does not wait for that.
    pub(super) persistent: bool,
    pub(super) counts: Arc<Counts>,
    pub(super) line: Mutex<Option<Line>>,
}

/// The exporter, and the runtime that its connections live on. It runs while a batch is delivered.
#[derive(Debug)]
pub(super) struct Line {
    runtime: Runtime,
    exporter: Otlp,
}

impl Line {
    fn open(of: &Delivery) -> Result<Line, OTelSdkError> {
        let failed = |error: std::io::Error| OTelSdkError::InternalFailure(error.to_string());
        let runtime = runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(failed)?;
        let mut exporter = {
            let _inside = runtime.enter();
            exporter(of).map_err(|error| OTelSdkError::InternalFailure(error.to_string()))?
        };
        exporter.set_resource(&of.resource);
        Ok(Line { runtime, exporter })
    }
}

fn exporter(of: &Delivery) -> Result<Otlp, ExporterBuildError> {
    let retry = match of.persistent {
        true => RetryPolicy::recommended(),
        false => RetryPolicy::disabled(),
    };
    let endpoint = of.settings.endpoint.as_str();
    match of.settings.protocol {
        Protocol::Http => Otlp::builder()
            .with_http()
            .with_protocol(opentelemetry_otlp::Protocol::HttpBinary)
            .with_endpoint(endpoint)
            .with_retry_policy(retry)
            .build(),
        Protocol::Grpc => Otlp::builder()
            .with_tonic()
            .with_endpoint(endpoint)
            .with_retry_policy(retry)
            .build(),
    }
}

impl Delivery {
    fn deliver(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let mut line = self.line.lock().expect("no holder of the lock panics");
        let Line { runtime, exporter } = match &mut *line {
            Some(line) => line,
            none => none.insert(Line::open(self)?),
        };
        runtime.block_on(exporter.export(batch))
    }
}

impl SpanExporter for Delivery {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let spans = batch.len();
        let ended = self.deliver(batch);
        self.counts.ended(spans, ended.as_ref().err());
        ended
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        let line = self.line.lock().expect("no holder of the lock panics");
        line.as_ref()
            .map_or(Ok(()), |line| line.exporter.shutdown_with_timeout(timeout))
    }
}
