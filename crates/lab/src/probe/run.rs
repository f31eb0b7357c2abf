//! One run: clients, and the record of their operations.

mod removal;

use super::operation::{Action, Condition, Ending, Operation, Reading, settle_deletions};
use super::store::{Header, Reply, Store, Upload, call};
use http::Method;
use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};
use tokio::time::sleep;

/// Attempts of a request that is answered with 409.
const ATTEMPTS: u32 = 8;

/// A client at an endpoint.
#[derive(Clone, Copy)]
pub(super) struct Client {
    pub(super) number: usize,
    pub(super) endpoint: usize,
}

/// A client's knowledge of its write.
pub(super) struct Written {
    pub(super) value: String,
    pub(super) ending: Ending,
}

impl Written {
    pub(super) fn is_done(&self) -> bool {
        self.ending == Ending::Done
    }
}

/// An object as a client saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Observation {
    Value(String),
    Absent,
    /// There was no answer, or one that cannot be judged.
    Nothing,
}

/// The clients and the record of one run, which its cases share.
pub(super) struct Run {
    pub(super) store: Store,
    /// The prefix of all keys, with its slash.
    pub(super) prefix: String,
    pub(super) is_own_bucket: bool,
    /// The run has made its bucket, or may have.
    pub(super) is_made: AtomicBool,
    began: Instant,
    last_ns: AtomicU64,
    next: AtomicU64,
    pub(super) is_away: AtomicBool,
    record: Mutex<Record>,
    /// Every key that a request was sent for.
    pub(super) keys: Mutex<BTreeSet<String>>,
}

/// The notes of a case.
pub(super) struct Notes {
    pub(super) operations: Vec<Operation>,
    pub(super) rejections: Vec<String>,
    pub(super) refusals: Vec<String>,
}

#[derive(Default)]
struct Record {
    operations: Vec<Operation>,
    /// The ETag of each value, by key and value.
    etags: HashMap<(String, String), String>,
    /// Answers that say neither that a condition failed nor that the store does not do this.
    rejections: Vec<String>,
    /// Answers that say that the store does not do this.
    refusals: Vec<String>,
}

impl Run {
    pub(super) fn new(store: Store, prefix: String, is_own_bucket: bool) -> Run {
        Run {
            store,
            prefix,
            is_own_bucket,
            is_made: AtomicBool::new(false),
            began: Instant::now(),
            last_ns: AtomicU64::new(0),
            next: AtomicU64::new(0),
            is_away: AtomicBool::new(false),
            record: Mutex::default(),
            keys: Mutex::default(),
        }
    }

    pub(super) fn endpoints(&self) -> usize {
        self.store.caller.endpoints.len()
    }

    /// Clients over all endpoints in turn.
    pub(super) fn clients(&self, count: usize) -> Vec<Client> {
        let client = |number| Client {
            number,
            endpoint: number % self.endpoints(),
        };
        (0..count).map(client).collect()
    }

    /// The number of a value or key that no other one has.
    fn fresh(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// A key of its own for a case.
    pub(super) fn key(&self, case: &str) -> String {
        format!("{}{case}/{:04}", self.prefix, self.fresh())
    }

    /// An id of a request.
    pub(super) fn invocation(&self) -> String {
        let run = self.prefix.trim_end_matches('/');
        format!("{run}-request-{}", self.fresh())
    }

    fn value(&self) -> String {
        format!("value-{}", self.fresh())
    }

    /// The time since the run began; no two moments are equal.
    fn now(&self) -> u64 {
        let elapsed = u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let later = |last: u64| Some(elapsed.max(last + 1));
        let order = Ordering::Relaxed;
        let last = self.last_ns.fetch_update(order, order, later);
        elapsed.max(last.expect("there is always a later one") + 1)
    }

    fn record(&self) -> MutexGuard<'_, Record> {
        self.record.lock().expect("no holder of the lock panics")
    }

    /// Notes that a request for a key is sent: it is removed at the end.
    fn touch(&self, key: &str) {
        let mut keys = self.keys.lock().expect("no holder of the lock panics");
        keys.insert(key.to_owned());
    }

    /// Everything that was noted since the last time, operations in the order in which they were sent.
    pub(super) fn take(&self) -> Notes {
        let mut record = self.record();
        let mut operations = std::mem::take(&mut record.operations);
        operations.sort_by_key(|one| one.invoked_ns);
        settle_deletions(&mut operations);
        Notes {
            operations,
            rejections: std::mem::take(&mut record.rejections),
            refusals: std::mem::take(&mut record.refusals),
        }
    }

    /// Notes an answer that is no outcome of a condition.
    pub(super) fn reject(&self, request: &str, reply: &Reply) {
        let text = format!("{request}: {}", reply.text);
        let mut record = self.record();
        match reply.ending {
            Ending::NotImplemented => record.refusals.push(text),
            // A request that was not sent says nothing about the store.
            Ending::Rejected if reply.answer.is_some() => record.rejections.push(text),
            Ending::Conflict | Ending::Unknown | Ending::ConditionFailed => {
                record.rejections.push(text);
            }
            Ending::Rejected | Ending::Done => {}
        }
    }

    /// The header of a condition.
    ///
    /// # Errors
    /// The condition names a value whose ETag is not known.
    fn condition(&self, key: &str, condition: &Condition) -> Result<Option<Header>, Ending> {
        let Condition::Match(base) = condition else {
            return Ok(Header::of(condition, None));
        };
        let etag = self.etag(key, base);
        if etag.is_none() {
            let text = format!("the ETag of '{base}' was not answered");
            self.record().rejections.push(text);
        }
        etag.map(|etag| Header::of(condition, Some(etag)))
            .ok_or(Ending::Rejected)
    }

    /// The ETag of a value.
    pub(super) fn etag(&self, key: &str, value: &str) -> Option<String> {
        let place = (key.to_owned(), value.to_owned());
        self.record().etags.get(&place).cloned()
    }

    fn note(&self, client: Client, key: &str, action: Action, invoked_ns: u64, reply: &Reply) {
        if matches!(reply.ending, Ending::Rejected | Ending::NotImplemented) {
            self.reject(&action.to_string(), reply);
        }
        let operation = Operation {
            client: client.number,
            endpoint: client.endpoint,
            key: key.to_owned(),
            action,
            invoked_ns,
            ended_ns: self.now(),
            ending: reply.ending,
            answer: reply.text.clone(),
        };
        let mut record = self.record();
        if let (Some(value), Ending::Done, Some(etag)) =
            (operation.written(), operation.ending, reply.etag())
        {
            let place = (key.to_owned(), value.to_owned());
            record.etags.insert(place, etag);
        }
        record.operations.push(operation);
    }

    /// Sends a request with the header of a condition until it is not answered by a conflict. The time at which it was sent first, and its reply.
    ///
    /// # Errors
    /// Those of [`condition`](Run::condition): nothing was sent.
    async fn sent<F: Future<Output = Reply>>(
        &self,
        key: &str,
        condition: &Condition,
        send: impl Fn(Option<Header>) -> F,
    ) -> Result<(u64, Reply), Ending> {
        let header = self.condition(key, condition)?;
        let invoked = self.now();
        Ok((invoked, patiently(|| send(header.clone())).await))
    }

    /// Writes a new value by a request with an id of its own.
    pub(super) async fn put(&self, client: Client, key: &str, condition: Condition) -> Written {
        let invocation = self.invocation();
        self.put_as(client, key, condition, &invocation).await
    }

    /// Writes a new value by a request with this id. After a conflict the request is sent again, as an SDK does.
    pub(super) async fn put_as(
        &self,
        client: Client,
        key: &str,
        condition: Condition,
        invocation: &str,
    ) -> Written {
        let value = self.value();
        self.touch(key);
        let send = |header| {
            self.store
                .put(client.endpoint, key, &value, header, invocation)
        };
        let (invoked, reply) = match self.sent(key, &condition, send).await {
            Ok(sent) => sent,
            Err(ending) => return Written { value, ending },
        };
        let action = Action::Put {
            value: value.clone(),
            condition,
            is_completion: false,
        };
        self.note(client, key, action, invoked, &reply);
        Written {
            value,
            ending: reply.ending,
        }
    }

    /// Sends the request of [`put_as`](Run::put_as) once more. It is no further operation.
    pub(super) async fn put_again(
        &self,
        client: Client,
        key: &str,
        (value, condition): (&str, &Condition),
        invocation: &str,
    ) -> Ending {
        let send = |header| {
            self.store
                .put(client.endpoint, key, value, header, invocation)
        };
        let sent = self.sent(key, condition, send).await;
        sent.map_or_else(|ending| ending, |(_, reply)| reply.ending)
    }

    /// Makes an object absent.
    pub(super) async fn delete(&self, client: Client, key: &str, condition: Condition) -> Ending {
        let invocation = self.invocation();
        let send = |header| self.store.delete(client.endpoint, key, header, &invocation);
        let (invoked, reply) = match self.sent(key, &condition, send).await {
            Ok(sent) => sent,
            Err(ending) => return ending,
        };
        self.note(client, key, Action::Delete { condition }, invoked, &reply);
        reply.ending
    }

    /// Begins an upload of a new value.
    ///
    /// # Errors
    /// The end of the request.
    pub(super) async fn upload(
        &self,
        client: Client,
        key: &str,
    ) -> Result<(String, Upload), Ending> {
        let value = self.value();
        self.touch(key);
        match self.store.upload(client.endpoint, key, &value).await {
            Ok(upload) => Ok((value, upload)),
            Err(reply) => {
                self.reject("upload in parts", &reply);
                Err(reply.ending)
            }
        }
    }

    /// Completes an upload. `is_first`: it was not completed before, and the completion is an operation.
    pub(super) async fn complete(
        &self,
        client: Client,
        key: &str,
        (value, upload): (&str, &Upload),
        condition: Condition,
        is_first: bool,
    ) -> Ending {
        let invocation = self.invocation();
        let send = |header| {
            self.store
                .complete(client.endpoint, key, upload, header, &invocation)
        };
        let (invoked, reply) = match self.sent(key, &condition, send).await {
            Ok(sent) => sent,
            Err(ending) => return ending,
        };
        if is_first {
            let action = Action::Put {
                value: value.to_owned(),
                condition,
                is_completion: true,
            };
            self.note(client, key, action, invoked, &reply);
        }
        reply.ending
    }

    /// The value of an object.
    pub(super) async fn get(&self, client: Client, key: &str) -> Observation {
        let invoked = self.now();
        let call = call(Method::GET, "", "");
        let mut reply = self.store.send(client.endpoint, call, Some(key)).await;
        let observation = observe(&mut reply, |reply| {
            let answer = reply.answer.as_ref()?;
            Some(String::from_utf8_lossy(&answer.body).into_owned())
        });
        if let (Observation::Value(value), Some(etag)) = (&observation, reply.etag()) {
            let place = (key.to_owned(), value.clone());
            // The ETag of the answer to the write counts more.
            self.record().etags.entry(place).or_insert(etag);
        }
        self.note_read(client, key, Reading::Get, &observation, invoked, &reply);
        observation
    }

    /// The ETag that GET names. It is no operation of the history.
    pub(super) async fn get_etag(&self, client: Client, key: &str) -> Option<String> {
        let call = call(Method::GET, "", "");
        let reply = self.store.send(client.endpoint, call, Some(key)).await;
        reply.etag().filter(|_| reply.ending == Ending::Done)
    }

    /// The ETag of an object, which names its value.
    pub(super) async fn head(&self, client: Client, key: &str) -> Option<String> {
        let invoked = self.now();
        let call = call(Method::HEAD, "", "");
        let mut reply = self.store.send(client.endpoint, call, Some(key)).await;
        let observation = observe(&mut reply, |reply| self.with_etag(key, &reply.etag()?));
        self.note_read(client, key, Reading::Head, &observation, invoked, &reply);
        reply.etag()
    }

    /// The value with this ETag. `None`: it may be that of a write whose answer is not there yet.
    fn with_etag(&self, key: &str, etag: &str) -> Option<String> {
        let record = self.record();
        let mut known = record.etags.iter();
        let found = known.find(|((of, _), known)| of == key && bare(known) == bare(etag));
        found.map(|((_, value), _)| value.clone())
    }

    fn note_read(
        &self,
        client: Client,
        key: &str,
        by: Reading,
        observation: &Observation,
        invoked: u64,
        reply: &Reply,
    ) {
        let observed = match observation {
            Observation::Value(value) => Some(value.clone()),
            _ => None,
        };
        self.note(client, key, Action::Read { by, observed }, invoked, reply);
    }

    /// Lists the objects of a case, and records whether it shows each of `keys`. Returns the listed keys.
    pub(super) async fn list(&self, client: Client, prefix: &str, keys: &[String]) -> Vec<String> {
        const PAGE: usize = 7;
        let invoked = self.now();
        let listed = self.store.list(client.endpoint, prefix, None, PAGE).await;
        let (listing, reply) = match listed {
            Ok(listing) => (listing.entries, "200".to_owned()),
            Err(reply) => {
                self.reject("LIST", &reply);
                return Vec::new();
            }
        };
        for key in keys {
            let entry = listing.iter().find(|(listed, _)| listed == key);
            let mut reply = Reply {
                ending: Ending::Done,
                text: reply.clone(),
                answer: None,
            };
            let observation = match entry.map(|(_, etag)| self.with_etag(key, etag)) {
                Some(Some(value)) => Observation::Value(value),
                Some(None) => Observation::Nothing,
                None => Observation::Absent,
            };
            if observation == Observation::Nothing {
                reply.ending = Ending::Unknown;
            }
            self.note_read(client, key, Reading::List, &observation, invoked, &reply);
        }
        listing.into_iter().map(|(key, _)| key).collect()
    }
}

/// An ETag without its quotes.
pub(super) fn bare(etag: &str) -> &str {
    etag.trim_matches('"')
}

/// The object that a reading saw. Absence is an answer.
fn observe(reply: &mut Reply, value: impl Fn(&Reply) -> Option<String>) -> Observation {
    match reply.ending {
        Ending::Done => {
            if let Some(value) = value(reply) {
                return Observation::Value(value);
            }
            reply.ending = Ending::Unknown;
            Observation::Nothing
        }
        Ending::ConditionFailed => {
            reply.ending = Ending::Done;
            Observation::Absent
        }
        _ => Observation::Nothing,
    }
}

/// Sends a request until it is not answered by a conflict.
async fn patiently<F: Future<Output = Reply>>(send: impl Fn() -> F) -> Reply {
    let mut reply = send().await;
    for attempt in 1..ATTEMPTS {
        if reply.ending != Ending::Conflict {
            break;
        }
        sleep(Duration::from_millis(u64::from(attempt) * 10)).await;
        reply = send().await;
    }
    reply
}
