//! Planted violations: every rule of every judge is shown a history that breaks it, beside one that does not.
//!
//! A history is written as a table, one operation per line:
//! `client start..end kind [value] [@version] [<based_on] [k=key] [file=name] [next=key] [seq=0:a!,1:b] [fail|unknown]`
//! where `-` is absence and `!` marks a final configuration.

mod configurations;
mod coverable;
mod fragmented;
mod register;
mod winner;

use areo_check::{
    Configuration, Event, EventKind, History, Kind, Property, Report, Verdict, judge,
};

/// The events of one line of a table.
fn events(number: u64, line: &str) -> Vec<Event<'_>> {
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
        (Kind::Read, _) => ended.value = value,
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
    let lines = table.lines().map(str::trim).filter(|line| !line.is_empty());
    let events = (1_u64..)
        .zip(lines)
        .flat_map(|(number, line)| events(number, line));
    judge(&History::from_events(events).expect("a history"))
}

/// Everything holds.
fn holds(table: &str) {
    let report = report(table);
    assert_eq!(report.verdict, Verdict::Holds, "{report}");
}

/// The property is violated, `what` is in the sentence, and exactly these lines of the table (from 1) show it.
fn violated(property: Property, what: &str, lines: &[u64], table: &str) {
    let report = report(table);
    assert_eq!(
        report.property(property).verdict,
        Verdict::Violated,
        "{report}"
    );
    let [violation] = report.property(property).violations.as_slice() else {
        panic!("one violation is planted: {report}");
    };
    assert!(violation.what.contains(what), "{report}");
    let mut shown: Vec<u64> = violation
        .operations
        .iter()
        .map(|operation| operation.op)
        .collect();
    shown.sort_unstable();
    assert_eq!(shown, lines, "{report}");
}
