//! The mailbox of a configuration: the changes that reconfigurers want to make of it (`docs/spec` `[A-14 merged-changes]`).
//!
//! A reconfigurer posts its change at a quorum of the last configuration before it proposes anything, and the members answer
//! with all that was posted there. Of two reconfigurers one hears of the other: their quorums share a member, which takes one
//! change in first. So the one that comes second can propose both, and neither needs a configuration of its own.
//!
//! Nothing is decided here and nothing rests on it: what comes next is decided as before. An entry is of no use once a
//! successor is decided, and goes with its configuration. A full mailbox keeps what it has, and later changes are
//! proposed by their own reconfigurers alone.
//!
//! | | rounds |
//! |---|---|
//! | [`post`], [`read`] | 1, in the place of the one that reads the pointers of the configuration |

use super::paxos::Acceptor;
use crate::config::Configuration;
use crate::env::Env;
use crate::error::CallError;
use crate::gather::{self, Fold, Quorum, Visit};
use crate::limits;
use crate::message::{Ballot, Body, CellReply, CellRequest, Reply};
use crate::tag::Writer;
use crate::tlv::{self, MUST_UNDERSTAND};
use bytes::{Bytes, BytesMut};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The cell in which the members of a configuration keep posted changes.
pub const MAILBOX_CELL: &[u8] = b"changes";

/// The changes that were posted in a configuration.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PostedChanges {
    pub configuration: Arc<Configuration>,
    pub changes: BTreeSet<Bytes>,
}

/// A change that was posted.
const ENTRY: u16 = MUST_UNDERSTAND | 1;

// ---- client half ----------------------------------------------------------------------------------------------------

/// Posts an entry, and returns all that a quorum has.
///
/// # Errors
/// [`CallError`] without a quorum in time; some members may have the entry.
pub async fn post<E: Env>(env: &E, at: &Visit, entry: Bytes) -> Result<BTreeSet<Bytes>, CallError> {
    assert!(entry.len() < limits::CELL_BYTES, "it fits a mailbox");
    ask(env, at, CellRequest::Join(entry)).await
}

/// All that a quorum has, with nothing posted.
///
/// # Errors
/// [`CallError`] without a quorum in time.
pub async fn read<E: Env>(env: &E, at: &Visit) -> Result<BTreeSet<Bytes>, CallError> {
    ask(env, at, CellRequest::Query).await
}

async fn ask<E: Env>(env: &E, at: &Visit, step: CellRequest) -> Result<BTreeSet<Bytes>, CallError> {
    let body = Body::Cell {
        cell: Bytes::from_static(MAILBOX_CELL),
        step,
    };
    let fold = |posted: &mut BTreeSet<Bytes>, _from: usize, reply: Reply| match reply {
        Reply::Cell(CellReply::Promised { accepted }) => {
            posted.extend(accepted.iter().flat_map(|(_, value)| entries(value)));
            Fold::Count
        }
        _ => Fold::Ignore,
    };
    gather::gather(env, at, Quorum::of(at.c(), body, BTreeSet::new(), fold)).await
}

fn entries(value: &Bytes) -> impl Iterator<Item = Bytes> {
    let fields = tlv::fields(value).map_while(Result::ok);
    let entries = fields.filter(|(kind, _)| *kind == ENTRY);
    entries.map(|(_, entry)| value.slice_ref(entry))
}

// ---- server half ----------------------------------------------------------------------------------------------------

impl Acceptor {
    /// All that was posted.
    pub fn posted(&self) -> BTreeSet<Bytes> {
        let kept = self.accepted.iter();
        kept.flat_map(|(_, value)| entries(value)).collect()
    }

    /// Takes in an entry. Returns the answer, which is all that was posted, and whether that changed.
    ///
    /// What is kept stands under a ballot whose number counts the entries: it only rises, so that recovery takes the last one.
    pub fn post(&mut self, entry: &Bytes) -> (CellReply, bool) {
        let known = self.accepted.as_ref().map(|(_, value)| value.clone());
        let known = known.unwrap_or_default();
        let (count, is_known) = (
            entries(&known).count(),
            entries(&known).any(|it| it == entry),
        );
        let fits = known.len() + tlv::HEAD_BYTES + entry.len() <= limits::CELL_BYTES;
        let changed = !is_known && fits;
        if changed {
            let mut value = BytesMut::from(known.as_ref());
            tlv::put_field(&mut value, ENTRY, entry);
            let ballot = Ballot {
                number: count as u64 + 1,
                proposer: Writer::default(),
            };
            let before = self.accepted.replace((ballot, value.freeze()));
            assert!(
                before.is_none_or(|(known, _)| known < ballot),
                "entries only come"
            );
        }
        let accepted = self.accepted.clone();
        let kept = |(_, value): &(Ballot, Bytes)| entries(value).any(|it| it == entry);
        let is_kept = accepted.as_ref().is_some_and(kept);
        assert_eq!(is_kept, is_known || changed, "an entry that came is shown");
        (CellReply::Promised { accepted }, changed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn posted(reply: &CellReply) -> Vec<Bytes> {
        let CellReply::Promised { accepted } = reply else {
            panic!("{reply:?}")
        };
        accepted
            .iter()
            .flat_map(|(_, value)| entries(value))
            .collect()
    }

    /// In any order and however often an entry comes, it is there once.
    #[test]
    fn a_mailbox_keeps_each_entry_once() {
        let [one, other] = ["one", "other"].map(|it| Bytes::from_static(it.as_bytes()));
        let mut mailbox = Acceptor::default();
        let steps = [(&one, true, 1), (&one, false, 1), (&other, true, 2)];
        for (entry, is_new, count) in steps.into_iter().chain([(&one, false, 2)]) {
            let (reply, changed) = mailbox.post(entry);
            assert_eq!((changed, posted(&reply).len()), (is_new, count));
            assert!(posted(&reply).contains(entry));
            assert!(mailbox.is_possible());
            let number = mailbox.accepted.as_ref().map(|(ballot, _)| ballot.number);
            assert_eq!(number, Some(count as u64));
        }
    }

    /// A full mailbox shows its content to later clients, too.
    #[test]
    fn a_full_mailbox_keeps_what_it_has() {
        let entry = |number: usize| Bytes::from(vec![number as u8; 1000]);
        let mut mailbox = Acceptor::default();
        let taken = (0..20).take_while(|number| mailbox.post(&entry(*number)).1);
        let taken = taken.count();
        assert_eq!(taken, limits::CELL_BYTES / (1000 + tlv::HEAD_BYTES));
        let before = mailbox.clone();
        let (reply, changed) = mailbox.post(&entry(taken));
        assert_eq!((changed, posted(&reply).len()), (false, taken));
        assert_eq!(mailbox, before);
        let small = Bytes::from_static(b"small");
        assert!(mailbox.post(&small).1, "one that fits is taken in");
    }
}
