//! Reading records, from the batch in memory or from the disk, and never without verifying them.

use std::sync::Arc;

use bytes::Bytes;

use crate::checksum::crc32c;
use crate::disk::{Disk, read_exactly};
use crate::error::ReadError;
use crate::format::{KIND_USER, Place, RECORD_HEADER_BYTES, RecordHeader, payload_at};
use crate::index::{Handle, Slot, SlotState};

use super::{Log, slot_offset};

impl<D: Disk> Log<D> {
    /// The payload, verified. From memory and without a copy while the record's batch is open or in flight, as far as
    /// the payload came in one part.
    ///
    /// # Errors
    /// See [`ReadError`].
    pub fn read_payload(&self, handle: Handle) -> Result<Bytes, ReadError> {
        self.read_payload_of(self.live(handle)?)
    }

    /// The record's header, verified.
    ///
    /// # Errors
    /// See [`ReadError`].
    pub fn read_header(&self, handle: Handle) -> Result<Bytes, ReadError> {
        let slot = self.live(handle)?;
        self.read_header_of(slot)
    }

    /// The length of the payload in bytes, from memory.
    ///
    /// # Errors
    /// See [`ReadError`].
    pub fn payload_length(&self, handle: Handle) -> Result<u64, ReadError> {
        Ok(self.live(handle)?.payload_length.into())
    }

    /// The CRC-32C of the payload as it was appended, from memory.
    ///
    /// # Errors
    /// See [`ReadError`].
    pub fn payload_checksum(&self, handle: Handle) -> Result<u32, ReadError> {
        Ok(self.live(handle)?.payload_checksum)
    }

    fn live(&self, handle: Handle) -> Result<&Slot, ReadError> {
        if self.poison.is_set() {
            return Err(ReadError::Poisoned);
        }
        let slot = self.index.resolve(handle).ok_or(ReadError::Unknown)?;
        let slot = self.index.get(slot);
        if slot.state.is_freed() {
            return Err(ReadError::Unknown);
        }
        Ok(slot)
    }

    pub(super) fn read_header_of(&self, slot: &Slot) -> Result<Bytes, ReadError> {
        let at = slot_offset(slot);
        let length = RECORD_HEADER_BYTES + usize::from(slot.header_length);
        let bytes = self.read_at(slot, at, length)?;
        let place = Place {
            store_id: self.options.store_id,
            segment: self.segments.get(slot.segment).number,
            offset: at,
        };
        let header = bytes.slice(RECORD_HEADER_BYTES..);
        let is_right = RecordHeader::decode(&bytes, place).is_some_and(|record| {
            record.header_length == u32::from(slot.header_length)
                && record.payload_length == slot.payload_length
                && record.payload_checksum == slot.payload_checksum
                && record.header_checksum == crc32c(&header)
        });
        if !is_right {
            return Err(self.damaged(slot));
        }
        Ok(header)
    }

    pub(super) fn read_payload_of(&self, slot: &Slot) -> Result<Bytes, ReadError> {
        let at = slot_offset(slot) + payload_at(slot.header_length.into());
        let payload = self.read_at(slot, at, slot.payload_length as usize)?;
        if crc32c(&payload) != slot.payload_checksum {
            return Err(self.damaged(slot));
        }
        Ok(payload)
    }

    /// Bytes of a record, from the batch in memory or from the disk.
    fn read_at(&self, slot: &Slot, at: u64, length: usize) -> Result<Bytes, ReadError> {
        if length == 0 {
            return Ok(Bytes::new());
        }
        let in_flight = self.in_flight.iter().map(Arc::as_ref);
        let mut pieces = self.open.iter().chain(in_flight);
        if let Some(piece) = pieces.find(|piece| piece.contains(slot.segment, at)) {
            return Ok(piece.read(at, length));
        }
        let segment = self.segments.get(slot.segment);
        assert!(
            slot_offset(slot) < segment.write_at,
            "what is in no batch in memory was written"
        );
        let read = read_exactly(&segment.file, at, length).map_err(|source| ReadError::Io {
            segment: segment.number,
            offset: slot_offset(slot),
            source,
        })?;
        read.map(Bytes::from).ok_or_else(|| self.damaged(slot))
    }

    /// Takes note that a record does not verify; returns its handle if it belongs to the layer above.
    pub(super) fn note_damage(&mut self, slot: u32) -> Option<Handle> {
        let record = self.index.get_mut(slot);
        let segment = self.segments.get_mut(record.segment);
        if record.state == SlotState::Live {
            record.state = SlotState::Damaged;
            segment.damaged_records += 1;
            assert!(
                segment.damaged_records <= segment.live_records,
                "the damaged are among the live"
            );
            segment.had_damage = true;
        }
        if u32::from(record.kind) == KIND_USER {
            return Some(self.index.handle(slot));
        }
        // What the log itself wrote it can write again.
        self.census_due = true;
        None
    }

    fn damaged(&self, slot: &Slot) -> ReadError {
        ReadError::Damaged {
            segment: self.segments.get(slot.segment).number,
            offset: slot_offset(slot),
        }
    }
}
