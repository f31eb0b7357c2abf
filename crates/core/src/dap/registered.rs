//! The register of servers in one configuration of the root domain: a join by incarnation (`[X-21 directory-join]`), kept
//! beside the objects.

use crate::config::{Configuration, ServerId};
use crate::env::Env;
use crate::error::CallError;
use crate::gather::{self, ConfiguredTally, Decision, Event, Fold, Quorum, Visit};
use crate::message::{Body, Enrolment, Levels, Reply, ServerRecord};
use crate::timing;
use std::collections::BTreeMap;
use std::time::Duration;

/// The end of a registration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Registration {
    /// A quorum knows the record.
    Registered,
    /// A later start is registered, or another one of the incarnation: the registering server runs on a copy. Of a server with
    /// a generation: another one of its address has a larger one.
    Outdated {
        /// The incarnation that is registered, or the generation ([`ServerRecord::number`]).
        registered: u64,
    },
}

/// Keeps of a server, and of an address, the record of the larger rank.
pub fn merge(known: &mut BTreeMap<ServerId, ServerRecord>, mut record: ServerRecord) {
    let displaced = known.values_mut().find(|other| record.displaces(other));
    if let Some(other) = displaced {
        let levels = other.levels.join(record.levels);
        (other.levels, record.levels) = (levels, levels);
        if other.rank() > record.rank() {
            return;
        }
        let other = other.id;
        known.remove(&other);
    }
    match known.get_mut(&record.id) {
        Some(kept) => kept.join(record),
        None => drop(known.insert(record.id, record)),
    }
}

/// The servers that a quorum knows, by id; of each the latest record. A server in memory that was replaced is none. Each member
/// of the quorum requires this level or a higher one, so that it registers no start of an older program after its answer
/// (`[X-46 cluster-level]`).
///
/// # Errors
/// [`CallError`].
pub async fn list<E: Env>(
    env: &E,
    at: &Visit,
    required: u32,
) -> Result<BTreeMap<ServerId, ServerRecord>, CallError> {
    let fold = move |known: &mut BTreeMap<_, _>, _from: usize, reply: Reply| match reply {
        Reply::Servers(records) if Levels::of(&records).required >= required => {
            for record in records {
                merge(known, record);
            }
            Fold::Count
        }
        _ => Fold::Ignore,
    };
    let tally = Quorum::of(at.c(), Body::Servers, BTreeMap::new(), fold);
    gather::gather(env, at, tally).await
}

/// Makes a record that was registered elsewhere known to a quorum. Members that know a later one need nothing; the others do,
/// because that later one may never be at a quorum.
///
/// # Errors
/// [`CallError`].
pub async fn hand_on<E: Env>(env: &E, at: &Visit, record: ServerRecord) -> Result<(), CallError> {
    let fold = |(): &mut (), _from: usize, reply: Reply| match reply {
        Reply::Registered | Reply::Outdated { .. } => Fold::Count,
        _ => Fold::Ignore,
    };
    let step = Enrolment::HandOn;
    let record = Box::new(record);
    let tally = Quorum::of(at.c(), Body::Register { step, record }, (), fold);
    gather::gather(env, at, tally).await
}

/// The answer of a quorum about a start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Admitted {
    /// The decision of the quorum.
    pub registration: Registration,
    /// The last record of the server that one of them knows; if it was asked for, and there is one.
    pub known: Option<Box<ServerRecord>>,
}

/// Registers a start with a quorum, or asks whether that would be possible ([`Admission`]).
///
/// # Errors
/// [`CallError`].
pub async fn register<E: Env>(
    env: &E,
    at: &Visit,
    step: Enrolment,
    record: ServerRecord,
) -> Result<Admitted, CallError> {
    assert_ne!(step, Enrolment::HandOn, "that is no start of this server");
    let record = Box::new(record);
    let body = Body::Register { step, record };
    gather::gather(env, at, Admission::new(at.c(), body)).await
}

const PATIENCE_TICKS: u32 =
    (timing::REGISTRATION_PATIENCE.as_millis() / timing::REGISTRATION_STEP.as_millis()) as u32;
const _: () = assert!(PATIENCE_TICKS > 0, "members that are silent are waited for");

/// The tally of a registration. A quorum of votes is not enough while a member that has not voted may still speak: one vote
/// may be that of the registering server itself, on whose disk the later start is missing, too, and others of servers whose own
/// start is not confirmed. So it decides when every member has voted or refused for good, or those that have not were
/// silent for a patience after the quorum was complete. One *outdated* decides at once.
///
/// Let no more than f members be silent or run on copies. Then all others, a quorum, have voted: what is registered is at
/// a quorum of sound members, and one of these was in the quorum that registered any earlier start. For the same reason one of
/// them tells of the last start, and of a position of its log that was registered ([`Reply::Admissible`]).
struct Admission {
    body: Body,
    needed: usize,
    voices: Vec<Voice>,
    /// Ticks since there is a quorum.
    ticks: u32,
    /// The last record of the server that a member knows.
    known: Option<Box<ServerRecord>>,
}

/// The answer of a member.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Voice {
    Silent,
    /// It refused for good: there is no use in waiting for it.
    Refused,
    Voted,
}

impl Admission {
    fn new(c: &Configuration, body: Body) -> Admission {
        Admission {
            body,
            needed: c.quorums().quorum(),
            voices: vec![Voice::Silent; c.n()],
            ticks: 0,
            known: None,
        }
    }

    fn count(&self, voice: Voice) -> usize {
        self.voices.iter().filter(|said| **said == voice).count()
    }

    fn has_quorum(&self) -> bool {
        self.count(Voice::Voted) >= self.needed
    }

    fn have_all_spoken(&self) -> bool {
        self.count(Voice::Silent) == 0
    }

    fn evaluate(&mut self) -> Decision<Admitted> {
        if self.voices.len() - self.count(Voice::Refused) < self.needed {
            return Decision::Impossible;
        }
        assert!(
            self.ticks == 0 || self.has_quorum(),
            "votes stay, and the patience begins with a quorum of them"
        );
        match self.has_quorum() && (self.have_all_spoken() || self.ticks >= PATIENCE_TICKS) {
            true => Decision::Done(Admitted {
                registration: Registration::Registered,
                known: self.known.take(),
            }),
            false => Decision::Pending,
        }
    }

    fn learn(&mut self, record: Box<ServerRecord>) {
        match &mut self.known {
            Some(known) if known.id == record.id => known.join(*record),
            // Of a server in memory it may be that of another one at its address, of which nothing is to be learnt.
            Some(_) => {}
            None => self.known = Some(record),
        }
    }
}

impl ConfiguredTally for Admission {
    type Output = Admitted;

    fn needed(&self) -> usize {
        self.needed
    }

    fn ask(&mut self, position: usize) -> Option<Body> {
        (self.voices[position] != Voice::Voted).then(|| self.body.clone())
    }

    fn add(&mut self, from: usize, event: Event) -> Decision<Admitted> {
        let voice = match event {
            Event::Reply(Reply::Outdated { registered }) => {
                return Decision::Done(Admitted {
                    registration: Registration::Outdated { registered },
                    known: None,
                });
            }
            Event::Reply(Reply::Admissible(known)) => {
                self.learn(known);
                Voice::Voted
            }
            Event::Reply(Reply::Registered) => Voice::Voted,
            Event::Reply(_) | Event::Refused(_) => Voice::Refused,
            Event::Unreachable => return Decision::Pending,
        };
        if self.voices[from] != Voice::Voted {
            self.voices[from] = voice;
        }
        self.evaluate()
    }

    fn tick(&mut self) -> Decision<Admitted> {
        self.ticks += u32::from(self.has_quorum());
        self.evaluate()
    }

    fn patience(&self) -> Option<Duration> {
        self.has_quorum().then_some(timing::REGISTRATION_STEP)
    }
}

#[cfg(test)]
mod tests;
