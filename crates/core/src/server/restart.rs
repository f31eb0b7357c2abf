//! The restart of 5.5 (`docs/spec` 2.11): all members of a configuration agree on one value, for one object, and each carries it
//! out before any goes on. Pure: what a member hears goes in, what it says comes out.
//!
//! A member *agrees* on a value, until it knows that all members do and know that all do; then it *applies* the value, until the same
//! holds of that; then it is idle again. Of several values the largest is agreed on. So no member applies a value that another one
//! does not agree on, and none is idle again before all have applied it. All members are needed, as published: one that is silent
//! holds the others where they are.
//!
//! It works from any state of its own and of what it has heard. A state to which no run leads is noticed by the members that hear of
//! it: they say so (*recovering*), until all do, and are idle then. The values that were agreed on are lost by that, so that a
//! member that has a reason to propose one proposes it again.
//!
//! A note says what its sender is at and what it has heard of the receiver: the echo. The newest note counts. One that is lost costs
//! time, since members go on saying what they say.

use crate::message::{Phase, Stance};

/// The state of one member, and the states that it has heard.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub(super) struct Restart<T> {
    own: usize,
    /// The last stance of each member, by position; in its own place its own.
    said: Vec<Stance<T>>,
    /// The last stance of this member that each member has heard (`echo`).
    echo: Vec<Stance<T>>,
    /// Members that are where it is and know that all are (`seen`).
    seen: Vec<bool>,
}

impl<T: Copy + Ord> Restart<T> {
    /// The state of the member in this place of `n`: nothing was said.
    pub(super) fn new(own: usize, n: usize) -> Restart<T> {
        assert!(own < n, "it is a member");
        Restart {
            own,
            said: vec![Stance::IDLE; n],
            echo: vec![Stance::IDLE; n],
            seen: vec![false; n],
        }
    }

    /// The stance that it says to all others.
    pub(super) fn stance(&self) -> Stance<T> {
        self.said[self.own]
    }

    /// The stance of this member that it has heard.
    pub(super) fn echo(&self, member: usize) -> Stance<T> {
        self.said[member]
    }

    /// All are idle, and know so, as far as it has heard.
    pub(super) fn is_idle(&self) -> bool {
        let heard = self.others().map(|member| &self.echo[member]);
        self.said
            .iter()
            .chain(heard)
            .all(|it| it.phase == Phase::Idle)
    }

    /// Proposes a value, unless something is under way.
    pub(super) fn propose(&mut self, value: T) {
        if self.is_idle() {
            self.turn_to(Phase::Agreeing(value));
            self.step();
        }
    }

    /// Handles a note of another member: its own stance, and the stance of this member as the sender has heard it.
    pub(super) fn hear(&mut self, member: usize, said: Stance<T>, echo: Stance<T>) {
        assert_ne!(member, self.own, "no member tells itself");
        self.said[member] = said;
        self.echo[member] = echo;
        self.step();
    }

    fn others(&self) -> impl Iterator<Item = usize> + use<T> {
        let own = self.own;
        (0..self.said.len()).filter(move |member| *member != own)
    }

    fn turn_to(&mut self, phase: Phase<T>) {
        self.said[self.own] = Stance { phase, all: false };
        self.seen.fill(false);
    }

    /// The member has gone one step further, which it does only when all are where this one is.
    fn is_ahead(&self, member: usize) -> bool {
        match (self.stance().phase, self.said[member].phase) {
            (Phase::Agreeing(own), Phase::Applying(value)) => own == value,
            (Phase::Applying(_), Phase::Idle) => true,
            _ => false,
        }
    }

    /// The member is where this one is, and has heard that.
    fn is_level(&self, member: usize) -> bool {
        let phase = self.stance().phase;
        self.said[member].phase == phase && self.echo[member].phase == phase
            || self.is_ahead(member)
    }

    /// The member knows that all are where it is, and that this one knows it.
    fn knows(&self, member: usize) -> bool {
        self.seen[member] && self.echo[member] == self.stance() || self.is_ahead(member)
    }

    /// True if no run leads to the heard stances: while a member applies a value no other one is at another value;
    /// and members are idle only before all agree, or after all have applied.
    fn is_impossible(&self) -> bool {
        let phases = || self.said.iter().map(|said| said.phase);
        let applied = phases().find_map(|phase| match phase {
            Phase::Applying(value) => Some(value),
            _ => None,
        });
        let Some(applied) = applied else {
            return false;
        };
        let differs = |phase| match phase {
            Phase::Agreeing(value) | Phase::Applying(value) => value != applied,
            Phase::Idle | Phase::Recovering => false,
        };
        let agrees = |phase| matches!(phase, Phase::Agreeing(_));
        phases().any(differs) || phases().any(agrees) && phases().any(|it| it == Phase::Idle)
    }

    /// Goes as far as the heard stances allow.
    pub(super) fn step(&mut self) {
        let own = self.stance();
        let recovers = |member: usize| self.said[member].phase == Phase::Recovering;
        if own.phase == Phase::Recovering {
            let is_calm = |member: usize| {
                let is_idle = self.said[member].phase == Phase::Idle;
                let knows = self.echo[member].phase == Phase::Recovering;
                knows && (is_idle || recovers(member))
            };
            if self.others().all(is_calm) {
                self.turn_to(Phase::Idle);
            }
            return;
        }
        if own.phase != Phase::Idle && self.others().any(recovers) || self.is_impossible() {
            return self.turn_to(Phase::Recovering);
        }
        self.join();
        if self.stance().phase == Phase::Idle {
            return self.turn_to(Phase::Idle);
        }
        let all = self.others().all(|member| self.is_level(member));
        self.said[self.own].all = all;
        for member in self.others() {
            let Stance { phase, all: knows } = self.said[member];
            let is_level = phase == self.stance().phase && knows || self.is_ahead(member);
            self.seen[member] = all && (self.seen[member] || is_level);
        }
        if all && self.others().all(|member| self.knows(member)) {
            match self.stance().phase {
                Phase::Agreeing(value) => self.turn_to(Phase::Applying(value)),
                Phase::Applying(_) => self.turn_to(Phase::Idle),
                Phase::Idle | Phase::Recovering => unreachable!("they ended before"),
            }
        }
    }

    /// Agrees on the largest value on which another member does, unless an earlier one is still being applied.
    fn join(&mut self) {
        let agreed = self.said.iter().filter_map(|said| match said.phase {
            Phase::Agreeing(value) => Some(value),
            _ => None,
        });
        let Some(largest) = agreed.max() else {
            return;
        };
        let is_over = |said: &Stance<T>| matches!(said.phase, Phase::Idle | Phase::Agreeing(_));
        match self.stance().phase {
            Phase::Idle if self.said.iter().all(is_over) => self.turn_to(Phase::Agreeing(largest)),
            Phase::Agreeing(own) if own < largest => self.turn_to(Phase::Agreeing(largest)),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    const VALUES: [u8; 2] = [1, 2];
    /// Rounds, or notes, after which members that are not idle never will be.
    const ROUNDS: usize = 40;
    const NOTES: usize = 20_000;

    /// All that a member may say.
    fn sayings() -> Vec<Stance<u8>> {
        let [agreeing, applying] = [Phase::Agreeing, Phase::Applying].map(|of| VALUES.map(of));
        let phases = [Phase::Idle, Phase::Recovering];
        let phases = phases.into_iter().chain(agreeing).chain(applying);
        let both = |phase| [false, true].map(|all| Stance { phase, all });
        phases.flat_map(both).collect()
    }

    fn are_idle(members: &[Restart<u8>]) -> bool {
        let is_idle = |it: &Restart<u8>| it.is_idle() && !it.seen.contains(&true);
        members.iter().all(is_idle)
    }

    /// `to` hears what `from` says now.
    fn tell(members: &mut [Restart<u8>], from: usize, to: usize) {
        let (said, echo) = (members[from].stance(), members[from].echo(to));
        members[to].hear(from, said, echo);
    }

    /// All hear of all, at once.
    fn round(members: &mut [Restart<u8>]) {
        let before = members.to_vec();
        for member in members {
            let own = member.own;
            for from in &before {
                if from.own != own {
                    member.said[from.own] = from.stance();
                    member.echo[from.own] = from.echo(own);
                }
            }
            member.step();
        }
    }

    /// Three members that know of each other what they are at. `echoes`: two bits for each pair, whether the echo is right, but for
    /// `all`, or of something else; `seen`: a bit for each pair.
    fn members(own: [Stance<u8>; 3], mut echoes: u32, mut seen: u32) -> Vec<Restart<u8>> {
        let mut members: Vec<Restart<u8>> = (0..3).map(|place| Restart::new(place, 3)).collect();
        for member in &mut members {
            member.said = own.to_vec();
            let me = own[member.own];
            for other in member.others() {
                let something_else = match me.phase {
                    Phase::Recovering => Phase::Idle,
                    _ => Phase::Recovering,
                };
                let (phase, all) = match echoes % 3 {
                    0 => (me.phase, false),
                    1 => (me.phase, true),
                    _ => (something_else, false),
                };
                member.echo[other] = Stance { phase, all };
                member.seen[other] = seen & 1 == 1;
                (echoes, seen) = (echoes / 3, seen >> 1);
            }
        }
        members
    }

    /// Every state of `prp`, `all`, `echo` and `seen` of three members and two values, but for the order of members: all are idle
    /// after some rounds. An echo that is wrong is as good as any other.
    #[test]
    fn three_members_are_idle_soon_from_every_state() {
        let (sayings, mut met) = (sayings(), BTreeSet::new());
        let (mut states, mut most) = (0_u64, 0);
        for a in 0..sayings.len() {
            for b in a..sayings.len() {
                for c in b..sayings.len() {
                    for (echoes, seen) in
                        (0..729).flat_map(|it| (0..64).map(move |seen| (it, seen)))
                    {
                        let own = [a, b, c].map(|place| sayings[place]);
                        let mut members = members(own, echoes, seen);
                        members.iter_mut().for_each(Restart::step);
                        let (mut rounds, mut path) = (0, Vec::new());
                        while !are_idle(&members) && !met.contains(&members) {
                            path.push(members.clone());
                            round(&mut members);
                            rounds += 1;
                            assert!(rounds < ROUNDS, "{own:?} {echoes} {seen}: {members:?}");
                        }
                        met.extend(path);
                        (states, most) = (states + 1, rounds.max(most));
                    }
                }
            }
        }
        assert_eq!(states, 364 * 729 * 64);
        assert!(most < ROUNDS / 2, "{most}");
    }

    /// The generator of Marsaglia.
    fn draw(state: &mut u64, below: usize) -> usize {
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        (*state % below as u64) as usize
    }

    /// Two others that meet, at random.
    fn meeting(state: &mut u64, n: usize) -> (usize, usize) {
        let from = draw(state, n);
        (from, (from + 1 + draw(state, n - 1)) % n)
    }

    /// All of 2 to 4 members are idle soon, for random stances that they have heard of each other, and notes in a random
    /// order.
    #[test]
    fn members_are_idle_soon_from_drawn_states_in_drawn_orders() {
        let (sayings, mut state) = (sayings(), 0x5eed);
        for _ in 0..100_000 {
            let n = 2 + draw(&mut state, 3);
            let mut members: Vec<Restart<u8>> = (0..n).map(|own| Restart::new(own, n)).collect();
            for member in &mut members {
                for place in 0..n {
                    member.said[place] = sayings[draw(&mut state, sayings.len())];
                    member.echo[place] = sayings[draw(&mut state, sayings.len())];
                    member.seen[place] = place != member.own && draw(&mut state, 2) == 1;
                }
            }
            let mut notes = 0;
            while !are_idle(&members) {
                let (from, to) = meeting(&mut state, n);
                tell(&mut members, from, to);
                notes += 1;
                assert!(notes < NOTES, "{members:?}");
            }
        }
    }

    /// Several propose, and hear of each other in any order: all apply one value, which one of them proposed, and none recovers.
    #[test]
    fn all_apply_what_all_have_agreed_on() {
        let mut state = 0x5eed;
        for _ in 0..50_000 {
            let n = 2 + draw(&mut state, 4);
            let mut members: Vec<Restart<u8>> = (0..n).map(|own| Restart::new(own, n)).collect();
            members[0].propose(2);
            for member in &mut members[1..] {
                if draw(&mut state, 2) == 0 {
                    member.propose(1 + draw(&mut state, 3) as u8);
                }
            }
            let largest = members.iter().map(|it| it.stance().phase).max();
            let (mut applied, mut notes) = (BTreeSet::new(), 0);
            let mut values = BTreeSet::new();
            while !are_idle(&members) {
                let (from, to) = meeting(&mut state, n);
                let before = members[to].stance().phase;
                tell(&mut members, from, to);
                let after = members[to].stance().phase;
                if let Phase::Applying(value) = after {
                    applied.insert(to);
                    values.insert(value);
                }
                assert_ne!(after, Phase::Recovering, "{members:?}");
                let is_first = before != after && after == Phase::Idle;
                assert!(!is_first || applied.len() == n, "all have applied it");
                notes += 1;
                assert!(notes < NOTES, "{members:?}");
            }
            assert_eq!((applied.len(), values.len()), (n, 1), "{largest:?}");
        }
    }

    /// A member that says nothing holds the others.
    #[test]
    fn all_wait_for_a_silent_member() {
        let mut members: Vec<Restart<u8>> = (0..3).map(|own| Restart::new(own, 3)).collect();
        members[0].propose(7);
        for _ in 0..100 {
            tell(&mut members, 0, 1);
            tell(&mut members, 1, 0);
        }
        for member in &members[..2] {
            assert_eq!(member.stance().phase, Phase::Agreeing(7));
        }
    }
}
