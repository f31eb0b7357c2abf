//! Lattice agreement on the members of a configuration (`docs/spec` 6.5; Jehl and Meling, SM-Store).
//!
//! Proposers bring memberships; what one decides contains its own, and of two decisions one contains the other. So two
//! operators who change a domain at the same time decide on their join, and none of them has to give way.
//!
//! An acceptor keeps the join of all that it was ever sent. A proposer sends its value to a quorum, and is done if all of them
//! have exactly that; otherwise it goes on with the join of what they have. Two proposers that are done share a member, which
//! had the value of one when it took in that of the other.
//!
//! | | rounds |
//! |---|---|
//! | [`propose`] | 1 undisturbed, with `r` proposers at most `r` |
//! | [`read`], [`hand_on`] | 1 |
//!
//! | pseudocode | here |
//! |---|---|
//! | LA-PROP(C, p) | [`propose`]; acceptor: [`Acceptor::join`] |

use super::paxos::Acceptor;
use crate::config::Membership;
use crate::env::{Conclusion, Env};
use crate::error::CallError;
use crate::gather::{self, Fold, Quorum, Visit};
use crate::limits;
use crate::message::{Ballot, Body, CellReply, CellRequest, Reply};
use crate::tag::{ClientId, Writer};
use bytes::Bytes;

/// The cell in which the members of a configuration keep the join of the memberships that were proposed there.
pub const AGREEMENT_CELL: &[u8] = b"agreement";

/// The writer in the ballot of a marked join. No proposer has this writer.
const SEVERAL: Writer = Writer {
    client: ClientId(u64::MAX),
    counter: u64::MAX,
};

// ---- client half ----------------------------------------------------------------------------------------------------

/// Decides on a membership that contains this one. What the visit heard of successors meanwhile goes before the decision:
/// a configuration that has a successor establishes no other one by it (`[R-17 agreement-everywhere]`).
///
/// # Errors
/// [`CallError`] without a quorum in time.
pub async fn propose<E: Env>(
    env: &E,
    at: &Visit,
    membership: &Membership,
) -> Result<Membership, CallError> {
    let mut proposed = membership.clone();
    loop {
        let joined = join(env, at, AGREEMENT_CELL, &proposed).await?.membership;
        assert!(
            membership.is_within(&joined),
            "what is decided contains what was proposed"
        );
        if joined == proposed {
            let (membership, round) = (&proposed, 0);
            env.concluded(at.c(), Conclusion::Merged { membership, round });
            return Ok(proposed);
        }
        proposed = joined;
    }
}

/// The join of all that was decided here, and perhaps more; `None` if nothing was proposed. In a visit that closes the
/// configuration: later proposers have heard of the successor (`[R-16 agreement-moves]`).
///
/// # Errors
/// [`CallError`] without a quorum in time.
pub async fn read<E: Env>(env: &E, at: &Visit) -> Result<Option<Membership>, CallError> {
    let kept = query(env, at, AGREEMENT_CELL).await?;
    Ok(kept.map(|kept| kept.membership))
}

/// Brings a decision of an earlier configuration to a quorum here, so that every decision here contains it
/// (`[R-16 agreement-moves]`).
///
/// # Errors
/// [`CallError`] without a quorum in time.
pub async fn hand_on<E: Env>(
    env: &E,
    at: &Visit,
    membership: &Membership,
) -> Result<(), CallError> {
    let joined = join(env, at, AGREEMENT_CELL, membership).await?.membership;
    assert!(membership.is_within(&joined), "a quorum has it now");
    Ok(())
}

/// The joined content of a cell at a quorum.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeptJoin {
    /// The join of what its members keep.
    pub membership: Membership,
    /// True if a member has marked its join: several proposals came ([`Acceptor::take_in`]).
    pub is_marked: bool,
}

/// Joins a membership to the content of the cell at a quorum.
pub(super) async fn join<E: Env>(
    env: &E,
    at: &Visit,
    cell: &[u8],
    membership: &Membership,
) -> Result<KeptJoin, CallError> {
    let kept = call(env, at, cell, CellRequest::Join(membership.encode())).await?;
    let kept = kept.expect("who joins something keeps something");
    let membership = kept.membership.join(membership);
    Ok(KeptJoin { membership, ..kept })
}

/// Asks a quorum for the joined content of the cell; `None` if the cell is empty.
pub(super) async fn query<E: Env>(
    env: &E,
    at: &Visit,
    cell: &[u8],
) -> Result<Option<KeptJoin>, CallError> {
    call(env, at, cell, CellRequest::Query).await
}

async fn call<E: Env>(
    env: &E,
    at: &Visit,
    cell: &[u8],
    step: CellRequest,
) -> Result<Option<KeptJoin>, CallError> {
    let is_join = matches!(step, CellRequest::Join(_));
    let body = Body::Cell {
        cell: Bytes::copy_from_slice(cell),
        step,
    };
    let fold = move |known: &mut Option<KeptJoin>, _from: usize, reply: Reply| match reply {
        Reply::Cell(CellReply::Promised { accepted: None }) if !is_join => Fold::Count,
        Reply::Cell(CellReply::Promised {
            accepted: Some((ballot, value)),
        }) => match Membership::decode(&value) {
            Ok(kept) => {
                let is_marked = ballot.proposer == SEVERAL;
                *known = Some(match known.take() {
                    None => KeptJoin {
                        membership: kept,
                        is_marked,
                    },
                    Some(known) => KeptJoin {
                        membership: known.membership.join(&kept),
                        is_marked: known.is_marked || is_marked,
                    },
                });
                Fold::Count
            }
            Err(_) => Fold::Ignore,
        },
        _ => Fold::Ignore,
    };
    gather::gather(env, at, Quorum::of(at.c(), body, None, fold)).await
}

// ---- server half ----------------------------------------------------------------------------------------------------

impl Acceptor {
    /// Takes in a membership. Returns the answer, which is the join of all that came, and whether that changed. `None`: it is
    /// no membership, or there are more servers in the join than there may be.
    ///
    /// What is kept stands under a ballot whose number is its size: it only rises, so that recovery takes the last one.
    pub fn join(&mut self, value: &Bytes) -> Option<(CellReply, bool)> {
        self.take_in(value, |_, _| false)
    }

    /// [`Self::join`]; the ballot has a mark from when on `marks` says so, of the old value and the new one.
    pub(super) fn take_in(
        &mut self,
        value: &Bytes,
        marks: impl FnOnce(&Membership, &Membership) -> bool,
    ) -> Option<(CellReply, bool)> {
        let new = Membership::decode(value).ok()?;
        let known = match &self.accepted {
            Some((_, known)) => Some(Membership::decode(known).ok()?),
            None => None,
        };
        // All of one domain say slots, or none does.
        let is_alike = |known: &Membership| known.has_slots() == new.has_slots();
        if !known.as_ref().is_none_or(is_alike) {
            return None;
        }
        let joined = known.as_ref().map_or(new.clone(), |known| known.join(&new));
        let size = joined.size()?;
        if size >= limits::INDEX || joined.versions().len() > limits::LATTICE_SERVERS {
            return None;
        }
        let before = self.accepted.as_ref().map(|(ballot, _)| *ballot);
        let was_marked = before.is_some_and(|before| before.proposer == SEVERAL);
        let is_marked = was_marked || known.as_ref().is_some_and(|known| marks(known, &new));
        let ballot = Ballot {
            number: u64::from(size),
            proposer: if is_marked {
                SEVERAL
            } else {
                Writer::default()
            },
        };
        let changed = before.is_none_or(|before| before < ballot);
        if changed {
            self.accepted = Some((ballot, joined.encode()));
        } else {
            assert_eq!(known, Some(joined), "the size rises along the order");
        }
        let accepted = self.accepted.clone();
        Some((CellReply::Promised { accepted }, changed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ServerId;

    /// An acceptor has the join of all received values, in any order and however often they came.
    #[test]
    fn an_acceptor_keeps_the_join_of_all_that_came() {
        let first = Membership::first((1..=3).map(ServerId));
        let changes = [
            first.with(ServerId(4)),
            first.with(ServerId(5)),
            first.without(ServerId(1)),
            first.removal(),
        ];
        let all = changes
            .iter()
            .fold(first.clone(), |all, change| all.join(change));
        for turn in 0..changes.len() {
            let mut acceptor = Acceptor::default();
            let mut expected = first.clone();
            for place in 0..2 * changes.len() {
                let change = &changes[(place + turn) % changes.len()];
                let before = expected.clone();
                expected = expected.join(change);
                let (reply, changed) = acceptor.join(&change.encode()).unwrap();
                let CellReply::Promised {
                    accepted: Some((_, kept)),
                } = reply
                else {
                    panic!("{reply:?}")
                };
                assert_eq!(Membership::decode(&kept), Ok(expected.clone()));
                assert_eq!(changed, place == 0 || before != expected);
            }
            assert_eq!(expected, all);
            assert!(acceptor.is_possible());
        }
    }

    #[test]
    fn an_acceptor_takes_in_nothing_else() {
        let first = Membership::first((1..=3).map(ServerId));
        let mut acceptor = Acceptor::default();
        acceptor.join(&first.encode()).unwrap();
        let before = acceptor.clone();
        let many = (0..limits::LATTICE_SERVERS as u128).map(|id| ServerId(1000 + id));
        for wrong in [
            Bytes::from_static(b"x"),
            Bytes::new(),
            Membership::first(many).encode(),
            first.clone().with_slots().encode(),
        ] {
            assert_eq!(acceptor.join(&wrong), None);
        }
        assert_eq!(acceptor, before);
    }
}
