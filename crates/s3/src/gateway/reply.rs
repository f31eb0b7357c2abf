//! Responses, and their bodies on the way to the connection.

use super::content::Content;
use crate::wire::{S3Error, xml};
use bytes::Bytes;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER};
use http::{HeaderMap, Response, StatusCode};
use hyper::body::{Body, Frame, SizeHint};
use prometheus::IntCounter;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::sync::mpsc;

/// A response, with a body that is still to be streamed.
pub(super) struct Reply {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: ReplyBody,
}

/// The body of a response.
pub(super) enum ReplyBody {
    /// None. A response to `HEAD` may say a length all the same.
    Empty,
    /// An XML or JSON document.
    Document(String),
    /// The bytes of an object that were asked for.
    Object(Box<Content>),
}

impl Reply {
    pub(super) fn new(status: StatusCode) -> Reply {
        Reply {
            status,
            headers: HeaderMap::new(),
            body: ReplyBody::Empty,
        }
    }

    /// 200 without a body.
    pub(super) fn ok() -> Reply {
        Reply::new(StatusCode::OK)
    }

    /// A response with status 204.
    pub(super) fn no_content() -> Reply {
        Reply::new(StatusCode::NO_CONTENT)
    }

    /// 200 with a document.
    pub(super) fn document(text: String) -> Reply {
        let mut reply = Reply::ok();
        reply.body = ReplyBody::Document(text);
        reply.with(CONTENT_TYPE, "application/xml")
    }

    /// Adds a header. A value that no header can have is left out: another interface kept it.
    pub(super) fn with(mut self, name: HeaderName, value: &str) -> Reply {
        self.set(name, value);
        self
    }

    /// Sets a header. A value that cannot be one is left out.
    pub(super) fn set(&mut self, name: HeaderName, value: &str) {
        let plain = HeaderValue::from_str(value);
        if let Ok(value) = plain.or_else(|_| HeaderValue::from_bytes(value.as_bytes())) {
            self.headers.insert(name, value);
        }
    }

    /// The document of an error.
    pub(super) fn error(error: &S3Error, resource: &str, request_id: &str) -> Reply {
        let status = error.code.status();
        let mut reply = Reply::new(status);
        if status == StatusCode::SERVICE_UNAVAILABLE {
            reply.set(RETRY_AFTER, "1");
        }
        if status == StatusCode::NOT_MODIFIED {
            return reply;
        }
        reply.set(CONTENT_TYPE, "application/xml");
        reply.body = ReplyBody::Document(xml::failure::error(error, resource, request_id, &[]));
        reply
    }

    /// The response for the connection. To `HEAD` no body is sent; `Content-Length` says the one of `GET`.
    pub(super) fn into_response(self, is_head: bool) -> Response<GatewayBody> {
        let Reply {
            status,
            mut headers,
            body,
        } = self;
        let length = match &body {
            ReplyBody::Empty => None,
            ReplyBody::Document(text) => Some(text.len() as u64),
            ReplyBody::Object(content) => Some(content.length()),
        };
        if let Some(length) = length {
            headers.insert(CONTENT_LENGTH, length.into());
        }
        let body = match body {
            _ if is_head => GatewayBody::Bytes(None),
            ReplyBody::Empty => GatewayBody::Bytes(None),
            ReplyBody::Document(text) => GatewayBody::Bytes(Some(text.into())),
            ReplyBody::Object(content) => GatewayBody::of_content(*content),
        };
        let mut response = Response::new(body);
        *response.status_mut() = status;
        *response.headers_mut() = headers;
        response
    }
}

/// The body of a response.
#[derive(Debug)]
pub enum GatewayBody {
    /// Bytes that are there.
    Bytes(Option<Bytes>),
    /// Bytes of an object, a piece at a time.
    Pieces {
        /// The pieces, from a task that ends with this.
        pieces: mpsc::Receiver<Result<Bytes, BrokenOff>>,
        /// Bytes that are to come.
        left: u64,
    },
}

/// The object cannot be read to its end: the connection is closed, so that no reader takes a part for the whole.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the object cannot be read further: {reason}")]
pub struct BrokenOff {
    /// The error of the store.
    pub reason: String,
}

impl From<Infallible> for BrokenOff {
    fn from(never: Infallible) -> BrokenOff {
        match never {}
    }
}

impl GatewayBody {
    /// Reads one piece ahead of the connection.
    pub(super) fn of_content(mut content: Content) -> GatewayBody {
        let left = content.length();
        let (sender, pieces) = mpsc::channel(1);
        tokio::spawn(async move {
            loop {
                let piece = match content.next().await {
                    Ok(None) => return,
                    Ok(Some(piece)) => Ok(piece),
                    Err(error) => {
                        tracing::warn!(%error, "object cannot be read to its end");
                        let reason = error.to_string();
                        Err(BrokenOff { reason })
                    }
                };
                let is_last = piece.is_err();
                if sender.send(piece).await.is_err() || is_last {
                    return;
                }
            }
        });
        GatewayBody::Pieces { pieces, left }
    }
}

impl Body for GatewayBody {
    type Data = Bytes;
    type Error = BrokenOff;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BrokenOff>>> {
        match self.get_mut() {
            GatewayBody::Bytes(bytes) => {
                Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes))))
            }
            GatewayBody::Pieces { left: 0, .. } => Poll::Ready(None),
            GatewayBody::Pieces { pieces, left } => {
                let piece = std::task::ready!(pieces.poll_recv(context));
                let piece = piece.unwrap_or_else(|| {
                    let reason = format!("{left} bytes of it did not come");
                    Err(BrokenOff { reason })
                });
                Poll::Ready(Some(piece.map(|piece| {
                    *left = left.saturating_sub(piece.len() as u64);
                    Frame::data(piece)
                })))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            GatewayBody::Bytes(bytes) => bytes.is_none(),
            GatewayBody::Pieces { left, .. } => *left == 0,
        }
    }

    fn size_hint(&self) -> SizeHint {
        let length = match self {
            GatewayBody::Bytes(bytes) => bytes.as_ref().map_or(0, Bytes::len) as u64,
            GatewayBody::Pieces { left, .. } => *left,
        };
        SizeHint::with_exact(length)
    }
}

/// The body of a response whose bytes are counted when the connection takes them.
#[derive(Debug)]
pub struct CountedBody {
    body: GatewayBody,
    sent: IntCounter,
}

impl CountedBody {
    pub(super) fn new(body: GatewayBody, sent: IntCounter) -> CountedBody {
        CountedBody { body, sent }
    }
}

impl Body for CountedBody {
    type Data = Bytes;
    type Error = BrokenOff;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BrokenOff>>> {
        let this = self.get_mut();
        let frame = std::task::ready!(Pin::new(&mut this.body).poll_frame(context));
        if let Some(Ok(frame)) = &frame {
            let bytes = frame.data_ref().map_or(0, Bytes::len);
            this.sent.inc_by(bytes as u64);
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
