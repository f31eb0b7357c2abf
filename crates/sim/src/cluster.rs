//! The part of a seed that draws the cluster: the number of servers, the number that may be away at once, and which
//! configurations of them there may be.

use crate::random::{Random, mix};
use areo_core::config::Dap;

/// The most servers of a run.
pub(crate) const SERVERS_MAX: usize = 9;

/// The servers of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cluster {
    pub(crate) servers: usize,
    /// Crashes that every configuration of the run tolerates.
    tolerated: usize,
    /// Bits of the servers that keep their records in memory.
    in_memory: u32,
    /// Servers see to the members of the root domain.
    grows: bool,
}

/// Salt of the draw whether a cluster grows. A salt of its own leaves all other draws as they are.
const GROWS: u64 = 0x6807;

impl Cluster {
    /// Five servers, of which one may be away.
    pub(crate) const USUAL: Cluster = Cluster {
        servers: 5,
        tolerated: 1,
        in_memory: 0,
        grows: false,
    };

    /// Mostly the usual one; others have 1 to 9 servers and tolerate as many crashes as they can, or fewer, or none.
    /// In a tenth of the seeds no server has a disk, in others some have none.
    pub(crate) fn drawn(seed: u64) -> Cluster {
        let random = Random::new(mix(seed ^ 0xc105));
        let shape = if random.chance(500) {
            Cluster::USUAL
        } else {
            let servers = 1 + random.index(SERVERS_MAX);
            Cluster {
                servers,
                tolerated: random.index((servers - 1) / 2 + 1),
                ..Cluster::USUAL
            }
        };
        let some = u32::try_from(random.below(1 << SERVERS_MAX)).expect("few servers");
        let in_memory = match random.below(20) {
            0..2 => u32::MAX,
            2..5 => some,
            _ => 0,
        };
        // Three members tolerate one crash.
        let may_grow = shape.tolerated <= 1;
        let is_drawn = mix(seed ^ GROWS) % 3 == 1;
        Cluster {
            in_memory,
            grows: may_grow && is_drawn,
            ..shape
        }
    }

    /// A cluster of `servers` servers that all keep their records in memory.
    pub(crate) fn in_memory(servers: usize) -> Cluster {
        assert!(servers <= u32::BITS as usize, "each has a bit");
        Cluster {
            servers,
            in_memory: u32::MAX,
            ..Cluster::USUAL
        }
    }

    /// This cluster with disks, and with so many servers at least.
    pub(crate) fn on_disks(self, least: usize) -> Cluster {
        Cluster {
            servers: self.servers.max(least),
            in_memory: 0,
            grows: false,
            ..self
        }
    }

    /// It has the usual number of servers, and tolerates as many crashes.
    pub(crate) fn is_usual(&self) -> bool {
        let shape = |cluster: &Cluster| (cluster.servers, cluster.tolerated);
        shape(self) == shape(&Cluster::USUAL)
    }

    /// The server keeps its records in memory.
    pub(crate) fn is_in_memory(&self, server: usize) -> bool {
        self.in_memory >> server & 1 == 1
    }

    /// Servers see to the members of the root domain ([X-35 growing-root]).
    pub(crate) fn grows(&self) -> bool {
        self.grows
    }

    /// Members that every configuration of the run may lose.
    pub(crate) fn tolerated(&self) -> usize {
        self.tolerated
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

    /// The root domain's first servers: where it grows, as few as tolerate what may fail.
    pub(crate) fn root(&self) -> Vec<usize> {
        let fewest = 2 * self.tolerated + 1;
        let n = match self.grows {
            true => fewest,
            false => fewest.max(3),
        };
        (0..self.servers).take(n).collect()
    }

    /// Draws the number of members of a configuration, at most `most`, and its kind, so that it tolerates the crashes
    /// of the run.
    pub(crate) fn shape(&self, random: &Random, most: usize, is_coded: bool) -> (usize, Dap) {
        let fewest = 2 * self.tolerated + 1;
        assert!(fewest <= most, "the cluster tolerates so many crashes");
        let n = fewest + random.index(most - fewest + 1);
        match is_coded {
            true => {
                let k = 1 + random.index(n - 2 * self.tolerated);
                let k = u8::try_from(k).expect("few servers");
                (n, Cluster::coded(random, k))
            }
            false => (n, Dap::Abd),
        }
    }

    /// A kind of erasure coding: mostly the default.
    pub(crate) fn coded(random: &Random, k: u8) -> Dap {
        match random.index(6) {
            0 => Dap::Cas { k },
            1 if k.is_multiple_of(2) => Dap::CasSs { k },
            1 => Dap::CasGc { k },
            _ => Dap::Ec { k },
        }
    }

    /// Draws `n` of these servers, in random order. Servers outside `in_use` come first now and then, if there are
    /// any.
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
    fn all_servers_some_or_none_keep_their_records_in_memory() {
        let of = |c: Cluster| {
            (0..c.servers)
                .filter(|server| c.is_in_memory(*server))
                .count()
        };
        let usual = all().filter(|c| c.servers == Cluster::USUAL.servers);
        let drawn: BTreeSet<usize> = usual.map(of).collect();
        assert!((0..=5).all(|count| drawn.contains(&count)), "{drawn:?}");
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
