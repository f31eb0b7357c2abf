//! Tags of an object: a part of its metadata, so that a change of them writes the object again.
//!
//! Such a write is made on the version that was read, so that it never takes the place of another one: where another write was faster, the object is read again. Its bytes, its
//! `ETag`, its time and everything else of it stay. Bytes are copied within the cluster, a block at a time.

use super::failure;
use super::kept::{Kept, etag_of, with_tags};
use super::reply::Reply;
use crate::wire::{Code, S3Error, xml};
use areo_client::{Domain, Error, Etag, Invalid, Metadata, ObjectStream, PutOptions, StreamError};
use bytes::{Buf, Bytes};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, ReadBuf};
use tokio::sync::mpsc;
use tokio::time::sleep;

/// Times that a change is tried while other writes of the object are faster.
const ATTEMPTS: u32 = 64;
/// The pause after the first of them; as much longer after each further one.
const PAUSE: Duration = Duration::from_millis(1);

/// Answers a request for the tags of an object.
///
/// # Errors
/// Those of the store.
pub(super) async fn get(domain: &Domain, key: &str) -> Result<Reply, S3Error> {
    let info = domain.stat(key).await;
    let info = info.map_err(|error: Error| failure::of(&error))?;
    let kept = Kept::of(&info.metadata);
    Ok(Reply::document(xml::tagging::tagging(&kept.tags)))
}

/// Gives an object these tags in place of those that it has, for the request of this name.
///
/// # Errors
/// [`Code::NotImplemented`] in a bucket that keeps no winner of concurrent writes; [`Code::MetadataTooLarge`]; [`Code::ServiceUnavailable`] if other
/// writes were faster each time; those of the store.
pub(super) async fn set(
    domain: &Domain,
    key: &str,
    tags: &[(String, String)],
    request: u128,
) -> Result<(), S3Error> {
    if !domain.has_one_winner() {
        return Err(no_winner(domain));
    }
    for attempt in 1..=ATTEMPTS {
        match rewrite(domain, key, tags, request).await? {
            Rewrite::Done => return Ok(()),
            Rewrite::Overtaken => sleep(PAUSE * attempt).await,
        }
    }
    let sentence = format!(
        "the tags are as they were: other writes of the object were faster {ATTEMPTS} times"
    );
    Err(S3Error::new(Code::ServiceUnavailable, sentence))
}

fn no_winner(domain: &Domain) -> S3Error {
    let name = domain.name();
    let sentence = format!(
        "bucket {name} keeps no winner of concurrent writes, so that a change of tags could undo a write: change it with `areo reconfig start {name} --dap conditional`, or send the tags with the object"
    );
    S3Error::new(Code::NotImplemented, sentence)
}

/// The result of one attempt.
enum Rewrite {
    /// The object has the tags.
    Done,
    /// Another write came between, and this one never will.
    Overtaken,
}

async fn rewrite(
    domain: &Domain,
    key: &str,
    tags: &[(String, String)],
    request: u128,
) -> Result<Rewrite, S3Error> {
    let stream = domain.get_stream(key).await;
    let stream = match stream {
        Ok(stream) => stream,
        Err(Error::VersionConflict { .. }) => return Ok(Rewrite::Overtaken),
        Err(error) => return Err(failure::of(&error)),
    };
    let (version, metadata) = (stream.version(), stream.metadata());
    if Kept::of(metadata).tags == tags {
        return Ok(Rewrite::Done);
    }
    let etag = etag_of(metadata, version);
    let options = options(metadata, &etag, tags, request);
    let source = Original::of(stream);
    let written = domain.compare_and_put_stream(key, source, Some(version), options);
    match written.await {
        Ok(_) => Ok(Rewrite::Done),
        Err(StreamError::Store(error)) => overtaken_or(domain, error),
        Err(StreamError::Local(error)) => match error.downcast::<Error>() {
            Ok(error) => overtaken_or(domain, error),
            Err(error) => Err(S3Error::new(Code::InternalError, error.to_string())),
        },
    }
}

#[allow(clippy::needless_pass_by_value)] // It ends here.
fn overtaken_or(domain: &Domain, error: Error) -> Result<Rewrite, S3Error> {
    match error {
        Error::VersionConflict { .. } => Ok(Rewrite::Overtaken),
        Error::Invalid {
            reason: Invalid::NotConditional { .. },
        } => Err(no_winner(domain)),
        error => Err(failure::of(&error)),
    }
}

/// The options of a write that changes nothing but the tags.
fn options(
    metadata: &Metadata,
    etag: &str,
    tags: &[(String, String)],
    request: u128,
) -> PutOptions {
    PutOptions {
        content_type: metadata.content_type.clone(),
        user_metadata: with_tags(&metadata.user, tags),
        // Without one of its own it would get that of the next version.
        etag: Some(Etag::new(etag).expect("it was shown")),
        written_at_ms: metadata.written_at_ms,
        request,
        ..PutOptions::default()
    }
}

/// The bytes of an object, to be written again. It ends where the object was read to its end and verified, and nowhere else.
struct Original {
    pieces: mpsc::Receiver<Result<Bytes, Error>>,
    piece: Bytes,
    /// Bytes that are to come.
    left: u64,
}

impl Original {
    /// Reads one piece ahead.
    fn of(mut stream: ObjectStream) -> Original {
        let left = stream.length();
        let (sender, pieces) = mpsc::channel(1);
        tokio::spawn(async move {
            while let Some(piece) = stream.next().await.transpose() {
                let is_last = piece.is_err();
                if sender.send(piece).await.is_err() || is_last {
                    return;
                }
            }
        });
        Original {
            pieces,
            piece: Bytes::new(),
            left,
        }
    }
}

impl AsyncRead for Original {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        while this.piece.is_empty() {
            match ready!(this.pieces.poll_recv(context)) {
                Some(Ok(piece)) => this.piece = piece,
                Some(Err(error)) => return Poll::Ready(Err(io::Error::other(error))),
                None if this.left == 0 => return Poll::Ready(Ok(())),
                None => return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into())),
            }
        }
        let taken = this.piece.len().min(buffer.remaining());
        buffer.put_slice(&this.piece[..taken]);
        this.piece.advance(taken);
        this.left = this.left.saturating_sub(taken as u64);
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncReadExt;

    fn original(pieces: Vec<Result<Bytes, Error>>, left: u64) -> Original {
        let (sender, receiver) = mpsc::channel(pieces.len().max(1));
        for piece in pieces {
            sender.try_send(piece).unwrap();
        }
        Original {
            pieces: receiver,
            piece: Bytes::new(),
            left,
        }
    }

    #[tokio::test]
    async fn a_part_of_an_object_is_never_taken_for_all_of_it() {
        let piece = |text: &'static str| Ok(Bytes::from_static(text.as_bytes()));
        let mut bytes = Vec::new();
        let mut whole = original(vec![piece("ab"), piece(""), piece("c")], 3);
        whole.read_to_end(&mut bytes).await.unwrap();
        assert_eq!(bytes, b"abc");
        let mut cut = original(vec![piece("ab")], 3);
        let error = cut.read_to_end(&mut bytes).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
        let gone = Error::NotFound {
            domain: "b".into(),
            key: Some("k".into()),
        };
        let mut damaged = original(vec![piece("abc"), Err(gone)], 3);
        let error = damaged.read_to_end(&mut bytes).await.unwrap_err();
        assert!(matches!(
            error.downcast::<Error>(),
            Ok(Error::NotFound { .. })
        ));
    }

    #[test]
    fn all_but_the_tags_stays() {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let metadata = Metadata {
            content_type: Some("text/plain".into()),
            user: vec![pair("colour", "blue"), pair(":tag:a", "b")],
            written_at_ms: Some(7),
            ..Metadata::default()
        };
        let options = options(&metadata, "1-2", &[pair("c", "")], 9);
        let expected = PutOptions {
            content_type: Some("text/plain".into()),
            user_metadata: vec![pair("colour", "blue"), pair(":tag:c", "")],
            etag: Some(Etag::new("1-2").unwrap()),
            written_at_ms: Some(7),
            request: 9,
            ..PutOptions::default()
        };
        assert_eq!(options, expected);
    }
}
