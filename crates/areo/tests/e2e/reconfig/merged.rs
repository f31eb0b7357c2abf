//! Domains whose changes of servers are merged: `--reconfig rambo`, `l-rambo`, `sm`, `spsn` and `dynastore`.

use super::{assert_all_there, put_files, reconfig, shape};
use crate::cluster::Cluster;
use crate::values::bytes;
use std::collections::BTreeSet;
use std::fs;
use std::thread;
use std::time::Duration;

const KINDS: [&str; 5] = ["rambo", "l-rambo", "sm", "spsn", "dynastore"];

fn create(cluster: &Cluster, domain: &str, kind: &str) {
    let create = ["domain", "create", domain, "--reconfig", kind];
    let servers = ["--servers", "s1,s2,s3,s4", "--json"];
    let created = cluster.run(&[&create[..], &servers].concat()).done();
    let info = &created.objects()[0];
    assert_eq!(
        (&info["reconfig"], &info["dap"]),
        (&kind.into(), &"abd".into())
    );
}

/// Three operators change the servers at the same time. All of them succeed, and the domain has what each of them wanted.
#[test]
fn changes_at_once_are_all_made() {
    let cluster = Cluster::start(&["--servers", "7", "--durability", "memory"]);
    for kind in KINDS {
        create(&cluster, kind, kind);
        let files = put_files(&cluster, kind, &[0, 1_000, 300_000, 5_000_000]);
        let changes = [
            &["--remove", "s1", "--add", "s5"][..],
            &["--remove", "s2", "--add", "s6"],
            &["--add", "s7"],
        ];
        let start =
            |change: &&[&str]| cluster.spawn(&[&["reconfig", "start", kind], *change].concat());
        let started: Vec<_> = changes.iter().map(start).collect();
        for started in started {
            let ended = started.wait_with_output().unwrap();
            assert!(ended.status.success(), "{kind}: {ended:?}");
        }
        let servers: BTreeSet<String> = shape(&cluster, kind).2.into_iter().collect();
        let expected = ["s3", "s4", "s5", "s6", "s7"].map(ToOwned::to_owned);
        assert_eq!(servers, expected.into(), "{kind}");
        assert_all_there(&cluster, kind, &files);
        // A server that went comes back, and what it missed with it.
        reconfig(&cluster, "start", kind, &["--remove", "s3", "--add", "s1"]).done();
        assert_all_there(&cluster, kind, &files);
        let again = reconfig(&cluster, "start", kind, &["--json"]).done();
        assert_eq!(again.objects()[0]["outcome"], "unchanged");
        cluster.run(&["domain", "rm", kind, "--yes"]).done();
        create(&cluster, kind, kind);
    }
}

/// Changes of a coded domain at once, by SM: members that stay keep their fragments, and any one may be away.
#[test]
fn changes_of_a_coded_domain_at_once_are_all_made() {
    let mut cluster = Cluster::start(&["--servers", "7", "--durability", "memory"]);
    let create = ["domain", "create", "d", "--reconfig", "sm", "--dap", "ec"];
    let servers = ["--k", "2", "--servers", "s1,s2,s3,s4", "--json"];
    let created = cluster.run(&[&create[..], &servers].concat()).done();
    assert_eq!(created.objects()[0]["dap"], "ec");
    let files = put_files(&cluster, "d", &[0, 1_000, 300_000, 5_000_000]);
    let changes = [
        &["--remove", "s1", "--add", "s5"][..],
        &["--remove", "s2", "--add", "s6"],
        &["--add", "s7"],
    ];
    let start = |change: &&[&str]| cluster.spawn(&[&["reconfig", "start", "d"], *change].concat());
    let started: Vec<_> = changes.iter().map(start).collect();
    for started in started {
        let ended = started.wait_with_output().unwrap();
        assert!(ended.status.success(), "{ended:?}");
    }
    let (_, dap, servers) = shape(&cluster, "d");
    let servers: BTreeSet<String> = servers.into_iter().collect();
    let expected = ["s3", "s4", "s5", "s6", "s7"].map(ToOwned::to_owned);
    assert_eq!((dap.as_str(), servers), ("ec [5,2]", expected.into()));
    assert_all_there(&cluster, "d", &files);
    // Of six elements of each object one is sent, to the server that comes.
    let more = ["--add", "s1", "--json"];
    let plan = reconfig(&cluster, "plan", "d", &more)
        .done()
        .objects()
        .remove(0);
    let bytes = |field: &str| plan[field].as_u64().unwrap();
    assert!(bytes("sent_bytes") > 2_000_000, "{plan}");
    assert_eq!(6 * bytes("sent_bytes"), bytes("element_bytes"), "{plan}");
    let done = reconfig(&cluster, "start", "d", &more).done();
    assert_eq!(done.objects()[0]["outcome"], "installed");
    let again = reconfig(&cluster, "start", "d", &["--json"]).done();
    assert_eq!(again.objects()[0]["outcome"], "unchanged");
    let few = reconfig(
        &cluster,
        "start",
        "d",
        &["--remove", "s5,s6,s7", "--allow-f0"],
    );
    few.refused(4, &["3 servers would be left", "at least 4"]);
    reconfig(&cluster, "start", "d", &["--remove", "s3,s5"]).done();
    cluster.kill("s7");
    assert_all_there(&cluster, "d", &files);
    cluster.run(&["domain", "rm", "d", "--yes"]).done();
}

/// The client dies on its way; operations go on, and another client finishes the change.
#[test]
fn a_change_that_was_left_is_finished() {
    let cluster = Cluster::start(&["--servers", "6", "--durability", "memory"]);
    for kind in KINDS {
        create(&cluster, kind, kind);
        let files = put_files(&cluster, kind, &[1_000, 300_000]);
        for (removed, added) in [("s1", "s5"), ("s2", "s6")] {
            let change = ["--remove", removed, "--add", added];
            let mut child = cluster.spawn(&[&["reconfig", "start", kind], &change[..]].concat());
            child.kill().unwrap();
            child.wait().unwrap();
            assert_all_there(&cluster, kind, &files);
            // Nothing of it, or all of it.
            reconfig(&cluster, "start", kind, &["--resume"]).done();
            shape(&cluster, kind);
            assert_all_there(&cluster, kind, &files);
        }
    }
}

/// The leader of the last configuration, and the client that proposed it, as `areo domain show` prints them.
fn leader(cluster: &Cluster, domain: &str) -> (String, String) {
    let shown = cluster.run(&["domain", "show", domain, "--json"]).done();
    let shown = shown.objects().remove(0);
    let text = |key: &str| shown[key].as_str().unwrap_or_default().to_owned();
    let proposer = text("consensus");
    let client = proposer.split(['=', '.']).nth(1).unwrap_or_default();
    (text("leader"), client.to_owned())
}

/// The changes of several processes are proposed by one client: that of the server that leads.
#[test]
fn a_server_leads() {
    let cluster = Cluster::start(&["--servers", "5", "--durability", "memory"]);
    create(&cluster, "d", "l-rambo");
    let (server, first) = leader(&cluster, "d");
    let shown = cluster.run(&["domain", "show", "d"]).done();
    let line = format!("led by\t{server}");
    assert!(
        shown.text().lines().any(|it| it == line),
        "{}",
        shown.text()
    );
    assert_eq!(first, "", "the first configuration was not proposed");
    let mut proposers = BTreeSet::new();
    for change in [["--add", "s5"], ["--remove", "s5"], ["--add", "s5"]] {
        reconfig(&cluster, "start", "d", &change).done();
        let (server_then, proposer) = leader(&cluster, "d");
        // s5 may be the first by id.
        if server_then == server {
            proposers.insert(proposer);
        }
    }
    assert!(!proposers.contains(""), "{proposers:?}");
    let leaders = proposers.len();
    assert!(leaders <= 2, "one for each server that led: {proposers:?}");
    for kind in ["rambo", "sm"] {
        create(&cluster, kind, kind);
        let shown = cluster.run(&["domain", "show", kind]).done();
        assert!(!shown.text().contains("led by"), "{}", shown.text());
    }
}

/// Several operators change the servers at the same time, and the server that leads is killed meanwhile: all of them succeed.
#[test]
fn a_leader_that_is_killed_is_taken_over() {
    let mut cluster = Cluster::start(&["--servers", "7"]);
    for (number, delay_ms) in [0, 15, 30, 60, 120].into_iter().enumerate() {
        let domain = format!("d{number}");
        create(&cluster, &domain, "l-rambo");
        let files = put_files(
            &cluster,
            &domain,
            &[0, 1_000, 300_000, 5_000_000, 9_000_000],
        );
        let (leads, _) = leader(&cluster, &domain);
        let started: Vec<_> = ["s5", "s6", "s7"]
            .iter()
            .map(|added| cluster.spawn(&["reconfig", "start", &domain, "--add", added, "--force"]))
            .collect();
        thread::sleep(Duration::from_millis(delay_ms));
        cluster.kill(&leads);
        for started in started {
            let ended = started.wait_with_output().unwrap();
            let case = format!("{domain}, {leads} killed after {delay_ms} ms");
            assert!(ended.status.success(), "{case}: {ended:?}");
        }
        let servers: BTreeSet<String> = shape(&cluster, &domain).2.into_iter().collect();
        let expected = ["s1", "s2", "s3", "s4", "s5", "s6", "s7"].map(ToOwned::to_owned);
        assert_eq!(servers, expected.into(), "{domain}");
        assert_all_there(&cluster, &domain, &files);
        cluster.restart(&leads);
        assert_all_there(&cluster, &domain, &files);
    }
}

/// Two changes are left pending. `areo domain show` draws them, and `--json` says what leads to what.
#[test]
fn configurations_are_drawn() {
    let cluster = Cluster::start(&["--servers", "6", "--durability", "memory"]);
    let show = |kind: &str, more: &[&str]| {
        cluster
            .run(&[&["domain", "show", kind], more].concat())
            .done()
    };
    let graph = |kind: &str| {
        let shown = show(kind, &["--json"]).objects().remove(0);
        let nodes = shown["graph"]["nodes"].as_array().unwrap().iter();
        let statuses: Vec<_> = nodes.map(|node| node["status"].clone()).collect();
        assert_eq!(
            shown["pending"].as_array().unwrap().len(),
            statuses.len() - 1
        );
        (statuses, shown["graph"]["edges"].clone())
    };
    for kind in KINDS {
        create(&cluster, kind, kind);
        for added in ["s5", "s6"] {
            let change = ["--add", added, "--experimental", "leave-off=transferred"];
            reconfig(&cluster, "start", kind, &change).done();
        }
        let (statuses, edges) = graph(kind);
        assert_eq!(statuses, ["finalized", "pending", "pending"], "{kind}");
        let path = serde_json::json!([{ "from": 0, "to": 1 }, { "from": 1, "to": 2 }]);
        assert_eq!(edges, path, "{kind}");
        let shown = show(kind, &[]);
        let drawn: Vec<&str> = shown.text().lines().rev().take(2).collect();
        let [second, first] = drawn[..] else {
            panic!("{}", shown.text())
        };
        assert!(
            first.starts_with("comes next\t└─ 2 pending, abd [5,1] on s"),
            "{first}"
        );
        assert!(
            second.starts_with("comes next\t   └─ 4 pending, abd [6,1] on s"),
            "{second}"
        );
        reconfig(&cluster, "start", kind, &["--resume"]).done();
        assert_eq!(
            graph(kind),
            (vec!["finalized".into()], serde_json::json!([]))
        );
        assert!(!show(kind, &[]).text().contains("comes next"));
    }
}

#[test]
fn what_such_a_domain_cannot_is_refused_in_one_sentence() {
    let cluster = Cluster::start(&["--servers", "4", "--durability", "memory"]);
    let few = [
        "domain",
        "create",
        "x",
        "--reconfig",
        "dynastore",
        "--servers",
        "s1,s2",
    ];
    let few = cluster.run(&[&few[..], &["--allow-f0"]].concat());
    few.refused(2, &["at least 3 servers"]);
    for kind in KINDS {
        let coded = ["ec", "cas"][usize::from(kind == "sm")];
        for wrong in [
            &["--dap", coded][..],
            &["--dap", "conditional"],
            &["--consensus", "etcd=127.0.0.1:1"],
        ] {
            let create = ["domain", "create", "x", "--reconfig", kind];
            let refused = cluster.run(&[&create[..], wrong].concat());
            refused.refused(2, &["is replicated", "and decides by itself", "--dap abd"]);
        }
        create(&cluster, kind, kind);
        for change in [
            &["--dap", "ec"][..],
            &["--delta", "3"],
            &["--consensus", "members"],
            &["--k", "2"],
        ] {
            for verb in ["plan", "start"] {
                let refused = reconfig(&cluster, verb, kind, change);
                refused.refused(2, &["changes its servers and nothing else"]);
            }
        }
        let shown = cluster.run(&["domain", "show", kind, "--json"]).done();
        assert_eq!(shown.objects()[0]["reconfig"], kind);
        let large = cluster.folder().join("large");
        fs::write(&large, bytes((64 << 20) + 1, 1)).unwrap();
        let large = large.to_str().expect("temporary directories are UTF-8");
        let refused = cluster.run(&["put", "k", large, "--domain", kind]);
        refused.refused(2, &["keeps values whole", "67108864"]);
        cluster
            .run(&["get", "k", "--domain", kind])
            .refused(3, &["'k'"]);
        // A file consists of blocks, each of which is an object.
        cluster
            .run(&["file", "push", "f", large, "--domain", kind])
            .done();
        reconfig(&cluster, "start", kind, &["--remove", "s4"]).done();
        let pulled = cluster.folder().join("pulled");
        let pulled_text = pulled.to_str().expect("temporary directories are UTF-8");
        cluster
            .run(&["file", "pull", "f", pulled_text, "--domain", kind])
            .done();
        assert!(fs::read(&pulled).unwrap() == bytes((64 << 20) + 1, 1));
        fs::remove_file(pulled).unwrap();
    }
}
