//! Certificates of an operator's own PKI: the example of `docs/security.md`, files that change under load, and files that are wrong.
//!
//! `openssl` makes them as the document says. Where it is missing, the CA of another cluster takes its place.

#![allow(clippy::unwrap_used, reason = "a test")]

use crate::cluster::wait_until;
use crate::command::{command, ended};
use crate::file_history::judged;
use crate::keyed::{KeyedCluster, key_in};
use crate::reconfig::traffic::Traffic;
use areo_check::Verdict;
use areo_client::{Access, ConnectOptions, ServerId};
use areo_fuzzing::not_run;
use areo_trust::authority::{Authority, ServerKey};
use areo_trust::fuzzing::pem;
use areo_trust::key::AccessKey;
use std::cell::RefCell;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, UNIX_EPOCH};

/// The lines of the example that call `openssl`, and the one that writes its extensions: the CA, then a certificate.
fn example() -> Vec<String> {
    let document = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/security.md");
    let document = fs::read_to_string(document).unwrap();
    let (_, section) = document
        .split_once("## Certificates of your own PKI")
        .unwrap();
    let (_, block) = section.split_once("```console\n").unwrap();
    let (block, _) = block.split_once("```").unwrap();
    let lines = block.lines().filter(|line| !line.starts_with("areo "));
    let lines: Vec<String> = lines.map(str::to_owned).collect();
    assert_eq!(lines.len(), 4, "{block}");
    lines
}

/// A PKI in a folder of its own.
struct Pki {
    folder: PathBuf,
    cluster: String,
    /// Takes the place of `openssl`.
    authority: Option<Authority>,
}

impl Pki {
    fn new(folder: PathBuf, cluster: &str) -> Pki {
        fs::create_dir(&folder).unwrap();
        let openssl = Command::new("openssl")
            .arg("version")
            .stdout(Stdio::null())
            .status();
        let mut pki = Pki {
            folder,
            cluster: cluster.to_owned(),
            authority: None,
        };
        if openssl.is_ok_and(|status| status.success()) {
            pki.run(&example()[0], "");
        } else {
            not_run(
                "there is no openssl on the PATH: another CA makes certificates, and the lines of docs/security.md are not run",
            );
            let cluster = u128::from_str_radix(cluster, 16).unwrap();
            let authority = Authority::create(cluster, now_seconds()).unwrap();
            let root = pem("CERTIFICATE", authority.root().certificate());
            fs::write(pki.path("ca.pem"), root).unwrap();
            pki.authority = Some(authority);
        }
        pki
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    fn run(&self, line: &str, id: &str) {
        let line = line.replace("CLUSTER", &self.cluster);
        let line = line.replace("/ID", &format!("/{id}"));
        let mut shell = Command::new("sh");
        shell.args(["-c", &line]).current_dir(&self.folder);
        let output = shell.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{line}: {said}");
    }

    /// Makes `s2.pem` and `s2.key` for a server, which lasts for so many days; of the other kind of key if `openssl` makes it.
    fn issue(&self, id: &str, days: u64, is_rsa: bool) {
        let Some(authority) = &self.authority else {
            for line in &example()[1..] {
                let line = line.replace("-days 90", &format!("-days {days}"));
                let line = match is_rsa {
                    true => line.replace("ec -pkeyopt ec_paramgen_curve:P-256", "rsa:2048"),
                    false => line,
                };
                self.run(&line, id);
            }
            return;
        };
        let server = ServerId(u128::from_str_radix(id, 16).unwrap());
        let key = ServerKey::create().unwrap();
        // Its certificates last for 90 days, so that the end is moved by the beginning.
        let begins = now_seconds() - (90 - days) * 24 * 60 * 60;
        let certificate = authority.issue(server, &key.public(), begins).unwrap();
        fs::write(self.path("s2.pem"), pem("CERTIFICATE", &certificate)).unwrap();
        let key = pem("PRIVATE KEY", key.private().expose());
        fs::write(self.path("s2.key"), key).unwrap();
        private(&self.path("s2.key"));
    }
}

fn private(path: &Path) {
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
}

fn now_seconds() -> u64 {
    UNIX_EPOCH.elapsed().unwrap().as_secs()
}

/// The ids of the cluster and of its servers, by name.
fn ids(cluster: &KeyedCluster, name: &str) -> (String, String) {
    let status = cluster.run(&["status", "--json"]).done().objects();
    let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
    let server = status.iter().find(|row| row["server"] == name).unwrap();
    (text(&status[0]["cluster"]), text(&server["id"]))
}

/// The number of whole days until the certificate of a server ends.
fn days_left(admin: &str) -> Option<u64> {
    let mut stream = TcpStream::connect(admin).ok()?;
    write!(stream, "GET /metrics HTTP/1.0\r\n\r\n").ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let name = "areo_server_certificate_expiry_timestamp_seconds ";
    let found = answer.lines().find_map(|line| line.strip_prefix(name))?;
    let until = found.parse::<u64>().ok()?;
    Some((until + 60 - now_seconds()) / (24 * 60 * 60))
}

/// Rotates the CA of a cluster. A rotation waits for no server with files, as the last one here: until that has read of the new CA, it
/// shows no machine a certificate of it.
fn rotate(cluster: &KeyedCluster, own: &str) {
    let last = cluster.servers.len() - 1;
    let issued = || cluster.log(last).matches("was issued again").count();
    let before = issued();
    cluster.run(&["ca", "rotate"]).done();
    cluster.run(&["ca", "drop", own]).done();
    wait_until(|| issued() > before);
}

#[test]
fn a_certificate_of_an_operator_is_renewed_and_joined_by_under_load() {
    let mut cluster = KeyedCluster::start();
    let seed = cluster.address(0);
    for (name, above) in [("s2", 1), ("s3", 2)] {
        let token = cluster.token();
        let join = ["--join", &seed, "--name", name];
        cluster.serve(name, above, &join, Some(&token));
    }
    wait_until(|| cluster.serving() == 3);
    cluster.run(&["domain", "create", "default"]).done();
    let (cluster_id, id) = ids(&cluster, "s2");
    let pki = Pki::new(cluster.data("pki"), &cluster_id);
    // Those of the cluster's CA last for 90.
    pki.issue(&id, 80, false);
    let options = ConnectOptions {
        access: Some(Access::Key(
            AccessKey::parse(&key_in(&cluster.file())).unwrap(),
        )),
        ..ConnectOptions::from(&seed[..])
    };
    let traffic = Traffic::start(&options, "default", Duration::from_millis(5));

    let root = pki.path("ca.pem");
    cluster.run(&["ca", "trust", root.to_str().unwrap()]).done();
    // `s2` is the last one: each restart takes its place at the end.
    let s2 = cluster.servers.remove(1);
    drop(s2);
    let [certificate, key] = ["s2.pem", "s2.key"].map(|name| cluster.data("live").join(name));
    fs::create_dir(cluster.data("live")).unwrap();
    for name in ["s2.pem", "s2.key"] {
        fs::copy(pki.path(name), cluster.data("live").join(name)).unwrap();
    }
    private(&key);
    let files = [
        "--cert",
        certificate.to_str().unwrap(),
        "--cert-key",
        key.to_str().unwrap(),
    ];
    cluster.serve("s2", 1, &files, None);
    let admin = cluster.address(41);
    wait_until(|| cluster.serving() == 3 && days_left(&admin) == Some(80));
    let rows = cluster.run(&["ca", "ls", "--json"]).done().objects();
    let of = |owner: &str| rows.iter().find(|row| row["owner"] == owner).unwrap();
    let [own, operators] = ["cluster", "operator"].map(|owner| of(owner)["ca"].as_str().unwrap());
    let refused = cluster.run(&["ca", "drop", operators]);
    refused.refused(4, &["s2", "--cert"]);
    assert!(!refused.stderr.contains("s1"), "{}", refused.stderr);

    // Renewed by renames, of which the first one alone does not fit.
    pki.issue(&id, 10, true);
    fs::rename(pki.path("s2.pem"), &certificate).unwrap();
    wait_until(|| cluster.log(2).contains("not that of the certificate"));
    assert_eq!(days_left(&admin), Some(80));
    fs::rename(pki.path("s2.key"), &key).unwrap();
    wait_until(|| days_left(&admin) == Some(10));
    let log = cluster.log(2);
    assert_eq!(
        log.matches("not that of the certificate").count(),
        1,
        "{log}"
    );

    // The CA of the cluster is another matter. A machine joins by the server with files alone, which then is all that it knows.
    rotate(&cluster, own);
    let (token, seed) = (cluster.token(), cluster.address(1));
    let join = ["--join", &seed, "--name", "s4"];
    cluster.serve("s4", 3, &join, Some(&token));
    wait_until(|| cluster.serving() == 4);
    assert_eq!(days_left(&admin), Some(10));
    traffic.goes_on();
    let judged = judged(&traffic.stop());
    assert_eq!(judged.verdict, Verdict::Holds, "{judged}");

    // Without the files the server is one of the cluster's CA again, and the other CA may go.
    drop(cluster.servers.remove(2));
    cluster.serve("s2", 1, &[], None);
    wait_until(|| cluster.serving() == 4);
    cluster.run(&["ca", "drop", operators]).done();
}

#[test]
fn files_that_are_wrong_start_no_server() {
    let mut cluster = KeyedCluster::start();
    let (cluster_id, id) = ids(&cluster, "s1");
    let pki = Pki::new(cluster.data("pki"), &cluster_id);
    pki.issue(&id, 90, false);
    drop(cluster.servers.remove(0));
    let [certificate, key] = ["s2.pem", "s2.key"].map(|name| pki.path(name));
    let said = RefCell::new(String::new());
    let start = |data: &str, flags: &[&str]| {
        let mut server = command();
        let address = cluster.address(0);
        server.args(["server", "--listen", &address, "--data"]);
        server.arg(cluster.data(data)).args(flags);
        let ended = ended(&mut server, b"");
        said.borrow_mut().push_str(&ended.stderr);
        ended
    };
    let [certificate, key] = [&certificate, &key].map(|path| path.to_str().unwrap());
    let both = ["--cert", certificate, "--cert-key", key];
    start("s1", &both[..2]).refused(2, &["--cert-key FILE"]);
    start("s1", &both[2..]).refused(2, &["--cert FILE"]);
    let new = [&both[..], &["--init", "--tls"]].concat();
    start("new", &new).refused(2, &["no certificate can name it yet"]);
    assert!(!cluster.data("new").exists());
    let plain = cluster.data("plain");
    let (plain_at, mut init) = (cluster.address(9), command());
    init.args(["server", "--init", "--listen", &plain_at, "--data"]);
    let mut child = init.arg(&plain).stderr(Stdio::null()).spawn().unwrap();
    wait_until(|| plain.join("IDENTITY").exists());
    child.kill().unwrap();
    child.wait().unwrap();
    start("plain", &both).refused(2, &["has no keys"]);

    let refused = start("s1", &both);
    refused.refused(6, &["s2.pem", "areo ca trust"]);
    fs::set_permissions(key, fs::Permissions::from_mode(0o644)).unwrap();
    start("s1", &both).refused(2, &["s2.key", "chmod 600"]);
    private(Path::new(key));
    start("s1", &["--cert", key, "--cert-key", key]).refused(2, &["it has no certificate"]);
    start("s1", &["--cert", "missing", "--cert-key", key]).refused(2, &["cannot read missing"]);
    pki.issue(&"7".repeat(32), 90, false);
    let needed = format!("URI:areo://{cluster_id}/server/{id}");
    start("s1", &both).refused(6, &["s2.pem", &needed]);

    // Nothing of it was changed. It takes the files when the cluster trusts their CA.
    pki.issue(&id, 90, false);
    cluster.serve("s1", 0, &[], None);
    wait_until(|| cluster.serving() == 1);
    let root = pki.path("ca.pem");
    cluster.run(&["ca", "trust", root.to_str().unwrap()]).done();
    drop(cluster.servers.remove(0));
    cluster.serve("s1", 0, &both, None);
    wait_until(|| cluster.serving() == 1);
    let written = cluster.written() + &said.borrow();
    assert!(written.contains("chmod 600"), "{written}");
    let private = fs::read_to_string(key).unwrap();
    assert!(private.lines().count() > 3, "a key of several lines");
    for line in private.lines() {
        assert!(!written.contains(line), "in a log: {written}");
    }
}
