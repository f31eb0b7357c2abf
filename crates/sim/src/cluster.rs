//! What a seed draws of the cluster: how many servers there are, how many of them may be away at once, and which
//! configurations of them there may be.

use crate::random::{Random, mix};
use areo_core::config::Dap;

/// The most servers of a run.
pub(crate) const SERVERS_MAX: usize = 9;

/// The servers of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cluster {
    /// How many there are.
    pub(crate) servers: usize,
    /// Crashes that every configuration of the run tolerates.
    tolerated: usize,
}

impl Cluster {
    /// Five servers, of which one may be away.
    pub(crate) const USUAL: Cluster = Cluster {
        servers: 5,
        tolerated: 1,
    };

    /// Mostly the usual one; others have 1 to 9 servers and tolerate as many crashes as they can, or fewer, or none.
    pub(crate) fn drawn(seed: u64) -> Cluster {
        let random = Random::new(mix(seed ^ 0xc105));
        if random.chance(500) {
            return Cluster::USUAL;
        }
        let servers = 1 + random.index(SERVERS_MAX);
        Cluster {
            servers,
            tolerated: random.index((servers - 1) / 2 + 1),
        }
    }

    /// Servers that may be away at once, unless all are. Where no crash is tolerated one is away now and then, too: nothing
    /// is lost by that.
    pub(crate) fn may_fail(&self) -> usize {
        self.tolerated.max(1)
    }

    /// One server may lose data, or run with a copy of its disk.
    pub(crate) fn may_lose_data(&self) -> bool {
        self.tolerated > 0
    }

    /// The root domain's first servers.
    pub(crate) fn root(&self) -> Vec<usize> {
        let n = (2 * self.tolerated + 1).max(3);
        (0..self.servers).take(n).collect()
    }

    /// How many servers may hold a configuration, of so many, and how.
    pub(crate) fn shape(&self, random: &Random, most: usize, is_coded: bool) -> (usize, Dap) {
        let fewest = 2 * self.tolerated + 1;
        assert!(fewest <= most, "the cluster tolerates so many crashes");
        let n = fewest + random.index(most - fewest + 1);
        match is_coded {
            true => {
                let k = 1 + random.index(n - 2 * self.tolerated);
                let k = u8::try_from(k).expect("few servers");
                (n, Dap::Ec { k })
            }
            false => (n, Dap::Abd),
        }
    }

    /// So many servers of these, in a random order; often others than those in use, as far as there are some.
    pub(crate) fn members(
        random: &Random,
        mut servers: Vec<usize>,
        n: usize,
        in_use: &[usize],
    ) -> Vec<usize> {
        for place in (1..servers.len()).rev() {
            servers.swap(place, random.index(place + 1));
        }
        if random.chance(300) {
            servers.sort_by_key(|server| in_use.contains(server));
        }
        servers.truncate(n);
        servers
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn all() -> impl Iterator<Item = Cluster> {
        (0..3000).map(Cluster::drawn)
    }

    #[test]
    fn every_number_of_servers_and_of_crashes_is_drawn() {
        let drawn: BTreeSet<(usize, usize)> = all().map(|c| (c.servers, c.tolerated)).collect();
        let of = |servers| (0..=(servers - 1) / 2).map(move |tolerated| (servers, tolerated));
        let possible: BTreeSet<(usize, usize)> = (1..=SERVERS_MAX).flat_map(of).collect();
        assert_eq!(drawn, possible);
    }

    #[test]
    fn every_shape_tolerates_what_may_fail() {
        let mut seen = BTreeSet::new();
        for (seed, cluster) in all().enumerate() {
            let random = Random::new(seed as u64);
            for draw in 0..200 {
                let (n, dap) = cluster.shape(&random, cluster.servers, draw % 2 == 0);
                assert!(n <= cluster.servers);
                let f = dap.quorums(n).f();
                assert!(f >= cluster.tolerated, "{cluster:?}: {dap:?} of {n}");
                seen.insert((n, dap.k()));
            }
            let root = cluster.root();
            assert!((root.len() - 1) / 2 >= cluster.tolerated);
            assert!(root.iter().all(|server| *server < cluster.servers));
        }
        let every = (1..=SERVERS_MAX).flat_map(|n| (1..=n as u8).map(move |k| (n, k)));
        assert!(every.clone().all(|shape| seen.contains(&shape)), "{seen:?}");
    }
}
