//! The admin port: whether the process lives, whether it serves, and what it remembers of operations.

mod door;
mod guard;
mod users;

pub(crate) use door::Door;
pub(crate) use guard::Guard;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use areo_telemetry::{Recorder, SpanRecord, TraceId};
use axum::Router;
use axum::extract::{Path, State};
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use tokio::sync::{mpsc, oneshot};

use crate::cluster::ClusterHealth;

/// The questions of the admin port to the thread that serves, each as the place for its answer.
pub(crate) type QuestionSender<T> = mpsc::Sender<oneshot::Sender<T>>;
/// The largest number of waiting questions of one kind.
pub(crate) const ASKING: usize = 16;

/// The admin port's knowledge of the server; shared with its tasks.
#[derive(Default)]
pub(crate) struct Health {
    ready: AtomicBool,
}

impl Health {
    /// The server answers for objects, or no longer does.
    pub(crate) fn set_ready(&self, ready: bool) {
        self.ready.store(ready, Ordering::Relaxed);
    }
}

/// `GET /health/live`: 200 while the process runs. `GET /health/ready`: 200 while it serves, 503 before and after.
/// `GET /health/cluster`: 200 while this server serves and sees a quorum of every domain serve with room for writes, 503 otherwise;
/// which domains that are, as JSON.
///
/// What the process remembers of operations that were watched, a span on each line as JSON: `GET /traces/last/N` of the N
/// traces that were here last, `/traces/slow` of the slowest ones, `/traces/since/NS` of what ended since then (nanoseconds
/// since 1970), `/traces/id/ID` of one trace.
///
/// `GET /metrics`: what is counted, as Prometheus reads it.
pub(crate) fn router(
    health: Arc<Health>,
    recorder: Recorder,
    asking: QuestionSender<String>,
    cluster: QuestionSender<ClusterHealth>,
) -> Router {
    let traces = Router::new()
        .route("/traces/last/{traces}", get(last))
        .route("/traces/slow", get(slow))
        .route("/traces/since/{ns}", get(since))
        .route("/traces/id/{id}", get(one))
        .with_state(recorder);
    Router::new()
        .route("/health/live", get(|| async { "live\n" }))
        .route("/health/ready", get(ready))
        .with_state(health.clone())
        .route("/health/cluster", get(whole))
        .with_state((health, cluster))
        .merge(traces)
        .merge(
            Router::new()
                .route("/metrics", get(metrics))
                .with_state(asking),
        )
}

/// The request waits for an answer of the thread that serves.
async fn metrics(
    State(asking): State<QuestionSender<String>>,
) -> Result<impl IntoResponse, StatusCode> {
    let (sender, answer) = oneshot::channel();
    let asked = asking.send(sender).await;
    asked.map_err(|_| StatusCode::SERVICE_UNAVAILABLE)?;
    let text = answer.await.map_err(|_| StatusCode::SERVICE_UNAVAILABLE)?;
    Ok(([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], text))
}

async fn ready(State(health): State<Arc<Health>>) -> (StatusCode, &'static str) {
    match health.ready.load(Ordering::Relaxed) {
        true => (StatusCode::OK, "ready\n"),
        false => (
            StatusCode::SERVICE_UNAVAILABLE,
            "not ready: starting or stopping\n",
        ),
    }
}

/// The request waits for answers of other servers.
async fn whole(
    State((health, cluster)): State<(Arc<Health>, QuestionSender<ClusterHealth>)>,
) -> impl IntoResponse {
    let (sender, answer) = oneshot::channel();
    // Before it serves it asks no server, and when it stops no server answers.
    let asked = health.ready.load(Ordering::Relaxed) && cluster.send(sender).await.is_ok();
    let seen = match asked {
        true => answer.await.ok(),
        false => None,
    };
    let seen = seen.unwrap_or_else(ClusterHealth::unknown);
    let code = match seen.ready {
        true => StatusCode::OK,
        false => StatusCode::SERVICE_UNAVAILABLE,
    };
    let json = [(header::CONTENT_TYPE, "application/json")];
    (code, json, seen.text + "\n")
}

async fn last(State(recorder): State<Recorder>, Path(traces): Path<usize>) -> impl IntoResponse {
    lines(&recorder.ring().last(traces))
}

async fn slow(State(recorder): State<Recorder>) -> impl IntoResponse {
    lines(&recorder.ring().slowest())
}

async fn since(State(recorder): State<Recorder>, Path(ns): Path<u64>) -> impl IntoResponse {
    lines(&recorder.ring().since(ns))
}

async fn one(
    State(recorder): State<Recorder>,
    Path(id): Path<String>,
) -> Result<impl IntoResponse, (StatusCode, String)> {
    match id.parse::<TraceId>() {
        Ok(id) => Ok(lines(&recorder.ring().trace(id))),
        Err(error) => Err((
            StatusCode::BAD_REQUEST,
            format!("this is the id of no trace: {error}\n"),
        )),
    }
}

/// A JSON object on each line.
fn lines(records: &[SpanRecord]) -> impl IntoResponse + use<> {
    let line = |record| serde_json::to_string(record).expect("records have text for keys") + "\n";
    let body: String = records.iter().map(line).collect();
    ([(header::CONTENT_TYPE, "application/x-ndjson")], body)
}
