//! The same without `async`: every call waits on the calling thread. Not for use inside an executor, whose thread it would
//! hold up.

mod file;

pub use file::File;

use crate::metrics::Counted;
use crate::stream::Upload;
use crate::{
    Change, ClusterId, ClusterStatus, ConfigurationInfo, ConnectError, ConnectOptions,
    CreateDomainError, DomainInfo, DomainOptions, Error, Metrics, Object, ObjectInfo, Page, Plan,
    Progress, PutOptions, ReconfigError, Reconfigured, SequenceEntry, ServerInfo, Statistics,
    StreamError, Streamed, SweepOptions, Swept, Traffic, Version,
};
use bytes::Bytes;
use std::future::Future;
use std::io::{Read, Write};
use std::ops::RangeBounds;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

/// [`crate::Client`] for threads.
#[derive(Clone, Debug)]
pub struct Client {
    client: crate::Client,
}

impl Client {
    /// As [`crate::Client::connect`].
    ///
    /// # Errors
    /// [`ConnectError`].
    pub fn connect(options: impl Into<ConnectOptions>) -> Result<Client, ConnectError> {
        let client = block_on(crate::Client::connect(options))?;
        Ok(Client { client })
    }

    /// As [`crate::Client::with_timeout`].
    #[must_use]
    pub fn with_timeout(&self, timeout: Duration) -> Client {
        let client = self.client.with_timeout(timeout);
        Client { client }
    }

    /// How long each operation may take.
    pub fn timeout(&self) -> Duration {
        self.client.timeout()
    }

    /// Which cluster it is.
    pub fn cluster(&self) -> ClusterId {
        self.client.cluster()
    }

    /// As [`crate::Client::metrics`].
    pub fn metrics(&self) -> &Metrics {
        self.client.metrics()
    }

    /// As [`crate::Client::domain`].
    ///
    /// # Errors
    /// As there.
    pub fn domain(&self, name: &str) -> Result<Domain, Error> {
        let domain = block_on(self.client.domain(name))?;
        Ok(Domain { domain })
    }

    /// As [`crate::Client::create_domain`].
    ///
    /// # Errors
    /// [`CreateDomainError`].
    pub fn create_domain(
        &self,
        name: &str,
        options: DomainOptions,
    ) -> Result<Domain, CreateDomainError> {
        let domain = block_on(self.client.create_domain(name, options))?;
        Ok(Domain { domain })
    }

    /// As [`crate::Client::remove_domain`].
    ///
    /// # Errors
    /// As there.
    pub fn remove_domain(&self, name: &str) -> Result<(), Error> {
        block_on(self.client.remove_domain(name))
    }

    /// As [`crate::Client::root_domain`].
    pub fn root_domain(&self) -> Domain {
        let domain = block_on(self.client.root_domain());
        Domain { domain }
    }

    /// As [`crate::Client::domains`].
    ///
    /// # Errors
    /// As there.
    pub fn domains(&self) -> Result<Vec<DomainInfo>, Error> {
        block_on(self.client.domains())
    }

    /// As [`crate::Client::servers`].
    ///
    /// # Errors
    /// As there.
    pub fn servers(&self) -> Result<Vec<ServerInfo>, Error> {
        block_on(self.client.servers())
    }

    /// As [`crate::Client::status`].
    pub fn status(&self) -> ClusterStatus {
        block_on(self.client.status())
    }

    /// As [`crate::Client::traffic`]; for another thread than the one whose operation is under way.
    pub fn traffic(&self) -> Traffic {
        block_on(self.client.traffic())
    }

    /// As [`crate::Client::close`].
    pub fn close(self) {
        block_on(self.client.close());
    }
}

/// [`crate::Domain`] for threads.
#[derive(Clone, Debug)]
pub struct Domain {
    domain: crate::Domain,
}

impl Domain {
    /// Its name.
    pub fn name(&self) -> &str {
        self.domain.name()
    }

    /// As [`crate::Domain::id`].
    pub fn id(&self) -> String {
        self.domain.id()
    }

    /// As [`crate::Domain::configuration`].
    pub fn configuration(&self) -> ConfigurationInfo {
        self.domain.configuration()
    }

    /// As [`crate::Domain::with_timeout`].
    #[must_use]
    pub fn with_timeout(&self, timeout: Duration) -> Domain {
        let domain = self.domain.with_timeout(timeout);
        Domain { domain }
    }

    /// As [`crate::Domain::keeping_replaced`].
    #[must_use]
    pub fn keeping_replaced(&self) -> Domain {
        let domain = self.domain.keeping_replaced();
        Domain { domain }
    }

    /// As [`crate::Domain::put`].
    ///
    /// # Errors
    /// As there.
    pub fn put(
        &self,
        key: &str,
        value: impl Into<Bytes>,
        options: PutOptions,
    ) -> Result<Version, Error> {
        block_on(self.domain.put(key, value, options))
    }

    /// As [`crate::Domain::write_if`].
    ///
    /// # Errors
    /// As there.
    pub fn write_if(
        &self,
        key: &str,
        value: impl Into<Bytes>,
        version: Option<Version>,
        options: PutOptions,
    ) -> Result<Version, Error> {
        block_on(self.domain.write_if(key, value, version, options))
    }

    /// As [`crate::Domain::put_stream`].
    ///
    /// # Errors
    /// As there.
    pub fn put_stream(
        &self,
        key: &str,
        source: impl Read,
        options: PutOptions,
    ) -> Result<Version, StreamError> {
        let running = self.domain.metrics().begin(Counted::Put);
        let ended = self.write_stream(key, source, options);
        running.end(&ended);
        ended
    }

    fn write_stream(
        &self,
        key: &str,
        mut source: impl Read,
        options: PutOptions,
    ) -> Result<Version, StreamError> {
        let mut upload = Upload::new(&self.domain, key, options)?;
        loop {
            let mut block = Vec::new();
            let next = source.by_ref().take(upload.block_bytes() as u64);
            match { next }.read_to_end(&mut block) {
                Ok(0) => return Ok(block_on(upload.finish())?),
                Ok(_) => block_on(upload.push(block.into()))?,
                Err(error) => {
                    block_on(upload.give_up());
                    return Err(StreamError::Local(error));
                }
            }
        }
    }

    /// As [`crate::Domain::get_to`].
    ///
    /// # Errors
    /// As there.
    pub fn get_to(&self, key: &str, sink: impl Write) -> Result<Streamed, StreamError> {
        self.get_range_to(key, .., sink)
    }

    /// As [`crate::Domain::get_range`], into a sink.
    ///
    /// # Errors
    /// As there, and those of the sink.
    pub fn get_range_to(
        &self,
        key: &str,
        range: impl RangeBounds<u64>,
        mut sink: impl Write,
    ) -> Result<Streamed, StreamError> {
        let mut stream = block_on(self.domain.get_range(key, range))?;
        while let Some(piece) = block_on(stream.next())? {
            sink.write_all(&piece).map_err(StreamError::Local)?;
        }
        sink.flush().map_err(StreamError::Local)?;
        Ok(stream.streamed())
    }

    /// As [`crate::Domain::sweep`].
    ///
    /// # Errors
    /// As there.
    pub fn sweep(&self, options: SweepOptions) -> Result<Swept, Error> {
        block_on(self.domain.sweep(options))
    }

    /// As [`crate::Domain::orphans`].
    ///
    /// # Errors
    /// As there.
    pub fn orphans(&self) -> Result<Swept, Error> {
        block_on(self.domain.orphans())
    }

    /// As [`crate::Domain::get`].
    ///
    /// # Errors
    /// As there.
    pub fn get(&self, key: &str) -> Result<Object, Error> {
        block_on(self.domain.get(key))
    }

    /// As [`crate::Domain::stat`].
    ///
    /// # Errors
    /// As there.
    pub fn stat(&self, key: &str) -> Result<ObjectInfo, Error> {
        block_on(self.domain.stat(key))
    }

    /// As [`crate::Domain::delete`].
    ///
    /// # Errors
    /// As there.
    pub fn delete(&self, key: &str) -> Result<Version, Error> {
        block_on(self.domain.delete(key))
    }

    /// As [`crate::Domain::list`].
    ///
    /// # Errors
    /// As there.
    pub fn list(&self, prefix: &str, after: &str, limit: usize) -> Result<Page, Error> {
        block_on(self.domain.list(prefix, after, limit))
    }

    /// As [`crate::Domain::measured`].
    #[must_use]
    pub fn measured(&self) -> (Domain, Arc<Statistics>) {
        let (domain, statistics) = self.domain.measured();
        (Domain { domain }, statistics)
    }

    /// As [`crate::Domain::plan`].
    ///
    /// # Errors
    /// As there.
    pub fn plan(&self, change: &Change) -> Result<Plan, ReconfigError> {
        block_on(self.domain.plan(change))
    }

    /// As [`crate::Domain::reconfigure`].
    ///
    /// # Errors
    /// As there.
    pub fn reconfigure(
        &self,
        change: &Change,
        progress: impl Fn(Progress) + Send + 'static,
    ) -> Result<Reconfigured, ReconfigError> {
        block_on(self.domain.reconfigure(change, progress))
    }

    /// As [`crate::Domain::resume`].
    ///
    /// # Errors
    /// As there.
    pub fn resume(
        &self,
        progress: impl Fn(Progress) + Send + 'static,
    ) -> Result<Option<ConfigurationInfo>, ReconfigError> {
        block_on(self.domain.resume(progress))
    }

    /// As [`crate::Domain::sequence`].
    ///
    /// # Errors
    /// As there.
    pub fn sequence(&self) -> Result<Vec<SequenceEntry>, Error> {
        block_on(self.domain.sequence())
    }
}

/// Wakes a parked thread.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Waits for the future on this thread. Enough of an executor, because the network thread does the work.
pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut context = Context::from_waker(&waker);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(output) => return output,
            // Returns at once if it was woken since.
            Poll::Pending => thread::park(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::sync::oneshot;

    #[test]
    fn a_wake_up_from_another_thread_is_not_missed() {
        for round in 0..100 {
            let (sender, receiver) = oneshot::channel();
            let other = thread::spawn(move || sender.send(round));
            assert_eq!(block_on(receiver), Ok(round));
            other.join().unwrap().unwrap();
        }
    }

    #[test]
    fn nobody_to_ask_is_an_error() {
        let error = Client::connect("").unwrap_err();
        assert_eq!(error, ConnectError::NoAddress);
    }

    #[test]
    fn an_address_that_nobody_listens_at_is_named() {
        // Bound and dropped: nobody listens there now.
        let address = std::net::TcpListener::bind("127.0.0.1:0")
            .and_then(|listener| listener.local_addr())
            .unwrap()
            .to_string();
        let error = Client::connect(address.as_str()).unwrap_err();
        let ConnectError::NoServer { attempts, .. } = error else {
            panic!("{error}");
        };
        assert_eq!(attempts.len(), 1);
        assert_eq!(attempts[0].address, address);
        assert_eq!(attempts[0].reason, "connection refused");
    }
}
