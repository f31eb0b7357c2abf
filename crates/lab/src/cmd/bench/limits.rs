//! `areo-lab bench limits`: what the machine can do at most.

use crate::args::MeasureLimits;
use crate::cmd::Lab;
use crate::cmd::NAME;
use areo::exit::{Failure, Outcome, plain};
use areo::output::{Output, columns};
use areo::progress;
use areo_bench::limits::{self, Limit, Report};
use areo_bench::peers::Spread;
use areo_lab::shared::{command, data_directory};

pub(super) fn run(lab: &Lab<'_>, args: MeasureLimits) -> Outcome {
    let out = lab.out;
    let data = data_directory(args.data)?;
    let bar = progress::spinner(out, "measuring");
    let observe = |name: &str| bar.set_message(name.to_owned());
    let measured = limits::run((&data, &command(NAME)), (args.runs, args.time), observe);
    bar.finish_and_clear();
    let report = measured.map_err(|error| {
        let why = plain(&error);
        Failure::other(format!("the machine could not be measured: {why}"))
    })?;
    match out.json {
        true => out.object(&report),
        false => print(out, &report),
    }
}

fn print(out: Output, report: &Report) -> Outcome {
    let head = columns("what | > takes | > least to most | > CPU | unit");
    let row = |limit: &Limit| {
        let Spread { median, min, max } = limit.takes;
        vec![
            limit.name.clone(),
            format!("{median:.3}"),
            format!("{min:.3}-{max:.3}"),
            format!("{:.3}", limit.cpu.median),
            limit.unit.clone(),
        ]
    };
    let rows: Vec<_> = report.limits.iter().map(row).collect();
    out.table(&head, &rows)
}
