//! The loop of a server, and the only one: `server` drives it with sockets, a clock and a thread that syncs, `sim` in virtual
//! time over disks that lie.
//!
//! | file | what it holds |
//! |---|---|
//! | `node` | inbox, turns, group commit, release, housekeeping |
//! | `room` | how much room requests need in the store |
//! | `keep` | where the records are |
//! | `watch` | metrics, traces and invariants, looking on |

mod error;
mod job;
mod keep;
mod node;
mod room;
mod watch;

pub use error::NodeError;
pub use job::Job;
pub use keep::{Durable, Keep, Purpose, may_be_replaced, may_start};
pub use node::{
    Node, OutgoingNote, ScrubCursor, ScrubProgress, Sizes, Turn, UPKEEP_PERIOD, Upkeep,
};
pub use watch::Watch;
