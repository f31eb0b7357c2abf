//! The receiver of a reply, and the span in which a request is served.

use areo_core::message::{Refusal, Reply, Request};
use areo_core::span;
use areo_net::connection::CloseReason;
use areo_net::{Responder, Segment};
use areo_wire::codec;
use areo_wire::frame::TraceContext;
use bytes::Bytes;
use std::time::Instant;
use tokio::sync::oneshot;
use tracing::{Span, debug_span};

use crate::metrics::{self, Kind, Metrics};

/// Bit 0 of the flags of a trace context: the caller watches this operation.
const SAMPLED: u8 = 1;

/// The sender of a request. The span lasts until the answer.
pub(crate) struct Caller {
    from: From,
    /// In a box, because few are watched and all are moved often.
    span: Option<Box<Span>>,
}

enum From {
    Connection {
        responder: Responder,
        /// The subject and the arrival of the request, for the metrics.
        kind: Kind,
        arrived: Instant,
    },
    /// This process, which waits for the answer.
    Admin(oneshot::Sender<Reply>),
    /// This process, which waits for no answer.
    Nobody,
}

impl Caller {
    /// This process as a caller that waits for no answer.
    pub(crate) fn nobody() -> Caller {
        Caller {
            from: From::Nobody,
            span: None,
        }
    }

    /// This process as a caller, and the channel on which it waits for the answer.
    pub(crate) fn admin() -> (Caller, oneshot::Receiver<Reply>) {
        let (sender, answer) = oneshot::channel();
        let caller = Caller {
            from: From::Admin(sender),
            ..Caller::nobody()
        };
        (caller, answer)
    }

    /// A connection. Its request is served in a span if the operation that it belongs to is watched.
    pub(crate) fn connection(
        responder: Responder,
        request: &Request,
        arrived: Instant,
        trace: Option<TraceContext>,
    ) -> Caller {
        let kind = Kind::of(request);
        let watched = trace.filter(|trace| trace.flags & SAMPLED != 0);
        Caller {
            from: From::Connection {
                responder,
                kind,
                arrived,
            },
            span: watched.map(|trace| Box::new(served(kind, trace))),
        }
    }

    /// The span in which the request is served, if it is watched.
    pub(crate) fn span(&self) -> Option<&Span> {
        self.span.as_deref()
    }

    /// Gives no answer: whether the request was carried out is not known. The connection ends, or the caller would wait.
    pub(crate) fn abandon(self) {
        if let From::Connection { responder, .. } = self.from {
            responder.connection().close(CloseReason::Finished);
        }
    }

    /// Sends a reply, if a caller waits for it, and counts it.
    pub(crate) fn answer(self, metrics: &Metrics, now: Instant, reply: &Result<Reply, Refusal>) {
        let responder = match self.from {
            From::Connection {
                responder,
                kind,
                arrived,
            } => {
                metrics.answered(kind, now.saturating_duration_since(arrived));
                responder
            }
            From::Admin(sender) => {
                if let Ok(reply) = reply {
                    // The caller may be gone.
                    let _ = sender.send(reply.clone());
                }
                return;
            }
            From::Nobody => return,
        };
        match reply {
            Ok(reply) => {
                let encoded = codec::encode_reply(reply);
                let segment = |(bytes, crc32c): (Bytes, u32)| Segment { bytes, crc32c };
                let payload: Vec<Segment> = encoded.payload.into_iter().map(segment).collect();
                responder.reply(&encoded.body, &payload);
            }
            Err(refusal) => {
                metrics.refused(*refusal);
                let word = metrics::word_of(*refusal);
                let _entered = self.span.as_deref().map(|span| {
                    span.record("error.type", word);
                    span.enter()
                });
                tracing::debug!(%refusal, "request refused");
                responder.refuse(*refusal, &[][..]);
            }
        }
    }
}

/// The span of a request, as a part of the span that sent it.
fn served(kind: Kind, trace: TraceContext) -> Span {
    let (remote_trace, remote_span) = (
        u128::from_be_bytes(trace.trace_id),
        u64::from_be_bytes(trace.span_id),
    );
    macro_rules! of {
        ($name:expr) => {
            debug_span!(
                $name,
                remote_trace,
                remote_span,
                error.type = tracing::field::Empty
            )
        };
    }
    match kind {
        Kind::Access => of!(span::SERVER_ACCESS),
        Kind::List => of!(span::SERVER_LIST),
        Kind::Cell => of!(span::SERVER_CELL),
        Kind::Config => of!(span::SERVER_CONFIG),
        Kind::Other => of!(span::SERVER_OTHER),
    }
}

/// The spans of the requests of a batch that are watched.
#[derive(Default)]
pub(crate) struct WatchedSpans(Vec<Span>);

impl WatchedSpans {
    /// Takes a request into the batch.
    pub(crate) fn push(&mut self, span: Option<&Span>) {
        self.0
            .extend(span.filter(|span| !span.is_disabled()).cloned());
    }

    /// Begins the spans of handing the batch to the store, one for each caller; they end when the result is dropped.
    pub(crate) fn append(&self) -> Vec<Span> {
        self.each(|| debug_span!(span::STORE_APPEND))
    }

    /// Begins making the batch durable, likewise.
    pub(crate) fn sync(&self) -> Vec<Span> {
        self.each(|| debug_span!(span::STORE_SYNC))
    }

    fn each(&self, part: impl Fn() -> Span) -> Vec<Span> {
        self.0.iter().map(|span| span.in_scope(&part)).collect()
    }
}
