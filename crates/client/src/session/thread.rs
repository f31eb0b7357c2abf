//! The network thread of a client.
//!
//! Operations of `areo_core` are not `Send`: connections, tallies and operations share one thread and no lock. Users want
//! futures that any executor can move between threads. So a client owns a thread with a runtime of its own; an operation
//! is sent there as one job and answered through one channel. That is one hop per operation, none per quorum call.

use super::proof::KeyHolder;
use crate::connect::{Access, ConnectOptions};
use crate::metrics::Metrics;
use areo_core::dsm;
use areo_core::timing::LEADER_PATIENCE;
use areo_net::env::NetEnv;
use areo_net::network::Network;
use areo_net::pool::Pool;
use areo_net::{Role, Tls};
use areo_trust::id::KeyId;
use areo_trust::key::AccessKey;
use areo_trust::tls::DefaultTimeProvider;
use futures_util::FutureExt;
use std::cell::Cell;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{self, Poll, ready};
use std::time::{Duration, Instant};
use tokio::runtime;
use tokio::sync::{mpsc, oneshot};
use tokio::task::{LocalSet, spawn_local};
use tracing::{Instrument, Span};

/// The state of the network thread.
pub(crate) struct World {
    pub(crate) network: Network,
    /// Identity and memory of this client; operations run on clones with their own deadlines.
    pub(crate) client: dsm::Client<NetEnv>,
    /// The metrics of all of them.
    pub(crate) metrics: Metrics,
    /// The time at which the directory was last asked for; `None`: never, or it should be soon.
    pub(crate) asked_directory: Cell<Option<Instant>>,
    /// The key of this client, if the cluster has keys.
    pub(crate) key: Option<Rc<KeyHolder>>,
}

type Job = Box<dyn FnOnce(&Rc<World>) + Send>;

/// A handle to the thread, which ends when the handle is dropped.
pub(crate) struct Thread {
    jobs: mpsc::UnboundedSender<Job>,
    metrics: Metrics,
    pool: Pool,
}

/// The longest time that sent messages may take to leave before the thread ends.
pub(crate) const FAREWELL: Duration = Duration::from_millis(250);

/// The certificates that count for this client, and its key.
fn access(options: &ConnectOptions) -> io::Result<(Option<Tls>, Option<KeyHolder>)> {
    match &options.access {
        None => Ok((None, None)),
        Some(Access::Certificate(tls)) => Ok((Some(tls.clone()), None)),
        Some(Access::Key(key)) => prover(key, None),
        Some(Access::Behalf { gateway, of }) => prover(gateway, Some(*of)),
    }
}

/// Nothing is connected to before the key is proven: then the CAs of the cluster are known.
fn prover(key: &AccessKey, behalf: Option<KeyId>) -> io::Result<(Option<Tls>, Option<KeyHolder>)> {
    let tls = Tls::of_prover(Arc::new(DefaultTimeProvider));
    let holder = KeyHolder::new(key.clone(), behalf, tls.clone()).map_err(io::Error::other)?;
    Ok((Some(tls), Some(holder)))
}

impl Thread {
    /// Starts a thread with a network that knows no server, and receives into buffers of this pool.
    ///
    /// # Errors
    /// The operating system gives no thread, or nothing to wait for sockets with.
    pub(crate) fn start(options: &ConnectOptions, pool: Pool) -> io::Result<Thread> {
        let mut own_id = [0; 16];
        getrandom::fill(&mut own_id).map_err(io::Error::other)?;
        let runtime = runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        // Unbounded, because every job belongs to a caller that waits for it: what callers hold bounds it.
        let (jobs, mut receiver) = mpsc::unbounded_channel::<Job>();
        let metrics = options.metrics.clone().unwrap_or_default();
        let counters = metrics.clone();
        let (trace_source, decide_outside) = (options.trace_source, options.decide_outside);
        let (tls, key) = access(options)?;
        let shared = pool.clone();
        let run = move || {
            LocalSet::new().block_on(&runtime, async move {
                let own_id = u128::from_le_bytes(own_id);
                let network = Network::sharing(Role::Client, own_id, tls, shared);
                network.count(counters.calls());
                network.show(counters.peers());
                if let Some(source) = trace_source {
                    network.trace_by(source);
                }
                if let Some(way) = decide_outside {
                    network.decide_outside_by(way);
                }
                let client = dsm::Client::new(network.env(Duration::ZERO));
                let client = client.waiting_for_leaders(LEADER_PATIENCE);
                let world = Rc::new(World {
                    network,
                    client,
                    metrics: counters,
                    asked_directory: Cell::new(None),
                    key: key.map(Rc::new),
                });
                while let Some(job) = receiver.recv().await {
                    job(&world);
                }
                world.network.flush(FAREWELL).await;
            });
        };
        std::thread::Builder::new()
            .name("areo-client".into())
            .spawn(run)?;
        Ok(Thread {
            jobs,
            metrics,
            pool,
        })
    }

    /// The metrics of the operations here.
    pub(crate) fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// The receive buffers of its network.
    pub(crate) fn pool(&self) -> &Pool {
        &self.pool
    }

    /// Starts the operation on the thread. It goes on until it ends or the returned future is dropped.
    pub(crate) fn run<T, F>(
        &self,
        operation: impl FnOnce(Rc<World>) -> F + Send + 'static,
    ) -> RunningJob<T>
    where
        T: Send + 'static,
        F: Future<Output = T> + 'static,
    {
        let (sender, receiver) = oneshot::channel();
        // The operation is a part of the caller's span, on any thread.
        let span = Span::current();
        let job = move |world: &Rc<World>| {
            // It has several KiB, and the way into a task moves it ten times.
            let operation = Box::pin(operation(world.clone()));
            drop(spawn_local(answer(operation, sender).instrument(span)));
        };
        let sent = self.jobs.send(Box::new(job));
        assert!(sent.is_ok(), "the thread lives as long as its handle");
        RunningJob(receiver)
    }
}

/// An operation on the thread, and the future of its result. Dropping it gives the operation up.
pub(crate) struct RunningJob<T>(oneshot::Receiver<T>);

impl<T> Future for RunningJob<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut task::Context<'_>) -> Poll<T> {
        let ended = ready!(self.0.poll_unpin(context));
        Poll::Ready(ended.expect("an operation answers, unless it panicked; its message is above"))
    }
}

/// Runs the operation until it ends or its caller stops waiting.
async fn answer<T>(operation: impl Future<Output = T>, mut sender: oneshot::Sender<T>) {
    let result = tokio::select! {
        biased;
        result = operation => result,
        () = sender.closed() => return,
    };
    // Failing means that the caller has gone this very moment.
    let _ = sender.send(result);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blocking::wait;
    use std::sync::mpsc::channel;

    #[test]
    fn operations_run_on_one_thread_and_answer_any_other() {
        let thread = Thread::start(&ConnectOptions::default(), Pool::new(0)).unwrap();
        let name = |_world| async { std::thread::current().name().map(ToOwned::to_owned) };
        assert_eq!(wait(thread.run(name)).as_deref(), Some("areo-client"));
        let ids: Vec<_> = std::thread::scope(|scope| {
            let ask = || wait(thread.run(|world: Rc<World>| async move { world.client.id() }));
            let callers: Vec<_> = (0..4).map(|_| scope.spawn(ask)).collect();
            callers
                .into_iter()
                .map(|caller| caller.join().unwrap())
                .collect()
        });
        assert!(
            ids.iter().all(|id| *id == ids[0]),
            "one client for all of them"
        );
    }

    /// Sends a message when it is dropped.
    struct Tell(std::sync::mpsc::Sender<()>);

    impl Drop for Tell {
        fn drop(&mut self) {
            let _ = self.0.send(());
        }
    }

    #[test]
    fn an_operation_that_nobody_waits_for_is_given_up() {
        let thread = Thread::start(&ConnectOptions::default(), Pool::new(0)).unwrap();
        let (sender, dropped) = channel();
        let tell = Tell(sender);
        let mut waiting = Box::pin(thread.run(move |_world| async move {
            let _tell = tell;
            std::future::pending::<()>().await;
        }));
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        assert!(waiting.as_mut().poll(&mut context).is_pending());
        // It has begun by now or begins before the answer to this one.
        wait(thread.run(|_world| async {}));
        assert!(dropped.try_recv().is_err(), "somebody waits");
        drop(waiting);
        dropped.recv().expect("told by the drop");
    }

    #[test]
    fn the_thread_ends_with_its_handle() {
        let thread = Thread::start(&ConnectOptions::default(), Pool::new(0)).unwrap();
        let (sender, dropped) = channel();
        let tell = Tell(sender);
        wait(thread.run(|_world| async move {
            // Lives as long as the thread does.
            drop(spawn_local(async move {
                let _tell = tell;
                std::future::pending::<()>().await;
            }));
        }));
        assert!(dropped.try_recv().is_err(), "the thread lives");
        drop(thread);
        dropped.recv().expect("told by the end of the thread");
    }
}
