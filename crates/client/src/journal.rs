//! The journal of the autopilot, as objects of a conditional domain: of two writers on one version, one wins.

use crate::{
    Client, CreateDomainError, Dap, Domain, DomainOptions, Error, Object, PutOptions, Version,
};
use areo_steward::instance::JournalStore;
use areo_steward::intent::Intent;
use areo_steward::journal::{Journal, Lease};
use areo_steward::request::RefusedRequest;
use futures_util::StreamExt;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{SystemTime, UNIX_EPOCH};

/// The domain of the journal.
pub const DOMAIN: &str = "areo-autopilot";
const INTENTS: &str = "intents/";
const LEASE: &str = "lease";
/// An object while the autopilot is paused.
const PAUSED: &str = "paused";

/// The reason why the journal could not be found, created, read or written.
#[derive(thiserror::Error, Clone, PartialEq, Eq, Debug)]
pub enum JournalError {
    /// An operation on its domain failed.
    #[error("{error}")]
    Operation {
        /// The error of that operation.
        error: Error,
    },
    /// Its domain could not be created.
    #[error("{error}")]
    Creation {
        /// The reason why it could not.
        error: CreateDomainError,
    },
    /// An object of it has no known form.
    #[error("'{key}' of '{DOMAIN}' cannot be read: {reason}; a newer program may have written it")]
    Unreadable {
        /// The key of the object.
        key: String,
        /// The place and the reason, as the parser gives them.
        reason: String,
    },
}

impl From<Error> for JournalError {
    fn from(error: Error) -> JournalError {
        JournalError::Operation { error }
    }
}

/// The reason why a request of an operator was not written.
#[derive(thiserror::Error, Clone, PartialEq, Eq, Debug)]
pub enum RequestError {
    /// The journal has no such intent.
    #[error("there is no intent {number}: `areo autopilot journal` lists them")]
    NoIntent {
        /// The number that was given.
        number: u64,
    },
    /// The state of the intent does not allow it.
    #[error("{error}")]
    Refused {
        /// The reason that the intent has.
        error: RefusedRequest,
    },
    /// The journal could not be read or written.
    #[error("{error}")]
    Journal {
        /// The step that failed.
        error: JournalError,
    },
}

impl From<JournalError> for RequestError {
    fn from(error: JournalError) -> RequestError {
        RequestError::Journal { error }
    }
}

/// The time that intents carry, in milliseconds since 1970.
pub fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    })
}

/// The journal of a cluster, with the versions that were read.
#[derive(Debug)]
pub struct JournalObjects {
    domain: Domain,
    intents: BTreeMap<u64, (Version, Intent)>,
    lease: Option<(Version, Lease)>,
}

impl JournalObjects {
    /// The journal; `None`: no instance has run yet.
    ///
    /// # Errors
    /// It cannot be looked up.
    pub async fn find(client: &Client) -> Result<Option<JournalObjects>, JournalError> {
        match client.domain(DOMAIN).await {
            Ok(domain) => Ok(Some(JournalObjects::of(domain))),
            Err(Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// The journal, which the first instance creates at the members of the root domain.
    ///
    /// # Errors
    /// It can be neither found nor created.
    pub async fn open(client: &Client) -> Result<JournalObjects, JournalError> {
        if let Some(store) = JournalObjects::find(client).await? {
            return Ok(store);
        }
        let root = client.root_domain().await;
        let members = root.configuration().members;
        let options = DomainOptions {
            dap: Dap::Conditional { k: 1 },
            servers: members.iter().map(|it| it.id.to_string()).collect(),
            allow_f0: true,
            ..DomainOptions::default()
        };
        match client.create_domain(DOMAIN, options).await {
            Ok(domain) => Ok(JournalObjects::of(domain)),
            // Another instance may have been faster.
            Err(error) => JournalObjects::find(client)
                .await?
                .ok_or(JournalError::Creation { error }),
        }
    }

    fn of(domain: Domain) -> JournalObjects {
        JournalObjects {
            domain,
            intents: BTreeMap::new(),
            lease: None,
        }
    }

    async fn get<T: serde::de::DeserializeOwned>(
        &self,
        key: &str,
    ) -> Result<Option<(Version, T)>, JournalError> {
        let object: Object = match self.domain.get(key).await {
            Ok(object) => object,
            Err(Error::NotFound { key: Some(_), .. }) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let value =
            serde_json::from_slice(&object.bytes()).map_err(|error| JournalError::Unreadable {
                key: key.into(),
                reason: error.to_string(),
            })?;
        Ok(Some((object.version, value)))
    }

    async fn put(
        &self,
        key: &str,
        value: &impl serde::Serialize,
        before: Option<Version>,
    ) -> Result<Option<Version>, JournalError> {
        let value = serde_json::to_vec(value).expect("our own records have text for keys");
        let put = self
            .domain
            .compare_and_put(key, value, before, PutOptions::default());
        won(put.await)
    }

    /// Pauses the autopilot, or ends that.
    ///
    /// # Errors
    /// It is not known whether that was written.
    pub async fn pause(&self, is_paused: bool) -> Result<(), JournalError> {
        let done = if is_paused {
            self.domain.put(PAUSED, "").await.map(drop)
        } else {
            self.domain.delete(PAUSED).await.map(drop)
        };
        match done {
            Ok(()) | Err(Error::NotFound { key: Some(_), .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Has a change carried out, and returns the intent as it was written.
    ///
    /// # Errors
    /// There is no such intent, or it is advice, or has ended.
    pub async fn approve(&mut self, number: u64) -> Result<Intent, RequestError> {
        self.request(number, Intent::approve).await
    }

    /// Has a change that failed tried again at once, and returns the intent as it was written.
    ///
    /// # Errors
    /// There is no such intent, or it has not failed.
    pub async fn retry(&mut self, number: u64) -> Result<Intent, RequestError> {
        self.request(number, |intent| intent.retry(now_ms())).await
    }

    /// Gives an intent up for as long as its reason lasts, and returns it as it was written.
    ///
    /// # Errors
    /// There is no such intent, or it was begun, or has ended.
    pub async fn decline(&mut self, number: u64) -> Result<Intent, RequestError> {
        self.request(number, |intent| intent.decline(now_ms()))
            .await
    }

    /// Changes an intent on the version that was read, again if an instance was faster.
    async fn request(
        &mut self,
        number: u64,
        change: impl Fn(&mut Intent) -> Result<(), RefusedRequest>,
    ) -> Result<Intent, RequestError> {
        loop {
            let journal = self.read().await?;
            let mut intents = journal.intents.into_iter();
            let Some(mut intent) = intents.find(|it| it.number == number) else {
                return Err(RequestError::NoIntent { number });
            };
            change(&mut intent).map_err(|error| RequestError::Refused { error })?;
            if self.write(&intent).await? {
                return Ok(intent);
            }
        }
    }
}

impl JournalStore for JournalObjects {
    type Error = JournalError;

    async fn read(&mut self) -> Result<Journal, JournalError> {
        let mut listed = self.domain.list_all("");
        let (mut present, mut paused, mut lease) = (BTreeSet::new(), false, None);
        while let Some(entry) = listed.next().await {
            let entry = entry?;
            match entry.key.as_str() {
                PAUSED => paused = true,
                LEASE => lease = self.get(LEASE).await?,
                key => {
                    let number = key.strip_prefix(INTENTS).and_then(|it| it.parse().ok());
                    let Some(number) = number else { continue };
                    present.insert(number);
                    let known = self.intents.get(&number);
                    if known.is_none_or(|(version, _)| *version != entry.version)
                        && let Some(read) = self.get(key).await?
                    {
                        self.intents.insert(number, read);
                    }
                }
            }
        }
        self.intents.retain(|number, _| present.contains(number));
        self.lease = lease;
        let intents = self
            .intents
            .values()
            .map(|(_, intent)| intent.clone())
            .collect();
        Ok(Journal { intents, paused })
    }

    fn lease(&self) -> Option<&Lease> {
        self.lease.as_ref().map(|(_, lease)| lease)
    }

    async fn write(&mut self, intent: &Intent) -> Result<bool, JournalError> {
        let before = self
            .intents
            .get(&intent.number)
            .map(|(version, _)| *version);
        let key = format!("{INTENTS}{:010}", intent.number);
        let written = self.put(&key, intent, before).await?;
        if let Some(version) = written {
            self.intents
                .insert(intent.number, (version, intent.clone()));
        }
        Ok(written.is_some())
    }

    async fn write_lease(&mut self, lease: &Lease) -> Result<bool, JournalError> {
        let before = self.lease.as_ref().map(|(version, _)| *version);
        let written = self.put(LEASE, lease, before).await?;
        self.lease = written.map(|version| (version, lease.clone()));
        Ok(written.is_some())
    }

    async fn drop_expired(&mut self, number: u64) -> Result<(), JournalError> {
        let Some((version, _)) = self.intents.get(&number) else {
            return Ok(());
        };
        let key = format!("{INTENTS}{number:010}");
        won(self.domain.compare_and_delete(&key, *version).await).map(drop)
    }
}

/// The version of a write that won; `None`: it lost.
fn won(written: Result<Version, Error>) -> Result<Option<Version>, JournalError> {
    match written {
        Ok(version) => Ok(Some(version)),
        Err(Error::VersionConflict { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}
