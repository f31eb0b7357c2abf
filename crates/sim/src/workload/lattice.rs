//! The domain with copies and the coded one in some seeds: their configurations are a lattice, so that changes of several clients are
//! all made.

use super::Workload;
use crate::cluster::Cluster;
use crate::random::Random;
use areo_core::config::{Configuration, Dap, Decider, Descriptor, Membership};
use areo_core::limits;
use areo_core::tag::Writer;
use std::sync::Arc;
use std::time::Duration;

/// Salt of the draw of a lattice's decider.
const LATTICE: u64 = 0x1a77;
/// Salt of the draw of the patience with leaders.
const PATIENCE: u64 = 0x1a78;
/// Salt of the draw of the coded domain's decider.
const CODED: u64 = 0xc0de;

/// Draws the decider of a lattice, in a quarter of all seeds: Rambo, L-Rambo, SM, SpSn or DynaStore. `None`:
/// configurations are a sequence. With faults L-Rambo is three times as frequent as Rambo, because more can go wrong
/// in it.
pub(super) fn drawn(random: &Random, faults: bool) -> Option<Decider> {
    let drawn = random.beside(LATTICE);
    let owner = Writer::default();
    let kinds = if faults { 4 } else { 2 };
    match (drawn % 8, drawn / 8 % 3, drawn / 24 % kinds) {
        (0 | 1, 0, _) => Some(Decider::Speculation),
        (0, _, 0) => Some(Decider::Members),
        (0, ..) => Some(Decider::Leader { owner }),
        (1, _, 0 | 2) => Some(Decider::Agreement),
        (1, ..) => Some(Decider::Snapshot),
        _ => None,
    }
}

/// Draws the time for which reconfigurers wait for a leader: 0 in a third of the seeds.
pub(super) fn drawn_patience(random: &Random) -> Duration {
    let drawn = random.beside(PATIENCE) % 3;
    Duration::from_millis([0, 30, 500][drawn as usize])
}

/// Draws the decider of the coded domain: SM in a quarter of the seeds in which its kind is `ec`, the only coded kind
/// that allows one.
pub(super) fn drawn_coded(random: &Random, dap: Dap) -> Option<Decider> {
    let is_drawn = random.beside(CODED).is_multiple_of(4);
    let merges = matches!(dap, Dap::Ec { .. }) && is_drawn;
    merges.then_some(Decider::Agreement)
}

/// The first configuration of a domain that is like this one otherwise.
pub(crate) fn first(plain: &Configuration, decided_by: &Decider) -> Arc<Configuration> {
    let membership = Membership::first(plain.members().iter().copied());
    let membership = match plain.dap().is_coded() {
        true => membership.with_slots(),
        false => membership,
    };
    // DynaStore begins with more ([R-29 filled-up]).
    let has_too_few = decided_by.branches() && plain.n() < limits::LATTICE_MEMBERS;
    let decided_by = match has_too_few {
        true => Decider::Agreement,
        false => decided_by.clone(),
    };
    Configuration::new(Descriptor {
        members: membership.members(),
        lattice: Some(membership),
        decided_by,
        ..plain.descriptor().clone()
    })
    .expect("a valid descriptor")
}

/// True if the domain stores values whole, without blocks, because it is a lattice.
pub(super) fn keeps_whole(c: &Configuration) -> bool {
    c.descriptor().lattice.is_some()
}

impl Workload {
    /// Adds and removes a few servers, so that the remaining members tolerate the crashes of the run.
    pub(super) fn any_membership(
        &self,
        like: &Configuration,
        membership: &Membership,
    ) -> Descriptor {
        let (random, cluster) = (self.world.random(), self.world.cluster());
        self.wanted(like.descriptor(), || {
            let (n, _) = cluster.shape(random, cluster.servers, false);
            let all: Vec<usize> = (0..cluster.servers).collect();
            let ids = self.world.ids(&all);
            let is_in_use = |server: &usize| like.position(ids[*server]).is_some();
            let in_use: Vec<usize> = all.iter().copied().filter(is_in_use).collect();
            let tolerates = usize::from(like.dap().k()) + 2 * cluster.tolerated();
            let n = n.max(like.least_members()).max(tolerates);
            let servers = Cluster::members(random, all, n.min(cluster.servers), &in_use);
            let members: Vec<_> = servers.into_iter().map(|server| ids[server]).collect();
            let changed = like.with_membership(membership.of_members(&members));
            let changed = changed.expect("a valid change");
            changed.descriptor().clone()
        })
    }
}
