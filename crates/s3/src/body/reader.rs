//! A body as a reader of the object's bytes.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use hyper::body::Body;
use tokio::io::{AsyncRead, AsyncReadExt, ReadBuf};

use super::checksum::{Algorithm, Checksum, Expected};
use super::chunked::ChunkDecoder;
use super::verification::{Sums, Verification};
use crate::auth::{ChunkChain, Payload};
use crate::wire::{Code, S3Error};

/// The form of a body, and the checks on it.
#[derive(Clone, Debug)]
pub struct BodyPlan {
    pub payload: Payload,
    /// The state from which signatures of chunks go on. Needed if chunks are signed.
    pub chain: Option<ChunkChain>,
    /// Bytes that the object has: [`super::declared_length`].
    pub length: u64,
    /// Checksums that the caller sent or announced.
    pub expected: Expected,
    /// The algorithm that the object's checksum is to have. `None`: that of `expected`, if it has one.
    pub algorithm: Option<Algorithm>,
    /// True if the MD5 is needed, which is most of the cost.
    pub computes_md5: bool,
}

impl BodyPlan {
    /// A plan for a body of `length` bytes without checksums, and with MD5.
    pub fn new(payload: Payload, length: u64) -> BodyPlan {
        BodyPlan {
            payload,
            chain: None,
            length,
            expected: Expected::default(),
            algorithm: None,
            computes_md5: true,
        }
    }
}

/// Reads the bytes of an object from the body of a request. A wrong body gives an error instead of the end, and
/// before the last byte.
///
/// Memory: one frame of `source`, and one signed chunk of at most [`super::MAX_SIGNED_CHUNK_BYTES`].
pub struct BodyReader<B> {
    source: B,
    /// Bytes from the source that are not decoded.
    input: Bytes,
    /// `None`: the body is not framed.
    decoder: Option<ChunkDecoder>,
    /// `None`: the body has ended.
    verification: Option<Verification>,
    /// Bytes that may be read.
    output: Bytes,
    /// The last bytes, kept back until everything is verified.
    last: Bytes,
    outcome: Option<Result<Sums, S3Error>>,
}

impl<B> BodyReader<B>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    /// A reader of `source`.
    ///
    /// # Errors
    /// The plan contradicts itself: [`Code::InvalidRequest`], [`Code::AccessDenied`].
    pub fn new(source: B, plan: BodyPlan) -> Result<BodyReader<B>, S3Error> {
        let verification = Verification::new(&plan)?;
        let (payload, length, trailer) = (plan.payload, plan.length, plan.expected.trailer);
        let decoder = match payload.is_chunked() {
            true => Some(ChunkDecoder::new(payload, length, plan.chain, trailer)?),
            false => None,
        };
        Ok(BodyReader {
            source,
            input: Bytes::new(),
            decoder,
            verification: Some(verification),
            output: Bytes::new(),
            last: Bytes::new(),
            outcome: None,
        })
    }

    /// Length and checksums. `None`: the end was not reached, or the body is wrong.
    pub fn sums(&self) -> Option<&Sums> {
        self.outcome.as_ref()?.as_ref().ok()
    }

    /// The error that reading ended with.
    pub fn error(&self) -> Option<&S3Error> {
        self.outcome.as_ref()?.as_ref().err()
    }

    /// Reads a body of at most `limit` bytes whole, as documents are.
    ///
    /// # Errors
    /// [`Code::EntityTooLarge`]: it has more; and those of reading.
    pub async fn read_whole(mut self, limit: usize) -> Result<Bytes, S3Error> {
        let declared = self
            .verification
            .as_ref()
            .map_or(0, Verification::declared_length);
        if declared > limit as u64 {
            let sentence = format!("the body has {declared} bytes, and {limit} are the most here");
            return Err(S3Error::new(Code::EntityTooLarge, sentence));
        }
        let mut out = BytesMut::new();
        loop {
            match self.read_buf(&mut out).await {
                Ok(0) => return Ok(out.freeze()),
                Ok(_) => {}
                Err(error) => {
                    let found = S3Error::of_io(&error).cloned();
                    return Err(found.unwrap_or_else(|| ended_early(&error)));
                }
            }
        }
    }

    /// Goes on until there is output, or the end.
    fn poll_output(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S3Error>> {
        while self.output.is_empty() {
            let Some(verification) = &mut self.verification else {
                return Poll::Ready(Ok(()));
            };
            if let Some(bytes) = decode(self.decoder.as_mut(), &mut self.input)? {
                match verification.update(&bytes)? {
                    false => self.output = bytes,
                    true => self.last = bytes,
                }
                continue;
            }
            match ready!(Pin::new(&mut self.source).poll_frame(context)) {
                // Trailers of HTTP are none of S3: signatures do not cover them.
                Some(Ok(frame)) => self.input = frame.into_data().unwrap_or_default(),
                Some(Err(error)) => return Poll::Ready(Err(of_source(error.into()))),
                None => self.finish()?,
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Verifies everything, and gives the last bytes free.
    fn finish(&mut self) -> Result<(), S3Error> {
        let trailer = match &mut self.decoder {
            Some(decoder) => decoder.finish()?,
            None => None::<Checksum>,
        };
        let verification = self.verification.take();
        let verification = verification.expect("a body ends once");
        self.outcome = Some(Ok(verification.finish(trailer)?));
        self.output = std::mem::take(&mut self.last);
        Ok(())
    }
}

/// The next bytes of the object in `input`. `None`: `input` is empty.
fn decode(decoder: Option<&mut ChunkDecoder>, input: &mut Bytes) -> Result<Option<Bytes>, S3Error> {
    match decoder {
        Some(decoder) => decoder.decode(input),
        None if input.is_empty() => Ok(None),
        None => Ok(Some(std::mem::take(input))),
    }
}

/// An error of the source. One of S3 that a layer below put there stays.
fn of_source(error: Box<dyn std::error::Error + Send + Sync>) -> S3Error {
    match error.downcast::<S3Error>() {
        Ok(error) => *error,
        Err(error) => match error.downcast_ref().and_then(S3Error::of_io) {
            Some(found) => found.clone(),
            None => ended_early(&*error),
        },
    }
}

fn ended_early(error: &dyn std::error::Error) -> S3Error {
    let sentence = format!("the body ended early: {error}");
    S3Error::new(Code::IncompleteBody, sentence)
}

impl<B> AsyncRead for BodyReader<B>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let reader = self.get_mut();
        if let Some(Err(error)) = &reader.outcome {
            return Poll::Ready(Err(io::Error::other(error.clone())));
        }
        if buffer.remaining() == 0 {
            return Poll::Ready(Ok(()));
        }
        if let Err(error) = ready!(reader.poll_output(context)) {
            reader.outcome = Some(Err(error.clone()));
            reader.verification = None;
            (reader.input, reader.last) = (Bytes::new(), Bytes::new());
            return Poll::Ready(Err(io::Error::other(error)));
        }
        let length = reader.output.len().min(buffer.remaining());
        buffer.put_slice(&reader.output.split_to(length));
        Poll::Ready(Ok(()))
    }
}
