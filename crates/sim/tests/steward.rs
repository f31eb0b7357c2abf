//! Instances of the autopilot replace a server that stopped for good, in a domain of any kind that clients read and write meanwhile.
//!
//! `AREO_STEWARD_SEEDS` says how many seeds.

use areo_sim::{Options, Work, run};

const VARIABLE: &str = "AREO_STEWARD_SEEDS";
/// Seeds that are run on every change.
const USUAL: u64 = 60;

fn options() -> Options {
    Options {
        seeds: USUAL,
        operations: 0,
        work: Work::Stewarding,
        threads: 2,
        ..Options::default()
    }
}

#[test]
fn a_server_that_stopped_is_replaced_without_an_operator_and_clients_notice_nothing() {
    let seeds = std::env::var(VARIABLE).map_or(Ok(USUAL), |text| text.parse());
    let options = Options {
        seeds: seeds.expect("a number of seeds"),
        ..options()
    };
    let report = run(&options, |_| {});
    let broken = report.violations.iter();
    let broken = broken.map(|outcome| format!("seed {}: {:?}", outcome.seed, outcome.violation));
    assert_eq!(broken.collect::<Vec<_>>(), [""; 0]);
    let changes = report.reconfigurations;
    println!("{changes} changes in {} seeds", report.seeds);
    // The domain and its journal, at least.
    assert!(changes >= options.seeds * 2, "{changes}");
}

#[test]
fn a_seed_of_it_is_one_run() {
    let options = Options {
        seeds: 4,
        twice: true,
        ..options()
    };
    let report = run(&options, |_| {});
    assert!(report.violations.is_empty(), "{:?}", report.violations);
}
