//! Operations as a history that `areo-check` judges.
//!
//! S3 names a version by an ETag, which has no order. Values are unique, so that a value stands for its version. A conditional write gets
//! the version after that of its base: `(number of the base + 1, its own place)`. Two winners of one base then have versions on one base, which is what the
//! judge looks for. In a part of a history a conditional write whose base is not among the operations counts as one without a condition and without a version. A write without a condition beside conditional ones is never concurrent with another write; it comes after everything that began before.

use super::operation::{Action, Condition, Ending, Operation, Reading};
use areo_check::{Event, EventKind, Kind, Version};
use std::collections::{HashMap, HashSet};

/// The domain of all events.
const DOMAIN: &str = "s3";

/// Versions of values, by key and value.
#[derive(Default)]
pub(super) struct Versions<'a> {
    of_value: HashMap<(&'a str, &'a str), Version>,
    /// The largest number of each key that is written by conditional writes.
    largest: HashMap<&'a str, u64>,
}

impl<'a> Versions<'a> {
    /// Versions of all values that operations wrote or may have written. Operations are in the order in which they were sent.
    pub(super) fn of(operations: &'a [Operation]) -> Versions<'a> {
        let mut versions = Versions::default();
        let conditional = operations.iter().filter(|one| one.is_conditional());
        for one in conditional {
            versions.largest.insert(&one.key, 0);
        }
        for (place, one) in operations.iter().enumerate() {
            let Some(value) = one.written() else { continue };
            let Some(&largest) = versions.largest.get(one.key.as_str()) else {
                continue;
            };
            let Action::Put { condition, .. } = &one.action else {
                continue;
            };
            let number = match condition {
                Condition::None => largest + 1,
                Condition::Absent => 1,
                Condition::Match(base) => versions.base(&one.key, base).number + 1,
            };
            let version = version(number, place);
            versions.of_value.insert((&one.key, value), version);
            versions.largest.insert(&one.key, largest.max(number));
        }
        versions
    }

    /// The version of a value; of an ETag that no write has, one that does not exist.
    fn base(&self, key: &str, base: &str) -> Version {
        let found = self.of_value.get(&(key, base)).copied();
        found.unwrap_or(Version {
            number: 0,
            client: u64::MAX,
            counter: 0,
        })
    }

    fn knows(&self, key: &str, value: &str) -> bool {
        self.of_value.contains_key(&(key, value))
    }

    fn written(&self, place: usize, one: &Operation) -> Option<Version> {
        match &one.action {
            Action::Put { value, .. }
            | Action::Read {
                observed: Some(value),
                ..
            } => {
                let place = (one.key.as_str(), value.as_str());
                self.of_value.get(&place).copied()
            }
            Action::Delete {
                condition: Condition::Match(base),
            } => Some(version(self.base(&one.key, base).number + 1, place)),
            Action::Delete { .. } | Action::Read { .. } => None,
        }
    }

    fn based_on(&self, one: &Operation) -> Option<Version> {
        one.base().map(|base| self.base(&one.key, base))
    }
}

fn version(number: u64, place: usize) -> Version {
    Version {
        number,
        client: place as u64 + 1,
        counter: 0,
    }
}

/// The events of some of the operations, by their places: invocations and ends, in the order of time.
pub(super) fn events(
    operations: &[Operation],
    places: &[usize],
    versions: &Versions<'_>,
) -> Vec<Event<'static>> {
    let written = places.iter().map(|&place| &operations[place]);
    let written = written.filter_map(|one| Some((one.key.as_str(), one.written()?)));
    let written: HashSet<(&str, &str)> = written.collect();
    // An ETag that no operation of the whole history wrote stays a condition.
    let lacks_base = |one: &Operation| {
        one.base().is_some_and(|base| {
            versions.knows(&one.key, base) && !written.contains(&(one.key.as_str(), base))
        })
    };
    let weak = places.iter().map(|&place| &operations[place]);
    let weak = weak.filter(|one| lacks_base(one));
    let weak = weak.filter_map(|one| Some((one.key.as_str(), one.written()?)));
    let weak: HashSet<(&str, &str)> = weak.collect();
    let mut events = Vec::with_capacity(places.len() * 2);
    for &place in places {
        let one = &operations[place];
        let value = one.written().or(one.observed());
        let is_weak = value.is_some_and(|value| weak.contains(&(one.key.as_str(), value)));
        // The place of a write among others comes from its base.
        let version = versions.written(place, one).filter(|_| !is_weak);
        let known = Known {
            version,
            base: versions.based_on(one),
        };
        events.extend(
            both(place, one, &known, lacks_base(one))
                .into_iter()
                .flatten(),
        );
    }
    events.sort_by_key(|event| event.t);
    events
}

/// The versions of an operation: its own, and that which it is for.
struct Known {
    version: Option<Version>,
    base: Option<Version>,
}

/// The invocation and the end of an operation; none of a read without an answer.
fn both(
    place: usize,
    one: &Operation,
    known: &Known,
    lacks_base: bool,
) -> Option<[Event<'static>; 2]> {
    let (kind, value) = kind(one, lacks_base)?;
    let is_read = matches!(kind, Kind::Read | Kind::RegularRead);
    let ending = match one.ending {
        Ending::Done => EventKind::Ok,
        Ending::Unknown => EventKind::Unknown,
        _ => EventKind::Fail,
    };
    // A write that failed would count as a read of the version that it names. A deletion without a condition has no version.
    let has_version = ending != EventKind::Fail && kind != Kind::Delete;
    let version = known.version.filter(|_| has_version);
    let base = known.base.filter(|_| !lacks_base);
    let event = |t, event| {
        let client = format!("client-{}", one.client);
        let key = one.key.clone();
        Event::new(t, client, place as u64, event, kind, DOMAIN, key)
    };
    let value = value.map(Into::into);
    let invoked = Event {
        value: value.clone().filter(|_| !is_read),
        version: version.filter(|_| !is_read),
        based_on: base,
        ..event(one.invoked_ns, EventKind::Invoke)
    };
    let ended = Event {
        value: value.filter(|_| ending == EventKind::Ok),
        version,
        based_on: base,
        ..event(one.ended_ns, ending)
    };
    Some([invoked, ended])
}

/// The kind of an operation for the judge, and its value. `None`: a read without an answer.
fn kind(one: &Operation, lacks_base: bool) -> Option<(Kind, Option<String>)> {
    let is_plain = !one.is_conditional() || lacks_base;
    match &one.action {
        Action::Put { value, .. } => {
            let kind = match is_plain {
                true => Kind::Write,
                false => Kind::ConditionalWrite,
            };
            Some((kind, Some(value.clone())))
        }
        Action::Delete { .. } if is_plain => Some((Kind::Delete, None)),
        Action::Delete { .. } => Some((Kind::ConditionalWrite, None)),
        Action::Read { .. } if one.ending != Ending::Done => None,
        Action::Read { by, observed } => {
            let kind = match by {
                // A listing need not agree with other listings about concurrent writes.
                Reading::List => Kind::RegularRead,
                Reading::Get | Reading::Head | Reading::Delete => Kind::Read,
            };
            Some((kind, observed.clone()))
        }
    }
}
