//! The admin port: whether the process lives, and whether it serves.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;

/// What the admin port knows of the server; shared with its tasks.
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
pub(crate) fn router(health: Arc<Health>) -> Router {
    Router::new()
        .route("/health/live", get(|| async { "live\n" }))
        .route("/health/ready", get(ready))
        .with_state(health)
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
