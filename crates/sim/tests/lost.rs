//! Objects of which too few elements are left, in domains of every kind that names them (`[X-40 named-loss]`, `[W-18 lost-version]`).
//!
//! `AREO_LOST_SEEDS` says how many seeds.

use areo_sim::fault::Fault;
use areo_sim::{Options, Work, run};

const VARIABLE: &str = "AREO_LOST_SEEDS";
/// Seeds that are run on every change.
const USUAL: u64 = 300;

#[test]
fn a_lost_object_is_named_and_stands_in_no_way() {
    let seeds = std::env::var(VARIABLE).map_or(Ok(USUAL), |text| text.parse());
    let options = Options {
        seeds: seeds.expect("a number of seeds"),
        operations: 0,
        work: Work::Losing,
        threads: 2,
        ..Options::default()
    };
    let report = run(&options, |_| {});
    let broken = report.violations.iter();
    let broken = broken.map(|outcome| format!("seed {}: {:?}", outcome.seed, outcome.violation));
    assert_eq!(broken.collect::<Vec<_>>(), [""; 0]);
    let struck = report.fired.count(Fault::ObjectLost);
    assert_eq!(struck, options.seeds, "each seed is struck");
}
