//! Requests of one key at each server by itself, one after the other: which are answered, and which refused.
//!
//! Each server has a domain that it alone holds, so that the end of a request in it is the answer of this server. A client keeps its last ticket when its key
//! counts no longer, and shows it to each server: none is spared because another one has refused.

use super::AGAIN;
use crate::failures::Failures;
use areo_client::{Domain, Error};
use serde::Serialize;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;
use tokio::time::sleep;

/// The longest time for which a request may still be answered after the end of the right to it was acknowledged. The product bounds it where a server reaches the
/// root domain, by seconds; other troubles keep servers from it, or stop them, for less than this.
const STILL_COUNTS: Duration = Duration::from_secs(20);
/// The longest wait for answers or refusals of all servers: other troubles may stop one for a while.
const PATIENCE: Duration = Duration::from_mins(2);
/// Refusals by one server, one after the other, after which a right has ended there.
const REFUSALS: u64 = 5;
/// The pause of a load of which no other task waits for anything.
const IDLE: Duration = Duration::from_millis(500);

/// Requests of keys by how they ended, at all servers together.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize)]
pub struct KeyRequests {
    /// Requests that were answered.
    pub answered: u64,
    /// Requests that were refused after the right to them had ended.
    pub refused: u64,
    /// The longest time between an acknowledged end of a right and a later request that was answered all the same, in milliseconds.
    pub longest_after_end_ms: u64,
}

/// The record of all loads of a run.
#[derive(Default)]
pub(crate) struct KeyRecord {
    counts: Cell<KeyRequests>,
    failures: RefCell<Failures>,
    /// Loads that go on, or whose writes are still to be looked for.
    pub(super) loads: RefCell<Vec<KeyLoad>>,
}

impl KeyRecord {
    pub(crate) fn counts(&self) -> KeyRequests {
        self.counts.get()
    }

    /// Broken promises, in sentences.
    pub(crate) fn violations(&self) -> Vec<String> {
        self.failures.borrow().first.clone()
    }
}

/// A kind of requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum RequestKind {
    Read,
    Write,
}

impl RequestKind {
    pub(super) const BOTH: [RequestKind; 2] = [RequestKind::Read, RequestKind::Write];

    fn word(self) -> &'static str {
        match self {
            RequestKind::Read => "read",
            RequestKind::Write => "write",
        }
    }
}

/// The right to one kind of requests, as far as the administrator knows.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
enum Right {
    /// No change has begun that ends it.
    #[default]
    Counts,
    /// Such a change has begun.
    Ending,
    /// Such a change was acknowledged then.
    Ended(Instant),
}

impl Right {
    /// True if a request that began then may be answered.
    fn may_be_answered(self, begun: Instant) -> bool {
        match self {
            Right::Counts | Right::Ending => true,
            Right::Ended(at) => begun <= at + STILL_COUNTS,
        }
    }
}

/// The end of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Answer {
    Given,
    Refused,
    /// Other troubles kept the server from an answer.
    NotKnown,
}

impl Answer {
    pub(super) fn of<T>(ended: &Result<T, Error>) -> Answer {
        match ended {
            Ok(_) | Err(Error::NotFound { .. }) => Answer::Given,
            Err(Error::Unauthorised { .. }) => Answer::Refused,
            Err(_) => Answer::NotKnown,
        }
    }
}

/// The answers of one server to one kind of requests of one key.
#[derive(Clone, Copy, Default, Debug)]
struct Answers {
    given: u64,
    refusals_in_a_row: u64,
}

impl Answers {
    /// Takes the end of a request that began then. `right`: as it is known to be after that.
    ///
    /// # Errors
    /// The promise that it breaks.
    fn take(&mut self, answer: Answer, begun: Instant, right: Right) -> Result<(), String> {
        match answer {
            Answer::NotKnown => {}
            Answer::Refused => {
                self.refusals_in_a_row += 1;
                if right == Right::Counts {
                    return Err("was refused, although the key counts".to_owned());
                }
            }
            Answer::Given => {
                self.given += 1;
                self.refusals_in_a_row = 0;
                if let Right::Ended(at) = right
                    && !right.may_be_answered(begun)
                {
                    let seconds = (begun - at).as_secs();
                    return Err(format!(
                        "was answered, although the right to it had ended {seconds} s before"
                    ));
                }
            }
        }
        Ok(())
    }
}

/// The answers of one server to the client of one key, and the writes that it was sent.
#[derive(Clone, Copy, Default, Debug)]
struct ServerAnswers {
    reads: Answers,
    writes: Answers,
    /// The number of the last write that was begun.
    begun: u64,
    /// The number of the last write that may have an effect.
    last_admitted: u64,
}

impl ServerAnswers {
    fn answers(&mut self, kind: RequestKind) -> &mut Answers {
        match kind {
            RequestKind::Read => &mut self.reads,
            RequestKind::Write => &mut self.writes,
        }
    }
}

/// State that the tasks of a load share.
struct Shared {
    /// The name of the objects that are written.
    label: String,
    record: Rc<KeyRecord>,
    reads: Cell<Right>,
    writes: Cell<Right>,
    servers: RefCell<Vec<ServerAnswers>>,
    pause: Cell<Duration>,
}

impl Shared {
    fn right(&self, kind: RequestKind) -> &Cell<Right> {
        match kind {
            RequestKind::Read => &self.reads,
            RequestKind::Write => &self.writes,
        }
    }

    /// Requests at one server, for ever.
    async fn work(self: Rc<Shared>, server: usize, domain: Domain) {
        loop {
            let begun = Instant::now();
            let read = Answer::of(&domain.stat(&self.label).await);
            self.take(server, (RequestKind::Read, begun), read);
            let begun = Instant::now();
            let number = self.begin_write(server, begun);
            let content = number.to_le_bytes().to_vec();
            let put = domain.put(&self.label, content);
            let written = Answer::of(&put.await);
            self.take(server, (RequestKind::Write, begun), written);
            sleep(self.pause.get()).await;
        }
    }

    fn begin_write(&self, server: usize, begun: Instant) -> u64 {
        let at = &mut self.servers.borrow_mut()[server];
        at.begun += 1;
        if self.writes.get().may_be_answered(begun) {
            at.last_admitted = at.begun;
        }
        at.begun
    }

    fn take(&self, server: usize, (kind, begun): (RequestKind, Instant), answer: Answer) {
        let right = self.right(kind).get();
        let at = &mut self.servers.borrow_mut()[server];
        let taken = at.answers(kind).take(answer, begun, right);
        let mut counts = self.record.counts.get();
        match (answer, right) {
            (Answer::NotKnown, _) => {}
            (Answer::Refused, _) => counts.refused += 1,
            (Answer::Given, Right::Counts | Right::Ending) => counts.answered += 1,
            (Answer::Given, Right::Ended(at)) => {
                counts.answered += 1;
                let after = begun.saturating_duration_since(at).as_millis() as u64;
                counts.longest_after_end_ms = counts.longest_after_end_ms.max(after);
            }
        }
        self.record.counts.set(counts);
        if let Err(sentence) = taken {
            let (label, server) = (&self.label, server + 1);
            let sentence = format!(
                "a {} of the key '{label}' at s{server} {sentence}",
                kind.word()
            );
            self.record.failures.borrow_mut().add(sentence);
        }
    }
}

/// A client with a key that makes requests at each server, until it is stopped or dropped.
pub(super) struct KeyLoad {
    shared: Rc<Shared>,
    tasks: JoinSet<()>,
}

impl KeyLoad {
    /// Begins requests. `domains`: for each server that which it alone holds, by a client with the key.
    pub(super) fn begin(label: String, domains: Vec<Domain>, record: &Rc<KeyRecord>) -> KeyLoad {
        let shared = Rc::new(Shared {
            label,
            record: Rc::clone(record),
            reads: Cell::default(),
            writes: Cell::default(),
            servers: RefCell::new(vec![ServerAnswers::default(); domains.len()]),
            pause: Cell::new(AGAIN),
        });
        let mut tasks = JoinSet::new();
        for (server, domain) in domains.into_iter().enumerate() {
            tasks.spawn_local(Rc::clone(&shared).work(server, domain));
        }
        KeyLoad { shared, tasks }
    }

    pub(super) fn label(&self) -> &str {
        &self.shared.label
    }

    pub(super) fn has_ended(&self) -> bool {
        matches!(self.shared.writes.get(), Right::Ended(_))
    }

    /// A change is about to be sent that ends the right to these requests.
    pub(super) fn end_begins(&self, kinds: &[RequestKind]) {
        for kind in kinds {
            self.shared.right(*kind).set(Right::Ending);
        }
    }

    /// That change was acknowledged.
    pub(super) fn ended(&self, kinds: &[RequestKind]) {
        for kind in kinds {
            self.shared.right(*kind).set(Right::Ended(Instant::now()));
        }
    }

    /// Makes fewer requests from now on.
    pub(super) fn go_idle(&self) {
        self.shared.pause.set(IDLE);
    }

    /// Makes no more requests.
    pub(super) fn stop(&mut self) {
        self.tasks.abort_all();
    }

    /// Waits until each server but `spared` has answered one more request of this kind.
    ///
    /// # Errors
    /// A server has given no answer for too long.
    pub(super) async fn answered(&self, kind: RequestKind, spared: usize) -> Result<(), String> {
        let given = |at: &ServerAnswers| {
            let mut at = *at;
            at.answers(kind).given
        };
        let before: Vec<u64> = self.shared.servers.borrow().iter().map(given).collect();
        let has_answered = |server: usize, at: &ServerAnswers| given(at) > before[server];
        self.until(has_answered, spared).await.map_err(|silent| {
            let (label, kind) = (self.label(), kind.word());
            format!("no {kind} of the key '{label}', which counts, was answered by {silent}")
        })
    }

    /// Waits until each server has refused requests of this kind again and again.
    ///
    /// # Errors
    /// A server has not for too long.
    pub(super) async fn refused(&self, kind: RequestKind) -> Result<(), String> {
        let has_refused = |_, at: &ServerAnswers| {
            let mut at = *at;
            at.answers(kind).refusals_in_a_row >= REFUSALS
        };
        self.until(has_refused, 0).await.map_err(|silent| {
            let (label, kind) = (self.label(), kind.word());
            format!("no {kind} of the key '{label}', which has ended, was refused by {silent}")
        })
    }

    async fn until(
        &self,
        is_done: impl Fn(usize, &ServerAnswers) -> bool,
        spared: usize,
    ) -> Result<(), String> {
        let begun = Instant::now();
        loop {
            let mut left = Vec::new();
            for (server, at) in self.shared.servers.borrow().iter().enumerate() {
                if !is_done(server, at) {
                    left.push(format!("s{}", server + 1));
                }
            }
            if left.len() <= spared {
                return Ok(());
            }
            if begun.elapsed() > PATIENCE {
                return Err(left.join(", "));
            }
            sleep(AGAIN).await;
        }
    }

    /// Judges the number that the object at a server has, by an administrator's read.
    ///
    /// # Errors
    /// The write began after the right to it had ended.
    pub(super) fn check_written(&self, server: usize, number: u64) -> Result<(), String> {
        let last = self.shared.servers.borrow()[server].last_admitted;
        match number <= last {
            true => Ok(()),
            false => Err(format!(
                "write {number} of the key '{}' took effect at s{}, and {last} was the last one before its right had ended",
                self.label(),
                server + 1
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_counts_is_never_refused_and_one_that_has_ended_is_within_the_bound() {
        let now = Instant::now();
        let ended = Right::Ended(now);
        let late = now + STILL_COUNTS + Duration::from_secs(1);
        for (answer, begun, right, broken) in [
            (Answer::Given, now, Right::Counts, None),
            (
                Answer::Refused,
                now,
                Right::Counts,
                Some("although the key counts"),
            ),
            (Answer::Refused, now, Right::Ending, None),
            (Answer::Given, now, Right::Ending, None),
            (Answer::Given, now + STILL_COUNTS, ended, None),
            (Answer::Given, late, ended, Some("had ended 21 s before")),
            (Answer::Refused, late, ended, None),
            (Answer::NotKnown, late, ended, None),
        ] {
            let taken = Answers::default().take(answer, begun, right);
            match (&taken, broken) {
                (Ok(()), None) => {}
                (Err(sentence), Some(words)) if sentence.contains(words) => {}
                _ => panic!("{answer:?}, {right:?}: {taken:?}"),
            }
        }
    }

    #[test]
    fn a_server_that_answers_again_has_not_refused_for_good() {
        let now = Instant::now();
        let mut answers = Answers::default();
        for answer in [Answer::Refused, Answer::Refused, Answer::NotKnown] {
            answers.take(answer, now, Right::Ending).unwrap();
        }
        assert_eq!(answers.refusals_in_a_row, 2);
        answers.take(Answer::Given, now, Right::Ending).unwrap();
        assert_eq!(answers.refusals_in_a_row, 0);
    }

    /// The end of a write may be unknown, and its effect is found later.
    #[test]
    fn a_write_that_began_after_the_bound_has_no_effect() {
        let record = Rc::default();
        let load = KeyLoad::begin("k".to_owned(), Vec::new(), &record);
        let shared = &load.shared;
        shared.servers.borrow_mut().push(ServerAnswers::default());
        let now = Instant::now();
        assert_eq!(shared.begin_write(0, now), 1);
        load.end_begins(&RequestKind::BOTH);
        assert_eq!(shared.begin_write(0, now), 2);
        load.ended(&RequestKind::BOTH);
        let bound = Instant::now() + STILL_COUNTS;
        assert_eq!(shared.begin_write(0, now), 3);
        assert_eq!(shared.begin_write(0, bound + Duration::from_secs(1)), 4);
        load.check_written(0, 3).unwrap();
        let sentence = load.check_written(0, 4).unwrap_err();
        assert!(sentence.contains("took effect at s1"), "{sentence}");
    }

    #[test]
    fn broken_promises_name_the_key_and_the_server() {
        let record = Rc::default();
        let load = KeyLoad::begin("k".to_owned(), Vec::new(), &record);
        let shared = &load.shared;
        shared
            .servers
            .borrow_mut()
            .resize(2, ServerAnswers::default());
        let kind = (RequestKind::Write, Instant::now());
        shared.take(1, kind, Answer::Given);
        assert_eq!(record.violations(), [""; 0]);
        shared.take(1, kind, Answer::Refused);
        let sentence = &record.violations()[0];
        assert!(
            sentence.contains("a write of the key 'k' at s2 was refused"),
            "{sentence}"
        );
        load.ended(&RequestKind::BOTH);
        shared.take(1, (RequestKind::Write, Instant::now()), Answer::Given);
        let counts = record.counts();
        assert_eq!((counts.answered, counts.refused), (2, 1));
        assert_eq!(record.violations().len(), 1);
    }
}
