//! Samples become records: the history of what one instance has observed.

use super::smoothing::{PhiAccrual, Recent, SlowWindows};
use crate::records::{DomainRecord, Observer, Records, ServerRecord, Smart, View};
use crate::rules::Rules;
use std::collections::{BTreeMap, BTreeSet};

const HOUR_MS: u64 = 3_600_000;
/// The time over which counters of disks are added up, and for which it is known that servers came or went.
pub(crate) const DAY_MS: u64 = 24 * HOUR_MS;
/// The time over which the growth of the bytes in use is taken.
pub(crate) const GROWTH_MS: u64 = 6 * HOUR_MS;

/// One look at a cluster.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Sample {
    /// The servers of the directory.
    pub servers: Vec<ServerSample>,
    /// The domains as they are; the history fills in since when objects are below redundancy.
    pub domains: Vec<DomainRecord>,
    /// The views that answered.
    pub views: Vec<ViewSample>,
}

/// A server in a sample. Counters count from the start of the server.
#[derive(Clone, PartialEq, Debug, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an observation of its own"
)]
pub struct ServerSample {
    /// The name of the server.
    pub name: String,
    /// It answers this instance, and serves.
    pub serves: bool,
    /// An operator takes it out.
    pub leaving: bool,
    /// The label that says where it stands.
    pub zone: Option<String>,
    /// The label that says which machine or disk it has.
    pub class: Option<String>,
    /// An operator labelled it to be emptied.
    pub to_empty: bool,
    /// It is in maintenance now, by the clock of this instance: until this time, as people read it.
    pub maintenance: Option<String>,
    /// The syncs since its start, where they are known.
    pub syncs: Option<Syncs>,
    /// The age of a sync that has not ended.
    pub sync_running_ms: u64,
    /// Errors of its disk.
    pub io_errors: Option<u64>,
    /// Elements that it found corrupted.
    pub corrupted: Option<u64>,
    /// The number of its present start.
    pub incarnation: Option<u64>,
    /// The report of its disk on itself.
    pub smart: Option<Smart>,
    /// Bytes that its store takes; `None`: it did not say.
    pub stored_bytes: Option<u64>,
    /// It refuses writes for want of room.
    pub is_full: bool,
    /// Bytes in use on its disk, by others too; `None`: it did not say.
    pub used_bytes: Option<u64>,
    /// Bytes that its disk holds; 0: not known.
    pub capacity_bytes: u64,
}

/// Syncs of a server since its start.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Syncs {
    /// The number of syncs.
    pub count: u64,
    /// The seconds that all of them took.
    pub seconds: f64,
}

impl Syncs {
    /// The mean time of a sync since this earlier sample, in milliseconds; `None`: there was none. The first sample of a server says nothing of the time
    /// since its start. Counts that fell are those of another start, which count from 0.
    fn mean_ms_since(self, before: Syncs) -> Option<f64> {
        let has_started = before.count > self.count || before.seconds > self.seconds;
        let before = if has_started {
            Syncs::default()
        } else {
            before
        };
        let count = self.count - before.count;
        (count > 0).then(|| (self.seconds - before.seconds) * 1000.0 / count as f64)
    }
}

/// The view that one observer has of a server, in one sample.
#[derive(Clone, PartialEq, Debug)]
pub struct ViewSample {
    /// The holder of the view.
    pub observer: Observer,
    /// The server that is seen.
    pub server: String,
    /// The observer reaches it.
    pub is_reachable: bool,
    /// The time of its answers, where it is known.
    pub answer_ms: Option<f64>,
}

#[derive(Clone, Debug, Default)]
struct ServerHistory {
    serving_since_ms: Option<u64>,
    sync: SlowWindows,
    syncs: Option<Syncs>,
    /// It has synced since the sample before: the mean is one of now.
    has_synced: bool,
    sync_running_ms: u64,
    io_errors: Recent,
    corrupted: Recent,
    incarnation: Recent,
    used: Recent,
    used_bytes: u64,
    stored_bytes: u64,
}

#[derive(Clone, Debug, Default)]
struct ViewHistory {
    answers: PhiAccrual,
    speed: SlowWindows,
    unreachable_since_ms: Option<u64>,
    sampled_ms: u64,
}

/// The history of what one instance has observed.
#[derive(Clone, Debug, Default)]
pub struct History {
    begun_ms: Option<u64>,
    servers: BTreeMap<String, ServerHistory>,
    views: BTreeMap<(Observer, String), ViewHistory>,
    below_since_ms: BTreeMap<String, u64>,
    changed_ms: Option<u64>,
}

impl History {
    /// Adds a sample, and returns the records as of now.
    pub fn add(&mut self, sample: Sample, rules: &Rules, now_ms: u64) -> Records {
        let begun_ms = *self.begun_ms.get_or_insert(now_ms);
        self.note_servers(&sample.servers, rules, now_ms);
        self.note_views(&sample, rules, now_ms);
        let domains = sample.domains.into_iter();
        let domains = domains.map(|it| self.domain(it, now_ms)).collect();
        let server = |it: ServerSample| {
            let known = &self.servers[&it.name];
            known.record(it, now_ms)
        };
        let views = self.views.iter().map(|((observer, server), it)| View {
            observer: observer.clone(),
            server: server.clone(),
            unreachable_since_ms: it.unreachable_since_ms,
            suspicion: it.answers.suspicion(it.sampled_ms),
            slow_windows: it.speed.slow(it.sampled_ms),
            sampled_ms: it.sampled_ms,
        });
        Records {
            views: views.collect(),
            servers: sample.servers.into_iter().map(server).collect(),
            domains,
            observed_ms: now_ms.saturating_sub(begun_ms),
            servers_changed: self
                .changed_ms
                .is_some_and(|ms| now_ms.saturating_sub(ms) < DAY_MS),
        }
    }

    fn note_servers(&mut self, servers: &[ServerSample], rules: &Rules, now_ms: u64) {
        let names: BTreeSet<&str> = servers.iter().map(|it| it.name.as_str()).collect();
        let is_same = names.len() == self.servers.len()
            && names.iter().all(|name| self.servers.contains_key(*name));
        if !is_same && !self.servers.is_empty() {
            self.changed_ms = Some(now_ms);
        }
        self.servers.retain(|name, _| names.contains(name.as_str()));
        for sample in servers {
            self.servers
                .entry(sample.name.clone())
                .or_default()
                .note(sample, now_ms);
        }
        let slow_from = slow_from(self.servers.values().filter_map(|it| it.sync.mean()), rules);
        for server in self.servers.values_mut() {
            server.judge(slow_from, now_ms);
        }
    }

    fn note_views(&mut self, sample: &Sample, rules: &Rules, now_ms: u64) {
        let names: BTreeSet<&str> = sample.servers.iter().map(|it| it.name.as_str()).collect();
        self.views.retain(|(observer, server), _| {
            let is_known = match observer {
                Observer::Instance => true,
                Observer::Server(name) => names.contains(name.as_str()),
            };
            is_known && names.contains(server.as_str())
        });
        let view_ms = rules.guards.view_seconds.saturating_mul(1000);
        for it in &sample.views {
            let key = (it.observer.clone(), it.server.clone());
            self.views.entry(key).or_default().note(it, view_ms, now_ms);
        }
        let slow_from = slow_from(self.views.values().filter_map(|it| it.speed.mean()), rules);
        for view in self.views.values_mut() {
            let mean = view.speed.mean();
            view.speed
                .judge(mean.is_some_and(|mean| mean >= slow_from), now_ms);
        }
    }

    fn domain(&mut self, mut domain: DomainRecord, now_ms: u64) -> DomainRecord {
        domain.below_since_ms = if domain.below > 0 {
            Some(
                *self
                    .below_since_ms
                    .entry(domain.name.clone())
                    .or_insert(now_ms),
            )
        } else {
            self.below_since_ms.remove(&domain.name);
            None
        };
        domain
    }
}

impl ServerHistory {
    fn note(&mut self, sample: &ServerSample, now_ms: u64) {
        self.serving_since_ms = match sample.serves {
            true => Some(self.serving_since_ms.unwrap_or(now_ms)),
            false => None,
        };
        self.sync_running_ms = sample.sync_running_ms;
        self.has_synced = false;
        if let Some(syncs) = sample.syncs
            && let Some(before) = self.syncs.replace(syncs)
            && let Some(mean_ms) = syncs.mean_ms_since(before)
        {
            self.sync.add(mean_ms);
            self.has_synced = true;
        }
        for (recent, counter) in [
            (&mut self.io_errors, sample.io_errors),
            (&mut self.corrupted, sample.corrupted),
            (&mut self.incarnation, sample.incarnation),
        ] {
            if let Some(counter) = counter {
                recent.add(counter as f64, now_ms, DAY_MS);
            }
        }
        if let Some(bytes) = sample.used_bytes {
            self.used.add(bytes as f64, now_ms, GROWTH_MS);
            self.used_bytes = bytes;
        }
        self.stored_bytes = sample.stored_bytes.unwrap_or(self.stored_bytes);
    }

    /// A sync that has been running for so long is slow already. A server that has not synced is not judged.
    fn judge(&mut self, slow_from: f64, now_ms: u64) {
        let is_running = self.sync_running_ms as f64 >= slow_from;
        let mean = self.sync.mean().filter(|_| self.has_synced);
        if is_running || mean.is_some() {
            let is_slow = mean.is_some_and(|mean| mean >= slow_from);
            self.sync.judge(is_running || is_slow, now_ms);
        } else {
            self.sync.pass(now_ms);
        }
    }

    fn record(&self, sample: ServerSample, now_ms: u64) -> ServerRecord {
        ServerRecord {
            name: sample.name,
            zone: sample.zone,
            class: sample.class,
            to_empty: sample.to_empty,
            maintenance: sample.maintenance,
            leaving: sample.leaving,
            serving_since_ms: self.serving_since_ms,
            slow_sync_windows: self.sync.slow(now_ms),
            sync_running_ms: sample.sync_running_ms,
            io_errors: count(self.io_errors.rise()),
            corrupted: count(self.corrupted.rise()),
            restarts: count(self.incarnation.rise()),
            smart: sample.smart,
            stored_bytes: self.stored_bytes,
            is_full: sample.is_full,
            used_bytes: self.used_bytes,
            capacity_bytes: sample.capacity_bytes,
            growth_bytes_per_hour: self.used.per_hour(),
        }
    }
}

impl ViewHistory {
    fn note(&mut self, sample: &ViewSample, view_ms: u64, now_ms: u64) {
        // There was no sample for so long: an earlier sample proves nothing of the time between.
        if now_ms.saturating_sub(self.sampled_ms) > view_ms {
            self.unreachable_since_ms = None;
        }
        self.sampled_ms = now_ms;
        if sample.is_reachable {
            self.answers.add(now_ms);
            self.unreachable_since_ms = None;
        } else {
            self.unreachable_since_ms.get_or_insert(now_ms);
        }
        if let Some(ms) = sample.answer_ms {
            self.speed.add(ms);
        }
    }
}

/// The milliseconds from which a mean is slow among these ones. Of two that differ by less than a person would notice neither is slow. Of an even number the lower
/// one in the middle counts: one of two that is slow does not judge itself.
fn slow_from(means: impl Iterator<Item = f64>, rules: &Rules) -> f64 {
    let mut means: Vec<f64> = means.collect();
    means.sort_by(f64::total_cmp);
    let median = means
        .get(means.len().saturating_sub(1) / 2)
        .copied()
        .unwrap_or(0.0);
    (median * rules.slow.ratio).max(rules.slow.least_ms)
}

#[allow(clippy::cast_sign_loss, reason = "a rise is at least 0")]
fn count(rise: f64) -> u64 {
    rise.round() as u64
}

#[cfg(test)]
mod tests;
