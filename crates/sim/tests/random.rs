//! Random runs: rules hold under every fault, and every fault happens.

use areo_sim::fault::Fault;
use areo_sim::{Options, Scheduler, Work, run};

const OPTIONS: Options = Options {
    first_seed: 0,
    seeds: 200,
    operations: 300,
    faults: true,
    work: Work::Drawn,
    scheduler: Scheduler::Mixed,
    twice: false,
    planted: None,
    threads: 2,
    stop_at_first: false,
};

#[test]
fn every_rule_holds_under_faults_and_every_fault_fires() {
    let report = run(&OPTIONS, |_| {});
    let broken: Vec<String> = report
        .violations
        .iter()
        .map(|outcome| format!("seed {}: {:?}", outcome.seed, outcome.violation))
        .collect();
    assert_eq!(broken, [""; 0]);
    assert_eq!(report.seeds, OPTIONS.seeds);
    assert!(report.operations >= OPTIONS.seeds * OPTIONS.operations);
    assert!(report.adopted > 0, "elements that were never adopted");
    assert!(report.merged > 0, "changes that were never merged");
    assert!(
        report.cross_checked > 0,
        "elements that were never compared"
    );
    assert!(
        report.tombstones_dropped > 0,
        "tombstones that were never dropped"
    );
    assert_eq!(report.fired.missing(), [], "faults that never fired");
}

#[test]
fn without_faults_nothing_goes_wrong() {
    let options = Options {
        faults: false,
        // Priorities alone may keep an answer back until an operation is out of time.
        scheduler: Scheduler::Random,
        seeds: 20,
        ..OPTIONS
    };
    let mut unknown: Vec<String> = Vec::new();
    let report = run(&options, |outcome| {
        let failed = outcome.history.lines().filter(|line| {
            // A coverable write that lost has found a version; a reconfiguration, that there was nothing to do.
            line.contains("\"event\":\"fail\"")
                && line.contains("\"version\":null")
                && !line.contains("\"kind\":\"reconfig\"")
        });
        unknown.extend(failed.map(|line| format!("seed {}: {line}", outcome.seed)));
    });
    assert!(report.violations.is_empty(), "{:?}", report.violations);
    // A writer that is slower than a sweep gets an error of its own, and so does one that meets the end of a domain's time as a
    // conditional one: that is no missing quorum.
    let faults = [Fault::SweptUpload, Fault::NotConditional];
    let others: u64 = faults.iter().map(|fault| report.fired.count(*fault)).sum();
    assert_eq!(unknown.len() as u64, others, "no quorum: {unknown:?}");
}

#[test]
fn clients_do_what_they_are_asked_for() {
    let of = |work| {
        let options = Options {
            faults: false,
            seeds: 30,
            work,
            ..OPTIONS
        };
        let report = run(&options, |_| {});
        assert!(report.violations.is_empty(), "{:?}", report.violations);
        let (large, removed) = (Fault::LargeWrite, Fault::FileRemoved);
        let fired = [large, removed].map(|fault| report.fired.count(fault));
        (report.reconfigurations, fired)
    };
    let (moves, _) = of(Work::Drawn);
    assert!(moves > 0);
    let (moves, [settled, removed]) = of(Work::Settled);
    assert!(moves == 0 && removed > 0);
    let (moves, [registers, removed]) = of(Work::Registers);
    assert!(moves == 0 && removed == 0);
    // When all is mended, everything is done once in each of the three domains. Before that clients write more than two
    // domains take then.
    assert!(
        registers > 0 && 2 * registers < 3 * (settled - registers),
        "{registers} {settled}"
    );
}
