//! Samples become records.

mod syncs;

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

fn add(history: &mut History, servers: &[&str], views: Vec<ViewSample>, now_ms: u64) -> Records {
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
