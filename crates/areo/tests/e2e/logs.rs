//! The logs of servers and commands: one line for each event, with the trace that it belongs to.

use crate::cluster::{Cluster, free_ports, signal, spawn};
use rustix::process::Signal;
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;

#[test]
fn a_server_logs_objects_and_cuts_a_flood() {
    let folder = tempfile::tempdir().expect("there is room for a directory");
    let data = folder.path().join("data");
    let data = data.to_str().expect("temporary directories are UTF-8");
    let address = format!("127.0.0.1:{}", free_ports());
    let mut server = spawn(&[
        "server", "--init", "--data", data, "--listen", &address, "--log", "json",
    ]);
    let mut lines = BufReader::new(server.stderr.take().expect("it is a pipe")).lines();
    let mut next = || {
        let line = lines.next().expect("it goes on").expect("it is text");
        serde_json::from_str::<Value>(&line).expect("every line is an object")
    };
    loop {
        let line = next();
        for key in ["timestamp", "level", "target", "message"] {
            assert!(line[key].is_string(), "no {key} in {line}");
        }
        if line["message"] == "serving" {
            assert_eq!(line["incarnation"], 1);
            break;
        }
    }
    // A connection with another protocol is logged, but not a hundred times.
    for _ in 0..100 {
        let mut stream = TcpStream::connect(&address).expect("it listens");
        stream.write_all(&[b'x'; 64]).expect("it reads");
        // Until the server has closed it: its line is written by then.
        let _ = BufReader::new(stream).lines().next();
    }
    signal(
        i32::try_from(server.id()).expect("process ids are small"),
        Signal::TERM,
    );
    let mut noise = 0;
    loop {
        let line = next();
        match line["message"].as_str() {
            Some("stopping") => break,
            Some("no hello") => noise += 1,
            _ => {}
        }
    }
    assert!((1..=20).contains(&noise), "{noise} lines");
    server.wait().expect("it is ours");
}

#[test]
fn what_goes_wrong_in_an_operation_is_logged_with_its_trace() {
    let mut cluster = Cluster::start(&[]);
    cluster.run_with(&["put", "key", "-"], b"x").done();
    // Quorums of [5,3] have four members.
    cluster.kill("s4");
    cluster.kill("s5");
    let put = cluster.run_with(&["-v", "put", "key", "-", "--timeout", "1s"], b"y");
    assert_eq!(put.code, 5, "{}", put.stderr);
    let trace = &cluster.run(&["--json", "trace", "last"]).done().objects()[0]["trace"];
    let trace = format!("trace_id={}", trace.as_str().expect("it is text"));
    let failed = put
        .stderr
        .lines()
        .find(|line| line.contains("what=areo.write"));
    let failed = failed.unwrap_or_else(|| panic!("not logged: {}", put.stderr));
    assert!(
        failed.contains("why=not_applied") && failed.ends_with(&trace),
        "{failed}"
    );
}
