//! The content of an object on its way to a connection.

use super::kept::etag_of;
use areo_client::{Domain, Error, Etag, Metadata, ObjectStream};
use bytes::Bytes;
use std::ops::Range;

/// Times in a row that an object is opened anew before a piece of it comes. A writer that is faster each time leaves no version to read.
const REOPENED: u32 = 16;

/// Wanted bytes of an object. Where the object is written again with its `ETag`, as a change of its tags does, they go on in the new version: the blocks of
/// the version before go at once, and the bytes are those that the caller was promised.
pub(super) struct Content {
    domain: Domain,
    key: String,
    stream: ObjectStream,
    etag: String,
    /// The bytes that are still to come.
    left: Range<u64>,
}

impl Content {
    /// The bytes `wanted` of the object, for which the stream was opened.
    pub(super) fn new(
        domain: &Domain,
        key: &str,
        stream: ObjectStream,
        wanted: Range<u64>,
    ) -> Content {
        assert!(
            wanted.end <= stream.length(),
            "a range within the object was chosen"
        );
        Content {
            domain: domain.clone(),
            key: key.to_owned(),
            etag: etag_of(stream.metadata(), stream.version()),
            stream,
            left: wanted,
        }
    }

    /// The metadata of the object in the version that is read.
    pub(super) fn metadata(&self) -> &Metadata {
        self.stream.metadata()
    }

    /// The number of bytes that are still to come.
    pub(super) fn length(&self) -> u64 {
        self.left.end - self.left.start
    }

    /// The next piece; `None` at the end.
    ///
    /// # Errors
    /// Those of the store; [`Error::VersionConflict`] if the object has another content now.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, Error> {
        let mut reopened = 0;
        loop {
            match self.stream.next().await {
                Ok(Some(piece)) => {
                    self.left.start += piece.len() as u64;
                    assert!(self.left.start <= self.left.end, "no more came than wanted");
                    return Ok(Some(piece));
                }
                Err(error @ Error::VersionConflict { .. }) if reopened < REOPENED => {
                    reopened += 1;
                    if !self.reopen().await? {
                        return Err(error);
                    }
                }
                ended => return ended.map(|_| None),
            }
        }
    }

    /// Opens what is left in the version that is there now. Returns false if that is another content.
    async fn reopen(&mut self) -> Result<bool, Error> {
        let (etag, length, left) = (self.etag.clone(), self.stream.length(), self.left.clone());
        let choose = move |now: u64, metadata: &Metadata| {
            let kept = metadata.etag.as_ref().map(Etag::as_str);
            match kept == Some(&etag) && now == length {
                true => left.clone(),
                false => 0..0,
            }
        };
        let stream = match self.domain.get_chosen(&self.key, choose).await {
            Err(Error::NotFound { .. }) => return Ok(false),
            opened => opened?,
        };
        let is_same = etag_of(stream.metadata(), stream.version()) == self.etag
            && stream.length() == self.stream.length();
        if is_same {
            self.stream = stream;
        }
        Ok(is_same)
    }
}
