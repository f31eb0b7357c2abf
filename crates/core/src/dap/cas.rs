//! CAS and CASGC: coded atomic storage (`docs/spec` 2.9; Cadambe, Lynch, Médard and Musial; what the self-stabilizing CASSS
//! begins with).
//!
//! Elements, quorums and codes are those of [`super::ec`]. What differs is how a version comes to be there for readers. A
//! writer first brings the elements to a quorum (PRE). Readers do not see them yet. Then a round of its own, FIN, raises a
//! *mark* at a quorum, the largest finalized tag, which is durable before it is acknowledged. Queries ask for the mark and
//! nothing else. So the largest mark of a quorum is a version whose elements are at a quorum, any k of them in every other,
//! and a reader need not judge lists. What a writer left half way is above every mark, and no reader ever returns it.
//!
//! A reader completes what it found by the same round: it raises the mark at a quorum and takes the elements out of the
//! acknowledgements. So a read that meets writers sends tags up, and never a value.
//!
//! Two quorums of marks meet: after a write, or a read, of t has ended, every query shows t or a larger tag. One mark is
//! *not* enough to return a version, since the next quorum may not show it (`[CAS-2 quorum-of-marks]`).
//!
//! | | rounds | bytes for a value of s bytes |
//! |---|---|---|
//! | get-tag | 1 | tags |
//! | get-data | 1 if a quorum shows the mark and the elements came with it; otherwise 2 | s down; nothing up |
//! | put-data | 2: PRE, FIN | n·s/k up |
//!
//! | pseudocode | here |
//! |---|---|
//! | QUERY | [`super::get_tag`]: [`Cas::largest`]; server: [`Cas::held`] |
//! | read: QUERY, read-FIN | [`super::get_data`]: [`Cas::accepted`], [`Cas::is_complete`] (`[CAS-2 quorum-of-marks]`), [`Cas::finish`] |
//! | write: PRE, FIN | [`super::put_data`]: [`Cas::elements`], [`Cas::seal`]; server: [`Cas::admit`] |
//! | FIN at a server | `ConfigurationState::finalize` (`[CAS-1 durable-marks]`, `[CAS-4 no-zombies]`) |
//! | CASGC: the `delta + 1` largest | [`CasGc::trim`] (`[CAS-6 finalized-trimming]`) |
//!
//! [`Cas`] keeps every version, and both keep every version above the mark, as published: what writers leave half way in an
//! object that is never written to its end again stays, without a bound (`[CAS-7 no-cap]`).

pub(super) mod finalize;

use super::ec::Ec;
use super::found::CollectedVersion;
use super::kind::{Confirmation, Kind, as_in, of_kind};
use super::versions::{Admission, Arrival, Bounds, StoredVersion, Versions};
use super::{PassedVersions, Scope};
use crate::config::Configuration;
use crate::element::Handle;
use crate::env::Env;
use crate::error::CallError;
use crate::gather::{self, Visit};
use crate::message::{HeldVersions, Want};
use crate::object::Name;
use crate::tag::Tag;
use finalize::{Finalize, Outcome, fin};

/// The rules of CAS.
pub(crate) enum Cas {}

impl Kind for Cas {
    const CONFIRMATION: Confirmation = Confirmation::Rounds;

    as_in!(Ec: wants decode elements);

    // ---- client half ----

    /// A put ends with FIN, so that the mark speaks for it. A version above every mark is not there for readers.
    fn supports(held: &HeldVersions, tag: Tag) -> bool {
        held.stable >= tag
    }

    /// The largest mark of a quorum. Nothing else is asked of it: where it was raised, the elements were at a quorum before.
    fn accepted(
        _: &Configuration,
        held: &[&HeldVersions],
        _: Tag,
        passed: &PassedVersions,
    ) -> Option<Tag> {
        let marks = held.iter().map(|held| held.stable);
        marks.max().filter(|mark| !passed.unplaced.contains(mark))
    }

    /// read-FIN: raises the mark of the version at a quorum, and takes the elements that are lacking out of the
    /// acknowledgements.
    async fn finish<E: Env>(
        env: &E,
        at: &Visit,
        name: &Name,
        (scope, attempt): (Scope, u32),
        collected: &mut CollectedVersion,
    ) -> Result<bool, CallError> {
        let c = at.c();
        if collected.is_finished() {
            return Ok(true);
        }
        assert!(
            !collected.tag.is_initial(),
            "the initial version is final everywhere"
        );
        let mut tally = Finalize::new(c, name, collected.tag);
        let lacking = collected.lacking.take();
        if let Some(gave) = &lacking {
            let wants = of_kind!(c, K => K::wants(env, c, name, scope, attempt));
            let given = std::mem::take(&mut collected.elements);
            tally = tally.taking((scope, attempt), &wants, (given, gave));
        }
        match gather::gather(env, at, tally).await? {
            Outcome::Finalized { elements, damaged } => {
                let gave = elements.iter().map(Option::is_some);
                let holders = collected.holders.iter_mut().zip(gave);
                holders.for_each(|(holds, gave)| *holds |= gave);
                if lacking.is_some() {
                    collected.elements = elements.into_iter().flatten().collect();
                }
                collected.complete = true;
                collected.damaged |= damaged;
                Ok(true)
            }
            Outcome::Lacking => Ok(false),
        }
    }

    /// FIN raises the mark at a quorum (`[CAS-1 durable-marks]`).
    async fn seal<E: Env>(env: &E, at: &Visit, versions: &[(&Name, Tag)]) -> Result<(), CallError> {
        fin(env, at, versions, |fin| fin).await
    }

    /// A quorum of marks (`[CAS-2 quorum-of-marks]`).
    fn is_complete(c: &Configuration, held: &[&HeldVersions], tag: Tag) -> bool {
        let marks = held.iter().filter(|held| held.stable >= tag).count();
        marks >= c.quorums().quorum()
    }

    /// The mark: a version that no writer has finalized is not there for other writers either.
    fn largest(held: &HeldVersions) -> Tag {
        held.stable
    }

    // ---- server half ----

    /// The mark, with the element of its version. Of the versions up to the mark the largest are listed; they are for people,
    /// no reader needs them.
    fn held(versions: &Versions, want: Want, have: Tag, bounds: Bounds) -> HeldVersions {
        let marked = versions.with_element(versions.stable());
        let mut held = versions.held_with(marked, want, have);
        let finalized = held.stored.iter().filter(|(tag, _)| *tag <= held.stable);
        let hidden = finalized.count().saturating_sub(kept(bounds.delta));
        held.stored.drain(..hidden);
        let element = held.element.as_ref().map(|(tag, _)| *tag);
        assert!(
            element.is_none_or(|tag| tag == held.stable),
            "no other element is of use to a reader"
        );
        held
    }

    /// The version of the mark, whether its element is here or not (`[CAS-8 finalized-listing]`).
    fn listed(versions: &Versions) -> Option<(Tag, Option<&StoredVersion>)> {
        let mark = versions.stable();
        (!mark.is_initial()).then(|| (mark, versions.find(mark)))
    }

    /// PRE: a version that is held already is acknowledged, finalized or not; any other is stored.
    fn admit(versions: &Versions, tag: Tag, _: Arrival, _: Bounds) -> Admission {
        match versions.find(tag) {
            Some(_) => Admission::Acknowledge,
            None => Admission::Store,
        }
    }

    fn trim(_: &mut Versions, _: u16, _: bool, _: impl FnMut() -> Handle) -> Vec<StoredVersion> {
        Vec::new()
    }
}

/// The rules of CASGC: as [`Cas`], but versions go.
pub(crate) enum CasGc {}

impl Kind for CasGc {
    const CONFIRMATION: Confirmation = Cas::CONFIRMATION;

    as_in!(Cas: wants supports accepted finish is_complete largest decode elements held listed);

    async fn seal<E: Env>(env: &E, at: &Visit, versions: &[(&Name, Tag)]) -> Result<(), CallError> {
        Cas::seal(env, at, versions).await
    }

    /// Admits a version as CAS does, except that a version which trimming would evict at once only raises the floor.
    fn admit(versions: &Versions, tag: Tag, arrival: Arrival, bounds: Bounds) -> Admission {
        let between = |stored: &&StoredVersion| tag < stored.tag && stored.tag <= versions.stable();
        let larger = versions.stored().iter().filter(between).count();
        let repairs = versions.damaged().is_some_and(|damaged| damaged <= tag);
        match Cas::admit(versions, tag, arrival, bounds) {
            Admission::Store if !repairs && larger >= kept(bounds.delta) => Admission::RaiseFloor,
            admission => admission,
        }
    }

    /// Keeps the `delta + 1` largest versions up to the mark; of a quiet object only the version at the mark.
    /// Versions above the mark stay: a writer may be about to finalize them (`[CAS-6 finalized-trimming]`).
    fn trim(
        versions: &mut Versions,
        delta: u16,
        quiet: bool,
        _: impl FnMut() -> Handle,
    ) -> Vec<StoredVersion> {
        let (above, stable) = (versions.unconfirmed(), versions.stable());
        let gone = versions.evict(|from_largest, stored| {
            stored.tag < stable && (quiet || from_largest >= above + kept(delta))
        });
        assert_eq!(
            versions.unconfirmed(),
            above,
            "what is above the mark stays"
        );
        gone
    }
}

/// The number of finalized versions of an object that stay while it is written.
pub(super) fn kept(delta: u16) -> usize {
    usize::from(delta) + 1
}
