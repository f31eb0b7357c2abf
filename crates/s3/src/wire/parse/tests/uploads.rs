//! Uploads in parts.

use super::{operation, refusal};
use crate::body::checksum::{Algorithm, Checksum, Expected};
use crate::wire::error::Code;
use crate::wire::etag::WriteCondition;
use crate::wire::range::ByteRange;
use crate::wire::request::{CopySource, Operation, ReadConditions};

#[test]
fn an_upload_has_parts() {
    let upload_id = || "u".to_owned();
    let part = operation(
        "PUT",
        "/bucket/key?partNumber=1&uploadId=u",
        &[("x-amz-checksum-crc32", "AAAAAA==")],
    );
    let Operation::UploadPart {
        upload_id: id,
        part: 1,
        expected,
    } = part
    else {
        panic!("{part:?}")
    };
    assert_eq!(
        (id, expected.checksum.map(|it| it.algorithm)),
        (upload_id(), Some(Algorithm::Crc32))
    );
    let headers = [
        ("x-amz-copy-source", "from/a"),
        ("x-amz-copy-source-range", "bytes=5-9"),
    ];
    let copied = Operation::UploadPartCopy {
        upload_id: upload_id(),
        part: 10_000,
        source: CopySource {
            bucket: "from".into(),
            key: "a".into(),
            conditions: ReadConditions::default(),
        },
        range: Some(ByteRange::Between(5, 9)),
    };
    assert_eq!(
        operation("PUT", "/bucket/key?partNumber=10000&uploadId=u", &headers),
        copied
    );
    for range in ["bytes=5-", "bytes=-5", "5-9", "bytes=9-5"] {
        let headers = [
            ("x-amz-copy-source", "from/a"),
            ("x-amz-copy-source-range", range),
        ];
        assert_eq!(
            refusal("PUT", "/bucket/key?partNumber=1&uploadId=u", &headers),
            Code::InvalidArgument
        );
    }
    for query in [
        "partNumber=0&uploadId=u",
        "partNumber=10001&uploadId=u",
        "partNumber=+1&uploadId=u",
        "partNumber=&uploadId=u",
        "partNumber=1",
        "uploadId=u",
    ] {
        let uri = format!("/bucket/key?{query}");
        assert_eq!(refusal("PUT", &uri, &[]), Code::InvalidArgument, "{query}");
    }
    assert_eq!(
        refusal("PUT", "/bucket/key?partNumber=1&uploadId=", &[]),
        Code::NoSuchUpload
    );
    let conditional = refusal(
        "PUT",
        "/bucket/key?partNumber=1&uploadId=u",
        &[("if-none-match", "*")],
    );
    assert_eq!(conditional, Code::NotImplemented);
}

#[test]
fn an_upload_is_begun() {
    let begun = |algorithm: &str, wished: Option<&str>| {
        let mut headers = vec![
            ("x-amz-checksum-algorithm", algorithm),
            ("content-type", "a/b"),
        ];
        headers.extend(wished.map(|wished| ("x-amz-checksum-type", wished)));
        match operation("POST", "/bucket/key?uploads", &headers) {
            Operation::CreateMultipartUpload {
                headers,
                full_object_checksum,
            } => {
                assert_eq!(headers.content.content_type.as_deref(), Some("a/b"));
                (headers.algorithm.unwrap(), full_object_checksum)
            }
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(begun("CRC32", None), (Algorithm::Crc32, false));
    assert_eq!(
        begun("CRC32C", Some("FULL_OBJECT")),
        (Algorithm::Crc32c, true)
    );
    assert_eq!(begun("CRC64NVME", None), (Algorithm::Crc64Nvme, true));
    assert_eq!(
        begun("SHA256", Some("COMPOSITE")),
        (Algorithm::Sha256, false)
    );
    let code = |headers: &[_]| refusal("POST", "/bucket/key?uploads", headers);
    let kind = "x-amz-checksum-type";
    assert_eq!(
        code(&[("x-amz-checksum-algorithm", "SHA1"), (kind, "FULL_OBJECT")]),
        Code::InvalidRequest
    );
    assert_eq!(
        code(&[
            ("x-amz-checksum-algorithm", "CRC64NVME"),
            (kind, "COMPOSITE")
        ]),
        Code::InvalidRequest
    );
    assert_eq!(code(&[(kind, "COMPOSITE")]), Code::InvalidRequest);
    assert_eq!(code(&[("if-none-match", "*")]), Code::NotImplemented);
}

#[test]
fn an_upload_is_completed() {
    let kind = "x-amz-checksum-type";
    let headers = [
        ("if-match", "a"),
        ("x-amz-checksum-crc64nvme", "AAAAAAAAAAA="),
        (kind, "FULL_OBJECT"),
        ("x-amz-mp-object-size", "12"),
    ];
    let completed = Operation::CompleteMultipartUpload {
        upload_id: "u".into(),
        condition: Some(WriteCondition::Match("a".into())),
        expected: Expected {
            checksum: Some(Checksum {
                algorithm: Algorithm::Crc64Nvme,
                bytes: vec![0; 8],
            }),
            ..Expected::default()
        },
        full_object_checksum: Some(true),
        length: Some(12),
    };
    assert_eq!(
        operation("POST", "/bucket/key?uploadId=u", &headers),
        completed
    );
    let sized = refusal(
        "POST",
        "/bucket/key?uploadId=u",
        &[("x-amz-mp-object-size", "-1")],
    );
    assert_eq!(sized, Code::InvalidArgument);
}
