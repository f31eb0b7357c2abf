//! Domains whose servers come to remember anything are registers again, within a bound (`[CASSS-4 stabilization-bound]`).
//!
//! `AREO_ARBITRARY_SEEDS` says how many seeds.

use areo_sim::fault::Fault;
use areo_sim::{Options, Work, run};

const VARIABLE: &str = "AREO_ARBITRARY_SEEDS";
/// Seeds that are run on every change.
const USUAL: u64 = 300;

#[test]
fn a_domain_in_any_state_is_a_register_again() {
    let seeds = std::env::var(VARIABLE).map_or(Ok(USUAL), |text| text.parse());
    let options = Options {
        seeds: seeds.expect("a number of seeds"),
        operations: 0,
        work: Work::Stabilizing,
        threads: 2,
        ..Options::default()
    };
    let report = run(&options, |_| {});
    let broken = report.violations.iter();
    let broken = broken.map(|outcome| format!("seed {}: {:?}", outcome.seed, outcome.violation));
    assert_eq!(broken.collect::<Vec<_>>(), [""; 0]);
    let struck = report.fired.count(Fault::ArbitraryState);
    assert_eq!(struck, options.seeds, "each seed is struck");
}
