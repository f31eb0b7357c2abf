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
//! | to | call |
//! |---|---|
//! | connect | [`Client::connect`] with addresses or [`ConnectOptions`]; [`Client::close`] sends off what waits |
//! | find, create, list and remove domains | [`Client::domain`], [`Client::create_domain`] with [`DomainOptions`], [`Client::domains`], [`Client::remove_domain`] |
//! | look at servers | [`Client::servers`], [`Client::status`], [`Client::departures`], [`Client::forget_server`] |
//! | write, read, delete | [`Domain::put`], [`Domain::put_with`], [`Domain::get`], [`Domain::stat`], [`Domain::delete`], [`Domain::delete_many`] |
//! | write on a condition, one winner (conditional domains) | [`Domain::has_one_winner`], [`Domain::compare_and_put`], [`Domain::compare_and_delete`], [`Domain::update`] |
//! | write on a condition, weak (coverable) | [`Domain::write_if`], [`Domain::delete_if`] |
//! | stream large values | [`Domain::put_stream`], [`Domain::get_stream`], [`Domain::get_range`], [`Domain::get_to`]; [`ObjectStream::into_stream`], [`ObjectStream::into_reader`] |
//! | write a value in parts, by several clients | [`Domain::begin_parts`], [`Domain::put_part`], [`Domain::publish_parts`], [`Domain::abort_parts`] |
//! | keep records of uploads in progress | [`Domain::put_record`], [`Domain::get_record`], [`Domain::delete_record`], [`Domain::list_records`] |
//! | compare a local value with an object | [`checksum_of`] and [`Metadata::checksum`] of [`Domain::stat`] |
//! | list | [`Domain::list_all`], [`Domain::list`] by pages, [`Domain::list_with`] with common prefixes |
//! | edit files that many people share | [`Domain::file`], [`Domain::files`] |
//! | see where elements are, and what an operation costs | [`Domain::inspect`], [`Domain::measured`] |
//! | change a domain | [`Domain::plan`], [`Domain::reconfigure`] with a [`Change`], [`Domain::resume`], [`Domain::sequence`], [`Domain::graph`] |
//! | repair, and remove blocks that nothing needs | [`Domain::redundancy`], [`Domain::repair`], [`Domain::sweep`], [`Domain::orphans`] |
//! | make tokens and keys, rotate the CA, read the audit | [`Client::trust`] |
//! | count and trace | [`Client::metrics`], [`Client::traffic`], [`Client::awaited`], [`ConnectOptions`] |
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
mod create;
mod domain;
mod error;
pub mod experimental;
#[cfg(feature = "files")]
pub mod file;
#[cfg(feature = "files")]
pub mod fuzzing;
mod metrics;
mod object;
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
pub use areo_core::message::Refusal;
pub use areo_core::object::{InvalidKey, InvalidMetadata};
pub use areo_core::tag::{InvalidVersion, Tag as Version};
pub use areo_net::outside::{DecideOutside, Decision, Question};
pub use areo_net::trace::TraceSource;
pub use areo_net::{Counts, TraceContext, Traffic};
pub use checksum::checksum_of;
pub use choice::InvalidChoice;
pub use client::Client;
pub use cluster::{
    ClusterId, ClusterStatus, ClusterSummary, ConfigurationGraph, ConfigurationInfo, DomainHealth,
    DomainInfo, DomainWithoutRoom, Edge, Health, InvalidClusterId, Member, ROOT_DOMAIN,
    SequenceEntry, ServerHealth, ServerInfo, ServerStatus, show_domain, show_lack_of_room,
};
pub use connect::{Access, Attempt, ConnectError, ConnectOptions, DEFAULT_TIMEOUT};
pub use create::{CreateDomainError, DomainOptions};
pub use domain::Domain;
pub use error::{
    Damage, Error, ForkBranch, Invalid, LostObject, NoQuorum, Obstacle, Operation, ServerOutcome,
};
pub use metrics::Metrics;
pub use object::{
    Blocks, ElementRole, Entry, Etag, Holds, ListOptions, Manifest, Metadata, Object, ObjectInfo,
    Page, Placement, PutOptions,
};
pub use objects::{RecordEntry, RecordName, RecordPage, RecordsAfter};
pub use reconfig::{
    Change, Contradiction, DapKind, Departure, FinalizeError, ForgetError, LevelChange, Plan,
    Progress, ReconfigError, ReconfigOutcome, Successor, Transferred, UnreachableServer,
};
pub use reconfig_kind::ReconfigKind;
pub use repair::{BelowRedundancy, ListedVersion, Redundancy, RepairState};
pub use shape::Shape;
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
