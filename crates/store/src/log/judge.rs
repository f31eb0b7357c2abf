//! The verdict about every segment that was scanned: torn, damaged or whole.

use std::io::{self, IoSlice};

use crate::disk::{Disk, File, write_all_at};
use crate::error::OpenError;
use crate::format::{END_BYTES, PAGE, align, segment_name};

use super::open::{Opener, ScannedSegment, TornTail, WINDOW_BYTES, failed};
use super::reader::Reader;
use super::scan::{Scan, Tail};
use super::segment::SegmentState;

impl<D: Disk> Opener<'_, D> {
    /// Decides about every scanned segment.
    pub(super) fn judge(&mut self) -> Result<(), OpenError> {
        for judged in std::mem::take(&mut self.unjudged) {
            let number = self.log.segments.get(judged.at).number;
            self.judge_segment(&judged)
                .map_err(failed("recovering", &segment_name(number)))?;
        }
        assert!(
            self.log.durable <= self.log.sequence,
            "no sequence that was durable is given again"
        );
        self.log.durable = self.log.sequence;
        Ok(())
    }

    fn judge_segment(&mut self, judged: &ScannedSegment) -> io::Result<()> {
        let ScannedSegment { at, scan, .. } = judged;
        let number = self.log.segments.get(*at).number;
        let required = self.required.get(&number).copied().unwrap_or(0);
        let lacks_batches = required > scan.last_sequence;
        let hint_is_lost = judged.was_sealed && judged.hint.is_none();
        let is_cut = self.is_cut_short(judged);
        self.note_missing(number, is_cut, lacks_batches);
        let mut unknown = scan.unknown;
        let mut damaged_batches = scan.damaged_batches;
        let mut write_at = scan.end;
        match &scan.tail {
            Some(tail)
                if hint_is_lost
                    || lacks_batches
                    || is_cut
                    || self.is_older(tail)
                    || tail.was_written =>
            {
                self.adopt_batch(*at, &tail.salvage);
                let is_enough = required <= scan.last_sequence + 1 && !is_cut;
                let lost = tail.salvage.unknown.max(u32::from(!is_enough));
                unknown = unknown.saturating_add(lost);
                damaged_batches += 1;
                // What is damaged keeps its sequence: it must not be given again.
                let sequence = tail.header.map_or(0, |header| header.sequence);
                self.log.sequence = self.log.sequence.max(sequence);
                write_at = align(self.log.segments.get(*at).length, PAGE).max(PAGE);
            }
            Some(tail) => self.cut(*at, scan, tail)?,
            // Zeros, or the end of the file, where there was a batch.
            None if lacks_batches || is_cut => {
                unknown = unknown.saturating_add(1);
                damaged_batches += 1;
            }
            None => {}
        }
        self.report.damaged_batches += u64::from(damaged_batches);
        self.report.unknown_damaged += u64::from(unknown);
        self.make_durable(*at, scan)?;

        let minimum = self.log.options.segment_bytes.min(4 * PAGE);
        let segment = self.log.segments.get_mut(*at);
        assert!(
            write_at >= PAGE && write_at.is_multiple_of(PAGE),
            "batches begin on pages, behind the segment's header"
        );
        segment.write_at = write_at;
        segment.unknown_damaged = unknown;
        segment.had_damage |= damaged_batches > 0;
        segment.is_trimmed = segment.length <= write_at + END_BYTES;
        segment.has_hint = judged.hint.is_some() && damaged_batches == 0;
        let is_empty = scan.last_sequence == 0 && scan.tail.is_none() && damaged_batches == 0;
        let is_whole = judged
            .size
            .is_some_and(|size| size == 0 || size == segment.length);
        if is_empty && is_whole && !judged.was_sealed && segment.length >= minimum {
            assert_eq!(segment.live_records, 0, "there is no record in no batch");
            segment.state = SegmentState::Ready;
        }
        Ok(())
    }

    fn note_missing(&mut self, number: u64, is_cut: bool, lacks_batches: bool) {
        match is_cut {
            true => self.report.cut_segments.push(number),
            false if lacks_batches => self.report.older_segments.push(number),
            false => {}
        }
    }

    /// True if something other than the log made the file shorter. The log leaves zeros behind the last batch, unless there never was
    /// room for any; those zeros hold nothing when they are cut off.
    fn is_cut_short(&self, judged: &ScannedSegment) -> bool {
        let segment = self.log.segments.get(judged.at);
        let (number, length) = (segment.number, segment.length);
        assert!(judged.scan.end >= PAGE, "batches are behind the header");
        let is_whole = match judged.size {
            // It was made before this was so.
            Some(0) => true,
            Some(size) => length >= size,
            None => length >= self.log.options.segment_bytes,
        };
        let ends_with_batch = judged.scan.tail.is_some() || length <= judged.scan.end;
        let is_noted = self.log.extents.cuts(number, length) && judged.scan.tail.is_none();
        judged.hint.is_none() && !is_whole && ends_with_batch && !is_noted
    }

    /// True if a tail is no newer than some valid batch elsewhere, and so was durable.
    fn is_older(&self, tail: &Tail) -> bool {
        tail.header
            .is_some_and(|header| header.sequence <= self.log.durable)
    }

    fn cut(&mut self, at: u32, scan: &Scan, tail: &Tail) -> io::Result<()> {
        let number = self.log.segments.get(at).number;
        // In between the file ends with a batch.
        self.log.note_cut(number, scan.end)?;
        let segment = self.log.segments.get_mut(at);
        assert_eq!(tail.at, scan.end, "a tail is behind what is valid");
        assert!(scan.end >= PAGE, "a cut leaves the header");
        assert!(scan.end < segment.length, "a cut makes a file shorter");
        segment.file.truncate(scan.end)?;
        segment.length = scan.end + END_BYTES;
        segment.file.truncate(segment.length)?;
        // Elsewhere than behind the last batch of all it is no batch, but rot in space that was never used.
        if scan.last_sequence == self.log.durable || scan.last_sequence == 0 {
            self.report.torn_tail = Some(TornTail {
                segment: segment.number,
                offset: tail.at,
            });
        }
        Ok(())
    }

    /// Makes records durable before they are handed over (`[X-10 durable-replies]`). The last batch may be in memory
    /// of the system only, even after a sync that failed in the process before this one; so it is written once more.
    fn make_durable(&self, at: u32, scan: &Scan) -> io::Result<()> {
        let segment = self.log.segments.get(at);
        if scan.last_sequence != 0 && scan.last_sequence == self.log.durable {
            let mut reader = Reader::new(&segment.file, segment.length, WINDOW_BYTES, Vec::new());
            let end = scan.end.min(segment.length);
            let mut from = scan.last_batch_at;
            while from < end {
                let step = (end - from).min(WINDOW_BYTES as u64);
                let bytes = reader.slice(from, usize::try_from(step).expect("a window"))?;
                let bytes = bytes.ok_or(io::ErrorKind::UnexpectedEof)?;
                write_all_at(&segment.file, &mut [IoSlice::new(bytes)], from)?;
                from += step;
            }
        }
        segment.file.sync_data()
    }
}
