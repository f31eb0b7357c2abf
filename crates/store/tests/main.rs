//! The log of a server: its files, crashes, rot and space. One program: linking one for each file takes longer than running them.

#![allow(clippy::unwrap_used)] // Helpers of tests, too.

mod common;
mod crash;
mod exhausted;
mod files;
mod fuzz;
mod golden;
mod incomplete;
mod missing;
mod recovery;
mod rot;
mod space;
