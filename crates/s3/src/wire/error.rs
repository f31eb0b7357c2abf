//! Errors of S3: one table of codes, and the document that says one.

use http::StatusCode;

/// An error as the caller of S3 sees it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: {message}", .code.word())]
pub struct S3Error {
    /// The row of the table.
    pub code: Code,
    /// One sentence for people: the problem, and the way out of it.
    pub message: String,
}

impl S3Error {
    /// An error with this sentence.
    pub fn new(code: Code, message: impl Into<String>) -> S3Error {
        let message = message.into();
        S3Error { code, message }
    }
}

macro_rules! codes {
    ($($(#[doc = $doc:literal])* $name:ident = $status:literal,)*) => {
        /// The errors that the gateway gives. Words and statuses are those of Amazon's reference.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Code {
            $($(#[doc = $doc])* $name,)*
        }

        impl Code {
            /// Every row of the table.
            pub const ALL: &[Code] = &[$(Code::$name),*];

            /// The word in the element `Code`.
            pub fn word(self) -> &'static str {
                match self {
                    $(Code::$name => stringify!($name),)*
                }
            }

            /// The status of the response.
            pub fn status(self) -> StatusCode {
                let number: u16 = match self {
                    $(Code::$name => $status,)*
                };
                StatusCode::from_u16(number).expect("the table has statuses of HTTP")
            }
        }
    };
}

codes! {
    /// The caller's grants lack one that the request needs, or a header is missing that they need.
    AccessDenied = 403,
    /// No rule of the bucket lets a page of that origin send that request.
    AccessForbidden = 403,
    /// A signature, a checksum or another header cannot be read.
    AuthorizationHeaderMalformed = 400,
    /// A query of a presigned URL cannot be read.
    AuthorizationQueryParametersError = 400,
    /// A checksum that the caller sent is not that of the bytes that came.
    BadDigest = 400,
    /// A bucket of that name exists, and is another owner's.
    BucketAlreadyExists = 409,
    /// A bucket of that name exists, and is the caller's.
    BucketAlreadyOwnedByYou = 409,
    /// A bucket has objects.
    BucketNotEmpty = 409,
    /// Another change of the object came between: the caller may try again.
    ConditionalRequestConflict = 409,
    /// A part other than the last one has less than 5 MiB.
    EntityTooSmall = 400,
    /// The object is larger than the cluster takes.
    EntityTooLarge = 400,
    /// A presigned URL, or a date, is out of its time.
    ExpiredToken = 400,
    /// The body ended before the length that was said.
    IncompleteBody = 400,
    /// The gateway itself failed.
    InternalError = 500,
    /// The access key does not exist, or counts no longer.
    InvalidAccessKeyId = 403,
    /// A parameter or header has a value that it cannot have.
    InvalidArgument = 400,
    /// A name is none of a bucket.
    InvalidBucketName = 400,
    /// A checksum cannot be read.
    InvalidDigest = 400,
    /// A listed part is not there, or has another `ETag`.
    InvalidPart = 400,
    /// The listed parts are not in ascending order.
    InvalidPartOrder = 400,
    /// A range lies outside the object.
    InvalidRange = 416,
    /// The request is none of S3.
    InvalidRequest = 400,
    /// A location that no bucket can have here.
    InvalidLocationConstraint = 400,
    /// A storage class that is not kept here.
    InvalidStorageClass = 400,
    /// A tag cannot be kept.
    InvalidTag = 400,
    /// A path or a query cannot be decoded.
    InvalidURI = 400,
    /// The key has more than 1024 bytes.
    KeyTooLongError = 400,
    /// The XML of the body cannot be read.
    MalformedXML = 400,
    /// The metadata is larger than the cluster takes.
    MetadataTooLarge = 400,
    /// The method does not belong to the resource.
    MethodNotAllowed = 405,
    /// The body has no length.
    MissingContentLength = 411,
    /// The body of the request is missing.
    MissingRequestBodyError = 400,
    /// There is no such bucket.
    NoSuchBucket = 404,
    /// The bucket has no CORS configuration.
    NoSuchCORSConfiguration = 404,
    /// There is no such key.
    NoSuchKey = 404,
    /// The bucket has no lifecycle configuration.
    NoSuchLifecycleConfiguration = 404,
    /// The object or bucket has no tags.
    NoSuchTagSet = 404,
    /// There is no such multipart upload.
    NoSuchUpload = 404,
    /// There is no such version: buckets have no versions.
    NoSuchVersion = 404,
    /// The caller's copy is current.
    NotModified = 304,
    /// The gateway does not do that.
    NotImplemented = 501,
    /// A condition does not hold.
    PreconditionFailed = 412,
    /// The caller's clock is too far from the gateway's.
    RequestTimeTooSkewed = 403,
    /// The body did not come in time.
    RequestTimeout = 400,
    /// The signature is not the one of the request.
    SignatureDoesNotMatch = 403,
    /// No quorum, or too many requests; or it is not known whether a write was applied.
    ServiceUnavailable = 503,
    /// The gateway takes no more requests for the moment.
    SlowDown = 503,
    /// The caller owns too many buckets.
    TooManyBuckets = 400,
    /// An operation that the request's XML or headers ask for in vain.
    UnexpectedContent = 400,
    /// The SHA-256 of the payload is not the one in `x-amz-content-sha256`.
    XAmzContentSHA256Mismatch = 400,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_a_status_that_is_an_error_or_not_modified() {
        for code in Code::ALL {
            let status = code.status();
            let is_error = status.is_client_error() || status.is_server_error();
            assert!(is_error || *code == Code::NotModified, "{}", code.word());
        }
    }
}
