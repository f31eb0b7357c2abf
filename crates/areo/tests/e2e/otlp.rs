//! Traces at a collector: what clients and servers export, and what it costs if the collector is away.

mod phoenix;
mod receiver;

use crate::cluster::{Cluster, Variables, wait_until};
use crate::metrics::{metrics, value};
use receiver::{Collector, ReceivedRequest, hexadecimal};
use serde_json::Value;
use std::collections::BTreeMap;
use std::net::TcpListener;

fn variables(endpoint: &str, more: &[(&'static str, &str)]) -> Variables {
    let mut variables = vec![
        ("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint.to_owned()),
        // Servers deliver soon.
        ("OTEL_BSP_SCHEDULE_DELAY", "50".to_owned()),
    ];
    variables.extend(
        more.iter()
            .map(|(name, value)| (*name, (*value).to_owned())),
    );
    variables
}

/// The facts that two collectors must agree on for each span: name, parent, process, begin and end.
type Facts = BTreeMap<String, (String, String, String, u64, u64)>;

fn shown(spans: &[Value]) -> Facts {
    let text = |span: &Value, key: &str| span[key].as_str().unwrap_or("").to_owned();
    let fact = |span: &Value| {
        let start = span["start_ns"].as_u64().expect("it began");
        let end = start + span["duration_ns"].as_u64().expect("it took its time");
        let facts = (
            text(span, "name"),
            text(span, "parent"),
            text(span, "process"),
        );
        (text(span, "span"), (facts.0, facts.1, facts.2, start, end))
    };
    spans.iter().map(fact).collect()
}

fn exported(received: &[ReceivedRequest]) -> Facts {
    let fact = |received: &ReceivedRequest| {
        let span = &received.span;
        let instance = received.resource.get("service.instance.id");
        let process = instance.map_or("client", String::as_str).to_owned();
        let (start, end) = (span.start_time_unix_nano, span.end_time_unix_nano);
        let parent = hexadecimal(&span.parent_span_id);
        let facts = (span.name.clone(), parent, process, start, end);
        (hexadecimal(&span.span_id), facts)
    };
    received.iter().map(fact).collect()
}

/// An operation with the given protocol: the collector gets the tree that `areo trace` shows.
fn arrives(protocol: &str, (collector, endpoint): (Collector, String)) {
    let cluster = Cluster::start_with(variables(
        &endpoint,
        &[
            ("OTEL_EXPORTER_OTLP_PROTOCOL", protocol),
            ("OTEL_EXPORTER_OTLP_HEADERS", "x-tenant=t1"),
            (
                "OTEL_RESOURCE_ATTRIBUTES",
                "deployment.environment.name=test",
            ),
        ],
    ));
    let put = cluster.run_with(&["put", "a/secret", "-"], &vec![7; 100_000]);
    assert_eq!(put.done().stderr.matches("not exported").count(), 0);
    let last = cluster.run(&["--json", "trace", "last"]).done().objects();
    let id = last[0]["trace"].as_str().expect("it has one").to_owned();
    let mut received = Vec::new();
    wait_until(|| {
        let spans = cluster.run(&["--json", "trace", &id]).done().objects();
        received = collector.trace(&id);
        shown(&spans) == exported(&received)
    });
    let facts = exported(&received);
    assert_eq!(facts.len(), received.len(), "each span arrives once");
    let names: Vec<&str> = facts.values().map(|(name, ..)| &**name).collect();
    for name in [
        "areo.write",
        "phase1",
        "ec.encode",
        "net.quorum",
        "server.access",
        "store.sync",
    ] {
        assert!(names.contains(&name), "no {name} in {names:?}");
    }
    let servers = facts.values().filter(|(name, ..)| name == "server.access");
    let servers: std::collections::BTreeSet<&str> =
        servers.map(|(_, _, process, ..)| &**process).collect();
    assert!(servers.len() >= 4, "of a quorum: {servers:?}");
    for (name, parent, process, start, end) in facts.values() {
        let Some((above, _, whose, began, ended)) = facts.get(parent) else {
            assert_eq!(
                (&**name, &**parent),
                ("areo.write", ""),
                "all others have a parent"
            );
            continue;
        };
        match name.starts_with("server.") {
            true => assert_eq!((&**above, &**whose), ("net.quorum", "client")),
            false => assert!(whose == process && began <= start && end <= ended, "{name}"),
        }
    }
    for received in &received {
        let is_server = received.resource.contains_key("service.instance.id");
        let service = if is_server { "areo-server" } else { "areo" };
        assert_eq!(received.resource["service.name"], service);
        assert_eq!(received.resource["deployment.environment.name"], "test");
        assert_eq!(received.tenant.as_deref(), Some("t1"));
        assert!(
            !format!("{received:?}").contains("secret"),
            "keys are nobody's business"
        );
    }
    let encoded = received
        .iter()
        .find(|received| received.span.name == "ec.encode");
    let bytes = encoded.and_then(|encoded| encoded.attribute("areo.bytes"));
    assert_eq!(bytes.as_deref(), Some("100000"));
}

#[test]
fn a_collector_gets_the_trace_of_client_and_servers_over_http() {
    arrives("http/protobuf", Collector::http());
}

#[test]
fn a_collector_gets_the_trace_of_client_and_servers_over_grpc() {
    arrives("grpc", Collector::grpc());
}

#[test]
fn a_dead_collector_costs_nothing_but_a_counted_loss() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("there is a port");
    let endpoint = format!("http://{}", listener.local_addr().expect("it listens"));
    drop(listener);
    let cluster = Cluster::start_with(variables(&endpoint, &[]));
    let admin = cluster.port() + 90;
    let lost = || {
        value(
            &metrics(admin),
            "areo_telemetry_lost_spans_total{reason=\"collector\"}",
        )
    };
    for round in 1..=3 {
        let put = cluster.run_with(&["put", "key", "-"], b"value").done();
        assert!(
            put.stderr.contains("spans were not exported"),
            "round {round}: {}",
            put.stderr
        );
        let get = cluster.run(&["--quiet", "get", "key"]).done();
        assert_eq!((get.text(), &*get.stderr), ("value", ""));
    }
    wait_until(|| lost() >= 3.0);
    let delivered = value(&metrics(admin), "areo_telemetry_exported_spans_total");
    assert!(delivered < 0.5, "{delivered}");
}

#[test]
fn variables_that_make_no_sense_are_named_and_done_without() {
    let cluster = Cluster::start(&[]);
    for (name, value, words) in [
        (
            "OTEL_EXPORTER_OTLP_PROTOCOL",
            "http/json",
            "grpc are spoken here",
        ),
        (
            "OTEL_EXPORTER_OTLP_ENDPOINT",
            "https://localhost:4318",
            "TLS is not built in",
        ),
        ("OTEL_TRACES_SAMPLER", "jaeger_remote", "always_on"),
    ] {
        let variables = variables("http://127.0.0.1:9", &[(name, value)]);
        let put = cluster
            .run_in(&variables, &["put", "key", "-"], b"x")
            .done();
        assert!(
            put.stderr.contains(name) && put.stderr.contains(words),
            "{}",
            put.stderr
        );
    }
    let off = variables("http://127.0.0.1:9", &[("OTEL_SDK_DISABLED", "true")]);
    let put = cluster.run_in(&off, &["put", "key", "-"], b"x").done();
    assert!(!put.stderr.contains("exported"), "{}", put.stderr);
}
