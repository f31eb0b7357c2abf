//! Data access primitives: get-tag, get-data and put-data in one configuration (`docs/spec` 2).
//!
//! They promise (C1) that after a completed put-data(t) every later get returns a tag of at least t, and (C2) that a
//! returned pair was put, or is the initial one. The configuration's kind decides what is asked, accepted, brought and kept
//! (`kind`): [`abd`], [`ec`], [`cas`], [`casss`]. What all kinds need stands in `collect` and `store`: asking some members for elements and the
//! others for tags, and bringing one element to each member.

pub mod abd;
mod adopt;
pub mod cas;
pub mod casss;
mod collect;
mod complete;
pub mod conditional;
mod cross_check;
pub mod ec;
mod found;
pub mod headers;
pub(crate) mod kind;
pub mod listing;
pub(crate) mod lost;
pub mod many;
mod offer;
pub mod registered;
mod store;
pub mod versions;

use crate::config::Configuration;
use crate::element::{Element, Form, Value};
use crate::env::{Env, Work};
use crate::error::{CallError, Unavailable};
use crate::gather::{self, Fold, Quorum, Visit};
use crate::message::{Access, Announcement, Answer, Body, HeldVersions, Note, Reply, Want};
use crate::object::Name;
use crate::span::{self, ErrorType};
use crate::tag::Tag;
use found::CollectedVersion;
use kind::{Confirmation, Remembers, of_kind};
use offer::Offer;
use std::time::Duration;
use store::{Outcome, Store};

pub(crate) use adopt::is_enough;
pub use adopt::{adapted, is_adoptable};
pub use complete::complete;
pub use cross_check::{CrossCheck, cross_check};
pub use ec::fence::{drop_versions, fence, keep_data};
pub use found::{CachedVersion, FoundVersion, PassedVersions, Scope};
pub use offer::OfferOutcome;

/// Why a put-data did not complete.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PutError {
    /// No quorum in time, or the configuration has a final successor.
    Failed(CallError),
    /// Too many members hold too many unconfirmed versions of the object (`[X-3 unconfirmed-cap]`).
    Unconfirmed,
    /// A member knows that the object is a ranked register from the next configuration on: the version is proposed there
    /// (`[W-12 becoming-conditional]`).
    Closed,
    /// A fence was raised above the version: it is to be decided whether it is kept (`[X-3 unconfirmed-cap]`).
    Fenced {
        /// It can be read: enough members hold it, or a reader has read it. Only such a version may be kept.
        readable: bool,
        /// The members that hold it, and the answers of the others.
        unavailable: Unavailable,
    },
}

impl From<CallError> for PutError {
    fn from(failed: CallError) -> Self {
        PutError::Failed(failed)
    }
}

impl ErrorType for PutError {
    fn error_type(&self) -> &'static str {
        match self {
            PutError::Failed(failed) => failed.error_type(),
            PutError::Unconfirmed => "unconfirmed",
            PutError::Closed => "closed",
            PutError::Fenced { .. } => "fenced",
        }
    }
}

/// The largest tag at a quorum.
///
/// # Errors
/// [`CallError`].
pub async fn get_tag<E: Env>(env: &E, at: &Visit, name: &Name) -> Result<Tag, CallError> {
    // QUERY-TAG asks the same of all kinds; what counts of each member's answer its kind says ([X-2 get-tag-maximum],
    // [CAS-1 durable-marks]); the maximum over a quorum.
    let query = Access::query(Want::Tags, Tag::INITIAL);
    let body = Body::Access(vec![(name.clone(), query)]);
    let largest = largest_of(at.c());
    let fold = move |max: &mut Tag, _from: usize, reply: Reply| match single(reply) {
        Some(Answer::Held(held)) => {
            *max = largest(&held).max(*max);
            Fold::Count
        }
        _ => Fold::Ignore,
    };
    let tally = Quorum::of(at.c(), body, Tag::INITIAL, fold);
    let asked = gather::query(env, at, tally);
    span::watch!(span::in_configuration!(span::GET_TAG, at.c()), asked)
}

/// The largest tag at a quorum that has room for the value as a new version (`[X-3 unconfirmed-cap]`). Where nothing is held
/// back that is [`get_tag`]: a tombstone has room on full disks, and a manifest is short.
///
/// # Errors
/// [`CallError`]: also where too many members refuse, for a full disk for instance.
pub async fn get_tag_for<E: Env>(
    env: &E,
    at: &Visit,
    name: &Name,
    value: &Value,
    grace: Duration,
) -> Result<OfferOutcome, CallError> {
    if value.deleted || value.apart.is_some() {
        return get_tag(env, at, name).await.map(OfferOutcome::Room);
    }
    let metadata = value.metadata.len() as u64;
    let announced = Announcement {
        length: value.length(),
        element_bytes: element_bytes(at.c(), value.length()) + metadata,
    };
    let asked = gather::query(env, at, Offer::new(at.c(), name, announced, grace));
    span::watch!(span::in_configuration!(span::GET_TAG, at.c()), asked)
}

/// A value whose tag is at least that of every put-data that completed before.
///
/// # Errors
/// [`CallError`]: without a quorum in time, or without a readable version: under a ceaseless stream of concurrent
/// writers (2.7).
pub async fn get_data<E: Env>(
    env: &E,
    at: &Visit,
    name: &Name,
    known: Option<&CachedVersion>,
    scope: Scope,
) -> Result<FoundVersion, CallError> {
    let found = get_data_past(env, at, name, known, scope, &PassedVersions::default()).await?;
    Ok(found.expect("a read that passes nothing over asks again"))
}

/// The newest version as [`get_data`] finds it, but for those that are passed over. `None`: the answers do not show that an older one may be returned.
///
/// # Errors
/// As [`get_data`].
pub async fn get_data_past<E: Env>(
    env: &E,
    at: &Visit,
    name: &Name,
    known: Option<&CachedVersion>,
    scope: Scope,
    passed: &PassedVersions,
) -> Result<Option<FoundVersion>, CallError> {
    let get = async {
        let c = at.c();
        let asks_for_newer = of_kind!(c, K => K::REMEMBERS) != Remembers::Nothing;
        let known = known.filter(|_| asks_for_newer);
        let have = known.map_or(Tag::INITIAL, |known| known.tag);
        let collected = collect::collect(env, at, name, (have, scope, passed)).await?;
        let found = collected.map(|collected| found(env, c, collected, known, scope));
        if let Some(found) = &found {
            span::record_tag(found.tag);
            span::record_bytes(found.length);
        }
        Ok(found)
    };
    span::watch!(span::in_configuration!(span::GET_DATA, at.c()), get)
}

/// The version that was collected, with its value.
fn found<E: Env>(
    env: &E,
    c: &Configuration,
    collected: CollectedVersion,
    known: Option<&CachedVersion>,
    scope: Scope,
) -> FoundVersion {
    let CollectedVersion {
        tag,
        elements,
        complete,
        holders,
        damaged,
        unaware,
        fence,
        lacking,
        loss: _,
    } = collected;
    assert_eq!(lacking, None, "the elements make the value");
    let length = elements.first().map(|element| element.length);
    let value = if elements.is_empty() {
        let known = known.filter(|known| known.tag == tag);
        known.and_then(|known| known.value.clone())
    } else if scope == Scope::Metadata {
        let header = elements.into_iter().next().map(abd::copy_value);
        header.map(|value| Value {
            content: Vec::new(),
            ..value
        })
    } else {
        Some(of_kind!(c, K => K::decode(env, c, elements)))
    };
    let length = length.or_else(|| value.as_ref().map(Value::length));
    let has_asker = known.is_some_and(|known| known.tag == tag);
    assert!(
        tag.is_initial() || value.is_some() || has_asker || scope == Scope::Version,
        "a version that was written has a value, unless the asker has it"
    );
    assert_eq!(holders.len(), c.n(), "each member holds it or not");
    FoundVersion {
        tag,
        value,
        length: length.unwrap_or(0),
        complete: complete && (tag.is_initial() || confirms(c)),
        holders,
        damaged,
        unaware,
        fence,
    }
}

/// The tag that get-tag takes from an answer in this configuration.
fn largest_of(c: &Configuration) -> fn(&HeldVersions) -> Tag {
    of_kind!(c, K => K::largest)
}

/// True if a round raises the marks of this configuration's members, durably (`[CAS-1 durable-marks]`).
pub fn has_durable_marks(c: &Configuration) -> bool {
    confirmation(c) == Confirmation::Rounds
}

/// True if the configuration is offered with piggybacked pointers only (`docs/spec` 2.9): without, nothing compares with it.
pub fn needs_piggyback(c: &Configuration) -> bool {
    has_durable_marks(c)
}

/// True if clients notify members of a version that is at a quorum ([`confirm`]).
pub(crate) fn has_confirm(c: &Configuration) -> bool {
    confirmation(c) == Confirmation::Notes
}

/// True if tombstones of blocks stay for ever (`[X-30 dropped-tombstones]`).
pub(crate) fn keeps_tombstones(c: &Configuration) -> bool {
    // A reader counts on the elements of what a round has finalized ([CAS-1 durable-marks]).
    has_durable_marks(c)
}

/// True if members raise their marks for FIN; for FIN2, if it is `complete`.
pub(crate) fn takes_fin(c: &Configuration, complete: bool) -> bool {
    has_durable_marks(c) && (!complete || gossips(c))
}

/// True if the members gossip ([`casss`]).
pub(crate) fn gossips(c: &Configuration) -> bool {
    of_kind!(c, K => K::GOSSIPS)
}

/// Members without damage that an object needs to be readable: those that make a value; where members abstain for what they lost, a
/// quorum (`[X-40 named-loss]`).
pub fn needed_without_damage(c: &Configuration) -> usize {
    match of_kind!(c, K => K::NAMES_LOST) {
        true => usize::from(c.dap().k()),
        false => c.quorums().quorum(),
    }
}

/// True if members of this configuration learn which version is at a quorum.
fn confirms(c: &Configuration) -> bool {
    confirmation(c) != Confirmation::None
}

fn confirmation(c: &Configuration) -> Confirmation {
    of_kind!(c, K => K::CONFIRMATION)
}

/// True if no version above this one can be at a quorum, by the answers of single members (`[EC-11 acceptance-test]`, `[X-1 support-threshold]`).
///
/// A put that completed before the answers left its tag at q members, of which at most n - r are not among the r that
/// answered. Each of the others still lists it, has trimmed up to it, or lists a larger one that hides it (`Kind::supports`). So a tag
/// with less support than q - (n - r) is not complete; if q answered, that is what two quorums share.
fn is_newest_complete(
    c: &Configuration,
    replies: &[&HeldVersions],
    tag: Tag,
    passed: &PassedVersions,
) -> bool {
    let (answered, quorum) = (replies.len(), c.quorums().quorum());
    assert!(answered >= quorum, "the rule judges quorums");
    let threshold = quorum + answered - c.n();
    assert!(threshold >= c.quorums().intersection(), "two quorums meet");
    let supports = |held: &HeldVersions, tag| of_kind!(c, K => K::supports(held, tag));
    let support = |tag: Tag| replies.iter().filter(|held| supports(held, tag)).count();
    let listed = replies.iter().flat_map(|held| &held.stored);
    assert!(answered <= c.n(), "each member answers once");
    let above = listed.map(|(tag, _)| *tag).filter(|listed| *listed > tag);
    let mut undecided = above.filter(|above| !passed.dropped.contains(above));
    let listed_above = undecided.all(|above| support(above) < threshold);
    // The virtual tag just above: no member lists it, so that only floors speak for it.
    let trimmed_above = replies.iter().filter(|held| held.floor > tag).count() < threshold;
    // A tag that a member knows to be at a quorum is complete; this follows from the two tests, and costs nothing.
    let confirmed_above = replies.iter().all(|held| held.stable <= tag);
    listed_above && trimmed_above && confirmed_above
}

/// Brings a pair that was found to a quorum. `holders`: of each member whether it is known to hold the version.
/// Where no member lacks it, there is no call (`[C-9 no-empty-call]`).
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
    assert_eq!(holders.len(), at.c().n(), "known of each member, or not");
    let to_all = vec![false; holders.len()];
    let holders = if confirms(at.c()) { holders } else { &to_all };
    if !store::asks_a_member(at.c(), holders) {
        return Ok(many::seal(env, at, &[(name, tag)]).await?);
    }
    let store = |elements| Store::new(at.c(), name, tag, elements, holders);
    put(env, at, name, (tag, value), store).await
}

/// Puts a new version, which no member is known to hold. Where members have no room, those that are silent are waited
/// for as long as `grace`.
///
/// # Errors
/// [`PutError`].
pub async fn put_new<E: Env>(
    env: &E,
    at: &Visit,
    name: &Name,
    (tag, value): (Tag, &Value),
    grace: Duration,
) -> Result<(), PutError> {
    let store = |elements| Store::new(at.c(), name, tag, elements, &[]).waiting(grace);
    put(env, at, name, (tag, value), store).await
}

/// Calls [`elements`], and counts the computation if the value is coded.
fn encoded<E: Env>(env: &E, c: &Configuration, name: &Name, value: &Value) -> Vec<Element> {
    let begun = env.now();
    let elements = elements(c, name, value);
    if elements.iter().any(|element| !element.form.is_whole()) {
        env.count(Work::Encoded {
            bytes: value.length(),
            time: env.now().since(begun),
        });
    }
    elements
}

/// The element of each member for the value, by position: a copy of a small value or of a manifest; of a large value
/// the element that the kind defines.
pub fn elements(c: &Configuration, name: &Name, value: &Value) -> Vec<Element> {
    of_kind!(c, K => K::elements(c, name, value))
}

/// Brings one element to each member, and waits for a quorum of acknowledgements: the tally is that of the elements.
async fn put<E: Env>(
    env: &E,
    at: &Visit,
    name: &Name,
    (tag, value): (Tag, &Value),
    tally: impl FnOnce(Vec<Element>) -> Store,
) -> Result<(), PutError> {
    let put = async {
        span::record_tag(tag);
        span::record_bytes(value.length());
        let tally = tally(encoded(env, at.c(), name, value));
        gather_stored(env, at, tally).await?;
        many::seal(env, at, &[(name, tag)]).await?;
        Ok(())
    };
    span::watch!(span::in_configuration!(span::PUT_DATA, at.c()), put)
}

async fn gather_stored<E: Env>(env: &E, at: &Visit, tally: Store) -> Result<(), PutError> {
    let begun = env.now();
    match gather::gather(env, at, tally).await? {
        Outcome::Stored => Ok(()),
        Outcome::Unconfirmed => Err(PutError::Unconfirmed),
        Outcome::Closed => Err(PutError::Closed),
        Outcome::Fenced {
            readable,
            responses,
        } => Err(PutError::Fenced {
            readable,
            unavailable: Unavailable {
                configuration: Some(at.c().clone()),
                needed: at.c().quorums().quorum(),
                servers: at.c().members().iter().copied().zip(responses).collect(),
                waited: env.now().since(begun),
                handed_over: true,
                obstacle: None,
            },
        }),
    }
}

/// Tells everyone that the version is at a quorum (2.6 CONFIRM), where nobody knew a later configuration: otherwise a slow
/// member could vouch for a version after the state was transferred without it (`[F-5 clean-confirm]`,
/// `[X-4 confirm-write-backs]`). Kinds without notes of clients have nothing to tell.
pub fn confirm<E: Env>(env: &E, at: &Visit, name: &Name, tag: Tag) {
    assert!(
        at.is_last(),
        "nothing is confirmed where something comes next"
    );
    assert!(
        !tag.is_initial(),
        "the initial version needs no confirmation"
    );
    if !has_confirm(at.c()) {
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
    if !c.dap().is_coded() || deleted || length <= small {
        return Form::Copy;
    }
    Form::Fragment {
        n: c.code().n(),
        k: c.dap().k(),
        index: c.element_index(position, name.placement_hash(c.descriptor().domain)),
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

/// The answer to a request that held one access.
fn single(reply: Reply) -> Option<Answer> {
    match reply {
        Reply::Access(mut answers) if answers.len() == 1 => answers.pop(),
        _ => None,
    }
}
