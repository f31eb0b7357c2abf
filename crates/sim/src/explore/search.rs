//! The search: breadth first, so that the first schedule that breaks a rule is a shortest one.

use super::engine::Engine;
use super::judge::{ObservedOperation, history_of};
use super::state::{CRASHED, State, Step};
use super::{Case, Identity};
use crate::random::mix;
use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};
use std::rc::Rc;

/// Limits and method of an exploration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Give up after this many states.
    pub states: u64,
    /// The part of a client that distinguishes two of its states.
    pub identity: Identity,
    /// True if a state that was reached before is not followed again. Otherwise every schedule is followed on its
    /// own: for comparison, on the tiniest cases.
    pub merge: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            states: 50_000_000,
            identity: Identity::Said,
            merge: true,
        }
    }
}

/// The result of an exploration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exploration {
    /// Number of different states.
    pub states: u64,
    /// Steps from one to another.
    pub transitions: u64,
    /// States in which every operation has ended.
    pub leaves: u64,
    /// Different things that clients can see in the end: results, and which operations precede which.
    pub outcomes: Vec<Vec<ObservedOperation>>,
    /// True if the whole case was explored, within its bound.
    pub exhaustive: bool,
    /// The identity of client states with which the exploration ended.
    pub identity: Identity,
    /// States of single clients and servers.
    pub automata: (usize, usize),
    /// The first rule that was broken, by a shortest schedule.
    pub violation: Option<Violation>,
}

/// A broken rule, with the schedule that breaks it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Name of the rule, and the sentence of the judge.
    pub rule: String,
    /// The schedule that breaks it: one line for each event.
    pub schedule: Vec<String>,
    /// The results that clients saw, in the format that `areo-lab check` reads.
    pub history: String,
}

/// Follows every schedule of the case until one breaks a rule. `progress` is told now and then
/// how many states were followed and how many were found.
pub fn explore(case: Case, options: &Options, mut progress: impl FnMut(u64, u64)) -> Exploration {
    let case = Rc::new(case);
    let identities = [Identity::Said, Identity::Recent, Identity::Fed];
    let least = options.identity.max(case.identity);
    let from = identities.iter().position(|it| *it == least);
    let mut failed = String::new();
    for identity in &identities[from.expect("one of them")..] {
        match Search::new(&case, options, *identity).run(&mut progress) {
            Ok(explored) => return explored,
            // Two pasts that had been taken for one turned out to differ.
            Err(why) => failed = why,
        }
    }
    panic!("case {}: {failed}", case.name)
}

/// States between two reports of progress.
const TOLD: u32 = 4096;

struct Search {
    engine: Engine,
    options: Options,
    identity: Identity,
    /// Hashes of states by number, and the state from which each was first reached.
    hashes: Vec<u128>,
    parents: Vec<u32>,
    known: HashSet<u128, BuildHasherDefault<KeptHash>>,
    frontier: VecDeque<(u32, State)>,
    verdicts: HashMap<Vec<u64>, Option<String>>,
    outcomes: HashMap<Vec<u64>, Vec<ObservedOperation>>,
    transitions: u64,
    leaves: u64,
}

/// Hashes are hashes already.
#[derive(Default)]
struct KeptHash(u64);

impl Hasher for KeptHash {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = mix(self.0 ^ u64::from(*byte));
        }
    }

    fn write_u128(&mut self, hash: u128) {
        self.0 = hash as u64;
    }
}

impl Search {
    fn new(case: &Rc<Case>, options: &Options, identity: Identity) -> Search {
        Search {
            engine: Engine::new(case, identity),
            options: *options,
            identity,
            hashes: Vec::new(),
            parents: Vec::new(),
            known: HashSet::default(),
            frontier: VecDeque::new(),
            verdicts: HashMap::new(),
            outcomes: HashMap::new(),
            transitions: 0,
            leaves: 0,
        }
    }

    fn run(mut self, progress: &mut impl FnMut(u64, u64)) -> Result<Exploration, String> {
        let start = self.engine.start();
        self.add(0, start);
        let mut next = Vec::new();
        while let Some((number, state)) = self.frontier.pop_front() {
            if self.hashes.len() as u64 >= self.options.states {
                return Ok(self.end(false, None));
            }
            if number.is_multiple_of(TOLD) {
                progress(number.into(), self.hashes.len() as u64);
            }
            if self.engine.is_over(&state) {
                // No client can see what servers do from here on.
                self.leaf(&state);
                continue;
            }
            self.engine.successors(&state, &mut next)?;
            if next.is_empty() && !self.engine.unstick(&state, &mut next)? {
                let rule = "liveness: an operation cannot end".to_owned();
                let violation = self.violation(number, None, rule)?;
                return Ok(self.end(false, Some(violation)));
            }
            for (successor, step) in std::mem::take(&mut next) {
                self.transitions += 1;
                if let Some(rule) = self.broken(&state, &successor) {
                    let violation = self.violation(number, Some((&successor, &step)), rule)?;
                    return Ok(self.end(false, Some(violation)));
                }
                self.add(number, successor);
            }
        }
        self.engine.check_spent()?;
        assert!(self.leaves > 0, "a schedule ends");
        Ok(self.end(true, None))
    }

    fn add(&mut self, parent: u32, state: State) {
        let hash = self.engine.hash(&state);
        if self.known.insert(hash) || !self.options.merge {
            let number = u32::try_from(self.hashes.len()).expect("the number of states is bounded");
            self.hashes.push(hash);
            self.parents.push(parent);
            self.frontier.push_back((number, state));
        }
    }

    fn leaf(&mut self, state: &State) {
        self.leaves += 1;
        let outcome = self.engine.outcome(state);
        let verdict = self.verdicts.get(&outcome);
        assert_eq!(
            verdict,
            Some(&None),
            "it was judged when the last one ended"
        );
        if let Entry::Vacant(place) = self.outcomes.entry(outcome) {
            place.insert(self.engine.observed(state));
        }
    }

    /// The rule that a step breaks at whose end an operation ended.
    fn broken(&mut self, before: &State, after: &State) -> Option<String> {
        let ended = |state, client| self.engine.seen(state, client).ended.len();
        let has_ended = |client: &usize| ended(after, *client) > ended(before, *client);
        let client = (0..after.clients.len()).find(has_ended)?;
        let number = ended(before, client);
        let outcome = self.engine.outcome(after);
        let judge = &self.engine.case.judge;
        let verdict = match self.verdicts.entry(outcome) {
            Entry::Occupied(known) => known.get().clone(),
            Entry::Vacant(place) => {
                let observed = self.engine.observed(after);
                place.insert((judge.seen)(&observed)).clone()
            }
        };
        verdict.or_else(|| {
            let observed = self.engine.observed_of(after, client, number);
            let views = self.engine.views(after);
            let views: Vec<&[_]> = views.iter().map(AsRef::as_ref).collect();
            (judge.held)(&self.engine.case, &observed, &views)
        })
    }

    /// The schedule that leads to a state and on by a step: found again from state to state. Its clients must do so indeed.
    fn violation(
        &mut self,
        number: u32,
        last: Option<(&State, &Step)>,
        rule: String,
    ) -> Result<Violation, String> {
        let mut path = vec![number];
        while let Some(place) = path.last().copied().filter(|place| *place != 0) {
            path.push(self.parents[place as usize]);
        }
        path.reverse();
        let (mut state, mut schedule) = (self.engine.start(), Vec::new());
        let mut fed = vec![Vec::new(); state.clients.len()];
        let mut next = Vec::new();
        for place in &path[1..] {
            let wanted = self.hashes[*place as usize];
            self.engine.successors(&state, &mut next)?;
            if next.is_empty() {
                self.engine.unstick(&state, &mut next)?;
            }
            let mut found = std::mem::take(&mut next).into_iter();
            let found = found.find(|(state, _)| self.engine.hash(state) == wanted);
            let (successor, step) = found.expect("it was found before");
            self.engine.tell(&state, &successor, &step, &mut schedule);
            step.feeds(&mut fed);
            state = successor;
        }
        if let Some((successor, step)) = last {
            self.engine.tell(&state, successor, step, &mut schedule);
            step.feeds(&mut fed);
            state = successor.clone();
        }
        for (client, fed) in fed.iter().enumerate() {
            self.engine
                .check_past(client, state.clients[client].node, fed)?;
        }
        let history = history_of(&self.engine.observed(&state)).0;
        Ok(Violation {
            rule,
            schedule,
            history,
        })
    }

    fn end(self, exhaustive: bool, violation: Option<Violation>) -> Exploration {
        let mut outcomes: Vec<_> = self.outcomes.into_iter().collect();
        outcomes.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        let clients = self
            .engine
            .clients
            .iter()
            .map(super::clients::Automaton::nodes);
        let servers = self
            .engine
            .servers
            .iter()
            .map(super::servers::Automaton::states);
        Exploration {
            states: self.hashes.len() as u64,
            transitions: self.transitions,
            leaves: self.leaves,
            outcomes: outcomes.into_iter().map(|(_, seen)| seen).collect(),
            exhaustive,
            identity: self.identity,
            automata: (clients.sum(), servers.sum()),
            violation,
        }
    }
}

impl Engine {
    /// The results that the clients saw, as numbers: equal for equal results.
    fn outcome(&mut self, state: &State) -> Vec<u64> {
        let mut outcome = Vec::new();
        for (client, part) in state.clients.iter().enumerate() {
            let endings = self.endings_of(client, part.node);
            outcome.push(endings.len() as u64);
            outcome.extend(&*endings);
            outcome.extend(part.after.iter().map(|count| u64::from(*count)));
        }
        outcome
    }

    fn observed(&self, state: &State) -> Vec<ObservedOperation> {
        let of_client = |client: usize| {
            let invoked = self.seen(state, client).invoked;
            (0..invoked).map(move |number| self.observed_of(state, client, number))
        };
        (0..state.clients.len()).flat_map(of_client).collect()
    }

    fn observed_of(&self, state: &State, client: usize, number: usize) -> ObservedOperation {
        let clients = state.clients.len();
        let operation = &self.case.clients[client][number];
        let after = &state.clients[client].after[number * clients..(number + 1) * clients];
        ObservedOperation {
            client,
            number,
            label: operation.label.clone(),
            kind: operation.kind.clone(),
            after: after.iter().map(|count| usize::from(*count)).collect(),
            ended: self.seen(state, client).ended.get(number).cloned(),
        }
    }

    /// The answers of each server in this state; for a crashed server those before the crash.
    fn views(&self, state: &State) -> Vec<Rc<[super::Answers]>> {
        let view = |server: usize| self.servers[server].view(state.servers[server] & !CRASHED);
        (0..self.servers.len())
            .map(|server| Rc::clone(view(server)))
            .collect()
    }
}
