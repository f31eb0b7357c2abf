//! A domain whose configurations etcd decides: a real etcd from the PATH, and the real failures of one.

use super::{assert_all_there, put_files, reconfig, shape};
use crate::cluster::{Cluster, areo, wait_until};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::AtomicU16;
use std::sync::atomic::Ordering::Relaxed;
use tempfile::TempDir;

static NEXT: AtomicU16 = AtomicU16::new(2379);

/// One member, which is a cluster of its own.
struct Etcd {
    process: Child,
    address: String,
    _data: TempDir,
}

impl Etcd {
    /// `None`, and a word about it, where there is no etcd.
    fn start() -> Option<Etcd> {
        let data = tempfile::tempdir().unwrap();
        // A host of this process alone, and two ports of this member.
        let [_, a, b, c] = std::process::id().to_be_bytes();
        let (host, number) = (
            format!("127.{}.{b}.{c}", 64 + a % 64),
            NEXT.fetch_add(2, Relaxed),
        );
        let [client, peer] = [number, number + 1].map(|port| format!("http://{host}:{port}"));
        let mut command = Command::new("etcd");
        command.arg("--data-dir").arg(data.path());
        command.args(["--name", "e", "--log-level", "error"]);
        command.args(["--listen-client-urls", &client]);
        command.args(["--advertise-client-urls", &client]);
        command.args(["--listen-peer-urls", &peer]);
        command.args(["--initial-advertise-peer-urls", &peer]);
        command.arg("--initial-cluster").arg(format!("e={peer}"));
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let Ok(process) = command.spawn() else {
            areo_fuzzing::not_run("there is no etcd on the PATH");
            return None;
        };
        let address = format!("{host}:{number}");
        wait_until(|| TcpStream::connect(&address).is_ok());
        Some(Etcd {
            process,
            address,
            _data: data,
        })
    }

    fn kill(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Drop for Etcd {
    fn drop(&mut self) {
        self.kill();
    }
}

#[test]
fn etcd_decides_which_configuration_comes_next() {
    let Some(mut etcd) = Etcd::start() else {
        return;
    };
    let cluster = Cluster::start(&["--durability", "memory"]);
    let consensus = format!("etcd={}", etcd.address);
    let create = [
        "domain",
        "create",
        "d",
        "--dap",
        "abd",
        "--servers",
        "s1,s2,s3",
    ];
    let create = [&create[..], &["--consensus", &consensus, "--json"]].concat();
    let made = cluster.run(&create).done();
    assert_eq!(made.objects()[0]["consensus"], consensus.as_str());
    let files = put_files(&cluster, "d", &[10, 20_000]);

    // Two at once: one wins, and both get the installed configuration.
    let moves = [["--servers", "s2,s3,s4"], ["--servers", "s3,s4,s5"]];
    let codes = std::thread::scope(|scope| {
        let cluster = &cluster;
        let started =
            moves.map(|change| scope.spawn(move || reconfig(cluster, "start", "d", &change).code));
        started.map(|one| one.join().unwrap())
    });
    // 4: the other's was decided first, or went on from there. Who came later altogether made its change after it.
    assert!(codes.contains(&0), "{codes:?}");
    assert!(codes.iter().all(|code| [0, 4].contains(code)), "{codes:?}");
    let (index, _, servers) = shape(&cluster, "d");
    assert!((1..=2).contains(&index), "{codes:?}");
    assert!(servers == ["s2", "s3", "s4"] || servers == ["s3", "s4", "s5"]);
    assert_all_there(&cluster, "d", &files);

    // Without it nothing is decided, one sentence says so, and reads and writes go on. The members have the change.
    etcd.kill();
    let refused = reconfig(
        &cluster,
        "start",
        "d",
        &["--dap", "ec", "--servers", "s1,s2,s3"],
    );
    refused.refused(
        8,
        &[
            "'d' was not changed",
            &consensus,
            "did not decide",
            "may be made all the same",
        ],
    );
    cluster
        .run(&["domain", "rm", "d", "--yes"])
        .refused(5, &["did not decide"]);
    assert_eq!(shape(&cluster, "d").0, index);
    assert_all_there(&cluster, "d", &files);
    put_files(&cluster, "d", &[30]);
}

#[test]
fn who_decides_is_given_up_by_whom_it_names() {
    let Some(etcd) = Etcd::start() else {
        return;
    };
    let cluster = Cluster::start(&["--durability", "memory"]);
    let consensus = format!("etcd={}", etcd.address);
    cluster.run_with(&["put", "k"], b"v").done();
    // The members decide that etcd decides; etcd, that they do again.
    reconfig(&cluster, "start", "default", &["--consensus", &consensus]).done();
    reconfig(&cluster, "start", "default", &["--consensus", "members"]).done();
    drop(etcd);
    let compared = ["--dap", "ec-published", "--experimental", "protocol=ares"];
    reconfig(&cluster, "start", "default", &compared).done();
    assert_eq!(cluster.run(&["get", "k"]).done().text(), "v");
    let shown = cluster.run(&["domain", "show", "default"]).done();
    for said in ["ec-published [", "piggyback=off, collect=off"] {
        assert!(shown.text().contains(said), "{}", shown.text());
    }
    assert_eq!(shape(&cluster, "default").0, 3);
}

#[test]
fn who_cannot_decide_is_refused() {
    let create = |who: &str| areo(&["domain", "create", "d", "--consensus", who], b"");
    for who in ["raft=a:1", "etcd=", "etcd=a"] {
        create(who).refused(2, &["does not decide", "etcd=HOST:PORT"]);
    }
}
