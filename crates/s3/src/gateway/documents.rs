//! Configurations of a bucket that are documents of its domain: read, written and removed.

use super::failure;
use super::reply::Reply;
use crate::wire::{Code, S3Error};
use areo_client::{Domain, Error, Object, PutOptions};

/// A configuration that a bucket has or has not.
#[derive(Debug)]
pub(super) struct BucketDocument {
    /// The name of the document.
    pub(super) name: &'static str,
    /// The words for it in sentences.
    pub(super) words: &'static str,
    /// Bytes of it, as it is sent and as it is kept.
    pub(super) most_bytes: usize,
    /// The error of a request for it where there is none.
    pub(super) missing: Code,
}

impl BucketDocument {
    /// Answers a request for it.
    ///
    /// # Errors
    /// [`BucketDocument::missing`], and those of the store.
    pub(super) async fn get(&self, domain: &Domain) -> Result<Reply, S3Error> {
        let document = self.read(domain).await;
        let document = document
            .map_err(|error| failure::of(&error))?
            .ok_or_else(|| {
                S3Error::new(
                    self.missing,
                    format!("the bucket has no {} configuration", self.words),
                )
            })?;
        let text = String::from_utf8_lossy(&document.into_bytes()).into_owned();
        Ok(Reply::document(text))
    }

    /// Reads it; `None`: the bucket has none.
    ///
    /// # Errors
    /// As [`Domain::get_document`].
    pub(super) async fn read(&self, domain: &Domain) -> Result<Option<Object>, Error> {
        match domain.get_document(self.name).await {
            Ok(document) => Ok(Some(document)),
            Err(Error::NotFound { key: Some(_), .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Puts this text in the place of the one that the bucket has; `sent_bytes` is the length of the request.
    ///
    /// # Errors
    /// [`Code::InvalidRequest`]: it is too long; those of the store.
    pub(super) async fn put(
        &self,
        domain: &Domain,
        (text, sent_bytes): (String, usize),
        options: PutOptions,
    ) -> Result<Reply, S3Error> {
        let bytes = text.len().max(sent_bytes);
        if bytes > self.most_bytes {
            let (words, most_bytes) = (self.words, self.most_bytes);
            let sentence = format!(
                "the {words} configuration has {bytes} bytes: at most {most_bytes} are kept"
            );
            return Err(S3Error::new(Code::InvalidRequest, sentence));
        }
        let written = domain.put_document(self.name, text, options);
        written.await.map_err(|error| failure::of(&error))?;
        Ok(Reply::ok())
    }

    /// Removes it, if there is one.
    ///
    /// # Errors
    /// Those of the store.
    pub(super) async fn delete(&self, domain: &Domain) -> Result<Reply, S3Error> {
        match domain.delete_document(self.name).await {
            Ok(_) | Err(Error::NotFound { key: Some(_), .. }) => Ok(Reply::no_content()),
            Err(error) => Err(failure::of(&error)),
        }
    }
}
