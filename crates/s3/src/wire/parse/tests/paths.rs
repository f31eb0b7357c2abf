//! Buckets and keys.

use super::super::{Addressing, check_bucket_name, check_new_bucket_name, parse};
use super::{head, parsed, refusal};
use crate::wire::error::Code;
use crate::wire::request::Target;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use proptest::prelude::*;

fn object(bucket: &str, key: &str) -> Target {
    Target::Object {
        bucket: bucket.into(),
        key: key.into(),
    }
}

#[test]
fn a_path_is_decoded_once_and_kept_as_it_is() {
    let keys = [
        ("/bucket/key", "key"),
        ("/bucket/a/b/", "a/b/"),
        ("/bucket//", "/"),
        ("/bucket//a//b", "/a//b"),
        ("/bucket/../a/./b", "../a/./b"),
        ("/bucket/a%2Fb", "a/b"),
        ("/bucket/%2F", "/"),
        ("/bucket/a%252Fb", "a%2Fb"),
        ("/bucket/a+b%20c", "a+b c"),
        ("/bucket/%F4%8F%BF%BF", "\u{10ffff}"),
        ("/bucket/%00", "\0"),
        ("/bucket/a%3Fb?x-id=GetObject", "a?b"),
        ("/bucket/a%25", "a%"),
    ];
    for (path, key) in keys {
        assert_eq!(parsed("GET", path, &[]).target, object("bucket", key));
    }
    assert_eq!(parsed("GET", "/", &[]).target, Target::Service);
    for path in ["/bucket", "/bucket/", "/b%75cket"] {
        let target = parsed("GET", path, &[]).target;
        assert_eq!(target, Target::Bucket("bucket".into()));
    }
}

#[test]
fn a_path_that_cannot_be_decoded_is_refused() {
    let paths = [
        "/bucket/%",
        "/bucket/%2",
        "/bucket/%zz",
        "/bucket/%2%30",
        "/bucket/%FF",
        "/bucket/%C3",
        "/%FF/a",
    ];
    for path in paths {
        assert_eq!(refusal("GET", path, &[]), Code::InvalidURI, "{path}");
    }
    for query in ["?prefix=%", "?prefix=%FF", "?%2=1"] {
        let uri = format!("/bucket{query}");
        assert_eq!(refusal("GET", &uri, &[]), Code::InvalidURI, "{query}");
    }
    assert_eq!(refusal("GET", "*", &[]), Code::InvalidURI);
}

#[test]
fn a_key_has_1024_bytes_at_most() {
    let longest = "k".repeat(1024);
    let target = parsed("PUT", &format!("/bucket/{longest}"), &[]).target;
    assert_eq!(target, object("bucket", &longest));
    let longer = format!("/bucket/{longest}k");
    assert_eq!(refusal("PUT", &longer, &[]), Code::KeyTooLongError);
    let characters = format!("/bucket/{}", "%C3%A9".repeat(513));
    assert_eq!(refusal("PUT", &characters, &[]), Code::KeyTooLongError);
    let prefix = format!("/bucket?prefix={longest}k");
    assert_eq!(refusal("GET", &prefix, &[]), Code::KeyTooLongError);
}

#[test]
fn a_bucket_has_the_name_of_a_domain() {
    let long = "b".repeat(63);
    for name in ["a", "0", "a_b", "a.b-c", "a..b", &long] {
        assert_eq!(check_bucket_name(name), Ok(()), "{name}");
    }
    let longer = "b".repeat(64);
    for name in ["", "A", "-a", ".a", "_a", "a b", "a/b", "ä", "a\0", &longer] {
        let refusal = check_bucket_name(name).unwrap_err();
        assert_eq!(refusal.code, Code::InvalidBucketName, "{name}");
    }
    assert_eq!(refusal("GET", "//key", &[]), Code::InvalidBucketName);
    assert_eq!(refusal("GET", "/a%2Fb", &[]), Code::InvalidBucketName);
    assert_eq!(
        refusal("GET", "/.well-known/x", &[]),
        Code::InvalidBucketName
    );
}

#[test]
fn a_new_bucket_has_a_name_by_the_rules_of_s3() {
    for name in ["abc", "a.b-c", "1.2.3", "1.2.3.400", "xn-a"] {
        assert_eq!(check_new_bucket_name(name), Ok(()), "{name}");
    }
    let refused = [
        "ab",
        "a_b",
        "a..b",
        "abc-",
        "abc.",
        "1.2.3.4",
        "xn--a",
        "sthree-a",
        "amzn-s3-demo-a",
        "a-s3alias",
        "a--ol-s3",
        "a.mrap",
        "a--x-s3",
        "a--table-s3",
    ];
    for name in refused {
        let path = format!("/{name}");
        assert_eq!(
            refusal("PUT", &path, &[]),
            Code::InvalidBucketName,
            "{name}"
        );
        // One that the native interface made can be used.
        assert_eq!(
            parsed("HEAD", &path, &[]).target,
            Target::Bucket(name.into())
        );
    }
}

#[test]
fn a_host_names_a_bucket() {
    let domains = vec!["s3.example".to_owned(), "eu.s3.Example".to_owned()];
    let addressing = Addressing { domains };
    let target = |uri: &str, hosts: &[&str]| {
        let headers: Vec<_> = hosts.iter().map(|host| ("host", *host)).collect();
        parse(&head("GET", uri, &headers), &addressing).map(|request| request.target)
    };
    let bucket = |name: &str| Target::Bucket(name.into());
    let rows: &[(&str, &[&str], Target)] = &[
        ("/", &["data.s3.example"], bucket("data")),
        ("/", &["data.S3.EXAMPLE:7480"], bucket("data")),
        ("/", &["a.b.s3.example."], bucket("a.b")),
        ("/", &["data.eu.s3.example"], bucket("data")),
        ("/a/b", &["data.s3.example"], object("data", "a/b")),
        ("//", &["data.s3.example"], object("data", "/")),
        ("/data/a", &["s3.example:80"], object("data", "a")),
        ("/data/a", &["eu.s3.example"], object("data", "a")),
        ("/data/a", &["127.0.0.1:7480"], object("data", "a")),
        ("/data/a", &["[::1]:7480"], object("data", "a")),
        ("/data/a", &["xs3.example"], object("data", "a")),
        ("/data/a", &[], object("data", "a")),
        // The authority of the request's line stands above the header.
        (
            "http://data.s3.example/a",
            &["other.s3.example"],
            object("data", "a"),
        ),
    ];
    for (uri, hosts, expected) in rows {
        assert_eq!(target(uri, hosts).as_ref(), Ok(expected), "{uri} {hosts:?}");
    }
    let code = |uri, hosts: &[&str]| target(uri, hosts).unwrap_err().code;
    assert_eq!(code("/", &["A_-é.s3.example"]), Code::InvalidRequest);
    assert_eq!(code("/", &["-a.s3.example"]), Code::InvalidBucketName);
    assert_eq!(code("/", &[".s3.example"]), Code::InvalidBucketName);
    let two = ["a.s3.example", "b.s3.example"];
    assert_eq!(code("/", &two), Code::InvalidRequest);
    // Without domains the host says nothing.
    let path_style = parsed("GET", "/data/a", &[("host", "x.s3.example")]);
    assert_eq!(path_style.target, object("data", "a"));
}

proptest! {
    #[test]
    fn every_key_comes_back_from_its_path(key in "\\PC{1,60}|[/.%+ ]{1,8}|\u{0}\u{10ffff}") {
        let path = format!("/bucket/{}", utf8_percent_encode(&key, NON_ALPHANUMERIC));
        prop_assert_eq!(parsed("GET", &path, &[]).target, object("bucket", &key));
        let copy = format!("bucket/{}", utf8_percent_encode(&key, NON_ALPHANUMERIC));
        let request = parsed("PUT", "/other/x", &[("x-amz-copy-source", &copy)]);
        let crate::wire::request::Operation::CopyObject { source, .. } = request.operation else {
            panic!("a copy")
        };
        prop_assert_eq!(source.key, key);
    }
}
