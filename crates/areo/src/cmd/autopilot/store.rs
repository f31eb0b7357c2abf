//! The journal as objects of a conditional domain: of two writers on one version, one wins.

use crate::exit::{Failure, Outcome};
use crate::session::{creation_failure, failure};
use areo_client::{Client, Dap, Domain, DomainOptions, Error, Object, PutOptions, Version};
use areo_steward::instance::JournalStore;
use areo_steward::intent::Intent;
use areo_steward::journal::{Journal, Lease};
use futures_util::StreamExt;
use std::collections::{BTreeMap, BTreeSet};

/// The domain of the journal.
pub(super) const DOMAIN: &str = "areo-autopilot";
const INTENTS: &str = "intents/";
const LEASE: &str = "lease";
/// An object while the autopilot is paused.
const PAUSED: &str = "paused";

/// The journal of a cluster, with the versions that were read.
pub(super) struct Store {
    domain: Domain,
    intents: BTreeMap<u64, (Version, Intent)>,
    lease: Option<(Version, Lease)>,
}

impl Store {
    /// The journal; `None`: no instance has run yet.
    pub(super) async fn find(client: &Client) -> Outcome<Option<Store>> {
        match client.domain(DOMAIN).await {
            Ok(domain) => Ok(Some(Store::of(domain))),
            Err(Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(failure(error)),
        }
    }

    /// The journal, which the first instance creates at the members of the root domain.
    pub(super) async fn open(client: &Client) -> Outcome<Store> {
        if let Some(store) = Store::find(client).await? {
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
            Ok(domain) => Ok(Store::of(domain)),
            // Another instance may have been faster.
            Err(error) => Store::find(client)
                .await?
                .ok_or_else(|| creation_failure(error)),
        }
    }

    fn of(domain: Domain) -> Store {
        Store {
            domain,
            intents: BTreeMap::new(),
            lease: None,
        }
    }

    async fn get<T: serde::de::DeserializeOwned>(
        &self,
        key: &str,
    ) -> Outcome<Option<(Version, T)>> {
        let object: Object = match self.domain.get(key).await {
            Ok(object) => object,
            Err(Error::NotFound { key: Some(_), .. }) => return Ok(None),
            Err(error) => return Err(failure(error)),
        };
        let value = serde_json::from_slice(&object.bytes()).map_err(|error| {
            let why = format!(
                "'{key}' of '{DOMAIN}' cannot be read: {error}; a newer program may have written it"
            );
            Failure::other(why)
        })?;
        Ok(Some((object.version, value)))
    }

    async fn put(
        &self,
        key: &str,
        value: &impl serde::Serialize,
        before: Option<Version>,
    ) -> Outcome<Option<Version>> {
        let value = serde_json::to_vec(value).expect("our own records have text for keys");
        let put = self
            .domain
            .compare_and_put(key, value, before, PutOptions::default());
        won(put.await)
    }

    /// Pauses the autopilot, or ends that.
    pub(super) async fn pause(&self, is_paused: bool) -> Outcome {
        let done = if is_paused {
            self.domain.put(PAUSED, "").await.map(drop)
        } else {
            self.domain.delete(PAUSED).await.map(drop)
        };
        match done {
            Ok(()) | Err(Error::NotFound { key: Some(_), .. }) => Ok(()),
            Err(error) => Err(failure(error)),
        }
    }
}

impl JournalStore for Store {
    type Error = Failure;

    async fn read(&mut self) -> Outcome<Journal> {
        let mut listed = self.domain.list_all("");
        let (mut present, mut paused, mut lease) = (BTreeSet::new(), false, None);
        while let Some(entry) = listed.next().await {
            let entry = entry.map_err(failure)?;
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

    async fn write(&mut self, intent: &Intent) -> Outcome<bool> {
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

    async fn write_lease(&mut self, lease: &Lease) -> Outcome<bool> {
        let before = self.lease.as_ref().map(|(version, _)| *version);
        let written = self.put(LEASE, lease, before).await?;
        self.lease = written.map(|version| (version, lease.clone()));
        Ok(written.is_some())
    }

    async fn drop_expired(&mut self, number: u64) -> Outcome {
        let Some((version, _)) = self.intents.get(&number) else {
            return Ok(());
        };
        let key = format!("{INTENTS}{number:010}");
        won(self.domain.compare_and_delete(&key, *version).await).map(drop)
    }
}

/// The version of a write that won; `None`: it lost.
fn won(written: Result<Version, Error>) -> Outcome<Option<Version>> {
    match written {
        Ok(version) => Ok(Some(version)),
        Err(Error::VersionConflict { .. }) => Ok(None),
        Err(error) => Err(failure(error)),
    }
}
