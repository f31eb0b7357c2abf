//! Versions that no quorum holds and no read can return are given up (`[X-3 unconfirmed-cap]`): a fence keeps them from coming to
//! a quorum, [`crate::consensus::fate`] decides of each whether it is kept, and what is not is dropped.

use super::decodable;
use crate::config::Configuration;
use crate::dap::store::Store;
use crate::dap::{self, PutError, single};
use crate::element::Value;
use crate::env::Env;
use crate::error::CallError;
use crate::gather::{self, ConfiguredTally, Fold, Quorum, Visit};
use crate::limits;
use crate::message::{Access, Answer, Body, HeldVersions, Reply};
use crate::object::Name;
use crate::tag::Tag;

/// Has a quorum take in no version up to `upto` that they do not hold, unless it is confirmed, decided to be kept, or
/// `spared`, which the caller is about to put. Returns the other versions above `newest` that cannot come to a quorum any
/// more but by such a decision, and cannot be read by these answers (`[X-3 unconfirmed-cap]`).
///
/// # Errors
/// [`CallError`].
pub async fn fence<E: Env>(
    env: &E,
    at: &Visit,
    name: &Name,
    (newest, upto): (Tag, Tag),
    spared: Tag,
) -> Result<Vec<Tag>, CallError> {
    assert!(newest < upto, "a fence is raised above what can be read");
    let fence = Access::Fence { upto, spared };
    let body = Body::Access(vec![(name.clone(), fence)]);
    let fold = |answers: &mut Vec<HeldVersions>, _from: usize, reply: Reply| match single(reply) {
        Some(Answer::Held(held)) => {
            answers.push(held);
            Fold::Count
        }
        _ => Fold::Ignore,
    };
    let tally = Quorum::of(at.c(), body, Vec::new(), fold);
    let answers = gather::gather(env, at, tally).await?;
    let mut stranded = stranded(at.c(), &answers, newest, upto);
    stranded.retain(|tag| *tag != spared);
    Ok(stranded)
}

/// Has a quorum evict these versions, which were decided never to be at one.
///
/// # Errors
/// [`CallError`].
pub async fn drop_versions<E: Env>(
    env: &E,
    at: &Visit,
    name: &Name,
    tags: &[Tag],
) -> Result<(), CallError> {
    gather::gather(env, at, drops(at.c(), name, tags)).await
}

/// The call that drops: a member counts that answers for each version that it has dropped it.
pub(super) fn drops(
    c: &Configuration,
    name: &Name,
    tags: &[Tag],
) -> impl ConfiguredTally<Output = ()> + use<> {
    assert!(!tags.is_empty(), "it was decided to drop something");
    let drops = tags.iter().map(|tag| (name.clone(), Access::Drop(*tag)));
    let drops: Vec<_> = drops.take(limits::ACCESSES).collect();
    let dropped = vec![Answer::Dropped; drops.len()];
    let fold = move |(): &mut (), _from: usize, reply: Reply| match reply {
        Reply::Access(answers) if answers == dropped => Fold::Count,
        _ => Fold::Ignore,
    };
    Quorum::of(c, Body::Access(drops), (), fold)
}

/// Calls [`dap::put_data`] for a version that was decided to be kept: members take it in although it is behind their
/// fence.
///
/// # Errors
/// [`PutError`].
pub async fn keep_data<E: Env>(
    env: &E,
    at: &Visit,
    name: &Name,
    tag: Tag,
    value: &Value,
) -> Result<(), PutError> {
    let store = |elements| Store::new(at.c(), name, tag, elements, &[]).keeping();
    dap::put(env, at, name, (tag, value), store).await
}

/// Versions above `newest` and up to the fence `upto` that are not at a quorum, by the answers of a quorum behind the fence,
/// and of which these members do not hold enough to read them. The members that do not list such a version refuse it from now
/// on, and they are more than a put can do without.
pub(super) fn stranded(
    c: &Configuration,
    answers: &[HeldVersions],
    newest: Tag,
    upto: Tag,
) -> Vec<Tag> {
    let replies: Vec<&HeldVersions> = answers.iter().collect();
    assert!(
        replies.len() >= c.quorums().quorum(),
        "a quorum has raised its fence"
    );
    let listed = replies.iter().flat_map(|held| &held.stored);
    let mut tags: Vec<Tag> = listed.map(|(tag, _)| *tag).collect();
    tags.sort_unstable();
    tags.dedup();
    tags.retain(|tag| {
        let supporting = replies.iter().filter(|held| held.supports(*tag)).count();
        let confirmed = replies.iter().any(|held| held.stable >= *tag);
        let incomplete = supporting < c.quorums().intersection() && !confirmed;
        newest < *tag && *tag <= upto && incomplete && !decodable(c, &replies, *tag)
    });
    tags
}
