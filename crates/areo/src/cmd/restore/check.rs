//! `areo restore --check`: verifies all of a backup, without a cluster.

use crate::cmd::archive::{Archive, Kind, damaged, verify};
use crate::exit::{Code, Failure, Outcome};
use crate::output::Output;
use crate::progress;
use areo_client::units::{show_count, show_size};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::Path;
use tokio::task::JoinSet;

/// Values that are read at the same time.
const READERS: usize = 8;
/// Damages that are quoted.
const QUOTED: usize = 5;

/// The result; the last line with `--json`.
#[derive(Serialize, Debug)]
struct Report {
    runs: u64,
    domains: u64,
    objects: u64,
    files: u64,
    /// The values of all runs, each once.
    values: u64,
    bytes: u64,
    damaged: u64,
}

/// A value that some run needs.
struct Value {
    bytes: u64,
    /// The first object or file that has it.
    owner: String,
}

pub(super) async fn run(out: Output, folder: &Path) -> Outcome {
    let archive = Archive::open(folder)?;
    let last = archive.last_run()?;
    let mut values = BTreeMap::new();
    for run in 1..=last {
        let state = archive.state(run)?;
        for item in state.items.into_values() {
            values.entry(item.content).or_insert_with(|| Value {
                bytes: item.bytes,
                owner: format!("'{}' of '{}'", item.name.key, item.name.domain),
            });
        }
    }
    let state = archive.state(last)?;
    let count = |kind| state.items.keys().filter(|name| name.kind == kind).count() as u64;
    let mut report = Report {
        runs: last,
        domains: state.domains.len() as u64,
        objects: count(Kind::Object),
        files: count(Kind::File),
        values: values.len() as u64,
        bytes: values.values().map(|value| value.bytes).sum(),
        damaged: 0,
    };
    let bar = progress::bar(out, "verifying", report.bytes);
    let mut reading = JoinSet::new();
    let mut failures = Vec::new();
    let mut values = values.into_iter();
    loop {
        if reading.len() < READERS
            && let Some((hash, value)) = values.next()
        {
            let path = archive.content(&hash);
            reading.spawn_blocking(move || (value.bytes, one(&path, &value)));
            continue;
        }
        let Some(read) = reading.join_next().await else {
            break;
        };
        let (bytes, read) = read.expect("reading does not panic");
        bar.inc(bytes);
        failures.extend(read.err());
    }
    bar.finish_and_clear();
    report.damaged = failures.len() as u64;
    say(out, &report)?;
    ending(failures)
}

fn one(path: &Path, value: &Value) -> Outcome {
    let verified = verify(path).and_then(|bytes| match bytes == value.bytes {
        true => Ok(()),
        false => Err(damaged(
            path,
            "it has another length than the manifest says",
        )),
    });
    verified.map_err(|failure| {
        let sentence = format!("{} ({})", failure.message, value.owner);
        Failure::new(failure.code, sentence)
    })
}

fn say(out: Output, report: &Report) -> Outcome {
    if out.json {
        return out.object(report);
    }
    let runs = show_count(report.runs, "run");
    let domains = show_count(report.domains, "domain");
    let (objects, files) = (
        show_count(report.objects, "object"),
        show_count(report.files, "file"),
    );
    let (values, bytes) = (show_count(report.values, "value"), show_size(report.bytes));
    out.note(&format!(
        "{runs} of {domains}; at the end {objects} and {files}; {values} verified ({bytes})"
    ));
    Ok(())
}

fn ending(failures: Vec<Failure>) -> Outcome {
    let count = failures.len();
    if count == 0 {
        return Ok(());
    }
    let quoted = failures.into_iter().take(QUOTED).map(|one| one.message);
    let more = match count.saturating_sub(QUOTED) {
        0 => String::new(),
        more => format!("; and {more} more"),
    };
    let quoted = quoted.collect::<Vec<_>>().join("; ");
    let sentence = format!("{quoted}{more}: back up into a new directory");
    Err(Failure::new(Code::Corrupted, sentence))
}
