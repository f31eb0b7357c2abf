//! The facts for judging callers, from the root domain: names of domains by their ids, and the servers that are registered.
//!
//! Grants are for names, requests have ids. An id that is new is looked up in the root domain, once for all requests that wait for it. A name stays: an id has one name for ever, and
//! a removed domain keeps it. A server that is new is looked up likewise: it is registered until it is forgotten.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use areo_core::config::{Configuration, ServerId};
use areo_core::error::Unavailable;
use areo_core::manager::{DomainError, Root};
use areo_core::message::ServerRecord;
use areo_core::object::DomainId;
use areo_net::env::NetEnv;
use tokio::sync::Mutex;

/// The pause between two looks.
const PAUSE: Duration = Duration::from_millis(100);

/// A domain of the directory.
pub(crate) struct NamedDomain {
    pub(crate) name: Box<str>,
    /// The configuration with which it began.
    pub(crate) first: Arc<Configuration>,
}

/// Reads something of the root domain, once for all that wait for it.
#[derive(Default)]
struct Look {
    /// The number of looks that have begun.
    begun: Cell<u64>,
    /// The number of the last one that has read the directory.
    done: Cell<u64>,
    /// One looks at a time.
    looking: Mutex<()>,
}

impl Look {
    /// The result of a reading that began after this call. `None`: it was that of another caller.
    async fn once<T, E>(&self, read: impl Future<Output = Result<T, E>>) -> Result<Option<T>, E> {
        let asked = self.begun.get();
        let _alone = self.looking.lock().await;
        if self.done.get() > asked {
            return Ok(None);
        }
        if asked > 0 {
            tokio::time::sleep(PAUSE).await;
        }
        let number = self.begun.get() + 1;
        self.begun.set(number);
        let found = read.await?;
        self.done.set(number);
        Ok(Some(found))
    }
}

/// The servers in the directory, as it was read last.
#[derive(Default)]
pub(crate) struct Registered {
    /// True: the server is forgotten.
    known: RefCell<HashMap<ServerId, bool>>,
    look: Look,
}

impl Registered {
    /// True if the server was forgotten. `None`: the directory does not have it, as it was read last.
    pub(crate) fn has_forgotten(&self, server: ServerId) -> Option<bool> {
        self.known.borrow().get(&server).copied()
    }

    /// Knows each server afterwards that was registered or forgotten before this call. Returns the records that are new, or of servers that were
    /// forgotten since the last look.
    ///
    /// # Errors
    /// [`Unavailable`].
    pub(crate) async fn look(&self, root: &Root<NetEnv>) -> Result<Vec<ServerRecord>, Unavailable> {
        let Some(found) = self.look.once(root.servers()).await? else {
            return Ok(Vec::new());
        };
        let now = found
            .iter()
            .map(|(id, record)| (*id, record.is_forgotten()));
        let before = self.known.replace(now.collect());
        let is_news = |it: &ServerRecord| before.get(&it.id) != Some(&it.is_forgotten());
        Ok(found.into_values().filter(is_news).collect())
    }
}

/// The domains that are known by name.
#[derive(Default)]
pub(crate) struct Names {
    /// Domains by their ids.
    pub(crate) known: RefCell<HashMap<DomainId, NamedDomain>>,
    look: Look,
}

impl Names {
    /// Knows each domain afterwards that was created before this call.
    ///
    /// # Errors
    /// [`DomainError`].
    pub(crate) async fn look(&self, root: &Root<NetEnv>) -> Result<(), DomainError> {
        let Some(domains) = self.look.once(root.first_configurations()).await? else {
            return Ok(());
        };
        let mut known = self.known.borrow_mut();
        for (name, first) in domains {
            let (id, name) = (first.id().domain, name.into_boxed_str());
            known.entry(id).or_insert(NamedDomain { name, first });
        }
        Ok(())
    }
}
