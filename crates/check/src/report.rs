//! The verdicts of the judges, for people and for programs.

use crate::{Kind, Outcome, Version};
use serde::Serialize;
use std::fmt;

/// A promised property.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Property {
    /// Every object is a linearizable register.
    Linearizable,
    /// Versions agree with values and with real time (oracle O1).
    VersionOrder,
    /// A regular read returns the value of the last completed or of a concurrent write.
    Regular,
    /// Coverable writes: validity, consolidation, continuity, evolution (`[V-1 weak-coverability]`,
    /// `[V-2 coverable-properties]`).
    Coverable,
    /// Each version is replaced by one conditional write at most.
    OneWinner,
    /// Files of blocks: created first, connected, acyclic (`[B-1 never-unlinked]`, `[B-3 create-first]`, oracle O5).
    Fragmented,
    /// Configurations of a domain: uniqueness, subsequence, progress.
    Configurations,
}

impl fmt::Display for Property {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Property::Linearizable => "linearizable",
            Property::VersionOrder => "version order",
            Property::Regular => "regular",
            Property::Coverable => "coverable",
            Property::OneWinner => "one winner",
            Property::Fragmented => "fragmented",
            Property::Configurations => "configurations",
        })
    }
}

/// The verdict on one property, or on all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Nothing of the kind was in the history.
    Nothing,
    Holds,
    /// It holds as far as it could be judged, which was not everywhere.
    Unjudged,
    /// It does not hold.
    Violated,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Verdict::Nothing => "nothing to judge",
            Verdict::Holds => "holds",
            Verdict::Unjudged => "not judged everywhere",
            Verdict::Violated => "VIOLATED",
        })
    }
}

/// Numbers of operations of one kind, by outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Counts {
    pub kind: Kind,
    /// The number that succeeded.
    pub ok: u64,
    /// The number that failed or lost.
    pub fail: u64,
    /// The number that ended unknown or not at all.
    pub unknown: u64,
}

/// One operation of a violation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ShownOperation {
    /// Time of the invocation, in nanoseconds.
    pub invoked_ns: u64,
    /// Time of the end, in nanoseconds; `None` if it is unknown.
    pub ended_ns: Option<u64>,
    /// Name of the client.
    pub client: String,
    /// Its number among the client's operations.
    pub op: u64,
    pub kind: Kind,
    pub outcome: &'static str,
    pub key: String,
    /// The value written or returned; nothing for absent.
    pub value: Option<String>,
    /// The version written or returned.
    pub version: Option<Version>,
    /// The version that it is for.
    pub based_on: Option<Version>,
    /// The configurations that its client knew at the end, such as `0:a! 1:b`; `!` marks a final one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sequence: Option<String>,
}

/// A proof that a property does not hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Violation {
    pub property: Property,
    pub domain: String,
    /// The key, or the file; nothing for configurations.
    pub key: Option<String>,
    /// One sentence on the fault.
    pub what: String,
    /// A small set of operations that shows it, in the order of their invocations.
    pub operations: Vec<ShownOperation>,
}

/// Something that could not be judged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UnjudgedPart {
    pub domain: String,
    /// The key, or the file; nothing for configurations.
    pub key: Option<String>,
    /// The reason why it could not be judged.
    pub reason: String,
}

/// The verdict on one property.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PropertyReport {
    pub property: Property,
    pub verdict: Verdict,
    /// Number of objects, files or domains that it concerns.
    pub judged: u64,
    /// On how many of them it does not hold.
    pub violated: u64,
    /// The first of the violations, at most [`Report::SHOWN_MAX`].
    pub violations: Vec<Violation>,
    /// The number that could not be judged.
    pub unjudged: u64,
    /// The first of those, at most [`Report::SHOWN_MAX`].
    pub unjudged_first: Vec<UnjudgedPart>,
}

/// The verdict on a history. `Display` is for people, `Serialize` for programs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Report {
    /// The worst of the properties' verdicts.
    pub verdict: Verdict,
    /// The number of events.
    pub events: u64,
    /// The number of operations that they are of.
    pub operations: u64,
    /// The number of clients that invoked them.
    pub clients: u64,
    /// The number of objects that they are on.
    pub objects: u64,
    /// The operations by kind; only kinds that occur.
    pub counts: Vec<Counts>,
    /// The verdicts, one per property.
    pub properties: Vec<PropertyReport>,
}

impl Report {
    /// Maximum number of violations of each property in a report.
    pub const SHOWN_MAX: usize = 8;

    /// The report on one property.
    pub fn property(&self, property: Property) -> &PropertyReport {
        let mut reports = self.properties.iter();
        let found = reports.find(|report| report.property == property);
        found.expect("every property has its report")
    }
}

pub(crate) fn outcome_text(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Ok => "ok",
        Outcome::Fail => "fail",
        Outcome::Unknown => "unknown",
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} operations ({} events) of {} clients on {} objects\n",
            self.operations, self.events, self.clients, self.objects
        )?;
        for Counts {
            kind,
            ok,
            fail,
            unknown,
        } in &self.counts
        {
            writeln!(
                f,
                "  {kind:<17} {ok:>9} ok {fail:>9} fail {unknown:>9} unknown"
            )?;
        }
        writeln!(f)?;
        for report in &self.properties {
            write!(f, "  {:<17} {}", report.property, report.verdict)?;
            match report.verdict {
                Verdict::Nothing => writeln!(f)?,
                Verdict::Holds => writeln!(f, " (judged: {})", report.judged)?,
                _ => writeln!(
                    f,
                    " (judged: {}, violated: {}, not judged: {})",
                    report.judged, report.violated, report.unjudged
                )?,
            }
        }
        for violation in self.properties.iter().flat_map(|report| &report.violations) {
            write!(f, "\n{violation}")?;
        }
        for report in &self.properties {
            for UnjudgedPart {
                domain,
                key,
                reason,
            } in &report.unjudged_first
            {
                let key = key.as_deref().unwrap_or_default();
                writeln!(
                    f,
                    "\nNot judged: {}, {domain}/{key}: {reason}",
                    report.property
                )?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = self.key.as_deref().unwrap_or_default();
        writeln!(
            f,
            "Violation of {}, {}/{key}:\n  {}",
            self.property, self.domain, self.what
        )?;
        let width = |text: fn(&ShownOperation) -> String| {
            self.operations
                .iter()
                .map(|o| text(o).len())
                .max()
                .unwrap_or(0)
        };
        let (from, to) = (
            width(|o| o.invoked_ns.to_string()),
            width(ShownOperation::ended),
        );
        let (who, kind) = (width(ShownOperation::who), width(|o| o.kind.to_string()));
        for operation in &self.operations {
            write!(
                f,
                "    {:>from$} .. {:>to$} ns  {:<who$}  {:<kind$}",
                operation.invoked_ns,
                operation.ended(),
                operation.who(),
                operation.kind
            )?;
            writeln!(f, "  {}", operation.details(self.key.as_deref()))?;
        }
        Ok(())
    }
}

impl ShownOperation {
    fn ended(&self) -> String {
        self.ended_ns
            .map_or_else(|| "?".to_owned(), |t| t.to_string())
    }

    fn who(&self) -> String {
        format!("{}#{}", self.client, self.op)
    }

    fn details(&self, key: Option<&str>) -> String {
        let mut parts = Vec::new();
        if key != Some(&self.key) && !self.key.is_empty() {
            parts.push(format!("key {}", self.key));
        }
        match (&self.value, self.kind, self.outcome) {
            (Some(value), ..) => parts.push(value.clone()),
            (None, Kind::Read | Kind::RegularRead, "ok") => parts.push("absent".to_owned()),
            _ => {}
        }
        parts.extend(self.version.map(|version| format!("version {version}")));
        parts.extend(self.based_on.map(|version| format!("based on {version}")));
        parts.extend(
            self.sequence
                .as_ref()
                .map(|sequence| format!("knows {sequence}")),
        );
        if self.outcome != "ok" {
            parts.push(format!("({})", self.outcome));
        }
        parts.join("  ")
    }
}
