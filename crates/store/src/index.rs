//! The place of every live record: a slab of slots, and per segment a list of its slots in the order of the file.
//!
//! A slot is 32 bytes and slots come in chunks, so that a million records cost 32 MB and no doubling copies them.

use std::num::NonZeroU32;

/// Names one live record: 8 bytes, also inside an `Option`. It stays valid while the record is live, also when the
/// record is copied to another segment, and means nothing to another [`crate::Log`], nor after reopening.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Handle {
    slot: u32,
    generation: NonZeroU32,
}

/// No slot, no segment.
pub(crate) const NONE: u32 = u32::MAX;
const CHUNK_SLOTS: usize = 1024;

const _: () = assert!(size_of::<Slot>() == 32, "a million records cost 32 MB");
const _: () = assert!(
    size_of::<Option<Handle>>() == 8,
    "handles are kept by the million"
);

/// The knowledge of one record in memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slot {
    generation: NonZeroU32,
    /// Index of the segment in the log's table; [`NONE`] in a slot without a record.
    pub(crate) segment: u32,
    /// Position of the record in its segment, in grains of 64 bytes.
    pub(crate) grain: u32,
    pub(crate) payload_length: u32,
    pub(crate) payload_checksum: u32,
    pub(crate) header_length: u16,
    pub(crate) kind: u8,
    pub(crate) state: SlotState,
    /// The neighbours in the segment's list; `next` also links the free slots.
    next: u32,
    previous: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SlotState {
    Live,
    /// Found damaged: it is not copied, and its segment stays until it is freed.
    Damaged,
    /// Freed, but the records for which it was freed are not durable yet.
    Freed,
    FreedDamaged,
}

impl SlotState {
    pub(crate) fn is_freed(self) -> bool {
        matches!(self, Self::Freed | Self::FreedDamaged)
    }

    pub(crate) fn is_damaged(self) -> bool {
        matches!(self, Self::Damaged | Self::FreedDamaged)
    }
}

/// The slots of one segment, in the order of the file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct List {
    pub(crate) head: u32,
    tail: u32,
}

impl Default for List {
    fn default() -> Self {
        Self {
            head: NONE,
            tail: NONE,
        }
    }
}

/// The content of a new slot.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub(crate) segment: u32,
    pub(crate) grain: u32,
    pub(crate) payload_length: u32,
    pub(crate) payload_checksum: u32,
    pub(crate) header_length: u16,
    pub(crate) kind: u8,
}

#[derive(Default)]
pub(crate) struct Index {
    chunks: Vec<Box<[Slot]>>,
    /// Slots that were ever used.
    used: u32,
    free: Option<u32>,
    live: u64,
}

impl Index {
    /// A new record at the end of its segment's list.
    pub(crate) fn insert(&mut self, entry: Entry, list: &mut List) -> Handle {
        assert_ne!(entry.segment, NONE, "a record is in a segment");
        let slot = self.take_slot();
        let place = self.get_mut(slot);
        assert_eq!(place.segment, NONE, "a free slot holds no record");
        place.segment = entry.segment;
        place.grain = entry.grain;
        place.payload_length = entry.payload_length;
        place.payload_checksum = entry.payload_checksum;
        place.header_length = entry.header_length;
        place.kind = entry.kind;
        place.state = SlotState::Live;
        let generation = place.generation;
        self.live += 1;
        assert!(
            self.live <= self.used.into(),
            "every record has a slot of its own"
        );
        self.link(slot, list);
        Handle { slot, generation }
    }

    /// The slot of a handle, unless its record is gone.
    pub(crate) fn resolve(&self, handle: Handle) -> Option<u32> {
        if handle.slot >= self.used {
            return None;
        }
        let slot = self.get(handle.slot);
        (slot.generation == handle.generation && slot.segment != NONE).then_some(handle.slot)
    }

    pub(crate) fn handle(&self, slot: u32) -> Handle {
        Handle {
            slot,
            generation: self.get(slot).generation,
        }
    }

    /// A handle that names nothing, for a log that is poisoned.
    pub(crate) fn nowhere() -> Handle {
        Handle {
            slot: NONE,
            generation: NonZeroU32::MIN,
        }
    }

    pub(crate) fn get(&self, slot: u32) -> &Slot {
        &self.chunks[slot as usize / CHUNK_SLOTS][slot as usize % CHUNK_SLOTS]
    }

    pub(crate) fn get_mut(&mut self, slot: u32) -> &mut Slot {
        &mut self.chunks[slot as usize / CHUNK_SLOTS][slot as usize % CHUNK_SLOTS]
    }

    pub(crate) fn next(&self, slot: u32) -> u32 {
        self.get(slot).next
    }

    /// Appends the slot to a list.
    pub(crate) fn link(&mut self, slot: u32, list: &mut List) {
        let tail = list.tail;
        let place = self.get_mut(slot);
        place.previous = tail;
        place.next = NONE;
        let segment = place.segment;
        if tail == NONE {
            assert_eq!(list.head, NONE, "a list has both ends or none");
            list.head = slot;
        } else {
            let last = self.get_mut(tail);
            assert_eq!(last.next, NONE, "nothing is behind the last slot");
            assert_eq!(last.segment, segment, "a list is of one segment");
            last.next = slot;
        }
        list.tail = slot;
    }

    /// Takes the slot out of its list.
    pub(crate) fn unlink(&mut self, slot: u32, list: &mut List) {
        let Slot { next, previous, .. } = *self.get(slot);
        if previous == NONE {
            assert_eq!(list.head, slot, "the first slot of its own list");
            list.head = next;
        } else {
            let before = self.get_mut(previous);
            assert_eq!(before.next, slot, "neighbours name each other");
            before.next = next;
        }
        if next == NONE {
            assert_eq!(list.tail, slot, "the last slot of its own list");
            list.tail = previous;
        } else {
            let behind = self.get_mut(next);
            assert_eq!(behind.previous, slot, "neighbours name each other");
            behind.previous = previous;
        }
    }

    /// Forgets the record of an unlinked slot; its handles are void.
    pub(crate) fn release(&mut self, slot: u32) {
        let free = self.free.replace(slot);
        let place = self.get_mut(slot);
        assert_ne!(place.segment, NONE, "released once");
        place.segment = NONE;
        place.generation = place.generation.checked_add(1).unwrap_or(NonZeroU32::MIN);
        place.next = free.unwrap_or(NONE);
        self.live -= 1;
    }

    /// The number of records, those that are freed but not yet gone included.
    pub(crate) fn live(&self) -> u64 {
        self.live
    }

    /// One more than the largest slot ever used.
    pub(crate) fn used(&self) -> u32 {
        self.used
    }

    /// Memory held by the slots, in bytes.
    pub(crate) fn memory_bytes(&self) -> u64 {
        let chunks = self.chunks.len() * CHUNK_SLOTS * size_of::<Slot>();
        let table = self.chunks.capacity() * size_of::<Box<[Slot]>>();
        (chunks + table) as u64
    }

    fn take_slot(&mut self) -> u32 {
        if let Some(slot) = self.free {
            assert!(slot < self.used, "a free slot was used before");
            let next = self.get(slot).next;
            self.free = (next != NONE).then_some(next);
            return slot;
        }
        let slot = self.used;
        assert!(slot < NONE - 1, "fewer than 2^32 - 2 records");
        if slot as usize == self.chunks.len() * CHUNK_SLOTS {
            let empty = Slot {
                generation: NonZeroU32::MIN,
                segment: NONE,
                grain: 0,
                payload_length: 0,
                payload_checksum: 0,
                header_length: 0,
                kind: 0,
                state: SlotState::Live,
                next: NONE,
                previous: NONE,
            };
            self.chunks
                .push(vec![empty; CHUNK_SLOTS].into_boxed_slice());
        }
        self.used += 1;
        slot
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(segment: u32, grain: u32) -> Entry {
        Entry {
            segment,
            grain,
            payload_length: 1,
            payload_checksum: 2,
            header_length: 3,
            kind: 0,
        }
    }

    fn grains(index: &Index, list: List) -> Vec<u32> {
        let mut grains = Vec::new();
        let mut slot = list.head;
        while slot != NONE {
            grains.push(index.get(slot).grain);
            slot = index.next(slot);
        }
        grains
    }

    #[test]
    fn a_handle_ends_with_its_record_though_the_slot_is_used_again() {
        let mut index = Index::default();
        let mut list = List::default();
        let old = index.insert(entry(0, 1), &mut list);
        let slot = index.resolve(old).unwrap();
        index.unlink(slot, &mut list);
        index.release(slot);
        assert_eq!(index.resolve(old), None);
        let new = index.insert(entry(0, 2), &mut list);
        assert_eq!(index.resolve(new), Some(slot));
        assert_eq!(index.resolve(old), None);
        assert_eq!(index.resolve(Index::nowhere()), None);
        assert_eq!(index.live(), 1);
    }

    #[test]
    fn lists_keep_the_order_whatever_is_taken_out() {
        let mut index = Index::default();
        let mut list = List::default();
        let handles: Vec<Handle> = (0..5)
            .map(|grain| index.insert(entry(0, grain), &mut list))
            .collect();
        for (taken, left) in [
            (2, vec![0, 1, 3, 4]),
            (0, vec![1, 3, 4]),
            (4, vec![1, 3]),
            (1, vec![3]),
            (3, vec![]),
        ] {
            let slot = index.resolve(handles[taken]).unwrap();
            index.unlink(slot, &mut list);
            index.release(slot);
            assert_eq!(grains(&index, list), left);
        }
        for grain in 0..3 {
            index.insert(entry(0, grain), &mut list);
        }
        assert_eq!(grains(&index, list), vec![0, 1, 2]);
        assert_eq!(index.used(), 5);
    }
}
