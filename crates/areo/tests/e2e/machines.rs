//! *Three machines, step by step* of `docs/security.md`, as it stands there: each machine is a network namespace with its own address and
//! its own folder. It needs root and the program `ip`; where they are missing the test is not run.

#![allow(clippy::unwrap_used, reason = "a test")]

use crate::autopilot::RULES;
use crate::cluster::wait_until;
use crate::command;
use areo_fuzzing::not_run;
use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

/// Tests run at the same time.
static MADE: AtomicU32 = AtomicU32::new(0);

/// Network namespaces on one bridge; removed when this is dropped.
struct Machines {
    /// The process and the number of the machines that it has made.
    id: (u32, u32),
    folder: tempfile::TempDir,
    servers: Vec<Child>,
}

impl Drop for Machines {
    fn drop(&mut self) {
        for server in &mut self.servers {
            // It may have ended by itself.
            let _ = server.kill();
            let _ = server.wait();
        }
        for name in ["switch", "m1", "m2", "m3"] {
            ip(&format!("netns del {}", self.namespace(name)));
        }
    }
}

/// Runs `ip`. False: it is not there, or refuses.
fn ip(words: &str) -> bool {
    let ran = Command::new("ip")
        .args(words.split(' '))
        .stderr(Stdio::null())
        .status();
    ran.is_ok_and(|status| status.success())
}

impl Machines {
    /// Three machines with the addresses 10.0.0.1 to 10.0.0.3; none where namespaces cannot be made.
    fn new() -> Option<Machines> {
        let machines = Machines {
            id: (std::process::id(), MADE.fetch_add(1, Ordering::Relaxed)),
            folder: tempfile::tempdir().unwrap(),
            servers: Vec::new(),
        };
        let switch = machines.namespace("switch");
        let is_made = ip(&format!("netns add {switch}"))
            && ip(&format!("-n {switch} link add br0 type bridge"))
            && ip(&format!("-n {switch} link set br0 up"));
        if !is_made {
            return None;
        }
        for number in 1..=3 {
            let name = format!("m{number}");
            fs::create_dir(machines.folder(&name)).unwrap();
            let machine = machines.namespace(&name);
            for words in [
                format!("netns add {machine}"),
                format!("link add eth0 netns {machine} type veth peer name {name} netns {switch}"),
                format!("-n {switch} link set {name} master br0 up"),
                format!("-n {machine} addr add 10.0.0.{number}/24 dev eth0"),
                format!("-n {machine} link set eth0 up"),
                format!("-n {machine} link set lo up"),
            ] {
                assert!(ip(&words), "ip {words}");
            }
        }
        Some(machines)
    }

    fn namespace(&self, machine: &str) -> String {
        let (process, number) = self.id;
        format!("areo-{process}-{number}-{machine}")
    }

    fn folder(&self, machine: &str) -> PathBuf {
        self.folder.path().join(machine)
    }

    /// A command on a machine, in its folder.
    fn on(&self, machine: &str) -> Command {
        let mut command = command::of("ip");
        command
            .args(["netns", "exec", &self.namespace(machine)])
            .current_dir(self.folder(machine))
            .stdin(Stdio::null());
        command
    }

    /// Runs a line of the document.
    fn run(&mut self, machine: &str, line: &str) {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["scp", file, to] => {
                let to = self.folder(to.trim_end_matches(':')).join(file);
                fs::copy(self.folder(machine).join(file), to).unwrap();
            }
            ["areo", "server", ..] => {
                let log = fs::File::create(self.folder(machine).join("server.log")).unwrap();
                let mut server = self.on(machine);
                server.arg(crate::program()).args(&words[1..]);
                let server = server.stdout(Stdio::null()).stderr(log).spawn();
                self.servers.push(server.unwrap());
                // A person waits until it says that it serves.
                let said = || fs::read_to_string(self.folder(machine).join("server.log")).unwrap();
                wait_until(|| said().contains("serving"));
            }
            ["areo", ref words @ .., ">", file] => {
                let output = self.of_areo(machine, words);
                fs::write(self.folder(machine).join(file), output).unwrap();
            }
            ["areo", ref words @ ..] => drop(self.of_areo(machine, words)),
            _ => panic!("a line of no kind: {line}"),
        }
    }

    fn of_areo(&self, machine: &str, words: &[&str]) -> Vec<u8> {
        let mut areo = self.on(machine);
        let output = areo.arg(crate::program()).args(words).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{machine}$ {words:?}: {said}");
        output.stdout
    }
}

#[test]
fn three_machines_step_by_step() {
    let document = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/security.md");
    let document = fs::read_to_string(document).unwrap();
    let (_, section) = document
        .split_once("## Three machines, step by step")
        .unwrap();
    let (section, _) = section.split_once("\n## ").unwrap();
    let lines = section.lines().filter_map(|line| line.split_once("$ "));
    let lines: Vec<_> = lines.filter(|(machine, _)| machine.len() == 2).collect();
    assert!(lines.len() >= 8, "{section}");
    let Some(mut machines) = Machines::new() else {
        not_run("network namespaces cannot be made here: that needs root and the program `ip`");
        return;
    };
    fs::write(machines.folder("m3").join("report.pdf"), b"a report").unwrap();
    for (machine, line) in lines {
        machines.run(machine, line);
    }
    let got = machines.of_areo("m2", &["--cluster", "app.toml", "get", "report.pdf"]);
    assert_eq!(got, b"a report");
    // A machine without a key, and one that speaks no TLS.
    let mut stranger = machines.on("m2");
    stranger.arg(crate::program());
    stranger.args(["--cluster", "10.0.0.1:7400", "ls", "--timeout", "2s"]);
    let refused = stranger.output().unwrap();
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(6), "{said}");
    assert!(said.contains("AREO_KEY"), "{said}");
}

impl Machines {
    /// The metrics of the server of a machine, as its user reads them there.
    fn metrics(&self, machine: &str) -> String {
        let request = "exec 3<>/dev/tcp/127.0.0.1/7490; printf 'GET /metrics HTTP/1.0\\r\\n\\r\\n' >&3; cat <&3";
        let output = self.on(machine).args(["bash", "-c", request]).output();
        String::from_utf8_lossy(&output.unwrap().stdout).into_owned()
    }

    /// The states of the connections of a server to this other one.
    fn sees(&self, machine: &str, other: &str, state: &str) -> bool {
        let metrics = self.metrics(machine);
        let series = format!("areo_server_peers{{server=\"{other}\",state=\"{state}\"}} 1");
        metrics.lines().any(|line| line == series)
    }

    /// The cable of a machine.
    fn set_cable(&self, machine: &str, state: &str) {
        let switch = self.namespace("switch");
        assert!(ip(&format!("-n {switch} link set {machine} {state}")));
    }
}

/// Prints the time that it takes: no end of a connection says anything.
#[test]
fn a_server_whose_cable_is_cut_is_unreachable_and_comes_back() {
    let Some(mut machines) = Machines::new() else {
        eprintln!("network namespaces cannot be made here: nothing was shown");
        return;
    };
    for (machine, line) in [
        (
            "m1",
            "areo server --init --data ./data --listen 10.0.0.1:7400",
        ),
        (
            "m1",
            "areo --cluster data/cluster.toml token create > token-2",
        ),
        ("m1", "scp token-2 m2:"),
        (
            "m2",
            "areo server --data ./data --listen 10.0.0.2:7400 --join 10.0.0.1:7400 --token token-2",
        ),
    ] {
        machines.run(machine, line);
    }
    wait_until(|| machines.sees("m1", "s2", "connected"));
    machines.set_cable("m2", "down");
    let cut = Instant::now();
    wait_until(|| machines.sees("m1", "s2", "unreachable"));
    eprintln!(
        "unreachable {:.1} s after the cable was cut",
        cut.elapsed().as_secs_f64()
    );
    machines.set_cable("m2", "up");
    wait_until(|| machines.sees("m1", "s2", "connected"));
}

impl Machines {
    /// The output of a command about the cluster, on a machine that has its file.
    fn ask(&self, machine: &str, words: &[&str]) -> String {
        let words = [&["--cluster", "cluster.toml"], words].concat();
        String::from_utf8(self.of_areo(machine, &words)).unwrap()
    }
}

/// The admin port of each server listens on its own machine alone, and the instance runs on another one.
#[test]
fn a_server_that_is_killed_is_found_dead_from_a_machine_that_sees_no_admin_port() {
    let Some(mut machines) = Machines::new() else {
        not_run("network namespaces cannot be made here: that needs root and the program `ip`");
        return;
    };
    for (machine, line) in [
        (
            "m1",
            "areo server --init --data ./data --listen 10.0.0.1:7400",
        ),
        (
            "m1",
            "areo --cluster data/cluster.toml token create > token-2",
        ),
        (
            "m1",
            "areo --cluster data/cluster.toml token create > token-3",
        ),
        ("m1", "scp token-3 m2:"),
        (
            "m1",
            "areo server --data ./data-2 --listen 10.0.0.1:7401 --join 10.0.0.1:7400 --token token-2",
        ),
        (
            "m2",
            "areo server --data ./data --listen 10.0.0.2:7400 --join 10.0.0.1:7400 --token token-3",
        ),
    ] {
        machines.run(machine, line);
    }
    let file = machines.folder("m1").join("data/cluster.toml");
    fs::copy(file, machines.folder("m3").join("cluster.toml")).unwrap();
    fs::write(machines.folder("m3").join("rules.toml"), RULES).unwrap();
    wait_until(|| {
        let root = machines.ask("m3", &["reconfig", "status", "@root", "--json"]);
        root.contains("\"s3\"")
    });
    let mut instance = machines.on("m3");
    instance
        .arg(crate::program())
        .args(["--cluster", "cluster.toml", "autopilot", "--every", "300ms"])
        .args(["--rules", "rules.toml"])
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    machines.servers.push(instance.spawn().unwrap());
    wait_until(|| {
        let status = machines.ask("m3", &["autopilot", "status", "--json"]);
        status.contains("\"instance\":\"")
    });
    machines.servers[2].kill().unwrap();
    let finding = "2 of 2 other servers have not reached s3 for 2 s";
    wait_until(|| {
        let journal = machines.ask("m3", &["autopilot", "journal", "--json"]);
        journal.contains(finding)
    });
}
