//! Headers of writes: objects, copies, parts.

use super::{operation, refusal};
use crate::body::checksum::{Algorithm, Checksum, Expected};
use crate::wire::error::Code;
use crate::wire::etag::{ETagList, WriteCondition};
use crate::wire::request::{ContentHeaders, CopySource, Operation, PutHeaders, ReadConditions};

fn put(headers: &[(&str, &str)]) -> PutHeaders {
    match operation("PUT", "/bucket/key", headers) {
        Operation::PutObject(headers) => headers,
        other => panic!("{other:?}"),
    }
}

fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    let owned = |pair: &(&str, &str)| (pair.0.to_owned(), pair.1.to_owned());
    pairs.iter().map(owned).collect()
}

#[test]
fn an_object_has_headers() {
    let headers = put(&[
        ("content-type", "text/plain"),
        ("cache-control", "no-cache"),
        ("content-encoding", "aws-chunked,gzip"),
        ("content-language", "de"),
        ("expires", "0"),
        ("content-disposition", "inline"),
        ("x-amz-meta-Color", "blå"),
        ("x-amz-meta-a", ""),
        ("x-amz-tagging", "a=1+2&b%26=%3D&c"),
        ("x-amz-acl", "bucket-owner-full-control"),
        ("x-amz-storage-class", "STANDARD"),
        ("if-none-match", "*"),
    ]);
    let expected = PutHeaders {
        content: ContentHeaders {
            content_type: Some("text/plain".into()),
            others: pairs(&[
                ("cache-control", "no-cache"),
                ("content-disposition", "inline"),
                ("content-encoding", "gzip"),
                ("content-language", "de"),
                ("expires", "0"),
            ]),
        },
        user: pairs(&[("a", ""), ("color", "blå")]),
        tags: pairs(&[("a", "1 2"), ("b&", "="), ("c", "")]),
        condition: Some(WriteCondition::Absent),
        expected: Expected::default(),
        algorithm: None,
    };
    assert_eq!(headers, expected);
    assert_eq!(put(&[("x-amz-tagging", "")]), PutHeaders::default());
    for framing in ["aws-chunked", "AWS-CHUNKED, aws-chunked", ""] {
        assert_eq!(put(&[("content-encoding", framing)]), PutHeaders::default());
    }
    let listed = put(&[("content-encoding", "gzip , aws-chunked, br")]);
    assert_eq!(
        listed.content.others,
        pairs(&[("content-encoding", "gzip,br")])
    );
}

#[test]
fn metadata_is_utf_8_or_latin_1() {
    let request = http::Request::put("/bucket/key").header("x-amz-meta-a", b"bl\xe5".as_slice());
    let (head, ()) = request.body(()).unwrap().into_parts();
    let request = super::parse(&head, &super::Addressing::default()).unwrap();
    let Operation::PutObject(headers) = request.operation else {
        panic!("a put")
    };
    assert_eq!(headers.user, pairs(&[("a", "blå")]));
}

#[test]
fn metadata_and_tags_have_bounds() {
    let longest = "v".repeat(2047);
    assert_eq!(put(&[("x-amz-meta-a", &longest)]).user.len(), 1);
    let longer = format!("{longest}v");
    let code = |headers: &[_]| refusal("PUT", "/bucket/key", headers);
    assert_eq!(code(&[("x-amz-meta-a", &longer)]), Code::MetadataTooLarge);
    assert_eq!(
        code(&[("x-amz-meta-a", &longest), ("x-amz-meta-b", "")]),
        Code::MetadataTooLarge
    );
    assert_eq!(code(&[("x-amz-meta-", "a")]), Code::InvalidArgument);
    let ten: Vec<String> = (0..10).map(|tag| format!("t{tag}=v")).collect();
    let ten = ten.join("&");
    assert_eq!(put(&[("x-amz-tagging", &ten)]).tags.len(), 10);
    let tags = [
        format!("{ten}&more=v"),
        "a=1&a=2".into(),
        "=1".into(),
        format!("{}=1", "n".repeat(129)),
        format!("a={}", "v".repeat(257)),
    ];
    for text in &tags {
        assert_eq!(code(&[("x-amz-tagging", text)]), Code::InvalidTag, "{text}");
    }
    assert_eq!(code(&[("x-amz-tagging", "a=%")]), Code::InvalidArgument);
}

#[test]
fn a_body_has_one_checksum() {
    let checksum = |algorithm, length| Checksum {
        algorithm,
        bytes: vec![0; length],
    };
    let sha1 = "AAAAAAAAAAAAAAAAAAAAAAAAAAA=";
    let sha256 = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
    let rows = [
        (
            "x-amz-checksum-crc32",
            "AAAAAA==",
            checksum(Algorithm::Crc32, 4),
        ),
        (
            "x-amz-checksum-crc32c",
            "AAAAAA==",
            checksum(Algorithm::Crc32c, 4),
        ),
        (
            "x-amz-checksum-crc64nvme",
            "AAAAAAAAAAA=",
            checksum(Algorithm::Crc64Nvme, 8),
        ),
        ("x-amz-checksum-sha1", sha1, checksum(Algorithm::Sha1, 20)),
        (
            "x-amz-checksum-sha256",
            sha256,
            checksum(Algorithm::Sha256, 32),
        ),
    ];
    let code = |headers: &[_]| refusal("PUT", "/bucket/key", headers);
    for (name, text, expected) in rows {
        // SDKs put headers of a presigned request into its query.
        let in_query = format!("/bucket/key?{name}={}", text.replace('=', "%3D"));
        let Operation::PutObject(presigned) = operation("PUT", &in_query, &[]) else {
            panic!("a put")
        };
        for headers in [put(&[(name, text)]), presigned] {
            assert_eq!(
                headers.expected.checksum.as_ref(),
                Some(&expected),
                "{name}"
            );
            assert_eq!(headers.algorithm, Some(expected.algorithm));
        }
        for wrong in ["", "AAAA", "AAAAAA", "*", "AAAAAAAAAAAAAAAA"] {
            assert_eq!(
                code(&[(name, wrong)]),
                Code::InvalidDigest,
                "{name} {wrong}"
            );
        }
        let again = refusal("PUT", &in_query, &[(name, text)]);
        assert_eq!(again, Code::InvalidArgument, "{name}");
    }
}

#[test]
fn a_body_has_not_two_checksums() {
    let code = |headers: &[_]| refusal("PUT", "/bucket/key", headers);
    let sha1 = "AAAAAAAAAAAAAAAAAAAAAAAAAAA=";
    let sha256 = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
    let two = [
        ("x-amz-checksum-sha1", sha1),
        ("x-amz-checksum-sha256", sha256),
    ];
    assert_eq!(code(&two), Code::InvalidRequest);
    let md5 = put(&[("content-md5", "1B2M2Y8AsgTpgAmY7PhCfg==")])
        .expected
        .md5;
    assert_eq!(md5.map(|bytes| bytes[..2].to_vec()), Some(vec![0xd4, 0x1d]));
    for text in [
        "",
        "AAAA",
        "1B2M2Y8AsgTpgAmY7PhCfg=",
        "d41d8cd98f00b204e9800998ecf8427e",
    ] {
        assert_eq!(
            code(&[("content-md5", text)]),
            Code::InvalidDigest,
            "{text}"
        );
    }
}

#[test]
fn a_checksum_is_announced() {
    let payload = ("x-amz-content-sha256", "STREAMING-UNSIGNED-PAYLOAD-TRAILER");
    let trailer = ("x-amz-trailer", "x-amz-checksum-CRC64NVME");
    let headers = put(&[
        payload,
        trailer,
        ("x-amz-sdk-checksum-algorithm", "CRC64NVME"),
        ("x-amz-decoded-content-length", "5"),
    ]);
    assert_eq!(headers.expected.trailer, Some(Algorithm::Crc64Nvme));
    assert_eq!(headers.algorithm, Some(Algorithm::Crc64Nvme));
    assert_eq!(
        put(&[("x-amz-sdk-checksum-algorithm", "SHA256")]).algorithm,
        Some(Algorithm::Sha256)
    );
    let code = |headers: &[_]| refusal("PUT", "/bucket/key", headers);
    assert_eq!(code(&[trailer]), Code::InvalidRequest);
    assert_eq!(
        code(&[trailer, ("x-amz-content-sha256", "UNSIGNED-PAYLOAD")]),
        Code::InvalidRequest
    );
    assert_eq!(
        code(&[payload, ("x-amz-trailer", "x-amz-meta-a")]),
        Code::NotImplemented
    );
    assert_eq!(
        code(&[
            payload,
            trailer,
            ("x-amz-checksum-crc64nvme", "AAAAAAAAAAA=")
        ]),
        Code::InvalidRequest
    );
    assert_eq!(
        code(&[payload, trailer, ("x-amz-sdk-checksum-algorithm", "CRC32")]),
        Code::InvalidRequest
    );
    assert_eq!(
        code(&[("x-amz-sdk-checksum-algorithm", "MD4")]),
        Code::InvalidRequest
    );
    assert_eq!(
        code(&[("x-amz-checksum-type", "COMPOSITE")]),
        Code::InvalidRequest
    );
    assert_eq!(
        code(&[("x-amz-checksum-type", "SOME")]),
        Code::InvalidArgument
    );
}

#[test]
fn writes_are_conditional() {
    assert_eq!(
        put(&[("if-match", "\"a\"")]).condition,
        Some(WriteCondition::Match("a".into()))
    );
    let uris = [
        ("PUT", "/bucket/key"),
        ("POST", "/bucket/key?uploadId=u"),
        ("DELETE", "/bucket/key"),
    ];
    for (method, uri) in uris {
        let code = |headers: &[_]| refusal(method, uri, headers);
        assert_eq!(
            code(&[("if-match", "a"), ("if-none-match", "*")]),
            Code::NotImplemented
        );
        assert_eq!(code(&[("if-none-match", "\"a\"")]), Code::NotImplemented);
        assert_eq!(code(&[("if-match", "\"")]), Code::InvalidArgument);
        let twice = [("if-match", "a"), ("if-match", "a")];
        assert_eq!(code(&twice), Code::InvalidArgument);
        let date = "Fri, 27 Nov 2026 21:48:00 GMT";
        assert_eq!(code(&[("if-unmodified-since", date)]), Code::NotImplemented);
        assert_eq!(code(&[("if-modified-since", date)]), Code::NotImplemented);
    }
}

#[test]
fn a_copy_has_a_source() {
    let source = |text: &str| {
        let headers = [
            ("x-amz-copy-source", text),
            ("x-amz-copy-source-if-match", "\"a\""),
            ("x-amz-copy-source-if-none-match", "*"),
            (
                "x-amz-copy-source-if-unmodified-since",
                "Thu, 01 Jan 1970 00:00:07 GMT",
            ),
            ("x-amz-metadata-directive", "REPLACE"),
            ("x-amz-meta-a", "b"),
            ("if-match", "c"),
        ];
        operation("PUT", "/bucket/key", &headers)
    };
    let expected = |key: &str| Operation::CopyObject {
        source: CopySource {
            bucket: "from".into(),
            key: key.into(),
            conditions: ReadConditions {
                if_match: Some(ETagList::Of(vec!["a".into()])),
                if_none_match: Some(ETagList::Any),
                if_modified_since: None,
                if_unmodified_since: Some(7),
            },
        },
        replaces_metadata: true,
        replaces_tags: false,
        headers: PutHeaders {
            user: pairs(&[("a", "b")]),
            condition: Some(WriteCondition::Match("c".into())),
            ..PutHeaders::default()
        },
    };
    let rows = [
        ("from/a", "a"),
        ("/from/a", "a"),
        ("from%2Fa%2Fb", "a/b"),
        ("/from//a", "/a"),
        ("from/a%20b+c%3F", "a b+c?"),
        ("from/å", "å"),
        ("from/a?versionId=null", "a"),
    ];
    for (text, key) in rows {
        assert_eq!(source(text), expected(key), "{text}");
    }
    let code = |text| refusal("PUT", "/bucket/key", &[("x-amz-copy-source", text)]);
    for text in [
        "", "/", "from", "from/", "/from/", "from/%", "from/%FF", "from/a?b",
    ] {
        assert_eq!(code(text), Code::InvalidArgument, "{text}");
    }
    assert_eq!(code("from/a?versionId=3"), Code::NotImplemented);
    assert_eq!(code("From/a"), Code::InvalidBucketName);
    assert_eq!(code("%2Ffrom/a"), Code::InvalidBucketName);
    assert_eq!(
        code(&format!("from/{}", "k".repeat(1025))),
        Code::KeyTooLongError
    );
}

#[test]
fn a_copy_keeps_or_replaces() {
    let copy = |more: (&'static str, &'static str)| [("x-amz-copy-source", "from/a"), more];
    let Operation::CopyObject {
        replaces_metadata,
        replaces_tags,
        headers,
        ..
    } = operation(
        "PUT",
        "/bucket/key",
        &[
            ("x-amz-copy-source", "from/a"),
            ("x-amz-tagging-directive", "REPLACE"),
            ("x-amz-tagging", "a=b"),
        ],
    )
    else {
        panic!("a copy")
    };
    assert!(replaces_tags && !replaces_metadata);
    assert_eq!(headers.tags, pairs(&[("a", "b")]));
    let code = |more| refusal("PUT", "/bucket/key", &copy(more));
    assert_eq!(
        code(("x-amz-metadata-directive", "MERGE")),
        Code::InvalidArgument
    );
    assert_eq!(code(("x-amz-tagging-directive", "")), Code::InvalidArgument);
    assert_eq!(
        code(("x-amz-copy-source-range", "bytes=0-1")),
        Code::NotImplemented
    );
    assert_eq!(
        code(("x-amz-copy-source-server-side-encryption-customer-key", "a")),
        Code::NotImplemented
    );
    let itself = |more| refusal("PUT", "/from/a", &copy(more));
    assert_eq!(
        itself(("x-amz-metadata-directive", "COPY")),
        Code::InvalidRequest
    );
    operation(
        "PUT",
        "/from/a",
        &copy(("x-amz-metadata-directive", "REPLACE")),
    );
}
