//! Instances of the autopilot in a simulated cluster: many seeds, each with servers that crash, links that break, operators, and instances that die, stop and have
//! clocks of their own. The instances are those that a process runs; the cluster around them is a model.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test")]

mod judge;
mod random;
mod reached;
mod run;
mod world;

use run::{Seen, run};

const SEEDS: u64 = 100;

#[test]
fn no_seed_breaks_a_rule_and_each_is_whole_in_the_end() {
    let mut seen = Seen::default();
    for seed in 0..SEEDS {
        seen.add(&run(seed));
    }
    println!("{seen:#?}");
    // What was not drawn was not shown.
    seen.assert_all_drawn();
}

#[test]
fn a_seed_is_one_run() {
    for seed in [1, 7, 42] {
        assert_eq!(run(seed), run(seed));
    }
}
