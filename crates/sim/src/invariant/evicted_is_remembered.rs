//! `[EC-11 acceptance-test]`, `[X-2 get-tag-maximum]`: a server of an erasure-coded configuration that acknowledged a
//! version still lists it or says, by its floor, that it may have evicted it. Acceptance of reads rests on that. The
//! exception is a version of which it was decided that it is dropped (`[X-3 unconfirmed-cap]`).

use super::{Context, Invariant, Observation, PerServer};
use areo_core::config::Dap;
use areo_core::tag::Tag;
use std::collections::BTreeSet;

#[derive(Default)]
pub(super) struct Rule {
    /// For each server and object the acknowledged versions that are not below a floor that the server has shown
    /// since.
    acknowledged: PerServer<BTreeSet<Tag>>,
}

impl Invariant for Rule {
    fn name(&self) -> &'static str {
        "evicted_is_remembered"
    }

    fn observe(&mut self, observation: &Observation<'_>, context: &Context<'_>) -> Option<String> {
        match *observation {
            Observation::Acknowledged {
                server,
                object,
                tag,
            } => {
                let c = context.shape(object)?;
                if matches!(c.dap(), Dap::Ec { .. }) {
                    self.acknowledged.at(server, object).insert(tag);
                }
                None
            }
            Observation::Shown {
                server,
                object,
                held,
            } => {
                let tags = self.acknowledged.at(server, object);
                tags.retain(|tag| {
                    *tag > held.floor
                        && (held.supports(*tag) || !context.is_dropped(server, object, *tag))
                });
                let forgotten = tags.iter().find(|tag| !held.supports(**tag))?;
                let (object, floor) = (context.objects.describe(object), held.floor);
                Some(format!(
                    "server {server} neither lists {forgotten} of {object} nor remembers it: its floor is {floor}"
                ))
            }
            _ => None,
        }
    }
}
