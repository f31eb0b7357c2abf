//! Metrics and health of a gateway.

#![allow(clippy::unwrap_used, reason = "a test")]

use crate::cluster::{Cluster, free_ports, wait_until};
use crate::metrics::{metrics, value};
use crate::s3_client::{Caller, Gateway, call};
use rustix::process::Signal;
use std::path::Path;

/// Series of requests of an operation, with the class of their status.
fn requests(text: &str, operation: &str, class: &str) -> f64 {
    let labels = format!("class=\"{class}\",operation=\"{operation}\"");
    value(text, &format!("areo_s3_requests_total{{{labels}}}"))
}

#[test]
fn a_gateway_counts_its_requests() {
    let cluster = Cluster::start(&["--durability", "memory"]);
    let port = free_ports();
    let gateway = Gateway::start_with(&cluster, &["--metrics", &format!("127.0.0.1:{port}")]);
    let caller = Caller::of(Path::new(&cluster.file()));
    let request = |method, target| call(&gateway, &caller, method, target);
    let body = vec![7; 100_000];
    assert_eq!(request("PUT", "/photos").send().status, 200);
    let put = request("PUT", "/photos/secret-key").body(&body).send();
    assert_eq!(put.status, 200, "{put:?}");
    for _ in 0..3 {
        let got = request("GET", "/photos/secret-key").send();
        assert_eq!((got.status, got.body.len()), (200, body.len()));
    }
    assert_eq!(request("GET", "/photos/none").send().status, 404);
    assert_eq!(request("GET", "/photos/none").unsigned().send().status, 403);
    // A request is counted when its response has begun, which is before the caller has it.
    wait_until(|| value(&metrics(port), "areo_s3_connections") < 0.5);

    let text = metrics(port);
    for (operation, class, times) in [
        ("CreateBucket", "2xx", 1.0),
        ("PutObject", "2xx", 1.0),
        ("GetObject", "2xx", 3.0),
        ("GetObject", "4xx", 2.0),
        ("none", "4xx", 0.0),
    ] {
        let counted = requests(&text, operation, class);
        assert!((counted - times).abs() < 0.5, "{operation} {class}: {text}");
    }
    let is = |series: &str, expected: f64| {
        let counted = value(&text, series);
        assert!((counted - expected).abs() < 0.5, "{series}: {text}");
    };
    is(
        "areo_s3_request_seconds_count{operation=\"GetObject\"}",
        5.0,
    );
    is("areo_s3_errors_total{code=\"NoSuchKey\"}", 1.0);
    is("areo_s3_errors_total{code=\"AccessDenied\"}", 1.0);
    is("areo_s3_caller_lookups_total{how=\"asked\"}", 1.0);
    is("areo_s3_caller_lookups_total{how=\"kept\"}", 5.0);
    is("areo_s3_received_bytes_total", 100_000.0);
    let sent = value(&text, "areo_s3_sent_bytes_total");
    assert!((300_000.0..310_000.0).contains(&sent), "{text}");
    let puts = "areo_client_operations_total{operation=\"put\",outcome=\"ok\"}";
    assert!(text.contains(puts), "of its clients, too: {text}");
    assert!(
        !text.contains("secret-key") && !text.contains("photos"),
        "{text}"
    );
}

#[test]
fn a_gateway_is_ready_while_the_cluster_answers() {
    let mut cluster = Cluster::start(&["--durability", "memory"]);
    let gateway = Gateway::start(&cluster);
    let caller = Caller::of(Path::new(&cluster.file()));
    let health = |path| call(&gateway, &caller, "GET", path).unsigned().send();
    let ready = health("/-/health/ready");
    assert_eq!((ready.status, ready.text()), (200, "ready\n"));
    assert_eq!(health("/-/health/live").status, 200);
    assert_eq!(health("/-/health/other").status, 400, "of no bucket");
    let signed = call(&gateway, &caller, "GET", "/-/health/ready").send();
    assert_eq!(signed.status, 400, "of no bucket: {signed:?}");
    let servers = ["s1", "s2", "s3"];
    for server in servers {
        cluster.signal(server, Signal::STOP);
    }
    wait_until(|| health("/-/health/ready").status == 503);
    assert_eq!(health("/-/health/live").status, 200);
    for server in servers {
        cluster.signal(server, Signal::CONT);
    }
    wait_until(|| health("/-/health/ready").status == 200);
}
