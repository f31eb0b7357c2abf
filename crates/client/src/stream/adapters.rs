//! A value as the streams and readers that other libraries take.

use super::ObjectStream;
use crate::error::Error;
use bytes::Bytes;
use futures_util::stream::{self, BoxStream, StreamExt, TryStreamExt};
use std::io;
use tokio::io::AsyncBufRead;
use tokio_util::io::StreamReader;

impl ObjectStream {
    /// The pieces as a `Stream`, for programs that are made of those. It ends after an error.
    pub fn into_stream(self) -> BoxStream<'static, Result<Bytes, Error>> {
        let pieces = stream::try_unfold(self, |mut value| async move {
            let piece = value.next().await?;
            Ok(piece.map(|piece| (piece, value)))
        });
        pieces.boxed()
    }

    /// The value as a source of bytes, for `tokio::io::copy` and what else takes one. An error of the store is of the kind
    /// [`Other`](io::ErrorKind::Other), with the [`Error`] inside.
    pub fn into_reader(self) -> impl AsyncBufRead + Send + Unpin + 'static {
        StreamReader::new(self.into_stream().map_err(io::Error::other))
    }
}
