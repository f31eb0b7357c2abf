//! Reasons for intents: one function for each row of the table of rules.

mod domains;

use crate::intent::{Evidence, Reason};
use crate::prediction::{Features, Model};
use crate::records::{Records, ServerRecord, View};
use crate::rules::{Disk, RuleName, Rules};
use crate::signal::{self, Signal};
use std::collections::BTreeSet;

/// A reason, and what it wants done.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Trigger {
    /// The server, or the domain, that it is about.
    pub(super) subject: String,
    pub(super) reason: Reason,
    pub(super) wanted: Wanted,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Wanted {
    /// The server is to be replaced in all domains.
    Replace,
    /// People are to know it.
    Advice { remedy: String },
}

/// The knowledge that rules judge.
#[derive(Clone, Copy)]
struct Look<'a> {
    rules: &'a Rules,
    records: &'a Records,
    now_ms: u64,
}

/// Every reason that there is now.
pub(super) fn all(rules: &Rules, records: &Records, now_ms: u64) -> Vec<Trigger> {
    let look = Look {
        rules,
        records,
        now_ms,
    };
    let mut found = Vec::new();
    for server in &records.servers {
        let of_server = [
            look.dead(server),
            look.disk(server),
            look.slow(server),
            look.stall(server),
            look.filling(server),
            look.class(server),
        ];
        found.extend(of_server.into_iter().flatten());
    }
    for domain in &records.domains {
        found.extend(
            [
                look.redundancy(domain),
                look.zone(domain),
                look.grow(domain),
            ]
            .into_iter()
            .flatten(),
        );
    }
    found.extend(look.links());
    found.extend(look.unbalanced());
    found
}

/// Servers that a majority of the other servers does not reach for the time of the rule *dead*.
pub fn dead_servers(rules: &Rules, records: &Records, now_ms: u64) -> BTreeSet<String> {
    let look = Look {
        rules,
        records,
        now_ms,
    };
    let is_dead = |it: &&ServerRecord| look.is_gone(&it.name, rules.dead.unreachable_seconds);
    records
        .servers
        .iter()
        .filter(is_dead)
        .map(|it| it.name.clone())
        .collect()
}

/// Servers that look bad now, for however short a time: to a majority of the others, or to this instance.
pub fn bad_servers(rules: &Rules, records: &Records, now_ms: u64) -> BTreeSet<String> {
    let look = Look {
        rules,
        records,
        now_ms,
    };
    let is_bad = |it: &&ServerRecord| it.serving_since_ms.is_none() || look.is_gone(&it.name, 0);
    records
        .servers
        .iter()
        .filter(is_bad)
        .map(|it| it.name.clone())
        .collect()
}

fn evidence(signal: Signal, observer: &str, value: f64, threshold: f64) -> Evidence {
    Evidence {
        signal: signal.name.into(),
        observer: observer.into(),
        value,
        threshold,
    }
}

/// The signs of a disk that fails, or is about to: each that passes its threshold.
fn signs(rule: &Disk, server: &ServerRecord) -> Vec<Evidence> {
    let (name, smart) = (&server.name, server.smart.unwrap_or_default());
    let (rises, wear) = (smart.rises, smart.wear_percent);
    let count = |signal, value: u64, threshold: u64| {
        let is_sign = value >= threshold;
        is_sign.then(|| evidence(signal, name, value as f64, threshold as f64))
    };
    let health = evidence(
        signal::DISK_HEALTH,
        name,
        rises.into(),
        rule.smart_rises.into(),
    );
    let is_rising = rises >= rule.smart_rises || smart.is_critical;
    let all = [
        count(signal::IO_ERRORS, server.io_errors, rule.io_errors),
        count(signal::ROT, server.corrupted, rule.corrupted),
        is_rising.then_some(health),
        count(signal::DISK_HEALTH, wear.into(), rule.wear_percent.into()),
    ];
    all.into_iter().flatten().collect()
}

/// True if a disk shows a sign that passes its threshold.
pub fn is_at_risk(rules: &Rules, server: &ServerRecord) -> bool {
    !signs(&rules.disk, server).is_empty()
}

impl Trigger {
    fn new(rule: RuleName, subject: &str, sentence: String, evidence: Vec<Evidence>) -> Trigger {
        Trigger {
            subject: subject.into(),
            reason: Reason {
                rule,
                sentence,
                evidence,
            },
            wanted: Wanted::Replace,
        }
    }

    fn advice(self, remedy: impl Into<String>) -> Trigger {
        let remedy = remedy.into();
        Trigger {
            wanted: Wanted::Advice { remedy },
            ..self
        }
    }
}

impl Look<'_> {
    fn view_ms(&self) -> u64 {
        self.rules.guards.view_seconds.saturating_mul(1000)
    }

    /// The other servers that do not reach this one for so long.
    fn without_reach(&self, server: &str, seconds: u64) -> Vec<Evidence> {
        let ms = seconds.saturating_mul(1000);
        let views = self.records.views_of(server, (self.now_ms, self.view_ms()));
        let counts = |observer: &str| self.records.within().any(|it| it.name == observer);
        let is_gone = |it: &View| it.is_gone_for(ms, self.rules.guards.suspicion, self.now_ms);
        let gone = views.filter(|(observer, it)| counts(observer) && is_gone(it));
        let shown = gone.map(|(observer, view)| {
            let since_ms = view.unreachable_since_ms.unwrap_or(self.now_ms);
            let silent = self.now_ms.saturating_sub(since_ms) / 1000;
            evidence(signal::REACHABLE, observer, silent as f64, seconds as f64)
        });
        shown.collect()
    }

    /// A majority of the other servers does not reach it for so long.
    fn is_gone(&self, server: &str, seconds: u64) -> bool {
        let others = self.others(server);
        others > 0 && self.without_reach(server, seconds).len() * 2 > others
    }

    /// The number of other servers whose views count.
    fn others(&self, server: &str) -> usize {
        self.records.within().filter(|it| it.name != server).count()
    }

    fn is_member(&self, server: &str) -> bool {
        self.records.domains.iter().any(|it| it.has(server))
    }

    fn dead(&self, server: &ServerRecord) -> Option<Trigger> {
        let (name, seconds) = (&server.name, self.rules.dead.unreachable_seconds);
        if !self.is_gone(name, seconds) {
            return None;
        }
        let others = self.others(name);
        let seen = self.without_reach(name, seconds);
        let sentence = format!(
            "{} of {others} other servers have not reached {name} for {seconds} s",
            seen.len()
        );
        let trigger = Trigger::new(RuleName::Dead, name, sentence, seen);
        Some(match self.is_member(name) {
            true => trigger,
            false => trigger.advice(format!(
                "start it again; if it is lost: areo server forget {name}"
            )),
        })
    }

    /// An error of the disk moves a server out. All else that a disk shows, and a prediction, is advice.
    fn disk(&self, server: &ServerRecord) -> Option<Trigger> {
        let (name, rule) = (&server.name, &self.rules.disk);
        let mut seen = signs(rule, server);
        seen.extend(self.predicted(server));
        if seen.is_empty() || !self.is_member(name) {
            return None;
        }
        let trigger = Trigger::new(
            RuleName::Disk,
            name,
            format!("the disk of {name} is at risk"),
            seen,
        );
        Some(match server.io_errors >= rule.io_errors {
            true => trigger,
            false => trigger.advice(format!("areo server drain {name}")),
        })
    }

    /// The model expects that the server is lost.
    fn predicted(&self, server: &ServerRecord) -> Option<Evidence> {
        let rule = &self.rules.prediction;
        if !rule.on {
            return None;
        }
        let probability = Model::built_in().probability(&Features::from(server));
        // Two digits: a third one would be more than it knows.
        let shown = (probability * 100.0).round() / 100.0;
        let limit = rule.probability;
        (probability >= limit).then(|| evidence(signal::PREDICTION, &server.name, shown, limit))
    }

    /// Peers to which it is slow, without links that are bad at both ends.
    fn slow_peers(&self, server: &str) -> Vec<Evidence> {
        let windows = self.rules.slow.windows;
        let fresh = (self.now_ms, self.view_ms());
        let is_slow = |to: &str, from: &str| {
            let mut views = self.records.views_of(to, fresh);
            views.any(|(observer, it)| observer == from && it.slow_windows >= windows)
        };
        let views = self.records.views_of(server, fresh);
        let slow =
            views.filter(|(observer, it)| it.slow_windows >= windows && !is_slow(observer, server));
        slow.map(|(observer, it)| {
            evidence(
                signal::SLOW,
                observer,
                it.slow_windows.into(),
                windows.into(),
            )
        })
        .collect()
    }

    fn is_slow(&self, server: &ServerRecord) -> bool {
        let rule = &self.rules.slow;
        server.slow_sync_windows >= rule.windows
            || self.slow_peers(&server.name).len() >= rule.peers
    }

    fn slow(&self, server: &ServerRecord) -> Option<Trigger> {
        let (name, windows) = (&server.name, self.rules.slow.windows);
        if !self.is_slow(server) {
            return None;
        }
        let mut seen = self.slow_peers(name);
        if server.slow_sync_windows >= windows {
            seen.push(evidence(
                signal::SLOW_SYNC,
                name,
                server.slow_sync_windows.into(),
                windows.into(),
            ));
        }
        let ratio = self.rules.slow.ratio;
        let sentence = format!("{name} takes {ratio} times as long as the median server");
        let trigger = Trigger::new(RuleName::Slow, name, sentence, seen);
        let is_out = |it: &&ServerRecord| {
            self.is_slow(it) || self.is_gone(&it.name, self.rules.dead.unreachable_seconds)
        };
        let out: BTreeSet<&str> = self
            .records
            .servers
            .iter()
            .filter(is_out)
            .map(|it| it.name.as_str())
            .collect();
        let mut domains = self.records.domains.iter().filter(|it| it.has(name));
        let is_exhausted = domains.any(|it| it.members_in(&out) >= it.f());
        Some(match is_exhausted {
            true => trigger,
            false => trigger.advice(format!(
                "look at its disk and its network; to empty it: areo server drain {name}"
            )),
        })
    }

    fn stall(&self, server: &ServerRecord) -> Option<Trigger> {
        let seconds = self.rules.stall.sync_seconds;
        let running = server.sync_running_ms / 1000;
        let sentence = format!("a sync of {} has not ended", server.name);
        let seen = evidence(
            signal::SYNC_RUNNING,
            &server.name,
            running as f64,
            seconds as f64,
        );
        let trigger = Trigger::new(RuleName::Stall, &server.name, sentence, vec![seen]);
        let remedy = format!(
            "start {0} again; if its disk is lost: areo server replace {0}",
            server.name
        );
        (running >= seconds).then(|| trigger.advice(remedy))
    }

    fn filling(&self, server: &ServerRecord) -> Option<Trigger> {
        let (name, rule) = (&server.name, &self.rules.filling);
        // A server whose disk has no known size says at least that it is full.
        let capacity = u128::from(server.capacity_bytes);
        let percent = (u128::from(server.used_bytes) * 100)
            .checked_div(capacity)
            .unwrap_or(0);
        let free = server.capacity_bytes.saturating_sub(server.used_bytes);
        let hours = match capacity > 0 && server.growth_bytes_per_hour > 0.0 {
            true => free as f64 / server.growth_bytes_per_hour,
            false => f64::INFINITY,
        };
        let mut seen = Vec::new();
        if server.is_full {
            seen.push(evidence(signal::FULL, name, 1.0, 1.0));
        }
        if percent >= rule.used_percent.into() {
            seen.push(evidence(
                signal::ROOM,
                name,
                percent as f64,
                rule.used_percent as f64,
            ));
        }
        if hours < rule.hours_left as f64 {
            seen.push(evidence(
                signal::HOURS_LEFT,
                name,
                hours,
                rule.hours_left as f64,
            ));
        }
        if seen.is_empty() {
            return None;
        }
        let allowed = capacity * u128::from(rule.used_percent) / 100;
        let (sentence, missing) = match server.is_full {
            // Its part of the disk may be smaller than the disk.
            true => (format!("{name} is full: it refuses writes"), "some".into()),
            false => (
                format!("the disk of {name} is filling: {percent} % used"),
                u128::from(server.used_bytes)
                    .saturating_sub(allowed)
                    .to_string(),
            ),
        };
        let trigger = Trigger::new(RuleName::Filling, name, sentence, seen);
        Some(trigger.advice(format!(
            "{missing} bytes are to go from {name}: areo server --join ADDR starts another server, areo reconfig start DOMAIN --add S --remove {name} moves a domain"
        )))
    }

    fn class(&self, server: &ServerRecord) -> Option<Trigger> {
        let name = &server.name;
        let sentence = match self.rules.emptied_class(server.class.as_deref()) {
            _ if server.to_empty => format!("{name} is labelled to be emptied"),
            Some(class) => format!("{name} is of class {class}, which is to be emptied"),
            None => return None,
        };
        let seen = vec![evidence(signal::LABEL, name, 1.0, 1.0)];
        let trigger = Trigger::new(RuleName::Class, name, sentence, seen);
        self.is_member(name).then_some(trigger)
    }
}
