//! Measures the time to read and judge a large history.
//!
//! `cargo run --release -p areo-check --example million -- [OPERATIONS [KEYS]]` makes a history of a simulated shared
//! memory (eight clients at a time per key; reads, writes, deletes, coverable writes; some of unknown outcome), reads
//! and judges it, and prints the report and the times. It ends with 1 if anything does not hold.

mod memory;

use areo_check::{History, Verdict, judge};
use std::time::Instant;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let mut number = |default: u64| {
        let argument = arguments.next();
        argument.map_or(default, |text| {
            text.parse()
                .expect("arguments are numbers of operations and of keys")
        })
    };
    let (operations, keys) = (number(1_000_000), number(1_000));
    let events = memory::simulate(1, operations, keys);
    let mut lines = Vec::new();
    for event in &events {
        event.write(&mut lines).expect("memory can be written to");
    }
    drop(events);

    let start = Instant::now();
    let history = History::read(lines.as_slice()).expect("the history is well-formed");
    let read = start.elapsed();
    let start = Instant::now();
    let report = judge(&history);
    let judged = start.elapsed();
    print!("{report}");
    println!(
        "\n{} MB read in {:.2} s, judged in {:.2} s",
        lines.len() / 1_000_000,
        read.as_secs_f64(),
        judged.as_secs_f64()
    );
    std::process::exit(i32::from(report.verdict != Verdict::Holds));
}
