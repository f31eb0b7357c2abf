//! The ways to reconfigure a domain.

use areo_core::config::{Configuration, Dap, Decider};
use serde::{Serialize, Serializer};
use std::fmt;

/// The way in which a domain is reconfigured: chosen when it is created, and for its life.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ReconfigKind {
    /// Ares II: consensus on each next configuration, which may change everything.
    #[default]
    Ares,
    /// Rambo: consensus on each next configuration, which changes the servers of a replicated domain.
    Rambo,
    /// L-Rambo: as Rambo, but one of the servers makes what clients ask for, together, and clients take over if it does not get on.
    LRambo,
    /// SM: without consensus; changes of servers that are made at the same time become one. The only one of these that keeps fragments,
    /// too.
    Sm,
    /// SpSn: the same by a speculating snapshot.
    Spsn,
    /// DynaStore: without consensus; each change may become a configuration, and then their joins do, too.
    DynaStore,
}

impl ReconfigKind {
    /// Every way to reconfigure a domain.
    pub const ALL: [ReconfigKind; 6] = [
        ReconfigKind::Ares,
        ReconfigKind::Rambo,
        ReconfigKind::LRambo,
        ReconfigKind::Sm,
        ReconfigKind::Spsn,
        ReconfigKind::DynaStore,
    ];

    /// The way to reconfigure a domain with this configuration.
    pub(crate) fn of(c: &Configuration) -> ReconfigKind {
        match (&c.descriptor().lattice, &c.descriptor().decided_by) {
            (None, _) => ReconfigKind::Ares,
            (Some(_), Decider::Agreement) => ReconfigKind::Sm,
            (Some(_), Decider::Speculation) => ReconfigKind::Spsn,
            (Some(_), Decider::Snapshot) => ReconfigKind::DynaStore,
            (Some(_), Decider::Leader { .. }) => ReconfigKind::LRambo,
            (Some(_), _) => ReconfigKind::Rambo,
        }
    }

    /// True if a domain that is reconfigured so may keep its objects by this kind.
    pub(crate) fn keeps(self, dap: Dap) -> bool {
        match self {
            ReconfigKind::Ares => true,
            ReconfigKind::Sm => dap.is_replicated() || matches!(dap, Dap::Ec { .. }),
            ReconfigKind::Rambo
            | ReconfigKind::LRambo
            | ReconfigKind::Spsn
            | ReconfigKind::DynaStore => dap.is_replicated(),
        }
    }

    /// The word for it that people use.
    pub fn word(self) -> &'static str {
        match self {
            ReconfigKind::Ares => "ares",
            ReconfigKind::Rambo => "rambo",
            ReconfigKind::LRambo => "l-rambo",
            ReconfigKind::Sm => "sm",
            ReconfigKind::Spsn => "spsn",
            ReconfigKind::DynaStore => "dynastore",
        }
    }
}

impl fmt::Display for ReconfigKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

impl Serialize for ReconfigKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.word())
    }
}
