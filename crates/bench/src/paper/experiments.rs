//! The experiments, a file for each source, and what of the papers there is not.

mod ares;
mod coded;
mod slides;

use super::experiment::{Experiment, ListEntry};
use super::outside::NOT_ON_THE_PATH;

/// The experiments of each source.
const ROWS: &[&[Experiment]] = &[ares::ROWS, slides::ROWS, coded::ROWS];

const fn not_here(
    experiment: &'static str,
    about: &'static str,
    missing: &'static str,
) -> ListEntry {
    ListEntry {
        experiment,
        about,
        variants: "",
        missing,
    }
}

/// Reason for experiments that real processes cannot repeat.
const IN_VIRTUAL_TIME: &str =
    "records are forged, which only the simulator can do; in virtual time by `areo-lab measure`";

/// The experiments that cannot be repeated, each with the reason.
const NOT_HERE: &[ListEntry] = &[
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

/// The variants of the papers that are not there, each with the reason.
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

impl Experiment {
    /// Every experiment, in the order of the sources.
    pub fn all() -> impl Iterator<Item = &'static Experiment> {
        ROWS.iter().copied().flatten()
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
