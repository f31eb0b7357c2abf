//! A run is a function of its seed: what was found can be found again.

use areo_sim::{Options, Outcome, Scheduler, Work, replay, run};

const OPTIONS: Options = Options {
    first_seed: 100,
    seeds: 12,
    operations: 300,
    faults: true,
    work: Work::Drawn,
    scheduler: Scheduler::Mixed,
    twice: false,
    planted: None,
    threads: 2,
    stop_at_first: false,
};

fn outcomes(options: &Options) -> Vec<Outcome> {
    let mut outcomes = Vec::new();
    run(options, |outcome| outcomes.push(outcome.clone()));
    outcomes.sort_by_key(|outcome| outcome.seed);
    outcomes
}

#[test]
fn the_same_seed_makes_the_same_run() {
    let (first, second) = (outcomes(&OPTIONS), outcomes(&OPTIONS));
    assert_eq!(first, second);
    let mut hashes: Vec<u64> = first.iter().map(|outcome| outcome.hash).collect();
    hashes.sort_unstable();
    hashes.dedup();
    assert_eq!(hashes.len(), first.len(), "other seeds make other runs");
}

#[test]
fn a_replay_is_the_same_run_with_its_schedule() {
    let run = &outcomes(&OPTIONS)[3];
    let again = replay(run.seed, &OPTIONS);
    assert_eq!((run.hash, &run.history), (again.hash, &again.history));
    assert!(run.schedule.is_empty() && !again.schedule.is_empty());
    assert!(
        again.schedule.iter().any(|line| line.contains("request")),
        "{:?}",
        again.schedule
    );
}
