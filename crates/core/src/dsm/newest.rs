//! Phase 1 of a read: the newest version of all configurations on the way.

use super::interruption::{Departure, Detour, Interruption, found_of};
use super::{Client, Domain};
use crate::config::ConfigurationId;
use crate::dap::{self, CachedVersion, FoundVersion, PassedVersions, Scope};
use crate::env::Env;
use crate::error::{CallError, Unavailable};
use crate::gather::Visit;
use crate::object::Name;
use crate::reconfig::walk::{Step, WalkOutcome};

/// The result of phase 1 of a read.
pub(super) struct Newest {
    /// The newest version of all configurations on the way.
    pub(super) found: FoundVersion,
    /// The configuration where the sequence ended.
    pub(super) last: Visit,
    /// True if a server holds the version, or it is the initial one; false if only the caller claims to have it.
    pub(super) exists: bool,
    /// True if `found` was found in the last configuration itself: its holders are members of that configuration.
    pub(super) in_last: bool,
}

impl Newest {
    /// The version that a walk to this end found, in that configuration.
    fn of(
        found: FoundVersion,
        last: Visit,
        (exists, found_in): (bool, Option<ConfigurationId>),
    ) -> Newest {
        let in_last = found_in == Some(last.c().id());
        assert!(
            !in_last || found.holders.len() == last.c().n(),
            "holders are members of the configuration where the version was found"
        );
        assert!(
            exists || !found.tag.is_initial(),
            "the initial version is everywhere"
        );
        Newest {
            found,
            last,
            exists,
            in_last,
        }
    }

    /// True if a read may return the version as it is: the replies say that it is at a quorum, or this client brought it there itself
    /// (`[F-2 own-puts]`); all of that where no server knew a later configuration (`[F-4 last-configuration]`), and said so with the same replies;
    /// and no member is to be repaired by writing it back.
    pub(super) fn at_quorum<E: Env>(&self, client: &Client<E>, name: &Name) -> bool {
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
    /// every version. A reader that sees that says it again (`[X-4 confirm-write-backs]`).
    pub(super) fn confirm_again<E: Env>(&self, client: &Client<E>, name: &Name) {
        if self.found.unaware {
            dap::confirm(&client.env, &self.last, name, self.found.tag);
        }
    }
}

/// A version that a read may return.
pub(super) struct SettledVersion {
    pub(super) found: FoundVersion,
    /// The visit that heard of no later configuration: the version is at a quorum there.
    pub(super) last: Visit,
}

/// Why a version that a read found may not be returned: a later read may not see it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum UnsettledReason {
    /// Members have no room for it.
    NoRoom,
    /// It was decided that it never comes to a quorum.
    Dropped,
}

impl<E: Env> Domain<E> {
    /// A regular read (`[R-28 regular-reads]`): the newest version that a quorum holds. It may not be at a quorum
    /// itself, so that a later read may find an older one. Nothing is written back, because a full disk may have no
    /// room. Callers also read with it a part that is equal in all versions.
    ///
    /// # Errors
    /// [`Unavailable`].
    pub async fn read_regular(
        &self,
        name: &Name,
        scope: Scope,
    ) -> Result<FoundVersion, Unavailable> {
        loop {
            match self.newest(name, None, scope).await {
                Ok(newest) => return Ok(newest.found),
                Err(Interruption::Unavailable(unavailable)) => return Err(unavailable),
                Err(Interruption::Ranked) => {}
            }
            let read = self.read_register(name, None, scope);
            if let Some(found) = Box::pin(read).await? {
                return Ok(found);
            }
        }
    }

    /// Phase 1 of a read.
    pub(super) async fn newest(
        &self,
        name: &Name,
        known: Option<&CachedVersion>,
        scope: Scope,
    ) -> Result<Newest, Interruption> {
        let newest = self
            .newest_past(name, known, scope, &PassedVersions::default())
            .await?;
        Ok(newest.expect("a read that passes nothing over asks again"))
    }

    /// [`Self::newest`] without the versions that are passed over. `None`: no other one may be returned.
    pub(super) async fn newest_past(
        &self,
        name: &Name,
        known: Option<&CachedVersion>,
        scope: Scope,
        passed: &PassedVersions,
    ) -> Result<Option<Newest>, Interruption> {
        let env = &self.client.env;
        // Most of the time it is the version that the configuration before has and gives.
        let get_version =
            |at: Visit| async move { dap::get_data(env, &at, name, None, Scope::Version).await };
        let ask = (*passed == PassedVersions::default()).then_some(get_version);
        let (mut best, mut exists, mut found_in): (Option<FoundVersion>, _, _) =
            (None, false, None);
        let mut era = self.start().era();
        // A version that cannot be read any more, unless a larger one is found in a later configuration (`[X-40 named-loss]`).
        let mut lost: Option<Box<Unavailable>> = None;
        let get_data = async |at: &Visit, version: Option<FoundVersion>| {
            if at.c().is_ranked(name) {
                let left = Box::pin(self.depart(at.c(), name, false)).await?;
                let Departure::Leaves { last, next } = left else {
                    return Ok(Step::End(Detour::Ranked));
                };
                // It has what all earlier ones had.
                (exists, found_in) = (last.is_some(), Some(at.c().id()));
                (lost, era) = (None, next.era());
                best = last.map(|last| found_of(*last, at.c()));
                return Ok(Step::Again(next));
            }
            if at.c().era() > era && name.kind().is_register() {
                // So does an object that was a register in between ([W-13 ceasing-to-be-conditional]).
                (best, lost, era) = (None, None, at.c().era());
            }
            let here = if let (Some(version), Some(best)) = (version, &best) {
                match version.with_value_of(best) {
                    Some(here) => here,
                    None => return Ok(Step::Again(at.c().clone())),
                }
            } else {
                let own = self.client.last_propagated(at.c(), name);
                let known = known.or(own.as_ref());
                match dap::get_data_past(env, at, name, known, scope, passed).await {
                    Ok(Some(here)) => here,
                    Ok(None) => return Ok(Step::End(Detour::Ended(()))),
                    Err(CallError::Unavailable(failed)) if !failed.lost_versions().is_empty() => {
                        let later = Unavailable::later_lost(lost.take(), failed);
                        lost = Some(Box::new(later));
                        return Ok(Step::GoOn);
                    }
                    Err(failed) => return Err(failed),
                }
            };
            if best.as_ref().is_none_or(|best| here.tag >= best.tag) {
                let held = here.tag.is_initial() || here.holders.contains(&true);
                let is_same = best.as_ref().is_some_and(|best| best.tag == here.tag);
                exists = held || (exists && is_same);
                (best, found_in) = (Some(here), Some(at.c().id()));
            }
            Ok(Step::GoOn)
        };
        match self.walk().asking_ahead(ask, get_data).await? {
            WalkOutcome::Ended(Detour::Ended(())) => Ok(None),
            WalkOutcome::Ended(Detour::Ranked) => Err(Interruption::Ranked),
            WalkOutcome::ToTheEnd(last) => {
                if let Some(failed) = lost.filter(|it| it.hides(best.as_ref().map(|it| it.tag))) {
                    return Err(Interruption::Unavailable(*failed));
                }
                let found = best.expect("a configuration without a successor does not withhold");
                Ok(Some(Newest::of(found, last, (exists, found_in))))
            }
        }
    }
}
