//! Tombstones of blocks of uploads, which go when no member has the block any more (`[X-30 dropped-tombstones]`). Those of other objects
//! stay.

use super::super::record::Ledger;
use super::ConfigurationState;
use crate::dap;
use crate::dap::versions::Versions;
use crate::object::Name;
use bytes::Bytes;
use std::collections::BTreeSet;

impl ConfigurationState {
    /// Drops the tombstone of a block of an upload, and all else of the block. To be called when no member lists the block. False: there
    /// is something else here of this name, or `open` has a record of it that the store does not know yet to be superseded.
    pub(in crate::server) fn drop_tombstone(
        &mut self,
        name: &Name,
        open: &BTreeSet<u64>,
        ledger: &mut Ledger,
    ) -> bool {
        let keeps = self
            .configuration()
            .is_none_or(|c| dap::keeps_tombstones(c));
        if !name.is_upload_block() || keeps || open.contains(&name.grave()) {
            return false;
        }
        let Some(versions) = self.objects.get(name.as_bytes()) else {
            return false;
        };
        if !is_tombstone_alone(versions) {
            return false;
        }
        let dropped = self.objects.remove(name.as_bytes());
        let dropped = dropped.expect("it was just seen");
        assert_eq!(dropped.damaged(), None, "what abstains goes on doing so");
        // It does no harm if these come back: as one tombstone, or as marks alone.
        ledger.supersede(dropped.into_handles());
        true
    }

    /// After recovery: marks of a block of an upload, alone, are left of a tombstone that was dropped. They go, too.
    pub(super) fn drop_marks_alone(&mut self, ledger: &mut Ledger) {
        let Some(c) = self.configuration() else {
            return;
        };
        if dap::keeps_tombstones(c) {
            return;
        }
        let is_left = |name: &Bytes, versions: &mut Versions| {
            let is_alone = versions.stored().is_empty() && versions.damaged().is_none();
            let name = Name::from_bytes(name.clone()).expect("it was a name before");
            is_alone && versions.fence().is_initial() && name.is_upload_block()
        };
        let left = self.objects.extract_if(.., is_left);
        ledger.supersede(left.flat_map(|(_, versions)| versions.into_handles()));
    }
}

/// True if one tombstone is all that is held of the block.
fn is_tombstone_alone(versions: &Versions) -> bool {
    let is_tombstone = matches!(versions.stored(), [only] if only.deleted);
    is_tombstone && versions.damaged().is_none() && versions.fence().is_initial()
}
