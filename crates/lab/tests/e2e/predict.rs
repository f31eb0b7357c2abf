//! The autopilot's model of losses, from the command line.

#![allow(clippy::unwrap_used, reason = "a test")]

use crate::line;

#[test]
fn model_and_thresholds_are_judged_and_the_weights_are_those_of_the_repository() {
    let judged = line("predict", &["--json"]).done().objects();
    let by: Vec<_> = judged.iter().map(|it| &it["by"]).collect();
    assert_eq!(by, ["model", "thresholds"]);
    let precision = |index: usize| judged[index]["precision"].as_f64().unwrap();
    assert!(precision(0) > precision(1), "{judged:?}");
    let table = line("predict", &[]).done();
    for part in ["precision", "recall", "model", "thresholds"] {
        assert!(table.text().contains(part), "{part}: {}", table.text());
    }
    let weights = line("predict", &["--weights"]).done();
    let built_in = areo_steward::prediction::BUILT_IN;
    assert_eq!(weights.text(), built_in.trim_end());
}
