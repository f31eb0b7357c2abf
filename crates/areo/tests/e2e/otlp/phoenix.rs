//! A collector that others have made and people run: Phoenix (`pip install arize-phoenix`), where it is installed. It is asked
//! for what it has kept.

use super::{shown, variables};
use crate::cluster::{Cluster, wait_until};
use crate::command::on_the_path;
use areo_fuzzing::not_run;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

const QUESTION: &str = "{\"query\":\"{projects{edges{node{spans(first:1000){edges{node\
    {name parentId context{traceId spanId}}}}}}}}\"}";

struct Phoenix {
    process: Child,
    http: u16,
    grpc: u16,
    _folder: TempDir,
}

impl Drop for Phoenix {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("there is a port");
    listener.local_addr().expect("it listens").port()
}

impl Phoenix {
    /// One that serves; none where it is not installed.
    fn start() -> Option<Phoenix> {
        if !on_the_path("phoenix") {
            not_run("there is no phoenix on the PATH");
            return None;
        }
        let folder = tempfile::tempdir().expect("there is room");
        let (http, grpc) = (free_port(), free_port());
        let process = Command::new("phoenix")
            .arg("serve")
            .env("PHOENIX_WORKING_DIR", folder.path())
            .env("PHOENIX_HOST", "127.0.0.1")
            .env("PHOENIX_PORT", http.to_string())
            .env("PHOENIX_GRPC_PORT", grpc.to_string())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("it is on the PATH");
        let phoenix = Phoenix {
            process,
            http,
            grpc,
            _folder: folder,
        };
        wait_until(|| phoenix.asked().is_some());
        Some(phoenix)
    }

    /// The spans that it has stored, by its own query.
    fn asked(&self) -> Option<Value> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.http)).ok()?;
        let head = format!(
            "POST /graphql HTTP/1.0\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            QUESTION.len()
        );
        stream.write_all(head.as_bytes()).ok()?;
        stream.write_all(QUESTION.as_bytes()).ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        let (head, body) = answer.split_once("\r\n\r\n")?;
        head.contains(" 200 ")
            .then(|| serde_json::from_str(body).expect("it answers JSON"))
    }

    /// The spans of a trace: name and parent, by identity.
    fn trace(&self, id: &str) -> BTreeMap<String, (String, String)> {
        let answer = self.asked().expect("it serves");
        let projects = answer["data"]["projects"]["edges"].as_array().cloned();
        let spans = |project: Value| project["node"]["spans"]["edges"].as_array().cloned();
        let spans = projects.unwrap_or_default().into_iter().filter_map(spans);
        let mut found = BTreeMap::new();
        for edge in spans.flatten() {
            let (node, context) = (&edge["node"], &edge["node"]["context"]);
            if context["traceId"] == id {
                let text = |value: &Value| value.as_str().unwrap_or("").to_owned();
                let fact = (text(&node["name"]), text(&node["parentId"]));
                found.insert(text(&context["spanId"]), fact);
            }
        }
        found
    }
}

#[test]
fn phoenix_keeps_the_trace_that_is_shown_here_over_http_and_grpc() {
    let Some(phoenix) = Phoenix::start() else {
        return;
    };
    for (protocol, port) in [("http/protobuf", phoenix.http), ("grpc", phoenix.grpc)] {
        let endpoint = format!("http://127.0.0.1:{port}");
        let more = [("OTEL_EXPORTER_OTLP_PROTOCOL", protocol)];
        let cluster = Cluster::start_with(variables(&endpoint, &more));
        cluster
            .run_with(&["put", "a", "-"], &vec![7; 100_000])
            .done();
        let last = cluster.run(&["--json", "trace", "last"]).done().objects();
        let id = last[0]["trace"].as_str().expect("it has one").to_owned();
        wait_until(|| {
            let spans = cluster.run(&["--json", "trace", &id]).done().objects();
            let here = shown(&spans).into_iter();
            let here = here.map(|(span, (name, parent, ..))| (span, (name, parent)));
            phoenix.trace(&id) == here.collect()
        });
    }
}
