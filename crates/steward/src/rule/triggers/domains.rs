//! Reasons that concern domains, pairs of servers, or all servers together.

use super::{Look, Trigger, bad_servers, evidence};
use crate::records::DomainRecord;
use crate::rules::RuleName;
use crate::signal;
use std::collections::BTreeSet;

const GIB: u64 = 1 << 30;

impl Look<'_> {
    pub(super) fn redundancy(&self, domain: &DomainRecord) -> Option<Trigger> {
        let seconds = self.rules.redundancy.below_seconds;
        let below = self.now_ms.saturating_sub(domain.below_since_ms?) / 1000;
        let serves = |name: &String| {
            let record = self.records.server(name);
            record.is_some_and(|it| it.serving_since_ms.is_some())
        };
        if below < seconds || !domain.members.iter().all(serves) {
            return None;
        }
        let sentence = format!(
            "{} objects of '{}' are not at all of its servers, which answer",
            domain.below, domain.name
        );
        let seen = evidence(
            signal::REDUNDANCY,
            &domain.name,
            below as f64,
            seconds as f64,
        );
        let trigger = Trigger::new(RuleName::Redundancy, &domain.name, sentence, vec![seen]);
        Some(trigger.advice(format!(
            "areo repair ls --domain {} says which, and why",
            domain.name
        )))
    }

    /// The member that leaves is the last one by name: the choice must not change from one evaluation to the next.
    pub(super) fn zone(&self, domain: &DomainRecord) -> Option<Trigger> {
        let zone_of = |name: &String| self.records.server(name)?.zone.as_deref();
        let zones: BTreeSet<&str> = domain.members.iter().filter_map(zone_of).collect();
        for zone in zones {
            let within = || domain.members.iter().filter(|it| zone_of(it) == Some(zone));
            let (count, f) = (within().count(), domain.f());
            if count > f && f > 0 {
                let server = within().max().expect("it has members");
                let sentence = format!(
                    "{count} members of '{}' are in zone {zone}, which can lose {f}",
                    domain.name
                );
                let seen = vec![evidence(signal::ZONE, &domain.name, count as f64, f as f64)];
                return Some(Trigger::new(RuleName::Zone, server, sentence, seen));
            }
        }
        None
    }

    pub(super) fn grow(&self, domain: &DomainRecord) -> Option<Trigger> {
        let rule = &self.rules.grow;
        let servers = self.records.servers.len();
        let gib = domain.member_bytes / GIB;
        if !domain.is_replicated || domain.grows || servers < rule.servers || gib < rule.gibibytes {
            return None;
        }
        let sentence = format!(
            "'{}' keeps {} copies of {gib} GiB",
            domain.name,
            domain.members.len()
        );
        let seen = evidence(
            signal::SIZE,
            &domain.name,
            gib as f64,
            rule.gibibytes as f64,
        );
        let trigger = Trigger::new(RuleName::Grow, &domain.name, sentence, vec![seen]);
        Some(trigger.advice(format!(
            "areo reconfig plan {} --dap ec --k 3 shows what fragments would cost",
            domain.name
        )))
    }

    /// Pairs of servers of which one does not reach the other, which the rest reaches.
    pub(super) fn links(&self) -> Vec<Trigger> {
        let seconds = self.rules.link.unreachable_seconds;
        let bad = bad_servers(self.rules, self.records, self.now_ms);
        let mut pairs = BTreeSet::new();
        for server in self
            .records
            .servers
            .iter()
            .filter(|it| !bad.contains(&it.name))
        {
            let seen = self.without_reach(&server.name, seconds);
            if let [one] = seen.as_slice()
                && !bad.contains(&one.observer)
            {
                let (a, b) = (server.name.clone(), one.observer.clone());
                pairs.insert(if a < b { (a, b) } else { (b, a) });
            }
        }
        let trigger = |(a, b): (String, String)| {
            let sentence = format!("{a} and {b} do not see each other, all others see both");
            let seen = vec![evidence(
                signal::REACHABLE,
                &a,
                seconds as f64,
                seconds as f64,
            )];
            let trigger = Trigger::new(RuleName::Link, &format!("{a}-{b}"), sentence, seen);
            trigger.advice(format!(
                "look at the network between {a} and {b}: no server is to be replaced"
            ))
        };
        pairs.into_iter().map(trigger).collect()
    }

    pub(super) fn unbalanced(&self) -> Option<Trigger> {
        let used = || {
            self.records
                .servers
                .iter()
                .filter(|it| it.serving_since_ms.is_some())
        };
        let is_below = self.records.domains.iter().any(|it| it.below > 0);
        let rule = &self.rules.unbalanced;
        let fullest = used().max_by_key(|it| it.stored_bytes)?;
        let most = fullest.stored_bytes as f64;
        let mean = used().map(|it| it.stored_bytes as f64).sum::<f64>() / used().count() as f64;
        let (value, limit) = (most / mean.max(1.0), rule.ratio);
        let is_small = most - mean < rule.gibibytes as f64 * GIB as f64;
        if is_below || is_small || !self.records.servers_changed || value <= limit {
            return None;
        }
        let sentence = format!(
            "{} holds {value:.2} times the mean, after servers came or went",
            fullest.name
        );
        let seen = vec![evidence(signal::BALANCE, &fullest.name, value, limit)];
        let trigger = Trigger::new(RuleName::Unbalanced, &fullest.name, sentence, seen);
        Some(trigger.advice(format!(
            "areo reconfig start DOMAIN --add S --remove {} moves a domain",
            fullest.name
        )))
    }
}
