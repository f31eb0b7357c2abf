//! Single-decree Paxos on the members of a configuration, one instance per cell (Lamport; `docs/spec` 6.5 Rambo,
//! `[R-9 random-backoff]`, `[R-10 one-value-per-ballot]`, `[X-16 decider-in-descriptor]`).
//!
//! A proposer asks a quorum to promise a ballot and to say what they accepted before; it then asks a quorum to accept the
//! value of the highest ballot that it was told of, or its own if there is none. Two quorums share a member, so that a
//! value accepted by a quorum is found by every later proposer. Quorums are the configuration's own.
//!
//! | | rounds |
//! |---|---|
//! | [`propose`] | 2 undisturbed |
//! | [`propose_as_owner`] | 1 undisturbed |
//! | [`read`] | 1 |
//!
//! | pseudocode | here |
//! |---|---|
//! | PREPARE(rnd) | `prepare`; acceptor: [`Acceptor::receive`] |
//! | ACCEPT(rnd, v) | `accept`; acceptor: [`Acceptor::receive`] |

use crate::env::Env;
use crate::error::CallError;
use crate::gather::{self, Fold, Quorum, Visit};
use crate::message::{Ballot, Body, CellReply, CellRequest, CellSummary, Note, Reply};
use crate::tag::Writer;
use crate::timing::BackOff;
use bytes::Bytes;
use std::collections::BTreeMap;

// ---- client half ----------------------------------------------------------------------------------------------------

/// The end of a proposal.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// The cell is decided, with this value.
    Decided(Bytes),
    /// A configuration comes after this one, and with it other acceptors (`[X-20 decided-once]`); the visit knows which.
    Closed,
}

/// Decides the cell, with `value` or with an earlier proposal of others. `inherited` is the value that acceptors of
/// an earlier configuration had accepted when they were closed: it takes the place of `value`, but not of a value
/// that was accepted here ([`read`] says why).
///
/// # Errors
/// [`CallError`] without a quorum in time; the value may be decided all the same, now or by a later proposer.
pub async fn propose<E: Env>(
    env: &E,
    at: &Visit,
    cell: &Bytes,
    value: &Bytes,
    inherited: Option<&Bytes>,
    mut proposer: impl FnMut() -> Writer,
) -> Result<Outcome, CallError> {
    let (mut number, mut above) = (0, Ballot::default());
    let mut back_off = BackOff::new(env.now());
    loop {
        let ballot = Ballot {
            number: number + 1,
            proposer: proposer(),
        };
        assert!(
            ballot > above,
            "a new ballot is above the one that others were promised"
        );
        let rejected = match prepare(env, at, cell, ballot).await? {
            PrepareOutcome::Decided(decided) => return Ok(Outcome::Decided(decided)),
            PrepareOutcome::Closed => return Ok(Outcome::Closed),
            PrepareOutcome::Rejected(promised) => promised,
            PrepareOutcome::Promised(accepted) => {
                let accepted = accepted.map(|(_, accepted)| accepted);
                let chosen = accepted.or_else(|| inherited.cloned());
                let chosen = chosen.unwrap_or_else(|| value.clone());
                match accept(env, at, cell, ballot, chosen.clone()).await? {
                    AcceptOutcome::Decided(decided) => return Ok(Outcome::Decided(decided)),
                    AcceptOutcome::Closed => return Ok(Outcome::Closed),
                    AcceptOutcome::Rejected(promised) => promised,
                    AcceptOutcome::Chosen => {
                        tell(env, at, cell, &chosen);
                        return Ok(Outcome::Decided(chosen));
                    }
                }
            }
        };
        // Above the other proposer, after a random while, so that one of the two gets through ([R-9 random-backoff]).
        (number, above) = (rejected.number.max(number + 1), rejected);
        env.back_off(&mut back_off).await;
    }
}

/// Decides the cell with `value` in one round, if no other proposer was there: `owner` alone may use ballot 0, with
/// one value for ever. Below it nothing can have been accepted, so that there is nothing to ask for first
/// (`[X-22 upload-fate]`). `None`: others were here, or a configuration comes after this one; go on with [`propose`].
///
/// # Errors
/// As [`propose`].
pub async fn propose_as_owner<E: Env>(
    env: &E,
    at: &Visit,
    cell: &Bytes,
    value: &Bytes,
    owner: Writer,
) -> Result<Option<Bytes>, CallError> {
    let ballot = Ballot {
        number: 0,
        proposer: owner,
    };
    assert!(ballot > Ballot::default(), "above what was never promised");
    Ok(match accept(env, at, cell, ballot, value.clone()).await? {
        AcceptOutcome::Decided(decided) => Some(decided),
        AcceptOutcome::Rejected(_) | AcceptOutcome::Closed => None,
        AcceptOutcome::Chosen => {
            tell(env, at, cell, value);
            Some(value.clone())
        }
    })
}

fn tell<E: Env>(env: &E, at: &Visit, cell: &Bytes, value: &Bytes) {
    let note = Note::Decided {
        configuration: at.c().id(),
        cell: cell.clone(),
        value: value.clone(),
    };
    env.tell(at.c().members(), note);
}

/// The state of a cell, as a quorum of acceptors says it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum State {
    Decided(Bytes),
    /// This value was accepted in the highest ballot; it may be decided.
    Accepted(Bytes),
    Empty,
}

impl State {
    /// The value, if there is one.
    pub fn value(self) -> Option<Bytes> {
        match self {
            State::Decided(value) | State::Accepted(value) => Some(value),
            State::Empty => None,
        }
    }
}

/// Asks a quorum for the cell, and promises nothing. In a visit that closes the configuration the answering acceptors
/// accept nothing afterwards, so that this returns any decision that was made here (`[X-20 decided-once]`).
///
/// What was accepted in a later configuration goes before it whatever the ballots are: a ballot of this configuration may
/// be larger than those with which proposers who did not hear of it decided the cell in the next one.
///
/// # Errors
/// [`CallError`] without a quorum in time.
pub async fn read<E: Env>(env: &E, at: &Visit, cell: &Bytes) -> Result<State, CallError> {
    let heard = call(env, at, cell, CellRequest::Query).await?;
    Ok(match heard {
        QuorumPromises {
            decided: Some(decided),
            ..
        } => State::Decided(decided),
        QuorumPromises {
            accepted: Some((_, value)),
            ..
        } => State::Accepted(value),
        QuorumPromises { .. } => State::Empty,
    })
}

/// A page of cells.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Page {
    /// Cells for which a member accepted a value, or that of an upload for which one promised, by name, with the value of those
    /// that are known to be decided.
    pub cells: BTreeMap<Bytes, Option<Bytes>>,
    /// There are more after the last one.
    pub truncated: bool,
}

impl Page {
    /// Merges two pages that begin at the same cell. The result ends where the first of them ends.
    #[must_use]
    pub fn merge(mut self, mut other: Page) -> Page {
        let last = |page: &Page| page.cells.keys().next_back().cloned();
        let horizons = [&self, &other].map(|page| last(page).filter(|_| page.truncated));
        let horizon = horizons.into_iter().flatten().min();
        for (cell, value) in std::mem::take(&mut other.cells) {
            let known = self.cells.entry(cell).or_default();
            *known = known.take().or(value);
        }
        if let Some(horizon) = &horizon {
            self.cells.retain(|cell, _| cell <= horizon);
        }
        self.truncated = horizon.is_some();
        self
    }
}

/// The cells whose names begin with `prefix` and are larger than `after`, as a quorum knows them.
///
/// # Errors
/// [`CallError`] without a quorum in time.
pub async fn list<E: Env>(
    env: &E,
    at: &Visit,
    prefix: &Bytes,
    after: &Bytes,
) -> Result<Page, CallError> {
    let body = Body::Cells {
        prefix: prefix.clone(),
        after: after.clone(),
    };
    let fold = |page: &mut Option<Page>, _from: usize, reply: Reply| match reply {
        Reply::Cells { cells, truncated } => {
            let value = |cell: CellSummary| (cell.cell, cell.decided.then_some(cell.value));
            let cells = cells.into_iter().map(value).collect();
            let one = Page { cells, truncated };
            *page = Some(match page.take() {
                Some(page) => page.merge(one),
                None => one,
            });
            Fold::Count
        }
        _ => Fold::Ignore,
    };
    let tally = Quorum::of(at.c(), body, None, fold);
    let page = gather::gather(env, at, tally).await?;
    Ok(page.expect("a quorum has a member"))
}

enum PrepareOutcome {
    Promised(Option<(Ballot, Bytes)>),
    Rejected(Ballot),
    Decided(Bytes),
    Closed,
}

async fn prepare<E: Env>(
    env: &E,
    at: &Visit,
    cell: &Bytes,
    ballot: Ballot,
) -> Result<PrepareOutcome, CallError> {
    let heard = call(env, at, cell, CellRequest::Prepare { ballot }).await?;
    Ok(match heard {
        QuorumPromises {
            decided: Some(decided),
            ..
        } => PrepareOutcome::Decided(decided),
        QuorumPromises {
            rejected: Some(promised),
            ..
        } => PrepareOutcome::Rejected(promised),
        QuorumPromises { closed: true, .. } => PrepareOutcome::Closed,
        QuorumPromises { accepted, .. } => PrepareOutcome::Promised(accepted),
    })
}

enum AcceptOutcome {
    Chosen,
    Rejected(Ballot),
    Decided(Bytes),
    Closed,
}

async fn accept<E: Env>(
    env: &E,
    at: &Visit,
    cell: &Bytes,
    ballot: Ballot,
    value: Bytes,
) -> Result<AcceptOutcome, CallError> {
    let heard = call(env, at, cell, CellRequest::Accept { ballot, value }).await?;
    Ok(match heard {
        QuorumPromises {
            decided: Some(decided),
            ..
        } => AcceptOutcome::Decided(decided),
        QuorumPromises {
            rejected: Some(promised),
            ..
        } => AcceptOutcome::Rejected(promised),
        QuorumPromises { closed: true, .. } => AcceptOutcome::Closed,
        QuorumPromises { .. } => AcceptOutcome::Chosen,
    })
}

/// The promises of a quorum of acceptors.
#[derive(Default)]
struct QuorumPromises {
    accepted: Option<(Ballot, Bytes)>,
    rejected: Option<Ballot>,
    decided: Option<Bytes>,
    closed: bool,
}

async fn call<E: Env>(
    env: &E,
    at: &Visit,
    cell: &Bytes,
    step: CellRequest,
) -> Result<QuorumPromises, CallError> {
    let body = Body::Cell {
        cell: cell.clone(),
        step,
    };
    let fold = |heard: &mut QuorumPromises, _from: usize, reply: Reply| match reply {
        Reply::Cell(CellReply::Promised { accepted }) => {
            let ballot =
                |accepted: &Option<(Ballot, Bytes)>| accepted.as_ref().map(|(ballot, _)| *ballot);
            if ballot(&accepted) > ballot(&heard.accepted) {
                heard.accepted = accepted;
            }
            Fold::Count
        }
        Reply::Cell(CellReply::Accepted) => Fold::Count,
        Reply::Cell(CellReply::Rejected { promised }) => {
            heard.rejected = Some(promised);
            Fold::Decide
        }
        Reply::Cell(CellReply::Decided(value)) => {
            heard.decided = Some(value);
            Fold::Decide
        }
        Reply::Cell(CellReply::Closed { .. }) => {
            heard.closed = true;
            Fold::Decide
        }
        _ => Fold::Ignore,
    };
    let tally = Quorum::of(at.c(), body, QuorumPromises::default(), fold);
    gather::gather(env, at, tally).await
}

// ---- server half ----------------------------------------------------------------------------------------------------

/// An acceptor's state for one cell; durable before it answers.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Acceptor {
    /// The largest ballot promised.
    pub promised: Ballot,
    /// The value accepted in the largest ballot.
    pub accepted: Option<(Ballot, Bytes)>,
    /// The cell is decided, with the accepted value.
    pub decided: bool,
}

impl Acceptor {
    /// True if its ballots are possible. An acceptor with impossible ballots abstains, because its promises are not
    /// known (`[N-1 bounded-numbers]`, `[X-11 damage-abstains]`).
    pub fn is_possible(&self) -> bool {
        let accepted = self.accepted.iter().map(|(ballot, _)| ballot);
        accepted.chain([&self.promised]).all(Ballot::is_possible)
    }

    /// True if the value is final.
    pub fn is_decided(&self) -> bool {
        self.decided && self.accepted.is_some()
    }

    /// One step. Returns the answer and whether the state changed, which must be durable before the answer leaves. `closed`:
    /// a configuration comes after this one, and nothing changes here any more (`[X-20 decided-once]`).
    pub fn receive(&mut self, step: CellRequest, closed: bool) -> (CellReply, bool) {
        if let (true, Some((_, value))) = (self.decided, &self.accepted) {
            return (CellReply::Decided(value.clone()), false);
        }
        match step {
            CellRequest::Query => (
                CellReply::Promised {
                    accepted: self.accepted.clone(),
                },
                false,
            ),
            CellRequest::Prepare { .. } | CellRequest::Accept { .. } if closed => (
                CellReply::Closed {
                    accepted: self.accepted.clone(),
                },
                false,
            ),
            CellRequest::Prepare { ballot } if ballot >= self.promised => {
                let changed = ballot > self.promised;
                self.promised = ballot;
                (
                    CellReply::Promised {
                        accepted: self.accepted.clone(),
                    },
                    changed,
                )
            }
            CellRequest::Accept { ballot, value }
                if ballot >= self.promised && !self.has_another(ballot, &value) =>
            {
                let accepted = Some((ballot, value));
                let changed = self.accepted != accepted;
                (self.promised, self.accepted) = (ballot, accepted);
                (CellReply::Accepted, changed)
            }
            CellRequest::Prepare { .. } | CellRequest::Accept { .. } => (
                CellReply::Rejected {
                    promised: self.promised,
                },
                false,
            ),
            CellRequest::Join(_) => unreachable!("of cells that are joined, not decided"),
        }
    }

    /// True if the ballot brought another value. Ballots are unique per attempt, so that one brings one value, however often it comes
    /// (`[R-10 one-value-per-ballot]`): a proposer that breaks this gets no second value in.
    fn has_another(&self, ballot: Ballot, value: &Bytes) -> bool {
        let accepted = self.accepted.as_ref();
        accepted.is_some_and(|(accepted, known)| *accepted == ballot && known != value)
    }

    /// Somebody saw a quorum accept the value. Returns whether the state changed.
    pub fn decide(&mut self, value: Bytes) -> bool {
        if self.decided {
            return false;
        }
        let ballot = self
            .accepted
            .as_ref()
            .map_or(self.promised, |(ballot, _)| *ballot);
        self.accepted = Some((ballot, value));
        self.decided = true;
        true
    }
}
