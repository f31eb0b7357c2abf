//! `areo-lab probe s3`: what a store promises.

use super::{Lab, NAME};
use crate::args::{Probe as Command, ProbeS3};
use areo::exit::{Code, Failure, Outcome};
use areo::output::Output;
use areo::{progress, session};
use areo_lab::probe::{Case, Credentials, Options, Plan, Probe, ProbeError, Report, Verdict, page};
use areo_lab::shared::{command, create, write};
use areo_s3::auth::Timestamp;
use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The longest time for a request, unless `--timeout` says otherwise.
const TIMEOUT: Duration = Duration::from_secs(10);

pub(super) fn run(lab: &Lab<'_>, command: Command) -> Outcome {
    let Command::S3(args) = command;
    s3(lab, *args)
}

fn s3(lab: &Lab<'_>, args: ProbeS3) -> Outcome {
    let out = lab.out;
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let credentials = Credentials::find(args.credentials.as_deref(), args.region, variable);
    let credentials = credentials.map_err(Failure::usage)?;
    let html = args.html.map(create).transpose()?;
    let history = args.history.map(create).transpose()?;
    let options = Options {
        endpoints: args.endpoints,
        credentials,
        bucket: args.bucket,
        patience: lab.timeout_or(TIMEOUT)?,
        ca: args.ca,
        seed: RandomState::new().hash_one(0),
        plan: Plan {
            writers: args.writers.into(),
            rounds: args.rounds.into(),
            minority_away: args.minority_away,
            quorum_away: args.quorum_away,
            back: args.back,
        },
    };
    let probe = Probe::new(options).map_err(failure)?;
    let bar = progress::count(out, "the bucket", Case::ALL.len() as u64);
    let observe = |case: Case| {
        bar.set_message(case.name());
        bar.inc(1);
    };
    let work = async {
        probe.begin().await.map_err(failure)?;
        probe.draw(observe).await.map_err(failure)
    };
    let drawn = session::run(work, "");
    bar.finish_and_clear();
    // Also after Ctrl-C: a second one ends the process.
    let removed = session::run_unwatched(async { Ok(probe.remove().await) });
    let removed = removed?.map_err(Failure::other);
    let report = match (drawn, removed) {
        (Ok(report), removed) => {
            print(out, &report)?;
            let page = html
                .is_some()
                .then(|| page(&report, &command(NAME), &date()));
            write([(html, page.as_deref().unwrap_or_default())])?;
            write_history(&probe, history)?;
            removed?;
            report
        }
        // Nothing was made where nothing answers.
        (Err(failure), Ok(())) => return Err(failure),
        (Err(failure), Err(_)) if failure.code == Code::Unavailable => return Err(failure),
        (Err(failure), Err(left)) => {
            let message = match failure.message.as_str() {
                "" => left.message,
                message => format!("{message}; {left}"),
            };
            return Err(Failure::new(failure.code, message));
        }
    };
    judge(&report)
}

fn print(out: Output, report: &Report) -> Outcome {
    match out.json {
        true => out.object(report),
        false => out.line(report.to_string().trim_end()),
    }
}

fn write_history(probe: &Probe, history: Option<(PathBuf, File)>) -> Outcome {
    let Some((path, file)) = history else {
        return Ok(());
    };
    let mut file = BufWriter::new(file);
    let written = probe.write_history(&mut file).and_then(|()| file.flush());
    let path: &Path = &path;
    written.map_err(|error| Failure::file("write the history", path, &error))
}

fn judge(report: &Report) -> Outcome {
    let named = |verdict: Verdict| {
        let cases = report.cases.iter().filter(|case| case.verdict == verdict);
        cases.map(|case| case.name).collect::<Vec<_>>().join(", ")
    };
    match report.verdict {
        Verdict::Violated => {
            let cases = named(Verdict::Violated);
            Err(Failure::other(format!(
                "the store violates {cases}: see the report"
            )))
        }
        Verdict::Unjudged => {
            let cases = named(Verdict::Unjudged);
            let message = format!("could not be judged: {cases}; see the report");
            Err(Failure::new(Code::Unknown, message))
        }
        _ => Ok(()),
    }
}

/// The current date in UTC.
fn date() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = Timestamp::of_unix_seconds(now.map_or(0, |since| since.as_secs()));
    let day = now.expect("before the year 9999").day();
    format!("{}-{:02}-{:02}", day / 10_000, day / 100 % 100, day % 100)
}

fn failure(error: ProbeError) -> Failure {
    match error {
        ProbeError::Input(sentence) => Failure::usage(sentence),
        ProbeError::Unreachable(sentence) => Failure::new(Code::Unavailable, sentence),
        ProbeError::Unauthorised(sentence) => Failure::new(Code::Unauthorised, sentence),
        ProbeError::NoBucket(sentence) => Failure::new(Code::NotFound, sentence),
        ProbeError::Other(sentence) => Failure::other(sentence),
    }
}
