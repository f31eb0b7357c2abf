//! Random clusters, faults and operators: no change that begins breaks a guard.

#![allow(clippy::unwrap_used, reason = "a test")]

use areo_steward::guard::{Actor, Level};
use areo_steward::intent::{Intent, State};
use areo_steward::journal::Journal;
use areo_steward::records::{DomainRecord, Observer};
use areo_steward::rule::decide;
use areo_steward::rules::Rules;
use areo_steward::signal::{History, Sample, ServerSample, ViewSample};
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

const MINUTE_MS: u64 = 60_000;

/// Something that happens before an evaluation.
#[derive(Clone, Debug)]
enum Event {
    Nothing,
    Crash(usize),
    Start(usize),
    /// One server does not see another one.
    Cut(usize, usize),
    Heal,
    Errors(usize),
    Label(usize),
    /// An operator begins, or ends, a change of a domain.
    Operator(usize),
    Pause,
    /// An operator declines one of the intents that are open.
    Decline(usize),
    /// The change that runs ends, or fails.
    End(bool),
    /// Another instance takes over.
    Restart,
}

fn event() -> impl Strategy<Value = Event> {
    let server = 0..12_usize;
    prop_oneof![
        10 => Just(Event::Nothing),
        4 => server.clone().prop_map(Event::Crash),
        3 => server.clone().prop_map(Event::Start),
        1 => (server.clone(), server.clone()).prop_map(|(a, b)| Event::Cut(a, b)),
        1 => Just(Event::Heal),
        1 => server.clone().prop_map(Event::Errors),
        1 => server.prop_map(Event::Label),
        1 => (0..4_usize).prop_map(Event::Operator),
        1 => Just(Event::Pause),
        1 => (0..4_usize).prop_map(Event::Decline),
        4 => any::<bool>().prop_map(Event::End),
        1 => Just(Event::Restart),
    ]
}

#[derive(Clone, Debug)]
struct Cluster {
    servers: Vec<ServerSample>,
    domains: Vec<DomainRecord>,
    cuts: BTreeSet<(usize, usize)>,
}

/// Servers, and domains by their first member, length and k.
fn cluster() -> impl Strategy<Value = Cluster> {
    let domain = (0..12_usize, 1..8_usize, 1..5_usize);
    (3..12_usize, vec(domain, 1..4)).prop_map(|(servers, domains)| {
        let name = |i: usize| format!("s{}", i + 1);
        let server = |i| ServerSample {
            name: name(i),
            serves: true,
            used_bytes: Some(1 << 30),
            capacity_bytes: 100 << 30,
            io_errors: Some(0),
            ..ServerSample::default()
        };
        let domain = |(i, (first, length, k)): (usize, (usize, usize, usize))| {
            let length = length.min(servers);
            let members = (0..length).map(|at| name((first + at) % servers));
            DomainRecord {
                name: if i == 0 {
                    "@root".into()
                } else {
                    format!("d{i}")
                },
                k: if i == 0 { 1 } else { k.min(length) },
                members: members.collect(),
                grows: i == 0,
                is_replicated: k == 1,
                objects: 10,
                member_bytes: 1 << 20,
                ..DomainRecord::default()
            }
        };
        Cluster {
            servers: (0..servers).map(server).collect(),
            domains: domains.into_iter().enumerate().map(domain).collect(),
            cuts: BTreeSet::new(),
        }
    })
}

impl Cluster {
    fn at(&mut self, i: usize) -> &mut ServerSample {
        let count = self.servers.len();
        &mut self.servers[i % count]
    }

    fn sample(&self) -> Sample {
        let mut views = Vec::new();
        for (a, observer) in self.servers.iter().enumerate().filter(|(_, it)| it.serves) {
            for (b, server) in self.servers.iter().enumerate().filter(|(b, _)| *b != a) {
                views.push(ViewSample {
                    observer: Observer::Server(observer.name.clone()),
                    server: server.name.clone(),
                    is_reachable: server.serves && !self.cuts.contains(&(a, b)),
                    answer_ms: None,
                });
            }
        }
        Sample {
            servers: self.servers.clone(),
            domains: self.domains.clone(),
            views,
        }
    }

    fn dead(&self) -> BTreeSet<&str> {
        let dead = self.servers.iter().filter(|it| !it.serves);
        dead.map(|it| it.name.as_str()).collect()
    }

    /// Crashes that each domain survives now, by name.
    fn survivable(&self) -> BTreeMap<String, usize> {
        let dead = self.dead();
        let survivable = |it: &DomainRecord| it.f().saturating_sub(it.members_in(&dead));
        self.domains
            .iter()
            .map(|it| (it.name.clone(), survivable(it)))
            .collect()
    }

    /// The change, as `server replace` makes it.
    fn replace(&mut self, server: &str, with: &str) {
        let dead: BTreeSet<String> = self.dead().into_iter().map(str::to_owned).collect();
        let all: Vec<String> = self.servers.iter().map(|it| it.name.clone()).collect();
        for domain in self.domains.iter_mut().filter(|it| it.has(server)) {
            domain.members.retain(|it| it != server);
            let is_free = |it: &&String| !domain.has(it) && !dead.contains(*it) && *it != server;
            let coming = match domain.has(with) {
                true => all.iter().find(is_free).cloned(),
                false => Some(with.to_owned()),
            };
            match coming {
                Some(coming) => domain.members.push(coming),
                None if domain.members.len() == 4 => {
                    let last = domain
                        .members
                        .iter()
                        .position(|it| dead.contains(it))
                        .unwrap_or(3);
                    domain.members.remove(last);
                }
                None => {}
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_change_breaks_a_guard(mut cluster in cluster(), events in vec(event(), 1..80)) {
        let rules = Rules::overridden("[guards]\nbetween_changes_seconds = 600\nview_seconds = 120").unwrap();
        let mut journal = Journal::default();
        let mut history = History::default();
        let mut begun_ms: Option<u64> = None;
        // Declined changes of servers that have not served since then.
        let mut unwanted: BTreeMap<u64, String> = BTreeMap::new();
        let actor = Actor { level: Level::Act, holds_lease: true };
        // A quarter of an hour without trouble, so that spares are stable.
        let quiet = std::iter::repeat_n(Event::Nothing, 16);
        for (minute, event) in quiet.chain(events).enumerate() {
            let now_ms = (minute as u64 + 1000) * MINUTE_MS;
            let running = journal.open().find(|it| matches!(it.state, State::Running { .. })).cloned();
            match event {
                Event::Nothing => {}
                Event::Crash(i) => cluster.at(i).serves = false,
                Event::Start(i) => cluster.at(i).serves = true,
                Event::Cut(a, b) => {
                    let count = cluster.servers.len();
                    cluster.cuts.insert((a % count, b % count));
                }
                Event::Heal => cluster.cuts.clear(),
                Event::Errors(i) => {
                    let errors = &mut cluster.at(i).io_errors;
                    *errors = errors.map(|it| it + 1);
                }
                Event::Label(i) => cluster.at(i).to_empty = true,
                Event::Operator(i) => {
                    let count = cluster.domains.len();
                    let domain = &mut cluster.domains[i % count];
                    domain.is_pending = !domain.is_pending;
                }
                Event::Pause => journal.paused = !journal.paused,
                Event::Decline(i) => {
                    let open: Vec<Intent> = journal.open().filter(|it| !it.state.is_begun()).cloned().collect();
                    if !open.is_empty() {
                        let mut intent = open[i % open.len()].clone();
                        intent.decline(now_ms).unwrap();
                        if let Some(change) = &intent.change {
                            unwanted.insert(intent.number, change.server.clone());
                        }
                        journal.put(intent);
                    }
                }
                Event::Restart => history = History::default(),
                Event::End(is_done) => {
                    if let Some(mut intent) = running {
                        let change = intent.change.clone().unwrap();
                        let next = match is_done {
                            true => {
                                cluster.replace(&change.server, &change.with);
                                State::Done { proof: "whole".into() }
                            }
                            false => intent.failed("d", "no quorum", &rules.guards, now_ms),
                        };
                        intent.advance(next, now_ms).unwrap();
                        journal.put(intent);
                    }
                }
            }
            let records = history.add(cluster.sample(), &rules, now_ms);
            let decision = decide(&rules, &records, &journal, actor, now_ms);
            for intent in decision.writes {
                journal.put(intent);
            }
            let mut domains = BTreeSet::new();
            for intent in journal.wanted() {
                for domain in intent.domains() {
                    prop_assert!(domains.insert(domain.to_owned()), "two changes of {domain}: {journal:#?}");
                }
            }
            let dead = cluster.dead();
            unwanted.retain(|_, server| dead.contains(server.as_str()));
            for number in unwanted.keys() {
                let intent = journal.declined().find(|it| it.number == *number);
                prop_assert!(intent.is_some(), "intent {number} has ended, and its reason lasts: {journal:#?}");
            }
            for intent in journal.declined().filter(|it| it.change.is_some()) {
                let is_reason = |rule| intent.reasons.iter().any(|it| it.rule == rule);
                let again = journal.open().find(|it| {
                    let is_about = it.change.is_some() && it.subject == intent.subject && it.number > intent.number;
                    is_about && it.reasons.iter().any(|it| is_reason(it.rule))
                });
                prop_assert!(again.is_none(), "{again:?} after {intent:?}");
            }
            let Some(number) = decision.act else { continue };
            let mut intent = journal.open().find(|it| it.number == number).unwrap().clone();
            prop_assert!(!journal.paused, "it is paused");
            prop_assert!(cluster.dead().len() * 3 <= cluster.servers.len(), "it is the network");
            if matches!(intent.state, State::Running { .. }) {
                continue;
            }
            if !intent.state.is_begun() {
                prop_assert!(records.observed_ms >= 10 * MINUTE_MS, "it has just begun to watch");
                let pause = begun_ms.map(|before| now_ms - before);
                prop_assert!(pause.is_none_or(|it| it >= 10 * MINUTE_MS), "a change after {pause:?} ms");
                begun_ms = Some(now_ms);
                let change = intent.change.as_ref().unwrap();
                let before = cluster.survivable();
                let mut after = cluster.clone();
                after.replace(&change.server, &change.with);
                for domain in after.domains.iter().filter(|it| change.domains.iter().any(|c| c.domain == it.name)) {
                    prop_assert!(domain.f() >= 1, "f of {domain:?} after {change}");
                    prop_assert!(!domain.is_pending, "an operator changes {domain:?}");
                }
                for (domain, survivable) in after.survivable() {
                    prop_assert!(survivable >= before[&domain], "{domain} after {change}");
                }
            }
            intent.advance(State::Running { step: "d".into(), done: 0, total: 1 }, now_ms).unwrap();
            journal.put(intent);
        }
    }
}
