//! Domains change their servers, code and algorithm while clients read and write.

#![allow(clippy::unwrap_used, reason = "a test")]

mod at_once;
mod experiments;
mod merged;
mod outside;
mod refused;
mod streams;
mod survives;
pub(crate) mod traffic;

use crate::cluster::{Cluster, CommandOutput, wait_until};
use crate::file_history::judged;
use crate::values::bytes;
use areo_check::Verdict;
use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;
use traffic::Traffic;

/// Runs `areo reconfig VERB` on a domain.
fn reconfig(cluster: &Cluster, verb: &str, domain: &str, change: &[&str]) -> CommandOutput {
    let arguments = [&["reconfig", verb, domain], change].concat();
    cluster.run(&arguments)
}

/// Puts files of several sizes.
fn put_files(cluster: &Cluster, domain: &str, sizes: &[usize]) -> BTreeMap<String, Vec<u8>> {
    let put = |size: &usize| {
        let (key, value) = (format!("file-{size}"), bytes(*size, *size as u64));
        let path = cluster.folder().join(&key);
        fs::write(&path, &value).unwrap();
        let path = path.to_str().expect("temporary directories are UTF-8");
        cluster.run(&["put", &key, path, "--domain", domain]).done();
        (key, value)
    };
    sizes.iter().map(put).collect()
}

#[track_caller]
fn assert_all_there(cluster: &Cluster, domain: &str, files: &BTreeMap<String, Vec<u8>>) {
    for (key, value) in files {
        let got = cluster.run(&["get", key, "--domain", domain]).done();
        assert!(got.stdout == *value, "{key} has other bytes");
    }
}

/// Index, `dap [n,k]` and servers of the domain's last final configuration, after making sure that nothing is pending.
#[track_caller]
fn shape(cluster: &Cluster, domain: &str) -> (u64, String, Vec<String>) {
    let entries = reconfig(cluster, "status", domain, &["--json"])
        .done()
        .objects();
    assert_eq!(entries.len(), 1, "something is pending: {entries:?}");
    let entry = &entries[0];
    assert_eq!(entry["status"], "finalized");
    let servers = entry["servers"].as_array().unwrap().iter();
    let servers = servers.map(|s| s["name"].as_str().unwrap().to_owned());
    let (dap, n, k) = (entry["dap"].as_str().unwrap(), &entry["n"], &entry["k"]);
    let index = entry["configuration"].as_u64().unwrap();
    (index, format!("{dap} [{n},{k}]"), servers.collect())
}

/// The plan of the move to these servers.
fn assert_plan(cluster: &Cluster, coded: &[&str], files: usize) {
    let plan = reconfig(cluster, "plan", "files", &[coded, &["--json"]].concat());
    let plan = &plan.done().objects()[0];
    assert_eq!(
        (&plan["old"]["dap"], &plan["new"]["k"]),
        (&"abd".into(), &3.into())
    );
    assert_eq!(plan["kept"], serde_json::json!(["s3"]));
    assert_eq!(plan["removed"], serde_json::json!(["s1", "s2"]));
    assert!(plan["objects"].as_u64() >= Some(files as u64), "{plan}");
}

#[test]
fn a_domain_moves_while_clients_read_and_write() {
    let mut cluster = Cluster::start(&["--durability", "memory"]);
    cluster.join("s6");
    cluster.join("s7");
    let create = "domain create files --dap abd --servers s1,s2,s3";
    let create: Vec<&str> = create.split(' ').collect();
    cluster.run(&create).done();
    let files = put_files(&cluster, "files", &[0, 1_000, 20_000, 300_000, 4_000_000]);
    let stored_before = cluster.number("s1", "stored_bytes").unwrap();
    let traffic = Traffic::start(&cluster.options(), "files", Duration::ZERO);

    let coded = ["--dap", "ec", "--servers", "s3,s4,s5,s6,s7"];
    assert_plan(&cluster, &coded, files.len());
    assert_eq!(shape(&cluster, "files").0, 0, "a plan changes nothing");

    traffic.goes_on();
    reconfig(&cluster, "start", "files", &coded).done();
    traffic.goes_on();
    let (index, kind, servers) = shape(&cluster, "files");
    assert_eq!((index, kind.as_str()), (1, "ec [5,3]"));
    assert_eq!(servers, ["s3", "s4", "s5", "s6", "s7"]);
    assert_all_there(&cluster, "files", &files);
    // What the old configuration held is gone, and its room is free again.
    for server in ["s1", "s2"] {
        wait_until(|| cluster.number(server, "element_bytes") == Some(0));
        wait_until(|| cluster.number(server, "stored_bytes") < Some(stored_before / 2));
    }

    for kind in ["casgc", "casss", "cas", "ec"] {
        reconfig(&cluster, "start", "files", &["--dap", kind]).done();
        traffic.goes_on();
        assert_eq!(shape(&cluster, "files").1, format!("{kind} [5,3]"));
        assert_all_there(&cluster, "files", &files);
    }

    let replicated = ["--dap", "abd", "--servers", "s1,s6,s2"];
    reconfig(&cluster, "start", "files", &replicated).done();
    traffic.goes_on();
    assert_eq!(shape(&cluster, "files").1, "abd [3,1]");
    let replaced = ["--add", "s4", "--remove", "s6"];
    reconfig(&cluster, "start", "files", &replaced).done();
    traffic.goes_on();
    let history = traffic.stop();
    assert_eq!(shape(&cluster, "files").2, ["s1", "s4", "s2"]);
    assert_all_there(&cluster, "files", &files);

    let judged = judged(&history);
    assert_eq!(judged.verdict, Verdict::Holds, "{judged}");
    assert_eq!(
        cluster.number("s7", "domains"),
        Some(0),
        "it can be stopped"
    );
    assert_eq!(
        cluster.number("s4", "domains"),
        Some(3),
        "root, default, files"
    );
}

/// A client meets servers that joined after it connected, and finds out by itself where they are.
#[test]
fn an_old_client_follows_its_domain_to_servers_that_it_never_heard_of() {
    use areo_client::Client;
    use areo_client::blocking::wait;
    let mut cluster = Cluster::start(&["--durability", "memory"]);
    let client = wait(Client::connect(cluster.options())).unwrap();
    let domain = wait(client.domain("default")).unwrap();
    wait(domain.put("k", "old")).unwrap();
    for server in ["s6", "s7", "s8"] {
        cluster.join(server);
    }
    let moved = ["--servers", "s6,s7,s8", "--dap", "abd"];
    reconfig(&cluster, "start", "default", &moved).done();
    assert_eq!(&*wait(domain.get("k")).unwrap().into_bytes(), b"old");
    wait(domain.put("k", "new")).unwrap();
    let read = cluster.run(&["get", "k"]).done();
    assert_eq!(read.text(), "new");
    let names = domain.configuration().members.into_iter();
    let names: Vec<String> = names.map(|member| member.name).collect();
    assert_eq!(names, ["s6", "s7", "s8"]);
    assert_eq!(wait(domain.stat("k")).unwrap().configuration, 1);
    // Errors speak of where it ended, not of where the domain was found.
    cluster.kill("s7");
    cluster.kill("s8");
    let soon = domain.with_timeout(Duration::from_secs(1));
    let error = wait(soon.get("k")).unwrap_err().to_string();
    let expected = "(configuration 1, abd [3,1]): 1 of 2 needed servers answered";
    assert!(error.contains(expected), "{error}");
}

#[test]
fn operations_say_what_they_cost() {
    let cluster = Cluster::start(&["--durability", "memory", "--dap", "abd"]);
    let ares = [
        "domain",
        "create",
        "ares",
        "--dap",
        "abd",
        "--experimental",
        "protocol=ares",
    ];
    cluster.run(&ares).done();
    let output = cluster.folder().join("out");
    let output = output.to_str().unwrap();
    for (domain, write, read) in [("default", 2, 1), ("ares", 4, 3)] {
        let cost = |arguments: &[&str]| {
            let flags = ["--domain", domain, "--stats", "--json"];
            let ended = cluster.run_with(&[arguments, &flags].concat(), &[7; 10_000]);
            let object = ended.done().objects().remove(0);
            let number = |key: &str| object[key].as_u64().unwrap();
            assert_eq!(number("configurations_visited"), 1, "{object}");
            (
                number("rounds"),
                number("sent_bytes"),
                number("received_bytes"),
            )
        };
        let (rounds, sent, received) = cost(&["put", "k"]);
        assert_eq!(rounds, write, "a write of '{domain}'");
        // One to each server, and once more with the configuration to those that had not heard of it.
        assert!((50_000..120_000).contains(&sent), "five copies: {sent}");
        assert!(received < 10_000, "tags and pointers: {received}");
        // Its confirmation is on its way to all servers. Without piggybacking a version that not all have shown is written back.
        let (rounds, _, received) = cost(&["get", "k", "-o", output]);
        assert!(
            rounds == read || rounds == read + 1,
            "a read of '{domain}': {rounds}"
        );
        assert!(received >= 10_000, "a copy at least: {received}");
        let show = ["domain", "show", domain, "--json"];
        let shown = cluster.run(&show).done().objects().remove(0);
        let ares = serde_json::json!(["piggyback=off", "collect=off"]);
        let usual = serde_json::json!([]);
        let expected = if domain == "default" { usual } else { ares };
        assert_eq!(shown["experimental"], expected);
    }
}
