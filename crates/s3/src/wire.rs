//! Requests and responses of S3 as they are on the wire.
//!
//! `parse` reads the head of a request, without its body. What it does not know is refused: a parameter or a header that would change the meaning of a
//! request is never left out of account. [`xml`] writes and reads documents, [`S3Error`] is the table of errors.

pub mod error;
pub mod etag;
pub mod parse;
pub mod range;
pub mod request;
pub mod xml;

pub use error::{Code, S3Error};
pub use etag::{ETagList, WriteCondition};
pub use parse::{Addressing, parse};
pub use range::ByteRange;
pub use request::{
    ContentHeaders, CopySource, GetOptions, ListObjects, ListStyle, Operation, PutHeaders,
    ReadConditions, ResponseOverrides, S3Request, Target,
};
