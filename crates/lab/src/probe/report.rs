//! The verdict of a run.

use super::cases::{Case, Remarks};
use super::judge::{Finding, findings};
use super::operation::{Ending, Operation, ShownOperation, shown};
use super::run::Notes;
use serde::Serialize;
use std::fmt;
use std::time::Duration;

/// Violations that are shown of a case.
const SHOWN_MAX: usize = 3;

/// The limits of a run, a part of every report.
const LIMITS: &str = "A run shows what was violated. What held, held for these requests at this time: another load, a crash, a slow disk, a clock that jumps, \
or a network that is cut between two gateways may bring out what was not drawn.";

/// The verdict on a case, the best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// It was violated by no operation.
    Holds,
    /// The store promises nothing of the kind, and broke nothing.
    NotOffered,
    /// The store says that it does not do this.
    Refused,
    /// The user gave no means to draw it.
    NotDrawn,
    /// Answers do not tell.
    Unjudged,
    /// Operations show that it does not hold.
    Violated,
}

impl Verdict {
    /// The word for people.
    pub fn word(self) -> &'static str {
        match self {
            Verdict::Holds => "holds",
            Verdict::NotOffered => "not offered",
            Verdict::Refused => "refused",
            Verdict::NotDrawn => "not drawn",
            Verdict::Unjudged => "NOT JUDGED",
            Verdict::Violated => "VIOLATED",
        }
    }
}

/// A violation in the report.
#[derive(Clone, Debug, Serialize)]
pub struct ViolationReport {
    /// The sentence that says the fault.
    pub what: String,
    /// The smallest set of operations that shows it.
    pub operations: Vec<ShownOperation>,
}

/// The verdict on a case.
#[derive(Clone, Debug, Serialize)]
pub struct CaseReport {
    #[serde(skip)]
    case: Case,
    pub name: &'static str,
    /// The question to the store.
    pub question: &'static str,
    pub verdict: Verdict,
    /// The reason for the verdict, or the drawn parameters.
    pub sentence: String,
    /// Operations of the case.
    pub operations: usize,
    /// Number of successful operations.
    pub succeeded: usize,
    /// Operations that surely had no effect.
    pub lost: usize,
    /// Operations of unknown outcome.
    pub unknown: usize,
    /// The number of violations: at most one for each object.
    pub violated: usize,
    /// The smallest of them.
    pub violations: Vec<ViolationReport>,
}

/// The result under the name of a check that software makes when it starts.
#[derive(Clone, Debug, Serialize)]
pub struct StartupReport {
    pub name: &'static str,
    /// The question of its check.
    pub question: &'static str,
    /// The worst verdict of the cases that ask the same.
    pub verdict: Verdict,
    /// Names of the cases that decide it.
    pub cases: Vec<&'static str>,
}

/// The verdict on a store.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    pub endpoints: Vec<String>,
    pub bucket: String,
    /// Clients that wrote at once.
    pub writers: usize,
    /// Operations of all cases.
    pub operations: usize,
    pub seconds: f64,
    /// The verdict on everything that was drawn: `holds`, `unjudged` or `violated`.
    pub verdict: Verdict,
    pub cases: Vec<CaseReport>,
    /// The results under the names of startup checks of other software.
    pub startup_checks: Vec<StartupReport>,
    /// The limits of the run.
    pub limits: &'static str,
}

impl CaseReport {
    pub(super) fn not_drawn(case: Case, sentence: &str) -> CaseReport {
        CaseReport {
            case,
            name: case.name(),
            question: case.question(),
            verdict: Verdict::NotDrawn,
            sentence: sentence.to_owned(),
            operations: 0,
            succeeded: 0,
            lost: 0,
            unknown: 0,
            violated: 0,
            violations: Vec::new(),
        }
    }

    pub(super) fn of(
        case: Case,
        notes: &Notes,
        remarks: Remarks,
        endpoints: &[String],
    ) -> CaseReport {
        let operations = &notes.operations;
        let count = |is: fn(Ending) -> bool| operations.iter().filter(|one| is(one.ending)).count();
        let found = findings(operations);
        let show = |Finding { what, places }: Finding| {
            let set: Vec<&Operation> = places.iter().map(|&place| &operations[place]).collect();
            let operations = shown(&set, endpoints);
            ViolationReport { what, operations }
        };
        let claims = remarks.claims.into_iter().map(|claim| ViolationReport {
            what: claim.what,
            operations: claim.operations,
        });
        let mut violations: Vec<ViolationReport> =
            found.into_iter().map(show).chain(claims).collect();
        let violated = violations.len();
        violations.sort_by_key(|one| one.operations.len());
        violations.truncate(SHOWN_MAX);
        let succeeded = count(|ending| ending == Ending::Done);
        let remark = remarks.verdict;
        let (verdict, sentence) = match (&violations[..], &notes.refusals[..], remark) {
            ([first, ..], ..) => (Verdict::Violated, first.what.clone()),
            ([], [first, ..], _) => (
                Verdict::Refused,
                format!("the store does not do this: {first}"),
            ),
            ([], [], Some((verdict, sentence))) => (verdict, sentence),
            ([], [], None) => match notes.rejections.first() {
                Some(first) => (
                    Verdict::Unjudged,
                    format!("an answer was not foreseen: {first}"),
                ),
                None if succeeded == 0 => (Verdict::Unjudged, "no request succeeded".to_owned()),
                None => (Verdict::Holds, remarks.note.unwrap_or_default()),
            },
        };
        CaseReport {
            verdict,
            sentence,
            operations: operations.len(),
            succeeded,
            lost: count(|ending| !matches!(ending, Ending::Done | Ending::Unknown)),
            unknown: count(|ending| ending == Ending::Unknown),
            violated,
            violations,
            ..CaseReport::not_drawn(case, "")
        }
    }
}

impl Report {
    pub(super) fn new(
        endpoints: Vec<String>,
        bucket: String,
        writers: usize,
        cases: Vec<CaseReport>,
        took: Duration,
    ) -> Report {
        let worst = cases.iter().map(|case| case.verdict).max();
        let verdict = match worst {
            Some(Verdict::Violated) => Verdict::Violated,
            Some(Verdict::Unjudged) => Verdict::Unjudged,
            _ => Verdict::Holds,
        };
        Report {
            endpoints,
            bucket,
            writers,
            operations: cases.iter().map(|case| case.operations).sum(),
            seconds: (took.as_millis() as f64) / 1_000.0,
            verdict,
            startup_checks: startup_checks(&cases, writers),
            cases,
            limits: LIMITS,
        }
    }
}

/// Checks that software makes of its store when it starts, by the cases that ask the same.
fn startup_checks(cases: &[CaseReport], writers: usize) -> Vec<StartupReport> {
    let row = |name, question, asks: &[Case]| {
        let asked = cases.iter().filter(|one| asks.contains(&one.case));
        let worst = asked.clone().map(|one| one.verdict).max();
        StartupReport {
            name,
            question,
            verdict: worst.unwrap_or(Verdict::NotDrawn),
            cases: asked.map(|one| one.name).collect(),
        }
    };
    let mut ravel = row(
        "ravel",
        "eight writers create one key: one wins, and its bytes stay; a listing is in order, in pages and after a key; a deleted key is gone from GET and from listings",
        &[
            Case::Create,
            Case::Pages,
            Case::ReadAfterWrite,
            Case::ListAfterWrite,
        ],
    );
    if writers < 8 && ravel.verdict < Verdict::NotDrawn {
        ravel.verdict = Verdict::NotDrawn;
    }
    vec![
        row(
            "celld",
            "four writes of one key: a create; a second create, refused; a replacement; one of a stale ETag, refused",
            &[Case::FourWrites],
        ),
        row(
            "buzz",
            "the same four in turn; of 32 writers that replace one version, and of 32 that create one key, one wins; GET and HEAD name one ETag",
            &[Case::FourWrites, Case::Gate, Case::Etags],
        ),
        ravel,
    ]
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "S3 at {}, bucket {}: {} operations of up to {} writers in {:.1} s\n",
            self.endpoints.join(", "),
            self.bucket,
            self.operations,
            self.writers.max(32),
            self.seconds
        )?;
        for case in &self.cases {
            let counts = match case.operations {
                0 => String::new(),
                count => format!(
                    "{count} operations: {} succeeded, {} lost, {} unknown",
                    case.succeeded, case.lost, case.unknown
                ),
            };
            let separator = if counts.is_empty() || case.sentence.is_empty() {
                ""
            } else {
                "; "
            };
            let word = case.verdict.word();
            writeln!(
                f,
                "  {:<18}  {word:<11}  {}{separator}{counts}",
                case.name, case.sentence
            )?;
        }
        writeln!(f, "\nChecks of others when they start:\n")?;
        for check in &self.startup_checks {
            let word = check.verdict.word();
            writeln!(f, "  {:<18}  {word:<11}  {}", check.name, check.question)?;
        }
        for case in &self.cases {
            for ViolationReport { what, operations } in &case.violations {
                writeln!(f, "\n{}: {what}\n", case.name)?;
                for one in operations {
                    let to = one.to_ms.map_or("?".to_owned(), |to| format!("{to:.3}"));
                    writeln!(
                        f,
                        "  {:>9.3} .. {to:>9} ms  {:<10}  {}  {}  -> {}",
                        one.from_ms, one.client, one.endpoint, one.request, one.answer
                    )?;
                }
            }
        }
        writeln!(f, "\nverdict: {}. {}", self.verdict.word(), self.limits)
    }
}
