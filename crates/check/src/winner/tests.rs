//! The judge by versions against the general search, on random small histories, right and wrong ones.

use super::*;
use crate::history::History;
use crate::{Event, EventKind, Property, Verdict};
use proptest::prelude::*;

/// One operation, in the order in which they take effect.
#[derive(Debug, Clone, Copy)]
struct Plan {
    what: u8,
    /// The version that a conditional write is based on, counted back from the newest.
    back: usize,
    before: u64,
    after: u64,
    /// Its end is not known; a write may not have taken effect.
    unknown: bool,
    applied: bool,
    /// A conditional write of a version deletes it.
    deletes: bool,
}

fn plans() -> impl Strategy<Value = Vec<Plan>> {
    let plan = (
        0..10_u8,
        prop_oneof![3 => Just(0_usize), 1 => 1..4_usize],
        (0..400_u64, 0..400_u64),
        prop::bool::weighted(0.2),
        any::<bool>(),
    );
    let plan = plan.prop_map(|(what, back, (before, after), unknown, applied)| Plan {
        what,
        back,
        before,
        after,
        unknown,
        applied,
        deletes: before % 5 == 0,
    });
    prop::collection::vec(plan, 2..14)
}

/// Runs the plan on a compare-and-set register. `fault`: the conditional write of this place succeeds although its version is not there.
fn simulate(plans: &[Plan], fault: Option<usize>) -> Vec<Event<'static>> {
    // Version and value; the first one is that of an object never written.
    let mut versions: Vec<(Version, Option<String>)> = vec![(Version::INITIAL, None)];
    let mut events = Vec::new();
    for (place, plan) in plans.iter().enumerate() {
        let at = 1_000 + 100 * place as u64;
        let (newest, held) = versions.last().expect("the first one").clone();
        let (kind, based_on) = match plan.what {
            0..=1 => (Kind::Read, None),
            2 => (Kind::Write, None),
            3 => (Kind::Delete, None),
            _ => {
                let (base, value) =
                    &versions[versions.len() - 1 - plan.back.min(versions.len() - 1)];
                // Of an absent object no version is named.
                (Kind::ConditionalWrite, value.is_some().then_some(*base))
            }
        };
        let holds = kind != Kind::ConditionalWrite
            || fault == Some(place)
            || based_on.map_or(held.is_none(), |base| base == newest);
        let deletes = kind == Kind::Delete || plan.deletes && based_on.is_some();
        let written = (!deletes).then(|| format!("v{place}"));
        // Deletes of unknown outcome may explain more than there is to see.
        let unknown = plan.unknown && !deletes && kind != Kind::Read;
        let applies = kind != Kind::Read && holds && (!unknown || plan.applied);
        let version = Version::plain(1 + place as u64);
        let client = format!("c{place}");
        let event = |t, event| Event::new(t, "", place as u64 + 1, event, kind, "d", "k");
        let mut invoke = event(at - plan.before, EventKind::Invoke);
        invoke.client = client.clone().into();
        invoke.based_on = based_on;
        if kind != Kind::Read {
            invoke.value = written.clone().map(Into::into);
        }
        let kind_of_end = match (unknown, holds) {
            (true, _) => EventKind::Unknown,
            (false, true) => EventKind::Ok,
            (false, false) => EventKind::Fail,
        };
        let mut end = event(at + plan.after, kind_of_end);
        end.client = client.into();
        if kind == Kind::Read || kind_of_end == EventKind::Fail {
            (end.value, end.version) = (held.map(Into::into), Some(newest));
        } else if !unknown {
            end.version = Some(version);
        }
        if applies {
            versions.push((version, written));
        }
        events.extend([(at - plan.before, invoke), (at + plan.after, end)]);
    }
    events.sort_by_key(|(at, _)| *at);
    events.into_iter().map(|(_, event)| event).collect()
}

/// True if the versions, or the register, show a fault; and the opinion of the search.
fn opinions(events: Vec<Event<'static>>) -> (bool, Option<bool>) {
    let history = History::from_events(events).expect("a history");
    let places: Vec<u32> = (0..history.operations().len() as u32).collect();
    let view = View {
        history: &history,
        places: &places,
    };
    let Ok(versions) = Versions::learn(&view) else {
        return (true, None);
    };
    let by_versions = by_versions(&view, &versions).is_err();
    let by_order = crate::versions::judge(&view, &versions).is_err();
    let report = crate::judge(&history);
    let by_register = report.property(Property::Linearizable).verdict == Verdict::Violated;
    let register = linearizable::steps(&view, Some(&versions));
    let searched = super::search(&view, &versions, &register);
    (by_versions || by_order || by_register, searched)
}

proptest! {
    #[test]
    fn a_right_history_holds_by_both(plans in plans()) {
        let (wrong, searched) = opinions(simulate(&plans, None));
        prop_assert!(!wrong && searched != Some(false), "{wrong} {searched:?}");
    }

    #[test]
    fn what_the_search_refuses_the_versions_refuse(plans in plans(), fault in 0..14_usize) {
        let (wrong, searched) = opinions(simulate(&plans, Some(fault)));
        prop_assert!(wrong || searched != Some(false), "only the search saw it");
    }
}

/// The random histories have wrong ones among them, and the search refuses some.
#[test]
fn wrong_histories_are_drawn_and_refused() {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;
    let mut runner = TestRunner::deterministic();
    let mut refused = 0;
    for fault in (0..14).cycle().take(300) {
        let drawn = plans().new_tree(&mut runner).expect("a plan").current();
        refused += u32::from(opinions(simulate(&drawn, Some(fault))).1 == Some(false));
    }
    assert!(refused > 10, "{refused} of 300");
}
