//! Tags of an object: a part of its metadata, so that a change of them writes the object again.

use super::failure;
use super::kept::Kept;
use super::reply::Reply;
use crate::wire::{Code, S3Error, xml};
use areo_client::{Domain, Error};

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

/// Refuses a change of the tags of an object that is there.
pub(super) fn refuse_change() -> S3Error {
    let sentence = "tags are written with their object: send x-amz-tagging with it, or copy it onto itself with x-amz-tagging-directive: REPLACE";
    S3Error::new(Code::NotImplemented, sentence)
}
