//! Which experiments the papers made, and which of them can be repeated here.

use super::outside::NOT_ON_THE_PATH;
use std::str::FromStr;

/// An experiment that can be repeated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Experiment {
    /// Size of the file.
    E1,
    /// Participation.
    E2,
    /// Size of blocks.
    E3,
    /// Fragments that make a value.
    E4,
    /// Reconfigurers beside readers and writers.
    E5,
    /// Piggybacking.
    E6,
    /// Garbage collection.
    E7,
    /// Coverable objects and files in one configuration.
    P1,
    /// Replication and erasure coding.
    P2,
    /// Coverable objects and files.
    P4,
}

/// An experiment of the papers, and whether it can be repeated here.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
pub struct Listed {
    /// As the specification calls it.
    pub experiment: &'static str,
    /// What it is about.
    pub about: &'static str,
    /// The variants that it compares.
    pub variants: &'static str,
    /// Why it cannot be repeated; empty if it can.
    pub missing: &'static str,
}

const EACH: &str = "ARES, CoARES, CoARESF, each with ABD and EC";

impl Experiment {
    /// All of them.
    pub const ALL: [Experiment; 10] = [
        Experiment::E1,
        Experiment::E2,
        Experiment::E3,
        Experiment::E4,
        Experiment::E5,
        Experiment::E6,
        Experiment::E7,
        Experiment::P1,
        Experiment::P2,
        Experiment::P4,
    ];

    /// As people call it.
    pub fn name(self) -> &'static str {
        self.listed().experiment
    }

    fn listed(self) -> Listed {
        let (experiment, about, variants) = match self {
            Experiment::E1 => ("E1", "size of the file (Ares II, figure 2)", EACH),
            Experiment::E2 => ("E2", "participation (figures 3, 4)", EACH),
            Experiment::E3 => (
                "E3",
                "size of blocks (figures 5 to 7)",
                "CoARESF with ABD and EC",
            ),
            Experiment::E4 => (
                "E4",
                "k of erasure coding (figures 8 to 11)",
                "ARES, CoARES, CoARESF with EC",
            ),
            Experiment::E5 => (
                "E5",
                "longevity: reconfigurers beside readers and writers (figures 12 to 14)",
                "ARES, CoARES, CoARESF, each without, and with PB and GC, from EC to ABD and back on changing servers; ARES also with etcd deciding which configuration comes next",
            ),
            Experiment::P1 => (
                "P1",
                "CoABD and CoABD-F, size of the file (slides)",
                "CoARES and CoARESF with ABD and PB: in one configuration they are CoABD and CoABD-F",
            ),
            Experiment::P2 => (
                "P2",
                "replication and erasure coding, size of the object (slides); k is E4",
                "ARES with ABD, with EC, and with EC-DAP as published and EC-DAPopt",
            ),
            Experiment::P4 => (
                "P4",
                "coverable objects and files, size (slides)",
                "CoARES, CoARESF, each with ABD, with EC, and with EC-DAPopt",
            ),
            Experiment::E6 => (
                "E6",
                "piggybacking (Ares II, table 2)",
                "ARES, CoARES, CoARESF, each with ABD and EC, without and with PB",
            ),
            Experiment::E7 => (
                "E7",
                "garbage collection (Ares II, table 3)",
                "ARES, CoARES, CoARESF, each without, with PB, with PB and GC, from ABD to EC and back",
            ),
        };
        Listed {
            experiment,
            about,
            variants,
            missing: "",
        }
    }
}

impl FromStr for Experiment {
    type Err = String;

    fn from_str(text: &str) -> Result<Experiment, String> {
        let all = Experiment::ALL.into_iter();
        let mut named = all.filter(|experiment| experiment.name().eq_ignore_ascii_case(text));
        named.next().ok_or_else(|| {
            let names = Experiment::ALL.map(Experiment::name).join(", ");
            match NOT_HERE
                .iter()
                .find(|listed| listed.experiment.eq_ignore_ascii_case(text))
            {
                Some(Listed { missing, .. }) => {
                    format!("experiment {text} cannot be repeated here: {missing}")
                }
                None => format!("there is no experiment '{text}': there are {names}"),
            }
        })
    }
}

const fn not_here(experiment: &'static str, about: &'static str, missing: &'static str) -> Listed {
    Listed {
        experiment,
        about,
        variants: "",
        missing,
    }
}

const NOT_HERE: &[Listed] = &[
    not_here(
        "P3",
        "beside Cassandra and Redis (slides)",
        "those are peers, not variants of the algorithm",
    ),
    not_here(
        "P5",
        "on machines of Amazon (slides)",
        "there is one machine",
    ),
];

/// What of the papers' variants there is not, and why.
pub const VARIANTS_NOT_HERE: &[(&str, &str)] = &[
    (
        "EC-DAP as published, and EC-DAPopt, but for P2 and P4",
        "there, and in the other variants of these, erasure coding is EC-DAP II with the corrections of the specification",
    ),
    (
        "garbage collection as each reconfigurer remembers it (E7: c0, c4, c8, c12)",
        "a server that lets a configuration go knows the last final one of the domain: c0, c12",
    ),
    (
        "batching off",
        "a domain is one configuration sequence, and always moves as a whole; one object alone is a domain of its own",
    ),
    (
        "external consensus, but for ARES in E5",
        "a domain can have it (`areo domain create --consensus etcd=HOST:PORT`), and ARES has it in E5; in all others the members decide",
    ),
];

/// What there would be, and cannot be run here, and why.
pub fn not_run() -> Vec<(&'static str, &'static str)> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    match std::env::split_paths(&path).any(|folder| folder.join("etcd").is_file()) {
        true => Vec::new(),
        false => vec![("ARES (etcd) and ARES PB+GC (etcd) in E5", NOT_ON_THE_PATH)],
    }
}

/// Every experiment of the papers: those that can be repeated first.
pub fn list() -> Vec<Listed> {
    let here = Experiment::ALL.into_iter().map(Experiment::listed);
    here.chain(NOT_HERE.iter().cloned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_experiment_is_listed_once() {
        let mut names: Vec<&str> = list().iter().map(|listed| listed.experiment).collect();
        names.sort_unstable();
        let expected = [
            "E1", "E2", "E3", "E4", "E5", "E6", "E7", "P1", "P2", "P3", "P4", "P5",
        ];
        assert_eq!(names, expected);
    }

    #[test]
    fn what_cannot_be_repeated_is_one_sentence() {
        assert_eq!("e7".parse(), Ok(Experiment::E7));
        let unknown = "E9".parse::<Experiment>().unwrap_err();
        assert!(
            unknown.contains("E9") && unknown.contains("E1, E2"),
            "{unknown}"
        );
        let missing = "P3".parse::<Experiment>().unwrap_err();
        assert!(
            missing.contains("P3") && missing.contains("peers"),
            "{missing}"
        );
    }
}
