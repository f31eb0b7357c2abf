//! File descriptors: as many as the system allows, and a part of them for each purpose.

use areo_net::Places;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The largest number of connections of each class that this process has. Half of all descriptors is kept back for the store,
/// which has one for each segment of 64 MiB, and for connections to other servers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Budget {
    pub(crate) places: Places,
    /// Connections to the admin port.
    pub(crate) admin: usize,
}

/// Connections to the admin port, if there are descriptors for all.
const ADMIN_PLACES: usize = 64;
/// Fewer connections of a class are of no use.
const LEAST: usize = 2;

/// Raises the limit of this process as far as it may; returns the limit. If the system refuses, the limit stays as it
/// is.
pub(crate) fn raise() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    if limit.current != limit.maximum
        && let Err(error) = setrlimit(Resource::Nofile, raised)
    {
        tracing::warn!(%error, "the limit of file descriptors stays as it was");
    }
    // None is no limit.
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

impl Budget {
    /// Divides this number of descriptors.
    pub(crate) fn of(descriptors: u64) -> Budget {
        let part = |one_in: u64, most: usize| {
            let part = usize::try_from(descriptors / one_in).unwrap_or(usize::MAX);
            part.clamp(LEAST, most)
        };
        let usual = Places::USUAL;
        Budget {
            places: Places {
                waiting: part(32, usual.waiting),
                strangers: part(32, usual.strangers),
                clients: part(4, usual.clients),
                servers: part(8, usual.servers),
            },
            admin: part(16, ADMIN_PLACES),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_all_descriptors_is_kept_back() {
        for descriptors in [64, 96, 1000, 1024, 4096, 1 << 20, u64::MAX] {
            let Budget { places, admin } = Budget::of(descriptors);
            let taken = places.waiting + places.strangers + places.clients + places.servers + admin;
            assert!(taken as u64 <= descriptors / 2, "{descriptors}: {taken}");
        }
        assert_eq!(Budget::of(1 << 20).places, Places::USUAL);
    }

    #[test]
    fn the_limit_is_raised_as_far_as_it_may_be() {
        let limit = raise();
        let now = getrlimit(Resource::Nofile);
        assert_eq!(now.current, now.maximum);
        assert_eq!(limit, now.maximum.unwrap_or(u64::MAX));
    }
}
