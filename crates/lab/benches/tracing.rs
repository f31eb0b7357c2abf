//! The cost of tracing: CPU time of a client and of five server processes together, for each operation of 1 KiB.
//!
//! `cargo bench -p areo-lab --bench tracing [-- memory|fsync]`. Client processes do the same in turn, a slice each of a fraction of
//! a second, so that what else the machine does meets all of them, with: *none*, no subscriber at all, which is as near to a build
//! without tracing as one binary comes; *off*, the recorder without sampling; *ring*, what a program traces unless configured
//! otherwise, recorded here and at the servers; *all*, every operation recorded; and by itself, at the end of each round,
//! *export*, the same delivered by OTLP to a process that throws it away, whose time does not count: batches leave when
//! they are full, not in the slice that filled them. Each figure is the median of the rounds with minimum and
//! maximum, the change is the median of the rounds' own ratios to *none*.

mod common;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use areo_bench::cluster::Cluster;
use areo_bench::peers::Spread;
use areo_bench::system::cpu_of_this;
use areo_client::{Client, ConnectOptions, Dap, Domain, TraceContext, TraceSource};
use areo_telemetry::export::{ExportCounts, Settings};
use areo_telemetry::{Limits, Recorder, Sampler, context_of};
use common::servers;
use tracing::Span;
use tracing::subscriber::NoSubscriber;

/// The allocator of the programs.
#[global_allocator]
static ALLOCATOR: areo_allocator::Allocator = areo_allocator::Allocator;

const ROUNDS: usize = 15;
/// In each round, for each mode and operation.
const SLICES: usize = 10;
const BYTES: usize = 1 << 10;
const IN_FLIGHT: usize = 16;
const MODES: [&str; 5] = ["none", "off", "ring", "all", "export"];
const OPERATIONS: [&str; 2] = ["put", "get"];
const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
/// The number of spans that may wait for export, so large that none is lost: a lost span costs less than a delivered
/// one.
const QUEUE: (&str, &str) = ("OTEL_BSP_MAX_QUEUE_SIZE", "65536");

fn main() {
    let arguments: Vec<String> = std::env::args()
        .skip(1)
        .filter(|argument| !argument.starts_with("--"))
        .collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["sink"] => sink(),
        ["client", mode, addresses, operations] => client(mode, addresses, operations),
        _ => {
            for durability in ["memory", "fsync"] {
                if arguments.is_empty() || arguments.contains(&durability) {
                    measure(durability);
                }
            }
        }
    }
}

fn runtime() -> tokio::runtime::Runtime {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.expect("a runtime")
}

/// This program once more, in another part.
struct Part {
    process: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Part {
    fn start(arguments: &[&str], variables: &[(&str, &str)]) -> Part {
        let own = std::env::current_exe().expect("the system knows what runs");
        let mut command = Command::new(own);
        command.args(arguments).envs(variables.iter().copied());
        let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = piped.spawn().expect("it starts");
        let input = process.stdin.take().expect("it is a pipe");
        let output = process.stdout.take().expect("it is a pipe");
        Part {
            process,
            input: Some(input),
            output: BufReader::new(output),
        }
    }

    fn hear(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("it speaks");
        line.trim_end().to_owned()
    }

    fn say(&mut self, line: &str) {
        let input = self.input.as_mut().expect("it is not finished");
        writeln!(input, "{line}").expect("it listens");
    }

    /// Lets it end by itself.
    fn finish(mut self) {
        self.input = None;
        self.process.wait().expect("it was ours");
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Accepts every request over HTTP and drops it.
fn sink() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("there is a port");
    println!("http://{}", listener.local_addr().expect("it listens"));
    for stream in listener.incoming().flatten() {
        std::thread::spawn(move || while forget(&stream).is_some() {});
    }
}

/// One request; none when the connection has ended.
fn forget(mut stream: &TcpStream) -> Option<()> {
    let mut reader = BufReader::new(stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        let line = line.trim_end().to_ascii_lowercase();
        if let Some(bytes) = line.strip_prefix("content-length: ") {
            length = bytes.parse().ok()?;
        }
        if line.is_empty() {
            break;
        }
    }
    std::io::copy(&mut reader.take(length), &mut std::io::sink()).ok()?;
    stream
        .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
        .ok()
}

/// Does operations on request, and prints their CPU time in this process, in microseconds.
fn client(mode: &str, addresses: &str, operations: &str) {
    let operations: usize = operations.parse().expect("it is a number");
    let recorder = (mode != "none").then(|| {
        let sampler = match mode {
            "off" => Sampler::Never,
            "ring" => Sampler::USUAL,
            _ => Sampler::Always,
        };
        let recorder = Recorder::new(sampler, false, Limits::default());
        if let Some(settings) = Settings::from_environment().expect("it is well formed") {
            recorder.export_to(settings);
        }
        let subscriber = recorder.subscriber(NoSubscriber::new());
        tracing::subscriber::set_global_default(subscriber).expect("it is the first");
        recorder
    });
    runtime().block_on(async {
        let options = ConnectOptions {
            trace_source: recorder.as_ref().map(|_| trace_of as TraceSource),
            ..ConnectOptions::from(addresses)
        };
        let client = Client::connect(options).await;
        let client = client.expect("a healthy cluster");
        let domain = client.domain("bench").await.expect("it was created");
        run(&domain, true, 64 * IN_FLIGHT).await;
        println!("ready");
        for line in std::io::stdin().lines().map_while(Result::ok) {
            let before = cpu_of_this();
            run(&domain, line == "put", operations).await;
            println!("{}", cpu_of_this().saturating_sub(before).as_micros());
        }
    });
    if let Some(recorder) = recorder {
        let exported = recorder.finish_export(Duration::from_secs(10));
        if exported != ExportCounts::default() {
            let (delivered, lost) = (exported.delivered, exported.lost());
            eprintln!("the client delivered {delivered} spans, {lost} were lost");
        }
    }
}

fn trace_of(span: &Span) -> Option<TraceContext> {
    let context = context_of(span)?;
    Some(TraceContext {
        trace_id: context.trace.0.to_be_bytes(),
        span_id: context.span.0.to_be_bytes(),
        flags: 1,
    })
}

async fn run(domain: &Domain, put: bool, operations: usize) {
    let lane = |lane: usize| {
        let domain = domain.clone();
        tokio::spawn(async move {
            for i in 0..operations / IN_FLIGHT {
                let key = format!("{lane}/{}", i % 64);
                if put {
                    let put = domain.put(&key, vec![7; BYTES]);
                    put.await.expect("a healthy cluster");
                } else {
                    let object = domain.get(&key).await.expect("it was put before");
                    assert_eq!(object.length, BYTES as u64);
                }
            }
        })
    };
    let lanes: Vec<_> = (0..IN_FLIGHT).map(lane).collect();
    for lane in lanes {
        lane.await.expect("lanes do not panic");
    }
}

/// A client of one mode, and the servers that it asks.
struct Subject<'a> {
    client: Part,
    cluster: &'a Cluster,
}

impl Subject<'_> {
    fn start<'a>(
        mode: &str,
        cluster: &'a Cluster,
        endpoint: &str,
        operations: usize,
    ) -> Subject<'a> {
        let variables = match mode {
            "export" => vec![(ENDPOINT, endpoint), QUEUE],
            _ => Vec::new(),
        };
        let (addresses, count) = (cluster.addresses().join(","), operations.to_string());
        let mut client = Part::start(&["client", mode, &addresses, &count], &variables);
        assert_eq!(client.hear(), "ready");
        Subject { client, cluster }
    }

    /// CPU microseconds of a slice, of client and servers.
    fn slice(&mut self, operation: &str) -> f64 {
        let before = self.cluster.cpu();
        self.client.say(operation);
        let own_us: f64 = self.client.hear().parse().expect("it says a number");
        let servers = self.cluster.cpu().saturating_sub(before);
        own_us + servers.as_secs_f64() * 1e6
    }
}

/// CPU microseconds of one operation, by mode for each of [`OPERATIONS`].
fn round(
    plain: &Cluster,
    exporting: &Cluster,
    endpoint: &str,
    operations: usize,
) -> [[f64; 2]; MODES.len()] {
    let mut spent = [[0.0; 2]; MODES.len()];
    let (export, others) = MODES.split_last().expect("there are modes");
    let slice = operations / SLICES;
    let mut subjects: Vec<Subject> = others
        .iter()
        .map(|mode| Subject::start(mode, plain, endpoint, slice))
        .collect();
    for (at, operation) in OPERATIONS.iter().enumerate() {
        for turn in 0..SLICES {
            // A mode finds the caches of the one before it: each comes after each.
            for place in 0..subjects.len() {
                let mode = (place + turn) % subjects.len();
                spent[mode][at] += subjects[mode].slice(operation);
            }
        }
    }
    for subject in subjects {
        subject.client.finish();
    }
    let mut subject = Subject::start(export, exporting, endpoint, operations);
    spent[others.len()] = OPERATIONS.map(|operation| subject.slice(operation));
    subject.client.finish();
    spent.map(|mode| mode.map(|us| us / operations as f64))
}

fn measure(durability: &str) {
    let mut sink = Part::start(&["sink"], &[]);
    let endpoint = sink.hear();
    let operations = if durability == "memory" {
        24_000
    } else {
        6_000
    };
    let runtime = runtime();
    let (plain, exporting) = runtime.block_on(async {
        let memory = durability == "memory";
        let variables = vec![(ENDPOINT, endpoint.clone()), (QUEUE.0, QUEUE.1.to_owned())];
        let shape = (5, Dap::Ec { k: 3 });
        let (plain, _) = servers(shape, memory, Vec::new()).await;
        let (exporting, _) = servers(shape, memory, variables).await;
        (plain, exporting)
    });
    let mut samples: Vec<[[f64; 2]; MODES.len()]> = Vec::new();
    for _ in 0..ROUNDS {
        samples.push(round(&plain, &exporting, &endpoint, operations));
    }
    for (at, operation) in OPERATIONS.iter().enumerate() {
        for (mode, name) in MODES.iter().enumerate() {
            let own = samples.iter().map(|round| round[mode][at]);
            let percent =
                |round: &[[f64; 2]; MODES.len()]| (round[mode][at] / round[0][at] - 1.0) * 100.0;
            let (cpu, change) = (Spread::of(own), Spread::of(samples.iter().map(percent)));
            println!(
                "{durability:7} {operation} {BYTES} B {name:6}: CPU {:6.1} us/op ({:.1} to {:.1}), {:+5.1} % ({:+.1} to {:+.1})",
                cpu.median, cpu.min, cpu.max, change.median, change.min, change.max,
            );
        }
    }
}
