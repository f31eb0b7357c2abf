//! Consensus: decided-once cells, kept by the members of a configuration (`algorithms.md` `[X-16]`, `[X-20]`).
//!
//! What must have one winner is decided here and never by a tagged write: the first configuration of a domain now;
//! further configurations, the fate of an upload and conditional writes later. [`paxos`] needs no log and no leader.

pub mod paxos;
