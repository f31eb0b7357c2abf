//! Requests answered by a cluster.
//!
//! A [`Gateway`] answers one request at a time on each connection ([`serve`]), for its caller and with the caller's grants:
//!
//! | file | operations |
//! |---|---|
//! | `buckets` | buckets, and the documents that they have |
//! | `read`, `write`, `copy` | one object |
//! | `batch` | many deletions in one request |
//! | `list` | pages of objects |
//! | `tags` | tags of an object |
//! | `cors` | pages of other origins |
//! | `lifecycle` | objects that expire, and uploads that are given up |
//! | `anonymous` | which of these a request without a signature may ask for |
//! | `multipart` | objects in parts |

mod anonymous;
mod batch;
mod buckets;
mod callers;
mod content;
mod copy;
mod cors;
mod documents;
mod exchange;
mod expiry;
mod failure;
mod health;
mod incoming;
mod kept;
mod lifecycle;
mod list;
mod metrics;
mod multipart;
mod read;
mod reply;
mod serve;
mod tags;
mod turns;
mod window;
mod write;

use crate::auth;
use crate::wire::xml::Owner;
use crate::wire::{self, Addressing, Code, Operation, S3Error, S3Request};
use areo_client::trust::ANONYMOUS_NAME;
use areo_client::{Client, DapKind};
use callers::Callers;
use cors::{CorsRules, CrossOriginRequest};
use exchange::Exchange;
use expiry::KnownRules;
use futures_util::future::BoxFuture;
use health::Readiness;
use http::header::{HeaderValue, ORIGIN};
use http::request::Parts;
use http::{HeaderName, Method, Request, Response};
use hyper::body::Incoming;
use incoming::CallerBody;
use lifecycle::Lifecycle;
use metrics::Metrics;
use reply::Reply;
use ring::digest;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use turns::Turns;

pub use reply::{BrokenOff, CountedBody, GatewayBody};
pub use serve::{Duplex, Secure, ServeOptions, Stop, plain, serve};

/// Bytes of the blocks of one body that are on their way at once, to servers or from them. What a connection has in memory follows from it (`docs/s3.md`, *Memory*).
const WINDOW_BYTES: u64 = 8 << 20;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-amz-request-id");

/// Headers that a repeated request has again, and another request of one id need not have.
const REPEATED: &[&str] = &[
    "content-length",
    "content-md5",
    "if-match",
    "if-none-match",
    "x-amz-content-sha256",
    "x-amz-copy-source",
    "x-amz-decoded-content-length",
];

/// The choices of an operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GatewayOptions {
    /// The region that callers sign for.
    pub region: String,
    /// The names by which buckets are reached.
    pub addressing: Addressing,
    /// The kind of buckets for which the caller names none.
    pub kind: DapKind,
    /// Elements from which values of such buckets are restored; `None`: the store's default for their servers.
    pub k: Option<u8>,
    /// The shortest part of an upload but for the last one, in bytes. Clients count on 5 MiB, which S3 demands.
    pub part_bytes: u64,
    /// The pause between two passes over the lifecycle rules of all buckets.
    pub lifecycle_every: Duration,
}

impl Default for GatewayOptions {
    fn default() -> GatewayOptions {
        GatewayOptions {
            region: "us-east-1".into(),
            addressing: Addressing::default(),
            kind: DapKind::Conditional,
            k: None,
            part_bytes: 5 << 20,
            lifecycle_every: Duration::from_hours(1),
        }
    }
}

/// Answers requests of S3. It keeps nothing but caches.
#[derive(Debug)]
pub struct Gateway {
    callers: Callers,
    cors: CorsRules,
    lifecycle: Lifecycle,
    rules: KnownRules,
    turns: Turns,
    options: GatewayOptions,
    /// The first half of each request's id.
    process: u32,
    requests: AtomicU64,
    metrics: Metrics,
    readiness: Readiness,
}

impl Gateway {
    /// A gateway whose own key has the grant `gateway`.
    pub fn new(client: Client, options: GatewayOptions) -> Gateway {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let process = now.map_or(0, |now| now.subsec_nanos()) ^ std::process::id();
        let metrics = Metrics::new();
        Gateway {
            cors: CorsRules::new(client.clone()),
            lifecycle: Lifecycle::new(client.clone()),
            rules: KnownRules::new(),
            turns: Turns::new(),
            callers: Callers::new(client.with_window(WINDOW_BYTES), metrics.clone()),
            options,
            process,
            requests: AtomicU64::new(0),
            metrics,
            readiness: Readiness::default(),
        }
    }

    /// The metrics of the gateway, in the text format of Prometheus.
    pub fn metrics_text(&self) -> String {
        self.metrics.text()
    }

    /// Answers a request of S3, or of a health check.
    pub fn answer(&self, request: Request<Incoming>) -> BoxFuture<'_, Response<CountedBody>> {
        Box::pin(async move {
            let mut counted = self.metrics.request();
            let number = self.requests.fetch_add(1, Ordering::Relaxed);
            let id = format!("{:08X}{number:08X}", self.process);
            let (head, mut body) = request.into_parts();
            let reply = match self.health(&head).await {
                Some(reply) => {
                    counted.operation = "Health";
                    Ok(reply)
                }
                None => self.perform(&head, &mut body, &mut counted.operation).await,
            };
            let mut reply = reply.unwrap_or_else(|error| {
                let (method, path) = (&head.method, head.uri.path());
                tracing::debug!(%method, path, %error, "request refused");
                self.metrics.error(error.code);
                Reply::error(&error, path, &id)
            });
            if head.headers.contains_key(ORIGIN)
                && head.method != Method::OPTIONS
                && let Some(bucket) = wire::parse::bucket_of(&head, &self.options.addressing)
            {
                self.cors.show(&bucket, &head, &mut reply).await;
            }
            incoming::drain(&head, &mut body, &self.metrics.received).await;
            counted.answered(reply.status);
            let response = reply.into_response(head.method == Method::HEAD);
            let mut response =
                response.map(|body| CountedBody::new(body, self.metrics.sent.clone()));
            let id = HeaderValue::from_str(&id).expect("hexadecimal digits");
            response.headers_mut().insert(REQUEST_ID, id);
            response
        })
    }

    /// Answers a browser, which asks without a signature.
    async fn preflight(&self, head: &Parts) -> Result<Reply, S3Error> {
        let request = wire::parse(head, &self.options.addressing)?;
        let Operation::Preflight {
            origin,
            method,
            headers,
        } = &request.operation
        else {
            unreachable!("OPTIONS is no other operation");
        };
        let asked = CrossOriginRequest {
            origin,
            method,
            headers,
        };
        self.cors.preflight(request.target.bucket(), asked).await
    }

    async fn perform(
        &self,
        head: &Parts,
        body: &mut Incoming,
        operation: &mut &'static str,
    ) -> Result<Reply, S3Error> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now_seconds = now.map_or(0, |now| now.as_secs());
        let region = &self.options.region;
        if head.method == Method::OPTIONS {
            *operation = "Preflight";
            return self.preflight(head).await;
        }
        let caller = auth::authenticate(head, region, &self.callers, now_seconds).await?;
        let request = wire::parse(head, &self.options.addressing)?;
        *operation = request.operation.name();
        let (key_id, client) = if let Some(key_id) = caller.key_id() {
            (key_id, self.callers.client(key_id).await?)
        } else {
            anonymous::check(head, &request.operation)?;
            (ANONYMOUS_NAME, self.callers.anonymous().await?)
        };
        let exchange = Exchange {
            options: &self.options,
            cors: &self.cors,
            rules: &self.rules,
            turns: &self.turns,
            request: &request,
            name: request_name(&request, head, key_id),
            client,
            owner: Owner {
                id: key_id.to_owned(),
                display_name: key_id.to_owned(),
            },
        };
        let (caller, received) = (&caller, &self.metrics.received);
        let first = CallerBody {
            head,
            caller,
            incoming: &mut *body,
            received,
        };
        let answered = exchange.answer(first).await;
        let is_gone = matches!(&answered, Err(error) if error.code == Code::NoSuchBucket);
        match request.target.bucket() {
            // There may be another domain of the name than the one that was remembered.
            Some(bucket) if is_gone && exchange.client.forget(bucket) => {
                if incoming::has_body(head) {
                    return Err(removed(bucket));
                }
                let again = CallerBody {
                    head,
                    caller,
                    incoming: body,
                    received,
                };
                exchange.answer(again).await
            }
            _ => answered,
        }
    }
}

/// The answer to a request whose body has come in vain: SDKs send it again, and the bucket is looked for then.
fn removed(bucket: &str) -> S3Error {
    let sentence = format!(
        "bucket {bucket} was removed, and there may be another one of its name: send the request again"
    );
    S3Error::new(Code::ServiceUnavailable, sentence)
}

/// The name by which the store knows a write: of the caller's id of the request and everything that the repeated request says again. 0: the caller has none, or it
/// is no write.
fn request_name(request: &S3Request, head: &Parts, caller: &str) -> u128 {
    if request.invocation == 0 || matches!(head.method, Method::GET | Method::HEAD) {
        return 0;
    }
    let mut hash = digest::Context::new(&digest::SHA256);
    let mut part = |bytes: &[u8]| {
        hash.update(&(bytes.len() as u64).to_le_bytes());
        hash.update(bytes);
    };
    part(&request.invocation.to_le_bytes());
    part(caller.as_bytes());
    part(head.method.as_str().as_bytes());
    part(head.uri.to_string().as_bytes());
    for name in REPEATED {
        let value = head.headers.get(*name);
        part(value.map_or(b"", HeaderValue::as_bytes));
    }
    let bytes: [u8; 16] = hash.finish().as_ref()[..16]
        .try_into()
        .expect("SHA-256 has 32 bytes");
    u128::from_le_bytes(bytes).max(1)
}
