//! Endings of operations of the store, as errors of S3.

use crate::wire::{Code, S3Error};
use areo_client::{CreateDomainError, Error, Invalid, StreamError};

/// The error of S3 that an operation's error is.
pub(super) fn of(error: &Error) -> S3Error {
    let code = match error {
        Error::NotFound { key: Some(_), .. } => Code::NoSuchKey,
        Error::NotFound { key: None, .. } | Error::Removed { .. } => Code::NoSuchBucket,
        Error::VersionConflict { .. } => Code::ConditionalRequestConflict,
        Error::Unavailable { .. } | Error::Swept { .. } => Code::ServiceUnavailable,
        Error::Unknown { .. } => return unknown(error),
        Error::Unauthorised { .. } => Code::AccessDenied,
        Error::Invalid { reason } => of_invalid(reason),
        // `Corrupted`, `Undecided`, `Obstructed`, and what the library may come to tell apart.
        _ => Code::InternalError,
    };
    S3Error::new(code, error.to_string())
}

/// A write that may have been applied.
fn unknown(error: &Error) -> S3Error {
    let sentence = format!(
        "the outcome is unknown: {error}. Send the request again with its amz-sdk-invocation-id, as an SDK does: it is applied once"
    );
    S3Error::new(Code::ServiceUnavailable, sentence)
}

fn of_invalid(reason: &Invalid) -> Code {
    match reason {
        Invalid::DomainName { .. } => Code::InvalidBucketName,
        Invalid::Metadata { .. } => Code::MetadataTooLarge,
        Invalid::ValueTooLarge { .. } | Invalid::WholeValues { .. } | Invalid::InMemory { .. } => {
            Code::EntityTooLarge
        }
        Invalid::NotConditional { .. } => Code::NotImplemented,
        Invalid::Range { .. } => Code::InvalidRange,
        _ => Code::InvalidArgument,
    }
}

/// The error of S3 that a stream's error is: of the store, or of the body that was to be written.
pub(super) fn of_stream(error: &StreamError) -> S3Error {
    match error {
        StreamError::Store(error) => of(error),
        StreamError::Local(error) => of_body(error),
    }
}

/// The error of a body: the one that its reader found, or that it ended early.
pub(super) fn of_body(error: &std::io::Error) -> S3Error {
    let inner = error.get_ref().and_then(|it| it.downcast_ref::<S3Error>());
    inner.cloned().unwrap_or_else(|| {
        let sentence = format!("the body cannot be read: {error}");
        S3Error::new(Code::IncompleteBody, sentence)
    })
}

/// The error of a bucket that was not created.
pub(super) fn of_creation(error: &CreateDomainError) -> S3Error {
    match error {
        CreateDomainError::Exists { .. } => {
            S3Error::new(Code::BucketAlreadyOwnedByYou, error.to_string())
        }
        CreateDomainError::Choice { .. } => S3Error::new(Code::InvalidArgument, error.to_string()),
        CreateDomainError::Unavailable { .. } | CreateDomainError::Unknown { .. } => {
            S3Error::new(Code::ServiceUnavailable, error.to_string())
        }
        CreateDomainError::Other { error } => of(error),
        error => S3Error::new(Code::InternalError, error.to_string()),
    }
}
