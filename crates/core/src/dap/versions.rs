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
    /// Ascending by tag; the largest is never evicted.
    stored: Vec<Stored>,
    /// The largest tag whose element was evicted or refused.
    floor: Tag,
    /// The largest tag known to be at a quorum.
    stable: Tag,
    /// The largest version whose record is damaged: the object abstains until that or a larger one is put (`[X-11]`).
    damaged: Option<Tag>,
    /// The record that holds floor and stable, if they need one.
    pub marks: Option<Handle>,
    /// The object waits for its quiet time.
    pub queued: bool,
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
    /// Too many unconfirmed versions (`[X-3]`).
    Busy,
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

    /// The version for whose sake the object abstains.
    pub fn damaged(&self) -> Option<Tag> {
        self.damaged
    }

    /// The version of this tag.
    pub fn find(&self, tag: Tag) -> Option<&Stored> {
        self.stored.iter().find(|stored| stored.tag == tag)
    }

    /// The largest version held.
    pub fn largest(&self) -> Option<&Stored> {
        self.stored.last()
    }

    /// Takes a version in. One that is as large as the damaged one repairs the object.
    pub fn insert(&mut self, version: Stored) {
        let place = self
            .stored
            .partition_point(|stored| stored.tag < version.tag);
        assert!(
            self.stored
                .get(place)
                .is_none_or(|next| next.tag != version.tag),
            "held once"
        );
        if self.damaged.is_some_and(|damaged| damaged <= version.tag) {
            // What was lost is remembered as evicted: it was held here.
            self.floor = self
                .damaged
                .take()
                .filter(|lost| *lost != version.tag)
                .unwrap_or_default()
                .max(self.floor);
        }
        self.stored.insert(place, version);
    }

    /// Raises the confirmed tag. Returns whether it rose.
    pub fn confirm(&mut self, tag: Tag) -> bool {
        let rises = tag > self.stable;
        self.stable = self.stable.max(tag);
        rises
    }

    /// Raises the floor.
    pub fn raise_floor(&mut self, tag: Tag) {
        self.floor = self.floor.max(tag);
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

    /// The record of this tag turned out to be damaged. If a larger version is intact the damaged one counts as evicted,
    /// otherwise the object abstains. Returns the version, if it was held.
    pub fn damage(&mut self, tag: Tag) -> Option<Stored> {
        let place = self.stored.iter().position(|stored| stored.tag == tag);
        let lost = place.map(|place| self.stored.remove(place));
        match self.largest() {
            Some(largest) if largest.tag > tag => self.raise_floor(tag),
            _ => self.damaged = self.damaged.max(Some(tag)),
        }
        lost
    }

    /// The answer to a query (2.6 QUERY-LIST, 1.1 QUERY): a snapshot, with the largest element if it is wanted and newer
    /// than what the asker has.
    pub fn held(&self, want: Want, have: Tag) -> Held {
        let newest = self.largest().filter(|newest| newest.tag > have);
        let element = newest.and_then(|newest| {
            let payload = match (want, newest.form) {
                (Want::Tags, _) | (Want::Fragment, Form::Copy) => return None,
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
            versions.insert(version(number));
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
        versions.insert(version(1));
        versions.insert(version(2));
        // An older one: gone as if it had been evicted.
        versions.damage(tag(1));
        assert_eq!((versions.damaged(), versions.floor()), (None, tag(1)));
        // The largest: the object cannot speak, although an older one may be there.
        versions.insert(Stored {
            tag: tag(3),
            ..version(3)
        });
        versions.damage(tag(3));
        assert_eq!(versions.damaged(), Some(tag(3)));
        versions.insert(version(1));
        assert_eq!(
            versions.damaged(),
            Some(tag(3)),
            "an older version repairs nothing"
        );
        versions.insert(version(4));
        assert_eq!(
            (versions.damaged(), versions.floor()),
            (None, tag(3)),
            "a newer one does"
        );
    }
}
