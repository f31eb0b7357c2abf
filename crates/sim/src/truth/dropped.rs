//! Blocks of uploads of which a server dropped the tombstone (`[X-30 dropped-tombstones]`): it may answer as if it had never had the
//! block, and its disk must not bring the block back.

use super::{KeptRecord, ObjectId, Truth};
use std::collections::BTreeMap;

/// The tombstones of blocks that one server has dropped.
#[derive(Default)]
pub(super) struct DroppedTombstones {
    /// For each block whether it was put again since.
    blocks: BTreeMap<ObjectId, bool>,
    /// A dropped tombstone that a start found again although its block was not put since.
    returned: Option<ObjectId>,
}

impl DroppedTombstones {
    /// The record is to become durable.
    pub(super) fn note_written(&mut self, kept: &KeptRecord) {
        if let KeptRecord::Element { object, .. } = kept
            && let Some(is_put) = self.blocks.get_mut(object)
        {
            *is_put = true;
        }
    }

    /// Recovery found these. A tombstone may be among them, a block may not.
    pub(super) fn note_found<'a>(&mut self, found: impl Iterator<Item = &'a KeptRecord>) {
        let returned = found.filter_map(|kept| match kept {
            KeptRecord::Element {
                object,
                deleted: false,
                ..
            } => Some(*object),
            _ => None,
        });
        let mut returned = returned.filter(|object| self.blocks.get(object) == Some(&false));
        self.returned = self.returned.or(returned.next());
    }
}

impl Truth {
    /// The server dropped the tombstone of this block.
    pub(crate) fn drop_tombstone(&mut self, object: ObjectId) {
        self.dropped.blocks.insert(object, false);
    }

    /// True if the server dropped a tombstone of this object.
    pub(crate) fn has_dropped(&self, object: ObjectId) -> bool {
        self.dropped.blocks.contains_key(&object)
    }

    /// A block of which the tombstone was dropped, and which the disk brought back.
    pub(crate) fn returned(&self) -> Option<ObjectId> {
        self.dropped.returned
    }
}
