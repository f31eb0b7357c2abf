//! Atomic read and write: two phases over the configurations of a domain's sequence, in each of them by its data access
//! primitives (`docs/spec` 1.1, 3.3, 3.4).
//!
//! Both phases go along the sequence from the freshest final configuration that the client knows; the second one starts
//! where the first one ended (`[A-6 second-phase-start]`). A phase is over at a configuration whose servers answered without
//! knowing a next one. With piggybacking they say so with every reply; without (Ares), a round of its own asks them.
//!
//! | | rounds, quiet | otherwise |
//! |---|---|---|
//! | [`write()`] | 2 | |
//! | [`put_version`] | 1 | |
//! | [`read`] | 1, when the version is known to be at a quorum (`[F-1 quorum-agrees]` to `[F-4 last-configuration]`) | 2 |
//! | [`stat`] | 1 | 2, with the content |
//! | without piggybacking | 4 | |
//! | for each configuration on the way | + 1 | + 1 to spread a pointer that is not at a quorum |

use super::ahead::{self, Ahead};
use super::newest::{Newest, newest, newest_past};
use super::room::{self, Room, Unkept};
use super::{Client, pause};
use crate::config::Configuration;
use crate::consensus::fate::Fate;
use crate::dap::kind::{Remembers, of_kind};
use crate::dap::{self, Found, Known, Offered, Passed, PutError, Scope};
use crate::element::Value;
use crate::env::Env;
use crate::error::{Failed, Unavailable, WriteError};
use crate::gather::Visit;
use crate::object::Name;
use crate::reconfig::sequence;
use crate::span;
use crate::tag::Tag;
use std::sync::Arc;

/// The newest version of the object. `known` saves the transfer of a value that the caller has. `c`: any final
/// configuration of the domain.
///
/// # Errors
/// [`Unavailable`].
pub async fn read<E: Env>(
    client: &Client<E>,
    c: &Arc<Configuration>,
    name: &Name,
    known: Option<&Known>,
) -> Result<Found, Unavailable> {
    let read = read_within(client, c, name, known);
    span::watch!(span::of_object!(span::READ, name), read)
}

/// The same as a part of the current span, which goes on with what is found.
///
/// # Errors
/// [`Unavailable`].
pub async fn read_within<E: Env>(
    client: &Client<E>,
    c: &Arc<Configuration>,
    name: &Name,
    known: Option<&Known>,
) -> Result<Found, Unavailable> {
    let mut passed = Passed::default();
    let mut full = None;
    loop {
        let newest = newest_past(client, c, name, known, Scope::Whole, &passed);
        let Some(newest) = span::watch!(span::of_phase!(span::PHASE1), newest)? else {
            // No other version may be returned: only room for a write-back helps.
            if let Some(unavailable) = full {
                return Err(unavailable);
            }
            passed.unplaced.clear();
            pause(client).await;
            continue;
        };
        let tag = newest.found.tag;
        span::record_tag(tag);
        span::record_bytes(newest.found.length);
        match settle(client, newest, name).await {
            Ok(Ok(found)) => return Ok(found),
            Ok(Err(Unsettled::Dropped)) => {
                passed.dropped.push(tag);
                continue;
            }
            Ok(Err(Unsettled::NoRoom)) => {}
            Err(unavailable) if unavailable.lacks_room() => {
                full = Some(unavailable);
            }
            Err(error) => return Err(error),
        }
        // It need not be this one: a put that ended without a quorum may have left it.
        passed.unplaced.push(tag);
    }
}

/// Why a version that a read found may not be returned: a later read may not see it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Unsettled {
    /// Members have no room for it.
    NoRoom,
    /// It was decided that it never comes to a quorum.
    Dropped,
}

/// Phase 2 of a read: makes sure that the version is at a quorum, if it can be.
pub(super) async fn settle<E: Env>(
    client: &Client<E>,
    newest: Newest,
    name: &Name,
) -> Result<Result<Found, Unsettled>, Unavailable> {
    if newest.at_quorum(client, name) {
        newest.confirm_again(client, name);
        return Ok(Ok(newest.found));
    }
    let write_back = write_back(client, &newest, name);
    let written = span::watch!(span::of_phase!(span::PHASE2), write_back)?;
    Ok(written.map(|()| newest.found))
}

/// The newest version without its content. It is a read: where the version may not be at a quorum yet, it reads the
/// content after all, to write it back (`[X-2 get-tag-maximum]`: never get-tag).
///
/// # Errors
/// [`Unavailable`].
pub async fn stat<E: Env>(
    client: &Client<E>,
    c: &Arc<Configuration>,
    name: &Name,
) -> Result<Found, Unavailable> {
    let stat = async {
        let newest = newest(client, c, name, None, Scope::Metadata);
        let newest = span::watch!(span::of_phase!(span::PHASE1), newest)?;
        span::record_tag(newest.found.tag);
        match newest.at_quorum(client, name) {
            true => {
                newest.confirm_again(client, name);
                Ok(newest.found)
            }
            false => read(client, c, name, None).await,
        }
    };
    span::watch!(span::of_object!(span::STAT, name), stat)
}

/// Writes the value as a new version and returns its tag.
///
/// # Errors
/// [`WriteError`] says whether the value may have been written.
pub async fn write<E: Env>(
    client: &Client<E>,
    c: &Arc<Configuration>,
    name: &Name,
    value: &Value,
) -> Result<Tag, WriteError> {
    let (_, tag) = write_over(client, c, name, value).await?;
    Ok(tag)
}

/// The same; returns the version that it found, and its own.
///
/// # Errors
/// As [`write()`].
pub(crate) async fn write_over<E: Env>(
    client: &Client<E>,
    c: &Arc<Configuration>,
    name: &Name,
    value: &Value,
) -> Result<(Tag, Tag), WriteError> {
    let write = async {
        let mut room = Room::default();
        let (max, last) = loop {
            let largest = largest_tag(client, c, name, Some(value));
            let largest = span::watch!(span::of_phase!(span::PHASE1), largest);
            let (offered, last) = largest.map_err(WriteError::NotApplied)?;
            match offered {
                Offered::Room(max) => break (max, last),
                Offered::Busy => {
                    // Where the sequence ends is asked again.
                    let made = room.make(client, &last, name, Tag::INITIAL).await;
                    made.map_err(WriteError::NotApplied)?;
                }
            }
        };
        let tag = max.next(client.next_writer());
        let tag = tag.map_err(|used_up| WriteError::NotApplied(used_up.into()))?;
        let written = write_as(client, &last, name, value, tag).await?;
        Ok((max, written))
    };
    span::watch!(span::of_object!(span::WRITE, name), write)
}

/// Brings this version to a quorum, in one round: its tag was chosen before. That is so for an object whose name is new and
/// known to no other client, which needs no query; and for one whose tag consensus has settled (`[X-22 upload-fate]`). It may be
/// done again, also by others: it is the same version.
///
/// # Errors
/// [`WriteError`] says whether the value may have been written.
pub async fn put_version<E: Env>(
    client: &Client<E>,
    c: &Arc<Configuration>,
    name: &Name,
    version: (Tag, &Value),
) -> Result<(), WriteError> {
    let start = client.sequences().start(c);
    let mut handed_over = false;
    let put = put(client, start, name, version, &mut handed_over);
    span::watch!(span::of_phase!(span::PHASE2), put)
        .map_err(|failed| not_acknowledged(failed, handed_over))
}

/// Phase 2 of a write: the value becomes this version, from the configuration `last` on.
pub(super) async fn write_as<E: Env>(
    client: &Client<E>,
    last: &Arc<Configuration>,
    name: &Name,
    value: &Value,
    tag: Tag,
) -> Result<Tag, WriteError> {
    span::record_tag(tag);
    span::record_bytes(value.length());
    let mut handed_over = false;
    let put = put(client, last.clone(), name, (tag, value), &mut handed_over);
    span::watch!(span::of_phase!(span::PHASE2), put)
        .map_err(|failed| not_acknowledged(failed, handed_over))?;
    Ok(tag)
}

/// Phase 1 of a write: the largest tag, and the configuration where the sequence ended. With the value that is to be written,
/// a quorum there has room for it (`[X-3 unconfirmed-cap]`).
pub(super) async fn largest_tag<E: Env>(
    client: &Client<E>,
    c: &Arc<Configuration>,
    name: &Name,
    value: Option<&Value>,
) -> Result<(Offered, Arc<Configuration>), Unavailable> {
    let (mut max, mut current) = (Tag::INITIAL, client.sequences().start(c));
    let env = &client.env;
    let get_tag = |at: Visit| async move {
        match value {
            Some(value) => dap::get_tag_for(env, &at, name, value).await,
            None => dap::get_tag(env, &at, name).await.map(Offered::Room),
        }
    };
    let mut asked: Option<Ahead<'_, Offered>> = None;
    loop {
        let here = asked.and_then(|asked| asked.at(&current));
        let here = here.unwrap_or_else(|| Ahead::ask(&current, get_tag));
        let guess = client.sequences().guess(&current);
        asked = guess.map(|next| Ahead::ask(&next, get_tag));
        let (at, tag) = ahead::beside(here.answer(), &mut asked).await;
        let (mut busy, mut full) = (false, None);
        match tag {
            Ok(Offered::Room(tag)) => max = max.max(tag),
            Ok(Offered::Busy) => busy = true,
            // What it held is in the configuration that the pointer leads to, and was perhaps not yet when that was asked.
            Err(Failed::Moved) => asked = None,
            // Room is needed where the sequence ends, which members that refuse do not say.
            Err(Failed::Unavailable(unavailable)) if unavailable.lacks_room() => {
                full = Some(unavailable);
                max = max.max(tag_of_moving(env, &at, name).await?);
            }
            Err(Failed::Unavailable(unavailable)) => return Err(unavailable),
        }
        match sequence::advance(&client.env, client.sequences(), &at).await? {
            None if busy => return Ok((Offered::Busy, current)),
            None => return full.map_or(Ok((Offered::Room(max), current)), Err),
            Some(next) => {
                if busy {
                    max = max.max(tag_of_moving(env, &at, name).await?);
                }
                current = next;
            }
        }
    }
}

/// The largest tag of a configuration where a new version need not have room, because another one comes after it.
async fn tag_of_moving<E: Env>(env: &E, at: &Visit, name: &Name) -> Result<Tag, Unavailable> {
    match dap::get_tag(env, at, name).await {
        Ok(tag) => Ok(tag),
        // What it held is there.
        Err(Failed::Moved) => Ok(Tag::INITIAL),
        Err(Failed::Unavailable(unavailable)) => Err(unavailable),
    }
}

/// Brings a new pair to a quorum of the last configuration, from `current` on.
async fn put<E: Env>(
    client: &Client<E>,
    mut current: Arc<Configuration>,
    name: &Name,
    (tag, value): (Tag, &Value),
    handed_over: &mut bool,
) -> Result<(), Unavailable> {
    let mut room = Room::default();
    loop {
        let at = Visit::new(&current);
        let mut stored = dap::put_data(&client.env, &at, name, tag, value, &[]).await;
        if let Err(PutError::Fenced(unkept)) = stored {
            *handed_over = true;
            // A version that no other client could read must not be kept: if this writer ended now, it would stay for ever.
            let proposed = match unkept.answered() >= dap::pieces(&current, value) {
                true => Fate::Kept,
                false => Fate::Dropped,
            };
            stored = match room::keep(client, &at, name, (tag, value), proposed).await {
                Ok(()) => Ok(()),
                Err(Unkept::Put(error)) => Err(error),
                // It may be on its way to the next configuration.
                Err(Unkept::Dropped) => return Err(unkept),
            };
        }
        match stored {
            Ok(()) | Err(PutError::Failed(Failed::Moved)) => *handed_over = true,
            Err(
                PutError::Failed(Failed::Unavailable(unavailable)) | PutError::Fenced(unavailable),
            ) => {
                return Err(unavailable);
            }
            Err(PutError::Unconfirmed) => {
                *handed_over = true;
                if at.is_last() {
                    // Then the same pair again ([X-8 same-pair-retry]), or in the successor that is known by then.
                    let last = room.make(client, &current, name, tag).await?;
                    if last.id().index > current.id().index {
                        current = last;
                    }
                    continue;
                }
            }
        }
        match sequence::advance(&client.env, client.sequences(), &at).await? {
            None => {
                dap::confirm(&client.env, &at, name, tag);
                client.remember_propagated(&current, name, (tag, value));
                return Ok(());
            }
            Some(next) => current = next,
        }
    }
}

/// `[X-9 honest-outcome]`: not applied only if no put was handed to any connection.
fn not_acknowledged(failed: Unavailable, handed_over: bool) -> WriteError {
    match failed.handed_over || handed_over {
        true => WriteError::Unknown(failed),
        false => WriteError::NotApplied(failed),
    }
}

/// Brings the version found to a quorum of the last configuration, if it can be.
pub(super) async fn write_back<E: Env>(
    client: &Client<E>,
    newest: &Newest,
    name: &Name,
) -> Result<Result<(), Unsettled>, Unavailable> {
    let Newest {
        found,
        last,
        in_last,
        exists: _,
    } = newest;
    let value = found
        .value
        .as_ref()
        .expect("only the initial version has no value, and that is complete");
    let mut at = Visit::new(last.c());
    // Elsewhere nobody is known to hold it; nevertheless it is one that is completed, not a new one.
    let mut holders = match in_last {
        true => found.holders.clone(),
        false => vec![false; at.c().n()],
    };
    loop {
        let mut put = match skips_put(client, at.c(), name, found.tag) {
            true => Ok(()),
            false => dap::put_data(&client.env, &at, name, found.tag, value, &holders).await,
        };
        if let Err(PutError::Fenced(_)) = put {
            put = match room::keep(client, &at, name, (found.tag, value), Fate::Kept).await {
                Ok(()) => Ok(()),
                Err(Unkept::Put(error)) => Err(error),
                Err(Unkept::Dropped) => return Ok(Err(Unsettled::Dropped)),
            };
        }
        match put {
            Err(PutError::Unconfirmed) if at.is_last() => return Ok(Err(Unsettled::NoRoom)),
            Ok(()) | Err(PutError::Failed(Failed::Moved) | PutError::Unconfirmed) => {}
            Err(
                PutError::Failed(Failed::Unavailable(unavailable)) | PutError::Fenced(unavailable),
            ) => {
                return Err(unavailable);
            }
        }
        let Some(next) = sequence::advance(&client.env, client.sequences(), &at).await? else {
            dap::confirm(&client.env, &at, name, found.tag);
            client.remember_propagated(at.c(), name, (found.tag, value));
            return Ok(Ok(()));
        };
        at = Visit::new(&next);
        holders = vec![false; next.n()];
    }
}

/// EC-DAPopt without piggybacking: what this client brought there before is not put there again. What comes next is asked in
/// a round of its own (2.4; with piggybacking, [`Newest::at_quorum`] judges).
fn skips_put<E: Env>(client: &Client<E>, c: &Configuration, name: &Name, tag: Tag) -> bool {
    let keeps = of_kind!(c, K => K::REMEMBERS) == Remembers::Pairs;
    keeps && !c.options().piggyback && client.has_propagated(c, name, tag)
}
