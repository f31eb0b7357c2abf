//! Get-data of many objects at once, without their content: one message to each server and one back.
//!
//! A quorum answers for every object as in a get-data of its own; each is judged by the same rule of its configuration's
//! kind. What is at a quorum by these answers needs no write-back (`[F-1 quorum-agrees]`, `[F-3 confirmed-tag]`), and is
//! found; of anything else the caller is told nothing, and reads it alone.
//!
//! | | rounds | bytes |
//! |---|---|---|
//! | get | 1 | tags; of versions that the caller does not have, metadata |

use super::PassedVersions;
use super::collect::is_unaware;
use super::kind::of_kind;
use crate::config::Configuration;
use crate::element::{Element, ReplyElement, Value};
use crate::env::Env;
use crate::error::CallError;
use crate::gather::{self, Fold, Quorum, Visit};
use crate::limits;
use crate::message::{Access, Answer, Body, HeldVersions, Reply, Want};
use crate::object::Name;
use crate::tag::Tag;
use std::sync::Arc;

/// A version that is at a quorum, without its content.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Header {
    pub tag: Tag,
    /// It without its content; `None`: the caller has it, or nobody ever wrote the object.
    pub value: Option<Value>,
    /// Length of the content in bytes; 0 if there is no `value`.
    pub length: u64,
    /// A member keeps older versions because it does not know that this one is at a quorum.
    pub unaware: bool,
}

/// The newest version of each object, where it is complete; with each object the version that the caller has. At most
/// [`limits::ACCESSES`].
///
/// # Errors
/// [`CallError`].
pub async fn get<E: Env>(
    env: &E,
    at: &Visit,
    objects: &[(Name, Tag)],
) -> Result<Vec<Option<Header>>, CallError> {
    assert!(objects.len() <= limits::ACCESSES, "one request");
    let c = at.c().clone();
    if !super::confirms(&c) {
        // Nothing is judged complete there, and many lists may be too long for one reply.
        return Ok(vec![None; objects.len()]);
    }
    let query = |(name, have): &(Name, Tag)| {
        let (want, have) = (Want::Metadata, *have);
        (name.clone(), Access::query(want, have))
    };
    let body = Body::Access(objects.iter().map(query).collect());
    // By object, then by member.
    let answers: Vec<Vec<Option<HeldVersions>>> = vec![vec![None; c.n()]; objects.len()];
    let fold = |answers: &mut Vec<Vec<Option<HeldVersions>>>, from: usize, reply: Reply| match reply
    {
        Reply::Access(replies) if replies.len() == answers.len() => {
            for (object, answer) in answers.iter_mut().zip(replies) {
                object[from] = match answer {
                    Answer::Held(held) => Some(held),
                    // Damaged here: this member does not speak for the object.
                    _ => None,
                };
            }
            Fold::Count
        }
        _ => Fold::Ignore,
    };
    let tally = Quorum::of(&c, body, answers, fold);
    let answers = gather::gather(env, at, tally).await?;
    let haves = objects.iter().map(|(_, have)| *have);
    let judge = |(held, have): (Vec<Option<HeldVersions>>, Tag)| complete(&c, held, have);
    Ok(answers.into_iter().zip(haves).map(judge).collect())
}

/// The version that these answers allow to return at once.
fn complete(c: &Arc<Configuration>, held: Vec<Option<HeldVersions>>, have: Tag) -> Option<Header> {
    assert_eq!(held.len(), c.n(), "a place for the answer of each member");
    let listed: Vec<&HeldVersions> = held.iter().flatten().collect();
    if listed.len() < c.quorums().quorum() {
        return None;
    }
    let tag = of_kind!(c, K => K::accepted(c, &listed, have, &PassedVersions::default()))?;
    if tag < have {
        // No member holds what the asker claims to have.
        return None;
    }
    if !tag.is_initial() && !of_kind!(c, K => K::is_complete(c, &listed, tag)) {
        return None;
    }
    let unaware = listed.iter().any(|held| is_unaware(held, tag));
    if tag == have || tag.is_initial() {
        return Some(Header {
            tag,
            value: None,
            length: 0,
            unaware,
        });
    }
    let carried = held.into_iter().flatten().filter_map(|held| held.element);
    let mut elements = carried.filter_map(|(of, carried)| match carried {
        ReplyElement::Whole(element) if of == tag => Some(element),
        _ => None,
    });
    let Element {
        deleted,
        length,
        metadata,
        ..
    } = elements.next()?;
    let value = Value {
        deleted,
        ..Value::new(metadata, bytes::Bytes::new())
    };
    Some(Header {
        tag,
        value: Some(value),
        length,
        unaware,
    })
}
