//! The printed report: tables, and a line for each run.

use areo::exit::{Failure, Outcome};
use areo::output::{Output, columns};
use areo_bench::load::{CounterReport, Measurement};
use areo_bench::peers::{Operation, Point, Report, Spread};
use areo_client::units::show_size;
use std::fs::File;
use std::io::Write;

pub(crate) fn tables(out: Output, report: &Report) -> Outcome {
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
        "operation | > size | > clients | store | > operations/s | > least to most | > p50 | \
         > p99 | > CPU clients | > CPU servers | > CPU per byte | > on the wire",
    );
    let rows: Vec<_> = report.points.iter().map(row).collect();
    out.table(&head, &rows)?;
    ratios(out, report)?;
    counters(out, report)?;
    reconfigured(out, report)?;
    killed(out, report)
}

/// A table, if there is anything in it.
fn section(out: Output, head: &'static str, rows: impl Iterator<Item = Vec<String>>) -> Outcome {
    let rows: Vec<_> = rows.collect();
    if rows.is_empty() {
        return Ok(());
    }
    out.line("")?;
    out.table(&columns(head), &rows)
}

fn ratios(out: Output, report: &Report) -> Outcome {
    let head = "operation | > size | > clients | against | > times the throughput | > least to most | \
                > times the CPU | > least to most";
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
    section(out, head, rows)
}

/// Prints how clients that increment one counter share it, with the counter's end.
fn counters(out: Output, report: &Report) -> Outcome {
    let head = "operation | > clients | store | > least of a client | > most of a client | > rounds | \
                > succeeded | > unknown | > counted";
    let row = |point: &Point| {
        let each = |of: fn(&Measurement) -> f64| format!("{:.0}", point.spread(of).median);
        let rounds = point.runs.iter().filter_map(|run| run.rounds);
        let counted = |of: fn(&CounterReport) -> u64| {
            let counters = point.runs.iter().filter_map(|run| run.counter.as_ref());
            counters.map(of).sum::<u64>().to_string()
        };
        vec![
            point.operation.word().to_owned(),
            point.clients.to_string(),
            point.target.to_string(),
            each(|run| run.least_of_a_client as f64),
            each(|run| run.most_of_a_client as f64),
            match Spread::of(rounds).median {
                0.0 => "none".to_owned(),
                rounds => format!("{rounds:.2}"),
            },
            counted(|counter| counter.done),
            counted(|counter| counter.unknown),
            counted(|counter| counter.count),
        ]
    };
    let counted = |point: &&Point| point.operation == Operation::Increment;
    section(out, head, report.points.iter().filter(counted).map(row))
}

/// Prints the reconfigurations meanwhile, and the configurations that operations visited.
fn reconfigured(out: Output, report: &Report) -> Outcome {
    let head = "operation | > size | > clients | store | > reconfigurations/s | \
                > configurations of an operation | > rounds";
    let row = |point: &Point| {
        let each = |of: fn(&Measurement) -> f64| format!("{:.2}", point.spread(of).median);
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
    section(out, head, report.points.iter().filter(changed).map(row))
}

/// Prints the effect of killed members on clients.
fn killed(out: Output, report: &Report) -> Outcome {
    let head = "store | killed | > longest without a completion | > before it | \
                > operations/s before | > after | > after / before | > failed";
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
    section(out, head, rows)
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
pub(crate) fn csv(report: &Report, mut file: File) -> std::io::Result<()> {
    let told = |figure: Option<f64>| figure.map_or(String::new(), |figure| format!("{figure:.3}"));
    writeln!(
        file,
        "store,operation,size,clients,run,operations,failed,per_second,p50_us,p90_us,p99_us,p999_us,max_us,\
         client_cpu_us,server_cpu_us,cpu_ns_per_byte,wire_bytes,resident_bytes,stored_bytes,rounds,configurations,\
         reconfigurations,least_of_a_client,most_of_a_client"
    )?;
    for point in &report.points {
        let (target, operation) = (point.target, point.operation.word());
        let (size, clients) = (point.size, point.clients);
        for (number, run) in (1..).zip(&point.runs) {
            let times = run.put.or(run.get).or(run.increment).or(run.list);
            let times = times.unwrap_or_default();
            writeln!(
                file,
                "{target},{operation},{size},{clients},{number},{},{},{:.1},{:.1},{:.1},{:.1},{:.1},{:.1},{:.2},{:.2},{:.2},{:.0},{},{},{},{},{},{},{}",
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
                run.least_of_a_client,
                run.most_of_a_client,
            )?;
        }
    }
    Ok(())
}

/// Operations that failed are a failure of the whole comparison.
pub(crate) fn judge(report: &Report) -> Outcome {
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
