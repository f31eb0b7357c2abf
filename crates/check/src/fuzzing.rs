//! Promises for a history of any bytes whatsoever. The target in `fuzz/` calls this, and so does a test that needs
//! nothing but a stable toolchain (`crates/check/tests/fuzz.rs`).

use crate::{History, Verdict, judge};

/// Reads a history and judges it. Panics if reading or judging does, if a refusal says nothing, if a verdict of violation
/// shows no operations, or if two looks differ. Whether everything held.
pub fn history(input: &[u8]) -> bool {
    let history = match History::read(input) {
        Ok(history) => history,
        Err(error) => {
            let lines = input.split(|byte| *byte == b'\n').count() as u64;
            assert!(!error.to_string().is_empty() && (1..=lines).contains(&error.line));
            return false;
        }
    };
    assert!(history.events() <= 2 * history.operations().len());
    let report = judge(&history);
    let again = judge(&history);
    assert_eq!(report.to_string(), again.to_string(), "a verdict is one");
    serde_json::to_string(&report).expect("a report is JSON");
    for property in &report.properties {
        assert!(property.violated + property.unjudged <= property.judged);
        assert_eq!(
            property.verdict == Verdict::Violated,
            property.violated > 0,
            "{report}"
        );
        for violation in &property.violations {
            assert!(!violation.operations.is_empty(), "{report}");
        }
    }
    report.verdict == Verdict::Holds
}
