//! Clusters of real server processes, for measuring and for breaking.
//!
//! [`nemesis`](run()) starts `areo server` processes on loopback, lets clients read, write and delete through a proxy
//! while processes are killed, links cut and disks filled, mends everything, and has the recorded history judged.
//!
//! | module | what |
//! |---|---|
//! | `cluster` | server processes in a directory of their own: started, killed, stopped, watched |
//! | `process` | one process of them, or of another store: started, signalled, killed with its owner |
//! | `proxy` | between callers and servers: holds, delays, slows, cuts and resets links |
//! | `namespace` | servers in network namespaces of their own, with packets dropped by nftables; needs root |
//! | `disk` | a small disk for one server, which can be filled; needs root |
//! | `trouble` | what can be done to a cluster, and in which order, from a seed |
//! | `nemesis` | does it |
//! | `workload` | what clients of the nemesis work on |
//! | `run` | all of them together |
//! | `report` | what came of it |
//! | `error` | why nothing came of it |
//! | `setup` | servers that serve, and a domain full of objects, to be measured |
//! | `availability` | measures what they notice of servers that die |
//! | `repair` | measures how servers repair themselves, are verified and replaced, and what readers and writers notice |
//! | `paper` | repeats the papers' experiments |
//! | `reconfig` | measures what readers and writers notice of reconfigurations, and what these cost |
//! | `failures` | operations that failed, and the first of them |
//! | `completions` | successes over time |
//! | `target` | stores that can be measured: Areo, and what others implement for theirs |
//! | `foreign` | server programs of other stores |
//! | `etcd` | members of etcd, which decides in an experiment and is measured as a store |
//! | `load` | the load generator: clients that put and get, with and without what disturbs them, and what that took |
//! | `peers` | the stores side by side |
//! | `wide_area` | what puts and gets take when servers are far apart, in round trips |
//! | `limits` | what the machine can do at most |
//! | `words` | enums that are words of command lines and reports |
//! | `system` | figures of the operating system about processes and the machine |

pub mod availability;
mod clock;
pub mod cluster;
mod completions;
mod disk;
mod error;
pub mod etcd;
mod failures;
pub mod foreign;
pub mod limits;
pub mod load;
mod namespace;
mod nemesis;
pub mod paper;
pub mod peers;
mod process;
mod proxy;
mod random;
pub mod reconfig;
pub mod repair;
mod report;
mod run;
mod setup;
mod spread;
pub mod system;
pub mod target;
mod trouble;
pub mod wide_area;
mod words;
mod workload;

pub use error::RunError;
pub use nemesis::KeyRequests;
pub use report::{Operations, Report, TroubleCount};
pub use run::{Options, Progress, run};
pub use setup::Setup;
pub use trouble::Trouble;
