//! The registry of signals: name, unit, where it comes from, how it is smoothed. Servers export signals, an observer reads and smooths them.

mod history;
mod smoothing;

pub(crate) use history::{DAY_MS, GROWTH_MS};
pub use history::{History, Sample, ServerSample, Syncs, ViewSample};
pub use smoothing::{Ewma, PhiAccrual, Recent, SlowWindows};

/// A signal that rules judge.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Signal {
    /// The name of the signal, as evidence has it.
    pub name: &'static str,
    /// The unit of its values.
    pub unit: &'static str,
    /// The place that it is read from.
    pub source: &'static str,
    /// The way in which single samples become a value.
    pub smoothing: Smoothing,
}

/// The ways in which single samples become a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Smoothing {
    /// The last sample counts.
    Last,
    /// The suspicion of an accrual detector over the times between answers.
    PhiAccrual,
    /// An exponentially weighted mean against the median of the configuration, in windows of 10 s.
    Windows,
    /// The sum of the last day.
    Day,
    /// The rise per hour, over six hours.
    PerHour,
}

/// Seconds for which a server is out of reach of another one.
pub const REACHABLE: Signal = Signal {
    name: "reachable",
    unit: "seconds",
    source: "views of each other server",
    smoothing: Smoothing::PhiAccrual,
};
/// Windows in a row in which a server answers slowly.
pub const SLOW: Signal = Signal {
    name: "slow",
    unit: "windows of 10 s",
    source: "answer times of a server at its peers",
    smoothing: Smoothing::Windows,
};
/// Windows in a row in which a server syncs slowly.
pub const SLOW_SYNC: Signal = Signal {
    name: "slow-sync",
    unit: "windows of 10 s",
    source: "times of syncs of the server",
    smoothing: Smoothing::Windows,
};
/// The age of a sync that does not end.
pub const SYNC_RUNNING: Signal = Signal {
    name: "sync-running",
    unit: "seconds",
    source: "times of syncs of the server",
    smoothing: Smoothing::Last,
};
/// Errors that the disk reported.
pub const IO_ERRORS: Signal = Signal {
    name: "io-errors",
    unit: "errors in 24 h",
    source: "errors of the server's disk",
    smoothing: Smoothing::Day,
};
/// Elements that were found corrupted.
pub const ROT: Signal = Signal {
    name: "rot",
    unit: "elements in 24 h",
    source: "elements that the server found damaged",
    smoothing: Smoothing::Day,
};
/// The probability that the server is lost, by the model of `prediction.toml`.
pub const PREDICTION: Signal = Signal {
    name: "prediction",
    unit: "probability of a loss in 14 days",
    source: "the signals of the server of the last day",
    smoothing: Smoothing::Day,
};
/// The report of the disk on itself.
pub const DISK_HEALTH: Signal = Signal {
    name: "disk-health",
    unit: "rises of a counter",
    source: "smartctl --json where it is installed",
    smoothing: Smoothing::Last,
};
/// The part of the disk that is used.
pub const ROOM: Signal = Signal {
    name: "room",
    unit: "percent used",
    source: "bytes in use and bytes of the disk",
    smoothing: Smoothing::Last,
};
/// The server refuses writes for want of room.
pub const FULL: Signal = Signal {
    name: "full",
    unit: "1 if it refuses writes",
    source: "the server's status",
    smoothing: Smoothing::Last,
};
/// The time until the disk is full.
pub const HOURS_LEFT: Signal = Signal {
    name: "hours-left",
    unit: "hours",
    source: "bytes in use and bytes of the disk",
    smoothing: Smoothing::PerHour,
};
/// Objects that are not at all of their servers.
pub const REDUNDANCY: Signal = Signal {
    name: "redundancy",
    unit: "seconds below n of n",
    source: "the servers' passes over their objects",
    smoothing: Smoothing::Last,
};
/// Members of a domain in one zone.
pub const ZONE: Signal = Signal {
    name: "zone",
    unit: "members in the zone",
    source: "labels of servers",
    smoothing: Smoothing::Last,
};
/// The label of an operator that empties a server.
pub const LABEL: Signal = Signal {
    name: "label",
    unit: "1 if it is set",
    source: "labels of servers",
    smoothing: Smoothing::Last,
};
/// The bytes of a domain.
pub const SIZE: Signal = Signal {
    name: "size",
    unit: "GiB at one member",
    source: "the servers' status",
    smoothing: Smoothing::Last,
};
/// The fullest server against the mean.
pub const BALANCE: Signal = Signal {
    name: "balance",
    unit: "fullest / mean",
    source: "bytes that the stores of all servers take",
    smoothing: Smoothing::Last,
};

/// Every signal of the registry.
pub const SIGNALS: [Signal; 16] = [
    REACHABLE,
    SLOW,
    SLOW_SYNC,
    SYNC_RUNNING,
    IO_ERRORS,
    ROT,
    PREDICTION,
    DISK_HEALTH,
    ROOM,
    FULL,
    HOURS_LEFT,
    REDUNDANCY,
    ZONE,
    LABEL,
    SIZE,
    BALANCE,
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn signals_have_names_of_their_own() {
        let names: BTreeSet<&str> = SIGNALS.iter().map(|it| it.name).collect();
        assert_eq!(names.len(), SIGNALS.len());
        assert!(
            SIGNALS
                .iter()
                .all(|it| !it.unit.is_empty() && !it.source.is_empty())
        );
    }
}
