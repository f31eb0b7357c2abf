//! The trace that a request belongs to: the program that gives spans an identity tells it.

use areo_wire::frame::TraceContext;
use tracing::Span;

/// Returns the identity of a span; `None`: it belongs to no trace.
pub type TraceSource = fn(&Span) -> Option<TraceContext>;
