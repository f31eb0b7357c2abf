//! EC-DAP: erasure-coded storage, as corrected in `docs/spec` 2.6 with the amendments of section 10 (after the
//! EC-DAP of Ares and EC-DAP II of Ares II; the published trimming loses the newest complete version, `[EC-6 stale-trim]`).
//!
//! A value is cut into k fragments and n - k parity fragments are computed; member i holds one of them of each of the
//! newest versions, its *list*. Quorums have ⌈(n+k)/2⌉ members, so that two of them share k: whatever a put left at one
//! quorum can be decoded from every other. Values up to the configuration's `copy_bytes` are held as full copies inside
//! the same quorums, so that small objects cost no decoding and no padding (`[X-1 support-threshold]`).
//!
//! Writes that are not complete fill lists up, so versions must go. A member evicts only below the largest version known
//! to be at a quorum (`stable`), and remembers the largest that it evicted (`floor`). A reader accepts a version only if
//! no larger one can be complete, judged by the lists *and* the floors (`[EC-11 acceptance-test]`); that needs no assumption
//! on the number of writers.
//!
//! Versions above `stable` stay, up to a cap, at which a member refuses new ones. A write asks for room before it sends
//! anything. Where unreadable versions fill the cap, clients have them dropped: [`crate::consensus::fate`]
//! (`[X-3 unconfirmed-cap]`).
//!
//! | | rounds | bytes for a value of s bytes |
//! |---|---|---|
//! | get-tag | 1 | tags |
//! | get-data | 1; 2 if a member asked for its element does not hold the version accepted, or the element is over 256 KiB | s down |
//! | put-data | 1 | n·s/k up |
//!
//! | pseudocode | here |
//! |---|---|
//! | get-tag, QUERY-TAG | [`super::get_tag`]; server: [`super::versions::Versions::held`] |
//! | get-data, QUERY-LIST | [`super::get_data`]: [`Ec::wants`], [`Ec::accepted`] (`[EC-11 acceptance-test]`), [`Ec::decode`]; server: [`super::versions::Versions::held`] |
//! | put-data, PUT | [`super::put_data`]: [`Ec::elements`]; server: [`Ec::admit`], [`Ec::trim`] (`[X-3 unconfirmed-cap]`) |
//! | FENCE, DROP | [`super::fence()`], [`super::drop_versions`]; server: [`super::versions::Versions::raise_fence`], [`super::versions::Versions::drop_version`] |
//! | `CONFIRM(t)` | [`super::put_data`]; server: [`super::versions::Versions::confirm`], [`Ec::trim`] |
//!
//! What the papers compare with are kinds of their own, [`published`] and [`optimized`]: another rule, other trimming, no
//! confirmations; the rest is the same.

pub(super) mod fence;
pub mod optimized;
pub mod published;

use super::abd::{copy_element, copy_value};
use super::kind::Kind;
use super::versions::{Admission, Arrival, Bounds, StoredVersion, Versions};
use super::{PassedVersions, Scope};
use crate::config::Configuration;
use crate::element::{Element, Form, Handle, Value};
use crate::env::{Env, Work};
use crate::message::{HeldVersions, Want};
use crate::object::Name;
use crate::span;
use crate::tag::Tag;
use bytes::Bytes;

/// The rules of erasure coding.
pub(crate) enum Ec {}

impl Kind for Ec {
    const FENCES: bool = true;

    // ---- client half ----

    /// The members with the data fragments are asked for them, the others for their tags, so that an undisturbed read decodes
    /// nothing.
    fn wants<E: Env>(env: &E, c: &Configuration, name: &Name, scope: Scope, _: u32) -> Vec<Want> {
        let chosen = chosen(env, c, name);
        let mut wants = vec![Want::Tags; c.n()];
        match scope {
            Scope::Whole => {
                for position in &chosen {
                    wants[*position] = Want::Fragment;
                }
                // A small value is a full copy everywhere: one is enough.
                wants[chosen[0]] = Want::Element;
            }
            Scope::Metadata => wants[chosen[0]] = Want::Metadata,
            Scope::Version => {}
        }
        wants
    }

    /// The acceptance test `[EC-11 acceptance-test]`: the largest version that can be read and is not passed over, if no larger
    /// one can be complete ([`super::is_newest_complete`]).
    fn accepted(
        c: &Configuration,
        held: &[&HeldVersions],
        have: Tag,
        passed: &PassedVersions,
    ) -> Option<Tag> {
        let readable = |tag: Tag| tag.is_initial() || tag == have || decodable(c, held, tag);
        let listed = held.iter().flat_map(|held| &held.stored);
        let mut tags: Vec<Tag> = listed.map(|(tag, _)| *tag).collect();
        tags.extend([Tag::INITIAL, have]);
        tags.sort_unstable();
        tags.dedup();
        let candidate = tags
            .into_iter()
            .rfind(|tag| readable(*tag) && !passed.contains(*tag))?;
        assert!(
            candidate >= have || passed.contains(have),
            "no older version is returned than the asker has"
        );
        super::is_newest_complete(c, held, candidate, passed).then_some(candidate)
    }

    /// A small value is a copy; of others at least k fragments make it.
    fn decode<E: Env>(env: &E, c: &Configuration, mut elements: Vec<Element>) -> Value {
        let whole = elements.iter().position(|element| element.form.is_whole());
        if let Some(whole) = whole {
            return copy_value(elements.swap_remove(whole));
        }
        let (begun, k) = (env.now(), c.dap().k());
        let value = joined(c, &elements);
        let is_data =
            |element: &&Element| matches!(element.form, Form::Fragment { index, .. } if index < k);
        if elements.iter().filter(is_data).count() < usize::from(k) {
            env.count(Work::Decoded {
                bytes: elements[0].length,
                time: env.now().since(begun),
            });
        }
        value
    }

    /// The element of each member of the value, by position: a copy of a small one or of a manifest, a fragment of a large one. Data fragments are
    /// slices of the value, not copies.
    fn elements(c: &Configuration, name: &Name, value: &Value) -> Vec<Element> {
        let is_small = value.length() <= u64::from(c.descriptor().copy_bytes);
        if value.deleted || value.apart.is_some() || is_small {
            return vec![copy_element(value); c.n()];
        }
        let content = value.contiguous();
        let fragments = fragments(c, &content);
        let element = |position| {
            let form = super::form(c, name, position, (content.len() as u64, false));
            let Form::Fragment { index, .. } = form else {
                unreachable!("it is no small value")
            };
            Element {
                form,
                deleted: false,
                length: content.len() as u64,
                metadata: value.metadata.clone(),
                payload: fragments[usize::from(index)].clone(),
                checksum: None,
            }
        };
        (0..c.n()).map(element).collect()
    }

    // ---- server half ----

    /// Judges a PUT: a version that is held already is acknowledged (`[X-1 support-threshold]`); a version that
    /// trimming would evict at once only raises the floor. Up to a fence an unconfirmed version is refused, except the
    /// spared one and those that are decided to be kept. If too many versions are unconfirmed, a new one is refused
    /// until one of them is completed and confirmed, or some are dropped
    /// (`[X-3 unconfirmed-cap]`); the write-back of a read is never refused for that.
    fn admit(versions: &Versions, tag: Tag, arrival: Arrival, bounds: Bounds) -> Admission {
        let kept = usize::from(bounds.delta) + 1;
        let stored = versions.stored();
        let larger = stored.iter().filter(|stored| stored.tag > tag).count();
        let repairs = versions.damaged().is_some_and(|damaged| damaged <= tag);
        let is_unconfirmed = tag > versions.stable();
        if versions.find(tag).is_some() {
            Admission::Acknowledge
        } else if arrival != Arrival::Kept && versions.fences_off(tag) {
            Admission::Fenced
        } else if repairs {
            Admission::Store
        } else if tag < versions.stable() && larger >= kept {
            Admission::RaiseFloor
        } else if arrival == Arrival::New && is_unconfirmed && Ec::is_busy(versions, bounds) {
            Admission::Busy
        } else {
            Admission::Store
        }
    }

    /// True if no further unconfirmed version is taken in (`[X-3 unconfirmed-cap]`).
    fn is_busy(versions: &Versions, bounds: Bounds) -> bool {
        versions.unconfirmed() >= bounds.unconfirmed
    }

    /// Versions below the confirmed one go, except the delta + 1 largest, which stay until the object is quiet: without that
    /// one fast writer could starve readers. The confirmed one and everything above it stays (`[X-3 unconfirmed-cap]`), but for
    /// what is below a tombstone of a quiet object: no client reads what was removed, so that none would say a lost confirmation
    /// again.
    fn trim(
        versions: &mut Versions,
        delta: u16,
        quiet: bool,
        _: impl FnMut() -> Handle,
    ) -> Vec<StoredVersion> {
        let (kept, stable) = (usize::from(delta) + 1, versions.stable());
        let superseding = versions.superseding();
        versions.evict(|from_largest, stored| match quiet {
            true => stored.tag < superseding,
            false => stored.tag < stable && from_largest >= kept,
        })
    }
}

/// The k members that are asked for elements: those with the data fragments, except where others answer better.
fn chosen<E: Env>(env: &E, c: &Configuration, name: &Name) -> Vec<usize> {
    let hash = name.placement_hash(c.descriptor().domain);
    let mut positions: Vec<usize> = (0..c.n()).collect();
    positions.sort_by_key(|position| {
        (
            env.slow(c.members()[*position]),
            c.element_index(*position, hash),
        )
    });
    let k = usize::from(c.dap().k());
    positions.truncate(k);
    assert_eq!(positions.len(), k, "as many are asked as make the value");
    positions
}

/// True if one copy, or k distinct fragments of one form, are listed (`[X-1 support-threshold]`).
pub(super) fn decodable(c: &Configuration, replies: &[&HeldVersions], tag: Tag) -> bool {
    let forms: Vec<Form> = replies
        .iter()
        .filter_map(|held| held.form_of(tag))
        .collect();
    let mut indices: Vec<u8> = forms
        .iter()
        .filter_map(|form| match form {
            Form::Fragment { index, k, .. } if *k == c.dap().k() => Some(*index),
            _ => None,
        })
        .collect();
    indices.sort_unstable();
    indices.dedup();
    forms.iter().any(|form| form.is_whole()) || indices.len() >= usize::from(c.dap().k())
}

/// The value from at least k fragments of one version. Data fragments that are there are used as they came.
pub(super) fn joined(c: &Configuration, elements: &[Element]) -> Value {
    let k = usize::from(c.dap().k());
    let length = usize::try_from(elements[0].length).expect("values fit into memory");
    assert!(
        elements
            .iter()
            .all(|element| element.is_alike(&elements[0])),
        "they are of one value"
    );
    let mut data: Vec<Option<Bytes>> = vec![None; k];
    let mut present: Vec<(u8, &[u8])> = Vec::with_capacity(elements.len());
    for element in elements {
        let Form::Fragment { index, .. } = element.form else {
            continue;
        };
        present.push((index, &element.payload));
        if usize::from(index) < k {
            data[usize::from(index)] = Some(element.payload.clone());
        }
    }
    // Data fragments first: what is there need not be computed.
    present.sort_unstable_by_key(|(index, _)| *index);
    assert!(
        present.is_sorted_by(|(a, _), (b, _)| a < b),
        "members hold fragments of different indices"
    );
    assert!(
        present.len() >= k,
        "any k fragments make the value, and no fewer"
    );
    present.truncate(k);
    let code = c.code();
    let missing = (0..k as u8).filter(|index| data[usize::from(*index)].is_none());
    let mut buffers: Vec<(u8, Vec<u8>)> = missing
        .map(|index| (index, vec![0; code.data_range(length, index).len()]))
        .collect();
    if !buffers.is_empty() {
        let _span = tracing::debug_span!(span::EC_DECODE, bytes = length).entered();
        let mut targets: Vec<(u8, &mut [u8])> = buffers
            .iter_mut()
            .map(|(i, b)| (*i, b.as_mut_slice()))
            .collect();
        code.reconstruct(&present, &mut targets)
            .expect("k distinct fragments of this code are present");
    }
    for (index, buffer) in buffers {
        data[usize::from(index)] = Some(buffer.into());
    }
    let content = data
        .into_iter()
        .flatten()
        .filter(|piece| !piece.is_empty())
        .collect();
    Value {
        deleted: false,
        metadata: elements[0].metadata.clone(),
        content,
        apart: None,
    }
}

/// The fragment of this index, in memory of its own.
pub(super) fn fragment(c: &Configuration, content: &[u8], index: u8) -> Bytes {
    let (code, k) = (c.code(), c.dap().k());
    assert!(index < code.n(), "the code has it");
    let piece = |index| &content[code.data_range(content.len(), index)];
    if index < k {
        return Bytes::copy_from_slice(piece(index));
    }
    let _span = tracing::trace_span!(span::EC_ENCODE, bytes = content.len()).entered();
    let data: Vec<(u8, &[u8])> = (0..k).map(|index| (index, piece(index))).collect();
    let mut parity = vec![0; code.fragment_length(content.len())];
    code.reconstruct(&data, &mut [(index, parity.as_mut_slice())])
        .expect("all data fragments are there");
    parity.into()
}

/// All fragments of the code, by index.
fn fragments(c: &Configuration, content: &Bytes) -> Vec<Bytes> {
    let _span = tracing::debug_span!(span::EC_ENCODE, bytes = content.len()).entered();
    let (code, k) = (c.code(), c.dap().k());
    let mut fragments: Vec<Bytes> = (0..k)
        .map(|i| content.slice(code.data_range(content.len(), i)))
        .collect();
    let lengths = fragments.iter().map(Bytes::len);
    assert_eq!(
        lengths.sum::<usize>(),
        content.len(),
        "data fragments are all of the value"
    );
    let parity = usize::from(code.n() - k);
    let mut parity = vec![vec![0; code.fragment_length(content.len())]; parity];
    let data: Vec<&[u8]> = fragments.iter().map(AsRef::as_ref).collect();
    let mut targets: Vec<&mut [u8]> = parity.iter_mut().map(Vec::as_mut_slice).collect();
    code.encode(&data, &mut targets);
    fragments.extend(parity.into_iter().map(Bytes::from));
    assert!(fragments.len() >= c.n(), "a fragment for each member");
    fragments
}

#[cfg(test)]
mod tests;
