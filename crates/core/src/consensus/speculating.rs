//! Speculating snapshot on the members of a configuration (`docs/spec` 6.5; Gafni and Malkhi; Jehl and Meling, SpSn-Store).
//!
//! Proposers bring memberships, as to lattice agreement ([`super::agreement`]), and go through rounds. In a round a proposer
//! proposes its membership to a quorum. If the quorum shows nothing else, it may commit: each other proposer that is done with
//! this proposal meets it at a member, and came later there, or the quorum would have shown it. So each other proposal of this
//! round and of all later ones contains what it commits. If the quorum shows something else, the proposer goes on to the next
//! round with the join of all that.
//!
//! To commit is to announce: the pointers of a configuration are what was committed there, and every answer shows them.
//!
//! Who has nothing of its own to propose must not go on to the next round with what it saw: no proposer of this round may have
//! heard of that. It proposes it first, in this round (`[R-23 propose-first]`), and is a proposer like others.
//!
//! | pseudocode | here | rounds |
//! |---|---|---|
//! | PROPOSE(C, r, p) | [`exchange`] in [`propose`]; member: [`Acceptor::propose`] | 1 |
//! | DECIDE(C, r, not commit, p) | left out: the proposal of the next round hears of the same | 0 |
//! | DECIDE(C, r, commit, p) | [`put_config`](crate::reconfig::sequence::put_config) | 1 |
//!
//! Alone that is one exchange and one to announce; with `r` proposers at most `r` and one.

use super::agreement::{self, KeptJoin};
use super::paxos::Acceptor;
use crate::config::Membership;
use crate::env::{Conclusion, Env};
use crate::error::CallError;
use crate::gather::Visit;
use crate::limits;
use crate::message::CellReply;
use bytes::Bytes;

/// Prefix of the names of round cells. In the cell of a round members keep the join of the memberships that were
/// proposed in the round.
pub const ROUNDS: &[u8] = b"speculation/";

/// The cell of a round.
pub fn round_cell(round: u32) -> Bytes {
    [ROUNDS, round.to_string().as_bytes()].concat().into()
}

// ---- client half ----------------------------------------------------------------------------------------------------

/// Comes to a membership that may be committed: it contains this one, and of two such memberships one contains the other. What
/// the visit heard of successors meanwhile goes before it (`[R-17 agreement-everywhere]`).
///
/// # Errors
/// [`CallError`] without a quorum in time.
pub async fn propose<E: Env>(
    env: &E,
    at: &Visit,
    membership: &Membership,
) -> Result<Membership, CallError> {
    propose_from(env, at, 0, membership).await
}

/// [`propose`] from a later round on: the proposal was brought to the rounds before.
///
/// # Errors
/// As [`propose`].
pub async fn propose_from<E: Env>(
    env: &E,
    at: &Visit,
    first: u32,
    membership: &Membership,
) -> Result<Membership, CallError> {
    let mut proposed = membership.clone();
    for round in first.. {
        let shown = exchange(env, at, round, &proposed).await?;
        assert!(proposed.is_within(&shown.membership), "a quorum has it now");
        if shown.membership == proposed && !shown.is_marked {
            assert!(membership.is_within(&proposed), "proposals rise");
            let membership = &proposed;
            env.concluded(at.c(), Conclusion::Merged { membership, round });
            return Ok(proposed);
        }
        proposed = shown.membership;
    }
    unreachable!("there are fewer rounds than numbers")
}

/// Proposes a membership in a round. Returns the join of the memberships that the members of a quorum received in this
/// round. The join is marked if these memberships differ.
///
/// # Errors
/// [`CallError`] without a quorum in time.
pub async fn exchange<E: Env>(
    env: &E,
    at: &Visit,
    round: u32,
    proposed: &Membership,
) -> Result<KeptJoin, CallError> {
    let cell = round_cell(round);
    assert!(cell.len() <= limits::CELL_NAME_BYTES, "members take it");
    agreement::join(env, at, &cell, proposed).await
}

/// The join of all that was committed here, and perhaps more; `None` if nothing was proposed. In a visit that closes the
/// configuration: later proposers have heard of the successor (`[R-16 agreement-moves]`).
///
/// # Errors
/// [`CallError`] without a quorum in time.
pub async fn read<E: Env>(env: &E, at: &Visit) -> Result<Option<Membership>, CallError> {
    let mut known: Option<Membership> = None;
    // Who proposes in a round was at a quorum in each round before.
    for round in 0.. {
        let Some(kept) = read_round(env, at, round).await? else {
            break;
        };
        known = Some(known.map_or(kept.clone(), |known| known.join(&kept)));
    }
    Ok(known)
}

/// The join of the memberships that a quorum was sent in a round; `None` if there are none.
///
/// # Errors
/// As [`read`].
pub async fn read_round<E: Env>(
    env: &E,
    at: &Visit,
    round: u32,
) -> Result<Option<Membership>, CallError> {
    let kept = agreement::query(env, at, &round_cell(round)).await?;
    Ok(kept.map(|kept| kept.membership))
}

// ---- server half ----------------------------------------------------------------------------------------------------

impl Acceptor {
    /// Takes in a proposal of a round. Returns the answer and whether the state changed, as [`Acceptor::join`]; the join is
    /// marked as soon as it is of different proposals. What came before is in the answer, in one step.
    pub fn propose(&mut self, value: &Bytes) -> Option<(CellReply, bool)> {
        self.take_in(value, |known, new| known != new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ServerId;
    use crate::tag::Writer;

    fn marked(acceptor: &mut Acceptor, proposal: &Membership) -> (Membership, bool, bool) {
        let (reply, changed) = acceptor.propose(&proposal.encode()).unwrap();
        let CellReply::Promised {
            accepted: Some((ballot, kept)),
        } = reply
        else {
            panic!("{reply:?}")
        };
        assert!(ballot.is_possible() && acceptor.is_possible());
        let kept = Membership::decode(&kept).unwrap();
        (kept, ballot.proposer != Writer::default(), changed)
    }

    /// A member says whether different proposals came, also where one of them contains the others.
    #[test]
    fn a_member_tells_one_proposal_from_several() {
        let first = Membership::first((1..=3).map(ServerId));
        let (small, large) = (
            first.with(ServerId(4)),
            first.with(ServerId(4)).with(ServerId(5)),
        );
        for order in [[&small, &large], [&large, &small]] {
            let mut acceptor = Acceptor::default();
            let one = order[0].clone();
            assert_eq!(marked(&mut acceptor, order[0]), (one.clone(), false, true));
            assert_eq!(marked(&mut acceptor, order[0]), (one, false, false));
            assert_eq!(marked(&mut acceptor, order[1]), (large.clone(), true, true));
            assert_eq!(
                marked(&mut acceptor, order[1]),
                (large.clone(), true, false)
            );
            let other = first.with(ServerId(6));
            let all = large.join(&other);
            assert_eq!(marked(&mut acceptor, &other), (all.clone(), true, true));
            assert_eq!(marked(&mut acceptor, &all), (all, true, false));
        }
        assert_eq!(Acceptor::default().propose(&Bytes::from_static(b"x")), None);
    }
}
