//! The places of connections at a server. Connections are bounded by class, so that no class takes the places of another, and a newcomer
//! takes the place of a connection that does nothing: a stranger who connects and is silent keeps no other caller out.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::rc::Rc;
use std::time::Duration;

use areo_wire::frame::Refusal;
use tokio::sync::Notify;

use super::limit::party;
use super::watched::WatchedConnection;
use crate::connection::CloseReason;

/// The class of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Class {
    /// It has not said hello yet.
    Waiting,
    /// It has said hello over TLS, and proven nothing: it is about to prove a key, or to join.
    Stranger,
    /// A client's, or that of a server which is not known.
    Client,
    /// A connection of a server that is known.
    Server,
}

impl Class {
    pub const ALL: [Class; 4] = [
        Class::Waiting,
        Class::Stranger,
        Class::Client,
        Class::Server,
    ];
}

/// The largest number of connections at once, by class.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Places {
    /// Connections without a hello so far.
    pub waiting: usize,
    /// Connections whose caller has proven nothing.
    pub strangers: usize,
    /// Connections of clients.
    pub clients: usize,
    /// Connections of servers.
    pub servers: usize,
}

impl Places {
    /// The limits of a server by default.
    pub const USUAL: Places = Places {
        waiting: 256,
        strangers: 128,
        clients: 1024,
        servers: 512,
    };

    /// The limit of one class.
    pub fn of(&self, class: Class) -> usize {
        match class {
            Class::Waiting => self.waiting,
            Class::Stranger => self.strangers,
            Class::Client => self.clients,
            Class::Server => self.servers,
        }
    }
}

/// The counts of a listener.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Connections that are open now, by class.
    pub open: [usize; Class::ALL.len()],
    /// Connections that were closed because they did nothing and others came, by class.
    pub displaced: [u64; Class::ALL.len()],
    /// Callers who said no hello in time, or none that can be read.
    pub without_hello: u64,
    /// Callers who were closed unheard: their address, or all strangers, had used up the allowance of handshakes ([`super::Allowance`]).
    pub limited: u64,
    /// Connections that were closed because a frame, or the reading of answers, did not go on ([`super::LEAST_RATE`]).
    pub slow: u64,
    /// Connections of strangers that were closed because they proved nothing in the time, or with the requests, that they had.
    pub unproven: u64,
    /// Connections that were closed because the certificate of the other end, or its ticket, counts no longer.
    pub distrusted: u64,
    /// Hellos that were refused, by the place of the refusal in [`Refusal::ALL`].
    pub refused: [u64; Refusal::ALL.len()],
}

impl Counts {
    /// A connection was closed.
    pub(super) fn close(&mut self, reason: &CloseReason) {
        match reason {
            CloseReason::Stalled | CloseReason::NotReading { .. } => self.slow += 1,
            CloseReason::Unproven => self.unproven += 1,
            _ => {}
        }
    }

    pub(super) fn refuse(&mut self, refusal: Refusal) {
        self.refused[usize::from(refusal.code()) - 1] += 1;
    }
}

/// Callers who have not said hello, in the order in which they came.
#[derive(Default)]
pub(super) struct WaitingCallers {
    callers: BTreeMap<u64, WaitingCaller>,
}

struct WaitingCaller {
    party: IpAddr,
    leave: Rc<Notify>,
    is_leaving: bool,
}

impl WaitingCallers {
    pub(super) fn count(&self) -> usize {
        let staying = self.callers.values().filter(|caller| !caller.is_leaving);
        staying.count()
    }

    /// A caller comes; what tells it to leave.
    pub(super) fn enter(&mut self, id: u64, address: IpAddr) -> Rc<Notify> {
        let caller = WaitingCaller {
            party: party(address),
            leave: Rc::default(),
            is_leaving: false,
        };
        let leave = Rc::clone(&caller.leave);
        self.callers.insert(id, caller);
        leave
    }

    pub(super) fn leave(&mut self, id: u64) {
        self.callers.remove(&id);
    }

    /// Sends away the oldest caller of the address that has the most, and of those with as many the one that came first: a caller from
    /// elsewhere is not crowded out. False: there is none.
    pub(super) fn send_one_away(&mut self) -> bool {
        let staying = self.callers.iter();
        let staying = staying.filter(|(_, caller)| !caller.is_leaving);
        let parties = staying.map(|(id, caller)| (*id, caller.party));
        let Some(oldest) = oldest_of_the_largest_crowd(parties) else {
            return false;
        };
        let caller = self.callers.get_mut(&oldest).expect("it was just seen");
        caller.is_leaving = true;
        caller.leave.notify_one();
        true
    }
}

/// The oldest caller of the party that has the most, and of those with as many the one that came first.
fn oldest_of_the_largest_crowd(callers: impl Iterator<Item = (u64, IpAddr)>) -> Option<u64> {
    let mut crowds: BTreeMap<IpAddr, (usize, u64)> = BTreeMap::new();
    for (id, party) in callers {
        crowds.entry(party).or_insert((0, id)).0 += 1;
    }
    let largest = crowds.into_values();
    let largest = largest.max_by_key(|(count, oldest)| (*count, Reverse(*oldest)));
    largest.map(|(_, oldest)| oldest)
}

/// The stranger that goes for another one, also if it waits for an answer: the oldest of the address that has the most. One at whose address a caller has
/// proven something goes last.
pub(super) fn stranger_to_go(
    connections: &BTreeMap<u64, WatchedConnection>,
    has_proven: impl Fn(IpAddr) -> bool,
) -> Option<u64> {
    let of = |is_proven: bool| {
        let strangers = connections.iter().filter(|(_, watched)| {
            watched.class == Class::Stranger && watched.connection.is_open()
        });
        let parties = strangers.map(|(id, watched)| (*id, watched.connection.remote().ip()));
        let parties = parties.filter(|(_, address)| has_proven(*address) == is_proven);
        oldest_of_the_largest_crowd(parties.map(|(id, address)| (id, party(address))))
    };
    of(false).or_else(|| of(true))
}

/// The connections that may go for `wanted` others: those that lag, then those that do nothing, of each
/// first those on which nothing was ever asked, and of these those that have been silent for longest. `None`: there are not so many.
pub(super) fn displaceable<'a>(
    connections: impl Iterator<Item = &'a WatchedConnection>,
    wanted: usize,
    stall: Duration,
) -> Option<Vec<&'a WatchedConnection>> {
    let mut idle: Vec<_> = connections
        .filter(|watched| watched.is_displaceable(stall))
        .collect();
    idle.sort_by_key(|watched| {
        let connection = &watched.connection;
        (
            !watched.lags(stall),
            connection.has_asked(),
            connection.last_received(),
        )
    });
    idle.truncate(wanted);
    (idle.len() == wanted).then_some(idle)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_of_the_largest_crowd_goes() {
        let mut waiting = WaitingCallers::default();
        let [crowd, single] = [1, 2].map(|last| IpAddr::from([10, 0, 0, last]));
        let mut told = vec![waiting.enter(0, single)];
        for id in 1..4 {
            told.push(waiting.enter(id, crowd));
        }
        assert!(waiting.send_one_away() && waiting.send_one_away());
        assert_eq!(waiting.count(), 2);
        let is_told = |id: usize| {
            let notified = told[id].notified();
            let mut notified = std::pin::pin!(notified);
            notified.as_mut().enable()
        };
        assert_eq!([0, 1, 2, 3].map(is_told), [false, true, true, false]);
        waiting.leave(1);
        assert!(waiting.send_one_away() && waiting.send_one_away());
        assert!(!waiting.send_one_away(), "all are on their way");
    }
    #[test]
    fn the_oldest_goes_of_crowds_of_one_size_and_an_ipv6_network_is_one_crowd() {
        let mut waiting = WaitingCallers::default();
        let addresses = [
            "10.0.0.9",
            "10.0.0.1",
            "2001:db8::1",
            "2001:db8::2",
            "2001:db8::3",
        ];
        for (id, address) in (0..).zip(addresses) {
            waiting.enter(id, address.parse().unwrap());
        }
        let mut gone = Vec::new();
        for _ in addresses {
            assert!(waiting.send_one_away());
            let leaving = waiting.callers.iter();
            let mut leaving = leaving.filter(|(_, caller)| caller.is_leaving);
            gone.push(*leaving.next().unwrap().0);
            waiting.leave(gone[gone.len() - 1]);
        }
        assert_eq!(gone, [2, 3, 0, 1, 4]);
    }
}
