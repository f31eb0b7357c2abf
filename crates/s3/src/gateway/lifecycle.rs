//! Objects that expire, and uploads that are given up.
//!
//! The rules of a bucket are a document of its domain, beside the id of the key that put them: each gateway carries them out from time to time, on behalf of that key and with its grants. A rule
//! whose key was revoked, or lacks a grant, removes nothing.
//!
//! | step | why |
//! |---|---|
//! | an object is judged by its version | the deletion is made on that version: an object that was written in between stays |
//! | days end at the midnight UTC behind them | an object is never removed earlier than promised, by the clocks of its writer and of the gateway |
//! | the rules are read again before each page of objects | a rule that was removed removes no more |

use super::callers::{CallerClient, Callers};
use super::copy::now_ms;
use super::documents::BucketDocument;
use super::kept::Kept;
use super::multipart::UploadPlace;
use super::reply::Reply;
use super::serve::{Stop, stopped};
use super::{Gateway, failure, multipart};
use crate::wire::xml::lifecycle::{self, LifecycleRule, days_after_ms};
use crate::wire::{Code, S3Error};
use areo_client::{
    Client, Domain, Entry, Error, PutOptions, RecordName, RecordsAfter, UploadId, Version,
};
use std::sync::Arc;
use tokio::time::sleep;

/// The rules of a bucket.
pub(super) const RULES: BucketDocument = BucketDocument {
    name: "lifecycle",
    words: "lifecycle",
    most_bytes: 256 << 10,
    missing: Code::NoSuchLifecycleConfiguration,
};
/// The name of metadata of the document: the key that put it.
const KEY_KEPT: &str = "key";
/// Objects or records that are listed at a time.
const PAGE: usize = 1000;

/// The rules of a bucket.
#[derive(Debug)]
struct KeptRules {
    /// The version of the document.
    version: Version,
    /// The key on whose behalf they are carried out.
    key: String,
    rules: Vec<LifecycleRule>,
}

/// Gives a bucket these rules in place of those that it has, to be carried out on behalf of this key.
///
/// # Errors
/// The document cannot be read, or is too long; [`Code::NotImplemented`]: objects are to expire in a bucket that keeps no winner of concurrent writes; those
/// of the store.
pub(super) async fn put(domain: &Domain, document: &[u8], key: &str) -> Result<Reply, S3Error> {
    let rules = lifecycle::read_lifecycle(document)?;
    if rules.iter().any(|rule| rule.expiration.is_some()) && !domain.has_one_winner() {
        let name = domain.name();
        let sentence = format!(
            "bucket {name} keeps no winner of concurrent writes, so that an expiration could remove an object that was just written: change it with `areo reconfig start {name} --dap conditional`"
        );
        return Err(S3Error::new(Code::NotImplemented, sentence));
    }
    let text = lifecycle::lifecycle(&rules);
    let options = PutOptions {
        user_metadata: vec![(KEY_KEPT.into(), key.into())],
        ..PutOptions::default()
    };
    RULES.put(domain, (text, document.len()), options).await
}

/// Carries the rules of all buckets out, again and again, until the gateway stops.
pub(super) fn start(gateway: &Arc<Gateway>, stop: &Stop) {
    tokio::spawn(run(Arc::clone(gateway), stop.clone()));
}

async fn run(gateway: Arc<Gateway>, mut stop: Stop) {
    let work = async {
        loop {
            sleep(gateway.options.lifecycle_every).await;
            if let Err(error) = gateway.lifecycle.carry_out(&gateway.callers).await {
                tracing::warn!(%error, "lifecycle rules cannot be read");
            }
        }
    };
    tokio::select! {
        () = work => {}
        () = stopped(&mut stop) => {}
    }
}

/// Deletes objects by the lifecycle rules of their buckets.
#[derive(Debug)]
pub(super) struct Lifecycle {
    /// A client with the key of the gateway, which reads rules and nothing else.
    own: CallerClient,
}

impl Lifecycle {
    pub(super) fn new(gateway: Client) -> Lifecycle {
        let own = CallerClient::new(gateway);
        Lifecycle { own }
    }

    /// Carries the rules of all buckets out, once.
    async fn carry_out(&self, callers: &Callers) -> Result<(), S3Error> {
        let domains = self.own.client.domains().await;
        let domains = domains.map_err(|error| failure::of(&error))?;
        for domain in domains {
            let bucket = &domain.name;
            if let Err(error) = self.of_bucket(bucket, callers).await {
                // There may be another domain of the name than the one that was remembered.
                self.own.forget(bucket);
                tracing::warn!(%bucket, %error, "lifecycle rules are not carried out");
            }
        }
        Ok(())
    }

    async fn of_bucket(&self, bucket: &str, callers: &Callers) -> Result<(), S3Error> {
        let own = self.own.bucket(bucket).await?;
        let Some(kept) = read(&own).await? else {
            return Ok(());
        };
        let client = callers.client(&kept.key).await?;
        let domain = client.bucket(bucket).await?;
        if domain.id() != own.id() {
            // The rules are of a bucket of that name that was removed, or the objects are.
            client.forget(bucket);
            self.own.forget(bucket);
            return Ok(());
        }
        let pass = Pass {
            own: &own,
            domain: &domain,
            rules: kept.version,
            now_ms: now_ms(),
        };
        for rule in kept.rules.iter().filter(|rule| rule.is_enabled) {
            if let Some(days) = rule.abort_days {
                pass.abort(&rule.filter.prefix, days).await?;
            }
            if rule.expiration.is_some() {
                pass.expire(rule).await?;
            }
        }
        Ok(())
    }
}

/// The rules of a bucket.
///
/// # Errors
/// Those of the store.
pub(super) async fn rules(domain: &Domain) -> Result<Vec<LifecycleRule>, S3Error> {
    let kept = read(domain).await?;
    Ok(kept.map(|kept| kept.rules).unwrap_or_default())
}

/// The rules of a bucket. `None`: it has none.
async fn read(domain: &Domain) -> Result<Option<KeptRules>, S3Error> {
    let document = RULES.read(domain).await;
    let Some(document) = document.map_err(|error| failure::of(&error))? else {
        return Ok(None);
    };
    let mut pairs = document.metadata.user.iter();
    let key = pairs.find(|(name, _)| name == KEY_KEPT);
    let key = key.map(|(_, key)| key.clone()).unwrap_or_default();
    let version = document.version;
    let rules = lifecycle::read_lifecycle(&document.into_bytes())?;
    Ok(Some(KeptRules {
        version,
        key,
        rules,
    }))
}

/// One pass over a bucket.
struct Pass<'a> {
    /// The bucket with the key of the gateway.
    own: &'a Domain,
    /// The bucket with the key that put the rules.
    domain: &'a Domain,
    /// The version of the rules.
    rules: Version,
    now_ms: i64,
}

impl Pass<'_> {
    /// True while the rules are those of this pass.
    async fn goes_on(&self) -> Result<bool, S3Error> {
        let kept = read(self.own).await?;
        Ok(kept.is_some_and(|kept| kept.version == self.rules))
    }

    /// Aborts uploads that were begun at least `days` days ago, counted to the next midnight UTC ([`days_after_ms`]).
    async fn abort(&self, prefix: &str, days: u32) -> Result<(), S3Error> {
        let mut after = None::<RecordName>;
        loop {
            let begin = after
                .as_ref()
                .map_or(RecordsAfter::Nothing, RecordsAfter::Record);
            let page = self.domain.list_records(prefix, begin, PAGE).await;
            let page = page.map_err(|error| failure::of(&error))?;
            let is_due = |written_at_ms: Option<u64>| {
                written_at_ms.is_some_and(|ms| days_after_ms(ms, days) <= self.now_ms)
            };
            let due = page.entries.iter().filter(|entry| {
                let is_upload = entry.name.suffix.parse::<UploadId>().is_ok();
                is_upload && is_due(entry.written_at_ms)
            });
            let due: Vec<&RecordName> = due.map(|entry| &entry.name).collect();
            if !due.is_empty() && !self.goes_on().await? {
                return Ok(());
            }
            for name in due {
                self.abort_one(name).await?;
            }
            match page.next {
                Some(next) => after = Some(next),
                None => return Ok(()),
            }
        }
    }

    async fn abort_one(&self, name: &RecordName) -> Result<(), S3Error> {
        let place = UploadPlace {
            domain: self.domain,
            key: &name.key,
            id: &name.suffix,
        };
        match multipart::abort(place).await {
            Ok(_) => {
                let (key, upload) = (&name.key, &name.suffix);
                tracing::info!(%key, %upload, "upload aborted by a lifecycle rule");
                Ok(())
            }
            // It was completed or aborted meanwhile.
            Err(error) if error.code == Code::NoSuchUpload => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Deletes objects that have expired.
    async fn expire(&self, rule: &LifecycleRule) -> Result<(), S3Error> {
        let (prefix, mut after) = (&rule.filter.prefix, String::new());
        loop {
            let page = self.domain.list(prefix, &after, PAGE).await;
            let page = page.map_err(|error| failure::of(&error))?;
            let is_due = |entry: &&Entry| {
                let fits = rule.filter.has(&entry.key, entry.length);
                fits && !entry.damaged && self.is_due(rule, entry.written_at_ms)
            };
            let due: Vec<&Entry> = page.entries.iter().filter(is_due).collect();
            if !due.is_empty() && !self.goes_on().await? {
                return Ok(());
            }
            for entry in due {
                self.expire_one(rule, entry).await?;
            }
            match page.next {
                Some(next) => after = next,
                None => return Ok(()),
            }
        }
    }

    /// True if an object that was written then has expired. One without a time never does.
    fn is_due(&self, rule: &LifecycleRule, written_at_ms: Option<u64>) -> bool {
        match (rule.expiration, written_at_ms) {
            (Some(expiration), Some(ms)) => expiration.due_ms(ms) <= self.now_ms,
            _ => false,
        }
    }

    async fn expire_one(&self, rule: &LifecycleRule, entry: &Entry) -> Result<(), S3Error> {
        let key = &entry.key;
        if !rule.filter.tags.is_empty() {
            let info = match self.domain.stat(key).await {
                Ok(info) => info,
                Err(Error::NotFound { key: Some(_), .. }) => return Ok(()),
                Err(error) => return Err(failure::of(&error)),
            };
            let has_tags = rule.filter.has_tags(&Kept::of(&info.metadata).tags);
            if info.version != entry.version || !has_tags {
                return Ok(());
            }
        }
        match self.domain.compare_and_delete(key, entry.version).await {
            Ok(_) => tracing::info!(%key, "object removed by a lifecycle rule"),
            // It was written or removed meanwhile.
            Err(Error::VersionConflict { .. } | Error::NotFound { key: Some(_), .. }) => {}
            Err(error) => return Err(failure::of(&error)),
        }
        Ok(())
    }
}
