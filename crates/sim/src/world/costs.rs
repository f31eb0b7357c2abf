//! What messages cost where that is given and not drawn: how far it is from each caller to each server, and how long a server works on
//! a message. Servers take one message at a time, in the order of arrival.

use super::network::Message;
use super::{Event, World};
use areo_core::instant::Instant;
use std::cell::RefCell;
use std::time::Duration;

/// The costs of a run.
pub(crate) struct Costs {
    /// By caller (clients, then servers) and server: the time of a message on its way.
    one_way: Vec<Vec<Duration>>,
    /// The time of a server for each message that it receives.
    message: Duration,
    /// And for each KiB that it receives or sends.
    kib: Duration,
    /// By server: until when it works.
    busy: RefCell<Vec<Instant>>,
}

impl Costs {
    /// `sites`: where callers are, clients before servers; `one_way`: from site to site.
    pub(crate) fn new(
        (sites, servers): (&[usize], usize),
        one_way: impl Fn(usize, usize) -> Duration,
        (message, kib): (Duration, Duration),
    ) -> Costs {
        assert!(servers <= sites.len(), "servers are callers, too");
        let of_servers = &sites[sites.len() - servers..];
        let from = |site: &usize| of_servers.iter().map(|to| one_way(*site, *to)).collect();
        Costs {
            one_way: sites.iter().map(from).collect(),
            message,
            kib,
            busy: RefCell::new(vec![Instant::default(); servers]),
        }
    }

    /// The server works so much longer; when it is done with that.
    fn work(&self, server: usize, now: Instant, time: Duration) -> Instant {
        let busy = &mut self.busy.borrow_mut()[server];
        *busy = now.max(*busy).plus(time);
        *busy
    }

    fn of_bytes(&self, bytes: usize) -> Duration {
        let bytes = u32::try_from(bytes).expect("messages are short");
        self.kib * bytes / 1024
    }
}

impl World {
    /// How long a message takes from where it leaves until it arrives: a server first finishes what it has.
    pub(super) fn way(&self, message: &Message, drawn: Duration) -> Duration {
        let Some(costs) = &self.0.costs else {
            return drawn;
        };
        let (caller, server) = message.ends();
        // Two ways are never exactly as long.
        let way = costs.one_way[caller][server];
        let way = way + way * u32::try_from(self.random().below(51)).expect("it is small") / 1000;
        if !message.is_reply() {
            return way;
        }
        let sending = costs.of_bytes(message.bytes());
        costs.work(server, self.now(), sending).since(self.now()) + way
    }

    /// A message has arrived. A server takes it when it has worked on all that came before, and on this one.
    pub(super) fn arrive(&self, message: Message) {
        match &self.0.costs {
            Some(costs) if !message.is_reply() => {
                let (_, server) = message.ends();
                let time = costs.message + costs.of_bytes(message.bytes());
                let done = costs.work(server, self.now(), time);
                self.at(done.since(self.now()), Event::Worked(message));
            }
            _ => self.deliver(message),
        }
    }
}
