//! Why a server does not start, or stops by itself.

use std::fmt;
use std::path::PathBuf;
use std::{error, io};

use areo_core::config::ServerId;
use areo_core::limits;
use areo_core::manager::InvalidServerName;
use areo_core::message::ServerRecord;
use areo_core::tlv::TlvError;
use areo_node::NodeError;
use areo_store::{DirectoryError, IdentityError, OpenError};

/// Why a server does not start, or stopped by itself.
#[derive(Debug)]
pub enum ServeError {
    /// The data directory cannot be used.
    Directory(DirectoryError),
    /// The identity cannot be read or written.
    IdentityFile(IdentityError),
    /// The identity makes no sense.
    Identity {
        /// The data directory.
        path: PathBuf,
        /// What is wrong with it.
        error: TlvError,
    },
    /// The directory belongs to a server already.
    AlreadyInitialised {
        /// The data directory.
        path: PathBuf,
    },
    /// The directory belongs to no server, and it was not said how to make one.
    NotInitialised {
        /// The data directory.
        path: PathBuf,
    },
    /// The directory belongs to a server that keeps nothing on disk, and that was started before (`[X-12 memory-identity]`).
    MemoryRestart {
        /// The data directory.
        path: PathBuf,
    },
    /// The directory was made for the other durability.
    Durability {
        /// The data directory.
        path: PathBuf,
        /// Its server keeps nothing on disk.
        memory: bool,
    },
    /// The data cannot be opened.
    Open(OpenError),
    /// An address is not one, or cannot be bound.
    Listen {
        /// The address.
        address: String,
        /// What the system says.
        source: io::Error,
    },
    /// The address can be reached from other machines, and there is no authentication.
    NotLoopback {
        /// The address.
        address: String,
    },
    /// No address to join at answered.
    Join {
        /// Each address with what came of it.
        attempts: Vec<(String, String)>,
    },
    /// The name that was chosen cannot be one.
    InvalidName(InvalidServerName),
    /// The name that was chosen is another server's.
    NameTaken {
        /// The name.
        name: String,
        /// Whose it is.
        by: ServerId,
    },
    /// A later incarnation of this server is registered: the directory is a copy of an older state, or runs elsewhere.
    Outdated {
        /// The data directory.
        path: PathBuf,
        /// The incarnation that this start would be.
        incarnation: u64,
        /// The incarnation that is registered.
        registered: u64,
    },
    /// The cluster knows as many servers as it can, and this is another one.
    RegisterFull,
    /// The store of this directory cannot go on.
    Store {
        /// The data directory.
        path: PathBuf,
        /// Why.
        error: NodeError,
    },
    /// The system refused something else.
    System {
        /// What was being done.
        operation: &'static str,
        /// What the system says.
        source: io::Error,
    },
}

impl fmt::Display for ServeError {
    #[expect(clippy::too_many_lines, reason = "one sentence for each variant")]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ServeError::Directory(error) => error.fmt(f),
            ServeError::IdentityFile(error) => error.fmt(f),
            ServeError::Open(error) => error.fmt(f),
            ServeError::Identity { path, error } => {
                write!(
                    f,
                    "the identity in {} cannot be read: {error}",
                    path.display()
                )
            }
            ServeError::AlreadyInitialised { path } => {
                write!(
                    f,
                    "{} belongs to a server already: choose a new directory",
                    path.display()
                )
            }
            ServeError::NotInitialised { path } => write!(
                f,
                "{} belongs to no server yet: say --init for a new cluster, or --join with the address of a server",
                path.display()
            ),
            ServeError::MemoryRestart { path } => write!(
                f,
                "the server in {} keeps nothing on disk, so it cannot come back: start a new one in a new directory",
                path.display()
            ),
            ServeError::Durability { path, memory } => {
                let (made, other) = if *memory {
                    ("memory", "fsync")
                } else {
                    ("fsync", "memory")
                };
                write!(
                    f,
                    "{} was made with --durability {made}: start it so, or use a new directory for {other}",
                    path.display()
                )
            }
            ServeError::Listen { address, source } if source.kind() == io::ErrorKind::AddrInUse => {
                write!(
                    f,
                    "{address} is in use: another program listens there; choose another port"
                )
            }
            ServeError::Listen { address, source } => {
                write!(f, "cannot listen on {address}: {source}")
            }
            ServeError::NotLoopback { address } => write!(
                f,
                "{address} can be reached from other machines and no authentication is configured: \
                 listen on 127.0.0.1, or say --insecure"
            ),
            ServeError::Join { attempts } => {
                let outcome =
                    |(address, outcome): &(String, String)| format!("{address}: {outcome}");
                let outcomes: Vec<String> = attempts.iter().map(outcome).collect();
                write!(f, "no server to join: {}", outcomes.join("; "))
            }
            ServeError::InvalidName(error) => error.fmt(f),
            ServeError::NameTaken { name, by } => write!(
                f,
                "the name '{name}' belongs to server {by} of this cluster: choose another one, or leave --name out and get \
                 the next free one"
            ),
            ServeError::Outdated {
                path, registered, ..
            } if ServerRecord::is_last(*registered) => write!(
                f,
                "the server of {} was forgotten by its cluster: start a new server in an empty directory",
                path.display()
            ),
            ServeError::Outdated {
                path,
                incarnation,
                registered,
            } => write!(
                f,
                "{} is a copy of an older state: start {registered} of this server is registered, this would be start \
                 {incarnation}; use the newer directory, or start a new server in an empty one",
                path.display()
            ),
            ServeError::RegisterFull => write!(
                f,
                "the cluster knows {} servers, as many as it can, and this would be another one: start a server in one of their data directories",
                limits::REGISTERED_SERVERS
            ),
            ServeError::Store { path, error } => {
                write!(f, "the store in {} cannot go on: {error}", path.display())
            }
            ServeError::System { operation, source } => write!(f, "{operation}: {source}"),
        }
    }
}

impl error::Error for ServeError {}

impl ServeError {
    /// The exit code of a process that ends with it.
    pub fn exit_code(&self) -> u8 {
        match self {
            ServeError::NotInitialised { .. }
            | ServeError::InvalidName(_)
            | ServeError::NameTaken { .. }
            | ServeError::NotLoopback { .. }
            | ServeError::Durability { .. } => 2,
            ServeError::Identity { .. }
            | ServeError::IdentityFile(IdentityError::Damaged { .. })
            | ServeError::Outdated { .. } => 7,
            _ => 1,
        }
    }
}
