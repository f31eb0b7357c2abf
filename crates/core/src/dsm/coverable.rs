//! Coverable read and write: a write succeeds on the newest version, or reads it instead (`docs/spec` 1.3 and 4.1;
//! `CoABD` and `CoAres`).
//!
//! A coverable write names the version that it is based on. Its first phase is that of a read, with that version as what
//! the writer has already: while no other client wrote, no data comes back (`[K-1 no-data-if-current]`). If the newest version
//! is the one named, the second phase writes (*chg*); otherwise the write is a read of the newest version (*unchg*,
//! `[K-4 unchanged-is-read]`). The decision falls at the end of the sequence of configurations, over all of them
//! (`[K-2 all-configurations]`), and only on pairs that servers hold (`[K-3 held-pairs-only]`).
//!
//! This is **weak** (`[V-1 weak-coverability]`, `[K-5 weak-everywhere]`): of two concurrent writes that name the same
//! version *both* may succeed. Alice and Bob have both read version 4; both write version 5, each without having seen the
//! other's; both are told that they have succeeded. One of the two versions is larger: that one is read from then on, and
//! the other was overwritten by a writer who had never seen it. At most one success needs consensus for each version, which
//! this does not do. What is kept: a write that begins after another one has ended never succeeds on what that one covered
//! (`[V-2 coverable-properties]`).
//!
//! A write whose outcome is unknown says nothing about the newest version: read before writing again
//! (`[V-3 read-after-unknown]`).
//!
//! | | rounds, quiet | otherwise |
//! |---|---|---|
//! | [`Domain::read`] | 1 | 2 |
//! | [`Domain::write_covering`], chg | 2 | as [`Domain::write`] |
//! | [`Domain::write_covering`], unchg | 1, and the value comes down | as [`Domain::read`] |
//!
//! | pseudocode | here |
//! |---|---|
//! | cvr-read | [`Domain::read`] |
//! | cvr-write | [`Domain::write_covering`], [`Domain::remove_covering`] |

use super::conditional::{Condition, WriteDecision};
use super::interruption::{PutInterruption, era_of};
use super::newest::UnsettledReason;
use super::{Domain, pause};
use crate::dap::{CachedVersion, FoundVersion, PassedVersions, Scope};
use crate::element::Value;
use crate::env::Env;
use crate::error::{Unavailable, WriteError};
use crate::object::Name;
use crate::span;
use crate::tag::{NumbersUsedUp, Tag, Writer};
use bytes::Bytes;

/// The outcome of a coverable write.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CoverableOutcome {
    /// chg: the value is written, as this version.
    Changed(Tag),
    /// unchg: another version is the newest, and nothing was written. What a read returns; it may be that nobody ever
    /// wrote the object.
    Unchanged(FoundVersion),
}

impl From<WriteDecision> for CoverableOutcome {
    fn from(decided: WriteDecision) -> CoverableOutcome {
        match decided {
            WriteDecision::Written { tag, .. } => CoverableOutcome::Changed(tag),
            WriteDecision::Conflict(found) => CoverableOutcome::Unchanged(found),
        }
    }
}

impl<E: Env> Domain<E> {
    /// Writes the value if `version` is the newest; reads the newest otherwise. [`Tag::INITIAL`] is the version of an object
    /// that no client ever wrote.
    ///
    /// # Errors
    /// [`WriteError`] says whether the value may have been written.
    pub async fn write_covering(
        &self,
        name: &Name,
        value: &Value,
        version: Tag,
    ) -> Result<CoverableOutcome, WriteError> {
        let write = self.write_or_read(name, value, (version, Tag::next));
        span::watch!(span::of_object!(span::CVR_WRITE, name), write)
    }

    /// Writes a tombstone, as the first version of the next era ([`Tag::next_era`]): a client that writes at the same time on a
    /// version of this era cannot prevail any more. Otherwise `[V-1 weak-coverability]` would let a file come back whose blocks
    /// are gone.
    ///
    /// # Errors
    /// As [`Domain::write_covering`].
    pub async fn remove_covering(
        &self,
        name: &Name,
        version: Tag,
    ) -> Result<CoverableOutcome, WriteError> {
        let tombstone = Value::tombstone(Bytes::new());
        let remove = self.write_or_read(name, &tombstone, (version, Tag::next_era));
        span::watch!(span::of_object!(span::CVR_WRITE, name), remove)
    }
}

/// The rule by which the version of a write follows from the one that it covers.
type NextTag = fn(Tag, Writer) -> Result<Tag, NumbersUsedUp>;

impl<E: Env> Domain<E> {
    async fn write_or_read(
        &self,
        name: &Name,
        value: &Value,
        (version, next): (Tag, NextTag),
    ) -> Result<CoverableOutcome, WriteError> {
        let mut put = None;
        if !self.is_ranked(name) {
            match self.cover(name, value, (version, next)).await {
                Ok(covered) => return Ok(covered),
                Err(PutInterruption::Failed(error)) => return Err(error),
                Err(PutInterruption::Ranked { put: sent }) => put = sent,
            }
        }
        let wish = self.client.wish(value, Condition::Version(version));
        let decided = Box::pin(self.decide_after(name, wish, put)).await?;
        Ok(decided.into())
    }

    /// Covers a version of an object that is no register.
    async fn cover(
        &self,
        name: &Name,
        value: &Value,
        (version, next): (Tag, NextTag),
    ) -> Result<CoverableOutcome, PutInterruption> {
        let not_applied = |failed| {
            // Nothing of this write was sent yet.
            PutInterruption::from_first_phase(failed)
        };
        let mut have = (!version.is_initial()).then_some(CachedVersion {
            tag: version,
            value: None,
        });
        let mut passed = PassedVersions::default();
        loop {
            let newest = self.newest_past(name, have.as_ref(), Scope::Whole, &passed);
            let newest = span::watch!(span::of_phase!(span::PHASE1), newest);
            let newest = newest.map_err(not_applied)?;
            let newest = newest.expect("only dropped versions are passed over");
            if newest.found.tag == version {
                if newest.exists {
                    // Above what members hold back, too.
                    let (above, writer) =
                        (version.max(newest.found.fence), self.client.next_writer());
                    let era = era_of(name, newest.last.c());
                    let tag = match above.is_initial() && era > 0 {
                        true => above.next_in(era, writer),
                        false => next(above, writer),
                    };
                    let tag =
                        tag.map_err(|used_up| not_applied(Unavailable::from(used_up).into()))?;
                    assert!(
                        tag > version && tag > newest.found.fence,
                        "a new version is above the one that it covers, and above what members hold back"
                    );
                    let written = self.write_as(newest.last.c(), name, value, tag).await;
                    return written.map(|()| CoverableOutcome::Changed(tag));
                }
                // No server holds what the caller claims to have read: a version of another object, or of none. The answers were
                // judged by that claim, so ask again without it.
                have = None;
                continue;
            }
            let tag = newest.found.tag;
            let settled = self.ensure_at_quorum(newest, name).await;
            match settled.map_err(not_applied)? {
                Ok(settled) => return Ok(CoverableOutcome::Unchanged(settled.found)),
                Err(UnsettledReason::Dropped) => passed.dropped.push(tag),
                Err(UnsettledReason::NoRoom) => pause(&self.client).await,
            }
        }
    }
}
