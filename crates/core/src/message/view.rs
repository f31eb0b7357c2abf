//! The view of a server: the other servers as it reaches them, and its disk.

use crate::config::ServerId;

/// The view of a server. Its process has it, beside the algorithms: it is there while the server does not serve.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ServerView {
    /// The servers that it has asked something, by id: at most [`crate::limits::STANDINGS`] of them.
    pub peers: Vec<PeerView>,
    /// Syncs of its store since its start.
    pub syncs: u64,
    /// Microseconds that all of them took.
    pub sync_us: u64,
    /// Milliseconds for which the sync under way has been waiting for the disk. `None`: none is under way.
    pub sync_running_ms: Option<u64>,
    /// Bytes of the file system with its data, less those that are kept for the machine's administrator; 0: not known.
    pub disk_bytes: u64,
    /// Bytes that are left there to the server.
    pub disk_free_bytes: u64,
    /// Elements that did not match their checksums, since its start.
    pub corrupted: u64,
}

/// Another server, as a server reaches it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PeerView {
    /// The id of the other server.
    pub server: ServerId,
    /// A connection with it is open, and it answers.
    pub is_connected: bool,
}
