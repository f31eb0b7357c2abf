//! Unreadable versions, and room for new ones beside them (`docs/spec` `[X-3 unconfirmed-cap]`).
//!
//! Members keep every version above the confirmed one, up to a cap. At the cap a new version is refused until one is confirmed.
//! A read does that if it can: it finds the newest version that can be read, completes and confirms it, and what is below goes.
//! What is above it and cannot be read stays, and may fill the cap by itself: put-data that ended half way, because disks
//! were full or writers died. Then the versions above are dropped one by one, each by a decision ([`fate`]).
//!
//! | step | rounds |
//! |---|---|
//! | the read, its write-back and its confirmation | 1 or 2 |
//! | where the read before found the same version: the largest tag, the fence | 2 |
//! | the fate of each version above, at once | 2 |
//! | the drops | 1 |

use super::interruption::Interruption;
use super::newest::UnsettledReason;
use super::{Domain, pause};
use crate::config::Configuration;
use crate::consensus::fate::{self, Fate};
use crate::dap::{self, PassedVersions, PutError, Scope};
use crate::element::Value;
use crate::env::Env;
use crate::error::CallError;
use crate::gather::{self, Visit};
use crate::limits;
use crate::object::Name;
use crate::tag::Tag;
use crate::timing;
use std::sync::Arc;
use std::time::Duration;

/// The progress of an operation that found members full.
#[derive(Default)]
pub(super) struct Room {
    /// The version that the last attempt confirmed.
    confirmed: Option<Tag>,
    /// The number of times that it made room.
    attempts: u32,
}

impl Room {
    /// The time that the operation waits for silent members where others have no room. It grows: members that are slow, and not down, answer in time
    /// sooner or later.
    pub(super) fn grace(&self) -> Duration {
        timing::ROOM_GRACE * (1 << self.attempts.min(6))
    }

    /// Makes room for a new version where the sequence of the domain ends, in a configuration that need not be final. `own` is the
    /// version that the caller is putting, if it has a tag already. The second time it waits a random while first, so that
    /// clients that met at the cap do not meet again at once. Returns where the domain's sequence ends now: without pointers
    /// on replies, a caller that asked the same configuration again would never hear of a successor.
    pub(super) async fn make<E: Env>(
        &mut self,
        domain: &Domain<E>,
        name: &Name,
        own: Tag,
    ) -> Result<Arc<Configuration>, Interruption> {
        self.attempts += 1;
        // Boxed: it is rare, and every operation would be as large as these.
        let (newest, last) = Box::pin(domain.complete_newest(name)).await?;
        if self.confirmed.replace(newest) != Some(newest) {
            return Ok(last);
        }
        pause(&domain.client).await;
        match Box::pin(domain.drop_stranded(&last, name, (newest, own))).await {
            // A successor is known: there is room there, or none is needed here.
            Ok(()) | Err(CallError::Moved) => Ok(last),
            Err(CallError::Unavailable(unavailable)) => Err(unavailable.into()),
        }
    }
}

impl<E: Env> Domain<E> {
    /// Finds the newest version that can be read, makes sure that it is at a quorum, and confirms it. Returns it, and the
    /// configuration where it is.
    async fn complete_newest(
        &self,
        name: &Name,
    ) -> Result<(Tag, Arc<Configuration>), Interruption> {
        let mut passed = PassedVersions {
            finishes: true,
            ..PassedVersions::default()
        };
        loop {
            let found = self.newest_past(name, None, Scope::Whole, &passed).await?;
            let found = found.expect("only dropped versions are passed over");
            let (tag, last) = (found.found.tag, found.last.c().clone());
            if found.at_quorum(&self.client, name) {
                if !tag.is_initial() {
                    dap::confirm(&self.client.env, &found.last, name, tag);
                }
                return Ok((tag, last));
            }
            match self.write_back(&found, name).await? {
                Ok(_) => return Ok((tag, last)),
                Err(UnsettledReason::Dropped) => passed.dropped.push(tag),
                Err(UnsettledReason::NoRoom) => pause(&self.client).await,
            }
        }
    }

    /// Drops the unreadable versions above `newest` that are at too few members.
    async fn drop_stranded(
        &self,
        c: &Arc<Configuration>,
        name: &Name,
        (newest, own): (Tag, Tag),
    ) -> Result<(), CallError> {
        let env = &self.client.env;
        // Before it is final a transfer may be bringing versions here that are complete elsewhere.
        if self.client.sequences().highest_final(c) != *c {
            return Ok(());
        }
        let at = Visit::new(c);
        let largest = dap::get_tag(env, &at, name).await?.max(own);
        if largest <= newest {
            return Ok(());
        }
        let stranded = dap::fence(env, &at, name, (newest, largest), own).await?;
        // Members that answered with a successor may have closed before they raised the fence.
        if !at.is_last() {
            return Err(CallError::Moved);
        }
        assert!(
            stranded.iter().all(|tag| newest < *tag && *tag <= largest),
            "what can be read stays, and what the fence does not hold back"
        );
        assert!(
            !stranded.contains(&own),
            "a writer does not give up its own version"
        );
        let fates = stranded.iter().map(|tag| async {
            let fate = fate::decide(env, &at, (name, *tag), Fate::Dropped, || {
                self.client.next_writer()
            });
            fate.await.map(|fate| (*tag, fate))
        });
        let fates = gather::join(limits::FATE_WINDOW, fates).await;
        let fates = fates.into_iter().collect::<Result<Vec<_>, CallError>>()?;
        let dropped = fates.into_iter().filter(|(_, fate)| *fate == Fate::Dropped);
        let dropped: Vec<Tag> = dropped.map(|(tag, _)| tag).collect();
        match dropped.is_empty() {
            true => Ok(()),
            false => dap::drop_versions(env, &at, name, &dropped).await,
        }
    }

    /// Brings a version to a quorum that met a fence, if it is decided to be kept. That is proposed of a `readable` one. One that
    /// no other client can read must not be kept: if its writer ended now, it would stay for ever.
    pub(super) async fn keep(
        &self,
        at: &Visit,
        name: &Name,
        (tag, value): (Tag, &Value),
        readable: bool,
    ) -> Result<(), KeepError> {
        let env = &self.client.env;
        let proposed = if readable { Fate::Kept } else { Fate::Dropped };
        let decided = fate::decide(env, at, (name, tag), proposed, || self.client.next_writer());
        let decided = decided.await;
        match decided.map_err(|failed| KeepError::Put(failed.into()))? {
            Fate::Dropped => Err(KeepError::Dropped),
            Fate::Kept => {
                let kept = dap::keep_data(env, at, name, tag, value).await;
                kept.map_err(KeepError::Put)
            }
        }
    }
}

/// Why a version did not come to a quorum, where members had raised a fence above it.
pub(super) enum KeepError {
    /// It was decided that it is dropped.
    Dropped,
    /// The error of a put-data.
    Put(PutError),
}
