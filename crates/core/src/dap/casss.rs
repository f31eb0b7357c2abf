//! CASSS: coded atomic storage whose servers gossip (`docs/spec` 2.10, which says what of it is not built; the study of self-stabilizing coded
//! storage).
//!
//! It is [`super::cas`] with three additions. A *fourth round* of a write, FIN2, says that a quorum has finalized the version,
//! so that members may forget what is below it. Members *gossip*: each says to the others, again and again, which tags it knows
//! (`server/gossip.rs`), so that what a writer left in the middle of FIN becomes known everywhere without a client.
//! And what an object has at a member is *bounded* (`[CASSS-3 bounded-versions]`): versions that writers left half way are
//! finished or dropped.
//!
//! Why FIN2 and gossip are safe: a member says only what is durable there, and marks never fall. So if a quorum has said a
//! mark of at least t, or a client has seen a quorum acknowledge FIN(t), every quorum shows t or a larger mark from then on, and
//! no reader that begins later needs anything below t. One reply that knows t to be complete is therefore enough for a read
//! of one round, where one that has the mark is not (`[CAS-2 quorum-of-marks]`).
//!
//! | | rounds | bytes for a value of s bytes |
//! |---|---|---|
//! | get-tag | 1 | tags |
//! | get-data | 1 if a quorum shows the mark, or one member that it is complete, and the elements came with it; otherwise 2 | s down; nothing up |
//! | put-data | 3: PRE, FIN, FIN2 | n·s/k up |
//!
//! | pseudocode | here |
//! |---|---|
//! | QUERY of a writer: the largest tag of any phase | [`CasSs::largest`] |
//! | FIN2 | [`CasSs::seal`]; server: `ConfigurationState::finalize` |
//! | gossip: triples, and their join | `Server::take_gossip`, [`Versions::hear`] |
//! | what stays | [`CasSs::admit`], [`CasSs::trim`] (`[CASSS-3 bounded-versions]`) |
//! | writers that ended half way | [`CasSs::accepted`] of a client that makes room: the newest version that can be read, finalized or not |

pub(crate) mod kept;

use super::PassedVersions;
use super::cas::finalize::{Finalize, fin};
use super::cas::{Cas, kept};
use super::ec::Ec;
use super::kind::{Confirmation, Kind, as_in};
use super::versions::{Admission, Arrival, Bounds, StoredVersion, Versions};
use crate::config::Configuration;
use crate::element::Handle;
use crate::env::Env;
use crate::error::CallError;
use crate::gather::Visit;
use crate::limits;
use crate::message::{HeldVersions, Want};
use crate::object::Name;
use crate::tag::Tag;

/// The rules of CASSS.
pub(crate) enum CasSs {}

impl Kind for CasSs {
    const CONFIRMATION: Confirmation = Cas::CONFIRMATION;
    const GOSSIPS: bool = true;
    const FENCES: bool = true;
    /// Its members end abstentions themselves (`[CASSS-9 agreed-end-of-abstention]`).
    const NAMES_LOST: bool = false;

    as_in!(Cas: wants supports finish decode elements listed);
    as_in!(Ec: is_busy);

    // ---- client half ----

    /// The largest mark of a quorum. A client that makes room finishes a write that stopped half way, too: it takes
    /// the newest version that EC-DAP would take (`[EC-11 acceptance-test]`), and puts it before it finalizes it.
    fn accepted(
        c: &Configuration,
        held: &[&HeldVersions],
        have: Tag,
        passed: &PassedVersions,
    ) -> Option<Tag> {
        match passed.finishes {
            true => Ec::accepted(c, held, have, passed),
            false => Cas::accepted(c, held, have, passed),
        }
    }

    /// A client that makes room fetches the elements of what no round has finalized.
    fn fetches(passed: &PassedVersions) -> bool {
        passed.finishes
    }

    /// FIN, and FIN2 where nothing comes next. The versions are there for readers, also if FIN2 fails (`[CAS-3 fin-decides]`).
    async fn seal<E: Env>(env: &E, at: &Visit, versions: &[(&Name, Tag)]) -> Result<(), CallError> {
        Cas::seal(env, at, versions).await?;
        if at.is_last() {
            let _ = fin(env, at, versions, Finalize::completing).await;
        }
        Ok(())
    }

    /// A quorum of marks, or a member that knows of one.
    fn is_complete(c: &Configuration, held: &[&HeldVersions], tag: Tag) -> bool {
        let is_known = held.iter().any(|held| held.complete >= tag);
        is_known || Cas::is_complete(c, held, tag)
    }

    /// The largest of all that a member knows, finalized or not: a new version is above everything that is anywhere, and takes
    /// its place once it is complete.
    fn largest(held: &HeldVersions) -> Tag {
        held.max_tag()
    }

    // ---- server half ----

    /// The mark, with the element of its version, and all that is here.
    fn held(versions: &Versions, want: Want, have: Tag, _: Bounds) -> HeldVersions {
        let marked = versions.with_element(versions.stable());
        versions.held_with(marked, want, have)
    }

    /// Admits a version as EC-DAP does: above the mark there is a cap. A version that trimming would evict at once
    /// only raises the floor.
    fn admit(versions: &Versions, tag: Tag, arrival: Arrival, bounds: Bounds) -> Admission {
        let complete = versions.complete();
        let between = |stored: &&StoredVersion| tag < stored.tag && stored.tag <= complete;
        let larger = versions.stored().iter().filter(between).count();
        match Ec::admit(versions, tag, arrival, bounds) {
            Admission::RaiseFloor if larger < kept(bounds.delta) => Admission::Store,
            admission => admission,
        }
    }

    /// Trims versions (`[CASSS-3 bounded-versions]`): of the complete versions the `delta + 1` largest elements stay,
    /// and of a quiet object one. Above them every version stays that its writer may still finalize, and any other
    /// version among the [`limits::UNCONFIRMED_ELEMENTS`] largest.
    fn trim(
        versions: &mut Versions,
        delta: u16,
        quiet: bool,
        _: impl FnMut() -> Handle,
    ) -> Vec<StoredVersion> {
        let (complete, mark) = (versions.complete(), versions.stable());
        let (unfinished, stored) = (versions.unconfirmed(), versions.stored());
        let above = stored.iter().filter(|it| it.tag > complete).count();
        // A mark without its element is no version: it must not push the last one out that can be read.
        let kept = if quiet { 1 } else { kept(delta) };
        let gone = versions.evict(|from_largest, stored| match stored.tag <= complete {
            true => from_largest >= above + kept,
            false => stored.tag < mark && from_largest >= limits::UNCONFIRMED_ELEMENTS,
        });
        assert_eq!(
            versions.unconfirmed(),
            unfinished,
            "what its writer may finalize stays"
        );
        gone
    }
}
