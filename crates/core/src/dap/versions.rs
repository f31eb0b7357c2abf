//! The versions of one object at one server in one configuration (2.2), and the answers that follow from it. Which versions
//! are taken in and which go is decided by the server halves in [`super::abd`] and [`super::ec`].

use crate::element::{Form, Handle};
use crate::message::{HeldVersions, Want};
use crate::tag::Tag;

mod completion;
mod marks;
mod stored;

pub use completion::Completion;
pub use marks::{Fence, Marks};
pub use stored::StoredVersion;

/// All stored versions of an object, and the marks that remain of the others.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Versions {
    /// Ascending by tag; the largest is never evicted, nor trimmed.
    stored: Vec<StoredVersion>,
    /// The largest tag whose element was evicted or refused.
    floor: Tag,
    /// The largest tag known to be at a quorum.
    stable: Tag,
    /// The largest version whose record is damaged: the object abstains until that or a larger one is put
    /// (`[X-11 damage-abstains]`).
    damaged: Option<DamagedVersion>,
    /// Few objects have one.
    fence: Option<Box<Fence>>,
    /// Only where servers gossip.
    completion: Option<Box<Completion>>,
    /// The record that holds floor, stable and fence, if they need one.
    marks: Option<MarksRecord>,
    /// The object waits for its quiet time.
    pub queued: bool,
    /// The second in which its newest version was taken in, by this server's clock; 0 if it was there at the start.
    pub taken_in_s: u32,
}

/// The record beside the elements' own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct MarksRecord {
    record: Handle,
    /// True if floor, stable tag and fence have not risen above those in the record.
    says_all: bool,
    /// It says a floor and nothing else.
    only_floor: bool,
}

/// A version that was lost. Its record is kept as long as the object abstains for its sake: a server that starts again
/// must find the damage again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct DamagedVersion {
    tag: Tag,
    record: Option<Handle>,
}

/// The way in which a version comes to a server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Arrival {
    /// A writer puts it for the first time.
    New,
    /// A reader found it at other servers, or a transfer brings it.
    WriteBack,
    /// It was decided to be kept.
    Kept,
}

/// The numbers of versions of one object that a server keeps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bounds {
    /// Versions below the confirmed one, beside the largest of them.
    pub delta: u16,
    /// New versions above the confirmed one.
    pub unconfirmed: usize,
}

/// The answer of a server to a version.
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
    /// Too many unconfirmed versions (`[X-3 unconfirmed-cap]`).
    Busy,
    /// There is a fence above it (`[X-3 unconfirmed-cap]`).
    Fenced,
    /// More tags than a reply can list.
    Full,
}

impl Versions {
    /// The versions held, ascending.
    pub fn stored(&self) -> &[StoredVersion] {
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
    /// went for its sake finds the tombstone, which is newer (`[EC-11 acceptance-test]` judges it like any other version).
    pub fn superseding(&self) -> Tag {
        let tombstone = self.stored.iter().rfind(|stored| stored.deleted);
        tombstone.map_or(self.stable, |stored| stored.tag.max(self.stable))
    }

    /// The version for whose sake the object abstains.
    pub fn damaged(&self) -> Option<Tag> {
        self.damaged.map(|damaged| damaged.tag)
    }

    /// The version of which the element was lost, where its tag is known: it is listed without an element, and what is below it
    /// is spoken of as ever (`[X-40 named-loss]`).
    pub fn lost(&self) -> Option<Tag> {
        self.damaged().filter(|tag| *tag != Tag::LARGEST)
    }

    /// The version of this tag, trimmed or not.
    pub fn find(&self, tag: Tag) -> Option<&StoredVersion> {
        self.stored.iter().find(|stored| stored.tag == tag)
    }

    /// The version of this tag, if its element is here.
    pub fn with_element(&self, tag: Tag) -> Option<&StoredVersion> {
        self.find(tag).filter(|stored| stored.form != Form::Trimmed)
    }

    /// The largest version held.
    pub fn largest(&self) -> Option<&StoredVersion> {
        self.stored.last()
    }

    /// Takes a version in. One that is as large as the damaged one repairs the object: returned is then the damaged
    /// record, which is no longer needed.
    #[must_use = "the damaged record is to be let go"]
    pub fn insert(&mut self, version: StoredVersion) -> Option<Handle> {
        let place = self
            .stored
            .partition_point(|stored| stored.tag < version.tag);
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
        let around = place.saturating_sub(1)..(place + 2).min(self.stored.len());
        assert!(
            self.stored[around].is_sorted_by(|a, b| a.tag < b.tag),
            "versions ascend, and each is held once"
        );
        repaired.and_then(|lost| lost.record)
    }

    /// Takes the version of this tag out, and remembers nothing of it.
    pub fn take(&mut self, tag: Tag) -> Option<StoredVersion> {
        let place = self.stored.iter().position(|stored| stored.tag == tag)?;
        Some(self.stored.remove(place))
    }

    /// Versions up to this tag are taken in only if they are confirmed or decided to be kept.
    pub fn fence(&self) -> Tag {
        self.fence.as_ref().map_or(Tag::INITIAL, |fence| fence.upto)
    }

    /// Floor, confirmed tag and fence.
    pub fn marks(&self) -> Marks {
        Marks {
            floor: self.floor,
            stable: self.stable,
            complete: self.complete(),
            fence: self.fence.as_deref().cloned(),
        }
    }

    /// Versions above the confirmed one.
    pub fn unconfirmed(&self) -> usize {
        let is_unconfirmed = |stored: &&StoredVersion| stored.tag > self.stable;
        self.stored.iter().filter(is_unconfirmed).count()
    }

    /// Raises the confirmed tag. Returns whether it rose.
    pub fn confirm(&mut self, tag: Tag) -> bool {
        let rises = tag > self.stable;
        if rises {
            self.stable = tag;
            // It holds back only what is above the confirmed version.
            self.fence.take_if(|fence| fence.upto <= tag);
            self.marks_fall_behind();
        }
        rises
    }

    /// Raises the fence, which lets `spared` through unless the one before held it back: of such a version it may have been
    /// decided that it is dropped. What was spared before is held back from now on, also if the fence stays where it is. Returns
    /// whether anything changed.
    pub fn raise_fence(&mut self, upto: Tag, spared: Tag) -> bool {
        if upto <= self.stable {
            return false;
        }
        let may_pass = spared > self.fence() || spared == self.spared();
        let spared = if may_pass { spared } else { Tag::INITIAL };
        let changes = upto > self.fence() || spared != self.spared();
        if changes {
            self.turn_fence(self.fence().max(upto), spared);
        }
        changes
    }

    fn spared(&self) -> Tag {
        self.fence
            .as_ref()
            .map_or(Tag::INITIAL, |fence| fence.spared)
    }

    /// True if the fence holds this version back if it comes as a put.
    pub fn fences_off(&self, tag: Tag) -> bool {
        tag > self.stable && tag <= self.fence() && tag != self.spared()
    }

    /// The fence, or the versions behind it, have changed.
    fn turn_fence(&mut self, upto: Tag, spared: Tag) {
        assert!(upto >= self.fence(), "a fence never goes back");
        assert!(upto > self.stable, "it holds back what is not confirmed");
        let stored = self.stored.iter().map(|stored| stored.tag);
        let held = stored.take_while(|tag| *tag <= upto).collect();
        let turn = self.fence.as_ref().map_or(0, |fence| fence.turn) + 1;
        let fence = Fence {
            upto,
            turn,
            spared,
            held,
        };
        self.fence = Some(Box::new(fence));
        self.marks_fall_behind();
    }

    /// Takes a version out that was decided never to be at a quorum, and lets no put that is late bring it back. No floor
    /// remembers it: readers need not reckon with it any more. Returns its record.
    #[must_use = "the record is to be freed"]
    pub fn drop_version(&mut self, tag: Tag) -> Option<Handle> {
        assert!(tag > self.stable, "what is confirmed stays");
        let place = self.stored.iter().position(|stored| stored.tag == tag);
        let dropped = place.map(|place| self.stored.remove(place));
        if dropped.is_some() || tag > self.fence() {
            let spared = Some(self.spared()).filter(|spared| *spared != tag);
            self.turn_fence(self.fence().max(tag), spared.unwrap_or_default());
            assert!(self.is_dropped(tag), "no put that is late brings it back");
        }
        dropped.map(|dropped| dropped.handle)
    }

    /// A version behind the fence was taken in, because it was decided to be kept. Returns whether the fence says so only now.
    pub fn keep_behind_fence(&mut self, tag: Tag) -> bool {
        let turns = self.is_dropped(tag);
        if turns {
            self.turn_fence(self.fence(), self.spared());
            assert!(!self.is_dropped(tag), "a record says that it is here");
        }
        turns
    }

    /// After recovery: removes versions that had been dropped and came back with old records.
    pub fn drop_again(&mut self) -> Vec<Handle> {
        let stored = self.stored.iter().map(|stored| stored.tag);
        let dropped: Vec<Tag> = stored.filter(|tag| self.is_dropped(*tag)).collect();
        let dropped = self.stored.extract_if(.., |it| dropped.contains(&it.tag));
        dropped.map(|stored| stored.handle).collect()
    }

    /// True if a version is behind the fence and not here, as one that was dropped.
    pub fn is_dropped(&self, tag: Tag) -> bool {
        self.fence.as_ref().is_some_and(|fence| {
            let is_behind = self.stable < tag && tag <= fence.upto;
            is_behind && fence.held.binary_search(&tag).is_err()
        })
    }

    /// Raises the floor to `tag`, if it is below.
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

    /// True if a record beside the elements' own says floor and stable as they are.
    pub fn is_marked(&self) -> bool {
        self.marks.is_some_and(|marks| marks.says_all)
    }

    /// Makes this record the one with floor and stable tag. Returns the record that had them before.
    #[must_use = "the record is to be let go"]
    pub fn mark(&mut self, record: Handle) -> Option<Handle> {
        let before = self.marks.replace(MarksRecord {
            record,
            says_all: true,
            only_floor: self.marks().only_floor(),
        });
        before.map(|marks| marks.record)
    }

    /// Returns the record of the marks if it has only the floor, which an element's record has now. A record with other
    /// marks stays: without it an older record of a fence that is confirmed by now could come back, and no record would
    /// show that the fence holds no version back.
    #[must_use = "the record is to be freed"]
    pub fn unmark(&mut self) -> Option<Handle> {
        let marks = self.marks.take_if(|marks| marks.only_floor);
        marks.map(|marks| marks.record)
    }

    /// A record that says these was found, the latest of the object or not. Returns one that is to go once another says
    /// everything: of two, one that says everything stays.
    pub fn recover_marks(&mut self, marks: &Marks, record: Handle) -> Option<Handle> {
        self.raise_floor(marks.floor);
        self.confirm(marks.stable);
        self.complete_upto(marks.complete);
        let place = |fence: &Fence| (fence.upto, fence.turn);
        let ours = self.fence.as_deref().map(place);
        if marks.fence.as_ref().map(place) > ours {
            self.fence = marks.fence.clone().map(Box::new);
            self.marks_fall_behind();
        }
        if self.is_marked() {
            return Some(record);
        }
        let before = self.marks.replace(MarksRecord {
            record,
            says_all: *marks == self.marks(),
            only_floor: marks.only_floor(),
        });
        before.map(|marks| marks.record)
    }

    /// Removes the versions for which `goes` holds (never the largest), raises the floor over them and returns them.
    pub fn evict(
        &mut self,
        mut goes: impl FnMut(usize, &StoredVersion) -> bool,
    ) -> Vec<StoredVersion> {
        let before = self.largest().map(|it| it.tag);
        let last = self.stored.len().saturating_sub(1);
        if last == 0 {
            return Vec::new();
        }
        let mut place = 0;
        let evicted: Vec<StoredVersion> = self
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
        let after = self.largest().map(|it| it.tag);
        assert_eq!(after, before, "the largest version stays");
        evicted
    }

    /// All but the `kept` largest elements go; their tags stay, each under a record of its own. Returns what went.
    pub fn trim_elements(
        &mut self,
        kept: usize,
        mut draw: impl FnMut() -> Handle,
    ) -> Vec<StoredVersion> {
        let elements = self.stored.iter_mut().rev();
        let elements = elements.filter(|stored| stored.form != Form::Trimmed);
        let goes = |stored: &mut StoredVersion| {
            let tag_alone = StoredVersion {
                form: Form::Trimmed,
                bytes: 0,
                handle: draw(),
                ..stored.clone()
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
        // An object abstains because of one version; a smaller one that was lost is remembered like any other.
        let smaller = self.damaged.replace(DamagedVersion { tag, record })?;
        self.raise_floor(smaller.tag);
        smaller.record
    }

    /// The object need not abstain any more: all members have agreed on what stays of it. Returns the version for whose sake it
    /// did, with its record.
    pub fn lift_damage(&mut self) -> Option<(Tag, Option<Handle>)> {
        let lost = self.damaged.take()?;
        assert!(!lost.tag.is_initial(), "a version was lost");
        Some((lost.tag, lost.record))
    }

    /// Every record of the object.
    pub fn into_handles(self) -> impl Iterator<Item = Handle> {
        let damaged = self.damaged.and_then(|damaged| damaged.record);
        let stored = self.stored.into_iter().map(|stored| stored.handle);
        let marks = self.marks.map(|marks| marks.record);
        stored.chain(marks).chain(damaged)
    }

    /// The answer to a query (2.6 QUERY-LIST, 1.1 QUERY): a snapshot, with the largest element if it is wanted and
    /// newer than the asker's.
    pub fn held(&self, want: Want, have: Tag) -> HeldVersions {
        self.held_with(self.largest(), want, have)
    }

    /// The held versions, with the element of this one.
    pub fn held_with(&self, newest: Option<&StoredVersion>, want: Want, have: Tag) -> HeldVersions {
        let newest = newest.filter(|newest| newest.tag > have);
        let carried = |newest: &StoredVersion| Some((newest.tag, newest.carried(want)?));
        let element = newest.and_then(carried);
        HeldVersions {
            stored: self
                .stored
                .iter()
                .map(|stored| (stored.tag, stored.form))
                .collect(),
            floor: self.floor,
            stable: self.stable,
            fence: self.fence(),
            complete: self.complete(),
            seen: self.seen(),
            element,
        }
    }
}

#[cfg(test)]
mod tests;
