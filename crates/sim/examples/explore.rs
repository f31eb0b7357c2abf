//! Explores cases: `explore NAME...`, all without a name. Ends with 1 if one breaks a rule.

use areo_sim::explore::{Options, cases, explore};
use std::process::ExitCode;
use std::time::Instant;

fn main() -> ExitCode {
    let mut names: Vec<String> = std::env::args().skip(1).collect();
    if names.is_empty() {
        names.extend(cases::ALL.iter().map(|entry| entry.name.to_owned()));
    }
    for name in names {
        let case = cases::find(&name).expect("a case of this name");
        let began = Instant::now();
        let explored = explore(case, &Options::default(), |_, _| {});
        let seconds = began.elapsed().as_secs_f64();
        let outcomes = explored.outcomes.len();
        println!(
            "{name}: {} states, {} transitions, {} leaves, {outcomes} outcomes, {:?} automata, {:?} in {seconds:.1} s, exhaustive: {}",
            explored.states,
            explored.transitions,
            explored.leaves,
            explored.automata,
            explored.identity,
            explored.exhaustive
        );
        if let Some(violation) = explored.violation {
            println!("{}", violation.schedule.join("\n"));
            println!(
                "caught by {name} after {} states: {}",
                explored.states, violation.rule
            );
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}
