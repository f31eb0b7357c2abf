//! `areo s3`: objects of a cluster through the interface of S3.

#![allow(clippy::unwrap_used, reason = "a test")]

use crate::cluster::{Cluster, wait_until};
use crate::s3_client::{Call, Caller, Gateway, Response, call, read};
use rustix::process::Signal;
use std::io::BufRead;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

struct Served {
    cluster: Cluster,
    gateway: Gateway,
    caller: Caller,
}

fn served(flags: &[&str]) -> Served {
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
    fn status(&self, method: &str, target: &str, status: u16) {
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
        ended.store(true, Ordering::Relaxed);
    });
}

/// A bucket and two gateways, for uploads of one key.
struct Films {
    served: Served,
    second: Gateway,
}

impl Films {
    fn new() -> Films {
        let served = served(&["--durability", "memory"]);
        let second = Gateway::start(&served.cluster);
        served.status("PUT", "/films", 200);
        Films { served, second }
    }

    fn call<'a>(&'a self, gateway: &'a Gateway, method: &'a str, target: &'a str) -> Call<'a> {
        call(gateway, &self.served.caller, method, target)
    }

    fn begin(&self) -> String {
        let begun = self.call(&self.served.gateway, "POST", "/films/a/b?uploads");
        let begun = begun.header("x-amz-meta-colour", "blue").send();
        assert_eq!(begun.status, 200, "{begun:?}");
        begun.element("UploadId").to_owned()
    }

    /// The `ETag` of a part that is sent to a gateway.
    fn put(&self, gateway: &Gateway, upload: &str, part: u16, body: &[u8]) -> String {
        let target = format!("/films/a/b?partNumber={part}&uploadId={upload}");
        let put = self.call(gateway, "PUT", &target).body(body).send();
        assert_eq!(put.status, 200, "{put:?}");
        put.etag()
    }

    /// Completes an upload, if there is no object.
    fn complete(&self, gateway: &Gateway, upload: &str, parts: &[(u16, &str)]) -> Response {
        let part = |(number, etag): &(u16, &str)| {
            format!("<Part><PartNumber>{number}</PartNumber><ETag>{etag}</ETag></Part>")
        };
        let parts: String = parts.iter().map(part).collect();
        let body = format!("<CompleteMultipartUpload>{parts}</CompleteMultipartUpload>");
        let target = format!("/films/a/b?uploadId={upload}");
        let post = self.call(gateway, "POST", &target);
        let post = post.header("if-none-match", "*");
        post.body(body.as_bytes()).send()
    }
}

/// Each request goes to another gateway than the one before.
#[test]
fn an_upload_in_parts_goes_on_at_another_gateway() {
    let films = Films::new();
    let (first, second) = (&films.served.gateway, &films.second);
    let upload = films.begin();
    let long: Vec<u8> = (0..5 << 20).map(|it: u32| it as u8).collect();
    let one = films.put(second, &upload, 1, &long);
    films.put(first, &upload, 2, b"replaced");
    let two = films.put(second, &upload, 2, b"the end");
    let target = format!("/films/a/b?uploadId={upload}");
    let parts = films.call(first, "GET", &target).send();
    let count = parts.text().matches("<PartNumber>").count();
    assert_eq!(count, 2, "{}", parts.text());
    let uploads = films.call(second, "GET", "/films?uploads").send();
    assert_eq!(uploads.element("UploadId"), upload);
    let list = films.call(first, "GET", "/films?list-type=2").send();
    assert_eq!(list.element("KeyCount"), "0");

    let wrong = films.complete(first, &upload, &[(1, &two), (2, &two)]);
    assert_eq!((wrong.status, wrong.element("Code")), (400, "InvalidPart"));
    let missing = films.complete(first, &upload, &[(2, &two), (3, &two)]);
    assert_eq!(missing.element("Code"), "InvalidPart");
    let done = films.complete(second, &upload, &[(1, &one), (2, &two)]);
    assert_eq!(done.status, 200, "{done:?}");
    assert!(done.element("ETag").contains("-2"), "{}", done.text());
    let again = films.complete(first, &upload, &[(1, &one), (2, &two)]);
    let etag = done.element("ETag");
    assert_eq!((again.status, again.element("ETag")), (200, etag));

    let get = films.call(first, "GET", "/films/a/b").send();
    let whole = [&long[..], b"the end"].concat();
    assert!(get.body == whole, "{} bytes", get.body.len());
    assert_eq!(get.header("x-amz-meta-colour"), Some("blue"));
    let part = films.call(second, "GET", "/films/a/b");
    let part = part.header("range", "bytes=-7").send();
    assert_eq!(part.text(), "the end");
    let native = ["get", "a/b", "--domain", "films"];
    assert!(films.served.cluster.run(&native).done().stdout == whole);
}

#[test]
fn an_upload_that_ends_without_an_object_leaves_nothing() {
    let films = Films::new();
    let (first, second) = (&films.served.gateway, &films.second);
    let exists = films.call(first, "PUT", "/films/a/b").body(b"there");
    assert_eq!(exists.send().status, 200);
    let upload = films.begin();
    let short = films.put(first, &upload, 1, b"x");
    let last = films.put(first, &upload, 2, b"y");
    let small = films.complete(second, &upload, &[(1, &short), (2, &last)]);
    assert_eq!(
        (small.status, small.element("Code")),
        (400, "EntityTooSmall")
    );
    let lost = films.complete(second, &upload, &[(1, &short)]);
    assert_eq!(lost.status, 412, "{lost:?}");
    let target = format!("/films/a/b?uploadId={upload}");
    films.served.status("DELETE", &target, 204);
    films.served.status("DELETE", &target, 404);
    let target = format!("/films/a/b?partNumber=1&uploadId={upload}");
    let late = films.call(second, "PUT", &target).body(b"x").send();
    assert_eq!((late.status, late.element("Code")), (404, "NoSuchUpload"));
    let uploads = films.call(second, "GET", "/films?uploads").send();
    assert!(!uploads.text().contains("<Upload>"), "{}", uploads.text());
    let get = films.call(second, "GET", "/films/a/b").send();
    assert_eq!(get.text(), "there");
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
