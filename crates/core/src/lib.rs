//! The papers, pure.
//!
//! A client algorithm is a straight-line `async` function over exactly one awaitable primitive, the quorum call
//! ([`env::Env::gather`]); a server is a synchronous state machine without IO ([`server::Server`]); what joins them is a
//! pure [`gather::Tally`]. Nothing here names a runtime, a socket, a file, a clock or a source of randomness, so the same
//! source runs over TCP, in a simulation and in an exhaustive exploration.
//!
//! ```text
//!        manager     named objects, domains, servers        what a user asks for
//!           |
//!       fragment     files as lists of blocks              divide, identify
//!           |
//!          dsm       read, write over configurations        atomic and coverable objects
//!           |
//!       reconfig     from one configuration to the next     sequence, ares, transfer
//!           |
//!    dap ---+--- consensus                                  one configuration: abd, ec | paxos
//!           |
//!         gather     one quorum call, one tally             the only way to talk to servers
//!           |
//!          env       the door to the world
//! -----------------------------------------------------------------------------------------------
//!        shard       a batch of steps: persist once, then release the replies
//!           |
//!        server      one server as a state machine: objects, cells, registry, pointers
//! -----------------------------------------------------------------------------------------------
//!   tag  object  element  config  pointer  quorums  message  tally  tlv  hash  limits  timing  error     the ground
//! ```
//!
//! Reading order: [`tag`], [`config`], [`quorums`], [`message`], [`tally`], [`gather`], [`dap::abd`], [`dap::ec`],
//! [`consensus::paxos`], [`mod@pointer`], [`reconfig::walk`], [`dsm::atomic`], [`manager`]; then [`server`] and [`shard`].

// Algorithm files map the pseudocode to functions, public or not.
#![allow(rustdoc::private_intra_doc_links)]

// Unit tests of kinds run in the clusters of the integration tests.
#[cfg(test)]
extern crate self as areo_core;
#[cfg(test)]
#[allow(unreachable_pub)] // a module of tests has no outside
#[path = "../tests/world/mod.rs"]
mod world;

pub mod config;
pub mod consensus;
pub mod dap;
pub mod dsm;
pub mod element;
pub mod env;
pub mod error;
pub mod fragment;
pub mod gather;
pub mod hash;
pub mod instant;
pub mod limits;
pub mod manager;
pub mod message;
pub mod object;
pub mod pointer;
pub mod quorums;
pub mod reconfig;
pub mod server;
pub mod shard;
pub mod span;
pub mod starts;
pub mod tag;
pub mod tally;
pub mod timing;
pub mod tlv;
