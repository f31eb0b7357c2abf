//! Phase 1 of a write: the largest tag of all configurations on the way.

use super::Domain;
use super::interruption::{Departure, Interruption};
use crate::config::Configuration;
use crate::dap::{self, OfferOutcome};
use crate::element::Value;
use crate::env::Env;
use crate::error::{CallError, Unavailable};
use crate::gather::Visit;
use crate::object::Name;
use crate::reconfig::walk::{Step, WalkOutcome};
use crate::tag::Tag;
use std::sync::Arc;
use std::time::Duration;

impl<E: Env> Domain<E> {
    /// Phase 1 of a write: the largest tag, and the configuration where the sequence ended. With the value that is to be written,
    /// a quorum there has room for it (`[X-3 unconfirmed-cap]`); with it comes how long silent members are waited for.
    pub(super) async fn largest_tag(
        &self,
        name: &Name,
        announced: Option<(&Value, Duration)>,
    ) -> Result<(OfferOutcome, Arc<Configuration>), Interruption> {
        let env = &self.client.env;
        let get_tag = |at: Visit| async move {
            let offered = match announced {
                Some((value, grace)) => dap::get_tag_for(env, &at, name, value, grace).await,
                None => dap::get_tag(env, &at, name).await.map(OfferOutcome::Room),
            };
            match offered {
                Err(CallError::Unavailable(full)) if full.lacks_room() => Ok(Err(full)),
                offered => offered.map(Ok),
            }
        };
        let (mut max, mut no_room) = (Tag::INITIAL, None);
        let mut era = self.start().era();
        let visit = async |at: &Visit, asked: Option<Result<OfferOutcome, Unavailable>>| {
            if at.c().is_ranked(name) {
                let left = Box::pin(self.depart(at.c(), name, false)).await?;
                let Departure::Leaves { last, next } = left else {
                    return Ok(Step::End(()));
                };
                max = last.map_or(Tag::INITIAL, |last| last.current.tag);
                era = next.era();
                return Ok(Step::Again(next));
            }
            if at.c().era() > era && name.kind().is_register() {
                // It has what earlier ones had ([W-13 ceasing-to-be-conditional]).
                (max, era) = (Tag::INITIAL, at.c().era());
            }
            let offered = match asked {
                Some(offered) => offered,
                None => get_tag(at.clone()).await?,
            };
            no_room = match offered {
                Ok(OfferOutcome::Room(tag)) => {
                    max = max.max(tag);
                    None
                }
                Ok(OfferOutcome::Busy) => Some(NoRoom::Busy),
                Err(full) => Some(NoRoom::Full(full)),
            };
            // Room is needed only where the sequence ends; elsewhere the tag is. Members with full disks do not say which it is.
            let shows_end = at.is_last() && at.c().options().piggyback;
            let needs_tag = match &no_room {
                None => false,
                Some(NoRoom::Busy) => !shows_end,
                Some(NoRoom::Full(_)) => true,
            };
            if needs_tag {
                max = max.max(dap::get_tag(env, at, name).await?);
            }
            Ok(Step::GoOn)
        };
        let walk = self.walk().asking_ahead(Some(get_tag), visit);
        let WalkOutcome::ToTheEnd(last) = walk.await? else {
            return Err(Interruption::Ranked);
        };
        let last = last.c().clone();
        match no_room {
            None => Ok((OfferOutcome::Room(max), last)),
            Some(NoRoom::Busy) => Ok((OfferOutcome::Busy, last)),
            Some(NoRoom::Full(full)) => Err(Interruption::Unavailable(full)),
        }
    }
}

/// Why a configuration has no room for a new version.
enum NoRoom {
    /// There are too many unconfirmed versions.
    Busy,
    Full(Unavailable),
}
