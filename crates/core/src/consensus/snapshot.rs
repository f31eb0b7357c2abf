//! Weak snapshot on the members of a configuration (`docs/spec` 6.6; Aguilera and others; Jehl and Meling, DynaStore).
//!
//! Reconfigurers write their memberships to the members of a configuration, and what was written are its successors: several, of
//! which none need contain another. All that is collected there, by several clients, has a common element, so that all
//! go on to one successor at least (`[R-22 collect-again]`).
//!
//! What is written are the pointers of the configuration, which every answer shows; they are collected by each operation that
//! passes ([`crate::reconfig::walk`]). Here is the step before: to write as few as possible, reconfigurers ask one and the same member
//! which one came first, and write that one. If the member does not answer, any other one is asked. So two reconfigurers may write two
//! memberships, and nothing rests on this step.
//!
//! | pseudocode | here | rounds |
//! |---|---|---|
//! | lines 2 to 6, at some member | [`first`]; member: [`Acceptor::keep_first`] | 1, of one member |
//! | ADDCHANGES, GETCHANGES | [`put_config`](crate::reconfig::sequence::put_config) | 1 |
//! | ADDCHANGES, GETCHANGES again | [`crate::reconfig::walk`]: until a quorum shows the same | 1; 1 more for each change that comes meanwhile |

use super::paxos::Acceptor;
use crate::config::Membership;
use crate::env::Env;
use crate::error::CallError;
use crate::gather::{self, ConfiguredTally, Decision, Event, Visit};
use crate::message::{Ballot, Body, CellReply, CellRequest, Reply};
use crate::tag::Writer;
use crate::timing;
use bytes::Bytes;
use std::time::Duration;

/// The cell in which a member of a configuration keeps the first membership that it was sent.
pub const FIRST_CELL: &[u8] = b"first";

// ---- client half ----------------------------------------------------------------------------------------------------

/// Asks one member for the membership that came first there, which is this one if none came before. The visit hears of the
/// successors that the member knows.
///
/// # Errors
/// [`CallError`] without an answer in time.
pub async fn first<E: Env>(
    env: &E,
    at: &Visit,
    membership: &Membership,
) -> Result<Membership, CallError> {
    let proposed = CellRequest::Join(membership.encode());
    let tally = One {
        body: Body::Cell {
            cell: Bytes::from_static(FIRST_CELL),
            step: proposed,
        },
        refused: vec![false; at.c().n()],
        asks_others: false,
    };
    gather::gather(env, at, tally).await
}

/// Asks the first member, and the others if it does not answer; one answer is enough.
struct One {
    body: Body,
    /// For each member whether it refused and cannot be asked again.
    refused: Vec<bool>,
    asks_others: bool,
}

impl One {
    fn ask_others(&mut self) -> Decision<Membership> {
        assert!(!self.refused.is_empty(), "a configuration has members");
        if std::mem::replace(&mut self.asks_others, true) {
            return Decision::Pending;
        }
        Decision::Ask((1..self.refused.len()).collect())
    }
}

impl ConfiguredTally for One {
    type Output = Membership;

    fn needed(&self) -> usize {
        1
    }

    fn ask(&mut self, position: usize) -> Option<Body> {
        (position == 0 || self.asks_others).then(|| self.body.clone())
    }

    fn prefers(&self, position: usize) -> bool {
        position == 0
    }

    fn add(&mut self, from: usize, event: Event) -> Decision<Membership> {
        let first = match event {
            Event::Reply(Reply::Cell(CellReply::Promised {
                accepted: Some((_, first)),
            })) => Membership::decode(&first).ok(),
            Event::Unreachable => return self.ask_others(),
            Event::Reply(_) | Event::Refused(_) => None,
        };
        if let Some(first) = first {
            return Decision::Done(first);
        }
        self.refused[from] = true;
        match self.refused.iter().all(|refused| *refused) {
            true => Decision::Impossible,
            false => self.ask_others(),
        }
    }

    fn tick(&mut self) -> Decision<Membership> {
        self.ask_others()
    }

    fn patience(&self) -> Option<Duration> {
        (!self.asks_others).then_some(timing::HEDGE)
    }
}

// ---- server half ----------------------------------------------------------------------------------------------------

impl Acceptor {
    /// Keeps the membership if none came before. Returns the answer, which is the one that did, and whether that changed. `None`: it
    /// is no membership.
    pub fn keep_first(&mut self, value: &Bytes) -> Option<(CellReply, bool)> {
        Membership::decode(value).ok()?;
        let is_first = self.accepted.is_none();
        if is_first {
            let ballot = Ballot {
                number: 1,
                proposer: Writer::default(),
            };
            self.accepted = Some((ballot, value.clone()));
        }
        let accepted = self.accepted.clone();
        assert!(accepted.is_some(), "what came first is shown");
        Some((CellReply::Promised { accepted }, is_first))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ServerId;
    use crate::message::Refusal;

    fn of(server: u128) -> Membership {
        Membership::first((1..=3).map(ServerId)).with(ServerId(server))
    }

    fn kept(reply: CellReply) -> Membership {
        let CellReply::Promised {
            accepted: Some((ballot, kept)),
        } = reply
        else {
            panic!("{reply:?}")
        };
        assert!(ballot.is_possible());
        Membership::decode(&kept).unwrap()
    }

    #[test]
    fn a_member_keeps_what_came_first() {
        let mut acceptor = Acceptor::default();
        for (sent, changes) in [(4, true), (4, false), (5, false)] {
            let (reply, changed) = acceptor.keep_first(&of(sent).encode()).unwrap();
            assert_eq!((kept(reply), changed), (of(4), changes));
            assert!(acceptor.is_possible());
        }
        let mut empty = Acceptor::default();
        assert_eq!(empty.keep_first(&Bytes::from_static(b"x")), None);
        assert_eq!(empty, Acceptor::default());
    }

    fn tally() -> One {
        One {
            body: Body::ReadConfig,
            refused: vec![false; 3],
            asks_others: false,
        }
    }

    #[test]
    fn one_member_is_asked_and_others_if_it_does_not_answer() {
        let asked = |tally: &mut One| (0..3).filter(|it| tally.ask(*it).is_some()).count();
        let reply = || {
            let (reply, _) = Acceptor::default().keep_first(&of(4).encode()).unwrap();
            Event::Reply(Reply::Cell(reply))
        };
        let mut answered = tally();
        assert_eq!((asked(&mut answered), answered.needed()), (1, 1));
        assert_eq!(answered.patience(), Some(timing::HEDGE));
        assert_eq!(answered.add(0, reply()), Decision::Done(of(4)));
        let others = Decision::Ask(vec![1, 2]);
        let mut late = tally();
        assert_eq!(late.tick(), others);
        assert_eq!((asked(&mut late), late.patience()), (3, None));
        assert_eq!(late.add(1, Event::Unreachable), Decision::Pending);
        assert_eq!(late.add(2, reply()), Decision::Done(of(4)));
        assert_eq!(tally().add(0, Event::Unreachable), others);
        let mut refused = tally();
        let refuse = || Event::Refused(Refusal::Damaged);
        assert_eq!(refused.add(0, refuse()), others);
        assert_eq!(
            refused.add(2, Event::Reply(Reply::Config)),
            Decision::Pending
        );
        assert_eq!(refused.add(1, refuse()), Decision::Impossible);
    }
}
