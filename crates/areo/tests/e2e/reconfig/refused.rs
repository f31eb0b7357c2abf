//! Changes that cannot be made, and what is said of them.

use super::{reconfig, shape};
use crate::cluster::{Cluster, wait_until};
use crate::values::bytes;

#[test]
fn changes_that_cannot_be() {
    let mut cluster = Cluster::start(&["--durability", "memory"]);
    cluster.run_with(&["put", "k"], b"v").done();
    for verb in ["plan", "start"] {
        let refused = |change: &[&str], code, words: &[&str]| {
            reconfig(&cluster, verb, "default", change).refused(code, words);
        };
        let unknown = reconfig(&cluster, verb, "none", &["--dap", "abd"]);
        unknown.refused(3, &["there is no domain 'none'", "areo domain ls"]);
        refused(&["--add", "s9"], 3, &["no server 's9'", "s1, s2, s3"]);
        refused(&["--remove", "s9"], 3, &["'s9' cannot be removed"]);
        refused(&["--add", "s1"], 2, &["'s1' cannot be added"]);
        refused(&["--servers", "s1,s2,s1"], 2, &["'s1' is named twice"]);
        refused(&["--k", "6"], 2, &["k = 6 with 5 servers"]);
        refused(&["--k", "4"], 2, &["tolerates no crash", "--allow-f0"]);
        refused(&["--remove", "s5"], 2, &["ec [4,3] tolerates no crash"]);
        refused(&["--dap", "abd", "--k", "2"], 2, &["leave --k out"]);
        let same = reconfig(&cluster, verb, "default", &["--dap", "ec", "--k", "3"]).done();
        let said = format!("{}{}", same.text(), same.stderr);
        assert!(said.contains("has this configuration already"), "{said}");
    }
    let unknown = reconfig(&cluster, "status", "none", &[]);
    unknown.refused(3, &["there is no domain 'none'"]);
    reconfig(&cluster, "start", "default", &["--resume", "--k", "2"])
        .refused(2, &["cannot be used with"]);
    let allowed = ["--remove", "s5", "--allow-f0", "--json"];
    let plan = reconfig(&cluster, "plan", "default", &allowed);
    assert_eq!(plan.done().objects()[0]["new"]["f"], 0);
    let same = reconfig(&cluster, "start", "default", &["--json"]).done();
    assert_eq!(same.objects()[0]["outcome"], "unchanged");
    assert_eq!(shape(&cluster, "default").0, 0, "nothing was done");

    cluster.kill("s5");
    for verb in ["plan", "start"] {
        let refused = reconfig(&cluster, verb, "default", &["--k", "2"]);
        refused.refused(5, &["s5 connection refused", "nothing was done", "--force"]);
    }
    assert_eq!(shape(&cluster, "default").0, 0);
    reconfig(&cluster, "start", "default", &["--k", "2", "--force"]).done();
    assert_eq!(shape(&cluster, "default").1, "ec [5,2]");
    assert_eq!(cluster.run(&["get", "k"]).done().text(), "v");
}

#[test]
fn a_removed_domain_is_gone_and_its_name_is_free() {
    let cluster = Cluster::start(&["--durability", "memory"]);
    let create = [
        "domain",
        "create",
        "x",
        "--dap",
        "abd",
        "--servers",
        "s1,s2,s3",
    ];
    cluster.run(&create).done();
    cluster
        .run_with(&["put", "k", "--domain", "x"], &bytes(100_000, 7))
        .done();
    cluster
        .run(&["domain", "rm", "none"])
        .refused(3, &["'none'"]);
    cluster.run(&["domain", "rm", "x"]).done();
    for verb in [["domain", "rm", "x"], ["reconfig", "status", "x"]] {
        cluster.run(&verb).refused(3, &["there is no domain 'x'"]);
    }
    let get = ["get", "k", "--domain", "x"];
    cluster.run(&get).refused(3, &["there is no domain 'x'"]);
    wait_until(|| cluster.number("s1", "element_bytes") == Some(0));
    cluster.run(&create).done();
    cluster.run(&get).refused(3, &["there is no object 'k'"]);
}

#[test]
fn below_a_quorum_a_change_ends_in_time_and_the_domain_is_as_it_was() {
    let mut cluster = Cluster::start(&[]);
    cluster.run_with(&["put", "k"], b"v").done();
    cluster.kill("s4");
    cluster.kill("s5");
    // The root domain has a quorum: three of five. The domain needs four.
    for change in [&["--k", "1", "--force"][..], &["--resume"]] {
        let change = [change, &["--timeout", "1s"]].concat();
        reconfig(&cluster, "start", "default", &change).refused(
            5,
            &[
                "no quorum for 'default'",
                "3 of 4",
                "the domain is as it was",
            ],
        );
    }
    reconfig(
        &cluster,
        "plan",
        "default",
        &["--k", "1", "--timeout", "1s"],
    )
    .refused(5, &["s4"]);
    let status = reconfig(&cluster, "status", "default", &["--timeout", "1s"]);
    status.refused(5, &["3 of 4"]);
    cluster.restart("s4");
    assert_eq!(shape(&cluster, "default").0, 0);
    assert_eq!(cluster.run(&["get", "k"]).done().text(), "v");
    cluster.run_with(&["put", "k"], b"new").done();
    reconfig(&cluster, "start", "default", &["--k", "1", "--force"]).done();
    assert_eq!(cluster.run(&["get", "k"]).done().text(), "new");
}
