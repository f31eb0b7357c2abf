//! The page of a comparison of stores.

use super::{Axis, Line, Page, Place, Plot, Section, Stack, Table, Timeline, head, made, unique};
use crate::generator::Measured;
use crate::limits::Limit;
use crate::peers::{Breakdown, Killed, Operation, Point, Report, Spread};
use crate::target::TargetName;
use areo_telemetry::{Trace, page};

pub(super) fn page(report: &Report, made_at: &str) -> Page {
    let mut sections = vec![stores(report)];
    let sizes = unique(report.points.iter().map(|point| point.size));
    for &size in &sizes {
        for operation in [Operation::Put, Operation::Get] {
            let of = |point: &&Point| point.size == size && point.operation == operation;
            let points: Vec<&Point> = report.points.iter().filter(of).collect();
            if !points.is_empty() {
                sections.push(figures(report, &points));
            }
        }
    }
    sections.extend(breakdowns(report));
    sections.extend(ratios(report));
    sections.extend(killed(report));
    sections.extend(limits(report));
    Page {
        title: "Areo beside its peers".into(),
        made: vec![report.command.clone(), made(made_at, &report.machine)],
        sections,
    }
}

fn stores(report: &Report) -> Section {
    let row = |about: &crate::target::About| {
        vec![
            about.target.to_string(),
            about.version.clone(),
            about.servers.to_string(),
            about.keeps.clone(),
            about.durability.clone(),
            about.connections.clone(),
        ]
    };
    Section {
        heading: "The stores".into(),
        text: "All of them ran at the same time, on the same machine as the clients, and were measured in turn.".into(),
        table: Some(Table {
            texts: 6,
            head: head(&["store", "version", "servers", "keeps", "acknowledged", "connections"]),
            rows: report.targets.iter().map(row).collect(),
        }),
        ..Section::default()
    }
}

/// Everything about one operation on values of one size.
fn figures(report: &Report, points: &[&Point]) -> Section {
    let first = points[0];
    let plot = |title: &str, unit: &str, of: &dyn Fn(&Point) -> Spread| Plot {
        title: title.into(),
        x: Axis {
            name: "clients".into(),
        },
        y: Axis { name: unit.into() },
        lines: lines(report, points, of),
    };
    Section {
        heading: format!("{} of {} bytes", first.operation.word(), first.size),
        text: "Medians of the runs, with the least and the most.".into(),
        plots: vec![
            plot("Throughput", "operations per second", &|point| {
                point.spread(|run| run.per_second)
            }),
            plot("Latency, half took no longer", "µs", &|point| {
                point.latency(|times| times.p50_us)
            }),
            plot("Latency, 99 of 100 took no longer", "µs", &|point| {
                point.latency(|times| times.p99_us)
            }),
            plot(
                "CPU time of clients and servers",
                "µs per operation",
                &|point| point.spread(|run| run.client_cpu_us + run.server_cpu_us),
            ),
        ],
        table: Some(Table {
            texts: 1,
            head: head(&[
                "store",
                "clients",
                "operations/s",
                "least",
                "most",
                "median µs",
                "99 % µs",
                "99.9 % µs",
                "client CPU µs",
                "server CPU µs",
                "CPU ns per byte",
                "bytes on the wire",
                "rounds",
                "configurations",
                "reconfigurations/s",
                "MiB in memory",
                "failed",
            ]),
            rows: points.iter().map(|point| row(point)).collect(),
        }),
        ..Section::default()
    }
}

fn lines(report: &Report, points: &[&Point], of: &dyn Fn(&Point) -> Spread) -> Vec<Line> {
    let line = |target: TargetName| {
        let points = points.iter().filter(|point| point.target == target);
        let place = |point: &&Point| {
            let Spread { median, min, max } = of(point);
            Place {
                x: point.clients as f64,
                median,
                min,
                max,
            }
        };
        Line {
            name: target.to_string(),
            places: points.map(place).collect(),
        }
    };
    let targets = report.targets.iter();
    targets.map(|about| line(about.target)).collect()
}

fn row(point: &Point) -> Vec<String> {
    let throughput = point.spread(|run| run.per_second);
    let whole = |figure: f64| format!("{figure:.0}");
    let tenth = |figure: f64| format!("{figure:.1}");
    let told = |of: fn(&Measured) -> Option<f64>| {
        let all: Vec<f64> = point.runs.iter().filter_map(of).collect();
        match &all[..] {
            [] => "not told".into(),
            all => format!("{:.2}", Spread::of(all.iter().copied()).median),
        }
    };
    vec![
        point.target.to_string(),
        point.clients.to_string(),
        whole(throughput.median),
        whole(throughput.min),
        whole(throughput.max),
        whole(point.latency(|times| times.p50_us).median),
        whole(point.latency(|times| times.p99_us).median),
        whole(point.latency(|times| times.p999_us).median),
        tenth(point.spread(|run| run.client_cpu_us).median),
        tenth(point.spread(|run| run.server_cpu_us).median),
        format!("{:.2}", point.cpu_ns_per_byte().median),
        whole(point.spread(|run| run.wire_bytes).median),
        told(|run| run.rounds),
        told(|run| run.configurations),
        tenth(
            point
                .spread(|run| run.reconfigurations as f64 / run.seconds)
                .median,
        ),
        whole(point.spread(|run| run.resident_bytes as f64).median / f64::from(1 << 20)),
        point.failed().to_string(),
    ]
}

/// Where the time of operations went: bars for each size, a sample of each kind of operation, and all figures.
fn breakdowns(report: &Report) -> Option<Section> {
    let first = report.breakdowns.first()?;
    let told = |target: TargetName| report.breakdowns.iter().any(|of| of.target == target);
    let all = report.targets.iter().map(|about| about.target);
    let untold: Vec<&str> = all.filter(|of| !told(*of)).map(TargetName::word).collect();
    let untold = match &untold[..] {
        [] => String::new(),
        untold => format!(" Of {} it is not known.", untold.join(", ")),
    };
    let mut stacks = Vec::new();
    let mut pictures = Vec::new();
    for size in unique(report.breakdowns.iter().map(|of| of.size)) {
        for operation in [Operation::Put, Operation::Get] {
            let of = |of: &&Breakdown| of.size == size && of.operation == operation;
            let of: Vec<&Breakdown> = report.breakdowns.iter().filter(of).collect();
            if let Some(last) = of.last() {
                stacks.extend(bars(&of));
                pictures.extend(sample(last));
            }
        }
    }
    let parts = first.parts.iter().map(|part| format!("{}, µs", part.name));
    let mut columns = head(&[
        "store",
        "operation",
        "bytes",
        "clients",
        "watched",
        "mean, µs",
    ]);
    columns.extend(parts);
    let row = |of: &Breakdown| {
        let mut row = vec![
            of.target.to_string(),
            of.operation.word().to_owned(),
            of.size.to_string(),
            of.clients.to_string(),
            of.operations.to_string(),
            format!("{:.1}", of.mean_us),
        ];
        row.extend(of.parts.iter().map(|part| format!("{:.1}", part.us)));
        row
    };
    Some(Section {
        heading: "Where the time of an operation goes".into(),
        text: format!(
            "After the measurements the same load went on for a while, and two hundred operations a second were watched; means of \
             those. Every moment of an operation counts once: computing before waiting. Disk is how long the slowest sync took \
             that was waited for. A sample is the operation that took the time in the middle, with the most clients.{untold}"
        ),
        stacks,
        pictures,
        table: Some(Table {
            texts: 2,
            head: columns,
            rows: report.breakdowns.iter().map(row).collect(),
        }),
        ..Section::default()
    })
}

/// What operations of one kind took, and how much of it each part was.
fn bars(of: &[&Breakdown]) -> [Stack; 2] {
    let what = format!("{} of {} bytes", of[0].operation.word(), of[0].size);
    let stack = |title: String, y: &str, unit: fn(&Breakdown) -> f64| Stack {
        title,
        y: y.into(),
        parts: of[0].parts.iter().map(|part| part.name.clone()).collect(),
        bars: of
            .iter()
            .map(|of| {
                let name = format!("{}, {}", of.target, of.clients);
                let parts = of.parts.iter().map(|part| part.us / unit(of));
                (name, parts.collect())
            })
            .collect(),
    };
    [
        stack(format!("A {what}, by clients"), "µs", |_| 1.0),
        stack(format!("Shares of a {what}"), "%", |of| of.mean_us / 100.0),
    ]
}

fn sample(of: &Breakdown) -> Option<(String, String)> {
    let trace = Trace::assemble(of.sample.iter().cloned()).pop()?;
    let (what, size, clients) = (of.operation.word(), of.size, of.clients);
    let title = format!(
        "A {what} of {size} bytes at {}, {clients} clients",
        of.target
    );
    Some((title, page::svg(&trace)))
}

/// What the machine can do, and how often the first store does it, or could have, for each kind of operation.
fn limits(report: &Report) -> Option<Section> {
    report.limits.first()?;
    let first = report.targets.first()?.target;
    let most = report.points.iter().map(|point| point.clients).max();
    let of_first = report.points.iter().filter(|point| point.target == first);
    let busiest: Vec<&Point> = of_first
        .filter(|point| Some(point.clients) == most)
        .collect();
    let mut columns = head(&["what", "unit", "takes", "least", "most", "CPU"]);
    columns.extend(busiest.iter().map(|point| {
        let (what, size, clients) = (point.operation.word(), point.size, point.clients);
        format!("a {what} of {size} bytes, {clients} clients")
    }));
    let row = |limit: &Limit| {
        let mut row = vec![limit.name.clone(), limit.unit.clone()];
        let figures = [
            limit.takes.median,
            limit.takes.min,
            limit.takes.max,
            limit.cpu.median,
        ];
        row.extend(figures.map(|figure| format!("{figure:.3}")));
        row.extend(busiest.iter().map(|point| {
            let cost = match limit.unit.as_str() {
                "ns per byte" => point.cpu_ns_per_byte(),
                _ => point.spread(|run| run.client_cpu_us + run.server_cpu_us),
            };
            format!("{:.1}", cost.median / limit.cpu.median)
        }));
        row
    };
    Some(Section {
        heading: "What the machine can do".into(),
        text: format!(
            "Whatever a store does; CPU is of both ends. To the right, how many of each have the CPU time of an operation of \
             {first}, clients and servers together: of a byte where the unit is of a byte."
        ),
        table: Some(Table {
            texts: 2,
            head: columns,
            rows: report.limits.iter().map(row).collect(),
        }),
        ..Section::default()
    })
}

fn ratios(report: &Report) -> Option<Section> {
    let first = report.ratios.first()?;
    let of = |spread: &Spread| {
        [
            format!("{:.2}", spread.median),
            format!("{:.2}", spread.min),
            format!("{:.2}", spread.max),
        ]
    };
    let rows = report.ratios.iter().map(|compared| {
        let mut row = vec![
            compared.with.to_string(),
            compared.operation.word().to_owned(),
            compared.size.to_string(),
            compared.clients.to_string(),
        ];
        row.extend(of(&compared.ratio.throughput));
        row.extend(of(&compared.ratio.cpu));
        row
    });
    Some(Section {
        heading: format!("{} against the others", first.target),
        text: "Run by run, the two measured one after the other. Above 1 is more throughput, below 1 is less CPU time for an \
               operation."
            .into(),
        table: Some(Table {
            texts: 2,
            head: head(&[
                "against",
                "operation",
                "bytes",
                "clients",
                "times the throughput",
                "least",
                "most",
                "times the CPU",
                "least",
                "most",
            ]),
            rows: rows.collect(),
        }),
        ..Section::default()
    })
}

/// What clients noticed of a member that was killed, store by store.
fn killed(report: &Report) -> Option<Section> {
    let first = report.killed.first()?;
    let clients = format!(
        "{} clients got and {} put values of {} bytes while a member of the store was killed (kill -9), which was not started \
         again. A time without completions that did not end lasts to the end.",
        first.readers, first.writers, first.size
    );
    let timelines = report.killed.iter().enumerate().map(|(colour, seen)| {
        let seconds = |ms: f64| ms / 1e3;
        let steps = seen.completions.iter().enumerate();
        Timeline {
            title: seen.target.to_string(),
            x: Axis {
                name: "seconds".into(),
            },
            y: Axis {
                name: format!("completions per {} ms", seen.step_ms),
            },
            places: steps
                .map(|(step, count)| {
                    let ms = (step as f64 + 0.5) * seen.step_ms as f64;
                    (seconds(ms), *count as f64)
                })
                .collect(),
            mark: Some((seconds(seen.killed_at_ms), "killed".into())),
            colour,
        }
    });
    let row = |seen: &Killed| {
        vec![
            seen.target.to_string(),
            seen.victim.clone(),
            format!("{:.1}", seen.longest_gap_ms),
            format!("{:.1}", seen.longest_gap_before_ms),
            format!("{:.0}", seen.per_second_before),
            format!("{:.0}", seen.per_second_after),
            seen.ratio
                .map_or_else(|| "none".into(), |ratio| format!("{ratio:.2}")),
            seen.failed.to_string(),
        ]
    };
    Some(Section {
        heading: "A member is killed".into(),
        text: clients,
        timelines: timelines.collect(),
        table: Some(Table {
            texts: 2,
            head: head(&[
                "store",
                "killed",
                "longest time without completions, ms",
                "before it",
                "completions/s before",
                "after",
                "after by before",
                "failed",
            ]),
            rows: report.killed.iter().map(row).collect(),
        }),
        ..Section::default()
    })
}
