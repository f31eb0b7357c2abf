//! Samples become records: the history of what one instance has observed.

use super::smoothing::{PhiAccrual, Recent, SlowWindows};
use crate::records::{DomainRecord, Observer, Records, ServerRecord, Smart, View};
use crate::rules::Rules;
use std::collections::{BTreeMap, BTreeSet};

const HOUR_MS: u64 = 3_600_000;
const DAY_MS: u64 = 24 * HOUR_MS;
const GROWTH_MS: u64 = 6 * HOUR_MS;

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
pub struct ServerSample {
    /// The name of the server.
    pub name: String,
    /// It answers this instance, and serves.
    pub serves: bool,
    /// An operator takes it out.
    pub leaving: bool,
    /// The label that says where it stands.
    pub zone: Option<String>,
    /// An operator labelled it to be emptied.
    pub to_empty: bool,
    /// The syncs since its start, where they are known.
    pub syncs: Option<Syncs>,
    /// The age of a sync that has not ended.
    pub sync_running_ms: u64,
    /// Errors of its disk.
    pub io_errors: Option<u64>,
    /// Elements that it found corrupted.
    pub corrupted: Option<u64>,
    /// The report of its disk on itself.
    pub smart: Option<Smart>,
    /// Bytes in use; `None`: it did not say.
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
    io_errors: Recent,
    corrupted: Recent,
    used: Recent,
    used_bytes: u64,
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
        for server in self.servers.values_mut().filter(|it| it.has_synced) {
            server.sync.judge(slow_from, now_ms);
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
            view.speed.judge(slow_from, now_ms);
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
        self.has_synced = false;
        if let Some(syncs) = sample.syncs {
            // The first sample says nothing of the time since the start; a start counts from 0.
            let before = self.syncs.replace(syncs);
            if let Some(before) = before.filter(|it| it.count < syncs.count) {
                let count = (syncs.count - before.count) as f64;
                self.sync
                    .add((syncs.seconds - before.seconds).max(0.0) * 1000.0 / count);
                self.has_synced = true;
            }
        }
        for (recent, counter) in [
            (&mut self.io_errors, sample.io_errors),
            (&mut self.corrupted, sample.corrupted),
        ] {
            if let Some(counter) = counter {
                recent.add(counter as f64, now_ms, DAY_MS);
            }
        }
        if let Some(bytes) = sample.used_bytes {
            self.used.add(bytes as f64, now_ms, GROWTH_MS);
            self.used_bytes = bytes;
        }
    }

    fn record(&self, sample: ServerSample, now_ms: u64) -> ServerRecord {
        ServerRecord {
            name: sample.name,
            zone: sample.zone,
            to_empty: sample.to_empty,
            leaving: sample.leaving,
            serving_since_ms: self.serving_since_ms,
            slow_sync_windows: self.sync.slow(now_ms),
            sync_running_ms: sample.sync_running_ms,
            io_errors: count(self.io_errors.rise()),
            corrupted: count(self.corrupted.rise()),
            smart: sample.smart,
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

/// The milliseconds from which a mean is slow among these ones. Of two that differ by less than a person would notice neither is slow.
fn slow_from(means: impl Iterator<Item = f64>, rules: &Rules) -> f64 {
    let mut means: Vec<f64> = means.collect();
    means.sort_by(f64::total_cmp);
    let median = means.get(means.len() / 2).copied().unwrap_or(0.0);
    (median * rules.slow.ratio).max(rules.slow.least_ms)
}

#[allow(clippy::cast_sign_loss, reason = "a rise is at least 0")]
fn count(rise: f64) -> u64 {
    rise.round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(name: &str) -> ServerSample {
        ServerSample {
            name: name.into(),
            serves: true,
            ..ServerSample::default()
        }
    }

    fn view(observer: &str, server: &str, is_reachable: bool) -> ViewSample {
        ViewSample {
            observer: Observer::Server(observer.into()),
            server: server.into(),
            is_reachable,
            answer_ms: None,
        }
    }

    fn add(
        history: &mut History,
        servers: &[&str],
        views: Vec<ViewSample>,
        now_ms: u64,
    ) -> Records {
        let servers = servers.iter().map(|it| server(it)).collect();
        let sample = Sample {
            servers,
            views,
            domains: Vec::new(),
        };
        history.add(sample, &Rules::built_in(), now_ms)
    }

    #[test]
    fn silence_counts_only_while_it_is_looked_at() {
        let mut history = History::default();
        for second in 0..20 {
            add(
                &mut history,
                &["s1", "s2"],
                vec![view("s1", "s2", true)],
                second * 1000,
            );
        }
        let gone = || vec![view("s1", "s2", false)];
        let records = add(&mut history, &["s1", "s2"], gone(), 21_000);
        assert_eq!(records.views[0].unreachable_since_ms, Some(21_000));
        let records = add(&mut history, &["s1", "s2"], gone(), 60_000);
        assert_eq!(records.views[0].unreachable_since_ms, Some(21_000));
        assert!(records.views[0].suspicion.unwrap() > 8.0);
        let records = add(&mut history, &["s1", "s2"], gone(), 200_000);
        assert_eq!(records.views[0].unreachable_since_ms, Some(200_000));
        let back = vec![view("s1", "s2", true)];
        let records = add(&mut history, &["s1", "s2"], back, 201_000);
        assert_eq!(records.views[0].unreachable_since_ms, None);
        assert_eq!(records.observed_ms, 201_000);
    }

    #[test]
    fn a_server_that_left_takes_its_views_along() {
        let mut history = History::default();
        let views = || vec![view("s1", "s2", true), view("s2", "s1", true)];
        assert_eq!(add(&mut history, &["s1", "s2"], views(), 0).views.len(), 2);
        let records = add(&mut history, &["s1"], Vec::new(), 1);
        assert!(records.views.is_empty() && records.servers_changed);
        let records = add(&mut history, &["s1"], Vec::new(), 2 + DAY_MS);
        assert!(!records.servers_changed);
    }

    #[test]
    fn a_stop_ends_the_time_for_which_a_server_is_stable() {
        let mut history = History::default();
        add(&mut history, &["s1"], Vec::new(), 0);
        let records = add(&mut history, &["s1"], Vec::new(), 10);
        assert_eq!(records.servers[0].serving_since_ms, Some(0));
        let stopped = Sample {
            servers: vec![ServerSample {
                serves: false,
                ..server("s1")
            }],
            ..Sample::default()
        };
        let records = history.add(stopped, &Rules::built_in(), 20);
        assert_eq!(records.servers[0].serving_since_ms, None);
        let records = add(&mut history, &["s1"], Vec::new(), 30);
        assert_eq!(records.servers[0].serving_since_ms, Some(30));
    }

    #[test]
    fn objects_are_below_redundancy_since_the_first_sample_that_says_so() {
        let mut history = History::default();
        let mut look = |below, now_ms| {
            let domain = DomainRecord {
                name: "d".into(),
                below,
                ..DomainRecord::default()
            };
            let sample = Sample {
                domains: vec![domain],
                ..Sample::default()
            };
            let records = history.add(sample, &Rules::built_in(), now_ms);
            records.domains[0].below_since_ms
        };
        let seen = [look(0, 1), look(2, 5), look(1, 9), look(0, 11), look(3, 12)];
        assert_eq!(seen, [None, Some(5), Some(5), None, Some(12)]);
    }

    #[test]
    fn a_disk_is_slow_where_its_syncs_stand_out_and_it_still_syncs() {
        let mut history = History::default();
        // The seconds that a sync takes at s1 and at each other server, and those syncs since the sample before.
        let mut look = |slow: f64, usual: f64, count: u64, second: u64| {
            let sample = |name: &str, seconds: f64| ServerSample {
                syncs: Some(Syncs {
                    count: count * second,
                    seconds: seconds * (count * second) as f64,
                }),
                ..server(name)
            };
            let servers = vec![sample("s1", slow), sample("s2", usual), sample("s3", usual)];
            let sample = Sample {
                servers,
                ..Sample::default()
            };
            let records = history.add(sample, &Rules::built_in(), second * 1000);
            let windows = records.servers.iter().map(|it| it.slow_sync_windows);
            windows.collect::<Vec<u32>>()
        };
        let seen: Vec<_> = (0..80).map(|second| look(0.1, 0.01, 5, second)).collect();
        assert_eq!(seen[79], [7, 0, 0]);
        // The disk that was slow has nothing to sync: nothing is known of it.
        let idle: Vec<_> = (0..40).map(|_| look(0.1, 0.01, 0, 100)).collect();
        assert_eq!(idle[39], [0, 0, 0], "no window was judged");
        let mut history = History::default();
        for second in 0..80 {
            let sample = |name: &str, seconds: f64| ServerSample {
                syncs: Some(Syncs {
                    count: second,
                    seconds: seconds * second as f64,
                }),
                ..server(name)
            };
            let servers = vec![sample("s1", 0.002), sample("s2", 0.0001)];
            let sample = Sample {
                servers,
                ..Sample::default()
            };
            let records = history.add(sample, &Rules::built_in(), second * 1000);
            assert_eq!(records.servers[0].slow_sync_windows, 0, "2 ms are not slow");
        }
    }

    #[test]
    fn a_disk_is_judged_by_a_day_of_its_counters() {
        let mut history = History::default();
        let mut look = |corrupted, now_ms| {
            let server = ServerSample {
                corrupted: Some(corrupted),
                ..server("s1")
            };
            let sample = Sample {
                servers: vec![server],
                ..Sample::default()
            };
            history.add(sample, &Rules::built_in(), now_ms).servers[0].corrupted
        };
        assert_eq!([look(5, 0), look(7, 1000), look(8, DAY_MS - 1)], [0, 2, 3]);
        assert_eq!(look(8, DAY_MS + 2000), 1);
    }
}
