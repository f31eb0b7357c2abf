//! The data access primitives for several objects at once: one request to each member, whatever the number of objects, as
//! long as nothing is in the way. What cannot be done so has no result, and is to be done for the object alone.

use super::adopt::Adopt;
use super::collect::{Collect, Outcome as Collected};
use super::kind::of_kind;
use super::store::{self, Outcome as Stored, Store};
use super::{FoundVersion, PassedVersions, Scope};
use crate::element::Value;
use crate::env::Env;
use crate::error::CallError;
use crate::gather::{self, Batch, Visit};
use crate::object::Name;
use crate::tag::Tag;

/// Runs [`super::get_data`] for all objects in one quorum call. `None`: the call does not decide the object, and the
/// caller must read it by itself. Without a call, all are `None` for a kind whose lists may be too long for one reply.
///
/// # Errors
/// [`CallError`].
pub async fn get_data<E: Env>(
    env: &E,
    at: &Visit,
    names: &[Name],
    scope: Scope,
) -> Result<Vec<Option<FoundVersion>>, CallError> {
    let c = at.c();
    if !super::confirms(c) {
        // Their lists may be too long for one reply.
        return Ok(names.iter().map(|_| None).collect());
    }
    let call = |name: &Name| {
        let wants = of_kind!(c, K => K::wants(env, c, name, scope, 0));
        Collect::new(c, name, scope, Tag::INITIAL, &wants)
    };
    let batch = Batch::new(c.n(), names.iter().map(call));
    let collected = gather::gather(env, at, batch).await?;
    assert_eq!(
        collected.len(),
        names.len(),
        "each object was found or is to be read alone"
    );
    let ends = of_kind!(c, K => K::fetches(&PassedVersions::default()));
    let found = |collected| match collected {
        // Another round is due.
        Some(Collected::Found(found)) if !ends && !found.is_finished() => None,
        Some(Collected::Found(collected)) => Some(super::found(env, c, collected, None, scope)),
        Some(Collected::Restart | Collected::Damaged(_)) | None => None,
    };
    Ok(collected.into_iter().map(found).collect())
}

/// A value that is to be put.
pub struct Put<'a> {
    /// The name of the object.
    pub name: &'a Name,
    pub tag: Tag,
    pub value: &'a Value,
    /// The members that hold it, as in [`super::put_data`].
    pub holders: &'a [bool],
}

/// Runs [`super::put_data`] for each object, in one quorum call. Returns for each whether it is at a quorum.
///
/// # Errors
/// [`CallError`].
pub async fn put_data<E: Env>(
    env: &E,
    at: &Visit,
    puts: &[Put<'_>],
) -> Result<Vec<bool>, CallError> {
    let c = at.c();
    let call = |put: &Put<'_>| {
        let elements = super::encoded(env, c, put.name, put.value);
        Store::new(c, put.name, put.tag, elements, put.holders)
    };
    let asks = |put: &Put<'_>| store::asks_a_member(c, put.holders);
    let mut stored: Vec<bool> = puts.iter().map(|put| !asks(put)).collect();
    if stored.contains(&false) {
        let batch = Batch::new(c.n(), puts.iter().filter(|put| asks(put)).map(call));
        let mut outcomes = gather::gather(env, at, batch).await?.into_iter();
        for stored in stored.iter_mut().filter(|stored| !**stored) {
            let outcome = outcomes.next().expect("each put ended or is made alone");
            *stored = outcome == Some(Stored::Stored);
        }
        assert_eq!(outcomes.next(), None, "each outcome is of one put");
    }
    let there = puts.iter().zip(&stored).filter(|(_, stored)| **stored);
    let there: Vec<(&Name, Tag)> = there.map(|(put, _)| (put.name, put.tag)).collect();
    seal(env, at, &there).await?;
    Ok(stored)
}

/// Makes versions whose elements are at a quorum known there, durably, where the configuration's kind has rounds for it
/// (`[CAS-1 durable-marks]`).
///
/// # Errors
/// [`CallError`].
pub async fn seal<E: Env>(env: &E, at: &Visit, versions: &[(&Name, Tag)]) -> Result<(), CallError> {
    if versions.is_empty() {
        return Ok(());
    }
    of_kind!(at.c(), K => K::seal(env, at, versions).await)
}

/// Asks each member to take its elements of these versions over from earlier configurations of which it was a member
/// (`[X-17 adopted-elements]`). Returns, per version, which members acknowledged it: an acknowledgement counts as that
/// of a put, and `false` says nothing about the member.
///
/// # Errors
/// [`CallError`].
pub async fn adopt<E: Env>(
    env: &E,
    at: &Visit,
    versions: &[(&Name, Tag)],
) -> Result<Vec<Vec<bool>>, CallError> {
    let c = at.c();
    let call = |(name, tag): &(&Name, Tag)| Adopt::new(env, c, name, *tag);
    let batch = Batch::new(c.n(), versions.iter().map(call));
    let adopted = gather::gather(env, at, batch).await?;
    assert_eq!(adopted.len(), versions.len(), "each version is spoken of");
    let nobody = || vec![false; c.n()];
    let holders = adopted
        .into_iter()
        .map(|holders| holders.unwrap_or_else(nobody));
    Ok(holders.collect())
}
