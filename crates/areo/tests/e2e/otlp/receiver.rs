//! A small collector: takes OTLP over HTTP or gRPC, decodes it, and remembers the spans.

use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::{
    TraceService, TraceServiceServer,
};
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status};

/// A span, and who reported it.
#[derive(Clone, Debug)]
pub(crate) struct ReceivedRequest {
    /// Attributes of the resource, as text.
    pub(crate) resource: BTreeMap<String, String>,
    /// The header `x-tenant` of the request.
    pub(crate) tenant: Option<String>,
    pub(crate) span: Span,
}

impl ReceivedRequest {
    /// An attribute as text.
    pub(crate) fn attribute(&self, key: &str) -> Option<String> {
        attributes(&self.span.attributes).remove(key)
    }
}

fn attributes(all: &[KeyValue]) -> BTreeMap<String, String> {
    let text = |attribute: &KeyValue| {
        let value = attribute.value.as_ref()?.value.as_ref()?;
        let value = match value {
            Value::StringValue(text) => text.clone(),
            Value::IntValue(number) => number.to_string(),
            Value::BoolValue(bool) => bool.to_string(),
            other => panic!("no attribute of ours: {other:?}"),
        };
        Some((attribute.key.clone(), value))
    };
    all.iter().filter_map(text).collect()
}

/// A collector of spans. Clones share the received requests.
#[derive(Clone, Default)]
pub(crate) struct Collector(Arc<Mutex<Vec<ReceivedRequest>>>);

impl Collector {
    /// One that listens to OTLP over HTTP, and its address.
    pub(crate) fn http() -> (Collector, String) {
        let collector = Collector::default();
        let listener = TcpListener::bind("127.0.0.1:0").expect("there is a port");
        let address = listener.local_addr().expect("it listens");
        let taking = collector.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let taking = taking.clone();
                thread::spawn(move || taking.serve(&stream));
            }
        });
        (collector, format!("http://{address}"))
    }

    /// One that listens to OTLP over gRPC, and its address.
    pub(crate) fn grpc() -> (Collector, String) {
        let collector = Collector::default();
        let listener = TcpListener::bind("127.0.0.1:0").expect("there is a port");
        let address = listener.local_addr().expect("it listens");
        listener.set_nonblocking(true).expect("sockets can be that");
        let service = TraceServiceServer::new(collector.clone());
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .expect("there is a runtime");
            runtime.block_on(async {
                let listener = tokio::net::TcpListener::from_std(listener).expect("it is one");
                let server = tonic::transport::Server::builder().add_service(service);
                server
                    .serve_with_incoming(TcpIncoming::from(listener))
                    .await
            })
        });
        (collector, format!("http://{address}"))
    }

    /// The spans of this trace that have arrived.
    pub(crate) fn trace(&self, id: &str) -> Vec<ReceivedRequest> {
        let all = self.0.lock().expect("nobody panics with it");
        let of = |received: &&ReceivedRequest| hexadecimal(&received.span.trace_id) == id;
        all.iter().filter(of).cloned().collect()
    }

    fn take(&self, request: ExportTraceServiceRequest, tenant: Option<&str>) {
        let mut all = self.0.lock().expect("nobody panics with it");
        for of_resource in request.resource_spans {
            let resource = of_resource.resource.expect("spans say who reports them");
            let resource = attributes(&resource.attributes);
            let spans = of_resource.scope_spans.into_iter();
            all.extend(
                spans
                    .flat_map(|of_scope| of_scope.spans)
                    .map(|span| ReceivedRequest {
                        resource: resource.clone(),
                        tenant: tenant.map(ToOwned::to_owned),
                        span,
                    }),
            );
        }
    }

    /// Requests of one connection, until it closes.
    fn serve(&self, stream: &TcpStream) {
        let mut reader = BufReader::new(stream);
        loop {
            let mut lines = Vec::new();
            loop {
                let mut line = String::new();
                if reader.read_line(&mut line).unwrap_or(0) == 0 {
                    return;
                }
                match line.trim_end() {
                    "" => break,
                    line => lines.push(line.to_ascii_lowercase()),
                }
            }
            assert!(lines[0].starts_with("post /v1/traces "), "{lines:?}");
            let header = |name: &str| lines.iter().find_map(|line| line.strip_prefix(name));
            assert_eq!(header("content-type: "), Some("application/x-protobuf"));
            let length = header("content-length: ").expect("the body has a length");
            let mut body = vec![0; length.parse().expect("it is a number")];
            if reader.read_exact(&mut body).is_err() {
                return;
            }
            let request = ExportTraceServiceRequest::decode(&*body).expect("the body is OTLP");
            self.take(request, header("x-tenant: "));
            let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
            if (&mut &*stream).write_all(answer).is_err() {
                return;
            }
        }
    }
}

#[tonic::async_trait]
impl TraceService for Collector {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        let tenant = request.metadata().get("x-tenant");
        let tenant = tenant.map(|tenant| tenant.to_str().expect("it is text").to_owned());
        self.take(request.into_inner(), tenant.as_deref());
        Ok(Response::new(ExportTraceServiceResponse::default()))
    }
}

/// Digits of an identity.
pub(crate) fn hexadecimal(id: &[u8]) -> String {
    let digit = |nibble: u8| char::from_digit(nibble.into(), 16).expect("below 16");
    let digits = |byte: &u8| [digit(byte >> 4), digit(byte & 15)];
    id.iter().flat_map(digits).collect()
}
