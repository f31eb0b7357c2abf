//! Requests, and what they are parsed to.

mod operations;
mod paths;
mod refusals;
mod uploads;
mod writes;

use super::{Addressing, parse};
use crate::wire::error::{Code, S3Error};
use crate::wire::request::{Operation, S3Request};
use http::request::Parts;
use proptest::prelude::*;

/// The head of a request.
fn head(method: &str, uri: &str, headers: &[(&str, &str)]) -> Parts {
    let mut request = http::Request::builder().method(method).uri(uri);
    for (name, value) in headers {
        request = request.header(*name, value.as_bytes());
    }
    request.body(()).unwrap().into_parts().0
}

fn try_parse(method: &str, uri: &str, headers: &[(&str, &str)]) -> Result<S3Request, S3Error> {
    parse(&head(method, uri, headers), &Addressing::default())
}

#[track_caller]
fn parsed(method: &str, uri: &str, headers: &[(&str, &str)]) -> S3Request {
    try_parse(method, uri, headers).unwrap_or_else(|refusal| panic!("{method} {uri}: {refusal}"))
}

#[track_caller]
fn operation(method: &str, uri: &str, headers: &[(&str, &str)]) -> Operation {
    parsed(method, uri, headers).operation
}

#[track_caller]
fn refusal(method: &str, uri: &str, headers: &[(&str, &str)]) -> Code {
    match try_parse(method, uri, headers) {
        Ok(request) => panic!("{method} {uri} {headers:?}: {request:?}"),
        Err(refusal) => {
            assert!(!refusal.message.is_empty());
            refusal.code
        }
    }
}

/// Words that lead a random request past the first checks.
const WORDS: &[&str] = &[
    "b",
    "bucket",
    "/",
    "//",
    "%2F",
    "%",
    "%0",
    "?",
    "&",
    "=",
    "acl",
    "uploads",
    "uploadId",
    "partNumber",
    "list-type",
    "2",
    "versions",
    "delete",
    "tagging",
    "cors",
    "lifecycle",
    "max-keys",
    "-1",
    "prefix",
    "x-id",
    "response-expires",
    "attributes",
    "null",
    "versionId",
];
const NAMES: &[&str] = &[
    "host",
    "range",
    "if-match",
    "if-none-match",
    "if-modified-since",
    "x-amz-copy-source",
    "x-amz-copy-source-range",
    "x-amz-meta-a",
    "x-amz-meta-",
    "x-amz-tagging",
    "x-amz-checksum-crc32",
    "x-amz-checksum-type",
    "x-amz-trailer",
    "content-md5",
    "content-encoding",
    "amz-sdk-invocation-id",
    "x-amz-object-attributes",
    "x-amz-acl",
    "x-areo-n",
    "x-areo-k",
    "x-amz-mp-object-size",
    "origin",
    "access-control-request-method",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn no_request_panics(
        method in prop::sample::select(vec!["GET", "PUT", "POST", "DELETE", "HEAD", "OPTIONS", "PATCH", "X"]),
        uri in prop::collection::vec(prop_oneof![prop::sample::select(WORDS).prop_map(str::to_owned), "[ -~]{0,4}"], 0..8),
        headers in prop::collection::vec((prop::sample::select(NAMES), prop::collection::vec(any::<u8>(), 0..12)), 0..4),
    ) {
        let mut request = http::Request::builder().method(method).uri(format!("/{}", uri.concat()));
        for (name, value) in &headers {
            request = request.header(*name, value.as_slice());
        }
        let Ok(request) = request.body(()) else { return Ok(()) };
        let (head, ()) = request.into_parts();
        let domains = vec!["s3.example".to_owned()];
        for addressing in [Addressing::default(), Addressing { domains }] {
            match parse(&head, &addressing) {
                Ok(request) => prop_assert!(request.target.key().is_none_or(|key| (1..=1024).contains(&key.len()))),
                Err(refusal) => prop_assert!(!refusal.message.is_empty()),
            }
        }
    }
}
