//! The input of a node.

use areo_core::instant::Instant;
use areo_core::message::{Note, Request};

/// A message that a node takes in.
pub enum Job<C> {
    /// A request, answered once.
    Request {
        request: Request,
        /// The receiver of the reply.
        caller: C,
        /// After this the caller does not wait any more.
        deadline: Option<Instant>,
    },
    /// A note, which is not answered.
    Note(Note),
}
