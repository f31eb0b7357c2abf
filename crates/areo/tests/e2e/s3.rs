//! `areo s3`: objects of a cluster through the interface of S3.

#![allow(clippy::unwrap_used, reason = "a test")]

use crate::cluster::{Cluster, wait_until};
use crate::s3_client::{Caller, EndMark, Gateway, call, read};
use rustix::process::Signal;
use std::io::BufRead;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

pub(crate) struct Served {
    pub(crate) cluster: Cluster,
    pub(crate) gateway: Gateway,
    pub(crate) caller: Caller,
}

pub(crate) fn served(flags: &[&str]) -> Served {
    let cluster = Cluster::start(flags);
    let gateway = Gateway::start(&cluster);
    let caller = Caller::of(Path::new(&cluster.file()));
    Served {
        cluster,
        gateway,
        caller,
    }
}

impl Served {
    /// Sends a request without headers, and demands this status.
    pub(crate) fn status(&self, method: &str, target: &str, status: u16) {
        let response = call(&self.gateway, &self.caller, method, target).send();
        assert_eq!(response.status, status, "{method} {target}: {response:?}");
    }
}

#[test]
fn objects_of_a_bucket_are_those_of_its_domain() {
    let served = served(&["--durability", "memory"]);
    let (gateway, caller) = (&served.gateway, &served.caller);
    served.status("PUT", "/photos", 200);
    served.status("PUT", "/photos", 409);
    let put = call(gateway, caller, "PUT", "/photos/a%20b/c%2B%C3%A4")
        .header("content-type", "text/plain")
        .header("x-amz-meta-colour", "blue")
        .body(b"hello")
        .send();
    assert_eq!(put.status, 200, "{put:?}");
    assert_eq!(put.etag(), "\"5d41402abc4b2a76b9719d911017c592\"");
    let arguments = ["get", "a b/c+ä", "--domain", "photos"];
    assert_eq!(served.cluster.run(&arguments).done().text(), "hello");
    let put = ["put", "native", "--domain", "photos"];
    served.cluster.run_with(&put, b"0123456789").done();

    let get = call(gateway, caller, "GET", "/photos/a%20b/c%2B%C3%A4").send();
    assert_eq!((get.status, get.text()), (200, "hello"));
    assert_eq!(get.header("content-type"), Some("text/plain"));
    assert_eq!(get.header("x-amz-meta-colour"), Some("blue"));
    let part = call(gateway, caller, "GET", "/photos/native").header("range", "bytes=-3");
    let part = part.send();
    assert_eq!((part.status, part.text()), (206, "789"));
    assert_eq!(part.header("content-range"), Some("bytes 7-9/10"));
    let outside = call(gateway, caller, "GET", "/photos/native").header("range", "bytes=10-");
    assert_eq!(outside.send().status, 416);
    let head = call(gateway, caller, "HEAD", "/photos/native").send();
    assert_eq!(
        (head.status, head.header("content-length")),
        (200, Some("10"))
    );
    let etag = head.etag();
    let current = call(gateway, caller, "GET", "/photos/native").header("if-none-match", &etag);
    assert_eq!(current.send().status, 304);
    // Conditions come before the range, for both methods.
    for method in ["GET", "HEAD"] {
        let current = call(gateway, caller, method, "/photos/native").header("range", "bytes=10-");
        let current = current.header("if-none-match", &etag).send();
        assert_eq!((current.status, current.etag()), (304, etag.clone()));
    }
    let other = call(gateway, caller, "GET", "/photos/native").header("if-match", "\"x\"");
    assert_eq!(other.send().status, 412);

    let list = call(gateway, caller, "GET", "/photos?list-type=2&delimiter=%2F").send();
    assert_eq!(list.element("KeyCount"), "2", "{}", list.text());
    assert_eq!(list.element("Key"), "native");
    assert!(
        list.text()
            .contains("<CommonPrefixes><Prefix>a b/</Prefix>")
    );
    served.status("DELETE", "/photos", 409);
    served.status("DELETE", "/photos/a%20b/c%2B%C3%A4", 204);
    served.status("DELETE", "/photos/native", 204);
    served.status("DELETE", "/photos/native", 204);
    let gone = call(gateway, caller, "GET", "/photos/native").send();
    assert_eq!((gone.status, gone.element("Code")), (404, "NoSuchKey"));
    served.status("DELETE", "/photos", 204);
    served.status("HEAD", "/photos", 404);
}

#[test]
fn of_writers_of_one_version_through_several_gateways_one_wins() {
    let served = served(&["--durability", "memory"]);
    let second = Gateway::start(&served.cluster);
    served.status("PUT", "/locks", 200);
    let mut etag = None::<String>;
    for round in 0..5 {
        let won = thread::scope(|scope| {
            let writers: Vec<_> = (0..8)
                .map(|number| {
                    let (etag, served, second) = (&etag, &served, &second);
                    scope.spawn(move || {
                        let gateway = if number % 2 == 0 {
                            &served.gateway
                        } else {
                            second
                        };
                        let body = format!("{round} {number}");
                        let put = call(gateway, &served.caller, "PUT", "/locks/one");
                        let put = match etag {
                            None => put.header("if-none-match", "*"),
                            Some(etag) => put.header("if-match", etag),
                        };
                        let answer = put.body(body.as_bytes()).send();
                        assert!([200, 409, 412].contains(&answer.status), "{answer:?}");
                        (answer.status == 200).then_some(body)
                    })
                })
                .collect();
            let outcomes = writers.into_iter().map(|writer| writer.join().unwrap());
            outcomes.flatten().collect::<Vec<_>>()
        });
        assert_eq!(won.len(), 1, "round {round}: {won:?}");
        let get = call(&second, &served.caller, "GET", "/locks/one").send();
        assert_eq!(get.text(), won[0]);
        etag = Some(get.etag());
    }
    let stale = call(&second, &served.caller, "DELETE", "/locks/one").header("if-match", "\"x\"");
    assert_eq!(stale.send().status, 412);
    let etag = etag.unwrap();
    let delete = call(&second, &served.caller, "DELETE", "/locks/one").header("if-match", &etag);
    assert_eq!(delete.send().status, 204);
    let absent = call(&second, &served.caller, "PUT", "/locks/one").header("if-match", &etag);
    assert_eq!(absent.body(b"x").send().status, 404);
    let never = call(&second, &served.caller, "PUT", "/locks/one").header("if-none-match", "\"x\"");
    assert_eq!(never.body(b"x").send().status, 501);
}

/// An SDK that got no answer sends the request again: it is the same write.
#[test]
fn a_request_that_is_sent_again_is_one_write() {
    let served = served(&["--durability", "memory"]);
    let second = Gateway::start(&served.cluster);
    served.status("PUT", "/table", 200);
    let id = "6f1f8a4e-4f3b-4a06-9f7e-0d3a2f6a9b10";
    let create = |gateway: &Gateway, id: &str| {
        let put = call(gateway, &served.caller, "PUT", "/table/log");
        let put = put
            .header("if-none-match", "*")
            .header("amz-sdk-invocation-id", id);
        put.body(b"1").send()
    };
    assert_eq!(create(&served.gateway, id).status, 200);
    assert_eq!(create(&second, id).status, 200, "the answer was lost");
    let other = "6f1f8a4e-4f3b-4a06-9f7e-0d3a2f6a9b11";
    assert_eq!(create(&second, other).status, 412);

    let first = call(&second, &served.caller, "HEAD", "/table/log")
        .send()
        .etag();
    let replace = |id: &str, body: &[u8]| {
        let put = call(&second, &served.caller, "PUT", "/table/log");
        let put = put
            .header("if-match", &first)
            .header("amz-sdk-invocation-id", id);
        put.body(body).send()
    };
    let id = "6f1f8a4e-4f3b-4a06-9f7e-0d3a2f6a9b12";
    let (once, again) = (replace(id, b"2"), replace(id, b"2"));
    assert_eq!((once.status, again.status), (200, 200));
    assert_eq!(
        once.header("x-areo-version"),
        again.header("x-areo-version")
    );
    assert_eq!(replace(other, b"3").status, 412);
    // An id that another request has had is not that request.
    assert_eq!(replace(id, b"other").status, 412);
    let get = call(&second, &served.caller, "GET", "/table/log").send();
    assert_eq!(get.text(), "2");
}

/// A key without `admin` was refused for a moment after another client had created the bucket.
#[test]
fn a_bucket_is_used_with_another_key_at_another_gateway_from_its_creation_on() {
    let served = served(&["--durability", "memory"]);
    let second = Gateway::start(&served.cluster);
    let file = served.cluster.folder().join("user.toml");
    let create = ["key", "create", "user", "--grant", "read,write:*", "--file"];
    let create = [&create[..], &[file.to_str().unwrap()]].concat();
    served.cluster.run(&create).done();
    let user = Caller::of(&file);
    for number in 0..40 {
        served.status("PUT", &format!("/bucket-{number}"), 200);
        let target = format!("/bucket-{number}/a");
        let put = call(&second, &user, "PUT", &target).body(b"1").send();
        assert_eq!(put.status, 200, "{target}: {put:?}");
    }
}

#[test]
fn a_caller_has_the_grants_of_its_key_and_no_others() {
    let served = served(&["--durability", "memory"]);
    served.status("PUT", "/notes", 200);
    let put = call(&served.gateway, &served.caller, "PUT", "/notes/a").body(b"1");
    assert_eq!(put.send().status, 200);
    let file = served.cluster.folder().join("reader.toml");
    let create = ["key", "create", "reader", "--grant", "read:notes", "--file"];
    let create = [&create[..], &[file.to_str().unwrap()]].concat();
    served.cluster.run(&create).done();
    let reader = Caller::of(&file);
    let as_reader = |method, target| call(&served.gateway, &reader, method, target);
    let get = as_reader("GET", "/notes/a").send();
    assert_eq!((get.status, get.text()), (200, "1"));
    for (method, target) in [
        ("PUT", "/notes/a"),
        ("DELETE", "/notes/a"),
        ("GET", "/notes?list-type=2"),
        ("GET", "/default/a"),
        ("PUT", "/mine"),
        ("DELETE", "/notes"),
    ] {
        let body: &[u8] = if target == "/notes/a" { b"2" } else { b"" };
        let refused = as_reader(method, target).body(body).send();
        let code = refused.element("Code");
        assert_eq!(
            (refused.status, code),
            (403, "AccessDenied"),
            "{method} {target}"
        );
    }
    let unsigned = call(&served.gateway, &reader, "GET", "/notes/a")
        .unsigned()
        .send();
    assert_eq!(
        (unsigned.status, unsigned.element("Code")),
        (403, "AccessDenied")
    );
    let wrong = Caller {
        secret: served.caller.secret.clone(),
        ..reader.clone()
    };
    let wrong = call(&served.gateway, &wrong, "GET", "/notes/a").send();
    assert_eq!(
        (wrong.status, wrong.element("Code")),
        (403, "SignatureDoesNotMatch")
    );
    let unknown = Caller {
        id: "0123456789abcdef".into(),
        ..reader.clone()
    };
    let unknown = call(&served.gateway, &unknown, "GET", "/notes/a").send();
    assert_eq!(
        (unknown.status, unknown.element("Code")),
        (403, "InvalidAccessKeyId")
    );
    served.cluster.run(&["key", "revoke", "reader"]).done();
    wait_until(|| as_reader("GET", "/notes/a").send().status == 403);
}

#[test]
fn a_bucket_is_changed_while_it_is_used() {
    let served = served(&["--durability", "memory"]);
    let (gateway, caller) = (&served.gateway, &served.caller);
    let create = call(gateway, caller, "PUT", "/moving").header("x-areo-n", "3");
    assert_eq!(create.send().status, 200);
    let (ended, requests) = (AtomicBool::new(false), AtomicUsize::new(0));
    thread::scope(|scope| {
        let end = EndMark(&ended);
        for number in 0..4 {
            let (ended, requests) = (&ended, &requests);
            scope.spawn(move || {
                let target = format!("/moving/{number}");
                for round in 0.. {
                    let body = format!("{number} {round}").repeat(1000);
                    let put = call(gateway, caller, "PUT", &target).body(body.as_bytes());
                    let put = put.send();
                    assert_eq!(put.status, 200, "{put:?}");
                    let get = call(gateway, caller, "GET", &target).send();
                    assert_eq!(get.status, 200, "{get:?}");
                    assert!(get.body == body.as_bytes());
                    requests.fetch_add(2, Ordering::Relaxed);
                    if ended.load(Ordering::Relaxed) {
                        return;
                    }
                }
            });
        }
        let add = ["reconfig", "start", "moving", "--add", "s4,s5"];
        let changes = [&["--k", "3"][..], &["--k", "1"]];
        let before = || requests.load(Ordering::Relaxed);
        wait_until(|| before() > 20);
        served.cluster.run(&add).done();
        for change in changes {
            let now = before();
            wait_until(|| before() > now + 20);
            let start = [&["reconfig", "start", "moving"][..], change].concat();
            served.cluster.run(&start).done();
        }
        drop(end);
    });
}

/// The three commands that `areo up --s3` prints, as far as they are ours.
#[test]
fn a_cluster_comes_with_a_gateway() {
    let port = crate::cluster::free_ports();
    let flag = format!("--s3=127.0.0.1:{port}");
    let cluster = Cluster::start(&["--servers", "3", "--durability", "memory", &flag]);
    let address = format!("127.0.0.1:{port}");
    wait_until(|| std::net::TcpStream::connect(&address).is_ok());
    // It is made to show the secret: its output is not searched for that.
    let env = cluster.command(&["key", "env"]).output().unwrap();
    let caller = Caller::of(Path::new(&cluster.file()));
    let expected = format!(
        "export AWS_ACCESS_KEY_ID={}\nexport AWS_SECRET_ACCESS_KEY={}",
        caller.id, caller.secret
    );
    assert_eq!(String::from_utf8_lossy(&env.stdout).trim(), expected);
    let gateway = Gateway::of(&address);
    let list = call(&gateway, &caller, "GET", "/").send();
    assert_eq!((list.status, list.element("Name")), (200, "default"));
}

#[test]
fn a_gateway_finishes_requests_before_it_stops() {
    let mut served = served(&["--durability", "memory"]);
    let value = vec![7; 20 << 20];
    let put = call(&served.gateway, &served.caller, "PUT", "/default/large").body(&value);
    assert_eq!(put.send().status, 200);
    let get = call(&served.gateway, &served.caller, "GET", "/default/large");
    let mut stream = get.begin();
    // It has begun, and cannot go on: its reader waits.
    assert!(!stream.fill_buf().unwrap().is_empty());
    served.gateway.signal(Signal::TERM);
    let refused = || std::net::TcpStream::connect(&served.gateway.address).is_err();
    wait_until(refused);
    let response = read(&mut stream).expect("all of it");
    assert!(response.body == value);
    assert_eq!(served.gateway.ended(), Some(0));
}

#[test]
fn a_gateway_that_dies_leaves_nothing_half_done() {
    let mut served = served(&["--durability", "memory"]);
    let second = Gateway::start(&served.cluster);
    let before = call(&second, &served.caller, "PUT", "/default/key").body(b"before");
    assert_eq!(before.send().status, 200);
    let value = vec![7; 12 << 20];
    let length = (value.len() * 2).to_string();
    let put = call(&served.gateway, &served.caller, "PUT", "/default/key");
    let stream = put
        .header("x-amz-decoded-content-length", &length)
        .body(&value);
    let mut stream = stream.begin();
    served.gateway.signal(Signal::KILL);
    assert_eq!(served.gateway.ended(), None);
    assert!(read(&mut stream).is_none_or(|answer| answer.status != 200));
    let get = call(&second, &served.caller, "GET", "/default/key").send();
    assert!(get.text() == "before", "{} bytes", get.body.len());
}

/// Writes with a body, and copies from such a bucket, were refused with `NoSuchBucket`: the second for as long as the gateway ran.
#[test]
fn a_bucket_that_was_made_anew_through_another_gateway_is_found() {
    let served = served(&["--servers", "3", "--durability", "memory"]);
    let second = Gateway::start(&served.cluster);
    let at_second = |target| call(&second, &served.caller, "PUT", target).body(b"value");
    for (bucket, key) in [("/from", "/from/key"), ("/into", "/into/key")] {
        served.status("PUT", bucket, 200);
        assert_eq!(at_second(key).send().status, 200, "it knows the bucket");
        served.status("DELETE", key, 204);
        served.status("DELETE", bucket, 204);
        served.status("PUT", bucket, 200);
    }
    served.status("PUT", "/from/new", 200);
    let put = at_second("/into/key").send();
    assert_eq!((put.status, put.header("retry-after")), (503, Some("1")));
    assert_eq!(at_second("/into/key").send().status, 200);
    let copy = call(&second, &served.caller, "PUT", "/into/copy");
    let copy = copy.header("x-amz-copy-source", "/from/new").send();
    assert_eq!(copy.status, 200, "{}", copy.text());
    let none = call(&second, &served.caller, "PUT", "/into/copy");
    let none = none.header("x-amz-copy-source", "/none/key").send();
    assert_eq!((none.status, none.element("Code")), (404, "NoSuchBucket"));
    served.status("DELETE", "/into/key", 204);
    served.status("DELETE", "/into/copy", 204);
    served.status("DELETE", "/into", 204);
    assert_eq!(at_second("/into/key").send().status, 503);
    assert_eq!(at_second("/into/key").send().status, 404, "there is none");
}

#[test]
fn a_gateway_says_what_it_lacks() {
    let cluster = Cluster::start(&["--servers", "3", "--durability", "memory"]);
    let taken = format!("127.0.0.1:{}", cluster.port());
    cluster
        .run(&["s3", "--listen", &taken])
        .refused(1, &["cannot listen on", &taken, "in use"]);
    cluster
        .run(&["s3", "--cert", "/none"])
        .refused(2, &["--cert-key"]);
    let file = cluster.folder().join("reader.toml");
    let create = ["key", "create", "reader", "--grant", "read:*", "--file"];
    let create = [&create[..], &[file.to_str().unwrap()]].concat();
    cluster.run(&create).done();
    let reader = Caller::of(&file);
    assert!(!reader.secret.is_empty());
}
