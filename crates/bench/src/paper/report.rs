//! The results of an experiment.

use crate::spread::Spread;
use crate::system::Machine;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write;

/// The result of an experiment. The names of the fields are those of `--json`, and stay.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Report {
    /// `paper`: which report this is.
    pub report: String,
    /// Time of the run, in milliseconds since 1970.
    pub made_at_ms: u64,
    /// The command line of the repetition.
    pub command: String,
    pub machine: Machine,
    /// The name of the experiment.
    pub experiment: String,
    pub scale: String,
    /// The differences of the scale from the publication.
    pub changes: Vec<String>,
    /// Runs of each point.
    pub runs: usize,
    /// The seed that everything was drawn from.
    pub seed: u64,
    /// Variants that were not, and why.
    pub not_run: Vec<String>,
    pub points: Vec<Point>,
    /// Variants beside each other, and beside the publication.
    pub comparisons: Vec<Comparison>,
    /// Counts that do not depend on the machine.
    pub laws: Vec<Law>,
    /// Operations that failed, or read a value that no client wrote.
    pub failed: u64,
    /// The first of them, as sentences.
    pub failures: Vec<String>,
    /// The time that all of it took.
    pub total_ms: u64,
}

/// A variant at a point.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Point {
    /// The variant, as the papers call it.
    pub variant: String,
    /// The algorithm of reads and writes: ARES, CoARES, or `CoARESF`.
    pub algorithm: String,
    /// The point: size, and the other varied parameter.
    pub at: String,
    /// The setting in figures.
    pub setting: Setting,
    /// Latency of a read as published, at the nearest size that was.
    pub published_read_ms: Option<f64>,
    /// The size of that published value.
    pub published_at: Option<String>,
    /// Means of the operations of a run, over the runs. Bytes: received by a read, sent by a write.
    pub values: BTreeMap<String, Spread>,
}

/// The parameters of a point.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Setting {
    /// Bytes of the object or file.
    pub size: usize,
    pub servers: usize,
    /// Fragments that make a value, where it is coded.
    pub k: usize,
    /// Bytes of a block of a file, about.
    pub block_bytes: usize,
    pub readers: usize,
    pub writers: usize,
    pub reconfigurers: usize,
    /// The ends at which the reconfigurations of E7 were left: `a` or `b`.
    pub left: Option<String>,
}

/// Two variants that differ in one thing.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Comparison {
    /// The difference of the two variants.
    pub relation: String,
    /// The quantity that is compared.
    pub quantity: String,
    /// The variant whose quantity is the numerator.
    pub above: String,
    /// The variant whose quantity is the denominator.
    pub below: String,
    /// The point at which both were measured.
    pub at: String,
    /// The ratio, run by run.
    pub ratio: Spread,
    /// The ratio of the published figures.
    pub published: Option<f64>,
    /// The size that they were measured at.
    pub published_at: Option<String>,
    /// The verdict on the order, against the published one.
    pub verdict: Verdict,
    /// Reason for a verdict other than `Holds`.
    pub reason: String,
}

/// The verdict on an order, against the published one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The order is the published one.
    Holds,
    /// The order is not the published one.
    Differs,
    /// Runs fall on both sides.
    Undecided,
    /// The publication has no figures for it.
    Unpublished,
}

impl Verdict {
    /// The word that people read; nothing where nothing was published.
    pub fn word(self) -> &'static str {
        match self {
            Verdict::Holds => "holds",
            Verdict::Differs => "differs",
            Verdict::Undecided => "undecided",
            Verdict::Unpublished => "",
        }
    }
}

/// A count that does not depend on the machine.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Law {
    /// The counted quantity.
    pub what: String,
    pub variant: String,
    /// The point at which it was measured.
    pub at: String,
    pub expected: String,
    /// The measured value, over all operations and runs.
    pub measured: String,
    /// True if it was that each time.
    pub holds: bool,
}

impl Law {
    /// The word that people read.
    pub fn word(&self) -> &'static str {
        match self.holds {
            true => "holds",
            false => "BROKEN",
        }
    }
}

impl Report {
    /// The laws that were broken.
    pub fn broken(&self) -> impl Iterator<Item = &Law> {
        self.laws.iter().filter(|law| !law.holds)
    }

    /// All that was measured, as a table with a head: a line for every quantity of every point, then for every ratio.
    pub fn csv(&self) -> String {
        let mut csv = String::from("kind,variant,against,at,quantity,median,min,max,published\n");
        let published = |figure: Option<f64>| figure.map_or(String::new(), |f| f.to_string());
        for point in &self.points {
            for (quantity, Spread { median, min, max }) in &point.values {
                let figure = point.published_read_ms.filter(|_| quantity == "read_ms");
                let _ = writeln!(
                    csv,
                    "measured,{},,{},{quantity},{median},{min},{max},{}",
                    point.variant,
                    point.at,
                    published(figure)
                );
            }
        }
        for of in &self.comparisons {
            let Spread { median, min, max } = of.ratio;
            let _ = writeln!(
                csv,
                "ratio,{},{},{},{},{median},{min},{max},{}",
                of.above,
                of.below,
                of.at,
                of.quantity,
                published(of.published)
            );
        }
        csv
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_csv_for_every_figure() {
        let spread = Spread {
            median: 2.0,
            min: 1.0,
            max: 3.5,
        };
        let values = BTreeMap::from([("read_ms".into(), spread), ("read_rounds".into(), spread)]);
        let report = Report {
            report: "paper".into(),
            made_at_ms: 0,
            command: "areo-lab paper E7".into(),
            machine: Machine::this(),
            experiment: "E7".into(),
            scale: "quick".into(),
            changes: Vec::new(),
            runs: 3,
            seed: 1,
            not_run: Vec::new(),
            points: vec![Point {
                variant: "ARES PB".into(),
                algorithm: "ARES".into(),
                at: "(a) 1 MiB".into(),
                setting: Setting {
                    size: 1 << 20,
                    servers: 11,
                    k: 6,
                    block_bytes: 512 << 10,
                    readers: 10,
                    writers: 1,
                    reconfigurers: 0,
                    left: Some("a".into()),
                },
                published_read_ms: Some(494.0),
                published_at: Some("1 MiB".into()),
                values,
            }],
            comparisons: Vec::new(),
            laws: Vec::new(),
            failed: 0,
            failures: Vec::new(),
            total_ms: 1,
        };
        let csv = report.csv();
        let lines: Vec<&str> = csv.lines().collect();
        assert_eq!(lines[1], "measured,ARES PB,,(a) 1 MiB,read_ms,2,1,3.5,494");
        assert_eq!(lines[2], "measured,ARES PB,,(a) 1 MiB,read_rounds,2,1,3.5,");
        assert_eq!(lines.len(), 3);
        let fields = |line: &&str| line.split(',').count();
        assert!(lines.iter().all(|line| fields(line) == 9), "{csv}");
    }
}
