//! The results of a run.

use crate::nemesis::KeyRequests;
use crate::trouble::Trouble;
use areo_check::{Counts, Verdict};
use serde::Serialize;
use std::path::PathBuf;

/// Number of times that a trouble happened.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct TroubleCount {
    pub trouble: Trouble,
    pub times: u64,
    /// Why it could not be done at all, if it could not.
    pub not_run: Option<String>,
}

/// Operations of one kind, by how they ended.
pub type Operations = Counts;

/// A run of the nemesis.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Report {
    /// The seed of the schedule and of the clients.
    pub seed: u64,
    pub servers: usize,
    /// Clients at a time.
    pub clients: usize,
    /// The time that there was trouble, in milliseconds.
    pub trouble_ms: u64,
    /// The time that everything took, judging included, in milliseconds.
    pub total_ms: u64,
    pub operations: Vec<Operations>,
    /// Every kind of trouble that was asked for.
    pub troubles: Vec<TroubleCount>,
    /// kill -9 of a server, alone or with others.
    pub kills: u64,
    /// Requests of keys that are made, changed and revoked meanwhile, and of one that counts all the time.
    pub key_requests: KeyRequests,
    /// The longest time without a successful operation, by domain, in milliseconds.
    pub longest_gap_ms: Vec<(&'static str, u64)>,
    /// Verdict on the history.
    pub verdict: Verdict,
    /// Broken promises, in sentences; those of the history are in `judged`.
    pub violations: Vec<String>,
    /// The judges' report on the history, for people.
    pub judged: String,
    /// Path of the history, if it was kept.
    pub history: Option<PathBuf>,
    /// Folder of the servers' directories and logs, if they were kept.
    pub kept: Option<PathBuf>,
}

impl Report {
    /// Operations of all kinds.
    pub fn total(&self) -> u64 {
        let ended = |counts: &Operations| counts.ok + counts.fail + counts.unknown;
        self.operations.iter().map(ended).sum()
    }

    /// Troubles that could have happened and did not.
    pub fn never_fired(&self) -> Vec<Trouble> {
        let never = |fired: &&TroubleCount| fired.times == 0 && fired.not_run.is_none();
        let never = self.troubles.iter().filter(never);
        never.map(|fired| fired.trouble).collect()
    }

    /// True if every promise was kept, as far as it was tried.
    pub fn holds(&self) -> bool {
        self.verdict == Verdict::Holds && self.violations.is_empty()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use areo_check::Kind;

    fn report() -> Report {
        let fired = |trouble, times, not_run: Option<&str>| TroubleCount {
            trouble,
            times,
            not_run: not_run.map(Into::into),
        };
        Report {
            seed: 1,
            servers: 5,
            clients: 2,
            trouble_ms: 1_000,
            total_ms: 2_000,
            operations: vec![Operations {
                kind: Kind::Read,
                ok: 3,
                fail: 2,
                unknown: 1,
            }],
            troubles: vec![
                fired(Trouble::Kill, 2, None),
                fired(Trouble::Cut, 0, None),
                fired(Trouble::FullDisk, 0, Some("needs root")),
            ],
            kills: 2,
            key_requests: KeyRequests::default(),
            longest_gap_ms: vec![("abd", 7)],
            verdict: Verdict::Holds,
            violations: Vec::new(),
            judged: String::new(),
            history: None,
            kept: None,
        }
    }

    #[test]
    fn what_could_not_be_done_is_not_missed_but_what_did_not_happen_is() {
        let report = report();
        assert_eq!(report.never_fired(), [Trouble::Cut]);
        assert_eq!(report.total(), 6);
        assert!(report.holds());
    }

    #[test]
    fn one_broken_promise_is_enough() {
        for verdict in [Verdict::Violated, Verdict::Unjudged, Verdict::Nothing] {
            let broken = Report {
                verdict,
                ..report()
            };
            assert!(!broken.holds(), "{verdict}");
        }
        let violations = vec!["s1 ended by itself".to_owned()];
        let broken = Report {
            violations,
            ..report()
        };
        assert!(!broken.holds());
    }
}
