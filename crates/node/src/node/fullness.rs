//! Knows whether the disk is full for users' writes, by the writes that it refuses, and by asking for room.

use super::{Node, Purpose};
use crate::{Keep, NodeError, Watch};
use areo_core::instant::Instant;
use areo_core::limits;
use areo_core::message::Refusal;
use areo_store::records::element_footprint;
use std::time::Duration;

/// The interval at which a disk that is not known to be full is asked for room.
const PERIOD: Duration = Duration::from_secs(10);
/// For how long after its last refusal a write of this size counts: a client that gave up does not keep a disk full.
const REMEMBERED: Duration = Duration::from_mins(1);

/// The node's knowledge of room on the disk for users' writes.
#[derive(Debug, Default)]
pub(super) struct Fullness {
    full: bool,
    /// The bytes that the last refused write needs, and when it was refused.
    refused: Option<(u64, Instant)>,
    /// The time at which the disk was last asked for room.
    asked: Option<Instant>,
}

impl Fullness {
    /// True if the disk has no room for users' writes.
    pub(super) fn is_full(&self) -> bool {
        self.full
    }

    /// Notes that a write of this number of bytes was refused for want of room. Returns true if the disk is full from
    /// now on.
    pub(super) fn refuse(&mut self, now: Instant, bytes: u64) -> bool {
        self.refused = Some((bytes, now));
        !std::mem::replace(&mut self.full, true)
    }

    /// For how many bytes the disk is to be asked now: a full disk each time, another one now and then.
    pub(super) fn needed(&mut self, now: Instant) -> Option<u64> {
        let is_due = self.asked.is_none_or(|asked| now.since(asked) >= PERIOD);
        if !self.full && !is_due {
            return None;
        }
        self.asked = Some(now);
        let refused = self.refused;
        let recent = refused.filter(|(_, at)| now.since(*at) < REMEMBERED);
        self.refused = recent;
        let smallest = element_footprint(limits::OBJECT_NAME_BYTES, limits::METADATA_BYTES, 0);
        Some(recent.map_or(smallest, |(bytes, _)| bytes.max(smallest)))
    }

    /// The disk was asked for the [needed](Fullness::needed) bytes. True if that changes whether it is full.
    pub(super) fn found(&mut self, has_room: bool) -> bool {
        if has_room {
            self.refused = None;
        }
        std::mem::replace(&mut self.full, !has_room) == has_room
    }
}

impl<K: Keep, C> Node<K, C> {
    /// Notes that the node refused a request that needs this number of bytes.
    pub(super) fn note_refusal(
        &mut self,
        now: Instant,
        (refusal, bytes): (Refusal, u64),
        watch: &mut impl Watch<C>,
    ) {
        if refusal == Refusal::Full && self.fullness.refuse(now, bytes) {
            watch.disk_full(true);
        }
    }

    /// Asks whether a user's write would find room, so that the status says so before one is refused, and no longer than it is true.
    pub(super) fn look_for_room(
        &mut self,
        now: Instant,
        watch: &mut impl Watch<C>,
    ) -> Result<(), NodeError> {
        if let Some(bytes) = self.fullness.needed(now) {
            let bytes = self.owed_bytes() + self.sizes.slack + bytes;
            let has_room = match self.reserve(bytes, Purpose::Write)? {
                None => true,
                Some(Refusal::Full) => false,
                // What else the system lacks says nothing about the disk.
                Some(_) => return Ok(()),
            };
            if self.fullness.found(has_room) {
                watch.disk_full(!has_room);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LARGE: u64 = 4 << 20;

    fn at(seconds: u64) -> Instant {
        Instant(seconds * 1_000_000_000)
    }

    #[test]
    fn a_refusal_begins_it_and_room_for_as_much_ends_it() {
        let mut fullness = Fullness::default();
        assert!(fullness.refuse(at(1), LARGE), "it begins");
        assert!(!fullness.refuse(at(2), LARGE), "it has begun");
        assert_eq!(fullness.needed(at(2)), Some(LARGE));
        assert!(!fullness.found(false) && fullness.is_full());
        assert_eq!(fullness.needed(at(3)), Some(LARGE), "asked each time");
        assert!(fullness.found(true) && !fullness.is_full());
    }

    #[test]
    fn a_large_write_that_was_refused_long_ago_counts_no_more() {
        let mut fullness = Fullness::default();
        fullness.refuse(at(1), LARGE);
        let needed = fullness.needed(at(62)).expect("a full disk is asked");
        assert!(needed < 64 << 10, "{needed}: as for the smallest write");
    }

    #[test]
    fn a_disk_is_asked_before_a_write_is_refused() {
        let mut fullness = Fullness::default();
        assert!(fullness.needed(at(1)).is_some());
        assert!(!fullness.found(true));
        assert_eq!(fullness.needed(at(2)), None, "not yet again");
        assert!(fullness.needed(at(11)).is_some());
        assert!(fullness.found(false) && fullness.is_full());
    }
}
