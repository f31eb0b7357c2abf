//! The work that callers may cause before they have proven anything: handshakes of TLS, and proofs that fail.
//!
//! A handshake costs the server a signature and an exchange of keys, and a stranger next to nothing. Each address has an allowance, of which a
//! caller takes one before a byte of it is read; one that comes when it is used up is closed unheard. All addresses together from which no caller has proven
//! anything yet have one as well: strangers with many addresses take nothing from clients and servers that were here. Servers of the cluster that have shown their
//! certificates are always heard. Without TLS there is nothing to protect, and nothing is counted: callers that share an
//! address (a balancer, a translation of addresses) would pay for each other.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use tokio::time::Instant;

/// Addresses of which an allowance is remembered. Further ones share one.
const MAX_ADDRESSES: usize = 4096;

/// The number of uses in a row, and the number that comes back each second.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rate {
    /// The number in a row.
    pub burst: u32,
    /// The number a second in the long run.
    pub per_second: u32,
}

/// The number of times that callers may do something that costs the server more than them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Allowance {
    /// Allowance of each address.
    pub address: Rate,
    /// For all addresses together from which no caller has proven anything.
    pub strangers: Rate,
    /// Callers on this machine are counted, too. They have its processor anyway.
    pub is_for_loopback: bool,
}

impl Allowance {
    /// The usual number of handshakes of TLS.
    pub const HANDSHAKES: Allowance = Allowance {
        address: Rate {
            burst: 1000,
            per_second: 100,
        },
        strangers: Rate {
            burst: 4000,
            per_second: 500,
        },
        is_for_loopback: false,
    };
}

/// The party behind an address: of IPv6 its first 64 bits, within which one machine has all addresses that it likes.
pub(super) fn party(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let bits = address.to_bits() & !u128::from(u64::MAX);
            IpAddr::from(bits.to_be_bytes())
        }
        address @ IpAddr::V4(_) => address,
    }
}

/// The used parts of the allowances of addresses: of handshakes, and of other things that a caller may do so often.
#[derive(Default)]
pub struct Allowances {
    used: BTreeMap<IpAddr, Used>,
    /// The used part of the allowance that all strangers share.
    used_by_strangers: Option<Used>,
    /// Parties of which a caller has proven a key, or that it is a server.
    proven: BTreeSet<IpAddr>,
    /// Servers of the cluster have called from there.
    servers: BTreeSet<IpAddr>,
}

/// The part of an allowance that was used at some time.
#[derive(Clone, Copy, Debug)]
struct Used {
    count: f64,
    since: Instant,
}

impl Used {
    fn at(self, rate: Rate, now: Instant) -> f64 {
        let seconds = now.saturating_duration_since(self.since).as_secs_f64();
        (self.count - seconds * f64::from(rate.per_second)).max(0.0)
    }

    /// One more use. The count stays within the burst although callers that are heard at the same moment may be more: so the wait until
    /// there is room again stays as short as it is.
    fn and_one(known: Option<Used>, rate: Rate, now: Instant) -> Used {
        let before = known.map_or(0.0, |known| known.at(rate, now));
        let count = (before + 1.0).min(f64::from(rate.burst));
        Used { count, since: now }
    }

    fn less_one(&mut self) {
        self.count = (self.count - 1.0).max(0.0);
    }
}

fn has_room(known: Option<&Used>, rate: Rate, now: Instant) -> bool {
    known.map_or(0.0, |known| known.at(rate, now)) + 1.0 <= f64::from(rate.burst)
}

impl Allowances {
    /// False: the allowance of the address is used up, or that of all strangers if it is one of theirs.
    pub fn admits(&self, address: IpAddr, allowance: &Allowance, now: Instant) -> bool {
        if is_spared(address, allowance) || self.servers.contains(&address.to_canonical()) {
            return true;
        }
        let own = self.used.get(&self.place(address));
        has_room(own, allowance.address, now)
            && (self.has_proven(address)
                || has_room(self.used_by_strangers.as_ref(), allowance.strangers, now))
    }

    /// Uses the allowance of this address once, and that of strangers if it is one.
    pub fn charge(&mut self, address: IpAddr, allowance: &Allowance, now: Instant) {
        let rate = allowance.address;
        if self.used.len() >= MAX_ADDRESSES {
            self.used.retain(|_, known| known.at(rate, now) > 0.0);
        }
        let place = self.place(address);
        let known = self.used.get(&place).copied();
        self.used.insert(place, Used::and_one(known, rate, now));
        if !is_spared(address, allowance) && !self.has_proven(address) {
            let used = Used::and_one(self.used_by_strangers, allowance.strangers, now);
            self.used_by_strangers = Some(used);
        }
    }

    /// Gives back one charge: the caller from there has made no fault.
    pub fn refund(&mut self, address: IpAddr) {
        let (place, is_stranger) = (self.place(address), !self.has_proven(address));
        let of_strangers = self.used_by_strangers.as_mut().filter(|_| is_stranger);
        for used in self.used.get_mut(&place).into_iter().chain(of_strangers) {
            used.less_one();
        }
    }

    /// A caller from there has proven a key, or that it is a server.
    pub fn prove(&mut self, address: IpAddr) {
        let party = party(address);
        if self.proven.len() >= MAX_ADDRESSES && !self.proven.contains(&party) {
            self.proven.pop_first();
        }
        self.proven.insert(party);
    }

    /// True if a caller from there has proven something.
    pub(super) fn has_proven(&self, address: IpAddr) -> bool {
        self.proven.contains(&party(address))
    }

    /// A server of the cluster called from there.
    pub(super) fn spare(&mut self, address: IpAddr) {
        if self.servers.len() < MAX_ADDRESSES {
            self.servers.insert(address.to_canonical());
        }
    }

    fn place(&self, address: IpAddr) -> IpAddr {
        let party = party(address);
        let has_place = self.used.contains_key(&party) || self.used.len() < MAX_ADDRESSES;
        match has_place {
            true => party,
            false => IpAddr::from([0; 16]),
        }
    }
}

fn is_spared(address: IpAddr, allowance: &Allowance) -> bool {
    address.to_canonical().is_loopback() && !allowance.is_for_loopback
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const OWN: Rate = Rate {
        burst: 3,
        per_second: 2,
    };
    const LIMIT: Allowance = Allowance {
        address: OWN,
        strangers: Rate {
            burst: 1_000_000,
            per_second: 0,
        },
        is_for_loopback: false,
    };

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn a_machine_has_one_party_whatever_the_end_of_its_address() {
        let same = [
            ("2001:db8:1:2::5", "2001:db8:1:2:ffff::9", true),
            ("2001:db8:1:2::5", "2001:db8:1:3::5", false),
            ("::ffff:10.0.0.1", "10.0.0.1", true),
            ("::ffff:10.0.0.1", "::ffff:10.0.0.2", false),
            ("10.0.0.1", "10.0.0.2", false),
        ];
        for (one, other, is_same) in same {
            let found = party(address(one)) == party(address(other));
            assert_eq!(found, is_same, "{one} {other}");
        }
    }

    #[test]
    fn an_allowance_is_used_up_and_comes_back() {
        let (mut allowances, start) = (Allowances::default(), Instant::now());
        let (here, there) = (address("2001:db8::1"), address("2001:db8:0:1::1"));
        let neighbour = address("2001:db8::2");
        for _ in 0..OWN.burst {
            assert!(allowances.admits(here, &LIMIT, start));
            allowances.charge(neighbour, &LIMIT, start);
        }
        assert!(!allowances.admits(here, &LIMIT, start));
        assert!(allowances.admits(there, &LIMIT, start), "another party");
        allowances.charge(neighbour, &LIMIT, start);
        let soon = start + Duration::from_millis(490);
        assert!(!allowances.admits(here, &LIMIT, soon));
        let later = start + Duration::from_millis(510);
        assert!(allowances.admits(here, &LIMIT, later));

        allowances.spare(here);
        assert!(allowances.admits(here, &LIMIT, start), "it is a server's");
        assert!(!allowances.admits(neighbour, &LIMIT, start));
    }

    /// Each address had an allowance, and strangers have as many addresses as they like.
    #[test]
    fn strangers_share_an_allowance_and_those_who_have_proven_something_do_not() {
        let (mut allowances, start) = (Allowances::default(), Instant::now());
        let limit = Allowance {
            strangers: Rate {
                burst: 20,
                per_second: 4,
            },
            ..LIMIT
        };
        let (client, local) = (address("10.9.0.1"), address("127.0.0.1"));
        allowances.prove(client);
        let strange = |number: u8| IpAddr::from([10, 0, number, 1]);
        for number in 0..20 {
            assert!(allowances.admits(strange(number), &limit, start));
            allowances.charge(strange(number), &limit, start);
            allowances.charge(local, &limit, start);
        }
        assert!(!allowances.admits(strange(99), &limit, start));
        for _ in 0..OWN.burst {
            assert!(allowances.admits(client, &limit, start));
            allowances.charge(client, &limit, start);
        }
        assert!(!allowances.admits(client, &limit, start), "its own is used");
        allowances.refund(client);
        assert!(!allowances.admits(strange(99), &limit, start));
        allowances.refund(strange(0));
        assert!(allowances.admits(strange(99), &limit, start));
        allowances.charge(strange(99), &limit, start);
        let later = start + Duration::from_millis(260);
        assert!(allowances.admits(strange(98), &limit, later));
        allowances.charge(strange(98), &limit, later);
        assert!(!allowances.admits(strange(97), &limit, later));
    }

    #[test]
    fn what_is_given_back_can_be_used_again() {
        let (mut allowances, now) = (Allowances::default(), Instant::now());
        let (here, there) = (address("10.0.0.1"), address("10.0.0.2"));
        for _ in 0..OWN.burst {
            allowances.charge(here, &LIMIT, now);
        }
        assert!(!allowances.admits(here, &LIMIT, now));
        allowances.refund(there);
        assert!(!allowances.admits(here, &LIMIT, now), "it is another's");
        allowances.refund(here);
        assert!(allowances.admits(here, &LIMIT, now));
        allowances.charge(here, &LIMIT, now);
        assert!(!allowances.admits(here, &LIMIT, now));
    }

    #[test]
    fn callers_on_this_machine_are_spared_unless_they_are_not() {
        let (mut allowances, now) = (Allowances::default(), Instant::now());
        let local = address("::ffff:127.0.0.1");
        for _ in 0..9 {
            allowances.charge(local, &LIMIT, now);
        }
        assert!(allowances.admits(local, &LIMIT, now));
        let strict = Allowance {
            is_for_loopback: true,
            ..LIMIT
        };
        assert!(!allowances.admits(local, &strict, now));
    }

    #[test]
    fn addresses_without_end_take_bounded_memory_and_share_an_allowance() {
        let (mut allowances, now) = (Allowances::default(), Instant::now());
        let nth = |n: u32| IpAddr::from(((u128::from(n) << 64) | (1 << 120)).to_be_bytes());
        for n in 0..2 * MAX_ADDRESSES as u32 {
            allowances.charge(nth(n), &LIMIT, now);
        }
        assert!(allowances.used.len() <= MAX_ADDRESSES + 1);
        assert!(allowances.admits(nth(0), &LIMIT, now), "it has its own");
        assert!(!allowances.admits(nth(u32::MAX), &LIMIT, now));
        let later = now + Duration::from_hours(1);
        allowances.charge(nth(0), &LIMIT, later);
        assert_eq!(allowances.used.len(), 1, "covered ones are forgotten");
        for n in 0..2 * MAX_ADDRESSES as u32 {
            allowances.prove(nth(n));
        }
        assert_eq!(allowances.proven.len(), MAX_ADDRESSES);
    }
}
