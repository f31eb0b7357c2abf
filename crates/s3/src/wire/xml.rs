//! Documents: a writer, and a reader with limits.
//!
//! | module | writes | reads |
//! |---|---|---|
//! | [`failure`] | `Error` | |
//! | [`list`] | `ListAllMyBucketsResult`, `ListBucketResult` (V1 and V2), `ListVersionsResult` | |
//! | [`bucket`] | `LocationConstraint`, `VersioningConfiguration`, `AccessControlPolicy` | `CreateBucketConfiguration` |
//! | [`object`] | `CopyObjectResult`, `CopyPartResult`, `GetObjectAttributesResponse` | |
//! | [`delete`] | `DeleteResult` | `Delete` |
//! | [`multipart`] | `InitiateMultipartUploadResult`, `CompleteMultipartUploadResult`, `ListPartsResult`, `ListMultipartUploadsResult` | `CompleteMultipartUpload` |
//! | [`tagging`], [`cors`], [`lifecycle`] | what was read | `Tagging`, `CORSConfiguration`, `LifecycleConfiguration` |
//!
//! A writer is a function from data to a document; the document is complete and small, so that it is a `String`. A reader takes a whole body of at most
//! [`BODY_BYTES`] and refuses elements that it does not know: they would change the meaning.

pub mod bucket;
pub mod cors;
pub mod delete;
pub mod failure;
pub mod lifecycle;
pub mod list;
pub mod multipart;
pub mod object;
pub mod tagging;

mod tree;
mod writer;

#[cfg(test)]
mod tests;

pub use tree::BODY_BYTES;
pub use writer::timestamp;

/// The owner of buckets and objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    pub id: String,
    /// Its name for people.
    pub display_name: String,
}
