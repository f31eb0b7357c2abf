//! The troubles of a cluster, and their order.

use crate::random::Random;
use crate::words::words;

words! {
    /// One kind of trouble.
    pub enum Trouble, "kind of trouble" {
        /// kill -9 of a server, which is started again.
        Kill => "kill",
        /// kill -9 of all servers at once.
        KillAll => "kill-all",
        /// SIGTERM, which a server obeys with exit code 0, and started again.
        Restart => "restart",
        /// SIGSTOP, and SIGCONT after a while.
        Stop => "stop",
        /// A client ends in the middle of an operation, and another one takes its place.
        Client => "client",
        /// Connections of some callers to some servers are closed, and new ones for a while.
        Cut => "cut",
        /// Bytes of some links arrive in one direction only.
        OneWay => "one-way",
        /// Up to f servers are separated from all others.
        Partition => "partition",
        /// A majority of the servers is separated from all others.
        Majority => "majority",
        /// Bytes of some links arrive later.
        Delay => "delay",
        /// Some links are slow.
        Slow => "slow",
        /// Connections of some links are reset in the middle of a frame.
        Reset => "reset",
        /// Packets of a server are lost, in a namespace of its own.
        Loss => "loss",
        /// All packets to or from a server are lost.
        Silence => "silence",
        /// The disk of a server is full.
        FullDisk => "full-disk",
        /// A domain of the workload gets other servers, another `[n,k]`, another algorithm.
        Reconfigure => "reconfigure",
        /// A reconfigurer ends half way, and another client finishes its pending configuration.
        Abandon => "abandon",
        /// A key is revoked, of which a client makes requests.
        Revoke => "revoke",
        /// A key is rotated and its older secret retired, while clients with both make requests.
        RotateKey => "rotate-key",
        /// A key loses the right to write, while its client reads and writes.
        ChangeGrants => "change-grants",
        /// The CA is rotated: each server gets another certificate, and the CA before is dropped.
        RotateCa => "rotate-ca",
        /// The wall clocks of all servers are moved, so that no ticket counts any more that a client has.
        Expire => "expire",
        /// The wall clocks of all servers are moved by two months, so that each has its certificate renewed.
        Renew => "renew",
    }
}

impl Trouble {
    /// Done by whom: troubles of different lanes happen at the same time, those of one lane one after the other.
    pub(crate) fn lane(self) -> Lane {
        match self {
            Trouble::Kill | Trouble::KillAll | Trouble::Restart | Trouble::Stop => Lane::Processes,
            Trouble::Client => Lane::Clients,
            Trouble::Loss | Trouble::Silence => Lane::Packets,
            Trouble::FullDisk => Lane::Disk,
            Trouble::Reconfigure | Trouble::Abandon => Lane::Configurations,
            Trouble::Revoke | Trouble::RotateKey | Trouble::ChangeGrants | Trouble::RotateCa => {
                Lane::Trust
            }
            Trouble::Expire | Trouble::Renew => Lane::Clocks,
            _ => Lane::Links,
        }
    }

    /// The number of times that it is drawn, relative to others of its lane.
    fn weight(self) -> u64 {
        match self {
            Trouble::Kill => 12,
            Trouble::Partition => 6,
            Trouble::Restart | Trouble::Stop | Trouble::Cut | Trouble::Reset => 2,
            _ => 1,
        }
    }
}

/// The task that runs a trouble. Each lane runs its troubles one after the other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Lane {
    Processes,
    Links,
    Packets,
    Disk,
    Clients,
    Configurations,
    Trust,
    Clocks,
}

/// The troubles of one lane, in order: first each kind once, so that none is left out of a short run, then by weight.
pub(crate) struct Schedule {
    kinds: Vec<Trouble>,
    first: Vec<Trouble>,
    pub(crate) random: Random,
}

impl Schedule {
    pub(crate) fn new(lane: Lane, kinds: &[Trouble], seed: &Random) -> Schedule {
        let mut random = seed.derive(lane as u64);
        let of_lane = kinds.iter().copied().filter(|kind| kind.lane() == lane);
        let kinds: Vec<Trouble> = of_lane.collect();
        let mut first = kinds.clone();
        for last in (1..first.len()).rev() {
            first.swap(last, random.index(last + 1));
        }
        Schedule {
            kinds,
            first,
            random,
        }
    }

    /// The next one. `over`: only those that have not had their turn at all.
    pub(crate) fn next(&mut self, over: bool) -> Option<Trouble> {
        if let Some(kind) = self.first.pop() {
            return Some(kind);
        }
        let total: u64 = self.kinds.iter().map(|kind| kind.weight()).sum();
        if over || total == 0 {
            return None;
        }
        let mut drawn = self.random.below(total);
        let hit = |kind: &&Trouble| {
            let within = drawn < kind.weight();
            drawn = drawn.saturating_sub(kind.weight());
            within
        };
        self.kinds.iter().find(hit).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn a_schedule_depends_on_its_seed_only_and_leaves_nothing_out() {
        for lane in [
            Lane::Processes,
            Lane::Links,
            Lane::Packets,
            Lane::Disk,
            Lane::Configurations,
            Lane::Trust,
            Lane::Clocks,
        ] {
            let draw = |seed| {
                let mut schedule = Schedule::new(lane, &Trouble::ALL, &Random::new(seed));
                let kinds = schedule.kinds.len();
                let first: Vec<Trouble> = (0..kinds).filter_map(|_| schedule.next(true)).collect();
                assert_eq!(schedule.next(true), None);
                let mut counts = BTreeMap::<Trouble, u32>::new();
                for kind in &first {
                    *counts.entry(*kind).or_default() += 1;
                }
                assert!(counts.len() == kinds && counts.values().all(|count| *count == 1));
                let later = (0..100).map(|_| schedule.next(false).unwrap());
                (first, later.collect::<Vec<_>>())
            };
            let drawn = draw(1);
            assert_eq!(drawn, draw(1));
            let has_one_kind = lane == Lane::Disk;
            assert!(has_one_kind || drawn != draw(3));
            let kinds = drawn.1.iter();
            assert!(kinds.clone().all(|kind| kind.lane() == lane));
        }
    }

    #[test]
    fn a_lane_without_kinds_has_nothing_to_do() {
        let mut schedule = Schedule::new(Lane::Links, &[Trouble::Kill], &Random::new(1));
        assert_eq!(schedule.next(false), None);
    }
}
