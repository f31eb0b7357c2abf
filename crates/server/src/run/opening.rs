//! The lines of the log about the records that a start finds.

use areo_store::Directory;
use areo_store::records::OpeningReport;

/// Logs the findings of opening this directory's log, and the missing parts.
pub(super) fn report(opened: &OpeningReport, directory: &Directory) {
    let log = &opened.log;
    tracing::info!(
        records = log.records,
        scanned_bytes = log.scanned_bytes,
        damaged = log.damaged_payloads,
        "store opened"
    );
    if log.damaged_payloads > 0 {
        tracing::warn!(
            records = log.damaged_payloads,
            "records of the log are damaged or cut short: this server abstains for their objects until it has repaired them"
        );
    }
    if let Some(torn) = log.torn_tail {
        tracing::info!(
            segment = torn.segment,
            offset = torn.offset,
            "cut an unfinished batch, which was never acknowledged"
        );
    }
    if opened.is_unreadable() {
        tracing::error!(
            records = log.unknown_damaged + opened.unknown_records,
            missing = log.missing(),
            path = %directory.path().display(),
            "records are missing from the log, or damaged beyond recognition: this server answers for no object, and another one takes its place once all domains work without it"
        );
    }
}
