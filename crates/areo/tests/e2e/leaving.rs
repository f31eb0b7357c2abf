//! Servers that leave the cluster: replaced, drained, forgotten.

#![allow(clippy::unwrap_used, reason = "a test")]

use crate::cluster::{Cluster, CommandOutput, areo, wait_until};
use crate::command;
use areo_client::blocking::wait;
use areo_client::{Client, Departure, Progress, Successor};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::sync::atomic::{AtomicBool, Ordering};

/// The servers that configurations of a domain name, pending ones included.
fn named(cluster: &Cluster, domain: &str) -> Vec<String> {
    let entries = cluster.run(&["reconfig", "status", domain, "--json"]);
    let entries = entries.done().objects();
    let servers = entries
        .iter()
        .flat_map(|it| it["servers"].as_array().unwrap());
    servers
        .map(|it| it["name"].as_str().unwrap().to_owned())
        .collect()
}

/// The last that a command printed of each domain.
fn last_states(ended: &CommandOutput) -> BTreeMap<String, Value> {
    let objects = ended.objects().into_iter();
    let of_domain = |it: Value| (it["domain"].as_str().unwrap().to_owned(), it);
    objects.map(of_domain).collect()
}

fn create(cluster: &Cluster, name: &str, servers: &str, more: &[&str]) {
    let create = ["domain", "create", name, "--servers", servers];
    cluster.run(&[&create, more].concat()).done();
    put(cluster, name);
}

fn put(cluster: &Cluster, domain: &str) {
    for key in ["a", "b", "c"] {
        let value = format!("{key} of {domain}");
        let put = ["put", key, "--domain", domain];
        cluster.run_with(&put, value.as_bytes()).done();
    }
}

/// Every object of the domain is readable, and at all of its servers, of which `gone` is none.
#[track_caller]
fn assert_whole(cluster: &Cluster, domain: &str, gone: &str) {
    let named = named(cluster, domain);
    assert!(!named.contains(&gone.to_owned()), "{domain}: {named:?}");
    if domain == "@root" {
        return;
    }
    for key in ["a", "b", "c"] {
        let got = cluster.run(&["get", key, "--domain", domain]).done();
        assert_eq!(got.text(), format!("{key} of {domain}"));
    }
    cluster
        .run(&["repair", "status", "--domain", domain])
        .done();
}

fn replace_s2(cluster: &Cluster) -> CommandOutput {
    cluster.run(&["server", "replace", "s2", "--json"])
}

/// A server whose disk is lost is replaced in all domains at once; also where another client left a change half done.
#[test]
fn a_lost_server_is_replaced_in_every_domain() {
    let mut cluster = Cluster::start(&[]);
    put(&cluster, "default");
    create(&cluster, "copies", "s1,s2,s3", &["--dap", "abd"]);
    create(&cluster, "others", "s1,s3,s4,s5", &["--k", "2"]);
    create(&cluster, "half", "s2,s3,s4,s5", &["--k", "2"]);
    cluster.kill("s2");
    std::fs::remove_dir_all(cluster.data().join("s2")).unwrap();
    replace_s2(&cluster).refused(
        2,
        &["no server is free to take the place of 's2'", "--join"],
    );
    cluster.join("s6");
    let left_off = ["reconfig", "start", "half", "--add", "s6", "--remove", "s2"];
    let left_off = [&left_off[..], &["--experimental", "leave-off=transferred"]].concat();
    cluster.run(&left_off).done();
    assert!(named(&cluster, "half").contains(&"s2".to_owned()));

    let replaced = replace_s2(&cluster).done();
    let first = &replaced.objects()[0];
    assert_eq!(
        (&first["domain"], &first["state"]),
        (&"@root".into(), &"not-begun".into())
    );
    let states = last_states(&replaced);
    let domains: Vec<&str> = states.keys().map(String::as_str).collect();
    assert_eq!(domains, ["@root", "copies", "default", "half"]);
    for (domain, state) in &states {
        assert_eq!(state["state"], "done", "{domain}: {state}");
        assert_eq!(state["replaced_by"], "s6", "{domain}: {state}");
        assert_eq!(state["not_full"], 0, "{domain}: {state}");
        assert_whole(&cluster, domain, "s2");
    }
    assert_eq!(states["default"]["objects"], 3, "{states:?}");
    assert_whole(&cluster, "others", "s2");

    let again = replace_s2(&cluster).done();
    assert!(again.objects().is_empty());
    let again = cluster.run(&["server", "replace", "s2"]).done();
    assert_eq!(again.text(), "no domain names 's2': there is nothing to do");
    cluster.run(&["server", "forget", "s2"]).done();
    assert_eq!(cluster.state("s2"), "", "it is not listed");
    cluster.run(&["domain", "create", "later"]).done();
    assert_eq!(named(&cluster, "later"), ["s1", "s3", "s4", "s5", "s6"]);
}

/// The command that replaces a server is killed, and another one goes on.
#[test]
fn a_replacement_that_was_killed_is_finished_by_another() {
    let mut cluster = Cluster::start(&[]);
    put(&cluster, "default");
    for name in ["one", "two", "three", "four"] {
        create(&cluster, name, "s1,s2,s3,s4,s5", &[]);
    }
    cluster.kill("s2");
    cluster.join("s6");
    let mut child = cluster.spawn(&["server", "replace", "s2", "--json"]);
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut lines = lines.map(Result::unwrap);
    assert!(lines.any(|line| line.contains(r#""domain":"default","state":"running""#)));
    child.kill().unwrap();
    child.wait().unwrap();
    // Two at once do no harm.
    let mut other = cluster.spawn(&["server", "replace", "s2", "--json"]);
    replace_s2(&cluster).done();
    assert!(other.wait().unwrap().success());
    for domain in ["@root", "default", "one", "two", "three", "four"] {
        assert_whole(&cluster, domain, "s2");
    }
}

/// A healthy server is emptied: another one comes, or the domains go on with fewer while that tolerates a crash.
#[test]
fn a_server_is_drained_and_forgotten() {
    let mut cluster = Cluster::start(&["--servers", "4", "--dap", "abd"]);
    put(&cluster, "default");
    cluster.join("s5");
    let drain = |cluster: &Cluster, server: &str| {
        let drained = cluster.run(&["server", "drain", server, "--json"]).done();
        last_states(&drained)["default"].clone()
    };
    assert_eq!(drain(&cluster, "s4")["replaced_by"], "s5");
    assert_whole(&cluster, "default", "s4");
    assert_whole(&cluster, "@root", "s4");
    let forget = |cluster: &Cluster| cluster.run(&["server", "forget", "s4"]);
    forget(&cluster).refused(4, &["'s4' serves", "stop it first"]);
    cluster.kill("s4");
    forget(&cluster).done();
    forget(&cluster).refused(3, &["there is no server 's4'"]);
    assert_eq!(cluster.state("s4"), "");

    // The directory of a forgotten server is of no use.
    let (port, data) = (cluster.port(), cluster.data().join("s4"));
    let listen = [port + 3, port + 93].map(|port| format!("127.0.0.1:{port}"));
    let again = [
        "--cluster",
        &cluster.file(),
        "server",
        "--data",
        data.to_str().unwrap(),
    ];
    let again = [&again[..], &["--listen", &listen[0], "--admin", &listen[1]]].concat();
    areo(&again, b"").refused(7, &["was forgotten by its cluster", "empty directory"]);

    let smaller = drain(&cluster, "s5");
    assert_eq!(smaller["replaced_by"], Value::Null);
    assert_eq!(
        (&smaller["old"], &smaller["new"]),
        (&"abd [4,1]".into(), &"abd [3,1]".into())
    );
    assert_whole(&cluster, "default", "s5");
    cluster.kill("s5");
    let refused = cluster.run(&["server", "drain", "s3"]);
    refused.refused(2, &["no server is free", "tolerates no crash", "--join"]);
    assert!(!refused.stderr.contains("--allow-f0"), "{}", refused.stderr);
    assert_eq!(
        named(&cluster, "default"),
        ["s1", "s2", "s3"],
        "nothing was done"
    );
    let named = cluster.run(&["server", "forget", "s3"]);
    named.refused(
        4,
        &["'s3' is a member of @root, default", "areo server drain s3"],
    );
}

/// All servers of a cluster are to go, one after the other: none of them comes back in the place of the next.
#[test]
fn servers_that_are_drained_in_a_row_are_not_chosen_again() {
    let mut cluster = Cluster::start(&["--servers", "3", "--dap", "abd"]);
    put(&cluster, "default");
    for name in ["s4", "s5", "s6"] {
        cluster.join(name);
    }
    // The root domain has all servers that it can have.
    wait_until(|| named(&cluster, "@root").len() == 5);
    for (verb, name) in [("replace", "s1"), ("replace", "s2"), ("drain", "s3")] {
        cluster.run(&["server", verb, name]).done();
    }
    let is_old = |name: &String| ["s1", "s2", "s3"].contains(&name.as_str());
    for domain in ["default", "@root"] {
        let named = named(&cluster, domain);
        assert!(!named.iter().any(is_old), "{domain}: {named:?}");
    }
    let leaving = |cluster: &Cluster| {
        let status = cluster.run(&["status", "--json"]).done().objects();
        let leaving = status.iter().filter(|it| it["leaving"] == true);
        let names = leaving.map(|it| it["server"].as_str().unwrap().to_owned());
        names.collect::<Vec<_>>()
    };
    assert_eq!(leaving(&cluster), ["s1", "s2", "s3"]);
    // Also by those that choose servers otherwise, and after a restart.
    cluster.kill("s1");
    cluster.restart("s1");
    cluster.run(&["domain", "create", "later"]).done();
    assert_eq!(named(&cluster, "later"), ["s4", "s5", "s6"]);
    let replace = ["server", "replace", "s4", "--with", "s1"];
    cluster
        .run(&replace)
        .refused(2, &["'s1' is to go itself", "areo server keep s1"]);
    let add = ["reconfig", "start", "default", "--add", "s1"];
    cluster.run(&add).refused(2, &["'s1' is to go itself"]);
    cluster
        .run(&["server", "keep", "s9"])
        .refused(3, &["there is no server 's9'"]);
    let kept = cluster.run(&["server", "keep", "s1"]).done();
    assert_eq!(kept.text(), "'s1' stays, and may be chosen for domains");
    assert_eq!(leaving(&cluster), ["s2", "s3"]);
    cluster.run(&replace).done();
    assert_whole(&cluster, "default", "s4");
}

#[test]
fn servers_that_cannot_leave() {
    let mut cluster = Cluster::start(&["--servers", "3", "--dap", "abd"]);
    cluster.join("s4");
    let replace = |with: &[&str]| cluster.run(&[&["server", "replace"], with].concat());
    replace(&["s9"]).refused(3, &["there is no server 's9': there are s1, s2, s3, s4"]);
    replace(&["s1", "--with", "s9"]).refused(3, &["there is no server 's9'"]);
    replace(&["s1", "--with", "s1"]).refused(2, &["'s1' cannot take its own place"]);
    replace(&["s1", "--with", "s2"]).refused(2, &["'s2' cannot be added, it is a member already"]);
    replace(&["s1", "--data", "x"]).refused(2, &["--data"]);
    cluster
        .run(&["server", "forget", "s9"])
        .refused(3, &["there is no server 's9'"]);
    cluster.kill("s4");
    let away = cluster.run(&["server", "replace", "s1", "--with", "s4"]);
    away.refused(5, &["s4 does not serve"]);
    cluster
        .run(&["server", "replace", "s1"])
        .refused(2, &["no server is free"]);
    wait_until(|| named(&cluster, "default") == ["s1", "s2", "s3"]);
}

/// Two operators at once: while one reads the plan of a command, the other one takes the server of that plan out of all domains, and
/// creates a domain on the server that is to go. What the command does is planned after its mark.
#[test]
fn what_others_do_while_a_plan_is_read_is_part_of_it() {
    let mut cluster = Cluster::start(&["--servers", "3", "--dap", "abd"]);
    put(&cluster, "default");
    for name in ["s4", "s5"] {
        cluster.join(name);
    }
    let coming = |planned: &[Departure], domain: &str| {
        let departure = planned.iter().find(|it| it.domain().name() == domain);
        let planned = departure.expect("it names s1").planned().unwrap();
        let mut members = planned.members.iter().map(|it| it.name.clone());
        members.find(|it| ["s4", "s5"].contains(&it.as_str()))
    };
    let client = wait(Client::connect(cluster.options())).unwrap();
    let mut chosen = None;
    let meanwhile = |planned: &[Departure]| {
        chosen = coming(planned, "default");
        let chosen = chosen.as_ref().unwrap();
        cluster.run(&["server", "drain", chosen]).done();
        create(&cluster, "late", "s1,s2,s3", &["--dap", "abd"]);
        true
    };
    let departures = wait(client.begin_departure("s1", &Successor::FreeOrNone, meanwhile));
    let departures = departures.unwrap().unwrap();
    let other = if chosen.unwrap() == "s4" { "s5" } else { "s4" };
    for domain in ["default", "late"] {
        let coming = coming(&departures, domain);
        assert_eq!(coming.as_deref(), Some(other), "{domain}");
    }
    for departure in &departures {
        wait(departure.run(|_| {})).unwrap();
    }
    for domain in ["@root", "default", "late"] {
        assert_whole(&cluster, domain, "s1");
    }
    // A plan that is not wanted marks no server.
    cluster.run(&["server", "keep", "s1"]).done();
    let refused = wait(client.begin_departure("s1", &Successor::FreeOrNone, |_| false));
    assert!(refused.unwrap().is_none());
    let status = cluster.run(&["status", "--json"]).done().objects();
    let s1 = status.iter().find(|it| it["server"] == "s1").unwrap();
    assert_eq!(s1["leaving"], false);
}

/// Two operators at once: one has chosen a server for a place when the other one takes that server out of all domains, and finds none
/// that names it. The first one looks once more after its change, and chooses again.
#[test]
fn a_server_that_is_drained_during_a_change_does_not_keep_the_place() {
    let mut cluster = Cluster::start(&["--servers", "3", "--dap", "abd"]);
    put(&cluster, "default");
    for name in ["s4", "s5"] {
        cluster.join(name);
    }
    let client = wait(Client::connect(cluster.options())).unwrap();
    wait(client.mark_leaving("s1", true)).unwrap();
    let planned = wait(client.departures("s1", &Successor::FreeOrNone)).unwrap();
    let departure = planned.iter().find(|it| it.domain().name() == "default");
    let departure = departure.expect("it names s1");
    let planned = departure.planned().unwrap().members.iter();
    let is_free = |name: &&String| ["s4", "s5"].contains(&name.as_str());
    let coming = planned.map(|it| &it.name).find(is_free).unwrap().clone();
    let (file, drained) = (cluster.file(), coming.clone());
    let is_done = AtomicBool::new(false);
    let meanwhile = move |step: Progress| {
        if step == Progress::Deciding && !is_done.swap(true, Ordering::Relaxed) {
            let drain = ["--cluster", &file, "server", "drain", &drained, "--json"];
            let drained = command::run(&drain, b"").done();
            let states = last_states(&drained);
            assert!(!states.contains_key("default"), "{states:?}");
        }
    };
    wait(departure.run(meanwhile)).unwrap();
    let mut members = named(&cluster, "default");
    members.sort();
    let other = if coming == "s4" { "s5" } else { "s4" };
    assert_eq!(members, ["s2", "s3", other], "{coming} is to go");
    assert_whole(&cluster, "default", "s1");
}
