//! The journal of a cluster: its intents, the pause switch, and the lease of the one instance that acts.

use crate::intent::{Intent, State};
use serde::{Deserialize, Serialize};

/// Evidence is kept for 90 days.
const KEPT_MS: u64 = 90 * 24 * 3600 * 1000;

/// The journal as one instance has read it.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Journal {
    /// All intents, by number.
    pub intents: Vec<Intent>,
    /// An operator has paused the autopilot.
    pub paused: bool,
}

impl Journal {
    /// Intents that are not finished.
    pub fn open(&self) -> impl Iterator<Item = &Intent> {
        self.intents.iter().filter(|it| !it.state.is_final())
    }

    /// Open intents that were begun, or whose reason the last evaluation found. Of others nothing is known: they hold no server and no domain.
    pub fn wanted(&self) -> impl Iterator<Item = &Intent> {
        self.open().filter(|it| it.state.is_begun() || it.found > 0)
    }

    /// Intents that an operator declined, and whose reasons last.
    pub fn declined(&self) -> impl Iterator<Item = &Intent> {
        let declined = self.intents.iter();
        declined.filter(|it| it.state == State::Declined)
    }

    /// The number of the next intent.
    pub fn next_number(&self) -> u64 {
        self.intents.iter().map(|it| it.number).max().unwrap_or(0) + 1
    }

    /// The time at which the last change was begun or ended.
    pub fn last_change_ms(&self) -> Option<u64> {
        let changes = self.intents.iter().filter(|it| it.change.is_some());
        changes.filter_map(touched_ms).max()
    }

    /// Bytes that changes in the background have moved since then.
    pub fn background_bytes_since(&self, since_ms: u64) -> u64 {
        let moved = self.intents.iter().filter(|it| {
            it.rule().is_background() && touched_ms(it).is_some_and(|ms| ms >= since_ms)
        });
        moved
            .flat_map(|it| &it.change)
            .map(|change| change.bytes)
            .sum()
    }

    /// The numbers of finished intents that are old enough to be dropped.
    pub fn expired(&self, now_ms: u64) -> Vec<u64> {
        // A declined one holds back what is like it for as long as its reason lasts.
        let is_over = |it: &Intent| it.state.is_final() && it.state != State::Declined;
        let is_old = |it: &&Intent| is_over(it) && it.since_ms.saturating_add(KEPT_MS) < now_ms;
        self.intents
            .iter()
            .filter(is_old)
            .map(|it| it.number)
            .collect()
    }

    /// The journal with this intent in the place of the one with its number, or as a new one.
    pub fn put(&mut self, intent: Intent) {
        match self
            .intents
            .iter_mut()
            .find(|it| it.number == intent.number)
        {
            Some(known) => *known = intent,
            None => self.intents.push(intent),
        }
    }
}

/// The last time at which the intent's change was begun or ended.
fn touched_ms(intent: &Intent) -> Option<u64> {
    let is_change = |state: &State| state.is_begun() || matches!(state, State::Done { .. });
    let before = intent.history.iter().filter(|step| is_change(&step.state));
    let now = is_change(&intent.state).then_some(intent.since_ms);
    before.map(|step| step.since_ms).chain(now).max()
}

/// The lease: an object with one winner for each change of it.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Debug)]
pub struct Lease {
    /// The instance that acts.
    pub holder: String,
    /// Rises whenever the holder says that it is there.
    pub beat: u64,
}

/// The lease as one instance watches it, by its own clock alone: clocks of machines may differ by hours.
///
/// The holder writes the next beat well within the lease's time; another instance takes over once it has seen one beat for all of that time. A holder that was
/// stopped for longer may go on for a moment, because it cannot know. Each step of an intent is written on the version that was read, so that such a holder
/// loses that write.
#[derive(Clone, Debug)]
pub struct LeaseWatch {
    me: String,
    lease_ms: u64,
    /// The last lease that was read, and the time at which it was first read.
    seen: Option<(Lease, u64)>,
    /// The time just before the last beat of this instance was written.
    beaten_ms: Option<u64>,
}

impl LeaseWatch {
    /// The watch of an instance with a name that no other one has.
    pub fn new(me: &str, lease_ms: u64) -> LeaseWatch {
        LeaseWatch {
            me: me.into(),
            lease_ms,
            seen: None,
            beaten_ms: None,
        }
    }

    /// The time after which another instance takes over a lease that has not moved.
    pub fn lease_ms(&self) -> u64 {
        self.lease_ms
    }

    /// The lease to write, on the version that was just read: the next beat of the holder, or the first one of its successor.
    pub fn next(&mut self, read: Option<&Lease>, now_ms: u64) -> Option<Lease> {
        let mine = |beat| Lease {
            holder: self.me.clone(),
            beat,
        };
        let Some(read) = read else {
            return Some(mine(1));
        };
        if read.holder == self.me {
            return Some(mine(read.beat + 1));
        }
        self.beaten_ms = None;
        match &self.seen {
            Some((seen, since_ms)) if seen == read => {
                let is_over = now_ms.saturating_sub(*since_ms) >= self.lease_ms;
                is_over.then(|| mine(read.beat + 1))
            }
            _ => {
                self.seen = Some((read.clone(), now_ms));
                None
            }
        }
    }

    /// The lease was written; `begun_ms`: the time before that write began.
    pub fn written(&mut self, begun_ms: u64) {
        self.beaten_ms = Some(begun_ms);
    }

    /// True while no other instance can have taken the lease over: half of its time, for clocks that do not run alike.
    pub fn holds(&self, now_ms: u64) -> bool {
        let is_young = |beaten_ms| now_ms.saturating_sub(beaten_ms) < self.lease_ms / 2;
        self.beaten_ms.is_some_and(is_young)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::intent::tests::proposed;

    /// One register with one winner, and two instances whose clocks are hours apart.
    #[test]
    fn one_of_two_instances_holds_the_lease_and_the_other_takes_over() {
        let (mut a, mut b) = (LeaseWatch::new("a", 30_000), LeaseWatch::new("b", 30_000));
        let apart = 7_200_000;
        let first = a.next(None, 0).unwrap();
        a.written(0);
        assert!(a.holds(14_999) && !a.holds(15_000));
        assert_eq!(b.next(Some(&first), apart), None);
        let second = a.next(Some(&first), 10_000).unwrap();
        a.written(10_000);
        assert_eq!(second.beat, 2);
        // It has moved meanwhile: the time begins again.
        assert_eq!(b.next(Some(&second), apart + 30_000), None);
        assert_eq!(b.next(Some(&second), apart + 59_999), None);
        let taken = b.next(Some(&second), apart + 60_000).unwrap();
        b.written(apart + 60_000);
        assert_eq!(
            taken,
            Lease {
                holder: "b".into(),
                beat: 3
            }
        );
        assert!(b.holds(apart + 60_000) && !a.holds(60_000));
        assert_eq!(a.next(Some(&taken), 60_001), None);
    }

    #[test]
    fn finished_intents_are_kept_for_90_days() {
        let mut journal = Journal::default();
        assert_eq!(journal.next_number(), 1);
        let mut intent = proposed(4);
        journal.put(intent.clone());
        assert_eq!((journal.open().count(), journal.next_number()), (1, 5));
        assert!(journal.expired(u64::MAX).is_empty(), "it is open");
        intent
            .advance(State::Superseded { by: "x".into() }, 1000)
            .unwrap();
        journal.put(intent);
        let mut declined = proposed(5);
        declined.decline(1000).unwrap();
        journal.put(declined);
        assert_eq!((journal.open().count(), journal.intents.len()), (0, 2));
        assert!(journal.expired(1000 + KEPT_MS).is_empty());
        assert_eq!(journal.expired(1001 + KEPT_MS), [4]);
        assert_eq!(journal.last_change_ms(), None, "it was never begun");
    }

    #[test]
    fn a_change_counts_from_its_last_step() {
        let mut intent = proposed(1);
        let running = State::Running {
            step: "d".into(),
            done: 0,
            total: 1,
        };
        intent.advance(running, 2000).unwrap();
        let mut journal = Journal {
            intents: vec![intent.clone()],
            paused: false,
        };
        assert_eq!(journal.last_change_ms(), Some(2000));
        intent
            .advance(
                State::Done {
                    proof: "whole".into(),
                },
                3000,
            )
            .unwrap();
        journal.put(intent.clone());
        assert_eq!(journal.last_change_ms(), Some(3000));
        assert_eq!(
            journal.background_bytes_since(0),
            0,
            "a dead server is no background"
        );
        intent.reasons[0].rule = crate::rules::RuleName::Zone;
        journal.put(intent);
        assert_eq!(journal.background_bytes_since(3000), 4096);
        assert_eq!(journal.background_bytes_since(3001), 0);
    }
}
