//! Health of a gateway, for load balancers: `GET /-/health/live` and `GET /-/health/ready`, without a signature. No bucket has the name `-`.

use super::Gateway;
use super::reply::{Reply, ReplyBody};
use areo_client::Error;
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::request::Parts;
use http::{Method, StatusCode};
use std::time::Duration;
use tokio::time::{Instant, timeout};

/// The name of a domain that is looked up to find out if the cluster answers. It does not matter if there is one.
const LOOKED_UP: &str = "health";
/// The longest wait for the cluster.
const PATIENCE: Duration = Duration::from_secs(2);
/// The time for which an answer counts: however many ask, the cluster is asked once in it.
const LASTS: Duration = Duration::from_secs(1);

/// The last answer to the question whether the cluster answers.
#[derive(Debug, Default)]
pub(super) struct Readiness(tokio::sync::Mutex<Option<(Instant, bool)>>);

impl Gateway {
    /// True if a quorum of the cluster's root domain answers within two seconds. An answer counts for a second.
    pub async fn is_ready(&self) -> bool {
        let mut last = self.readiness.0.lock().await;
        if let Some((at, is_ready)) = *last
            && at.elapsed() < LASTS
        {
            return is_ready;
        }
        let found = timeout(PATIENCE, self.callers.gateway().domain(LOOKED_UP)).await;
        let is_ready = matches!(found, Ok(Ok(_) | Err(Error::NotFound { .. })));
        *last = Some((Instant::now(), is_ready));
        is_ready
    }

    /// The response, if the request asks for the health of the gateway. Signed requests ask for objects.
    pub(super) async fn health(&self, head: &Parts) -> Option<Reply> {
        let is_signed = head.headers.contains_key(AUTHORIZATION) || head.uri.query().is_some();
        if is_signed || !matches!(head.method, Method::GET | Method::HEAD) {
            return None;
        }
        let (status, text) = match head.uri.path() {
            "/-/health/live" => (StatusCode::OK, "live\n"),
            "/-/health/ready" if self.is_ready().await => (StatusCode::OK, "ready\n"),
            "/-/health/ready" => {
                let sentence = "not ready: the cluster does not answer\n";
                (StatusCode::SERVICE_UNAVAILABLE, sentence)
            }
            _ => return None,
        };
        let mut reply = Reply::new(status).with(CONTENT_TYPE, "text/plain");
        reply.body = ReplyBody::Document(text.to_owned());
        Some(reply)
    }
}
