//! An experiment, as data. Its row says which variants it compares, what it varies, what it is made with as published, and what
//! was published. `experiments/` has the rows, a file for each source; to add an experiment is to add a row.

use super::claim::{Order, Relation};
use super::parameters::Parameters;
use super::published::Table;
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
    /// The subject of the experiment.
    pub fn about(&self) -> &'static str {
        self.about
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
