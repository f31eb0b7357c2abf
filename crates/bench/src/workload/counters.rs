//! Conditional writes: counters, on which nothing else is written, and races for keys that are written in other ways, too.

use super::record::Ending;
use super::{CHANGING, CONDITIONAL, DOMAINS, Deed, KEYS, PATIENCE, Worker, key, value};
use crate::random::Random;
use areo_check::Kind;
use areo_client::{Domain, Error, Invalid, Obstacle, PutOptions, Version};
use std::time::{Duration, Instant};

/// Few, so that clients meet.
const COUNTERS: u64 = 2;

fn counter(number: u64) -> String {
    format!("counter{number}")
}

/// What a conditional write changes.
pub(super) struct Target {
    /// By its place in [`DOMAINS`].
    domain: usize,
    key: String,
    is_counter: bool,
    /// Whether it is deleted, if it is there.
    deletes: bool,
}

impl Target {
    fn counter(domain: usize, number: u64) -> Target {
        Target {
            domain,
            key: counter(number),
            is_counter: true,
            deletes: false,
        }
    }
}

/// A counter more often than another key.
pub(super) fn drawn(domain: usize, random: &mut Random) -> Target {
    match random.below(3) {
        0 => Target {
            domain,
            key: key(random.below(KEYS)),
            is_counter: false,
            deletes: random.below(4) == 0,
        },
        _ => Target::counter(domain, random.below(COUNTERS)),
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
    /// Whether conditional writes have one winner in this domain, as far as the client knows.
    pub(super) fn has_counters(&self, domain: usize) -> bool {
        let may = [CONDITIONAL, CHANGING].contains(&DOMAINS[domain]);
        may && self.domains[domain].has_one_winner()
    }

    /// Reads, and writes the next value on the version that was read; whether it won. `None`: it was given up in its middle.
    pub(super) async fn change(
        &mut self,
        target: Target,
        length: usize,
        death: Option<Duration>,
    ) -> Option<Result<bool, Error>> {
        let Target {
            domain,
            key,
            is_counter,
            deletes,
        } = target;
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
        let next = (!deletes || version.is_none()).then(|| {
            let unique = self.shared.recorder.borrow_mut().next_value();
            match is_counter {
                true => value::counted(value.as_deref().map_or(0, value::count) + 1, unique),
                false => unique,
            }
        });
        let changing = self.recorded(deed(Kind::ConditionalWrite), (next, version), death);
        let changed = changing.await;
        if is_counter {
            let mut increments = self.shared.increments.borrow_mut();
            let increments = increments.entry((domain, key)).or_default();
            match &changed {
                Some(Ok(Ending::Ok { .. })) => increments.done += 1,
                Some(Ok(Ending::Fail { .. }) | Err(Error::Unavailable { .. })) => {}
                None | Some(_) => increments.unknown += 1,
            }
        }
        changed.map(|ended| ended.map(|it| matches!(it, Ending::Ok { .. })))
    }

    /// Everything must succeed now: each counter rises once more, where conditional writes have one winner by now.
    pub(super) async fn finish_counters(&mut self, random: &mut Random) {
        let counters =
            (0..DOMAINS.len()).flat_map(|domain| (0..COUNTERS).map(move |it| (domain, it)));
        for (domain, number) in counters {
            let begun = Instant::now();
            while self.has_counters(domain) {
                let length = value::length(random);
                let target = Target::counter(domain, number);
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

/// Writes the value of this number and length on this version, or deletes it without a number. Nothing is written if the domain
/// has ceased to be conditional.
pub(super) async fn decide(
    domain: &Domain,
    key: &str,
    (number, length): (Option<u64>, usize),
    based_on: Option<Version>,
) -> Result<Ending, Error> {
    let decided = match (number, based_on) {
        (Some(number), _) => {
            let content = value::content(number, length);
            let put = domain.compare_and_put(key, content, based_on, PutOptions::default());
            put.await
        }
        (None, Some(version)) => domain.compare_and_delete(key, version).await,
        (None, None) => unreachable!("what is absent is not deleted"),
    };
    match decided {
        Ok(version) => Ok(Ending::Ok {
            value: number.map(value::name),
            version: Some(version),
        }),
        Err(Error::VersionConflict { latest, .. }) => Ok(Ending::Fail {
            found: latest.map(|object| {
                let version = object.version;
                (value::recognise(&object.into_bytes()), version)
            }),
        }),
        Err(error) if domain.name() == CHANGING && is_not_conditional(&error) => {
            Ok(Ending::Fail { found: None })
        }
        Err(error) => Err(error),
    }
}

fn is_not_conditional(error: &Error) -> bool {
    match error {
        Error::Obstructed { call } => call.obstacle == Some(Obstacle::NotConditional),
        Error::Invalid { reason } => matches!(reason, Invalid::NotConditional { .. }),
        _ => false,
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
