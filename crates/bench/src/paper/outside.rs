//! An etcd that decides which configuration comes next, in the place of the external service of Ares II.

use super::Scale;
use super::ServerOptions;
use super::point::MeasuredPoint;
use super::scale::etcd_members;
use crate::error::{RunError, failed};
use crate::etcd::EtcdMembers;
use crate::target::TargetError;
use areo_client::Decider;

/// Why its variants are not there.
pub(super) const NOT_ON_THE_PATH: &str = "not run: no etcd on the PATH";

/// Starts a cluster of it, in memory as the servers are; `None` if there is no `etcd` on the PATH.
///
/// # Errors
/// It was started and does not serve.
pub(super) async fn start(
    options: &ServerOptions,
    scale: Scale,
) -> Result<Option<(EtcdMembers, Decider)>, RunError> {
    let cluster = match EtcdMembers::start(&options.data, etcd_members(scale), true).await {
        Ok(cluster) => cluster,
        Err(TargetError::Missing { .. }) => return Ok(None),
        Err(error) => return Err(failed("start an etcd")(error)),
    };
    let endpoints = cluster.endpoints();
    Ok(Some((cluster, Decider::Etcd { endpoints })))
}

/// Without etcd: removes its points, and names their variants.
pub(super) fn left_out(points: &mut Vec<MeasuredPoint>) -> Vec<String> {
    let of = |point: &&MeasuredPoint| point.variant.etcd;
    let names = points.iter().filter(of).map(MeasuredPoint::name);
    let mut names: Vec<String> = names.collect();
    names.sort_unstable();
    names.dedup();
    points.retain(|point| !point.variant.etcd);
    names
        .iter()
        .map(|name| format!("{name}: {NOT_ON_THE_PATH}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paper::experiment::Experiment;
    use crate::paper::points_of;
    use crate::paper::scale::steps;

    #[test]
    fn without_etcd_its_variants_are_left_out_and_named() {
        let e5 = Experiment::find("E5").unwrap();
        let mut all = points_of(e5, steps(e5, Scale::Quick));
        let before = all.len();
        let named = left_out(&mut all);
        let said = |variant: &str| format!("{variant}: not run: no etcd on the PATH");
        assert_eq!(named, [said("ARES (etcd)"), said("ARES PB+GC (etcd)")]);
        // Two variants with one and with two reconfigurers, of eight.
        assert_eq!((before, all.len()), (16, 12));
        assert!(all.iter().all(|point| !point.variant.etcd));
    }

    #[test]
    fn no_other_experiment_needs_etcd() {
        for experiment in Experiment::all() {
            let points = points_of(experiment, steps(experiment, Scale::Quick));
            let mut points = points.into_iter();
            let needs = points.any(|point| point.variant.etcd);
            assert_eq!(needs, experiment.name == "E5", "{}", experiment.name);
        }
    }
}
