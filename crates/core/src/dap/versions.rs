//! What one server holds of one object in one configuration (2.2), and the answers that follow from it. Which versions
//! are taken in and which go is decided by the server halves in [`super::abd`] and [`super::ec`].

use crate::element::{Carried, Form, Handle};
use crate::limits;
use crate::message::{Held, Want};
use crate::tag::Tag;

/// One version held.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stored {
    /// The version.
    pub tag: Tag,
    /// The form of the element.
    pub form: Form,
    /// It is a tombstone.
    pub deleted: bool,
    /// Length of the whole value in bytes.
    pub length: u64,
    /// Length of the element in bytes.
    pub bytes: u64,
    /// Its record.
    pub handle: Handle,
}

/// All versions held of an object, and what is remembered of those that are not.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Versions {
    /// Ascending by tag; the largest is never evicted, nor trimmed.
    stored: Vec<Stored>,
    /// The largest tag whose element was evicted or refused.
    floor: Tag,
    /// The largest tag known to be at a quorum.
    stable: Tag,
    /// The largest version whose record is damaged: the object abstains until that or a larger one is put (`[X-11]`).
    damaged: Option<Damaged>,
    /// The record that holds floor and stable, if they need one.
    marks: Option<Marks>,
    /// The object waits for its quiet time.
    pub queued: bool,
    /// The second in which its newest version was taken in, by this server's clock; 0 if it was there at the start.
    pub taken_in_s: u32,
}

/// The record beside the elements' own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Marks {
    record: Handle,
    /// Floor and stable have not risen above what it says.
    says_all: bool,
}

/// A version that was lost. Its record is kept as long as the object abstains for its sake: a server that starts again
/// must find the damage again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Damaged {
    tag: Tag,
    record: Option<Handle>,
}

/// Whether a version is taken in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Admission {
    /// Store it, then trim.
    Store,
    /// It is held already, or superseded: acknowledge.
    Acknowledge,
    /// Trimming would evict it at once: remember it in the floor, then acknowledge.
    RaiseFloor,
    /// Trimming would take its element at once: store its tag alone.
    StoreTag,
    /// Too many unconfirmed versions (`[X-3]`).
    Busy,
    /// More tags than a reply can list.
    Full,
}

impl Versions {
    /// The versions held, ascending.
    pub fn stored(&self) -> &[Stored] {
        &self.stored
    }

    /// The largest tag whose element was evicted or refused.
    pub fn floor(&self) -> Tag {
        self.floor
    }

    /// The largest tag known to be at a quorum.
    pub fn stable(&self) -> Tag {
        self.stable
    }

    /// Versions below this one are not needed once the object is quiet: the largest known to be at a quorum, or a larger
    /// tombstone, wherever else that is. A tombstone is whole at each server that holds it, so that whoever misses here what
    /// went for its sake finds the tombstone, which is newer (`[EC-11]` judges it like any other version).
    pub fn superseding(&self) -> Tag {
        let tombstone = self.stored.iter().rfind(|stored| stored.deleted);
        tombstone.map_or(self.stable, |stored| stored.tag.max(self.stable))
    }

    /// The version for whose sake the object abstains.
    pub fn damaged(&self) -> Option<Tag> {
        self.damaged.map(|damaged| damaged.tag)
    }

    /// The version of this tag, be it trimmed.
    pub fn find(&self, tag: Tag) -> Option<&Stored> {
        self.stored.iter().find(|stored| stored.tag == tag)
    }

    /// The version of this tag, if its element is here.
    pub fn with_element(&self, tag: Tag) -> Option<&Stored> {
        self.find(tag).filter(|stored| stored.form != Form::Trimmed)
    }

    /// The largest version held.
    pub fn largest(&self) -> Option<&Stored> {
        self.stored.last()
    }

    /// Takes a version in. One that is as large as the damaged one repairs the object: returned is then the damaged
    /// record, which is no longer needed.
    #[must_use = "the damaged record is to be let go"]
    pub fn insert(&mut self, version: Stored) -> Option<Handle> {
        let place = self
            .stored
            .partition_point(|stored| stored.tag < version.tag);
        assert!(
            self.stored
                .get(place)
                .is_none_or(|next| next.tag != version.tag),
            "held once"
        );
        let repaired = self.damaged.take_if(|lost| lost.tag <= version.tag);
        if let Some(lost) = repaired.filter(|lost| lost.tag != version.tag) {
            // What was lost is remembered as evicted: it was held here.
            self.raise_floor(lost.tag);
        }
        if self.stored.is_empty() {
            // Most objects have one version.
            self.stored.reserve_exact(1);
        }
        self.stored.insert(place, version);
        repaired.and_then(|lost| lost.record)
    }

    /// Raises the confirmed tag. Returns whether it rose.
    pub fn confirm(&mut self, tag: Tag) -> bool {
        let rises = tag > self.stable;
        if rises {
            self.stable = tag;
            self.marks_fall_behind();
        }
        rises
    }

    /// Raises the floor.
    pub fn raise_floor(&mut self, tag: Tag) {
        if tag > self.floor {
            self.floor = tag;
            self.marks_fall_behind();
        }
    }

    fn marks_fall_behind(&mut self) {
        if let Some(marks) = &mut self.marks {
            marks.says_all = false;
        }
    }

    /// Whether a record beside the elements' own says floor and stable as they are.
    pub fn is_marked(&self) -> bool {
        self.marks.is_some_and(|marks| marks.says_all)
    }

    /// This record says floor and stable. Returns the one that did so before.
    #[must_use = "the record is to be let go"]
    pub fn mark(&mut self, record: Handle) -> Option<Handle> {
        let says_all = true;
        let before = self.marks.replace(Marks { record, says_all });
        before.map(|marks| marks.record)
    }

    /// An element's record says the floor. Returns the record that did so before.
    #[must_use = "the record is to be let go"]
    pub fn unmark(&mut self) -> Option<Handle> {
        self.marks.take().map(|marks| marks.record)
    }

    /// A record that says these was found, the latest of the object or not. Returns one that is to go once another says
    /// everything: of two, one that says everything stays.
    pub fn recover_marks(&mut self, floor: Tag, stable: Tag, record: Handle) -> Option<Handle> {
        self.raise_floor(floor);
        self.confirm(stable);
        if self.is_marked() {
            return Some(record);
        }
        let says_all = (floor, stable) == (self.floor, self.stable);
        let before = self.marks.replace(Marks { record, says_all });
        before.map(|marks| marks.record)
    }

    /// Removes the versions for which `goes` holds (never the largest), raises the floor over them and returns them.
    pub fn evict(&mut self, mut goes: impl FnMut(usize, &Stored) -> bool) -> Vec<Stored> {
        let last = self.stored.len().saturating_sub(1);
        let mut place = 0;
        let evicted: Vec<Stored> = self
            .stored
            .extract_if(.., |stored| {
                let evict = place < last && goes(last - place, stored);
                place += 1;
                evict
            })
            .collect();
        if let Some(largest) = evicted.last() {
            self.raise_floor(largest.tag);
        }
        evicted
    }

    /// All but the `kept` largest elements go; their tags stay, each under a record of its own. Returns what went.
    pub fn trim_elements(&mut self, kept: usize, mut draw: impl FnMut() -> Handle) -> Vec<Stored> {
        let elements = self.stored.iter_mut().rev();
        let elements = elements.filter(|stored| stored.form != Form::Trimmed);
        let goes = |stored: &mut Stored| {
            let tag_alone = Stored {
                form: Form::Trimmed,
                bytes: 0,
                handle: draw(),
                ..*stored
            };
            std::mem::replace(stored, tag_alone)
        };
        elements.skip(kept).map(goes).collect()
    }

    /// The record of this tag turned out to be damaged. If there is a larger version the damaged one counts as evicted,
    /// otherwise the object abstains. Returns the record that may go, once the floor is durable.
    #[must_use = "the record is to be let go"]
    pub fn damage(&mut self, tag: Tag) -> Option<Handle> {
        let place = self.stored.iter().position(|stored| stored.tag == tag);
        let record = place.map(|place| self.stored.remove(place).handle);
        let superseded = self.largest().is_some_and(|largest| largest.tag > tag);
        let known = self.damaged.filter(|known| known.tag >= tag);
        if superseded || known.is_some_and(|known| known.tag > tag) {
            self.raise_floor(tag);
            return record;
        }
        if known.is_some() {
            return record;
        }
        // An object abstains for the sake of one version; a smaller one that was lost is remembered like any other.
        let smaller = self.damaged.replace(Damaged { tag, record })?;
        self.raise_floor(smaller.tag);
        smaller.record
    }

    /// Every record of the object.
    pub fn into_handles(self) -> impl Iterator<Item = Handle> {
        let damaged = self.damaged.and_then(|damaged| damaged.record);
        let stored = self.stored.into_iter().map(|stored| stored.handle);
        let marks = self.marks.map(|marks| marks.record);
        stored.chain(marks).chain(damaged)
    }

    /// The answer to a query (2.6 QUERY-LIST, 1.1 QUERY): a snapshot, with the largest element if it is wanted and newer
    /// than what the asker has.
    pub fn held(&self, want: Want, have: Tag) -> Held {
        let newest = self.largest().filter(|newest| newest.tag > have);
        let newest = newest.filter(|newest| newest.form != Form::Trimmed);
        let element = newest.and_then(|newest| {
            let payload = match (want, newest.form) {
                (Want::Tags, _) => return None,
                (Want::Fragment, form) if form.is_whole() => return None,
                (Want::Metadata, _) => false,
                // A large one is fetched.
                (Want::Fragment | Want::Element, _) if newest.bytes > limits::INLINE_BYTES => {
                    return None;
                }
                (Want::Fragment | Want::Element, _) => true,
            };
            Some((
                newest.tag,
                Carried::Stored {
                    handle: newest.handle,
                    payload,
                },
            ))
        });
        Held {
            stored: self
                .stored
                .iter()
                .map(|stored| (stored.tag, stored.form))
                .collect(),
            floor: self.floor,
            stable: self.stable,
            element,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tag::Writer;

    fn tag(number: u64) -> Tag {
        Tag {
            number,
            writer: Writer::default(),
        }
    }

    fn version(number: u64) -> Stored {
        let handle = Handle(number as u32);
        Stored {
            tag: tag(number),
            form: Form::Copy,
            deleted: false,
            length: 1,
            bytes: 1,
            handle,
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
            versions.insert(Stored {
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
            // The same version again: the smaller one that was lost must not be forgotten by that.
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
}
