//! `areo-lab bench peers`: this store and others, side by side.

use crate::args::{MeasurePeers, TargetWord};
use crate::cmd::Lab;
use crate::cmd::shared::{command, create, dap, data_directory, history, random_seed, write};
use areo::admin;
use areo::args::DurabilityWord;
use areo::exit::{Failure, Outcome};
use areo::output::{Output, columns};
use areo::progress;
use areo::session;
use areo::units::{show_size, show_time};
use areo::watch;
use areo_bench::generator::{Measured, Pace};
use areo_bench::page::Page;
use areo_bench::peers::{self, Options, Point, Report, Spread, Stage, Watch};
use areo_bench::target::{Answer, Endpoint, Node, TargetName, Wanted};
use areo_client::Shape;
use areo_telemetry::SpanRecord;
use std::fs::File;
use std::io::Write;
use std::time::Duration;

/// How long an operation may take, unless `--timeout` says otherwise.
const TIMEOUT: Duration = Duration::from_secs(10);
/// How long a server may take to tell what it remembers.
const PATIENCE: Duration = Duration::from_secs(10);

pub(super) fn run(lab: &Lab<'_>, args: MeasurePeers) -> Outcome {
    let out = lab.out;
    // That they cannot be written is told now.
    let csv = args.csv.clone().map(create).transpose()?;
    let html = args.html.clone().map(create).transpose()?;
    let watch = Watch {
        recorder: lab.recorder.clone(),
        ask: Box::new(remembered),
    };
    let options = options(lab, args, watch)?;
    let names: Vec<&str> = options.targets.iter().map(|target| target.word()).collect();
    out.note(&format!(
        "seed {}: {} with {} servers each, {} measurements of {:.1} s",
        options.seed,
        names.join(", "),
        options.wanted.servers,
        options.measurements(),
        (options.time + options.warm_up).as_secs_f64(),
    ));
    let bar = progress::count(out, "starting", options.measurements());
    let observe = |stage| match stage {
        Stage::Starting(target) => bar.set_message(format!("starting {target}")),
        Stage::Filling(target) => bar.set_message(format!("filling {target}")),
        Stage::Measuring(done, target) => {
            bar.set_position(done);
            bar.set_message(format!("measuring {target}"));
        }
        Stage::Watching(target) => {
            bar.set_position(options.measurements());
            bar.set_message(format!("watching {target}"));
        }
        Stage::Limits => bar.set_message("measuring the machine"),
        Stage::Killing(target) => {
            bar.set_position(options.measurements());
            bar.set_message(format!("killing a member of {target}"));
        }
    };
    let work = async {
        let done = peers::run(&options, observe).await;
        done.map_err(|error| Failure::other(format!("the comparison could not be made: {error}")))
    };
    let report = session::run(work, "");
    bar.finish_and_clear();
    let report = report?;
    if let Some((path, file)) = csv {
        write_csv(&report, file).map_err(|error| Failure::file("write", &path, &error))?;
    }
    write([(html, &page(&report).html())])?;
    match out.json {
        true => out.object(&report)?,
        false => print(out, &report)?,
    }
    judge(&report)
}

pub(super) fn page(report: &Report) -> Page {
    Page::of_peers(report, &show_time(report.made_at_ms))
}

fn options(lab: &Lab<'_>, args: MeasurePeers, watch: Watch) -> Outcome<Options> {
    let servers = usize::from(args.servers);
    let dap = dap(args.dap, args.k, servers)?;
    Shape::new(dap, servers).map_err(|error| Failure::usage(error.to_string()))?;
    let stores = Stores::new(args.targets)?;
    if let (Some(name), true) = (stores.not_ours(), args.kill.is_some()) {
        return Err(Failure::usage(format!(
            "--kill: the servers of {name} are not ours to kill: leave it out of --targets",
        )));
    }
    Ok(Options {
        targets: stores.names,
        wanted: Wanted {
            program: lab.servers()?,
            servers,
            memory: args.durability == DurabilityWord::Memory,
            dap,
            data: data_directory(args.data)?,
            s3: stores.s3,
            cassandra: stores.cassandra,
            cassandra_serial: stores.cassandra_serial,
            timeout: lab.timeout_or(TIMEOUT)?,
        },
        sizes: args.size,
        clients: args.clients.into_iter().map(usize::from).collect(),
        operations: args.operations,
        objects: args.objects,
        popularity: args.popularity,
        pace: match args.rate {
            Some(rate) => Pace::Open {
                per_second: rate.into(),
            },
            None => Pace::Closed { wait: args.wait },
        },
        reconfigurers: args.reconfigurers.into(),
        between_changes: args.reconfigure_wait,
        history: history(args.history)?,
        warm_up: args.warm_up,
        time: args.time,
        runs: args.runs,
        kill: args.kill,
        watch: Some(watch),
        seed: args.seed.unwrap_or_else(random_seed),
        command: command(),
    })
}

/// The stores, each once, and where those are that run already.
#[derive(Default)]
struct Stores {
    names: Vec<TargetName>,
    s3: Option<Endpoint>,
    cassandra: Vec<Node>,
    cassandra_serial: Vec<Node>,
}

impl Stores {
    fn new(words: Vec<TargetWord>) -> Outcome<Stores> {
        let mut stores = Stores::default();
        let mut cluster = None;
        for word in words {
            let (name, node) = match word {
                TargetWord::Started(name) => (name, None),
                TargetWord::S3(endpoint) => {
                    stores.s3 = Some(endpoint);
                    (TargetName::S3, None)
                }
                TargetWord::Cassandra(name, node) => (name, Some(node)),
                TargetWord::Node(node) => match cluster {
                    Some(name) => (name, Some(node)),
                    None => {
                        return Err(Failure::usage(format!(
                            "--targets: '{node}' is an address, and no cassandra=HOST:PORT stands before it"
                        )));
                    }
                },
            };
            cluster = node.is_some().then_some(name);
            match name {
                TargetName::CassandraSerial => stores.cassandra_serial.extend(node),
                _ => stores.cassandra.extend(node),
            }
            if !stores.names.contains(&name) {
                stores.names.push(name);
            }
        }
        Ok(stores)
    }

    /// One whose servers run already.
    fn not_ours(&self) -> Option<TargetName> {
        use TargetName::{Cassandra, CassandraSerial, S3};
        let mut names = self.names.iter().copied();
        names.find(|name| matches!(name, S3 | Cassandra | CassandraSerial))
    }
}

/// What a server remembers of what ended since then.
fn remembered(admin: String, since: u64) -> Answer<'static, Vec<SpanRecord>, String> {
    Box::pin(async move {
        let lines = admin::get(&admin, &format!("/traces/since/{since}"), PATIENCE).await;
        lines.map(|lines| watch::parse(&lines))
    })
}

fn print(out: Output, report: &Report) -> Outcome {
    let head = columns("store | version | keeps | acknowledged | connections");
    let rows = report.targets.iter().map(|about| {
        vec![
            about.target.to_string(),
            about.version.clone(),
            about.keeps.clone(),
            about.durability.clone(),
            about.connections.clone(),
        ]
    });
    out.table(&head, &rows.collect::<Vec<_>>())?;
    out.line("")?;
    let head = columns(
        "operation | > size | > clients | store | > operations/s | > least to most | > median | \
         > 99 % | > CPU clients | > CPU servers | > CPU per byte | > on the wire",
    );
    let rows: Vec<_> = report.points.iter().map(row).collect();
    out.table(&head, &rows)?;
    if !report.ratios.is_empty() {
        out.line("")?;
        ratios(out, report)?;
    }
    reconfigured(out, report)?;
    match report.killed.is_empty() {
        true => Ok(()),
        false => killed(out, report),
    }
}

fn ratios(out: Output, report: &Report) -> Outcome {
    let head = columns(
        "operation | > size | > clients | against | > times the throughput | > least to most | \
         > times the CPU | > least to most",
    );
    let rows = report.ratios.iter().map(|compared| {
        let (throughput, cpu) = (&compared.ratio.throughput, &compared.ratio.cpu);
        let times = |spread: &Spread| {
            [
                format!("{:.2}", spread.median),
                format!("{:.2}-{:.2}", spread.min, spread.max),
            ]
        };
        let mut row = vec![
            compared.operation.word().to_owned(),
            show_size(compared.size as u64),
            compared.clients.to_string(),
            format!("{} / {}", compared.target, compared.with),
        ];
        row.extend(times(throughput));
        row.extend(times(cpu));
        row
    });
    out.table(&head, &rows.collect::<Vec<_>>())
}

/// What was reconfigured meanwhile, and what operations visited.
fn reconfigured(out: Output, report: &Report) -> Outcome {
    let head = columns(
        "operation | > size | > clients | store | > reconfigurations/s | \
         > configurations of an operation | > rounds",
    );
    let row = |point: &Point| {
        let each = |of: fn(&Measured) -> f64| format!("{:.2}", point.spread(of).median);
        vec![
            point.operation.word().to_owned(),
            show_size(point.size as u64),
            point.clients.to_string(),
            point.target.to_string(),
            each(|run| run.reconfigurations as f64 / run.seconds),
            each(|run| run.configurations.unwrap_or_default()),
            each(|run| run.rounds.unwrap_or_default()),
        ]
    };
    let changed = |point: &&Point| point.runs.iter().any(|run| run.reconfigurations > 0);
    let rows: Vec<_> = report.points.iter().filter(changed).map(row).collect();
    if rows.is_empty() {
        return Ok(());
    }
    out.line("")?;
    out.table(&head, &rows)
}

/// What clients noticed of members that were killed.
fn killed(out: Output, report: &Report) -> Outcome {
    let head = columns(
        "store | killed | > longest without a completion | > before it | > operations/s before | \
         > after | > after / before | > failed",
    );
    let rows = report.killed.iter().map(|seen| {
        vec![
            seen.target.to_string(),
            seen.victim.clone(),
            format!("{:.1} ms", seen.longest_gap_ms),
            format!("{:.1} ms", seen.longest_gap_before_ms),
            format!("{:.0}", seen.per_second_before),
            format!("{:.0}", seen.per_second_after),
            seen.ratio
                .map_or_else(|| "none".into(), |ratio| format!("{ratio:.2}")),
            seen.failed.to_string(),
        ]
    });
    out.line("")?;
    out.table(&head, &rows.collect::<Vec<_>>())
}

fn row(point: &Point) -> Vec<String> {
    let throughput = point.spread(|run| run.per_second);
    let us = |spread: Spread| format!("{:.0} µs", spread.median);
    vec![
        point.operation.word().to_owned(),
        show_size(point.size as u64),
        point.clients.to_string(),
        point.target.to_string(),
        format!("{:.0}", throughput.median),
        format!("{:.0}-{:.0}", throughput.min, throughput.max),
        us(point.latency(|times| times.p50_us)),
        us(point.latency(|times| times.p99_us)),
        us(point.spread(|run| run.client_cpu_us)),
        us(point.spread(|run| run.server_cpu_us)),
        format!("{:.2} ns", point.cpu_ns_per_byte().median),
        format!("{:.0} B", point.spread(|run| run.wire_bytes).median),
    ]
}

/// A line for each run.
fn write_csv(report: &Report, mut file: File) -> std::io::Result<()> {
    let told = |figure: Option<f64>| figure.map_or(String::new(), |figure| format!("{figure:.3}"));
    writeln!(
        file,
        "store,operation,size,clients,run,operations,failed,per_second,p50_us,p90_us,p99_us,p999_us,max_us,\
         client_cpu_us,server_cpu_us,cpu_ns_per_byte,wire_bytes,resident_bytes,stored_bytes,rounds,configurations,\
         reconfigurations"
    )?;
    for point in &report.points {
        let (target, operation) = (point.target, point.operation.word());
        let (size, clients) = (point.size, point.clients);
        for (number, run) in (1..).zip(&point.runs) {
            let times = run.put.or(run.get).unwrap_or_default();
            writeln!(
                file,
                "{target},{operation},{size},{clients},{number},{},{},{:.1},{:.1},{:.1},{:.1},{:.1},{:.1},{:.2},{:.2},{:.2},{:.0},{},{},{},{},{}",
                run.operations,
                run.failed,
                run.per_second,
                times.p50_us,
                times.p90_us,
                times.p99_us,
                times.p999_us,
                times.max_us,
                run.client_cpu_us,
                run.server_cpu_us,
                (run.client_cpu_us + run.server_cpu_us) * 1e3 / size as f64,
                run.wire_bytes,
                run.resident_bytes,
                run.stored_bytes,
                told(run.rounds),
                told(run.configurations),
                run.reconfigurations,
            )?;
        }
    }
    Ok(())
}

/// Operations that failed are a failure of the whole comparison.
fn judge(report: &Report) -> Outcome {
    let failed: u64 = report.points.iter().map(Point::failed).sum();
    let first = report.points.iter().find_map(|point| {
        let sentence = point.runs.iter().find_map(|run| run.failures.first())?;
        Some(format!("{}: {sentence}", point.target))
    });
    match first {
        None => Ok(()),
        Some(first) => Err(Failure::other(format!(
            "{failed} operations failed, the first one at {first}"
        ))),
    }
}
