//! The door of the algorithms to the world over TCP: connections, calls in flight, write queues.
//!
//! Up to [`listener`] bytes only: what a message means is the codec's business. From the bottom up:
//!
//! | module | holds |
//! |---|---|
//! | [`pool`] | receive buffers that come back when the last reader drops them |
//! | [`message`] | what is sent and what arrives: a small body and a payload of shared segments |
//! | [`connection`] | one TCP connection: a bounded queue written in one go, many frames per read |
//! | [`handshake`] | who is on the other side, before the first frame |
//! | [`peer`] | a client's view of one server: calls in flight, reconnects, resends |
//! | [`listener`] | a server's view of its clients: accepting, limits, replies |
//! | [`network`] | all servers of a cluster, by id |
//! | [`metrics`] | what the calls of a whole process cost |
//! | [`trace`] | which span a request is sent for |
//! | [`outside`] | who can be asked to decide outside the cluster |
//! | [`timed`] | streams whose writes end when the other end reads nothing |
//! | [`env`](mod@env) | the quorum call: [`areo_core::env::Env`] over peers |
//!
//! Everything here belongs to one thread: a current-thread runtime is a shard, its connections are tasks of a
//! [`LocalSet`](tokio::task::LocalSet) or a local runtime, and there is no lock on the path of a small call, and of
//! atomics only counters with one writer. Work happens where the bytes are: a reply is counted on the task that read it, and what
//! that makes the caller send goes out with all that is queued by then, in one system call.

#![allow(
    clippy::missing_panics_doc,
    reason = "the asserts state invariants of this code; no input reaches them"
)]

pub mod connection;
pub mod encryption;
pub mod env;
pub mod fuzzing;
pub mod handshake;
pub mod listener;
pub mod message;
pub mod metrics;
pub mod network;
pub mod outside;
pub mod peer;
pub mod pool;
pub mod presence;
mod sockets;
pub mod timed;
pub mod trace;

pub use areo_wire::checksum::crc32c;
pub use areo_wire::frame::TraceContext;
pub use areo_wire::hello::Role;
pub use connection::{CloseReason, Connection, SendError};
pub use encryption::{Bearer, Binding, Origin, Tls};
pub use env::Counts;
pub use listener::{
    Allowance, Allowances, Class, Identity, Listener, ListenerConfig, Places, Rate, Responder,
    Service,
};
pub use message::{Body, Incoming, Outgoing, Segment};
pub use peer::{
    Answer, Call, CallKey, CallRefusal, Peer, PeerConfig, PeerState, Sink, Status, Traffic,
};
pub use pool::Pool;
pub use sockets::prepare_accepted;
