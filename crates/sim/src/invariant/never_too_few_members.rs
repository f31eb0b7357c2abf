//! `[R-3 never-too-few]`, `[R-29 filled-up]`: no configuration of a lattice has fewer members than three, of a coded one than k + 2, or
//! than the first one of its domain if that has fewer.

use super::{Context, Invariant, Observation};
use areo_core::config::{Configuration, ConfigurationId};
use areo_core::limits;

#[derive(Default)]
pub(super) struct Rule;

impl Invariant for Rule {
    fn name(&self) -> &'static str {
        "never_too_few_members"
    }

    fn observe(&mut self, observation: &Observation<'_>, context: &Context<'_>) -> Option<String> {
        let Observation::SuccessorsShown { successors, .. } = observation else {
            return None;
        };
        let mut lead_to = successors.iter().map(|pointer| &pointer.configuration);
        let too_few = lead_to.find(|c| {
            c.descriptor().lattice.is_some() && !c.dap().is_removal() && c.n() < least(c, context)
        })?;
        let (id, members) = (too_few.id(), too_few.members());
        Some(format!("{id:?} has too few members: {members:?}"))
    }
}

/// The least number of members that a configuration of a domain has.
fn least(c: &Configuration, context: &Context<'_>) -> usize {
    let of_index = |index| ConfigurationId {
        index,
        digest: 0,
        ..c.id()
    };
    let mut first = context.shapes.range(of_index(0)..of_index(1));
    let first = first.next().map_or(0, |(_, first)| first.n());
    let tolerating = usize::from(c.dap().k()) + 2;
    limits::LATTICE_MEMBERS.max(tolerating).min(first)
}
