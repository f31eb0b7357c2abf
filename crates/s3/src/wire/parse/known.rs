//! Tables of headers and parameters.

/// Headers of `x-amz-*` that change nothing, or are read elsewhere.
///
/// | header | why |
/// |---|---|
/// | `date`, `content-sha256`, `decoded-content-length`, `user-agent` | [`crate::auth`] and [`crate::body`] read those that count |
/// | `sdk-checksum-algorithm` | an operation that keeps a checksum reads it; a document has its checksum in another header |
/// | `api-version` | SDKs for C++ send the version of the interface, and there is one |
/// | `expected-bucket-owner`, `source-expected-bucket-owner` | all buckets of a cluster have one owner |
/// | `request-payer` | no request is paid for |
/// | `te` | the response says in a header of its own whether it has the asked framing, and it has not |
/// | `optional-object-attributes` | asks listings for the state of restores from an archive: no object is in one |
const HARMLESS: &[&str] = &[
    "x-amz-api-version",
    "x-amz-content-sha256",
    "x-amz-date",
    "x-amz-decoded-content-length",
    "x-amz-expected-bucket-owner",
    "x-amz-optional-object-attributes",
    "x-amz-request-payer",
    "x-amz-sdk-checksum-algorithm",
    "x-amz-source-expected-bucket-owner",
    "x-amz-te",
    "x-amz-user-agent",
];

/// Headers without the prefix `x-amz-` that an operation takes or refuses.
const PLAIN: &[&str] = &[
    "amz-sdk-invocation-id",
    "cache-control",
    "content-disposition",
    "content-encoding",
    "content-language",
    "content-md5",
    "content-range",
    "content-type",
    "expires",
    "if-match",
    "if-modified-since",
    "if-none-match",
    "if-range",
    "if-unmodified-since",
    "range",
];

/// Headers of [`PLAIN`] that change the meaning of any request: a request that does not take them is refused.
const BINDING: &[&str] = &[
    "content-range",
    "if-match",
    "if-modified-since",
    "if-none-match",
    "if-unmodified-since",
];

/// Parameters of a presigned URL, in small letters, which belong to [`crate::auth`].
const OF_SIGNATURES: &[&str] = &[
    "x-amz-algorithm",
    "x-amz-credential",
    "x-amz-date",
    "x-amz-expires",
    "x-amz-signature",
    "x-amz-signedheaders",
];

/// Parameters that change nothing: SDKs name the operation in `x-id`.
const HARMLESS_PARAMETERS: &[&str] = &["x-id"];

/// True if a header is to be taken by an operation, or refused.
pub(super) fn counts(name: &str) -> bool {
    name.starts_with("x-amz-") || name.starts_with("x-areo-") || PLAIN.contains(&name)
}

/// True if a header that no operation took can be left out of account.
pub(super) fn is_harmless(name: &str) -> bool {
    let is_plain = PLAIN.contains(&name) && !BINDING.contains(&name);
    is_plain || HARMLESS.contains(&name)
}

/// True if a parameter belongs to a presigned URL.
pub(super) fn is_of_signature(small_letters: &str) -> bool {
    OF_SIGNATURES.contains(&small_letters)
}

/// True if a parameter changes nothing.
pub(super) fn is_harmless_parameter(name: &str) -> bool {
    HARMLESS_PARAMETERS.contains(&name)
}
