//! `--metrics` of a gateway: its metrics with those of its clients, and its health, from the start of the process on.

use crate::metrics;
use areo_client::Metrics;
use areo_s3::gateway::Gateway;
use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

/// The gateway as its metrics port knows it. Clones share it.
#[derive(Clone)]
pub(super) struct Admin(Arc<Known>);

struct Known {
    clients: Metrics,
    /// It is there once the cluster has answered.
    gateway: OnceLock<Arc<Gateway>>,
    is_stopping: AtomicBool,
}

impl Admin {
    /// A gateway that starts.
    pub(super) fn new(clients: Metrics) -> Admin {
        Admin(Arc::new(Known {
            clients,
            gateway: OnceLock::new(),
            is_stopping: AtomicBool::new(false),
        }))
    }

    /// The gateway answers requests.
    pub(super) fn serves(&self, gateway: &Arc<Gateway>) {
        let is_first = self.0.gateway.set(Arc::clone(gateway)).is_ok();
        assert!(is_first, "a process is one gateway");
    }

    /// The gateway takes no connection any more.
    pub(super) fn stops(&self) {
        self.0.is_stopping.store(true, Ordering::Relaxed);
    }

    /// `GET /metrics`; `GET /health/live`: 200 while the process runs; `GET /health/ready`: 200 while it takes connections and the cluster answers, 503
    /// otherwise.
    pub(super) fn router(&self) -> Router {
        Router::new()
            .route(metrics::PATH, get(text))
            .route("/health/live", get(|| async { "live\n" }))
            .route("/health/ready", get(ready))
            .with_state(self.clone())
    }
}

async fn text(State(admin): State<Admin>) -> impl axum::response::IntoResponse {
    let mut text = admin.0.clients.text();
    if let Some(gateway) = admin.0.gateway.get() {
        text += &gateway.metrics_text();
    }
    metrics::answer(text)
}

async fn ready(State(admin): State<Admin>) -> (StatusCode, &'static str) {
    const UNAVAILABLE: StatusCode = StatusCode::SERVICE_UNAVAILABLE;
    if admin.0.is_stopping.load(Ordering::Relaxed) {
        return (UNAVAILABLE, "not ready: stopping\n");
    }
    match admin.0.gateway.get() {
        None => (UNAVAILABLE, "not ready: starting\n"),
        Some(gateway) if gateway.is_ready().await => (StatusCode::OK, "ready\n"),
        Some(_) => (UNAVAILABLE, "not ready: the cluster does not answer\n"),
    }
}
