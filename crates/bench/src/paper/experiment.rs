//! An experiment, as data. Its row says which variants it compares, what it varies, what it is made with as published, and what
//! was published. `experiments/` has the rows, a file for each source; to add an experiment is to add a row.

use super::compare::{Order, Relation};
use super::experiments::{IN_VIRTUAL_TIME, NOT_HERE, ROWS};
use super::outside::NOT_ON_THE_PATH;
use super::published::Table;
use super::scale::Parameters;
use super::variant::{Algorithm, Extras, Variant};
use areo_client::DapKind;

/// An experiment that can be repeated.
#[derive(Debug)]
pub struct Experiment {
    /// The name in the specification.
    pub name: &'static str,
    pub(super) about: &'static str,
    /// The variants, for people.
    pub(super) compares: &'static str,
    pub(super) variants: &'static [Variants],
    pub(super) procedure: Procedure,
    pub(super) published: Parameters,
    /// The parameters that vary beside the size.
    pub(super) varied: &'static [Variation],
    /// The table of the publication with its latencies of reads.
    pub(super) figures: Option<Table>,
    /// The results that are published in words: that some variants have significantly less or more of these quantities, or as much.
    pub(super) words: &'static [(Relation, Order, &'static [&'static str])],
    /// The parts that the scale `full` leaves out, in sentences.
    pub(super) left_out: &'static [&'static str],
}

impl PartialEq for Experiment {
    fn eq(&self, other: &Experiment) -> bool {
        self.name == other.name
    }
}

impl Eq for Experiment {}

/// Every combination of these.
#[derive(Debug)]
pub(super) struct Variants {
    pub(super) algorithms: &'static [Algorithm],
    pub(super) daps: &'static [DapKind],
    pub(super) extras: &'static [Extras],
    pub(super) etcd: bool,
}

/// The procedure of readers and writers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Procedure {
    /// They work at once, beside reconfigurers if there are some.
    AtOnce,
    /// Readers that know the first configuration read after twelve reconfigurations, which are left in two ways.
    AfterReconfigurations,
    /// Members restart an object because of one impossible record. In virtual time alone.
    Restart,
    /// Members come to remember anything. In virtual time alone.
    Stabilization,
}

/// A parameter, and its values at each scale.
#[derive(Debug)]
pub(super) struct Variation {
    pub(super) what: Parameter,
    pub(super) quick: &'static [usize],
    pub(super) default: &'static [usize],
    pub(super) full: &'static [usize],
}

/// A parameter that may be varied.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Parameter {
    /// Servers, of which as many may fail as replication tolerates.
    Servers,
    /// Servers, of which a fixed number may fail.
    ServersAlone,
    /// Servers, of which as many may fail as in the study of CASSS, whose code has at most 32 fragments: 2, and of 20 servers 4, of 30 14.
    ServersOfStudy,
    Readers,
    Writers,
    /// Bytes of a block of a file, about.
    BlockBytes,
    /// Fragments that make a value.
    K,
    Reconfigurers,
}

impl Experiment {
    /// Every experiment, in the order of the sources.
    pub fn all() -> impl Iterator<Item = &'static Experiment> {
        ROWS.iter().copied().flatten()
    }

    /// The subject of the experiment.
    pub fn about(&self) -> &'static str {
        self.about
    }

    /// The one of this name, or why there is none.
    ///
    /// # Errors
    /// A sentence.
    pub fn find(text: &str) -> Result<&'static Experiment, String> {
        let is_it = |name: &str| name.eq_ignore_ascii_case(text);
        if let Some(found) = Experiment::all().find(|experiment| is_it(experiment.name)) {
            return Ok(found);
        }
        let names: Vec<&str> = Experiment::all()
            .map(|experiment| experiment.name)
            .collect();
        let missing = NOT_HERE.iter().find(|listed| is_it(listed.experiment));
        Err(match missing {
            Some(ListEntry { missing, .. }) => {
                format!("experiment {text} cannot be repeated here: {missing}")
            }
            None => format!(
                "there is no experiment '{text}': there are {}",
                names.join(", ")
            ),
        })
    }

    pub(super) fn variants(&self) -> Vec<Variant> {
        let mut all = Vec::new();
        for of in self.variants {
            for &algorithm in of.algorithms {
                for &dap in of.daps {
                    all.extend(of.extras.iter().map(|&extras| Variant {
                        algorithm,
                        dap,
                        extras,
                        etcd: of.etcd,
                    }));
                }
            }
        }
        all
    }

    /// True if processes of servers can repeat it.
    pub fn has_processes(&self) -> bool {
        matches!(
            self.procedure,
            Procedure::AtOnce | Procedure::AfterReconfigurations
        )
    }

    /// True if it can be repeated in virtual time: one object in one configuration, without rounds that ask for the next one.
    pub fn has_virtual_time(&self) -> bool {
        let is_simple = |of: &Variants| {
            of.algorithms == [Algorithm::Ares] && of.extras == [Extras::Piggyback] && !of.etcd
        };
        !self.reconfigures() && self.variants.iter().all(is_simple)
    }

    /// True if the configuration changes while it is measured, or before.
    pub(super) fn reconfigures(&self) -> bool {
        self.procedure == Procedure::AfterReconfigurations || self.published.reconfigurers > 0
    }
}

/// An experiment of the papers, and whether it can be repeated here.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
pub struct ListEntry {
    /// The name in the specification.
    pub experiment: &'static str,
    /// One line on its subject.
    pub about: &'static str,
    /// The variants that it compares.
    pub variants: &'static str,
    /// Why it cannot be repeated; empty if it can.
    pub missing: &'static str,
}

/// Every experiment of the papers with readers and writers: those that can be repeated first.
pub fn list() -> Vec<ListEntry> {
    let here = Experiment::all().map(|of| ListEntry {
        experiment: of.name,
        about: of.about,
        variants: of.compares,
        missing: if of.has_processes() {
            ""
        } else {
            IN_VIRTUAL_TIME
        },
    });
    here.chain(NOT_HERE.iter().cloned()).collect()
}

/// Variants that cannot be run here, each with the reason.
pub fn not_run() -> Vec<(&'static str, &'static str)> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    match std::env::split_paths(&path).any(|folder| folder.join("etcd").is_file()) {
        true => Vec::new(),
        false => vec![("ARES (etcd) and ARES PB+GC (etcd) in E5", NOT_ON_THE_PATH)],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_experiment_is_listed_once() {
        let mut names: Vec<&str> = list().iter().map(|listed| listed.experiment).collect();
        names.sort_unstable();
        let expected = [
            "E1",
            "E2",
            "E3",
            "E4",
            "E5",
            "E6",
            "E7",
            "P1",
            "P2",
            "P3",
            "P4",
            "P5",
            "S1",
            "S2",
            "S2f",
            "S3",
            "S4",
            "S5",
            "large",
            "stabilization",
        ];
        assert_eq!(names, expected);
    }

    #[test]
    fn what_cannot_be_repeated_is_one_sentence() {
        assert_eq!(Experiment::find("e7").unwrap().name, "E7");
        let unknown = Experiment::find("E9").unwrap_err();
        assert!(
            unknown.contains("E9") && unknown.contains("E1, E2"),
            "{unknown}"
        );
        let missing = Experiment::find("P3").unwrap_err();
        assert!(
            missing.contains("P3") && missing.contains("peers"),
            "{missing}"
        );
    }

    #[test]
    fn variants_are_all_combinations() {
        let names = |name: &str| -> Vec<String> {
            let variants = Experiment::find(name).unwrap().variants();
            variants.iter().map(|variant| variant.name()).collect()
        };
        assert_eq!(names("E3"), ["CoARESABDF", "CoARESECF"]);
        assert_eq!(names("E6").len(), 12);
        assert_eq!(names("E7").len(), 9);
        assert_eq!(names("E5").len(), 8);
        assert!(names("E5").contains(&"ARESEC PB+GC (etcd)".to_owned()));
        assert_eq!(names("P1"), ["CoARESABD PB", "CoARESABDF PB"]);
    }
}
