//! Servers as a supervisor starts them: by settings that stay, with a question about their health; and the files of `deploy/`, read by the tools
//! that they are for.

#![allow(clippy::unwrap_used, reason = "a test")]

use crate::cluster::{CommandOutput, wait_until};
use crate::command::{command, ended};
use crate::keyed::KeyedCluster;
use areo_client::Shape;
use areo_fuzzing::not_run;
use std::path::{Path, PathBuf};
use std::process::Command;

/// `areo server health` with these words, by the settings of a server that listens there.
fn health(cluster: &KeyedCluster, above: u16, words: &[&str]) -> CommandOutput {
    let mut asking = command();
    asking
        .env("AREO_SERVER_ADMIN", cluster.address(above + 40))
        .args(["server", "health"])
        .args(words);
    ended(&mut asking, b"")
}

fn by_settings(settings: &[(&str, &str)]) -> Command {
    let mut server = command();
    server.envs(settings.iter().copied());
    server
}

#[test]
fn settings_that_stay_begin_a_cluster_once_and_join_it_once() {
    let mut cluster = KeyedCluster::new();
    let init = [("AREO_SERVER_INIT", "true"), ("AREO_SERVER_NAME", "first")];
    cluster.serve_by(by_settings(&init), ("s1", 0), &[], None);
    wait_until(|| health(&cluster, 0, &[]).code == 0);
    let seed = cluster.address(0);
    let join = [("AREO_SERVER_JOIN", &*seed)];
    cluster.serve_by(by_settings(&join), ("s2", 1), &[], None);
    cluster.serve_by(by_settings(&join), ("s3", 2), &[], None);
    let run =
        |cluster: &KeyedCluster, words: &[&str]| cluster.run_as(Path::new(&seed), words, b"value");
    wait_until(|| cluster.serving_by(Path::new(&seed)) == 3);
    run(&cluster, &["domain", "create", "default"]).done();
    run(&cluster, &["put", "key"]).done();

    cluster.servers.clear();
    let stopped = health(&cluster, 0, &[]);
    assert_eq!(stopped.code, 5, "{}", stopped.stderr);
    assert!(
        stopped.stderr.contains("does not serve"),
        "{}",
        stopped.stderr
    );
    cluster.serve_by(by_settings(&init), ("s1", 0), &[], None);
    cluster.serve_by(by_settings(&join), ("s2", 1), &[], None);
    cluster.serve_by(by_settings(&join), ("s3", 2), &[], None);
    wait_until(|| cluster.serving_by(Path::new(&seed)) == 3);
    let status = run(&cluster, &["status", "--json"]);
    assert!(status.text().contains("\"first\""), "{}", status.text());
    assert_eq!(run(&cluster, &["get", "key"]).done().text(), "value");
    for of in ["live", "ready", "cluster"] {
        wait_until(|| health(&cluster, 1, &["--of", of]).code == 0);
    }
}

/// A list of servers to join is the same for all of them, so that it names the one that joins, too, as the others call it.
#[test]
fn a_server_that_is_first_in_the_list_of_those_to_join_asks_the_next_one() {
    let mut cluster = KeyedCluster::start();
    let listed = format!("localhost:{},{}", cluster.port() + 1, cluster.address(0));
    let token = cluster.token();
    cluster.serve("s2", 1, &["--join", &listed], Some(&token));
    wait_until(|| cluster.serving() == 2);
}

#[test]
fn a_server_cannot_both_begin_a_cluster_and_join_one() {
    let folder = tempfile::tempdir().unwrap();
    let both = [
        ("AREO_SERVER_INIT", "true"),
        ("AREO_SERVER_JOIN", "127.0.0.1:1"),
    ];
    let data = folder.path().join("data");
    let mut server = by_settings(&both);
    server.args(["server", "--data", data.to_str().unwrap()]);
    let refused = ended(&mut server, b"");
    refused.refused(2, &["server.init", "server.join"]);
    let mut server = by_settings(&[("AREO_SERVER_JOIN", "nowhere")]);
    server.args(["server", "--data", data.to_str().unwrap()]);
    ended(&mut server, b"").refused(2, &["'nowhere' is no address to join"]);
}

fn deploy(path: &str) -> PathBuf {
    let deploy = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy");
    Path::new(deploy).join(path)
}

/// The output of the tool; `None` where it is not installed.
fn by_tool(tool: &str, arguments: &[&str]) -> Option<(bool, String)> {
    let Ok(output) = Command::new(tool).args(arguments).output() else {
        not_run(&format!("{tool} is not installed"));
        return None;
    };
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text).into_owned();
    Some((output.status.success(), text))
}

#[test]
fn the_units_are_right_and_expose_little() {
    // The units name the installed program and its manual pages, which are not here.
    let folder = tempfile::tempdir().unwrap();
    for name in ["areo-server.service", "areo-s3.service"] {
        let unit = std::fs::read_to_string(deploy("systemd").join(name)).unwrap();
        let unit = unit.replace("/usr/bin/areo ", "/bin/true ");
        let lines = unit
            .lines()
            .filter(|line| !line.starts_with("Documentation="));
        let unit: Vec<&str> = lines.collect();
        let path = folder.path().join(name);
        std::fs::write(&path, unit.join("\n")).unwrap();
        let path = path.to_str().unwrap();
        let Some((is_right, said)) = by_tool("systemd-analyze", &["verify", path]) else {
            return;
        };
        assert!(is_right && said.trim().is_empty(), "{name}: {said}");
        let most = ["security", "--offline=yes", "--threshold=20", path];
        let (is_below, said) = by_tool("systemd-analyze", &most).unwrap();
        assert!(is_below, "{name}: exposed more than 2.0 of 10: {said}");
    }
}

#[test]
fn as_many_pods_may_be_away_as_the_usual_code_tolerates() {
    let text = std::fs::read_to_string(deploy("kubernetes/cluster/servers.yaml")).unwrap();
    let number = |key: &str| -> usize {
        let (_, after) = text.split_once(key).expect(key);
        after.lines().next().unwrap().parse().unwrap()
    };
    let (servers, away) = (number(" replicas: "), number(" maxUnavailable: "));
    let k = usize::from(Shape::default_k(servers));
    assert_eq!(away, (servers - k) / 2);
}

#[test]
fn each_command_has_a_manual_page() {
    let folder = tempfile::tempdir().unwrap();
    let mut writing = command();
    writing.arg("manual").arg(folder.path());
    ended(&mut writing, b"").done();
    let pages = [
        "areo",
        "areo-up",
        "areo-server",
        "areo-server-replace",
        "areo-s3",
        "areo-token-create",
    ];
    for page in pages {
        let text = std::fs::read_to_string(folder.path().join(format!("{page}.1"))).unwrap();
        assert!(text.contains(".SH SYNOPSIS"), "{page}: {text}");
    }
    let mut writing = command();
    writing.args(["manual", "/nowhere"]);
    ended(&mut writing, b"").refused(1, &["cannot write the manual pages to /nowhere"]);
}
