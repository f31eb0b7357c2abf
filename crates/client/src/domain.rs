//! Domains: named sets of objects that are kept in the same way. What can be done with one stands in the modules above:
//! [objects](crate::objects), [streams](crate::stream), files, sweeps and changes of its configuration.

use crate::cluster::{ConfigurationInfo, Names};
use crate::error::{Error, Invalid};
use crate::metrics::Metrics;
use crate::operation::Operation;
use crate::reconfig_kind::ReconfigKind;
use crate::session::{Context, Deadline, KnownDomain, RunningJob, Session, Subject};
use crate::span;
use crate::statistics::Statistics;
use areo_core::object::Name;
use areo_core::span::{ErrorType, watch};
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

/// A named set of objects that are kept in the same way. Made by [`Client::domain`](crate::Client::domain) and
/// [`Client::create_domain`](crate::Client::create_domain).
///
/// Every operation ends within the client's deadline.
#[derive(Clone)]
pub struct Domain {
    session: Session,
    pub(crate) known: Arc<KnownDomain>,
    statistics: Option<Arc<Statistics>>,
    /// Blocks of replaced versions are left to a sweep.
    keeps_replaced: bool,
}

impl fmt::Debug for Domain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Domain")
            .field("name", &self.name())
            .field("configuration", &self.known.noted())
            .finish_non_exhaustive()
    }
}

impl Domain {
    pub(crate) fn new(session: Session, known: impl Into<Arc<KnownDomain>>) -> Domain {
        Domain {
            session,
            known: known.into(),
            statistics: None,
            keeps_replaced: false,
        }
    }

    /// A handle of this domain for writes and deletions that leave the blocks of large values that they replace to a later
    /// [`Domain::sweep`], so that readers under way can finish. Otherwise such a reader starts again if it was handed
    /// nothing yet, and ends with [`Error::VersionConflict`](crate::Error::VersionConflict) if it was.
    #[must_use]
    pub fn keeping_replaced(&self) -> Domain {
        Domain {
            keeps_replaced: true,
            ..self.clone()
        }
    }

    /// A handle of this domain that counts, and the cost of the operations through it.
    #[must_use]
    pub fn measured(&self) -> (Domain, Arc<Statistics>) {
        let statistics = Arc::new(Statistics::default());
        let domain = Domain {
            statistics: Some(statistics.clone()),
            ..self.clone()
        };
        (domain, statistics)
    }

    /// Name of the domain.
    pub fn name(&self) -> &str {
        self.known.name()
    }

    /// Its random id, as 32 hexadecimal digits: a name that is used again is another domain.
    pub fn id(&self) -> String {
        format!("{:032x}", self.known.found().descriptor().domain.0)
    }

    /// Its configuration, the latest final one that operations through this handle met: algorithm, n, k, quorum, f, members.
    pub fn configuration(&self) -> ConfigurationInfo {
        self.names().configuration(&self.known.noted())
    }

    /// The way in which it is reconfigured.
    pub fn reconfig_kind(&self) -> ReconfigKind {
        ReconfigKind::of(self.known.found())
    }

    /// Refuses a value in blocks in a domain that keeps values whole: the cells of uploads go along a sequence
    /// (`[X-20 decided-once]`).
    pub(crate) fn check_blocks(&self) -> Result<(), Error> {
        match self.reconfig_kind() {
            ReconfigKind::Ares => Ok(()),
            reconfig => {
                let reason = Invalid::WholeValues { reconfig };
                Err(Error::Invalid { reason })
            }
        }
    }

    /// This domain with another deadline for each operation, see [`Client::with_timeout`](crate::Client::with_timeout).
    #[must_use]
    pub fn with_timeout(&self, timeout: Duration) -> Domain {
        Domain {
            session: self.session.with_timeout(timeout),
            ..self.clone()
        }
    }

    /// The metrics of operations.
    pub(crate) fn metrics(&self) -> &Metrics {
        self.session.metrics()
    }

    /// The servers that the client knows.
    pub(crate) fn names(&self) -> Arc<Names> {
        self.session.cluster().names()
    }

    /// Runs an operation of a caller on this key: in its span, and counted by how it ends and after how long. Dropping the future
    /// gives the operation up. Work that begins when it is polled is in the span as a whole.
    pub(crate) async fn operate<T, E: ErrorType>(
        &self,
        operation: Operation,
        key: &str,
        work: impl Future<Output = Result<T, E>> + Unpin,
    ) -> Result<T, E> {
        let running = self.metrics().begin(operation);
        let ended = match span::of(operation, key) {
            Some(span) => watch!(span, work),
            None => work.await,
        };
        running.end(&ended);
        ended
    }

    /// Starts a step of an operation on the network thread. It goes on until it ends or the returned future is dropped. After its
    /// end the domain knows where it went, and the statistics have its cost. `name`: the object or the file that it is about.
    pub(crate) fn run<T, F>(
        &self,
        deadline: Deadline,
        operation: Operation,
        name: impl Into<Option<Name>>,
        work: impl FnOnce(Context) -> F + Send + 'static,
    ) -> RunningJob<T>
    where
        T: Send + 'static,
        F: Future<Output = T> + 'static,
    {
        let (domain, statistics) = (self.known.clone(), self.statistics.clone());
        let keeps_replaced = self.keeps_replaced;
        let subject = Subject {
            operation,
            domain: domain.clone(),
            name: name.into(),
        };
        let context = self.session.context(subject, deadline);
        self.session.thread().run(move |world| async move {
            let mut context = context(world);
            if keeps_replaced {
                context.client = context.client.keeping_replaced();
            }
            let client = context.client.clone();
            let result = work(context).await;
            domain.note_latest(&client);
            if let Some(statistics) = statistics {
                statistics.add(client.env.counts());
            }
            result
        })
    }
}
