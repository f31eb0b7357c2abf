//! A planted violation: an invariant that fires when a kill strikes needs that kill, few operations, and nothing else.

use areo_sim::fault::Fault;
use areo_sim::{
    Options, Outcome, SHRINK_RUNS, Scheduler, Work, concerning, replay, restricted, shrink,
};
use std::collections::BTreeSet;
use std::thread;

const OPTIONS: Options = Options {
    first_seed: 0,
    seeds: 1,
    operations: 200,
    faults: true,
    work: Work::Drawn,
    scheduler: Scheduler::Mixed,
    twice: false,
    planted: Some(Fault::Kill),
    threads: 1,
    stop_at_first: false,
};

/// The first seeds in which the fault strikes beside others: kills are in half of all.
fn broken() -> impl Iterator<Item = Outcome> {
    let outcomes = (0..100).map(|seed| replay(seed, &OPTIONS));
    let is_rich = |outcome: &Outcome| {
        let kinds: BTreeSet<Fault> = outcome.strikes.iter().map(|(fault, _)| *fault).collect();
        outcome.violation.is_some() && kinds.len() > 5
    };
    outcomes.filter(is_rich)
}

#[test]
fn what_is_left_is_what_the_violation_needs() {
    let found: Vec<Outcome> = broken().take(4).collect();
    // Each search is a thread: one after the other they keep one core busy for minutes, and the others idle.
    let searches: Vec<Option<usize>> = thread::scope(|scope| {
        let begin = |broken| scope.spawn(move || shrinks_to_what_it_needs(broken));
        let begun: Vec<_> = found.iter().map(begin).collect();
        let end =
            |search: thread::ScopedJoinHandle<'_, _>| search.join().expect("no search panics");
        begun.into_iter().map(end).collect()
    });
    let (mut before, mut left, mut ended) = (0, 0, 0);
    for (broken, strikes) in found.iter().zip(searches) {
        if let Some(strikes) = strikes {
            before += broken.strikes.len();
            left += strikes;
            ended += 1;
        }
    }
    // Where most of several hundred strikes put the kill at its place, a search takes all the runs that it may.
    assert!(ended >= 2, "{ended} of 4 ended before that");
    // Most often the kill alone is left; other strikes may be what puts it at its place.
    assert!(10 * left <= before, "{left} of {before}");
}

/// Number of strikes in the shrunk run, if the search ended by itself: then none of them can be left out.
fn shrinks_to_what_it_needs(broken: &Outcome) -> Option<usize> {
    let shrunk = shrink(&OPTIONS, broken, || {}).expect("it broke a rule");
    let has_ended = shrunk.runs < SHRINK_RUNS;
    let strikes = &shrunk.outcome.strikes;
    assert!(strikes.iter().any(|(fault, _)| *fault == Fault::Kill));
    for strike in strikes.iter().filter(|_| has_ended) {
        let mut without = shrunk.restriction.clone();
        without.skipped.insert(*strike);
        let options = Options {
            operations: shrunk.operations,
            ..OPTIONS
        };
        let outcome = restricted(broken.seed, &options, &without, false);
        assert_eq!(outcome.violation, None, "{strike:?} is not needed");
    }
    let breaks_it = |operations: u64| {
        let options = Options {
            operations,
            ..OPTIONS
        };
        restricted(broken.seed, &options, &shrunk.restriction, false)
            .violation
            .is_some()
    };
    // Of a run that broke the rule before its first operation, or with it, one is left. Where as many are left as there were, no
    // smaller number breaks the rule: some kills strike only when all of the operations have begun.
    let has_fewer = shrunk.operations < broken.operations.max(2);
    assert!(has_fewer || (has_ended && !(1..shrunk.operations).any(breaks_it)));
    let again = restricted(
        broken.seed,
        &Options {
            operations: shrunk.operations,
            ..OPTIONS
        },
        &shrunk.restriction,
        true,
    );
    assert_eq!(again, shrunk.outcome, "it is found again");
    let violation = again.violation.expect("it still breaks the rule");
    assert!(violation.starts_with("planted: kill"), "{violation}");
    let near = concerning(&violation, &again.schedule);
    assert!(!near.is_empty() && near.len() <= again.schedule.len());
    has_ended.then_some(strikes.len())
}

#[test]
fn a_run_that_breaks_no_rule_is_not_shrunk() {
    let options = Options {
        planted: None,
        ..OPTIONS
    };
    assert!(shrink(&options, &replay(1, &options), || {}).is_none());
}

#[test]
fn only_what_concerns_the_violation_is_shown() {
    let schedule = [
        "client 0 -> server 1  request 4 key-0",
        "client 0 -> server 1  request 4 key-1",
        "client 0 -> server 2  request 4 key-0",
        "client 1 <- server 1  reply 9 Stored",
        "server 1 commits: Ok(())",
        "server 12 is down",
        "links are open",
    ]
    .map(str::to_owned);
    let near = concerning(
        "acknowledged_is_durable: server 1 shows 2 of key-0",
        &schedule,
    );
    let expected: Vec<String> = [0, 3, 4, 6]
        .map(|line: usize| schedule[line].clone())
        .into();
    assert_eq!(near, expected);
    assert_eq!(concerning("listing: what", &schedule), schedule);
}
