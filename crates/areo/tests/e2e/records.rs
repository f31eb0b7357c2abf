//! Records of uploads in progress: beside users' objects, and through changes of the domain.

#![allow(clippy::unwrap_used, reason = "a test")]

use crate::cluster::Cluster;
use areo_client::blocking::wait;
use areo_client::{Client, Domain, Error, PutOptions, RecordName, RecordsAfter};

fn put(domain: &Domain, key: &str, suffix: &str, value: &'static str) {
    let put = domain.put_record(key, suffix, value, PutOptions::default());
    wait(put).expect("a quorum is there");
}

/// The records of all keys that begin so, page by page with as many entries.
fn listed(domain: &Domain, prefix: &str, limit: usize) -> Vec<String> {
    let (mut all, mut next): (Vec<String>, Option<RecordName>) = (Vec::new(), None);
    loop {
        let after = next
            .as_ref()
            .map_or(RecordsAfter::Nothing, RecordsAfter::Record);
        let page = wait(domain.list_records(prefix, after, limit)).expect("a quorum is there");
        let names = page.entries.into_iter().map(|entry| entry.name);
        all.extend(names.map(|name| format!("{}+{}", name.key, name.suffix)));
        match page.next {
            Some(after) => next = Some(after),
            None => return all,
        }
    }
}

#[test]
fn records_are_apart_from_objects() {
    let cluster = Cluster::start(&["--durability", "memory"]);
    let client = wait(Client::connect(cluster.options())).unwrap();
    let domain = wait(client.domain("default")).unwrap();
    wait(domain.put("a", "object")).unwrap();
    for (key, suffix) in [("b", "1"), ("a", "2"), ("a", "1"), ("a/c", "1")] {
        put(&domain, key, suffix, "record");
    }
    for limit in [1, 2, 1000] {
        let all = listed(&domain, "", limit);
        assert_eq!(all, ["a+1", "a+2", "a/c+1", "b+1"], "{limit}");
    }
    assert_eq!(listed(&domain, "a/", 10), ["a/c+1"]);
    let of_key = |suffix| {
        let page = wait(domain.list_records_of("a", suffix, RecordsAfter::Nothing, 10)).unwrap();
        page.entries.len()
    };
    assert_eq!((of_key(""), of_key("2"), of_key("3")), (2, 1, 0));
    let after_key = RecordsAfter::Key("a");
    let page = wait(domain.list_records("", after_key, 10)).unwrap();
    assert_eq!(page.entries[0].name.key, "a/c");

    assert_eq!(cluster.run(&["ls"]).done().text(), "a");
    let record = wait(domain.get_record("a", "1")).unwrap();
    assert_eq!(&record.into_bytes()[..], b"record");
    wait(domain.delete_record("a", "1")).unwrap();
    let gone = wait(domain.get_record("a", "1")).unwrap_err();
    assert!(
        matches!(&gone, Error::NotFound { key: Some(key), .. } if key == "a"),
        "{gone}"
    );
    assert_eq!(
        listed(&domain, "", 10),
        ["a+2", "a/c+1", "b+1"],
        "it is gone"
    );
    let long = "s".repeat(80);
    for suffix in ["", "a\0b", &long] {
        let refused = wait(domain.get_record("a", suffix)).unwrap_err();
        assert!(matches!(refused, Error::Invalid { .. }), "{refused}");
    }
}

/// One winner while the domain gives it, and nothing is lost when it changes.
#[test]
fn records_are_registers_where_objects_are() {
    let cluster = Cluster::start(&["--durability", "memory"]);
    let create = ["domain", "create", "one", "--dap", "conditional"];
    cluster.run(&create).done();
    let client = wait(Client::connect(cluster.options())).unwrap();
    let domain = wait(client.domain("one")).unwrap();
    let create = |value: &'static str| {
        let options = PutOptions::default();
        wait(domain.compare_and_put_record("k", "id", value, None, options))
    };
    let first = create("x").unwrap();
    let lost = create("y").unwrap_err();
    assert!(matches!(lost, Error::VersionConflict { .. }), "{lost}");
    for dap in ["ec", "conditional", "abd", "conditional"] {
        cluster
            .run(&["reconfig", "start", "one", "--dap", dap])
            .done();
        let record = wait(domain.get_record("k", "id")).unwrap();
        assert_eq!(record.version, first, "{dap}");
        assert_eq!(listed(&domain, "", 10), ["k+id"], "{dap}");
    }
}
