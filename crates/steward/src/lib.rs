//! The rules by which a cluster is reconfigured without an operator: signals in, intents out.
//!
//! ```text
//!   servers                      an instance of the autopilot, any number of them
//!  +--------+  samples   +---------+  records  +----------+  intents  +--------+  one change
//!  | peers  |----------->| History |---------->| evaluate |---------->| guards |------------> `server replace`
//!  | status |            | smooths |           |  rules   |           |        |
//!  +--------+            +---------+           +----^-----+           +---^----+
//!                                                   |                     |
//!                                              +----+---------------------+----+
//!                                              |   journal: intents, lease     |  objects of the cluster, one winner each
//!                                              +-------------------------------+
//! ```
//!
//! Everything here is a function of its parameters: no sockets, files, clocks or threads. The times are milliseconds and parameters. So a test or a
//! simulation runs what a process runs.
//!
//! | module | |
//! |---|---|
//! | [`signal`] | the registry of signals, and how each is smoothed; [`signal::History`] makes records of samples |
//! | [`records`] | the state of servers and domains that rules judge |
//! | [`prediction`] | the probability that a server is lost, by a model whose weights are data |
//! | [`rules`] | thresholds and sentences as data, built in and overridden by a file |
//! | [`rule`] | the evaluator: records, journal and time give intents |
//! | [`guard`] | reasons not to carry an intent out, judged again when it is about to be |
//! | [`instance`] | one look at a cluster after the other, and the work that follows from it; the cluster is a trait |
//! | [`intent`] | an intent: its reasons, its change, its state |
//! | [`request`] | what an operator asks of an intent |
//! | [`journal`] | the intents of the cluster, the pause switch, and the lease of the one instance that acts |
//!
//! # Whose view counts
//!
//! A server is dead if a majority of the *other* servers does not reach it. The instance that evaluates has a view of its own, which
//! counts for nothing: an instance that has lost its network would see every server dead.
//!
//! # Two instances
//!
//! An intent and each of its states are written with one winner, so that two instances never begin one change twice. The lease keeps the second instance from
//! trying. It compares no clocks of two machines: [`journal::LeaseWatch`].

mod explanation;
pub mod guard;
pub mod instance;
pub mod intent;
pub mod journal;
pub mod prediction;
pub mod records;
pub mod request;
pub mod rule;
pub mod rules;
pub mod signal;

#[cfg(test)]
mod testing;
