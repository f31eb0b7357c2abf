//! Clusters with keys: who gets in, and where secrets are.

#![allow(clippy::unwrap_used, reason = "a test")]

use crate::cluster::{CommandOutput, wait_until};
use crate::command::{command, ended};
use crate::keyed::{KeyedCluster, key_in, secret_in};
use serde_json::Value;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};

/// A copy of a cluster file in which this was replaced.
fn with(file: &Path, old: &str, new: &str) -> PathBuf {
    let text = std::fs::read_to_string(file).unwrap();
    assert!(text.contains(old), "{old}");
    let other = file.with_file_name(format!("with-{}.toml", &new[new.len() - 4..]));
    std::fs::write(&other, text.replacen(old, new, 1)).unwrap();
    other
}

#[test]
fn strangers_and_wrong_keys_get_nothing() {
    let (cluster, foreign) = (KeyedCluster::start(), KeyedCluster::start());
    let plain = [
        "--cluster",
        &cluster.address(0),
        "status",
        "--timeout",
        "2s",
    ];
    ended(command().args(plain), b"").refused(6, &["not authorised", "AREO_KEY"]);
    // Another cluster's key, at this cluster and at a server that knows it.
    let status = ["status", "--timeout", "2s"];
    let (secret, other) = (secret_in(&cluster.file()), secret_in(&foreign.file()));
    let other_secret = with(&cluster.file(), &secret, &other);
    let refused = cluster.run_as(&other_secret, &status, b"");
    refused.refused(6, &["not authorised", "does not know the key"]);
    let elsewhere = with(&cluster.file(), &cluster.address(0), &foreign.address(0));
    let refused = cluster.run_as(&elsewhere, &status, b"");
    refused.refused(6, &["not authorised", "does not know the key"]);
    // The environment does as well as a file.
    let mut by_environment = command();
    by_environment
        .args(plain)
        .env("AREO_KEY", key_in(&cluster.file()));
    ended(&mut by_environment, b"").done();
    by_environment.env("AREO_KEY", &key_in(&cluster.file())[1..]);
    ended(&mut by_environment, b"").refused(2, &["AREO_KEY", "areokey1."]);
}

#[test]
fn a_token_lets_one_server_in() {
    let mut cluster = KeyedCluster::start();
    let (first, second) = (cluster.token(), cluster.token());
    let seed = cluster.address(0);
    cluster.serve("s2", 1, &["--join", &seed], Some(&first));
    cluster.serve("s3", 2, &["--join", &seed], Some(&second));
    wait_until(|| cluster.serving() == 3);
    let join = |data: &str, token: &str| {
        let mut server = command();
        server
            .args([
                "server",
                "--join",
                &seed,
                "--listen",
                &cluster.address(5),
                "--data",
            ])
            .arg(cluster.data(data))
            .env("AREO_TOKEN", token);
        ended(&mut server, b"")
    };
    let says = |ended: &CommandOutput, code: i32, words: &[&str]| {
        assert_eq!(ended.code, code, "{}", ended.stderr);
        let last = ended.stderr.lines().last().unwrap_or_default();
        for word in words {
            assert!(last.contains(word), "{}", ended.stderr);
        }
    };
    says(
        &join("s4", &first),
        6,
        &["was used by server", "areo token create"],
    );
    let foreign = KeyedCluster::start();
    let sentence = ["cannot join", "CA is not the one of the token"];
    says(&join("s5", &foreign.token()), 6, &sentence);
    let brief = cluster.run(&["token", "create", "--ttl", "1s"]).done();
    wait_until(|| {
        cluster
            .run(&["token", "ls"])
            .done()
            .text()
            .contains("expired")
    });
    let sentence = ["expired", "areo token create --ttl"];
    says(&join("s6", brief.text()), 6, &sentence);
    let revoked = cluster.token();
    let id = revoked.split('.').nth(2).unwrap();
    cluster.run(&["token", "revoke", id]).done();
    says(&join("s6", &revoked), 6, &["was revoked"]);
    for data in ["s4", "s5", "s6"] {
        assert!(!cluster.data(data).join("IDENTITY").exists(), "{data}");
    }
    // The server that made the token may be gone, and the token be given by file.
    let token = cluster.token();
    let file = cluster.data("token");
    std::fs::write(&file, &token).unwrap();
    // A root domain that moves just now would be lost with its first server.
    wait_until(|| {
        let shown = cluster.run(&["domain", "show", "@root"]);
        shown.code == 0 && shown.text().contains("1 finalized, abd [3,1]")
    });
    let gone = cluster.servers.remove(0);
    drop(gone);
    let (seed, file) = (cluster.address(1), file.to_str().unwrap().to_owned());
    cluster.serve("s7", 6, &["--join", &seed, "--token", &file], None);
    let at_second = with(&cluster.file(), &cluster.address(0), &cluster.address(1));
    wait_until(|| cluster.serving_by(&at_second) == 3);
    // A restart needs no token.
    let again = cluster.servers.remove(0);
    drop(again);
    cluster.serve("s2", 1, &[], None);
    wait_until(|| cluster.serving_by(&at_second) == 3);
}

/// The answer was lost, and with it the token: the next attempt had another id and another key.
#[test]
fn a_join_whose_answer_is_lost_is_repeated_with_its_token() {
    let mut cluster = KeyedCluster::start();
    let (token, seed) = (cluster.token(), cluster.address(0));
    // What is answered cannot be kept, as if it had never come.
    let data = cluster.data("s2");
    std::fs::create_dir_all(data.join("TRUST.new")).unwrap();
    std::fs::write(data.join("FORMAT"), "areo data directory\nformat 2\n").unwrap();
    let join = |data: &Path| {
        let mut server = command();
        let listen = cluster.address(1);
        server.args(["server", "--join", &seed, "--listen", &listen, "--data"]);
        ended(server.arg(data).env("AREO_TOKEN", &token), b"")
    };
    let lost = join(&data);
    assert!(lost.code != 0 && lost.stderr.contains("TRUST"), "{lost:?}");
    let listed = cluster.run(&["token", "ls"]).done();
    assert!(listed.text().contains("used"), "{listed:?}");
    let other = join(&cluster.data("s3"));
    other.refused(6, &["was used by server"]);
    std::fs::remove_dir(data.join("TRUST.new")).unwrap();
    assert!(data.join("JOIN").exists());
    cluster.serve("s2", 1, &["--join", &seed], Some(&token));
    wait_until(|| cluster.serving() == 2);
    assert!(!data.join("JOIN").exists(), "its key is in TRUST");
}

/// TLS to a plain port, and plain bytes to one with TLS, of clients and of machines that join.
#[test]
fn a_cluster_says_whether_it_has_keys() {
    let mut cluster = KeyedCluster::start();
    let token = cluster.token();
    let plain = cluster.address(9);
    cluster.serve("plain", 9, &["--init"], None);
    wait_until(|| cluster.log(1).contains("serving"));
    let at_plain = with(&cluster.file(), &cluster.address(0), &plain);
    let asked = cluster.run_as(&at_plain, &["status", "--timeout", "2s"], b"");
    asked.refused(
        6,
        &["not authorised", "has no keys, so leave key and token away"],
    );
    let join = |seed: &str, token: Option<&str>| {
        let mut server = command();
        let listen = cluster.address(5);
        server.args(["server", "--join", seed, "--listen", &listen, "--data"]);
        server.arg(cluster.data("new"));
        server.envs(token.map(|token| ("AREO_TOKEN", token)));
        ended(&mut server, b"")
    };
    join(&plain, Some(&token)).refused(6, &["cannot join", "has no keys"]);
    let without = join(&cluster.address(0), None);
    without.refused(6, &["cannot join", "areo token create", "--token FILE"]);
    assert!(!cluster.data("new").join("IDENTITY").exists());
}

/// A service may have `--init` in its unit: what is left of a server is not written over.
#[test]
fn of_what_is_left_of_a_server_no_other_one_is_made() {
    let mut cluster = KeyedCluster::start();
    drop(cluster.servers.remove(0));
    let (identity, aside) = (cluster.data("s1/IDENTITY"), cluster.data("identity"));
    std::fs::rename(&identity, &aside).unwrap();
    let kept = std::fs::read(cluster.file()).unwrap();
    let mut anew = command();
    anew.args(["server", "--init", "--tls", "--listen", &cluster.address(0)]);
    let refused = ended(anew.arg("--data").arg(cluster.data("s1")), b"");
    refused.refused(7, &["IDENTITY is missing"]);
    assert_eq!(std::fs::read(cluster.file()).unwrap(), kept);
    std::fs::rename(&aside, &identity).unwrap();
    cluster.serve("s1", 0, &["--init", "--tls"], None);
    wait_until(|| cluster.serving() == 1);
}

/// The code of an answer of an admin port.
fn admin(address: &str, path: &str, header: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.0\r\n{header}\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer.split(' ').nth(1).unwrap().to_owned()
}

#[test]
fn the_admin_port_takes_a_key_as_a_bearer_token() {
    let cluster = KeyedCluster::start();
    let port = cluster.address(40);
    let scraper = cluster.key("scraper", &["status"]);
    let shown = format!("Authorization: Bearer {}\r\n", key_in(&scraper));
    wait_until(|| admin(&port, "/metrics", &shown) == "200");
    assert_eq!(admin(&port, "/traces/last/1", &shown), "403");
    assert_eq!(admin(&port, "/health/live", ""), "200");
    // The server's own user needs none.
    assert_eq!(admin(&port, "/metrics", ""), "200");
    let wrong = shown.replace(&secret_in(&scraper), &"5".repeat(64));
    assert_eq!(admin(&port, "/metrics", &wrong), "403");
    cluster.run(&["key", "revoke", "scraper"]).done();
    wait_until(|| admin(&port, "/metrics", &shown) == "403");
}

/// Secrets are in the files that are theirs, and nowhere else.
#[test]
fn no_secret_is_written_anywhere_else() {
    let mut cluster = KeyedCluster::start();
    let token = cluster.token();
    let seed = cluster.address(0);
    cluster.serve("s2", 1, &["--join", &seed, "-v"], Some(&token));
    wait_until(|| cluster.serving() == 2);
    let app = cluster.key("app", &["read,write:default"]);
    cluster.run_as(&app, &["get", "k"], b"");
    cluster.run(&["audit", "ls", "--json"]).done();
    let secrets = [
        token.rsplit('.').next().unwrap().to_owned(),
        secret_in(&cluster.file()),
        secret_in(&app),
    ];
    let written = cluster.written();
    let own = [cluster.file(), app];
    for secret in &secrets {
        assert!(!written.contains(secret.as_str()), "in a log or an error");
        let bytes = bytes_of(secret);
        for file in files_below(cluster.folder()) {
            if own.contains(&file) {
                continue;
            }
            let content = std::fs::read(&file).unwrap();
            // A segment of a log ends with zeros.
            let end = content
                .iter()
                .rposition(|byte| *byte != 0)
                .map_or(0, |at| at + 1);
            let content = &content[..end];
            let has = |part: &[u8]| content.windows(part.len()).any(|window| window == part);
            assert!(
                !has(secret.as_bytes()) && !has(&bytes),
                "{}",
                file.display()
            );
        }
    }
    let audit: Vec<Value> = cluster.run(&["audit", "ls", "--json"]).done().objects();
    assert!(
        audit.len() >= 4,
        "founded, a token made and used, a key made: {audit:?}"
    );
}

fn bytes_of(digits: &str) -> Vec<u8> {
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.as_bytes().chunks(2).map(byte).collect()
}

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => found.extend(files_below(&path)),
            false => found.push(path),
        }
    }
    found
}
