//! Several operators change a domain at the same time.

use super::{assert_all_there, put_files, reconfig, shape};
use crate::cluster::Cluster;
use crate::command;
use areo_client::blocking::wait;
use areo_client::{Change, Client, Contradiction, Progress, ReconfigError};
use std::sync::atomic::{AtomicBool, Ordering};

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

/// A change is planned, and before it is decided another one is made that goes together with it to what tolerates no crash: it is
/// refused, because another one came first.
#[test]
fn what_another_change_makes_impossible_is_a_conflict() {
    let cluster = Cluster::start(&["--durability", "memory"]);
    let create = ["domain", "create", "d", "--dap", "abd"];
    cluster.run(&create).done();
    let files = put_files(&cluster, "d", &[1_000]);
    let client = wait(Client::connect(cluster.options())).expect("it serves");
    let domain = wait(client.domain("d")).expect("it was created");
    let change = Change {
        servers: ["s1", "s2", "s3"].map(String::from).to_vec(),
        ..Change::default()
    };
    let (file, is_done) = (cluster.file(), AtomicBool::new(false));
    let meanwhile = move |step: Progress| {
        if step == Progress::Deciding && !is_done.swap(true, Ordering::Relaxed) {
            let other = ["reconfig", "start", "d", "--dap", "ec", "--k", "3"];
            command::run(&[&["--cluster", &file], &other[..]].concat(), b"").done();
        }
    };
    let refused = wait(domain.reconfigure(&change, meanwhile)).expect_err("no crash is tolerated");
    let ReconfigError::Conflict {
        configuration,
        about: Contradiction::Both { .. },
        ..
    } = &refused
    else {
        panic!("{refused:?}")
    };
    assert_eq!(configuration.index, 1);
    let said = refused.to_string();
    assert!(
        said.contains("with this one ec [3,3] tolerates no crash"),
        "{said}"
    );
    assert_eq!(shape(&cluster, "d").1, "ec [5,3]");
    assert_all_there(&cluster, "d", &files);
}

/// Together two changes would leave too few servers: one is made, the other one is refused. It is a conflict if they met.
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
    assert!(
        [Some(2), Some(4)].contains(&refused.status.code()),
        "{refused:?}"
    );
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(said.contains("tolerates no crash"), "{said}");
    let (index, kind, _) = shape(&cluster, "d");
    assert_eq!((index, kind.as_str()), (1, "abd [3,1]"));
    assert_all_there(&cluster, "d", &files);
    reconfig(&cluster, "start", "d", &["--add", "s5"]).done();
}
