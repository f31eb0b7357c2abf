//! Names of domains by their ids: grants are for names, requests have ids.
//!
//! An id that is new is looked up in the root domain, once for all requests that wait for it. A name stays: an id has one name for ever, and
//! a removed domain keeps it.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use areo_core::config::Configuration;
use areo_core::manager::{DomainError, Root};
use areo_core::object::DomainId;
use areo_net::env::NetEnv;
use tokio::sync::Mutex;

/// The pause between two looks.
const PAUSE: Duration = Duration::from_millis(100);

/// A domain of the directory.
pub(crate) struct NamedDomain {
    /// Its name.
    pub(crate) name: Box<str>,
    /// The configuration with which it began.
    pub(crate) first: Arc<Configuration>,
}

/// The domains that are known by name.
#[derive(Default)]
pub(crate) struct Names {
    /// Domains by their ids.
    pub(crate) known: RefCell<HashMap<DomainId, NamedDomain>>,
    /// The number of looks that have begun.
    begun: Cell<u64>,
    /// The number of the last one that has read the directory.
    done: Cell<u64>,
    /// One looks at a time.
    looking: Mutex<()>,
}

impl Names {
    /// Knows each domain afterwards that was created before this call.
    ///
    /// # Errors
    /// [`DomainError`].
    pub(crate) async fn look(&self, root: &Root<NetEnv>) -> Result<(), DomainError> {
        let asked = self.begun.get();
        let _alone = self.looking.lock().await;
        if self.done.get() > asked {
            return Ok(());
        }
        if asked > 0 {
            tokio::time::sleep(PAUSE).await;
        }
        let number = self.begun.get() + 1;
        self.begun.set(number);
        let domains = root.first_configurations().await?;
        let mut known = self.known.borrow_mut();
        for (name, first) in domains {
            let (id, name) = (first.id().domain, name.into_boxed_str());
            known.entry(id).or_insert(NamedDomain { name, first });
        }
        self.done.set(number);
        Ok(())
    }
}
