//! `areo token`, `areo key`, `areo ca`, `areo audit`: the trust of a cluster.

mod audit;
mod ca;
mod key;
mod token;

pub(super) use audit::run as audit;
pub(super) use ca::run as ca;
pub(super) use key::run as key;
pub(super) use token::{for_a_join as token_for_a_join, run as token};

use crate::exit::{Code, Failure};
use areo_client::trust::TrustError;
use areo_trust::protocol::RefusalKind;
use std::time::{Duration, SystemTime};

/// The failure of the process for a request about trust.
#[allow(clippy::needless_pass_by_value)] // For `map_err`.
pub(super) fn failure(error: TrustError) -> Failure {
    let code = match error.kind() {
        RefusalKind::Other => Code::Other,
        RefusalKind::Usage => Code::Usage,
        RefusalKind::NotFound => Code::NotFound,
        RefusalKind::Lost => Code::Precondition,
        RefusalKind::Unavailable => Code::Unavailable,
        RefusalKind::Unauthorised => Code::Unauthorised,
        RefusalKind::Unknown => Code::Unknown,
    };
    Failure::new(code, error.to_string())
}

/// The clock of this machine, in seconds since 1970.
fn now_seconds() -> u64 {
    let since = SystemTime::UNIX_EPOCH.elapsed();
    since.as_ref().map_or(0, Duration::as_secs)
}

/// A time as people read it.
fn show_seconds(seconds: u64) -> String {
    areo_client::units::show_time(seconds.saturating_mul(1000))
}

#[cfg(test)]
mod tests {
    use super::*;
    use areo_trust::protocol::TrustRefusal;

    #[test]
    fn the_kinds_of_servers_are_the_exit_codes_of_commands() {
        let kinds = [
            RefusalKind::Other,
            RefusalKind::Usage,
            RefusalKind::NotFound,
            RefusalKind::Lost,
            RefusalKind::Unavailable,
            RefusalKind::Unauthorised,
            RefusalKind::Unknown,
        ];
        for kind in kinds {
            let sentence = "no".to_owned();
            let failed = failure(TrustRefusal { kind, sentence }.into());
            assert_eq!((failed.code as u8, &*failed.message), (kind as u8, "no"));
        }
    }
}
