//! One server process: accept, read frames, run the node, sync, reply.
//!
//! Thin: what a request means is the business of [`areo_core::server`], the order of durability and acknowledgement that
//! of [`areo_core::shard`], the loop that of [`areo_node`], the disk that of [`areo_store`], connections that of [`areo_net`]. Everything runs on one
//! thread; a second one writes and syncs.
//!
//! | module | what |
//! |---|---|
//! | `run` | from the data directory to a serving process, and down again |
//! | `identity` | who the server is |
//! | `naming` | a server that joins gets its name |
//! | `registration` | the root domain confirms the start |
//! | `service` | bytes to requests |
//! | `worker` | requests to the node, commits to another thread |
//! | `trusting` | answers requests about CAs, join tokens, access keys |
//! | `repair` | rounds of repair of its own objects |
//! | `leading` | makes what is posted in domains that it leads |
//! | `replacement` | another server takes the place of one whose log lacks records |
//! | `growth` | as a member of the root domain, sees to its members |
//! | `address` | whether others can find it |
//! | `scrubbing` | how far verification is, kept over restarts |
//! | `trust` | the keys and certificates of the server |
//! | `signals` | the signals that end a process in order |
//! | `admin` | live and ready |
//! | `descriptors` | file descriptors, and how many connections of each class they are enough for |
//! | `cluster` | whether quorums of the domains serve |

mod address;
mod admin;
mod caller;
mod cluster;
mod descriptors;
mod error;
mod growth;
mod identity;
mod leading;
mod metrics;
mod naming;
mod registration;
mod repair;
mod replacement;
mod run;
mod scrubbing;
mod service;
mod signals;
mod trust;
mod trusting;
mod worker;

pub use address::advertised_admin;
pub use areo_core::message::Program;
pub use error::ServeError;
pub use identity::{
    ClusterIdentity, Identity, NewCluster, NewServer, Succession, has_identity, initialise_cluster,
    read_identity,
};
pub use run::{Durability, KeepAdministrator, Options, Start, run};
pub use signals::StopSignals;
pub use trust::TrustError;
pub use trust::operator::{CertificateFileError, CertificateFiles};
