//! Reconfiguration: the sequence of a domain's configurations, and how one is appended to it.
//!
//! | file | what |
//! |---|---|
//! | [`walk`] | going along the sequence: what every operation does |
//! | [`sequence`] | what a client remembers of it; reading and writing pointers |
//! | [`ares`] | appending a configuration: decide, announce, transfer, finalize, collect (`docs/spec` 3.3, 3.4) |
//! | [`change`] | what is to be different, and what two changes come to |
//! | [`merged`] | changes of several reconfigurers at once, merged (`docs/spec` `[A-14 merged-changes]`) |
//! | `lattice` | the same in a domain whose configurations are a lattice: Rambo, L-Rambo, SM, SpSn, DynaStore (`docs/spec` 6.3, 6.5, 6.6) |
//! | [`leading`] | the leader of L-Rambo, and the wait of the other reconfigurers for it |
//! | [`transfer`] | bringing the state of a domain into a configuration |

pub mod ares;
pub mod change;
mod lattice;
pub mod leading;
pub mod merged;
pub mod sequence;
pub mod transfer;
pub mod walk;
