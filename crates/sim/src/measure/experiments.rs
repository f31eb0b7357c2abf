//! The experiments, as data (`docs/spec/lattice.md`; Jehl and Meling, section 6), and what they compare.

use areo_core::config::{Dap, Decider, Options, Thrift};
use areo_core::tag::Writer;
use std::ops::RangeInclusive;
use std::time::Duration;

/// An experiment that can be repeated in virtual time.
#[derive(Clone, Copy, Debug)]
pub struct Experiment {
    /// The experiment's name in the specification.
    pub name: &'static str,
    /// One line on the question that it answers.
    pub about: &'static str,
    pub place: Place,
    /// Members of each configuration.
    pub servers: usize,
    pub readers: usize,
    /// Bytes of the object.
    pub bytes: usize,
    pub reads: Reads,
    /// Readers use 80 % of the throughput that they have without a pause.
    pub is_paced: bool,
    pub work: Work,
    /// Numbers of clients that change the configuration at the same time; a row for each.
    pub reconfigurers: &'static [usize],
    /// Number of runs in the published study.
    pub runs: usize,
}

/// The places of servers and clients.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// All in one room.
    Lan,
    /// Spread over Frankfurt, North California and Tokyo by turns.
    Wan,
}

/// The protocol of reads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reads {
    /// The published read of two rounds, each of them to one quorum.
    Thrifty,
    /// The published read in single contact mode.
    SingleContact,
    /// The published read of two rounds, each of them to all members.
    Published,
    /// The first of these rounds alone, to one quorum.
    Regular,
    /// The product's read of `abd`, with one round where that is enough.
    Product,
}

/// The work of reconfigurers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Work {
    /// Each replaces one server, all at the same time.
    Batch,
    /// Each replaces one server by another one and back again, for this time.
    Constant(Duration),
}

impl Place {
    /// Latency of a message from one site to another one.
    pub(super) fn one_way(self, from: usize, to: usize) -> Duration {
        const FRANKFURT_CALIFORNIA: Duration = Duration::from_millis(75);
        const FRANKFURT_TOKYO: Duration = Duration::from_millis(115);
        const CALIFORNIA_TOKYO: Duration = Duration::from_millis(55);
        match (self, from.min(to), from.max(to)) {
            (Place::Lan, ..) => Duration::from_micros(100),
            (Place::Wan, 0, 1) => FRANKFURT_CALIFORNIA,
            (Place::Wan, 0, 2) => FRANKFURT_TOKYO,
            (Place::Wan, 1, 2) => CALIFORNIA_TOKYO,
            (Place::Wan, ..) => Duration::from_micros(250),
        }
    }

    /// For how long changes are made all the time, but at full scale: so that there are about as many in both places.
    pub(super) fn while_of_changes(self) -> Duration {
        match self {
            Place::Lan => Duration::from_secs(1),
            Place::Wan => Duration::from_mins(1),
        }
    }

    pub(super) fn sites(self) -> usize {
        match self {
            Place::Lan => 1,
            Place::Wan => 3,
        }
    }

    /// Time before the first and after the last change in which readers are alone.
    pub fn margin(self) -> Duration {
        match self {
            Place::Lan => Duration::from_millis(20),
            Place::Wan => Duration::from_secs(3),
        }
    }
}

impl Reads {
    /// The kind and the options of the domain.
    pub fn domain(self) -> (Dap, Options) {
        let thrift = match self {
            Reads::Thrifty | Reads::SingleContact | Reads::Regular => Thrift::Calls,
            Reads::Published | Reads::Product => Thrift::Off,
        };
        let options = Options {
            thrift,
            single_contact: self == Reads::SingleContact,
            ..Options::default()
        };
        match self {
            Reads::Product => (Dap::Abd, options),
            _ => (Dap::AbdPublished, options),
        }
    }

    /// Requests of a quiet read, by members and quorum.
    pub(super) fn requests(self, n: usize, quorum: usize) -> usize {
        match self {
            Reads::Thrifty | Reads::SingleContact => 2 * quorum,
            Reads::Published => 2 * n,
            Reads::Regular => quorum,
            Reads::Product => n,
        }
    }
}

const LAN: Experiment = Experiment {
    name: "",
    about: "",
    place: Place::Lan,
    servers: 8,
    readers: 16,
    bytes: 4 << 10,
    reads: Reads::Thrifty,
    is_paced: true,
    work: Work::Batch,
    reconfigurers: &[1, 2, 3, 4],
    runs: 40,
};

const WAN: Experiment = Experiment {
    place: Place::Wan,
    servers: 3,
    readers: 3,
    bytes: 100,
    reads: Reads::Published,
    is_paced: false,
    runs: 30,
    ..LAN
};

impl Experiment {
    /// True if real processes on one machine can repeat the experiment.
    pub fn has_processes(&self) -> bool {
        self.place == Place::Lan && self.work == Work::Batch
    }
}

pub const EXPERIMENTS: &[Experiment] = &[
    Experiment {
        name: "J1",
        about: "changes at once, LAN (figures 3a to 3c)",
        ..LAN
    },
    Experiment {
        name: "J2",
        about: "the same in single contact mode (figure 3d)",
        reads: Reads::SingleContact,
        ..LAN
    },
    Experiment {
        name: "J3",
        about: "the same with regular reads (section 6.1)",
        reads: Reads::Regular,
        ..LAN
    },
    Experiment {
        name: "J4",
        about: "changes all the time, LAN (figure 4)",
        is_paced: false,
        work: Work::Constant(Duration::from_secs(30)),
        reconfigurers: &[2, 4, 6, 8],
        runs: 20,
        ..LAN
    },
    Experiment {
        name: "J5",
        about: "changes all the time, WAN (figure 5)",
        work: Work::Constant(Duration::from_mins(1)),
        reconfigurers: &[3],
        ..WAN
    },
    Experiment {
        name: "J6",
        about: "changes at once, WAN (figure 6)",
        reconfigurers: &[1, 3],
        ..WAN
    },
    Experiment {
        name: "users",
        about: "changes at once as users have it: abd, all members asked; LAN (not published)",
        reads: Reads::Product,
        reconfigurers: &[1, 2, 4, 8],
        ..LAN
    },
];

/// A way to reconfigure that is compared with others.
#[derive(Clone, Copy, Debug)]
pub struct ReconfigurationWay {
    /// The name in `areo domain create --reconfig`.
    pub name: &'static str,
    /// The decider that establishes successors in a lattice; `None`: configurations are a sequence, as in Ares II.
    pub(super) lattice: Option<fn() -> Decider>,
    /// The least and the largest number of configurations that this many concurrent changes may make.
    pub(super) configurations: fn(usize) -> RangeInclusive<usize>,
}

/// Configurations of ways that merge changes: one for all changes at least, one for each at most.
const MERGED: fn(usize) -> RangeInclusive<usize> = |changes| 1..=changes;

/// The ways that are compared: a row for each.
pub const WAYS: &[ReconfigurationWay] = &[
    way("rambo", Some(|| Decider::Members), |changes| {
        changes..=changes
    }),
    way(
        "l-rambo",
        Some(|| Decider::Leader {
            owner: Writer::default(),
        }),
        MERGED,
    ),
    way("dynastore", Some(|| Decider::Snapshot), |changes| {
        1..=changes + (1 << (changes - 1))
    }),
    way("spsn", Some(|| Decider::Speculation), MERGED),
    way("sm", Some(|| Decider::Agreement), MERGED),
    way("ares", None, MERGED),
];

const fn way(
    name: &'static str,
    lattice: Option<fn() -> Decider>,
    configurations: fn(usize) -> RangeInclusive<usize>,
) -> ReconfigurationWay {
    ReconfigurationWay {
        name,
        lattice,
        configurations,
    }
}
