//! Errors, lists of buckets and objects, documents of a bucket.

use super::super::list::{
    BucketEntry, ChecksumKind, ObjectEntry, Page, buckets, objects, versions,
};
use super::super::{bucket, failure, timestamp};
use super::{MS, is, owner};
use crate::body::checksum::Algorithm;
use crate::wire::error::{Code, S3Error};
use crate::wire::request::{ListObjects, ListStyle};

#[test]
fn an_error_is_a_document() {
    let error = S3Error::new(Code::NoSuchKey, "The \"key\" <a&b> does not exist.");
    let document = failure::error(&error, "/bucket/a&b", "4442587FB7D0A2F9", &[("Key", "a&b")]);
    assert_eq!(
        document,
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>NoSuchKey</Code><Message>The &quot;key&quot; &lt;a&amp;b&gt; does not \
         exist.</Message><Key>a&amp;b</Key><Resource>/bucket/a&amp;b</Resource><RequestId>4442587FB7D0A2F9</RequestId></Error>"
    );
}

#[test]
fn documents_have_the_namespace_of_s3() {
    let expected = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<VersioningConfiguration xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">\
                    </VersioningConfiguration>";
    assert_eq!(bucket::versioning(), expected);
    is(
        &bucket::location("eu-west-1"),
        "<LocationConstraint>eu-west-1</LocationConstraint>",
    );
    is(
        &bucket::location("us-east-1"),
        "<LocationConstraint></LocationConstraint>",
    );
}

#[test]
fn times_are_of_milliseconds() {
    assert_eq!(timestamp(MS), "2026-11-27T21:48:00.000Z");
    assert_eq!(timestamp(MS + 7), "2026-11-27T21:48:00.007Z");
    assert_eq!(timestamp(0), "1970-01-01T00:00:00.000Z");
    assert_eq!(timestamp(i64::MIN), "1970-01-01T00:00:00.000Z");
    assert_eq!(timestamp(i64::MAX), "9999-12-31T23:59:59.999Z");
}

#[test]
fn rights_are_the_owners() {
    is(
        &bucket::access_control(&owner()),
        "<AccessControlPolicy>
           <Owner><ID>75aa57f0</ID><DisplayName>areo</DisplayName></Owner>
           <AccessControlList>
             <Grant>
               <Grantee xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" xsi:type=\"CanonicalUser\">
                 <ID>75aa57f0</ID><DisplayName>areo</DisplayName>
               </Grantee>
               <Permission>FULL_CONTROL</Permission>
             </Grant>
           </AccessControlList>
         </AccessControlPolicy>",
    );
}

#[test]
fn buckets_are_listed() {
    let entry = BucketEntry {
        name: "quotes".into(),
        created_ms: MS,
    };
    is(
        &buckets(&owner(), &[entry]),
        "<ListAllMyBucketsResult>
           <Owner><ID>75aa57f0</ID><DisplayName>areo</DisplayName></Owner>
           <Buckets>
             <Bucket><Name>quotes</Name><CreationDate>2026-11-27T21:48:00.000Z</CreationDate></Bucket>
           </Buckets>
         </ListAllMyBucketsResult>",
    );
}

fn request(style: ListStyle) -> ListObjects {
    ListObjects {
        style,
        prefix: "a b/".into(),
        delimiter: "/".into(),
        after: "a b/+".into(),
        token: None,
        max_keys: 2,
        url_encoding: false,
        fetch_owner: false,
    }
}

fn entry(key: &str) -> ObjectEntry {
    ObjectEntry {
        key: key.into(),
        modified_ms: MS,
        etag: "d41d8cd9".into(),
        size: 5,
        checksum: None,
    }
}

fn page<'a>(
    request: &'a ListObjects,
    entries: &'a [ObjectEntry],
    prefixes: &'a [String],
    owner: &'a super::Owner,
) -> Page<'a> {
    Page {
        bucket: "bucket",
        request,
        entries,
        common_prefixes: prefixes,
        next: None,
        owner,
    }
}

#[test]
fn objects_are_listed_by_markers() {
    let request = ListObjects {
        fetch_owner: true,
        ..request(ListStyle::V1)
    };
    let (entries, prefixes, owner) = ([entry("a b/<1>")], ["a b/x/".to_owned()], owner());
    let page = Page {
        next: Some("a b/x/"),
        ..page(&request, &entries, &prefixes, &owner)
    };
    is(
        &objects(&page),
        "<ListBucketResult>
           <Name>bucket</Name><Prefix>a b/</Prefix><Marker>a b/+</Marker><NextMarker>a b/x/</NextMarker>
           <MaxKeys>2</MaxKeys><Delimiter>/</Delimiter><IsTruncated>true</IsTruncated>
           <Contents>
             <Key>a b/&lt;1&gt;</Key><LastModified>2026-11-27T21:48:00.000Z</LastModified><ETag>&quot;d41d8cd9&quot;</ETag><Size>5</Size>
             <StorageClass>STANDARD</StorageClass>
             <Owner><ID>75aa57f0</ID><DisplayName>areo</DisplayName></Owner>
           </Contents>
           <CommonPrefixes><Prefix>a b/x/</Prefix></CommonPrefixes>
         </ListBucketResult>",
    );
}

#[test]
fn objects_are_listed_by_tokens() {
    let request = ListObjects {
        token: Some("t<".into()),
        url_encoding: true,
        ..request(ListStyle::V2)
    };
    let with_checksum = ObjectEntry {
        checksum: Some(ChecksumKind {
            algorithm: Algorithm::Crc64Nvme,
            is_full_object: true,
        }),
        ..entry("a b/\u{1}+%")
    };
    let (entries, prefixes, owner) = ([with_checksum], ["a b/é/".to_owned()], owner());
    let page = Page {
        next: Some("u"),
        ..page(&request, &entries, &prefixes, &owner)
    };
    is(
        &objects(&page),
        "<ListBucketResult>
           <Name>bucket</Name><EncodingType>url</EncodingType><Prefix>a%20b/</Prefix><StartAfter>a%20b/%2B</StartAfter>
           <ContinuationToken>t&lt;</ContinuationToken><NextContinuationToken>u</NextContinuationToken><KeyCount>2</KeyCount>
           <MaxKeys>2</MaxKeys><Delimiter>/</Delimiter><IsTruncated>true</IsTruncated>
           <Contents>
             <Key>a%20b/%01%2B%25</Key><LastModified>2026-11-27T21:48:00.000Z</LastModified><ETag>&quot;d41d8cd9&quot;</ETag>
             <ChecksumAlgorithm>CRC64NVME</ChecksumAlgorithm><ChecksumType>FULL_OBJECT</ChecksumType><Size>5</Size>
             <StorageClass>STANDARD</StorageClass>
           </Contents>
           <CommonPrefixes><Prefix>a%20b/%C3%A9/</Prefix></CommonPrefixes>
         </ListBucketResult>",
    );
}

#[test]
fn an_empty_page_says_so() {
    let request = ListObjects {
        prefix: String::new(),
        delimiter: String::new(),
        after: String::new(),
        ..request(ListStyle::V2)
    };
    let owner = owner();
    is(
        &objects(&page(&request, &[], &[], &owner)),
        "<ListBucketResult>
           <Name>bucket</Name><Prefix></Prefix><KeyCount>0</KeyCount><MaxKeys>2</MaxKeys><IsTruncated>false</IsTruncated>
         </ListBucketResult>",
    );
}

#[test]
fn versions_are_null() {
    let request = request(ListStyle::V1);
    let (entries, owner) = ([entry("a b/1")], owner());
    let page = Page {
        next: Some("a b/1"),
        ..page(&request, &entries, &[], &owner)
    };
    is(
        &versions(&page),
        "<ListVersionsResult>
           <Name>bucket</Name><Prefix>a b/</Prefix><KeyMarker>a b/+</KeyMarker><VersionIdMarker></VersionIdMarker>
           <NextKeyMarker>a b/1</NextKeyMarker><NextVersionIdMarker>null</NextVersionIdMarker>
           <MaxKeys>2</MaxKeys><Delimiter>/</Delimiter><IsTruncated>true</IsTruncated>
           <Version>
             <VersionId>null</VersionId><IsLatest>true</IsLatest>
             <Key>a b/1</Key><LastModified>2026-11-27T21:48:00.000Z</LastModified><ETag>&quot;d41d8cd9&quot;</ETag><Size>5</Size>
             <StorageClass>STANDARD</StorageClass>
             <Owner><ID>75aa57f0</ID><DisplayName>areo</DisplayName></Owner>
           </Version>
         </ListVersionsResult>",
    );
}

#[test]
fn characters_without_a_place_in_xml_are_references() {
    let request = ListObjects {
        url_encoding: false,
        ..request(ListStyle::V1)
    };
    let (entries, owner) = (
        [entry(
            "\0\u{1}\t\n\r\u{1f}\u{7f}\u{fffe}\u{ffff}\u{10ffff}'",
        )],
        owner(),
    );
    let document = objects(&page(&request, &entries, &[], &owner));
    let expected = "<Key>&#x0;&#x1;&#x9;&#xA;&#xD;&#x1F;&#x7F;&#xFFFE;&#xFFFF;\u{10ffff}'</Key>";
    assert!(document.contains(expected), "{document}");
}
