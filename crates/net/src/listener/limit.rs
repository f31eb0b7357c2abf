//! The handshakes of TLS that an address may have this server make.
//!
//! A handshake costs the server a signature and an exchange of keys, and a stranger next to nothing. Each address has an allowance, of which a
//! caller takes one before a byte of it is read; one that comes when it is used up is closed unheard. Servers of the cluster that have shown their
//! certificates are always heard. Without TLS there is nothing to protect, and nothing is counted: callers that share an
//! address (a balancer, a translation of addresses) would pay for each other.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use tokio::time::Instant;

/// Addresses of which an allowance is remembered. Further ones share one.
const MAX_ADDRESSES: usize = 4096;

/// The allowance of one address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HandshakeLimit {
    /// Handshakes in a row.
    pub burst: u32,
    /// Handshakes a second in the long run.
    pub per_second: u32,
    /// Callers on this machine are limited, too. They have its processor anyway.
    pub is_for_loopback: bool,
}

impl HandshakeLimit {
    /// The usual allowance.
    pub const USUAL: HandshakeLimit = HandshakeLimit {
        burst: 1000,
        per_second: 100,
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
    used: BTreeMap<IpAddr, (f64, Instant)>,
    /// Servers of the cluster have called from there.
    servers: BTreeSet<IpAddr>,
}

impl Allowances {
    /// False: the address has used up its allowance.
    pub fn admits(&self, address: IpAddr, limit: &HandshakeLimit, now: Instant) -> bool {
        let address = address.to_canonical();
        let is_spared = address.is_loopback() && !limit.is_for_loopback;
        if is_spared || self.servers.contains(&address) {
            return true;
        }
        let known = self.used.get(&self.place(address));
        let used = known.map_or(0.0, |known| still_used(*known, limit, now));
        used + 1.0 <= f64::from(limit.burst)
    }

    /// A caller from there is heard.
    pub fn charge(&mut self, address: IpAddr, limit: &HandshakeLimit, now: Instant) {
        if self.used.len() >= MAX_ADDRESSES {
            let is_in_use = |known: &(f64, Instant)| still_used(*known, limit, now) > 0.0;
            self.used.retain(|_, known| is_in_use(known));
        }
        let place = self.place(address);
        let known = self.used.entry(place).or_insert((0.0, now));
        let used = still_used(*known, limit, now) + 1.0;
        // Callers that are heard at once may be more than there is room for: the address does not pay for longer.
        *known = (used.min(f64::from(limit.burst)), now);
    }

    /// Gives back one charge: the caller from there has made no fault.
    pub fn refund(&mut self, address: IpAddr) {
        let place = self.place(address);
        if let Some((used, _)) = self.used.get_mut(&place) {
            *used = (*used - 1.0).max(0.0);
        }
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

/// The part of an allowance that is used at that time.
fn still_used((used, since): (f64, Instant), limit: &HandshakeLimit, now: Instant) -> f64 {
    let seconds = now.saturating_duration_since(since).as_secs_f64();
    (used - seconds * f64::from(limit.per_second)).max(0.0)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const LIMIT: HandshakeLimit = HandshakeLimit {
        burst: 3,
        per_second: 2,
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
        for _ in 0..LIMIT.burst {
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

    #[test]
    fn what_is_given_back_can_be_used_again() {
        let (mut allowances, now) = (Allowances::default(), Instant::now());
        let (here, there) = (address("10.0.0.1"), address("10.0.0.2"));
        for _ in 0..LIMIT.burst {
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
        let strict = HandshakeLimit {
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
    }
}
