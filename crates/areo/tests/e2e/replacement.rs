//! A server whose log lacks records: another one takes its place (`[X-37 another-in-its-place]`).

#![allow(clippy::unwrap_used, reason = "a test")]

use crate::cluster::{Cluster, wait_until};
use crate::lifecycle::ask;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

const DOMAINS: [&str; 2] = ["default", "copies"];

/// Logs that were set aside in the directory.
fn aside(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).unwrap();
    let names = entries.map(|it| it.unwrap().path());
    let is_aside = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_str().unwrap();
        name.starts_with("incomplete-log-of-")
    };
    names.filter(is_aside).collect()
}

/// The servers, from `areo status`.
fn servers(cluster: &Cluster) -> Vec<Value> {
    let status = cluster.run(&["status", "--json", "--timeout", "2s"]);
    let lines = status.objects().into_iter();
    lines.filter(|it| it["server"].is_string()).collect()
}

/// The names of the members of all configurations.
fn members(cluster: &Cluster) -> Vec<String> {
    let mut members = Vec::new();
    for domain in ["@root", "default", "copies"] {
        let entries = cluster.run(&["reconfig", "status", domain, "--json"]);
        for entry in entries.done().objects() {
            let servers = entry["servers"].as_array().unwrap().iter();
            members.extend(servers.map(|it| it["name"].as_str().unwrap().to_owned()));
        }
    }
    members
}

/// Waits until `new` has taken the place of `old` everywhere, and nothing is left to do.
#[track_caller]
fn wait_until_replaced(cluster: &Cluster, old: &str, new: &str, directory: &Path) {
    wait_until(|| {
        let servers = servers(cluster);
        let is_gone = servers.iter().all(|it| it["server"] != old);
        is_gone && servers.len() == 4 && servers.iter().all(|it| it["state"] == "serving")
    });
    wait_until(|| aside(directory).is_empty());
    let members = members(cluster);
    assert!(!members.contains(&old.to_owned()), "{members:?}");
    assert!(members.contains(&new.to_owned()), "{members:?}");
    for domain in DOMAINS {
        for i in 0..20 {
            let got = cluster.run(&["get", &format!("k{i}"), "--domain", domain]);
            assert_eq!(got.done().text(), format!("{i} of {domain}"));
        }
        wait_until(|| cluster.run(&["repair", "status", "--domain", domain]).code == 0);
    }
}

fn put_objects(cluster: &Cluster) {
    let create = ["domain", "create", "copies", "--dap", "abd"];
    let create = [&create[..], &["--servers", "s1,s2,s3"]].concat();
    cluster.run(&create).done();
    for domain in DOMAINS {
        for i in 0..20 {
            let put = ["put", &format!("k{i}"), "--domain", domain];
            cluster
                .run_with(&put, format!("{i} of {domain}").as_bytes())
                .done();
        }
    }
}

/// While another member is away the cluster needs the server, and nothing is changed. Then another one takes its place, also if its
/// process is killed again and again meanwhile; and `areo up` starts that one.
#[test]
fn another_server_takes_the_place_of_one_whose_log_is_gone() {
    let up = ["--servers", "4"];
    let mut cluster = Cluster::start(&up);
    put_objects(&cluster);
    cluster.stop().done();
    let directory = cluster.data().join("s1");
    let identity = fs::read(directory.join("IDENTITY")).unwrap();
    let file = fs::read_to_string(cluster.file()).unwrap();
    fs::remove_dir_all(directory.join("log")).unwrap();
    for server in ["s1", "s3", "s4"] {
        cluster.start_server(server);
    }
    wait_until(|| cluster.state("s1") == "incomplete");
    let status = cluster.run(&["status"]);
    assert!(
        status
            .text()
            .contains("s1: records are missing from its log"),
        "{}",
        status.text()
    );
    assert_eq!(ask(cluster.port() + 90, "/health/ready").0, "503");
    assert!(aside(&directory).is_empty(), "the others need it");
    cluster.start_server("s2");
    // The first thing that the other server does is to move the log away.
    wait_until(|| !aside(&directory).is_empty());
    assert_ne!(fs::read(directory.join("IDENTITY")).unwrap(), identity);
    for _ in 0..3 {
        cluster.kill("s1");
        cluster.start_server("s1");
        let pid = cluster.pid("s1");
        wait_until(|| cluster.state("s5") == "serving");
        assert_eq!(pid, cluster.pid("s1"), "it goes on in the process");
    }
    wait_until_replaced(&cluster, "s1", "s5", &directory);
    for server in ["s1", "s2", "s3", "s4"] {
        cluster.kill(server);
    }
    let cluster = cluster.start_again(&up);
    wait_until(|| servers(&cluster).iter().all(|it| it["state"] == "serving"));
    let after = fs::read_to_string(cluster.file()).unwrap();
    assert_ne!(
        file, after,
        "the file names the server that the directory is of"
    );
    for domain in DOMAINS {
        cluster.run(&["get", "k0", "--domain", domain]).done();
    }
}

/// It goes on under `areo up`, in the process that `areo up` watches.
#[test]
fn a_server_of_areo_up_is_replaced_where_it_runs() {
    let up = ["--servers", "4"];
    let mut cluster = Cluster::start(&up);
    put_objects(&cluster);
    cluster.stop().done();
    let directory = cluster.data().join("s2");
    fs::remove_file(directory.join("EXTENT")).unwrap();
    let cluster = cluster.start_again(&up);
    wait_until_replaced(&cluster, "s2", "s5", &directory);
    assert_eq!(cluster.starts("s2"), 1);
}
