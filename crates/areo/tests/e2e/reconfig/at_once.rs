//! Several operators change a domain at the same time.

use super::{assert_all_there, put_files, reconfig, shape};
use crate::cluster::Cluster;

/// Each of four operators replaces another server, and all succeed. Whether they meet, and need fewer than four configurations, is
/// up to the machine; core's tests and the simulator make them meet.
#[test]
fn four_operators_replace_a_server_each() {
    let cluster = Cluster::start(&["--servers", "9", "--durability", "memory"]);
    let create = ["domain", "create", "d", "--dap", "ec", "--k", "3"];
    let servers = ["--servers", "s1,s2,s3,s4,s5"];
    cluster.run(&[&create[..], &servers].concat()).done();
    let files = put_files(&cluster, "d", &[0, 1_000, 300_000]);
    let start = |number: usize| {
        let [old, new] = [number, number + 5].map(|it| format!("s{it}"));
        let change = ["--remove", &old, "--add", &new];
        cluster.spawn(&[&["reconfig", "start", "d"], &change[..]].concat())
    };
    let started: Vec<_> = (1..=4).map(start).collect();
    for started in started {
        let ended = started.wait_with_output().unwrap();
        assert!(ended.status.success(), "{ended:?}");
    }
    let (index, kind, mut servers) = shape(&cluster, "d");
    assert_eq!((kind.as_str(), &servers[4]), ("ec [5,3]", &"s5".to_owned()));
    servers.sort();
    assert_eq!(servers, ["s5", "s6", "s7", "s8", "s9"]);
    assert!((1..=4).contains(&index), "{index}");
    assert_all_there(&cluster, "d", &files);
}

/// Together two changes would leave too few servers: one is made, the other one is refused as if it had come later.
#[test]
fn changes_that_would_leave_too_few_servers_together_are_not_merged() {
    let cluster = Cluster::start(&["--durability", "memory"]);
    let create = ["domain", "create", "d", "--dap", "abd"];
    let servers = ["--servers", "s1,s2,s3,s4"];
    cluster.run(&[&create[..], &servers].concat()).done();
    let files = put_files(&cluster, "d", &[1_000]);
    let remove = |server: &'static str| {
        let change = ["--remove", server];
        cluster.spawn(&[&["reconfig", "start", "d"], &change[..]].concat())
    };
    let ends = ["s1", "s2"]
        .map(remove)
        .map(|one| one.wait_with_output().unwrap());
    let refused: Vec<_> = ends.iter().filter(|end| !end.status.success()).collect();
    let [refused] = refused.as_slice() else {
        panic!("{ends:?}")
    };
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(said.contains("tolerates no crash"), "{said}");
    let (index, kind, _) = shape(&cluster, "d");
    assert_eq!((index, kind.as_str()), (1, "abd [3,1]"));
    assert_all_there(&cluster, "d", &files);
    reconfig(&cluster, "start", "d", &["--add", "s5"]).done();
}
