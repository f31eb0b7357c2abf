//! The servers that all points of an experiment share, and what goes wrong on them.

use super::ServerOptions;
use super::actor::Subject;
use super::figures::mean;
use super::parameters::Parameters;
use super::variant::Variant;
use crate::error::{RunError, failed};
use crate::failures::Failures;
use crate::load::Sample;
use crate::setup::StartedCluster;
use areo_client::Decider;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::path::Path;

pub(super) struct Stage<'a> {
    pub(super) started: &'a StartedCluster,
    /// The folder of local files.
    pub(super) data: &'a Path,
    /// Servers are behind a proxy, so that messages take long.
    pub(super) is_far: bool,
    /// The decider of successors for variants whose members do not decide.
    etcd: Decider,
    domains: Cell<u64>,
    pub(super) failures: RefCell<Failures>,
}

impl<'a> Stage<'a> {
    pub(super) fn new(
        started: &'a StartedCluster,
        options: &'a ServerOptions,
        etcd: Decider,
    ) -> Stage<'a> {
        Stage {
            started,
            data: &options.data,
            is_far: options.round_trip.is_some(),
            etcd,
            domains: Cell::new(0),
            failures: RefCell::default(),
        }
    }

    /// A new domain of the variant; its name.
    pub(super) async fn domain(
        &self,
        variant: Variant,
        parameters: &Parameters,
        k: u8,
        delta: usize,
    ) -> Result<String, RunError> {
        let number = self.domains.get() + 1;
        self.domains.set(number);
        let name = format!("paper-{number}");
        let servers = &self.started.servers[..parameters.servers];
        let mut options = variant.domain(servers, k, delta);
        if variant.etcd {
            options.decided_by = self.etcd.clone();
        }
        let made = self.started.client.create_domain(&name, options).await;
        made.map_err(failed("make the domain"))?;
        Ok(name)
    }

    /// The object or file that actors of a point read and write.
    pub(super) fn subject<'b>(
        &'b self,
        domain: &'b str,
        parameters: &Parameters,
        (variant, size): (Variant, usize),
    ) -> Subject<'b> {
        Subject {
            connect: &self.started.connect,
            domain,
            algorithm: variant.algorithm,
            size,
            blocks: parameters.blocks,
            data: self.data,
        }
    }

    /// Removes a domain that is not needed any more.
    pub(super) async fn remove(&self, domain: &str) -> Result<(), RunError> {
        let removed = self.started.client.remove_domain(domain).await;
        removed.map_err(failed("remove the domain"))
    }
}

/// The average cost of the operations of a run.
pub(super) fn means(reads: &[Sample], writes: &[Sample]) -> BTreeMap<&'static str, f64> {
    let mut means = BTreeMap::new();
    let mut take = |name, samples: &[Sample], of: fn(&Sample) -> f64| {
        let values: Vec<f64> = samples.iter().map(of).collect();
        means.extend(mean(&values).map(|mean| (name, mean)));
    };
    take("read_ms", reads, ms);
    take("read_rounds", reads, |of| of.cost.counts.rounds as f64);
    take("read_configurations", reads, |of| {
        of.cost.counts.configurations as f64
    });
    take("read_bytes", reads, |of| {
        of.cost.counts.received_bytes as f64
    });
    take("read_sent_bytes", reads, |of| {
        of.cost.counts.sent_bytes as f64
    });
    take("write_ms", writes, ms);
    take("write_rounds", writes, |of| of.cost.counts.rounds as f64);
    take("write_bytes", writes, |of| of.cost.counts.sent_bytes as f64);
    take("write_success", writes, |of| 1.0 - of.cost.lost);
    means
}

/// The time that an operation took, in milliseconds.
pub(super) fn ms(of: &Sample) -> f64 {
    of.took.as_secs_f64() * 1e3
}
