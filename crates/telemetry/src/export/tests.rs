use super::settings::Protocol;
use super::*;
use crate::record;
use crate::{Limits, Recorder, Sampler};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use tracing::debug_span;
use tracing::subscriber::NoSubscriber;

type Variable = (&'static str, &'static str);

fn read(variables: &[Variable]) -> Result<Option<Settings>, InvalidSetting> {
    Settings::read(&|name| {
        let found = variables.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| (*value).to_owned())
    })
}

#[test]
fn nothing_is_exported_unless_an_endpoint_is_set() {
    assert_eq!(read(&[]), Ok(None));
    assert_eq!(read(&[("OTEL_EXPORTER_OTLP_ENDPOINT", "")]), Ok(None));
    assert_eq!(read(&[("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")]), Ok(None));
    let endpoint = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318");
    for off in [
        ("OTEL_SDK_DISABLED", "TRUE"),
        ("OTEL_TRACES_EXPORTER", "none"),
    ] {
        assert_eq!(read(&[endpoint, off]), Ok(None));
    }
    assert!(read(&[endpoint, ("OTEL_SDK_DISABLED", "0")]).is_ok_and(|found| found.is_some()));
}

#[test]
fn the_general_endpoint_is_a_collector_and_the_one_for_traces_an_address() {
    let general = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318/");
    let traces = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://t:1/x");
    let grpc = ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc");
    let http = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/protobuf");
    let found = |variables: &[Variable]| {
        let found = read(variables).unwrap().unwrap();
        (found.protocol, found.endpoint)
    };
    let over_http = (Protocol::Http, "http://c:4318/v1/traces".to_owned());
    assert_eq!(found(&[general]), over_http);
    assert_eq!(found(&[general, grpc, http]), over_http);
    let over_grpc = (Protocol::Grpc, "http://c:4318/".to_owned());
    assert_eq!(found(&[general, grpc]), over_grpc);
    let exactly = (Protocol::Http, "http://t:1/x".to_owned());
    assert_eq!(found(&[general, traces]), exactly);
}

#[test]
fn what_cannot_be_done_is_said() {
    for (variable, value) in [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "https://c:4318"),
        ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "c:4317"),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://"),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json"),
    ] {
        let endpoint = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318");
        let refused = read(&[(variable, value), endpoint]).unwrap_err();
        assert_eq!(
            (refused.variable, &*refused.value),
            (variable, value),
            "{refused}"
        );
    }
}

#[test]
fn samplers_are_those_of_the_standard() {
    let read = |sampler: &str, argument: &str| {
        Sampler::read(&|name| match name {
            "OTEL_TRACES_SAMPLER" => Some(sampler.to_owned()),
            "OTEL_TRACES_SAMPLER_ARG" => Some(argument.to_owned()),
            _ => None,
        })
    };
    assert_eq!(read("", "0.5"), Ok(None));
    assert_eq!(read("always_off", ""), Ok(Some(Sampler::Never)));
    assert_eq!(
        read("parentbased_always_on", "0"),
        Ok(Some(Sampler::Always))
    );
    let quarter = Ok(Some(Sampler::Share(0.25)));
    assert_eq!(read("parentbased_traceidratio", "0.25"), quarter);
    assert_eq!(read("traceidratio", ""), Ok(Some(Sampler::Always)));
    for (sampler, argument) in [("traceidratio", "2"), ("traceidratio", "x"), ("jaeger", "")] {
        assert!(read(sampler, argument).is_err(), "{sampler} {argument}");
    }
}

#[test]
fn a_record_is_a_span_of_the_standard() {
    let record = SpanRecord {
        trace: record::TraceId(0xa1),
        span: record::SpanId(2),
        parent: Some(record::SpanId(1)),
        local_root: true,
        name: "server.access".into(),
        process: "s1".into(),
        start_ns: 1_000,
        duration_ns: 500,
        attributes: [
            ("n".into(), Value::Number(5)),
            (ERROR_TYPE.into(), Value::Text("busy".into())),
        ]
        .into(),
    };
    let data = data(&record, InstrumentationScope::default());
    assert_eq!(data.span_context.trace_id(), TraceId::from(0xa1_u128));
    assert_eq!(data.parent_span_id, SpanId::from(1_u64));
    assert!(data.parent_span_is_remote && data.span_context.is_sampled());
    assert_eq!(data.span_kind, SpanKind::Server);
    let lasted = data.end_time.duration_since(data.start_time);
    assert_eq!(lasted.ok(), Some(Duration::from_nanos(500)));
    let expected = [
        KeyValue::new("error.type", "busy"),
        KeyValue::new("areo.n", 5),
    ];
    assert_eq!(data.attributes, expected);
    assert_eq!(data.status, Status::error("busy"));
}

#[test]
fn servers_and_clients_are_services_unless_the_variables_say_otherwise() {
    let settings = |service: Option<&str>| Settings {
        protocol: Protocol::Http,
        endpoint: String::new(),
        service: service.map(ToOwned::to_owned),
        queue: 1,
    };
    let name = |resource: Resource| resource.get(&Key::new("service.name")).unwrap().to_string();
    assert_eq!(name(resource(&settings(None), None)), "areo");
    let server = resource(&settings(None), Some("s3"));
    let instance = server.get(&Key::new("service.instance.id"));
    assert_eq!(instance.map(|name| name.to_string()), Some("s3".into()));
    assert_eq!(name(server), "areo-server");
    assert_eq!(name(resource(&settings(Some("mine")), Some("s3"))), "mine");
}

/// Exports the spans of this number of operations to this endpoint, and returns their counts.
fn export(endpoint: &str, queue: usize, operations: usize, patience: Duration) -> ExportCounts {
    let recorder = Recorder::new(Sampler::Always, false, Limits::default());
    recorder.export_to(Settings {
        protocol: Protocol::Http,
        endpoint: endpoint.into(),
        service: None,
        queue,
    });
    let subscriber = recorder.subscriber(NoSubscriber::new());
    tracing::subscriber::with_default(subscriber, || {
        for _ in 0..operations {
            debug_span!("areo.read").in_scope(|| {});
        }
    });
    assert_eq!(
        recorder.ring().since(0).len(),
        operations,
        "they were done all the same"
    );
    recorder.finish_export(patience)
}

/// A collector that does this with each connection.
fn collector(with: impl Fn(TcpStream) + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}/v1/traces", listener.local_addr().unwrap());
    thread::spawn(move || listener.incoming().flatten().for_each(with));
    endpoint
}

/// Longer than any of this takes.
const PATIENCE: Duration = Duration::from_mins(1);

#[test]
fn a_collector_that_is_not_there_costs_a_counted_loss() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}/v1/traces", listener.local_addr().unwrap());
    drop(listener);
    let exported = export(&endpoint, 100, 7, PATIENCE);
    assert_eq!((exported.delivered, exported.refused), (0, 7));
    assert_eq!((exported.overflowed, exported.waiting), (0, 0));
    assert!(exported.why.is_some());
}

#[test]
fn a_collector_that_answers_rubbish_costs_a_counted_loss() {
    let endpoint = collector(|mut stream| {
        let _ = stream.read(&mut [0; 100]);
        let _ = stream.write_all(b"\x00\xffno HTTP at all\r\n\r\n");
    });
    let exported = export(&endpoint, 100, 7, PATIENCE);
    assert_eq!((exported.delivered, exported.refused), (0, 7));
}

#[test]
fn a_collector_that_refuses_costs_a_counted_loss() {
    let endpoint = collector(|mut stream| {
        let _ = stream.read(&mut [0; 4096]);
        let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n");
    });
    assert_eq!(export(&endpoint, 100, 7, PATIENCE).refused, 7);
}

#[test]
fn a_collector_that_hangs_holds_up_nobody_and_its_queue_is_bounded() {
    let held = Mutex::new(Vec::new());
    let endpoint = collector(move |stream| held.lock().unwrap().push(stream));
    let exported = export(&endpoint, 100, 5_000, Duration::from_millis(100));
    assert_eq!(exported.delivered, 0);
    assert_eq!(exported.overflowed + exported.refused, 5_000);
    assert!(exported.overflowed >= 4_900, "{exported:?}");
    assert_eq!(exported.why.as_deref(), Some("it does not answer in time"));
}

#[test]
fn nothing_begins_without_a_span() {
    let recorder = Recorder::new(Sampler::Always, false, Limits::default());
    assert_eq!(recorder.finish_export(PATIENCE), ExportCounts::default());
    assert_eq!(
        export("http://nowhere", 100, 0, PATIENCE),
        ExportCounts::default()
    );
}
