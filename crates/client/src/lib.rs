//! The library for programs that use a cluster: objects, files, domains and their changes.
//!
//! ```no_run
//! use areo_client::{Client, ConnectOptions};
//!
//! # async fn program() -> Result<(), Box<dyn std::error::Error>> {
//! let client = Client::connect(ConnectOptions::of("areo-data/cluster.toml")?).await?;
//! let photos = client.domain("default").await?;
//! let version = photos.put("cats/1", "a cat").await?;
//! let object = photos.get("cats/1").await?;
//! assert_eq!((object.version, object.text()?), (version, "a cat".to_owned()));
//! client.close().await;
//! # Ok(())
//! # }
//! ```
//!
//! Every operation is linearizable; a listing is regular: it contains every put that completed before the listing began. An
//! operation ends within its deadline as done, as [`Error::Unavailable`] (nothing was written) or as [`Error::Unknown`] (it
//! may have been written). [`blocking::wait`] runs an operation without async.
//!
//! [`Client`] and [`Domain`] are cheap to clone and are shared between threads. Infos, statuses, plans and pages implement
//! `serde::Serialize` with the keys of `areo --json`. The algorithms are those of `areo_core`: `dsm::atomic` for objects,
//! `dsm::listing` for listings, `consensus::paxos` for the names of domains.

#![warn(missing_docs)] // Programs outside of this workspace use it.
#![cfg_attr(
    not(feature = "files"),
    allow(dead_code, reason = "metrics and spans of files have no user")
)]

// First, so that the page of `Domain` begins with what is used first.
mod objects;
mod stream;

pub mod blocking;
mod checksum;
mod choice;
mod client;
mod cluster;
pub mod cluster_file;
mod connect;
mod domain;
mod error;
pub mod experimental;
#[cfg(feature = "files")]
pub mod file;
#[cfg(feature = "files")]
pub mod fuzzing;
pub mod journal;
mod metrics;
mod object;
mod operation;
#[cfg(feature = "files")]
pub mod place;
mod reconfig;
mod reconfig_kind;
mod repair;
mod session;
mod shape;
mod span;
mod statistics;
mod sweep;
pub mod trust;
pub mod units;
mod view;

pub use areo_core::config::{Dap, Decider, InvalidConfiguration, InvalidDecider, ServerId};
pub use areo_core::dsm::conditional::Condition;
pub use areo_core::error::{DeciderError, Response};
pub use areo_core::limits;
pub use areo_core::manager::InvalidDomainName;
pub use areo_core::message::{PeerView, Refusal, ServerView};
pub use areo_core::object::{InvalidKey, InvalidMetadata};
pub use areo_core::tag::{InvalidVersion, Tag as Version};
pub use areo_net::outside::{DecideOutside, Decision, Question};
pub use areo_net::trace::TraceSource;
pub use areo_net::{Counts, TraceContext, Traffic};
pub use checksum::checksum_of;
pub use choice::{Change, CreateDomainError, DomainOptions, InvalidChoice};
pub use client::Client;
pub use cluster::{
    CLASS, ClusterId, ClusterStatus, ClusterSummary, ConfigurationGraph, ConfigurationInfo,
    DomainHealth, DomainInfo, DomainWithoutRoom, Edge, Health, InvalidClusterId, InvalidLabel,
    LabelChange, Maintenance, Member, Problem, ROOT_DOMAIN, SequenceEntry, ServerHealth,
    ServerInfo, ServerStatus, show_domain, show_lack_of_room,
};
pub use connect::{Access, Attempt, ConnectError, ConnectOptions, DEFAULT_TIMEOUT};
pub use domain::Domain;
pub use error::{
    Damage, Error, ForkBranch, Invalid, LostObject, NoQuorum, Obstacle, ServerOutcome,
};
pub use metrics::Metrics;
pub use object::{
    Blocks, ElementRole, Entry, Etag, Holds, ListOptions, Manifest, Metadata, Object, ObjectInfo,
    Page, Placement, PutOptions,
};
pub use objects::{RecordEntry, RecordName, RecordPage, RecordsAfter};
pub use operation::Operation;
pub use reconfig::{
    Contradiction, Departure, FinalizeError, ForgetError, LabelError, LevelChange, Plan, Progress,
    ReconfigError, ReconfigOutcome, Successor, Transferred, UnreachableServer,
};
pub use reconfig_kind::ReconfigKind;
pub use repair::{BelowRedundancy, ListedVersion, Redundancy, RepairState};
pub use shape::{DapKind, Shape};
pub use statistics::Statistics;
pub use stream::{InvalidPartText, ObjectStream, StoredPart, StreamError, StreamReport, UploadId};
pub use sweep::{Count, FileCount, FileSweep, SweepOptions, SweepReport, UploadSweep};

/// Users move clients and domains between threads.
const _: () = {
    const fn shared<T: Clone + Send + Sync + 'static>() {}
    shared::<Client>();
    shared::<Domain>();
    shared::<Error>();
};
