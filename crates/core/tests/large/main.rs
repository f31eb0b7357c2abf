//! Large objects: values in blocks under one manifest, and the sweeping of blocks that no object needs (`algorithms.md`
//! 10.6). The servers are real, the network does what the test says or what the seed draws.

#![allow(unreachable_pub)] // modules of a test have no outside

#[path = "../linearizable/history.rs"]
#[allow(dead_code)] // a part of it is for others
mod history;
#[path = "../world/mod.rs"]
mod world;

mod left;
mod moving;
mod race;
mod steps;
mod uploader;
