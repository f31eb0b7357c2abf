//! Whole histories of a simulated memory, as it was and with one lie in it.

#[path = "../examples/million/memory.rs"]
mod memory;

use areo_check::{Event, EventKind, History, Kind, Property, Report, Verdict, judge};

fn report(events: &[Event<'static>]) -> Report {
    judge(&History::from_events(events.iter().cloned()).expect("a history"))
}

#[test]
fn what_the_memory_did_holds() {
    for (seed, keys) in (0..40).zip([1, 3, 30, 300].into_iter().cycle()) {
        let report = report(&memory::simulate(seed, 1_000, keys));
        assert_eq!(report.verdict, Verdict::Holds, "seed {seed}: {report}");
        for property in [
            Property::Linearizable,
            Property::VersionOrder,
            Property::Coverable,
        ] {
            assert_eq!(report.property(property).verdict, Verdict::Holds);
        }
    }
}

/// The places of the events that pass, one of which is then falsified.
fn places(events: &[Event<'static>], pass: impl Fn(&Event<'static>) -> bool) -> Vec<usize> {
    (0..events.len())
        .filter(|&place| pass(&events[place]))
        .collect()
}

#[test]
fn a_read_of_something_old_is_caught() {
    for seed in 0..40 {
        let mut events = memory::simulate(seed, 1_000, 2);
        let reads = places(&events, |e| {
            e.kind == Kind::Read && e.event == EventKind::Ok && e.value.is_some()
        });
        let (old, new) = (reads[seed as usize], reads[reads.len() - 1 - seed as usize]);
        (events[new].key, events[new].value) = (events[old].key.clone(), events[old].value.clone());
        events[new].version = events[old].version;
        let (client, op) = (events[new].client.clone(), events[new].op);
        let invoked = places(&events, |e| e.client == client && e.op == op)[0];
        events[invoked].key = events[new].key.clone();
        let report = report(&events);
        for property in [Property::Linearizable, Property::VersionOrder] {
            let [violation] = report.property(property).violations.as_slice() else {
                panic!("seed {seed}: {report}");
            };
            assert!(violation.operations.len() <= 6, "seed {seed}: {report}");
            let is_shown = violation
                .operations
                .iter()
                .any(|shown| shown.op == op && shown.client == client.0);
            assert!(is_shown, "seed {seed}: {report}");
        }
    }
}

#[test]
fn a_lost_write_is_caught() {
    for seed in 0..40 {
        let mut events = memory::simulate(seed, 1_000, 2);
        // It says that it failed, but a read returned its value.
        let reads = places(&events, |e| {
            e.kind == Kind::Read && e.event == EventKind::Ok && e.value.is_some()
        });
        let read = events[reads[reads.len() / 2]].clone();
        let write = places(&events, |e| e.kind != Kind::Read && e.value == read.value)[0];
        let (client, op) = (events[write].client.clone(), events[write].op);
        let ended = places(&events, |e| e.client == client && e.op == op)[1];
        events[ended].event = EventKind::Fail;
        events[ended].version = None;
        let report = report(&events);
        let [violation] = report
            .property(Property::Linearizable)
            .violations
            .as_slice()
        else {
            panic!("seed {seed}: {report}");
        };
        assert!(
            violation.what.contains("its write failed"),
            "seed {seed}: {report}"
        );
        assert_eq!(violation.operations.len(), 2);
    }
}

#[test]
fn a_coverable_write_of_something_old_is_caught() {
    for seed in 0..40 {
        let mut events = memory::simulate(seed, 1_000, 2);
        let writes = places(&events, |e| {
            e.kind == Kind::CvrWrite && e.event == EventKind::Invoke && e.key.0 == "key-0"
        });
        let ended = |place: usize| {
            let Event { client, op, .. } = &events[place];
            let events = places(&events, |e| e.client == *client && e.op == *op);
            events[1]
        };
        let succeeded: Vec<usize> = writes
            .into_iter()
            .filter(|&place| events[ended(place)].event == EventKind::Ok)
            .collect();
        let (old, new) = (succeeded[0], succeeded[succeeded.len() - 1]);
        events[new].based_on = events[old].based_on;
        let report = report(&events);
        let [violation] = report.property(Property::Coverable).violations.as_slice() else {
            panic!("seed {seed}: {report}");
        };
        assert!(
            violation.what.contains("consolidation"),
            "seed {seed}: {report}"
        );
    }
}
