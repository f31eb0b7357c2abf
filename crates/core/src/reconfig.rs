//! Reconfiguration: the sequence of a domain's configurations, and how one is appended to it.
//!
//! | file | what |
//! |---|---|
//! | [`sequence`] | going from one configuration to the next: what every operation does |
//! | [`ares`] | appending a configuration: decide, announce, transfer, finalize, collect (`docs/spec` 3.3, 3.4) |
//! | [`transfer`] | bringing the state of a domain into a configuration |

pub mod ares;
pub mod sequence;
pub mod transfer;
