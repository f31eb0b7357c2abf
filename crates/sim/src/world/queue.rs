//! The scheduler, which chooses the next event.
//!
//! The *random* one goes by time, which has been drawn. *PCT*, probabilistic concurrency testing (Burckhardt et al., 2010),
//! goes by priority where an asynchronous system has the choice: messages and commits. Every direction of a link, and the
//! disk of every server, is a channel with a random priority; of what is under way the first of the highest channel
//! happens, whenever it was due. At `depth - 1` random moments the channel that is about to run becomes the lowest. A bug
//! that needs `depth` things in a certain order is then found with a probability that is known from below, however rare
//! that order is in time. After a window of steps all is drawn anew, so that a run is many such tests. Timers keep their
//! time.

use super::Event;
use crate::random::{Random, mix};
use areo_core::instant::Instant;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// An event's place in time; of equal times the one that was pushed first comes first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    at: Instant,
    sequence: u64,
    /// The place of the event in `slots`: heaps move entries about, so that entries are small.
    slot: usize,
}

/// Events that are yet to happen, wherever there was room.
#[derive(Default)]
struct Slots {
    events: Vec<Option<Event>>,
    free: Vec<usize>,
}

impl Slots {
    fn put(&mut self, event: Event) -> usize {
        if let Some(slot) = self.free.pop() {
            self.events[slot] = Some(event);
            return slot;
        }
        self.events.push(Some(event));
        self.events.len() - 1
    }

    fn take(&mut self, slot: usize) -> Event {
        self.free.push(slot);
        self.events[slot].take().expect("an entry names one event")
    }

    fn get(&self, slot: usize) -> &Event {
        let event = self.events[slot].as_ref();
        event.expect("an entry names one event")
    }
}

/// Everything that is yet to happen.
#[derive(Default)]
pub(super) struct Queue {
    timed: BinaryHeap<Reverse<Entry>>,
    slots: Slots,
    sequence: u64,
    priorities: Option<Priorities>,
}

impl Queue {
    /// A queue ordered by time; with a depth, by priority where there is a choice.
    pub(super) fn new(seed: u64, depth: Option<u64>) -> Queue {
        Queue {
            priorities: depth.map(|depth| Priorities::new(seed, depth)),
            ..Queue::default()
        }
    }

    pub(super) fn push(&mut self, at: Instant, event: Event) {
        let sequence = self.sequence;
        self.sequence += 1;
        let channel = event.channel();
        let entry = Entry {
            at,
            sequence,
            slot: self.slots.put(event),
        };
        match (&mut self.priorities, channel) {
            (Some(priorities), Some(channel)) => priorities.push(channel, entry),
            _ => self.timed.push(Reverse(entry)),
        }
    }

    /// The next thing, and when it happens; never before `now`.
    pub(super) fn pop(&mut self, now: Instant) -> Option<(Instant, Event)> {
        let timer = self.timed.peek().map(|Reverse(entry)| entry.at);
        let is_due = timer.is_some_and(|at| at <= now);
        let chosen = match &mut self.priorities {
            Some(priorities) if !is_due => priorities.pop(),
            _ => None,
        };
        // Time goes on to the next timer at most, which must not be late.
        let early = |entry: Entry| Entry {
            at: entry.at.min(timer.unwrap_or(entry.at)),
            ..entry
        };
        let due = || self.timed.pop().map(|Reverse(entry)| entry);
        let Entry { at, slot, .. } = chosen.map(early).or_else(due)?;
        Some((at.max(now), self.slots.take(slot)))
    }

    /// Moves the events that `is_meant` selects to `now`.
    pub(super) fn hasten(&mut self, now: Instant, is_meant: impl Fn(&Event) -> bool) {
        let hasten = |Reverse(entry): Reverse<Entry>| {
            let at = match is_meant(self.slots.get(entry.slot)) {
                true => now,
                false => entry.at,
            };
            Reverse(Entry { at, ..entry })
        };
        self.timed = self.timed.drain().map(hasten).collect();
    }

    /// Orders all events by time from now on.
    pub(super) fn end_priorities(&mut self) {
        let priorities = self.priorities.take();
        let channels = priorities.into_iter().flat_map(|all| all.channels);
        self.timed.extend(channels.flatten());
    }
}

/// The channels, with their events.
struct Priorities {
    random: Random,
    depth: u64,
    channels: Vec<BinaryHeap<Reverse<Entry>>>,
    /// Channels in order of priority, highest first.
    order: Vec<usize>,
    /// Steps after which the channel that is about to run becomes the lowest.
    changes: Vec<u64>,
    /// Steps taken since all was drawn, and until all is drawn anew.
    taken: u64,
    window: u64,
}

impl Priorities {
    fn new(seed: u64, depth: u64) -> Priorities {
        Priorities {
            random: Random::new(mix(seed ^ 0x9c7)),
            depth,
            channels: Vec::new(),
            order: Vec::new(),
            changes: Vec::new(),
            taken: 0,
            window: 0,
        }
    }

    fn push(&mut self, channel: usize, entry: Entry) {
        while self.channels.len() <= channel {
            // A new channel takes any place.
            let place = self.random.index(self.order.len() + 1);
            self.order.insert(place, self.channels.len());
            self.channels.push(BinaryHeap::new());
        }
        self.channels[channel].push(Reverse(entry));
    }

    fn pop(&mut self) -> Option<Entry> {
        if self.taken == self.window {
            self.draw();
        }
        let mut place = self.highest()?;
        self.taken += 1;
        if self.changes.contains(&self.taken) {
            let lowest = self.order.remove(place);
            self.order.push(lowest);
            place = self.highest().expect("nothing was taken away");
        }
        let channel = &mut self.channels[self.order[place]];
        channel.pop().map(|Reverse(entry)| entry)
    }

    /// The place of the first channel in which something is under way.
    fn highest(&self) -> Option<usize> {
        let mut order = self.order.iter();
        order.position(|channel| !self.channels[*channel].is_empty())
    }

    fn draw(&mut self) {
        (self.taken, self.window) = (0, self.random.between(50, 2000));
        for place in (1..self.order.len()).rev() {
            self.order.swap(place, self.random.index(place + 1));
        }
        let change = |_| self.random.between(1, self.window);
        self.changes = (1..self.depth).map(change).collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::Trouble;
    use std::time::Duration;

    /// A commit of a server: each server's disk is a channel.
    fn commit(server: usize) -> Event {
        Event::Commit(server, 0)
    }

    fn server_of(event: &Event) -> usize {
        match event {
            Event::Commit(server, _) => *server,
            _ => usize::MAX,
        }
    }

    fn at(ms: u64) -> Instant {
        Instant::default().plus(Duration::from_millis(ms))
    }

    #[test]
    fn without_priorities_it_goes_by_time() {
        let mut queue = Queue::new(1, None);
        queue.push(at(2), commit(0));
        queue.push(at(1), commit(1));
        queue.push(at(2), commit(2));
        let mut order = Vec::new();
        while let Some((_, event)) = queue.pop(at(0)) {
            order.push(server_of(&event));
        }
        assert_eq!(order, [1, 0, 2]);
    }

    /// The order in which three servers' commits happen, two each, given one after the other.
    fn order(seed: u64, depth: u64) -> Vec<usize> {
        let mut queue = Queue::new(seed, Some(depth));
        for ms in 1..=2 {
            (0..3).for_each(|server| queue.push(at(ms), commit(server)));
        }
        let mut order = Vec::new();
        while let Some((_, event)) = queue.pop(at(0)) {
            order.push(server_of(&event));
        }
        order
    }

    #[test]
    fn a_channel_goes_on_until_it_is_empty_or_made_the_lowest() {
        let mut seen = std::collections::BTreeSet::new();
        for seed in 0..300 {
            let order = order(seed, 1);
            assert!(order.chunks(2).all(|pair| pair[0] == pair[1]), "{order:?}");
            seen.insert(order);
        }
        assert_eq!(seen.len(), 6, "every order of three channels");
        let changes = |seed| order(seed, 50).chunks(2).any(|pair| pair[0] != pair[1]);
        assert!((0..300).any(changes), "a change point takes the turn away");
    }

    #[test]
    fn timers_keep_their_time_and_what_waited_is_not_lost() {
        let mut queue = Queue::new(7, Some(3));
        queue.push(at(5), Event::Trouble(Trouble::Open));
        queue.push(at(9), commit(0));
        queue.push(at(9), commit(0));
        let (time, event) = queue.pop(at(0)).expect("there is something");
        assert_eq!(
            (time, server_of(&event)),
            (at(5), 0),
            "not beyond the timer"
        );
        let (time, event) = queue.pop(at(5)).expect("there is something");
        assert_eq!((time, server_of(&event)), (at(5), usize::MAX));
        queue.end_priorities();
        let (time, event) = queue.pop(at(20)).expect("there is something");
        assert_eq!((time, server_of(&event)), (at(20), 0), "never in the past");
        assert!(queue.pop(at(20)).is_none());
    }

    #[test]
    fn what_is_hastened_is_here_now() {
        let mut queue = Queue::new(1, None);
        queue.push(at(5), commit(0));
        queue.push(at(9), commit(1));
        queue.hasten(at(1), |event| server_of(event) == 1);
        let (time, event) = queue.pop(at(1)).expect("there is something");
        assert_eq!((time, server_of(&event)), (at(1), 1));
    }
}
