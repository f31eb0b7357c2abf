//! End to end: real processes, real files, real crashes.
//!
//! Every test starts its own cluster with `areo up` in a directory of its own, and does what a user does. Nothing here
//! asserts how long something takes; the deadlines that are given to commands are asserted by their exit codes.

mod bad_input;
mod bench_availability;
mod bench_paper;
mod bench_peers;
mod bench_reconfig;
mod bench_wide_area;
mod check;
mod cluster;
mod crashes;
mod disks;
mod file_history;
mod files;
mod if_version;
mod joining;
mod large;
mod lifecycle;
mod logs;
mod metrics;
mod nemesis;
mod otlp;
mod readme;
mod reconfig;
mod sim;
mod trace;
mod values;
mod waiting;
