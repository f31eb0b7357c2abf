//! Large objects: values in blocks under one manifest, and the sweeping of blocks that no object needs (`docs/spec`
//! 10.6). The servers are real, the network does what the test says or what the seed draws.

mod becoming;
mod ceasing;
mod cells;
mod left;
mod meeting;
mod moving;
mod parts;
mod ranked;
mod removal;
mod slow;
mod steps;
mod tombstones;
mod uploader;
