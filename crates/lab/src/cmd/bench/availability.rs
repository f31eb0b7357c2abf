//! `areo-lab bench availability`: what readers and writers notice when as many servers fail as may.

use super::fares;
use crate::args::MeasureAvailability;
use crate::cmd::Lab;
use areo::args::DurabilityWord;
use areo::exit::{Failure, Outcome};
use areo::output::Output;
use areo::progress;
use areo_bench::availability::{self, FailureKind, Options, Report};
use areo_client::Shape;
use areo_lab::shared::{dap, finish, none_failed};

/// The goal for the ratio of p99 latencies; `docs/benchmarks.md` has the measured values.
const P99_AIM: f64 = 2.0;

pub(super) fn run(lab: &Lab<'_>, args: MeasureAvailability) -> Outcome {
    let out = lab.out;
    let options = options(lab, args)?;
    let failures = options.failures;
    fares::announce(out, &options.setup, &format!("{failures} failures"));
    let bar = progress::count(out, "measuring", failures.into());
    let work = availability::run(options, |over| bar.set_position(over.into()));
    let report = finish(out, ("the measurement", &bar), work, print)?;
    none_failed(report.failed, &report.failures, Some(report.seed))
}

fn options(lab: &Lab<'_>, args: MeasureAvailability) -> Outcome<Options> {
    let servers = usize::from(args.servers);
    if args.durability == DurabilityWord::Memory && !args.stop {
        return Err(Failure::usage(
            "servers that are killed forget what is in memory: add --stop, or take --durability fsync",
        ));
    }
    let dap = dap(args.dap, args.k, servers)?;
    let shape = Shape::new(dap, servers).map_err(|error| Failure::usage(error.to_string()))?;
    if shape.f() == 0 {
        return Err(Failure::usage(format!(
            "{shape} needs all of its servers: take more of them, or a smaller --k"
        )));
    }
    Ok(Options {
        setup: fares::setup(lab, args.servers, args.durability, args.load)?,
        dap,
        failing: match args.stop {
            true => FailureKind::Stopped,
            false => FailureKind::Killed,
        },
        failures: args.failures,
        time: args.time,
    })
}

fn print(out: Output, report: &Report) -> Outcome {
    let of = match report.failing {
        FailureKind::Killed => "servers killed",
        FailureKind::Stopped => "servers stopped",
    };
    fares::print(out, &report.without, (of, &report.with))?;
    out.line("")?;
    let ratio = |what: &str, ratio: f64| {
        let aim = format!("{what}, p99: twice as long and a round trip");
        (aim, format!("{ratio:.2} times"), ratio <= P99_AIM)
    };
    let (at_once, shape) = (report.failing_at_once, &report.shape);
    let aims = [
        fares::none_fails(&format!(", {at_once} of {shape} {of}"), report.failed),
        fares::short_gap(report.longest_gap_ms),
        ratio("reads", report.read_p99_ratio),
        ratio("writes", report.write_p99_ratio),
    ];
    fares::aims(out, &aims)
}
