//! `areo-lab explore`: follows every schedule of a small case.

use super::Lab;
use crate::args::Explore;
use areo::exit::{Failure, Outcome};
use areo::output::columns;
use areo::progress;
use areo_sim::explore::{Case, Exploration, Options, cases, explore};
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// A case in the output of `--json`.
#[derive(Serialize)]
struct CaseEntry {
    name: &'static str,
    description: String,
    bound: String,
}

/// An exploration in the output of `--json`.
#[derive(Serialize)]
struct Summary {
    #[serde(flatten)]
    case: CaseEntry,
    states: u64,
    transitions: u64,
    leaves: u64,
    outcomes: usize,
    seconds: f64,
    exhaustive: bool,
    violation: Option<ViolationReport>,
}

#[derive(Serialize)]
struct ViolationReport {
    rule: String,
    schedule: Vec<String>,
    history: PathBuf,
}

impl CaseEntry {
    fn of(case: &Case) -> CaseEntry {
        CaseEntry {
            name: case.name,
            description: case.description.clone(),
            bound: case.bound.clone(),
        }
    }
}

pub(super) fn run(lab: &Lab<'_>, args: &Explore) -> Outcome {
    match &args.name {
        Some(name) if !args.list => one(lab, name, args),
        _ => list(lab),
    }
}

fn list(lab: &Lab<'_>) -> Outcome {
    let out = lab.out;
    let cases: Vec<CaseEntry> = cases::ALL
        .iter()
        .map(|entry| CaseEntry::of(&entry.case()))
        .collect();
    if out.json {
        return cases.iter().try_for_each(|case| out.object(case));
    }
    let row = |case: &CaseEntry| {
        vec![
            case.name.to_owned(),
            case.description.clone(),
            case.bound.clone(),
        ]
    };
    let head = columns("CASE | WHAT HAPPENS | BOUND");
    out.table(&head, &cases.iter().map(row).collect::<Vec<_>>())
}

fn one(lab: &Lab<'_>, name: &str, args: &Explore) -> Outcome {
    let out = lab.out;
    let case = cases::find(name).ok_or_else(|| {
        let known: Vec<&str> = cases::ALL.iter().map(|entry| entry.name).collect();
        Failure::usage(format!(
            "there is no case '{name}': the cases are {}",
            known.join(", ")
        ))
    })?;
    let listed = CaseEntry::of(&case);
    let options = Options {
        states: args.states,
        ..Options::default()
    };
    let bar = progress::count(out, "exploring", 1);
    let began = Instant::now();
    let explored = explore(case, &options, |done, found| {
        bar.set_length(found);
        bar.set_position(done);
    });
    bar.finish_and_clear();
    let seconds = began.elapsed().as_secs_f64();
    let violation = match &explored.violation {
        None => None,
        Some(violation) => Some(ViolationReport {
            rule: violation.rule.clone(),
            schedule: violation.schedule.clone(),
            history: write(&args.history, name, &violation.history)?,
        }),
    };
    let rule = violation.as_ref().map(|violation| violation.rule.clone());
    let summary = summary(listed, &explored, seconds, violation);
    if out.json {
        out.object(&summary)?;
    } else {
        out.bytes(text(&summary).as_bytes())?;
    }
    rule.map_or(Ok(()), |rule| {
        Err(Failure::other(format!("{name} broke a rule: {rule}")))
    })
}

fn write(directory: &Path, name: &str, history: &str) -> Result<PathBuf, Failure> {
    let path = directory.join(format!("explore-{name}.jsonl"));
    std::fs::write(&path, history)
        .map_err(|error| Failure::file("cannot write the history", &path, &error))?;
    Ok(path)
}

fn summary(
    case: CaseEntry,
    explored: &Exploration,
    seconds: f64,
    violation: Option<ViolationReport>,
) -> Summary {
    Summary {
        case,
        states: explored.states,
        transitions: explored.transitions,
        leaves: explored.leaves,
        outcomes: explored.outcomes.len(),
        seconds,
        exhaustive: explored.exhaustive,
        violation,
    }
}

fn text(summary: &Summary) -> String {
    use std::fmt::Write;
    let Summary {
        case,
        states,
        transitions,
        leaves,
        outcomes,
        seconds,
        ..
    } = summary;
    let CaseEntry {
        name,
        description,
        bound,
    } = case;
    let mut text = String::new();
    if let Some(violation) = &summary.violation {
        for line in &violation.schedule {
            writeln!(text, "{line}").expect("memory takes it");
        }
        let history = violation.history.display();
        writeln!(text, "history: {history}").expect("memory takes it");
    }
    let exhaustive = match (summary.exhaustive, bound.is_empty()) {
        (false, _) => "no".to_owned(),
        (true, true) => "yes".to_owned(),
        (true, false) => format!("yes, within the bound: {bound}"),
    };
    writeln!(
        text,
        "{name}: {description}\n{states} states, {transitions} transitions, {leaves} leaves, {outcomes} outcomes in {seconds:.1} s\nexhaustive: {exhaustive}"
    )
    .expect("memory takes it");
    text
}
