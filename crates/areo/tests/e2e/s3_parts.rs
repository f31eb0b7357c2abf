//! Objects in parts through gateways: an upload goes on at any of them, ends in one way, and leaves nothing.

#![allow(clippy::unwrap_used, reason = "a test")]

use crate::cluster::{SERVERS, wait_until};
use crate::metrics::{metrics, value};
use crate::s3::{Served, served};
use crate::s3_client::{Call, Caller, Gateway, Response, call};
use areo_client::blocking::wait;
use areo_client::{Client, Domain, PutOptions, SweepOptions};
use areo_s3::body::checksum::Algorithm;
use rustix::process::Signal;
use std::thread;
use std::time::Duration;

/// The shortest part that is not the last one.
const PART_BYTES: usize = 5 << 20;

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
        self.begin_with(&[])
    }

    fn begin_with(&self, headers: &[(&str, &str)]) -> String {
        let begun = self.call(&self.served.gateway, "POST", "/films/a/b?uploads");
        let mut begun = begun.header("x-amz-meta-colour", "blue");
        for (name, value) in headers {
            begun = begun.header(name, value);
        }
        let begun = begun.send();
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

    /// Completes an upload, with these headers.
    fn complete(
        &self,
        gateway: &Gateway,
        upload: &str,
        parts: &[(u16, &str)],
        headers: &[(&str, &str)],
    ) -> Response {
        let body = completion(parts);
        let target = format!("/films/a/b?uploadId={upload}");
        let mut post = self.call(gateway, "POST", &target);
        for (name, value) in headers {
            post = post.header(name, value);
        }
        post.body(body.as_bytes()).send()
    }

    fn domain(&self) -> Domain {
        let client = wait(Client::connect(self.served.cluster.options())).unwrap();
        wait(client.domain("films")).unwrap()
    }

    /// Blocks that the object needs, and those that nothing needs.
    fn blocks(&self) -> (u64, u64) {
        let found = wait(self.domain().orphans()).unwrap();
        (found.live().blocks, found.orphans().blocks)
    }

    /// Demands that no upload is under way.
    #[track_caller]
    fn no_upload(&self) {
        let uploads = self.call(&self.second, "GET", "/films?uploads").send();
        assert!(!uploads.text().contains("<Upload>"), "{}", uploads.text());
    }
}

const IF_ABSENT: &[(&str, &str)] = &[("if-none-match", "*")];

/// The document of a completion.
fn completion(parts: &[(u16, &str)]) -> String {
    let part = |(number, etag): &(u16, &str)| {
        format!("<Part><PartNumber>{number}</PartNumber><ETag>{etag}</ETag></Part>")
    };
    let parts: String = parts.iter().map(part).collect();
    format!("<CompleteMultipartUpload>{parts}</CompleteMultipartUpload>")
}

/// The bytes of a part that is not the last one.
fn long(seed: u8) -> Vec<u8> {
    let byte = |at: usize| (at * 31 + at / 251) as u8 ^ seed;
    (0..PART_BYTES).map(byte).collect()
}

/// Each request goes to another gateway than the one before.
#[test]
fn an_upload_in_parts_goes_on_at_another_gateway() {
    let films = Films::new();
    let (first, second) = (&films.served.gateway, &films.second);
    let upload = films.begin();
    let long = long(1);
    let one = films.put(second, &upload, 1, &long);
    films.put(first, &upload, 2, b"replaced");
    let two = films.put(second, &upload, 2, b"the end");
    let target = format!("/films/a/b?uploadId={upload}");
    let parts = films.call(first, "GET", &target).send();
    let count = parts.text().matches("<PartNumber>").count();
    assert_eq!(count, 2, "{}", parts.text());
    for size in [long.len(), 7] {
        let size = format!("<Size>{size}</Size>");
        assert!(parts.text().contains(&size), "{}", parts.text());
    }
    let page = format!("{target}&max-parts=1");
    let page = films.call(first, "GET", &page).send();
    assert_eq!(page.element("IsTruncated"), "true", "{}", page.text());
    let marker = page.element("NextPartNumberMarker");
    let page = format!("{target}&max-parts=1&part-number-marker={marker}");
    let page = films.call(first, "GET", &page).send();
    assert_eq!(
        (page.element("IsTruncated"), page.element("Size")),
        ("false", "7")
    );
    let uploads = films.call(second, "GET", "/films?uploads").send();
    assert_eq!(uploads.element("UploadId"), upload);
    let list = films.call(first, "GET", "/films?list-type=2").send();
    assert_eq!(list.element("KeyCount"), "0");

    let complete =
        |gateway, parts: &[(u16, &str)]| films.complete(gateway, &upload, parts, IF_ABSENT);
    let wrong = complete(first, &[(1, &two), (2, &two)]);
    assert_eq!((wrong.status, wrong.element("Code")), (400, "InvalidPart"));
    let done = complete(second, &[(1, &one), (2, &two)]);
    assert_eq!(done.status, 200, "{done:?}");
    // A part of a gateway that dies before it has written the record of the part.
    let late = films.domain();
    wait(late.put_part(upload.parse().unwrap(), &b"late"[..], 4096)).unwrap();
    assert_eq!(films.blocks(), (4, 0), "no one looks into the list");
    let again = complete(first, &[(1, &one), (2, &two)]);
    let etag = done.element("ETag");
    assert_eq!((again.status, again.element("ETag")), (200, etag));
    let others = complete(first, &[(1, &one)]);
    assert_eq!(
        (others.status, others.element("Code")),
        (404, "NoSuchUpload")
    );

    let get = films.call(first, "GET", "/films/a/b").send();
    let whole = [&long[..], b"the end"].concat();
    assert!(get.body == whole, "{} bytes", get.body.len());
    assert_eq!(get.header("x-amz-meta-colour"), Some("blue"));
    let native = ["get", "a/b", "--domain", "films"];
    assert!(films.served.cluster.run(&native).done().stdout == whole);
    assert_eq!(films.blocks(), (3, 0), "nothing else is left");
}

#[test]
fn an_upload_that_ends_without_an_object_leaves_nothing() {
    let films = Films::new();
    let (first, second) = (&films.served.gateway, &films.second);
    let exists = films.call(first, "PUT", "/films/a/b").body(b"there");
    assert_eq!(exists.send().status, 200);
    let full = "x".repeat(2040);
    let begin = films.call(first, "POST", "/films/a/b?uploads");
    let full = begin.header("x-amz-meta-long", &full).send();
    assert_eq!(
        full.element("Code"),
        "MetadataTooLarge",
        "there is no room for the upload"
    );
    let upload = films.begin();
    let short = films.put(first, &upload, 1, b"x");
    let last = films.put(first, &upload, 2, b"y");
    let small = films.complete(second, &upload, &[(1, &short), (2, &last)], &[]);
    assert_eq!(small.element("Code"), "EntityTooSmall");
    let lost = films.complete(second, &upload, &[(1, &short)], IF_ABSENT);
    assert_eq!(lost.status, 412, "{lost:?}");
    let other = films.complete(second, &upload, &[(1, &short)], &[("if-match", "\"x\"")]);
    assert_eq!(other.status, 412, "{other:?}");
    assert_eq!(films.blocks(), (0, 2), "the parts are still there");
    let target = format!("/films/a/b?uploadId={upload}");
    films.served.status("DELETE", &target, 204);
    films.served.status("DELETE", &target, 404);
    let target = format!("/films/a/b?partNumber=1&uploadId={upload}");
    let late = films.call(second, "PUT", &target).body(b"x").send();
    assert_eq!((late.status, late.element("Code")), (404, "NoSuchUpload"));
    let none = films.complete(second, &upload, &[(1, &short)], &[]);
    assert_eq!((none.status, none.element("Code")), (404, "NoSuchUpload"));
    films.no_upload();
    let get = films.call(second, "GET", "/films/a/b").send();
    assert_eq!(get.text(), "there");
    assert_eq!(films.blocks(), (0, 0), "nothing is left");
}

/// Bytes that all servers have sent.
fn sent_bytes(films: &Films) -> f64 {
    let admin = films.served.cluster.port() + 90;
    let ports = (0..SERVERS as u16).map(|server| admin + server);
    let sent = ports.map(|port| value(&metrics(port), "areo_server_sent_bytes_total"));
    sent.sum()
}

#[test]
fn a_completion_reads_no_byte_of_its_parts() {
    let films = Films::new();
    let (first, second) = (&films.served.gateway, &films.second);
    let upload = films.begin();
    let contents = [long(1), long(2), b"the end".to_vec()];
    let etags: Vec<String> = (1..)
        .zip(&contents)
        .map(|(number, content)| films.put(first, &upload, number, content))
        .collect();
    let parts = [(1, &etags[0][..]), (2, &etags[1]), (3, &etags[2])];
    let before = sent_bytes(&films);
    let done = films.complete(second, &upload, &parts, &[]);
    assert_eq!(done.status, 200, "{done:?}");
    let sent = sent_bytes(&films) - before;
    assert!(sent < PART_BYTES as f64 / 4.0, "{sent} bytes were read");
    let get = films.call(first, "GET", "/films/a/b").send();
    assert!(get.body == contents.concat(), "{} bytes", get.body.len());
    assert!(sent_bytes(&films) - before > 2.0 * PART_BYTES as f64);
    assert_eq!(films.blocks(), (5, 0));
    films.no_upload();
    films.served.status("DELETE", "/films/a/b", 204);
    assert_eq!(films.blocks(), (0, 0));
}

#[test]
fn an_upload_goes_on_when_its_gateway_dies_at_the_completion() {
    let mut films = Films::new();
    let upload = films.begin();
    let one = films.put(&films.served.gateway, &upload, 1, &long(3));
    let two = films.put(&films.served.gateway, &upload, 2, b"the end");
    let parts = [(1, &one[..]), (2, &two[..])];
    let body = completion(&parts);
    let target = format!("/films/a/b?uploadId={upload}");
    let post = films.call(&films.served.gateway, "POST", &target);
    let post = post.body(body.as_bytes()).begin();
    films.served.gateway.signal(Signal::KILL);
    assert_eq!(films.served.gateway.ended(), None);
    drop(post);
    for _ in 0..2 {
        let done = films.complete(&films.second, &upload, &parts, IF_ABSENT);
        assert_eq!(done.status, 200, "{done:?}");
    }
    let get = films.call(&films.second, "GET", "/films/a/b").send();
    assert!(get.body == [&long(3)[..], b"the end"].concat());
    films.no_upload();
    let swept = wait(films.domain().sweep(SweepOptions::default())).unwrap();
    assert_eq!(swept.live().blocks, 3, "{swept:?}");
    assert_eq!(films.blocks(), (3, 0));
}

/// Completions at two gateways and an abortion at once: the object is there and the abortion refused, or all completions are.
#[test]
fn an_upload_ends_in_one_way() {
    let films = Films::new();
    let (first, second) = (&films.served.gateway, &films.second);
    let (mut completed, mut aborted) = (0, 0);
    for round in 0..12 {
        let upload = films.begin();
        let content = format!("round {round}");
        let etag = films.put(first, &upload, 1, content.as_bytes());
        let (parts, films, upload) = ([(1, &etag[..])], &films, &upload);
        let complete = |gateway| films.complete(gateway, upload, &parts, &[]).status;
        let (outcomes, abortion) = thread::scope(|scope| {
            let complete = &complete;
            let completions = [first, second].map(|it| scope.spawn(move || complete(it)));
            let abortion = scope.spawn(move || {
                let target = format!("/films/a/b?uploadId={upload}");
                let is_wanted = round % 2 == 0;
                is_wanted.then(|| films.call(second, "DELETE", &target).send().status)
            });
            let outcomes = completions.map(|it| it.join().unwrap());
            (outcomes, abortion.join().unwrap())
        });
        let get = films.call(first, "GET", "/films/a/b").send();
        match abortion {
            None | Some(404) => {
                assert_eq!(outcomes, [200, 200], "round {round}");
                assert_eq!(get.text(), content, "round {round}");
                completed += 1;
            }
            Some(204) => {
                // The parts go before the upload: a completion may find the one without the others.
                let is_refused = outcomes.iter().all(|it| [400, 404].contains(it));
                assert!(is_refused, "round {round}: {outcomes:?}");
                assert!(get.text() != content, "round {round}");
                aborted += 1;
            }
            other => panic!("round {round}: {other:?}"),
        }
        films.no_upload();
        let (_, orphans) = films.blocks();
        assert_eq!(
            orphans, 0,
            "round {round}: {completed} completed, {aborted} aborted"
        );
    }
    assert!(completed >= 4);
}

/// A gateway died between the publication and the removal of the records; another write came before the completion was sent again.
#[test]
fn a_completion_that_is_sent_again_undoes_no_later_write() {
    let films = Films::new();
    let gateway = &films.second;
    let weak = ["reconfig", "start", "films", "--dap", "ec"];
    for is_weak in [false, true] {
        if is_weak {
            films.served.cluster.run(&weak).done();
        }
        let upload = films.begin();
        let etag = films.put(gateway, &upload, 1, b"in parts");
        let domain = films.domain();
        let record = format!("{upload}/00001");
        let part = wait(domain.get_record("a/b", &record)).unwrap();
        let done = films.complete(gateway, &upload, &[(1, &etag)], &[]);
        assert_eq!(done.status, 200, "{done:?}");
        let later = films.call(gateway, "PUT", "/films/a/b").body(b"later");
        assert_eq!(later.send().status, 200);
        let options = PutOptions {
            etag: part.metadata.etag.clone(),
            user_metadata: part.metadata.user.clone(),
            ..PutOptions::default()
        };
        for left in [&[&record[..], &upload][..], &[&upload], &[]] {
            for suffix in left {
                wait(domain.put_record("a/b", suffix, "", options.clone())).unwrap();
            }
            let again = films.complete(gateway, &upload, &[(1, &etag)], &[]);
            let expected = if is_weak { [400, 404] } else { [200, 200] };
            assert!(
                expected.contains(&again.status),
                "{is_weak} {left:?}: {again:?}"
            );
            if again.status == 200 {
                assert_eq!(again.element("ETag"), done.element("ETag"));
            }
            let get = films.call(gateway, "GET", "/films/a/b").send();
            assert_eq!(get.text(), "later", "{is_weak} {left:?}");
        }
        if is_weak {
            let target = format!("/films/a/b?uploadId={upload}");
            films.served.status("DELETE", &target, 204);
        }
        films.no_upload();
        assert_eq!(films.blocks(), (0, 0), "{is_weak}");
    }
}

#[test]
fn checksums_of_parts_make_that_of_the_object() {
    let films = Films::new();
    let (first, second) = (&films.served.gateway, &films.second);
    let (long, end) = (long(5), &b"the end"[..]);
    let whole = [&long[..], end].concat();
    for (algorithm, kind) in [
        (Algorithm::Crc32, "FULL_OBJECT"),
        (Algorithm::Crc64Nvme, "FULL_OBJECT"),
        (Algorithm::Crc32c, "COMPOSITE"),
        (Algorithm::Sha256, "COMPOSITE"),
    ] {
        let (word, header) = (algorithm.word(), algorithm.header());
        let upload = films.begin_with(&[
            ("x-amz-checksum-algorithm", word),
            ("x-amz-checksum-type", kind),
        ]);
        let (one, two) = (
            films.put(second, &upload, 1, &long),
            films.put(first, &upload, 2, end),
        );
        let target = format!("/films/a/b?uploadId={upload}");
        let listed = films.call(first, "GET", &target).send();
        let sums = [&long, end].map(|content| algorithm.checksum(content));
        for sum in &sums {
            let element = format!("<Checksum{word}>{}</Checksum{word}>", sum.text());
            assert!(listed.text().contains(&element), "{}", listed.text());
        }
        let parts = [(1, &one[..]), (2, &two[..])];
        let wrong = algorithm.checksum(b"another").text();
        let refused = films.complete(first, &upload, &parts, &[(header, &wrong)]);
        assert_eq!(refused.element("Code"), "BadDigest", "{word}");
        let (expected, shown) = if kind == "FULL_OBJECT" {
            let sum = algorithm.checksum(&whole);
            (sum.text(), sum.text())
        } else {
            let sum = algorithm.checksum(&[&sums[0].bytes[..], &sums[1].bytes].concat());
            (sum.text(), format!("{}-2", sum.text()))
        };
        let done = films.complete(second, &upload, &parts, &[(header, &expected)]);
        assert_eq!(done.status, 200, "{word}: {done:?}");
        assert_eq!(done.element(&format!("Checksum{word}")), shown);
        assert_eq!(done.element("ChecksumType"), kind);
        let head = films.call(first, "HEAD", "/films/a/b");
        let head = head.header("x-amz-checksum-mode", "ENABLED").send();
        assert_eq!(head.header(header), Some(&shown[..]), "{head:?}");
    }
}

/// Objects that are smaller than a block, and parts that are copies.
#[test]
fn small_parts_and_copies_are_parts() {
    let films = Films::new();
    let (first, second) = (&films.served.gateway, &films.second);
    let source = films
        .call(first, "PUT", "/films/source")
        .body(b"0123456789");
    assert_eq!(source.send().status, 200);
    for content in ["", "x", "0123456789"] {
        let upload = films.begin();
        let etag = films.put(first, &upload, 1, content.as_bytes());
        let done = films.complete(second, &upload, &[(1, &etag)], &[]);
        assert_eq!(done.status, 200, "{content}: {done:?}");
        let get = films.call(first, "GET", "/films/a/b").send();
        assert_eq!((get.status, get.text()), (200, content));
        let native = ["get", "a/b", "--domain", "films"];
        assert_eq!(films.served.cluster.run(&native).done().text(), content);
    }
    let upload = films.begin();
    let target = format!("/films/a/b?partNumber=7&uploadId={upload}");
    let copy = films.call(second, "PUT", &target);
    let copy = copy.header("x-amz-copy-source", "/films/source");
    let copy = copy.header("x-amz-copy-source-range", "bytes=3-5").send();
    assert_eq!(copy.status, 200, "{copy:?}");
    let etag = copy.element("ETag").replace("&quot;", "\"");
    let done = films.complete(first, &upload, &[(7, &etag)], &[]);
    assert_eq!(done.status, 200, "{done:?}");
    let get = films.call(first, "GET", "/films/a/b").send();
    assert_eq!(get.text(), "345");
    assert_eq!(films.blocks(), (1, 0));
    films.no_upload();
}

#[test]
fn a_caller_that_may_only_write_uploads_parts() {
    let films = Films::new();
    let file = films.served.cluster.folder().join("writer.toml");
    let create = [
        "key",
        "create",
        "writer",
        "--grant",
        "write:films",
        "--file",
    ];
    let create = [&create[..], &[file.to_str().unwrap()]].concat();
    films.served.cluster.run(&create).done();
    let writer = Caller::of(&file);
    let gateway = &films.second;
    // A bucket that was created just now is completed by a caller with the grant `admin`, or by itself a little later.
    wait_until(|| call(gateway, &writer, "HEAD", "/films").send().status == 200);
    let send = |method, target: &str, body: &[u8]| {
        let sent = call(gateway, &writer, method, target).body(body).send();
        assert!(
            [200, 204].contains(&sent.status),
            "{method} {target}: {sent:?}"
        );
        sent
    };
    for completes in [true, false] {
        let begun = send("POST", "/films/a/b?uploads", b"");
        let upload = begun.element("UploadId");
        let part = format!("/films/a/b?partNumber=1&uploadId={upload}");
        send("PUT", &part, b"replaced");
        let etag = send("PUT", &part, b"written").etag();
        let target = format!("/films/a/b?uploadId={upload}");
        assert_eq!(send("GET", &target, b"").element("Size"), "7");
        match completes {
            true => send("POST", &target, completion(&[(1, &etag)]).as_bytes()),
            false => send("DELETE", &target, b""),
        };
    }
    let get = films.call(gateway, "GET", "/films/a/b").send();
    assert_eq!(get.text(), "written");
    let at_once = SweepOptions {
        replaced: Duration::ZERO,
        ..SweepOptions::default()
    };
    wait(films.domain().sweep(at_once)).unwrap();
    assert_eq!(films.blocks(), (1, 0));
    films.no_upload();
}
