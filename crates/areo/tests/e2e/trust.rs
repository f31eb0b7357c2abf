//! A cluster with keys: tokens, keys, the rotation of its CA, and the record of all that.

#![allow(clippy::unwrap_used, reason = "a test")]

use crate::cluster::free_ports;
use crate::command::{self, CommandOutput, spawn, wait_until};
use std::fs;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

/// Servers of a cluster with keys, in a folder of their own.
struct TrustedCluster {
    folder: tempfile::TempDir,
    port: u16,
    servers: Vec<Child>,
}

impl Drop for TrustedCluster {
    fn drop(&mut self) {
        for server in &mut self.servers {
            // It may have ended by itself.
            let _ = server.kill();
            let _ = server.wait();
        }
    }
}

impl TrustedCluster {
    fn found() -> TrustedCluster {
        let mut cluster = TrustedCluster {
            folder: tempfile::tempdir().unwrap(),
            port: free_ports(),
            servers: Vec::new(),
        };
        cluster.serve(1, &["--init", "--tls"]);
        wait_until(|| cluster.path("s1/cluster.toml").exists());
        wait_until(|| cluster.admin(&["token", "ls"]).code == 0);
        cluster
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn address(&self, number: u16) -> String {
        format!("127.0.0.1:{}", self.port + number)
    }

    fn serve(&mut self, number: u16, options: &[&str]) {
        let data = self.path(&format!("s{number}"));
        let (listen, name) = (self.address(number), format!("s{number}"));
        let mut words = vec!["server", "--data", data.to_str().unwrap()];
        words.extend(["--listen", &listen, "--name", &name]);
        words.extend(options);
        let log = fs::File::create(self.path(&format!("s{number}.log"))).unwrap();
        let mut command = command::command();
        command.args(words).stdin(Stdio::null()).stderr(log);
        self.servers.push(command.spawn().unwrap());
    }

    fn run(&self, file: &str, words: &[&str]) -> CommandOutput {
        let file = self.path(file);
        let words = [&["--cluster", file.to_str().unwrap()], words].concat();
        command::run(&words, b"")
    }

    fn admin(&self, words: &[&str]) -> CommandOutput {
        self.run("s1/cluster.toml", words)
    }

    fn token(&self) -> String {
        let made = self.admin(&["token", "create", "--ttl", "10min"]).done();
        assert!(made.stderr.contains("not shown again"), "{}", made.stderr);
        made.text().to_owned()
    }

    /// Begins to join with a token that is in a file.
    fn join(&mut self, number: u16, token: &str) {
        let file = self.path(&format!("token-{number}"));
        fs::write(&file, token).unwrap();
        let first = self.address(1);
        self.serve(
            number,
            &["--join", &first, "--token", file.to_str().unwrap()],
        );
    }

    fn has_server(&self, name: &str) -> bool {
        let status = self.admin(&["status", "--json"]);
        let servers = || status.objects().into_iter();
        status.code == 0 && servers().any(|row| row["server"] == name && row["state"] == "serving")
    }

    fn key(&self, name: &str, grant: &str) {
        let file = self.path(&format!("{name}.toml"));
        let file = file.to_str().unwrap();
        self.admin(&["key", "create", name, "--grant", grant, "--file", file])
            .done();
    }

    /// A key with these grants, in a file of its name.
    fn key_of(&self, name: &str, grants: &[&str]) {
        let path = self.path(&format!("{name}.toml"));
        let grants = grants.iter().flat_map(|grant| ["--grant", *grant]);
        let create = ["key", "create", name, "--file", path.to_str().unwrap()];
        let words: Vec<&str> = create.into_iter().chain(grants).collect();
        self.admin(&words).done();
    }

    fn digests(&self) -> Vec<String> {
        let rows = self.admin(&["ca", "ls", "--json"]).done().objects();
        rows.iter()
            .map(|row| row["ca"].as_str().unwrap().to_owned())
            .collect()
    }

    /// The logs of all servers.
    fn logs(&self) -> String {
        let of = |number: usize| {
            fs::read_to_string(self.path(&format!("s{number}.log"))).unwrap_or_default()
        };
        (1..=self.servers.len()).map(of).collect()
    }
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn a_token_lets_one_server_in_and_no_secret_is_said() {
    let mut cluster = TrustedCluster::found();
    let token = cluster.token();
    cluster.join(2, &token);
    wait_until(|| cluster.has_server("s2"));
    let state = |cluster: &TrustedCluster| {
        let rows = cluster.admin(&["token", "ls", "--json"]).done().objects();
        let words = rows
            .iter()
            .map(|row| row["state"].as_str().unwrap().to_owned());
        words.collect::<Vec<String>>()
    };
    assert_eq!(state(&cluster), ["used"]);

    // The same token on another machine.
    cluster.join(3, &token);
    wait_until(|| cluster.servers[2].try_wait().unwrap().is_some());
    let ended = cluster.servers[2].wait().unwrap();
    let said = fs::read_to_string(cluster.path("s3.log")).unwrap();
    assert!(said.contains("was used by server"), "{said}");
    assert!([2, 6].contains(&ended.code().unwrap()), "{ended:?}");

    let other = cluster.token();
    let id = other.split('.').nth(2).unwrap();
    cluster.admin(&["token", "revoke", id]).done();
    assert_eq!(
        state(&cluster).iter().filter(|s| *s == "revoked").count(),
        1
    );
    cluster
        .admin(&["token", "revoke", &"f".repeat(16)])
        .refused(3, &["areo token ls"]);
    cluster
        .admin(&["token", "revoke", &other])
        .refused(2, &["areo token ls"]);

    let audit = cluster.admin(&["audit", "ls", "--json"]).done();
    let whats: Vec<String> = audit
        .objects()
        .iter()
        .map(|row| row["what"].as_str().unwrap().to_owned())
        .collect();
    let expected = [
        "founded",
        "token-created",
        "token-used",
        "token-created",
        "token-revoked",
    ];
    assert_eq!(whats, expected);
    let said = cluster.logs() + audit.text();
    for token in [token, other] {
        let secret = token.rsplit('.').next().unwrap();
        assert!(!said.contains(secret), "a secret is in a log");
    }
}

#[test]
fn a_key_does_what_its_grants_say_until_it_is_revoked() {
    let cluster = TrustedCluster::found();
    cluster.key("ops", "join");
    let file = cluster.path("ops.toml");
    assert_eq!(mode(&file), 0o600);
    cluster.run("ops.toml", &["token", "ls"]).done();
    for words in [&["key", "ls"][..], &["ca", "ls"], &["audit", "ls"]] {
        cluster.run("ops.toml", words).refused(6, &["'keys'"]);
    }
    let taken = cluster.admin(&["key", "create", "ops", "--grant", "status"]);
    taken.refused(4, &["the name 'ops' is taken"]);
    let again = cluster.admin(&[
        "key",
        "create",
        "x",
        "--grant",
        "status",
        "--file",
        file.to_str().unwrap(),
    ]);
    again.refused(2, &["exists", "areo key rotate"]);
    let nowhere = cluster.path("missing/x.toml");
    let nowhere = nowhere.to_str().unwrap();
    let unmade = cluster.admin(&["key", "create", "x", "--grant", "status", "--file", nowhere]);
    unmade.refused(2, &["does not exist"]);
    let wrong = cluster.admin(&["key", "create", "x", "--grant", "fly:logs"]);
    assert_eq!(wrong.code, 2, "{}", wrong.stderr);

    // Two secrets, then one.
    fs::copy(&file, cluster.path("old.toml")).unwrap();
    cluster
        .admin(&["key", "rotate", "ops", "--file", file.to_str().unwrap()])
        .done();
    for file in ["old.toml", "ops.toml"] {
        cluster.run(file, &["token", "ls"]).done();
    }
    cluster
        .admin(&["key", "rotate", "ops"])
        .refused(4, &["two secrets already"]);
    cluster.admin(&["key", "retire", "ops"]).done();
    cluster.run("ops.toml", &["token", "ls"]).done();
    cluster
        .run("old.toml", &["token", "ls"])
        .refused(6, &["was rotated"]);

    cluster
        .admin(&["key", "grant", "ops", "--grant", "status"])
        .done();
    cluster
        .run("ops.toml", &["token", "ls"])
        .refused(6, &["'join'"]);
    let shown = cluster.admin(&["key", "ls"]).done();
    assert!(shown.text().contains("status"), "{}", shown.text());

    cluster.admin(&["key", "revoke", "ops"]).done();
    cluster
        .run("ops.toml", &["token", "ls"])
        .refused(6, &["was revoked"]);
    cluster
        .admin(&["key", "revoke", "ops"])
        .refused(3, &["'ops'", "areo key ls"]);
    cluster
        .admin(&["key", "revoke", "admin"])
        .refused(4, &["the last one"]);

    let text = fs::read_to_string(&file).unwrap();
    let secret = text
        .split("areokey1.")
        .nth(1)
        .unwrap()
        .split(['.', '"'])
        .nth(1)
        .unwrap();
    assert!(!cluster.logs().contains(secret), "a secret is in a log");
}

/// Each command with a key that has everything but the needed grant, and with the needed one alone.
#[test]
fn a_command_without_its_grant_names_it() {
    let cluster = TrustedCluster::found();
    let create = ["domain", "create", "logs", "--servers", "s1", "--allow-f0"];
    cluster.admin(&create).done();
    let file = cluster.path("file");
    fs::write(&file, "x").unwrap();
    let put = ["--domain", "logs", "put", "k", file.to_str().unwrap()];
    cluster.admin(&put).done();
    let of_logs = ["read", "write", "list", "delete", "admin"];
    let of_cluster = ["status", "reconfig"];
    let get: &[&str] = &["--domain", "logs", "get", "k"];
    let remove = [&create[..2], &["new"], &create[3..]].concat();
    let commands: [(&str, &[&str], bool); 7] = [
        ("read", get, true),
        ("write", &put, true),
        ("list", &["--domain", "logs", "ls"], true),
        ("delete", &["--domain", "logs", "rm", "k"], true),
        ("status", &["status"], true),
        ("admin", &remove, false),
        ("admin", &["domain", "rm", "logs", "--yes"], false),
    ];
    for (verb, words, is_enough) in commands {
        let is_other = |it: &&&str| **it != verb;
        let others: Vec<&str> = of_logs.iter().filter(is_other).copied().collect();
        let others = format!("{}:*", others.join(","));
        // A holder of `reconfig` may write the whole directory.
        let may_create = |it: &&&str| verb != "admin" || **it != "reconfig";
        let cluster_verbs = of_cluster.iter().filter(is_other).filter(may_create);
        let cluster_verbs: Vec<&str> = cluster_verbs.copied().collect();
        let rest = cluster_verbs.join(",");
        let name = format!("{verb}-{}", words.len());
        let without = format!("no-{name}");
        cluster.key_of(&without, &[&others, &rest]);
        let refused = cluster.run(&format!("{without}.toml"), words);
        refused.refused(6, &[&format!("lacks the grant '{verb}")]);
        if is_enough {
            let only = format!("only-{name}");
            let grant = match of_logs.contains(&verb) {
                true => format!("{verb}:logs"),
                false => verb.to_owned(),
            };
            cluster.key_of(&only, &[&grant]);
            cluster.run(&format!("{only}.toml"), words).done();
        }
    }
}

#[test]
fn the_ca_is_rotated_and_the_old_one_goes_when_no_certificate_stands_on_it() {
    let mut cluster = TrustedCluster::found();
    let token = cluster.token();
    cluster.join(2, &token);
    wait_until(|| cluster.has_server("s2"));
    cluster.key("ops", "join");
    let old = cluster.digests();
    assert_eq!(old.len(), 1);
    cluster
        .admin(&["ca", "drop", &old[0]])
        .refused(4, &["s1", "s2", "areo ca rotate"]);

    let rotated = cluster.admin(&["ca", "rotate"]).done();
    assert!(
        rotated.stderr.contains(&format!("areo ca drop {}", old[0])),
        "{}",
        rotated.stderr
    );
    let both = cluster.digests();
    assert_eq!(both[1..], old[..], "the new one issues");
    // Clients know the servers by their key: files with the old digest are as good.
    cluster.run("ops.toml", &["token", "ls"]).done();

    cluster.admin(&["ca", "drop", &old[0]]).done();
    assert_eq!(cluster.digests(), both[..1]);
    cluster.run("ops.toml", &["token", "ls"]).done();
    cluster
        .admin(&["ca", "drop", &old[0]])
        .refused(3, &["does not trust the CA"]);
    // Servers still reach each other.
    wait_until(|| cluster.has_server("s2"));
}

#[test]
fn a_cluster_without_keys_says_so() {
    let cluster = crate::cluster::Cluster::start(&["--servers", "1", "--allow-f0"]);
    for words in [
        &["key", "ls"][..],
        &["token", "create"],
        &["ca", "ls"],
        &["audit", "ls"],
    ] {
        cluster
            .run(words)
            .refused(2, &["its connections are plain"]);
    }
    let mut said = String::new();
    let mut child = spawn(&["key", "create", "x"]);
    child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut said)
        .unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(2));
    assert!(said.contains("--grant"), "{said}");
}
