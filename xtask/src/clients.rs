//! `cargo xtask clients`: real clients of S3 against a cluster on this machine, by `clients/run.sh`.

use crate::workspace::Workspace;
use serde_json::Value;
use std::fs::File;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

const SERVERS: u16 = 5;
/// The distance of a server's admin port from its port.
const ADMIN: u16 = 90;
/// The line of `areo up` after which the gateway takes requests begins so.
const READY: &str = "S3 at ";
/// The lines of `areo up`.
const LOG: &str = "up.log";

/// Installs the clients, builds the product, starts a cluster with a gateway, and runs the clients named in `only`, or all.
pub(crate) fn run(workspace: &Workspace, only: Option<&str>) -> Result<(), String> {
    let script = workspace.root().join("clients/run.sh");
    println!("installing the clients that are missing");
    let installed = shell(&script).status();
    let installed = installed.map_err(|error| format!("cannot start bash: {error}"))?;
    if !installed.success() {
        println!("not every client could be installed: those are skipped");
    }
    let build = ["build", "--profile", "verify", "--locked", "-p", "areo"];
    workspace.cargo(&build, &[])?;
    let program = program(workspace)?;
    let cluster = Cluster::start(&program)?;
    let mut command = shell(&script);
    command.arg(format!("http://{}", cluster.address));
    command.envs(cluster.key(&program)?);
    if let Some(only) = only {
        command.env("CLIENTS_ONLY", only.replace(',', " "));
    }
    let status = command.status();
    let status = status.map_err(|error| format!("cannot start bash: {error}"))?;
    if status.success() {
        return cluster.remove();
    }
    let place = cluster.directory.display().to_string();
    drop(cluster);
    Err(format!(
        "a step above failed or is missing; logs of the servers and of the gateway are in {place}"
    ))
}

fn shell(script: &Path) -> Command {
    let mut command = Command::new("bash");
    command.arg(script).stdin(Stdio::null());
    command
}

/// The product as it was built now.
pub(crate) fn program(workspace: &Workspace) -> Result<PathBuf, String> {
    let metadata = workspace.own_metadata()?;
    let target = metadata["target_directory"].as_str();
    let target = target.ok_or("`cargo metadata` names no target directory")?;
    Ok(Path::new(target).join("verify/areo"))
}

/// A cluster of processes with a gateway, in a directory of its own.
struct Cluster {
    up: Child,
    directory: PathBuf,
    /// Host and port of the gateway.
    address: String,
}

impl Cluster {
    /// A cluster whose gateway takes requests.
    fn start(program: &Path) -> Result<Cluster, String> {
        let directory = std::env::temp_dir().join(format!("areo-clients-{}", std::process::id()));
        std::fs::create_dir(&directory)
            .map_err(|error| format!("cannot make {}: {error}", directory.display()))?;
        let (port, gateway) = free_ports().ok_or("no ports are free below 30000")?;
        let address = format!("127.0.0.1:{gateway}");
        let log = directory.join(LOG);
        let output = File::create(&log)
            .map_err(|error| format!("cannot make {}: {error}", log.display()))?;
        let up = Command::new(program)
            .args(["up", "--servers", &SERVERS.to_string()])
            .args(["--port", &port.to_string(), &format!("--s3={address}")])
            .arg("--data")
            .arg(directory.join("data"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(output)
            .spawn()
            .map_err(|error| format!("cannot start {}: {error}", program.display()))?;
        let mut cluster = Cluster {
            up,
            directory,
            address,
        };
        cluster.wait(&log)?;
        Ok(cluster)
    }

    /// Waits until `areo up` says that the gateway takes requests.
    fn wait(&mut self, log: &Path) -> Result<(), String> {
        loop {
            let ended = self.up.try_wait();
            let ended = ended.map_err(|error| format!("cannot wait for `areo up`: {error}"))?;
            let text = std::fs::read_to_string(log);
            let text = text.map_err(|error| format!("cannot read {}: {error}", log.display()))?;
            if let Some(status) = ended {
                return Err(format!(
                    "`areo up` ended before it served ({status}):\n{text}"
                ));
            }
            if text.lines().any(|line| line.starts_with(READY)) {
                return Ok(());
            }
            thread::sleep(Duration::from_millis(100));
        }
    }

    /// The administrator's key, as variables of AWS.
    fn key(&self, program: &Path) -> Result<[(&'static str, String); 2], String> {
        let output = Command::new(program)
            .arg("--cluster")
            .arg(self.directory.join("data/cluster.toml"))
            .args(["--json", "key", "env"])
            .output()
            .map_err(|error| format!("cannot start {}: {error}", program.display()))?;
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let key: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        match (text(&key["access_key_id"]), text(&key["secret_access_key"])) {
            (Some(id), Some(secret)) => {
                Ok([("AWS_ACCESS_KEY_ID", id), ("AWS_SECRET_ACCESS_KEY", secret)])
            }
            _ => Err(format!(
                "`areo key env` printed no key: {}",
                String::from_utf8_lossy(&output.stderr).trim()
            )),
        }
    }

    /// Stops the processes and removes their directory.
    fn remove(self) -> Result<(), String> {
        let directory = self.directory.clone();
        drop(self);
        std::fs::remove_dir_all(&directory)
            .map_err(|error| format!("cannot remove {}: {error}", directory.display()))
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // `areo up` stops the servers and the gateway at this signal; the standard library has only SIGKILL.
        let terminated = Command::new("kill").arg(self.up.id().to_string()).status();
        if !terminated.is_ok_and(|status| status.success()) {
            // It may have ended by itself.
            let _ = self.up.kill();
        }
        let _ = self.up.wait();
    }
}

/// The first port of the servers and that of the gateway, all free a moment ago.
fn free_ports() -> Option<(u16, u16)> {
    let start = 20_000 + (std::process::id() % 40) as u16 * 200;
    (start..30_000).step_by(200).find_map(|first| {
        let servers = first..first + SERVERS;
        let gateway = first + 2 * ADMIN;
        let ports = servers
            .clone()
            .chain(servers.map(|port| port + ADMIN))
            .chain([gateway]);
        let listeners: Result<Vec<_>, _> = ports
            .map(|port| TcpListener::bind(("127.0.0.1", port)))
            .collect();
        listeners.ok().map(|_| (first, gateway))
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    fn read(path: &str) -> String {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        std::fs::read_to_string(root.join(path)).expect("a file of the tree")
    }

    /// The clients that `run.sh` runs.
    fn clients() -> BTreeSet<String> {
        let script = read("clients/run.sh");
        let list = script
            .lines()
            .find_map(|line| line.strip_prefix("ALL=\""))
            .and_then(|list| list.strip_suffix('"'))
            .expect("a list of all clients");
        list.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn each_step_that_is_expected_is_one_of_a_client() {
        let clients = clients();
        let mut expected = BTreeSet::new();
        for line in read("clients/expected.txt").lines() {
            let step = line.strip_prefix("ok ").expect("steps that pass");
            let (client, step) = step.split_once(' ').expect("a client and a step");
            let program = ["py", "sh"]
                .map(|ending| format!("clients/try_{client}.{ending}"))
                .into_iter()
                .find(|path| {
                    Path::new(env!("CARGO_MANIFEST_DIR"))
                        .join("..")
                        .join(path)
                        .exists()
                })
                .unwrap_or_else(|| panic!("{client} has no program"));
            // Python computes some of the words.
            let words = step.split(' ').filter(|word| word.parse::<u32>().is_err());
            // Two clients are programs of other languages, which their scripts start.
            let text = match client {
                "awsgo" => read("clients/go/main.go"),
                "awsjs" => read("clients/js/main.js"),
                _ => read(&program),
            };
            for word in words {
                assert!(text.contains(word), "{program} has no step '{step}'");
            }
            expected.insert(client.to_owned());
        }
        assert_eq!(expected, clients, "every client has a step, and no other");
    }

    #[test]
    fn the_documented_clients_are_those_that_are_installed() {
        let document = read("clients/README.md");
        let rows = document.lines().filter_map(|line| {
            let mut cells = line.strip_prefix("| `")?.split(" | ");
            let package = cells.next()?.trim_end_matches('`').to_owned();
            Some((package, cells.next()?.to_owned()))
        });
        let rows: BTreeSet<(String, String)> = rows.collect();
        assert!(rows.len() >= clients().len(), "{rows:?}");
        for letter in ["a", "b", "c"] {
            for line in read(&format!("clients/requirements-{letter}.txt")).lines() {
                let (package, version) = line.split_once("==").expect("a pinned version");
                let row = (package.to_owned(), version.to_owned());
                assert!(rows.contains(&row), "clients/README.md has no {row:?}");
            }
        }
    }
}
