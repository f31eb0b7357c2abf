//! A cluster with keys, whose servers join one by one.

#![allow(clippy::unwrap_used, reason = "a test")]

use crate::cluster::{CommandOutput, free_ports, wait_until};
use crate::command::{command, ended, secrets};
use crate::leaks;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use tempfile::TempDir;

/// A server process; its cluster keeps its log.
pub(crate) struct Server {
    child: Child,
    log: Arc<Mutex<String>>,
    /// Reads the log to its end.
    reader: Option<JoinHandle<()>>,
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
        if let Some(reader) = self.reader.take() {
            // A panic of its thread was printed.
            let _ = reader.join();
        }
    }
}

/// A cluster with keys on loopback, and all that was printed in it. At its end it is searched for secrets.
pub(crate) struct KeyedCluster {
    folder: TempDir,
    port: u16,
    pub(crate) servers: Vec<Server>,
    /// Logs of all servers, also of those that have ended.
    logs: Vec<Arc<Mutex<String>>>,
    printed: Mutex<String>,
}

impl Drop for KeyedCluster {
    fn drop(&mut self) {
        self.servers.clear();
        if !thread::panicking() {
            leaks::learn_below(self.folder());
            secrets::check_printed(self.written().as_bytes());
            leaks::check_below(self.folder());
        }
    }
}

impl KeyedCluster {
    /// A cluster of one server that serves.
    pub(crate) fn start() -> KeyedCluster {
        KeyedCluster::start_by(command())
    }

    /// A cluster of which the first server is this command's.
    pub(crate) fn start_by(first: Command) -> KeyedCluster {
        let mut cluster = KeyedCluster::new();
        let init = ["--init", "--tls", "--name", "s1"];
        cluster.serve_by(first, ("s1", 0), &init, None);
        wait_until(|| cluster.file().exists() && cluster.serving() == 1);
        let keys = leaks::learn_below(cluster.folder());
        assert_eq!(keys, 2, "that of the server and that of the CA");
        cluster
    }

    /// A server that serves, of a cluster that has no keys.
    pub(crate) fn start_plain() -> KeyedCluster {
        let mut cluster = KeyedCluster::new();
        cluster.serve("s1", 0, &["--init"], None);
        let address = cluster.address(0);
        wait_until(|| cluster.serving_by(Path::new(&address)) == 1);
        cluster
    }

    /// A cluster without a server.
    pub(crate) fn new() -> KeyedCluster {
        KeyedCluster {
            folder: tempfile::tempdir().unwrap(),
            port: free_ports(),
            servers: Vec::new(),
            logs: Vec::new(),
            printed: Mutex::default(),
        }
    }

    /// The first one of its ports.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// The folder of the cluster.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// A file, or the folder of a server, in the folder of the cluster.
    pub(crate) fn data(&self, name: &str) -> PathBuf {
        self.folder().join(name)
    }

    /// The file of the administrator.
    pub(crate) fn file(&self) -> PathBuf {
        self.data("s1").join("cluster.toml")
    }

    pub(crate) fn address(&self, above: u16) -> String {
        format!("127.0.0.1:{}", self.port + above)
    }

    /// Starts a server; a token is in its environment.
    pub(crate) fn serve(&mut self, name: &str, above: u16, flags: &[&str], token: Option<&str>) {
        self.serve_by(command(), (name, above), flags, token);
    }

    /// Starts a server by a command of the test, such as one with another clock.
    pub(crate) fn serve_by(
        &mut self,
        mut server: Command,
        (name, above): (&str, u16),
        flags: &[&str],
        token: Option<&str>,
    ) {
        server
            .args(["server", "--listen", &self.address(above), "--data"])
            .arg(self.data(name))
            .args(["--admin", &self.address(above + 40)])
            .args(flags)
            .envs(token.map(|token| ("AREO_TOKEN", token)))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let mut child = server.spawn().unwrap();
        let mut stderr = child.stderr.take().unwrap();
        let log = Arc::<Mutex<String>>::default();
        let written = Arc::clone(&log);
        let reader = thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = stderr.read(&mut bytes) {
                let text = String::from_utf8_lossy(&bytes[..count]).into_owned();
                written.lock().unwrap().push_str(&text);
            }
        });
        self.logs.push(Arc::clone(&log));
        let reader = Some(reader);
        self.servers.push(Server { child, log, reader });
    }

    /// The log of a server that runs.
    pub(crate) fn log(&self, server: usize) -> String {
        self.servers[server].log.lock().unwrap().clone()
    }

    /// Runs a command with this cluster file.
    pub(crate) fn run_as(&self, file: &Path, arguments: &[&str], input: &[u8]) -> CommandOutput {
        self.run_by(command(), file, arguments, input)
    }

    /// Runs a command of the test with this cluster file.
    pub(crate) fn run_by(
        &self,
        mut program: Command,
        file: &Path,
        arguments: &[&str],
        input: &[u8],
    ) -> CommandOutput {
        program.arg("--cluster").arg(file).args(arguments);
        let output = ended(&mut program, input);
        let mut printed = self.printed.lock().unwrap();
        printed.push_str(&output.stderr);
        output
    }

    /// Runs a command as the administrator.
    pub(crate) fn run(&self, arguments: &[&str]) -> CommandOutput {
        self.run_as(&self.file(), arguments, b"")
    }

    pub(crate) fn serving(&self) -> u64 {
        self.serving_by(&self.file())
    }

    pub(crate) fn serving_by(&self, file: &Path) -> u64 {
        let status = self.run_as(file, &["status", "--json", "--timeout", "2s"], b"");
        match status.code {
            0 => status.objects()[0]["serving"].as_u64().unwrap_or(0),
            _ => 0,
        }
    }

    pub(crate) fn token(&self) -> String {
        let made = self.run(&["token", "create", "--ttl", "10min"]).done();
        assert!(made.stderr.contains("not shown again"), "{}", made.stderr);
        made.text().to_owned()
    }

    /// A new key with these grants, in a cluster file of its own.
    pub(crate) fn key(&self, name: &str, grants: &[&str]) -> PathBuf {
        let file = self.data(&format!("{name}.toml"));
        let create = ["key", "create", name, "--file", file.to_str().unwrap()];
        let grants = grants.iter().flat_map(|grant| ["--grant", *grant]);
        let words: Vec<&str> = create.into_iter().chain(grants).collect();
        self.run(&words).done();
        file
    }

    /// Everything that servers and commands have written so far, but for what was to be shown once.
    pub(crate) fn written(&self) -> String {
        let logs = self.logs.iter().map(|log| log.lock().unwrap().clone());
        logs.collect::<String>() + &self.printed.lock().unwrap()
    }
}

/// The key in a cluster file.
pub(crate) fn key_in(file: &Path) -> String {
    let text = std::fs::read_to_string(file).unwrap();
    let (_, key) = text.split_once("key = \"").unwrap();
    key.split_once('"').unwrap().0.to_owned()
}

/// The secret of the key in a cluster file.
pub(crate) fn secret_in(file: &Path) -> String {
    key_in(file).rsplit_once('.').unwrap().1.to_owned()
}
