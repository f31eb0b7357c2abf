//! `areo-lab nemesis`: real servers under load, disturbed and then mended.

use super::Lab;
use crate::args::Nemesis;
use areo::exit::{Code, Failure, Outcome};
use areo::output::{Output, columns};
use areo::progress;
use areo_bench::{Options, Progress, Report, Trouble, TroubleCount};
use areo_lab::shared::{data_directory, finish, history, random_seed};
use std::path::Path;
use std::time::Duration;

/// The longest time that an operation may take while there is trouble, unless `--timeout` says otherwise: most of what happens is over sooner.
const TIMEOUT: Duration = Duration::from_secs(2);

pub(super) fn run(lab: &Lab<'_>, args: Nemesis) -> Outcome {
    let out = lab.out;
    let seconds = args.seconds;
    let options = options(lab, args)?;
    out.note(&format!(
        "seed {}: {} servers, {} clients, {seconds} s of trouble",
        options.seed, options.servers, options.clients
    ));
    let bar = progress::count(out, "starting", seconds);
    let observe = |progress: Progress| {
        let Progress {
            operations, kills, ..
        } = progress;
        bar.set_position(progress.elapsed.as_secs().min(seconds));
        bar.set_message(format!("{operations} operations, {kills} kills"));
    };
    let work = areo_bench::run(options, observe);
    let report = finish(out, ("the nemesis", &bar), work, print)?;
    judge(&report)
}

fn options(lab: &Lab<'_>, args: Nemesis) -> Outcome<Options> {
    let data = data_directory(args.data)?;
    let mut kinds = args.kinds;
    if kinds.is_empty() {
        kinds = Trouble::ALL.into();
    }
    kinds.sort_unstable();
    kinds.dedup();
    Ok(Options {
        program: lab.servers()?,
        servers: args.servers.into(),
        clients: args.clients.into(),
        time: Duration::from_secs(args.seconds),
        seed: args.seed.unwrap_or_else(random_seed),
        kinds,
        history: history(args.history)?,
        data,
        timeout: lab.timeout_or(TIMEOUT)?,
        pause: args.pause,
    })
}

fn print(out: Output, report: &Report) -> Outcome {
    let head = columns("trouble | > times | ");
    let row = |fired: &TroubleCount| {
        let why = fired.not_run.as_ref();
        vec![
            fired.trouble.to_string(),
            fired.times.to_string(),
            why.map_or(String::new(), |why| format!("not run: {why}")),
        ]
    };
    let rows: Vec<_> = report.troubles.iter().map(row).collect();
    out.table(&head, &rows)?;
    out.line("")?;
    out.bytes(report.judged.as_bytes())?;
    out.line("")?;
    let seconds = |ms: u64| ms as f64 / 1000.0;
    for (domain, gap) in &report.longest_gap_ms {
        let gap = seconds(*gap);
        out.line(&format!(
            "  longest time without a success in '{domain}': {gap:.2} s"
        ))?;
    }
    let keys = report.key_requests;
    if keys.answered > 0 {
        out.line(&format!(
            "  keys: {} requests answered, {} refused after the end of their right; the last that was answered after such an end began {:.2} s later",
            keys.answered,
            keys.refused,
            seconds(keys.longest_after_end_ms)
        ))?;
    }
    out.line(&format!(
        "  {} operations and {} kill -9 in {:.1} s of trouble, {:.1} s in all",
        report.total(),
        report.kills,
        seconds(report.trouble_ms),
        seconds(report.total_ms)
    ))?;
    for sentence in &report.violations {
        out.line(&format!("  BROKEN: {sentence}"))?;
    }
    match report.holds() {
        true => out.line("verdict: every promise was kept"),
        false => out.line("verdict: BROKEN"),
    }
}

fn judge(report: &Report) -> Outcome {
    let seed = report.seed;
    if !report.holds() {
        let path = |path: Option<&Path>| path.map_or(String::new(), |p| p.display().to_string());
        return Err(Failure::new(
            Code::Other,
            format!(
                "a promise was broken (seed {seed}): the history is {}, directories and logs of the servers are in {}",
                path(report.history.as_deref()),
                path(report.kept.as_deref())
            ),
        ));
    }
    let missed: Vec<&str> = report
        .never_fired()
        .iter()
        .map(|kind| kind.word())
        .collect();
    match missed.is_empty() {
        true => Ok(()),
        false => Err(Failure::other(format!(
            "nothing was broken, but not everything was tried (seed {seed}): {} met no traffic",
            missed.join(", ")
        ))),
    }
}
