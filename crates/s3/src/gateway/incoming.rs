//! The body of a request, as its connection gives it.

use super::write::Summed;
use crate::auth::Caller;
use crate::body::checksum::{Algorithm, Expected};
use crate::body::{BodyPlan, BodyReader, Sums, declared_length};
use crate::wire::{Code, S3Error};
use bytes::Bytes;
use http::header::{CONTENT_LENGTH, EXPECT, TRANSFER_ENCODING};
use http::request::Parts;
use http_body_util::BodyExt;
use hyper::body::{Body, Frame, Incoming};
use prometheus::IntCounter;
use std::error::Error;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::time::{Instant, Sleep, sleep, timeout};

/// The longest document that a caller may send, in bytes.
const DOCUMENT_BYTES: usize = 2 << 20;
/// Bytes of a refused body that are read, so that the caller reads the refusal. After more the connection is closed.
const DRAIN_BYTES: u64 = 4 << 20;
/// The time for them.
const DRAIN: Duration = Duration::from_secs(5);

/// The longest time without a byte of a body that is waited for.
const IDLE: Duration = Duration::from_mins(1);

/// A body whose caller sends on. One that stops holds a place, and blocks of an object that is never written.
pub(super) struct Sending<'a> {
    body: &'a mut Incoming,
    idle: Pin<Box<Sleep>>,
    received: &'a IntCounter,
}

impl<'a> Sending<'a> {
    fn new(body: &'a mut Incoming, received: &'a IntCounter) -> Sending<'a> {
        let idle = Box::pin(sleep(IDLE));
        Sending {
            body,
            idle,
            received,
        }
    }
}

impl Body for Sending<'_> {
    type Data = Bytes;
    type Error = Box<dyn Error + Send + Sync>;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let this = self.get_mut();
        if let Poll::Ready(frame) = Pin::new(&mut *this.body).poll_frame(context) {
            this.idle.as_mut().reset(Instant::now() + IDLE);
            if let Some(Ok(frame)) = &frame {
                this.received.inc_by(data_bytes(frame));
            }
            return Poll::Ready(frame.map(|frame| frame.map_err(Into::into)));
        }
        ready!(this.idle.as_mut().poll(context));
        let sentence = "the body did not come in time";
        let late = S3Error::new(Code::RequestTimeout, sentence);
        Poll::Ready(Some(Err(late.into())))
    }
}

/// The body of a request, with the facts known before it is read.
pub(super) struct CallerBody<'a> {
    pub(super) head: &'a Parts,
    pub(super) caller: &'a Caller,
    pub(super) incoming: &'a mut Incoming,
    /// The metric that counts its bytes.
    pub(super) received: &'a IntCounter,
}

impl<'a> CallerBody<'a> {
    /// A reader of the bytes of an object.
    ///
    /// # Errors
    /// The head of the request contradicts itself, or has no length.
    pub(super) fn reader(
        self,
        expected: &Expected,
        algorithm: Option<Algorithm>,
    ) -> Result<BodyReader<Sending<'a>>, S3Error> {
        let headers = &self.head.headers;
        let payload = self.caller.payload(headers)?;
        let length = match has_body(self.head) || payload.is_chunked() {
            true => declared_length(headers, payload)?,
            // Neither of the two: there is no body (RFC 9112, 6.3).
            false => 0,
        };
        let plan = BodyPlan {
            chain: self.caller.chain().cloned(),
            expected: expected.clone(),
            algorithm,
            ..BodyPlan::new(payload, length)
        };
        BodyReader::new(Sending::new(self.incoming, self.received), plan)
    }

    /// A document, whole.
    ///
    /// # Errors
    /// It is too long, or has another checksum than the request says.
    pub(super) async fn document(self, expected: &Expected) -> Result<Bytes, S3Error> {
        self.reader(expected, None)?
            .read_whole(DOCUMENT_BYTES)
            .await
    }
}

impl<B> Summed for BodyReader<B>
where
    B: Body<Data = Bytes> + Unpin + Send,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    fn into_sums(self) -> Sums {
        let sums = self.sums().cloned();
        sums.expect("a body that was read to its end has sums")
    }
}

fn data_bytes(frame: &Frame<Bytes>) -> u64 {
    frame.data_ref().map_or(0, Bytes::len) as u64
}

/// True if the head says that a body follows.
pub(super) fn has_body(head: &Parts) -> bool {
    let length = head.headers.get(CONTENT_LENGTH);
    length.is_some_and(|length| length != "0") || head.headers.contains_key(TRANSFER_ENCODING)
}

/// Reads the rest of a body, so that the caller comes to read the response. A caller that waits for a word before it
/// sends has sent nothing to read.
pub(super) async fn drain(head: &Parts, body: &mut Incoming, received: &IntCounter) {
    if head.headers.contains_key(EXPECT) || body.is_end_stream() {
        return;
    }
    let mut left = DRAIN_BYTES;
    let read = async {
        while let Some(Ok(frame)) = body.frame().await {
            let bytes = data_bytes(&frame);
            received.inc_by(bytes);
            left = left.saturating_sub(bytes);
            if left == 0 {
                return;
            }
        }
    };
    // Otherwise the connection is closed.
    let _ = timeout(DRAIN, read).await;
}
