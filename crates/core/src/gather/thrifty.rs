//! Thrifty calls (`[R-27 thrifty]`, `docs/spec` 6.8; Jehl and Meling, "The Case for Reconfiguration without Consensus"): a call asks as many members as
//! make a quorum, and the others only when those do not decide it.
//!
//! The others are asked as soon as a member refuses or is out of reach, when all that were asked have answered and nothing is
//! decided, or when a member keeps silent for [`timing::HEDGE`]. The tally inside sees fewer answers and nothing else: what decides
//! it, and which quorums meet, is as before.

use super::{ConfiguredTally, Decision, Event, Visit};
use crate::config::Thrift;
use crate::env::Env;
use crate::message::Body;
use crate::timing;
use std::time::Duration;

/// A tally that may ask one quorum first.
pub(super) struct Thrifty<T> {
    tally: T,
    /// Members that are left alone, by position. None is, once more are needed. Empty where all are asked, which costs nothing.
    spared: Vec<bool>,
    /// Members that were asked and have not answered, by position. Empty as `spared` is.
    owes: Vec<bool>,
}

impl<T: ConfiguredTally> Thrifty<T> {
    /// A call that asks the members that the configuration's options say. `is_query`: it writes nothing.
    pub(super) fn new<E: Env>(env: &E, at: &Visit, mut tally: T, is_query: bool) -> Thrifty<T> {
        let c = at.c();
        let spares = match c.options().thrift {
            Thrift::Off => false,
            Thrift::Queries => is_query,
            // A member that keeps several versions drops the old ones when it takes in a new one.
            Thrift::Calls => is_query || c.dap().is_replicated(),
        };
        if !spares {
            return Thrifty {
                tally,
                spared: Vec::new(),
                owes: Vec::new(),
            };
        }
        let preferred = (0..c.n()).find(|position| tally.prefers(*position));
        let start = preferred.unwrap_or_else(|| (env.random() % c.n() as u64) as usize);
        let mut order: Vec<usize> = (0..c.n()).map(|turn| (start + turn) % c.n()).collect();
        order.sort_by_key(|position| {
            let is_slow = env.slow(c.members()[*position]);
            (!at.has_early(*position), !tally.prefers(*position), is_slow)
        });
        let asked = c.quorums().quorum().max(tally.needed());
        // A call asks a member ([C-9 no-empty-call]).
        let is_asked = |position: &usize| tally.ask(*position).is_some();
        if let Some(first) = order.iter().position(is_asked).filter(|it| *it >= asked) {
            order.swap(0, first);
        }
        Thrifty::asking(tally, &order, asked)
    }

    /// A call that first asks the first `asked` members of this order.
    fn asking(tally: T, order: &[usize], asked: usize) -> Thrifty<T> {
        assert!(0 < asked && asked <= order.len(), "a quorum of the members");
        let mut spared = vec![false; order.len()];
        for at in &order[asked..] {
            spared[*at] = true;
        }
        assert!(
            tally.needed() <= asked,
            "those that are asked can decide the call"
        );
        // They will be: some may have answered before ([R-20 answers-for-later]).
        let owes = spared.iter().map(|spared| !spared).collect();
        Thrifty {
            tally,
            spared,
            owes,
        }
    }

    fn is_sparing(&self) -> bool {
        let places = (self.spared.len(), self.owes.len());
        assert_eq!(places.0, places.1, "a place in both for each member");
        self.spared.contains(&true)
    }

    /// The members that were spared are asked, too.
    fn ask_others(&mut self) -> Decision<T::Output> {
        let spared = std::mem::take(&mut self.spared);
        self.spared = vec![false; spared.len()];
        let others = (0..spared.len()).filter(|position| spared[*position]);
        let others: Vec<usize> = others.collect();
        assert!(!others.is_empty(), "a call that asks all has no others");
        assert!(!self.is_sparing(), "the others are asked once");
        Decision::Ask(others)
    }
}

impl<T: ConfiguredTally> ConfiguredTally for Thrifty<T> {
    type Output = T::Output;

    fn needed(&self) -> usize {
        self.tally.needed()
    }

    fn ask(&mut self, position: usize) -> Option<Body> {
        if self.spared.get(position) == Some(&true) {
            return None;
        }
        let body = self.tally.ask(position);
        if let Some(owes) = self.owes.get_mut(position) {
            *owes = body.is_some();
        }
        body
    }

    fn add(&mut self, from: usize, event: Event) -> Decision<T::Output> {
        let is_answer = matches!(event, Event::Reply(_));
        if let Some(owes) = self.owes.get_mut(from) {
            *owes = false;
        }
        match self.tally.add(from, event) {
            Decision::Pending if self.is_sparing() => {
                match is_answer && self.owes.contains(&true) {
                    true => Decision::Pending,
                    false => self.ask_others(),
                }
            }
            Decision::Ask(positions) => {
                for at in &positions {
                    if let Some(spared) = self.spared.get_mut(*at) {
                        *spared = false;
                    }
                }
                Decision::Ask(positions)
            }
            decision => decision,
        }
    }

    fn tick(&mut self) -> Decision<T::Output> {
        let is_sparing = self.is_sparing();
        let is_due = self.tally.patience().is_some_and(|it| it <= timing::HEDGE);
        let decision = match is_sparing && !is_due {
            true => Decision::Pending,
            false => self.tally.tick(),
        };
        match decision {
            Decision::Pending if is_sparing => self.ask_others(),
            Decision::Ask(mut positions) if is_sparing => {
                if let Decision::Ask(others) = self.ask_others() {
                    positions.extend(others);
                }
                positions.sort_unstable();
                positions.dedup();
                Decision::Ask(positions)
            }
            decision => decision,
        }
    }

    fn patience(&self) -> Option<Duration> {
        let hedge = self.is_sparing().then_some(timing::HEDGE);
        [self.tally.patience(), hedge].into_iter().flatten().min()
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Fold, Quorum};
    use super::*;
    use crate::message::{Refusal, Reply};

    fn tally(n: usize, quorum: usize, start: usize) -> impl ConfiguredTally<Output = usize> {
        let fold = |count: &mut usize, _from: usize, _reply: Reply| {
            *count += 1;
            Fold::Count
        };
        let tally = Quorum::new(n, quorum, Body::ReadConfig, 0, fold);
        let order: Vec<usize> = (0..n).map(|turn| (start + turn) % n).collect();
        Thrifty::asking(tally, &order, quorum)
    }

    fn asked(tally: &mut impl ConfiguredTally, n: usize) -> Vec<usize> {
        (0..n).filter(|it| tally.ask(*it).is_some()).collect()
    }

    #[test]
    fn exactly_a_quorum_is_asked_and_decides() {
        for n in 1..=7 {
            for (quorum, start) in (1..=n).flat_map(|quorum| (0..n).map(move |it| (quorum, it))) {
                let mut tally = tally(n, quorum, start);
                let first = asked(&mut tally, n);
                let mut expected: Vec<usize> = (0..quorum).map(|it| (start + it) % n).collect();
                expected.sort_unstable();
                assert_eq!(first, expected);
                let (last, others) = first.split_last().unwrap();
                for from in others {
                    let decision = tally.add(*from, Event::Reply(Reply::Config));
                    assert_eq!(decision, Decision::Pending);
                }
                let decision = tally.add(*last, Event::Reply(Reply::Config));
                assert_eq!(decision, Decision::Done(quorum));
            }
        }
    }

    #[test]
    fn the_others_are_asked_when_one_fails_or_time_runs_out() {
        let events = [
            Some(Event::Refused(Refusal::Damaged)),
            Some(Event::Unreachable),
            None,
        ];
        for event in events {
            let mut tally = tally(5, 3, 4);
            assert_eq!(asked(&mut tally, 5), [0, 1, 4]);
            assert_eq!(tally.patience(), Some(timing::HEDGE));
            let decision = match event.clone() {
                Some(event) => tally.add(4, event),
                None => tally.tick(),
            };
            assert_eq!(decision, Decision::Ask(vec![2, 3]), "{event:?}");
            assert_eq!(asked(&mut tally, 5).len(), 5);
            assert_eq!(tally.patience(), None);
            let answers = [0, 2, 3].map(|from| tally.add(from, Event::Reply(Reply::Config)));
            assert_eq!(answers[2], Decision::Done(3), "{event:?}");
        }
    }
}
