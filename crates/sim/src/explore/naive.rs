//! Exploration without any reduction, to compare the other with on the tiniest cases: every message is taken on its own, every answer
//! read on its own, every operation begun on its own, in every order; patience does not run out. Two moments are the same
//! if every client did and was fed the same in the same order, and every server too.

use super::judge::ObservedOperation;
use super::node::{LiveClient, LiveServer};
use super::{Answers, Case, Outcome};
use std::collections::{BTreeSet, HashSet};

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Choice {
    Invoke(usize),
    Take(usize, usize),
    Read(usize, usize),
}

/// The results of a client's operations, each with the number of each client's operations that had ended when it
/// began.
pub type Leaf = Vec<(Outcome, Vec<usize>)>;

/// The result of an exploration that merges no schedules.
#[derive(Default)]
pub struct Exploration {
    /// Number of different moments.
    pub states: usize,
    /// Final results that differ from each other.
    pub leaves: Vec<Leaf>,
    /// Violations that the judge found in the results of the clients.
    pub broken: BTreeSet<String>,
}

/// The steps of one client or server; each beginning with the number of operations that had ended then.
type Past = Vec<(Choice, Vec<usize>)>;

struct Moment<'a> {
    case: &'a Case,
    clients: Vec<LiveClient>,
    servers: Vec<LiveServer>,
    /// The unread answers, by client and message.
    answers: Vec<Vec<Option<Answers>>>,
    taken: Vec<Vec<bool>>,
    after: Vec<Vec<Vec<usize>>>,
    /// The steps of each client, then of each server.
    past: Vec<Vec<Choice>>,
}

impl Moment<'_> {
    fn new(case: &Case) -> Moment<'_> {
        let clients = case.clients.len();
        let live = |(number, program)| LiveClient::new(number, program);
        let server = |id: &_| LiveServer::new(case, *id);
        Moment {
            case,
            clients: case.clients.iter().enumerate().map(live).collect(),
            servers: case.servers.iter().map(server).collect(),
            answers: vec![Vec::new(); clients],
            taken: vec![Vec::new(); clients],
            after: vec![Vec::new(); clients],
            past: vec![Vec::new(); clients + case.servers.len()],
        }
    }

    fn choose(&mut self, choice: Choice) {
        let (Choice::Invoke(client) | Choice::Take(client, _) | Choice::Read(client, _)) = choice;
        match choice {
            Choice::Invoke(_) => {
                let ended = self.clients.iter().map(|client| client.ended.len());
                self.after[client].push(ended.collect());
                self.clients[client].invoke();
            }
            Choice::Take(_, number) => {
                let sent = self.clients[client].world.sent()[number].clone();
                let server = self.case.servers.iter().position(|id| *id == sent.to);
                let server = server.expect("a server of the case");
                self.answers[client][number] = self.servers[server].take(&sent.what);
                self.taken[client][number] = true;
                self.past[self.clients.len() + server].push(choice);
            }
            Choice::Read(_, number) => {
                let answer = self.answers[client][number].take().expect("it is there");
                self.clients[client].answer(number, &answer);
            }
        }
        if !matches!(choice, Choice::Take(..)) {
            self.past[client].push(choice);
        }
        let sent = self.clients[client].world.sent();
        self.answers[client].resize(sent.len(), None);
        for lost in sent.iter().skip(self.taken[client].len()) {
            let is_lost = lost.call.is_none() && !self.case.notes;
            self.taken[client].push(is_lost);
        }
    }

    fn choices(&self) -> Vec<Choice> {
        let mut choices = Vec::new();
        for (client, live) in self.clients.iter().enumerate() {
            if !live.is_busy() && live.invoked < self.case.clients[client].len() {
                choices.push(Choice::Invoke(client));
            }
            for number in 0..self.taken[client].len() {
                if !self.taken[client][number] {
                    choices.push(Choice::Take(client, number));
                } else if self.answers[client][number].is_some() {
                    choices.push(Choice::Read(client, number));
                }
            }
        }
        choices
    }

    fn observed(&self) -> Vec<ObservedOperation> {
        let mut observed = Vec::new();
        for (client, live) in self.clients.iter().enumerate() {
            for (number, after) in self.after[client].iter().enumerate() {
                let operation = &self.case.clients[client][number];
                observed.push(ObservedOperation {
                    client,
                    number,
                    label: operation.label.clone(),
                    kind: operation.kind.clone(),
                    after: after.clone(),
                    ended: live.ended.get(number).cloned(),
                });
            }
        }
        observed
    }

    fn is_over(&self) -> bool {
        let programs = self.clients.iter().zip(&self.case.clients);
        programs
            .into_iter()
            .all(|(live, program)| live.ended.len() == program.len())
    }
}

/// Explores, running everything again from the start for each moment.
pub fn explore(case: &Case) -> Exploration {
    let mut known: HashSet<Vec<Past>> = HashSet::new();
    let mut explored = Exploration::default();
    let mut stack: Vec<Vec<Choice>> = vec![Vec::new()];
    while let Some(path) = stack.pop() {
        let mut moment = Moment::new(case);
        for choice in &path {
            moment.choose(*choice);
        }
        let clients = moment.clients.len();
        let with_after = |(place, past): (usize, &Vec<Choice>)| {
            let mut begun = 0;
            let of = |choice: &Choice| match choice {
                Choice::Invoke(_) if place < clients => {
                    begun += 1;
                    (*choice, moment.after[place][begun - 1].clone())
                }
                _ => (*choice, Vec::new()),
            };
            past.iter().map(of).collect()
        };
        if !known.insert(moment.past.iter().enumerate().map(with_after).collect()) {
            continue;
        }
        let observed = moment.observed();
        explored.broken.extend((case.judge.seen)(&observed));
        if moment.is_over() {
            let leaf = observed
                .into_iter()
                .map(|of| (of.ended.expect("all ended"), of.after))
                .collect();
            if !explored.leaves.contains(&leaf) {
                explored.leaves.push(leaf);
            }
            continue;
        }
        for choice in moment.choices() {
            let next = path.iter().copied().chain([choice]).collect();
            stack.push(next);
        }
    }
    explored.states = known.len();
    explored
}
