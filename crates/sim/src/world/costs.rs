//! The costs of messages where they are given and not drawn: how far it is from each caller to each server, how long a server works on
//! a message, and how long the line of a client takes for it. Servers take one message at a time, in the order of arrival, and so do lines.

use super::network::Message;
use super::{Event, World};
use areo_core::instant::Instant;
use std::cell::RefCell;
use std::time::Duration;

/// The given costs, beside distances.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Prices {
    /// The time of a server for each message that it receives.
    pub(crate) message: Duration,
    /// The time of a server for each KiB that it receives or sends.
    pub(crate) kib: Duration,
    /// The time of a client's line for each KiB.
    pub(crate) line: Duration,
}

/// Messages and bytes that a caller has sent and received so far.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct Traffic {
    /// Requests and notes that it sent.
    pub(crate) messages: u64,
    /// Bytes of these messages.
    pub(crate) sent: u64,
    /// Bytes of the replies.
    pub(crate) received: u64,
}

/// The costs of a run.
pub(crate) struct Costs {
    /// For each caller (clients, then servers) and server the latency of a message.
    one_way: Vec<Vec<Duration>>,
    prices: Prices,
    /// For each caller the time until which it, or its line, is busy.
    busy: RefCell<Vec<Instant>>,
    /// Traffic of each caller.
    traffic: RefCell<Vec<Traffic>>,
}

impl Costs {
    /// `sites`: where callers are, clients before servers; `one_way`: from site to site.
    pub(crate) fn new(
        (sites, servers): (&[usize], usize),
        one_way: impl Fn(usize, usize) -> Duration,
        prices: Prices,
    ) -> Costs {
        assert!(servers <= sites.len(), "servers are callers, too");
        let of_servers = &sites[sites.len() - servers..];
        let from = |site: &usize| of_servers.iter().map(|to| one_way(*site, *to)).collect();
        Costs {
            one_way: sites.iter().map(from).collect(),
            prices,
            busy: RefCell::new(vec![Instant::default(); sites.len()]),
            traffic: RefCell::new(vec![Traffic::default(); sites.len()]),
        }
    }

    /// Adds work of this length to the caller. Returns the time at which the caller is done with it.
    fn work(&self, caller: usize, now: Instant, time: Duration) -> Instant {
        let busy = &mut self.busy.borrow_mut()[caller];
        *busy = now.max(*busy).plus(time);
        *busy
    }

    fn count(&self, caller: usize, count: impl FnOnce(&mut Traffic)) {
        count(&mut self.traffic.borrow_mut()[caller]);
    }
}

fn of_bytes(kib: Duration, bytes: usize) -> Duration {
    let bytes = u32::try_from(bytes).expect("messages are short");
    kib * bytes / 1024
}

impl World {
    /// The traffic of a caller so far.
    pub(crate) fn traffic(&self, caller: usize) -> Traffic {
        let costs = self.0.costs.as_ref();
        costs.expect("they are given").traffic.borrow()[caller]
    }

    /// Time of a message from its sender to its receiver. It waits until the server, or the client's line, has
    /// finished earlier work.
    pub(super) fn way(&self, message: &Message, drawn: Duration) -> Duration {
        let Some(costs) = &self.0.costs else {
            return drawn;
        };
        let ((caller, server), bytes) = (message.ends(), message.bytes());
        // Two ways are never exactly as long.
        let way = costs.one_way[caller][server];
        let way = way + way * u32::try_from(self.random().below(51)).expect("it is small") / 1000;
        let now = self.now();
        let left = if message.is_reply() {
            let sending = of_bytes(costs.prices.kib, bytes);
            costs.work(self.caller_of(server), now, sending)
        } else {
            costs.count(caller, |of| {
                of.messages += 1;
                of.sent += bytes as u64;
            });
            let sending = of_bytes(costs.prices.line, bytes);
            match self.is_client(caller) {
                true => costs.work(caller, now, sending),
                false => now,
            }
        };
        left.since(now) + way
    }

    fn is_client(&self, caller: usize) -> bool {
        caller < self.caller_of(0)
    }

    /// A message has arrived. A server takes it when it has worked on all that came before, and on this one; a client when its line has
    /// brought it.
    pub(super) fn arrive(&self, message: Message) {
        let Some(costs) = &self.0.costs else {
            return self.deliver(message);
        };
        let ((caller, server), bytes, now) = (message.ends(), message.bytes(), self.now());
        let prices = costs.prices;
        let done = if message.is_reply() {
            costs.count(caller, |of| of.received += bytes as u64);
            if !self.is_client(caller) || prices.line.is_zero() {
                return self.deliver(message);
            }
            costs.work(caller, now, of_bytes(prices.line, bytes))
        } else {
            let time = prices.message + of_bytes(prices.kib, bytes);
            costs.work(self.caller_of(server), now, time)
        };
        self.at(done.since(now), Event::Worked(message));
    }
}
