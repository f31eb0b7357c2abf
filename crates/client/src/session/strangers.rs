//! Servers that a client has never heard of.
//!
//! A domain can move to servers that joined the cluster long after a client did. The client learns of them by the
//! configuration that it is led to, which has their ids and no addresses. What it asks of them waits in the network, and
//! meanwhile it asks the directory where they are; no operation needs to know. A server in memory that has ended is in no
//! directory once another one has its address (`[X-28 memory-replaced]`), so that the search becomes rarer.

use super::cluster::{self, KnownCluster};
use super::thread::World;
use areo_core::config::ServerId;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::time::timeout;

/// The longest time that one attempt to ask the directory may take.
const PATIENCE: Duration = Duration::from_secs(1);
/// The wait between two attempts, at first.
const PAUSE: Duration = Duration::from_millis(100);
/// The longest wait between two attempts.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Finds out where servers are that were asked something, for as long as the client lives.
pub(super) async fn introduce(world: Rc<World>, cluster: Arc<KnownCluster>) {
    let mut search = Search::default();
    loop {
        let wanted = world.network.strangers_wanted();
        match search.wait(wanted, Instant::now()) {
            Some(Duration::ZERO) => {
                cluster::refresh(&world, &cluster, PATIENCE).await;
                search.ended(Instant::now());
            }
            // Another one may be asked something before that.
            Some(wait) => drop(timeout(wait, world.network.stranger_asked()).await),
            None => world.network.stranger_asked().await,
        }
    }
}

/// The time at which the directory is asked next.
#[derive(Default)]
struct Search {
    /// Servers for whose sake it was asked.
    sought: BTreeSet<ServerId>,
    pause: Duration,
    /// Not before, unless for another server.
    next: Option<Instant>,
}

impl Search {
    /// The time that the directory is not asked for these servers; nothing if there is none. At once for one that was not sought before.
    fn wait(&mut self, wanted: BTreeSet<ServerId>, now: Instant) -> Option<Duration> {
        if wanted.is_empty() {
            return None;
        }
        let sought_before = wanted.is_subset(&self.sought);
        self.sought.extend(wanted);
        if !sought_before {
            (self.pause, self.next) = (Duration::ZERO, None);
        }
        Some(self.next.map_or(Duration::ZERO, |next| next - now))
    }

    /// The directory has answered, or has not.
    fn ended(&mut self, now: Instant) {
        self.pause = (2 * self.pause).clamp(PAUSE, LONGEST_PAUSE);
        self.next = Some(now + self.pause);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_no_directory_knows_is_sought_ever_more_rarely() {
        let (mut search, mut now) = (Search::default(), Instant::now());
        let wanted = |ids: &[u128]| ids.iter().copied().map(ServerId).collect();
        assert_eq!(search.wait(wanted(&[]), now), None);
        let mut waits = Vec::new();
        for _ in 0..8 {
            assert_eq!(search.wait(wanted(&[1]), now), Some(Duration::ZERO));
            search.ended(now);
            let wait = search.wait(wanted(&[1]), now).unwrap();
            waits.push(wait.as_millis());
            now += wait;
        }
        assert_eq!(waits, [100, 200, 400, 800, 1600, 3200, 5000, 5000]);
        search.ended(now);
        let both = search.wait(wanted(&[1, 2]), now);
        assert_eq!(both, Some(Duration::ZERO), "one of them is new");
        search.ended(now);
        assert_eq!(search.wait(wanted(&[1, 2]), now), Some(PAUSE));
    }
}
