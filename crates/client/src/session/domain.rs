//! A client's knowledge of a domain.

use crate::cluster::ROOT_DOMAIN;
use crate::error::{Damage, Error, Invalid};
use crate::object::Metadata;
use areo_core::config::Configuration;
use areo_core::dap::FoundVersion;
use areo_core::dsm;
use areo_core::element::Value;
use areo_core::env::Env;
use areo_core::tag::Tag as Version;
use areo_core::tlv::TlvError;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, RwLock};

/// The knowledge of a client about a domain: its name, and its configurations.
pub(crate) struct KnownDomain {
    /// `None`: the root domain.
    name: Option<String>,
    /// The final configuration with which it was looked up.
    found: Arc<Configuration>,
    /// Index of the latest final one that an operation went to, and that one if it is another.
    index: AtomicU32,
    latest: RwLock<Option<Arc<Configuration>>>,
}

impl KnownDomain {
    /// The domain of this name (`None`: the root domain), found with this final configuration.
    pub(crate) fn new(name: Option<String>, found: Arc<Configuration>) -> KnownDomain {
        KnownDomain {
            name,
            index: AtomicU32::new(found.id().index),
            found,
            latest: RwLock::default(),
        }
    }

    pub(crate) fn name(&self) -> &str {
        self.name.as_deref().unwrap_or(ROOT_DOMAIN)
    }

    /// The name as errors have it: none of the root domain.
    pub(super) fn name_in_errors(&self) -> Option<String> {
        self.name.clone()
    }

    /// A final configuration, for the operations: they know where to go from there.
    pub(crate) fn found(&self) -> &Arc<Configuration> {
        &self.found
    }

    /// The latest final configuration that the client knows; on the network thread.
    pub(crate) fn latest<E: Env>(&self, client: &dsm::Client<E>) -> Arc<Configuration> {
        let latest = client.sequences().start(&self.found);
        let (of, found) = (latest.id().domain, self.found.id().domain);
        assert_eq!(of, found, "configurations of one domain follow each other");
        latest
    }

    /// Takes note of where an operation went, for handles on other threads.
    pub(crate) fn note_latest<E: Env>(&self, client: &dsm::Client<E>) {
        let latest = self.latest(client);
        let index = latest.id().index;
        // Nearly always it is the same as ever, and no lock is taken.
        if self.index.fetch_max(index, Ordering::Relaxed) < index {
            let mut known = self.latest.write().expect("no holder of the lock panics");
            if known.as_ref().is_none_or(|known| known.id().index < index) {
                *known = Some(latest);
            }
        }
    }

    /// The latest final configuration that an operation went to, on any thread.
    pub(crate) fn noted(&self) -> Arc<Configuration> {
        let known = self.latest.read().expect("no holder of the lock panics");
        known.as_ref().unwrap_or(&self.found).clone()
    }

    /// The found version, if it is of an object: version, metadata, value.
    pub(crate) fn opened(
        &self,
        key: &str,
        found: FoundVersion,
    ) -> Result<(Version, Metadata, Value), Error> {
        let Some(value) = found.value.filter(|value| !value.deleted) else {
            return Err(self.not_found(key));
        };
        match Metadata::decode(&value.metadata) {
            Ok(Metadata {
                lost: Some(lost), ..
            }) => Err(self.corrupted(key, Damage::Left { lost })),
            Ok(metadata) => Ok((found.tag, metadata, value)),
            Err(error @ TlvError::Unknown { .. }) => {
                let field = error.to_string();
                let reason = Invalid::LaterVersion { field };
                Err(Error::Invalid { reason })
            }
            Err(error) => {
                let (version, reason) = (found.tag, error.to_string());
                Err(self.corrupted(key, Damage::Metadata { version, reason }))
            }
        }
    }

    pub(crate) fn not_found(&self, key: &str) -> Error {
        Error::NotFound {
            domain: self.name().into(),
            key: Some(key.into()),
        }
    }

    pub(crate) fn corrupted(&self, key: &str, damage: Damage) -> Error {
        Error::Corrupted {
            domain: self.name().into(),
            key: key.into(),
            damage: Box::new(damage),
        }
    }
}
