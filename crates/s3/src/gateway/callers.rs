//! Clients of the cluster, one for each key whose owner sends requests.
//!
//! The gateway holds no secret but that of its own key, which has the grant `gateway`: the cluster gives it the keys that sign requests of one day, and tickets for the keys
//! of its callers. So each server judges each request by the grants of the caller.

use super::failure;
use super::metrics::{Metrics, Recall};
use crate::auth::{SigningKey, SigningKeys};
use crate::wire::{Code, S3Error};
use areo_client::trust::{ANONYMOUS, ANONYMOUS_NAME, KeyId, RefusalKind, Secret, TrustError};
use areo_client::{Client, ConnectError, Domain};
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};
use tokio::sync::OnceCell;

/// The time for which a signing key is used before the cluster is asked again: a key that is rotated or revoked in the meantime is known to servers, which judge each
/// request.
const SIGNING: Duration = Duration::from_secs(20);
/// The time for which an id without a key is not asked about again.
const UNKNOWN: Duration = Duration::from_secs(2);
/// Days, regions and keys that are remembered at most.
const SIGNING_KEYS: usize = 4096;
/// Callers whose connections are kept, at most.
const CLIENTS: usize = 256;
/// Buckets of a caller that are remembered, at most.
const BUCKETS: usize = 1024;

/// A caller: a client of the cluster with the caller's grants.
#[derive(Clone, Debug)]
pub(super) struct CallerClient {
    pub(super) client: Client,
    buckets: Arc<Mutex<Remembered<String, Domain>>>,
}

impl CallerClient {
    pub(super) fn new(client: Client) -> CallerClient {
        let buckets = Arc::new(Mutex::new(Remembered::new(BUCKETS)));
        CallerClient { client, buckets }
    }

    /// The domain that a bucket is.
    ///
    /// # Errors
    /// [`Code::NoSuchBucket`], and those of the store.
    pub(super) async fn bucket(&self, name: &str) -> Result<Domain, S3Error> {
        let known = self.buckets().get(&name.to_owned()).cloned();
        if let Some(domain) = known {
            return Ok(domain);
        }
        let found = self.client.domain(name).await;
        let domain = found.map_err(|error| failure::of(&error))?;
        self.buckets().keep(name.to_owned(), domain.clone());
        Ok(domain)
    }

    /// Forgets a bucket that may not be the domain of that name any more. False: it was not remembered.
    pub(super) fn forget(&self, name: &str) -> bool {
        self.buckets().remove(&name.to_owned())
    }

    fn buckets(&self) -> MutexGuard<'_, Remembered<String, Domain>> {
        self.buckets.lock().expect("no holder of the lock panics")
    }
}

/// The callers that the gateway remembers: their signing keys, and a client for each.
#[derive(Debug)]
pub(super) struct Callers {
    gateway: Client,
    signing: Mutex<SigningMemory>,
    /// A caller's first requests wait for one connection; those of others do not.
    clients: Mutex<Remembered<String, Arc<OnceCell<CallerClient>>>>,
    metrics: Metrics,
    /// The last refusal of a ticket for callers without a key: strangers cannot have the cluster asked for one with each request.
    anonymous_refused: Mutex<Option<(Instant, S3Error)>>,
}

/// Answers by id, day and region, each with its time.
type SigningMemory = Remembered<(String, u32, String), (Instant, Known)>;

/// The answer of the cluster about an id.
type Known = Result<Vec<SigningKey>, S3Error>;

impl Callers {
    pub(super) fn new(gateway: Client, metrics: Metrics) -> Callers {
        Callers {
            gateway,
            signing: Mutex::new(Remembered::new(SIGNING_KEYS)),
            clients: Mutex::new(Remembered::new(CLIENTS)),
            metrics,
            anonymous_refused: Mutex::default(),
        }
    }

    /// The client with the gateway's own key.
    pub(super) fn gateway(&self) -> &Client {
        &self.gateway
    }

    /// The client of callers without a key. No id of a key has the form of that name.
    ///
    /// # Errors
    /// [`Code::AccessDenied`]: the cluster has no key `anonymous`; [`Code::ServiceUnavailable`].
    pub(super) async fn anonymous(&self) -> Result<CallerClient, S3Error> {
        let cell = self.cell(ANONYMOUS_NAME);
        let connected = cell.get_or_try_init(|| async {
            let refused = self.anonymous_refused().clone();
            if let Some((at, error)) = refused
                && at.elapsed() < UNKNOWN
            {
                return Err(error);
            }
            let connected = self.connect(ANONYMOUS).await;
            connected.map_err(|error| {
                let error = match error.code {
                    Code::AccessDenied => unsigned(),
                    _ => error,
                };
                *self.anonymous_refused() = Some((Instant::now(), error.clone()));
                error
            })
        });
        connected.await.cloned()
    }

    fn anonymous_refused(&self) -> MutexGuard<'_, Option<(Instant, S3Error)>> {
        let refused = self.anonymous_refused.lock();
        refused.expect("no holder of the lock panics")
    }

    /// The client of the owner of a key, whose signature was verified.
    ///
    /// # Errors
    /// [`Code::AccessDenied`], [`Code::ServiceUnavailable`].
    pub(super) async fn client(&self, key_id: &str) -> Result<CallerClient, S3Error> {
        let cell = self.cell(key_id);
        self.metrics.caller(match cell.initialized() {
            true => Recall::Kept,
            false => Recall::Asked,
        });
        let connected = cell.get_or_try_init(|| async { self.connect(parse(key_id)?).await });
        connected.await.cloned()
    }

    fn cell(&self, key_id: &str) -> Arc<OnceCell<CallerClient>> {
        let mut clients = self.clients.lock().expect("no holder of the lock panics");
        if let Some(known) = clients.get(&key_id.to_owned()) {
            return Arc::clone(known);
        }
        let cell = Arc::<OnceCell<CallerClient>>::default();
        clients.keep(key_id.to_owned(), Arc::clone(&cell));
        cell
    }

    async fn connect(&self, key: KeyId) -> Result<CallerClient, S3Error> {
        let connected = self.gateway.on_behalf(key).await;
        let client = connected.map_err(|error| {
            let code = match error {
                ConnectError::Unauthorised { .. } => Code::AccessDenied,
                _ => Code::ServiceUnavailable,
            };
            S3Error::new(code, error.to_string())
        })?;
        Ok(CallerClient::new(client))
    }

    fn signing(&self) -> MutexGuard<'_, SigningMemory> {
        self.signing.lock().expect("no holder of the lock panics")
    }
}

impl SigningKeys for Callers {
    async fn signing_keys(
        &self,
        key_id: &str,
        day: u32,
        region: &str,
    ) -> Result<Vec<SigningKey>, S3Error> {
        let scope = (key_id.to_owned(), day, region.to_owned());
        let known = self.signing().get(&scope).cloned();
        if let Some((asked, known)) = known {
            let lasts = if known.is_ok() { SIGNING } else { UNKNOWN };
            if asked.elapsed() < lasts {
                self.metrics.signing_key(Recall::Kept);
                return known;
            }
        }
        let key = parse(key_id)?;
        self.metrics.signing_key(Recall::Asked);
        let answer = self.gateway.trust().signing_keys(key, day, region).await;
        let found = answer.map_err(|error| of_trust(&error, key_id));
        let found = found.map(|secrets| {
            let bytes =
                |secret: &Secret| secret.expose().try_into().expect("a secret has 32 bytes");
            let keys = secrets.iter().map(|secret| SigningKey::new(bytes(secret)));
            keys.collect()
        });
        let is_known = found.as_ref().err().map(|error| error.code);
        if matches!(is_known, None | Some(Code::InvalidAccessKeyId)) {
            self.signing().keep(scope, (Instant::now(), found.clone()));
        }
        found
    }
}

/// The refusal of a request without a signature.
pub(super) fn unsigned() -> S3Error {
    let sentence = "the request is not signed: sign it with an access key";
    S3Error::new(Code::AccessDenied, sentence)
}

fn parse(key_id: &str) -> Result<KeyId, S3Error> {
    KeyId::parse(key_id).ok_or_else(|| unknown(key_id))
}

fn unknown(key_id: &str) -> S3Error {
    let sentence = format!(
        "there is no access key '{}' in this cluster: `areo key ls` lists those that count",
        key_id.escape_debug()
    );
    S3Error::new(Code::InvalidAccessKeyId, sentence)
}

fn of_trust(error: &TrustError, key_id: &str) -> S3Error {
    match error.kind() {
        RefusalKind::NotFound => unknown(key_id),
        RefusalKind::Unauthorised => {
            let sentence = format!("the gateway may not verify signatures: {error}");
            S3Error::new(Code::AccessDenied, sentence)
        }
        RefusalKind::Unavailable => S3Error::new(Code::ServiceUnavailable, error.to_string()),
        _ => S3Error::new(Code::InternalError, error.to_string()),
    }
}

/// Things by key, of which those that were used last are kept.
#[derive(Debug)]
pub(super) struct Remembered<K, V> {
    most: usize,
    /// Number of uses so far: the last use of a row is its time.
    clock: u64,
    rows: HashMap<K, (u64, V)>,
}

impl<K: Hash + Eq + Clone, V> Remembered<K, V> {
    pub(super) fn new(most: usize) -> Remembered<K, V> {
        Remembered {
            most,
            clock: 0,
            rows: HashMap::new(),
        }
    }

    pub(super) fn get(&mut self, key: &K) -> Option<&V> {
        self.clock += 1;
        let (used, value) = self.rows.get_mut(key)?;
        *used = self.clock;
        Some(value)
    }

    pub(super) fn keep(&mut self, key: K, value: V) {
        self.clock += 1;
        if self.rows.len() >= self.most && !self.rows.contains_key(&key) {
            let oldest = self.rows.iter().min_by_key(|(_, (used, _))| *used);
            let oldest = oldest.map(|(key, _)| key.clone());
            oldest.map(|key| self.rows.remove(&key));
        }
        self.rows.insert(key, (self.clock, value));
    }

    pub(super) fn remove(&mut self, key: &K) -> bool {
        self.rows.remove(key).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_used_last_is_remembered() {
        let mut remembered = Remembered::new(2);
        remembered.keep("a", 1);
        remembered.keep("b", 2);
        assert_eq!(remembered.get(&"a"), Some(&1));
        remembered.keep("c", 3);
        assert_eq!(remembered.get(&"b"), None);
        assert_eq!(remembered.get(&"a"), Some(&1));
        remembered.keep("a", 4);
        assert_eq!(remembered.get(&"c"), Some(&3));
        assert!(remembered.remove(&"a") && !remembered.remove(&"a"));
        assert_eq!(remembered.get(&"a"), None);
    }
}
