//! The numbers of versions of one object that a server of the simulation takes.

use crate::random::Random;
use areo_core::limits::{RANKED_VERSIONS, UNCONFIRMED_ELEMENTS};

/// Versions of one object that a server takes: usually few, so that clients meet the caps.
#[derive(Clone, Copy)]
pub(in crate::world) struct Caps {
    /// Unconfirmed ones (`[X-3 unconfirmed-cap]`).
    pub(in crate::world) unconfirmed: usize,
    /// Versions of a ranked register (`[W-4 cap]`).
    pub(in crate::world) ranked: usize,
}

impl Caps {
    /// `speed`: the draw of how fast disks are says how many versions of a register a server takes, so that nothing else is drawn anew.
    pub(in crate::world) fn drawn(random: &Random, speed: u64) -> Caps {
        Caps {
            // Not fewer than there are writers at once: those would starve each other, and rightly so.
            unconfirmed: [6, 9, UNCONFIRMED_ELEMENTS][random.index(3)],
            ranked: match speed % 3 {
                0 => 1,
                1 => 2,
                _ => RANKED_VERSIONS,
            },
        }
    }

    /// The caps of a real server.
    pub(in crate::world) const SHIPPED: Caps = Caps {
        unconfirmed: UNCONFIRMED_ELEMENTS,
        ranked: RANKED_VERSIONS,
    };
}
