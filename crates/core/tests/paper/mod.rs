//! The claims of the papers and the rules of the specification: one test for each, named after it. The servers are
//! real, the network does what the test says (`world`).

mod ballot_floors;
mod baselines;
mod becoming_conditional;
mod casss;
mod ceasing_conditional;
mod cells;
mod chains;
mod coded_storage;
mod conditional;
mod conditional_cap;
mod contention;
mod coverable;
mod damage;
mod durability;
mod erasure;
mod incarnations;
mod labels;
mod levels;
mod listing;
mod memory;
mod names;
mod numbers;
mod outcomes;
mod place;
pub mod reconfiguration;
pub mod redundancy;
mod refusals;
mod replication;
mod restart;
mod room;
mod trimming;
mod unreadable;
mod unsynced;
