//! The place of a server in its cluster, and processes that claim it: a second process with a copy of the directory, while the first
//! one runs, is slow, stands still or is cut off from it (decision records 0053 and 0054). As in `server`, a start asks at the
//! registered address, and a process that serves has its start confirmed again and again.

use super::call::SimEnv;
use super::identity::{ATTEMPT, DecidedStart, Exchange, StartingProcess};
use super::machine::Machine;
use super::{Event as Happening, World};
use crate::fault::Fault;
use crate::invariant::Observation;
use areo_core::dsm::Client;
use areo_core::env::Env;
use areo_core::instant::Instant;
use areo_core::manager::{Registration, StartOutcome};
use areo_core::message::{Enrolment, ServerRecord};
use areo_core::starts::Starts;
use areo_core::timing::{ADDRESS_PATIENCE, STANDSTILL};
use areo_store::disk::Survive;
use std::time::Duration;

/// The wait between two questions at an address, and between two looks at whether the process stood still.
const LOOK: Duration = Duration::from_millis(100);
/// The bound of the drawn delay of an answer, so that a start waits for it.
const SLOWEST: Duration = Duration::from_secs(4);

/// The way in which a second process finds the first one at its registered address.
#[derive(Clone, Copy, Debug)]
pub(super) enum Sight {
    /// It answers, after a while.
    Answers(Duration),
    /// Nothing comes through to it.
    CutOff,
}

/// A second process with a copy of the directory.
pub(super) struct Twin {
    pub(super) task: usize,
    /// The life of the first process that it meets.
    life: u64,
    since: Instant,
    sight: Sight,
    /// The first process serves, so that it is registered where it is.
    is_registered: bool,
}

/// The start of a second process that the root domain has confirmed.
#[derive(Clone, Copy)]
pub(super) struct Supersession {
    /// The life of the first process, which is over.
    life: u64,
    /// It stood still then.
    stood_still: bool,
}

impl Exchange {
    /// A second process begins.
    fn contend(&mut self, twin: Twin) {
        self.is_contended = true;
        self.twin = Some(twin);
    }

    /// A start of the server is confirmed: of the second processes before it only one that still runs gets further.
    pub(super) fn settle(&mut self) {
        self.is_contended = self.twin.is_some();
        self.begun_by_copy = None;
    }

    /// True if a copy explains that the true directory is refused. Nothing else does: there is one process for each directory.
    fn explains(&self, refusal: &StartOutcome) -> bool {
        match refusal {
            StartOutcome::Outdated { registered } => {
                self.is_contended || self.begun_by_copy == Some(*registered)
            }
            _ => false,
        }
    }
}

impl World {
    // ---- the process that serves ----

    /// Has the start of a server confirmed again and again, and at once when it stood still. Returns when the process must end.
    pub(super) async fn hold(&self, server: usize, life: u64, started: &DecidedStart) {
        let (caller, root) = (self.caller_of(server), self.root());
        loop {
            let env = SimEnv::new(self, caller, ATTEMPT);
            let wait = Duration::from_millis(self.random().between(1, 2000));
            let until = self.now().plus(wait);
            while self.serves(server) && self.now() < until {
                env.sleep(LOOK).await;
            }
            self.until_at_work(server, &env).await;
            let (position, standstills) = {
                let machine = &self.0.machines.borrow().list[server];
                assert_eq!(machine.life, life, "the task ends with its life");
                (machine.position(), machine.standstills())
            };
            let record = ServerRecord {
                position,
                ..started.record.clone()
            };
            let client = Client::new(env);
            let registered = client
                .root(&root)
                .register(Enrolment::Register, &record)
                .await;
            self.until_at_work(server, &client.env).await;
            match registered {
                Ok(Registration::Registered) => {
                    self.serve_again(server, standstills);
                }
                Ok(Registration::Outdated { registered }) => {
                    self.record([10, server as u64, life, registered], || {
                        format!("server {server} has lost its place to start {registered}")
                    });
                    let outdated = StartOutcome::Outdated { registered };
                    return self.refused(server, life, &outdated);
                }
                Err(_) => client.env.sleep(LOOK).await,
            }
        }
    }

    /// A process that stands still finds nothing out.
    async fn until_at_work(&self, server: usize, env: &SimEnv) {
        while self.0.machines.borrow().list[server].paused {
            env.sleep(LOOK).await;
        }
    }

    fn serves(&self, server: usize) -> bool {
        self.0.machines.borrow().list[server].serves()
    }

    /// The process must end. It is started again and again, as supervisors do, until a person finds the mistake.
    pub(super) fn refused(&self, server: usize, life: u64, outcome: &StartOutcome) {
        let is_copy = {
            let machines = self.0.machines.borrow();
            if machines.list[server].life != life {
                return;
            }
            machines.list[server].exchange.is_copy()
        };
        if is_copy {
            self.refused_with_copy(server, outcome);
        } else {
            self.refused_with_own_disk(server, outcome);
        }
    }

    fn refused_with_own_disk(&self, server: usize, outcome: &StartOutcome) {
        let (is_explained, is_sound) = {
            let machines = self.0.machines.borrow();
            let exchange = &machines.list[server].exchange;
            let is_sound = machines.truths()[server].is_sound();
            (exchange.explains(outcome), is_sound)
        };
        match outcome {
            StartOutcome::Outdated { registered } if is_explained => {
                self.end_twin(server);
                self.stop(server, |_| Survive::All);
                self.remark(&format!(
                    "server {server} is refused because of its copy, which is ended"
                ));
                self.0.machines.borrow_mut().list[server].take_over(*registered);
            }
            StartOutcome::Behind { .. } if !is_sound => {
                self.remark(&format!(
                    "server {server} has lost the end of its log to rot"
                ));
                self.replace_disk(server);
            }
            _ => self.violate(format!(
                "identity: server {server} is refused with its own disk: {outcome:?}"
            )),
        }
    }

    fn refused_with_copy(&self, server: usize, outcome: &StartOutcome) {
        if matches!(outcome, StartOutcome::Behind { .. }) {
            self.plan().note(Fault::SnapshotRestored);
        }
        self.stop(server, |_| Survive::All);
        let machines = &mut *self.0.machines.borrow_mut();
        machines.list[server].exchange.attempts -= 1;
        if machines.list[server].exchange.attempts == 0 {
            self.put_back(machines, server);
        }
    }

    // ---- the address ----

    /// True if a second process gets an answer of the first one at this address.
    pub(super) async fn answers_at(&self, server: usize, address: &str, sight: Sight) -> bool {
        let env = SimEnv::new(self, self.caller_of(server), ATTEMPT);
        let until = self.now().plus(ADDRESS_PATIENCE);
        let asked = self.now();
        while self.now() < until {
            if !self.is_up(server) || self.address(server) != address {
                return false;
            }
            let stands_still = self.0.machines.borrow().list[server].paused;
            let took = self.now().since(asked);
            match sight {
                Sight::Answers(after) if !stands_still && took >= after => return true,
                Sight::Answers(_) | Sight::CutOff => env.sleep(LOOK).await,
            }
        }
        false
    }

    // ---- a second process ----

    /// Starts a second process with a copy of the directory as it is now.
    pub(super) fn start_twin(&self, server: usize, machine: &mut Machine) {
        let (starts, position) = (machine.platter.starts, machine.log_position());
        self.run_twin(server, machine, (starts, position));
    }

    /// A second process with a copy, while the server runs. Nothing of its disk but the count of starts and the end of its log plays
    /// a part: it is ended before it answers.
    pub(super) fn run_twin(
        &self,
        server: usize,
        machine: &mut Machine,
        (starts, position): (Starts, Option<u64>),
    ) {
        if machine.exchange.twin.is_some() || machine.exchange.superseded.is_some() {
            return;
        }
        self.plan().note(Fault::DiskCopied);
        let sight = match self.random().below(4) {
            0 => Sight::CutOff,
            1 => {
                let slow = self.random().below(SLOWEST.as_millis() as u64);
                Sight::Answers(Duration::from_millis(slow))
            }
            _ => Sight::Answers(Duration::ZERO),
        };
        let stands_still = self.random().chance(300) && !machine.paused && machine.is_up();
        if stands_still {
            machine.paused = true;
            machine.paused_at = Some(self.now());
            let time = ADDRESS_PATIENCE.as_millis() as u64 + self.random().below(4000);
            let resume = Happening::Resume(server, machine.life);
            self.at(Duration::from_millis(time), resume);
        }
        self.remark(&format!(
            "server {server} is started a second time, from a copy: {starts:?}, log {position:?}; the first process: {sight:?}, stands \
             still: {stands_still}"
        ));
        let (world, id) = (self.clone(), machine.platter.id);
        let delay = Duration::from_micros(self.random().below(3000));
        let process = StartingProcess {
            id,
            starts,
            position: position.or(Some(0)),
            abstains: false,
            sight: Some(sight),
        };
        let task = self.spawn(async move {
            let env = SimEnv::new(&world, world.caller_of(server), ATTEMPT);
            env.sleep(delay).await;
            let started = world.started(server, process, |_| {}).await;
            world.twin_ended(server, &started);
        });
        let twin = Twin {
            task,
            life: machine.life,
            since: self.now(),
            sight,
            is_registered: machine.serves(),
        };
        machine.exchange.contend(twin);
    }

    /// If the copy was confirmed, the first process finds that out; where there is none, the true directory goes on from where the
    /// copy has come to.
    fn twin_ended(&self, server: usize, started: &DecidedStart) {
        let is_confirmed = started.is_confirmed();
        let seen = {
            let machines = &mut *self.0.machines.borrow_mut();
            let twin = machines.list[server].exchange.twin.take();
            if !is_confirmed {
                return;
            }
            let confirmed = Observation::Confirmed {
                id: started.id,
                incarnation: started.incarnation,
                is_copy: true,
                knows_better: self.who_knows_better(machines, server, started),
            };
            self.observe(machines, &confirmed);
            let machine = &mut machines.list[server];
            let twin = twin.filter(|twin| machine.is_up() && twin.life == machine.life);
            machine.exchange.superseded = twin.as_ref().map(|twin| Supersession {
                life: twin.life,
                stood_still: machine.paused,
            });
            let was_at_work = |twin: &Twin| machine.paused_at < Some(twin.since) && !machine.paused;
            let is_seen = |twin: &Twin| {
                matches!(twin.sight, Sight::Answers(_)) && twin.is_registered && was_at_work(twin)
            };
            twin.filter(is_seen)
        };
        self.remark(&format!("the copy of server {server} is confirmed"));
        if seen.is_some() {
            self.violate(format!(
                "identity: a copy of server {server} is confirmed, although a process answers where it was registered"
            ));
        }
        if self.0.machines.borrow().list[server]
            .exchange
            .superseded
            .is_none()
        {
            if self.is_up(server) {
                self.kill(server);
            }
            self.0.machines.borrow_mut().list[server].take_over(started.incarnation);
        }
    }

    pub(super) fn end_twin(&self, server: usize) {
        let twin = self.0.machines.borrow_mut().list[server]
            .exchange
            .twin
            .take();
        if let Some(twin) = twin {
            self.abort(twin.task);
        }
    }

    /// A server answers for an object. One that stood still while a later start of it was confirmed must not, ever.
    pub(super) fn may_answer(&self, server: usize) -> bool {
        let machine = &self.0.machines.borrow().list[server];
        let superseded = machine.exchange.superseded;
        !superseded.is_some_and(|it| it.stood_still && it.life == machine.life)
    }

    /// A process runs on although a later start of its server is confirmed.
    pub(crate) fn is_any_superseded(&self) -> bool {
        let list = &self.0.machines.borrow().list;
        let is_over = |machine: &Machine| {
            let superseded = machine.exchange.superseded;
            superseded.is_some_and(|it| it.life == machine.life)
        };
        list.iter().any(is_over)
    }
}

const _: () = assert!(
    SLOWEST.as_nanos() < ADDRESS_PATIENCE.as_nanos()
        && STANDSTILL.as_nanos() < ADDRESS_PATIENCE.as_nanos(),
    "a slow process answers before one that stands still counts as dead"
);

#[cfg(test)]
mod tests {
    use super::*;

    const REFUSED: StartOutcome = StartOutcome::Outdated { registered: 7 };

    fn twin() -> Twin {
        Twin {
            task: 1,
            life: 1,
            since: Instant(0),
            sight: Sight::CutOff,
            is_registered: true,
        }
    }

    #[test]
    fn a_second_process_explains_refusals_until_the_next_start_is_confirmed() {
        let mut exchange = Exchange::default();
        assert!(!exchange.explains(&REFUSED), "no process but its own");
        exchange.contend(twin());
        assert!(exchange.explains(&REFUSED));
        // What it has registered outlasts it.
        exchange.twin = None;
        assert!(exchange.explains(&REFUSED));
        exchange.settle();
        assert!(!exchange.explains(&REFUSED), "the start is above all of it");
        // One that runs on may register a later start.
        exchange.contend(twin());
        exchange.settle();
        assert!(exchange.explains(&REFUSED));
        exchange.twin = None;
        exchange.settle();
        assert!(!exchange.explains(&REFUSED));
    }

    #[test]
    fn a_copy_in_the_place_of_the_disk_explains_its_own_start_alone() {
        let mut exchange = Exchange::default();
        exchange.begun_by_copy = Some(7);
        assert!(exchange.explains(&REFUSED));
        let later = StartOutcome::Outdated { registered: 8 };
        assert!(!exchange.explains(&later));
        exchange.settle();
        assert!(!exchange.explains(&REFUSED));
    }

    #[test]
    fn no_copy_explains_a_log_that_ends_too_early() {
        let mut exchange = Exchange::default();
        exchange.contend(twin());
        exchange.begun_by_copy = Some(7);
        let behind = StartOutcome::Behind {
            position: 6,
            registered: 7,
        };
        assert!(!exchange.explains(&behind));
    }
}
