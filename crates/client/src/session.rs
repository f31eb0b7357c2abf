//! A connection to a cluster, from below: the thread that runs operations, what is known of the cluster and of its
//! domains, and the context in which one operation runs. Handles ([`crate::Client`], [`crate::Domain`],
//! [`crate::file::File`]) stand on it.

mod cluster;
mod context;
mod domain;
mod proof;
mod strangers;
mod thread;

pub(crate) use cluster::KnownCluster;
pub(crate) use context::{Context, later_version};
pub(crate) use domain::KnownDomain;
pub(crate) use thread::{RunningJob, World};

use crate::connect::{ConnectError, ConnectOptions};
use crate::metrics::Metrics;
use crate::operation::Operation;
use areo_core::limits;
use areo_core::object::Name;
use areo_net::Traffic;
use areo_net::pool::{IDLE_BYTES, Pool};
use futures_util::future::BoxFuture;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};
use thread::{FAREWELL, Thread};
use tokio::task::spawn_local;

/// The time that the status of servers that are silent is waited for.
pub(crate) const STATUS_PATIENCE: Duration = Duration::from_secs(3);

/// The runner of operations, with the longest time of each. Clones are the same connection.
#[derive(Clone)]
pub(crate) struct Session {
    shared: Arc<Shared>,
    timeout: Duration,
    /// Bytes of blocks that one reader or writer of a value has under way at once.
    window_bytes: u64,
}

struct Shared {
    thread: Thread,
    cluster: Arc<KnownCluster>,
    /// The options of the connection, for others to the same cluster.
    options: ConnectOptions,
}

/// The moment at which an operation ends without a decision.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Deadline {
    /// After the timeout, counted from the call.
    Timeout,
    /// It ends when none of its quorum calls was decided for as long as the timeout.
    Idle,
}

/// The limits of an operation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OperationLimits {
    pub(crate) timeout: Duration,
    /// Bytes of the blocks of a value that are under way at once.
    pub(crate) window_bytes: u64,
}

/// The subject of an operation.
pub(crate) struct Subject {
    pub(crate) operation: Operation,
    pub(crate) domain: Arc<KnownDomain>,
    /// The object or the file, if it is about one.
    pub(crate) name: Option<Name>,
}

impl Session {
    /// Connects to the cluster that one of the addresses belongs to.
    ///
    /// # Errors
    /// [`ConnectError`].
    pub(crate) async fn connect(options: ConnectOptions) -> Result<Session, ConnectError> {
        Session::connect_sharing(options, Pool::new(IDLE_BYTES)).await
    }

    /// Connects as [`Session::connect`] does, with the receive buffers of other sessions.
    ///
    /// # Errors
    /// [`ConnectError`].
    pub(crate) fn connect_sharing(
        options: ConnectOptions,
        pool: Pool,
    ) -> BoxFuture<'static, Result<Session, ConnectError>> {
        Box::pin(async move {
            if options.addresses.is_empty() {
                return Err(ConnectError::NoAddress);
            }
            let timeout = options.timeout;
            let started = Thread::start(&options, pool);
            let thread = started.map_err(|error| ConnectError::Thread {
                error: error.to_string(),
            })?;
            let wanted = options.clone();
            let find = |world: Rc<World>| async move {
                let cluster = cluster::find(world.clone(), wanted).await?;
                drop(spawn_local(strangers::introduce(world, cluster.clone())));
                Ok(cluster)
            };
            let cluster = thread.run(find).await?;
            let shared = Arc::new(Shared {
                thread,
                cluster,
                options,
            });
            Ok(Session {
                shared,
                timeout,
                window_bytes: limits::WINDOW_BYTES,
            })
        })
    }

    /// Options for another connection to the same cluster: at all addresses that are known by now, with the same timeout and counters.
    pub(crate) fn options(&self) -> ConnectOptions {
        ConnectOptions {
            addresses: self.cluster().addresses(),
            cluster: Some(self.cluster().id),
            timeout: self.timeout,
            metrics: Some(self.metrics().clone()),
            ..self.shared.options.clone()
        }
    }

    /// This session with another timeout.
    pub(crate) fn with_timeout(&self, timeout: Duration) -> Session {
        Session {
            timeout,
            ..self.clone()
        }
    }

    /// This session with another window of readers and writers.
    pub(crate) fn with_window(&self, window_bytes: u64) -> Session {
        Session {
            window_bytes,
            ..self.clone()
        }
    }

    /// Bytes of blocks that one reader or writer of a value has under way at once.
    pub(crate) fn window_bytes(&self) -> u64 {
        self.window_bytes
    }

    /// The receive buffers of the session.
    pub(crate) fn pool(&self) -> &Pool {
        self.shared.thread.pool()
    }

    pub(crate) fn timeout(&self) -> Duration {
        self.timeout
    }

    /// The metrics of operations.
    pub(crate) fn metrics(&self) -> &Metrics {
        self.shared.thread.metrics()
    }

    pub(crate) fn cluster(&self) -> &KnownCluster {
        &self.shared.cluster
    }

    /// The thread that runs operations.
    pub(crate) fn thread(&self) -> &Thread {
        &self.shared.thread
    }

    /// Makes the context of an operation, on the network thread. The deadline counts from now.
    pub(crate) fn context(
        &self,
        subject: Subject,
        deadline: Deadline,
    ) -> impl FnOnce(Rc<World>) -> Context + Send + 'static {
        let (cluster, timeout) = (self.shared.cluster.clone(), self.timeout);
        let limits = OperationLimits {
            timeout,
            window_bytes: self.window_bytes,
        };
        let called = Instant::now();
        move |world| {
            let env = match deadline {
                Deadline::Timeout => world.network.env(timeout.saturating_sub(called.elapsed())),
                Deadline::Idle => world.network.patient_env(timeout),
            };
            Context::new(world, cluster, subject, limits, env)
        }
    }

    /// The traffic with servers so far.
    pub(crate) fn traffic(&self) -> BoxFuture<'_, Traffic> {
        Box::pin(async move {
            let count = |world: Rc<World>| async move { world.network.traffic() };
            self.shared.thread.run(count).await
        })
    }

    /// The names of the servers that have owed an answer for this time or longer, in order.
    pub(crate) fn awaited(&self, for_at_least: Duration) -> BoxFuture<'_, Vec<String>> {
        Box::pin(async move {
            let owing = move |world: Rc<World>| async move { world.network.owing(for_at_least) };
            let owing = self.shared.thread.run(owing).await;
            let names = self.shared.cluster.names();
            let mut owing: Vec<String> = owing.into_iter().map(|it| names.name(it)).collect();
            owing.sort();
            owing
        })
    }

    /// Sends off what waits, as far as that is quickly done.
    pub(crate) fn flush(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let flush = |world: Rc<World>| async move { world.network.flush(FAREWELL).await };
            self.shared.thread.run(flush).await;
        })
    }
}
