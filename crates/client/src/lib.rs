//! What users import: connect, domains, put, get, stat, delete, list; asynchronous, or with [`blocking::wait`].
//!
//! Every operation is linearizable, listings excepted (those are regular: they contain every put that completed before
//! they began). It ends within its deadline as done, as [`Error::Unavailable`] (nothing was written) or as
//! [`Error::Unknown`] (it may have been). The algorithms are those of `areo_core`: `dsm::atomic` for objects,
//! `dsm::listing` for listings, `consensus::paxos` for the names of domains.
//!
//! ```text
//! ConnectOptions                                     From<&str>: "host:port,host:port"
//!   addresses: Vec<String>     cluster: Option<ClusterId>     timeout: Duration
//!   metrics: Option<Metrics>                         where it is counted, together with other clients
//!   trace_source: Option<TraceSource>                fn(&tracing::Span) -> Option<TraceContext>: servers join your traces
//!   decide_outside: Option<DecideOutside>            fn(Question) -> Decision: asks etcd, where a domain has it decide
//!
//! Client                                             Clone + Send + Sync
//!   async connect(ConnectOptions) -> Result<Client, ConnectError>
//!   metrics(&self) -> &Metrics                       text(&self) -> String: what its operations come to, for Prometheus
//!   with_timeout(&self, Duration) -> Client          timeout(&self) -> Duration
//!   cluster(&self) -> ClusterId
//!   async domain(&self, &str) -> Result<Domain, Error>
//!   async create_domain(&self, &str, DomainOptions) -> Result<Domain, CreateDomainError>     its shape: domain.configuration()
//!   async root_domain(&self) -> Domain               for its configurations, not for objects
//!   async remove_domain(&self, &str) -> Result<(), Error>
//!   async domains(&self) -> Result<Vec<DomainInfo>, Error>
//!   async servers(&self) -> Result<Vec<ServerInfo>, Error>
//!   async status(&self) -> ClusterStatus
//!   async traffic(&self) -> Traffic                  bytes sent and received so far
//!   async close(self)                                sends off what waits; before the process ends
//!
//! Domain                                             Clone + Send + Sync
//!   name(&self) -> &str        id(&self) -> String     configuration(&self) -> ConfigurationInfo
//!   with_timeout(&self, Duration) -> Domain
//!   async put(&self, &str, impl Into<Bytes>, PutOptions) -> Result<Version, Error>
//!   async write_if(&self, &str, impl Into<Bytes>, Option<Version>, PutOptions) -> Result<Version, Error>     weak: coverable
//!   async get(&self, &str) -> Result<Object, Error>
//!   async put_stream(&self, &str, impl AsyncRead, PutOptions) -> Result<Version, StreamError>     of any length
//!   async get_stream(&self, &str) -> Result<ObjectStream, Error>
//!   async get_range(&self, &str, impl RangeBounds<u64>) -> Result<ObjectStream, Error>
//!   async get_to(&self, &str, impl AsyncWrite) -> Result<Streamed, StreamError>
//!   async stat(&self, &str) -> Result<ObjectInfo, Error>
//!   async delete(&self, &str) -> Result<Version, Error>
//!   async list(&self, prefix: &str, after: &str, limit: usize) -> Result<Page, Error>
//!   async list_with(&self, ListOptions) -> Result<Page, Error>      with common prefixes
//!   async plan(&self, &Change) -> Result<Plan, ReconfigError>
//!   async reconfigure(&self, &Change, impl Fn(Progress)) -> Result<Reconfigured, ReconfigError>
//!   async resume(&self, impl Fn(Progress)) -> Result<Option<ConfigurationInfo>, ReconfigError>
//!   async sequence(&self) -> Result<Vec<SequenceEntry>, Error>
//!   async graph(&self) -> Result<ConfigurationGraph, Error>      the same, and which of them is known to come after which
//!   file(&self, &str) -> Result<file::File, Error>    lists of blocks that many people edit: push, pull, read, diff
//!   async files(&self, prefix: &str, after: &str) -> Result<(Vec<FileEntry>, Option<String>), Error>
//!   async sweep(&self, SweepOptions) -> Result<SweepReport, Error>      blocks that are not needed
//!   async repair(&self, progress) -> Result<Redundancy, Error>    brings objects to the members that lack them
//!   async repair_object(&self, &str) -> Result<Redundancy, Error>
//!   async redundancy(&self, progress) -> Result<Redundancy, Error>
//!   async orphans(&self) -> Result<SweepReport, Error>
//!   measured(&self) -> (Domain, Arc<Statistics>)     rounds, configurations and bytes of its operations
//!
//! blocking::wait(impl Future) -> its output          the same without async
//! blocking::Local(impl Read or Write)                what it streams from or to
//! ```
//!
//! What operations return to be shown (infos, statuses, plans, pages) implements `serde::Serialize`, with the keys of
//! `areo --json`.

pub mod blocking;
mod checksum;
mod choice;
mod client;
mod cluster;
mod connect;
mod create;
mod domain;
mod error;
pub mod experimental;
pub mod file;
pub mod fuzzing;
mod metrics;
mod object;
mod objects;
mod reconfig;
mod reconfig_kind;
mod repair;
mod session;
mod shape;
mod span;
mod statistics;
mod stream;
mod sweep;
mod view;

pub use areo_core::config::{Dap, Decider, InvalidConfiguration, InvalidDecider, ServerId};
pub use areo_core::error::{DeciderError, Response};
pub use areo_core::limits;
pub use areo_core::manager::InvalidDomainName;
pub use areo_core::message::Refusal;
pub use areo_core::object::{InvalidKey, InvalidMetadata};
pub use areo_core::tag::{InvalidVersion, Tag as Version};
pub use areo_net::outside::{DecideOutside, Decision, Question};
pub use areo_net::trace::TraceSource;
pub use areo_net::{Counts, TraceContext, Traffic};
pub use choice::InvalidChoice;
pub use client::Client;
pub use cluster::{
    ClusterId, ClusterStatus, ClusterSummary, ConfigurationGraph, ConfigurationInfo, DomainHealth,
    DomainInfo, Edge, Health, InvalidClusterId, Member, SequenceEntry, ServerHealth, ServerInfo,
    ServerStatus,
};
pub use connect::{Attempt, ConnectError, ConnectOptions, DEFAULT_TIMEOUT};
pub use create::{CreateDomainError, DomainOptions};
pub use domain::Domain;
pub use error::{Damage, Error, ForkBranch, Invalid, NoQuorum, Obstacle, Operation, ServerOutcome};
pub use metrics::Metrics;
pub use object::{
    Blocks, ElementRole, Entry, Etag, Holds, ListOptions, Metadata, Object, ObjectInfo, Page,
    Placement, PutOptions,
};
pub use reconfig::{
    Change, Contradiction, DapKind, Departure, ForgetError, Plan, Progress, ReconfigError,
    ReconfigOutcome, Successor, Transferred, UnreachableServer,
};
pub use reconfig_kind::ReconfigKind;
pub use repair::{BelowRedundancy, ListedVersion, Redundancy, RepairState};
pub use session::ROOT_DOMAIN;
pub use shape::Shape;
pub use statistics::Statistics;
pub use stream::{ObjectStream, StreamError, StreamReport};
pub use sweep::{Count, FileCount, FileSweep, SweepOptions, SweepReport, UploadSweep};

/// Users move clients and domains between threads.
const _: () = {
    const fn shared<T: Clone + Send + Sync + 'static>() {}
    shared::<Client>();
    shared::<Domain>();
    shared::<Error>();
};
