//! Whom a reply goes to, and the span in which a request is served.

use areo_core::message::{Body, Refusal, Reply, Request};
use areo_core::span;
use areo_net::{Responder, Segment};
use areo_wire::codec;
use areo_wire::frame::TraceContext;
use bytes::Bytes;
use tracing::{Span, debug_span};

/// Bit 0 of the flags of a trace context: the caller watches this operation.
const SAMPLED: u8 = 1;

/// Whoever sent a request: a connection, or this process itself. The span lasts until the answer.
pub(crate) struct Caller {
    responder: Option<Responder>,
    span: Span,
}

impl Caller {
    /// This process: nobody waits for an answer.
    pub(crate) fn nobody() -> Caller {
        Caller {
            responder: None,
            span: Span::none(),
        }
    }

    /// A connection. Its request is served in a span if the operation that it belongs to is watched.
    pub(crate) fn connection(
        responder: Responder,
        request: &Request,
        trace: Option<TraceContext>,
    ) -> Caller {
        let watched = trace.filter(|trace| trace.flags & SAMPLED != 0);
        Caller {
            responder: Some(responder),
            span: watched.map_or_else(Span::none, |trace| served(request, trace)),
        }
    }

    /// The span in which the request is served.
    pub(crate) fn span(&self) -> &Span {
        &self.span
    }

    /// Sends a reply, if somebody waits for it.
    pub(crate) fn answer(self, reply: Result<Reply, Refusal>) {
        let Some(responder) = self.responder else {
            return;
        };
        match reply {
            Ok(reply) => {
                let encoded = codec::encode_reply(&reply);
                let segment = |(bytes, crc32c): (Bytes, u32)| Segment { bytes, crc32c };
                let payload: Vec<Segment> = encoded.payload.into_iter().map(segment).collect();
                responder.reply(&encoded.body, &payload);
            }
            Err(refusal) => {
                self.span.record("error", tracing::field::display(refusal));
                responder.refuse(refusal.into(), &[][..]);
            }
        }
    }
}

/// The span of a request, as a part of the span that sent it.
fn served(request: &Request, trace: TraceContext) -> Span {
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
                error = tracing::field::Empty
            )
        };
    }
    match request {
        Request::Configured { body, .. } => match body {
            Body::Access(_) => of!(span::SERVER_ACCESS),
            Body::List(_) => of!(span::SERVER_LIST),
            Body::Cell { .. } | Body::Cells { .. } => of!(span::SERVER_CELL),
            Body::ReadConfig => of!(span::SERVER_CONFIG),
            Body::Register(_) | Body::Servers => of!(span::SERVER_OTHER),
        },
        Request::Know(_) | Request::Directory | Request::Status | Request::Latest { .. } => {
            of!(span::SERVER_OTHER)
        }
    }
}

/// The spans of the requests of a batch that are watched.
#[derive(Default)]
pub(crate) struct Watched(Vec<Span>);

impl Watched {
    /// Takes a request into the batch.
    pub(crate) fn push(&mut self, span: &Span) {
        if !span.is_disabled() {
            self.0.push(span.clone());
        }
    }

    /// Begins handing the batch to the store, for each of them; that ends when what this returns is dropped.
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
