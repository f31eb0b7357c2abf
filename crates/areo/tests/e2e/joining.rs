//! Servers that join a cluster: their names, and the way to replace a dead one that `docs/tour.md` shows.

#![allow(clippy::unwrap_used, reason = "a test")]

use crate::cluster::{Cluster, wait_until};
use std::process::Child;

/// Ends with the test.
struct JoinedServer(Child);

impl Drop for JoinedServer {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The command of the tour that begins with these words.
fn tour(begin: &str) -> String {
    let tour = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/tour.md");
    let tour = std::fs::read_to_string(tour).unwrap();
    let (_, from) = tour.split_once(&format!("`{begin}")).expect(begin);
    let (rest, _) = from.split_once('`').expect("code ends");
    format!("{begin}{rest}")
}

/// Starts a server that joins; the cluster's addresses are those that `text` has for the usual ports.
fn join(cluster: &Cluster, text: &str, directory: &str) -> JoinedServer {
    let mut command = text.to_owned();
    for above in [0, 5] {
        let (usual, here) = (7400 + above, cluster.port() + above);
        command = command.replace(&format!("127.0.0.1:{usual}"), &format!("127.0.0.1:{here}"));
    }
    let data = cluster.folder().join(directory);
    let command = command.replace("./new", data.to_str().unwrap());
    let words: Vec<&str> = command.split(' ').skip(1).collect();
    JoinedServer(cluster.spawn(&words))
}

#[test]
fn a_dead_server_is_replaced_as_the_tour_shows() {
    let mut cluster = Cluster::start(&[]);
    cluster.run_with(&["put", "key"], b"value").done();
    cluster.kill("s2");
    let _new = join(&cluster, &tour("areo server --data"), "new");
    wait_until(|| cluster.state("s6") == "serving");
    let replace = tour("areo server replace ");
    let words: Vec<&str> = replace.split(' ').skip(1).collect();
    cluster.run(&words).done();
    let entries = cluster.run(&["reconfig", "status", "default", "--json"]);
    let entries = entries.done().objects();
    let servers = entries[0]["servers"].as_array().unwrap().iter();
    let names: Vec<&str> = servers.map(|s| s["name"].as_str().unwrap()).collect();
    assert_eq!(names.len(), 5, "{names:?}");
    assert!(names.contains(&"s6") && !names.contains(&"s2"), "{names:?}");
    assert_eq!(cluster.run(&["get", "key"]).done().text(), "value");
}

#[test]
fn servers_that_join_at_once_have_names_of_their_own_and_keep_them() {
    let cluster = Cluster::start(&["--servers", "3"]);
    let port = cluster.port();
    let join_at = |above: u16| {
        let text = format!(
            "areo server --data ./new --listen 127.0.0.1:{} --admin 127.0.0.1:{} --join 127.0.0.1:7400",
            port + above,
            port + above + 40
        );
        join(&cluster, &text, &format!("new-{above}"))
    };
    let names = |above: [u16; 2]| {
        let lines = cluster
            .run(&["status", "--json", "--timeout", "2s"])
            .objects();
        let serving = |port: u16| {
            let address = format!("127.0.0.1:{port}");
            let line = lines.iter().find(|line| line["address"] == *address)?;
            (line["state"] == "serving").then(|| line["server"].as_str().unwrap().to_owned())
        };
        above.map(|above| serving(port + above))
    };
    let both = [join_at(10), join_at(11)];
    wait_until(|| names([10, 11]).iter().all(Option::is_some));
    let given = names([10, 11]).map(Option::unwrap);
    let mut sorted = given.clone();
    sorted.sort();
    assert_eq!(sorted, ["s4", "s5"]);
    drop(both);
    wait_until(|| names([10, 11]).iter().all(Option::is_none));
    let _again = [join_at(10), join_at(11)];
    wait_until(|| names([10, 11]).iter().all(Option::is_some));
    assert_eq!(
        names([10, 11]).map(Option::unwrap),
        given,
        "after a restart"
    );

    let refused = |name: &str, wants: &[&str]| {
        let data = cluster.folder().join("refused");
        let (listen, seed) = (
            format!("127.0.0.1:{}", port + 12),
            format!("127.0.0.1:{port}"),
        );
        let data = data.to_str().unwrap();
        let admin = format!("127.0.0.1:{}", port + 52);
        let arguments = [
            "server", "--data", data, "--listen", &listen, "--admin", &admin, "--join", &seed,
        ];
        cluster
            .run(&[&arguments[..], &["--name", name]].concat())
            .refused(2, wants);
    };
    refused("s2", &["the name 's2' belongs to server", "--name"]);
    refused("s5", &["the name 's5' belongs to server"]);
    refused("a,b", &["'a,b' cannot name a server", "no comma"]);
    // After another choice the directory that was refused is that of a server.
    let _named = join(
        &cluster,
        &format!(
            "areo server --data ./new --listen 127.0.0.1:{} --admin 127.0.0.1:{} --join 127.0.0.1:7400 --name rack-7",
            port + 12,
            port + 52
        ),
        "refused",
    );
    wait_until(|| cluster.state("rack-7") == "serving");
}

/// A machine whose server died and came back with an empty directory leaves the record of another server at its address.
#[test]
fn records_that_share_an_address_keep_no_cluster_from_starting() {
    let mut cluster = Cluster::start(&["--servers", "3"]);
    for (directory, name) in [("x1", "s4"), ("x2", "s5")] {
        cluster.begin_to_join(directory, 4, &[]);
        wait_until(|| cluster.state(name) == "serving");
        cluster.kill(directory);
    }
    cluster.stop();
    let cluster = cluster.start_again(&[]);
    assert_eq!(cluster.state("s1"), "serving");
    let create = ["domain", "create", "photos"];
    cluster.run(&create).done();
    cluster.run(&create).refused(4, &["exists already"]);
    let status = ["reconfig", "status", "photos", "--json"];
    let members = cluster.run(&status).done().objects()[0]["servers"].clone();
    let names: Vec<&str> = members
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["s1", "s2", "s3"]);
}

/// Such a server made its token as a command does, and its drain was cut short as a command's end is.
#[test]
fn a_server_that_made_itself_a_token_stops_in_order() {
    let cluster = Cluster::start(&["--servers", "3", "--durability", "memory"]);
    let port = cluster.port();
    let text = format!(
        "areo server --data ./new --listen 127.0.0.1:{} --admin 127.0.0.1:{} --join 127.0.0.1:7400",
        port + 10,
        port + 50
    );
    let mut server = join(&cluster, &text, "new");
    let address = format!("127.0.0.1:{}", port + 10);
    let serves = || {
        let lines = cluster.run(&["status", "--json", "--timeout", "2s"]);
        let is_it = |line: &serde_json::Value| line["address"] == *address;
        let mut lines = lines.objects().into_iter().filter(is_it);
        lines.any(|line| line["state"] == "serving")
    };
    wait_until(serves);
    let pid = rustix::process::Pid::from_child(&server.0);
    let comm = |thread: std::fs::DirEntry| {
        std::fs::read_to_string(thread.path().join("comm")).unwrap_or_default()
    };
    let threads = std::fs::read_dir(format!("/proc/{}/task", server.0.id())).unwrap();
    let names: Vec<String> = threads.map(|thread| comm(thread.unwrap())).collect();
    let is_watching = names.iter().any(|name| name.trim() == "signals");
    assert!(!is_watching, "{names:?}");
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    let ended = server.0.wait().unwrap();
    assert_eq!(ended.code(), Some(0), "{ended:?}");
}
