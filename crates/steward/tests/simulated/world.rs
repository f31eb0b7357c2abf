//! The model of a cluster: servers that are up or down, links, domains with members, and the objects of the journal.

use crate::random::Random;
use areo_steward::intent::Intent;
use areo_steward::journal::Lease;
use areo_steward::records::{DomainRecord, Observer};
use areo_steward::signal::{Sample, ServerSample, ViewSample};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// The longest time from the look that a change rests on to its first write: a few requests.
pub(crate) const LAG_MS: u64 = 40_000;

pub(crate) struct Server {
    pub(crate) name: String,
    pub(crate) is_up: bool,
    /// Since when it is up, or down.
    pub(crate) since_ms: u64,
    pub(crate) io_errors: u64,
    pub(crate) to_empty: bool,
    pub(crate) zone: Option<String>,
    /// People work at it from then until then.
    pub(crate) maintenance_ms: Option<Range<u64>>,
    pub(crate) leaving: bool,
    /// Events that may be a reason to replace it.
    pub(crate) reasons: u64,
    /// Changes that took its place.
    pub(crate) replaced: u64,
}

pub(crate) struct Domain {
    pub(crate) name: String,
    pub(crate) members: Vec<String>,
    pub(crate) k: usize,
    /// Members that have all of the domain's objects.
    pub(crate) whole: BTreeSet<String>,
    /// An operator changes it since then.
    pub(crate) operator_ms: Option<u64>,
    /// An instance has begun to change it, and none has finished that.
    pub(crate) is_half_changed: bool,
}

/// A version of an object of the journal.
pub(crate) type Version = u64;

pub(crate) struct World {
    pub(crate) now_ms: u64,
    pub(crate) random: Random,
    pub(crate) servers: Vec<Server>,
    pub(crate) cuts: BTreeSet<(usize, usize)>,
    pub(crate) domains: Vec<Domain>,
    pub(crate) intents: BTreeMap<u64, (Version, Intent)>,
    pub(crate) lease: Option<(Version, Lease)>,
    pub(crate) versions: Version,
    pub(crate) paused_ms: Option<u64>,
    /// The last time at which a server or a link changed.
    pub(crate) changed_ms: u64,
    /// All clocks show one time.
    pub(crate) one_clock: bool,
    /// Requests fail now and then.
    pub(crate) has_faults: bool,
    /// The next time at which each task has something to do.
    pub(crate) wakes: Vec<u64>,
    /// The time at which the change in progress of each server was begun, and at which the last one of all was.
    pub(crate) begun_ms: BTreeMap<String, u64>,
    pub(crate) last_begun_ms: Option<u64>,
    /// A task that dies at this time, in the middle of its work.
    pub(crate) doomed: Option<(usize, u64)>,
    pub(crate) seen: crate::run::Seen,
}

impl Server {
    /// In maintenance by a clock that is ahead by so much.
    fn is_maintained(&self, now_ms: u64, ahead_ms: u64) -> bool {
        let maintenance = self.maintenance_ms.as_ref();
        maintenance.is_some_and(|it| it.start <= now_ms && now_ms + ahead_ms < it.end)
    }

    /// In maintenance by that clock, and for long enough that each instance knows.
    pub(crate) fn is_known_to_be_maintained(&self, now_ms: u64, ahead_ms: u64) -> bool {
        let maintenance = self.maintenance_ms.as_ref();
        maintenance
            .is_some_and(|it| it.start + LAG_MS < now_ms && now_ms + ahead_ms + LAG_MS < it.end)
    }
}

impl Domain {
    pub(crate) fn has(&self, server: &str) -> bool {
        self.members.iter().any(|it| it == server)
    }

    pub(crate) fn grows(&self) -> bool {
        self.name == "@root"
    }

    /// Crashes that it tolerates.
    pub(crate) fn f(&self) -> usize {
        self.members.len().saturating_sub(self.k) / 2
    }

    fn record(&self) -> DomainRecord {
        DomainRecord {
            name: self.name.clone(),
            members: self.members.clone(),
            k: self.k,
            is_replicated: self.k == 1,
            grows: self.grows(),
            is_pending: self.operator_ms.is_some() || self.is_half_changed,
            objects: 10,
            member_bytes: 1 << 30,
            below: u64::from(self.members.iter().any(|it| !self.whole.contains(it))),
            below_since_ms: None,
        }
    }
}

impl World {
    pub(crate) fn server(&self, name: &str) -> &Server {
        self.servers.iter().find(|it| it.name == name).unwrap()
    }

    pub(crate) fn server_mut(&mut self, name: &str) -> &mut Server {
        self.servers.iter_mut().find(|it| it.name == name).unwrap()
    }

    pub(crate) fn is_up(&self, name: &str) -> bool {
        self.server(name).is_up
    }

    /// True if it was taken out of all domains and is down.
    pub(crate) fn is_out(&self, server: &Server) -> bool {
        server.leaving && !server.is_up && self.domains.iter().all(|it| !it.has(&server.name))
    }

    /// True if more than a third of the servers that count are down, for at least so long. Those do not count that perhaps are in maintenance.
    pub(crate) fn is_broken_for(&self, ms: u64) -> bool {
        let within = || self.servers.iter().filter(|it| !self.is_out(it));
        let is_down = |it: &&Server| {
            !it.is_up && self.now_ms - it.since_ms >= ms && it.maintenance_ms.is_none()
        };
        within().filter(is_down).count() * 3 > within().count()
    }

    /// Members of the domain that are down.
    pub(crate) fn down(&self, domain: &Domain) -> usize {
        domain.members.iter().filter(|it| !self.is_up(it)).count()
    }

    /// Crashes that the domain survives now.
    pub(crate) fn survivable(&self, domain: &Domain) -> usize {
        domain.f().saturating_sub(self.down(domain))
    }

    pub(crate) fn has_quorum(&self, domain: &Domain) -> bool {
        self.down(domain) <= domain.f()
    }

    /// The state of servers and domains on one line.
    pub(crate) fn shown(&self) -> String {
        let down = self.servers.iter().filter(|it| !it.is_up);
        let down: Vec<&str> = down.map(|it| it.name.as_str()).collect();
        let domain = |it: &Domain| {
            format!(
                "{} {:?} k={} half={}",
                it.name, it.members, it.k, it.is_half_changed
            )
        };
        let domains: Vec<String> = self.domains.iter().map(domain).collect();
        format!("{} servers, {down:?} down, {domains:?}", self.servers.len())
    }

    pub(crate) fn version(&mut self) -> Version {
        self.versions += 1;
        self.versions
    }

    /// A look by a clock that is ahead by so much.
    pub(crate) fn sample(&self, ahead_ms: u64) -> Sample {
        let mut sample = Sample {
            domains: self.domains.iter().map(Domain::record).collect(),
            ..Sample::default()
        };
        for (a, server) in self.servers.iter().enumerate() {
            sample.servers.push(ServerSample {
                name: server.name.clone(),
                serves: server.is_up,
                leaving: server.leaving,
                to_empty: server.to_empty,
                zone: server.zone.clone(),
                maintenance: server
                    .is_maintained(self.now_ms, ahead_ms)
                    .then(|| "then".into()),
                io_errors: server.is_up.then_some(server.io_errors),
                used_bytes: Some(1 << 30),
                capacity_bytes: 100 << 30,
                ..ServerSample::default()
            });
            if !server.is_up {
                continue;
            }
            for (b, other) in self.servers.iter().enumerate().filter(|(b, _)| *b != a) {
                sample.views.push(ViewSample {
                    observer: Observer::Server(server.name.clone()),
                    server: other.name.clone(),
                    is_reachable: other.is_up && !self.cuts.contains(&(a, b)),
                    answer_ms: None,
                });
            }
        }
        sample
    }

    /// Members of the domain that stand in the zone of this server, without it.
    pub(crate) fn neighbours(&self, domain: &Domain, server: &Server) -> usize {
        let others = domain.members.iter().filter(|it| **it != server.name);
        let is_near = |it: &&String| server.zone.is_some() && self.server(it).zone == server.zone;
        others.filter(is_near).count()
    }

    /// The members after `with` takes the place of `server`. The root domain, which may have `with` already, takes another one that is up, or goes on without.
    pub(crate) fn members_after(&self, domain: &Domain, server: &str, with: &str) -> Vec<String> {
        let mut members = domain.members.clone();
        members.retain(|it| it != server);
        let is_free = |it: &&Server| it.is_up && !it.leaving && !domain.has(&it.name);
        let coming = match domain.has(with) {
            true => self.servers.iter().find(is_free).map(|it| it.name.clone()),
            false => Some(with.to_owned()),
        };
        match coming {
            Some(coming) => members.push(coming),
            None if members.len() == 4 => {
                let last = members.iter().position(|it| !self.is_up(it)).unwrap_or(3);
                members.remove(last);
            }
            None => {}
        }
        members
    }
}
