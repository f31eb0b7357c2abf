//! Data access primitives: get-tag, get-data and put-data in one configuration (`algorithms.md` 2).
//!
//! They promise (C1) that after a completed put-data(t) every later get returns a tag of at least t, and (C2) that a
//! returned pair was put, or is the initial one. How, is the business of the configuration's kind: [`abd`], [`ec`].
//! What both need stands in `collect` and `store`: asking some members for elements and the others for tags, and
//! bringing one element to each member.

pub mod abd;
mod adopt;
mod collect;
pub mod ec;
pub mod headers;
pub mod listing;
pub mod many;
pub mod registered;
mod store;
pub mod versions;

use crate::config::{Configuration, Dap};
use crate::element::{Element, Form, Value};
use crate::env::Env;
use crate::error::Failed;
use crate::gather::{self, Fold, Quorum, Visit};
use crate::message::{Access, Answer, Body, Held, Note, Reply, Want};
use crate::object::Name;
use crate::span::{self, ErrorType};
use crate::tag::Tag;
use std::cmp::Ordering;

/// A version that the caller has already: it will not be sent again (`have`, 1.1 and `[EC-4]`).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Known {
    /// The version.
    pub tag: Tag,
    /// Its value; `None` stands for the initial value.
    pub value: Option<Value>,
}

/// How much of a value a get-data returns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scope {
    /// Everything.
    Whole,
    /// Everything but the content. [`Found::length`] is that of the content all the same.
    Metadata,
    /// The tag alone: neither a value nor its length.
    Version,
}

/// Versions that a read does not return although it could read them.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Passed {
    /// Members have no room for the write-back of these. An older version may be returned in their place if the answers show
    /// that none of them is at a quorum.
    pub unplaced: Vec<Tag>,
}

/// What get-data found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Found {
    /// The version.
    pub tag: Tag,
    /// Its value; `None` if nobody ever wrote the object. Without content if the scope was [`Scope::Metadata`].
    pub value: Option<Value>,
    /// Length of the content in bytes.
    pub length: u64,
    /// The version is at a quorum, so that a read may return it without writing it back (`[F-1]`, `[F-3]`).
    pub complete: bool,
    /// Members that hold it, by position: those need no write-back.
    pub holders: Vec<bool>,
    /// A member cannot speak for the object: a write-back repairs it, and is due even if the version is at a quorum (`[X-11]`).
    pub damaged: bool,
    /// The version is at a quorum, and a member keeps older ones because nobody has told it: the confirmation was lost.
    pub unaware: bool,
}

impl Found {
    /// Of a version that was found with [`Scope::Version`]: the whole of it, if it is no larger one than `other`, which was
    /// found elsewhere. Of a smaller one nobody needs the value.
    pub fn with_value_of(self, other: &Found) -> Option<Found> {
        match self.tag.cmp(&other.tag) {
            Ordering::Less => Some(self),
            Ordering::Equal => Some(Found {
                value: other.value.clone(),
                length: other.length,
                ..self
            }),
            Ordering::Greater => None,
        }
    }
}

/// Why a put-data did not complete.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PutError {
    /// No quorum in time, or the configuration has a final successor.
    Failed(Failed),
    /// Too many members hold too many unconfirmed versions of the object: a read lifts that (`[X-3]`).
    Unconfirmed,
}

impl From<Failed> for PutError {
    fn from(failed: Failed) -> Self {
        PutError::Failed(failed)
    }
}

impl ErrorType for PutError {
    fn error_type(&self) -> &'static str {
        match self {
            PutError::Failed(failed) => failed.error_type(),
            PutError::Unconfirmed => "unconfirmed",
        }
    }
}

/// The largest tag at a quorum.
///
/// # Errors
/// [`Failed`].
pub async fn get_tag<E: Env>(env: &E, at: &Visit, name: &Name) -> Result<Tag, Failed> {
    // QUERY-TAG is the same for both kinds: max(List, floor, stable) of each member ([X-2]), the maximum over a quorum.
    let query = Access::Query {
        want: Want::Tags,
        have: Tag::INITIAL,
    };
    let body = Body::Access(vec![(name.clone(), query)]);
    let fold = |max: &mut Tag, _from: usize, reply: Reply| match single(reply) {
        Some(Answer::Held(held)) => {
            *max = held.max_tag().max(*max);
            Fold::Count
        }
        _ => Fold::Ignore,
    };
    let tally = Quorum::of(at.c(), body, Tag::INITIAL, fold);
    let asked = gather::gather(env, at, tally);
    span::watch!(span::in_configuration!(span::GET_TAG, at.c()), asked)
}

/// A value whose tag is at least that of every put-data that completed before.
///
/// # Errors
/// [`Failed`]: without a quorum in time, or without a readable version: under a ceaseless stream of concurrent
/// writers (2.7).
pub async fn get_data<E: Env>(
    env: &E,
    at: &Visit,
    name: &Name,
    known: Option<&Known>,
    scope: Scope,
) -> Result<Found, Failed> {
    let found = get_data_past(env, at, name, known, scope, &Passed::default()).await?;
    Ok(found.expect("a read that passes nothing over asks again"))
}

/// The same, but for the versions that are passed over. `None`: the answers do not show that an older one may be returned.
///
/// # Errors
/// As [`get_data`].
pub async fn get_data_past<E: Env>(
    env: &E,
    at: &Visit,
    name: &Name,
    known: Option<&Known>,
    scope: Scope,
    passed: &Passed,
) -> Result<Option<Found>, Failed> {
    let get = async {
        let found = match at.c().dap() {
            // Nothing is there; the servers say so.
            Dap::Abd | Dap::Removed => abd::get_data(env, at, name, known, scope, passed).await,
            Dap::Ec { .. } => ec::get_data(env, at, name, known, scope, passed).await,
        }?;
        if let Some(found) = &found {
            span::record_tag(found.tag);
            span::record_bytes(found.length);
        }
        Ok(found)
    };
    span::watch!(span::in_configuration!(span::GET_DATA, at.c()), get)
}

/// Whether no version above this one can be at a quorum, by the answers of single members (`[EC-11]`, `[X-1]`).
///
/// A put that completed before the answers left its tag at q members, of which at most n - r are not among the r that
/// answered. Each of the others still lists it or has trimmed up to it. So a tag with less support than q - (n - r) is not
/// complete; if q answered, that is what two quorums share.
fn is_newest_complete(c: &Configuration, replies: &[&Held], tag: Tag) -> bool {
    let (answered, quorum) = (replies.len(), c.quorums().quorum());
    assert!(answered >= quorum, "the rule judges quorums");
    let threshold = quorum + answered - c.n();
    assert!(threshold >= c.quorums().intersection(), "two quorums meet");
    let support = |tag: Tag| replies.iter().filter(|held| held.supports(tag)).count();
    let listed = replies.iter().flat_map(|held| &held.stored);
    let mut above = listed.map(|(tag, _)| *tag).filter(|listed| *listed > tag);
    let listed_above = above.all(|above| support(above) < threshold);
    // The virtual tag just above: no member lists it, so that only floors speak for it.
    let trimmed_above = replies.iter().filter(|held| held.floor > tag).count() < threshold;
    // A tag that a member knows to be at a quorum is complete; this follows from the two tests, and costs nothing.
    let confirmed_above = replies.iter().all(|held| held.stable <= tag);
    listed_above && trimmed_above && confirmed_above
}

/// Brings the pair to a quorum. `holders` says of each member whether it is known
/// to hold the version, which was found there: this is a write-back. A write of a new version passes none.
///
/// # Errors
/// [`PutError`].
pub async fn put_data<E: Env>(
    env: &E,
    at: &Visit,
    name: &Name,
    tag: Tag,
    value: &Value,
    holders: &[bool],
) -> Result<(), PutError> {
    assert!(!tag.is_initial(), "the initial value is everywhere already");
    let put = async {
        span::record_tag(tag);
        span::record_bytes(value.length());
        match at.c().dap() {
            Dap::Abd | Dap::Removed => abd::put_data(env, at, name, tag, value, holders).await,
            Dap::Ec { .. } => ec::put_data(env, at, name, tag, value, holders).await,
        }
    };
    span::watch!(span::in_configuration!(span::PUT_DATA, at.c()), put)
}

/// Tells everyone that the version is at a quorum (2.6 CONFIRM), where nobody knew a later configuration: otherwise a slow
/// member could vouch for a version after the state was transferred without it (`[F-5]`, `[X-4]`). EC-DAP as published knows
/// no confirmations.
pub fn confirm<E: Env>(env: &E, at: &Visit, name: &Name, tag: Tag) {
    assert!(
        at.is_last(),
        "nothing is confirmed where something comes next"
    );
    if at.c().baseline().is_some() {
        return;
    }
    let configuration = at.c().id();
    env.tell(
        at.c().members(),
        Note::Confirm {
            configuration,
            name: name.clone(),
            tag,
        },
    );
}

/// The form in which the member at this position holds a value of this length, or a tombstone.
pub fn form(
    c: &Configuration,
    name: &Name,
    position: usize,
    (length, deleted): (u64, bool),
) -> Form {
    let small = u64::from(c.descriptor().copy_bytes);
    match c.dap() {
        Dap::Ec { k } if !deleted && length > small => Form::Fragment {
            n: c.n() as u8,
            k,
            index: c.element_index(position, name.placement_hash(c.descriptor().domain)),
        },
        Dap::Abd | Dap::Removed | Dap::Ec { .. } => Form::Copy,
    }
}

/// Bytes of an element of a value of this length, for plans and counters: without what fills it up.
pub fn element_bytes(c: &Configuration, length: u64) -> u64 {
    let pieces = match length <= c.descriptor().copy_bytes.into() {
        true => 1,
        false => u64::from(c.dap().k()),
    };
    length.div_ceil(pieces)
}

/// Whether the element that the member of `new` at this position is to hold can be made of what it holds in `old`.
pub fn is_adoptable(
    (old, new): (&Configuration, &Configuration),
    name: &Name,
    position: usize,
    kept: (u64, bool),
) -> bool {
    let before = old.position(new.members()[position]);
    let held = before.map(|before| form(old, name, before, kept));
    held == Some(Form::Copy) || held == Some(form(new, name, position, kept))
}

/// The element in the form that this configuration wants, if it can be made of this one alone (`[X-17]`).
pub fn adapted(c: &Configuration, form: Form, element: Element) -> Option<Element> {
    match (element.form, form) {
        (held, wanted) if held == wanted => Some(element),
        (Form::Copy, Form::Fragment { index, .. }) => Some(Element {
            form,
            payload: ec::fragment(c, &element.payload, index),
            checksum: None,
            ..element
        }),
        _ => None,
    }
}

/// The answer to a request that held one access.
fn single(reply: Reply) -> Option<Answer> {
    match reply {
        Reply::Access(mut answers) if answers.len() == 1 => answers.pop(),
        _ => None,
    }
}
