//! The servers that all points of an experiment share, and what goes wrong on them.

use super::ServerOptions;
use super::actor::Cost;
use super::figures::mean;
use super::scale::Parameters;
use super::variant::Variant;
use crate::failures::Failures;
use crate::run::{RunError, failed};
use crate::setup::StartedCluster;
use areo_client::Decider;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::path::Path;

pub(super) struct Stage<'a> {
    pub(super) started: &'a StartedCluster,
    /// Where local files are kept.
    pub(super) data: &'a Path,
    /// Servers are behind a proxy, so that messages take long.
    pub(super) is_far: bool,
    /// Who decides which configuration comes next, where it is not its members.
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

    /// What it holds is not needed any more.
    pub(super) async fn remove(&self, domain: &str) -> Result<(), RunError> {
        let removed = self.started.client.remove_domain(domain).await;
        removed.map_err(failed("remove the domain"))
    }
}

/// What the operations of a run cost on average.
pub(super) fn means(reads: &[Cost], writes: &[Cost]) -> BTreeMap<&'static str, f64> {
    let mut means = BTreeMap::new();
    let mut take = |name, costs: &[Cost], of: fn(&Cost) -> f64| {
        let values: Vec<f64> = costs.iter().map(of).collect();
        means.extend(mean(&values).map(|mean| (name, mean)));
    };
    take("read_ms", reads, |cost| cost.ms);
    take("read_rounds", reads, |cost| cost.rounds as f64);
    take("read_configurations", reads, |cost| {
        cost.configurations as f64
    });
    take("read_bytes", reads, |cost| cost.received as f64);
    take("read_sent_bytes", reads, |cost| cost.sent as f64);
    take("write_ms", writes, |cost| cost.ms);
    take("write_rounds", writes, |cost| cost.rounds as f64);
    take("write_bytes", writes, |cost| cost.sent as f64);
    take("write_success", writes, |cost| cost.success);
    means
}
