//! MW-ABD: atomic storage by replication (`docs/spec` 1.1 and 1.2; Attiya, Bar-Noy, Dolev, for several writers by
//! Lynch and Shvartsman).
//!
//! Every member holds the newest pair it has seen. A write asks a majority for their tags and brings the value under a
//! larger one to a majority; a read asks a majority and returns the largest pair, after it has made sure that a majority
//! holds it. Two majorities share a member, so that whatever completed is seen by whatever begins afterwards.
//!
//! | | rounds | bytes for a value of s bytes |
//! |---|---|---|
//! | get-tag | 1 | tags |
//! | get-data | 1; 2 if the member asked for the value does not hold the newest, or the element is over 256 KiB | s down |
//! | put-data | 1 | n·s up |
//!
//! | pseudocode | here |
//! |---|---|
//! | QUERY(wantValue, have) | [`super::get_tag`], [`super::get_data`]: [`Abd::wants`], [`Abd::accepted`]; server: [`super::versions::Versions::held`] |
//! | PUT(t, v) | [`super::put_data`]: [`Abd::elements`]; server: [`Abd::admit`], [`Abd::trim`] |
//! | `CONFIRM(t)` `[F-3 confirmed-tag]` | [`super::put_data`]; server: [`super::versions::Versions::confirm`] |

pub(crate) mod published;

use super::kind::Kind;
use super::versions::{Admission, Arrival, Bounds, StoredVersion, Versions};
use super::{PassedVersions, Scope};
use crate::config::{Configuration, Thrift};
use crate::element::{Element, Form, Handle, Value};
use crate::env::Env;
use crate::message::{HeldVersions, Want};
use crate::object::Name;
use crate::tag::Tag;

/// The rules of replication.
pub(crate) enum Abd {}

impl Kind for Abd {
    // ---- client half ----

    /// Each tag up to the largest one: a put of a smaller one is acknowledged and leaves no trace ([`Abd::admit`]).
    fn supports(held: &HeldVersions, tag: Tag) -> bool {
        let largest = held.stored.last().map(|(largest, _)| *largest);
        held.supports(tag) || largest.is_some_and(|largest| largest >= tag)
    }

    /// Asks one member for the value, and the others for their tags.
    fn wants<E: Env>(
        env: &E,
        c: &Configuration,
        name: &Name,
        scope: Scope,
        attempt: u32,
    ) -> Vec<Want> {
        let chosen = chosen(env, c, name);
        let want = |position| match (scope, attempt) {
            // The value went away under a fast writer: every server that answers gives what it has.
            (Scope::Whole, 1..) => Want::Element,
            (Scope::Whole, 0) if position == chosen => Want::Element,
            (Scope::Metadata, 1..) => Want::Metadata,
            (Scope::Metadata, 0) if position == chosen => Want::Metadata,
            (Scope::Version, _) | (_, 0) => Want::Tags,
        };
        (0..c.n()).map(want).collect()
    }

    /// The largest tag that a majority lists. No member evicts its largest, so that whatever was
    /// put at a majority is listed by every other, or something larger is. Where the largest is passed over, or all that list it have lost
    /// its element (`[X-40 named-loss]`), an older one may be returned that is listed, as with erasure codes.
    fn accepted(
        c: &Configuration,
        held: &[&HeldVersions],
        have: Tag,
        passed: &PassedVersions,
    ) -> Option<Tag> {
        assert!(
            held.len() >= c.quorums().quorum(),
            "the rule judges quorums"
        );
        let listed = held.iter().flat_map(|held| &held.stored);
        let readable = listed.clone().filter(|(_, form)| form.is_whole());
        let readable = readable.map(|(tag, _)| *tag).chain([Tag::INITIAL, have]);
        let candidate = readable.filter(|tag| !passed.contains(*tag)).max()?;
        let is_largest = listed.clone().all(|(tag, _)| *tag <= candidate);
        assert!(
            candidate >= have || passed.contains(have),
            "no older version is returned than the asker has"
        );
        let accepted = is_largest || super::is_newest_complete(c, held, candidate, passed);
        accepted.then_some(candidate)
    }

    /// Any one full copy is the value.
    fn decode<E: Env>(_: &E, _: &Configuration, elements: Vec<Element>) -> Value {
        let copy = elements.into_iter().next();
        let copy = copy.expect("one copy is enough, and there is one");
        assert!(
            copy.form.is_whole(),
            "fragments do not fit a replicated configuration"
        );
        copy_value(copy)
    }

    fn elements(c: &Configuration, _: &Name, value: &Value) -> Vec<Element> {
        vec![copy_element(value); c.n()]
    }

    // ---- server half ----

    /// PUT: a larger tag replaces the pair; anything else is acknowledged as it is.
    fn admit(versions: &Versions, tag: Tag, _: Arrival, _: Bounds) -> Admission {
        let repairs = versions.damaged().is_some_and(|damaged| damaged <= tag);
        match versions.largest() {
            Some(largest) if largest.tag >= tag && !repairs => Admission::Acknowledge,
            _ => Admission::Store,
        }
    }

    /// Only the largest stays.
    fn trim(
        versions: &mut Versions,
        _: u16,
        _: bool,
        _: impl FnMut() -> Handle,
    ) -> Vec<StoredVersion> {
        versions.evict(|_, _| true)
    }
}

/// The member that is asked for the value: by turns over the objects, leaving out those that lately did not answer. A thrifty
/// read asks the members after it, so that readers of one object do not all ask the same ones.
fn chosen<E: Env>(env: &E, c: &Configuration, name: &Name) -> usize {
    let drawn = match c.options().thrift {
        Thrift::Off => name.placement_hash(c.descriptor().domain),
        Thrift::Queries | Thrift::Calls => env.random(),
    };
    let first = (drawn % c.n() as u64) as usize;
    let turn = |offset: usize| (first + offset) % c.n();
    let answers = |position: &usize| !env.slow(c.members()[*position]);
    let chosen = (0..c.n()).map(turn).find(answers).unwrap_or(first);
    assert!(chosen < c.n(), "a member is asked for the value");
    chosen
}

pub(super) fn copy_value(element: Element) -> Value {
    let Element {
        form,
        deleted,
        length,
        metadata,
        payload,
        ..
    } = element;
    let content = if payload.is_empty() {
        Vec::new()
    } else {
        vec![payload]
    };
    Value {
        deleted,
        metadata,
        content,
        apart: (form == Form::Manifest).then_some(length),
    }
}

/// The whole value for a member: a full copy, or a manifest.
pub(super) fn copy_element(value: &Value) -> Element {
    assert!(
        value.apart.is_none() || value.content_bytes() == 0,
        "a manifest stands for blocks and has no content"
    );
    Element {
        form: match value.apart {
            Some(_) => Form::Manifest,
            None => Form::Copy,
        },
        deleted: value.deleted,
        length: value.length(),
        metadata: value.metadata.clone(),
        payload: value.contiguous(),
        checksum: None,
    }
}
