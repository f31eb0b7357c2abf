//! The published rule on lists that servers can have.

use super::*;
use crate::config::Dap;
use crate::config::testing::configuration;
use crate::tag::Writer;
use std::sync::Arc;

fn c() -> Arc<Configuration> {
    configuration(5, Dap::EcPublished { k: 3 })
}

fn tag(number: u64) -> Tag {
    Tag {
        number,
        writer: Writer::default(),
    }
}

fn form(index: u8) -> Form {
    Form::Fragment { n: 5, k: 3, index }
}

/// The list of the member at this position: numbers below 0 are tags without an element.
fn list(position: usize, numbers: &[i64]) -> HeldVersions {
    let listed = |number: &i64| match *number {
        1.. => (tag(number.unsigned_abs()), form(position as u8)),
        _ => (tag(number.unsigned_abs()), Form::Trimmed),
    };
    HeldVersions {
        stored: numbers.iter().map(listed).collect(),
        ..HeldVersions::default()
    }
}

fn decoded(lists: &[&[i64]]) -> Option<u64> {
    let held: Vec<Option<HeldVersions>> =
        (0..).zip(lists).map(|(i, it)| Some(list(i, it))).collect();
    judge(&c(), &held, Tag::INITIAL).map(|tag| tag.number)
}

fn judge(c: &Configuration, lists: &[Option<HeldVersions>], have: Tag) -> Option<Tag> {
    let lists: Vec<&HeldVersions> = lists.iter().flatten().collect();
    EcPublished::accepted(c, &lists, have, &PassedVersions::default())
}

#[test]
fn the_largest_in_k_lists_is_decoded_if_k_have_its_element() {
    assert_eq!(decoded(&[&[], &[], &[], &[]]), Some(0), "nobody wrote");
    assert_eq!(
        decoded(&[&[1], &[1], &[], &[]]),
        Some(0),
        "1 is not complete"
    );
    assert_eq!(decoded(&[&[1], &[1], &[1], &[]]), Some(1));
    assert_eq!(decoded(&[&[-1, 2], &[1], &[1], &[1]]), Some(1));
    // 1 is in three lists, and only two have its element.
    assert_eq!(decoded(&[&[-1, 2], &[1], &[1], &[]]), None);
    assert_eq!(decoded(&[&[-1, 2], &[1], &[1], &[], &[1]]), Some(1));
    // The lists of [EC-6 stale-trim]: without the tag that stays, the initial version would be returned.
    assert_eq!(decoded(&[&[1], &[1], &[-1, 2, 3], &[]]), None);
}

#[test]
fn a_larger_version_that_was_lost_by_damage_counts_as_listed() {
    let c = c();
    let damaged = Some(HeldVersions {
        floor: tag(2),
        ..list(0, &[1])
    });
    let lists = |second| {
        vec![
            damaged.clone(),
            Some(list(1, second)),
            Some(list(2, &[1, 2])),
            Some(list(3, &[1])),
        ]
    };
    assert_eq!(judge(&c, &lists(&[1]), Tag::INITIAL), Some(tag(1)));
    assert_eq!(judge(&c, &lists(&[1, 2]), Tag::INITIAL), None);
}

#[test]
fn whoever_has_a_version_is_told_of_larger_ones_only() {
    let c = c();
    let lists = |numbers: &[i64]| (0..4).map(|i| Some(list(i, numbers))).collect::<Vec<_>>();
    assert_eq!(judge(&c, &lists(&[]), tag(5)), Some(tag(5)));
    assert_eq!(judge(&c, &lists(&[5]), tag(5)), Some(tag(5)));
    assert_eq!(judge(&c, &lists(&[5, 6]), tag(5)), Some(tag(6)));
    assert_eq!(judge(&c, &lists(&[5, -6]), tag(5)), None);
}

fn admit(versions: &Versions, tag: Tag, delta: u16) -> Admission {
    let unconfirmed = usize::MAX;
    EcPublished::admit(versions, tag, Arrival::New, Bounds { delta, unconfirmed })
}

/// Versions of these numbers as [`EcPublished`] keeps them.
fn kept(delta: u16, numbers: &[u64]) -> (Vec<Admission>, Versions) {
    let (mut versions, mut handles) = (Versions::default(), 0);
    let mut put = |number: u64| {
        let mut draw = || {
            handles += 1;
            Handle(handles)
        };
        let admission = admit(&versions, tag(number), delta);
        let form = match admission {
            Admission::Store => form(0),
            Admission::StoreTag => Form::Trimmed,
            _ => return admission,
        };
        let stored = StoredVersion {
            tag: tag(number),
            form,
            deleted: false,
            length: 9,
            bytes: 3,
            handle: draw(),
            etag: None,
            written_at_ms: 0,
        };
        assert_eq!(versions.insert(stored), None);
        let gone = EcPublished::trim(&mut versions, delta, false, draw);
        assert!(gone.iter().all(|gone| gone.form != Form::Trimmed));
        admission
    };
    let said = numbers.iter().map(|number| put(*number)).collect();
    (said, versions)
}

#[test]
fn delta_and_one_elements_stay_and_every_tag() {
    use Admission::{Acknowledge, Store, StoreTag};
    let (said, versions) = kept(1, &[3, 5, 1, 4, 3, 2, 1]);
    let expected = [
        Store,
        Store,
        StoreTag,
        Store,
        Acknowledge,
        StoreTag,
        Acknowledge,
    ];
    assert_eq!(said, expected);
    let listed = versions.stored().iter();
    let listed: Vec<(u64, bool)> = listed
        .map(|stored| (stored.tag.number, stored.form != Form::Trimmed))
        .collect();
    let expected = [(1, false), (2, false), (3, false), (4, true), (5, true)];
    assert_eq!(listed, expected);
    assert_eq!(versions.floor(), Tag::INITIAL);
    let handles: std::collections::BTreeSet<Handle> = versions
        .stored()
        .iter()
        .map(|stored| stored.handle)
        .collect();
    assert_eq!(handles.len(), 5, "each has a record of its own");
}

#[test]
fn a_list_ends_where_no_reply_could_name_it() {
    let mut versions = Versions::default();
    for number in 1..=limits::LISTED_TAGS as u64 {
        let stored = StoredVersion {
            tag: tag(number),
            form: Form::Trimmed,
            deleted: false,
            length: 9,
            bytes: 0,
            handle: Handle(number as u32),
            etag: None,
            written_at_ms: 0,
        };
        assert_eq!(versions.insert(stored), None);
    }
    let next = tag(limits::LISTED_TAGS as u64 + 1);
    assert_eq!(admit(&versions, next, 0), Admission::Full);
    assert_eq!(admit(&versions, tag(7), 0), Admission::Acknowledge);
}
