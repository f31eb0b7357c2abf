//! Objects on their way: many small ones in one request, and of none what its new servers hold already
//! (`[X-17 adopted-elements]`).
//!
//! 1. A closed quorum of the source says which version of each object is to be moved; it gives its value, too, if some
//!    server of the target cannot have an element of it.
//! 2. The servers of the target adopt what they can.
//! 3. The others are sent their elements. Adopted and sent ones count alike: a quorum of them is a put.

use super::{Progress, Source, Stop, stop};
use crate::dap::many::{self, Put};
use crate::dap::{self, FoundVersion, PutError, Scope};
use crate::element::Value;
use crate::env::{Env, Work};
use crate::error::Unavailable;
use crate::gather::{self, Visit};
use crate::limits;
use crate::message::ListEntry;
use crate::object::{Kind, Name};
use crate::tag::Tag;
use crate::timing;

/// An object that is being moved.
pub(super) struct MovedObject<'a> {
    pub(super) name: &'a Name,
    pub(super) tag: Tag,
    /// `None` if it was not read, because it may not be needed.
    pub(super) value: Option<Value>,
    /// Members of the target that hold the version.
    pub(super) holders: Vec<bool>,
}

impl MovedObject<'_> {
    /// The number of members of the target that hold the version, or do not.
    fn holding(&self, holds: bool) -> u64 {
        self.holders.iter().filter(|it| **it == holds).count() as u64
    }

    fn put(&self) -> Put<'_> {
        let value = self.value.as_ref();
        Put {
            name: self.name,
            tag: self.tag,
            value: value.expect("a version that was put has a value"),
            holders: &self.holders,
        }
    }
}

/// The progress that moving these entries makes. A value in blocks is one object, and its bytes count with its
/// blocks: the length of its manifest is the sum of their lengths.
fn told(kind: Kind, entries: &[ListEntry]) -> Progress {
    let (mut objects, mut bytes) = (0, 0);
    for entry in entries {
        let of_upload = entry.tag.writer.is_upload();
        objects += u64::from(!(kind == Kind::Block && of_upload));
        bytes += match kind == Kind::User && of_upload || entry.absent {
            true => 0,
            false => entry.length,
        };
    }
    Progress::Transferring { objects, bytes }
}

impl<E: Env> Source<'_, E> {
    pub(super) async fn objects(&self, kind: Kind, entries: &[ListEntry]) -> Result<(), Stop> {
        for group in parts(entries, limits::TRANSFER_OBJECTS, limits::TRANSFER_BYTES) {
            let batches = parts(group, limits::TRANSFER_BATCH, limits::INLINE_BYTES);
            let moves = batches.map(async |batch| {
                self.batch(kind, batch).await?;
                self.env.progressed();
                (self.progress)(told(kind, batch));
                Ok(())
            });
            let moved = gather::join(limits::TRANSFER_WINDOW, moves).await;
            moved.into_iter().collect::<Result<(), Stop>>()?;
        }
        Ok(())
    }

    /// Moves the largest version of each object that a closed quorum holds; never a withheld one (`[A-9 real-pairs-moved]`).
    async fn batch(&self, kind: Kind, entries: &[ListEntry]) -> Result<(), Stop> {
        assert!(entries.len() <= limits::TRANSFER_BATCH, "parts are bounded");
        let name = |entry: &ListEntry| Name::new(kind, &entry.key).expect("a server listed it");
        let names: Vec<Name> = entries.iter().map(name).collect();
        let (may, must) = self.prospects(&names, entries);
        let scope = if must { Scope::Whole } else { Scope::Version };
        let found = self.find(&names, scope).await?;
        let mut moved = Vec::new();
        for ((name, entry), found) in names.iter().zip(entries).zip(found) {
            match found {
                Ok(found) => moved.push(MovedObject {
                    name,
                    tag: found.tag,
                    value: found.value,
                    holders: vec![false; self.target.n()],
                }),
                Err(failed) => self.instead_of_lost(name, entry.tag, failed).await?,
            }
        }
        // What was never written is everywhere already.
        moved.retain(|it| !it.tag.is_initial());
        let to = Visit::new(self.target);
        if may && !moved.is_empty() {
            let versions: Vec<(&Name, Tag)> = moved.iter().map(|it| (it.name, it.tag)).collect();
            let adopted = many::adopt(self.env, &to, &versions).await;
            let adopted = adopted.map_err(|failed| stop(failed, &to))?;
            assert_eq!(adopted.len(), moved.len(), "each is spoken of");
            for (moved, holders) in moved.iter_mut().zip(adopted) {
                assert_eq!(holders.len(), self.target.n(), "by each member");
                moved.holders = holders;
            }
            let elements = moved.iter().map(|moved| moved.holding(true)).sum();
            self.env.count(Work::Adopted { elements });
        }
        let lacks = |moved: &MovedObject<'_>| moved.holders.contains(&false);
        let (lacking, mut there): (Vec<_>, Vec<_>) = moved.into_iter().partition(lacks);
        // What was adopted counts as put: it is finalized as well ([CAS-5 published-before-final]).
        let adopted: Vec<(&Name, Tag)> = there.iter().map(|it| (it.name, it.tag)).collect();
        let finalized = many::seal(self.env, &to, &adopted).await;
        finalized.map_err(|failed| stop(failed, &to))?;
        there.extend(self.send(&to, lacking).await?);
        if to.is_last() {
            for moved in there {
                dap::confirm(self.env, &to, moved.name, moved.tag);
            }
        }
        Ok(())
    }

    /// Takes note of the elements that are sent now.
    pub(super) fn count_sent(&self, moved: &[MovedObject<'_>]) {
        let (mut elements, mut bytes) = (0, 0);
        for moved in moved {
            let lacking = moved.holding(false);
            let content = moved.value.as_ref().map_or(0, Value::content_bytes);
            elements += lacking;
            bytes += lacking * dap::element_bytes(self.target, content);
        }
        self.env.count(Work::Moved { elements, bytes });
    }

    /// The first part: true if some server of the target may have an element of one of these objects. The second:
    /// true if some server cannot have one.
    fn prospects(&self, names: &[Name], entries: &[ListEntry]) -> (bool, bool) {
        let configurations = (&**self.c, &**self.target);
        let (mut may, mut must) = (false, false);
        for (name, entry) in names.iter().zip(entries) {
            for position in 0..self.target.n() {
                let kept = (entry.length, entry.deleted);
                let fits = dap::is_adoptable(configurations, name, position, kept);
                (may, must) = (may || fits, must || !fits);
            }
        }
        (may, must)
    }

    /// The version of each object that is to be moved: together, and where that fails, alone. Of one that is lost, why it cannot be read.
    async fn find(
        &self,
        names: &[Name],
        scope: Scope,
    ) -> Result<Vec<Result<FoundVersion, Unavailable>>, Stop> {
        let at = self.closed();
        let found = match names.len() {
            // A large one is not sent with the answer to a query.
            0 | 1 => names.iter().map(|_| None).collect(),
            _ => {
                let found = many::get_data(self.env, &at, names, scope).await;
                found.map_err(|failed| stop(failed, &at))?
            }
        };
        assert_eq!(found.len(), names.len(), "each was asked for");
        let alone = names.iter().zip(found).map(|(name, found)| async move {
            if let Some(found) = found {
                return Ok(Ok(found));
            }
            match self.get_data(name, scope).await {
                Ok(found) => Ok(Ok(found)),
                Err(Stop::Unavailable(failed)) if failed.is_lost() => Ok(Err(failed)),
                Err(stop) => Err(stop),
            }
        });
        let found = gather::join(limits::TRANSFER_WINDOW, alone).await;
        found.into_iter().collect()
    }

    /// Nothing is moved of an object that cannot be read here. `tag`: the largest version of it that members list, if it is not known which
    /// one was lost. One that was written over, removed, or left unreadable has a larger one in the target. That version is brought to a
    /// quorum there: its writer may have died with it at one member, after the sources had it, which are left then.
    async fn instead_of_lost(
        &self,
        name: &Name,
        tag: Tag,
        failed: Unavailable,
    ) -> Result<(), Stop> {
        assert!(failed.is_lost(), "otherwise it is asked for again");
        let tag = failed.lost_versions().first().map_or(tag, |lost| lost.tag);
        let to = Visit::new(self.target);
        let there = dap::get_data(self.env, &to, name, None, Scope::Whole).await;
        let there = there.map_err(|failed| stop(failed, &to))?;
        if there.tag <= tag {
            return self.lost.add(name, tag, failed);
        }
        if there.complete {
            return Ok(());
        }
        let put = Put {
            name,
            tag: there.tag,
            value: there.value.as_ref().expect("all of it was wanted"),
            holders: &there.holders,
        };
        match self.put(&to, put).await? {
            true => Ok(()),
            false => self.lost.add(name, tag, failed),
        }
    }

    pub(super) async fn get_data(&self, name: &Name, scope: Scope) -> Result<FoundVersion, Stop> {
        let at = self.closed();
        let found = dap::get_data(self.env, &at, name, None, scope).await;
        found.map_err(|failed| stop(failed, &at))
    }

    /// Brings each version to the servers of the target that do not hold it. Returns the objects whose version is at a
    /// quorum of the target then; the others are held back by a fence.
    async fn send<'a>(
        &self,
        to: &Visit,
        mut moved: Vec<MovedObject<'a>>,
    ) -> Result<Vec<MovedObject<'a>>, Stop> {
        self.read(&mut moved).await?;
        if moved.is_empty() {
            return Ok(moved);
        }
        self.count_sent(&moved);
        let puts: Vec<Put<'_>> = moved.iter().map(MovedObject::put).collect();
        let stored = many::put_data(self.env, to, &puts).await;
        let stored = stored.map_err(|failed| stop(failed, to))?;
        assert_eq!(stored.len(), puts.len(), "each was put");
        let alone = moved.iter().zip(stored).map(|(moved, stored)| async move {
            match stored {
                true => Ok(true),
                false => self.put_data(to, moved).await,
            }
        });
        let stored = gather::join(limits::TRANSFER_WINDOW, alone).await;
        let stored = stored.into_iter().collect::<Result<Vec<bool>, Stop>>()?;
        let mut stored = stored.into_iter();
        moved.retain(|_| stored.next().expect("one for each"));
        Ok(moved)
    }

    /// Reads the values that turned out to be needed.
    async fn read(&self, moved: &mut Vec<MovedObject<'_>>) -> Result<(), Stop> {
        let mut lost = Vec::new();
        let unread = |moved: &&MovedObject<'_>| moved.value.is_none();
        let names = moved.iter().filter(unread).map(|moved| moved.name.clone());
        let names: Vec<Name> = names.collect();
        let found = self.find(&names, Scope::Whole).await?;
        assert_eq!(found.len(), names.len(), "each was read");
        let unread = moved.iter_mut().filter(|moved| moved.value.is_none());
        for (moved, found) in unread.zip(found) {
            let found = match found {
                Ok(found) => found,
                Err(failed) => {
                    lost.push((moved.name, moved.tag, failed));
                    continue;
                }
            };
            if found.tag != moved.tag {
                // It was evicted, or is no longer the one to be moved: whoever adopted it did not adopt this one.
                moved.holders.fill(false);
            }
            (moved.tag, moved.value) = (found.tag, found.value);
        }
        moved.retain(|moved| !moved.tag.is_initial() && moved.value.is_some());
        for (name, tag, failed) in lost {
            self.instead_of_lost(name, tag, failed).await?;
        }
        Ok(())
    }

    /// Not a new version: it is taken in however many are there. False where members have a fence above it. Clients raise
    /// fences only in configurations that are final, so that another transfer has brought this version, or a larger one.
    pub(super) async fn put_data(&self, to: &Visit, moved: &MovedObject<'_>) -> Result<bool, Stop> {
        self.put(to, moved.put()).await
    }

    /// False: a fence holds the version back.
    async fn put(&self, to: &Visit, put: Put<'_>) -> Result<bool, Stop> {
        let Put {
            name,
            tag,
            value,
            holders,
        } = put;
        loop {
            match dap::put_data(self.env, to, name, tag, value, holders).await {
                Ok(()) => return Ok(true),
                Err(PutError::Unconfirmed) => self.env.sleep(timing::TRANSFER_PAUSE).await,
                Err(PutError::Fenced { .. }) => return Ok(false),
                // What comes after the target is conditional, and takes its state from the same sources.
                Err(PutError::Closed) => return Err(Stop::Overtaken),
                Err(PutError::Failed(failed)) => return Err(stop(failed, to)),
            }
        }
    }
}

/// Runs of entries whose values fit together; a larger value goes alone.
fn parts(
    entries: &[ListEntry],
    most: usize,
    most_bytes: u64,
) -> impl Iterator<Item = &[ListEntry]> {
    let mut rest = entries;
    std::iter::from_fn(move || {
        let mut bytes = 0_u64;
        let fits = |entry: &&ListEntry| {
            // The length of one without an element is not known.
            let length = if entry.absent { u64::MAX } else { entry.length };
            bytes = bytes.saturating_add(length);
            bytes <= most_bytes
        };
        let count = rest.iter().take_while(fits).count();
        let count = count.clamp(1, most).min(rest.len());
        let (part, others) = rest.split_at(count);
        rest = others;
        (!part.is_empty()).then_some(part)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(length: u64) -> ListEntry {
        ListEntry {
            key: "k".into(),
            tag: Tag::INITIAL,
            length,
            etag: None,
            written_at_ms: None,
            age_s: 0,
            deleted: false,
            damaged: false,
            absent: false,
        }
    }

    #[test]
    fn parts_are_bounded_and_leave_nothing_out() {
        let (most, large) = (10, 100);
        let entries: Vec<ListEntry> = [1, large, large - 1, 1, 5 * large, 0].map(entry).into();
        let lengths = |part: &[ListEntry]| part.iter().map(|e| e.length).collect::<Vec<_>>();
        let made: Vec<Vec<u64>> = parts(&entries, most, large).map(lengths).collect();
        let expected: [&[u64]; 5] = [&[1], &[large], &[large - 1, 1], &[5 * large], &[0]];
        assert_eq!(made, expected);
        let many = vec![entry(0); 2 * most + 1];
        let sizes: Vec<usize> = parts(&many, most, large).map(<[ListEntry]>::len).collect();
        assert_eq!(sizes, [most, most, 1]);
        assert_eq!(parts(&[], most, large).count(), 0);
    }
}
