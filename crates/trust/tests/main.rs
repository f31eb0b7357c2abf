//! Trust in a cluster: its registry, what servers answer, and any bytes. One program: linking one for each file takes longer than running them.

#[path = "../../core/tests/world/mod.rs"]
#[allow(unreachable_pub)] // there it is part of a tree of modules
mod world;

mod answers;
mod fuzz;
mod registry;
