//! Servers die, stop, and come back.

use crate::cluster::{Cluster, SERVERS, signal, wait_until};
use crate::metrics::{metrics, value};
use crate::values::bytes;
use rustix::process::Signal;
use serde_json::json;
use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

fn servers() -> impl Iterator<Item = String> {
    (1..=SERVERS).map(|i| format!("s{i}"))
}

/// Puts `value` from a file.
fn put(cluster: &Cluster, key: &str, value: &[u8]) {
    let path = cluster.folder().join(key);
    fs::write(&path, value).expect("there is room");
    let path = path.to_str().expect("temporary directories are UTF-8");
    cluster.run(&["put", key, path]).done();
}

#[track_caller]
fn assert_all_there(cluster: &Cluster, values: &BTreeMap<String, Vec<u8>>) {
    for (key, value) in values {
        let got = cluster.run(&["get", key]).done();
        assert!(got.stdout == *value, "{key} has other bytes");
    }
}

#[test]
fn a_server_dies_during_a_put_and_another_later() {
    let mut cluster = Cluster::start(&[]);
    let mut values = BTreeMap::new();
    for size in [0, 1, 5_000, 20_000, 3_000_000] {
        let (key, value) = (format!("before-{size}"), bytes(size, size as u64));
        put(&cluster, &key, &value);
        values.insert(key, value);
    }
    let large = bytes(60 << 20, 7);
    let path = cluster.folder().join("large");
    fs::write(&path, &large).unwrap();
    let writer = cluster.spawn(&["put", "large", path.to_str().unwrap()]);
    // Late enough for the put to be under way, early enough not to have ended; either way it must succeed.
    thread::sleep(Duration::from_millis(60));
    cluster.kill("s1");
    let written = writer.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&written.stderr);
    assert_eq!(written.status.code(), Some(0), "{said}");
    values.insert("large".into(), large);
    assert_all_there(&cluster, &values);
    put(&cluster, "without-s1", b"four are enough");
    values.insert("without-s1".into(), b"four are enough".to_vec());
    cluster.restart("s1");
    cluster.kill("s2");
    assert_all_there(&cluster, &values);
    put(&cluster, "without-s2", b"four others are enough");
    let listed = cluster.run(&["ls"]).done();
    assert_eq!(listed.text().lines().count(), values.len() + 1);
}

#[test]
fn all_servers_die_during_writes_and_nothing_acknowledged_is_lost() {
    let mut cluster = Cluster::start(&[]);
    let acknowledged = Mutex::new(BTreeMap::new());
    let stop = AtomicBool::new(false);
    let writer = |cluster: &Cluster, writer: u64| {
        for i in 0.. {
            if stop.load(Ordering::Relaxed) {
                return;
            }
            let size = [10, 5_000, 40_000, 300_000][i % 4];
            let key = format!("writer-{writer}-{i:04}");
            let value = bytes(size, writer * 10_000 + i as u64);
            let ended = cluster.run_with(&["put", &key, "--timeout", "2s"], &value);
            match ended.code {
                0 => drop(acknowledged.lock().unwrap().insert(key, value)),
                // The cluster was gone before, or became so meanwhile.
                5 | 8 => return,
                code => panic!("{code}: {}", ended.stderr),
            }
        }
    };
    thread::scope(|scope| {
        for i in 0..3 {
            let cluster = &cluster;
            scope.spawn(move || writer(cluster, i));
        }
        wait_until(|| acknowledged.lock().unwrap().len() >= 60);
        for server in servers() {
            signal(cluster.pid(&server), Signal::KILL);
        }
        stop.store(true, Ordering::Relaxed);
    });
    let ended = cluster.wait();
    assert_eq!(ended.code, 1, "{}", ended.stderr);
    assert!(
        ended.stderr.contains("was ended by signal 9"),
        "{}",
        ended.stderr
    );
    assert!(
        ended.stderr.contains("no server is left"),
        "{}",
        ended.stderr
    );
    let cluster = cluster.start_again(&[]);
    let acknowledged = acknowledged.into_inner().unwrap();
    assert!(acknowledged.len() >= 60);
    assert_all_there(&cluster, &acknowledged);
    let listed = cluster.run(&["ls"]).done();
    let listed: Vec<&str> = listed.text().lines().collect();
    for key in acknowledged.keys() {
        assert!(listed.contains(&key.as_str()), "{key} is not listed");
    }
}

#[test]
fn with_two_servers_down_operations_fail_in_time_and_recover() {
    let mut cluster = Cluster::start(&[]);
    put(&cluster, "key", b"old");
    cluster.kill("s4");
    cluster.kill("s5");
    let written = cluster.run_with(&["put", "key", "--timeout", "1s"], b"new");
    assert!([5, 8].contains(&written.code), "{}", written.stderr);
    for words in [
        "no quorum for 'default'",
        "ec [5,3]",
        "3 of 4 needed servers",
        "s4 refused",
    ] {
        assert!(
            written.stderr.contains(words),
            "{words}: {}",
            written.stderr
        );
    }
    let read = cluster.run(&["get", "key", "--timeout", "1s"]);
    read.refused(5, &["no quorum for 'default'", "s1 ok", "s5 refused"]);
    let json = cluster.run(&["get", "key", "--timeout", "1s", "--version-only", "--json"]);
    let object: serde_json::Value = serde_json::from_str(&json.stderr).expect("one object");
    assert_eq!(
        (object["code"].as_i64(), object["kind"].as_str()),
        (Some(5), Some("unavailable"))
    );
    // The root domain has a majority still.
    let status = cluster.run(&["status", "--json"]).done().objects();
    assert_eq!(status[0]["serving"], 3);
    // With one more down the root domain has none: what can be seen is shown all the same.
    cluster.kill("s3");
    let status = cluster.run(&["status", "--json", "--timeout", "1s"]);
    assert_eq!(status.code, 5, "{}", status.stderr);
    assert!(status.stderr.contains("root domain"), "{}", status.stderr);
    let serving = status.objects();
    let serving = serving.iter().filter(|line| line["state"] == "serving");
    assert_eq!(serving.count(), 2);
    cluster.start_server("s3");
    cluster.start_server("s4");
    cluster.restart("s5");
    wait_until(|| {
        ["s3", "s4"]
            .iter()
            .all(|server| cluster.state(server) == "serving")
    });
    let value = cluster.run(&["get", "key"]).done();
    match value.text() {
        "new" | "old" if written.code == 8 => {}
        "old" => {}
        other => panic!("'{other}' was never acknowledged nor of unknown outcome"),
    }
    put(&cluster, "key", b"newer");
    assert_eq!(cluster.run(&["get", "key"]).done().text(), "newer");
}

#[test]
fn an_interrupted_write_says_what_it_may_have_done() {
    let mut cluster = Cluster::start(&[]);
    cluster.kill("s4");
    cluster.kill("s5");
    let mut write = cluster.spawn(&["put", "key", "/dev/null", "--timeout", "50s", "-v"]);
    let mut lines = BufReader::new(write.stderr.take().unwrap())
        .lines()
        .map_while(Result::ok);
    // From there on it waits for a quorum.
    lines
        .find(|line| line.contains("the value is read"))
        .expect("it is short");
    signal(write.id().try_into().unwrap(), Signal::INT);
    let said: Vec<String> = lines.collect();
    assert_eq!(write.wait().unwrap().code(), Some(130), "{said:?}");
    // With -v its connections may have something to log to the very end; what it says itself ends with this.
    let mut own = said.iter().filter(|line| !line.contains("DEBUG"));
    let last = own.next_back().expect("it says something");
    assert!(
        last.contains("the write of 'key' may have been applied"),
        "{last}"
    );
}

#[test]
fn a_stopped_server_holds_nobody_up() {
    let mut cluster = Cluster::start(&[]);
    put(&cluster, "before", &bytes(1_000_000, 1));
    cluster.signal("s3", Signal::STOP);
    // A deadline far below the time for which the server says nothing.
    let within = |arguments: &[&str], input: &[u8]| {
        let arguments: Vec<&str> = arguments
            .iter()
            .copied()
            .chain(["--timeout", "5s"])
            .collect();
        cluster.run_with(&arguments, input).done()
    };
    for size in [1, 100_000, 5_000_000] {
        let (key, value) = (format!("during-{size}"), bytes(size, 3));
        within(&["put", &key], &value);
        assert!(within(&["get", &key], b"").stdout == value, "{size} bytes");
        within(&["stat", &key], b"");
    }
    assert!(within(&["get", "before"], b"").stdout == bytes(1_000_000, 1));
    within(&["rm", "before"], b"");
    assert_eq!(within(&["ls"], b"").text().lines().count(), 3);
    assert_ne!(cluster.state("s3"), "serving");
    cluster.signal("s3", Signal::CONT);
    wait_until(|| cluster.state("s3") == "serving");
}

#[test]
fn a_server_that_dies_is_restarted_if_asked_for() {
    let mut cluster = Cluster::start(&["--restart"]);
    put(&cluster, "key", b"value");
    let before = cluster.pid("s2");
    cluster.signal("s2", Signal::KILL);
    wait_until(|| cluster.starts("s2") == 2 && cluster.state("s2") == "serving");
    assert_ne!(cluster.pid("s2"), before);
    assert_eq!(cluster.run(&["get", "key"]).done().text(), "value");
    let ended = cluster.stop();
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    assert!(
        ended.stderr.contains("s2 was ended by signal 9"),
        "{}",
        ended.stderr
    );
}

/// A server that was away when an object was written does not hold it, and `stat` shows that.
#[test]
fn stat_shows_what_each_server_holds() {
    let mut cluster = Cluster::start(&["--servers", "5"]);
    cluster.run_with(&["put", "old", "-"], b"before").done();
    cluster.kill("s2");
    cluster.run_with(&["put", "k", "-"], b"without s2").done();
    cluster.run_with(&["put", "old", "-"], b"after").done();
    let of_s2 = |cluster: &Cluster, key: &str| {
        let mut info = cluster.run(&["stat", key, "--json"]).done().objects();
        let placement = info.remove(0)["placement"].take();
        let places = placement.as_array().unwrap().iter();
        for other in places.clone().filter(|place| place["server"] != "s2") {
            assert_eq!(other["holds"], "element", "{other}");
        }
        let mut mine = places.filter(|place| place["server"] == "s2");
        mine.next().unwrap().clone()
    };
    assert_eq!(of_s2(&cluster, "k")["holds"], "unknown");
    restart_unrepaired(&mut cluster, "s2");
    assert_eq!(of_s2(&cluster, "k")["holds"], "missing");
    let older = of_s2(&cluster, "old");
    assert_eq!(older["holds"], "other", "{older}");
    assert!(
        older["version"].as_str().unwrap().starts_with("1-"),
        "{older}"
    );
    let shown = cluster.run(&["stat", "k"]).done();
    assert!(shown.text().contains("): MISSING"), "{}", shown.text());
    // Where it belongs, without asking.
    let rule = cluster.run(&["stat", "k", "--rule"]).done();
    assert!(!rule.text().contains("MISSING") && rule.text().contains("s2 element"));
    // What is written from now on it holds.
    cluster.run_with(&["put", "k", "-"], b"with s2").done();
    wait_until(|| of_s2(&cluster, "k")["holds"] == "element");
}

/// Starts a server that was killed, which does not repair itself.
fn restart_unrepaired(cluster: &mut Cluster, server: &str) {
    cluster.start_server_with(server, &["--repair-rate", "0"]);
    wait_until(|| cluster.state(server) == "serving");
}

/// Writes objects, a large one and a file while s2 is away; how many are below full redundancy then.
fn write_without_s2(cluster: &mut Cluster) -> u64 {
    let file = cluster.folder().join("file");
    fs::write(&file, bytes(300_000, 4)).expect("the folder is there");
    cluster.run(&["repair", "status"]).done();
    cluster.kill("s2");
    for i in 0..20 {
        let value = bytes(i * 3000, i as u64);
        cluster
            .run_with(&["put", &format!("k{i}"), "-"], &value)
            .done();
    }
    let large = bytes(9 << 20, 3);
    cluster.run_with(&["put", "large", "-"], &large).done();
    let file = file.to_str().expect("it is text");
    cluster.run(&["file", "push", "shared", file]).done();
    // Who does not answer, and what follows from it, is said.
    let away = cluster.run(&["repair", "status", "--json"]);
    assert_eq!(away.code, 1, "{}", away.stderr);
    assert!(
        away.stderr.contains("s2 repairs itself once it runs"),
        "{}",
        away.stderr
    );
    let mut reports = away.objects().into_iter();
    let report = reports
        .find(|it| it["domain"] == "default")
        .expect("it is listed");
    assert_eq!(report["waiting_for"], serde_json::json!(["s2"]), "{report}");
    let below = report["not_full"].as_u64().expect("a number");
    assert!(below >= 24, "{report}");
    below
}

/// Another server may fail now: s2 holds its part of everything.
fn assert_s2_is_whole(cluster: &mut Cluster) {
    cluster.run(&["repair", "status"]).done();
    cluster.kill("s4");
    let large = cluster.run(&["get", "large"]).done();
    assert!(large.stdout == bytes(9 << 20, 3));
    for i in 0..20 {
        let got = cluster.run(&["get", &format!("k{i}")]).done();
        assert!(got.stdout == bytes(i * 3000, i as u64), "k{i}");
    }
}

/// A server fetches the objects that were written while it was away, including blocks of large values and of files.
#[test]
fn a_server_that_was_away_repairs_itself() {
    repair_itself("ec");
}

/// A server repairs itself where a round says which versions are complete.
#[test]
fn a_server_with_coded_atomic_storage_repairs_itself() {
    repair_itself("cas");
}

fn repair_itself(kind: &str) {
    let mut cluster = Cluster::start(&["--servers", "5", "--dap", kind]);
    write_without_s2(&mut cluster);
    cluster.restart("s2");
    wait_until(|| cluster.run(&["repair", "status"]).code == 0);
    wait_until(|| {
        let status = cluster.run(&["status", "--json"]).done().objects();
        let domain = status.iter().find(|it| it["domain"] == "default");
        let domain = domain.expect("it is listed");
        let is_proven = domain["proven_seconds"].is_u64() && domain["missing"] == json!({});
        status[0]["lacking"] == 0 && status[0]["proven_seconds"].is_u64() && is_proven
    });
    let spare_now = |cluster: &Cluster| {
        let plan = ["reconfig", "plan", "default", "--delta", "9", "--json"];
        let plan = cluster.run(&plan).done().objects().remove(0);
        assert_eq!(plan["old"]["fragments_spare"], 2, "{plan}");
        plan["fragments_spare_now"].as_u64().expect("a number")
    };
    assert_eq!(spare_now(&cluster), 2);
    cluster.kill("s5");
    cluster.start_server("s5");
    wait_until(|| cluster.state("s5") == "serving");
    // It looks again within its first rounds.
    wait_until(|| spare_now(&cluster) == 2);
    // It has read each value once: a manifest counts for nothing beside its blocks.
    let admin = cluster.port() + 91;
    let read = value(&metrics(admin), "areo_repair_read_bytes_total");
    assert!((9e6..12e6).contains(&read), "{read}");
    assert_s2_is_whole(&mut cluster);
}

/// Environment variable with the number of kills in the test below.
const KILLS: &str = "AREO_REPAIR_KILLS";

/// Repaired objects are durable and listed: a killed server continues where it stopped, however often it is killed.
/// `AREO_REPAIR_KILLS` sets the number of kills.
#[test]
fn a_server_that_is_killed_while_it_repairs_itself_goes_on() {
    let kills: u32 = std::env::var(KILLS).map_or(4, |kills| kills.parse().expect("a number"));
    // More than a server brings itself before it is killed.
    let objects = 10 * kills;
    let mut cluster = Cluster::start(&["--servers", "5"]);
    let held_by_s2 = |cluster: &Cluster| {
        let now = metrics(cluster.port() + 91);
        value(&now, "areo_store_objects")
    };
    let empty = held_by_s2(&cluster);
    cluster.kill("s2");
    for i in 0..objects {
        let value = bytes(100_000, u64::from(i));
        let key = format!("k{i}");
        cluster.run_with(&["put", &key, "-"], &value).done();
    }
    let mut held = empty;
    for _ in 0..kills {
        cluster.start_server_with("s2", &["--repair-rate", "1MiB"]);
        wait_until(|| cluster.state("s2") == "serving");
        let before = held;
        wait_until(|| {
            held = held_by_s2(&cluster);
            assert!(held >= before, "{held} of {before} objects are left");
            held > before
        });
        cluster.kill("s2");
    }
    assert!(
        held < empty + f64::from(objects),
        "it was killed before the end"
    );
    cluster.restart("s2");
    wait_until(|| cluster.run(&["repair", "status"]).code == 0);
    cluster.kill("s4");
    for i in 0..objects {
        let got = cluster.run(&["get", &format!("k{i}")]).done();
        assert!(got.stdout == bytes(100_000, u64::from(i)), "k{i}");
    }
}

/// A client repairs a server that does not repair itself.
#[test]
fn a_client_repairs_all_servers() {
    let mut cluster = Cluster::start(&["--servers", "5"]);
    let below = write_without_s2(&mut cluster);
    restart_unrepaired(&mut cluster, "s2");
    let listed = cluster.run(&["repair", "ls", "--json"]).done().objects();
    assert_eq!(listed.len() as u64, below);
    for object in &listed {
        assert_eq!(object["state"], "waiting", "{object}");
        assert_eq!(object["lacking"], serde_json::json!(["s2"]), "{object}");
    }
    assert!(
        listed
            .iter()
            .any(|it| it["key"] == "k7" && it["kind"] == "object")
    );
    let retry = |more: &[&str]| cluster.run(&[&["repair", "retry", "--json"], more].concat());
    let one = retry(&["k7"]).done().objects().remove(0);
    assert_eq!(
        (&one["objects"], &one["repaired"], &one["not_full"]),
        (&1.into(), &1.into(), &0.into())
    );
    retry(&["k"]).refused(3, &["there is no object 'k'"]);
    let report = retry(&[]).done().objects().remove(0);
    assert_eq!(
        (report["repaired"].as_u64(), report["not_full"].as_u64()),
        (Some(below - 1), Some(0))
    );
    assert_s2_is_whole(&mut cluster);
}
