//! Disks that rot or run full.

#![allow(clippy::unwrap_used, reason = "a test")]

use crate::cluster::{Cluster, free_ports, signal, spawn, wait_until};
use crate::command::{command, ended, of};
use crate::lifecycle::ask;
use crate::metrics::{metrics, value};
use crate::values::bytes;
use areo_fuzzing::not_run;
use rustix::process::{Pid, Resource, Rlimit, Signal, prlimit};
use serde_json::json;
use std::fs::{self, File, Permissions};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const OLDEST: &str = "areo_store_oldest_unscrubbed_seconds";

/// Flips a bit in the middle of this value wherever a log in the directory holds it; returns how often that was.
fn rot(log: &Path, value: &[u8]) -> usize {
    let mut found = 0;
    for entry in fs::read_dir(log).unwrap() {
        let path = entry.unwrap().path();
        let mut content = fs::read(&path).unwrap();
        let starts: Vec<usize> = content
            .windows(64)
            .enumerate()
            .filter(|(_, window)| *window == &value[..64])
            .map(|(start, _)| start)
            .collect();
        for start in &starts {
            content[start + value.len() / 2] ^= 1;
        }
        if !starts.is_empty() {
            fs::write(&path, content).unwrap();
        }
        found += starts.len();
    }
    found
}

/// `[X-11 damage-abstains]`: a replica whose newest version is damaged counts in no quorum, and never answers with an older
/// one.
#[test]
fn a_replica_that_rots_abstains_until_it_is_repaired() {
    let mut cluster = Cluster::start(&["--servers", "3", "--dap", "abd"]);
    let (old, new) = (bytes(300_000, 1), bytes(300_000, 2));
    cluster.run_with(&["put", "k", "-"], &old).done();
    cluster.run_with(&["put", "k", "-"], &new).done();
    cluster.stop().done();
    assert_eq!(rot(&cluster.data().join("s1/log"), &new), 1);
    let mut cluster = cluster.start_again(&["--servers", "3", "--dap", "abd"]);
    // Found by the server itself, without a reader.
    wait_until(|| cluster.damaged("s1") == 1);
    assert!(cluster.run(&["get", "k"]).done().stdout == new);

    // With only the damaged one and another left there is no quorum for the object, and no older version either; unless
    // the read before has repaired it.
    cluster.kill("s2");
    let read = cluster.run(&["get", "k", "--timeout", "2s"]);
    assert!(read.stdout.is_empty() || read.stdout == new);
    assert!([0, 5, 7].contains(&read.code), "{read:?}");
    cluster.restart("s2");

    // A read that meets the refusal writes the version back.
    wait_until(|| {
        assert!(cluster.run(&["get", "k"]).done().stdout == new);
        cluster.damaged("s1") == 0
    });
    cluster.kill("s2");
    assert!(cluster.run(&["get", "k"]).done().stdout == new);
}

/// A process that starts goes on where the one before it was, and knows when it began.
#[test]
fn verification_of_records_goes_on_after_a_restart() {
    let mut cluster = Cluster::start(&["--servers", "3", "--scrub-rate", "1GiB"]);
    cluster
        .run_with(&["put", "k", "-"], &bytes(300_000, 1))
        .done();
    let oldest = |cluster: &Cluster| {
        let now = metrics(cluster.port() + 91);
        let domain = "areo_domain_oldest_unscrubbed_seconds{domain=\"default\"}";
        let oldest = value(&now, OLDEST);
        // The domain is there once the server has gone over its objects.
        assert!(!now.contains(domain) || (value(&now, domain) - oldest).abs() < 0.5);
        oldest
    };
    wait_until(|| oldest(&cluster) >= 0.0);
    // At its end it writes down how far it is.
    cluster.signal("s2", Signal::TERM);
    cluster.wait_for_end("s2");
    cluster.start_server_with("s2", &["--scrub-rate", "0"]);
    wait_until(|| cluster.state("s2") == "serving");
    assert!(oldest(&cluster) >= 0.0, "it is known, and verified no more");
}

/// An object that is damaged at too many servers is named with its versions, and keeps no other from its repair.
#[test]
fn of_what_cannot_be_recovered_the_versions_are_named() {
    let up = ["--servers", "3", "--dap", "abd"];
    let mut cluster = Cluster::start(&up);
    let value = bytes(300_000, 1);
    cluster.run_with(&["put", "lost", "-"], &value).done();
    // A put may leave a server out. Its own repair fetches the version, so that repair is off only afterwards.
    wait_until(|| cluster.run(&["repair", "status"]).code == 0);
    cluster.stop().done();
    for server in ["s1", "s2", "s3"] {
        assert_eq!(rot(&cluster.data().join(server).join("log"), &value), 1);
    }
    let cluster = cluster.start_again(&[&up[..], &["--repair-rate", "0"]].concat());
    wait_until(|| ["s1", "s2", "s3"].iter().all(|it| cluster.damaged(it) == 1));
    let lost = cluster.run(&["repair", "ls", "--json"]).done().objects();
    assert_eq!(lost.len(), 1, "{lost:?}");
    assert_eq!(lost[0]["state"], "unrecoverable");
    let [version] = &lost[0]["versions"].as_array().unwrap()[..] else {
        panic!("{lost:?}");
    };
    assert_eq!(version["sound"], json!([]), "{version}");
    assert_eq!(version["damaged"], json!(["s1", "s2", "s3"]), "{version}");
    assert!(version["version"].as_str().unwrap().starts_with("1-"));
    let shown = cluster.run(&["repair", "ls"]).done();
    assert!(
        shown
            .text()
            .contains(" at s1 (damaged) s2 (damaged) s3 (damaged)")
    );
    let status = cluster.run(&["repair", "status"]);
    assert_eq!(status.code, 1, "{}", status.stderr);
    let said = "1 object of 'default' cannot be recovered";
    assert!(status.stderr.contains(said), "{}", status.stderr);
}

/// `[X-40 named-loss]`: it is an error by name, is written over, removed, or left so, and everything else goes on.
#[test]
fn an_object_that_cannot_be_read_stands_in_no_way() {
    let up = ["--servers", "3", "--dap", "abd"];
    let mut cluster = Cluster::start(&up);
    let values = [("lost", 1), ("over", 2), ("gone", 3)];
    let values = values.map(|(key, seed)| (key, bytes(300_000, seed)));
    for (key, value) in &values {
        cluster.run_with(&["put", key, "-"], value).done();
    }
    cluster.run_with(&["put", "sound", "-"], b"v").done();
    wait_until(|| cluster.run(&["repair", "status"]).code == 0);
    cluster.stop().done();
    let servers = ["s1", "s2", "s3"];
    for server in servers {
        let log = cluster.data().join(server).join("log");
        assert!(values.iter().all(|(_, value)| rot(&log, value) == 1));
    }
    let cluster = cluster.start_again(&[&up[..], &["--repair-rate", "0"]].concat());
    wait_until(|| servers.iter().all(|it| cluster.damaged(it) == 3));

    let is_lost = |key: &str| {
        let read = cluster.run(&["get", key]);
        assert_eq!((read.code, &read.stdout[..]), (7, &b""[..]), "{read:?}");
        assert!(read.stderr.contains(&format!("'{key}'")), "{}", read.stderr);
    };
    is_lost("lost");
    let listed = cluster.run(&["ls"]);
    assert!(
        ["gone", "lost", "over", "sound"]
            .iter()
            .all(|key| listed.text().contains(key))
    );
    cluster.run_with(&["put", "over", "-"], b"again").done();
    assert_eq!(cluster.run(&["get", "over"]).done().stdout, b"again");
    cluster.run(&["rm", "gone"]).done();
    assert_eq!(cluster.run(&["get", "gone"]).code, 3);

    let change = ["reconfig", "start", "default", "--yes"];
    let pending = cluster.run(&[&change[..], &["--delta", "7"]].concat());
    assert_eq!(pending.code, 8, "{pending:?}");
    assert!(pending.stderr.contains("lost") && pending.stderr.contains("--leave-unreadable"));
    assert_eq!(cluster.run(&["get", "sound"]).done().stdout, b"v");
    is_lost("lost");
    let resume = ["--resume", "--leave-unreadable"];
    cluster.run(&[&change[..], &resume].concat()).done();
    is_lost("lost");
    cluster.run_with(&["put", "lost", "-"], b"new").done();
    assert_eq!(cluster.run(&["get", "lost"]).done().stdout, b"new");
}

/// `[CASSS-9 agreed-end-of-abstention]`: where servers agree on what is left the object is there again, without any help.
#[test]
fn of_what_too_many_have_lost_servers_keep_what_is_left() {
    let mut cluster = Cluster::start(&["--servers", "3"]);
    let shape = ["--dap", "casss", "--k", "1"];
    let create = [&["domain", "create", "cache"][..], &shape].concat();
    cluster.run(&create).done();
    let value = bytes(300_000, 1);
    let put = ["--domain", "cache", "put", "k", "-"];
    cluster.run_with(&put, &value).done();
    wait_until(|| cluster.run(&["repair", "status"]).code == 0);
    cluster.stop().done();
    let struck = ["s1", "s2"];
    for server in struck {
        assert_eq!(rot(&cluster.data().join(server).join("log"), &value), 1);
    }
    // Both find their damage before the third is there. Else a read might mend one of them first, and a quorum could do without the other.
    let alone = ["--repair-rate", "0"];
    for server in struck {
        cluster.start_server_with(server, &alone);
    }
    wait_until(|| struck.map(|server| cluster.number(server, "damaged")) == [Some(1); 2]);
    let get = ["--domain", "cache", "get", "k", "--timeout", "2s"];
    assert_eq!(cluster.run(&get).stdout, b"", "no quorum speaks");
    cluster.start_server_with("s3", &alone);
    wait_until(|| cluster.run(&get).stdout == value);
    wait_until(|| cluster.damaged("s1") + cluster.damaged("s2") == 0);
    cluster.run_with(&put, b"after").done();
    assert!(cluster.run(&get).done().stdout == b"after");
}

/// A small file system; unmounted when this is dropped.
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    /// `None` where this process may not mount.
    fn mount(size: &str) -> Option<SmallDisk> {
        let folder = tempfile::tempdir().unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={size}"), "areo-test"]);
        let mounted = mount.arg(folder.path()).output();
        mounted
            .is_ok_and(|output| output.status.success())
            .then_some(SmallDisk(folder))
    }

    /// Takes the place of a directory, with what is in there.
    fn replace(&self, directory: &Path) {
        let mut copy = Command::new("cp");
        copy.arg("-a").arg(directory.join(".")).arg(self.0.path());
        assert!(copy.status().unwrap().success());
        fs::remove_dir_all(directory).unwrap();
        symlink(self.0.path(), directory).unwrap();
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // What cannot be unmounted goes with the machine.
        let _ = Command::new("umount").arg("-l").arg(self.0.path()).status();
    }
}

#[test]
fn a_full_disk_refuses_writes_keeps_what_it_has_and_recovers() {
    let Some(disk) = SmallDisk::mount("500m") else {
        not_run("mounting a small file system needs root");
        return;
    };
    let cluster = Cluster::start_below(disk.0.path(), &["--servers", "3", "--dap", "abd"]);
    let value = |i: usize| bytes(8 << 20, i as u64);
    let (mut stored, mut attempts) = (0, 0);
    let refused = loop {
        let put = cluster.run_with(
            &["put", &format!("k{stored}"), "-", "--timeout", "5s"],
            &value(stored),
        );
        // On a busy machine one may take too long; it is tried again.
        match put.code {
            0 => stored += 1,
            _ if put.stderr.contains("disk full") => break put,
            _ => {}
        }
        attempts += 1;
        assert!(attempts < 100, "the disk is not that large: {put:?}");
    };
    assert!(stored > 0, "{refused:?}");
    refused.refused(refused.code, &["disk full", "delete", "sweep"]);
    assert!([5, 8].contains(&refused.code), "{refused:?}");
    // Until there is no room for the smallest one either.
    let small = |length: usize| {
        let put = ["put", "small", "-", "--timeout", "5s"];
        cluster.run_with(&put, &bytes(length, 7)).code == 0
    };
    let mut length = 1 << 20;
    while length > 0 {
        if !small(length) {
            length /= 2;
        }
    }
    full_disks_are_told(&cluster);
    for i in 0..stored {
        assert!(
            cluster.run(&["get", &format!("k{i}")]).done().stdout == value(i),
            "k{i}"
        );
    }
    // Deleting needs a little room itself, and makes a lot: the blocks of a value go with it.
    for i in 0..stored {
        cluster.run(&["rm", &format!("k{i}")]).done();
    }
    wait_until(|| {
        cluster
            .run_with(&["put", "again", "-", "--timeout", "5s"], &value(0))
            .code
            == 0
    });
    assert!(cluster.run(&["get", "again"]).done().stdout == value(0));
    // Servers ask their disks for room, and are heard.
    cluster.run(&["status", "--wait", "60s"]).done();
    assert_eq!(ask(cluster.port() + 90, "/health/cluster").0, "200");
}

/// A limit on the length of files stands for the disk: what the server writes to its log fails, for no reason that passes, and not for want of
/// room; root or not. Its messages still have room.
#[test]
fn a_server_whose_disk_fails_says_so_and_the_others_go_on() {
    let mut cluster = Cluster::start_ignoring("XFSZ", &["--servers", "3", "--dap", "abd"]);
    cluster.run_with(&["put", "k"], &bytes(300_000, 1)).done();
    let pid = Pid::from_raw(cluster.pid("s2"));
    let most = Some(64 << 10);
    let limit = Rlimit {
        current: most,
        maximum: most,
    };
    prlimit(pid, Resource::Fsize, limit).unwrap();
    let value = bytes(300_000, 2);
    cluster.run_with(&["put", "k"], &value).done();
    cluster.wait_for_end("s2");
    assert!(cluster.run(&["get", "k"]).done().stdout == value);
    cluster.run(&["rm", "k"]).done();
    let ended = cluster.stop();
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    for said in ["s2 ended with exit code 1", "the store in", "cannot go on"] {
        assert!(ended.stderr.contains(said), "{said}: {}", ended.stderr);
    }
}

/// The disks of a quorum are full: reads succeed, writes do not, and everything that tells how the cluster is says so.
fn full_disks_are_told(cluster: &Cluster) {
    let waited = cluster.run(&["status", "--wait", "500ms"]);
    waited.refused(5, &["disk full, writes of", "'default'", "fail"]);
    let shown = cluster.run(&["status"]).done();
    let shown = shown.text();
    assert!(shown.starts_with("problem\ns"), "{shown}");
    assert!(shown.contains("disk full, writes of"), "{shown}");
    let (code, health) = ask(cluster.port() + 90, "/health/cluster");
    assert_eq!(code, "503", "{health}");
    let health: serde_json::Value = serde_json::from_str(&health).unwrap();
    let domains = health["domains"].as_array().unwrap();
    let default = domains.iter().find(|it| it["domain"] == "default").unwrap();
    let keys = ["serves", "writes"].map(|key| default[key].clone());
    assert_eq!(keys, [json!(true), json!(false)], "{health}");
    let full = default["full"].as_array().unwrap();
    assert!(full.len() >= 2, "{health}");
    let first = full[0].as_str().unwrap();
    let number: u16 = first.trim_start_matches('s').parse().unwrap();
    let told = metrics(cluster.port() + 89 + number);
    assert!((value(&told, "areo_server_disk_full") - 1.0).abs() < 0.1);
}

/// Takes all the room that is left.
fn fill(disk: &SmallDisk) -> PathBuf {
    let path = disk.0.path().join("filler");
    let mut filler = File::create(&path).unwrap();
    while filler.write_all(&[1; 4096]).is_ok() {}
    path
}

/// A cluster in which these servers have small disks of their own.
fn on_small_disks(servers: &[&str], flags: &[&str]) -> Option<(Cluster, Vec<SmallDisk>)> {
    let disks: Option<Vec<_>> = servers.iter().map(|_| SmallDisk::mount("200m")).collect();
    let disks = disks?;
    let mut cluster = Cluster::start(flags);
    cluster.stop().done();
    for (disk, server) in disks.iter().zip(servers) {
        disk.replace(&cluster.data().join(server));
    }
    Some((cluster.start_again(flags), disks))
}

/// Takes all the room that is left on the disks, and lets the servers use up what they have put aside: until a put of as many
/// bytes is refused, time after time.
fn fill_up(cluster: &Cluster, disks: &[SmallDisk], smallest: usize) -> Vec<PathBuf> {
    let fillers = disks.iter().map(fill).collect();
    let mut length = 8 << 20;
    for number in 0.. {
        assert!(number < 300, "the disks are not that large");
        let put = ["put", &format!("filler-{number}"), "-", "--timeout", "5s"];
        let put = cluster.run_with(&put, &bytes(length, number));
        match put.code {
            0 => {}
            _ if length > smallest => length /= 2,
            _ => break,
        }
    }
    fillers
}

/// `[X-3 unconfirmed-cap]`: fragments of refused puts filled the cap of unconfirmed versions at the members that had room, and no put of
/// that object ever succeeded again.
#[test]
fn an_object_takes_puts_again_when_full_disks_have_room() {
    let servers = ["--servers", "6"];
    let Some((cluster, disks)) = on_small_disks(&["s4", "s5", "s6"], &servers) else {
        not_run("mounting a small file system needs root");
        return;
    };
    let value = |number: u64| bytes(100_000, number);
    let put = |number| cluster.run_with(&["put", "hot", "-", "--timeout", "5s"], &value(number));
    put(0).done();
    let fillers = fill_up(&cluster, &disks, 20_000);
    // More than any cap.
    for number in 1..=80 {
        let refused = put(number);
        assert!([5, 8].contains(&refused.code), "{refused:?}");
        refused.refused(refused.code, &["disk full"]);
    }
    assert!(cluster.run(&["get", "hot"]).done().stdout == value(0));
    for filler in fillers {
        fs::remove_file(filler).unwrap();
    }
    wait_until(|| put(100).code == 0);
    for number in 101..110 {
        put(number).done();
        assert!(cluster.run(&["get", "hot"]).done().stdout == value(number));
    }
}

/// A refused put left as many fragments as make a value, and reads failed or not, depending on who answered first.
#[test]
fn a_put_that_full_disks_refused_leaves_the_object_readable() {
    let Some((mut cluster, disks)) = on_small_disks(&["s4", "s5"], &["--servers", "5"]) else {
        not_run("mounting a small file system needs root");
        return;
    };
    let (old, new) = (bytes(100_000, 1), bytes(100_000, 2));
    let put = |cluster: &Cluster, value: &[u8]| {
        cluster.run_with(&["put", "k", "-", "--timeout", "5s"], value)
    };
    put(&cluster, &old).done();
    fill_up(&cluster, &disks, 20_000);
    let refused = put(&cluster, &new);
    assert!([5, 8].contains(&refused.code), "{refused:?}");
    refused.refused(refused.code, &["disk full"]);
    // The log of a server that has room says it, too.
    let said = "s4, s5: disk full, writes of 'default' fail";
    let log = cluster.data().join("s1/server.log");
    wait_until(|| fs::read_to_string(&log).unwrap().contains(said));
    let first = cluster.run(&["get", "k"]).done().stdout;
    assert!(first == old || first == new);
    for server in ["s1", "s2", "s3", "s4", "s5"] {
        cluster.kill(server);
        for _ in 0..3 {
            assert!(
                cluster.run(&["get", "k"]).done().stdout == first,
                "{server}"
            );
        }
        cluster.restart(server);
        wait_until(|| cluster.state(server) == "serving");
    }
}

#[test]
fn a_server_that_starts_on_a_full_disk_reads_and_refuses_writes() {
    let Some(disk) = SmallDisk::mount("900m") else {
        not_run("mounting a small file system needs root");
        return;
    };
    let mut cluster = Cluster::start_below(disk.0.path(), &["--servers", "3", "--dap", "abd"]);
    // What was overwritten comes back when a log is opened, and letting it go again wants room.
    let value = |i: usize| bytes(1 << 20, i as u64);
    for i in 0..100 {
        cluster.run_with(&["put", "k", "-"], &value(i)).done();
    }
    for _ in 0..3 {
        cluster.kill("s1");
        let filler = fill(&disk);
        cluster.restart("s1");
        // Without the other one it has to answer.
        cluster.kill("s2");
        assert!(cluster.run(&["get", "k"]).done().stdout == value(99));
        // Some segment may have room yet.
        let large = ["put", "large", "-", "--timeout", "5s"];
        let put = |i| cluster.run_with(&large, &bytes(8 << 20, i));
        let mut puts = (0..30).map(put);
        let refused = puts.find(|put| put.stderr.contains("disk full")).unwrap();
        refused.refused(refused.code, &["disk full"]);
        fs::remove_file(filler).unwrap();
        cluster.restart("s2");
        wait_until(|| {
            let put = cluster.run_with(&["put", "after", "-", "--timeout", "5s"], &value(0));
            put.code == 0
        });
    }
}

/// A segment that lost its end, as an interrupted copy leaves it: the hint beside it has the records that were there.
#[test]
fn a_sealed_segment_that_is_cut_short_is_a_warning() {
    let flags = ["--servers", "1", "--allow-f0"];
    let mut cluster = Cluster::start(&flags);
    let put = cluster.run_with(&["put", "large", "-"], &bytes(68 << 20, 1));
    put.done();
    cluster.stop().done();
    let segment = cluster.data().join("s1/log/segment-0000000000000001.log");
    assert!(segment.with_extension("hint").exists(), "it is sealed");
    let segment = File::options().write(true).open(segment).unwrap();
    let length = segment.metadata().unwrap().len();
    segment.set_len(length - (2 << 20)).unwrap();
    let cluster = cluster.start_again(&flags);
    let log = fs::read_to_string(cluster.data().join("s1/server.log")).unwrap();
    let said = "records of the log are damaged or cut short: this server abstains";
    assert!(log.contains(said), "{log}");
}

/// `[X-11 damage-abstains]`: what is beside the log says that there was one, so that nothing is answered without it.
#[test]
fn a_server_whose_log_is_gone_abstains_and_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let address = format!("127.0.0.1:{}", free_ports());
    let start = |option: &'static str| {
        let data = data.to_str().unwrap();
        let listen = ["--data", data, "--listen", &address, "--log", "json"];
        spawn(
            &[
                &["server"][..],
                &[option][..usize::from(!option.is_empty())],
                &listen,
            ]
            .concat(),
        )
    };
    let until = |server: &mut std::process::Child, message: &str| {
        let lines = BufReader::new(server.stderr.as_mut().unwrap()).lines();
        let mut events = lines.map(|line| serde_json::from_str(&line.unwrap()).unwrap());
        let is_it = |event: &serde_json::Value| {
            let text = event["message"].as_str().unwrap_or_default();
            text.starts_with(message)
        };
        events.find(is_it).unwrap()
    };
    let mut server = start("--init");
    until(&mut server, "serving");
    signal(i32::try_from(server.id()).unwrap(), Signal::TERM);
    server.wait().unwrap();
    for path in [data.join("log"), data.join("EXTENT")] {
        match path.is_dir() {
            true => fs::remove_dir_all(path).unwrap(),
            false => fs::remove_file(path).unwrap(),
        }
        let mut server = start("");
        let event = until(&mut server, "records are missing");
        let missing = event["missing"].as_str().unwrap();
        assert!(missing.contains("gone"), "{event}");
        server.kill().unwrap();
        server.wait().unwrap();
    }
}

/// Everything below a directory, with its mode.
fn modes_below(directory: &Path) -> Vec<(PathBuf, u32)> {
    let mut found = Vec::new();
    for path in fs::read_dir(directory)
        .unwrap()
        .map(|it| it.unwrap().path())
    {
        let mode = fs::metadata(&path).unwrap().permissions().mode() & 0o777;
        if path.is_dir() {
            found.append(&mut modes_below(&path));
        }
        found.push((path, mode));
    }
    found
}

#[test]
fn a_data_directory_is_private_and_that_of_another_user_is_not_yours() {
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
    let data = folder.path().join("data");
    let port = free_ports().to_string();
    let mut up = of("sh");
    up.args(["-c", "umask 0; exec \"$0\" \"$@\""])
        .arg(crate::program())
        .args(["up", "--port", &port, "--data"])
        .arg(&data)
        .stdout(Stdio::piped());
    let mut up = up.spawn().unwrap();
    let mut lines = BufReader::new(up.stdout.as_mut().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains("s1")), "it serves");
    signal(i32::try_from(up.id()).unwrap(), Signal::TERM);
    up.wait().unwrap();
    let modes = modes_below(&data);
    let first = "segment-0000000000000001.log";
    for name in ["EXTENT", "LOCK", "SCRUB", "cluster.toml", first] {
        assert!(modes.iter().any(|it| it.0.ends_with(name)), "{modes:?}");
    }
    for (path, mode) in modes {
        let wanted = if path.is_dir() { 0o700 } else { 0o600 };
        assert_eq!(mode, wanted, "{}", path.display());
    }

    let listen = format!("127.0.0.1:{port}");
    let server = || {
        let mut server = command();
        server.args(["server", "--listen", &listen, "--data"]);
        server.arg(data.join("s1"));
        server
    };
    let renamed = ended(server().args(["--name", "zebra"]), b"");
    renamed.refused(2, &["holds server 's1'", "--name zebra"]);
    let mut server = server();
    if rustix::process::geteuid().is_root() {
        // A user who owns nothing.
        server.uid(65_534).gid(65_534);
    } else {
        fs::set_permissions(&data, Permissions::from_mode(0o000)).unwrap();
    }
    let refused = ended(&mut server, b"");
    fs::set_permissions(&data, Permissions::from_mode(0o700)).unwrap();
    assert_eq!(refused.code, 1, "{refused:?}");
    assert!(refused.stderr.contains("not yours"), "{refused:?}");
    assert!(!refused.stderr.contains("--init"), "{refused:?}");
}
