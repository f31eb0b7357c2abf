//! Calls in flight on one link.

use std::rc::Rc;

use crate::message::Outgoing;
use crate::peer::Sink;

/// One call that has not been answered. It keeps the message, by reference, for a resend.
pub(crate) struct Entry {
    pub(crate) message: Outgoing,
    pub(crate) sink: Rc<dyn Sink>,
    pub(crate) token: u64,
    /// True if the sink knows that the present attempt has failed.
    pub(crate) told: bool,
}

/// A table of calls. An id is a slot and a generation, so that a late answer to a forgotten call finds nothing.
#[derive(Default)]
pub(crate) struct Calls {
    slots: Vec<Slot>,
    free: Vec<u32>,
    held_bytes: usize,
}

#[derive(Default)]
struct Slot {
    generation: u32,
    entry: Option<Entry>,
}

impl Calls {
    pub(crate) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Bytes that the messages in the table hold on to.
    pub(crate) fn held_bytes(&self) -> usize {
        self.held_bytes
    }

    /// The id that the next [`Calls::insert`] will give.
    pub(crate) fn next_id(&self) -> u64 {
        match self.free.last() {
            Some(&slot) => join(self.slots[slot as usize].generation, slot),
            None => join(0, self.slots.len() as u32),
        }
    }

    pub(crate) fn insert(&mut self, entry: Entry) -> u64 {
        let id = self.next_id();
        if self.free.pop().is_none() {
            self.slots.push(Slot::default());
        }
        self.held_bytes += entry.message.queue_bytes();
        let slot = &mut self.slots[slot_of(id)];
        assert!(slot.entry.is_none() && join(slot.generation, slot_of(id) as u32) == id);
        slot.entry = Some(entry);
        id
    }

    pub(crate) fn get_mut(&mut self, id: u64) -> Option<&mut Entry> {
        let slot = self.slots.get_mut(slot_of(id))?;
        if slot.generation == generation_of(id) {
            slot.entry.as_mut()
        } else {
            None
        }
    }

    pub(crate) fn remove(&mut self, id: u64) -> Option<Entry> {
        let slot = self.slots.get_mut(slot_of(id))?;
        if slot.generation != generation_of(id) {
            return None;
        }
        let entry = slot.entry.as_ref()?;
        self.held_bytes -= entry.message.queue_bytes();
        slot.generation = slot.generation.wrapping_add(1);
        self.free.push(slot_of(id) as u32);
        slot.entry.take()
    }

    /// The calls in the table, with their ids.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, &Entry)> {
        self.slots.iter().enumerate().filter_map(|(index, slot)| {
            let entry = slot.entry.as_ref()?;
            Some((join(slot.generation, index as u32), entry))
        })
    }
}

fn join(generation: u32, slot: u32) -> u64 {
    u64::from(generation) << 32 | u64::from(slot)
}

fn slot_of(id: u64) -> usize {
    (id & u64::from(u32::MAX)) as usize
}

fn generation_of(id: u64) -> u32 {
    (id >> 32) as u32
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::peer::Answer;

    struct Ignore;
    impl Sink for Ignore {
        fn on_answer(&self, _token: u64, _answer: Answer<'_>) {}
    }

    fn entry(token: u64) -> Entry {
        Entry {
            message: Outgoing::new(Bytes::from(vec![0; token as usize]), None),
            sink: Rc::new(Ignore),
            token,
            told: false,
        }
    }

    #[test]
    fn an_old_id_finds_nothing_in_a_slot_that_is_used_again() {
        let mut calls = Calls::default();
        let expected = calls.next_id();
        let first = calls.insert(entry(1));
        assert_eq!(first, expected);
        let second = calls.insert(entry(2));
        assert_eq!(calls.remove(first).map(|entry| entry.token), Some(1));
        assert!(calls.remove(first).is_none());
        let expected = calls.next_id();
        let third = calls.insert(entry(3));
        assert_eq!(third, expected);
        assert_eq!(slot_of(third), slot_of(first));
        assert!(calls.get_mut(first).is_none());
        assert_eq!(
            calls
                .iter()
                .map(|(id, entry)| (id, entry.token))
                .collect::<Vec<_>>(),
            [(third, 3), (second, 2)]
        );
        assert_eq!(calls.len(), 2);
        let held = entry(2).message.queue_bytes() + entry(3).message.queue_bytes();
        assert_eq!(calls.held_bytes(), held);
        assert!(calls.remove(77).is_none() && calls.remove(u64::MAX).is_none());
    }
}
