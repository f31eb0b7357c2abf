//! Uploads that begin in a conditional domain and end where it is none any more (`[W-13 ceasing-to-be-conditional]`,
//! `[W-11 given-up]`): each becomes a version with all its blocks, or none, and none stays for ever.

use crate::large::meeting::KindChange;
use areo_core::config::Dap;
use areo_core::dsm::large::PublishError;
use areo_core::error::WriteError;

#[test]
fn a_writer_that_meets_the_move_is_read_or_leaves_nothing() {
    let ceasing = KindChange {
        from: Dap::Conditional { k: 1 },
        to: Dap::Abd,
        sweeps: 2,
    };
    ceasing.meet(|met| {
        let (case, is_written) = (&met.case, met.is_written);
        match &met.result {
            Ok(_) => assert!(is_written, "{case}"),
            Err(PublishError::Swept) => assert!(!is_written && met.is_as_seen, "{case}"),
            Err(PublishError::Write(WriteError::NotApplied(failed))) => {
                assert!(failed.is_not_conditional(), "{case}: {failed:?}");
                assert!(!is_written && met.is_as_seen, "{case}");
            }
            // The old configuration is gone.
            Err(PublishError::Write(WriteError::Unknown(_))) => assert!(met.is_moved, "{case}"),
        }
    });
}
