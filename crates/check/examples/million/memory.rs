//! A simulated shared memory that is linearizable by construction, and the history of its clients.

use areo_check::{Event, EventKind, Kind, Version};

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

/// The history of `operations` operations on `keys` keys, in the order of time; the same for the same `seed`.
pub(crate) fn simulate(seed: u64, operations: u64, keys: u64) -> Vec<Event<'static>> {
    let mut random = Random(seed);
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
    events
}
