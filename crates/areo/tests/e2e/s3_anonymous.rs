//! Requests without a signature: they read and list what the key `anonymous` may, and nothing else.

#![allow(clippy::unwrap_used, reason = "a test")]

use crate::cluster::wait_until;
use crate::s3::{Served, served};
use crate::s3_client::{Response, call};
use std::process::Command;

impl Served {
    /// The response to a request without a signature.
    fn anonymous(&self, method: &str, target: &str, headers: &[(&str, &str)]) -> Response {
        let mut request = call(&self.gateway, &self.caller, method, target).unsigned();
        for (name, value) in headers {
            request = request.header(name, value);
        }
        if method == "PUT" || method == "POST" {
            request = request.body(b"other");
        }
        request.send()
    }

    fn put(&self, target: &str, body: &[u8]) {
        let put = call(&self.gateway, &self.caller, "PUT", target).body(body);
        assert_eq!(put.send().status, 200, "{target}");
    }
}

/// A cluster with an object in a bucket that is to be public, and one in another.
fn two_buckets() -> Served {
    let served = served(&["--durability", "memory"]);
    for bucket in ["/public", "/private"] {
        served.status("PUT", bucket, 200);
        served.put(&format!("{bucket}/a"), b"content");
    }
    served
}

/// A cluster of which everything is public.
fn all_public() -> Served {
    let served = two_buckets();
    let create = ["key", "create", "anonymous", "--grant", "read,list:*"];
    served.cluster.run(&create).done();
    wait_until(|| served.anonymous("GET", "/public/a", &[]).status == 200);
    served
}

#[test]
fn an_object_is_public_only_where_it_was_granted() {
    let served = two_buckets();
    let get = |target| served.anonymous("GET", target, &[]);
    assert_eq!(get("/public/a").element("Code"), "AccessDenied");
    let create = ["key", "create", "anonymous", "--grant"];
    let create = |grant: &str| served.cluster.run(&[&create[..], &[grant]].concat());
    create("read,write:public").refused(2, &["'anonymous'", "'read,write:public'"]);
    create("status").refused(2, &["'status'"]);
    let made = create("read:public").done();
    assert!(!made.text().contains("areokey1"), "it has no secret");
    wait_until(|| get("/public/a").status == 200);

    let url = format!("http://{}/public/a", served.gateway.address);
    let curl = Command::new("curl")
        .args(["-s", "--noproxy", "*", "-i", &url])
        .output();
    let answer = String::from_utf8(curl.unwrap().stdout).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(answer.ends_with("\r\n\r\ncontent"), "{answer}");
    let part = served.anonymous("GET", "/public/a", &[("range", "bytes=0-2")]);
    assert_eq!((part.status, part.text()), (206, "con"));
    assert_eq!(served.anonymous("HEAD", "/public/a", &[]).status, 200);
    assert_eq!(get("/public/none").element("Code"), "NoSuchKey");

    for refused in [
        "/private/a",
        "/private",
        "/public",
        "/public?list-type=2",
        "/",
    ] {
        let answer = get(refused);
        assert_eq!(
            (answer.status, answer.element("Code")),
            (403, "AccessDenied"),
            "{refused}"
        );
    }
    let grant = ["key", "grant", "anonymous", "--grant", "read,list:public"];
    served.cluster.run(&grant).done();
    wait_until(|| get("/public?list-type=2").status == 200);
    assert_eq!(get("/public").element("Key"), "a");
    let wider = ["key", "grant", "anonymous", "--grant", "read,delete:public"];
    served
        .cluster
        .run(&wider)
        .refused(2, &["'read,delete:public'"]);
    served
        .cluster
        .run(&["key", "rotate", "anonymous"])
        .refused(2, &["no secret"]);

    served.cluster.run(&["key", "revoke", "anonymous"]).done();
    wait_until(|| get("/public/a").status == 403);
    // A later key of the name is another key, and counts without a new start of the gateway.
    create("read:private").done();
    wait_until(|| get("/private/a").status == 200);
    assert_eq!(get("/public/a").status, 403);
}

#[test]
fn a_request_without_a_signature_changes_nothing() {
    let served = all_public();
    let begun = call(&served.gateway, &served.caller, "POST", "/public/b?uploads").send();
    let upload = begun.element("UploadId");
    let part = format!("/public/b?partNumber=1&uploadId={upload}");
    let of_upload = format!("/public/b?uploadId={upload}");
    let copy: &[(&str, &str)] = &[("x-amz-copy-source", "/private/a")];
    let onto: &[(&str, &str)] = &[
        ("x-amz-copy-source", "/public/a"),
        ("x-amz-metadata-directive", "REPLACE"),
    ];
    let none: &[(&str, &str)] = &[];
    let absent: &[(&str, &str)] = &[("if-none-match", "*")];
    for (method, target, headers) in [
        ("PUT", "/public/a", none),
        ("PUT", "/public/new", none),
        ("PUT", "/public/new", absent),
        ("PUT", "/public/new", copy),
        ("PUT", "/public/a", onto),
        ("DELETE", "/public/a", none),
        ("POST", "/public?delete", none),
        ("PUT", "/public/a?tagging", none),
        ("DELETE", "/public/a?tagging", none),
        ("POST", "/public/a?uploads", none),
        ("PUT", &part, none),
        ("PUT", &part, copy),
        ("POST", &of_upload, none),
        ("DELETE", &of_upload, none),
        ("GET", &of_upload, none),
        ("GET", "/public?uploads", none),
        ("PUT", "/new-bucket", none),
        ("DELETE", "/public", none),
        ("PUT", "/public?cors", none),
        ("PUT", "/public?lifecycle", none),
        ("GET", "/", none),
    ] {
        let answer = served.anonymous(method, target, headers);
        let code = answer.element("Code");
        assert_eq!(
            (answer.status, code),
            (403, "AccessDenied"),
            "{method} {target}"
        );
    }
    let get = served.anonymous("GET", "/public/a", none);
    assert_eq!((get.status, get.text()), (200, "content"));
    let list = served.anonymous("GET", "/public?list-type=2", none);
    assert_eq!(list.element("KeyCount"), "1", "{}", list.text());
    let parts = call(&served.gateway, &served.caller, "GET", &of_upload).send();
    assert_eq!(parts.status, 200, "the upload is there");
}

/// A request that has a part of a signature was to be signed.
#[test]
fn a_part_of_a_signature_is_no_request_without_one() {
    let served = all_public();
    let none: &[(&str, &str)] = &[];
    let key = format!(
        "{}%2F20261128%2Fus-east-1%2Fs3%2Faws4_request",
        served.caller.id
    );
    for target in [
        "/public/a?X-Amz-Signature=0".to_owned(),
        format!("/public/a?X-Amz-Credential={key}"),
        "/public/a?x-amz-algorithm=AWS4-HMAC-SHA256".into(),
        "/public/a?AWSAccessKeyId=x&Signature=y&Expires=1".into(),
        "/public/a?X-Amz-Security-Token=x".into(),
        "/public/a?response-content-type=text%2Fhtml".into(),
    ] {
        let answer = served.anonymous("GET", &target, none);
        assert!([400, 403].contains(&answer.status), "{target}: {answer:?}");
    }
    for header in [
        ("authorization", ""),
        (
            "authorization",
            "AWS4-HMAC-SHA256 Credential=0000000000000000/20261128/us-east-1/s3/aws4_request",
        ),
        ("authorization", "Bearer anonymous"),
        ("x-amz-date", "20261128T000000Z"),
        ("x-amz-security-token", "x"),
        ("x-amz-acl", "public-read"),
    ] {
        let answer = served.anonymous("GET", "/public/a", &[header]);
        assert!(
            [400, 403, 501].contains(&answer.status),
            "{header:?}: {answer:?}"
        );
    }
    for id in ["anonymous", "0000000000000000"] {
        let caller = crate::s3_client::Caller {
            id: id.into(),
            ..served.caller.clone()
        };
        let signed = call(&served.gateway, &caller, "GET", "/public/a").send();
        assert_eq!(signed.status, 403, "{id}: {signed:?}");
    }
}
