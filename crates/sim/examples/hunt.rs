//! Runs seeds until one breaks a rule:
//! `hunt FIRST SEEDS OPERATIONS [nofaults|plain|registers|trust|replay|replay-trust|replay-random|replay-pct|replay-nofaults|random|pct|twice]`.
//! Ends with 1 if one did. With `plain` there are neither faults nor reconfigurations, with `registers` no files and no
//! values in blocks either, and five servers in each domain. With `trust` most operations are about join tokens, keys and
//! CAs. With `twice` each seed is run twice, and both runs must be the same. With `replay`, FIRST is run once and its
//! schedule is printed; with `random` or `pct`, that is the scheduler of all.

use areo_sim::{Options, Scheduler, Work, replay, run};
use std::process::ExitCode;
use std::time::Instant;

#[global_allocator]
static ALLOCATOR: areo_allocator::Allocator = areo_allocator::Allocator;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |place: usize, default: u64| {
        let text = arguments.get(place);
        text.map_or(default, |text| text.parse().expect("a number"))
    };
    let how = arguments.get(3).map(String::as_str);
    let options = Options {
        first_seed: number(0, 0),
        seeds: number(1, 100),
        operations: number(2, 300),
        faults: !matches!(
            how,
            Some("nofaults" | "replay-nofaults" | "plain" | "registers")
        ),
        work: match how {
            Some("plain") => Work::Settled,
            Some("registers") => Work::Registers,
            Some("trust" | "replay-trust") => Work::Trusting,
            _ => Work::Drawn,
        },
        scheduler: match how {
            Some("random" | "replay-random" | "replay-nofaults") => Scheduler::Random,
            Some("pct" | "replay-pct") => Scheduler::Pct { depth: None },
            _ => Scheduler::Mixed,
        },
        twice: how == Some("twice"),
        stop_at_first: true,
        ..Options::default()
    };
    if how.is_some_and(|how| how.starts_with("replay")) {
        let outcome = replay(options.first_seed, &options);
        println!("{}\n{}", outcome.history, outcome.schedule.join("\n"));
        println!("{:016x} {:?}", outcome.hash, outcome.violation);
        return ExitCode::from(u8::from(outcome.violation.is_some()));
    }
    let began = Instant::now();
    let report = run(&options, |_| {});
    let seconds = began.elapsed().as_secs_f64();
    let (seeds, operations, events) = (report.seeds, report.operations, report.events);
    let (moves, merged, adopted) = (report.reconfigurations, report.merged, report.adopted);
    println!("{}", report.fired);
    println!(
        "{seeds} seeds, {operations} operations, {moves} reconfigurations, {merged} merged, {adopted} elements adopted, {events} events in {seconds:.1} s: {:.0} operations per second",
        operations as f64 / seconds
    );
    match report.violations.first() {
        None => ExitCode::SUCCESS,
        Some(outcome) => {
            let violation = outcome.violation.as_deref().unwrap_or_default();
            println!(
                "caught by seed {} after {seeds} seeds: {violation}",
                outcome.seed
            );
            ExitCode::FAILURE
        }
    }
}
