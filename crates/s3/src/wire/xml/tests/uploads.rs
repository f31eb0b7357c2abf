//! Documents of uploads, of copies, of deletions and of attributes.

use super::super::delete::{DeleteFailure, deleted};
use super::super::list::ChecksumKind;
use super::super::multipart::{
    Completed, CompletedChecksum, PartEntry, PartsPage, UploadEntry, UploadsPage, completed,
    initiated, parts, uploads,
};
use super::super::object::{AttributeParts, Attributes, Copied, attributes, copied, copied_part};
use super::{MS, crc32, is, owner};
use crate::body::checksum::Algorithm;
use crate::wire::error::{Code, S3Error};

#[test]
fn copies_have_results() {
    let copy = Copied {
        etag: "9b2cf535".into(),
        modified_ms: MS,
        checksum: Some(crc32()),
        is_full_object: true,
    };
    is(
        &copied(&copy),
        "<CopyObjectResult>
           <LastModified>2026-11-27T21:48:00.000Z</LastModified><ETag>&quot;9b2cf535&quot;</ETag>
           <ChecksumCRC32>AAAAAQ==</ChecksumCRC32><ChecksumType>FULL_OBJECT</ChecksumType>
         </CopyObjectResult>",
    );
    let plain = Copied {
        checksum: None,
        ..copy
    };
    is(
        &copied_part(&plain),
        "<CopyPartResult>
           <LastModified>2026-11-27T21:48:00.000Z</LastModified><ETag>&quot;9b2cf535&quot;</ETag>
         </CopyPartResult>",
    );
}

#[test]
fn an_upload_begins_and_ends() {
    is(
        &initiated("bucket", "a&b", "VXBsb2Fk"),
        "<InitiateMultipartUploadResult>
           <Bucket>bucket</Bucket><Key>a&amp;b</Key><UploadId>VXBsb2Fk</UploadId>
         </InitiateMultipartUploadResult>",
    );
    let mut done = Completed {
        location: "http://s3.example/bucket/a".into(),
        bucket: "bucket".into(),
        key: "a".into(),
        etag: "3858f622-9".into(),
        checksum: Some(CompletedChecksum {
            checksum: crc32(),
            parts: Some(9),
        }),
    };
    is(
        &completed(&done),
        "<CompleteMultipartUploadResult>
           <Location>http://s3.example/bucket/a</Location><Bucket>bucket</Bucket><Key>a</Key><ETag>&quot;3858f622-9&quot;</ETag>
           <ChecksumCRC32>AAAAAQ==-9</ChecksumCRC32><ChecksumType>COMPOSITE</ChecksumType>
         </CompleteMultipartUploadResult>",
    );
    done.checksum = done.checksum.map(|checksum| CompletedChecksum {
        parts: None,
        ..checksum
    });
    let whole = "<ChecksumCRC32>AAAAAQ==</ChecksumCRC32><ChecksumType>FULL_OBJECT</ChecksumType>";
    assert!(completed(&done).contains(whole));
}

fn part() -> PartEntry {
    PartEntry {
        part: 2,
        etag: "7778aef8".into(),
        modified_ms: MS,
        size: 10_485_760,
        checksum: Some(crc32()),
    }
}

#[test]
fn parts_are_listed() {
    let (owner, listed) = (owner(), [part()]);
    let page = PartsPage {
        bucket: "bucket",
        key: "a b",
        upload_id: "XXBsb2Fk",
        marker: 1,
        max_parts: 1,
        is_truncated: true,
        parts: &listed,
        checksum: Some(ChecksumKind {
            algorithm: Algorithm::Crc32,
            is_full_object: false,
        }),
        url_encoding: true,
        owner: &owner,
    };
    is(
        &parts(&page),
        "<ListPartsResult>
           <Bucket>bucket</Bucket><EncodingType>url</EncodingType><Key>a%20b</Key><UploadId>XXBsb2Fk</UploadId>
           <Initiator><ID>75aa57f0</ID><DisplayName>areo</DisplayName></Initiator>
           <Owner><ID>75aa57f0</ID><DisplayName>areo</DisplayName></Owner>
           <StorageClass>STANDARD</StorageClass><ChecksumAlgorithm>CRC32</ChecksumAlgorithm><ChecksumType>COMPOSITE</ChecksumType>
           <PartNumberMarker>1</PartNumberMarker><NextPartNumberMarker>2</NextPartNumberMarker><MaxParts>1</MaxParts>
           <IsTruncated>true</IsTruncated>
           <Part>
             <PartNumber>2</PartNumber><LastModified>2026-11-27T21:48:00.000Z</LastModified><ETag>&quot;7778aef8&quot;</ETag>
             <Size>10485760</Size><ChecksumCRC32>AAAAAQ==</ChecksumCRC32>
           </Part>
         </ListPartsResult>",
    );
}

#[test]
fn uploads_are_listed() {
    let owner = owner();
    let listed = [UploadEntry {
        key: "my divisor".into(),
        upload_id: "XMgbGlrZSBl".into(),
        initiated_ms: MS,
        checksum: None,
    }];
    let prefixes = ["photos/".to_owned()];
    let page = UploadsPage {
        bucket: "bucket",
        prefix: "",
        delimiter: "/",
        key_marker: "",
        upload_id_marker: "",
        max_uploads: 2,
        url_encoding: false,
        uploads: &listed,
        common_prefixes: &prefixes,
        next: Some(("photos/", "")),
        owner: &owner,
    };
    is(
        &uploads(&page),
        "<ListMultipartUploadsResult>
           <Bucket>bucket</Bucket><KeyMarker></KeyMarker><UploadIdMarker></UploadIdMarker>
           <NextKeyMarker>photos/</NextKeyMarker><NextUploadIdMarker></NextUploadIdMarker>
           <Prefix></Prefix><Delimiter>/</Delimiter><MaxUploads>2</MaxUploads><IsTruncated>true</IsTruncated>
           <Upload>
             <Key>my divisor</Key><UploadId>XMgbGlrZSBl</UploadId>
             <Initiator><ID>75aa57f0</ID><DisplayName>areo</DisplayName></Initiator>
             <Owner><ID>75aa57f0</ID><DisplayName>areo</DisplayName></Owner>
             <StorageClass>STANDARD</StorageClass><Initiated>2026-11-27T21:48:00.000Z</Initiated>
           </Upload>
           <CommonPrefixes><Prefix>photos/</Prefix></CommonPrefixes>
         </ListMultipartUploadsResult>",
    );
}

#[test]
fn deletions_have_results() {
    let failure = DeleteFailure {
        key: "sample2.txt".into(),
        error: S3Error::new(Code::AccessDenied, "Access Denied"),
    };
    is(
        &deleted(&["sample1.txt".into()], &[failure]),
        "<DeleteResult>
           <Deleted><Key>sample1.txt</Key></Deleted>
           <Error><Key>sample2.txt</Key><Code>AccessDenied</Code><Message>Access Denied</Message></Error>
         </DeleteResult>",
    );
}

#[test]
fn attributes_are_those_that_were_asked_for() {
    is(
        &attributes(&Attributes::default()),
        "<GetObjectAttributesResponse></GetObjectAttributesResponse>",
    );
    let all = Attributes {
        etag: Some("7778aef8".into()),
        checksum: Some((crc32(), false)),
        parts: Some(AttributeParts {
            total: 3,
            marker: 1,
            max_parts: 1,
            is_truncated: true,
            parts: vec![part()],
        }),
        shows_storage_class: true,
        size: Some(7),
    };
    is(
        &attributes(&all),
        "<GetObjectAttributesResponse>
           <ETag>7778aef8</ETag>
           <Checksum><ChecksumCRC32>AAAAAQ==</ChecksumCRC32><ChecksumType>COMPOSITE</ChecksumType></Checksum>
           <ObjectParts>
             <PartsCount>3</PartsCount><PartNumberMarker>1</PartNumberMarker><NextPartNumberMarker>2</NextPartNumberMarker>
             <MaxParts>1</MaxParts><IsTruncated>true</IsTruncated>
             <Part><PartNumber>2</PartNumber><Size>10485760</Size><ChecksumCRC32>AAAAAQ==</ChecksumCRC32></Part>
           </ObjectParts>
           <StorageClass>STANDARD</StorageClass><ObjectSize>7</ObjectSize>
         </GetObjectAttributesResponse>",
    );
}
