//! Histories of files, as simulated clients saw them: to the judge, who knows nothing of the simulator, they hold, and a lie
//! in them is caught.

use areo_check::{History, Property, Report, Verdict, judge};
use areo_sim::{Options, run};

/// Histories in which files were edited.
fn histories() -> Vec<String> {
    let options = Options {
        seeds: 10,
        operations: 300,
        threads: 2,
        ..Options::default()
    };
    let mut histories = Vec::new();
    let report = run(&options, |outcome| histories.push(outcome.history.clone()));
    assert!(report.violations.is_empty(), "{:?}", report.violations);
    histories
}

fn judged(lines: &[&str]) -> Report {
    let lines = lines.join("\n");
    judge(&History::read(lines.as_bytes()).expect("a history"))
}

/// The block that follows, in a line of the history.
fn next(line: &str) -> Option<&str> {
    let (_, rest) = line.split_once(",\"next\":\"")?;
    rest.strip_suffix("\"}")
}

fn is_write(line: &str) -> bool {
    line.contains("\"event\":\"invoke\",\"kind\":\"cvr_write\"")
}

/// The violations that the judge finds after one lie in each history.
fn lies(histories: &[String], lie: impl Fn(&mut Vec<String>) -> bool) -> Vec<String> {
    let mut found = Vec::new();
    for history in histories {
        let mut lines: Vec<String> = history.lines().map(str::to_owned).collect();
        if !lie(&mut lines) {
            continue;
        }
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let report = judged(&lines);
        let violations = &report.property(Property::Fragmented).violations;
        assert!(!violations.is_empty(), "{report}");
        found.extend(violations.iter().map(|violation| violation.what.clone()));
    }
    assert!(!found.is_empty(), "nobody lied");
    found
}

#[test]
fn what_clients_saw_of_files_is_judged_and_a_lie_is_caught() {
    let histories = histories();
    for history in &histories {
        let lines: Vec<&str> = history.lines().collect();
        let report = judged(&lines);
        let files = report.property(Property::Fragmented);
        assert_eq!(files.verdict, Verdict::Holds, "{report}");
        assert_eq!(files.judged, 3, "a file of each domain");
    }
    // A write of a block in the middle says that nothing follows.
    let dropped = lies(&histories, |lines| {
        let is_later = |line: &&mut String| {
            is_write(line) && next(line).is_some() && !line.contains("\"based_on\":null")
        };
        let Some(line) = lines.iter_mut().rfind(is_later) else {
            return false;
        };
        let start = line.find(",\"next\":").expect("it has a next block");
        line.truncate(start);
        line.push('}');
        true
    });
    let is_dropped = |what: &String| what.contains("dropped block") || what.contains("one link");
    assert!(dropped.iter().all(is_dropped), "{dropped:?}");
    // A linked block was never created.
    let created = lies(&histories, |lines| {
        let Some(link) = lines
            .iter()
            .rfind(|line| is_write(line) && next(line).is_some())
        else {
            return false;
        };
        let key = format!("\"key\":\"{}\"", next(link).expect("it has a next block"));
        lines.retain(|line| !line.contains(&key));
        true
    });
    let is_missing = |what: &String| what.contains("created first");
    assert!(created.iter().all(is_missing), "{created:?}");
}
