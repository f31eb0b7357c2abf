//! A small store with an interface of S3, in memory, with defects that can be planted.

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use std::collections::{BTreeMap, HashMap};
use std::convert::Infallible;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::time::sleep;

/// The fault of the store, or its difference from others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Defect {
    /// No defect.
    None,
    /// Every condition counts as true.
    IgnoresConditions,
    /// A condition is checked, and the write is made a little later.
    TwoWinners,
    /// An object is hidden from the first twenty pages of listings that should show it.
    ListsLate,
    /// `If-Match` of a deletion counts as true.
    DeletesAnyVersion,
    /// A request that is sent again is applied again.
    AppliesAgain,
    /// An upload that was completed is written again by a second completion.
    CompletesAgain,
    /// A read shows the value before the last one.
    ReadsLate,
    /// Conditional writes are always refused.
    NobodyWins,
    /// HEAD names an ETag of its own.
    OtherEtags,
    /// Pages of listings begin with the last key of the page before.
    RepeatsKeys,
    /// No defect: conditions are answered with 501.
    RefusesConditions,
    /// No defect: a request that is sent again is refused.
    KnowsNoRequests,
    /// No defect: some conditional writes end with 500, applied or not.
    LosesAnswers,
    /// No defect: the key is refused.
    Forbids,
    /// No defect: each answer takes a while.
    IsSlow,
}

#[derive(Clone)]
struct Object {
    body: Bytes,
    etag: String,
}

type Objects = BTreeMap<(String, String), Object>;

#[derive(Default)]
struct State {
    buckets: Vec<String>,
    objects: Objects,
    /// For each object the number of further listing pages that hide it.
    hidden: HashMap<(String, String), u32>,
    /// The value before the last one.
    before: HashMap<(String, String), Option<Object>>,
    uploads: HashMap<String, Bytes>,
    completed: HashMap<String, String>,
    /// Requests that were applied, each with its ETag.
    requests: HashMap<(String, String), String>,
    number: u64,
}

/// A store that serves until it is dropped.
pub(super) struct Responder {
    pub(super) address: SocketAddr,
    state: Arc<Mutex<State>>,
    runtime: Option<tokio::runtime::Runtime>,
}

impl Drop for Responder {
    fn drop(&mut self) {
        let runtime = self.runtime.take().expect("it is dropped once");
        runtime.shutdown_background();
    }
}

impl Responder {
    pub(super) fn start(defect: Defect) -> Responder {
        let runtime = tokio::runtime::Builder::new_multi_thread();
        let runtime = { runtime }.worker_threads(1).enable_all().build().unwrap();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(Mutex::new(State::default()));
        let shared = state.clone();
        runtime.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let shared = shared.clone();
                let serve = service_fn(move |request| answer(shared.clone(), defect, request));
                let connection = hyper::server::conn::http1::Builder::new();
                tokio::spawn(connection.serve_connection(TokioIo::new(stream), serve));
            }
        });
        let runtime = Some(runtime);
        Responder {
            address,
            state,
            runtime,
        }
    }

    pub(super) fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Makes a bucket with an object of its owner.
    pub(super) fn make(&self, bucket: &str, key: &str) {
        let mut state = self.state.lock().unwrap();
        state.buckets.push(bucket.to_owned());
        let place = (bucket.to_owned(), key.to_owned());
        let body = Bytes::from_static(b"of the owner");
        let etag = etag(&body);
        state.objects.insert(place, Object { body, etag });
    }

    /// Buckets, and keys of objects.
    pub(super) fn contents(&self) -> (Vec<String>, Vec<String>) {
        let state = self.state.lock().unwrap();
        let keys = state.objects.keys().map(|(_, key)| key.clone());
        (state.buckets.clone(), keys.collect())
    }
}

fn etag(body: &[u8]) -> String {
    let mut hasher = DefaultHasher::new();
    body.hash(&mut hasher);
    format!("\"{:016x}\"", hasher.finish())
}

type Answer = Response<Full<Bytes>>;

fn reply(status: u16, body: impl Into<Bytes>) -> Answer {
    let mut response = Response::new(Full::new(body.into()));
    *response.status_mut() = StatusCode::from_u16(status).unwrap();
    response
}

fn failure(status: u16, code: &str) -> Answer {
    reply(status, format!("<Error><Code>{code}</Code></Error>"))
}

fn with_etag(mut answer: Answer, etag: &str) -> Answer {
    answer.headers_mut().insert("etag", etag.parse().unwrap());
    answer
}

fn header(headers: &HeaderMap, name: &str) -> Option<String> {
    let value = headers.get(name)?;
    Some(value.to_str().unwrap().to_owned())
}

/// The parameters of a query, decoded.
fn parameters(query: &str) -> HashMap<String, String> {
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    let decode = |text: &str| text.replace("%2F", "/");
    let pair = |pair: &str| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        (name.to_owned(), decode(value))
    };
    pairs.map(pair).collect()
}

/// A write, as far as its head says.
struct Write {
    place: (String, String),
    if_match: Option<String>,
    is_if_absent: bool,
    invocation: Option<String>,
}

async fn answer(
    shared: Arc<Mutex<State>>,
    defect: Defect,
    request: Request<Incoming>,
) -> Result<Answer, Infallible> {
    let (parts, body) = request.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    let is_signed = header(&parts.headers, "authorization").is_some();
    if !is_signed || defect == Defect::Forbids {
        return Ok(failure(403, "AccessDenied"));
    }
    if defect == Defect::IsSlow {
        sleep(Duration::from_millis(30)).await;
    }
    let path = parts.uri.path().trim_start_matches('/').to_owned();
    let (bucket, key) = path.split_once('/').unwrap_or((&path, ""));
    let query = parameters(parts.uri.query().unwrap_or_default());
    if key.is_empty() {
        return Ok(of_bucket(&shared, defect, &parts.method, bucket, &query));
    }
    let write = Write {
        place: (bucket.to_owned(), key.to_owned()),
        if_match: header(&parts.headers, "if-match"),
        is_if_absent: header(&parts.headers, "if-none-match").is_some(),
        invocation: header(&parts.headers, "amz-sdk-invocation-id"),
    };
    match (&parts.method, query.contains_key("uploadId")) {
        (&Method::GET, _) => Ok(read(&shared, defect, &write.place, false)),
        (&Method::HEAD, _) => Ok(read(&shared, defect, &write.place, true)),
        (&Method::POST, false) => {
            let mut state = shared.lock().unwrap();
            state.number += 1;
            let id = format!("upload-{}", state.number);
            let document = format!(
                "<InitiateMultipartUploadResult><UploadId>{id}</UploadId></InitiateMultipartUploadResult>"
            );
            Ok(reply(200, document))
        }
        (&Method::PUT, true) => {
            let etag = etag(&body);
            let mut state = shared.lock().unwrap();
            state.uploads.insert(query["uploadId"].clone(), body);
            Ok(with_etag(reply(200, ""), &etag))
        }
        (&Method::POST, true) => Ok(complete(&shared, defect, &write, &query["uploadId"]).await),
        (&Method::DELETE, true) => Ok(reply(204, "")),
        (&Method::DELETE, false) => Ok(change(&shared, defect, &write, None).await),
        _ => Ok(change(&shared, defect, &write, Some(body)).await),
    }
}

async fn complete(shared: &Mutex<State>, defect: Defect, write: &Write, id: &str) -> Answer {
    let (body, known) = {
        let state = shared.lock().unwrap();
        let known = state.completed.get(id).cloned();
        (state.uploads.get(id).cloned(), known)
    };
    let done = |etag: &str| {
        let document = format!(
            "<CompleteMultipartUploadResult><ETag>{}</ETag></CompleteMultipartUploadResult>",
            etag.replace('"', "&quot;")
        );
        reply(200, document)
    };
    if let Some(etag) = known.filter(|_| defect != Defect::CompletesAgain) {
        return done(&etag);
    }
    let Some(body) = body else {
        return failure(404, "NoSuchUpload");
    };
    let answer = change(shared, defect, write, Some(body.clone())).await;
    if answer.status() != StatusCode::OK {
        return answer;
    }
    let etag = etag(&body);
    let mut state = shared.lock().unwrap();
    state.completed.insert(id.to_owned(), etag.clone());
    done(&etag)
}

/// A write or a deletion of an object.
async fn change(
    shared: &Mutex<State>,
    defect: Defect,
    write: &Write,
    body: Option<Bytes>,
) -> Answer {
    let is_conditional = write.if_match.is_some() || write.is_if_absent;
    if is_conditional && defect == Defect::RefusesConditions {
        return failure(501, "NotImplemented");
    }
    let request = write
        .invocation
        .clone()
        .map(|id| (id, write.place.1.clone()));
    let is_known = |state: &State| {
        request
            .as_ref()
            .and_then(|id| state.requests.get(id))
            .cloned()
    };
    if let Some(etag) = is_known(&shared.lock().unwrap()) {
        match defect {
            Defect::AppliesAgain => {}
            Defect::KnowsNoRequests => return failure(412, "PreconditionFailed"),
            _ => return with_etag(reply(200, ""), &etag),
        }
    } else if is_conditional {
        let refused = refusal(&shared.lock().unwrap(), defect, write, body.is_none());
        if let Some(refused) = refused {
            return refused;
        }
        if defect == Defect::TwoWinners {
            sleep(Duration::from_millis(50)).await;
        }
    }
    let mut state = shared.lock().unwrap();
    // Nothing was locked while the store slept, and nothing but the planted defect sleeps.
    if is_conditional
        && !matches!(defect, Defect::TwoWinners | Defect::AppliesAgain)
        && let Some(refused) = refusal(&state, defect, write, body.is_none())
    {
        return refused;
    }
    state.number += 1;
    let is_lossy = is_conditional && defect == Defect::LosesAnswers;
    if is_lossy && state.number.is_multiple_of(5) {
        return failure(503, "SlowDown");
    }
    state.hidden.entry(write.place.clone()).or_insert(20);
    let object = body.map(|body| Object {
        etag: etag(&body),
        body,
    });
    let before = match &object {
        Some(object) => state.objects.insert(write.place.clone(), object.clone()),
        None => state.objects.remove(&write.place),
    };
    state.before.insert(write.place.clone(), before);
    let Some(object) = object else {
        return reply(204, "");
    };
    state
        .requests
        .extend(request.map(|id| (id, object.etag.clone())));
    if is_lossy && state.number.is_multiple_of(3) {
        return failure(500, "InternalError");
    }
    with_etag(reply(200, ""), &object.etag)
}

/// The refusal of a condition that does not hold.
fn refusal(state: &State, defect: Defect, write: &Write, is_deletion: bool) -> Option<Answer> {
    let is_ignored =
        defect == Defect::IgnoresConditions || (is_deletion && defect == Defect::DeletesAnyVersion);
    if is_ignored {
        return None;
    }
    if defect == Defect::NobodyWins {
        return Some(failure(412, "PreconditionFailed"));
    }
    let there = state.objects.get(&write.place).map(|object| &object.etag);
    match (&write.if_match, there) {
        (Some(_), None) => Some(failure(404, "NoSuchKey")),
        (Some(wanted), Some(there)) if wanted != there => Some(failure(412, "PreconditionFailed")),
        (None, Some(_)) if write.is_if_absent => Some(failure(412, "PreconditionFailed")),
        _ => None,
    }
}

fn read(shared: &Mutex<State>, defect: Defect, place: &(String, String), is_head: bool) -> Answer {
    let state = shared.lock().unwrap();
    let mut object = state.objects.get(place).cloned();
    if defect == Defect::ReadsLate
        && let Some(before) = state.before.get(place)
    {
        object.clone_from(before);
    }
    match object {
        None => failure(404, "NoSuchKey"),
        Some(object) => {
            let etag = match defect {
                Defect::OtherEtags if is_head => "\"other\"",
                _ => &object.etag,
            };
            let body = if is_head { Bytes::new() } else { object.body };
            with_etag(reply(200, body), etag)
        }
    }
}

fn of_bucket(
    shared: &Mutex<State>,
    defect: Defect,
    method: &Method,
    bucket: &str,
    query: &HashMap<String, String>,
) -> Answer {
    let mut state = shared.lock().unwrap();
    let is_there = state.buckets.iter().any(|known| known == bucket);
    match (method, is_there) {
        (&Method::PUT, false) => {
            state.buckets.push(bucket.to_owned());
            reply(200, "")
        }
        (_, false) => failure(404, "NoSuchBucket"),
        (&Method::HEAD, _) => reply(200, ""),
        (&Method::DELETE, _) if state.objects.keys().any(|(of, _)| of == bucket) => {
            failure(409, "BucketNotEmpty")
        }
        (&Method::DELETE, _) => {
            state.buckets.retain(|known| known != bucket);
            reply(204, "")
        }
        (&Method::GET, _) if query.contains_key("uploads") => {
            reply(200, "<ListMultipartUploadsResult/>")
        }
        (&Method::GET, _) => list(&mut state, defect, bucket, query),
        _ => failure(405, "MethodNotAllowed"),
    }
}

fn list(
    state: &mut State,
    defect: Defect,
    bucket: &str,
    query: &HashMap<String, String>,
) -> Answer {
    let prefix = query["prefix"].as_str();
    let token = query.get("continuation-token");
    let after = token.or(query.get("start-after"));
    let most: usize = query["max-keys"].parse().unwrap();
    let is_wanted = |key: &str| {
        let is_after = match defect {
            Defect::RepeatsKeys => after.is_none_or(|after| key >= after.as_str()),
            _ => after.is_none_or(|after| key > after.as_str()),
        };
        key.starts_with(prefix) && is_after
    };
    let State {
        objects, hidden, ..
    } = state;
    let of_bucket = objects.iter().filter(|((of, _), _)| of == bucket);
    let wanted = of_bucket.filter(|((_, key), _)| is_wanted(key));
    let mut wanted = wanted.filter(|(place, _)| {
        let left = hidden.get_mut(*place).filter(|left| **left > 0);
        match left {
            Some(left) if defect == Defect::ListsLate => {
                *left -= 1;
                false
            }
            _ => true,
        }
    });
    let page: Vec<_> = wanted.by_ref().take(most).collect();
    let entry = |((_, key), object): &(&(String, String), &Object)| {
        let etag = object.etag.replace('"', "&quot;");
        format!("<Contents><Key>{key}</Key><ETag>{etag}</ETag></Contents>")
    };
    let entries: String = page.iter().map(entry).collect();
    let last = page.last().filter(|_| wanted.next().is_some());
    let token = last.map_or(String::new(), |((_, key), _)| {
        format!("<NextContinuationToken>{key}</NextContinuationToken>")
    });
    let is_more = last.is_some();
    reply(
        200,
        format!(
            "<ListBucketResult>{entries}{token}<IsTruncated>{is_more}</IsTruncated></ListBucketResult>"
        ),
    )
}
