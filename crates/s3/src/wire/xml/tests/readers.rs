//! Documents in requests: limits of all, deletions, the end of an upload, a new bucket.

use super::super::bucket::read_create;
use super::super::delete::{DeleteEntry, read_delete};
use super::super::multipart::{CompletedPart, read_complete};
use super::super::{BODY_BYTES, tagging};
use super::crc32;
use crate::wire::error::Code;
use crate::wire::etag::WriteCondition;

fn refused(text: &str) -> Code {
    read_delete(text.as_bytes()).expect_err(text).code
}

fn keys(text: &str) -> Vec<String> {
    let read = read_delete(text.as_bytes()).expect(text);
    read.objects.into_iter().map(|object| object.key).collect()
}

fn delete(key: &str) -> String {
    format!("<Delete><Object><Key>{key}</Key></Object></Delete>")
}

#[test]
fn objects_to_delete_are_read() {
    let text = "<?xml version=\"1.0\" encoding=\"utf-8\"?>
        <Delete xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">
          <Quiet>true</Quiet>
          <Object><Key>a</Key><VersionId>null</VersionId></Object>
          <Object><ETag>&quot;7778aef8&quot;</ETag><Key> b </Key></Object>
          <Object><Key>c</Key><ETag>*</ETag></Object>
        </Delete>\n";
    let read = read_delete(text.as_bytes()).unwrap();
    let entry = |key: &str, condition| DeleteEntry {
        key: key.into(),
        condition,
    };
    let expected = vec![
        entry("a", None),
        entry(" b ", Some(WriteCondition::Match("7778aef8".into()))),
        entry("c", Some(WriteCondition::Present)),
    ];
    assert!(read.is_quiet);
    assert_eq!(read.objects, expected);
}

#[test]
fn a_key_is_read_as_it_was_written() {
    let rows = [
        ("a&amp;&lt;&gt;&quot;&apos;&#65;&#x41;", "a&<>\"'AA"),
        ("&#x0;&#1;&#xFFFF;&#x10FFFF;", "\0\u{1}\u{ffff}\u{10ffff}"),
        ("<![CDATA[<a>&amp;]]>b", "<a>&amp;b"),
        ("a<!-- no --><?no?>b", "ab"),
        ("a\r\nb\rc&#xD;&#xA;", "a\nb\nc\r\n"),
        ("é\u{7f}\u{85}", "é\u{7f}\u{85}"),
    ];
    for (text, key) in rows {
        assert_eq!(keys(&delete(text)), [key], "{text}");
    }
    let prefixed =
        "\u{feff}<s:Delete xmlns:s=\"x\"><s:Object><s:Key>a</s:Key></s:Object></s:Delete>";
    assert_eq!(keys(prefixed), ["a"]);
}

#[test]
fn documents_that_are_none_are_refused() {
    let rows = [
        "",
        " ",
        "a",
        "<Delete>",
        "<Delete/>",
        "<Delete></Deleted>",
        "<Remove><Object><Key>a</Key></Object></Remove>",
        "<Delete><Object><Key>a</Key></Object></Delete><Delete/>",
        "<Delete><Object><Key>a</Key></Object></Delete>b",
        "<Delete><Object><Key>a</Key></Object>b</Delete>",
        "<Delete><Object><Key/></Object></Delete>",
        "<Delete><Object/></Delete>",
        "<Delete><Object><Key>a</Key><Key>b</Key></Object></Delete>",
        "<Delete><Object><Key><B>a</B></Key></Object></Delete>",
        "<Delete><Quiet>yes</Quiet><Object><Key>a</Key></Object></Delete>",
        "<Delete a=\"b\"><Object><Key>a</Key></Object></Delete>",
        "<!DOCTYPE Delete><Delete><Object><Key>a</Key></Object></Delete>",
        "<!DOCTYPE d [<!ENTITY a \"b\">]><Delete><Object><Key>&a;</Key></Object></Delete>",
        "<?xml version=\"1.0\" encoding=\"iso-8859-1\"?><Delete><Object><Key>a</Key></Object></Delete>",
    ];
    for text in rows {
        assert_eq!(refused(text), Code::MalformedXML, "{text}");
    }
    for key in [
        "&a;",
        "&",
        "&#;",
        "&#x;",
        "&#-1;",
        "&#xD800;",
        "&#x110000;",
        "&#99999999999;",
        "a\u{1}",
        "a\0",
    ] {
        assert_eq!(refused(&delete(key)), Code::MalformedXML, "{key:?}");
    }
    assert_eq!(
        read_delete(b"<Delete><Object><Key>\xff</Key></Object></Delete>")
            .unwrap_err()
            .code,
        Code::MalformedXML
    );
}

#[test]
fn documents_have_limits() {
    let object = "<Object><Key>a</Key></Object>";
    let of = |count: usize| format!("<Delete>{}</Delete>", object.repeat(count));
    assert_eq!(keys(&of(1000)).len(), 1000);
    assert_eq!(refused(&of(1001)), Code::MalformedXML);
    let mut text = delete("a");
    text += &" ".repeat(BODY_BYTES - text.len());
    assert_eq!(keys(&text), ["a"]);
    text.push(' ');
    assert_eq!(refused(&text), Code::MalformedXML);
    let deep = |depth: usize| {
        format!(
            "<Delete>{}{}</Delete>",
            "<a>".repeat(depth - 1),
            "</a>".repeat(depth - 1)
        )
    };
    // The deepest one that is read is refused for its content.
    assert_eq!(refused(&deep(16)), Code::NotImplemented);
    assert_eq!(refused(&deep(17)), Code::MalformedXML);
    let many = |count: usize| format!("<Delete>{}</Delete>", "<a/>".repeat(count - 1));
    assert_eq!(refused(&many(100_000)), Code::NotImplemented);
    assert_eq!(refused(&many(100_001)), Code::MalformedXML);
    assert_eq!(keys(&delete(&"k".repeat(1024))).len(), 1);
    assert_eq!(refused(&delete(&"k".repeat(1025))), Code::KeyTooLongError);
}

#[test]
fn what_would_change_a_deletion_is_refused() {
    let rows = [
        "<VersionId>3</VersionId>",
        "<VersionId/>",
        "<LastModifiedTime>x</LastModifiedTime>",
        "<Size>5</Size>",
        "<Other/>",
        "<ETag>a,b</ETag>",
    ];
    for more in rows {
        let text = format!("<Delete><Object><Key>a</Key>{more}</Object></Delete>");
        assert_eq!(refused(&text), Code::NotImplemented, "{more}");
    }
    let text = "<Delete><Object><Key>a</Key><ETag>\"</ETag></Object></Delete>";
    assert_eq!(refused(text), Code::InvalidArgument);
    let text = "<Delete><Force>true</Force><Object><Key>a</Key></Object></Delete>";
    assert_eq!(refused(text), Code::NotImplemented);
}

fn upload(parts: &str) -> Result<Vec<CompletedPart>, Code> {
    let text = format!("<CompleteMultipartUpload>{parts}</CompleteMultipartUpload>");
    read_complete(text.as_bytes()).map_err(|refusal| refusal.code)
}

#[test]
fn the_end_of_an_upload_lists_parts() {
    let read = upload(
        "<Part><ETag>\"a54357af\"</ETag><PartNumber>1</PartNumber></Part>
         <Part><PartNumber> 10000 </PartNumber><ETag>0c78aef8</ETag><ChecksumCRC32>AAAAAQ==</ChecksumCRC32></Part>",
    );
    let part = |part, etag: &str, checksum| CompletedPart {
        part,
        etag: etag.into(),
        checksum,
    };
    let expected = vec![
        part(1, "a54357af", None),
        part(10_000, "0c78aef8", Some(crc32())),
    ];
    assert_eq!(read, Ok(expected));
    let listed =
        |number: usize| format!("<Part><PartNumber>{number}</PartNumber><ETag>a</ETag></Part>");
    let all: String = (1..=10_000).map(listed).collect();
    assert_eq!(upload(&all).map(|parts| parts.len()), Ok(10_000));
    assert_eq!(upload(&(all + &listed(10_001))), Err(Code::MalformedXML));
    let rows = [
        ("", Code::MalformedXML),
        (
            "<Part><PartNumber>1</PartNumber></Part>",
            Code::MalformedXML,
        ),
        ("<Part><ETag>a</ETag></Part>", Code::MalformedXML),
        (
            "<Part><PartNumber>+1</PartNumber><ETag>a</ETag></Part>",
            Code::MalformedXML,
        ),
        (
            "<Part><PartNumber>0</PartNumber><ETag>a</ETag></Part>",
            Code::InvalidArgument,
        ),
        (
            "<Part><PartNumber>10001</PartNumber><ETag>a</ETag></Part>",
            Code::InvalidArgument,
        ),
        (
            "<Part><PartNumber>65537</PartNumber><ETag>a</ETag></Part>",
            Code::InvalidArgument,
        ),
        (
            "<Part><PartNumber>1</PartNumber><ETag></ETag></Part>",
            Code::InvalidArgument,
        ),
        (
            "<Part><PartNumber>1</PartNumber><ETag>a</ETag><ChecksumSHA1>AAAAAQ==</ChecksumSHA1></Part>",
            Code::InvalidDigest,
        ),
        (
            "<Part><PartNumber>1</PartNumber><ETag>a</ETag><ChecksumMD4>AAAAAQ==</ChecksumMD4></Part>",
            Code::NotImplemented,
        ),
        (
            "<Part><PartNumber>1</PartNumber><ETag>a</ETag><ChecksumCRC32>AAAAAQ==</ChecksumCRC32><ChecksumCRC32C>AAAAAQ==</ChecksumCRC32C></Part>",
            Code::MalformedXML,
        ),
    ];
    for (parts, code) in rows {
        assert_eq!(upload(parts), Err(code), "{parts}");
    }
    for (first, second) in [(2, 1), (1, 1)] {
        let parts = listed(first) + &listed(second);
        assert_eq!(upload(&parts), Err(Code::InvalidPartOrder));
    }
}

#[test]
fn a_new_bucket_has_a_location() {
    let read = |content: &str| {
        let text = format!("<CreateBucketConfiguration>{content}</CreateBucketConfiguration>");
        read_create(text.as_bytes()).map_err(|refusal| refusal.code)
    };
    assert_eq!(read_create(b""), Ok(None));
    assert_eq!(read(""), Ok(None));
    assert_eq!(read("<LocationConstraint/>"), Ok(None));
    let location = "<LocationConstraint>eu-west-1</LocationConstraint>";
    assert_eq!(read(location), Ok(Some("eu-west-1".into())));
    assert_eq!(
        read("<Bucket><Type>Directory</Type></Bucket>"),
        Err(Code::NotImplemented)
    );
    assert_eq!(read("<Tags/>"), Err(Code::NotImplemented));
    assert_eq!(read(&location.repeat(2)), Err(Code::MalformedXML));
}

#[test]
fn tags_are_read_with_their_bounds() {
    let read = |content: &str, most| {
        let text = format!("<Tagging><TagSet>{content}</TagSet></Tagging>");
        tagging::read_tagging(text.as_bytes(), most).map_err(|refusal| refusal.code)
    };
    let tag =
        |name: &str, value: &str| format!("<Tag><Key>{name}</Key><Value>{value}</Value></Tag>");
    assert_eq!(read("", tagging::OF_OBJECT), Ok(vec![]));
    assert_eq!(tagging::read_tagging(b"<Tagging/>", 10), Ok(vec![]));
    assert_eq!(
        read(&tag("a", " b "), 1),
        Ok(vec![("a".into(), " b ".into())])
    );
    assert_eq!(
        read(&(tag("a", "") + &tag("b", "")), 1),
        Err(Code::InvalidTag)
    );
    assert_eq!(read(&tag("a", "b").repeat(2), 2), Err(Code::InvalidTag));
    assert_eq!(read(&tag("", "b"), 2), Err(Code::InvalidTag));
    assert_eq!(
        read(&tag(&"é".repeat(128), &"é".repeat(256)), 2).map(|tags| tags.len()),
        Ok(1)
    );
    assert_eq!(read(&tag("a", &"é".repeat(257)), 2), Err(Code::InvalidTag));
    assert_eq!(read("<Tag><Key>a</Key></Tag>", 2), Err(Code::MalformedXML));
    assert_eq!(
        read("<Tag><Key>a</Key><Value>b</Value><More/></Tag>", 2),
        Err(Code::NotImplemented)
    );
}
