//! Which span a request is sent for. Whoever gives spans an identity says here how to ask for it; without that, requests
//! belong to no trace.

use areo_wire::frame::TraceContext;
use std::sync::OnceLock;
use tracing::Span;

static SOURCE: OnceLock<fn(&Span) -> Option<TraceContext>> = OnceLock::new();

/// From now on requests carry the identity that `source` tells of the span in which they are sent. The first call counts.
pub fn set_source(source: fn(&Span) -> Option<TraceContext>) {
    SOURCE.get_or_init(|| source);
}

/// The identity of a span that is watched.
pub(crate) fn context_of(span: &Span) -> Option<TraceContext> {
    match span.is_disabled() {
        true => None,
        false => SOURCE.get().and_then(|source| source(span)),
    }
}
