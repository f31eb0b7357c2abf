//! Atomic read and write: two phases over the configurations of a domain's sequence, in each of them by its data access
//! primitives (`algorithms.md` 1.1, 3.3, 3.4).
//!
//! Both phases go along the sequence from the freshest final configuration that the client knows; the second one starts
//! where the first one ended (`[A-6]`). A phase is over at a configuration whose servers answered without knowing a next
//! one. With piggybacking they say so with every reply; without (Ares), a round of its own asks them.
//!
//! | | rounds, quiet | otherwise |
//! |---|---|---|
//! | [`write()`] | 2 | |
//! | [`put_version`] | 1 | |
//! | [`read`] | 1, when the version is known to be at a quorum (`[F-1]` to `[F-4]`) | 2 |
//! | [`stat`] | 1 | 2, with the content |
//! | without piggybacking | 4 | |
//! | for each configuration on the way | + 1 | + 1 to spread a pointer that is not at a quorum |

use super::Client;
use super::ahead::{self, Ahead};
use crate::config::{Configuration, EcDap};
use crate::dap::{self, Found, Known, Passed, PutError, Scope};
use crate::element::Value;
use crate::env::Env;
use crate::error::{Failed, ReadError, Unavailable, WriteError};
use crate::gather::Visit;
use crate::limits;
use crate::object::Name;
use crate::reconfig::sequence;
use crate::span;
use crate::tag::Tag;
use std::sync::Arc;
use std::time::Duration;

/// The newest version of the object. `known` saves the transfer of a value that the caller has. `c`: any final
/// configuration of the domain.
///
/// # Errors
/// [`ReadError`].
pub async fn read<E: Env>(
    client: &Client<E>,
    c: &Arc<Configuration>,
    name: &Name,
    known: Option<&Known>,
) -> Result<Found, ReadError> {
    let read = read_within(client, c, name, known);
    span::watch!(span::of_object!(span::READ, name), read)
}

/// The same as a part of the current span, which goes on with what is found.
///
/// # Errors
/// [`ReadError`].
pub async fn read_within<E: Env>(
    client: &Client<E>,
    c: &Arc<Configuration>,
    name: &Name,
    known: Option<&Known>,
) -> Result<Found, ReadError> {
    let mut passed = Passed::default();
    let mut full = None;
    loop {
        let newest = newest_past(client, c, name, known, Scope::Whole, &passed);
        let Some(newest) = span::watch!(span::of_phase!(span::PHASE1), newest)? else {
            // No other version may be returned: only room for a write-back helps.
            if let Some(unavailable) = full {
                return Err(ReadError::Unavailable(unavailable));
            }
            passed.unplaced.clear();
            pause(client).await;
            continue;
        };
        let tag = newest.found.tag;
        span::record_tag(tag);
        span::record_bytes(newest.found.length);
        match settle(client, newest, name).await {
            Ok(Some(found)) => return Ok(found),
            Ok(None) => {}
            Err(ReadError::Unavailable(unavailable)) if unavailable.lacks_room() => {
                full = Some(unavailable);
            }
            Err(error) => return Err(error),
        }
        // It need not be this one: a put that ended without a quorum may have left it.
        passed.unplaced.push(tag);
    }
}

/// Before members are asked again that had no room: a random while, so that clients that met there do not meet again.
pub(super) async fn pause<E: Env>(client: &Client<E>) {
    let most = limits::ASK_AGAIN.as_micros() as u64;
    let pause = most / 2 + client.env.random() % most;
    client.env.sleep(Duration::from_micros(pause)).await;
}

/// Phase 2 of a read: makes sure that the version is at a quorum. None if members have no room for it: then it may not be
/// returned, because a later read may not see it.
pub(super) async fn settle<E: Env>(
    client: &Client<E>,
    newest: Newest,
    name: &Name,
) -> Result<Option<Found>, ReadError> {
    if newest.at_quorum(client, name) {
        newest.confirm_again(client, name);
        return Ok(Some(newest.found));
    }
    let write_back = write_back(client, &newest, name);
    let written = span::watch!(span::of_phase!(span::PHASE2), write_back)?;
    Ok(written.then_some(newest.found))
}

/// The newest version without its content. It is a read: where the version may not be at a quorum yet, it reads the
/// content after all, to write it back (`[X-2]`: never get-tag).
///
/// # Errors
/// [`ReadError`].
pub async fn stat<E: Env>(
    client: &Client<E>,
    c: &Arc<Configuration>,
    name: &Name,
) -> Result<Found, ReadError> {
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
        let largest = largest_tag(client, c, name);
        let largest = span::watch!(span::of_phase!(span::PHASE1), largest);
        let (max, last) = largest.map_err(WriteError::NotApplied)?;
        let tag = max.next(client.next_writer());
        let tag = tag.map_err(|used_up| WriteError::NotApplied(used_up.into()))?;
        let written = write_as(client, &last, name, value, tag).await?;
        Ok((max, written))
    };
    span::watch!(span::of_object!(span::WRITE, name), write)
}

/// Brings this version to a quorum, in one round: its tag was chosen before. That is so for an object whose name is new and
/// known to nobody else, which needs no query; and for one whose tag consensus has settled (`[X-22]`). It may be done again,
/// also by others: it is the same version.
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

/// Phase 1 of a write: the largest tag, and the configuration where the sequence ended.
pub(super) async fn largest_tag<E: Env>(
    client: &Client<E>,
    c: &Arc<Configuration>,
    name: &Name,
) -> Result<(Tag, Arc<Configuration>), Unavailable> {
    let (mut max, mut current) = (Tag::INITIAL, client.sequences().start(c));
    let env = &client.env;
    let get_tag = |at: Visit| async move { dap::get_tag(env, &at, name).await };
    let mut asked: Option<Ahead<'_, Tag>> = None;
    loop {
        let here = asked.and_then(|asked| asked.at(&current));
        let here = here.unwrap_or_else(|| Ahead::ask(&current, get_tag));
        let guess = client.sequences().guess(&current);
        asked = guess.map(|next| Ahead::ask(&next, get_tag));
        let (at, tag) = ahead::beside(here.answer(), &mut asked).await;
        match tag {
            Ok(tag) => max = max.max(tag),
            // What it held is in the configuration that the pointer leads to, and was perhaps not yet when that was asked.
            Err(Failed::Moved) => asked = None,
            Err(Failed::Unavailable(unavailable)) => return Err(unavailable),
        }
        match sequence::advance(&client.env, client.sequences(), &at).await? {
            None => return Ok((max, current)),
            Some(next) => current = next,
        }
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
    loop {
        let at = Visit::new(&current);
        match dap::put_data(&client.env, &at, name, tag, value, &[]).await {
            Ok(()) | Err(PutError::Failed(Failed::Moved)) => *handed_over = true,
            Err(PutError::Failed(Failed::Unavailable(unavailable))) => {
                return Err(unavailable);
            }
            Err(PutError::Unconfirmed) => {
                *handed_over = true;
                if at.is_last() {
                    // Then the same pair again ([X-8]).
                    make_room(client, &current, name).await?;
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

/// Members are full of versions that nobody confirmed. A read finds one that is at a quorum, or brings it there;
/// confirming that makes room, also where it was complete all along and only its confirmation was lost (`[X-3]`).
async fn make_room<E: Env>(
    client: &Client<E>,
    c: &Arc<Configuration>,
    name: &Name,
) -> Result<(), Unavailable> {
    loop {
        let newest = match newest(client, c, name, None, Scope::Whole).await {
            Ok(newest) => newest,
            Err(ReadError::Unavailable(unavailable)) => return Err(unavailable),
        };
        if newest.at_quorum(client, name) {
            dap::confirm(&client.env, &newest.last, name, newest.found.tag);
            return Ok(());
        }
        match write_back(client, &newest, name).await {
            Ok(true) => return Ok(()),
            Ok(false) => pause(client).await,
            Err(ReadError::Unavailable(unavailable)) => return Err(unavailable),
        }
    }
}

/// `[X-9]`: not applied only if no put was handed to any connection.
fn not_acknowledged(failed: Unavailable, handed_over: bool) -> WriteError {
    match failed.handed_over || handed_over {
        true => WriteError::Unknown(failed),
        false => WriteError::NotApplied(failed),
    }
}

/// What phase 1 of a read found.
pub(super) struct Newest {
    /// The newest version of all configurations on the way.
    pub(super) found: Found,
    /// The configuration where the sequence ended.
    pub(super) last: Visit,
    /// Some server holds it, or it is the initial one; and not only the caller claims to have it.
    pub(super) exists: bool,
    /// `found` was found there, and not only on the way: what is said of its holders is said of that configuration.
    in_last: bool,
}

impl Newest {
    /// Whether a read may return the version as it is: the replies say that it is at a quorum, or this client brought it
    /// there itself (`[F-2]`); all of that where nobody knew a later configuration (`[F-4]`), and said so with the same
    /// replies; and nobody is to be repaired by writing it back.
    fn at_quorum<E: Env>(&self, client: &Client<E>, name: &Name) -> bool {
        let Newest {
            found,
            last,
            in_last,
            exists: _,
        } = self;
        if found.tag.is_initial() {
            return true;
        }
        let complete = found.complete || client.has_propagated(last.c(), name, found.tag);
        *in_last && last.c().options().piggyback && complete && !found.damaged
    }

    /// Writers confirm and do not wait for it; one that ends at once, or loses a connection, leaves members that keep
    /// every version. Whoever sees that says it again (`[X-4]`).
    fn confirm_again<E: Env>(&self, client: &Client<E>, name: &Name) {
        if self.found.unaware {
            dap::confirm(&client.env, &self.last, name, self.found.tag);
        }
    }
}

/// Some version of the object without its content: the newest of what a quorum holds, which may not be at a quorum itself.
/// For what is the same in all versions. Nothing is written back, for which a full disk may have no room.
///
/// # Errors
/// [`ReadError`].
pub(crate) async fn glimpse<E: Env>(
    client: &Client<E>,
    c: &Arc<Configuration>,
    name: &Name,
) -> Result<Found, ReadError> {
    let newest = newest(client, c, name, None, Scope::Metadata).await?;
    Ok(newest.found)
}

/// Phase 1 of a read.
pub(super) async fn newest<E: Env>(
    client: &Client<E>,
    c: &Arc<Configuration>,
    name: &Name,
    known: Option<&Known>,
    scope: Scope,
) -> Result<Newest, ReadError> {
    let newest = newest_past(client, c, name, known, scope, &Passed::default()).await?;
    Ok(newest.expect("a read that passes nothing over asks again"))
}

/// The same, but for the versions that are passed over. `None`: no other one may be returned.
async fn newest_past<E: Env>(
    client: &Client<E>,
    c: &Arc<Configuration>,
    name: &Name,
    known: Option<&Known>,
    scope: Scope,
    passed: &Passed,
) -> Result<Option<Newest>, ReadError> {
    let mut current = client.sequences().start(c);
    let (mut best, mut exists): (Option<Found>, _) = (None, false);
    let mut asked: Option<Ahead<'_, Found>> = None;
    let env = &client.env;
    // Most of the time it is the version that the configuration before has and gives.
    let get_version =
        |at: Visit| async move { dap::get_data(env, &at, name, None, Scope::Version).await };
    loop {
        let asked_before = asked.and_then(|asked| asked.at(&current));
        let guess = client.sequences().guess(&current);
        let guess = guess.filter(|_| *passed == Passed::default());
        asked = guess.map(|next| Ahead::ask(&next, get_version));
        let here = async {
            if let (Some(version), Some(best)) = (asked_before, &best) {
                let (at, version) = version.answer().await;
                let version = version.map(|version| version.with_value_of(best));
                if let Some(version) = version.transpose() {
                    return (at, version.map(Some));
                }
            }
            let at = Visit::new(&current);
            let own = client.last_propagated(&current, name);
            let known = known.or(own.as_ref());
            let found = dap::get_data_past(env, &at, name, known, scope, passed).await;
            (at, found)
        };
        let (at, found) = ahead::beside(here, &mut asked).await;
        let here = match found {
            Ok(None) => return Ok(None),
            Ok(found) => found,
            // What it held is in the configuration that the pointer leads to ([A-5]), as above.
            Err(Failed::Moved) => {
                asked = None;
                None
            }
            Err(Failed::Unavailable(unavailable)) => return Err(unavailable.into()),
        };
        let next = sequence::advance(&client.env, client.sequences(), &at).await?;
        let larger = |here: &Found| best.as_ref().is_none_or(|best| here.tag >= best.tag);
        let in_last = here.as_ref().is_some_and(larger);
        if in_last {
            let held = |found: &Found| found.tag.is_initial() || found.holders.contains(&true);
            let tag = |found: &Option<Found>| found.as_ref().map(|found| found.tag);
            let is_same = tag(&best) == tag(&here);
            exists = here.as_ref().is_some_and(held) || (exists && is_same);
            best = here;
        }
        let Some(next) = next else {
            let found = best.expect("a configuration without a successor does not withhold");
            return Ok(Some(Newest {
                found,
                last: at,
                in_last,
                exists,
            }));
        };
        current = next;
    }
}

/// Brings the version found to a quorum of the last configuration; false if members have no room for it.
async fn write_back<E: Env>(
    client: &Client<E>,
    newest: &Newest,
    name: &Name,
) -> Result<bool, ReadError> {
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
        let put = match skips_put(client, at.c(), name, found.tag) {
            true => Ok(()),
            false => dap::put_data(&client.env, &at, name, found.tag, value, &holders).await,
        };
        match put {
            Err(PutError::Unconfirmed) if at.is_last() => return Ok(false),
            Ok(()) | Err(PutError::Failed(Failed::Moved) | PutError::Unconfirmed) => {}
            Err(PutError::Failed(Failed::Unavailable(unavailable))) => {
                return Err(unavailable.into());
            }
        }
        let Some(next) = sequence::advance(&client.env, client.sequences(), &at).await? else {
            dap::confirm(&client.env, &at, name, found.tag);
            client.remember_propagated(at.c(), name, (found.tag, value));
            return Ok(true);
        };
        at = Visit::new(&next);
        holders = vec![false; next.n()];
    }
}

/// EC-DAPopt without piggybacking: what this client brought there before is not put there again. What comes next is asked in
/// a round of its own (2.4; with piggybacking, [`Newest::at_quorum`] judges).
fn skips_put<E: Env>(client: &Client<E>, c: &Configuration, name: &Name, tag: Tag) -> bool {
    let asks = c.baseline() == Some(EcDap::Optimized) && !c.options().piggyback;
    asks && client.has_propagated(c, name, tag)
}
