//! The configuration judge on real histories: its verdict on a run, and on the same run with a lie in it.

#![allow(clippy::unwrap_used, reason = "a test")]

use areo_check::{History, Property, Report, Verdict, judge};
use areo_sim::{Options, replay};

fn judged(history: &str) -> Report {
    judge(&History::read(history.as_bytes()).unwrap())
}

/// Histories of runs with faults in which domains were reconfigured several times, and operations learned of it.
fn histories() -> Vec<String> {
    let options = Options {
        operations: 300,
        ..Options::default()
    };
    let run = |seed| replay(seed, &options);
    let moved = (0..40).map(run).filter(|run| run.reconfigurations > 3);
    let histories = moved.map(|run| run.history);
    let learned = histories.filter(|it| installed_and_known(it).is_some());
    let histories: Vec<String> = learned.take(5).collect();
    assert_eq!(histories.len(), 5);
    histories
}

/// The places of lines that contain all of this.
fn lines(history: &str, parts: &[&str]) -> Vec<usize> {
    let has = |line: &str| parts.iter().all(|part| line.contains(part));
    let all = history.lines().enumerate();
    all.filter(|(_, line)| has(line))
        .map(|(at, _)| at)
        .collect()
}

/// This history with one line put in another way.
fn with(history: &str, at: usize, lie: impl Fn(&str) -> String) -> String {
    let lines = history.lines().enumerate();
    let told = lines.map(|(place, line)| match place == at {
        true => {
            let told = lie(line);
            assert_ne!(told, line);
            told
        }
        false => line.to_owned(),
    });
    told.collect::<Vec<_>>().join("\n")
}

/// The part of a line between two texts.
fn between<'a>(line: &'a str, before: &str, after: &str) -> &'a str {
    let (_, rest) = line.split_once(before).unwrap();
    rest.split_once(after).unwrap().0
}

const INSTALLED: [&str; 2] = ["\"event\":\"ok\"", "\"kind\":\"reconfig\""];

/// A reconfiguration whose result some operation of the domain knew when it ended.
fn installed_and_known(history: &str) -> Option<usize> {
    let known = |at: &usize| {
        let line = history.lines().nth(*at).unwrap();
        let of = |field: &str| between(line, &format!("\"{field}\":\""), "\"");
        let domain = format!("\"domain\":\"{}\",\"key\":\"key-", of("domain"));
        let (index, name) = (of("version"), of("value"));
        let entry = format!("\"index\":{index},\"configuration\":\"{name}\"");
        !lines(history, &[&domain, &entry]).is_empty()
    };
    lines(history, &INSTALLED).into_iter().find(known)
}

#[test]
fn what_happened_holds_and_is_judged() {
    for history in histories() {
        let report = judged(&history);
        let configurations = report.property(Property::Configurations);
        assert_eq!(configurations.verdict, Verdict::Holds, "{report}");
        assert!(configurations.judged >= 2, "both domains");
        assert!(!lines(&history, &INSTALLED).is_empty());
    }
}

#[test]
fn a_history_that_was_tampered_with_does_not_hold() {
    for history in histories() {
        let violation = |told: &str| {
            let report = judged(told);
            let found = report.property(Property::Configurations);
            assert_eq!(found.verdict, Verdict::Violated, "{report}");
            found.violations[0].what.clone()
        };
        let at = installed_and_known(&history).expect("it was looked for");
        let line = history.lines().nth(at).unwrap();
        // Another configuration was decided than all others know.
        let decided = between(line, "\"value\":\"", "\"");
        let told = with(&history, at, |line| line.replacen(decided, "abd s9", 1));
        assert!(violation(&told).starts_with("uniqueness"));
        // It was decided where its client knew that another one is final.
        let after = between(line, "\"based_on\":\"", "\"");
        let index = format!("\"version\":\"{}\"", between(line, "\"version\":\"", "\""));
        let told = with(&history, at, |line| {
            line.replace(&index, &format!("\"version\":\"{after}\""))
        });
        let what = violation(&told);
        assert!(what.contains("not after") || what.starts_with("uniqueness"));
        // A client that came later knows only what was known at first.
        let domain = format!("\"domain\":\"{}\"", between(line, "\"domain\":\"", "\""));
        let parts = ["\"event\":\"ok\"", "\"sequence\":[", &domain];
        let knowing = lines(&history, &parts);
        let known = |at: usize| between(history.lines().nth(at).unwrap(), "\"sequence\":[", "]");
        let (first, last) = (knowing[0], knowing[knowing.len() - 1]);
        let told = with(&history, last, |line| {
            line.replace(known(last), known(first))
        });
        let what = violation(&told);
        assert!(
            what.starts_with("subsequence") || what.starts_with("progress"),
            "{what}"
        );
    }
}
