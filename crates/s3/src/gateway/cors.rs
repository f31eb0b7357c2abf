//! CORS: which pages of other origins a browser lets use a bucket.
//!
//! The rules are a document of the bucket's domain, so that all gateways go by them. A gateway reads them with its own key, because a browser asks without a signature, and remembers them for a few
//! seconds. They open nothing: each request is judged by the grants of its caller.

use super::callers::{CallerClient, Remembered};
use super::documents::BucketDocument;
use super::failure;
use super::reply::Reply;
use crate::wire::xml::cors::{self, CorsRule};
use crate::wire::{Code, S3Error};
use areo_client::{Client, Domain, PutOptions};
use http::HeaderValue;
use http::header::{
    ACCESS_CONTROL_ALLOW_CREDENTIALS, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS,
    ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ORIGIN,
    VARY,
};
use http::request::Parts;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;

/// The rules of a bucket.
pub(super) const RULES: BucketDocument = BucketDocument {
    name: "cors",
    words: "CORS",
    most_bytes: 64 << 10,
    missing: Code::NoSuchCORSConfiguration,
};
/// The time for which rules are used before they are read again.
const LASTS: Duration = Duration::from_secs(3);
/// Buckets whose rules are remembered at most.
const BUCKETS: usize = 1024;
/// Buckets whose rules are read at a time: strangers may ask for them.
const READS: usize = 16;

/// A request that a page would send, or has sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct CrossOriginRequest<'a> {
    pub(super) origin: &'a str,
    pub(super) method: &'a str,
    /// Names of its headers, in small letters, if the browser asks about them.
    pub(super) headers: &'a [String],
}

/// Rules with the time at which they were asked for.
type AskedRules = (Instant, Arc<[CorsRule]>);

/// The rules of all buckets, as far as they were asked for.
#[derive(Debug)]
pub(super) struct CorsRules {
    /// A client with the key of the gateway.
    own: CallerClient,
    known: Mutex<Remembered<String, AskedRules>>,
    reads: Semaphore,
}

impl CorsRules {
    pub(super) fn new(gateway: Client) -> CorsRules {
        CorsRules {
            own: CallerClient::new(gateway),
            known: Mutex::new(Remembered::new(BUCKETS)),
            reads: Semaphore::new(READS),
        }
    }

    /// Answers a browser that asks which requests a page may send.
    ///
    /// # Errors
    /// [`Code::AccessForbidden`], also where there is no such bucket; [`Code::ServiceUnavailable`].
    pub(super) async fn preflight(
        &self,
        bucket: Option<&str>,
        request: CrossOriginRequest<'_>,
    ) -> Result<Reply, S3Error> {
        let rules = match bucket {
            Some(bucket) => self.of(bucket).await?,
            None => Arc::default(),
        };
        let rule = rules.iter().find(|rule| fits(rule, request));
        let Some(rule) = rule else {
            let sentence =
                "CORSResponse: no rule of the bucket allows that origin, method and these headers";
            return Err(S3Error::new(Code::AccessForbidden, sentence));
        };
        let mut reply = Reply::ok();
        set(&mut reply, rule, request);
        reply.set(ACCESS_CONTROL_ALLOW_METHODS, &rule.methods.join(", "));
        if !request.headers.is_empty() {
            reply.set(ACCESS_CONTROL_ALLOW_HEADERS, &request.headers.join(", "));
        }
        if let Some(seconds) = rule.max_age_s {
            reply.set(ACCESS_CONTROL_MAX_AGE, &seconds.to_string());
        }
        let vary = "Origin, Access-Control-Request-Headers, Access-Control-Request-Method";
        Ok(reply.with(VARY, vary))
    }

    /// Adds to a response what lets the page that asked for it see it.
    pub(super) async fn show(&self, bucket: &str, head: &Parts, reply: &mut Reply) {
        let origin = head.headers.get(ORIGIN).map(HeaderValue::to_str);
        let Some(Ok(origin)) = origin else { return };
        let rules = match self.of(bucket).await {
            Ok(rules) => rules,
            Err(error) => {
                tracing::debug!(bucket, %error, "response without CORS");
                return;
            }
        };
        if rules.is_empty() {
            return;
        }
        reply.set(VARY, "Origin");
        let request = CrossOriginRequest {
            origin,
            method: head.method.as_str(),
            headers: &[],
        };
        if let Some(rule) = rules.iter().find(|rule| fits(rule, request)) {
            set(reply, rule, request);
        }
    }

    /// Has the rules of a bucket read again.
    pub(super) fn forget(&self, bucket: &str) {
        let mut known = self.known.lock().expect("no holder of the lock panics");
        known.remove(&bucket.to_owned());
    }

    /// The rules of a bucket; none if there is no such bucket.
    async fn of(&self, bucket: &str) -> Result<Arc<[CorsRule]>, S3Error> {
        if let Some(rules) = self.remembered(bucket) {
            return Ok(rules);
        }
        let _place = self.reads.acquire().await.expect("it is never closed");
        if let Some(rules) = self.remembered(bucket) {
            return Ok(rules);
        }
        let asked = Instant::now();
        let rules = match self.own.bucket(bucket).await {
            Ok(domain) => self.read(&domain).await?,
            Err(error) if error.code == Code::NoSuchBucket => Arc::default(),
            Err(error) => return Err(error),
        };
        let mut known = self.known.lock().expect("no holder of the lock panics");
        known.keep(bucket.to_owned(), (asked, Arc::clone(&rules)));
        Ok(rules)
    }

    fn remembered(&self, bucket: &str) -> Option<Arc<[CorsRule]>> {
        let mut known = self.known.lock().expect("no holder of the lock panics");
        let (asked, rules) = known.get(&bucket.to_owned())?;
        (asked.elapsed() < LASTS).then(|| Arc::clone(rules))
    }

    async fn read(&self, domain: &Domain) -> Result<Arc<[CorsRule]>, S3Error> {
        let text = match RULES.read(domain).await {
            Ok(Some(document)) => document.into_bytes(),
            Ok(None) => return Ok(Arc::default()),
            Err(error) => {
                // There may be another domain of the name than the one that was remembered.
                self.own.forget(domain.name());
                let error = failure::of(&error);
                return match error.code {
                    Code::NoSuchBucket => Ok(Arc::default()),
                    _ => Err(error),
                };
            }
        };
        Ok(cors::read_cors(&text)?.into())
    }
}

fn fits(rule: &CorsRule, request: CrossOriginRequest<'_>) -> bool {
    rule.allows(request.origin, request.method, request.headers)
}

/// Sets the headers that both kinds of responses have.
fn set(reply: &mut Reply, rule: &CorsRule, request: CrossOriginRequest<'_>) {
    if rule.allows_every_origin() {
        reply.set(ACCESS_CONTROL_ALLOW_ORIGIN, "*");
    } else {
        reply.set(ACCESS_CONTROL_ALLOW_ORIGIN, request.origin);
        reply.set(ACCESS_CONTROL_ALLOW_CREDENTIALS, "true");
    }
    if !rule.exposed.is_empty() {
        reply.set(ACCESS_CONTROL_EXPOSE_HEADERS, &rule.exposed.join(", "));
    }
}

/// Gives a bucket these rules in place of those that it has.
///
/// # Errors
/// The document cannot be read, or is too long; those of the store.
pub(super) async fn put(domain: &Domain, document: &[u8]) -> Result<Reply, S3Error> {
    let text = cors::cors(&cors::read_cors(document)?);
    let options = PutOptions::default();
    RULES.put(domain, (text, document.len()), options).await
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(origins: &[&str]) -> CorsRule {
        let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        CorsRule {
            origins: texts(origins),
            methods: texts(&["GET", "PUT"]),
            exposed: texts(&["ETag", "x-areo-version"]),
            ..CorsRule::default()
        }
    }

    #[test]
    fn credentials_are_for_named_origins_alone() {
        let request = CrossOriginRequest {
            origin: "https://a.example",
            method: "GET",
            headers: &[],
        };
        let shown = |origins: &[&str]| {
            let mut reply = Reply::ok();
            set(&mut reply, &rule(origins), request);
            let header = |name| {
                reply
                    .headers
                    .get(name)
                    .map(|it| it.to_str().unwrap().to_owned())
            };
            (
                header(ACCESS_CONTROL_ALLOW_ORIGIN),
                header(ACCESS_CONTROL_ALLOW_CREDENTIALS),
                header(ACCESS_CONTROL_EXPOSE_HEADERS),
            )
        };
        let text = |text: &str| Some(text.to_owned());
        let exposed = || text("ETag, x-areo-version");
        let named = (text("https://a.example"), text("true"), exposed());
        assert_eq!(shown(&["https://*.example"]), named);
        assert_eq!(shown(&["https://b", "*"]), (text("*"), None, exposed()));
    }
}
