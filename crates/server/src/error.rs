//! Why a server does not start, or stops by itself.

use std::io;
use std::path::{Path, PathBuf};

use areo_core::config::ServerId;
use areo_core::limits;
use areo_core::manager::InvalidServerName;
use areo_core::message::{Program, ServerRecord};
use areo_core::tlv::TlvError;
use areo_node::NodeError;
use areo_store::{DirectoryError, IdentityError, OpenError};
use areo_trust::authority::AuthorityError;

use crate::trust::TrustError;
use crate::trust::operator::CertificateFileError;

/// Why a server does not start, or stopped by itself.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The data directory cannot be used.
    #[error("{0}")]
    Directory(DirectoryError),
    /// The identity cannot be read or written.
    #[error("{0}")]
    IdentityFile(IdentityError),
    /// The identity makes no sense.
    #[error("the identity in {} cannot be read: {error}", .path.display())]
    Identity {
        path: PathBuf,
        /// The reason why it cannot be used.
        error: TlvError,
    },
    /// The keys of the server cannot be read or made.
    #[error("{}: {error}", .path.display())]
    Trust { path: PathBuf, error: TrustError },
    /// The files with the certificate of the operator cannot be used.
    #[error("{0}")]
    Certificate(CertificateFileError),
    /// The key of the server cannot be made.
    #[error("{error}")]
    NoKey { error: AuthorityError },
    /// A server of the cluster does not let this one in.
    #[error("{address} does not let this server in: {sentence}")]
    NotLetIn {
        /// The address of that server.
        address: String,
        /// The reason, and the remedy.
        sentence: String,
    },
    /// A server that was to be joined takes this one for a stranger, or is taken for one.
    #[error("cannot join at {address}: {sentence}")]
    NotJoined {
        /// The address of that server.
        address: String,
        /// The reason, and the remedy.
        sentence: String,
    },
    /// The key of the administrator of a new cluster cannot be written down.
    #[error("the key of the administrator cannot be kept: {reason}")]
    Administrator { reason: String },
    /// The directory has the log of a server, and nothing says which one.
    #[error("{} has the log of a server, and its file IDENTITY is missing: put it back, or choose another directory", .path.display())]
    NoIdentity { path: PathBuf },
    /// The directory belongs to a server already.
    #[error("{} belongs to a server already: choose a new directory", .path.display())]
    AlreadyInitialised { path: PathBuf },
    /// The directory belongs to no server, and it was not said how to make one.
    #[error("{} belongs to no server yet: say --init for a new cluster, or --join with the address of a server", .path.display())]
    NotInitialised { path: PathBuf },
    /// The directory belongs to a server that keeps nothing on disk, and that was started before (`[X-12 memory-identity]`).
    #[error("the server in {} keeps nothing on disk, so it cannot come back: start a new one in a new directory", .path.display())]
    MemoryRestart { path: PathBuf },
    /// The directory was made for the other durability.
    #[error("{} was made with --durability {}: start it so, or use a new directory for {}", .path.display(), durability(*.memory), durability(!.memory))]
    Durability {
        path: PathBuf,
        /// Its server keeps nothing on disk.
        memory: bool,
    },
    /// The directory holds a server of another name.
    #[error("{} holds server '{name}', which keeps its name: start it without --name {wanted}, or use a new directory for '{wanted}'", .path.display())]
    OtherName {
        path: PathBuf,
        /// The name of its server.
        name: String,
        /// The name that was given.
        wanted: String,
    },
    /// The data cannot be opened.
    #[error("{0}")]
    Open(OpenError),
    /// An address is not one, or cannot be bound.
    #[error("{}", not_listening(.address, .source))]
    Listen {
        address: String,
        /// The error of the system.
        source: io::Error,
    },
    /// The address can be reached from other machines, and nothing there would ask for a key.
    #[error(
        "{address} can be reached from other machines, and the cluster of this server has no keys: listen on 127.0.0.1, join a cluster that \
         has keys (--join, with the token of `areo token create`), or begin one that other machines reach (`areo server --init`)"
    )]
    NotLoopback { address: String },
    /// It listens at every address, and it is not known at which of them others find it.
    #[error(
        "{address} is every address of this machine, and others need one: say at which they reach this server, --advertise HOST:PORT"
    )]
    NotAnAddress { address: String },
    /// The address to advertise is none that others could reach.
    #[error("'{address}' is no address at which others reach this server: {reason}")]
    NotAdvertised {
        address: String,
        /// The reason why others could not reach it.
        reason: &'static str,
    },
    /// A server of another cluster answers at an address that was to be joined.
    #[error(
        "{address} is a server of cluster {found:032x}, and this one is to be of cluster {own:032x}: name servers of one cluster (--join)"
    )]
    OtherCluster {
        address: String,
        /// Id of the cluster that answered there.
        found: u128,
        /// The cluster of the data directory, or of the first address that answered.
        own: u128,
    },
    /// No address to join at answered.
    #[error("no server to join: {}", outcomes(.attempts))]
    Join {
        /// Each address with the result of asking there.
        attempts: Vec<(String, String)>,
    },
    /// The name that was chosen cannot be one.
    #[error("{0}")]
    InvalidName(InvalidServerName),
    /// The name that was chosen is another server's.
    #[error(
        "the name '{name}' belongs to server {by} of this cluster: choose another one, or leave --name out and get the next free one"
    )]
    NameTaken {
        name: String,
        /// The server that has the name.
        by: ServerId,
    },
    /// A later incarnation of this server is registered: the directory is a copy of an older state, or runs elsewhere.
    #[error("{}", outdated(.path, (*.incarnation, *.registered)))]
    Outdated {
        path: PathBuf,
        /// The incarnation that this start would be.
        incarnation: u64,
        /// The incarnation that is registered.
        registered: u64,
    },
    /// Another process answers as this server at its registered address.
    #[error(
        "{} is a copy of the directory of a server that runs: a process answers as this server at {address}; leave that one \
         running and remove the copy, or stop it first if the server is to move here", .path.display()
    )]
    Occupied {
        path: PathBuf,
        /// The address at which the other process answers.
        address: String,
    },
    /// The log ends before the position that the last start registered: the directory is a copy of an older state, of
    /// one start.
    #[error(
        "{} is a copy of an older state: its log ends at batch {position}, and this server had written batch {registered}; use \
         the newer directory, or start a new server in an empty one", .path.display()
    )]
    Behind {
        path: PathBuf,
        /// The number of the last batch of its log.
        position: u64,
        /// The number of the batch that the server had registered.
        registered: u64,
    },
    /// While this process ran, or stood still, a later start of its server was registered.
    #[error("{}", superseded(.path, *.registered))]
    Superseded {
        path: PathBuf,
        /// The incarnation that is registered.
        registered: u64,
    },
    /// The cluster knows as many servers as it can, and this is another one.
    #[error(
        "the cluster knows {} servers, as many as it can, and this would be another one: start a server in one of their data directories",
        limits::REGISTERED_SERVERS
    )]
    RegisterFull,
    /// The program is below the level that the cluster requires (`[X-46 cluster-level]`).
    #[error(
        "this program is areo {} and knows levels up to {}, and the cluster is being finalized, or is, up to a higher one: start the version \
         of its other servers (`areo status --json` shows versions and levels), or a later one",
        .program.version, .program.level
    )]
    OldProgram {
        /// The program of this process.
        program: Program,
    },
    /// The store of this directory cannot go on.
    #[error("the store in {} cannot go on: {error}", .path.display())]
    Store { path: PathBuf, error: NodeError },
    /// The system refused something else.
    #[error("{operation}: {source}")]
    System {
        /// The action that failed.
        operation: &'static str,
        /// The error of the system.
        source: io::Error,
    },
}

fn durability(memory: bool) -> &'static str {
    if memory { "memory" } else { "fsync" }
}

fn not_listening(address: &str, source: &io::Error) -> String {
    match source.kind() {
        io::ErrorKind::AddrInUse => {
            format!("{address} is in use: another program listens there; choose another port")
        }
        _ => format!("cannot listen on {address}: {source}"),
    }
}

fn outcomes(attempts: &[(String, String)]) -> String {
    let outcome = |(address, outcome): &(String, String)| format!("{address}: {outcome}");
    let outcomes: Vec<String> = attempts.iter().map(outcome).collect();
    outcomes.join("; ")
}

fn outdated(path: &Path, (incarnation, registered): (u64, u64)) -> String {
    let path = path.display();
    match ServerRecord::is_last(registered) {
        true => format!(
            "the server of {path} was forgotten by its cluster: start a new server in an empty directory"
        ),
        false => format!(
            "{path} is a copy of an older state: start {registered} of this server is registered, this would be start \
             {incarnation}; use the newer directory, or start a new server in an empty one"
        ),
    }
}

fn superseded(path: &Path, registered: u64) -> String {
    let path = path.display();
    match ServerRecord::is_last(registered) {
        true => format!(
            "the server of {path} was forgotten by its cluster while it ran: start a new server in an empty directory"
        ),
        false => format!(
            "the server of {path} was started elsewhere, as start {registered}, while this process did not answer: this process ends; \
             use the directory of the later start"
        ),
    }
}

impl ServeError {
    /// Another process uses the directory, and may end.
    pub fn is_locked(&self) -> bool {
        matches!(self, ServeError::Directory(DirectoryError::Locked { .. }))
    }

    /// The exit code of a process that ends with it.
    pub fn exit_code(&self) -> u8 {
        match self {
            ServeError::NotInitialised { .. }
            | ServeError::InvalidName(_)
            | ServeError::NameTaken { .. }
            | ServeError::NotLoopback { .. }
            | ServeError::NotAnAddress { .. }
            | ServeError::NotAdvertised { .. }
            | ServeError::OtherCluster { .. }
            | ServeError::OtherName { .. }
            | ServeError::Durability { .. } => 2,
            ServeError::NotLetIn { .. } | ServeError::NotJoined { .. } => 6,
            ServeError::Certificate(error) => match error.is_refusal() {
                true => 6,
                false => 2,
            },
            ServeError::Identity { .. }
            | ServeError::Trust { .. }
            | ServeError::NoIdentity { .. }
            | ServeError::IdentityFile(IdentityError::Damaged { .. })
            | ServeError::Outdated { .. }
            | ServeError::Occupied { .. }
            | ServeError::Behind { .. }
            | ServeError::Superseded { .. } => 7,
            _ => 1,
        }
    }
}
