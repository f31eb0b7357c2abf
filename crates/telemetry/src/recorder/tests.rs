use super::*;
use crate::record::Value;
use std::collections::BTreeMap;
use tracing::subscriber::NoSubscriber;
use tracing::{debug_span, field};

fn recorded(sampler: Sampler, keys: bool, work: impl FnOnce()) -> Vec<SpanRecord> {
    let recorder = Recorder::new(sampler, keys, Limits::default());
    let subscriber = recorder.subscriber(NoSubscriber::new());
    tracing::subscriber::with_default(subscriber, work);
    let mut records = recorder.ring().since(0);
    records.sort_by_key(|record| (record.start_ns, record.local_root));
    records
}

fn operation() {
    let whole = debug_span!("areo.read", key = "secret", tag = field::Empty);
    let _whole = whole.enter();
    whole.record("tag", "7-1");
    debug_span!("phase1", n = 5, dap = %"ec").in_scope(|| {});
}

#[test]
fn a_trace_is_a_tree_with_one_identity() {
    let records = recorded(Sampler::Always, false, operation);
    let [part, whole] = &records[..] else {
        panic!("two spans, not {records:?}");
    };
    let (part, whole) = match part.local_root {
        true => (whole, part),
        false => (part, whole),
    };
    assert_eq!((&*whole.name, &*part.name), ("areo.read", "phase1"));
    assert_eq!(part.trace, whole.trace);
    assert_eq!((part.parent, whole.parent), (Some(whole.span), None));
    assert!(part.start_ns >= whole.start_ns && part.end_ns() <= whole.end_ns());
    assert_eq!(
        whole.attributes,
        [("tag".into(), Value::Text("7-1".into()))].into()
    );
    let expected = [
        ("dap".into(), Value::Text("ec".into())),
        ("n".into(), Value::Number(5)),
    ];
    assert_eq!(part.attributes, expected.into());
}

#[test]
fn keys_are_recorded_only_for_those_who_ask() {
    let with = recorded(Sampler::Always, true, operation);
    let key = with.iter().find_map(|record| record.attributes.get(KEY));
    assert_eq!(key, Some(&Value::Text("secret".into())));
    let without = recorded(Sampler::Always, false, operation);
    assert!(!format!("{without:?}").contains("secret"));
}

#[test]
fn what_is_not_sampled_leaves_nothing() {
    assert_eq!(recorded(Sampler::Never, false, operation), []);
    assert_eq!(recorded(Sampler::Share(0.0), false, operation), []);
    assert_eq!(recorded(Sampler::Share(1.0), false, operation).len(), 2);
    let share = recorded(Sampler::Share(0.25), false, || {
        (0..4000).for_each(|_| operation());
    });
    // All of an operation or nothing; a share of a quarter is between an eighth and a half, or luck is worth a lottery.
    assert_eq!(share.len() % 2, 0);
    assert!((1000..4000).contains(&share.len()), "{}", share.len());
    let outside = recorded(Sampler::Always, false, || {
        debug_span!("phase1").in_scope(|| {});
    });
    assert_eq!(outside, [], "a part of nothing");
}

#[test]
fn what_begins_while_it_rests_leaves_nothing() {
    let recorder = Recorder::new(Sampler::Always, false, Limits::default());
    let subscriber = recorder.subscriber(NoSubscriber::new());
    tracing::subscriber::with_default(subscriber, || {
        let remembered = || recorder.ring().since(0).len();
        recorder.rest(true);
        operation();
        assert_eq!((recorder.rests(), remembered()), (true, 0));
        recorder.rest(false);
        operation();
        assert_eq!((recorder.rests(), remembered()), (false, 2));
        recorder.rest(true);
        operation();
        assert_eq!(remembered(), 2);
    });
}

#[test]
fn what_an_operation_consists_of_is_no_operation_of_its_own() {
    let nested = || {
        let whole = debug_span!("areo.file.read").entered();
        (0..8).for_each(|_| operation());
        assert_eq!(
            context_of(&whole).is_some(),
            context_of(&debug_span!("areo.stat")).is_some()
        );
    };
    let records = recorded(Sampler::Share(0.25), false, || {
        (0..400).for_each(|_| nested());
    });
    let roots = |record: &&SpanRecord| record.parent.is_none();
    let roots: Vec<&SpanRecord> = records.iter().filter(roots).collect();
    assert!((25..250).contains(&roots.len()), "{}", roots.len());
    assert!(roots.iter().all(|root| root.name == "areo.file.read"));
    // The root, eight operations of two spans, and the one that was only looked at.
    assert_eq!(records.len(), roots.len() * 18);
    let recorder = Recorder::new(Sampler::Share(0.0), false, Limits::default());
    let subscriber = recorder.subscriber(NoSubscriber::new());
    tracing::subscriber::with_default(subscriber, nested);
    assert_eq!(
        recorder.open_spans(),
        0,
        "what is not watched is let go, too"
    );
}

#[test]
fn a_server_joins_the_trace_of_whoever_asked() {
    let trace = 0xfeed_u128 << 64;
    let serve = || {
        let served = debug_span!("server.access", remote_trace = trace, remote_span = 9_u64);
        let _served = served.enter();
        debug_span!("store.sync").in_scope(|| {});
    };
    let records = recorded(Sampler::Never, false, serve);
    assert_eq!(records.len(), 2);
    assert!(records.iter().all(|record| record.trace == TraceId(trace)));
    let served = records.iter().find(|record| record.local_root).unwrap();
    assert_eq!(
        (&*served.name, served.parent),
        ("server.access", Some(SpanId(9)))
    );
    assert_eq!(served.attributes, BTreeMap::new());
}

#[test]
fn a_span_has_a_context_while_it_is_watched() {
    recorded(Sampler::Always, false, || {
        assert_eq!(context_of(&tracing::Span::current()), None);
        let whole = debug_span!("areo.write");
        let context = context_of(&whole).expect("it is watched");
        let part = whole.in_scope(|| debug_span!("phase1"));
        assert_eq!(
            context_of(&part).map(|part| part.trace),
            Some(context.trace)
        );
    });
    recorded(Sampler::Never, false, || {
        assert_eq!(context_of(&debug_span!("areo.write")), None);
    });
}

#[test]
fn a_span_ends_when_its_work_is_dropped() {
    let records = recorded(Sampler::Always, false, || {
        let whole = debug_span!("areo.write");
        let part = whole.in_scope(|| debug_span!("phase1"));
        drop(whole);
        drop(part);
    });
    assert_eq!(records.len(), 2);
}

#[test]
fn room_that_is_used_again_says_nothing_of_what_was_there() {
    let records = recorded(Sampler::Always, false, || {
        for i in 0..3_u64 {
            let whole = debug_span!("areo.write", tag = field::Empty, bytes = field::Empty);
            let copy = whole.clone();
            match i {
                0 => whole.record("tag", "7-1"),
                1 => whole.record("bytes", i),
                _ => &whole,
            };
            drop(whole);
            assert!(context_of(&copy).is_some(), "there is a handle left");
        }
    });
    let said = |record: &SpanRecord| record.attributes.clone();
    let expected = [
        [("tag".into(), Value::Text("7-1".into()))].into(),
        [("bytes".into(), Value::Number(1))].into(),
        BTreeMap::new(),
    ];
    assert_eq!(records.iter().map(said).collect::<Vec<_>>(), expected);
    assert!(records.iter().all(|record| record.parent.is_none()));
}

#[test]
fn spans_may_be_left_in_any_order() {
    let records = recorded(Sampler::Always, false, || {
        let (one, other) = (debug_span!("areo.read"), debug_span!("areo.write"));
        let in_one = one.clone().entered();
        let in_other = other.clone().entered();
        drop(in_one);
        debug_span!("phase1").in_scope(|| {});
        drop(in_other);
        assert!(tracing::Span::current().is_disabled(), "both were left");
    });
    let named = |name| records.iter().find(|record| record.name == name).unwrap();
    assert_eq!(named("phase1").parent, Some(named("areo.write").span));
}

#[test]
fn a_wide_number_is_an_identity() {
    let records = recorded(Sampler::Always, false, || {
        debug_span!("areo.read", domain = 0xfeed_u128, below = -1, k = 3_u64).in_scope(|| {});
    });
    let expected = [
        ("domain".into(), Value::Text(format!("{:032x}", 0xfeed))),
        ("below".into(), Value::Text("-1".into())),
        ("k".into(), Value::Number(3)),
    ];
    assert_eq!(records[0].attributes, expected.into());
}

#[test]
fn whoever_remembers_waits_for_what_is_ending() {
    let recorder = Recorder::new(Sampler::Always, false, Limits::default());
    let subscriber = recorder.subscriber(NoSubscriber::new());
    tracing::subscriber::with_default(subscriber, || {
        let whole = debug_span!("areo.write");
        recorder.settle(Duration::ZERO);
        assert_eq!(recorder.ring().since(0), [], "it is still going on");
        let ending = std::thread::spawn(move || drop(whole));
        recorder.settle(Duration::MAX);
        assert_eq!(recorder.ring().since(0).len(), 1);
        ending.join().unwrap();
    });
}
