//! Join tokens, access keys and CAs, made, used, revoked and rotated by several processes at once while the root domain changes its members and
//! servers crash (`[X-41 chain]`, `[X-42 one-trust-log]`).

use areo_sim::fault::Fault;
use areo_sim::{Options, Scheduler, Work, run};

const OPTIONS: Options = Options {
    first_seed: 0,
    seeds: 40,
    operations: 300,
    faults: true,
    work: Work::Trusting,
    scheduler: Scheduler::Mixed,
    twice: false,
    planted: None,
    threads: 2,
    stop_at_first: false,
};

#[test]
fn each_change_of_the_trust_of_a_cluster_has_one_winner_that_is_found_ever_after() {
    let report = run(&OPTIONS, |_| {});
    let broken = report.violations.iter();
    let broken = broken.map(|outcome| format!("seed {}: {:?}", outcome.seed, outcome.violation));
    assert_eq!(broken.collect::<Vec<_>>(), [""; 0]);
    let met = [
        Fault::TokenContested,
        Fault::TicketRefused,
        Fault::TicketAsRead,
        Fault::RootMoved,
        Fault::ClientCrash,
    ];
    for fault in met {
        let count = report.fired.count(fault);
        assert!(count > 20, "{} came up {count} times", fault.name());
    }
}

/// Ids, secrets and nonces are drawn as all else is.
#[test]
fn a_seed_of_it_is_one_run() {
    let options = Options {
        seeds: 4,
        twice: true,
        ..OPTIONS
    };
    let report = run(&options, |_| {});
    assert!(report.violations.is_empty(), "{:?}", report.violations);
}
