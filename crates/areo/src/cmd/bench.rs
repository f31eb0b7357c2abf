//! `areo bench`: real servers, measured and troubled.

mod availability;
mod fares;
mod limits;
mod paper;
mod peers;
mod reconfig;
mod report;
mod wide_area;

use crate::args::{Bench, DapWord, Nemesis};
use crate::exit::{Code, Failure, Outcome, plain};
use crate::output::{Column, Output};
use crate::program;
use crate::progress;
use crate::session::{self, Session};
use areo_bench::cluster::{ClusterError, Program};
use areo_bench::{Fired, Options, Progress, Report, RunError, Trouble};
use areo_client::{Dap, DapKind, Shape};
use areo_telemetry::Recorder;
use indicatif::ProgressBar;
use serde::Serialize;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long an operation may take while there is trouble, unless `--timeout` says otherwise: most of what happens is
/// over sooner.
const TIMEOUT: Duration = Duration::from_secs(2);

pub(super) fn run(session: &Session, command: Bench, recorder: &Recorder) -> Outcome {
    match command {
        Bench::Availability(args) => availability::run(session, args),
        Bench::Limits(args) => limits::run(session, args),
        Bench::Nemesis(args) => nemesis(session, args),
        Bench::Peers(args) => peers::run(session, *args, recorder),
        Bench::Report(args) => report::draw(&args),
        Bench::Paper(args) => paper::run(session, args),
        Bench::Reconfig(args) => reconfig::run(session, args),
        Bench::WideArea(args) => wide_area::run(session, args),
    }
}

/// The directory in which servers keep their data.
fn data_directory(data: Option<PathBuf>) -> Outcome<PathBuf> {
    let data = data.unwrap_or_else(std::env::temp_dir);
    if !data.is_dir() {
        let data = data.display();
        return Err(Failure::usage(format!(
            "--data {data} is no directory: name one that exists"
        )));
    }
    if data.to_str().is_none() {
        return Err(Failure::usage(
            "--data is not UTF-8: name another directory",
        ));
    }
    Ok(data)
}

/// Where the history goes; that it cannot be written is told now, and not when servers run already.
fn history(history: Option<PathBuf>) -> Outcome<Option<PathBuf>> {
    if let Some(history) = &history {
        let created = File::create(history);
        created.map_err(|error| Failure::file("write the history", history, &error))?;
    }
    Ok(history)
}

/// A new file; that it cannot be written is told before anything is measured.
fn create(path: PathBuf) -> Outcome<(PathBuf, File)> {
    match File::create(&path) {
        Ok(file) => Ok((path, file)),
        Err(error) => Err(Failure::file("write", &path, &error)),
    }
}

/// How a domain on so many servers keeps values.
fn dap(dap: DapWord, k: Option<u8>, servers: usize) -> Outcome<Dap> {
    let kind = DapKind::from(dap);
    match k {
        Some(_) if !kind.is_coded() => {
            Err(Failure::usage("--k is for --dap ec: replicas are whole"))
        }
        k => Ok(kind.with(k.unwrap_or_else(|| Shape::default_k(servers)))),
    }
}

/// What runs servers.
fn servers_program() -> Outcome<Program> {
    let path = program::path()
        .map_err(|error| Failure::other(format!("cannot find this program: {error}")))?;
    Ok(Program {
        connect: session::connect_options(),
        ..Program::new(move || program::server(&path))
    })
}

fn nemesis(session: &Session, args: Nemesis) -> Outcome {
    let out = session.out;
    let seconds = args.seconds;
    let options = options(session, args)?;
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

/// Does the work, and shows the report.
fn finish<R: Serialize>(
    out: Output,
    (what, bar): (&str, &ProgressBar),
    work: impl Future<Output = Result<R, RunError>>,
    print: impl FnOnce(Output, &R) -> Outcome,
) -> Outcome<R> {
    let work = async { work.await.map_err(|error| failure(what, &error)) };
    let report = session::run(work, "");
    bar.finish_and_clear();
    let report = report?;
    match out.json {
        true => out.object(&report)?,
        false => print(out, &report)?,
    }
    Ok(report)
}

fn options(session: &Session, args: Nemesis) -> Outcome<Options> {
    let data = data_directory(args.data)?;
    let mut kinds = args.kinds;
    if kinds.is_empty() {
        kinds = Trouble::ALL.into();
    }
    kinds.sort_unstable();
    kinds.dedup();
    Ok(Options {
        program: servers_program()?,
        servers: args.servers.into(),
        clients: args.clients.into(),
        time: Duration::from_secs(args.seconds),
        seed: args.seed.unwrap_or_else(random_seed),
        kinds,
        history: history(args.history)?,
        data,
        timeout: session.timeout_or(TIMEOUT)?,
        pause: args.pause,
    })
}

/// The command as it was typed, but for where the program is.
fn command() -> String {
    let words = std::env::args_os().skip(1);
    let words: Vec<String> = words
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    format!("areo {}", words.join(" "))
}

/// Short enough to be typed again.
fn random_seed() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(0) % 1_000_000_000
}

fn failure(what: &str, error: &RunError) -> Failure {
    let why = match error {
        RunError::System { what, source }
        | RunError::Cluster {
            source: ClusterError::System { what, source },
        } => format!("cannot {what}: {}", plain(source)),
        other => other.to_string(),
    };
    Failure::other(format!("{what} could not do its work: {why}"))
}

fn print(out: Output, report: &Report) -> Outcome {
    let columns = [
        Column::Text("trouble"),
        Column::Number("times"),
        Column::Text(""),
    ];
    let row = |fired: &Fired| {
        let why = fired.not_run.as_ref();
        vec![
            fired.trouble.to_string(),
            fired.times.to_string(),
            why.map_or(String::new(), |why| format!("not run: {why}")),
        ]
    };
    let rows: Vec<_> = report.troubles.iter().map(row).collect();
    out.table(&columns, &rows)?;
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
        .map(|kind| kind.name())
        .collect();
    match missed.is_empty() {
        true => Ok(()),
        false => Err(Failure::other(format!(
            "nothing was broken, but not everything was tried (seed {seed}): {} met no traffic",
            missed.join(", ")
        ))),
    }
}
