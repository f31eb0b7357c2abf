//! The replacement of a server: which spare comes, and how many crashes each domain survives before and after.

use super::triggers::{bad_servers, dead_servers};
use crate::intent::{Change, DomainChange, Sides};
use crate::records::{DomainRecord, Records, ServerRecord};
use crate::rules::{RuleName, Rules};
use std::collections::BTreeSet;

/// The knowledge by which a spare is chosen.
#[derive(Clone, Copy)]
pub(crate) struct Choice<'a> {
    pub(crate) rules: &'a Rules,
    pub(crate) records: &'a Records,
    pub(crate) now_ms: u64,
    /// The rule of the greatest risk that wants the change.
    pub(crate) rule: RuleName,
}

impl Choice<'_> {
    /// The replacement of this server: by `before` if that still fits, otherwise by the spare that is in the fewest domains. As an error: why there is none,
    /// and what to do.
    pub(crate) fn replacement(
        &self,
        server: &str,
        before: Option<&str>,
        taken: &BTreeSet<&str>,
    ) -> Result<Change, String> {
        let fits = |it: &&&ServerRecord| {
            !taken.contains(it.name.as_str()) && self.unfit(server, &it.name).is_none()
        };
        let servers: Vec<&ServerRecord> = self.records.servers.iter().collect();
        let mut spares: Vec<&&ServerRecord> = servers.iter().filter(fits).collect();
        let domains = |it: &ServerRecord| {
            self.records
                .domains
                .iter()
                .filter(|d| d.has(&it.name))
                .count()
        };
        let key = |it: &ServerRecord| {
            let is_other = Some(it.name.as_str()) != before;
            (is_other, self.neighbours(server, it), domains(it))
        };
        spares.sort_by_cached_key(|it| (key(it), it.name.clone()));
        let Some(spare) = spares.first() else {
            return Err(format!(
                "no spare fits in the place of {server}: start one with `areo server --join ADDR`"
            ));
        };
        let change = self.change(server, &spare.name);
        match change.domains.iter().find(|it| lowers(it)) {
            None => Ok(change),
            Some(it) => Err(format!(
                "'{}' would survive {} crashes after the change and tolerates {}: start more servers with `areo server --join ADDR`",
                it.domain, it.survivable.after, it.f.after
            )),
        }
    }

    /// The reason why this server cannot come in the place of the other one; `None`: it can.
    pub(crate) fn unfit(&self, server: &str, spare: &str) -> Option<String> {
        let no = |why: &str| Some(format!("{spare} {why}"));
        let Some(record) = self.records.server(spare) else {
            return no("is no server of the cluster");
        };
        let stable_ms = self.rules.dead.spare_stable_seconds.saturating_mul(1000);
        let is_stable = |since_ms: u64| self.now_ms.saturating_sub(since_ms) >= stable_ms;
        let bad = bad_servers(self.rules, self.records, self.now_ms);
        let is_of_class = self.rules.emptied_class(record.class.as_deref()).is_some();
        if spare == server || record.leaving || record.to_empty || is_of_class {
            return no("is to go itself");
        }
        if record.maintenance.is_some() {
            return no("is in maintenance");
        }
        if !record.serving_since_ms.is_some_and(is_stable) || bad.contains(spare) {
            return no("has not served for long enough");
        }
        if record.io_errors >= self.rules.disk.io_errors {
            return no("has errors of its disk");
        }
        if record.is_full {
            return no("has no room for writes");
        }
        let mut bytes = 0;
        for domain in self.records.domains.iter().filter(|it| it.has(server)) {
            // The root domain, when it grows, goes on without.
            if domain.has(spare) && !domain.grows {
                return Some(format!("{spare} is a member of '{}' already", domain.name));
            }
            if domain.has(spare) {
                continue;
            }
            bytes += domain.member_bytes;
            if let Some(zone) = self.crowded(domain, server, record) {
                return Some(format!(
                    "{spare} is in zone {zone}, which has enough members of '{}'",
                    domain.name
                ));
            }
        }
        let limit =
            u128::from(record.capacity_bytes) * u128::from(self.rules.guards.target_percent);
        let after = u128::from(record.used_bytes) + u128::from(bytes);
        let is_known = record.capacity_bytes > 0;
        if is_known && after * 100 > limit {
            return no("would be too full");
        }
        None
    }

    /// The most members that a domain would have in the zone of the spare beside it.
    fn neighbours(&self, server: &str, spare: &ServerRecord) -> usize {
        let domains = self.records.domains.iter().filter(|it| it.has(server));
        let there = domains.map(|it| self.members_in_zone(it, server, spare.zone.as_deref()));
        there.max().unwrap_or(0)
    }

    /// Members of the domain in this zone, without the server that goes.
    fn members_in_zone(&self, domain: &DomainRecord, server: &str, zone: Option<&str>) -> usize {
        let is_there = |name: &&String| {
            let record = self.records.server(name);
            *name != server && zone.is_some() && record.is_some_and(|it| it.zone.as_deref() == zone)
        };
        domain.members.iter().filter(is_there).count()
    }

    /// The zone of the spare, if more members than the domain can lose would be there, and more than now.
    fn crowded<'z>(
        &self,
        domain: &DomainRecord,
        server: &str,
        spare: &'z ServerRecord,
    ) -> Option<&'z str> {
        let zone = spare.zone.as_deref()?;
        let going = self.records.server(server);
        // The zone has as many members as before: too many for the rule *zone*.
        let is_its_own = going.is_some_and(|it| it.zone.as_deref() == Some(zone));
        let is_no_more = is_its_own && self.rule != RuleName::Zone;
        let after = self.members_in_zone(domain, server, Some(zone)) + 1;
        (!is_no_more && after > domain.f()).then_some(zone)
    }

    /// The change, with the effect on each domain as of now.
    pub(crate) fn change(&self, server: &str, spare: &str) -> Change {
        let dead = dead_servers(self.rules, self.records, self.now_ms);
        let dead: BTreeSet<&str> = dead.iter().map(String::as_str).collect();
        let domains = self.records.domains.iter().filter(|it| it.has(server));
        let (mut objects, mut bytes) = (0, 0);
        let mut changes = Vec::new();
        for domain in domains {
            objects += domain.objects;
            bytes += domain.member_bytes;
            changes.push(self.effect(domain, server, spare, &dead));
        }
        Change {
            server: server.into(),
            with: spare.into(),
            domains: changes,
            objects,
            bytes,
        }
    }

    fn effect(
        &self,
        domain: &DomainRecord,
        server: &str,
        spare: &str,
        dead: &BTreeSet<&str>,
    ) -> DomainChange {
        let n = domain.members.len();
        let gone = domain.members_in(dead);
        let mut gone_after = gone - usize::from(dead.contains(server));
        let mut n_after = n;
        if domain.has(spare) && !self.has_free(domain) {
            n_after = n - 1;
            if n == 5 {
                // It goes from five members to three, without another one that is dead.
                (n_after, gone_after) = (3, gone_after.saturating_sub(1));
            }
        }
        let (before, after) = (domain.f(), domain.f_of(n_after));
        DomainChange {
            domain: domain.name.clone(),
            f: Sides { before, after },
            survivable: Sides {
                before: before.saturating_sub(gone),
                after: after.saturating_sub(gone_after),
            },
        }
    }

    /// A server that serves and is no member: the root domain takes it.
    fn has_free(&self, domain: &DomainRecord) -> bool {
        let is_free = |it: &&ServerRecord| {
            it.serving_since_ms.is_some() && !it.leaving && !domain.has(&it.name)
        };
        self.records.servers.iter().any(|it| is_free(&it))
    }
}

/// The domain would tolerate no crash, or survive fewer crashes than now.
pub(crate) fn lowers(change: &DomainChange) -> bool {
    change.f.after < 1 || change.survivable.after < change.survivable.before
}
