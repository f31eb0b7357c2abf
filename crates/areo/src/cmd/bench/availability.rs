//! `areo bench availability`: what readers and writers notice when as many servers fail as may.

use super::{data_directory, failure, fares, random_seed, servers_program};
use crate::args::{DapWord, DurabilityWord, MeasureAvailability};
use crate::exit::{Failure, Outcome};
use crate::output::{Column, Output};
use crate::progress;
use crate::session::{self, Session};
use crate::units::show_size;
use areo_bench::availability::{self, Failing, Options, Report};
use areo_client::{Dap, Shape};
use std::time::Duration;

/// How long an operation may take, unless `--timeout` says otherwise.
const TIMEOUT: Duration = Duration::from_secs(5);
/// What is aimed at; `docs/benchmarks.md` has the figures that were reached.
const GAP_AIM_MS: f64 = 250.0;
const P99_AIM: f64 = 2.0;

pub(super) fn run(session: &Session, args: MeasureAvailability) -> Outcome {
    let out = session.out;
    let options = options(session, args)?;
    let failures = options.failures;
    out.note(&format!(
        "seed {}: {} servers, {} objects of {}, {} clients, {failures} failures",
        options.seed,
        options.servers,
        options.objects,
        show_size(options.size as u64),
        options.clients,
    ));
    let bar = progress::count(out, "measuring", failures.into());
    let work = async {
        let done = availability::run(options, |over| bar.set_position(over.into())).await;
        done.map_err(|error| failure("the measurement", &error))
    };
    let report = session::run(work, "");
    bar.finish_and_clear();
    let report = report?;
    match out.json {
        true => out.object(&report)?,
        false => print(out, &report)?,
    }
    fares::judge(report.failed, &report.failures, report.seed)
}

fn options(session: &Session, args: MeasureAvailability) -> Outcome<Options> {
    let servers = usize::from(args.servers);
    let memory = args.durability == DurabilityWord::Memory;
    if memory && !args.stop {
        return Err(Failure::usage(
            "servers that are killed forget what is in memory: add --stop, or take --durability fsync",
        ));
    }
    let dap = match (args.dap, args.k) {
        (DapWord::Abd, None) => Dap::Abd,
        (DapWord::Abd, Some(_)) => {
            return Err(Failure::usage("--k is for --dap ec: replicas are whole"));
        }
        (DapWord::Ec, k) => Dap::Ec {
            k: k.unwrap_or_else(|| Shape::default_k(servers)),
        },
    };
    let shape = Shape::new(dap, servers).map_err(|error| Failure::usage(error.to_string()))?;
    if shape.f() == 0 {
        return Err(Failure::usage(format!(
            "{shape} needs all of its servers: take more of them, or a smaller --k"
        )));
    }
    Ok(Options {
        program: servers_program()?,
        servers,
        dap,
        failing: match args.stop {
            true => Failing::Stopped,
            false => Failing::Killed,
        },
        failures: args.failures,
        time: args.time,
        objects: args.objects,
        size: args.size,
        clients: args.clients.into(),
        seed: args.seed.unwrap_or_else(random_seed),
        memory,
        data: data_directory(args.data)?,
        timeout: session.timeout_or(TIMEOUT)?,
    })
}

fn print(out: Output, report: &Report) -> Outcome {
    let of = match report.failing {
        Failing::Killed => "servers killed",
        Failing::Stopped => "servers stopped",
    };
    fares::print(out, &report.without, (of, &report.with))?;
    out.line("")?;
    let columns = [
        Column::Text("aim"),
        Column::Number("measured"),
        Column::Text(""),
    ];
    let row = |aim: &str, measured: String, met: bool| {
        let word = if met { "met" } else { "missed" };
        vec![aim.to_owned(), measured, word.to_owned()]
    };
    let ratio = |what: &str, ratio: f64| {
        let aim = format!("{what}, 99 %: twice as long and a round trip");
        row(&aim, format!("{ratio:.2} times"), ratio <= P99_AIM)
    };
    let gap = report.longest_gap_ms;
    let rows = [
        row(
            &format!(
                "no operation fails, {} of {} {of}",
                report.failing_at_once, report.shape
            ),
            report.failed.to_string(),
            report.failed == 0,
        ),
        row(
            "longest time without a success: 250 ms",
            format!("{gap:.1} ms"),
            gap <= GAP_AIM_MS,
        ),
        ratio("reads", report.read_p99_ratio),
        ratio("writes", report.write_p99_ratio),
    ];
    out.table(&columns, &rows)
}
