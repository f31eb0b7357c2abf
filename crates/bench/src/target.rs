//! Stores that can be measured: each is a cluster on this machine with clients that put and get.
//!
//! Areo is here. The other stores are in `peers/`, outside the workspace, because their clients are.

mod areo;
mod gateway;

pub use areo::Areo;
pub(crate) use areo::{AreoCaller, connected};
pub use gateway::AreoGateway;

use crate::cluster::Program;
use crate::error::RunError;
use crate::words::words;
use areo_client::{ConfigurationInfo, Counts, Dap, Error, Invalid, Object, Obstacle, Version};
use bytes::Bytes;
use serde::Serialize;
use std::fmt;
use std::path::PathBuf;
use std::pin::Pin;
use std::time::Duration;

/// The future that a target returns.
pub type Answer<'a, T, E> = Pin<Box<dyn Future<Output = Result<T, E>> + 'a>>;

words! {
    /// A store that is known here.
    pub enum TargetName, "store that is known here" {
        /// Areo itself, with the data access of [`TargetOptions::dap`].
        Areo => "areo",
        /// Areo with keys: connections are encrypted, and servers judge the grants of each request.
        AreoKeys => "areo-keys",
        /// Areo with a domain in which every write is decided.
        AreoConditional => "areo-conditional",
        /// Areo behind its S3 gateway, with a domain in which every write is decided.
        AreoS3 => "areo-s3",
        /// etcd: Raft, values at a majority, reads linearizable.
        Etcd => "etcd",
        /// Redis: a master answers before its replicas have anything.
        Redis => "redis",
        /// Redis whose writers wait for a majority: the papers' `Redis_W`.
        RedisWait => "redis-wait",
        /// Any store with an S3 endpoint.
        S3 => "s3",
        /// `MinIO`, by its S3 endpoint.
        Minio => "minio",
        /// Cassandra, writes and reads at a quorum: the latest timestamp wins.
        Cassandra => "cassandra",
        /// Cassandra with lightweight transactions: linearizable.
        CassandraSerial => "cassandra-serial",
    }
}

impl TargetName {
    /// True if its callers implement [`Caller::put_if`] and [`Caller::increment`].
    pub const fn compares_and_sets(self) -> bool {
        self.is_s3() || matches!(self, TargetName::AreoConditional | TargetName::Etcd)
    }

    /// True if it is asked by S3.
    pub const fn is_s3(self) -> bool {
        matches!(self, TargetName::AreoS3) || self.is_bucket()
    }

    /// True if it is an S3 endpoint that runs already.
    pub const fn is_bucket(self) -> bool {
        matches!(self, TargetName::S3 | TargetName::Minio)
    }
}

/// Options of a cluster.
pub struct TargetOptions {
    /// The program for clusters of Areo.
    pub program: Program,
    /// Number of server processes.
    pub servers: usize,
    /// Servers keep nothing on disk, or do not wait until it is there.
    pub memory: bool,
    /// Areo's way to keep values; the other stores replicate.
    pub dap: Dap,
    /// Folder in which the servers' directories are made.
    pub data: PathBuf,
    /// Timeout of an operation.
    pub timeout: Duration,
}

/// Description of a cluster in reports.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct About {
    pub target: TargetName,
    /// Version of the store's program.
    pub version: String,
    /// Number of server processes.
    pub servers: usize,
    /// The redundancy of values, and the acknowledgements that a put and a get need.
    pub keeps: String,
    /// The state of the disks when a write is acknowledged.
    pub durability: String,
    /// The transport between clients and the store.
    pub connections: String,
}

/// The cost of an operation, as far as its store reports it.
#[derive(Clone, Copy, Default, PartialEq, Debug)]
pub struct Cost {
    /// Rounds of messages, configurations that were visited, bytes.
    pub counts: Counts,
    /// The version that was put or got.
    pub version: Option<Version>,
    /// Blocks of a file, the genesis block among them; 0 of an object.
    pub blocks: u64,
    /// Share of the written data that lost against other writes: from 0 to 1.
    pub lost: f64,
    /// Time that the caller spent on something else meanwhile, such as an edit of the local file. It does not count.
    pub aside: Duration,
}

/// Why a cluster is not there.
#[derive(Debug)]
pub enum TargetError {
    /// Its program cannot be had.
    Missing {
        target: TargetName,
        /// Name of the missing program.
        program: &'static str,
        /// The source of the program, as a part of a sentence.
        source: &'static str,
    },
    /// It was started and does not serve.
    Start {
        target: TargetName,
        /// Its error output, or the missing event.
        why: String,
    },
    /// None of its members could be killed.
    Kill { target: TargetName, why: String },
}

impl fmt::Display for TargetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TargetError::Missing {
                target,
                program,
                source,
            } => write!(
                f,
                "there is no program '{program}' on the PATH: install it ({source}), or leave {target} out of --targets"
            ),
            TargetError::Start { target, why } => write!(f, "cannot start {target}: {why}"),
            TargetError::Kill { target, why } => {
                write!(f, "cannot kill a member of {target}: {why}")
            }
        }
    }
}

impl std::error::Error for TargetError {}

impl From<TargetError> for RunError {
    fn from(error: TargetError) -> RunError {
        RunError::Failed(error.to_string())
    }
}

/// Failure of an operation, with a sentence.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CallError {
    /// It had no effect, and will have none.
    NotApplied(String),
    /// It had no effect: conditional writes have no single winner there, or no longer.
    NotConditional(String),
    /// It may have had its effect, or have it later.
    Unknown(String),
    /// It may have had its effect, or have it later, and should not happen at all.
    Unexpected(String),
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CallError::NotApplied(sentence)
            | CallError::NotConditional(sentence)
            | CallError::Unknown(sentence)
            | CallError::Unexpected(sentence) => f.write_str(sentence),
        }
    }
}

impl From<String> for CallError {
    fn from(sentence: String) -> CallError {
        CallError::Unknown(sentence)
    }
}

impl From<CallError> for String {
    fn from(error: CallError) -> String {
        error.to_string()
    }
}

impl From<Error> for CallError {
    fn from(error: Error) -> CallError {
        let sentence = error.to_string();
        let not_conditional = match &error {
            Error::Obstructed { call } => call.obstacle == Some(Obstacle::NotConditional),
            Error::Invalid { reason } => matches!(reason, Invalid::NotConditional { .. }),
            _ => false,
        };
        match error {
            Error::Unavailable { .. } => CallError::NotApplied(sentence),
            Error::Unknown { .. } => CallError::Unknown(sentence),
            _ if not_conditional => CallError::NotConditional(sentence),
            _ => CallError::Unexpected(sentence),
        }
    }
}

/// The result of a conditional write.
#[derive(Clone, Debug)]
pub enum Conditional {
    /// The write took effect.
    Won(Cost),
    /// The condition failed: this object is there instead; `None`: no object is.
    Lost(Option<Box<Object>>),
}

/// The end of what only [`Caller`]s of some stores do.
fn not_asked<T>() -> Answer<'static, T, CallError> {
    let sentence = "this store is not asked for that";
    Box::pin(async move { Err(CallError::NotApplied(sentence.to_owned())) })
}

/// A client that puts and gets, one operation after the other.
pub trait Caller {
    /// Writes a value; done as soon as the store acknowledges. Not of one that only reads.
    ///
    /// # Errors
    /// [`CallError`].
    fn put<'a>(&'a mut self, _key: &'a str, _value: Bytes) -> Answer<'a, Cost, CallError> {
        not_asked()
    }

    /// Reads a value; `None` if there is none.
    ///
    /// # Errors
    /// [`CallError`].
    fn get<'a>(&'a mut self, key: &'a str) -> Answer<'a, (Option<Bytes>, Cost), CallError>;

    /// Deletes a value, if there is one. Only of this store.
    ///
    /// # Errors
    /// [`CallError`].
    fn delete<'a>(&'a mut self, _key: &'a str) -> Answer<'a, Cost, CallError> {
        not_asked()
    }

    /// Writes a value on this version, `None` being that there is none, with one winner; without a value it deletes the version. Only of
    /// this store, where it [`Caller::has_one_winner`].
    ///
    /// # Errors
    /// [`CallError`].
    fn write_on<'a>(
        &'a mut self,
        _key: &'a str,
        _value: Option<Bytes>,
        _on: Option<Version>,
    ) -> Answer<'a, Conditional, CallError> {
        not_asked()
    }

    /// True if conditional writes have one winner, as far as the caller knows.
    fn has_one_winner(&self) -> bool {
        false
    }

    /// Writes a value if the object is still at the version that this caller wrote or read last, with one winner; an
    /// object that it does not know is read first. Only of stores that [`TargetName::compares_and_sets`].
    ///
    /// # Errors
    /// [`CallError`]; also if another caller has written.
    fn put_if<'a>(&'a mut self, _key: &'a str, _value: Bytes) -> Answer<'a, Cost, CallError> {
        not_asked()
    }

    /// Reads a counter, and writes one more than was read if that is still there; begins again if it is not. Only of stores that
    /// [`TargetName::compares_and_sets`].
    ///
    /// # Errors
    /// [`CallError`].
    fn increment<'a>(&'a mut self, _key: &'a str) -> Answer<'a, Cost, CallError> {
        not_asked()
    }

    /// Lists the entries of a folder by `/`, or of the root: how many there are, objects and folders. Only of stores that are asked by S3.
    ///
    /// # Errors
    /// [`CallError`].
    fn list<'a>(&'a mut self, _folder: Option<&'a str>) -> Answer<'a, (u64, Cost), CallError> {
        not_asked()
    }

    /// Sets the timeout of later operations, for stores that can change it.
    fn set_timeout(&mut self, _timeout: Duration) {}

    /// The last final configuration that it knows, of a store that has such.
    fn configuration(&self) -> Option<ConfigurationInfo> {
        None
    }
}

/// A client that reconfigures, one change after the other.
pub trait Reconfigurer {
    /// Makes a change; `false` if another client made another one first.
    ///
    /// # Errors
    /// What went wrong, as a sentence.
    fn reconfigure(&mut self) -> Answer<'_, bool, String>;
}

/// A cluster that serves; its processes end when this is dropped.
pub trait Target {
    /// The cluster in reports.
    fn about(&self) -> &About;

    /// A client of it.
    ///
    /// # Errors
    /// [`TargetError::Start`].
    fn caller(&self) -> Answer<'_, Box<dyn Caller>, TargetError>;

    /// A client of it that reconfigures it, if it can be.
    fn reconfigurer(&self) -> Option<Box<dyn Reconfigurer>> {
        None
    }

    /// Process ids of its servers.
    fn processes(&self) -> Vec<u32>;

    /// Admin ports of its servers, which report on traced operations; empty for a store without such reports.
    ///
    /// # Errors
    /// [`TargetError::Start`]: its servers are not known.
    fn admins(&self) -> Answer<'_, Vec<String>, TargetError> {
        Box::pin(async { Ok(Vec::new()) })
    }

    /// Bytes that its servers have on disk.
    fn stored(&self) -> u64;

    /// Kills (kill -9) the member that leads, or any member if none does, and waits for the end of its process.
    /// Returns the name of the member, and the reaction of the others.
    ///
    /// # Errors
    /// [`TargetError::Kill`].
    fn kill(&mut self) -> Answer<'_, String, TargetError>;
}

/// A cluster that was started and does not serve.
pub fn start_failed(target: TargetName) -> impl Fn(&dyn fmt::Display) -> TargetError {
    move |why| TargetError::Start {
        target,
        why: why.to_string(),
    }
}
