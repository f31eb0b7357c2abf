//! Tags of objects that are there: a change of them touches nothing else, and never undoes a write.

#![allow(clippy::unwrap_used, reason = "a test")]

use crate::s3::{Served, served};
use crate::s3_client::{EndMark, Gateway, Response, call};
use serde_json::Value;
use std::io::Read;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// The document with these tags.
fn tagging(tags: &[(&str, &str)]) -> String {
    let tag = |(name, value): &(&str, &str)| {
        format!("<Tag><Key>{name}</Key><Value>{value}</Value></Tag>")
    };
    let tags: String = tags.iter().map(tag).collect();
    format!("<Tagging><TagSet>{tags}</TagSet></Tagging>")
}

impl Served {
    fn set_tags(&self, gateway: &Gateway, target: &str, tags: &[(&str, &str)]) -> Response {
        let put = call(gateway, &self.caller, "PUT", target);
        put.body(tagging(tags).as_bytes()).send()
    }

    fn get(&self, target: &str) -> Response {
        call(&self.gateway, &self.caller, "GET", target).send()
    }

    /// Everything that the store has about an object of `notes`, but its version, its members and its tags.
    fn stat(&self, key: &str) -> Value {
        let stat = ["stat", key, "--domain", "notes", "--json"];
        let run = self.cluster.run(&stat).done();
        let mut stat: Value = serde_json::from_str(run.text()).unwrap();
        stat["version"].take();
        // A member may have it a moment later.
        stat["placement"].take();
        let pairs = stat["metadata"].as_object_mut().unwrap();
        pairs.retain(|name, _| !name.starts_with(":tag:"));
        stat
    }
}

#[test]
fn tags_change_and_nothing_else_does() {
    let served = served(&["--durability", "memory"]);
    let second = Gateway::start(&served.cluster);
    served.status("PUT", "/notes", 200);
    let large = vec![7; 9 << 20];
    for (key, body) in [("small", &b"hello"[..]), ("large", &large)] {
        let target = format!("/notes/{key}");
        let put = call(&served.gateway, &served.caller, "PUT", &target);
        let put = put
            .header("content-type", "text/plain")
            .header("x-amz-meta-colour", "blue")
            .header("x-amz-tagging", "old=tag&kept=no")
            .body(body)
            .send();
        assert_eq!(put.status, 200, "{put:?}");
        let (before, head) = (served.stat(key), served.get(&target));
        assert_eq!(head.header("x-amz-tagging-count"), Some("2"));

        let tags = format!("{target}?tagging");
        let set = served.set_tags(&second, &tags, &[("a b", "c&amp;d"), ("e", "")]);
        assert_eq!((set.status, set.body.len()), (200, 0), "{set:?}");
        let listed = served.get(&tags);
        let expected = "<TagSet><Tag><Key>a b</Key><Value>c&amp;d</Value></Tag><Tag><Key>e</Key><Value></Value></Tag></TagSet>";
        assert!(listed.text().contains(expected), "{}", listed.text());
        let after = served.get(&target);
        assert!(after.body == body, "{} bytes", after.body.len());
        for name in ["etag", "last-modified", "content-type", "x-amz-meta-colour"] {
            assert_eq!(after.header(name), head.header(name), "{name}");
        }
        assert_eq!(served.stat(key), before, "{key}");

        // A change that changes nothing writes nothing.
        let again = served.set_tags(&second, &tags, &[("a b", "c&amp;d"), ("e", "")]);
        assert_eq!(again.status, 200);
        let version = served.get(&target);
        let version = version.header("x-areo-version");
        assert_eq!(version, after.header("x-areo-version"));
        served.status("DELETE", &tags, 204);
        assert!(served.get(&tags).text().contains("<TagSet></TagSet>"));
        let head = served.get(&target);
        assert_eq!(head.header("x-amz-tagging-count"), None);
        assert_eq!(served.stat(key), before, "{key}");
    }
    // An object of another interface keeps the `ETag` that it was shown with.
    let put = ["put", "native", "--domain", "notes"];
    served.cluster.run_with(&put, b"native").done();
    let before = served.get("/notes/native").etag();
    let set = served.set_tags(&second, "/notes/native?tagging", &[("a", "b")]);
    assert_eq!(set.status, 200);
    assert_eq!(served.get("/notes/native").etag(), before);
}

#[test]
fn tags_that_cannot_be_kept_are_refused() {
    let served = served(&["--durability", "memory"]);
    served.status("PUT", "/notes", 200);
    let put = call(&served.gateway, &served.caller, "PUT", "/notes/a").body(b"1");
    assert_eq!(put.send().status, 200);
    let refused = |tags: &[(&str, &str)]| {
        let answer = served.set_tags(&served.gateway, "/notes/a?tagging", tags);
        (answer.status, answer.element("Code").to_owned())
    };
    let names: Vec<String> = (0..11).map(|number| number.to_string()).collect();
    let many: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "x")).collect();
    let (long, longer) = ("n".repeat(129), "v".repeat(257));
    let invalid = (400, "InvalidTag".to_owned());
    for tags in [
        &many[..],
        &[("a", "1"), ("a", "2")],
        &[(&long, "")],
        &[("a", &longer)],
        &[("", "a")],
    ] {
        assert_eq!(refused(tags), invalid, "{tags:?}");
    }
    let value = "ä".repeat(256);
    let large: Vec<(&str, &str)> = names[..10]
        .iter()
        .map(|it| (it.as_str(), &*value))
        .collect();
    assert_eq!(refused(&large), (400, "MetadataTooLarge".into()));
    let put = call(&served.gateway, &served.caller, "PUT", "/notes/a?tagging");
    assert_eq!(
        put.body(b"<Tagging>").send().element("Code"),
        "MalformedXML"
    );
    assert!(
        served
            .get("/notes/a?tagging")
            .text()
            .contains("<TagSet></TagSet>")
    );
    let absent = served.set_tags(&served.gateway, "/notes/b?tagging", &[("a", "b")]);
    assert_eq!((absent.status, absent.element("Code")), (404, "NoSuchKey"));

    let weak = call(&served.gateway, &served.caller, "PUT", "/weak").header("x-areo-kind", "abd");
    assert_eq!(weak.send().status, 200);
    let put = call(&served.gateway, &served.caller, "PUT", "/weak/a").body(b"1");
    assert_eq!(put.send().status, 200);
    let weak = served.set_tags(&served.gateway, "/weak/a?tagging", &[("a", "b")]);
    assert_eq!((weak.status, weak.element("Code")), (501, "NotImplemented"));
    assert!(
        weak.text().contains("areo reconfig start weak"),
        "{}",
        weak.text()
    );
}

/// One writer sees each of its writes until it writes the next one, of few bytes and of several blocks, while tags are changed through two gateways.
#[test]
fn a_change_of_tags_undoes_no_write() {
    let served = served(&["--durability", "memory"]);
    let second = Gateway::start(&served.cluster);
    served.status("PUT", "/notes", 200);
    for (key, length, rounds) in [("small", 10, 200), ("large", 5 << 20, 12)] {
        let target = format!("/notes/{key}");
        let tags = format!("{target}?tagging");
        let put = |round: u8| {
            let put = call(&served.gateway, &served.caller, "PUT", &target);
            assert_eq!(put.body(&vec![round; length]).send().status, 200);
        };
        put(0);
        let ended = AtomicBool::new(false);
        let changed = thread::scope(|scope| {
            let taggers = [&served.gateway, &second, &second].map(|gateway| {
                let (served, tags, ended) = (&served, &tags, &ended);
                scope.spawn(move || {
                    let mut changed = 0;
                    while !ended.load(Ordering::Relaxed) {
                        let value = changed.to_string();
                        let set = served.set_tags(gateway, tags, &[("round", &value)]);
                        assert!([200, 503].contains(&set.status), "{set:?}");
                        changed += usize::from(set.status == 200);
                    }
                    changed
                })
            });
            let ends = EndMark(&ended);
            for round in 1..=rounds {
                put(round);
                for _ in 0..2 {
                    let body = served.get(&target).body;
                    assert_eq!(body.len(), length);
                    assert!(body.iter().all(|byte| *byte == round), "{key} {round}");
                }
            }
            drop(ends);
            taggers.map(|tagger| tagger.join().unwrap())
        });
        assert!(changed.iter().sum::<usize>() > 0, "{changed:?}");
    }
}

/// A caller that has read the beginning of a long object gets the rest after each of two changes of its tags, which remove the blocks that it was reading.
#[test]
fn a_change_of_tags_cuts_no_read() {
    let served = served(&["--durability", "memory"]);
    let second = Gateway::start(&served.cluster);
    served.status("PUT", "/notes", 200);
    // Longer than what the buffers of a connection hold.
    let body: Vec<u8> = (0..48_u32 << 18).flat_map(u32::to_le_bytes).collect();
    let put = call(&served.gateway, &served.caller, "PUT", "/notes/long");
    assert_eq!(put.body(&body).send().status, 200);
    let mut reading = call(&served.gateway, &served.caller, "GET", "/notes/long").begin();
    let mut begun = vec![0; 1 << 20];
    for value in ["1", "2"] {
        reading.read_exact(&mut begun).unwrap();
        let set = served.set_tags(&second, "/notes/long?tagging", &[("round", value)]);
        assert_eq!(set.status, 200, "{set:?}");
    }
    let mut rest = Vec::new();
    reading.read_to_end(&mut rest).unwrap();
    assert!(body.ends_with(&rest), "{} bytes", rest.len());
    assert!(rest.len() + (2 << 20) >= body.len(), "{} bytes", rest.len());
}
