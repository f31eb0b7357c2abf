//! Conditional domains: one winner, through the command line and from programs.

use crate::cluster::Cluster;
use serde_json::Value;

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
    let change =
        |domain: &str, dap: &str| cluster.run(&["reconfig", "start", domain, "--dap", dap]);
    change("one", "abd").refused(2, &["a conditional domain cannot become abd"]);
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

#[test]
fn examples_of_the_library_count_and_hold_a_lease() {
    let cluster = cluster();
    let rose = counter::run(&cluster.addresses(), "one", 4, 10).unwrap();
    assert_eq!(rose, 40);
    let (taken, late, in_time) = lease::run(&cluster.addresses(), "one").unwrap();
    assert_eq!((taken, late, in_time), (1, false, true));
}
