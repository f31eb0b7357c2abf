//! Options that only experiments need: kinds that papers compare with, a protocol without its optimisations, changes left off.

use super::{assert_all_there, put_files, reconfig, shape};
use crate::cluster::{Cluster, areo};

#[test]
fn a_domain_is_brought_into_an_experiment_and_out_of_it() {
    let cluster = Cluster::start(&["--durability", "memory"]);
    let files = put_files(&cluster, "default", &[10, 300_000]);
    let left =
        "--dap ec-published --experimental protocol=ares --experimental leave-off=transferred";
    let left: Vec<&str> = left.split(' ').chain(["--json"]).collect();
    let ended = reconfig(&cluster, "start", "default", &left)
        .done()
        .objects();
    assert_eq!(ended[0]["outcome"], "left-off");
    let entries = reconfig(&cluster, "status", "default", &["--json"]).done();
    let statuses: Vec<_> = entries
        .objects()
        .iter()
        .map(|it| it["status"].clone())
        .collect();
    assert_eq!(statuses, ["finalized", "pending"]);
    assert_all_there(&cluster, "default", &files);
    let shown = cluster.run(&["domain", "show", "default"]).done();
    let next = "comes next\t└─ 1 pending, ec-published [5,3] on s1,s2,s3,s4,s5";
    assert!(shown.text().ends_with(next), "{}", shown.text());

    reconfig(&cluster, "start", "default", &["--resume"]).done();
    let (_, dap, _) = shape(&cluster, "default");
    assert_eq!(dap, "ec-published [5,3]");
    let shown = cluster.run(&["domain", "show", "default"]).done();
    assert!(
        shown.text().contains("piggyback=off, collect=off"),
        "{}",
        shown.text()
    );
    let files = put_files(&cluster, "default", &[10, 300_000]);
    assert_all_there(&cluster, "default", &files);

    let out = ["--dap", "ec", "--experimental", "protocol=ares2"];
    reconfig(&cluster, "start", "default", &out).done();
    assert_eq!(shape(&cluster, "default").1, "ec [5,3]");
    let shown = cluster.run(&["domain", "show", "default"]).done();
    assert!(!shown.text().contains("experimental"), "{}", shown.text());
    assert_all_there(&cluster, "default", &files);
    let create = [
        "domain",
        "create",
        "d",
        "--experimental",
        "leave-off=finalized",
    ];
    cluster
        .run(&create)
        .refused(2, &["a new domain has nothing"]);
}

#[test]
fn a_wrong_setting_is_refused_with_one_sentence() {
    for (setting, sentence) in [
        ("piggyback", "an experimental setting is KEY=VALUE"),
        ("ec=published", "there is no experimental setting 'ec'"),
        ("collect=never", "is on or off or paper, and not 'never'"),
    ] {
        let create = ["domain", "create", "d", "--experimental", setting];
        areo(&create, b"").refused(2, &[sentence]);
    }
    for gone in ["--piggyback", "--collect", "--ec-dap", "--protocol"] {
        areo(&["domain", "create", "d", gone, "on"], b"").refused(2, &["unexpected"]);
    }
}
