//! The experiments, a file for each source, and what of the papers there is not.

mod ares;
mod coded;
mod slides;

use super::experiment::{Experiment, ListEntry};

/// The experiments of each source.
pub(super) const ROWS: &[&[Experiment]] = &[ares::ROWS, slides::ROWS, coded::ROWS];

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
pub(super) const IN_VIRTUAL_TIME: &str =
    "records are forged, which only the simulator can do; in virtual time by `areo-lab measure`";

/// The experiments that cannot be repeated, each with the reason.
pub(super) const NOT_HERE: &[ListEntry] = &[
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
