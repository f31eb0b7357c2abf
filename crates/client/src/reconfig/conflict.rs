//! The subject of two changes that contradict each other (`docs/spec` `[A-13 change-after-its-base]`).

use crate::choice::InvalidChoice;
use crate::cluster::Names;
use areo_core::reconfig::change as merging;
use std::fmt;

/// The subject that two changes contradict each other about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Contradiction {
    /// One of them names all servers.
    Servers,
    /// The server that one of the changes replaces has gone.
    Replaced {
        /// Name of the server.
        server: String,
    },
    /// The kind by which values are kept.
    Dap,
    /// Slack of erasure-coded lists.
    Delta,
    /// The decider of later changes.
    Decider,
    /// Options that only experiments set.
    Experimental,
    /// Each alone could be made, but what both come to is refused.
    Both {
        /// The reason why both together are refused.
        error: Box<InvalidChoice>,
    },
}

impl fmt::Display for Contradiction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Contradiction::Servers => "changed its servers, which this one names all",
            Contradiction::Replaced { server } => {
                return write!(f, "removed {server}, which this one replaces");
            }
            Contradiction::Both { error } => return write!(f, "with this one {error}"),
            Contradiction::Dap => "changed how values are kept, as this one would",
            Contradiction::Delta => "changed --delta, as this one would",
            Contradiction::Decider => "changed --consensus, as this one would",
            Contradiction::Experimental => "changed what experiments ask for, as this one would",
        })
    }
}

impl Contradiction {
    /// A contradiction with the names of servers.
    pub(super) fn named(about: merging::Contradiction, names: &Names) -> Contradiction {
        match about {
            merging::Contradiction::Servers => Contradiction::Servers,
            merging::Contradiction::Replaced(server) => Contradiction::Replaced {
                server: names.name(server),
            },
            merging::Contradiction::Dap => Contradiction::Dap,
            merging::Contradiction::Delta => Contradiction::Delta,
            merging::Contradiction::Decider => Contradiction::Decider,
            merging::Contradiction::Options => Contradiction::Experimental,
        }
    }
}
