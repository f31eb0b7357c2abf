//! Tests of evicted, damaged, fenced and dropped versions of one object.

use super::*;
use crate::tag::Writer;

fn tag(number: u64) -> Tag {
    Tag {
        number,
        writer: Writer::default(),
    }
}

fn version(number: u64) -> StoredVersion {
    let handle = Handle(number as u32);
    StoredVersion {
        tag: tag(number),
        form: Form::Copy,
        deleted: false,
        length: 1,
        bytes: 1,
        handle,
        etag: None,
        written_at_ms: 0,
    }
}

#[test]
fn evicting_raises_the_floor_and_spares_the_largest() {
    let mut versions = Versions::default();
    for number in [2, 1, 3] {
        assert_eq!(versions.insert(version(number)), None);
    }
    let evicted = versions.evict(|_, _| true);
    assert_eq!(
        evicted
            .iter()
            .map(|stored| stored.tag.number)
            .collect::<Vec<_>>(),
        [1, 2]
    );
    assert_eq!(
        (versions.floor(), versions.largest().unwrap().tag),
        (tag(2), tag(3))
    );
}

/// Records of fences come back in any order, old ones among them; the one that reaches furthest is true, and of those the
/// last.
#[test]
fn a_fence_comes_back_as_it_was_last() {
    let mut versions = Versions::default();
    for number in 1..=4 {
        assert_eq!(versions.insert(version(number)), None);
    }
    let mut records = Vec::new();
    assert!(versions.raise_fence(tag(3), Tag::INITIAL));
    records.push(versions.marks());
    assert_eq!(versions.drop_version(tag(2)), Some(Handle(2)));
    records.push(versions.marks());
    // The fence ends with the confirmation, and the next one begins to count anew.
    assert!(versions.confirm(tag(3)));
    assert_eq!(versions.fence(), Tag::INITIAL);
    assert!(!versions.raise_fence(tag(3), tag(4)) && versions.raise_fence(tag(5), tag(6)));
    assert!(versions.fences_off(tag(5)));

    records.push(versions.marks());
    for first in 0..3 {
        let mut again = Versions::default();
        for number in 1..=4 {
            assert_eq!(again.insert(version(number)), None);
        }
        for place in 0..3 {
            let marks = &records[(first + place) % 3];
            let _ = again.recover_marks(marks, Handle(9));
        }
        assert_eq!(again.marks(), versions.marks());
    }
    let mut again = Versions::default();
    for number in 1..=4 {
        assert_eq!(again.insert(version(number)), None);
    }
    for marks in [&records[1], &records[0]] {
        let _ = again.recover_marks(marks, Handle(9));
    }
    assert!(again.is_dropped(tag(2)) && !again.is_dropped(tag(1)));
    assert_eq!(again.drop_again(), [Handle(2)]);
    // One that was decided to be kept is here from now on.
    assert_eq!(again.insert(version(2)), None);
    assert!(again.keep_behind_fence(tag(2)) && !again.keep_behind_fence(tag(2)));
    assert_eq!(again.drop_again(), []);
}

/// The next client that raises the fence drops what this one is about to put, if too few members have it by then: so the
/// same step holds it back, wherever the fence stands.
/// The record that says that a spared version came went when the version was confirmed and an element's record said the
/// floor. The record of the fence from before came back at the next start, and the version was dropped.
#[test]
fn a_confirmed_fence_is_remembered_while_its_older_record_may_come_back() {
    let mut versions = Versions::default();
    assert_eq!(versions.insert(version(1)), None);
    assert!(versions.raise_fence(tag(2), tag(2)));
    let fence = versions.marks();
    assert_eq!(versions.mark(Handle(10)), None);
    assert_eq!(versions.insert(version(2)), None);
    assert!(versions.keep_behind_fence(tag(2)));
    let spared = versions.marks();
    assert_eq!(versions.mark(Handle(11)), Some(Handle(10)));
    assert!(versions.confirm(tag(2)));
    versions.raise_floor(tag(1));
    assert_eq!(versions.unmark(), None, "it says what no element's does");
    for order in [[&fence, &spared], [&spared, &fence]] {
        let mut recovered = Versions::default();
        assert_eq!(recovered.insert(version(2)), None);
        for (handle, marks) in order.into_iter().enumerate() {
            // Which of the two records stays does not matter here.
            let _ = recovered.recover_marks(marks, Handle(handle as u32));
        }
        assert!(recovered.drop_again().is_empty(), "it was never dropped");
    }
}

#[test]
fn one_version_is_spared_until_the_next_fence() {
    let mut versions = Versions::default();
    assert!(versions.raise_fence(tag(3), tag(3)));
    assert!(versions.fences_off(tag(2)) && !versions.fences_off(tag(3)));
    assert!(
        !versions.raise_fence(tag(3), tag(3)),
        "the same client again"
    );
    assert!(versions.raise_fence(tag(3), Tag::INITIAL));
    assert!(versions.fences_off(tag(3)));
    // What a fence has held back no later one lets through.
    assert!(!versions.raise_fence(tag(3), tag(3)) && versions.fences_off(tag(3)));
    assert!(versions.raise_fence(tag(4), tag(3)) && versions.fences_off(tag(3)));
    assert!(versions.raise_fence(tag(5), tag(5)) && !versions.fences_off(tag(5)));
    assert!(versions.raise_fence(tag(6), tag(6)) && versions.fences_off(tag(5)));
}

#[test]
fn damage_means_abstain_until_repaired() {
    let mut versions = Versions::default();
    assert_eq!(versions.insert(version(1)), None);
    assert_eq!(versions.insert(version(2)), None);
    // An older one: gone as if it had been evicted.
    assert_eq!(versions.damage(tag(1)), Some(Handle(1)));
    assert_eq!((versions.damaged(), versions.floor()), (None, tag(1)));
    // The largest: the object cannot speak, although an older one may be there.
    assert_eq!(
        versions.insert(StoredVersion {
            tag: tag(3),
            ..version(3)
        }),
        None
    );
    assert_eq!(versions.damage(tag(3)), None);
    assert_eq!(versions.damaged(), Some(tag(3)));
    assert_eq!(versions.insert(version(1)), None);
    assert_eq!(
        versions.damaged(),
        Some(tag(3)),
        "an older version repairs nothing"
    );
    let repaired = versions.insert(version(4));
    assert_eq!(repaired, Some(Handle(3)), "its record was kept until now");
    assert_eq!(
        (versions.damaged(), versions.floor()),
        (None, tag(3)),
        "a newer one does"
    );
}

#[test]
fn every_lost_version_is_remembered_whatever_the_order_of_discovery() {
    for order in [[2, 3], [3, 2]] {
        let mut versions = Versions::default();
        for number in 1..=3 {
            assert_eq!(versions.insert(version(number)), None);
        }
        let gone: Vec<Handle> = order
            .into_iter()
            .filter_map(|number| versions.damage(tag(number)))
            .collect();
        assert_eq!(gone, [Handle(2)], "the record of the largest stays");
        assert_eq!(versions.damaged(), Some(tag(3)));
        // This version again: the smaller one that was lost must not be forgotten by that.
        assert_eq!(versions.insert(version(3)), Some(Handle(3)));
        assert_eq!((versions.damaged(), versions.floor()), (None, tag(2)));
    }
    // Damage above the damage.
    let mut versions = Versions::default();
    assert_eq!(
        (versions.damage(tag(2)), versions.damage(tag(3))),
        (None, None)
    );
    assert_eq!(
        (versions.damaged(), versions.floor()),
        (Some(tag(3)), tag(2))
    );
}
