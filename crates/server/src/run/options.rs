//! The options of a server's start.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use areo_core::message::Program;
use areo_net::outside::DecideOutside;
use areo_telemetry::Recorder;
use areo_trust::token::JoinToken;

use crate::identity::ClusterIdentity;
use crate::trust::operator::CertificateFiles;

/// The place of acknowledged writes: disk or memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// On disk, and synced before the acknowledgement.
    Fsync,
    /// In the memory of the process.
    Memory,
}

/// The treatment of a directory that has no identity yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Start {
    /// It must have one.
    Existing,
    /// A new cluster, whose root domain this server holds alone.
    Init {
        /// It stays so until people change it: otherwise it grows when servers join.
        fixed_root: bool,
        /// Keeps what its administrator needs, if the cluster has keys.
        administrator: KeepAdministrator,
    },
    /// A new server of the cluster that one of these addresses belongs to.
    Join {
        /// Addresses of servers of the cluster.
        seeds: Vec<String>,
        /// Lets this server in. `None`: the cluster has no keys.
        token: Option<JoinToken>,
    },
}

/// Keeps everything by which the administrator of a new cluster proves itself; called once, before the cluster can be used. The error is a
/// reason for people.
#[derive(Clone)]
pub struct KeepAdministrator(Arc<KeepingAdministrator>);

type KeepingAdministrator = dyn Fn(&ClusterIdentity) -> Result<(), String> + Send + Sync;

impl KeepAdministrator {
    /// Keeps everything by which the administrator of a new cluster proves itself with this function.
    pub fn new(
        keep: impl Fn(&ClusterIdentity) -> Result<(), String> + Send + Sync + 'static,
    ) -> KeepAdministrator {
        KeepAdministrator(Arc::new(keep))
    }

    pub(super) fn keep(&self, administrator: &ClusterIdentity) -> Result<(), String> {
        (self.0)(administrator)
    }
}

impl fmt::Debug for KeepAdministrator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeepAdministrator")
    }
}

impl PartialEq for KeepAdministrator {
    fn eq(&self, other: &KeepAdministrator) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for KeepAdministrator {}

/// The options of a server's start.
#[derive(Clone, Debug)]
pub struct Options {
    /// Path of the data directory.
    pub data: PathBuf,
    /// The program that runs the server.
    pub program: Program,
    /// The host and port to listen on.
    pub listen: String,
    /// The address that is advertised to others, if it is another one than `listen`.
    pub advertise: Option<String>,
    /// The address that the admin port listens on.
    pub admin: String,
    /// For a directory without an identity.
    pub start: Start,
    /// The place of acknowledged writes: disk or memory.
    pub durability: Durability,
    /// The name for people of a new server; without it a new cluster's first one is `s1`, and one that joins gets the next free
    /// name.
    pub name: Option<String>,
    /// The largest value that it takes, in bytes.
    pub max_value_bytes: u64,
    /// Bytes of objects that it reads in a second, at most, to repair itself; 0: it does not.
    pub repair_bytes_per_s: u64,
    /// Bytes of its records that it verifies in a second, at most; 0: none but those that are read.
    pub scrub_bytes_per_s: u64,
    /// A new cluster has keys, certificates and encrypted connections also where only this machine can reach it.
    pub tls: bool,
    /// The files with a certificate of the operator's own PKI, which this server shows instead of that of the cluster's CA.
    pub certificate: Option<CertificateFiles>,
    /// The recorder of watched operations; shown on the admin port.
    pub recorder: Recorder,
    /// Addresses of other servers, to find the root domain by if those known from before have moved.
    pub seeds: Vec<String>,
    /// The time for which all domains must be seen to work without this server, if its log lacks records, before another one takes
    /// its place.
    pub replaced_after: Duration,
    /// Asks a service outside the cluster which configuration of a domain comes next, where a domain has one decide.
    pub decide_outside: Option<DecideOutside>,
}
