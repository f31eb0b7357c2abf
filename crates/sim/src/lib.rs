//! A seeded simulation of a cluster with everything that can go wrong.
//!
//! The clients' futures, the servers' state machines, the codec and the store are those of production; the network, the
//! disks and time are not. A run is a function of its seed: the same seed twice gives the same hash of everything that
//! happened, so that whatever is found can be found again.
//!
//! A run has two phases. In the first, clients work while messages are lost, delayed and doubled, links cut, processes
//! killed and stopped, disks torn, slow, full and rotten; invariants are checked at every step and every read and write
//! is judged as it ends. Then everything is mended, and every operation that begins from then on must succeed.
//!
//! [`explore`] is another thing: no seed, no time, no disks, but every order in which messages can arrive, of small cases.
//!
//! Reading order: [`run`](run()), [`fault`], `workload`, `world`, `invariant`, `history`. How to use it, reproduce a seed
//! and add a fault or an invariant stands in `docs/simulator.md`.

mod cluster;
pub mod explore;
pub mod fault;
mod history;
mod invariant;
pub mod measure;
mod opinion;
mod options;
mod random;
mod run;
mod shrink;
mod truth;
mod workload;
mod world;

pub use options::{Options, Scheduler, Work};
pub use run::{Outcome, Report, replay, restricted, run};
pub use shrink::{RUNS as SHRINK_RUNS, Shrunk, concerning, shrink};
