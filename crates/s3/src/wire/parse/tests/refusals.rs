//! Requests that are refused, and headers that change nothing.

use super::{operation, refusal};
use crate::wire::error::Code;
use crate::wire::request::{GetOptions, Operation, PutHeaders};

#[test]
fn subresources_that_do_not_exist_here_are_refused() {
    let of_buckets = [
        "policy",
        "policyStatus",
        "website",
        "replication",
        "notification",
        "accelerate",
        "object-lock",
        "encryption",
        "ownershipControls",
        "publicAccessBlock",
        "requestPayment",
        "logging",
        "analytics&id=a",
        "metrics",
        "inventory",
        "intelligent-tiering",
        "session",
        "unheard-of",
    ];
    for query in of_buckets {
        for method in ["GET", "PUT", "DELETE", "HEAD", "POST"] {
            let uri = format!("/bucket?{query}");
            assert_eq!(
                refusal(method, &uri, &[]),
                Code::NotImplemented,
                "{method} {uri}"
            );
        }
    }
    for method in ["PUT", "DELETE"] {
        for query in ["acl", "versioning", "location", "uploads", "versions"] {
            let uri = format!("/bucket?{query}");
            assert_eq!(
                refusal(method, &uri, &[]),
                Code::NotImplemented,
                "{method} {uri}"
            );
        }
    }
}

#[test]
fn subresources_of_objects_that_do_not_exist_here_are_refused() {
    let of_objects = [
        "torrent",
        "retention",
        "legal-hold",
        "restore",
        "select&select-type=2",
        "renameObject",
        "append",
        "position=3",
        "unheard-of",
    ];
    for query in of_objects {
        for method in ["GET", "PUT", "DELETE", "HEAD", "POST"] {
            let uri = format!("/bucket/key?{query}");
            assert_eq!(
                refusal(method, &uri, &[]),
                Code::NotImplemented,
                "{method} {uri}"
            );
        }
    }
    for query in [
        "acl",
        "attributes",
        "versionId=null",
        "uploads",
        "prefix=a",
        "response-expires=0",
    ] {
        let uri = format!("/bucket/key?{query}");
        assert_eq!(refusal("PUT", &uri, &[]), Code::NotImplemented, "{uri}");
    }
    assert_eq!(refusal("POST", "/bucket", &[]), Code::NotImplemented);
    assert_eq!(refusal("GET", "/?max-buckets=5", &[]), Code::NotImplemented);
    for query in [
        "AWSAccessKeyId=a&Expires=1&Signature=b",
        "response-x=1",
        "VersionId=null",
        "x-areo-n=1",
    ] {
        let uri = format!("/bucket/key?{query}");
        assert_eq!(refusal("GET", &uri, &[]), Code::NotImplemented, "{uri}");
    }
}

#[test]
fn a_version_other_than_null_is_refused() {
    for method in ["GET", "HEAD", "DELETE"] {
        for version in ["", "1", "NULL", "3/L4kqtJlcpXroDTDmJ+rmSpXd3dIbrHY"] {
            let uri = format!("/bucket/key?versionId={version}");
            assert_eq!(
                refusal(method, &uri, &[]),
                Code::NotImplemented,
                "{method} {uri}"
            );
        }
    }
    for query in ["tagging", "acl", "attributes"] {
        let uri = format!("/bucket/key?{query}&versionId=1");
        assert_eq!(refusal("GET", &uri, &[]), Code::NotImplemented, "{uri}");
    }
}

#[test]
fn headers_that_would_change_the_meaning_are_refused() {
    let headers = [
        ("x-amz-acl", "public-read"),
        ("x-amz-storage-class", "GLACIER"),
        ("x-amz-server-side-encryption", "AES256"),
        ("x-amz-server-side-encryption-customer-algorithm", "AES256"),
        ("x-amz-object-lock-mode", "COMPLIANCE"),
        ("x-amz-object-lock-legal-hold", "ON"),
        ("x-amz-website-redirect-location", "/a"),
        ("x-amz-write-offset-bytes", "5"),
        ("x-amz-grant-full-control", "id=1"),
        ("x-amz-checksum-sha512", "AAAA"),
        ("x-amz-if-match-size", "5"),
        ("x-amz-bypass-governance-retention", "true"),
        ("x-amz-mfa", "1 2"),
        ("x-amz-unheard-of", "1"),
        ("x-areo-unheard-of", "1"),
        ("content-range", "bytes 0-1/2"),
    ];
    for header in headers {
        for (method, uri) in [
            ("PUT", "/bucket/key"),
            ("GET", "/bucket/key"),
            ("DELETE", "/bucket/key"),
            ("PUT", "/bucket/key?partNumber=1&uploadId=u"),
            ("POST", "/bucket/key?uploads"),
            ("POST", "/bucket?delete"),
            ("GET", "/bucket"),
        ] {
            assert_eq!(
                refusal(method, uri, &[header]),
                Code::NotImplemented,
                "{method} {uri} {header:?}"
            );
        }
        // In a query it would count as a header as well.
        if header.0.starts_with("x-amz-") {
            let uri = format!("/bucket/key?{}={}", header.0.to_uppercase(), "x");
            assert_eq!(refusal("PUT", &uri, &[]), Code::NotImplemented, "{uri}");
        }
    }
}

#[test]
fn what_changes_nothing_is_taken() {
    let headers = [
        ("x-amz-date", "20261127T214800Z"),
        ("x-amz-content-sha256", "UNSIGNED-PAYLOAD"),
        ("x-amz-user-agent", "aws-sdk-js/3"),
        ("x-amz-expected-bucket-owner", "1"),
        ("x-amz-api-version", "2006-03-01"),
        ("x-amz-request-payer", "requester"),
        ("x-amz-te", "append-md5"),
        ("amz-sdk-request", "attempt=1; max=3"),
        ("user-agent", "a"),
        ("authorization", "AWS4-HMAC-SHA256 x"),
        ("expect", "100-continue"),
        ("range", "lines=1"),
    ];
    let uri = "/bucket/key?x-id=PutObject&X-Amz-Algorithm=a&X-Amz-Credential=b&X-Amz-Date=c&X-Amz-Expires=1&X-Amz-SignedHeaders=host&X-Amz-Signature=d&";
    let plain = Operation::PutObject(PutHeaders::default());
    assert_eq!(operation("PUT", uri, &headers), plain);
    let plain = Operation::GetObject(GetOptions::default());
    assert_eq!(operation("GET", uri, &headers), plain);
    operation(
        "GET",
        "/bucket/key",
        &[("content-type", "a/b"), ("content-encoding", "x")],
    );
}

#[test]
fn temporary_credentials_do_not_exist() {
    let header = [("x-amz-security-token", "a")];
    assert_eq!(
        refusal("GET", "/bucket/key?policy", &header),
        Code::AccessDenied
    );
    let uri = "/bucket/key?X-Amz-Security-Token=a";
    assert_eq!(refusal("GET", uri, &[]), Code::AccessDenied);
}

#[test]
fn methods_belong_to_resources() {
    let rows = [
        ("PUT", "/"),
        ("DELETE", "/"),
        ("POST", "/"),
        ("PATCH", "/bucket"),
        ("PATCH", "/bucket/key"),
        ("POST", "/bucket/key"),
        ("TRACE", "/bucket/key"),
    ];
    for (method, uri) in rows {
        assert_eq!(
            refusal(method, uri, &[]),
            Code::MethodNotAllowed,
            "{method} {uri}"
        );
    }
}

#[test]
fn what_counts_comes_once() {
    let names = [
        ("range", "bytes=0-1"),
        ("x-amz-checksum-mode", "ENABLED"),
        ("if-none-match", "a"),
        ("amz-sdk-invocation-id", "a"),
    ];
    for header in names {
        assert_eq!(
            refusal("GET", "/bucket/key", &[header, header]),
            Code::InvalidArgument,
            "{header:?}"
        );
    }
    let names = [
        ("x-amz-meta-a", "b"),
        ("x-amz-tagging", "a=b"),
        ("content-type", "a/b"),
        ("content-encoding", "gzip"),
        ("x-amz-copy-source", "from/a"),
        ("x-amz-acl", "private"),
        ("content-md5", "1B2M2Y8AsgTpgAmY7PhCfg=="),
    ];
    for header in names {
        assert_eq!(
            refusal("PUT", "/bucket/key", &[header, header]),
            Code::InvalidArgument,
            "{header:?}"
        );
    }
    for query in [
        "uploadId=a&uploadId=b",
        "uploadId=a&partNumber=1&partNumber=2",
        "a&a",
    ] {
        let uri = format!("/bucket/key?{query}");
        assert_eq!(refusal("PUT", &uri, &[]), Code::InvalidArgument, "{query}");
    }
    for query in [
        "x-amz-meta-a%0Ab=c",
        "x-amz-meta-%C3%A9=c",
        "x-amz-meta-a=%0D%0Ab",
    ] {
        let uri = format!("/bucket/key?{query}");
        assert_eq!(refusal("PUT", &uri, &[]), Code::InvalidArgument, "{query}");
    }
    let dates = [
        ("if-modified-since", "yesterday"),
        ("if-unmodified-since", "2026-11-27T21:48:00Z"),
    ];
    for header in dates {
        assert_eq!(
            refusal("GET", "/bucket/key", &[header]),
            Code::InvalidArgument
        );
    }
}
