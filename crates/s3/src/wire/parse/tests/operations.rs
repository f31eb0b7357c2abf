//! Operations that have no headers of an object, and their parameters.

use super::{operation, parsed, refusal};
use crate::body::checksum::{Algorithm, Expected};
use crate::wire::error::Code;
use crate::wire::etag::{ETagList, WriteCondition};
use crate::wire::range::ByteRange;
use crate::wire::request::{
    Change, GetOptions, ListObjects, ListStyle, Operation, ReadConditions, ResponseOverrides,
};
use http::header::{CONTENT_DISPOSITION, EXPIRES};

#[test]
fn buckets_have_their_operations() {
    let none = Operation::CreateBucket {
        kind: None,
        n: None,
        k: None,
    };
    let rows = [
        ("GET", "/", Operation::ListBuckets),
        ("GET", "/?x-id=ListBuckets", Operation::ListBuckets),
        ("PUT", "/bucket", none),
        ("HEAD", "/bucket", Operation::HeadBucket),
        ("DELETE", "/bucket", Operation::DeleteBucket),
        ("GET", "/bucket?location", Operation::GetBucketLocation),
        ("GET", "/bucket?versioning=", Operation::GetBucketVersioning),
        ("GET", "/bucket?acl", Operation::GetAcl),
        ("GET", "/bucket/key?acl", Operation::GetAcl),
        ("POST", "/bucket?delete", Operation::DeleteObjects),
    ];
    for (method, uri, expected) in rows {
        assert_eq!(operation(method, uri, &[]), expected, "{method} {uri}");
    }
}

#[test]
fn documents_are_got_put_and_deleted() {
    type OfChange = fn(Change) -> Operation;
    let documents: [(&str, OfChange); 5] = [
        ("/bucket?cors", Operation::BucketCors),
        ("/bucket?lifecycle", Operation::BucketLifecycle),
        ("/bucket?tagging", Operation::BucketTagging),
        ("/bucket/key?tagging", Operation::ObjectTagging),
        (
            "/bucket/key?tagging&versionId=null",
            Operation::ObjectTagging,
        ),
    ];
    let changes = [
        ("GET", Change::Get),
        ("PUT", Change::Put),
        ("DELETE", Change::Delete),
    ];
    for (uri, of_change) in documents {
        for (method, change) in changes {
            let expected = of_change(change);
            assert_eq!(operation(method, uri, &[]), expected, "{method} {uri}");
        }
    }
}

#[test]
fn a_new_bucket_has_a_shape() {
    let headers = [
        ("x-areo-kind", "conditional"),
        ("x-areo-n", "5"),
        ("x-areo-k", "3"),
        ("x-amz-acl", "private"),
    ];
    let expected = Operation::CreateBucket {
        kind: Some("conditional".into()),
        n: Some(5),
        k: Some(3),
    };
    assert_eq!(operation("PUT", "/bucket", &headers), expected);
    for (name, value) in [
        ("x-areo-n", "0"),
        ("x-areo-n", "256"),
        ("x-areo-k", "a"),
        ("x-areo-kind", ""),
    ] {
        assert_eq!(
            refusal("PUT", "/bucket", &[(name, value)]),
            Code::InvalidArgument
        );
    }
    let larger = [("x-areo-n", "3"), ("x-areo-k", "4")];
    assert_eq!(refusal("PUT", "/bucket", &larger), Code::InvalidArgument);
    assert_eq!(
        refusal("PUT", "/bucket", &[("x-areo-f", "1")]),
        Code::NotImplemented
    );
    for (name, value) in [
        ("x-amz-acl", "public-read"),
        ("x-amz-object-ownership", "ObjectWriter"),
        ("x-amz-bucket-object-lock-enabled", "true"),
        ("x-amz-grant-read", "id=1"),
    ] {
        assert_eq!(
            refusal("PUT", "/bucket", &[(name, value)]),
            Code::NotImplemented,
            "{name}"
        );
    }
}

fn first_page(style: ListStyle) -> ListObjects {
    ListObjects {
        style,
        prefix: String::new(),
        delimiter: String::new(),
        after: String::new(),
        token: None,
        max_keys: 1000,
        url_encoding: false,
        fetch_owner: style == ListStyle::V1,
    }
}

#[test]
fn listings_have_their_parameters() {
    let v1 = operation(
        "GET",
        "/bucket?prefix=a+b%2B&delimiter=%2F&marker=a&max-keys=7&encoding-type=url",
        &[],
    );
    let expected = ListObjects {
        prefix: "a b+".into(),
        delimiter: "/".into(),
        after: "a".into(),
        max_keys: 7,
        url_encoding: true,
        ..first_page(ListStyle::V1)
    };
    assert_eq!(v1, Operation::ListObjects(expected));
    let v2 = operation(
        "GET",
        "/bucket/?list-type=2&start-after=a&continuation-token=t%3D&fetch-owner=true&max-keys=0",
        &[],
    );
    let expected = ListObjects {
        after: "a".into(),
        token: Some("t=".into()),
        max_keys: 0,
        fetch_owner: true,
        ..first_page(ListStyle::V2)
    };
    assert_eq!(v2, Operation::ListObjects(expected));
    let plain = Operation::ListObjects(first_page(ListStyle::V1));
    assert_eq!(
        operation("GET", "/bucket?prefix=&max-keys=99999999999999999999", &[]),
        plain
    );
    let versions = Operation::ListObjectVersions(ListObjects {
        after: "k".into(),
        ..first_page(ListStyle::V1)
    });
    assert_eq!(
        operation(
            "GET",
            "/bucket?versions&key-marker=k&version-id-marker=null",
            &[]
        ),
        versions
    );
    let uploads = Operation::ListMultipartUploads {
        prefix: "p".into(),
        delimiter: "/".into(),
        key_marker: "k".into(),
        upload_id_marker: "u".into(),
        max_uploads: 1000,
        url_encoding: false,
    };
    let uri =
        "/bucket?uploads&prefix=p&delimiter=/&key-marker=k&upload-id-marker=u&max-uploads=2000";
    assert_eq!(operation("GET", uri, &[]), uploads);
    let parts = Operation::ListParts {
        upload_id: "u".into(),
        marker: 3,
        max_parts: 2,
        url_encoding: false,
    };
    assert_eq!(
        operation(
            "GET",
            "/bucket/key?uploadId=u&part-number-marker=3&max-parts=2",
            &[]
        ),
        parts
    );
}

#[test]
fn listings_refuse_parameters_that_are_not_valid() {
    let invalid = [
        "max-keys=-1",
        "max-keys=a",
        "max-keys=",
        "max-keys=+1",
        "encoding-type=xml",
        "list-type=1",
        "list-type=2&continuation-token=",
        "list-type=2&fetch-owner=1",
        "prefix=a&prefix=b",
        "prefix=a&prefix=a",
        "versions&version-id-marker=null",
        "uploads&max-uploads=x",
    ];
    for query in invalid {
        let uri = format!("/bucket?{query}");
        assert_eq!(refusal("GET", &uri, &[]), Code::InvalidArgument, "{query}");
    }
    let unknown = [
        "start-after=a",
        "continuation-token=a",
        "list-type=2&marker=a",
        "metadata=true",
        "list-type=2&versions",
        "cors&tagging",
        "versions&key-marker=a&version-id-marker=b",
    ];
    for query in unknown {
        let uri = format!("/bucket?{query}");
        assert_eq!(refusal("GET", &uri, &[]), Code::NotImplemented, "{query}");
    }
}

#[test]
fn reads_have_ranges_conditions_and_overrides() {
    let headers = [
        ("range", "bytes=2-5"),
        ("if-match", "\"a\""),
        ("if-none-match", "b, \"c\""),
        ("if-modified-since", "Fri, 27 Nov 2026 21:48:00 GMT"),
        ("if-unmodified-since", "Thu, 01 Jan 1970 00:00:00 GMT"),
        ("x-amz-checksum-mode", "ENABLED"),
    ];
    let uri = "/bucket/key?versionId=null&response-content-disposition=attachment%3B+filename%3D%22%C3%A9%22&response-expires=0";
    let options = GetOptions {
        range: Some(ByteRange::Between(2, 5)),
        conditions: ReadConditions {
            if_match: Some(ETagList::Of(vec!["a".into()])),
            if_none_match: Some(ETagList::Of(vec!["b".into(), "c".into()])),
            if_modified_since: Some(1_795_816_080),
            if_unmodified_since: Some(0),
        },
        overrides: ResponseOverrides {
            headers: vec![
                (CONTENT_DISPOSITION, "attachment; filename=\"é\"".into()),
                (EXPIRES, "0".into()),
            ],
        },
        part: None,
        shows_checksums: true,
    };
    assert_eq!(
        operation("GET", uri, &headers),
        Operation::GetObject(options.clone())
    );
    assert_eq!(
        operation("HEAD", uri, &headers),
        Operation::HeadObject(options)
    );
    let part = operation("GET", "/bucket/key?partNumber=10000", &[]);
    let options = GetOptions {
        part: Some(10_000),
        ..GetOptions::default()
    };
    assert_eq!(part, Operation::GetObject(options));
}

#[test]
fn a_range_counts_only_if_nothing_can_take_its_sense() {
    let plain = Operation::GetObject(GetOptions::default());
    let range = ("range", "bytes=0-1");
    assert_ne!(operation("GET", "/bucket/key", &[range]), plain);
    for etag in ["\"a\"", "Fri, 27 Nov 2026 21:48:00 GMT"] {
        assert_eq!(
            operation("GET", "/bucket/key", &[range, ("if-range", etag)]),
            plain
        );
    }
    assert_eq!(
        operation("GET", "/bucket/key", &[("range", "lines=0-1")]),
        plain
    );
    assert_eq!(
        refusal("GET", "/bucket/key?partNumber=1", &[range]),
        Code::InvalidRequest
    );
}

#[test]
fn objects_have_other_operations() {
    let attributes = operation(
        "GET",
        "/bucket/key?attributes",
        &[
            ("x-amz-object-attributes", "ETag,ObjectSize"),
            ("x-amz-object-attributes", "ObjectParts"),
            ("x-amz-max-parts", "5"),
            ("x-amz-part-number-marker", "2"),
        ],
    );
    let expected = Operation::GetObjectAttributes {
        attributes: vec!["ETag".into(), "ObjectSize".into(), "ObjectParts".into()],
        max_parts: 5,
        part_marker: 2,
    };
    assert_eq!(attributes, expected);
    for words in ["", "Size", "ETag,,"] {
        let headers = [("x-amz-object-attributes", words)];
        assert_eq!(
            refusal("GET", "/bucket/key?attributes", &headers),
            Code::InvalidArgument
        );
    }
    assert_eq!(
        refusal("GET", "/bucket/key?attributes", &[]),
        Code::InvalidArgument
    );
    let delete = |headers: &[_]| operation("DELETE", "/bucket/key?versionId=null", headers);
    let condition = Some(WriteCondition::Match("a".into()));
    assert_eq!(delete(&[]), Operation::DeleteObject { condition: None });
    assert_eq!(
        delete(&[("if-match", "\"a\"")]),
        Operation::DeleteObject { condition }
    );
    let upload_id = "u".to_owned();
    let abort = operation("DELETE", "/bucket/key?uploadId=u", &[]);
    assert_eq!(abort, Operation::AbortMultipartUpload { upload_id });
}

#[test]
fn a_browser_asks_before_it_sends() {
    let headers = [
        ("origin", "https://app.example"),
        ("access-control-request-method", "PUT"),
        (
            "access-control-request-headers",
            "Content-Type, x-amz-date,",
        ),
    ];
    let expected = Operation::Preflight {
        origin: "https://app.example".into(),
        method: "PUT".into(),
        headers: vec!["content-type".into(), "x-amz-date".into()],
    };
    let uri = "/bucket/key?uploadId=u&partNumber=1&anything&X-Amz-Security-Token=x";
    assert_eq!(operation("OPTIONS", uri, &headers), expected);
    for some in [&headers[..1], &headers[1..]] {
        assert_eq!(refusal("OPTIONS", uri, some), Code::InvalidRequest);
    }
}

#[test]
fn an_invocation_has_a_number() {
    let invocation = |text| parsed("GET", "/", &[("amz-sdk-invocation-id", text)]).invocation;
    assert_eq!(parsed("GET", "/", &[]).invocation, 0);
    assert_eq!(invocation("00000000-0000-0000-0000-0000000000ff"), 255);
    let number = 0xfd4a_77f6_1dc0_4d26_8e46_08b1_0a56_cd7b;
    assert_eq!(invocation("fd4a77f6-1dc0-4d26-8e46-08b10a56cd7b"), number);
    assert_eq!(invocation("FD4A77F6-1DC0-4D26-8E46-08B10A56CD7B"), number);
    // SHA-256 of the text, the first 16 bytes: the number stays over versions of the gateway.
    assert_eq!(invocation("abc"), 0xba78_16bf_8f01_cfea_4141_40de_5dae_2223);
    let others = [
        "",
        "fd4a77f61dc04d268e4608b10a56cd7b",
        "00000000-0000-0000-0000-000000000000",
        "é",
    ];
    let mut numbers: Vec<u128> = others.map(invocation).to_vec();
    numbers.sort_unstable();
    numbers.dedup();
    assert_eq!(numbers.len(), others.len());
    assert!(numbers.iter().all(|number| *number != 0));
}

#[test]
fn a_document_has_checksums() {
    let headers = [
        ("content-md5", "1B2M2Y8AsgTpgAmY7PhCfg=="),
        ("x-amz-sdk-checksum-algorithm", "CRC32"),
        ("x-amz-checksum-crc32", "AAAAAA=="),
    ];
    let request = parsed("POST", "/bucket?delete", &headers);
    assert!(request.document.md5.is_some());
    let checksum = request.document.checksum.unwrap();
    assert_eq!(
        (checksum.algorithm, checksum.bytes),
        (Algorithm::Crc32, vec![0; 4])
    );
    let put = parsed("PUT", "/bucket/key", &headers);
    assert_eq!(put.document, Expected::default());
}
