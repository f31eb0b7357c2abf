//! How long reading and judging a large history takes.
//!
//! `cargo run --release -p areo-check --example million -- [OPERATIONS [KEYS]]` makes a history of a simulated shared
//! memory (eight clients at a time per key; reads, writes, deletes, coverable writes; some of unknown outcome), reads
//! and judges it, and prints the report and the times. It ends with 1 if anything does not hold.

use areo_check::{Event, EventKind, History, Kind, Verdict, Version, judge};
use std::time::Instant;

const CLIENTS: u64 = 8;

/// A linear congruential generator (Knuth's MMIX constants): the same history at every run.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// The state of one key: its version and value.
#[derive(Clone, Default)]
struct Register {
    version: Version,
    value: Option<String>,
}

/// One operation, all of it at once: invoked before and ended after the instant at which it takes effect.
fn operation(
    random: &mut Random,
    number: u64,
    key: &str,
    register: &mut Register,
    out: &mut Vec<Event<'static>>,
) {
    let effect = number * 1_000 + 10_000;
    let start = effect - random.below(4_000) - 1;
    let end = effect + random.below(4_000) + 1;
    let kind = match random.below(20) {
        0..=9 => Kind::Read,
        10..=15 => Kind::Write,
        16 => Kind::Delete,
        _ => Kind::CvrWrite,
    };
    let event = |t, event| {
        let client = format!("client-{}", number % CLIENTS);
        Event::new(t, client, number, event, kind, "default", key.to_owned())
    };
    let mut invoked = event(start, EventKind::Invoke);
    if kind == Kind::Read {
        let mut ended = event(end, EventKind::Ok);
        ended.value = register.value.clone().map(Into::into);
        ended.version = Some(register.version);
        out.extend([invoked, ended]);
        return;
    }
    let unknown = random.below(50) == 0;
    let takes_effect = !unknown || random.below(2) == 0;
    let version = Version {
        number: register.version.number + 1,
        client: number % CLIENTS + 1,
        counter: number + 1,
    };
    let value = (kind != Kind::Delete)
        .then(|| format!("{:016x}", number.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
    invoked.value = value.clone().map(Into::into);
    if kind == Kind::CvrWrite {
        invoked.based_on = Some(register.version);
    }
    if takes_effect {
        *register = Register { version, value };
    }
    out.push(invoked);
    out.push(match unknown {
        true => event(end, EventKind::Unknown),
        false => Event {
            version: Some(version),
            ..event(end, EventKind::Ok)
        },
    });
}

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
    let mut random = Random(1);
    let mut registers = vec![Register::default(); keys as usize];
    let mut events = Vec::with_capacity(operations as usize * 2);
    for number in 0..operations {
        let key = random.below(keys);
        let register = &mut registers[key as usize];
        operation(
            &mut random,
            number,
            &format!("key-{key}"),
            register,
            &mut events,
        );
    }
    events.sort_by_key(|event| event.t);
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
