//! Single-decree Paxos on the members of a configuration, one instance per cell (Lamport; `algorithms.md` 6.5 Rambo,
//! `[R-9]`, `[R-10]`, `[X-16]`).
//!
//! A proposer asks a quorum to promise a ballot and to say what they accepted before; it then asks a quorum to accept the
//! value of the highest ballot that it was told of, or its own if there is none. Two quorums share a member, so that a
//! value accepted by a quorum is found by every later proposer. Quorums are the configuration's own.
//!
//! | | rounds |
//! |---|---|
//! | [`propose`] | 2 undisturbed |
//! | [`learn`] | 1; 2 more if somebody left it undecided |
//!
//! | pseudocode | here |
//! |---|---|
//! | PREPARE(rnd) | `prepare`; acceptor: [`Acceptor::receive`] |
//! | ACCEPT(rnd, v) | `accept`; acceptor: [`Acceptor::receive`] |

use crate::config::Configuration;
use crate::env::Env;
use crate::error::Unavailable;
use crate::gather::{self, Fold, Quorum};
use crate::message::{Ballot, Body, CellReply, CellRequest, Note, Reply};
use crate::tag::Writer;
use bytes::Bytes;
use std::sync::Arc;
use std::time::Duration;

// ---- client half ----------------------------------------------------------------------------------------------------

/// Decides the cell and returns its value: `value`, or what was decided before.
///
/// # Errors
/// [`Unavailable`] without a quorum in time; the value may be decided all the same, now or by a later proposer.
pub async fn propose<E: Env>(
    env: &E,
    c: &Arc<Configuration>,
    cell: &Bytes,
    value: Bytes,
    mut proposer: impl FnMut() -> Writer,
) -> Result<Bytes, Unavailable> {
    let mut number = 0;
    loop {
        let ballot = Ballot {
            number: number + 1,
            proposer: proposer(),
        };
        let rejected = match prepare(env, c, cell, ballot).await? {
            Prepared::Decided(decided) => return Ok(decided),
            Prepared::Rejected(promised) => promised,
            Prepared::Promised(accepted) => {
                let chosen = accepted.map_or(value.clone(), |(_, accepted)| accepted);
                match accept(env, c, cell, ballot, chosen.clone()).await? {
                    Accepted::Decided(decided) => return Ok(decided),
                    Accepted::Rejected(promised) => promised,
                    Accepted::Chosen => {
                        let (configuration, cell, value) = (c.id(), cell.clone(), chosen.clone());
                        env.tell(
                            c.members(),
                            Note::Decided {
                                configuration,
                                cell,
                                value,
                            },
                        );
                        return Ok(chosen);
                    }
                }
            }
        };
        // Above whoever is ahead, after a random while, so that one of the two gets through ([R-9]).
        number = rejected.number.max(number + 1);
        env.sleep(Duration::from_micros(env.random() % 5000)).await;
    }
}

/// The decided value, if there is one. Finishes what another proposer left undecided.
///
/// # Errors
/// [`Unavailable`] without a quorum in time.
pub async fn learn<E: Env>(
    env: &E,
    c: &Arc<Configuration>,
    cell: &Bytes,
    proposer: impl FnMut() -> Writer,
) -> Result<Option<Bytes>, Unavailable> {
    match call(env, c, cell, CellRequest::Query).await? {
        Heard {
            decided: Some(decided),
            ..
        } => Ok(Some(decided)),
        Heard {
            accepted: Some((_, value)),
            ..
        } => propose(env, c, cell, value, proposer).await.map(Some),
        Heard { .. } => Ok(None),
    }
}

enum Prepared {
    Promised(Option<(Ballot, Bytes)>),
    Rejected(Ballot),
    Decided(Bytes),
}

async fn prepare<E: Env>(
    env: &E,
    c: &Arc<Configuration>,
    cell: &Bytes,
    ballot: Ballot,
) -> Result<Prepared, Unavailable> {
    let heard = call(env, c, cell, CellRequest::Prepare { ballot }).await?;
    Ok(match heard {
        Heard {
            decided: Some(decided),
            ..
        } => Prepared::Decided(decided),
        Heard {
            rejected: Some(promised),
            ..
        } => Prepared::Rejected(promised),
        Heard { accepted, .. } => Prepared::Promised(accepted),
    })
}

enum Accepted {
    Chosen,
    Rejected(Ballot),
    Decided(Bytes),
}

async fn accept<E: Env>(
    env: &E,
    c: &Arc<Configuration>,
    cell: &Bytes,
    ballot: Ballot,
    value: Bytes,
) -> Result<Accepted, Unavailable> {
    let heard = call(env, c, cell, CellRequest::Accept { ballot, value }).await?;
    Ok(match heard {
        Heard {
            decided: Some(decided),
            ..
        } => Accepted::Decided(decided),
        Heard {
            rejected: Some(promised),
            ..
        } => Accepted::Rejected(promised),
        Heard { .. } => Accepted::Chosen,
    })
}

/// What a quorum of acceptors said.
#[derive(Default)]
struct Heard {
    accepted: Option<(Ballot, Bytes)>,
    rejected: Option<Ballot>,
    decided: Option<Bytes>,
}

async fn call<E: Env>(
    env: &E,
    c: &Arc<Configuration>,
    cell: &Bytes,
    step: CellRequest,
) -> Result<Heard, Unavailable> {
    let body = Body::Cell {
        cell: cell.clone(),
        step,
    };
    let fold = |heard: &mut Heard, _from: usize, reply: Reply| match reply {
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
        _ => Fold::Ignore,
    };
    let tally = Quorum::new(c.n(), c.quorums().quorum(), body, Heard::default(), fold);
    gather::gather(env, c, tally).await
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
    /// One step. Returns the answer and whether the state changed, which must be durable before the answer leaves.
    pub fn receive(&mut self, step: CellRequest) -> (CellReply, bool) {
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
            CellRequest::Accept { ballot, value } if ballot >= self.promised => {
                // Ballots are unique per attempt, so that one ballot brings one value, however often it comes ([R-10]).
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
        }
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
