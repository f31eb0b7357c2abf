//! Whole clusters in one thread: real servers, a network and disks of the tests (`world`), which do what a script says or
//! what a seed draws.

#![allow(unreachable_pub)] // modules of a test have no outside

mod contract;
mod files;
mod history;
mod large;
mod linearizable;
mod paper;
mod world;
