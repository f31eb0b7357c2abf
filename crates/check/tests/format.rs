//! The format: what is read, what is refused and how that is said, what is written, what is printed.

use areo_check::{
    Configuration, Event, EventKind, Format, History, Kind, Outcome, Property, Report, Verdict,
    check_file, judge,
};
use proptest::prelude::*;
use std::io::Write;

fn line(event: &str, rest: &str) -> String {
    format!(r#"{{"t":5,"client":"a","op":1,"event":"{event}","domain":"d","key":"k",{rest}}}"#)
}

fn error(lines: &[String]) -> String {
    History::read(lines.join("\n").as_bytes())
        .expect_err("a line is wrong")
        .to_string()
}

#[test]
#[allow(clippy::too_many_lines, reason = "a table")]
fn every_wrong_line_is_named_with_what_is_wrong() {
    let read = line("invoke", r#""kind":"read""#);
    let write = line("invoke", r#""kind":"write","value":"x""#);
    let cases: Vec<(Vec<String>, &str)> = vec![
        (
            vec![read.clone(), "{".into()],
            "line 2: not an event: EOF while parsing an object, column 1",
        ),
        (vec!["[]".into()], "line 1: not an event: "),
        (
            vec![String::new(), " ".into(), "{}".into()],
            "line 3: not an event: missing field `t`",
        ),
        (
            vec![line("invoke", r#""kind":"cas""#)],
            "line 1: not an event: unknown variant `cas`",
        ),
        (
            vec![line("done", r#""kind":"read""#)],
            "line 1: not an event: unknown variant `done`",
        ),
        (
            vec![read.replace('5', "-5")],
            "line 1: not an event: invalid value: integer `-5`",
        ),
        (
            vec![line("invoke", r#""kind":"read","version":"x""#)],
            "line 1: not an event: 'x' is not a version",
        ),
        (
            vec![read.clone(), read.clone()],
            "line 2: this client has already invoked",
        ),
        (
            vec![line("ok", r#""kind":"read""#)],
            "line 1: the operation ends but no earlier line invokes it",
        ),
        (
            vec![read.clone(), line("ok", r#""kind":"write""#)],
            "line 2: the kind, domain or key is not",
        ),
        (
            vec![
                read.clone(),
                line("ok", r#""kind":"read""#).replace("\"k\"", "\"l\""),
            ],
            "line 2: the kind, domain or",
        ),
        (
            vec![
                read.clone(),
                line("ok", r#""kind":"read""#).replace('5', "4"),
            ],
            "line 2: the operation ends before",
        ),
        (
            vec![line("invoke", r#""kind":"read","value":"x""#)],
            "line 1: the invocation of a read carries a value",
        ),
        (
            vec![line("invoke", r#""kind":"write""#)],
            "line 1: the invocation of a write needs a value",
        ),
        (
            vec![line("invoke", r#""kind":"conditional_write""#)],
            "line 1: the invocation of a conditional_write needs a value",
        ),
        (
            vec![
                line("invoke", r#""kind":"cvr_write","value":"x""#),
                line("ok", r#""kind":"cvr_write""#),
            ],
            "line 2: a cvr_write that succeeds needs a version",
        ),
        (
            vec![write, line("ok", r#""kind":"write","value":"y""#)],
            "line 2: a write succeeds with a value that",
        ),
    ];
    for (lines, expected) in cases {
        let error = error(&lines);
        assert!(
            error.starts_with(expected),
            "{error}\ninstead of {expected}"
        );
    }
    let ended = line("ok", r#""kind":"read""#);
    assert_eq!(
        error(&[read, ended.clone(), ended]),
        "line 3: the operation has already ended"
    );
    let invalid = History::read(&b"\xff\n"[..]).expect_err("no text");
    assert_eq!(invalid.line, 1);
}

#[test]
fn unknown_fields_integers_and_missing_ends_are_fine() {
    let lines = r#"
        {"t":2,"client":7,"op":1,"event":"ok","kind":"delete","domain":"d","key":null,"trace":{"a":[1]}}
        {"t":2,"client":"7","op":2,"event":"invoke","kind":"write","domain":"d","key":"k","value":12,"version":null}
    "#;
    let invoke =
        r#"{"t":1,"client":"7","op":1,"event":"invoke","kind":"delete","domain":"d","key":""}"#;
    let history = History::read(format!("{invoke}{lines}").as_bytes()).unwrap();
    assert_eq!(history.events(), 3);
    let [delete, write] = history.operations() else {
        panic!()
    };
    assert_eq!(
        (delete.outcome, write.outcome),
        (Outcome::Ok, Outcome::Unknown)
    );
    assert_eq!(
        (delete.client, history.text(write.client)),
        (write.client, "7")
    );
    assert_eq!(history.text(write.input.unwrap()), "12");
}

#[test]
fn recordings_of_several_clients_can_be_joined() {
    let event = |t, client, event, kind, value: Option<&'static str>| Event {
        value: value.map(Into::into),
        ..Event::new(t, client, 1, event, kind, "d", "k")
    };
    let writer = [
        event(10, "w", EventKind::Invoke, Kind::Write, Some("x")),
        event(20, "w", EventKind::Ok, Kind::Write, None),
    ];
    let reader = |t, value| {
        [
            event(t, "r", EventKind::Invoke, Kind::Read, None),
            event(t + 1, "r", EventKind::Ok, Kind::Read, value),
        ]
    };
    let verdict = |reader: [Event<'static>; 2]| {
        judge(&History::from_events(writer.iter().cloned().chain(reader)).unwrap()).verdict
    };
    assert_eq!(verdict(reader(5, None)), Verdict::Holds);
    assert_eq!(verdict(reader(5, Some("x"))), Verdict::Violated);
    assert_eq!(verdict(reader(12, Some("x"))), Verdict::Holds);
    assert_eq!(verdict(reader(25, None)), Verdict::Violated);
}

#[test]
fn events_of_one_instant_happen_in_the_order_of_lines() {
    let event = |client, event, kind, value: Option<&'static str>| Event {
        value: value.map(Into::into),
        ..Event::new(0, client, 1, event, kind, "d", "k")
    };
    let [invoke, ok] = [(EventKind::Invoke, Some("x")), (EventKind::Ok, None)]
        .map(|(what, value)| event("w", what, Kind::Write, value));
    let [start, end] =
        [EventKind::Invoke, EventKind::Ok].map(|what| event("r", what, Kind::Read, None));
    let verdict = |events: [&Event<'static>; 4]| {
        judge(&History::from_events(events.into_iter().cloned()).unwrap()).verdict
    };
    assert_eq!(verdict([&invoke, &start, &ok, &end]), Verdict::Holds);
    assert_eq!(verdict([&invoke, &ok, &start, &end]), Verdict::Violated);
}

fn events() -> impl Strategy<Value = Event<'static>> {
    let text = || prop::option::of("\\PC{0,8}");
    let version = || prop::option::of("[1-9a-f][0-9a-f]{0,8}-[1-9a-f][0-9a-f]{0,24}");
    let kind = prop::sample::select(vec![
        Kind::Read,
        Kind::RegularRead,
        Kind::Write,
        Kind::CvrWrite,
        Kind::ConditionalWrite,
        Kind::Delete,
        Kind::Reconfig,
    ]);
    let event = prop::sample::select(vec![
        EventKind::Invoke,
        EventKind::Ok,
        EventKind::Fail,
        EventKind::Unknown,
    ]);
    let names = ("\\PC{0,8}", "\\PC{0,8}", "\\PC{0,8}");
    let extras = (
        text(),
        text(),
        prop::option::of((any::<u64>(), "\\PC{0,8}", any::<bool>())),
    );
    (
        any::<(u64, u64)>(),
        names,
        event,
        kind,
        (text(), version(), version()),
        extras,
    )
        .prop_map(
            |(
                (t, op),
                (client, domain, key),
                event,
                kind,
                (value, version, based_on),
                (file, next, known),
            )| Event {
                value: value.map(Into::into),
                version: version.map(|text| text.parse().expect("a version")),
                based_on: based_on.map(|text| text.parse().expect("a version")),
                file: file.map(Into::into),
                next: next.map(Into::into),
                sequence: known.map(|(index, name, r#final)| {
                    vec![Configuration {
                        index,
                        configuration: name.into(),
                        r#final,
                    }]
                }),
                ..Event::new(t, client, op, event, kind, domain, key)
            },
        )
}

proptest! {
    #[test]
    fn what_is_written_is_read(event in events()) {
        let mut line = Vec::new();
        event.write(&mut line).unwrap();
        prop_assert_eq!(line.split(|&byte| byte == b'\n').count(), 2);
        prop_assert_eq!(serde_json::from_slice::<Event<'_>>(&line).unwrap(), event);
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(history) = History::read(bytes.as_slice()) {
            judge(&history);
        }
    }

    #[test]
    fn no_events_make_it_panic(mut events in prop::collection::vec(events(), 0..40), small in any::<[u8; 40]>()) {
        // Few names and times, so that operations begin, end, and meet.
        for (event, byte) in events.iter_mut().zip(small) {
            event.client = "c".into();
            event.domain = "d".into();
            event.key = "k".into();
            event.op = u64::from(byte % 8);
            event.t %= 50;
            if event.event == EventKind::Invoke && matches!(event.kind, Kind::Read | Kind::Delete) {
                event.value = None;
            }
        }
        let mut kept: Vec<Event<'static>> = Vec::new();
        for event in events {
            kept.push(event);
            if History::from_events(kept.iter().cloned()).is_err() {
                kept.pop();
            }
        }
        let report = judge(&History::from_events(kept).unwrap());
        prop_assert!(!report.to_string().is_empty());
    }
}

const INVERSION: &str = r#"{"t":0,"client":"a","op":1,"event":"invoke","kind":"write","domain":"d","key":"k","value":"x"}
{"t":1000,"client":"a","op":1,"event":"ok","kind":"write","domain":"d","key":"k","version":"1-a"}
{"t":1000,"client":"a","op":2,"event":"invoke","kind":"write","domain":"d","key":"k","value":"y"}
{"t":1100,"client":"b","op":1,"event":"invoke","kind":"read","domain":"d","key":"k"}
{"t":1200,"client":"b","op":1,"event":"ok","kind":"read","domain":"d","key":"k","value":"y","version":"2-a"}
{"t":1300,"client":"c","op":1,"event":"invoke","kind":"read","domain":"d","key":"k"}
{"t":1400,"client":"c","op":1,"event":"ok","kind":"read","domain":"d","key":"k","value":"x","version":"1-a"}
"#;

const PRINTED: &str = "\
4 operations (7 events) of 3 clients on 1 objects

  read                      2 ok         0 fail         0 unknown
  write                     1 ok         0 fail         1 unknown

  linearizable      VIOLATED (judged: 1, violated: 1, not judged: 0)
  version order     VIOLATED (judged: 1, violated: 1, not judged: 0)
  regular           nothing to judge
  coverable         nothing to judge
  one winner        nothing to judge
  fragmented        nothing to judge
  configurations    nothing to judge

Violation of linearizable, d/k:
  a value came and went while another one had to be there
       0 .. 1000 ns  a#1  write  x  version 1-a
    1000 ..    ? ns  a#2  write  y  (unknown)
    1100 .. 1200 ns  b#1  read   y  version 2-a
    1300 .. 1400 ns  c#1  read   x  version 1-a

Violation of version order, d/k:
  an operation returned an older version than one that had ended before
    1100 .. 1200 ns  b#1  read  y  version 2-a
    1300 .. 1400 ns  c#1  read  x  version 1-a
";

#[test]
fn the_report_for_people() {
    let report = judge(&History::read(INVERSION.as_bytes()).unwrap());
    assert_eq!(report.to_string(), PRINTED);
}

#[test]
fn the_command_reads_files_and_says_how_it_went() {
    let folder = std::env::temp_dir().join(format!("areo-check-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("history.jsonl");
    let run = |text: &str, format| {
        std::fs::File::create(&path)
            .unwrap()
            .write_all(text.as_bytes())
            .unwrap();
        check_file(&path, format)
    };
    let good = run(
        INVERSION
            .split_inclusive('\n')
            .take(5)
            .collect::<String>()
            .as_str(),
        Format::Text,
    );
    assert_eq!((good.exit_code, good.error.as_str()), (0, ""));
    let bad = run(INVERSION, Format::Text);
    assert_eq!(
        (bad.exit_code, bad.output.as_str(), bad.error.as_str()),
        (1, PRINTED, "")
    );
    let json = run(INVERSION, Format::Json);
    assert_eq!((json.exit_code, json.output.lines().count()), (1, 1));
    let value: serde_json::Value = serde_json::from_str(&json.output).unwrap();
    assert_eq!(value["verdict"], "violated");
    assert_eq!(
        value["properties"][0]["violations"][0]["operations"][1]["outcome"],
        "unknown"
    );
    assert_eq!(
        value["properties"][1]["violations"][0]["operations"][0]["version"],
        "2-a"
    );
    let broken = run("{", Format::Text);
    assert_eq!((broken.exit_code, broken.output.as_str()), (1, ""));
    assert!(
        broken.error.contains("history.jsonl: line 1: "),
        "{}",
        broken.error
    );
    let empty = run("", Format::Text);
    assert_eq!(empty.exit_code, 0);
    std::fs::remove_dir_all(&folder).unwrap();
    assert_eq!(check_file(&path, Format::Text).exit_code, 2);
}

#[test]
fn many_violations_are_counted_and_the_first_are_shown() {
    let keys: Vec<String> = (0..100).map(|key| format!("key-{key}")).collect();
    let events = (1..).zip(&keys).flat_map(|(op, key)| {
        let read = |event, value: Option<&'static str>| Event {
            value: value.map(Into::into),
            ..Event::new(op, "c", op, event, Kind::Read, "d", key.as_str())
        };
        [
            read(EventKind::Invoke, None),
            read(EventKind::Ok, Some("x")),
        ]
    });
    let report = judge(&History::from_events(events).unwrap());
    let linearizable = report.property(Property::Linearizable);
    assert_eq!((linearizable.judged, linearizable.violated), (100, 100));
    assert_eq!(linearizable.violations.len(), Report::SHOWN_MAX);
}
