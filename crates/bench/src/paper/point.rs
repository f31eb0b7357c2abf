//! A variant at a point of an experiment.

use super::experiment::Experiment;
use super::parameters::Parameters;
use super::published;
use super::report::Setting;
use super::scale::show_size;
use super::variant::{SequenceEnds, Variant};
use std::collections::BTreeMap;

/// A variant at a point, with the measured quantities of each run.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct MeasuredPoint {
    pub(super) experiment: &'static Experiment,
    /// Name of the varied parameter's value, and all parameters there.
    pub(super) step: (String, Parameters),
    pub(super) variant: Variant,
    pub(super) size: usize,
    /// After the reconfigurations of E7, which were left so.
    pub(super) left: Option<SequenceEnds>,
    pub(super) runs: BTreeMap<&'static str, Vec<f64>>,
}

impl MeasuredPoint {
    /// Name of the variant in reports.
    pub(super) fn name(&self) -> String {
        match self.experiment.reconfigures() {
            true => self.variant.name_of_both(),
            false if self.experiment.has_virtual_time() => self.variant.name_of_kind(),
            false => self.variant.name(),
        }
    }

    /// Name of the point in reports.
    pub(super) fn at(&self) -> String {
        let size = show_size(self.size);
        match (self.left, &*self.step.0) {
            (Some(left), _) => format!("({}) {size}", left.name()),
            (None, "") => size,
            (None, step) => format!("{size} {step}"),
        }
    }

    /// The point in figures.
    pub(super) fn setting(&self) -> Setting {
        let (_, parameters) = &self.step;
        Setting {
            size: self.size,
            servers: parameters.servers,
            k: parameters.servers - parameters.parity,
            block_bytes: parameters.blocks.1,
            readers: parameters.readers,
            writers: parameters.writers,
            reconfigurers: parameters.reconfigurers,
            left: self.left.map(|left| left.name().into()),
        }
    }

    /// The figure that the publication reports of it.
    pub(super) fn published(&self) -> Option<published::Figure> {
        let table = self.experiment.figures?;
        table.read_ms(self.variant, self.left, self.size)
    }
}
