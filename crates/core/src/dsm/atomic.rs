//! Atomic read and write: two phases over the configurations of a domain's sequence, in each of them by its data access
//! primitives (`docs/spec` 1.1, 3.3, 3.4).
//!
//! Both phases go along the sequence from the freshest final configuration that the client knows; the second one starts
//! where the first one ended (`[A-6 second-phase-start]`). A phase is over at a configuration whose servers answered without
//! knowing a next one. With piggybacking they say so with every reply; without (Ares), a round of its own asks them.
//!
//! | | rounds, quiet | otherwise |
//! |---|---|---|
//! | [`Domain::write`] | 2 | |
//! | [`Domain::put_version`] | 1 | |
//! | [`Domain::read`] | 1, when the version is known to be at a quorum (`[F-1 quorum-agrees]` to `[F-4 last-configuration]`) | 2 |
//! | [`Domain::stat`] | 1 | 2, with the content |
//! | without piggybacking | 2 more; of a read, 3 in all where all members have shown the version, otherwise 4 | |
//! | for each configuration on the way | + 1 | + 1 to spread a pointer that is not at a quorum |

use super::interruption::{Detour, Interruption, PutInterruption, era_of, is_put_to, within};
use super::newest::{Newest, SettledVersion, UnsettledReason};
use super::room::{KeepError, Room};
use super::{Client, Domain, pause};
use crate::config::Configuration;
use crate::dap::kind::{Remembers, of_kind};
use crate::dap::{
    self, CachedVersion, FoundVersion, OfferOutcome, PassedVersions, PutError, Scope,
};
use crate::element::Value;
use crate::env::Env;
use crate::error::{CallError, Unavailable, WriteError};
use crate::gather::Visit;
use crate::object::Name;
use crate::reconfig::walk::{Step, WalkOutcome};
use crate::span;
use crate::tag::Tag;
use std::sync::Arc;

impl<E: Env> Domain<E> {
    /// The newest version of the object. `known` saves the transfer of a value that the caller has.
    ///
    /// # Errors
    /// [`Unavailable`].
    pub async fn read(
        &self,
        name: &Name,
        known: Option<&CachedVersion>,
    ) -> Result<FoundVersion, Unavailable> {
        let read = self.read_within(name, known);
        span::watch!(span::of_object!(span::READ, name), read)
    }

    /// [`Self::read`] as a part of the current span, which goes on with the version.
    ///
    /// # Errors
    /// [`Unavailable`].
    pub async fn read_within(
        &self,
        name: &Name,
        known: Option<&CachedVersion>,
    ) -> Result<FoundVersion, Unavailable> {
        let mut is_register = self.is_ranked(name);
        loop {
            if is_register {
                // In a place of its own: an operation's future fits a page without it.
                let read = Box::pin(self.read_register(name, known, Scope::Whole)).await?;
                if let Some(found) = read {
                    self.client.env.progressed();
                    return Ok(found);
                }
            }
            match self
                .read_settled(name, known, PassedVersions::default())
                .await
            {
                Ok(settled) => {
                    self.client.env.progressed();
                    return Ok(settled.found);
                }
                Err(Interruption::Unavailable(unavailable)) => return Err(unavailable),
                Err(Interruption::Ranked) => is_register = true,
            }
        }
    }

    /// [`Self::read`] of an object that is no register, past some versions, with the configuration where the version is at a quorum.
    pub(super) async fn read_settled(
        &self,
        name: &Name,
        known: Option<&CachedVersion>,
        mut passed: PassedVersions,
    ) -> Result<SettledVersion, Interruption> {
        let mut full = None;
        loop {
            let newest = self.newest_past(name, known, Scope::Whole, &passed);
            let Some(newest) = span::watch!(span::of_phase!(span::PHASE1), newest)? else {
                // No other version may be returned: only room for a write-back helps.
                if let Some(unavailable) = full {
                    return Err(Interruption::Unavailable(unavailable));
                }
                passed.unplaced.clear();
                pause(&self.client).await;
                continue;
            };
            let tag = newest.found.tag;
            span::record_tag(tag);
            span::record_bytes(newest.found.length);
            match self.ensure_at_quorum(newest, name).await {
                Ok(Ok(settled)) => return Ok(settled),
                Ok(Err(UnsettledReason::Dropped)) => {
                    passed.dropped.push(tag);
                    continue;
                }
                Ok(Err(UnsettledReason::NoRoom)) => {}
                Err(Interruption::Unavailable(unavailable)) if unavailable.lacks_room() => {
                    full = Some(unavailable);
                }
                Err(error) => return Err(error),
            }
            // It need not be this one: a put that ended without a quorum may have left it.
            passed.unplaced.push(tag);
        }
    }
}

impl<E: Env> Domain<E> {
    /// Phase 2 of a read: makes sure that the version is at a quorum, if it can be.
    pub(super) async fn ensure_at_quorum(
        &self,
        newest: Newest,
        name: &Name,
    ) -> Result<Result<SettledVersion, UnsettledReason>, Interruption> {
        if newest.at_quorum(&self.client, name) {
            newest.confirm_again(&self.client, name);
            let Newest { found, last, .. } = newest;
            return Ok(Ok(SettledVersion { found, last }));
        }
        let write_back = self.write_back(&newest, name);
        let written = span::watch!(span::of_phase!(span::PHASE2), write_back)?;
        let found = newest.found;
        Ok(written.map(|last| SettledVersion { found, last }))
    }

    /// The newest version without its content. It is a read: where the version may not be at a quorum yet, it reads the
    /// content after all, to write it back (`[X-2 get-tag-maximum]`: never get-tag).
    ///
    /// # Errors
    /// [`Unavailable`].
    pub async fn stat(&self, name: &Name) -> Result<FoundVersion, Unavailable> {
        let stat = async {
            let mut is_register = self.is_ranked(name);
            loop {
                if is_register {
                    let read = self.read_register(name, None, Scope::Metadata);
                    if let Some(found) = Box::pin(read).await? {
                        self.client.env.progressed();
                        return Ok(found);
                    }
                }
                match self.stat_unranked(name).await {
                    Ok(found) => {
                        self.client.env.progressed();
                        return Ok(found);
                    }
                    Err(Interruption::Unavailable(unavailable)) => return Err(unavailable),
                    Err(Interruption::Ranked) => is_register = true,
                }
            }
        };
        span::watch!(span::of_object!(span::STAT, name), stat)
    }

    /// [`Self::stat`] of an object that is no register.
    pub(super) async fn stat_unranked(&self, name: &Name) -> Result<FoundVersion, Interruption> {
        let (found, _) = self.stat_last(name).await?;
        Ok(found)
    }

    /// [`Self::stat_unranked`] with the configuration where the version is at a quorum.
    pub(super) async fn stat_last(
        &self,
        name: &Name,
    ) -> Result<(FoundVersion, Arc<Configuration>), Interruption> {
        let newest = self.newest(name, None, Scope::Metadata);
        let newest = span::watch!(span::of_phase!(span::PHASE1), newest)?;
        span::record_tag(newest.found.tag);
        if newest.at_quorum(&self.client, name) {
            newest.confirm_again(&self.client, name);
            let last = newest.last.c().clone();
            return Ok((newest.found, last));
        }
        let read = async {
            self.read_settled(name, None, PassedVersions::default())
                .await
        };
        let settled = span::watch!(span::of_object!(span::READ, name), read)?;
        let last = settled.last.c().clone();
        Ok((settled.found, last))
    }

    /// Writes the value as a new version and returns its tag.
    ///
    /// # Errors
    /// [`WriteError`] says whether the value may have been written.
    pub async fn write(&self, name: &Name, value: &Value) -> Result<Tag, WriteError> {
        let (_, tag) = self.write_over(name, value).await?;
        Ok(tag)
    }

    /// [`Self::write`] that returns two tags: of the version that it found, and its own.
    ///
    /// # Errors
    /// As [`Domain::write`].
    pub(crate) async fn write_over(
        &self,
        name: &Name,
        value: &Value,
    ) -> Result<(Tag, Tag), WriteError> {
        let write = async {
            let mut register = self.is_ranked(name).then_some(None);
            loop {
                if let Some(put) = register {
                    let written = Box::pin(self.write_register(name, value, put)).await?;
                    if let Some(written) = written {
                        self.client.env.progressed();
                        return Ok(written);
                    }
                }
                match self.write_unranked(name, value).await {
                    Ok(written) => {
                        self.client.env.progressed();
                        return Ok(written);
                    }
                    Err(PutInterruption::Failed(error)) => return Err(error),
                    Err(PutInterruption::Ranked { put }) => register = Some(put),
                }
            }
        };
        span::watch!(span::of_object!(span::WRITE, name), write)
    }

    /// [`Self::write_over`] of an object that is no register.
    async fn write_unranked(
        &self,
        name: &Name,
        value: &Value,
    ) -> Result<(Tag, Tag), PutInterruption> {
        let offered = self.offer(name, value).await;
        let (max, last) = offered.map_err(PutInterruption::from_first_phase)?;
        let tag = max.next_in(era_of(name, &last), self.client.next_writer());
        let tag = tag.map_err(|used_up| PutInterruption::from_first_phase(used_up.into()))?;
        self.write_as(&last, name, value, tag).await?;
        Ok((max, tag))
    }

    /// Phase 1 of a write: the largest tag, and the configuration where the sequence ended, which has room for the value.
    async fn offer(
        &self,
        name: &Name,
        value: &Value,
    ) -> Result<(Tag, Arc<Configuration>), Interruption> {
        let mut room = Room::default();
        loop {
            let largest = self.largest_tag(name, Some((value, room.grace())));
            let (offered, last) = span::watch!(span::of_phase!(span::PHASE1), largest)?;
            match offered {
                OfferOutcome::Room(max) => return Ok((max, last)),
                // Where the sequence ends is asked again.
                OfferOutcome::Busy => drop(room.make(self, name, Tag::INITIAL).await?),
            }
        }
    }

    /// Brings this version to a quorum, in one round: its tag was chosen before. That is so for an object whose name is new and
    /// known to no other client, which needs no query; and for one whose tag consensus has settled (`[X-22 upload-fate]`). It may be
    /// done again, also by others: it is the same version. Where the domain
    /// may become conditional a user's object is written by [`Domain::write`].
    ///
    /// # Errors
    /// [`WriteError`] says whether the value may have been written.
    pub async fn put_version(&self, name: &Name, version: (Tag, &Value)) -> Result<(), WriteError> {
        assert!(!self.is_ranked(name), "a register is decided, not put");
        match self.put_from(&self.start(), name, version).await {
            Ok(()) => {
                self.client.env.progressed();
                Ok(())
            }
            Err(PutInterruption::Failed(error)) => Err(error),
            Err(PutInterruption::Ranked { .. }) => {
                unreachable!("a user's object is written, where the domain may become conditional")
            }
        }
    }

    /// [`Self::put_version`] of a manifest, from the configuration `last` on, where a first phase ended.
    pub(super) async fn put_manifest(
        &self,
        last: &Arc<Configuration>,
        name: &Name,
        version: (Tag, &Value),
    ) -> Result<(), PutInterruption> {
        assert!(version.1.apart.is_some(), "its content is in blocks");
        self.put_from(last, name, version).await
    }

    /// Phase 2 of a write: the value becomes this version, from the configuration `last` on.
    pub(super) async fn write_as(
        &self,
        last: &Arc<Configuration>,
        name: &Name,
        value: &Value,
        tag: Tag,
    ) -> Result<(), PutInterruption> {
        span::record_tag(tag);
        span::record_bytes(value.length());
        self.put_from(last, name, (tag, value)).await
    }

    /// [`Self::put_version`] from the configuration `start` on.
    pub(super) async fn put_from(
        &self,
        start: &Arc<Configuration>,
        name: &Name,
        version: (Tag, &Value),
    ) -> Result<(), PutInterruption> {
        let mut handed_over = false;
        let put = self.put_data(start, name, version, &mut handed_over);
        span::watch!(span::of_phase!(span::PHASE2), put).map_err(|ended| match ended {
            Interruption::Ranked => PutInterruption::Ranked {
                put: handed_over.then_some(version.0),
            },
            Interruption::Unavailable(failed) => {
                PutInterruption::Failed(not_acknowledged(failed, handed_over))
            }
        })
    }
}

impl<E: Env> Domain<E> {
    /// Brings a new pair to a quorum of the last configuration, from `start` on.
    async fn put_data(
        &self,
        start: &Arc<Configuration>,
        name: &Name,
        (tag, value): (Tag, &Value),
        handed_over: &mut bool,
    ) -> Result<(), Interruption> {
        let mut room = Room::default();
        let put_data = async |at: &Visit| {
            if !is_put_to(at.c(), start, name) {
                return Ok(Step::End(()));
            }
            let env = &self.client.env;
            let mut stored = dap::put_new(env, at, name, (tag, value), room.grace()).await;
            *handed_over |= !matches!(stored, Err(PutError::Failed(CallError::Unavailable(_))));
            if let Err(PutError::Fenced {
                readable,
                unavailable,
            }) = stored
            {
                stored = match self.keep(at, name, (tag, value), readable).await {
                    Ok(()) => Ok(()),
                    Err(KeepError::Put(error)) => Err(error),
                    // It may be on its way to the next configuration.
                    Err(KeepError::Dropped) => return Err(unavailable.into()),
                };
            }
            match stored {
                Err(PutError::Unconfirmed) if at.is_last() => {
                    // Then the same pair again ([X-8 same-pair-retry]), or in the successor that is known by then.
                    let made = within(room.make(self, name, tag).await)?;
                    Ok(made.map_or(Step::End(()), Step::Again))
                }
                Err(PutError::Closed) => Ok(self.leave(at).await),
                Ok(()) | Err(PutError::Unconfirmed) => Ok(Step::GoOn),
                Err(PutError::Failed(failed)) => Err(failed),
                Err(PutError::Fenced { unavailable, .. }) => Err(unavailable.into()),
            }
        };
        let WalkOutcome::ToTheEnd(last) = self.walk_from(start).until(put_data).await? else {
            return Err(Interruption::Ranked);
        };
        dap::confirm(&self.client.env, &last, name, tag);
        self.client
            .remember_propagated(last.c(), name, (tag, value));
        Ok(())
    }
}

/// `[X-9 honest-outcome]`: not applied only if no put was handed to any connection.
fn not_acknowledged(failed: Unavailable, handed_over: bool) -> WriteError {
    match failed.handed_over || handed_over {
        true => WriteError::Unknown(failed),
        false => WriteError::NotApplied(failed),
    }
}

impl<E: Env> Domain<E> {
    /// Brings the version found to a quorum of the last configuration, if it can be; returns the visit to that.
    pub(super) async fn write_back(
        &self,
        newest: &Newest,
        name: &Name,
    ) -> Result<Result<Visit, UnsettledReason>, Interruption> {
        let Newest {
            found,
            last,
            in_last,
            exists: _,
        } = newest;
        assert!(!found.tag.is_initial(), "the initial version is everywhere");
        let value = found
            .value
            .as_ref()
            .expect("only the initial version has no value, and that is complete");
        let mut holders = in_last.then(|| found.holders.clone());
        let put_data = async |at: &Visit| {
            if !is_put_to(at.c(), last.c(), name) {
                return Ok(Step::End(Detour::Ranked));
            }
            // Elsewhere no member is known to hold it; nevertheless it is one that is completed, not a new one.
            let holders = holders.take().unwrap_or_else(|| vec![false; at.c().n()]);
            let mut stored = match skips_put(&self.client, at.c(), name, found.tag) {
                true => Ok(()),
                false => {
                    dap::put_data(&self.client.env, at, name, found.tag, value, &holders).await
                }
            };
            if let Err(PutError::Fenced { readable, .. }) = stored {
                stored = match self.keep(at, name, (found.tag, value), readable).await {
                    Ok(()) => Ok(()),
                    Err(KeepError::Put(error)) => Err(error),
                    Err(KeepError::Dropped) => {
                        return Ok(Step::End(Detour::Ended(UnsettledReason::Dropped)));
                    }
                };
            }
            match stored {
                Err(PutError::Unconfirmed) if at.is_last() => {
                    Ok(Step::End(Detour::Ended(UnsettledReason::NoRoom)))
                }
                Err(PutError::Closed) => Ok(self.leave(at).await),
                Ok(()) | Err(PutError::Unconfirmed) => Ok(Step::GoOn),
                Err(PutError::Failed(failed)) => Err(failed),
                Err(PutError::Fenced { unavailable, .. }) => Err(unavailable.into()),
            }
        };
        match self.walk_from(last.c()).until(put_data).await? {
            WalkOutcome::Ended(Detour::Ended(unsettled)) => Ok(Err(unsettled)),
            WalkOutcome::Ended(Detour::Ranked) => Err(Interruption::Ranked),
            WalkOutcome::ToTheEnd(last) => {
                dap::confirm(&self.client.env, &last, name, found.tag);
                self.client
                    .remember_propagated(last.c(), name, (found.tag, value));
                Ok(Ok(last))
            }
        }
    }
}

/// True if EC-DAPopt without piggybacking skips the put, because this client has put the version there before. The
/// successor is asked for in a round of its own (2.4; with piggybacking, [`Newest::at_quorum`] judges).
fn skips_put<E: Env>(client: &Client<E>, c: &Configuration, name: &Name, tag: Tag) -> bool {
    let keeps = of_kind!(c, K => K::REMEMBERS) == Remembers::Pairs;
    keeps && !c.options().piggyback && client.has_propagated(c, name, tag)
}
