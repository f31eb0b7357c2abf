//! Objects of any length: written and read in blocks, and what is left of them swept.

use crate::cluster::{Cluster, SERVERS, signal, wait_until};
use crate::values::bytes;
use rustix::process::Signal;
use serde_json::Value;
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Command, Stdio};

const MIB: usize = 1 << 20;

/// The line of `areo status` about blocks of the default domain; nothing if it has none.
fn blocks(cluster: &Cluster) -> Option<Value> {
    let lines = cluster.run(&["status", "--json"]).done().objects();
    let line = lines.iter().find(|line| line["blocks_of"] == "default");
    line.cloned()
}

/// Blocks of this kind, by what `areo status` says.
fn count(cluster: &Cluster, kind: &str) -> u64 {
    let count = |line: Value| line[kind]["blocks"].as_u64().expect("is a number");
    blocks(cluster).map_or(0, count)
}

fn swept(cluster: &Cluster) -> Value {
    let sweep = ["sweep", "--older-than", "0s", "--json"];
    cluster.run(&sweep).done().objects().remove(0)
}

/// Names in a folder, hidden ones too.
fn names(folder: &Path) -> usize {
    fs::read_dir(folder).expect("it can be read").count()
}

#[test]
fn a_file_comes_back_whole_in_ranges_and_from_standard_input() {
    let cluster = Cluster::start(&[]);
    let path = |name: &str| cluster.folder().join(name).to_str().unwrap().to_owned();
    // The last block is shorter than the others.
    let value = bytes(40 * MIB + 5, 1);
    fs::write(path("from"), &value).unwrap();
    cluster.run(&["put", "file", &path("from")]).done();
    cluster.run(&["get", "file", "-o", &path("to")]).done();
    assert!(fs::read(path("to")).unwrap() == value, "from a file");
    let put = ["put", "input", "-", "--block-size", "1MiB"];
    cluster.run_with(&put, &value).done();
    assert!(cluster.run(&["get", "input"]).done().stdout == value);
    let known = cluster.run(&["stat", "file", "--json"]).done().objects();
    assert_eq!(known[0]["bytes"], value.len());
    assert_eq!(
        (&known[0]["blocks"], &known[0]["block_bytes"]),
        (&11.into(), &(4 << 20).into())
    );
    let listed = cluster.run(&["ls", "--json"]).done().objects();
    let sizes: Vec<_> = listed.iter().map(|entry| entry["bytes"].as_u64()).collect();
    assert_eq!(sizes, [Some(value.len() as u64); 2]);
    let end = value.len() - 1;
    let ranges = [
        (0, 0),
        (0, 99),
        (4 * MIB - 1, 4 * MIB),
        (5 * MIB, 13 * MIB),
        (end, end),
    ];
    for (first, last) in ranges {
        let range = format!("{first}-{last}");
        let got = cluster.run(&["get", "file", "--range", &range]).done();
        assert!(got.stdout == value[first..=last], "{range}");
    }
    let tail = format!("{}-", 39 * MIB);
    let got = cluster.run(&["get", "file", "--range", &tail]).done();
    assert!(got.stdout == value[39 * MIB..], "to the end");
    // Of the blocks only those that the range touches travel.
    let got = [
        "get",
        "file",
        "--range",
        "0-9",
        "--stats",
        "-o",
        &path("few"),
        "--json",
    ];
    let got = cluster.run(&got).done().objects();
    assert_eq!(got[0]["bytes"], 10);
    assert!(
        got[0]["received_bytes"].as_u64().unwrap() < 8 << 20,
        "{got:?}"
    );
}

#[test]
fn ranges_and_blocks_that_cannot_be() {
    let cluster = Cluster::start(&["--durability", "memory", "--max-object", "1MiB"]);
    let path = |name: &str| cluster.folder().join(name).to_str().unwrap().to_owned();
    // Blocks are not larger than what servers take.
    cluster.run_with(&["put", "a"], &bytes(2 * MIB, 1)).done();
    for (range, code, word) in [
        ("5-4", 2, "ends before it begins"),
        ("x", 2, "0-99"),
        ("2097152-2097152", 2, "has 2097152 bytes"),
        ("0-2097152", 2, "has 2097152 bytes"),
        ("9999999-", 2, "has 2097152 bytes"),
    ] {
        let get = ["get", "a", "--range", range, "-o", &path("out")];
        cluster.run(&get).refused(code, &[word]);
    }
    assert!(!Path::new(&path("out")).exists());
    for (size, word) in [("4095", "4KiB"), ("65MiB", "64MiB"), ("2MiB", "1.0 MiB")] {
        let put = ["put", "b", "--block-size", size];
        cluster.run_with(&put, b"v").refused(2, &[word]);
    }
    cluster.run(&["get", "b"]).refused(3, &["b"]);
    let swept = cluster.run(&["sweep", "--older-than", "soon"]);
    swept.refused(2, &["'soon' is not a time"]);
}

/// Every read under a writer is one version, or ends because the blocks of the one that it was at are gone: each write
/// removes what it replaces.
#[test]
fn overwritten_under_readers() {
    let cluster = Cluster::start(&["--durability", "memory"]);
    let version = |round: u64| bytes(3 * MIB + 1 + round as usize, round);
    let put = ["put", "k", "--block-size", "256KiB"];
    let there = || ["live", "replaced", "aborted", "unfinished"].map(|kind| count(&cluster, kind));
    cluster.run_with(&put, &version(0)).done();
    let read = |last: &mut u64| {
        let read = cluster.run(&["get", "k"]);
        if read.code == 4 {
            assert!(read.stderr.contains("version"), "{}", read.stderr);
            return;
        }
        let read = read.done().stdout;
        let round = (read.len() - 3 * MIB - 1) as u64;
        assert!(read == version(round), "one version, whole");
        assert!(round >= *last, "and never an older one");
        *last = round;
    };
    std::thread::scope(|scope| {
        let readers: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| {
                    let mut last = 0;
                    (0..12).for_each(|_| read(&mut last));
                })
            })
            .collect();
        for round in 1..=12 {
            cluster.run_with(&put, &version(round)).done();
        }
        for reader in readers {
            reader.join().unwrap();
        }
    });
    assert_eq!(there(), [13, 0, 0, 0]);
    assert!(cluster.run(&["get", "k"]).done().stdout == version(12));
    let keeping = [&put[..], &["--keep-replaced"]].concat();
    cluster.run_with(&keeping, &version(13)).done();
    assert_eq!(there(), [13, 13, 0, 0], "for its readers");
    assert_eq!(swept(&cluster)["removed"]["uploads"], 1);
    cluster.run_with(&["put", "k"], b"small").done();
    assert_eq!(blocks(&cluster), None);
    cluster.run_with(&put, &version(14)).done();
    cluster.run(&["rm", "k"]).done();
    cluster.run(&["get", "k"]).refused(3, &["k"]);
    assert_eq!(blocks(&cluster), None);
}

/// A reader with a part of a value that is then deleted gets an error, and no byte of another value.
#[test]
fn a_reader_of_what_is_deleted_is_told() {
    let cluster = Cluster::start(&["--durability", "memory"]);
    // Longer than what is read ahead of a reader that does not get on.
    let value = bytes(64 * MIB, 1);
    let put = ["put", "k", "--block-size", "1MiB"];
    cluster.run_with(&put, &value).done();
    let mut reader = cluster.spawn(&["get", "k"]);
    let mut output = reader.stdout.take().unwrap();
    let mut got = vec![0; 1000];
    output.read_exact(&mut got).unwrap();
    cluster.run(&["rm", "k"]).done();
    assert_eq!(blocks(&cluster), None);
    output.read_to_end(&mut got).unwrap();
    let ended = reader.wait_with_output().unwrap();
    let said = String::from_utf8(ended.stderr).unwrap();
    assert_eq!(ended.status.code(), Some(4), "{said}");
    assert!(got.len() < value.len() && value.starts_with(&got));
}

/// For a deleted value in blocks servers keep the tombstone of its key; after the next round of repair they keep none
/// of its blocks.
#[test]
fn tombstones_of_blocks_go() {
    let cluster = Cluster::start(&["--durability", "memory"]);
    let put = ["put", "k", "--block-size", "64KiB"];
    cluster.run_with(&put, &bytes(MIB, 1)).done();
    let objects = |server: usize| cluster.number(&format!("s{server}"), "objects");
    wait_until(|| (1..=SERVERS).all(|server| objects(server) == Some(17)));
    cluster.run(&["rm", "k"]).done();
    wait_until(|| (1..=SERVERS).all(|server| objects(server) == Some(1)));
    cluster.run(&["get", "k"]).refused(3, &["k"]);
    assert_eq!(blocks(&cluster), None);
    cluster.run_with(&put, &bytes(MIB, 2)).done();
    assert!(cluster.run(&["get", "k"]).done().stdout == bytes(MIB, 2));
}

/// A writer that is killed leaves blocks, which no read returns and a sweep removes; the old version stays.
#[test]
fn what_a_killed_writer_leaves_is_swept() {
    let cluster = Cluster::start(&["--durability", "memory"]);
    cluster.run_with(&["put", "k"], &bytes(5 * MIB, 1)).done();
    let mut writer = Command::new(env!("CARGO_BIN_EXE_areo"))
        .args([
            "--cluster",
            &cluster.file(),
            "put",
            "k",
            "--block-size",
            "256KiB",
        ])
        .env("AREO_CONFIG", "")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut input = writer.stdin.take().unwrap();
    input.write_all(&bytes(2 * MIB, 2)).unwrap();
    input.flush().unwrap();
    // It waits for more.
    wait_until(|| count(&cluster, "unfinished") > 0);
    signal(writer.id().cast_signed(), Signal::KILL);
    writer.wait().unwrap();
    drop(input);
    let young = cluster.run(&["sweep", "--json"]).done().objects();
    assert_eq!(young[0]["removed"]["blocks"], 0, "it may only be slow");
    assert!(swept(&cluster)["removed"]["blocks"].as_u64().unwrap() > 0);
    assert_eq!(
        (count(&cluster, "unfinished"), count(&cluster, "aborted")),
        (0, 0)
    );
    assert!(cluster.run(&["get", "k"]).done().stdout == bytes(5 * MIB, 1));
}

/// A source that fails in the middle, Ctrl-C, and a reader without a place: nothing is written, and no file is left.
#[test]
fn what_fails_half_way_leaves_nothing() {
    let cluster = Cluster::start(&["--durability", "memory"]);
    let folder = cluster.folder().join("out");
    fs::create_dir(&folder).unwrap();
    let path = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    cluster.run_with(&["put", "k"], &bytes(9 * MIB, 1)).done();
    cluster
        .run(&["get", "k", "-o", "/dev/full"])
        .refused(1, &["/dev/full", "no space"]);
    // The file system lets it have a part of what it needs.
    let get = format!(
        "ulimit -f 4096; trap '' XFSZ; exec {} --cluster {} get k -o {}",
        env!("CARGO_BIN_EXE_areo"),
        cluster.file(),
        path("part")
    );
    let ended = Command::new("bash").args(["-c", &get]).output().unwrap();
    assert_eq!(ended.status.code(), Some(1), "{ended:?}");
    assert_eq!(names(&folder), 0, "no part of it");
    // It is stopped while it waits for input: the object is what it was.
    let mut put = cluster.command(&["put", "k", "/dev/zero"]);
    let writer = put.stderr(Stdio::piped()).spawn().unwrap();
    wait_until(|| count(&cluster, "unfinished") > 0);
    signal(writer.id().cast_signed(), Signal::INT);
    let ended = writer.wait_with_output().unwrap();
    let said = String::from_utf8(ended.stderr).unwrap();
    assert_eq!(ended.status.code(), Some(130), "{said}");
    assert!(said.contains("was not applied"), "{said}");
    assert_eq!(count(&cluster, "unfinished"), 0, "taken back");
    let spans = cluster.run(&["--json", "trace", "last"]).done().objects();
    let upload = spans.iter().find(|span| span["name"] == "areo.upload");
    let upload = upload.unwrap_or_else(|| panic!("what it did is kept: {spans:?}"));
    assert_eq!(upload["attributes"]["error.type"], "cancelled");
    assert!(cluster.run(&["get", "k"]).done().stdout == bytes(9 * MIB, 1));
    // A directory that is read like a file fails at its first byte; what was sent before a failure is taken back.
    let memory = cluster.run(&["put", "k", "/proc/self/mem"]);
    assert_ne!(memory.code, 0);
    assert!(cluster.run(&["get", "k"]).done().stdout == bytes(9 * MIB, 1));
}

/// The source of a value fails in the middle: the blocks that were sent are removed.
#[test]
fn a_source_that_fails_half_way_leaves_no_blocks() {
    let cluster = Cluster::start(&["--durability", "memory"]);
    cluster.run_with(&["put", "k"], &bytes(5 * MIB, 1)).done();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut source = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    // Which the sender never reads: its end is a reset then, an error for who reads from it.
    source.write_all(b"unread").unwrap();
    let (mut sender, _) = listener.accept().unwrap();
    let mut put = cluster.command(&["put", "k", "-", "--block-size", "256KiB"]);
    put.stdin(OwnedFd::from(source)).stderr(Stdio::piped());
    let writer = put.spawn().unwrap();
    sender.write_all(&bytes(9 * MIB, 2)).unwrap();
    wait_until(|| count(&cluster, "unfinished") > 0);
    drop((put, sender));
    let ended = writer.wait_with_output().unwrap();
    let said = String::from_utf8(ended.stderr).unwrap();
    assert_eq!(ended.status.code(), Some(1), "{said}");
    assert!(said.contains("reset"), "{said}");
    assert_eq!(
        ["unfinished", "aborted"].map(|kind| count(&cluster, kind)),
        [0, 0],
        "taken back at once"
    );
    assert!(cluster.run(&["get", "k"]).done().stdout == bytes(5 * MIB, 1));
}
