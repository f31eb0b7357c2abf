//! Conditional writes: counters, on which nothing else is written, and races for keys that are written in other ways, too.

use super::record::Ending;
use super::{CONDITIONAL, DOMAINS, Deed, KEYS, PATIENCE, Worker, key, value};
use crate::random::Random;
use areo_check::Kind;
use areo_client::Error;
use std::time::{Duration, Instant};

/// Few, so that clients meet.
const COUNTERS: u64 = 2;

fn counter(number: u64) -> String {
    format!("counter{number}")
}

/// What a conditional write changes.
pub(super) struct Target {
    key: String,
    is_counter: bool,
}

impl Target {
    fn counter(number: u64) -> Target {
        Target {
            key: counter(number),
            is_counter: true,
        }
    }
}

/// A counter more often than another key.
pub(super) fn drawn(random: &mut Random) -> Target {
    match random.below(3) {
        0 => Target {
            key: key(random.below(KEYS)),
            is_counter: false,
        },
        _ => Target::counter(random.below(COUNTERS)),
    }
}

/// Increments of one counter, by how they ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Increments {
    pub(crate) done: u64,
    pub(crate) unknown: u64,
}

impl Increments {
    /// What is wrong with a counter that is this far, if anything is.
    pub(crate) fn against(&self, count: u64) -> Option<String> {
        let Increments { done, unknown } = *self;
        if count < done {
            Some(format!("{} of {done} increments are lost", done - count))
        } else if count > done + unknown {
            Some(format!(
                "{done} increments succeeded, and what became of {unknown} is not known"
            ))
        } else {
            None
        }
    }
}

impl Worker {
    /// Reads, and writes the next value on the version that was read; whether it won. `None`: it was given up in its middle.
    pub(super) async fn change(
        &mut self,
        target: Target,
        length: usize,
        death: Option<Duration>,
    ) -> Option<Result<bool, Error>> {
        let Target { key, is_counter } = target;
        let domain = DOMAINS.len() - 1;
        assert_eq!(DOMAINS[domain], CONDITIONAL, "it is the last one");
        let deed = |kind| Deed {
            domain,
            kind,
            key: key.clone(),
            length,
        };
        let (value, version) = match self.operation(deed(Kind::Read), death).await? {
            Ok(Ending::Ok { value, version }) => (value, version),
            Ok(_) => return Some(Ok(false)),
            Err(error) => return Some(Err(error)),
        };
        let next = is_counter.then(|| {
            let count = value.as_deref().map_or(0, value::count) + 1;
            value::counted(count, self.shared.recorder.borrow_mut().next_value())
        });
        let changing = self.recorded(deed(Kind::ConditionalWrite), (next, version), death);
        let changed = changing.await;
        if is_counter {
            let mut increments = self.shared.increments.borrow_mut();
            let increments = increments.entry(key).or_default();
            match &changed {
                Some(Ok(Ending::Ok { .. })) => increments.done += 1,
                Some(Ok(Ending::Fail { .. }) | Err(Error::Unavailable { .. })) => {}
                None | Some(_) => increments.unknown += 1,
            }
        }
        changed.map(|ended| ended.map(|it| matches!(it, Ending::Ok { .. })))
    }

    /// Everything must succeed now: each counter rises once more.
    pub(super) async fn finish_counters(&mut self, random: &mut Random) {
        for number in 0..COUNTERS {
            let begun = Instant::now();
            loop {
                let length = value::length(random);
                let target = Target::counter(number);
                let wrong = match self.change(target, length, None).await {
                    Some(Ok(true)) => break,
                    Some(Ok(false)) if begun.elapsed() < PATIENCE => continue,
                    Some(Err(error)) => error.to_string(),
                    _ => "others were always faster".to_owned(),
                };
                self.shared.violation(format!(
                    "a counter did not rise although everything was mended: {wrong}"
                ));
                break;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lost_increment_and_one_too_many_are_seen() {
        let increments = Increments {
            done: 5,
            unknown: 2,
        };
        let wrong = |count| increments.against(count).is_some();
        assert_eq!(
            [4, 5, 6, 7, 8].map(wrong),
            [true, false, false, false, true]
        );
    }
}
