//! `areo-lab paper J1` to `J3`: changes of the servers at the same time, by processes. What they are, and what runs come to, is that of
//! `areo-lab measure`.

use super::paper::{servers, virtual_time_alone};
use super::{Lab, measure};
use crate::args::Paper;
use areo::exit::{Failure, Outcome};
use areo::{progress, session};
use areo_bench::RunError;
use areo_bench::paper::{ChangesStage, ListEntry};
use areo_sim::measure::{EXPERIMENTS, Experiment, PlannedRun, run_by};
use std::time::Duration;

/// The time that readers are alone, before and after: longer than in virtual time, as everything is.
const MARGIN: Duration = Duration::from_millis(300);

/// The entries for these experiments in the list.
pub(super) fn list() -> impl Iterator<Item = ListEntry> {
    EXPERIMENTS.iter().map(|of| ListEntry {
        experiment: of.name,
        about: of.about,
        variants: "Rambo, L-Rambo, DynaStore, SpSn, SM and Ares II",
        missing: match of.has_processes() {
            true => "",
            false => "busy servers far apart, or for long, need more than one machine; in virtual time by `areo-lab measure`",
        },
    })
}

pub(super) fn run(lab: &Lab<'_>, experiment: &'static Experiment, args: &Paper) -> Outcome {
    let name = experiment.name;
    if !experiment.has_processes() {
        return Err(virtual_time_alone(name));
    }
    if args.csv.is_some() || args.html.is_some() {
        return Err(Failure::usage(format!(
            "experiment {name} makes no --csv and no --html: --json prints all its figures"
        )));
    }
    let options = servers(lab, args)?;
    let seed = options.seed;
    lab.out.note(&format!(
        "seed {seed}: {name} at scale {}",
        args.scale.name()
    ));
    let bar = progress::count(lab.out, "measuring", experiment.rows() as u64);
    let of_row = |way: &str, reconfigurers| {
        bar.inc(1);
        bar.set_message(format!("{way} {reconfigurers}"));
    };
    let spare = experiment.reconfigurers.iter().max().copied();
    let all = experiment.servers + spare.unwrap_or_default();
    let work = async {
        let text = |error: RunError| error.to_string();
        let stage = ChangesStage::start(&options, all, MARGIN).await;
        let stage = stage.map_err(text)?;
        let one = async |plan: &PlannedRun<'_>| stage.run(plan).await.map_err(text);
        run_by(experiment, (args.scale, seed), of_row, one).await
    };
    let report = session::run(async { work.await.map_err(Failure::other) }, "");
    bar.finish_and_clear();
    measure::print(lab, experiment, seed, &report?)
}
