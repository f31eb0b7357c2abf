//! Conditional domains: one winner, through the command line and from programs.

use crate::cluster::Cluster;
use areo_client::blocking::wait;
use areo_client::{Client, Error, Object, PutOptions};
use serde_json::Value;
use std::sync::atomic::{AtomicBool, Ordering};

#[path = "../../../client/examples/counter.rs"]
mod counter;
#[path = "../../../client/examples/lease.rs"]
mod lease;

fn cluster() -> Cluster {
    let cluster = Cluster::start(&["--durability", "memory"]);
    let create = ["domain", "create", "one", "--dap", "conditional"];
    cluster.run(&create).done();
    cluster
}

#[test]
fn a_conditional_write_happens_on_its_version_and_says_what_it_promises() {
    let cluster = cluster();
    let put = |key: &str, version: &str, value: &str| {
        let arguments = ["--domain", "one", "put", key, "--if-version", version];
        cluster.run_with(&arguments, value.as_bytes())
    };
    let first = put("note", "none", "one").done().text().to_owned();
    put("note", "none", "again").refused(4, &["'note'", "to be made", "at version", &first]);
    let second = put("note", &first, "two").done().text().to_owned();
    put("note", &first, "three").refused(4, &["expected at version", &first, &second]);
    let get = ["--domain", "one", "get", "note"];
    assert_eq!(cluster.run(&get).done().text(), "two");
    // A version of another key, or of another domain.
    let other = cluster.run_with(&["put", "other"], b"x").done();
    put("note", other.text(), "three").refused(4, &["note", &second]);
    put("note", "7", "three").refused(2, &["'7' is not a version", "none"]);

    let arguments = [
        "--json",
        "--domain",
        "one",
        "put",
        "note",
        "--if-version",
        &second,
    ];
    let json = cluster.run_with(&arguments, b"three").done();
    let json: Value = serde_json::from_str(json.text()).unwrap();
    assert_eq!(json["promise"], "one-winner");
    let third = json["version"].as_str().unwrap().to_owned();
    let rm = |version: &str| {
        let arguments = ["--domain", "one", "rm", "note", "--if-version", version];
        cluster.run(&arguments)
    };
    rm(&second).refused(4, &["expected at version", &second, &third]);
    rm(&third).done();
    rm(&third).refused(4, &["'note'", "no such object"]);
    put("note", "none", "made anew").done();
    let listed = cluster.run(&["--domain", "one", "ls"]).done();
    assert_eq!(listed.text(), "note");
}

#[test]
fn a_version_of_elsewhere_or_malformed_changes_nothing() {
    let cluster = cluster();
    let domains = ["one", "default"];
    let put = |domain: &str, key: &str| {
        let put = cluster.run_with(&["--domain", domain, "put", key], b"as it was");
        put.done().text().to_owned()
    };
    for (domain, elsewhere) in [domains, ["default", "one"]].map(|it| (it[0], it[1])) {
        let own = put(domain, "note");
        // Of another key, and of the same key in another domain.
        let others = [put(domain, "other"), put(elsewhere, "note")];
        let on = |verb: &str, key: &str, version: &str| {
            let arguments = ["--domain", domain, verb, key, "--if-version", version];
            cluster.run_with(&arguments, b"this is not to be written")
        };
        for version in &others {
            assert_ne!(*version, own);
            on("put", "note", version).refused(4, &["'note'", "at version", version, &own]);
            on("rm", "note", version).refused(4, &["'note'", "at version", version, &own]);
            on("put", "missing", version).refused(4, &["'missing'", "no such object"]);
            on("rm", "missing", version).refused(4, &["'missing'", "no such object"]);
        }
        let longer = format!("{own}g");
        for malformed in ["", "7", "-", "1-", "latest", &longer] {
            on("put", "note", malformed).refused(2, &["is not a version"]);
            on("rm", "note", malformed).refused(2, &["is not a version"]);
        }
        // The version of no object.
        let none = "0-00000000000000000";
        on("put", "missing", none).refused(2, &["say `none`"]);
        on("rm", "missing", none).refused(2, &["is the version of no object"]);
        on("rm", "note", none).refused(2, &["is the version of no object"]);
        let get = cluster.run(&["--domain", domain, "get", "note"]).done();
        assert_eq!(get.text(), "as it was");
        let version = ["--domain", domain, "get", "note", "--version-only"];
        assert_eq!(cluster.run(&version).done().text(), own);
        let listed = cluster.run(&["--domain", domain, "ls"]).done();
        assert_eq!(listed.text(), "note\nother");
        // Begin the next round as this one began.
        for key in ["note", "other"] {
            cluster.run(&["--domain", domain, "rm", key]).done();
        }
    }
}

#[test]
fn one_winner_is_refused_where_it_cannot_be_had() {
    let cluster = cluster();
    let arguments = ["put", "k", "--if-version", "none", "--require-one-winner"];
    let refused = cluster.run_with(&arguments, b"x");
    refused.refused(2, &["'default' is not conditional", "--dap conditional"]);
    let arguments = ["--json", "put", "k", "--if-version", "none"];
    let json = cluster.run_with(&arguments, b"x").done();
    let json: Value = serde_json::from_str(json.text()).unwrap();
    assert_eq!(json["promise"], "coverable");
    let version = json["version"].as_str().unwrap();
    let arguments = ["rm", "k", "--if-version", version, "--require-one-winner"];
    cluster.run(&arguments).refused(2, &["is not conditional"]);
    cluster.run(&["rm", "k", "--if-version", version]).done();
    let counted = counter::run(&cluster.options(), "default", 1, 1);
    let refusal = counted.unwrap_err().to_string();
    assert!(
        refusal.contains("'default' is not conditional"),
        "{refusal}"
    );
    let change =
        |domain: &str, dap: &str| cluster.run(&["reconfig", "start", domain, "--dap", dap]);
    change("one", "cas").refused(
        2,
        &["a conditional domain cannot become cas, only abd and ec"],
    );
}

/// A value in memory is written on its version at once and in blocks, and a write that loses leaves what is there.
#[test]
fn a_value_in_memory_is_written_on_its_version_at_any_length() {
    let cluster = cluster();
    let client = wait(Client::connect(cluster.options())).unwrap();
    let domain = wait(client.domain("one")).unwrap();
    let put = |bytes: usize, fill: u8, version| {
        let options = PutOptions {
            block_bytes: 64 << 10,
            ..PutOptions::default()
        };
        wait(domain.compare_and_put("k", vec![fill; bytes], version, options))
    };
    // Nothing, a block, a byte more than a block, and several blocks.
    let mut newest = None;
    for (fill, bytes) in [0, 64 << 10, (64 << 10) + 1, 300_000]
        .into_iter()
        .enumerate()
    {
        let fill = fill as u8;
        let written = put(bytes, fill, newest).unwrap();
        for lost in [newest, None] {
            let Err(Error::VersionConflict { latest, .. }) = put(bytes, 99, lost) else {
                panic!("{bytes} bytes were written on {lost:?}, which is not the newest version");
            };
            assert_eq!(latest.unwrap().version, written);
        }
        let object = wait(domain.get("k")).unwrap();
        assert_eq!(object.version, written);
        assert_eq!(object.metadata.blocks.is_some(), bytes > 64 << 10);
        assert_eq!(object.into_bytes(), vec![fill; bytes]);
        newest = Some(written);
    }
}

/// A conditional domain becomes another kind while clients write: nothing that was acknowledged is lost, and no promise is given that
/// cannot be kept.
#[test]
fn a_conditional_domain_in_use_becomes_another_kind() {
    let cluster = cluster();
    let areo = |arguments: &[&str]| cluster.run(&[&["--domain", "one"], arguments].concat());
    let put = |key: &str, value: &[u8]| {
        let arguments = ["--domain", "one", "put", key, "--block-size", "64KiB"];
        cluster.run_with(&arguments, value).done().text().to_owned()
    };
    let first = put("k", b"x");
    let value = vec![7_u8; 300_000];
    put("big", &value);
    put("gone", b"x");
    areo(&["rm", "gone"]).done();
    let client = wait(Client::connect(cluster.options())).unwrap();
    for dap in ["ec", "conditional", "abd"] {
        let change = ["reconfig", "start", "one", "--dap", dap];
        let changed = &AtomicBool::new(false);
        let written = std::thread::scope(|scope| {
            let domain = wait(client.domain("one")).unwrap();
            let writer = scope.spawn(move || {
                let mut count = 0_u32;
                while !changed.load(Ordering::Relaxed) || count == 0 {
                    count += 1;
                    wait(domain.put("busy", count.to_string())).unwrap();
                }
                count
            });
            cluster.run(&change).done();
            changed.store(true, Ordering::Relaxed);
            writer.join().unwrap()
        });
        assert_eq!(areo(&["get", "busy"]).done().text(), written.to_string());
        assert_eq!(areo(&["ls"]).done().text(), "big\nbusy\nk");
        assert_eq!(areo(&["get", "big"]).done().stdout, value);
        assert_eq!(areo(&["get", "k", "--version-only"]).done().text(), first);
        areo(&["sweep", "--older-than", "0s"]).done();
        assert_eq!(areo(&["get", "big"]).done().stdout, value);
    }
    let one_winner = ["put", "k", "--if-version", &first, "--require-one-winner"];
    areo(&one_winner).refused(2, &["is not conditional"]);
    assert!(put("new", b"x").starts_with("2000000000000-"));
}

/// A handle that has not heard of it yet promises one winner, and must not delete as the new kind does, where two may win.
#[test]
fn a_handle_of_before_neither_writes_nor_deletes_weakly() {
    let cluster = cluster();
    let client = wait(Client::connect(cluster.options())).unwrap();
    let before = wait(client.domain("one")).unwrap();
    let options = PutOptions::default;
    let first = wait(before.put_with("k", "x", options())).unwrap();
    let change = ["reconfig", "start", "one", "--dap", "abd"];
    cluster.run(&change).done();
    // Another handle of the same client hears of it.
    wait(wait(client.domain("one")).unwrap().get("k")).unwrap();
    assert!(before.has_one_winner(), "it has not heard of it");
    let deleted = wait(before.compare_and_delete("k", first)).unwrap_err();
    let deleted = deleted.to_string();
    assert!(deleted.contains("ceased to be conditional"), "{deleted}");
    assert!(!before.has_one_winner(), "now it has");
    let refused = wait(before.compare_and_delete("k", first)).unwrap_err();
    let refused = refused.to_string();
    assert!(refused.contains("'one' is not conditional"), "{refused}");
    let object = wait(before.get("k")).unwrap();
    assert_eq!(object.version, first, "nothing was written");
    wait(before.delete_if("k", first)).unwrap();
}

/// It has no condition, so that it is applied in the new kind.
#[test]
fn a_put_of_a_named_request_goes_on_in_the_new_kind() {
    let cluster = cluster();
    let client = wait(Client::connect(cluster.options())).unwrap();
    let domain = wait(client.domain("one")).unwrap();
    let put = |value: &'static str| {
        let options = PutOptions {
            request: 7,
            ..PutOptions::default()
        };
        wait(domain.put_with("k", value, options))
    };
    let first = put("x").unwrap();
    assert_eq!(put("x").unwrap(), first, "it is the same request");
    let change = ["reconfig", "start", "one", "--dap", "abd"];
    cluster.run(&change).done();
    assert!(domain.has_one_winner(), "it has not heard of it");
    let second = put("y").unwrap();
    let object = wait(domain.get("k")).unwrap();
    assert_eq!(object.version, second);
    assert_eq!(&object.into_bytes()[..], b"y");
}

/// A domain in use gets one winner: small and large values, files and deletions stay what they were.
#[test]
fn a_domain_in_use_becomes_conditional() {
    let cluster = cluster();
    let areo = |arguments: &[&str]| cluster.run(arguments);
    let first = cluster
        .run_with(&["put", "k"], b"x")
        .done()
        .text()
        .to_owned();
    let value = vec![7_u8; 300_000];
    let large = ["put", "big", "--block-size", "64KiB"];
    cluster.run_with(&large, &value).done();
    cluster.run_with(&["put", "gone"], b"x").done();
    areo(&["rm", "gone"]).done();
    let change = |dap: &str| areo(&["reconfig", "start", "default", "--dap", dap]);
    change("cas").done();
    let refused = change("conditional");
    refused.refused(
        2,
        &[
            "of the kind cas cannot become conditional",
            "only abd and ec",
        ],
    );
    change("abd").done();
    change("conditional").done();
    let listed = areo(&["ls"]).done();
    assert_eq!(listed.text(), "big\nk");
    assert_eq!(areo(&["get", "big"]).done().stdout, value);
    let put = |version: &str| {
        let arguments = [
            "--json",
            "put",
            "k",
            "--if-version",
            version,
            "--require-one-winner",
        ];
        cluster.run_with(&arguments, b"y")
    };
    let json = put(&first).done();
    let json: Value = serde_json::from_str(json.text()).unwrap();
    assert_eq!(json["promise"], "one-winner");
    put(&first).refused(4, &["expected at version", &first]);
    areo(&["sweep", "--older-than", "0s"]).done();
    assert_eq!(areo(&["get", "big"]).done().stdout, value);
}

#[test]
fn values_of_any_length_are_chosen_and_losers_leave_nothing() {
    let cluster = cluster();
    let value = vec![7_u8; 300_000];
    let put = |version: &str| {
        let arguments = [
            "--domain",
            "one",
            "put",
            "big",
            "--block-size",
            "64KiB",
            "--if-version",
            version,
        ];
        cluster.run_with(&arguments, &value)
    };
    let first = put("none").done().text().to_owned();
    put("none").refused(4, &["at version", &first]);
    let second = put(&first).done().text().to_owned();
    put(&first).refused(4, &["at version", &second]);
    let got = cluster.run(&["--domain", "one", "get", "big"]).done();
    assert_eq!(got.stdout, value);
    cluster
        .run(&["--domain", "one", "sweep", "--older-than", "0s"])
        .done();
    let got = cluster.run(&["--domain", "one", "get", "big"]).done();
    assert_eq!(got.stdout, value);
}

/// The version in a conflict is old once the loser has paused: it would lose again and again against clients that do
/// not pause. So it reads again.
#[test]
fn an_update_that_lost_reads_again_after_its_pause() {
    let cluster = cluster();
    let client = wait(Client::connect(cluster.options())).unwrap();
    let domain = wait(client.domain("one")).unwrap();
    let reads = || {
        let text = client.metrics().text();
        let reads = |line: &str| {
            let outcome = line.strip_prefix("areo_client_operations_total{operation=\"get\",")?;
            outcome.rsplit_once(' ')?.1.parse::<u64>().ok()
        };
        text.lines().filter_map(reads).sum::<u64>()
    };
    let (before, mut calls) = (reads(), 0);
    let append = |object: Option<&Object>| {
        calls += 1;
        let found = object.map_or_else(Vec::new, |object| object.clone().into_bytes().into());
        if calls <= 3 {
            // Another one is faster.
            let faster = ["--domain", "one", "put", "k"];
            cluster
                .run_with(&faster, &[&found[..], b"+"].concat())
                .done();
        }
        Some([&found[..], b"."].concat())
    };
    wait(domain.update("k", append)).unwrap();
    assert_eq!((calls, reads() - before), (4, 4));
    let got = cluster.run(&["--domain", "one", "get", "k"]).done();
    assert_eq!(got.text(), "+++.");
}

#[test]
fn examples_of_the_library_count_and_hold_a_lease() {
    let cluster = cluster();
    let rose = counter::run(&cluster.options(), "one", 4, 10).unwrap();
    assert_eq!(rose, 40);
    // The second time there is a lease.
    for _ in 0..2 {
        let (taken, late, in_time) = lease::run(&cluster.options(), "one").unwrap();
        assert_eq!((taken, late, in_time), (1, false, true));
    }
}
