//! `areo trace`: one operation is one trace, from the client through every server to its disk.

use crate::cluster::{Cluster, areo, wait_until};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Spans by the id of the span that they are a part of.
type Parts<'a> = BTreeMap<&'a str, Vec<&'a Value>>;

fn parts(spans: &[Value]) -> Parts<'_> {
    let mut parts = Parts::new();
    for span in spans {
        let parent = span["parent"].as_str().unwrap_or("");
        parts.entry(parent).or_default().push(span);
    }
    for spans in parts.values_mut() {
        spans.sort_by_key(|span| span["start_ns"].as_u64());
    }
    parts
}

/// The names of the client's spans, indented.
fn outline(spans: &[Value]) -> String {
    fn below(parent: &str, depth: usize, parts: &Parts<'_>, out: &mut String) {
        for span in parts.get(parent).into_iter().flatten() {
            if span["process"] == "client" {
                let name = span["name"].as_str().expect("spans have names");
                out.extend(["  ".repeat(depth).as_str(), name, "\n"]);
                below(
                    span["span"].as_str().expect("and ids"),
                    depth + 1,
                    parts,
                    out,
                );
            }
        }
    }
    let mut out = String::new();
    below("", 0, &parts(spans), &mut out);
    out
}

/// For each quorum call, in order: the spans of each server that took part, sorted.
fn served(spans: &[Value]) -> Vec<BTreeMap<String, Vec<String>>> {
    let parts = parts(spans);
    let name = |span: &Value| span["name"].as_str().expect("spans have names").to_owned();
    let of_call = |call: &Value| {
        let asked = parts.get(call["span"].as_str().expect("spans have ids"));
        let of_server = |served: &&Value| {
            let below = parts.get(served["span"].as_str().expect("spans have ids"));
            let mut names = vec![name(served)];
            names.extend(below.into_iter().flatten().map(|span| name(span)));
            (
                served["process"].as_str().expect("by a server").to_owned(),
                names,
            )
        };
        asked.into_iter().flatten().map(of_server).collect()
    };
    let mut calls: Vec<&Value> = spans
        .iter()
        .filter(|span| span["name"] == "net.quorum")
        .collect();
    calls.sort_by_key(|call| call["start_ns"].as_u64());
    calls.into_iter().map(of_call).collect()
}

fn last(cluster: &Cluster) -> Vec<Value> {
    cluster.run(&["--json", "trace", "last"]).done().objects()
}

#[test]
fn an_operation_is_one_trace_from_the_client_to_the_disks() {
    let cluster = Cluster::start(&[]);
    // Large enough to be coded.
    let value = vec![7; 100_000];
    // What comes first to a new domain makes it known to its servers, which is a write.
    cluster.run_with(&["put", "key", "-"], &value).done();
    cluster.run_with(&["put", "key", "-"], &value).done();
    let write = last(&cluster);
    let phase = |phase: &str, dap: &str, coded: &str| {
        format!("  {phase}\n    {dap}\n{coded}      net.quorum\n")
    };
    let expected = [
        "areo.write\n".to_owned(),
        phase("phase1", "dap.get_tag", ""),
        phase("phase2", "dap.put_data", "      ec.encode\n"),
    ];
    assert_eq!(outline(&write), expected.concat());
    let calls = served(&write);
    assert_eq!(calls.len(), 2, "a write takes two rounds");
    // Quorums of [5,3] have four members; the fifth may be late.
    let durable = ["server.access", "store.append", "store.sync"];
    // What a query sees of another operation's batch is durable before it is shown.
    let query = |names: &Vec<String>| *names == durable[..1] || *names == durable;
    assert!(calls[0].len() >= 4, "{calls:?}");
    assert!(calls[0].values().all(query), "{calls:?}");
    assert!(calls[1].len() >= 4, "{calls:?}");
    assert!(
        calls[1].values().all(|names| *names == durable),
        "{calls:?}"
    );
    assert!(write.iter().all(|span| span["trace"] == write[0]["trace"]));

    // A quiet read takes one round and decodes nothing; all is quiet once the servers know that the write is done.
    let expected = [
        "areo.read\n".to_owned(),
        phase("phase1", "dap.get_data", ""),
    ]
    .concat();
    let mut read = Vec::new();
    wait_until(|| {
        cluster.run(&["get", "key", "-o", "/dev/null"]).done();
        read = last(&cluster);
        outline(&read) == expected
    });
    let get = read.iter().find(|span| span["name"] == "dap.get_data");
    let about = &get.expect("it is there")["attributes"];
    assert_eq!(
        (&about["n"], &about["k"], &about["quorum"]),
        (&5.into(), &3.into(), &4.into())
    );
    assert_eq!(
        (&about["dap"], &about["bytes"], &about["configuration"]),
        (&"ec".into(), &100_000.into(), &0.into())
    );
}

#[test]
fn other_operations_are_made_of_reads_and_writes() {
    let cluster = Cluster::start(&[]);
    cluster.run_with(&["put", "key", "-"], b"x").done();
    cluster.run(&["stat", "key"]).done();
    let stat = "areo.stat\n  phase1\n    dap.get_data\n      net.quorum\n";
    assert_eq!(outline(&last(&cluster)), stat);
    let version = cluster.run(&["get", "key", "--version-only"]).done();
    let put_if = ["put", "--if-version", version.text(), "key", "-"];
    cluster.run_with(&put_if, b"y").done();
    let covered = "areo.cvr_write\n  phase1\n    dap.get_data\n      net.quorum\n  phase2\n    dap.put_data\n      net.quorum\n";
    assert_eq!(outline(&last(&cluster)), covered);
    cluster
        .run_with(&put_if, b"z")
        .refused(4, &["read it and try again"]);
    assert_eq!(
        outline(&last(&cluster)),
        stat.replace("areo.stat", "areo.cvr_write"),
        "a write that does not write is a read"
    );
    cluster.run(&["rm", "key"]).done();
    let write = "areo.write\n  phase1\n    dap.get_tag\n      net.quorum\n  phase2\n    dap.put_data\n      net.quorum\n";
    let parts: Vec<&str> = stat.lines().chain(write.lines()).collect();
    let expected = format!("areo.delete\n  {}\n", parts.join("\n  "));
    assert_eq!(outline(&last(&cluster)), expected);
    cluster.run(&["ls"]).done();
    assert_eq!(outline(&last(&cluster)), "areo.list\n  net.quorum\n");
}

/// The newest of the last traces that are this operation as a whole.
fn newest(cluster: &Cluster, operation: &str) -> Vec<Value> {
    let several = ["--json", "trace", "last", "--count", "5"];
    let all = cluster.run(&several).done().objects();
    let is_whole = |span: &&Value| span["parent"].is_null() && span["name"] == operation;
    let whole = all.iter().find(is_whole);
    let id = &whole.unwrap_or_else(|| panic!("no {operation} in {all:?}"))["trace"];
    let of_it = all.iter().filter(|span| span["trace"] == *id);
    of_it.cloned().collect()
}

/// Names of the parts of the outermost span.
fn parts_of_whole(spans: &[Value]) -> BTreeSet<String> {
    let whole = spans.iter().find(|span| span["parent"].is_null());
    let id = &whole.expect("a trace begins somewhere")["span"];
    let name = |span: &Value| span["name"].as_str().expect("spans have names").to_owned();
    let of_whole = spans.iter().filter(|span| span["parent"] == *id);
    of_whole.map(name).collect()
}

#[test]
fn a_file_and_a_value_in_blocks_are_one_trace() {
    let cluster = Cluster::start(&[]);
    let local = cluster.folder().join("local");
    std::fs::write(&local, vec![7; 100_000]).expect("there is room");
    let local = local.to_str().expect("temporary directories are UTF-8");
    cluster.run(&["file", "push", "notes", local]).done();
    let parts = parts_of_whole(&newest(&cluster, "areo.file.update"));
    for part in ["file.divide", "file.identify", "phase2", "areo.cvr_write"] {
        assert!(parts.contains(part), "no {part} in {parts:?}");
    }
    cluster.run(&["file", "cat", "notes"]).done();
    let parts = parts_of_whole(&newest(&cluster, "areo.file.read"));
    assert!(parts.contains("areo.read"), "{parts:?}");
    cluster.run(&["file", "rm", "notes"]).done();
    newest(&cluster, "areo.file.remove");

    let put = ["put", "key", "-", "--block-size", "128KiB"];
    cluster.run_with(&put, &vec![7; 300_000]).done();
    // The user did not ask for the sweep after the command.
    let upload = last(&cluster);
    assert_eq!(upload, newest(&cluster, "areo.upload"));
    let coded = upload.iter().filter(|span| span["name"] == "ec.encode");
    assert!(coded.count() >= 3, "every block is a part of it");
    // The manifest, then the blocks, as many side by side as there is room for.
    let block = "    areo.read\n      phase1\n        dap.get_data\n          net.quorum\n";
    let manifest = "areo.read\n  phase1\n    dap.get_data\n      net.quorum\n  areo.download\n";
    for (arguments, blocks) in [
        (&["get", "key", "-o", "/dev/null"][..], 3),
        (&["get", "key", "--range", "0-9", "-o", "/dev/null"], 1),
    ] {
        let expected = [manifest.to_owned(), block.repeat(blocks)].concat();
        wait_until(|| {
            cluster.run(arguments).done();
            outline(&last(&cluster)) == expected
        });
    }
    cluster.run(&["sweep"]).done();
    assert_eq!(last(&cluster), newest(&cluster, "areo.sweep"));
}

#[test]
fn every_operation_is_one_trace_with_one_root() {
    let cluster = Cluster::start(&["--durability", "memory"]);
    let (pushed, pulled) = (
        cluster.folder().join("pushed"),
        cluster.folder().join("pulled"),
    );
    let [pushed, pulled] = [&pushed, &pulled].map(|path| path.to_str().expect("it is UTF-8"));
    std::fs::write(pushed, vec![7; 3_000_000]).expect("there is room");
    let mut before = 0;
    for arguments in [
        &["put", "key", pushed, "--block-size", "1MiB"][..],
        &["get", "key", "-o", "/dev/null"],
        &["get", "key", "--range", "5-2000000", "-o", "/dev/null"],
        &["stat", "key"],
        &["file", "push", "notes", pushed],
        &["file", "cat", "notes"],
        &["file", "pull", "notes", pulled],
        &["file", "rm", "notes"],
        &["rm", "key"],
    ] {
        cluster.run(arguments).done();
        let several = ["--json", "trace", "last", "--count", "50"];
        let spans = cluster.run(&several).done().objects();
        let traces: BTreeSet<&str> = spans
            .iter()
            .filter_map(|span| span["trace"].as_str())
            .collect();
        assert_eq!(traces.len(), before + 1, "{arguments:?}");
        before = traces.len();
        let known: BTreeSet<&str> = spans
            .iter()
            .filter_map(|span| span["span"].as_str())
            .collect();
        let is_root = |span: &&Value| {
            span["parent"]
                .as_str()
                .is_none_or(|parent| !known.contains(parent))
        };
        let roots: Vec<&Value> = spans
            .iter()
            .filter(is_root)
            .map(|span| &span["name"])
            .collect();
        assert_eq!(roots.len(), before, "{arguments:?}: {roots:?}");
    }
}

#[test]
fn a_failure_says_why_all_the_way_up() {
    let mut cluster = Cluster::start(&[]);
    cluster.run_with(&["put", "key", "-"], b"x").done();
    cluster
        .run(&["file", "cat", "nothing"])
        .refused(3, &["no file"]);
    let why = |spans: &[Value], name: &str| {
        let span = spans.iter().find(|span| span["name"] == name);
        let span = span.unwrap_or_else(|| panic!("no {name} in {spans:?}"));
        span["attributes"]["error.type"]
            .as_str()
            .map(ToOwned::to_owned)
    };
    assert_eq!(
        why(&last(&cluster), "areo.file.read").as_deref(),
        Some("not_found")
    );
    // Quorums of [5,3] have four members.
    cluster.kill("s4");
    cluster.kill("s5");
    let put = cluster.run_with(&["put", "key", "-", "--timeout", "1s"], b"y");
    assert_eq!(put.code, 5, "{}", put.stderr);
    let write = last(&cluster);
    for (name, expected) in [
        ("areo.write", "not_applied"),
        ("phase1", "unavailable"),
        ("dap.get_tag", "unavailable"),
        ("net.quorum", "unavailable"),
    ] {
        assert_eq!(why(&write, name).as_deref(), Some(expected), "{name}");
    }
    let shown = cluster.run(&["trace", "last"]).done();
    assert!(
        shown.text().contains("ERROR not_applied"),
        "{}",
        shown.text()
    );
}

#[test]
fn traces_are_shown_as_pictures_lists_and_sums() {
    let cluster = Cluster::start(&[]);
    let shown = cluster
        .run_with(&["--trace", "put", "a/secret", "-"], b"x")
        .done();
    assert!(
        shown.stderr.contains("areo.write") && shown.stderr.contains("store.sync"),
        "{}",
        shown.stderr
    );
    assert!(
        !shown.stderr.contains("secret"),
        "keys are nobody's business: {}",
        shown.stderr
    );
    let shown = cluster
        .run(&["--trace", "--trace-keys", "get", "a/secret"])
        .done();
    assert!(shown.stderr.contains("key a/secret"), "{}", shown.stderr);
    let traces = cluster
        .run(&["trace", "last", "--count", "10", "--list"])
        .done();
    let listed = cluster.run(&["trace", "last", "--count", "10", "--list", "--json"]);
    let listed = listed.done().objects();
    assert_eq!(listed.len(), 2, "one line for each trace");
    assert_eq!(listed[0]["operation"], "areo.read");
    let operations: Vec<&str> = traces
        .text()
        .lines()
        .skip(1)
        .filter_map(|line| line.split('\t').nth(1))
        .collect();
    assert_eq!(
        operations,
        ["areo.read", "areo.write"],
        "the last one first"
    );
    let first = traces.text().lines().nth(1).expect("it has operations");
    let id = first.split('\t').next().expect("it has an id").to_owned();
    assert!(
        cluster
            .run(&["trace", &id])
            .done()
            .text()
            .starts_with(&format!("trace {id} · areo.read"))
    );
    assert!(
        cluster
            .run(&["trace", "slow"])
            .done()
            .text()
            .contains("areo.write")
    );
    let folder = cluster.folder().display();
    let page = format!("{folder}/t.html");
    cluster.run(&["trace", &id, "--html", &page]).done();
    let page = std::fs::read_to_string(page).expect("it was written");
    assert!(page.contains("server.access") && page.contains(&id));
}

#[test]
fn two_traces_are_set_side_by_side() {
    let cluster = Cluster::start(&[]);
    cluster.run_with(&["put", "key", "-"], b"x").done();
    let write = last(&cluster)[0]["trace"].clone();
    cluster.run(&["get", "key", "-o", "/dev/null"]).done();
    let read = last(&cluster)[0]["trace"].clone();
    let ids = [&write, &read].map(|id| id.as_str().expect("it is text"));
    let compare = ["trace", "compare", ids[0], ids[1]];
    let shown = cluster.run(&compare).done();
    for part in [
        "areo.write | areo.read",
        "dap.get_tag",
        "dap.get_data",
        "rounds\t2\t",
        "communication",
    ] {
        assert!(shown.text().contains(part), "no {part} in {}", shown.text());
    }
    let rows = cluster
        .run(&[&["--json"], &compare[..]].concat())
        .done()
        .objects();
    let only_read = rows
        .iter()
        .find(|row| row["span"] == "dap.get_data")
        .expect("it is there");
    assert!(
        only_read["first"].is_null() && only_read["second"]["count"] == 1,
        "{only_read}"
    );
    let shares = rows.iter().filter(|row| row["first_ns"].is_number());
    assert_eq!(shares.count(), 6);
    let page = cluster.folder().join("both.html");
    let html = ["--html", page.to_str().expect("it is text")];
    cluster.run(&[&compare[..], &html].concat()).done();
    let page = std::fs::read_to_string(page).expect("it was written");
    let traces = format!("\"traces\":[\"{}\",\"{}\"]", ids[0], ids[1]);
    assert!(page.contains(&traces) && page.contains("\"went\":["));
    let names = page
        .split("\"domains\":{")
        .nth(1)
        .expect("names of domains");
    assert!(
        names
            .split('}')
            .next()
            .is_some_and(|it| it.ends_with(":\"default\"")),
        "by their ids"
    );
    let unknown = "0123456789abcdef0123456789abcdef";
    cluster
        .run(&["trace", "compare", ids[0], unknown])
        .refused(3, &["no process has trace", unknown]);
    cluster
        .run(&["trace", "compare", ids[0]])
        .refused(2, &["2 values"]);
    cluster
        .run(&["trace", "last", ids[0], ids[1]])
        .refused(2, &["trace compare"]);
}

#[test]
fn the_time_of_operations_is_added_up() {
    let cluster = Cluster::start(&[]);
    cluster.run_with(&["put", "key", "-"], b"x").done();
    let sums = cluster
        .run(&["--json", "trace", "summary", "--since", "1h"])
        .done()
        .objects();
    let write = sums
        .iter()
        .find(|row| row["span"] == "areo.write")
        .expect("there was one");
    assert_eq!(
        (&write["count"], &write["rounds"]),
        (&1.into(), &2.0.into())
    );
    let shares = write["shares"]
        .as_object()
        .expect("an operation has shares")
        .values();
    let all: f64 = shares
        .map(|share| share.as_f64().expect("a share is a number"))
        .sum();
    assert!(
        (all - 1.0).abs() < 1e-6,
        "every nanosecond went somewhere: {all}"
    );
}

#[test]
fn a_trace_that_nobody_knows_is_said_to_be_unknown() {
    let cluster = Cluster::start(&[]);
    cluster
        .run(&["trace", "last"])
        .refused(3, &["no operation is remembered yet"]);
    let id = "0123456789abcdef0123456789abcdef";
    cluster
        .run(&["trace", id])
        .refused(3, &["no process has trace", id]);
    cluster
        .run(&["trace", "summary"])
        .refused(3, &["no operation of that time"]);
    areo(&["trace", "fast"], b"").refused(2, &["last", "slow", "summary", "32 hexadecimal digits"]);
    cluster
        .run(&["--json", "trace", "last", "--html", "/nowhere/x.html"])
        .refused(2, &["either --json or --html"]);
    cluster
        .run(&["trace", "last", "--html", "/nowhere/x.html"])
        .refused(3, &["no operation"]);
}

#[test]
fn a_server_that_is_down_is_left_out_and_named() {
    let mut cluster = Cluster::start(&[]);
    cluster.kill("s5");
    cluster.run_with(&["put", "key", "-"], b"x").done();
    let shown = cluster.run(&["trace", "last"]).done();
    assert!(shown.text().contains("areo.write"), "{}", shown.text());
    let named = shown.stderr.matches("s5 (").count();
    assert_eq!(named, 1, "said once: {}", shown.stderr);
}
