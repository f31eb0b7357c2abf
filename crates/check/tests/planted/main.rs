//! Planted violations: every rule of every judge is shown a history that breaks it, beside one that does not.
//!
//! The cases are the pages beside this file: `holds` or `violated PROPERTY by LINES: WORDS`, then a history as a table, one
//! operation per line:
//! `client start..end kind [value] [@version] [<based_on] [k=key] [file=name] [next=key] [seq=0:a!,1:b] [fail|unknown]`
//! where `-` is absence and `!` marks a final configuration. Lines of the table count from 1.

use areo_check::{
    Configuration, Event, EventKind, History, Kind, Property, PropertyReport, Report, Verdict,
    judge,
};

/// The events of one line of a table.
fn events_of(number: u64, line: &str) -> Vec<Event<'_>> {
    let mut words = line.split_whitespace();
    let mut word = || words.next().expect("client, times, kind");
    let (client, times, kind) = (word(), word(), word());
    let (start, end) = times.split_once("..").expect("start..end");
    let kind: Kind = serde_json::from_value(kind.into()).expect("a kind");
    let mut invoked = Event::new(
        start.parse().expect("a time"),
        client,
        number,
        EventKind::Invoke,
        kind,
        "d",
        "k",
    );
    let mut outcome = EventKind::Ok;
    let (mut value, mut version, mut sequence) = (None, None, None);
    for word in words {
        if let Some(text) = word.strip_prefix('@') {
            version = Some(text.parse().expect("a version"));
        } else if let Some(text) = word.strip_prefix('<') {
            invoked.based_on = Some(text.parse().expect("a version"));
        } else if let Some((name, text)) = word.split_once('=') {
            match name {
                "k" => invoked.key = text.into(),
                "file" => invoked.file = Some(text.into()),
                "next" => invoked.next = Some(text.into()),
                "seq" => sequence = Some(text.split(',').map(configuration).collect()),
                _ => panic!("{word}"),
            }
        } else {
            match word {
                "fail" => outcome = EventKind::Fail,
                "unknown" => outcome = EventKind::Unknown,
                "-" => {}
                _ => value = Some(word.into()),
            }
        }
    }
    let mut ended = Event {
        t: end.parse().expect("a time"),
        event: outcome,
        version,
        sequence,
        ..invoked.clone()
    };
    match (kind, outcome) {
        // What a read or a refused write found.
        (Kind::Read | Kind::RegularRead, _) => ended.value = value,
        (Kind::CvrWrite | Kind::ConditionalWrite, EventKind::Fail) => {
            invoked.value = Some(format!("refused-{number}").into());
            ended.value = value;
        }
        (Kind::Reconfig, _) => {
            invoked.value = Some("proposed".into());
            ended.value = value;
        }
        _ => {
            invoked.value.clone_from(&value);
            ended.value = value;
        }
    }
    vec![invoked, ended]
}

fn configuration(text: &str) -> Configuration<'_> {
    let (index, name) = text.split_once(':').expect("index:name");
    Configuration {
        index: index.parse().expect("an index"),
        configuration: name.trim_end_matches('!').into(),
        r#final: name.ends_with('!'),
    }
}

fn report(table: &str) -> Report {
    let events = (1_u64..).zip(table.lines());
    let events = events.flat_map(|(number, line)| events_of(number, line));
    judge(&History::from_events(events).expect("a history"))
}

/// Judges every case of a page; `cases`: the expected number of them.
fn judged(page: &str, cases: usize) {
    let (mut begin, mut expected, mut table) = (String::new(), None, String::new());
    let mut found = 0;
    for line in page.lines().chain(["# the end"]) {
        if let Some(operation) = line.strip_prefix("    ") {
            table.push_str(operation);
            table.push('\n');
            continue;
        }
        if line.is_empty() {
            continue;
        }
        match expected.take() {
            Some(expected) => {
                is_judged(expected, &format!("{begin}{table}"));
                found += 1;
            }
            None => begin.push_str(&table),
        }
        table.clear();
        expected = Some(line).filter(|line| *line == "holds" || line.starts_with("violated "));
    }
    assert_eq!(found, cases);
}

/// Everything holds; or this property is violated, the words are in the sentence, and exactly these lines show it.
fn is_judged(expected: &str, table: &str) {
    let report = report(table);
    let Some(violated) = expected.strip_prefix("violated ") else {
        assert_eq!(report.verdict, Verdict::Holds, "{table}{report}");
        return;
    };
    let (violated, words) = violated.split_once(": ").unwrap_or((violated, ""));
    let (property, lines) = violated.split_once(" by ").expect("PROPERTY by LINES");
    let named = |judged: &&PropertyReport| format!("{:?}", judged.property) == property;
    let judged = report.properties.iter().find(named).expect("a property");
    assert_eq!(
        judged.verdict,
        Verdict::Violated,
        "{expected}\n{table}{report}"
    );
    let [violation] = judged.violations.as_slice() else {
        panic!("one violation is planted: {expected}\n{table}{report}");
    };
    assert!(violation.what.contains(words), "{expected}\n{report}");
    let mut shown: Vec<u64> = violation.operations.iter().map(|shown| shown.op).collect();
    shown.sort_unstable();
    let shown: Vec<String> = shown.iter().map(u64::to_string).collect();
    assert_eq!(shown.join(", "), lines, "{expected}\n{table}{report}");
}

#[test]
fn registers() {
    judged(include_str!("register.md"), 30);
}

#[test]
fn regular_reads() {
    judged(include_str!("regular.md"), 10);
}

#[test]
fn coverable_writes() {
    judged(include_str!("coverable.md"), 12);
}

#[test]
fn conditional_writes() {
    judged(include_str!("winner.md"), 16);
}

#[test]
fn files_of_blocks() {
    judged(include_str!("fragmented.md"), 13);
}

#[test]
fn configurations_of_a_domain() {
    judged(include_str!("configurations.md"), 10);
}

#[test]
fn values_written_twice_are_not_judged_if_they_are_many() {
    let many: Vec<String> = (0..80)
        .map(|i| format!("a {}..{} write x", i * 2, i * 2 + 1))
        .collect();
    let report = report(&many.join("\n"));
    assert_eq!(report.verdict, Verdict::Unjudged);
    assert_eq!(report.property(Property::Linearizable).unjudged, 1);
    let sentence = "a value was written twice, by operations 1 and 2";
    assert!(report.to_string().contains(sentence), "{report}");
}
