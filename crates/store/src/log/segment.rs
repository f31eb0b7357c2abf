//! The table of segments.

use crate::format::{BATCH_HEADER_BYTES, PAGE, align};
use crate::index::List;

/// A segment file, with the places in it.
pub(crate) struct Segment<F> {
    pub(crate) number: u64,
    pub(crate) file: F,
    /// The length of the file.
    pub(crate) length: u64,
    /// The offset of the next batch.
    pub(crate) write_at: u64,
    /// The sequences of the first and the last batch, 0 if there is none.
    pub(crate) first_sequence: u64,
    pub(crate) last_sequence: u64,
    /// The segment of the batch before the first one.
    pub(crate) predecessor: u64,
    pub(crate) list: List,
    pub(crate) live_bytes: u64,
    pub(crate) live_records: u32,
    /// The number of live records that are known to be damaged.
    pub(crate) damaged_records: u32,
    /// Lost records of which nothing is known; while there are any the segment stays.
    pub(crate) unknown_damaged: u32,
    /// Reading the segment again would find damage: its hint must say all that is known.
    pub(crate) had_damage: bool,
    /// The file ends where the last batch ends, and some zeros behind it.
    pub(crate) is_trimmed: bool,
    pub(crate) has_hint: bool,
    pub(crate) state: SegmentState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SegmentState {
    /// The segment is preallocated and empty.
    Ready,
    /// The segment that batches go to.
    Active,
    /// Nothing will be appended any more.
    Filled,
    /// The segment is removed once this batch is durable.
    Retiring { after: u64 },
}

impl<F> Segment<F> {
    pub(crate) fn new(number: u64, file: F, length: u64) -> Self {
        Self {
            number,
            file,
            length,
            write_at: PAGE,
            first_sequence: 0,
            last_sequence: 0,
            predecessor: 0,
            list: List::default(),
            live_bytes: 0,
            live_records: 0,
            damaged_records: 0,
            unknown_damaged: 0,
            had_damage: false,
            is_trimmed: false,
            has_hint: false,
            state: SegmentState::Ready,
        }
    }

    /// The bytes that reclaiming it frees, less those of the copies: pages, since copies are batches, too. Padding that a copy would have again is no
    /// gain, so that reclaiming ends.
    pub(crate) fn gain_bytes(&self) -> u64 {
        if self.live_records == 0 {
            return self.write_at;
        }
        let copies = align(self.live_bytes + BATCH_HEADER_BYTES as u64, PAGE);
        self.write_at.saturating_sub(PAGE + copies)
    }
}

pub(crate) struct Segments<F> {
    table: Vec<Option<Segment<F>>>,
    pub(crate) active: Option<u32>,
    /// The number that the next segment gets.
    pub(crate) next_number: u64,
}

impl<F> Segments<F> {
    pub(crate) fn new() -> Self {
        Self {
            table: Vec::new(),
            active: None,
            next_number: 1,
        }
    }

    pub(crate) fn insert(&mut self, segment: Segment<F>) -> u32 {
        let free = self.table.iter().position(Option::is_none);
        let at = free.unwrap_or_else(|| {
            self.table.push(None);
            self.table.len() - 1
        });
        self.next_number = self.next_number.max(segment.number + 1);
        self.table[at] = Some(segment);
        u32::try_from(at).expect("far fewer segments")
    }

    pub(crate) fn remove(&mut self, at: u32) -> Segment<F> {
        assert_ne!(self.active, Some(at), "the active segment stays");
        let segment = self.table[at as usize].take().expect("there");
        assert!(
            matches!(segment.state, SegmentState::Retiring { .. }),
            "a census leaves it out"
        );
        segment
    }

    pub(crate) fn get(&self, at: u32) -> &Segment<F> {
        self.table[at as usize].as_ref().expect("there")
    }

    pub(crate) fn get_mut(&mut self, at: u32) -> &mut Segment<F> {
        self.table[at as usize].as_mut().expect("there")
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &Segment<F>)> {
        let indexed = (0u32..).zip(&self.table);
        indexed.filter_map(|(at, segment)| Some((at, segment.as_ref()?)))
    }

    /// The segments in a given state.
    pub(crate) fn in_state(&self, state: SegmentState) -> impl Iterator<Item = (u32, &Segment<F>)> {
        self.iter().filter(move |(_, s)| s.state == state)
    }
}
